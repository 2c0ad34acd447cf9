"""How far two results are apart: numbers in a named norm, functions on public points, or as told.

In: what a function gave. Out: a checked array of floats with its shape, and distances. Results that
are no finite numbers, or whose shapes differ, are refused by a reason without any value. blackbox.norms:
a distance in one norm bounds the distance in another.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from secant.errors import UsageError
from secant.numeric.ball import ball, upper, working_precision
from secant.records import frozen
from secant.sensitivity.bounds import Norm

Distance = Callable[[Any, Any], float]
Point = tuple[float, ...]
_TINY = Fraction(1, 1 << 900)
NORMS: tuple[Norm, ...] = ("l1", "l2", "linf")


class Misbehaved(Exception):  # noqa: N818 - a finding about the caller's function
    """The caller's function or sampler did something that cannot be sampled; the reason says what."""


@frozen
class Ruler:
    """How results are read and how far two of them are apart."""

    norm: Norm | Distance
    points: tuple[Point, ...] | None = None
    """For results that are functions: the public points at which they are compared."""

    @property
    def name(self) -> str:
        """Give the norm's name, as it is printed and stored."""
        if isinstance(self.norm, str):
            return self.norm
        return str(getattr(self.norm, "__name__", type(self.norm).__name__))

    def read(self, result: Any) -> Any:
        """Give a result as an array of finite floats; as it is, if the caller brought a distance."""
        if self.points is not None:
            if not callable(result):
                raise Misbehaved("gave something that is not a function of a point")
            result = [result(point) for point in self.points]
        elif not isinstance(self.norm, str):
            return result
        try:
            raw = np.asarray(result)
            # numpy would read text as a number and nothing as NaN
            numbers = np.array(raw, dtype=np.float64) if raw.dtype.kind in "biufO" else None
        except (TypeError, ValueError, OverflowError):
            numbers = None
        if numbers is None or result is None:
            raise Misbehaved("gave something other than numbers")
        if not numbers.size:
            raise Misbehaved("gave no numbers")
        if not np.isfinite(numbers).all():
            raise Misbehaved("gave NaN or infinity")
        return numbers

    def shape(self, read: Any) -> tuple[int, ...] | None:
        """Give the shape that all results must share; None where the caller brought a distance."""
        return read.shape if isinstance(read, np.ndarray) else None

    def apart(self, one: Any, two: Any) -> float:
        """Give the distance of two results; finite, at least 0."""
        if self.shape(one) != self.shape(two):
            raise Misbehaved("gave results of different shapes")
        if isinstance(self.norm, str):
            with np.errstate(over="ignore"):
                distance = _norm(self.norm, np.abs(one - two))
        else:
            distance = _checked_distance(self.norm, one, two)
        if not math.isfinite(distance):
            raise Misbehaved("moves farther than a float can hold")
        return distance


def _norm(norm: Norm, gaps: Any) -> float:
    most = float(gaps.max())
    if norm == "linf" or most == 0 or not math.isfinite(most):
        return most
    if norm == "l1":
        return float(gaps.sum())
    # divided by the largest, so that no square vanishes or overflows
    return most * math.sqrt(float(np.square(gaps / most).sum()))


def _checked_distance(distance: Distance, one: Any, two: Any) -> float:
    try:
        measured = float(distance(one, two))
    except (TypeError, ValueError):
        raise Misbehaved("has results for which the norm gives no number") from None
    if math.isnan(measured) or measured < 0:
        raise Misbehaved("has results for which the norm gives a negative number or NaN")
    return measured


def ruler_of(norm: object, points: Sequence[Any] | None = None) -> Ruler:
    """Give the ruler for a norm that a caller named or brought."""
    if not (isinstance(norm, str) and norm in NORMS) and not callable(norm):
        raise UsageError("USE-001", "a norm is l1, l2, linf or a function of two results")
    if points is None:
        return Ruler(norm)
    return Ruler(norm, tuple(_point(point) for point in points) or _no_points())


def _point(point: Any) -> Point:
    try:
        read = np.atleast_1d(np.asarray(point, dtype=np.float64))
    except (TypeError, ValueError):
        raise UsageError("USE-001", "a point is a sequence of numbers") from None
    if read.ndim != 1 or not np.isfinite(read).all():
        raise UsageError("USE-001", "a point is a sequence of finite numbers")
    return tuple(float(x) for x in read)


def _no_points() -> tuple[Point, ...]:
    raise UsageError("USE-001", "functions are compared at one public point at least")


def converted(value: Fraction, measured: Norm, needed: Norm, size: int) -> Fraction:
    """Give the bound in the norm that a mechanism needs, rounded up (blackbox.norms)."""
    order = {"l1": 0, "l2": 1, "linf": 2}
    if order[measured] <= order[needed] or size == 1:
        return value
    if (measured, needed) == ("linf", "l1"):
        return value * size
    with working_precision(128):
        return value * upper(ball(size).sqrt())


def rounded_up(distance: float, size: int) -> Fraction:
    """Give a number that the real distance does not exceed, if its float is `distance` (blackbox.float)."""
    slack = max(Fraction(1, 1 << 30), Fraction(size, 1 << 50))
    # close to the smallest floats a product loses its digits
    return max(Fraction(distance), _TINY if distance else Fraction(0)) * (1 + slack)
