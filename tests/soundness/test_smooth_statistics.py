"""Smooth bounds and rank scores by brute force: every small column, every neighbor.

A bound must cover what happens at each neighbor, and must not fall faster than e^-β. The planted faults
are a bound that is too small, one that is not smooth, and scores that move farther than was promised.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from chance import LONG
from secant.stats import smooth_sensitivity as smooth
from secant.stats.preprocessing.pair_search import EXCESS, largest
from secant.stats.quantiles import RankChoice, rank_choice
from secant.stats.results import ADD_REMOVE, REPLACE
from secant.stats.triangles import count_triangles, smooth_triangles

TOP = 5 if LONG else 4
LARGEST = 6 if LONG else 5
BETAS = (Fraction(1, 5), Fraction(2), *([Fraction(1, 50)] if LONG else []))
SHARES = (Fraction(0), Fraction(1, 4), Fraction(1, 2), Fraction(9, 10), Fraction(1))
TRIMS = (Fraction(1, 10), Fraction(1, 4), Fraction(2, 5))
EMPTY = TOP // 2


def columns(size: int) -> list[tuple[int, ...]]:
    return list(itertools.combinations_with_replacement(range(TOP + 1), size))


def neighbor_pairs(relation: str):
    """Every unordered pair of neighbors among small columns."""
    for size in range(LARGEST):
        for column in columns(size):
            if relation == ADD_REMOVE:
                for value in range(TOP + 1):
                    yield column, tuple(sorted((*column, value)))
            else:
                for place, value in itertools.product(range(size), range(TOP + 1)):
                    other = tuple(sorted((*column[:place], *column[place + 1 :], value)))
                    if column < other:
                        yield column, other


def faults(exact, bound, beta: float, relation: str) -> tuple[int, int]:
    """How many pairs a bound does not cover, and how many it is not smooth on."""
    known: dict[tuple[int, ...], tuple[float, float]] = {}

    def look(column):
        if column not in known:
            steps = np.array(column, dtype=np.int64)
            known[column] = float(exact(steps)), bound(steps)
        return known[column]

    uncovered = rough = 0
    for one, two in neighbor_pairs(relation):
        (f, s), (g, t) = look(one), look(two)
        uncovered += abs(f - g) > min(s, t) * (1 + 1e-12)
        # what is computed may lie above the exact bound by EXCESS, of which the noise is told
        rough += max(s, t) > min(s, t) * math.exp(beta) * (1 + 2 * EXCESS)
    return uncovered, rough


def cases():
    for beta in BETAS:
        for relation in (ADD_REMOVE, REPLACE):
            for q in SHARES:
                yield (
                    f"quantile {q} {beta} {relation}",
                    lambda x, q=q: smooth.quantile_at(x, q, EMPTY),
                    lambda x, q=q, b=beta, r=relation: smooth.smooth_quantile(
                        x, q, TOP, beta=b, neighbors=r
                    ),
                    beta,
                    relation,
                )
            for trim in TRIMS:
                yield (
                    f"trimmed mean {trim} {beta} {relation}",
                    lambda x, t=trim: smooth.trimmed_mean_of(x, t, EMPTY),
                    lambda x, t=trim, b=beta, r=relation: smooth.smooth_trimmed_mean(
                        x, t, TOP, beta=b, neighbors=r
                    ),
                    beta,
                    relation,
                )
            yield (
                f"variance {beta} {relation}",
                smooth.variance_of,
                lambda x, b=beta, r=relation: smooth.smooth_variance(x, TOP, beta=b, neighbors=r),
                beta,
                relation,
            )
        yield (
            f"mean {beta}",
            lambda x: smooth.trimmed_mean_of(x, Fraction(0), EMPTY),
            lambda x, b=beta: smooth.smooth_mean(x, TOP, beta=b),
            beta,
            ADD_REMOVE,
        )


CASES = list(cases())


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_a_bound_covers_every_neighbor_and_is_smooth(case):
    _, exact, bound, beta, relation = case
    assert faults(exact, bound, float(beta), relation) == (0, 0)


SHARP = [case for case in CASES if case[3] == BETAS[0]]


@pytest.mark.parametrize("case", SHARP, ids=lambda case: case[0])
def test_a_bound_that_is_too_small_is_noticed(case):
    # a fifth: the bounds of mean and variance keep a factor of two to four in hand on small columns
    _, exact, bound, beta, relation = case
    assert faults(exact, lambda x: 0.2 * bound(x), float(beta), relation)[0] > 0


# with few rows, replaced, nothing is trimmed before two fifths: the bound is a constant
STEEP = [c for c in CASES if c[3] == 2 and not ("trimmed" in c[0] and "2/5" not in c[0])]


@pytest.mark.parametrize("case", STEEP, ids=lambda case: case[0])
def test_a_bound_that_falls_too_fast_is_noticed(case):
    """The bound for β = 2, taken for one with β = 0.05."""
    _, exact, bound, _, relation = case
    assert faults(exact, bound, 0.05, relation)[1] > 0


def test_the_search_finds_the_best_pair():
    generator = np.random.default_rng(7)
    for _ in range(300 if not LONG else 3000):
        count = int(generator.integers(2, 40))
        points = np.sort(generator.integers(0, 1000, count)).astype(float)
        rate, center = generator.choice([0.01, 0.1, 1.0]), generator.integers(0, count)

        def weigh(j0, j1, l0, l1, rate=rate, center=center):
            inside = np.maximum(0, l0 - j1 - 1)
            return -rate * (inside + np.maximum(0, np.maximum(j0 - center, center - l1)))

        best = max(
            (points[k] - points[j]) * math.exp(-rate * (k - j - 1 + max(0, j - center, center - k)))
            for j, k in itertools.combinations(range(count), 2)
        )
        found = largest(points, weigh)
        assert best <= found <= best * (1 + EXCESS)


def point_chances(ranks: RankChoice, column: tuple[int, ...]) -> np.ndarray:
    """The probability of each point of a small scale, from the groups that the draw uses."""
    first, counts, excess = ranks.groups(np.array(column, dtype=np.int64))
    weights = np.exp(-excess * float(ranks.choice.sharpness))
    each = np.repeat(weights, counts)
    assert first[0] == 0
    assert len(each) == ranks.top + 1, "every point is a candidate, whatever the data"
    return each / each.sum()


def largest_loss(ranks: RankChoice, relation: str) -> float:
    worst = 0.0
    for one, two in neighbor_pairs(relation):
        ratio = np.log(point_chances(ranks, one) / point_chances(ranks, two))
        worst = max(worst, float(np.abs(ratio).max()))
    return worst


@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE])
@pytest.mark.parametrize("q", SHARES)
@pytest.mark.parametrize("farthest", [None, 3])
def test_the_draw_by_rank_keeps_its_epsilon(q, relation, farthest):
    ranks = rank_choice(q, top=TOP, epsilon=Fraction(1), neighbors=relation)
    assert ranks.bend is None
    if farthest is not None:  # where scores are no longer told apart
        ranks = replace(ranks, farthest=farthest)
    assert largest_loss(ranks, relation) <= 1 + 1e-9


@pytest.mark.parametrize("q", SHARES)
def test_scores_that_move_too_far_are_noticed(q):
    ranks = rank_choice(q, top=TOP, epsilon=Fraction(1), neighbors=REPLACE)
    sharper = replace(ranks.choice, sharpness=3 * ranks.choice.sharpness)
    assert largest_loss(replace(ranks, choice=sharper), REPLACE) > 1


def test_extremes_and_medians_use_their_epsilon_up():
    """A calibration that was twice too careful would show here."""
    for q, relation in (
        (Fraction(0), ADD_REMOVE),
        (Fraction(1, 2), ADD_REMOVE),
        (Fraction(1, 2), REPLACE),
    ):
        ranks = rank_choice(q, top=TOP, epsilon=Fraction(1), neighbors=relation)
        assert largest_loss(ranks, relation) > 0.55


def graph(code: int, vertices: int) -> np.ndarray:
    pairs = list(itertools.combinations(range(vertices), 2))
    chosen = [a * vertices + b for bit, (a, b) in enumerate(pairs) if code >> bit & 1]
    return np.array(chosen, dtype=np.int64)


@pytest.mark.parametrize("beta", BETAS)
def test_the_bound_of_triangles_is_their_smooth_sensitivity(beta):
    """All graphs on five vertices: the formula against the definition."""
    vertices, edges = 5, 10
    every = np.arange(1 << edges)
    counts = np.array([count_triangles(graph(code, vertices), vertices) for code in every])
    local = np.max([np.abs(counts - counts[every ^ (1 << bit)]) for bit in range(edges)], axis=0)
    apart = np.bitwise_count(every[:, None] ^ every[None, :])
    exact = (local[None, :] * np.exp(-float(beta) * apart)).max(axis=1)
    found = np.array(
        [smooth_triangles(graph(code, vertices), vertices, beta=beta) for code in every]
    )
    assert (found >= exact * (1 - 1e-12)).all()
    assert (found <= exact * (1 + 1e-6)).all()
