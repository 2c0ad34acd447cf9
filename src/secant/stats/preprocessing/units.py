"""preprocess.grid: data in units of Δ, on a public grid, so that a sensitivity of Δ is exact.

In: sorted values, the public center `empty` and the public Δ. Out: numbers t that stand for
empty + Δ·t, rounded to grids that depend on nothing private. Sums and steps of one Δ are then free
of rounding, and the rounding itself is a part of the function that is bounded, not of its error.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from secant.records import frozen
from secant.stats.inputs import Values

LARGEST_SHORT = 1 << 17
"""Sums of up to so many values are exact in floats of 53 digits."""
LARGEST = 1 << 27
"""More values than this do not fit the whole numbers of the closed forms."""
VALUE_BITS, REACH = 38, 2.0**35
"""Values are rounded to Δ/2³⁸; what is farther than 2³⁵·Δ from the center is moved to there."""
RESULT_BITS = 34
ONE = 2.0**RESULT_BITS
"""Results are rounded to Δ/2³⁴: they are whole numbers, and this many of them make one Δ."""

Whole = npt.NDArray[np.int64]


@frozen
class Units:
    """A public center and a public unit."""

    empty: Fraction
    delta: Fraction

    def of(self, values: Values) -> Values:
        """Give (value - empty)/Δ on the grid of values; the order of values is kept."""
        with np.errstate(over="ignore"):
            scaled = values - float(self.empty)
            scaled /= float(self.delta)
        np.clip(scaled, -REACH, REACH, out=scaled)
        scaled *= 2.0**VALUE_BITS
        np.rint(scaled, out=scaled)  # floats beyond 2⁵² are whole already
        scaled *= 2.0**-VALUE_BITS
        return scaled

    def back(self, steps: int) -> Fraction:
        """Give the number that so many steps of Δ/2³⁴ from the center stand for, unrounded."""
        return self.empty + self.delta * Fraction(steps, 1 << RESULT_BITS)

    def rounding(self, target: float, count: int) -> float:
        """Give how far grids and floats move a result near `target`, at most, with no value farther than n·Δ."""
        grids = float(self.delta) * (2.0 ** (1 - RESULT_BITS) + count * 2.0**-51)
        return grids + 2.0**-50 * (abs(target) + abs(float(self.empty)))


def in_steps(scaled: Values) -> Whole:
    """Give numbers in units of Δ as whole steps, capped where no result can reach."""
    cap = float(LARGEST) * ONE
    steps = np.rint(scaled * ONE)
    np.clip(steps, -cap, cap, out=steps)
    return steps.astype(np.int64)


def split(scaled: Values) -> tuple[Values, Values]:
    """Give two parts whose sums over 2¹⁷ values are exact: multiples of 1/2, and of 2⁻³⁸ up to 1/4."""
    coarse = np.rint(scaled * 2.0) * 0.5
    return coarse, scaled - coarse


def exact_parts(scaled: Values) -> Iterator[float]:
    """Give floats whose exact sum is the exact sum of the values, far fewer of them."""
    for start in range(0, scaled.size, LARGEST_SHORT):
        for part in split(scaled[start : start + LARGEST_SHORT]):
            yield float(part.sum())
