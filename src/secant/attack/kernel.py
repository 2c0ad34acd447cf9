"""Masses of a prior under a kernel that falls by `rate` per unit of distance, in logarithms.

In: the pieces of a density and a rate k. Out, for places q: ln ∫ f(x) exp(−k·|x − q|) dx over all x
to the left, or to the right, of q, and over stretches. Logarithms are used because a normal prior is
1e-1000 and less where an answer may still point. Nothing is rounded outward here; the search that uses
these numbers adds the margin.
"""

from __future__ import annotations

import math

from secant.attack.priors import Pieces
from secant.numeric.arrays import Floats, Places, np
from secant.records import frozen


@frozen
class Kernel:
    """A density with its one-sided masses at the edges of its pieces."""

    pieces: Pieces
    rate: float
    left: Floats
    right: Floats

    @property
    def magnitude(self) -> float:
        """The largest logarithm that occurs: rounding errors of results grow with it."""
        values = np.concatenate([self.left[1:], self.right[:-1], self.pieces.heights])
        return float(np.max(np.abs(values[np.isfinite(values)])))


def kernel_of(pieces: Pieces, rate: float) -> Kernel:
    """Sum up the pieces from both ends."""
    widths = np.diff(pieces.edges)
    heights, slopes = pieces.heights, pieces.slopes
    # Seen from its right end, a piece falls off to the left with slope + rate; and so mirrored.
    to_right_end = heights + slopes * widths + _log_integral(slopes + rate, widths)
    to_left_end = heights + _log_integral(rate - slopes, widths)
    left, right = [-math.inf], [-math.inf]
    for width, mass in zip(widths.tolist(), to_right_end.tolist(), strict=True):
        left.append(_log_add(left[-1] - rate * width, mass))
    for width, mass in zip(widths[::-1].tolist(), to_left_end[::-1].tolist(), strict=True):
        right.append(_log_add(right[-1] - rate * width, mass))
    return Kernel(pieces, rate, np.array(left), np.array(right[::-1]))


def _log_add(a: float, b: float) -> float:
    low, high = (a, b) if a < b else (b, a)
    return high if low == -math.inf else high + math.log1p(math.exp(low - high))


def _log_integral(fall: Floats, width: Floats) -> Floats:
    """Give ln ∫₀ʷ exp(−fall·y) dy; the fall may have either sign."""
    size = np.abs(fall)
    steep = size * width > 1e-12
    with np.errstate(divide="ignore", invalid="ignore"):
        even = np.log(width)
        fading = np.log(-np.expm1(-size * width) / size)
    return np.where(steep, fading + np.where(fall < 0, size * width, 0.0), even)


def _piece(kernel: Kernel, places: Floats) -> Places:
    last = len(kernel.pieces.heights) - 1
    return np.clip(np.searchsorted(kernel.pieces.edges, places, side="right") - 1, 0, last)


def log_density(kernel: Kernel, places: Floats) -> Floats:
    """Give the logarithm of the density per unit of the coordinate."""
    i = _piece(kernel, places)
    return kernel.pieces.heights[i] + kernel.pieces.slopes[i] * (places - kernel.pieces.edges[i])


def left_of(kernel: Kernel, places: Floats) -> Floats:
    """Give ln ∫ f(x)·exp(−k(q − x)) dx over x ≤ q, for every place q."""
    i = _piece(kernel, places)
    gone = places - kernel.pieces.edges[i]
    here = kernel.pieces.heights[i] + kernel.pieces.slopes[i] * gone
    part = here + _log_integral(kernel.pieces.slopes[i] + kernel.rate, gone)
    return np.logaddexp(kernel.left[i] - kernel.rate * gone, part)


def right_of(kernel: Kernel, places: Floats) -> Floats:
    """Give ln ∫ f(x)·exp(−k(x − q)) dx over x ≥ q, for every place q."""
    i = _piece(kernel, places)
    width = kernel.pieces.edges[i + 1] - places
    part = log_density(kernel, places) + _log_integral(kernel.rate - kernel.pieces.slopes[i], width)
    return np.logaddexp(kernel.right[i + 1] - kernel.rate * width, part)


def log_less(whole: Floats, part: Floats) -> Floats:
    """Give ln(exp(whole) − exp(part)), −inf where nothing is left."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = -np.expm1(np.minimum(part - whole, 0.0))
        return np.where(np.isneginf(whole), -np.inf, whole + np.log(ratio))


def lowest_density(kernel: Kernel, starts: Floats, stops: Floats) -> Floats:
    """Give a lower bound, on each stretch, of ln of the density per unit of the value."""
    low = np.minimum(_by_value(kernel, starts), _by_value(kernel, stops))
    if kernel.pieces.single_peaked:
        return low - kernel.pieces.slack
    same = _piece(kernel, starts) == _piece(kernel, stops)
    return np.where(same, low - kernel.pieces.slack, -np.inf)


def _by_value(kernel: Kernel, places: Floats) -> Floats:
    logs = log_density(kernel, places)
    return logs - places if kernel.pieces.logarithmic else logs
