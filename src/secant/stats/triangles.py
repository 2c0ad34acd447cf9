"""How many triangles a graph has, edges being private: statistic.triangles.

In: edges between public vertices 0 … vertices - 1, as pairs or as a square matrix. Out: a `Release`.
The bound is the exact smooth sensitivity; loops, repeated edges and unknown vertices are left out by
rule, so that no edge can cause an error.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from secant.errors import UsageError, public_api
from secant.numeric.parameters import Number, count_of
from secant.stats.calls import guarantee_of, release, terms_of
from secant.stats.inputs import check_values, values_of
from secant.stats.mechanisms import Mechanism, Statistic, laplace_mechanism, smooth_mechanism
from secant.stats.results import REPLACE, Release
from secant.stats.scale import Scale, Steps

MOST_VERTICES = 30_000
"""All pairs of vertices are visited."""
_ROWS = 256


@public_api
def triangles(
    edges: object,
    *,
    vertices: int,
    epsilon: Number,
    budget: object = None,
    neighbors: str | None = None,
    mechanism: str = "auto",
    level: Number = 0.95,
) -> Release:
    """Release the number of triangles; one edge more or less is hidden, vertices are public.

    >>> triangles([(0, 1), (1, 2), (0, 2)], vertices=3, epsilon=100).value
    1.0
    """
    nodes = count_of(vertices, "the number of vertices")
    if nodes > MOST_VERTICES:
        raise UsageError(
            "USE-001", f"more than {MOST_VERTICES} vertices are not looked at in pairs"
        )
    terms = terms_of(
        edges, epsilon=epsilon, budget=budget, neighbors=neighbors,
        # capped by the global bound, smooth noise is never much larger than Laplace noise
        mechanism="smooth" if mechanism == "auto" else mechanism, level=level,
    )  # fmt: skip
    if terms.neighbors == REPLACE:
        raise UsageError("USE-001", "edges are added or removed; replacing one is two steps")
    check_values(edges, what="edges", columns=_width(edges, nodes))
    whole = Fraction(1)
    scale = Scale(Fraction(0), whole, max(1, nodes * (nodes - 1) * (nodes - 2) // 6))
    statistic = Statistic(
        "triangles",
        scale,
        whole,
        lambda codes: Fraction(count_triangles(codes, nodes)),
        lambda codes, beta: smooth_triangles(codes, nodes, beta=beta),
        Fraction(max(1, nodes - 2)),
    )
    ways: list[list[Mechanism]] = [
        [smooth_mechanism(statistic, terms.epsilon, Fraction(10))],
        [laplace_mechanism(statistic, terms.epsilon, Fraction(max(1, nodes - 2)))],
    ]
    return release(
        edges,
        scale,
        statistic,
        ways,
        terms,
        read=lambda raw: edge_codes(raw, nodes),
        guarantee=guarantee_of(terms, "one edge added or removed; vertices are public"),
    )


def _width(edges: object, vertices: int) -> int:
    """Give how many entries a row has: of pairs, or of a square matrix."""
    square = getattr(edges, "shape", None) == (vertices, vertices)
    return vertices if square else 2


def edge_codes(edges: object, vertices: int) -> Steps:
    """Give each edge once, as lower · vertices + upper; what is no edge is left out."""
    if _width(edges, vertices) != 2:
        matrix = values_of(edges, what="edges", columns=vertices, missing=0.0)
        ends = np.argwhere(matrix != 0).astype(np.float64)
    else:
        ends = values_of(edges, what="edges", columns=2)
    valid = (ends >= 0).all(axis=1) & (ends < vertices).all(axis=1) & (ends % 1 == 0).all(axis=1)
    pairs = np.sort(ends[valid].astype(np.int64), axis=1)
    pairs = pairs[pairs[:, 0] < pairs[:, 1]]
    codes: Steps = np.unique(pairs[:, 0] * vertices + pairs[:, 1])
    return codes


def _adjacency(codes: Steps, vertices: int) -> Any:
    from scipy.sparse import csr_array  # slow to import, and only graphs need it

    one, two = codes // vertices, codes % vertices
    ends = np.concatenate([one, two]), np.concatenate([two, one])
    data = np.ones(2 * len(codes), dtype=np.int64)
    return csr_array((data, ends), shape=(vertices, vertices))


def count_triangles(codes: Steps, vertices: int) -> int:
    """Count the triangles of a graph."""
    graph = _adjacency(codes, vertices)
    return int((graph @ graph).multiply(graph).sum()) // 6


def smooth_triangles(codes: Steps, vertices: int, *, beta: Fraction) -> float:
    """Give max over s of exp(-βs) · min(a + ⌊(s + min(s, b))/2⌋, vertices - 2) over all pairs.

    a: how many vertices both of a pair are joined to; b: how many exactly one of them is.
    """
    most = vertices - 2
    if most < 1:
        return 0.0
    front = _front(_adjacency(codes, vertices), vertices)
    joined = np.flatnonzero(front >= 0)
    half = front[joined]
    best, step, rate = 0.0, 0, float(beta)
    while np.exp(-rate * step) * most > best:
        largest = int(np.minimum(joined + (step + np.minimum(step, half)) // 2, most).max())
        best = max(best, float(np.exp(-rate * step)) * largest)
        step += 1
    return best * (1 + 2.0**-30)


def _front(graph: Any, vertices: int) -> Steps:
    """Give for each a the largest b that occurs with it; -1 where no pair has this a."""
    degrees = np.asarray(graph.sum(axis=1)).ravel().astype(np.int64)
    front = np.full(vertices, -1, dtype=np.int64)
    for start in range(0, vertices, _ROWS):
        rows = graph[start : start + _ROWS]
        shared = (rows @ graph).toarray().astype(np.int64)
        one_sided = degrees[start : start + _ROWS, None] + degrees - 2 * shared
        one_sided -= 2 * rows.toarray().astype(np.int64)
        own = np.arange(shared.shape[0])
        shared[own, start + own] = 0
        one_sided[own, start + own] = -1  # a vertex is no pair with itself
        np.maximum.at(front, shared.ravel(), one_sided.ravel())
    return front
