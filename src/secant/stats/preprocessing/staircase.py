"""preprocess.staircase: ordered functions of sorted values, bounded in O(n log n) instead of over all windows.

In: an ordered function of windows in whole steps (see ordered.py), and two whole numbers around g. Out: g, exactly
what preprocess.ordered gives over all windows. Whether g reaches a level is decided along one monotone staircase
through the windows; levels close in on g, and what two staircases agree on is not walked again.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from secant.stats.preprocessing.units import ONE, Whole

_ONE = int(ONE)
_PIVOTS = 15
Window = Callable[[int, int], int]
"""(values left out below, values left out above) -> the function of the rest, in whole steps."""


def bounded_between(window: Window, count: int, low: int, high: int) -> int:
    """Give g of all values, which lies between `low` and `high`."""
    # A level that g reaches, and one that it does not: staircases of levels between lie between theirs.
    upper = np.arange(count, -1, -1, dtype=np.int64)
    lower = np.full(count + 1, -1, dtype=np.int64)
    goal, high, turn = window(0, 0) if count else 0, high + 1, 0
    while high - low > 1:
        # g is most often the function itself: that is asked first, and then whether g is more
        level = next((x for x in (goal, goal + 1) if low < x < high), None)
        if level is None:
            turn += 1
            pivot = _pivot(window, count, upper, lower)
            level = min(max(pivot, low + 1), high - 1)
            # a pivot outside says only that g may be the end near it: that is asked now and then
            if turn % 4 != 1 and (turn % 4 == 3 or level != pivot):
                level = (low + high) // 2
        stairs = _stairs(window, count, level, upper, lower)
        if stairs[0] >= 0:
            low, upper = level, stairs
        else:
            high, lower = level, stairs
    return low


def _pivot(window: Window, count: int, upper: Whole, lower: Whole) -> int:
    """Give a level that about half of the windows between two staircases reach."""
    between = np.cumsum(upper - lower)
    if not between[-1]:
        return 0
    levels = []
    for part in range(1, _PIVOTS + 1):
        number = int(between[-1]) * part // (_PIVOTS + 1)
        above = int(np.searchsorted(between, number, side="right"))
        below = int(upper[above]) - (int(between[above]) - number - 1)
        whole = below + above < count  # else no value is left
        levels.append((window(below, above) if whole else 0) - (below - above) * _ONE)
    return sorted(levels)[_PIVOTS // 2]


def _stairs(window: Window, count: int, level: int, upper: Whole, lower: Whole) -> Whole:
    """Give for each number left out above the most left out below at which g still reaches its level; -1 for none.

    Each value that is left out above lowers the level of what remains by one Δ, each that is left out below raises it.
    `upper` and `lower` are the stairs of a lower and of a higher level.
    """
    stairs = upper.copy()
    # From here on no value is left at the end of a row, and the center itself reaches the level there.
    above = -((-level - count * _ONE) // (2 * _ONE))
    apart = np.flatnonzero(upper[:above] != lower[:above])[::-1]
    below = count - above
    for position, most, least in zip(
        apart.tolist(), upper[apart].tolist(), lower[apart].tolist(), strict=True
    ):
        below = min(below, most)
        while below > least and window(below, position) < level + (below - position) * _ONE:
            below -= 1
        stairs[position] = below
        if below < 0:
            stairs[:position] = -1
            break
    return stairs
