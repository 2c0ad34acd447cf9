"""preprocess.smooth_median: a smooth bound of the median after preprocessing, where values lie closer together than Δ.

In: sorted values in units of Δ (see units.py), β, and by how many values neighbors differ. Out: a float that is
private: the scale of noise and nothing else. It is never above what preprocessing promises, needs no range of the
values, and is at least its exact form and at most 1 + EXCESS times it.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from secant.noise.mechanisms.smooth import OptimalNoise, SmoothNoise
from secant.records import frozen
from secant.sensitivity.bounds import SmoothBound
from secant.stats.inputs import Values
from secant.stats.preprocessing.closed_forms import bounded_median
from secant.stats.preprocessing.pair_search import EXCESS
from secant.stats.preprocessing.units import ONE, REACH, Units, Whole, in_steps
from secant.stats.results import REPLACE, Neighbors
from secant.stats.smooth_sensitivity import ROUNDING

_ONE = int(ONE)
ORDERS_BY_RANK = (Fraction(5, 2), Fraction(5), Fraction(10))
"""The ε/β that smooth noise of what a rank defines may be made with."""
_NOTHING = 60  # e⁻⁶⁰ of Δ is no noise to speak of: farther distances count in full


@frozen
class SmoothMedian:
    """The median, made to move by at most one unit a value, with calibrated noise for its smooth bound."""

    units: Units
    apart: int
    beta: Fraction
    noise: SmoothNoise

    def answer(self, ordered: Values) -> Fraction:
        """Give g of sorted values."""
        return self.units.back(bounded_median(self.units.of(ordered)))

    def bound(self, ordered: Values) -> float:
        """Give the smooth bound of g; private."""
        scaled = self.units.of(ordered)
        bound = smooth_bounded_median(scaled, beta=self.beta, apart=self.apart)
        return bound * float(self.units.delta) * (1 + EXCESS / 4)


def smooth_median(
    units: Units, epsilon: Fraction, order: Fraction, neighbors: Neighbors, grid: Fraction
) -> SmoothMedian:
    """Calibrate optimal noise for β = ε / order; Δ is what a value that comes or goes may move g by."""
    apart, beta = 2 if neighbors == REPLACE else 1, epsilon / order
    bound = SmoothBound(beta, "median", cap=apart * units.delta, jumps=True)
    noise = OptimalNoise().calibrate(bound, epsilon=epsilon, grid=grid, rounding=ROUNDING)
    return SmoothMedian(units, apart, beta, noise)


def smooth_bounded_median(scaled: Values, *, beta: Fraction, apart: int) -> float:
    """Bound how far neighbors move the preprocessed median, smoothly; in units of Δ.

    `apart` is 1 where neighbors add or remove a value, and 2 where they replace one.
    """
    rate = float(beta)
    far = min(int(scaled.size) + 1, math.ceil(_NOTHING / rate))
    reached = bounded_median(scaled)
    width = _above(scaled, reached, apart * far) + _above(-scaled[::-1], -reached, apart * far)
    steps = np.arange(far, dtype=np.float64)
    within = np.minimum(width[apart::apart] / ONE, apart)
    with np.errstate(under="ignore"):
        bounds = np.append(np.exp(-rate * steps) * within, math.exp(-rate * far) * apart)
    return float(bounds.max()) * (1 + EXCESS / 2)


def _above(scaled: Values, reached: int, most: int) -> Whole:
    """Give by how much 0, 1, …, `most` values that come or go can raise g at most, in whole steps."""
    count = int(scaled.size)
    padded = np.append(scaled, REACH)
    index = np.minimum(np.arange(count - 1, 2 * count + 1), 2 * count)
    low, high = np.maximum(index // 2, 0), np.minimum((index + 1) // 2, count)
    medians = in_steps(
        (padded[low] + padded[high]) * 0.5
    )  # without the 0, 1, …, count + 1 smallest
    if not count:
        medians = in_steps(np.array([REACH, REACH]))
    shifts = np.arange(medians.size, dtype=np.int64) * _ONE
    below = int(
        np.searchsorted(medians, 0)
    )  # medians never fall; from here on they reach the center
    raised = medians.copy()
    if below:
        ahead = np.append(medians[:below] - shifts[:below], _ONE - shifts[below])
        best = np.maximum.accumulate(ahead[::-1])[::-1]
        raised[:below] = shifts[:below] + best[:below]
    steps = np.arange(most + 1, dtype=np.int64)
    return np.minimum(raised[np.minimum(steps, medians.size - 1)] - reached, steps * _ONE)
