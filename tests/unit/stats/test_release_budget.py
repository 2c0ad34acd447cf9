"""Who pays: the charge is durable before a value is read, and stays whatever the values do."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from secant import stats
from secant.errors import BudgetError, UsageError
from secant.ledger.amounts import Budget
from secant.ledger.store import Ledger
from secant.policy.policy import Protection
from secant.stats.budget import Allowance

CUSTOMERS = Protection(
    "customers", "unit", Fraction(2), unit=("customer", "id"), limits={"orders": 5}
)


@pytest.fixture
def ledger(tmp_path):
    with Ledger.open(tmp_path / "ledger", {"customers": Budget.of(2)}) as opened:
        yield opened


@pytest.fixture
def allowance(ledger):
    return Allowance(CUSTOMERS, lambda: ledger, not_covered=("rows",), analyst="ann")


def spent(ledger) -> Fraction:
    return Fraction(ledger.balances()["customers"].spent.epsilon, 10**9)


class Watched:
    """A column that notes what was spent when it was read."""

    def __init__(self, ledger, values=(1.0, 2.0, 3.0)):
        self.ledger, self.values, self.at = ledger, values, None

    def __array__(self, *_, **__):
        self.at = spent(self.ledger), self.ledger.history()[-1].status
        return np.array(self.values, dtype=float)


def test_the_charge_is_there_when_the_data_are_read(ledger, allowance):
    column = Watched(ledger)
    found = stats.median(column, epsilon=0.5, bounds=(0, 4), budget=allowance)
    assert column.at == (Fraction(1, 2), "sent")
    (release,) = ledger.history()
    assert release.release_id == found.cost.release_id
    assert release.analyst == "ann"
    assert found.cost.charged_to == "customers"
    assert spent(ledger) == Fraction(1, 2)


def test_what_the_guarantee_takes_on_trust_is_said(allowance):
    found = stats.mean([1.0], epsilon="0.25", bounds=(0, 4), budget=allowance)
    assert "customer.id" in str(found)
    assert "rows" in found.guarantee.assumptions[1]
    assert "charged to customers" in str(found)


@pytest.mark.parametrize("values", [[1.0, float("nan")], [float("inf")]])
def test_no_value_makes_data_unusable(ledger, allowance, values):
    stats.median(Watched(ledger, values), epsilon=0.5, bounds=(0, 4), budget=allowance)
    assert spent(ledger) == Fraction(1, 2)


@pytest.mark.parametrize(
    "change",
    [{"epsilon": -1}, {"bounds": (4, 0)}, {"mechanism": "magic"}, {"neighbors": "replace"}],
    ids=str,
)
def test_bad_terms_cost_nothing(ledger, allowance, change):
    column = Watched(ledger)
    with pytest.raises(UsageError):
        stats.median(column, **{"epsilon": 1, "bounds": (0, 4), "budget": allowance, **change})
    assert spent(ledger) == 0
    assert column.at is None


def test_without_budget_left_the_data_stay_unread(ledger, allowance):
    stats.count([1], epsilon=2, budget=allowance)
    column = Watched(ledger)
    with pytest.raises(BudgetError) as caught:
        stats.median(column, epsilon=0.1, bounds=(0, 4), budget=allowance)
    assert caught.value.code == "BUD-001"
    assert column.at is None


def test_a_function_that_is_aggregated_sees_rows_after_the_charge(ledger, allowance):
    seen = []

    def function(rows):
        seen.append(spent(ledger))
        return 1.0

    stats.aggregate(function, range(100), epsilon=1, bounds=(0, 2), blocks=5, budget=allowance)
    assert set(seen) == {1}


def test_every_statistic_is_charged(ledger, allowance):
    price = "0.125"
    for statistic in (stats.mean, stats.trimmed_mean, stats.variance, stats.minimum, stats.maximum):
        statistic([1.0], epsilon=price, bounds=(0, 4), budget=allowance)
    stats.quantile([1.0], 0.3, epsilon=price, bounds=(0, 4), budget=allowance)
    stats.triangles([(0, 1)], vertices=4, epsilon=price, budget=allowance)
    assert spent(ledger) == Fraction(7, 8)


def test_the_relation_follows_the_protection(ledger):
    rows = Protection("customers", "rows", Fraction(2), replace=True)
    found = stats.median(
        [1.0, 2.0], epsilon=1, bounds=(0, 4), budget=Allowance(rows, lambda: ledger)
    )
    assert found.guarantee.neighbors == "replace"
    with pytest.raises(UsageError, match="replace"):
        stats.median(
            [1.0], epsilon=1, bounds=(0, 4), neighbors="add-remove",
            budget=Allowance(rows, lambda: ledger),
        )  # fmt: skip


def test_a_protection_of_cells_cannot_pay(ledger):
    cells = replace(CUSTOMERS, kind="cells", unit=None)
    with pytest.raises(UsageError) as caught:
        stats.median([1.0], epsilon=1, bounds=(0, 4), budget=Allowance(cells, lambda: ledger))
    assert caught.value.code == "USE-005"


def test_a_bare_protection_cannot_pay():
    with pytest.raises(UsageError, match="open connection"):
        stats.median([1.0], epsilon=1, bounds=(0, 4), budget=CUSTOMERS)
