"""noise.star: how large a rate a noise law allows for a β-smooth bound, by the exact condition (★).

In: ε, β and the score of a law. Out: a rational b, rounded down, such that f + (c/b)·V is ε-DP per
unit of distance. Floats search for the tightest place; the bound that is returned is certified in
ball arithmetic and holds wherever the search ended.
"""

from __future__ import annotations

import math
from fractions import Fraction

from secant.numeric.ball import Ball, ball, lower, working_precision
from secant.records import frozen

_PRECISION = 160
_KEPT = 64  # bits of a rate


@frozen
class Score:
    """A score -p'/p in the form gain · w^(1-1/root) · (1-w)^(1/root), with v · score = slope · w.

    w runs from 0 (at v = 0) to 1 (far out). `gain_squared` is exact where the gain may be a root.
    """

    slope: Fraction
    root: Fraction
    gain_squared: Fraction


def largest_rate(score: Score, *, epsilon: Fraction, beta: Fraction) -> Fraction:
    """Give b > 0 with β|slope·w - 1| + b·score(w) ≤ ε for all w, nearly the largest; 0 if none."""
    kink = 1 / score.slope
    rates = [
        _branch(score, epsilon, beta, sign=-1, low=Fraction(0), high=kink),
        _branch(score, epsilon, beta, sign=1, low=kink, high=Fraction(1)),
    ]
    return round_down(max(Fraction(0), min(rates)))


def _branch(
    score: Score, epsilon: Fraction, beta: Fraction, *, sign: int, low: Fraction, high: Fraction
) -> Fraction:
    """Give the largest b that the tangent at the tightest w certifies on [low, high]."""
    analysis = [epsilon - beta * sign * (score.slope * end - 1) for end in (low, high)]
    if min(analysis) <= 0:
        return Fraction(0)
    touch = _tightest(score, float(epsilon), float(beta), sign, float(low), float(high))
    with working_precision(_PRECISION):
        # The concave factor lies below its tangent, and the analysis is affine in w: if the tangent
        # fits at both ends of the branch, the score fits everywhere on it.
        share, at = ball(1 / score.root), ball(touch)
        height = (at.log() * (1 - share) + (1 - at).log() * share).exp()
        incline = height * ((1 - share) / at - share / (1 - at))
        gain = ball(score.gain_squared).sqrt()
        rates = []
        for end, free in zip((low, high), analysis, strict=True):
            tangent = gain * (height + incline * (ball(end) - at))
            if tangent > 0:
                rates.append(_lower_end(ball(free) / tangent))
    return min(rates)


def _lower_end(value: Ball) -> Fraction:
    return lower(value) if value.is_finite() else Fraction(0)


def _tightest(
    score: Score, epsilon: float, beta: float, sign: int, low: float, high: float
) -> Fraction:
    """Search w in [low, high] where analysis / score is least; the quotient has a single valley."""
    share, slope = float(1 / score.root), float(score.slope)

    def quotient(t: float) -> float:
        w = 1 / (1 + math.exp(-t))
        free = epsilon - beta * sign * (slope * w - 1)
        # ln w and ln(1 - w) in terms of t, without cancellation at either end
        height = -(1 - share) * math.log1p(math.exp(-t)) - share * math.log1p(math.exp(t))
        return math.log(max(free, 1e-300)) - height

    def logit(w: float) -> float:
        return -200.0 if w <= 0 else 200.0 if w >= 1 else math.log(w / (1 - w))

    left, right = logit(low), logit(high)
    for _ in range(200):
        third = (right - left) / 3
        if quotient(left + third) < quotient(right - third):
            right -= third
        else:
            left += third
    odds = Fraction(math.exp((left + right) / 2))
    return odds / (1 + odds)


def round_down(value: Fraction) -> Fraction:
    """Keep 64 leading bits of a number that is at least 0, rounded down."""
    if value <= 0:
        return Fraction(0)
    power = _KEPT - (value.numerator.bit_length() - value.denominator.bit_length())
    unit = Fraction(2) ** power
    scaled = value * unit
    return Fraction(scaled.numerator // scaled.denominator) / unit


def round_up(value: Fraction) -> Fraction:
    """Keep 64 leading bits of a number that is at least 0, rounded up."""
    if value <= 0:
        return Fraction(0)
    power = _KEPT - (value.numerator.bit_length() - value.denominator.bit_length())
    unit = Fraction(2) ** power
    scaled = value * unit
    return Fraction(-((-scaled.numerator) // scaled.denominator)) / unit
