"""Rényi divergences of releases, and composition by adding them (accounting.zcdp, accounting.renyi, accounting.gauss).

In: a tally and the δ of the whole. Out: the ε of the whole, rounded up, or None where nothing is
known. Orders are looked for in floats, for any order is valid; what is reported for the order that
was found is computed in balls and rounded up.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

from secant.ledger.accounting.tally import (
    PRECISION,
    Tally,
    exact_sum,
    slack,
    upward,
    without_failures,
)
from secant.noise.events import GaussianEvent, LaplaceEvent, Leaf, PureEvent, RenyiEvent, ZCdpEvent
from secant.numeric.ball import Ball, ball, working_precision

_GOLDEN = (math.sqrt(5) - 1) / 2
_STEPS = 26


@lru_cache(maxsize=65_536)
def renyi_divergence(leaf: Leaf, order: Fraction) -> Fraction | None:
    """Bound the Rényi divergence of one release, rounded up; None if this order is not bounded."""
    with working_precision(PRECISION):
        if isinstance(leaf, PureEvent):
            return upward(_randomized_response(ball(leaf.epsilon), ball(order)))
        if isinstance(leaf, LaplaceEvent):
            return upward(_laplace(ball(leaf.epsilon), ball(order)))
        if isinstance(leaf, GaussianEvent):
            return order / (2 * leaf.noise_multiplier**2)
        if isinstance(leaf, ZCdpEvent):
            return order * leaf.rho
        if isinstance(leaf, RenyiEvent):
            return _on_curve(leaf, order)
    return None


def _randomized_response(epsilon: Ball, order: Ball) -> Ball:
    # ln((e^(αε) + e^((1-α)ε)) / (1 + e^ε)) / (α-1), with e^(αε) taken out against overflow
    tail = (epsilon * (1 - 2 * order)).exp().log1p() - (-epsilon).exp().log1p()
    return epsilon + tail / (order - 1)


def _laplace(epsilon: Ball, order: Ball) -> Ball:
    # ln(α/(2α-1)·e^((α-1)ε) + (α-1)/(2α-1)·e^(-αε)) / (α-1), likewise
    remainder = (order - 1) * (epsilon * (1 - 2 * order)).expm1() / (2 * order - 1)
    return epsilon + remainder.log1p() / (order - 1)


def _on_curve(leaf: RenyiEvent, order: Fraction) -> Fraction | None:
    # (α-1)·D_α is convex in α and 0 at α = 1, so it lies below the chords of its upper bounds.
    left, below = Fraction(1), Fraction(0)
    for right, value in leaf.curve:
        above = (right - 1) * value
        if order <= right:
            return (below + (above - below) * (order - left) / (right - left)) / (order - 1)
        left, below = right, above
    return None


def composed_divergence(counts: Tally, order: Fraction) -> Fraction | None:
    """Add the divergences of all releases at one order; None if one of them is not bounded."""
    values = [(renyi_divergence(leaf, order), count) for leaf, count in counts.items()]
    if any(value is None for value, _ in values):
        return None
    return exact_sum(count * value for value, count in values if value is not None)


def from_renyi(order: Fraction, divergence: Fraction, delta: Fraction) -> Fraction:
    """Give the ε at δ of anything whose Rényi divergence of one order is bounded (accounting.convert)."""
    with working_precision(PRECISION):
        alpha = ball(order)
        saved = (1 - 1 / alpha).log() - (ball(delta).log() + alpha.log()) / (alpha - 1)
        return max(Fraction(0), upward(ball(divergence) + saved))


def renyi(counts: Tally, delta: Fraction) -> Fraction | None:
    """accounting.renyi: add divergences order by order, convert at the best order."""
    remaining, pure = slack(counts, delta), without_failures(counts)
    if not pure or remaining is None:
        return None
    return best_order(
        lambda order: composed_divergence(pure, order), remaining, _listed_orders(pure)
    )


def zero_concentrated(counts: Tally, delta: Fraction) -> Fraction | None:
    """accounting.zcdp: add ρ, where ε counts as ρ = ε²/2 and Gaussian noise as ρ = 1/(2σ²)."""
    remaining, pure = slack(counts, delta), without_failures(counts)
    rhos = [(_rho(leaf), count) for leaf, count in pure.items()]
    if not pure or remaining is None or any(rho is None for rho, _ in rhos):
        return None
    rho = exact_sum(count * rho for rho, count in rhos if rho is not None)
    return best_order(lambda order: order * rho, remaining)


def _rho(leaf: Leaf) -> Fraction | None:
    if isinstance(leaf, PureEvent | LaplaceEvent):
        return leaf.epsilon**2 / 2
    if isinstance(leaf, GaussianEvent):
        return 1 / (2 * leaf.noise_multiplier**2)
    return leaf.rho if isinstance(leaf, ZCdpEvent) else None


def _listed_orders(counts: Tally) -> tuple[Fraction, ...]:
    curves = [leaf.curve for leaf in counts if isinstance(leaf, RenyiEvent)]
    if not curves:
        return ()
    last = min(curve[-1][0] for curve in curves)
    return tuple({order for curve in curves for order, _ in curve if order <= last})


def best_order(
    divergence: Callable[[Fraction], Fraction | None],
    delta: Fraction,
    listed: tuple[Fraction, ...] = (),
) -> Fraction | None:
    """Give the least ε that was found over orders between 1.0001 and 1e15, and over `listed`."""

    def epsilon(order: Fraction) -> Fraction | None:
        value = divergence(order)
        return None if value is None else from_renyi(order, value, delta)

    def at(exponent: float) -> Fraction | None:
        return epsilon(1 + Fraction(2.0**exponent))

    def size(bound: Fraction | None) -> float:
        return math.inf if bound is None else float(bound)

    # Golden section over log2(α - 1): the function is unimodal for the families that are known.
    left, right = -13.0, 50.0
    inner, outer = right - _GOLDEN * (right - left), left + _GOLDEN * (right - left)
    low, high = at(inner), at(outer)
    values = [low, high, *(epsilon(order) for order in listed)]
    for _ in range(_STEPS):
        # Beyond the last listed order nothing is known: that side is never the better one.
        if high is None or size(low) <= size(high):
            right, outer, high = outer, inner, low
            inner = right - _GOLDEN * (right - left)
            low = at(inner)
            values.append(low)
        else:
            left, inner, low = inner, outer, high
            outer = left + _GOLDEN * (right - left)
            high = at(outer)
            values.append(high)
    return min((value for value in values if value is not None), default=None)


def gaussian(counts: Tally, delta: Fraction) -> Fraction | None:
    """accounting.gauss: Gaussian releases are one Gaussian release; its exact curve is inverted."""
    if not counts or delta <= 0:
        return None
    precision = Fraction(0)
    for leaf, count in counts.items():
        if not isinstance(leaf, GaussianEvent):
            return None
        precision += count / leaf.noise_multiplier**2
    return gaussian_epsilon(precision, delta)


def gaussian_epsilon(squared_shift: Fraction, delta: Fraction) -> Fraction:
    """Give the least ε (within 1e-9) at which N(0,1) and N(μ,1) are (ε, δ)-close, for given μ²."""
    fallback = best_order(lambda order: order * squared_shift / 2, delta)
    assert fallback is not None  # every order is bounded
    low, high = Fraction(0), fallback
    if _gaussian_fits(squared_shift, low, delta):
        return low
    while high - low > high / 10**9:
        middle = (low + high) / 2
        if _gaussian_fits(squared_shift, middle, delta):
            high = middle
        else:
            low = middle
    return high


def _gaussian_fits(squared_shift: Fraction, epsilon: Fraction, delta: Fraction) -> bool:
    with working_precision(PRECISION):
        root = ball(2).sqrt()
        shift = ball(squared_shift).sqrt()
        first = ((ball(epsilon) / shift - shift / 2) / root).erfc() / 2
        second = ((ball(epsilon) / shift + shift / 2) / root).erfc() / 2
        reached = first - ball(epsilon).exp() * second
        return bool(reached.is_finite() and reached <= ball(delta))
