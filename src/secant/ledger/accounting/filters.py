"""Filters and odometers: budgets that hold although every ε is chosen after seeing answers.

In: the tally of everything so far, the release in question included, and the budget. Out: a reading
in ε; a release may run if a reading stays within the budget. Which filters are used, the share of δ
that they take and the order of the Rényi filter follow from the budget alone, so they are fixed
before the first release; a budget that is changed in view of answers voids that.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

from secant.ledger.accounting.concentrated import (
    composed_divergence,
    from_renyi,
    gaussian,
)
from secant.ledger.accounting.tally import (
    PRECISION,
    Tally,
    approximate_view,
    by_price,
    by_rho,
    concentrated_deltas,
    exact_sum,
    own_deltas,
    upward,
    without_failures,
)
from secant.numeric.ball import ball, working_precision
from secant.records import frozen

# α - 1 from 2^-6 to 2^31 in eight even steps an octave: exact, and the same on every machine.
FILTER_ORDERS: tuple[Fraction, ...] = tuple(
    1 + Fraction(8 + eighth, 8) * Fraction(2) ** octave
    for octave in range(-6, 31)
    for eighth in range(8)
)
ODOMETER_ORDERS: tuple[Fraction, ...] = tuple(
    1 + Fraction(2) ** octave for octave in range(-4, 28, 2)
)


CONCENTRATED = Fraction(1, 4)
"""The part of a budget's δ up to which filters of (ε, δ) read concentrated releases by their prices.

Rests on accounting.both.
"""


@frozen
class Filter:
    """A rule that says how much of an ε is used, whatever the parameters depended on."""

    theorem: str
    uses_slack: bool
    by_rho: bool
    """Whether it reads concentrated releases by their ρ; else by the (ε, δ) that they were priced at."""
    reading: Callable[[Tally, Fraction, Fraction], Fraction | None]
    """(tally without failures, ε of the budget, δ of this filter) -> ε used, rounded up."""


def _basic_reading(counts: Tally, epsilon: Fraction, delta: Fraction) -> Fraction | None:
    """accounting.filter_basic: Σε."""
    view = approximate_view(counts)
    return None if view is None else exact_sum(term.count * term.epsilon for term in view)


def _advanced_reading(counts: Tally, epsilon: Fraction, delta: Fraction) -> Fraction | None:
    """accounting.filter_adv: Σε²/2 + √(2·ln(1/δ')·Σε²)."""
    view = approximate_view(counts)
    if view is None or delta <= 0:
        return None
    squares = exact_sum(term.count * term.epsilon**2 for term in view)
    with working_precision(PRECISION):
        return upward(ball(squares) / 2 + (2 * ball(squares) * -ball(delta).log()).sqrt())


def _renyi_reading(counts: Tally, epsilon: Fraction, delta: Fraction) -> Fraction | None:
    """accounting.filter_renyi: divergences added at the one order that the budget fixes, then converted."""
    if delta <= 0 or epsilon <= 0:
        return None
    order = filter_order(epsilon, delta)
    total = composed_divergence(counts, order)
    return None if total is None else from_renyi(order, total, delta)


def _gaussian_reading(counts: Tally, epsilon: Fraction, delta: Fraction) -> Fraction | None:
    """accounting.filter_gauss: Gaussian releases only; Σ1/σ² adds, and the exact curve is inverted."""
    return gaussian(counts, delta)


FILTERS: tuple[Filter, ...] = (
    Filter("accounting.filter_basic", False, False, _basic_reading),
    Filter("accounting.filter_adv", True, False, _advanced_reading),
    Filter("accounting.filter_renyi", True, True, _renyi_reading),
    Filter("accounting.filter_gauss", True, True, _gaussian_reading),
)


@lru_cache(maxsize=1024)
def filter_order(epsilon: Fraction, delta: Fraction) -> Fraction:
    """Give the order at which a budget allows the largest Σρ; it depends on nothing else."""
    logarithm = math.log(delta.numerator) - math.log(delta.denominator)  # δ may be no float

    def allowed(order: Fraction) -> float:
        alpha, less = float(order), float(order - 1)
        gained = (logarithm + math.log(alpha)) / less - math.log(less / alpha)
        return (float(epsilon) + gained) / alpha

    return max(FILTER_ORDERS, key=allowed)


def filter_reading(
    counts: Tally,
    *,
    epsilon: Fraction,
    delta: Fraction,
    theorems: tuple[str, ...],
    share: Fraction,
) -> tuple[Fraction, Fraction, str] | None:
    """Give (ε used, δ used at most, theorem) by the best of the chosen filters (accounting.filter_union).

    `share` of δ is set aside for the filters that need it, in equal parts; the rest is for the
    releases' own δ. None if no filter can read this history or the releases' own δ exceed the rest.
    Concentrated releases are paid for by ρ; as long as their prices' δ stays within CONCENTRATED they
    are read by price as well, and that δ counts as their own (accounting.both).
    """
    chosen = [rule for rule in FILTERS if rule.theorem in theorems]
    hungry = sum(rule.uses_slack for rule in chosen)
    aside = delta * share if hungry else Fraction(0)
    paid, most = concentrated_deltas(counts), delta * CONCENTRATED
    own = own_deltas(counts) + min(paid, most)
    if own > delta - aside:
        return None
    views = {True: without_failures(by_rho(counts)), False: without_failures(by_price(counts))}
    readings: list[tuple[Fraction, str]] = []
    for rule in chosen:
        if paid > most and not rule.by_rho:
            continue
        slack = aside / hungry if rule.uses_slack else Fraction(0)
        reading = rule.reading(views[rule.by_rho], epsilon, slack)
        if reading is not None:
            readings.append((reading, rule.theorem))
    if not readings:
        return None
    used, theorem = min(readings)
    return used, own + aside, theorem


def odometer(counts: Tally, *, delta: Fraction, share: Fraction) -> tuple[Fraction, str] | None:
    """accounting.odometer: a running ε that the privacy loss exceeds at no time, but for probability δ.

    It is no (ε, δ) fixed in advance: the reading itself depends on the answers. None if it cannot
    be read, or if the releases' own δ exceed their part.
    """
    pure, own = without_failures(by_rho(counts)), own_deltas(counts)
    aside = delta * share
    if own > delta - aside:
        return None
    readings: list[tuple[Fraction, str]] = []
    sum_of_all = _basic_reading(pure, Fraction(0), Fraction(0))
    if sum_of_all is not None:
        readings.append((sum_of_all, "accounting.filter_basic"))
    if aside > 0:
        for order in ODOMETER_ORDERS:
            total = composed_divergence(pure, order)
            if total is not None:
                readings.append((_exceeded_at_no_time(order, total, aside), "accounting.odometer"))
    return min(readings, default=None)


def _exceeded_at_no_time(order: Fraction, total: Fraction, delta: Fraction) -> Fraction:
    with working_precision(PRECISION):
        price = (ball(len(ODOMETER_ORDERS)) / ball(delta)).log() / ball(order - 1)
        return upward(ball(total) + price)
