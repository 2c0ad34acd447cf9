"""Ends of very many digits are rounded outward, and short ones stay as they are."""

import random
from fractions import Fraction

from secant.numeric.interval import EVERYTHING, Interval, interval, shortened


def long_number():
    size = random.choice((1, 2000, 4000, 6000, 9000))
    other = random.choice((1, 2000, 4000, 6000, 9000))
    sign = random.choice((-1, 1))
    return sign * Fraction(random.getrandbits(size) + 1, random.getrandbits(other) + 1)


def test_what_is_held_stays_held():
    for _ in range(500):
        low, high = sorted((long_number(), long_number()))
        found = shortened(Interval(low, high))
        assert found.low is None or found.low <= low
        assert found.high is None or found.high >= high
        for cut, end in ((found.low, low), (found.high, high)):
            if cut is not None:
                assert (
                    abs(cut - end) <= abs(end) / 2**200 + Fraction(1, 2**4095) or abs(end) > 2**4096
                )
                assert max(cut.numerator.bit_length(), cut.denominator.bit_length()) <= 4600


def test_short_ends_stay():
    assert shortened(EVERYTHING) == EVERYTHING
    assert shortened(interval(-1, Fraction(1, 3))) == interval(-1, Fraction(1, 3))
