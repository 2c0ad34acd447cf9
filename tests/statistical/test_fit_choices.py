"""Choices against their probabilities by definition; a wrong sharpness is caught.

False alarms: at most 1e-9 a test. More draws with SECANT_PROFILE=long.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import permutations

import pytest
from judging import draws, misfits

from secant.noise.mechanisms.selection import pick_exponential, pick_flip


def flip_shares(exponents: list[float]) -> dict[int, float]:
    """Permute-and-flip by its definition: all orders, the first coin that falls right."""
    shares = dict.fromkeys(range(len(exponents)), 0.0)
    orders = list(permutations(range(len(exponents))))
    for order in orders:
        alive = 1.0
        for index in order:
            chance = math.exp(-exponents[index])
            shares[index] += alive * chance / len(orders)
            alive *= 1 - chance
    return shares


def exponential_shares(exponents: list[float]) -> dict[int, float]:
    weights = [math.exp(-e) for e in exponents]
    return {i: w / sum(weights) for i, w in enumerate(weights)}


@pytest.mark.parametrize(
    ("pick", "shares"),
    [
        (pick_exponential, exponential_shares),
        (pick_flip, flip_shares),
    ],
    ids=["exponential", "flip"],
)
def test_choices(
    pick: Callable[..., int], shares: Callable[[list[float]], dict[int, float]]
) -> None:
    exponents = [Fraction(0), Fraction(1, 2), Fraction(2), Fraction(1, 2)]
    sample = [pick([1] * 4, exponents) for _ in range(draws(12_000))]
    assert misfits(sample, shares([float(e) for e in exponents])) == []


@pytest.mark.parametrize("pick", [pick_exponential, pick_flip])
def test_another_sharpness_is_caught(pick: Callable[..., int]) -> None:
    exponents = [Fraction(0), Fraction(1, 2), Fraction(2), Fraction(1, 2)]
    right = {pick_exponential: exponential_shares, pick_flip: flip_shares}
    sample = [pick([1] * 4, [exponent / 2 for exponent in exponents]) for _ in range(12_000)]
    assert misfits(sample, right[pick]([float(e) for e in exponents])) != []


def test_groups_of_equal_candidates_are_as_good_as_single_ones() -> None:
    """Two groups of 2 and 3 candidates: permute-and-flip must treat them as five."""
    five = flip_shares([0.0, 0.0, 0.7, 0.7, 0.7])
    expected = {0: five[0] + five[1], 1: five[2] + five[3] + five[4]}
    sample = [pick_flip([2, 3], [Fraction(0), Fraction(7, 10)]) for _ in range(draws(12_000))]
    assert misfits(sample, expected) == []
