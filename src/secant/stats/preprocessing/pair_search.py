"""The largest of (z - y) · factor · exp(-β · cost) over pairs of sorted points, without trying all.

In: sorted points, and for a block of index pairs a lower bound of the cost and an upper bound of the
factor. Out: a float that is at least the maximum and at most 1 + EXCESS times it. Blocks of pairs are
halved; a block whose upper bound does not pass what was found is dropped (statistic.search).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]
Weigh = Callable[[Indices, Indices, Indices, Indices], Floats]
"""(j0, j1, l0, l1) -> at least ln(factor) - β · cost, for every j0 ≤ j ≤ j1, l0 ≤ l ≤ l1; equal to
it where each block is one pair."""

EXCESS = 2.0**-20
"""How far, relatively, the result may lie above the maximum. A quarter of it is far more than floats
lose in exp, log and a difference of whole numbers."""


def largest(points: Floats, weigh: Weigh) -> float:
    """Give max (points[l] - points[j]) · exp(weight(j, l)) over j < l, never less; 0 without any."""
    count = len(points)
    size = 1 << (count - 1).bit_length()
    left = right = np.zeros(1, dtype=np.int64)
    best = 0.0
    while True:
        left_end, right_end = (np.minimum(start + size - 1, count - 1) for start in (left, right))
        above = _heights(points, weigh, left, left_end, right, right_end)
        # real pairs of each block: they raise what the others must pass
        middle = (left + left_end) // 2, (right + right_end + 1) // 2
        for j, k in ((left, right_end), middle, (left_end, right)):
            best = max(best, float(_heights(points, weigh, j, j, k, k).max(initial=0.0)))
        alive = above > best * (1 + EXCESS / 4)
        if size == 1 or not alive.any():
            return best * (1 + EXCESS / 2)
        size //= 2
        left, right = _quarters(left[alive], right[alive], size, count)


def _heights(
    points: Floats, weigh: Weigh, j0: Indices, j1: Indices, l0: Indices, l1: Indices
) -> Floats:
    """Give an upper bound of each block; for single pairs, their own height."""
    width = np.maximum(points[l1] - points[j0], 0.0)
    with np.errstate(under="ignore"):
        heights: Floats = width * np.exp(weigh(j0, j1, l0, l1))
    return heights


def _quarters(j0: Indices, l0: Indices, half: int, count: int) -> tuple[Indices, Indices]:
    """Cut each block in four, and keep those that hold a pair j < l."""
    left = np.concatenate([j0, j0, j0 + half, j0 + half])
    right = np.concatenate([l0, l0 + half, l0, l0 + half])
    last = np.minimum(right + half - 1, count - 1)
    valid = (left < count) & (right < count) & (last > left)
    return left[valid], right[valid]
