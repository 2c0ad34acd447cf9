"""Intervals with exact rational ends: sums and products are exact, everything else is rounded outward.

None as an end means that the side is unbounded. An empty interval cannot be built.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from secant.numeric.quick import quick, ratio
from secant.records import frozen

End = Fraction | None


@frozen
class Interval:
    """All numbers from `low` to `high`."""

    low: End = None
    high: End = None

    def __post_init__(self) -> None:
        low, high = self.low, self.high
        if low is not high and low is not None and high is not None and low > high:
            raise AssertionError("the interval is empty")

    @property
    def bounded(self) -> bool:
        """Whether both ends are finite."""
        return self.low is not None and self.high is not None

    def ends(self) -> tuple[Fraction, Fraction]:
        """Give both ends of a bounded interval."""
        assert self.low is not None
        assert self.high is not None
        return self.low, self.high


EVERYTHING = Interval()


def point(value: Fraction | int) -> Interval:
    """Give the interval that holds one number."""
    end = quick(value)
    return Interval(end, end)


def interval(low: Fraction | int | float, high: Fraction | int | float) -> Interval:
    """Give the interval between two finite numbers."""
    return Interval(quick(low), quick(high))


def add(a: Interval, b: Interval) -> Interval:
    """Give all sums."""
    low = None if a.low is None or b.low is None else a.low + b.low
    high = None if a.high is None or b.high is None else a.high + b.high
    return Interval(low, high)


def negate(a: Interval) -> Interval:
    """Give all opposites."""
    return Interval(None if a.high is None else -a.high, None if a.low is None else -a.low)


def multiply(a: Interval, b: Interval) -> Interval:
    """Give all products. An unbounded factor keeps its sides only where the other one has a sign."""
    if a.bounded and b.bounded:
        (low, high), (from_, to) = a.ends(), b.ends()
        if low.numerator >= 0 and from_.numerator >= 0:  # the usual case, and by far the quickest
            return Interval(low * from_, high * to)
        corners = [x * y for x in (low, high) for y in (from_, to)]
        return Interval(min(corners), max(corners))
    if point(0) in (a, b):
        return point(0)
    positive_a, positive_b = _sign(a), _sign(b)
    if positive_a is None or positive_b is None:
        return EVERYTHING
    # Both keep one sign: the product keeps one too, and is unbounded only away from zero.
    smallest = _nearest(a) * _nearest(b)
    return Interval(smallest, None) if positive_a == positive_b else Interval(None, -smallest)


def _sign(a: Interval) -> bool | None:
    if a.low is not None and a.low >= 0:
        return True
    return False if a.high is not None and a.high <= 0 else None


def _nearest(a: Interval) -> Fraction:
    if a.low is not None and a.low >= 0:
        return a.low
    assert a.high is not None
    return -a.high


def divide(a: Interval, b: Interval) -> Interval:
    """Give all quotients; nothing is known if the divisor can be zero."""
    sign = _sign(b)
    if sign is None or _nearest(b) == 0:
        return EVERYTHING
    inverse = (
        Interval(quick(0) if b.high is None else 1 / b.high, 1 / _nearest(b))
        if sign
        else Interval(-1 / _nearest(b), quick(0) if b.low is None else 1 / b.low)
    )
    return multiply(a, inverse)


def hull(a: Interval, b: Interval) -> Interval:
    """Give the smallest interval that holds both."""
    low = None if a.low is None or b.low is None else min(a.low, b.low)
    high = None if a.high is None or b.high is None else max(a.high, b.high)
    return Interval(low, high)


def meet(a: Interval, b: Interval) -> Interval | None:
    """Give what both hold, or None if that is nothing."""
    lows = [x for x in (a.low, b.low) if x is not None]
    highs = [x for x in (a.high, b.high) if x is not None]
    low, high = max(lows, default=None), min(highs, default=None)
    return None if low is not None and high is not None and low > high else Interval(low, high)


def absolute(a: Interval) -> Interval:
    """Give all magnitudes."""
    sign = _sign(a)
    if sign is True:
        return a
    if sign is False:
        return negate(a)
    high = None if a.low is None or a.high is None else max(-a.low, a.high)
    return Interval(quick(0), high)


def smaller(a: Interval, b: Interval) -> Interval:
    """Give all minima of one number from each."""
    highs = [x for x in (a.high, b.high) if x is not None]
    low = None if a.low is None or b.low is None else min(a.low, b.low)
    return Interval(low, min(highs, default=None))


def larger(a: Interval, b: Interval) -> Interval:
    """Give all maxima of one number from each."""
    return negate(smaller(negate(a), negate(b)))


def whole_power(a: Interval, exponent: int) -> Interval:
    """Give all powers with a natural exponent."""
    if exponent == 0:
        return point(1)
    if exponent % 2 == 0:
        a = absolute(a)
    low = None if a.low is None else a.low**exponent
    high = None if a.high is None else a.high**exponent
    return Interval(low, high)


def increasing(a: Interval, function: Callable[[float], float]) -> Interval:
    """Give the image under an increasing float function that is accurate to a few units in the last place."""
    return Interval(_outward(function, a.low, -1), _outward(function, a.high, +1))


def _outward(function: Callable[[float], float], end: End, direction: int) -> End:
    if end is None:
        return None
    try:
        value = function(_as_float(end, direction))
    except (OverflowError, ValueError):
        return None
    if not math.isfinite(value):
        return None
    # Four steps outward cover the error of the library function and of the conversion.
    for _ in range(4):
        value = math.nextafter(value, math.inf * direction)
    return quick(value) if math.isfinite(value) else None


def _as_float(value: Fraction, direction: int) -> float:
    rounded = float(value)
    exact = quick(rounded)
    if (direction > 0 and exact < value) or (direction < 0 and exact > value):
        return math.nextafter(rounded, math.inf * direction)
    return rounded


def exponential(a: Interval) -> Interval:
    """Give all exponentials; never below zero."""
    image = increasing(a, math.exp)
    low = quick(0) if image.low is None else max(quick(0), image.low)
    return Interval(low, image.high)


def logarithm(a: Interval) -> Interval:
    """Give all logarithms of positive numbers."""
    if a.low is None or a.low <= 0:
        high = None if a.high is None or a.high <= 0 else _outward(math.log, a.high, +1)
        return Interval(None, high)
    return increasing(a, math.log)


def square_root(a: Interval) -> Interval:
    """Give all square roots of numbers that have one."""
    low = quick(0) if a.low is None or a.low <= 0 else _outward(math.sqrt, a.low, -1)
    high = None if a.high is None else _outward(math.sqrt, max(a.high, quick(0)), +1)
    return Interval(max(low or quick(0), quick(0)), high)


_MOST_BITS = 4096
_KEPT_BITS = 256


def shortened(a: Interval) -> Interval:
    """Round ends of very many digits outward; one that is too large to be written is given up.

    >>> shortened(interval(0, 3)).high
    Fraction(3, 1)
    """
    if not (_long(a.low) or _long(a.high)):
        return a
    high = None if a.high is None else _cut_down(-a.high)
    return Interval(None if a.low is None else _cut_down(a.low), None if high is None else -high)


def _long(end: End) -> bool:
    return end is not None and (
        end.numerator.bit_length() > _MOST_BITS or end.denominator.bit_length() > _MOST_BITS
    )


def _cut_down(end: Fraction) -> End:
    """Round down to some 256 binary digits; None below −2^4096."""
    if not _long(end):
        return end
    size = end.numerator.bit_length() - end.denominator.bit_length()
    if size > _MOST_BITS:
        return None if end < 0 else quick(1 << _MOST_BITS)
    if size < -_MOST_BITS:
        return ratio(-1, 1 << _MOST_BITS) if end < 0 else quick(0)
    shift = _KEPT_BITS - size
    unit = ratio(1, 1 << shift) if shift >= 0 else quick(1 << -shift)
    return (end // unit) * unit
