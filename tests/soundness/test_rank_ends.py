"""Ends of quantiles in values (noise.rank_ends, truncation.weights): all small groups, all neighbors, all places.

Probabilities come from a second piece of code: permute-and-flip over the half widths, integrated. Planted faults show
that each check can fail.
"""

import itertools
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from laws_of_draws import worst_ratio

from secant.noise import rank_ends
from secant.noise.mechanisms import limits as limit_choices
from secant.noise.mechanisms.limits import take_tally
from secant.noise.mechanisms.selection import PermuteAndFlip
from secant.noise.rank_ends import drawn_ends, ladder, shortfalls, wanted
from secant.noise.rank_weights import limit_of_weights
from secant.noise.secrecy import Private
from secant.noise.tail import OctaveTally
from secant.sensitivity.bounds import GlobalBound

LEVEL = Fraction(95, 100)
NODES, WEIGHTS = np.polynomial.legendre.leggauss(200)
FRACTIONS = [Fraction(1, 2), Fraction(9, 10), Fraction(1, 3)]
ENDS = [Fraction(0), Fraction(1)]


def choice(epsilon, bound):
    return PermuteAndFlip().calibrate(GlobalBound(bound, "linf"), epsilon=epsilon, monotone=True)


def chances(sharpness, short):
    """Give the probability of each half width."""
    far = np.array([float(x) for x in short])
    weights = np.exp(-float(sharpness) * (far - far.min()))
    times = (NODES + 1) / 2
    others = np.log1p(-np.outer(times, weights))
    return (WEIGHTS / 2) @ (np.exp(others.sum(axis=1, keepdims=True) - others) * weights)


def farthest_move(score, points=5):
    """Give how far apart a unit of weight one moves two scores, over all small groups, places and fractions."""
    worst = Fraction(0)
    for rows in itertools.product(range(3), repeat=points):
        cells = [(i, r) for i, r in enumerate(rows) if r]
        for q, place in itertools.product(FRACTIONS + ENDS, range(points)):
            widths = ladder(place, points)
            before = score(q, widths, place, cells, Fraction(2))
            for at in range(points):
                more = Counter(dict(cells))
                more[at] += 1
                after = score(q, widths, place, sorted(more.items()), Fraction(2))
                moves = [b - a for a, b in zip(before, after, strict=True)]
                worst = max(worst, (max(moves) - min(moves)) / (2 * max(q, 1 - q)))
    return worst


def test_scores_move_apart_by_no_more_than_the_span():
    assert farthest_move(shortfalls) == 1


def test_a_rank_that_moves_twice_as_far_would_be_noticed():
    """Planted: both sides are added up instead of the lesser taken."""

    def added(q, widths, place, cells, inside):
        total = sum(rows for _, rows in cells)
        return [
            abs(2 * inside - sum(r for i, r in cells if abs(i - place) <= w) * 2 + q * total)
            for w in widths
        ]

    assert farthest_move(added) > 1


def missed(q, cells, place, points, sharpness, inside):
    """Give how likely the ends miss the rank: rows left of both, or not right of them, are too many or too few."""
    widths = ladder(place, points)
    total = sum(rows for _, rows in cells)
    if q in ENDS and total:
        # the least is missed if all rows lie right of the upper end, the greatest if all lie left of the lower one
        rows = [i - place if q == 0 else place - i for i, _ in cells]
        found = chances(sharpness, shortfalls(q, widths, place, cells, inside))
        return sum(p for p, width in zip(found, widths, strict=True) if min(rows) > width)
    found = chances(sharpness, shortfalls(q, widths, place, cells, inside))
    return sum(
        p
        for p, width in zip(found, widths, strict=True)
        if sum(r for i, r in cells if i < place - width) > q * total
        or sum(r for i, r in cells if i <= place + width) < q * total
    )


