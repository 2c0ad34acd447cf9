"""The largest ε that keeps a guess at or below what is allowed (attack.inverse).

In: a bound that grows with ε, and the share that it may reach. Out: an ε in whole billionths, rounded down: put back,
the bound is at most the share, and as near to it as a billionth of ε allows. Nothing is spent and no data is read.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

UNITS = 10**9
"""Found to a billionth of ε, which is what a ledger counts in."""
MOST = 1_000 * UNITS
NEAR = 1e-9
"""A bound that is this close below what is allowed is close enough."""


def largest_epsilon(allowed: float, bound: Callable[[Fraction], float]) -> Fraction | None:
    """Give the largest ε at which the bound is not above what is allowed; None if every one is.

    >>> float(largest_epsilon(0.3, lambda e: 0.1 / (0.1 + 0.9 * math.exp(-e))))
    1.349926716
    """

    def at(units: int) -> float:
        return bound(Fraction(units, UNITS))

    low, reached = 0, at(0)
    if reached > allowed:
        return Fraction(0)
    high, over = UNITS, at(UNITS)
    while over <= allowed:
        if high >= MOST:
            return None
        low, reached = high, over
        high = min(8 * high, MOST)
        over = at(high)
    turn = 0
    while high - low > 1 and allowed - reached > NEAR * allowed:
        turn += 1
        middle = (low + high) // 2
        if (
            turn % 3
        ):  # logarithms of odds are nearly straight lines; every third time halve all the same
            middle = _between(low, high, (_odds(reached), _odds(over)), _odds(allowed))
        found = at(middle)
        if found <= allowed:
            low, reached = middle, found
        else:
            high, over = middle, found
    return Fraction(low, UNITS)


def _odds(share: float) -> float:
    inside = min(max(share, 1e-300), 1 - 1e-16)
    return math.log(inside) - math.log1p(-inside)


def _between(low: int, high: int, ends: tuple[float, float], wanted: float) -> int:
    span = ends[1] - ends[0]
    part = (wanted - ends[0]) / span if span > 0 else 0.5
    found = low + math.floor((high - low) * min(max(part, 0.0), 1.0))
    return min(max(found, low + 1), high - 1)
