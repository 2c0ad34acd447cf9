"""β-smooth bounds of statistics, over all distances.

statistic.smooth_quantile, statistic.smooth_trimmed_mean, statistic.smooth_mean, statistic.smooth_variance. In: sorted
values in steps of a public scale, β, the neighbor relation. Out: a float that is private: it may become the scale of
noise and nothing else. Each is at least its exact form and at most 1 + EXCESS times it; the noise is told so
(noise.floats).
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from secant.noise.mechanisms.smooth import Rounding
from secant.stats.preprocessing.pair_search import EXCESS, Floats, Indices, largest
from secant.stats.results import ADD_REMOVE, Neighbors
from secant.stats.scale import Steps

ROUNDING = Rounding(bound=Fraction(EXCESS))
"""What the noise must know of how these bounds are computed."""
_ABOVE = 1 + EXCESS / 2  # covers the floats of the closed forms many times over


def quantile_rank(size: int, q: Fraction) -> int:
    """Give which of the sorted values, counted from 1, is the q-quantile: ⌈q · size⌉, at least 1."""
    return max(1, -((-q.numerator * size) // q.denominator))


def quantile_at(ordered: Steps, q: Fraction, empty: int) -> int:
    """Give the q-quantile of sorted values; `empty` stands for the one of no values."""
    return int(ordered[quantile_rank(len(ordered), q) - 1]) if len(ordered) else empty


def smooth_quantile(
    ordered: Steps, q: Fraction, top: int, *, beta: Fraction, neighbors: Neighbors
) -> float:
    """Bound the q-quantile: max over y < z of (z - y) · exp(-β · cost) (statistic.smooth_quantile)."""
    points = _with_ends(ordered, top)
    rate, share, size = float(beta), float(q), len(ordered)
    if neighbors == ADD_REMOVE:
        slope = max(share, 1 - share)

        def far(j0: Indices, j1: Indices, l0: Indices, l1: Indices) -> Floats:
            # (1-q) · below - q · above grows with both indices: its least size is at an end, or 0
            least = (1 - share) * j0 + share * (l0 - 1 - size)
            most = (1 - share) * j1 + share * (l1 - 1 - size)
            distance: Floats = np.maximum(0.0, np.maximum(least - 1, -most - 1) / slope)
            return distance
    else:
        rank = quantile_rank(size, q)

        def far(j0: Indices, j1: Indices, l0: Indices, l1: Indices) -> Floats:
            short = np.maximum(j0 - rank, rank - l1)
            distance: Floats = np.maximum(0, short).astype(np.float64)
            return distance

    def weigh(j0: Indices, j1: Indices, l0: Indices, l1: Indices) -> Floats:
        inside = np.maximum(0, l0 - j1 - 1)
        weights: Floats = -rate * (inside + far(j0, j1, l0, l1))
        return weights

    return largest(points, weigh)


def _with_ends(ordered: Steps, top: int) -> Floats:
    return np.concatenate([[0.0], ordered.astype(np.float64), [float(top)]])


def trimmed_mean_of(ordered: Steps, trim: Fraction, empty: int) -> Fraction:
    """Give the mean of the values between the quantiles `trim` and 1 - trim, ends counted in part.

    The integral of the quantile function over that interval, by its length, exactly.
    """
    size = len(ordered)
    if not size:
        return Fraction(empty)
    cut = trim * size
    first = cut.numerator // cut.denominator
    remaining = cut - first
    # the value at index `first` from either end counts with weight 1 - rest, unless they are the same
    if 2 * first >= size - 1:
        return Fraction(int(ordered[first]) + int(ordered[size - 1 - first]), 2)
    inner = Fraction(int(ordered[first : size - first].sum()))
    inner -= remaining * (int(ordered[first]) + int(ordered[size - 1 - first]))
    return inner / (size - 2 * cut)


def smooth_trimmed_mean(
    ordered: Steps, trim: Fraction, top: int, *, beta: Fraction, neighbors: Neighbors
) -> float:
    """Bound the trimmed mean by the width between shifted quantiles over the size (statistic.smooth_trimmed_mean)."""
    size, rate, share = len(ordered), float(beta), float(trim)
    points = _with_ends(ordered, top)
    cut = share * size
    slope = max(1 - share, 2 * share) if neighbors == ADD_REMOVE else 1.0
    shrinks = neighbors == ADD_REMOVE

    def weigh(j0: Indices, j1: Indices, l0: Indices, l1: Indices) -> Floats:
        low = np.maximum(0.0, cut - j1 - 1)
        high = np.maximum(0.0, cut - (size + 1 - l0) - 1)
        cost = (low + high) / slope
        weights: Floats = -rate * cost
        if not shrinks:
            return weights
        # The factor 1/(size - cost) grows with the cost, so a block's largest needs both of its ends.
        most = (np.maximum(0.0, cut - j0 - 1) + np.maximum(0.0, cut - (size + 1 - l1) - 1)) / slope
        weights -= np.log(np.maximum(1.0, size - most))
        return weights

    bound = largest(points, weigh) / (1 - 2 * share)
    if shrinks:
        return max(bound, top / (1 - 2 * share) * math.exp(-rate * max(size - 1, 0))) * _ABOVE
    return bound / max(size, 1) * _ABOVE


def smooth_mean(ordered: Steps, top: int, *, beta: Fraction) -> float:
    """Bound the mean under add/remove; under replace its bound is global (statistic.smooth_mean)."""
    return _by_size(ordered, top, beta, ADD_REMOVE, power=1)


def smooth_variance(ordered: Steps, top: int, *, beta: Fraction, neighbors: Neighbors) -> float:
    """Bound the population variance (statistic.smooth_variance)."""
    return _by_size(ordered, top, beta, neighbors, power=2)


def _by_size(
    ordered: Steps, top: int, beta: Fraction, neighbors: Neighbors, *, power: int
) -> float:
    """Give max over k of exp(-βk) · min(R, d + (k+1)R/N)^power / N, N = max(1, n - k) or n.

    d is how far the mean lies from the farther end of the range.
    """
    size, rate = len(ordered), float(beta)
    if not size:
        return float(top) ** power
    mean = int(ordered.sum()) / size
    magnitude = max(mean, top - mean)
    # beyond `last` the width is the whole range, and of what follows only the very last can be larger
    last = size - 1
    far = min(last, math.ceil(min(size, size * (top - magnitude) / top + 2)))
    steps = np.append(np.arange(far + 1), last).astype(np.float64)
    left = np.maximum(1.0, size - steps) if neighbors == ADD_REMOVE else np.full(len(steps), size)
    with np.errstate(under="ignore"):
        width = np.minimum(top, magnitude + (steps + 1) * top / left)
        bounds = np.exp(-rate * steps) * width**power / left
    return float(bounds.max()) * _ABOVE


def variance_of(values: Steps) -> Fraction:
    """Give the population variance exactly; 0 for no values."""
    size = len(values)
    if not size:
        return Fraction(0)
    high, low = values >> 15, values & 0x7FFF  # squares of whole indices do not fit into 64 bits
    squares = (
        (int((high * high).sum()) << 30) + (int((high * low).sum()) << 16) + int((low * low).sum())
    )
    total = int(values.sum())
    return Fraction(squares, size) - Fraction(total, size) ** 2
