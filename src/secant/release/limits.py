"""Choose privately how much one unit may add to each measure (U-CHOOSE).

In: for each limit on a public list, how many units add more. Out: one limit a measure. Lowering a limit by a step cuts
that step off every unit above it, and saves noise of its size in every group: the two balance where about groups /
epsilon units add more. Limits that cut off fewer are equally good but for a public factor that falls with the limit.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction

from secant.analysis.certificate import Clipped
from secant.mechanisms.selection import PermuteAndFlip
from secant.terms.bounds import GlobalBound

BALANCE = 2
"""Units above the limit that noise of one group is worth, times epsilon."""


def _fall(groups: int) -> Fraction:
    """Give how fast weights fall with the limit: as its inverse square, faster where many groups get its noise."""
    return 2 + Fraction(max(0, min(groups, 50) - 10), 10)


def choose_limit(
    bound: Clipped, above: Sequence[int], choosing: Fraction, noising: Fraction, groups: int
) -> int:
    """Give one of the limits; adding or removing a unit moves all of `above` one way, by at most one."""
    choice = PermuteAndFlip().calibrate(
        GlobalBound(Fraction(1), "linf"), epsilon=choosing, monotone=True
    )
    balance = BALANCE * groups / noising
    scores = [
        -max(units - balance, Fraction(0))
        - _fall(groups) * _steps(limit, bound.limits[0]) / choosing
        for units, limit in zip(above, bound.limits, strict=True)
    ]
    return bound.limits[choice.draw(scores)]


def _steps(limit: int, least: int) -> Fraction:
    """Give how far above the least a limit lies: public, so any number near the logarithm serves."""
    return Fraction(round(math.log(limit / least) * 10**6), 10**6)


def choose_limits(
    bounds: Mapping[str, Clipped],
    row: Sequence[object],
    epsilons: Mapping[str, tuple[Fraction, Fraction]],
    groups: int,
) -> dict[str, int]:
    """Read the one row of counts, measure after measure, and choose a limit for each."""
    found: dict[str, int] = {}
    place = 0
    for column, bound in bounds.items():
        counts = [int(str(v)) for v in row[place : place + len(bound.limits)]]
        found[column] = choose_limit(bound, counts, *epsilons[column], groups)
        place += len(bound.limits)
    return found
