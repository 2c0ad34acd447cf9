"""Real powers of rationals, and floats that are certainly not too small.

In: exact rationals. Out: rational ends that enclose the power, exact where it is easily so; a float
at or above a rational. Nothing is rounded inward.
"""

from __future__ import annotations

import math
from fractions import Fraction

from secant.errors import InternalError
from secant.numeric.ball import ball, decide, lower, upper
from secant.numeric.interval import EVERYTHING, Interval, hull, point, whole_power
from secant.numeric.quick import quick, ratio

_FINE = ratio(1, 1 << 80)  # relative width of an enclosure: far below a float's last place
_SMALL = ratio(1, 1 << 4096)  # below it, zero is a good enough lower end
_MOST_BITS = 4096  # whole powers are multiplied out up to this size of the result


def power(value: Fraction, exponent: Fraction) -> Interval:
    """Enclose value**exponent for a value that is not negative.

    Tight to one part in 2^80, unless the power is below 2^-4096.

    >>> power(Fraction(25, 16), Fraction(1, 2)).high
    Fraction(5, 4)
    """
    if value < 0 or (value == 0 and exponent < 0):
        raise InternalError("BUG-001", "a power of a number that has none was asked for")
    if value in (0, 1) or exponent == 0:
        return point(1 if exponent == 0 else value)
    size = max(value.numerator.bit_length(), value.denominator.bit_length())
    if exponent.denominator == 1 and abs(exponent.numerator) * size <= _MOST_BITS:
        return point(value**exponent.numerator)

    def attempt(_: int) -> Interval | None:
        result = ball(value) ** ball(exponent)
        if not result.is_finite():
            return None
        low, high = max(lower(result), quick(0)), upper(result)
        if high <= _SMALL:
            return Interval(quick(0), high)
        return Interval(low, high) if high - low <= high * _FINE else None

    enclosure: Interval = decide(attempt, 128)
    return enclosure


def float_above(value: Fraction) -> float:
    """Give the smallest float that is at least `value`; infinity if there is no finite one."""
    try:
        rounded = float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.nextafter(math.inf, 0.0)
    numerator, denominator = rounded.as_integer_ratio()
    at_least = numerator * value.denominator >= value.numerator * denominator
    return rounded if at_least else math.nextafter(rounded, math.inf)


def power_range(range_: Interval, exponent: Fraction) -> Interval:
    """Give the range of x**exponent for x in a range; a broken or negative exponent needs positive x.

    >>> power_range(Interval(Fraction(1), Fraction(4)), Fraction(1, 2)).high
    Fraction(2, 1)
    """
    if exponent == 0:
        return point(1)
    if exponent.denominator == 1 and exponent > 0:
        return whole_power(range_, int(exponent)) if exponent <= 64 else EVERYTHING
    low, high = range_.low, range_.high
    if low is None or high is None or low < 0 or (low == 0 and exponent < 0):
        return EVERYTHING
    return hull(power(low, exponent), power(high, exponent))
