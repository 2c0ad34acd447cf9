"""A public range cut into steps: the only numbers that a statistic computes with.

In: bounds, a step, values as floats. Out: whole numbers from 0 to `top`, one for each value, and the
way back. Each value is moved by a rule of its own (clamp, then the nearest step), so that neighbors
stay neighbors whatever a float does, and everything after it is exact (statistic.snap). No value is looked at
to choose the steps.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import numpy.typing as npt

from secant.errors import UsageError
from secant.numeric.parameters import Number, positive
from secant.records import frozen
from secant.stats.inputs import Values, bounds_of, decimal_of

Steps = npt.NDArray[np.int64]

STEPS = 1 << 30
"""Without a step of the caller's, a range has so many."""
MOST_STEPS = 1 << 31
"""More would let sums of squares run out of 64 bits."""


@frozen
class Scale:
    """The points low, low + step, …, low + top · step."""

    low: Fraction
    step: Fraction
    top: int

    def snap(self, values: Values) -> Steps:
        """Give the index of the point next to each value, outside ones moved to the ends."""
        low, high = float(self.low), float(self.low + self.top * self.step)
        inside = np.clip(values, low, high)
        indices = np.rint((inside - low) / float(self.step))
        return np.clip(indices, 0, self.top).astype(np.int64)

    def value(self, index: Fraction | int) -> float:
        """Give the number that an index, or a place between two, stands for."""
        return float(self.low + Fraction(index) * self.step)

    def index(self, value: Fraction) -> int:
        """Give the index of the point next to a public number inside the range."""
        return min(max(round((value - self.low) / self.step), 0), self.top)

    @property
    def range(self) -> float:
        """The distance of the ends."""
        return float(self.top * self.step)


def scale_of(bounds: object, step: Number | None = None) -> Scale:
    """Give the scale of a public range; by default in 2^30 steps.

    >>> scale_of((0, 100), 1).top
    100
    """
    ends = bounds_of(bounds)
    if ends is None:
        raise UsageError(
            "USE-001",
            "a release needs bounds: the public range of the values",
            hint="Pass bounds=(lowest, highest), from what is known without looking at the data; or delta_f: "
            "how far one value may move the answer.",
        )
    low, high = ends
    if low == high:
        raise UsageError("USE-001", "bounds must differ: in an empty range there is nothing to say")
    if max(abs(low), abs(high)) > 10**150 or high - low < Fraction(1, 10**150):
        raise UsageError("USE-001", "bounds are out of range")
    width = high - low
    size = width / STEPS if step is None else positive(decimal_of(step, "step"), "step")
    top = int(width / size)
    if not 1 <= top <= MOST_STEPS:
        raise UsageError(
            "USE-001", "the step does not fit into the bounds between 1 and 2^31 times"
        )
    if float(size) <= 2.0**-44 * float(max(abs(low), abs(high))):
        raise UsageError("USE-001", "the step is too small for numbers as large as the bounds")
    return Scale(low, size, top)
