"""Draw how far from a drawn quantile the true one lies, in points of its grid: noise.rank_ends.

In: the counted cells of one group, the point that was drawn for it, a calibrated choice. Out: two points of the public
grid. Cells are private; the point is public. One choice serves both ends: a half width is chosen from a public ladder,
the first at which the rank that is looked for lies well inside.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate

from secant.noise.mechanisms.selection import Choice

RUNG = math.sqrt(2)
"""How much wider each half width is than the one before."""


def ladder(place: int, points: int) -> tuple[int, ...]:
    """Give half widths around a point, in points of the grid, from none to one that covers the whole grid. Public."""
    widest = max(place, points - 1 - place)
    widths, width = [0], 1.0
    while widths[-1] < widest:
        widths.append(min(max(round(width), widths[-1] + 1), widest))
        width *= RUNG
    return tuple(widths)


def wanted(choice: Choice, widths: int, level: Fraction) -> Fraction:
    """Give by how many rows (or parts of them) the rank is to lie inside, so that the ends hold at the level."""
    if widths < 2:
        return Fraction(0)
    return choice.error(max(1 - 2 * (1 - level), Fraction(0)), widths - 1)


def shortfalls(
    q: Fraction,
    widths: Sequence[int],
    place: int,
    cells: Sequence[tuple[int, int]],
    inside: Fraction,
) -> list[Fraction]:
    """Give for each half width how far it is from being the first at which the rank lies so far inside. Private.

    How far inside the rank q n lies is the lesser of two numbers of rows: q n less those left of the ends, and those
    not right of them less q n; the latter alone for q = 0, the former for q = 1. It grows with the width. The widest
    counts as wide enough whatever the rows are.
    """
    places = [index for index, _ in cells]
    reached = list(accumulate((rows for _, rows in cells), initial=0))
    rank = q * reached[-1]
    found, before = [], None
    for number, width in enumerate(widths):
        left = reached[bisect_left(places, place - width)]
        upto = reached[bisect_left(places, place + width + 1)]
        # of the least value only how far it may lie to the right is told, of the greatest to the left
        margin = upto if q == 0 else rank - left if q == 1 else min(rank - left, upto - rank)
        short = Fraction(0) if number == len(widths) - 1 else inside - margin
        over = Fraction(0) if before is None else before - inside
        found.append(max(Fraction(0), short, over))
        before = margin
    return found


def drawn_ends(
    q: Fraction,
    choice: Choice,
    cells: Sequence[tuple[int, int]],
    place: int,
    points: int,
    level: Fraction,
    unseen: Fraction = Fraction(0),
) -> tuple[int, int]:
    """Draw two points between which the quantile lies at the level; `unseen` rows, a public number, are allowed for."""
    widths = ladder(place, points)
    inside = wanted(choice, len(widths), level) + unseen
    scores = [-short for short in shortfalls(q, widths, place, cells, inside)]
    width = widths[choice.draw(scores)]
    low = 0 if q == 0 else max(0, place - width)
    return low, points - 1 if q == 1 else min(points - 1, place + width)