GROUPS = [
    [(0, 40), (999, 40)],
    [(0, 41), (999, 40)],
    [(400 + i, 1) for i in range(200)],
    [(10 * i, 1) for i in range(100)],
    [(500, 1000)],
    [(499, 30), (500, 1), (501, 30)],
    [(i * i // 10, 1) for i in range(100)],
    [],
]


def worst_miss(choice_of_ends, part=1):
    worst = 0.0
    for cells, q in itertools.product(GROUPS, FRACTIONS + ENDS):
        for place in (0, 1, 480, 500, 501, 700, 999):
            inside = wanted(choice_of_ends, len(ladder(place, 1000)), LEVEL) * part
            worst = max(worst, missed(q, cells, place, 1000, choice_of_ends.sharpness, inside))
    return worst


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(5)])
def test_ends_hold_wherever_the_point_was_drawn(epsilon):
    assert worst_miss(choice(epsilon, Fraction(1))) <= 0.05 + 1e-9


def test_a_rank_that_lies_hardly_inside_would_be_noticed():
    """Planted: a third of the rows that the rank is to lie inside by."""
    assert worst_miss(choice(Fraction(1), Fraction(1)), Fraction(1, 3)) > 0.1


def sample(sharper, cells, draws):
    ends = choice(sharper, Fraction(1))
    q = Fraction(1, 2)
    return Counter(drawn_ends(q, ends, cells, 2, 6, LEVEL) for _ in range(draws))


ONE, OTHER = [(1, 2), (2, 1), (3, 2)], [(1, 2), (2, 1), (3, 1)]


@pytest.fixture
def near(monkeypatch):
    """Let the rank lie inside by one row and a quarter, so that all half widths are drawn of so small groups."""
    monkeypatch.setattr(rank_ends, "wanted", lambda choice, widths, level: Fraction(5, 4))


def test_drawn_ends_are_as_private_as_they_say(near):
    draws = 40_000
    one, other = sample(Fraction(1), ONE, draws), sample(Fraction(1), OTHER, draws)
    assert worst_ratio(one, other, draws) <= 1
    assert worst_ratio(other, one, draws) <= 1


def test_ends_that_are_drawn_too_sharply_would_be_noticed(near):
    """Planted: four times the sharpness."""
    draws = 40_000
    one, other = sample(Fraction(4), ONE, draws), sample(Fraction(4), OTHER, draws)
    assert max(worst_ratio(one, other, draws), worst_ratio(other, one, draws)) > 1


def test_a_ladder_covers_the_grid():
    for points in (1, 2, 3, 10, 65_536):
        for place in {0, points // 3, points - 1}:
            widths = ladder(place, points)
            assert widths[0] == 0
            assert widths[-1] == max(place, points - 1 - place)
            assert list(widths) == sorted(set(widths))
            assert len(widths) < 40


# ── the tally of rows ────────────────────────────────────────────────────────────────────────────

LIMITS = (1, 2, 4, 8)


def tallied(monkeypatch, rows):
    """Give the counts of a tally without noise."""
    monkeypatch.setattr(limit_choices, "add_discrete_laplace", lambda values, *, scale: values)
    above = [sum(r > limit for r in rows) for limit in (0, *LIMITS)]
    return take_tally(LIMITS, Private(above), Fraction(1)).counts


def moves(monkeypatch, count):
    worst = 0
    for rows in itertools.product((1, 2, 3, 5, 9, 40), repeat=3):
        whole = count(monkeypatch, rows)
        for left_out in range(3):
            less = count(monkeypatch, rows[:left_out] + rows[left_out + 1 :])
            worst = max(worst, sum(abs(a - b) for a, b in zip(whole, less, strict=True)))
    return worst


def test_a_unit_stands_in_one_count(monkeypatch):
    assert moves(monkeypatch, tallied) == 1


def test_a_unit_that_stands_in_two_counts_would_be_noticed(monkeypatch):
    """Planted: those with few rows are counted besides all units."""
    assert moves(monkeypatch, lambda m, rows: [len(rows), *tallied(m, rows)]) == 2


def test_the_limit_balances_noise_and_what_is_cut():
    """Many who have one row and a hundred with more: no limit at the top; all alike: as much as each has."""
    edges = (0.5, *(float(2**k) for k in range(12)))
    few = OctaveTally(edges, (20_000, *([0] * 4), 100, *([0] * 6)), 0.3)
    alike = OctaveTally(edges, (*([0] * 5), 20_000, *([0] * 6)), 0.3)
    half = Fraction(1, 2)
    assert limit_of_weights(few, half, 30.0)[0] <= 3
    index, unseen = limit_of_weights(alike, half, 30.0)
    assert edges[index + 1] in (16.0, 32.0)
    assert unseen < 20_000
