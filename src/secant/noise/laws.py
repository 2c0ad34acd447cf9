"""Which law the noise of plain measures has: discrete Laplace, or normal noise on all of them together.

In: public bounds, shares of epsilon, a delta. Out: for each measure that takes normal noise its part of rho, and how
the two laws compare. Public facts only, never an answer. Laplace noise pays for the sum of what all groups and measures
move, normal noise for the length of that vector, and with a delta: the more numbers one unit moves, the better it does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from fractions import Fraction
from math import isqrt

from secant.noise.mechanisms.whole import WholeLaplace, multiplier, normal_for
from secant.records import frozen

LEVEL = Fraction(95, 100)
"""Errors are compared at this level."""
WORTH = 0.9
"""Delta is a budget, too: normal noise is taken if its errors are at most this part of the others."""
GRAIN = 2**20
"""Parts of rho are whole multiples of rho / GRAIN, rounded down: their sum never exceeds it."""
CAREFUL = Fraction(1, 1000)
"""Normal noise never takes more of delta than this, whatever is allowed: it would win by promising less."""
SPARE = Fraction(1, 2**40)
"""What of epsilon is left beside it: a choice of keys has no epsilon of its own, and events have one above zero."""


@frozen
class Plain:
    """A measure that either law serves, in whole steps."""

    column: str
    weight: float
    epsilon: Fraction
    """What of epsilon is for its noise."""
    size: Fraction
    """How far it moves, all groups together: the sum."""
    squared: Fraction
    """The same: the squared length."""


@frozen
class Compared:
    """Errors of one measure by either law, in whole steps."""

    laplace: int
    normal: int


@frozen
class NormalPart:
    """What normal noise takes: one (epsilon, delta) for all of its measures."""

    rhos: Mapping[str, Fraction] = field(default_factory=dict)
    """Measure column -> its part of rho."""
    epsilon: Fraction = Fraction(0)
    delta: Fraction = Fraction(0)
    compared: Mapping[str, Compared] = field(default_factory=dict)
    """Measure column -> how the two laws compare, where both were possible."""

    @property
    def rho(self) -> Fraction:
        """All of it."""
        return sum(self.rhos.values(), Fraction(0))


def choose_normal(measures: Sequence[Plain], delta: Fraction) -> NormalPart:
    """Give the measures that take normal noise: those that gain most first, as many as gain together."""
    if not measures or not delta:
        return NormalPart()
    delta = min(delta, CAREFUL)
    ordered = sorted(measures, key=lambda m: (_gain(m), m.column))
    laplace = {m.column: WholeLaplace(m.size / m.epsilon).error(LEVEL) for m in ordered}
    best, least = NormalPart(), sum(m.weight for m in ordered)
    tried = best
    for count in range(1, len(ordered) + 1):
        if count < len(ordered) and _gain(ordered[count]) == _gain(ordered[count - 1]):
            continue  # alike: all of them or none
        tried = _normal(ordered[:count], delta, laplace)
        inside, remaining = (
            sum(m.weight for m in part) for part in (ordered[:count], ordered[count:])
        )
        loss = sum(m.weight * _ratio(tried.compared[m.column]) ** 2 for m in ordered[:count])
        if loss <= WORTH**2 * inside and loss + remaining < least:
            best, least = tried, loss + remaining
    # Where Laplace noise stays, it is told what normal noise on all measures would have been.
    return replace(best, compared={**tried.compared, **best.compared})


def _gain(measure: Plain) -> Fraction:
    return measure.squared / measure.size**2


def _ratio(errors: Compared) -> float:
    return (errors.normal + 0.5) / (errors.laplace + 0.5)


def _normal(measures: Sequence[Plain], delta: Fraction, laplace: Mapping[str, int]) -> NormalPart:
    """Give one (epsilon, delta) to some measures together; parts of rho go as the roots of their weights.

    Minimizing the weighted sum of squared relative errors, which are w / rho, under a fixed sum gives the root of w.
    """
    epsilon = sum((m.epsilon for m in measures), Fraction(0)) * (1 - SPARE)
    rho = 1 / (2 * multiplier(epsilon, delta) ** 2)
    roots = {m.column: isqrt(int(m.weight * 2**40)) for m in measures}
    total = sum(roots.values())
    rhos = {c: rho * (GRAIN * root // total) / GRAIN for c, root in roots.items()}
    compared = {
        m.column: Compared(laplace[m.column], normal_for(m.squared, rhos[m.column]).error(LEVEL))
        for m in measures
    }
    return NormalPart(rhos, epsilon, delta, compared)
