"""An account that slides: what charges come to within the worst stretch of time (ledger.window).

In: accounts, charges still to come, a budget, the stretch of the protection. Out: a reading, rounded up. Charges say of
which periods they are the price; one that says nothing counts in every stretch. Never here: a clock, or data.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import lru_cache
from math import ceil

from secant.ledger.amounts import DELTA_UNITS, EPSILON_UNITS, Budget, Charge, Spent
from secant.ledger.composition import Reading
from secant.ledger.state import Account, Price, gamma_of, merged, price_of
from secant.policy.windows import Span, Window, read_span

THEOREM = "ledger.window"


def read_sliding(
    accounts: Sequence[Account], new: Sequence[Charge], budget: Budget, window: Window
) -> Reading:
    """Read the stretch in which the charges come to most against a budget."""
    prices = merged(accounts)
    prices.update(price_of(charge) for charge in new)
    spans = {price: _span(price.span) if price.span else None for price in prices}
    kind = "time" if window.unit else "number"
    if any(span is not None and span.unit != kind for span in spans.values()):
        whole = _at(prices, spans, None, window)
        reason = "the protection hid stretches of another kind before: give it a new name"
        return Reading(whole, False, "", reason)
    dated = {span for span in spans.values() if span is not None}
    readings = [_at(prices, spans, first, window) for first in _starts(dated, window)]
    worst = Spent(
        max(s.epsilon for s in readings),
        max(s.delta for s in readings),
        max(s.gamma for s in readings),
    )
    return Reading(worst, worst.within(budget), THEOREM)


def _starts(spans: Iterable[Span], window: Window) -> list[int]:
    """Give where stretches begin that meet an end of some span, and a few beside; elsewhere nothing changes."""
    ends = {0}
    for span in spans:
        ends.add(span.start)
        if span.length is not None:
            ends.add(span.start + span.length)
    cell = window.cell
    cells = {
        start for end in ends for start in range((end - window.length) // cell - 1, end // cell + 2)
    }
    return [start * cell for start in cells]


def _at(
    prices: Counter[Price], spans: dict[Price, Span | None], first: int | None, window: Window
) -> Spent:
    """Add up what counts in one stretch; all of it where none is named. Rounded up at the end."""
    total, parts = Spent(), Fraction(0)
    for price, count in prices.items():
        span = spans[price]
        if span is None or first is None:
            whole = Spent(price.epsilon, price.delta, gamma_of(price))
        else:
            met = span.met(first, first + window.length)
            if met and not price.delta and not gamma_of(price):
                # Each period costs its part (stream.window).
                parts += Fraction(count * price.epsilon * met, span.priced)
                continue
            whole = _often(price, span, met)
        total = total.plus(Spent(count * whole.epsilon, count * whole.delta, count * whole.gamma))
    return total.plus(Spent(ceil(parts)))


def _often(price: Price, span: Span, met: int) -> Spent:
    """Give what a charge with a δ comes to for what moves in so many of its periods."""
    if not met:
        return Spent()
    often = -(-met // span.priced)
    delta = price.delta
    if often > 1:  # one after another: δ·(1 + e^ε + …), and e < 3
        power = ceil((often - 1) * price.epsilon / EPSILON_UNITS)
        delta = DELTA_UNITS if power > 100 else min(DELTA_UNITS, often * delta * 3**power)
    return Spent(often * price.epsilon, delta, often * gamma_of(price))


@lru_cache(maxsize=10_000)
def _span(text: str) -> Span:
    return read_span(json.loads(text))
