"""Public ranges that are wider than values are, for sums of columns of which nobody declared one (rewrite.wide).

In: a type. Out: the ends between which its values are summed, and how fine. They follow from the type alone, so that
nothing has to be found out first. What one unit adds is limited by what a tally of units says, whatever a row may add.
"""

from __future__ import annotations

from fractions import Fraction

from secant.numeric import interval as iv
from secant.schema import types as t

MOST_STEPS = 2**51
"""Whole steps of a whole number or a decimal. In parts of a step, such a limit fits into 64 bits."""
LARGEST_REAL, REAL_BITS = Fraction(2**40), 61
"""Reals are this large at most, and rounded to 2^-21."""
SEEN_STEPS = 2**11
"""What a unit adds in reals is told apart from nothing from so many steps on, about 0.001: rounding is far below."""
MOST_DIGITS = 6
"""Decimals with more digits behind the point would have too few before it."""


def wide_range(kind: t.Type, known: iv.Interval) -> iv.Interval | None:
    """Give the ends of a sum's values of which only one is known, or none; None where there are no such ends."""
    if kind.kind == "DOUBLE":
        most = LARGEST_REAL
    elif kind.kind == "INTEGER":
        most = Fraction(MOST_STEPS)
    elif kind.kind == "DECIMAL" and kind.scale <= MOST_DIGITS:
        most = Fraction(min(MOST_STEPS, 10**kind.precision - 1), 10**kind.scale)
    else:
        return None
    return iv.meet(known, iv.Interval(-most, most))


def octaves(kind: t.Type, most: int) -> tuple[int, ...]:
    """Give limits for what a unit adds, each twice the one before, all below what one row can add, in whole steps.

    So a unit with a row at an end of the range stands above all of them.
    """
    limits = [SEEN_STEPS if kind.kind == "DOUBLE" else 1]
    while limits[-1] * 2 < most:
        limits.append(limits[-1] * 2)
    return tuple(limits)
