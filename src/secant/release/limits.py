"""Choose privately how much one unit may add to each measure (U-CHOOSE).

In: for each limit on a public list, how many units add more. Out: one limit a measure. The weight of a limit is
exp(-epsilon * units above it) times a public factor that falls with the limit: what units above it lose grows with
their number, what noise costs grows with the limit and with the number of groups that share it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction

from secant.analysis.certificate import Clipped
from secant.mechanisms.selection import PermuteAndFlip
from secant.terms.bounds import GlobalBound

CHEAPEST, DEAREST = 2, 200
"""How fast weights fall with the limit: with one group, and with however many groups."""


def choose_limit(bound: Clipped, above: Sequence[int], epsilon: Fraction, groups: int) -> int:
    """Give one of the limits; adding or removing a unit moves all of `above` one way, by at most one."""
    choice = PermuteAndFlip().calibrate(
        GlobalBound(Fraction(1), "linf"), epsilon=epsilon, monotone=True
    )
    scores = [
        -Fraction(units) - _price(limit, bound.limits[0], groups) / epsilon
        for units, limit in zip(above, bound.limits, strict=True)
    ]
    return bound.limits[choice.draw(scores)]


def _price(limit: int, least: int, groups: int) -> Fraction:
    """Give what a limit costs beside the least one: public, so any number near the logarithm serves."""
    price = min(CHEAPEST + groups, DEAREST)
    return price * Fraction(round(math.log(limit / least) * 10**6), 10**6)


def choose_limits(
    bounds: Mapping[str, Clipped],
    row: Sequence[object],
    epsilons: Mapping[str, Fraction],
    groups: int,
) -> dict[str, int]:
    """Read the one row of counts, measure after measure, and choose a limit for each."""
    found: dict[str, int] = {}
    place = 0
    for column, bound in bounds.items():
        counts = [int(str(v)) for v in row[place : place + len(bound.limits)]]
        found[column] = choose_limit(bound, counts, epsilons[column], groups)
        place += len(bound.limits)
    return found
