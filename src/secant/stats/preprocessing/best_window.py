"""The windows of sorted numbers whose variance and number of values left out could add up to the least.

Rests on preprocess.windows.

In: sorted whole numbers, held in floats, and the square of their unit in units of Δ. Out: windows, every best one
among them. Blocks of windows are halved; a block whose lower bound lies above what a window reaches is dropped.
Floats decide with proved margins, so more windows than the best may come out, and never fewer.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from secant.records import frozen
from secant.stats.inputs import Values

_TOGETHER = 1 << 17  # blocks that are bounded in one go: memory stays small
_WIDE = 1.5  # of n: no best window is wider than √2·n·√Δ

Indices = npt.NDArray[np.int64]
Extended = npt.NDArray[np.longdouble]


def promising_windows(numbers: Values, scale: float) -> list[tuple[int, int]]:
    """Give (start, size) of every window that could be best, and perhaps of some that are not."""
    count = int(numbers.size)
    root = math.sqrt(scale)
    best = float(count - 1)  # one value has no spread: all others are given up
    windows: list[tuple[Indices, Indices, Values]] = []
    for first, after, end in _cells(numbers, _WIDE * count / root):
        if count - (end - first) > best:
            break  # cells come by their size, and none that follows can win
        cell = _Cell.of(numbers[first:end], root, count)
        starts, ends, least, best = _search(cell, after - first, best)
        windows.append((starts + first, ends - starts, least))
    return [
        (start, size)
        for starts, sizes, least in windows
        for start, size in zip(
            starts[least <= best].tolist(), sizes[least <= best].tolist(), strict=True
        )
    ]


def _cells(numbers: Values, wide: float) -> list[tuple[int, int, int]]:
    """Give (first, after, end): windows that start from `first` to before `after` and are not wide end by `end`."""
    cells, first = [], 0
    while first < numbers.size:
        after = int(np.searchsorted(numbers, numbers[first] + wide, side="right"))
        end = int(np.searchsorted(numbers, numbers[first] + 2 * wide, side="right"))
        cells.append((first, after, end))
        first = after
    return sorted(cells, key=lambda cell: cell[0] - cell[2])


@frozen
class _Cell:
    """Numbers near each other in units of √Δ, with their running sums and what floats lose on these."""

    points: Extended
    sums: Extended
    squares: Extended
    all: int
    """How many numbers there are in all cells: what a window leaves out is counted from them."""
    margin: float
    loose: float

    @staticmethod
    def of(numbers: Values, root: float, count: int) -> _Cell:
        """Take distances from the middle number, so that digits go to differences."""
        middle = np.longdouble(numbers[numbers.size // 2])
        points = (numbers.astype(np.longdouble) - middle) * np.longdouble(root)
        own = points * points
        far, rounding = float(np.abs(points).max()), float(np.finfo(np.longdouble).eps)
        loose = (
            8
            * (numbers.size + 4)
            * rounding
            * (float(own.sum()) + far * float(np.abs(points).sum()))
        )
        return _Cell(
            points, _running(points), _running(own), count, 2.0**-48 * far * far, loose * 1.01
        )

    def spread(self, start: Indices, end: Indices) -> tuple[Values, Values]:
        """Give mean and variance of windows that are not empty; the latter within margin + loose/size."""
        size = (end - start).astype(np.longdouble)
        mean = (self.sums[end] - self.sums[start]) / size
        squares = (self.squares[end] - self.squares[start]) / size
        return mean.astype(np.float64), np.maximum(squares - mean * mean, 0.0).astype(np.float64)


def _running(points: Extended) -> Extended:
    return np.concatenate((np.zeros(1, dtype=np.longdouble), np.cumsum(points)))


def _search(cell: _Cell, starts: int, best: float) -> tuple[Indices, Indices, Values, float]:
    """Give starts, ends and lower bounds of the windows of a cell that could be best, and what one of them reaches."""
    count = int(cell.points.size)
    size = 1 << count.bit_length()
    none = np.zeros(0, dtype=np.int64)
    leaves: list[tuple[Indices, Indices, Values]] = [(none, none, np.zeros(0))]
    waiting = [(np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64), size)]
    while waiting:
        left, right, size = waiting.pop()
        if left.size > _TOGETHER:
            waiting += [
                (left[_TOGETHER:], right[_TOGETHER:], size),
                (left[:_TOGETHER], right[:_TOGETHER], size),
            ]
            continue
        left_end = np.minimum(left + size - 1, starts - 1)
        right_end = np.minimum(right + size - 1, count)
        least, reached = _bounds(cell, left, left_end, right, right_end)
        best = min(best, float(reached.min(initial=math.inf)))
        alive = least <= best
        if size == 1:
            leaves.append((left[alive], right[alive], least[alive]))
        elif alive.any():
            waiting.append(_quarters(left[alive], right[alive], size // 2, starts, count))
    start, end, least = (np.concatenate(part) for part in zip(*leaves, strict=True))
    return start, end, least, best


def _bounds(
    cell: _Cell, i0: Indices, i1: Indices, j0: Indices, j1: Indices
) -> tuple[Values, Values]:
    """Give what no window of a block costs less than, and what one of them costs at most; in units of Δ.

    All windows of a block hold its inner window, and up to `more` values outside of that.
    """
    largest = (j1 - i0).astype(np.float64)
    least = cell.all - largest
    reached = np.full(i0.size, math.inf)
    real = np.flatnonzero(j0 > i1)
    if not real.size:
        return least, reached
    low, high = i1[real], j0[real]
    inner = (high - low).astype(np.float64)
    more = largest[real] - inner
    mean, spread = cell.spread(low, high)
    slack = cell.margin + cell.loose / inner
    points = cell.points
    below = np.where(
        low > i0[real], mean - points[np.maximum(low - 1, 0)].astype(np.float64), math.inf
    )
    above = np.where(
        j1[real] > high,
        points[np.minimum(high, points.size - 1)].astype(np.float64) - mean,
        math.inf,
    )
    near = np.where(more > 0, np.maximum(np.minimum(below, above), 0.0), 0.0)
    slope = inner * near * near / (inner + more) ** 2 - 1 - spread / inner
    tangent = cell.all - inner + spread + np.minimum(0.0, more * slope) - slack * (2 + more / inner)
    whole = cell.all - inner - more + spread * inner / (inner + more) - slack
    least[real] = np.maximum(least[real], np.maximum(tangent, whole))
    reached[real] = cell.all - inner + spread + slack
    return least, reached


def _quarters(
    left: Indices, right: Indices, half: int, starts: int, count: int
) -> tuple[Indices, Indices, int]:
    """Cut each block in four, and keep those that hold a window of a value or more."""
    i0 = np.concatenate([left, left, left + half, left + half])
    j0 = np.concatenate([right, right + half, right, right + half])
    valid = (i0 < starts) & (j0 <= count) & (np.minimum(j0 + half - 1, count) > i0)
    return i0[valid], j0[valid], half
