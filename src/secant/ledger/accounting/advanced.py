"""Closed formulas for releases whose (ε, δ) are fixed in advance.

Rests on accounting.advanced, accounting.optimal, accounting.self_adaptive.

In: a tally and the δ of the whole. Out: the ε of the whole, rounded up, or None where a theorem
says nothing. The mechanisms may be chosen adaptively, their parameters and their number may not:
for those there are filters.
"""

from __future__ import annotations

from fractions import Fraction

from secant.ledger.accounting.tally import (
    PRECISION,
    EqualReleases,
    Tally,
    approximate_view,
    exact_sum,
    slack,
    upward,
)
from secant.noise.events import exact_count
from secant.numeric.ball import Ball, ball, working_precision

_MOST_TERMS = 200_000


def advanced_first(counts: Tally, delta: Fraction) -> Fraction | None:
    """accounting.advanced: √(2·ln(1/δ')·Σε²) + Σ ε·(e^ε - 1)."""
    view, remaining = approximate_view(counts), slack(counts, delta)
    if not view or remaining is None:
        return None
    with working_precision(PRECISION):
        drift = ball(0)
        for term in view:
            drift += ball(term.count * term.epsilon) * ball(term.epsilon).expm1()
        return _finite(drift + (2 * _squares(view) * -ball(remaining).log()).sqrt())


def self_adaptive(counts: Tally, delta: Fraction) -> Fraction | None:
    """accounting.self_adaptive: the least of Σε and two formulas, for equal and for unequal parameters."""
    view, remaining = approximate_view(counts), slack(counts, delta)
    if not view or remaining is None:
        return None
    with working_precision(PRECISION):
        drift = ball(0)
        for term in view:
            drift += ball(term.count * term.epsilon) * (ball(term.epsilon) / 2).tanh()
        variance = _squares(view)
        second = drift + (2 * variance * -ball(remaining).log()).sqrt()
        inner = ball(1).exp() + variance.sqrt() / ball(remaining)
        third = drift + (2 * variance * inner.log()).sqrt()
        first = exact_sum(term.count * term.epsilon for term in view)
        bounds = [value for value in (_finite(second), _finite(third)) if value is not None]
        return min([first, *bounds])


def advanced_second(counts: Tally, delta: Fraction) -> Fraction | None:
    """accounting.optimal: the optimum for equal (ε, δ); None for unequal ones."""
    view, remaining = approximate_view(counts), slack(counts, delta)
    if view is None or len(view) != 1 or remaining is None or view[0].count > _MOST_TERMS:
        return None
    return optimal_identical(view[0].epsilon, view[0].count, remaining)


def optimal_identical(epsilon: Fraction, count: int, delta: Fraction) -> Fraction:
    """Give the least ε' for which `count` ε-private releases are (ε', δ)-private together (accounting.optimal).

    It is attained by randomized response, whose privacy loss is (count - 2l)·ε with a binomial l,
    so the curve of δ is known exactly, and on each stretch between two losses it is inverted in
    closed form.
    """
    count = exact_count(count)
    with working_precision(PRECISION):
        lower_odds = ball(-epsilon).exp()
        mass = (ball(count) * -lower_odds.log1p()).exp()  # of the largest loss, count·ε
        other = mass * ball(-count * epsilon).exp()
        lower_odds_other = ball(epsilon).exp()
        head, other_head = ball(0), ball(0)
        for index in range(count // 2 + 1):
            # Masses of the losses above the next stretch, under either database.
            head += mass
            other_head += other
            level = count - 2 * (index + 1)
            reached = head - ball(max(0, level) * epsilon).exp() * other_head
            if not reached <= ball(delta):
                # Here δ is crossed, or may be: solve; what is left of the stretch is at most ε.
                solved = _finite(((head - ball(delta)) / other_head).log())
                return max(Fraction(0), min(solved or count * epsilon, count * epsilon))
            ratio = ball(Fraction(count - index, index + 1))
            mass *= ratio * lower_odds
            other *= ratio * lower_odds_other
        return Fraction(0)


def _squares(view: tuple[EqualReleases, ...]) -> Ball:
    return ball(exact_sum(term.count * term.epsilon**2 for term in view))


def _finite(value: Ball) -> Fraction | None:
    return max(Fraction(0), upward(value)) if value.is_finite() else None
