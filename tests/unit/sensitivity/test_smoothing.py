"""The largest discounted value: never too small, hardly too large, over all k."""

from __future__ import annotations

import itertools
import math
import random
from fractions import Fraction

import pytest

from secant.errors import UsageError
from secant.sensitivity import smoothing
from secant.sensitivity.smoothing import (
    discounted,
    largest_discounted,
    largest_split,
    largest_until,
    last_useful,
    value_at,
)


@pytest.mark.parametrize("beta", [Fraction(1, 50), Fraction(1, 10), Fraction(1, 2), Fraction(3)])
def test_against_all_k(beta):
    draw = random.Random(3)
    for _ in range(40):
        degree = draw.randrange(5)
        polynomials = [
            [draw.choice((0, 0, 1, 7, 400, 10**6)) for _ in range(degree + 1)] for _ in range(2)
        ]

        def at(k: int, polynomials: list[list[int]] = polynomials) -> int:
            return max(sum(c * k**i for i, c in enumerate(p)) for p in polynomials)

        found = largest_discounted(at, beta, degree)
        far = 3 * math.ceil(degree / beta) + 5
        best = max(discounted(at(k), beta, k) for k in range(far))
        assert found == best


def test_growth_beyond_the_data_counts():
    # papers.md, error 11: with k <= n only, an empty table would give 0
    beta = Fraction(1, 10)
    found = largest_discounted(lambda k: k, beta, 1)
    assert found == pytest.approx(10 * math.exp(-1))


def test_small_beta_is_quick_and_right():
    beta = Fraction(1, 10**6)
    asked = []

    def at(k: int) -> int:
        asked.append(k)
        return 1000 + 5 * k**4

    assert largest_discounted(at, beta, 4) == pytest.approx(5 * (4e6) ** 4 * math.exp(-4))
    assert len(asked) < 20_000


def test_nothing_is_nothing():
    assert largest_discounted(lambda k: 0, Fraction(1, 7), 3) == 0


def test_huge_and_tiny_values():
    assert largest_until(lambda k: 10**4000, Fraction(1), 10) == 10**4000
    tiny = Fraction(1, 10**4000)
    assert largest_until(lambda k: tiny, Fraction(1), 10) == tiny


def test_rounded_up():
    beta = Fraction(1, 3)
    value = discounted(3, beta, 7)
    assert value >= Fraction(3 * math.exp(-7 / 3)) * (1 - Fraction(1, 2**50))
    assert value * 10**30 > 1  # not a float: the excess is far below a double's
    assert discounted(3, beta, 0) == 3


def test_beta_must_be_positive():
    with pytest.raises(UsageError):
        largest_discounted(lambda k: k, Fraction(0), 1)


def test_splits_over_tables_against_all_splits():
    draw = random.Random(1)
    for _ in range(30):
        tables = draw.choice((2, 2, 3))
        degrees = [draw.choice((1, 1, 2)) for _ in range(tables)]
        powers = itertools.product(*(range(d + 1) for d in degrees))
        polynomial = {p: draw.choice((0, 1, 5, 40, 10**20)) for p in powers}
        beta = Fraction(draw.choice((1, 2, 5, 10)), 10 if tables == 3 else 50)
        last = tuple(last_useful(beta, d) for d in degrees)
        found = largest_split(polynomial, beta, last)
        best = max(
            math.exp(-float(beta) * sum(s)) * value_at(polynomial, s)
            for s in itertools.product(*(range(x + 3) for x in last))
        )
        assert found == pytest.approx(best, rel=1e-12)


def test_many_splits_are_searched_by_boxes():
    # 101^2 points: (1000 + s1 s2) has its best far out, where both get 1 / beta
    beta = Fraction(1, 100)
    found = largest_split({(0, 0): 1000, (1, 1): 1}, beta, (100, 100))
    assert found == pytest.approx(math.exp(-2) * (1000 + 100**2), rel=0.02)
    assert found >= Fraction(math.exp(-2) * 11000 * (1 - 1e-12))
    assert largest_split({(0, 0): 0, (1, 1): 0}, beta, (100, 100)) == 0


@pytest.mark.parametrize("figure", [0, 1, 37, 1000, 10**6])
@pytest.mark.parametrize("degree", [1, 3])
def test_a_group_costs_few_values_at_any_beta(figure, degree):
    # It is done for each group once it is paid for: thousands of values a group were seconds a question.
    for beta in (Fraction(1, 20), Fraction(1, 1000), Fraction(1, 10**5)):
        asked = []

        def at(k: int, asked: list[int] = asked) -> int:
            asked.append(k)
            return (figure + k) ** degree

        found = largest_discounted(at, beta, degree)
        assert len(asked) <= 120
        asked.clear()
        assert found == largest_until(at, beta, last_useful(beta, degree))


def test_without_convexity_the_smaller_of_two_is_found_too():
    draw = random.Random(8)
    for _ in range(60):
        one, other = ([draw.choice((0, 1, 30, 5000)) for _ in range(3)] for _ in range(2))

        def at(k: int, one: list[int] = one, other: list[int] = other) -> int:
            return min(sum(c * k**i for i, c in enumerate(p)) for p in (one, other))

        beta = Fraction(1, draw.choice((3, 40, 700)))
        best = max(discounted(at(k), beta, k) for k in range(math.ceil(2 / beta) + 1))
        assert largest_discounted(at, beta, 2, convex=False) == best


def test_splits_with_a_plateau_are_searched_in_few_boxes(monkeypatch):
    # A flat top made the search look at each of its points: seconds for one group.
    boxes = []
    most_in = smoothing._Boxes.most_in
    monkeypatch.setattr(
        smoothing._Boxes, "most_in", lambda self, *box: boxes.append(box) or most_in(self, *box)
    )
    draw = random.Random(5)
    for degrees, beta in (((1, 1), Fraction(1, 15_000)), ((1, 1, 1), Fraction(1, 600))):
        last = tuple(last_useful(beta, d) for d in degrees)
        for _ in range(12):
            powers = itertools.product(*(range(d + 1) for d in degrees))
            boxes.clear()
            largest_split({p: draw.choice((0, 1, 10**4, 10**8)) for p in powers}, beta, last)
            assert len(boxes) <= 3_000
