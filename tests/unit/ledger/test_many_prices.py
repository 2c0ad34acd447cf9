"""A budget spent in very many different prices is read from a few hundred, and never too low (ledger.gather)."""

import random
from fractions import Fraction

import pytest

from secant.ledger import composition
from secant.ledger.amounts import Budget, Charge
from secant.ledger.composition import TIGHT, read, surely_covered
from secant.ledger.state import Account, price_of
from secant.noise.events import ApproximateEvent, LaplaceEvent, PureEvent


def charge(draw):
    epsilon = Fraction(draw.randint(1, 10**6), 10**8)
    kind = draw.randrange(3)
    if kind == 2:
        delta = Fraction(draw.randint(1, 1000), 10**15)
        return Charge.of("p", epsilon, delta, event=ApproximateEvent(epsilon, delta))
    event = (PureEvent, LaplaceEvent)[kind](epsilon)
    return Charge.of("p", epsilon, event=event)


def spent_in(charges):
    account = Account()
    for one in charges:
        account.change(price_of(one), 1)
    return account


BUDGET = Budget.of(50, "1e-6")


@pytest.fixture(scope="module")
def charges():
    draw = random.Random(7)
    return [charge(draw) for _ in range(400)]


def readings(charges, patch, many, new=()):
    patch.setattr(composition, "MANY", many)
    return read([spent_in(charges)], list(new), BUDGET, TIGHT).spent


def test_gathered_prices_are_read_no_lower_and_hardly_higher(charges, monkeypatch):
    exact = readings(charges, monkeypatch, 10**6)
    gathered = readings(charges, monkeypatch, 10)
    assert exact.epsilon <= gathered.epsilon <= exact.epsilon * Fraction(101, 100)
    assert exact.delta <= gathered.delta <= exact.delta * Fraction(101, 100)


def test_prices_rounded_down_would_be_noticed(charges, monkeypatch):
    exact = readings(charges, monkeypatch, 10**6)
    up = composition._up
    monkeypatch.setattr(composition, "_up", lambda value: up(value) * Fraction(99, 100))
    assert readings(charges, monkeypatch, 10).epsilon < exact.epsilon


def test_what_is_new_costs_no_more_than_its_price(charges, monkeypatch):
    before = readings(charges, monkeypatch, 10)
    new = Charge.of("p", "0.3", event=PureEvent("0.3"))
    after = readings(charges, monkeypatch, 10, [new])
    assert 0 < after.epsilon - before.epsilon <= new.epsilon


def test_a_returned_charge_leaves_no_trace(charges, monkeypatch):
    monkeypatch.setattr(composition, "MANY", 10)
    account = spent_in(charges)
    before = read([account], [], BUDGET, TIGHT).spent
    extra = price_of(Charge.of("p", "0.123", event=PureEvent("0.123")))
    account.change(extra, 1)
    assert read([account], [], BUDGET, TIGHT).spent.epsilon > before.epsilon
    account.change(extra, -1)
    assert read([account], [], BUDGET, TIGHT).spent == before


def test_few_different_events_are_left(charges, monkeypatch):
    account = spent_in(charges)
    assert len({price.epsilon for price in account.prices}) > 300
    assert len({e.epsilon for e in account.events(composition._gathered)}) < 330
    many = spent_in(
        Charge.of("p", Fraction(i, 10**7), event=PureEvent(Fraction(i, 10**7)))
        for i in range(10_000, 13_000)
    )
    assert len(many.prices) == 3_000
    assert len(many.events(composition._gathered)) < 60


def test_own_prices_are_recognized_without_composing(charges):
    assert surely_covered([spent_in(charges)], [], BUDGET, TIGHT)
    cheap = price_of(charges[0])._replace(epsilon=1)
    assert not composition._own_price(cheap)
    assert all(composition._own_price(price_of(c)) for c in charges)
