"""P-ORDERED, P-SANDWICH: ordered functions of sorted values, bounded in O(n²) time, O(n) memory.

In: sorted values in units of Δ (see units.py) and a rule that evaluates all windows of one size.
Out: g of the whole, in whole steps, exactly; and two numbers around it in O(n). A function is
ordered when a larger value in place of a smaller one never makes it smaller; every rule here keeps
that through its rounding, because each rounding keeps the order of what it rounds. Nothing here
knows Δ, the center, or where the values came from.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

import numpy as np

from secant.stats.inputs import Values
from secant.stats.units import LARGEST_QUADRATIC, ONE, Whole, split


class Windows(Protocol):
    """An ordered function on all runs of neighboring sorted values."""

    @property
    def count(self) -> int:
        """Give the number of values."""
        ...

    def fill(self, size: int, out: Values, spare: Values) -> None:
        """Write the function of every window of `size` values, in whole steps, into `out`."""
        ...

    def chain(self, *, smallest: bool) -> list[float]:
        """Give the function of the 1, 2, … smallest (or largest) values, the same numbers as `fill`."""
        ...


EXTENDED = np.finfo(np.longdouble).nmant >= 63
"""Whether this machine has floats whose sums over 2²⁷ values are exact."""


def digits(count: int) -> Any:
    """Give the floats that hold sums over so many values, and so many steps of one Δ, exactly."""
    return np.float64 if count <= LARGEST_QUADRATIC else np.longdouble


@dataclass(frozen=True, slots=True)
class Means:
    """The mean of what remains of a window when a share is trimmed from each end."""

    coarse: Values
    fine: Values
    trim: Fraction

    @property
    def count(self) -> int:
        """Give the number of values."""
        return self.coarse.size - 1

    def fill(self, size: int, out: Values, spare: Values) -> None:
        """Write the trimmed means of every window of `size` values."""
        left, right, factor = self._cut(size)
        if size <= LARGEST_QUADRATIC < self.count:  # what a smaller database would compute
            ends = slice(left, left + out.size), slice(right, right + out.size)
            sums = (self.coarse[ends[1]] - self.coarse[ends[0]]).astype(np.float64)
            sums += (self.fine[ends[1]] - self.fine[ends[0]]).astype(np.float64)
            np.rint(sums * factor, out)
            return
        np.subtract(self.coarse[right : right + out.size], self.coarse[left : left + out.size], out)
        np.subtract(self.fine[right : right + out.size], self.fine[left : left + out.size], spare)
        np.add(out, spare, out)  # the one rounding of an exact sum
        np.multiply(out, factor, out)
        np.rint(out, out)

    def chain(self, *, smallest: bool) -> list[float]:
        """Give the trimmed means of the 1, 2, … smallest or largest values."""
        cuts = [self._cut(size) for size in range(1, self.count + 1)]
        starts = _starts(self.count, smallest=smallest)
        left = starts + np.array([cut[0] for cut in cuts], dtype=np.int64)
        right = starts + np.array([cut[1] for cut in cuts], dtype=np.int64)
        coarse, fine = self.coarse[right] - self.coarse[left], self.fine[right] - self.fine[left]
        factors = np.array([cut[2] for cut in cuts])
        few = LARGEST_QUADRATIC
        near = coarse[:few].astype(np.float64) + fine[:few].astype(np.float64)
        steps = _listed(np.rint(near * factors[:few]))
        return steps + _listed(np.rint((coarse[few:] + fine[few:]) * factors[few:]))

    def _cut(self, size: int) -> tuple[int, int, float]:
        left = self.trim.numerator * size // self.trim.denominator
        right = size - left
        return left, right, ONE / (right - left)


def means(scaled: Values, trim: Fraction = Fraction(0)) -> Means:
    """Give the windows of the mean, or of the mean without a share `trim` < 1/2 at each end."""
    coarse, fine = split(scaled)
    return Means(_running(coarse), _running(fine), trim)


@dataclass(frozen=True, slots=True)
class Ranks:
    """The value at a share of the way through a window, interpolated between its neighbors."""

    scaled: Values
    share: Fraction

    @property
    def count(self) -> int:
        """Give the number of values."""
        return self.scaled.size

    def fill(self, size: int, out: Values, spare: Values) -> None:
        """Write the quantiles of every window of `size` values."""
        place, part = self._place(size)
        np.multiply(self.scaled[place : place + out.size], (1 - part) * ONE, out)
        if part:
            np.multiply(self.scaled[place + 1 : place + 1 + out.size], part * ONE, spare)
            np.add(out, spare, out)
        np.rint(out, out)

    def chain(self, *, smallest: bool) -> list[float]:
        """Give the quantiles of the 1, 2, … smallest or largest values."""
        places = [self._place(size) for size in range(1, self.count + 1)]
        part = np.array([place[1] for place in places])
        below = _starts(self.count, smallest=smallest)
        below = below + np.array([place[0] for place in places], dtype=np.int64)
        above = np.minimum(below + 1, self.count - 1)  # has no weight where it does not exist
        total = self.scaled[below] * ((1 - part) * ONE) + self.scaled[above] * (part * ONE)
        return _listed(np.rint(total))

    def _place(self, size: int) -> tuple[int, float]:
        place, rest = divmod((size - 1) * self.share.numerator, self.share.denominator)
        return place, rest / self.share.denominator


@dataclass(frozen=True, slots=True)
class Called:
    """A function that a user registered, called on each window."""

    values: Values
    function: Callable[[Values], float]
    """Takes sorted values and gives whole steps."""

    @property
    def count(self) -> int:
        """Give the number of values."""
        return self.values.size

    def fill(self, size: int, out: Values, spare: Values) -> None:
        """Call the function on every window of `size` values."""
        for start in range(out.size):
            out[start] = self.function(self.values[start : start + size].copy())

    def chain(self, *, smallest: bool) -> list[float]:
        """Call the function on the 1, 2, … smallest or largest values."""
        starts = _starts(self.count, smallest=smallest).tolist()
        return [
            self.function(self.values[start : start + size].copy())
            for size, start in enumerate(starts, 1)
        ]


def sweep(windows: Windows) -> float:
    """Give g of all values: Algorithm 2, one row of windows of equal size after another (P-ORDERED)."""
    count = windows.count
    bounded = np.zeros(count + 1, dtype=digits(count))
    row, spare = np.empty_like(bounded), np.empty_like(bounded)
    for size in range(1, count + 1):
        width = count - size + 1
        out, other = row[:width], spare[:width]
        windows.fill(size, out, other)
        np.add(bounded[:width], ONE, other)  # without the largest value, one step up
        np.minimum(out, other, out=out)
        np.subtract(bounded[1 : width + 1], ONE, other)  # without the smallest, one step down
        np.maximum(out, other, out=bounded[:width])
    return float(bounded[0])


def sandwich(windows: Windows) -> tuple[float, float]:
    """Give two numbers around g in O(n): only largest, only smallest values removed (P-SANDWICH).

    Where they meet, g is known and the sweep is not needed.
    """
    return _followed(windows.chain(smallest=True)), _followed(windows.chain(smallest=False))


def _followed(targets: list[float]) -> float:
    """Go toward each target in turn, by at most one Δ at a time."""
    reached = 0.0
    for target in targets:
        reached = max(min(target, reached + ONE), reached - ONE)
    return reached


def _listed(numbers: Values) -> list[float]:
    return [float(number) for number in numbers.tolist()]


def _starts(count: int, *, smallest: bool) -> Whole:
    """Give where the runs of 1, 2, … values begin that end at one edge."""
    return np.zeros(count, dtype=np.int64) if smallest else np.arange(count - 1, -1, -1)


def _running(parts: Values) -> Values:
    """Give sums of the first 0, 1, 2, … values; they are exact, so the order of adding is free."""
    kind = digits(parts.size)
    return np.concatenate((np.zeros(1, dtype=kind), np.cumsum(parts, dtype=kind)))
