"""preprocess.median, preprocess.extreme: median, minimum and maximum, bounded in O(n).

In: sorted values in units of Δ (see units.py). Out: g in whole steps, exactly what preprocess.ordered gives
by visiting all windows, without visiting them. No Python loop runs over the values.
"""

from __future__ import annotations

import numpy as np

from secant.stats.inputs import Values
from secant.stats.preprocessing.units import LARGEST, ONE, in_steps

_ONE = int(ONE)
_PIECE = 1 << 15  # sizes evaluated together; their numbers stay in the cache
_SETTLED = 6  # sizes after which the values around the center repeat with period 2


def bounded_minimum(scaled: Values) -> int:
    """Give g of the minimum: the best of giving up the j smallest values, at one Δ each (preprocess.extreme)."""
    count = _count(scaled)
    if not count:
        return 0
    best = -count * _ONE
    for first in range(0, count, _PIECE):
        if (count - 2 * first) * _ONE <= best:  # giving up more cannot pay any more
            break
        given_up = np.arange(first, min(first + _PIECE, count), dtype=np.int64)
        part = in_steps(scaled[first : first + given_up.size])
        reached = np.minimum(part, (count - given_up) * _ONE) - given_up * _ONE
        best = max(best, int(reached.max()))
    return best


def bounded_maximum(scaled: Values) -> int:
    """Give g of the maximum: the minimum in a mirror."""
    return -bounded_minimum(-scaled[::-1])


def bounded_median(scaled: Values) -> int:
    """Give g of the median; the side is chosen afresh at each window (preprocess.median)."""
    count = _count(scaled)
    if not count:
        return 0
    half = count // 2 + 1  # medians of the smallest values never look farther
    if median_steps(scaled, count) >= 0:
        return _median_above(scaled[:half], count)
    return -_median_above(-scaled[: -half - 1 : -1], count)


def _median_above(scaled: Values, count: int) -> int:
    """Give g where the median is not below the center; the smaller half of the values decides."""
    turn = _first_above(scaled, count)
    start = min(median_steps(scaled, 1), _ONE) if turn == 1 else _around_center(scaled, turn)
    goal = median_steps(scaled, count)
    # leaving out more values costs more than the way from the center to the median
    least = max(turn + 1, count - goal // _ONE)
    return min(start + (count - turn) * _ONE, _cheapest_prefix(scaled, least, count))


def median_steps(scaled: Values, size: int) -> int:
    """Give the median of the `size` smallest values in whole steps."""
    middle = scaled[(size - 1) // 2 : size // 2 + 1]
    return int(in_steps((middle[:1] + middle[-1:]) * 0.5)[0])


def _count(scaled: Values) -> int:
    assert scaled.size <= LARGEST
    return int(scaled.size)


def _first_above(scaled: Values, count: int) -> int:
    """Give the least size from which on the medians of the smallest values reach the center."""
    low, high = 1, count
    while low < high:
        middle = (low + high) // 2
        if median_steps(scaled, middle) >= 0:
            high = middle
        else:
            low = middle + 1
    return low


def _around_center(scaled: Values, turn: int) -> int:
    """Give g of the `turn` smallest values: below, windows lie on both sides of the center in turns.

    Taking the largest value from a window above the center, and the smallest from one below, leads
    to windows whose medians are those of two sizes earlier.
    """
    above, below = median_steps(scaled, turn), median_steps(scaled, turn - 1)
    sizes = turn if turn <= _SETTLED else _SETTLED + turn % 2
    reached = 0
    for size in range(1, sizes + 1):
        high = (sizes - size) % 2 == 0
        reached = min(above, reached + _ONE) if high else max(below, reached - _ONE)
    return reached


def _cheapest_prefix(scaled: Values, least: int, count: int) -> int:
    """Give the smallest of: median of the j smallest values, and one step for each value left out."""
    best = LARGEST * _ONE
    for end in range(count + 1, least, -_PIECE):  # the largest sizes first: they cost least
        if (count - end + 1) * _ONE > best:
            break
        best = min(best, _cheapest_piece(scaled, max(end - _PIECE, least), end, count))
    return best


def _cheapest_piece(scaled: Values, least: int, end: int, count: int) -> int:
    """Give the same for sizes from `least` to before `end`; medians here are not below the center."""
    best = LARGEST * _ONE
    for first in (least, least + 1):  # sizes of one parity have their medians at even distances
        sizes = np.arange(first, end, 2, dtype=np.int64)
        if sizes.size:
            low, high = (first - 1) // 2, first // 2
            pairs = scaled[low : low + sizes.size] + scaled[high : high + sizes.size]
            costs = in_steps(pairs * 0.5) + (count - sizes) * _ONE
            best = min(best, int(costs.min()))
    return best
