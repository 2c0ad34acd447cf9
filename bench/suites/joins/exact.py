"""The true local and smooth sensitivity of a few shapes of joins, by closed forms.

In: how often keys occur. Out: `Exact`: how many rows of the join one more row brings now, and the
smallest beta-smooth bound of that. Neighbors add or remove one row of one table, whose rows are
bags. Counts only grow with rows, so the worst database at distance k has k rows more, and the worst
next step adds another one: `at(k)` is the largest number of rows of the join that it brings.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

Counts = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True, slots=True)
class Exact:
    """What no sound bound can fall below."""

    local: float
    smooth: float
    """The largest exp(-beta k) at(k) over all distances k: the smooth sensitivity itself."""
    how: str


def smooth_of(at: Callable[[int], float], beta: float, degree: int, how: str) -> Exact:
    """Search all distances that matter: at(k) lies below a polynomial of that degree with no negative terms.

    Such a polynomial times exp(-beta k) falls from k = degree / beta on.
    """
    furthest = math.ceil(degree / beta)
    values = [at(k) for k in range(furthest + 1)]
    return Exact(values[0], max(math.exp(-beta * k) * value for k, value in enumerate(values)), how)


def group_pairs(sizes: Iterable[int], beta: float) -> Exact:
    """A table joined with itself on a group: a group of n rows has n² pairs, one row more adds 2n + 1."""
    largest = max(sizes, default=0)
    return smooth_of(
        lambda k: 2 * (largest + k) + 1, beta, 1, "2n + 1 for the largest group, k rows larger"
    )


def triangles(edges: Iterable[tuple[int, int]], beta: float) -> Exact:
    """Triangles of a graph without loops: Nissim, Raskhodnikova and Smith's formula.

    An edge between i and j closes as many triangles as they have common neighbors, a. With s edges
    more, each node that is a neighbor of one of them (there are b) becomes common for one edge, and
    any other for two: a + floor((s + min(s, b)) / 2).
    """
    pairs = np.array(sorted({(min(e), max(e)) for e in edges if e[0] != e[1]}), dtype=np.int64)
    nodes, flat = np.unique(pairs.reshape(-1), return_inverse=True)
    ends = flat.reshape(-1, 2)
    adjacent = np.zeros((len(nodes), len(nodes)))
    adjacent[ends[:, 0], ends[:, 1]] = adjacent[ends[:, 1], ends[:, 0]] = 1
    degrees = adjacent.sum(axis=1)
    common = adjacent @ adjacent
    half = degrees[:, None] + degrees[None, :] - 2 * common - 2 * adjacent
    upper = np.triu_indices(len(nodes), 1)
    most = float(degrees.max(initial=0.0))
    # A node that is not there yet has no neighbors: beside the one with most, and beside another.
    a = np.concatenate([common[upper], [0.0, 0.0]])
    b = np.concatenate([half[upper], [most, 0.0]])
    # For each a only the largest b can matter.
    levels = np.unique(a)
    best = np.array([b[a == level].max() for level in levels])

    def at(s: int) -> float:
        return float((levels + np.floor((s + np.minimum(s, best)) / 2)).max())

    return smooth_of(at, beta, 1, "Nissim, Raskhodnikova and Smith's formula over all pairs")


@dataclass(frozen=True, slots=True)
class Chain:
    """First(c) ⋈ middle(c, o) ⋈ last(o), as numbers of rows after each table's own filters."""

    first: Counts
    """For every pair (c, o) of the middle: rows of the first table with c."""
    middle: Counts
    """Rows of the middle with this pair."""
    last: Counts
    """Rows of the last table with o."""
    left: np.ndarray[Any, np.dtype[np.int64]]
    """The c of every pair, numbered from 0."""
    right: np.ndarray[Any, np.dtype[np.int64]]
    """The o of every pair, numbered from 0."""
    most_first: float
    """Rows of the first table that share a c, at most; the pairs need not know that c."""
    most_last: float
    """Rows of the last table that share an o, at most."""


def chain(data: Chain, beta: float) -> Exact:
    """Rows of a chain of three tables, any row of which may come or go."""

    def at(k: int) -> float:
        middle = max((data.most_first + s) * (data.most_last + k - s) for s in range(k + 1))
        return float(max(middle, first(k), last(k)))

    first = _end(data.left, data.middle, data.last, data.most_last)
    last = _end(data.right, data.middle, data.first, data.most_first)
    return smooth_of(at, beta, 2, "closed form over all pairs of the middle table")


def chains(parts: Iterable[Chain], beta: float) -> Exact:
    """A chain for each group of an answer, each bounded by itself: the worst of them."""
    found = [chain(part, beta) for part in parts]
    worst = max(found, key=lambda e: e.smooth)
    return Exact(max(e.local for e in found), worst.smooth, f"{worst.how}, group by group")


def _end(
    own: np.ndarray[Any, np.dtype[np.int64]], middle: Counts, far: Counts, most_far: float
) -> Callable[[int], float]:
    """Give what a row at one end of the chain brings, at distance k.

    A row with c brings the sum over o of (m + s_o)(n + t_o), with s rows added to the middle and t to
    the far end. That is linear in s for fixed t, and the other way round, so all s rows share one o,
    and all t rows do. Either it is the same o, which the end may know (m > 0) or not, or two.
    """
    if not len(own):
        return lambda k: max(s * (most_far + k - s) for s in range(k + 1))
    totals = np.bincount(own, weights=middle * far)
    copies = np.zeros(len(totals))
    np.maximum.at(copies, own, middle)
    # What a pair offers: the total of its end, its number of rows, what lies behind it. Of equal
    # numbers of rows and equal offers behind, only the largest total matters.
    offers = np.stack([middle, far, totals[own]], axis=1)
    order = np.lexsort((-offers[:, 2], offers[:, 1], offers[:, 0]))
    offers = offers[order]
    fresh = np.ones(len(offers), dtype=bool)
    fresh[1:] = (offers[1:, :2] != offers[:-1, :2]).any(axis=1)
    m, n, total = offers[fresh].T
    largest = float(totals.max())

    def at(k: int) -> float:
        best = 0.0
        for s in range(k + 1):
            t = k - s
            known = float((total + s * n + t * (s + m)).max())
            unknown = largest + s * (most_far + t)
            two = float((totals + t * copies).max()) + s * most_far
            best = max(best, known, unknown, two)
        return best

    return at
