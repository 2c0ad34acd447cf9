"""What an account's charges cost together, by the composition that the policy chooses.

In: accounts, charges still to come, a budget. Out: a reading in ledger units, rounded up, and the
theorem that it rests on. Only theorems for adaptively chosen parameters are used here: an analyst
picks each ε after seeing answers.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from math import ceil, floor

from secant.errors import BudgetError
from secant.ledger.amounts import DELTA_UNITS, EPSILON_UNITS, Budget, Charge, Spent, priced
from secant.ledger.state import Account, Price, merged, price_of, spent_of
from secant.noise.events import (
    ApproximateEvent,
    Composed,
    ConcentratedEvent,
    Event,
    LaplaceEvent,
    PureEvent,
    Repeated,
    event_from_json,
)
from secant.records import frozen

BASIC = "basic"
TIGHT = "tight"
COMPOSITIONS = (BASIC, TIGHT)
MANY = 1_000
"""More different prices than this are gathered on a grid before the tight composition reads them."""
GATHER_BITS = 7
"""Binary digits of that grid: a price rises by less than 1 %, and 1e5 prices become a few hundred."""
NOTHING = Price(0, 0, "")
"""A release of public data only."""
NO_EVENT = Composed(())
_SUMS = 'random differential privacy does not compose adaptively; it needs composition = "basic"'


@frozen
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
        return Reading(plain, plain.within(budget), "accounting.basic")
    if plain.gamma:
        # Which release was the first is not kept, so nothing tighter than a sum holds (accounting.random).
        fresh = any(charge.gamma for charge in new)
        return Reading(
            plain, plain.within(budget) and not fresh, "" if fresh else "accounting.basic", _SUMS
        )
    # The accounting brings numpy along; a command that spends nothing does not wait for it.
    from secant.ledger.accounting.accountant import Accountant

    accountant = Accountant()
    history = _history(accounts, new)
    if not history:
        # The filters' part of δ is taken from the start, so that what remains can be relied on.
        aside = ceil(budget.delta * accountant.slack_share)
        return Reading(Spent(0, aside), True, "accounting.filter_basic")
    decision = accountant.fits(
        history,
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
    if spent.epsilon > plain.epsilon and not _odd(accounts):
        spent = Spent(plain.epsilon, spent.delta)  # the basic filter, without what gathering adds
    # The budget is a whole number of units, so rounding the reading up does not change the verdict.
    return Reading(spent, decision.fits, decision.total.theorem, decision.reason)


def surely_covered(
    accounts: Sequence[Account], new: Sequence[Charge], budget: Budget, composition: str
) -> bool:
    """Say yes only if `read` would say that it fits; quicker, for the time before ε runs short.

    The tight composition grants whatever its basic filter grants (accounting.filter_union). Sums of prices
    that were rounded up are no less than what that filter reads, if each price is its event's own.
    """
    plain = _sum(accounts, new)
    if composition == BASIC:
        return plain.within(budget)
    from secant.ledger.accounting.accountant import Accountant

    aside = ceil(budget.delta * Accountant().slack_share)
    if not plain.within(Budget(budget.epsilon, budget.delta - aside)):
        return False
    if _odd(accounts):
        return False
    # The basic filter reads concentrated releases by their prices only so far (accounting.both).
    concentrated = sum(account.running("concentrated", _concentrated).total for account in accounts)
    concentrated += sum(_concentrated(price_of(charge)) for charge in new)
    if concentrated > floor(budget.delta * concentrated_share()):
        return False
    return all(_own_price(price_of(charge)) for charge in new)


@lru_cache(maxsize=100_000)
def _concentrated(price: Price) -> int:
    """Give the δ by which concentrated releases of a price were priced, in ledger units, rounded up."""
    if not price.event:
        return 0
    from secant.ledger.accounting.tally import concentrated_deltas, tally

    return ceil(concentrated_deltas(tally([_event(price)])) * DELTA_UNITS)


def concentrated_share() -> Fraction:
    """Give the part of δ up to which concentrated releases are read by their prices."""
    from secant.ledger.accounting.filters import CONCENTRATED

    return CONCENTRATED


def _odd(accounts: Sequence[Account]) -> bool:
    """Say whether some price is not what basic composition asks for its event."""
    return any(account.running("odd", _odd_price).total for account in accounts)


def _odd_price(price: Price) -> int:
    """Count a price that is not what basic composition asks for its event."""
    return 0 if _own_price(price) else 1


def _sum(accounts: Sequence[Account], new: Sequence[Charge]) -> Spent:
    plain = spent_of(accounts)
    for charge in new:
        plain = plain.plus(charge)
    return plain


def _history(accounts: Sequence[Account], new: Sequence[Charge]) -> list[Event]:
    """Give all releases, equal ones together; those of many different prices by prices a little above.

    Rests on ledger.gather.
    """
    if sum(len(account.prices) for account in accounts) <= MANY:
        prices = merged(accounts)
        prices.update(price_of(charge) for charge in new)
        del prices[NOTHING]
        return [_repeated(_event(price), count) for price, count in prices.items()]
    events: Counter[Event] = Counter()
    for account in accounts:
        events.update(account.events(_gathered))
    # What is new is read as it is: it raises the reading by no more than its own price.
    events.update(_event(p) for charge in new if (p := price_of(charge)) != NOTHING)
    return [_repeated(event, count) for event, count in events.items() if event != NO_EVENT]


def _gathered(price: Price) -> Event:
    """Give an event that is no stronger than a price's own, with parameters on a coarse grid."""
    if price == NOTHING:
        return NO_EVENT
    event = _event(price)
    if isinstance(event, PureEvent):
        return PureEvent(_up(event.epsilon))
    if isinstance(event, LaplaceEvent):
        return LaplaceEvent(_up(event.epsilon))
    if isinstance(event, ApproximateEvent):
        return ApproximateEvent(_up(event.epsilon), min(Fraction(1), _up(event.delta)))
    if isinstance(event, ConcentratedEvent):
        return ConcentratedEvent(_up(event.rho), _up(event.epsilon), _up(event.delta))
    return event


def _up(value: Fraction) -> Fraction:
    """Round up to GATHER_BITS binary digits."""
    if not value:
        return value
    shift = value.numerator.bit_length() - value.denominator.bit_length() - GATHER_BITS
    grid = Fraction(2) ** shift
    return -(-value // grid) * grid


@lru_cache(maxsize=100_000)
def _own_price(price: Price) -> bool:
    """Say whether the price is what basic composition asks for the event."""
    if not price.event:
        return True
    event = _event(price)
    # A hundred thousand of these are read when a ledger is opened: no need to compose a single release.
    if isinstance(event, (PureEvent, LaplaceEvent, ApproximateEvent)):
        delta = event.delta if isinstance(event, ApproximateEvent) else Fraction(0)
        own_price = ceil(event.epsilon * EPSILON_UNITS), ceil(delta * DELTA_UNITS)
        return (price.epsilon, price.delta) == own_price
    try:
        own = Charge.of_event("", event)
    except BudgetError:  # it has no (ε, δ) of its own
        return False
    return (price.epsilon, price.delta) == (own.epsilon, own.delta)


def _repeated(event: Event, count: int) -> Event:
    return event if count == 1 else Repeated(event, count)


@lru_cache(maxsize=100_000)
def _event(price: Price) -> Event:
    """Give what was done for a price; with no more known, the price itself."""
    if price.event:
        return event_from_json(json.loads(price.event))
    return priced(price.epsilon, price.delta)
