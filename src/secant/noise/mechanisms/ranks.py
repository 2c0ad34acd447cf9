"""Points of a public grid by how many rows lie between them and an order statistic: noise.distance.

In: which statistic, how many points there are, and the rows at some of them, which are private. Out: stretches of
points at one distance, from which stability.rank and statistic.rank draw. Never here: the draw itself.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate


def by_rank(
    q: Fraction,
    points: int,
    cells: Sequence[tuple[int, int]],
    farthest: int,
    *,
    before: int = 0,
    total: int | None = None,
) -> list[tuple[int, int, int]]:
    """Split all points from left to right: the first, how many, and their distance in rows times q's denominator.

    The distance of a point, for q strictly between 0 and 1, is max(0, below - q n, q n - upto): the rows below it, and
    those at or below it, against the rank looked for. The minimum counts the rows below only, the maximum those above:
    beyond all rows one point is as good as the next. What is farther counts as `farthest`; so cells may be left out on
    either side where they lie beyond it: `before` rows are left of the first cell, `total` rows are there in all.

    >>> by_rank(Fraction(1, 2), 10, [(3, 1), (5, 1)], 100)
    [(0, 3, 2), (3, 1, 0), (4, 1, 0), (5, 1, 0), (6, 4, 2)]
    """
    reached = list(accumulate((rows for _, rows in cells), initial=before))
    n = reached[-1] if total is None else total
    target, parts = q.numerator * n, q.denominator
    # Only cells from `start` to `stop` can lie nearer than the farthest: ranks rise from left to right.
    near, far = Fraction(target - farthest, parts), Fraction(target + farthest, parts)
    start = 0 if q == 0 else max(0, bisect_right(reached, near) - 1)
    stop = len(cells) if q == 1 else min(bisect_left(reached, far), len(cells))

    def distance(below: int, upto: int) -> int:
        if q == 0:
            return min(below, farthest)
        if q == 1:
            return min(n - upto, farthest)
        return min(max(0, parts * below - target, target - parts * upto), farthest)

    stretches = []
    at = 0
    for cell_number in range(start, stop):
        index, rows = cells[cell_number]
        below = reached[cell_number]
        if index > at:
            stretches.append((at, index - at, distance(below, below)))
        stretches.append((index, 1, distance(below, below + rows)))
        at = index + 1
    end = reached[max(start, stop)]
    if points > at:
        stretches.append((at, points - at, distance(end, end)))
    return stretches
