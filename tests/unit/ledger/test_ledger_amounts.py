"""Amounts: budgets round down, charges round up, sums are exact."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secant.errors import UsageError
from secant.ledger.amounts import (
    DELTA_UNITS,
    EPSILON_UNITS,
    Budget,
    Charge,
    Spent,
    decimals,
    priced,
    total,
)
from secant.ledger.limits import Balance
from secant.noise.events import (
    ApproximateEvent,
    Composed,
    GaussianEvent,
    LaplaceEvent,
    PureEvent,
    Repeated,
)

positive = st.fractions(min_value=Fraction(1, EPSILON_UNITS), max_value=10**6)
probability = st.fractions(min_value=0, max_value=Fraction(99, 100))


@given(epsilon=positive, delta=probability)
def test_a_budget_is_never_more_and_a_charge_never_less_than_stated(
    epsilon: Fraction, delta: Fraction
) -> None:
    budget, charge = Budget.of(epsilon, delta), Charge.of("p", epsilon, delta)
    assert 0 <= epsilon - Fraction(budget.epsilon, EPSILON_UNITS) < Fraction(1, EPSILON_UNITS)
    assert 0 <= delta - Fraction(budget.delta, DELTA_UNITS) < Fraction(1, DELTA_UNITS)
    assert 0 <= Fraction(charge.epsilon, EPSILON_UNITS) - epsilon < Fraction(1, EPSILON_UNITS)
    assert 0 <= Fraction(charge.delta, DELTA_UNITS) - delta < Fraction(1, DELTA_UNITS)


def test_a_budget_is_read_as_it_was_written_and_a_charge_as_it_is() -> None:
    assert Budget.of(0.3) == Budget.of("0.3") == Budget.of(Decimal("0.3")) == Budget(3 * 10**8)
    assert Charge.of("p", "0.1").epsilon == 10**8
    # The float 0.1 is a little more than a tenth, and a mechanism that uses it costs that much.
    assert Charge.of("p", 0.1).epsilon == 10**8 + 1
    assert Charge.of("p", 0.5, 0.25) == Charge("p", 5 * 10**8, DELTA_UNITS // 4)


def test_the_smallest_charge_costs_a_unit() -> None:
    assert Charge.of("p", "1e-300", "1e-300") == Charge("p", 1, 1)


@pytest.mark.parametrize("kind", [Budget.of, lambda *amounts: Charge.of("p", *amounts)])
@pytest.mark.parametrize(
    ("amounts", "code"),
    [
        ((float("nan"),), "USE-002"),
        ((float("inf"),), "USE-002"),
        (("1e300",), "USE-002"),
        ((1e300,), "USE-002"),
        ((-1,), "USE-002"),
        (("-1e-300",), "USE-002"),
        (("one",), "USE-002"),
        ((None,), "USE-002"),
        ((True,), "USE-002"),
        (("1e999999999",), "USE-002"),
        ((1, 1), "USE-003"),
        ((1, 2), "USE-003"),
        ((1, -0.1), "USE-003"),
        ((1, float("nan")), "USE-003"),
    ],
)
def test_amounts_that_cannot_be_meant_are_refused(kind: Any, amounts: Any, code: str) -> None:
    with pytest.raises(UsageError) as caught:
        kind(*amounts)
    assert caught.value.code == code


@pytest.mark.parametrize("wrong", [{"epsilon": -1}, {"epsilon": 10**18 + 1}])
def test_ready_made_amounts_are_checked_too(wrong: dict[str, int]) -> None:
    with pytest.raises(UsageError):
        Budget(**wrong)
    with pytest.raises(UsageError):
        Charge("p", **wrong)
    with pytest.raises(UsageError):
        Budget(1, DELTA_UNITS)


def test_a_budget_too_small_to_be_kept_is_refused_and_zero_closes_a_protection() -> None:
    with pytest.raises(UsageError) as caught:
        Budget.of("1e-300")
    assert caught.value.code == "USE-002"
    assert Budget.of(0) == Budget(0, 0)


def test_an_event_is_charged_by_basic_composition() -> None:
    event = Composed([Repeated(LaplaceEvent("0.1"), 3), ApproximateEvent("1/3", "1e-9")])
    charge = Charge.of_event("p", event)
    assert (charge.epsilon, charge.delta, charge.event) == (633_333_334, 10**9, event)


def test_a_price_below_the_events_own_is_refused() -> None:
    own = ApproximateEvent("0.5", "1e-6")
    for price in (("0.4", "1e-6"), ("0.5", "1e-7"), ("0.4", "1e-7"), (0, 0)):
        with pytest.raises(UsageError) as caught:
            Charge.of("p", *price, event=own)
        assert caught.value.code == "USE-001"
    for price in (("0.5", "1e-6"), ("0.6", "1e-6"), ("0.4", "2e-6"), ("0.6", "1e-7")):
        assert Charge.of("p", *price, event=own).event == own
    # A Gaussian release has no (ε, δ) of its own: whoever states one has computed it.
    assert Charge.of("p", "0.1", "1e-9", event=GaussianEvent(60)).epsilon == 10**8


def test_a_price_alone_is_the_plainest_event() -> None:
    assert priced(0, 0) == Composed(())
    assert priced(10**8, 0) == PureEvent("0.1")
    assert priced(10**8, 10**12) == ApproximateEvent("0.1", "1e-6")
    assert priced(0, 10**12) == ApproximateEvent("1e-9", "1e-6")


def test_sums_are_by_protection() -> None:
    charges = [Charge("a", 1, 2), Charge("b", 3), Charge("a", 4, 5)]
    assert total(charges) == {"a": Spent(5, 7), "b": Spent(3, 0)}
    assert Spent(5, 7).minus(Spent(4, 5)) == Spent(1, 2)
    assert not Spent(5, 7).within(Budget(5, 6))
    assert not Spent(5, 7).within(Budget(4, 7))
    assert Spent(5, 7).within(Budget(5, 7))


def test_amounts_are_printed_exactly() -> None:
    assert decimals(10**9, 10**10) == {"epsilon": "1", "delta": "0.00000001"}
    assert decimals(1, 1) == {"epsilon": "0.000000001", "delta": "0.000000000000000001"}
    assert decimals(0, 0) == {"epsilon": "0", "delta": "0"}
    assert decimals(123 * 10**10, 0)["epsilon"] == "1230"


def test_what_remains_is_never_negative() -> None:
    account = Balance(Budget(5, 5), Spent(7, 3), Spent(7, 3))
    assert account.remaining == Budget(0, 2)
    assert account.to_dict()["remaining"] == {"epsilon": "0", "delta": "0.000000000000000002"}
