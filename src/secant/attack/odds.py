"""Bounds that rest on one number only: how far the answers' laws can be apart for two values of a secret.

In: a prior chance, and what privacy says of two laws (a distance, or steps with their ε and δ). Out: bounds of the
chance after an answer and on average over answers, and of what is added to any prior. Rounded up; no data, no policy.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction

FARTHEST = 700.0
"""Beyond this exponent nothing but the bound 1 is claimed; e to it is still a float."""


def float_up(value: Fraction) -> float:
    """Give the least float that is not below, or infinity."""
    try:
        nearest = float(value)
    except OverflowError:
        return math.inf
    return nearest if Fraction(nearest) >= value else math.nextafter(nearest, math.inf)


def up(share: float) -> float:
    """Raise a chance by what a few roundings may have taken."""
    return min(1.0, share * (1 + 1e-12))


def raised(prior: float, distance: Fraction) -> float:
    """Bound the chance after any single answer, two values being `distance` apart (attack.attribute).

    >>> round(raised(0.1, Fraction(2)), 3)
    0.451
    """
    against = math.exp(-min(float_up(distance), FARTHEST)) * (1 - prior) * (1 - 1e-12)
    return 1.0 if against <= 0 else up(prior / (prior + against)) if prior > 0 else 0.0


def on_average(prior: float, steps: Iterable[tuple[Fraction, Fraction]]) -> float:
    """Bound how often the best guess is right, every value being so many (ε, δ) steps from one law (attack.attribute).

    >>> round(on_average(0.1, [(Fraction(1), Fraction(0))]), 3)
    0.272
    """
    total, slack = together(steps)
    if total > FARTHEST or slack >= 1:
        return 1.0
    more = math.exp(total) * prior + slack
    complement = math.exp(-total) * max(0.0, (1 - prior) * (1 - 1e-12) - slack)
    return up(min(1.0, more, 1 - complement * (1 - 1e-12)))


def together(steps: Iterable[tuple[Fraction, Fraction]]) -> tuple[float, float]:
    """Give ε and δ of steps one after the other, rounded up: δ of a later step grows by e to the ε before it."""
    total, slack = 0.0, 0.0
    for epsilon, delta in steps:
        if delta:
            slack += math.exp(min(total, FARTHEST)) * float_up(delta) * (1 + 1e-12)
        total = math.nextafter(total + float_up(epsilon), math.inf) if epsilon else total
        if total > FARTHEST or slack >= 1:
            return math.inf, 1.0
    return total, min(1.0, slack)


def added_at_most(distance: Fraction) -> float:
    """Bound what any answer adds to the chance, whatever is believed before (attack.any_prior).

    >>> round(added_at_most(Fraction(2)), 4)
    0.4621
    """
    return up(math.tanh(min(float_up(distance), FARTHEST) / 4))


def added_on_average(steps: Iterable[tuple[Fraction, Fraction]]) -> float:
    """Bound what answers add on average, whatever is believed before (attack.any_prior)."""
    total, slack = together(steps)
    if math.isinf(total):
        return 1.0
    return up(math.tanh(total / 2) * (1 - slack) + slack)
