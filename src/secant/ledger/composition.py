"""What an account's charges cost together, by the composition that the policy chooses.

In: accounts, charges still to come, a budget. Out: a reading in ledger units, rounded up, and the
theorem that it rests on. Only theorems for adaptively chosen parameters are used here: an analyst
picks each ε after seeing answers.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import ceil

from secant.errors import BudgetError
from secant.ledger.amounts import DELTA_UNITS, EPSILON_UNITS, Budget, Charge, Spent, priced
from secant.ledger.state import Account, Price, merged, price_of, spent_of
from secant.terms.events import Event, Repeated, event_from_json

BASIC = "basic"
TIGHT = "tight"
COMPOSITIONS = (BASIC, TIGHT)
_SUMS = 'random differential privacy does not compose adaptively; it needs composition = "basic"'


@dataclass(frozen=True, slots=True)
class Reading:
    """How much of a budget is used, and whether that is within it."""

    spent: Spent
    fits: bool
    theorem: str
    reason: str = ""


def read(
    accounts: Sequence[Account], new: Sequence[Charge], budget: Budget, composition: str
) -> Reading:
    """Read the accounts and the new charges against a budget."""
    plain = _sum(accounts, new)
    if composition == BASIC or not budget.epsilon:
        return Reading(plain, plain.within(budget), "A-BASIC")
    if plain.gamma:
        # Which release was the first is not kept, so nothing tighter than a sum holds (A-RANDOM).
        fresh = any(charge.gamma for charge in new)
        return Reading(plain, plain.within(budget) and not fresh, "" if fresh else "A-BASIC", _SUMS)
    # The accounting brings numpy along; a command that spends nothing does not wait for it.
    from secant.ledger.accounting.accountant import Accountant

    accountant = Accountant()
    prices = _prices(accounts, new)
    if not prices:
        # The filters' part of δ is taken from the start, so that what remains can be relied on.
        aside = ceil(budget.delta * accountant.slack_share)
        return Reading(Spent(0, aside), True, "A-FILTER-BASIC")
    decision = accountant.fits(
        [_repeated(price, count) for price, count in prices.items()],
        [],
        epsilon_budget=Fraction(budget.epsilon, EPSILON_UNITS),
        delta_budget=Fraction(budget.delta, DELTA_UNITS),
        adaptive=True,
    )
    if decision.total is None:
        return Reading(plain, False, "", decision.reason)
    spent = Spent(
        ceil(decision.total.epsilon * EPSILON_UNITS), ceil(decision.total.delta * DELTA_UNITS)
    )
    # The budget is a whole number of units, so rounding the reading up does not change the verdict.
    return Reading(spent, decision.fits, decision.total.theorem, decision.reason)


def surely_covered(
    accounts: Sequence[Account], new: Sequence[Charge], budget: Budget, composition: str
) -> bool:
    """Say yes only if `read` would say that it fits; quicker, for the time before ε runs short.

    The tight composition grants whatever its basic filter grants (A-FILTER-UNION). Sums of prices
    that were rounded up are no less than what that filter reads, if each price is its event's own.
    """
    plain = _sum(accounts, new)
    if composition == BASIC:
        return plain.within(budget)
    from secant.ledger.accounting.accountant import Accountant

    aside = ceil(budget.delta * Accountant().slack_share)
    if not plain.within(Budget(budget.epsilon, budget.delta - aside)):
        return False
    if any(account.running("odd", _odd_price).total for account in accounts):
        return False
    return all(_own_price(price_of(charge)) for charge in new)


def _odd_price(price: Price) -> int:
    """Count a price that is not what basic composition asks for its event."""
    return 0 if _own_price(price) else 1


def _sum(accounts: Sequence[Account], new: Sequence[Charge]) -> Spent:
    plain = spent_of(accounts)
    for charge in new:
        plain = plain.plus(charge)
    return plain


def _prices(accounts: Sequence[Account], new: Sequence[Charge]) -> Counter[Price]:
    prices = merged(accounts)
    prices.update(price_of(charge) for charge in new)
    del prices[Price(0, 0, "")]  # a release of public data only
    return prices


@lru_cache(maxsize=100_000)
def _own_price(price: Price) -> bool:
    """Say whether the price is what basic composition asks for the event."""
    if not price.event:
        return True
    try:
        own = Charge.of_event("", _event(price))
    except BudgetError:  # it has no (ε, δ) of its own
        return False
    return (price.epsilon, price.delta) == (own.epsilon, own.delta)


def _repeated(price: Price, count: int) -> Event:
    event = _event(price)
    return event if count == 1 else Repeated(event, count)


@lru_cache(maxsize=100_000)
def _event(price: Price) -> Event:
    """Give what was done for a price; with no more known, the price itself."""
    if price.event:
        return event_from_json(json.loads(price.event))
    return priced(price.epsilon, price.delta)
