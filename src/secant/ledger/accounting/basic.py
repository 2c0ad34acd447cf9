"""Basic composition: ε and δ add, for mechanisms and parameters chosen adaptively (accounting.basic).

In: events. Out: exact sums, never rounded. A release without an (ε, δ) of its own is refused.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from secant.errors import BudgetError
from secant.ledger.accounting.tally import Tally, approximate_view, by_price, exact_sum, tally
from secant.noise.events import Event


def basic_composition(events: Iterable[Event]) -> tuple[Fraction, Fraction]:
    """Give the exact (ε, δ) of everything that was done.

    >>> from secant.noise.events import ApproximateEvent, PureEvent, Repeated
    >>> basic_composition([Repeated(PureEvent("0.1"), 3), ApproximateEvent("0.2", "1e-6")])
    (Fraction(1, 2), Fraction(1, 1000000))
    """
    pair = basic_sums(by_price(tally(events)))
    if pair is None:
        raise BudgetError(
            "BUD-005",
            "basic composition needs releases with an epsilon and a delta of their own",
            hint='choose composition = "tight" for this protection',
        )
    return pair


def basic_sums(counts: Tally) -> tuple[Fraction, Fraction] | None:
    """Give (Σε, Σδ), or None if a release has no (ε, δ) of its own."""
    view = approximate_view(counts)
    if view is None:
        return None
    epsilon = exact_sum(term.count * term.epsilon for term in view)
    # A probability above one says no more than one.
    return epsilon, min(Fraction(1), exact_sum(term.count * term.delta for term in view))
