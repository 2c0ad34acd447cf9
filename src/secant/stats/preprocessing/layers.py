"""preprocess.layers: limits of individuals at any size, as a mixture of statistics with one limit each.

In: values, the limit of the individual behind each, all limits that anybody may have, and a construction for one
limit. Out: g, exactly the mixture. How the mixture is made follows from the declared limits, never from those present.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np

from secant.stats.inputs import Values
from secant.stats.promises import Finding

Construction = Callable[[Values, Fraction], Finding]
"""(sorted values, Δ) -> g with one limit for everybody."""


def shares_of(declared: Sequence[Fraction]) -> list[tuple[Fraction, Fraction]]:
    """Give, for each declared limit, how much the statistic of all who have it or more counts.

    >>> shares_of([Fraction(1), Fraction(1, 4)])
    [(Fraction(1, 1), Fraction(3, 4)), (Fraction(1, 4), Fraction(1, 4))]
    """
    falling = sorted(set(declared), reverse=True)
    most = falling[0]
    if not most:
        return []
    below = [*falling[1:], Fraction(0)]
    pairs = zip(falling, below, strict=True)
    return [(limit, (limit - lower) / most) for limit, lower in pairs if limit > lower]


def bounded_layers(
    values: Values,
    limits: Sequence[Fraction],
    declared: Sequence[Fraction],
    construction: Construction,
    target: Fraction,
    empty: Fraction,
) -> Finding:
    """Give the mixture over layers: those with at least the largest limit, the second largest, ….

    Rests on preprocess.layers.
    """
    most = max(declared)
    ranks = {limit: float(index) for index, limit in enumerate(sorted(set(declared)))}
    own = np.array([ranks[limit] for limit in limits], dtype=np.float64)
    order = np.argsort(values, kind="stable")
    ordered, own = values[order], own[order]
    value = Fraction(0) if most else empty
    for limit, share in shares_of(declared):
        value += share * construction(ordered[own >= ranks[limit]], most).exact_value
    gap = float(abs(value - target)) * (1 + 2.0**-50)
    reason = "g was computed and equals f" if value == target else "g was computed"
    return Finding(value, float(target), gap, value == target, reason, "preprocess.layers")
