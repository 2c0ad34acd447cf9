"""preprocess.ordered, preprocess.sandwich: ordered functions of windows of sorted values, in whole steps.

In: sorted values in units of Δ (see units.py). Out: the function of any window, and two numbers around g in O(n);
staircase.py closes in on g itself. A function is ordered when a larger value in place of a smaller one never makes it
smaller; every rule here keeps that through its rounding, because each rounding keeps the order of what it rounds.
Nothing here knows Δ, the center, or where the values came from.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any, Protocol

import numpy as np

from secant.records import frozen
from secant.stats.inputs import Values
from secant.stats.preprocessing.staircase import Window
from secant.stats.preprocessing.units import LARGEST_SHORT, ONE, Whole, split

_ONE = int(ONE)


class Windows(Protocol):
    """An ordered function on all runs of neighboring sorted values."""

    @property
    def count(self) -> int:
        """Give the number of values."""
        ...

    def reader(self) -> Window:
        """Give the function of single windows."""
        ...

    def chain(self, *, smallest: bool) -> list[int]:
        """Give the function of the 1, 2, … smallest (or largest) values, the same numbers as `reader`."""
        ...


EXTENDED = np.finfo(np.longdouble).nmant >= 63
"""Whether this machine has floats whose sums over 2²⁷ values are exact."""


def digits(count: int) -> Any:
    """Give the floats that hold sums over so many values, and so many steps of one Δ, exactly."""
    return np.float64 if count <= LARGEST_SHORT else np.longdouble


@frozen
class Means:
    """The mean of what remains of a window when a share is trimmed from each end."""

    coarse: Values
    fine: Values
    trim: Fraction

    @property
    def count(self) -> int:
        """Give the number of values."""
        return self.coarse.size - 1

    def reader(self) -> Window:
        """Give trimmed means of single windows."""
        count, above, below = self.count, self.trim.numerator, self.trim.denominator
        short = self.coarse.dtype == np.float64
        coarse: Any = self.coarse.tolist() if short else self.coarse
        fine: Any = self.fine.tolist() if short else self.fine
        rounded: Callable[[Any], int] = round if short else _rounded

        def window(first: int, last: int) -> int:
            size = count - first - last
            cut = above * size // below
            left, right = first + cut, first + size - cut
            whole, part = coarse[right] - coarse[left], fine[right] - fine[left]
            if size <= LARGEST_SHORT:  # what a smaller database would compute
                whole, part = float(whole), float(part)
            # `whole + part` is the one rounding of an exact sum
            return rounded((whole + part) * (ONE / (size - 2 * cut)))

        return window

    def chain(self, *, smallest: bool) -> list[int]:
        """Give the trimmed means of the 1, 2, … smallest or largest values."""
        cuts = [self._cut(size) for size in range(1, self.count + 1)]
        starts = _starts(self.count, smallest=smallest)
        left = starts + np.array([cut[0] for cut in cuts], dtype=np.int64)
        right = starts + np.array([cut[1] for cut in cuts], dtype=np.int64)
        coarse, fine = self.coarse[right] - self.coarse[left], self.fine[right] - self.fine[left]
        factors = np.array([cut[2] for cut in cuts])
        few = LARGEST_SHORT
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


@frozen
class Ranks:
    """The value at a share of the way through a window, interpolated between its neighbors."""

    scaled: Values
    share: Fraction

    @property
    def count(self) -> int:
        """Give the number of values."""
        return self.scaled.size

    def reader(self) -> Window:
        """Give quantiles of single windows."""
        count, scaled = self.count, self.scaled.tolist()
        above, below = self.share.numerator, self.share.denominator

        def window(first: int, last: int) -> int:
            index, remainder = divmod((count - first - last - 1) * above, below)
            part = remainder / below
            value: float = scaled[first + index] * ((1 - part) * ONE)
            return round(value + scaled[first + index + 1] * (part * ONE) if remainder else value)

        return window

    def chain(self, *, smallest: bool) -> list[int]:
        """Give the quantiles of the 1, 2, … smallest or largest values."""
        places = [self._position(size) for size in range(1, self.count + 1)]
        part = np.array([index[1] for index in places])
        below = _starts(self.count, smallest=smallest)
        below = below + np.array([index[0] for index in places], dtype=np.int64)
        above = np.minimum(below + 1, self.count - 1)  # has no weight where it does not exist
        total = self.scaled[below] * ((1 - part) * ONE) + self.scaled[above] * (part * ONE)
        return _listed(np.rint(total))

    def _position(self, size: int) -> tuple[int, float]:
        index, remainder = divmod((size - 1) * self.share.numerator, self.share.denominator)
        return index, remainder / self.share.denominator


@frozen
class Called:
    """A function that a user registered, called on each window."""

    values: Values
    function: Callable[[Values], int]
    """Takes sorted values and gives whole steps."""

    @property
    def count(self) -> int:
        """Give the number of values."""
        return self.values.size

    def reader(self) -> Window:
        """Call the function on single windows."""
        count = self.count
        return lambda first, last: self.function(self.values[first : count - last].copy())

    def chain(self, *, smallest: bool) -> list[int]:
        """Call the function on the 1, 2, … smallest or largest values."""
        starts = _starts(self.count, smallest=smallest).tolist()
        return [
            self.function(self.values[start : start + size].copy())
            for size, start in enumerate(starts, 1)
        ]


def sandwich(windows: Windows) -> tuple[int, int]:
    """Give two numbers around g in O(n): only largest, only smallest values removed (preprocess.sandwich).

    Where they meet, g is known.
    """
    return _followed(windows.chain(smallest=True)), _followed(windows.chain(smallest=False))


def _followed(targets: list[int]) -> int:
    """Go toward each target in turn, by at most one Δ at a time."""
    reached = 0
    for target in targets:
        reached = max(min(target, reached + _ONE), reached - _ONE)
    return reached


def _rounded(number: Any) -> int:
    """Round a long float, which `round` would shorten first."""
    return int(np.rint(number))


def _listed(numbers: Values) -> list[int]:
    return [int(number) for number in numbers.tolist()]  # long floats hold more than a float does


def _starts(count: int, *, smallest: bool) -> Whole:
    """Give where the runs of 1, 2, … values begin that end at one edge."""
    return np.zeros(count, dtype=np.int64) if smallest else np.arange(count - 1, -1, -1)


def _running(parts: Values) -> Values:
    """Give sums of the first 0, 1, 2, … values; they are exact, so the order of adding is free."""
    kind = digits(parts.size)
    return np.concatenate((np.zeros(1, dtype=kind), np.cumsum(parts, dtype=kind)))
