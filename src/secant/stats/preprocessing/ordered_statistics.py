"""The ordered statistics by name, and the way to each bounded value that is shortest.

In: sorted values, a public center and Δ. Out: a Finding. Closed forms where they exist; for the others first
what O(n) can prove (preprocess.range, preprocess.sandwich), then the way along a staircase of windows
(preprocess.staircase).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from secant.errors import UsageError
from secant.records import frozen
from secant.stats.inputs import Values
from secant.stats.preprocessing.closed_forms import bounded_maximum, bounded_median, bounded_minimum
from secant.stats.preprocessing.individual import whole_numbers
from secant.stats.preprocessing.ordered import EXTENDED, Ranks, Windows, means, sandwich
from secant.stats.preprocessing.staircase import bounded_between
from secant.stats.preprocessing.units import LARGEST, LARGEST_SHORT, ONE, Units, exact_parts
from secant.stats.promises import Finding

_MARGIN = 2.0**-20
_HALF = Fraction(1, 2)

CERTAIN = {
    "mean": "all values and `empty` lie within a stretch of n·Δ (Theorem 1.7)",
    "trimmed mean": (
        "following f by steps of Δ meets f at the end, whether values come from the smallest to the largest or the "
        "other way round (preprocess.sandwich)"
    ),
    "median": (
        "A⁽ᵏ⁾ ≤ 2(k+1)·Δ for all k ≤ n/4, and the median lies within n·Δ/2 of `empty` (Theorem 1.6)"
    ),
    "minimum": (
        "it lies within n·Δ of `empty`, and min(x₍ⱼ₎, empty + (n-j)·Δ) within j·Δ of it for all j "
        "(preprocess.extreme)"
    ),
}


@frozen
class Statistic:
    """An ordered statistic: a trimmed mean or a quantile."""

    name: str
    trim: Fraction | None = None
    share: Fraction | None = None

    @property
    def certain_when(self) -> str:
        """Say on which databases g = f is certain."""
        if self.trim is not None:
            return CERTAIN["trimmed mean" if self.trim else "mean"]
        return CERTAIN[
            {Fraction(0): "minimum", _HALF: "median", Fraction(1): "minimum"}.get(
                self.share or Fraction(0), "trimmed mean"
            )
        ]

    def exactly(self, numbers: list[int], unit: Fraction) -> Fraction:
        """Give the statistic of sorted whole multiples of a unit without rounding."""
        if self.trim is not None:
            cut = int(self.trim * len(numbers))
            middle = numbers[cut : len(numbers) - cut]
            return unit * Fraction(sum(middle), len(middle))
        assert self.share is not None
        position = (len(numbers) - 1) * self.share
        index = int(position)
        above = numbers[min(index + 1, len(numbers) - 1)]
        return unit * (numbers[index] + (position - index) * (above - numbers[index]))

    def of(self, values: Values) -> float:
        """Give the statistic of sorted values as a float."""
        count = values.size
        if self.trim is not None:
            cut = self.trim.numerator * count // self.trim.denominator
            middle = values[cut : count - cut]
            few = middle.size <= LARGEST_SHORT
            total = (
                math.fsum(middle.tolist()) if few else float(np.sum(middle, dtype=np.longdouble))
            )
            return total / middle.size
        assert self.share is not None
        index = int((count - 1) * self.share)
        unit, near = whole_numbers(values[index : index + 2])
        part = (count - 1) * self.share - index
        return float(unit * (near[0] + part * (near[-1] - near[0])))


def mean_statistic(trim: Fraction = Fraction(0), name: str = "mean") -> Statistic:
    """Give the mean, or the mean without a share of the values at each end."""
    if not 0 <= trim < _HALF:
        raise UsageError("USE-001", "trim must be at least 0 and less than 0.5")
    return Statistic(name, trim=trim)


def quantile_statistic(share: Fraction, name: str | None = None) -> Statistic:
    """Give a quantile, interpolated between neighbors as usual; 0 is the minimum and 1 the maximum."""
    if not 0 <= share <= 1:
        raise UsageError("USE-001", "q must lie between 0 and 1")
    return Statistic(name or f"quantile {float(share):g}", share=share)


def ordered_finding(statistic: Statistic, values: Values, units: Units) -> Finding:
    """Give g of sorted values by the shortest way that is proved for the statistic."""
    if not values.size:
        return Finding(
            units.empty, float(units.empty), 0.0, True, "there are no values", "preprocess.subsets"
        )
    if values.size > LARGEST:
        raise UsageError("USE-001", f"more than {LARGEST} values cannot be bounded at once")
    scaled, target = units.of(values), statistic.of(values)
    frame = (units, target, int(values.size))
    closed = _closed(statistic, scaled)
    if closed is not None:
        steps, proof = closed
        at_goal = steps == Ranks(scaled, statistic.share or Fraction(0)).reader()(0, 0)
        reason = "g was found in closed form"
        return _finding(frame, steps, (math.inf, reason), at_goal, proof)
    bound = (math.inf, "")
    if statistic.trim == 0:
        if _in_range(scaled):
            total = math.fsum(exact_parts(scaled))
            mean = round(total * (ONE / scaled.size))
            certain = (0.0, "by the range condition of Theorem 1.7")
            return _finding(frame, mean, certain, True, "preprocess.range")
        bound = (mean_error_bound(values, target, units), "Theorem 1.7")
    if statistic.trim is not None:
        if not EXTENDED and values.size > LARGEST_SHORT:
            raise UsageError("USE-001", "on this machine floats are too short for so many values")
        return closed_in(means(scaled, statistic.trim), units, target, bound)
    assert statistic.share is not None
    return closed_in(Ranks(scaled, statistic.share), units, target, bound)


def closed_in(windows: Windows, units: Units, target: float, bound: tuple[float, str]) -> Finding:
    """Give g from the two numbers around it, or by closing in where they do not meet."""
    goal, frame = windows.reader()(0, 0), (units, target, windows.count)
    lower, upper = sandwich(windows)
    around = float(units.delta) * max(abs(lower - goal), abs(upper - goal)) / ONE
    bound = min(bound, (around, "between the two one-sided recursions, preprocess.sandwich"))
    if lower == upper:
        return _finding(frame, lower, bound, lower == goal, "preprocess.sandwich")
    steps = bounded_between(windows.reader(), windows.count, lower, upper)
    return _finding(frame, steps, bound, steps == goal, "preprocess.staircase")


def mean_error_bound(values: Values, target: float, units: Units) -> float:
    """Give the bound of Theorem 1.7 on |g - f| for the mean."""
    count, delta = values.size, float(units.delta)
    far = max(abs(target - float(units.empty)) - count * delta / 3, 0.0)
    outliers = np.maximum(np.abs(values - target) * (27 / count) - delta, 0.0)
    return far + float(outliers.sum())


def _closed(statistic: Statistic, scaled: Values) -> tuple[int, str] | None:
    forms: dict[Fraction, tuple[Callable[[Values], int], str]] = {
        Fraction(0): (bounded_minimum, "preprocess.extreme"),
        _HALF: (bounded_median, "preprocess.median"),
        Fraction(1): (bounded_maximum, "preprocess.extreme"),
    }
    if statistic.share not in forms:
        return None
    form, proof = forms[statistic.share]
    return form(scaled), proof


def _in_range(scaled: Values) -> bool:
    """Say whether values and center fit into n·Δ, with room for the rounding of means (preprocess.range)."""
    stretch = max(float(scaled[-1]), 0.0) - min(float(scaled[0]), 0.0)
    return stretch <= scaled.size * (1 - _MARGIN)


def _finding(
    frame: tuple[Units, float, int],
    steps: int,
    bound: tuple[float, str],
    at_goal: bool,
    proof: str,
) -> Finding:
    """Put together what is known; `frame` is the units, f as a float, and the number of values."""
    units, target, count = frame
    value = units.back(steps)
    gap, rounding = abs(float(value) - target), units.rounding(target, count)
    exact = at_goal and gap <= rounding  # a value out of reach parts f from what is on the grid
    limit, reason = bound
    if exact:
        limit, reason = 0.0, reason if limit == 0 else "g was computed and equals f"
    elif math.isinf(limit):
        limit = gap
    return Finding(value, target, max(limit, gap) + rounding, exact, reason, proof)
