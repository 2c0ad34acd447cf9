"""Magnitudes and pieces: forms hold what is reached, pieces cover what they cut."""

import random
from fractions import Fraction
from itertools import pairwise

import pytest

from secant.numeric import affine
from secant.numeric.interval import hull, interval, point


def drawn_interval():
    low, high = sorted(Fraction(random.randint(-40, 40), 4) for _ in range(2))
    return interval(low, high)


def magnitude_faults(function, count=2000):
    """Count values of |x| that a form does not hold at the place where they are reached."""
    faults = 0
    for _ in range(count):
        limits = drawn_interval()
        form = function(affine.variable("x", limits))
        low, high = limits.ends()
        for step in (Fraction(0), Fraction(1), Fraction(random.randint(0, 20), 20)):
            x = low + (high - low) * step
            at = form.center + form.terms.get("x", 0) * (2 * step - 1)
            held = form.range().low <= abs(x) <= form.range().high
            faults += abs(abs(x) - at) > form.error or not held
    return faults


def test_magnitudes_hold():
    assert magnitude_faults(affine.absolute) == 0


def test_a_magnitude_without_its_kink_is_caught():
    def chord_alone(a):
        form = affine.absolute(a)
        return affine.Affine(form.center, form.terms, form.error / 2, form.within)

    assert magnitude_faults(chord_alone) > 0


@pytest.mark.parametrize(("low", "high"), [(-3, 5), (-5, 3), (-2, 2), (0, 4), (-4, 0), (1, 2)])
def test_magnitudes_are_not_wider_than_they_are(low, high):
    found = affine.absolute(affine.variable("x", interval(low, high))).range()
    least = 0 if low <= 0 <= high else min(abs(low), abs(high))
    assert found == interval(least, max(abs(low), abs(high)))


def test_pieces_cover_without_gap():
    for _ in range(200):
        limits = drawn_interval()
        parts = affine.pieces(limits, random.randint(1, 9))
        assert parts[0].low == limits.low
        assert parts[-1].high == limits.high
        assert all(a.high == b.low for a, b in pairwise(parts))
    assert affine.pieces(point(3), 5) == (point(3),)


def test_pieces_narrow_a_range():
    """x³ − x on [0, 2]: the form alone is wide, eight pieces come near the truth, [−0.385, 6]."""

    def range_on(limits):
        x = affine.variable("x", limits)
        return affine.subtract(affine.power(x, 3), x).range()

    whole = interval(0, 2)
    found = range_on(whole)
    cut = None
    for piece in affine.pieces(whole, 8):
        cut = range_on(piece) if cut is None else hull(cut, range_on(piece))
    assert cut.low <= Fraction(-384, 1000)
    assert cut.high >= 6
    assert cut.high - cut.low < Fraction(9, 10) * (found.high - found.low)


def test_the_variable_that_moves_most_is_cut():
    x, y = affine.variable("x", interval(0, 1)), affine.variable("y", interval(0, 3))
    assert affine.widest(affine.add(x, y)) == "y"
    assert affine.widest(affine.add(affine.scale(x, 9), y)) == "x"
    assert affine.widest(affine.constant(4)) is None
