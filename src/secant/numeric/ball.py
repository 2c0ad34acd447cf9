"""Ball arithmetic: enclosures of real numbers whose error is carried, never guessed.

In: exact rationals. Out: flint balls, and exact rational or integer ends that are certain.
A float is never compared here and a result is never rounded inward. flint's working precision is
one number for the whole process; another thread may change it under us, which widens or narrows
balls but never makes them wrong, so every loop here tries, looks whether it is decided, and tries
finer.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from flint import arb, ctx, fmpq, fmpz

from secant.errors import InternalError
from secant.numeric.quick import quick, ratio

Ball = Any  # flint carries no type information

_TINY = 1 << 16
_FINEST = 1 << 22  # bits; a question that this precision leaves open has no answer (BUG-001)


def working_precision(bits: int) -> Any:
    """Give the context in which balls are computed with `bits` bits."""
    return ctx.workprec(bits)


def ball(value: Fraction | int) -> Ball:
    """Enclose a rational at the working precision."""
    if isinstance(value, int):
        return arb(fmpz(value))
    return arb(fmpq(value.numerator, value.denominator))


def interval(low: Fraction | int, high: Fraction | int) -> Ball:
    """Enclose every real from `low` to `high`."""
    return ball(low).union(ball(high))


def dyadic_interval(numerator: int, bits: int) -> Ball:
    """Enclose [numerator, numerator + 1] / 2^bits, without loss of relative accuracy at 0 or 1."""
    half = arb(fmpz(2 * numerator + 1))
    return arb(half, arb(1)) / arb(fmpz(1) << (bits + 1))


def _exact(point: Ball, *, up: bool) -> Fraction:
    """Give a ball without radius as a rational; what is too close to 0 to write down is rounded."""
    mantissa, exponent = point.man_exp()
    mantissa, exponent = int(mantissa), int(exponent)
    if exponent >= 0:
        return quick(mantissa << exponent)
    if mantissa and mantissa.bit_length() + exponent < -_TINY:
        return ratio(1 if up else 0, 1 << _TINY) - ratio(mantissa < 0, 1 << _TINY)
    return ratio(mantissa, 1 << -exponent)


def lower(value: Ball) -> Fraction:
    """Give the lower end of a finite ball, rounded down only where it is within 2^-65536 of 0."""
    return _exact(value.mid(), up=False) - _exact(value.rad(), up=True)


def upper(value: Ball) -> Fraction:
    """Give the upper end of a finite ball, rounded up only where it is within 2^-65536 of 0."""
    return _exact(value.mid(), up=True) + _exact(value.rad(), up=True)


def decide(attempt: Callable[[int], Any], bits: int = 64) -> Any:
    """Run `attempt(bits)` with doubling precision until it gives something other than None."""
    while bits <= _FINEST:
        with working_precision(bits):
            decision = attempt(bits)
        if decision is not None:
            return decision
        bits *= 2
    raise InternalError("BUG-001", "a real number could not be told from a rational one")


def ceiling(value: Callable[[], Ball], *, bits: int = 64) -> int:
    """Give the least integer that is certainly at least `value()`, tight to one part in 2^20.

    A value that *is* an integer cannot be told apart from its neighbors, so once the enclosure is
    narrower than 2^-20 the ceiling of its upper end is taken: never too small, at most one too
    large.
    """

    def attempt(_: int) -> int | None:
        enclosure = value()
        if not enclosure.is_finite():
            return None
        top, bottom = upper(enclosure), lower(enclosure)
        decided = _ceiling(top) == _ceiling(bottom) or top - bottom < ratio(1, 1 << 20)
        return _ceiling(top) if decided else None

    return int(decide(attempt, bits))


def _ceiling(value: Fraction) -> int:
    return -((-value.numerator) // value.denominator)
