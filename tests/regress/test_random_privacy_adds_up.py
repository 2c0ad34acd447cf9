"""Random differential privacy: γ was not counted, and an estimate of one lambda served another.

Three releases with γ = 0.4 were accepted; noise was a million times too small. And a promise with individual
limits was the largest of those who were there.
"""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import secant
from secant.blackbox import ACCEPTED, release, sample_sensitivity, sampling, uniform
from secant.cli import main
from secant.errors import BudgetError, PolicyError, Refused, UsageError
from secant.ledger import Budget, Charge, Ledger
from secant.ledger import state as state_module
from secant.noise.events import Composed, PureEvent, RandomEvent, Repeated
from secant.policy.policy import Protection
from secant.stats import bounded, bounded_pair
from secant.stats.budget import Allowance

DATA = np.linspace(0, 1, 20)
FACTOR = 1.0


def allowance(ledger: Ledger, gamma: str = "0.9") -> Allowance:
    people = Protection(
        "people", "rows", Fraction(3), tables=("people",), replace=True, gamma=Fraction(gamma)
    )
    return Allowance(people, lambda: ledger, accept=(ACCEPTED,))


def mean(records: Any) -> float:
    return float(records.mean())


def ask(ledger: Ledger, gamma: str) -> None:
    release(mean, DATA, uniform(), epsilon=1, gamma=gamma, workers=0, budget=allowance(ledger))


def granted(path: Path, budget: Budget, gamma: str) -> int:
    """Give how many of three releases are granted."""
    with Ledger.open(path, {"people": budget}) as ledger:
        for number in range(3):
            try:
                ask(ledger, gamma)
            except BudgetError as error:
                return number if "asked for ε 1, γ" in error.details[0] else -1
    return 3


# --- γ is part of the budget ---------------------------------------------------------------------


def test_shares_of_databases_add_up(tmp_path: Path) -> None:
    assert granted(tmp_path / "a.ledger", Budget.of(4, 0, "0.5"), "0.4") == 1
    assert granted(tmp_path / "b.ledger", Budget.of(4, 0, "0.8"), "0.4") == 2
    assert granted(tmp_path / "c.ledger", Budget.of(4, 0, 0), "0.4") == 0


def test_planted_a_ledger_that_does_not_count_shares(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Charge, "gamma", 0)
    monkeypatch.setattr(state_module, "gamma_of", lambda price: 0)
    assert granted(tmp_path / "a.ledger", Budget.of(4, 0, "0.5"), "0.4") == 3


def test_balances_and_statements_tell_the_share(tmp_path: Path) -> None:
    path, budgets = tmp_path / "shop.ledger", {"people": Budget.of(4, 0, "0.9")}
    with Ledger.open(path, budgets) as ledger:
        ask(ledger, "0.4")
        account = ledger.balances()["people"]
        assert account.spent.gamma == 4 * 10**17
        assert account.remaining == Budget.of(3, 0, "0.5")
        assert account.to_dict()["spent"]["gamma"] == "0.4"
        assert "γ 0.9" in account.statement()
        assert "random differential privacy" in account.statement()
    with Ledger.open(path, {"people": Budget.of(4)}) as ledger:  # the owner allows it no more
        assert "random differential privacy" in ledger.balances()["people"].statement()
        with pytest.raises(BudgetError) as caught:
            ledger.reserve([Charge.of("people", 1)])
        assert caught.value.code == "BUD-001"


def test_a_share_inside_of_other_events_counts(tmp_path: Path) -> None:
    inner = RandomEvent("0.1", 0, "0.2")
    event = Composed([PureEvent("0.1"), Repeated(inner, 2)])
    with Ledger.open(tmp_path / "a.ledger", {"people": Budget.of(4, 0, "0.5")}) as ledger:
        charge = Charge.of("people", "0.3", event=event)
        assert charge.gamma == 4 * 10**17
        ledger.reserve([charge]).mark_sent()
        with pytest.raises(BudgetError):
            ledger.reserve([charge])


def test_a_summary_keeps_the_share(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_module, "SUMMARY_INTERVAL", 3)
    budgets = {"people": Budget.of(4, 0, "0.9")}
    with Ledger.open(tmp_path / "a.ledger", budgets) as ledger:
        ask(ledger, "0.4")
        assert ledger._state.summary_at
    with Ledger.open(tmp_path / "a.ledger", budgets) as ledger:
        assert ledger.balances()["people"].spent.gamma == 4 * 10**17
        ledger.verify()


def test_tight_composition_takes_no_random_release(tmp_path: Path) -> None:
    budgets = {"people": Budget.of(4, "1e-6", "0.9")}
    with Ledger.open(tmp_path / "a.ledger", budgets) as ledger:
        with pytest.raises(BudgetError) as caught:
            ask(ledger, "0.4")
        assert 'composition = "basic"' in caught.value.details[0]
    basic = {"compositions": {"people": "basic"}}
    with Ledger.open(tmp_path / "a.ledger", budgets, **basic) as ledger:
        ask(ledger, "0.4")
    with Ledger.open(tmp_path / "a.ledger", budgets) as ledger:  # one is there already: sums hold
        assert ledger.balances()["people"].theorem == "accounting.basic"
        ledger.reserve([Charge.of("people", 3)]).mark_sent()
        with pytest.raises(BudgetError):
            ledger.reserve([Charge.of("people", "0.1")])


POLICY = """
accept = ["random differential privacy"]
[database]
source = "duckdb:shop.duckdb"
[protections.people]
kind = "rows"
tables = ["people"]
epsilon = 4
{gamma}
"""


def test_the_owner_allows_a_share_in_the_policy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import duckdb

    with duckdb.connect(str(tmp_path / "shop.duckdb")) as connection:
        connection.execute("CREATE TABLE people AS SELECT range AS id FROM range(50)")
    file = tmp_path / "policy.toml"
    file.write_text(POLICY.format(gamma=""))
    options: dict[str, Any] = {"epsilon": 1, "gamma": "0.2", "workers": 0}
    with secant.connect(policy=file) as db, pytest.raises(Refused, match="no share gamma"):
        release(mean, DATA, uniform(), budget=db.protection("people"), **options)
    file.write_text(POLICY.format(gamma="gamma = 0.25"))
    with secant.connect(policy=file) as db:
        release(mean, DATA, uniform(), budget=db.protection("people"), **options)
        with pytest.raises(BudgetError):
            release(mean, DATA, uniform(), budget=db.protection("people"), **options)
        told = db.budget["people"].to_dict()
        assert (told["spent"]["gamma"], told["remaining"]["gamma"]) == (0.2, 0.05)
    assert main(["ledger", "--policy", str(file)]) == 0
    assert "γ 0.2 of 0.25 spent (random differential privacy)" in capsys.readouterr().out
    for wrong in ("gamma = 1", "gamma = -0.1", 'gamma = "much"'):
        file.write_text(POLICY.format(gamma=wrong))
        with pytest.raises(PolicyError):
            secant.load_policy(file)


# --- an estimate belongs to a function -----------------------------------------------------------


def times(factor: float) -> Any:
    return lambda records: factor * float(records.mean())


class Scaled:
    def __init__(self, factor: float) -> None:
        self.factor = factor

    def __call__(self, records: Any) -> float:
        return self.factor * float(records.mean())


def with_default(factor: float) -> Any:
    def scaled(records: Any, by: float = factor) -> float:
        return by * float(records.mean())

    return scaled


def by_global(records: Any) -> float:
    return FACTOR * float(records.mean())


def multiply(factor: float, records: Any) -> float:
    return factor * float(records.mean())


PAIRS: dict[str, Any] = {
    "a closure": times,
    "a default": with_default,
    "an object": Scaled,
    "a partial": lambda factor: partial(multiply, factor),
    "a method": lambda factor: Scaled(factor).__call__,
    "a constant": lambda factor: (
        (lambda r: 1.0 * float(r.mean())) if factor == 1 else (lambda r: 1e6 * float(r.mean()))
    ),
}


def estimated(function: Any, **options: Any) -> Any:
    chosen = {"n": 20, "gamma": "0.1", "workers": 0, **options}
    return sample_sensitivity(function, uniform(), **chosen)


def used(function: Any, estimate: Any) -> Any:
    return release(function, DATA, estimate, epsilon=1, workers=0)


@pytest.mark.parametrize("make", PAIRS.values(), ids=list(PAIRS))
def test_an_estimate_serves_its_own_function_only(make: Any) -> None:
    estimate = estimated(make(1.0))
    used(make(1.0), estimate)  # the same code with the same values is the same function
    with pytest.raises(UsageError, match="made for another function"):
        used(make(1e6), estimate)


def test_a_global_that_changed_makes_another_function(monkeypatch: pytest.MonkeyPatch) -> None:
    estimate = estimated(by_global)
    used(by_global, estimate)
    monkeypatch.setitem(globals(), "FACTOR", 1e6)
    with pytest.raises(UsageError, match="made for another function"):
        used(by_global, estimate)


def test_a_function_may_reach_an_installed_module() -> None:
    # Whatever named `np` was taken for unknown, and its estimate refused.
    estimate = estimated(lambda records: float(np.mean(records)))
    used(lambda records: float(np.mean(records)), estimate)
    with pytest.raises(UsageError, match="made for another function"):
        used(lambda records: float(np.median(records)), estimate)


def test_samples_are_evaluated_again(monkeypatch: pytest.MonkeyPatch) -> None:
    # Even if the code looked the same, results on sampled records tell.
    monkeypatch.setattr(sampling, "fingerprint", lambda function: "same")
    estimate = estimated(times(1.0))
    used(times(1.0), estimate)
    with pytest.raises(UsageError, match="made for another function"):
        used(times(1e6), estimate)
    # The same distances, and yet another function.
    with pytest.raises(UsageError, match="made for another function"):
        used(lambda records: float(records.mean()) + 1, estimate)


def test_planted_an_estimate_that_belongs_to_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling, "fingerprint", lambda function: "same")
    monkeypatch.setattr(sampling, "_agrees", lambda *arguments: True)
    found = used(times(1e6), estimated(times(1.0)))
    assert found.sensitivity.estimate < 1  # what moves it by up to 50,000 gets noise of about 1


def test_a_function_that_cannot_be_told_from_others_needs_its_own_samples() -> None:
    hidden = np.random.default_rng(1)  # what it holds is not seen

    def function(records: Any) -> float:
        return float(records.mean()) + 0 * len(str(type(hidden)))

    estimate = estimated(function)
    assert estimate.code is None
    with pytest.raises(UsageError, match="cannot be told"):
        used(function, estimate)
    release(function, DATA, uniform(), epsilon=1, gamma="0.1", workers=0)


def test_a_state_file_belongs_to_a_function(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "mean.run"
    first = estimated(times(1.0), state=file)
    assert estimated(times(1.0), state=file).distances == first.distances
    with pytest.raises(UsageError) as caught:
        estimated(times(1e6), state=file)
    assert caught.value.code == "USE-009"
    monkeypatch.setattr(sampling, "fingerprint", lambda function: first.code)
    with pytest.raises(UsageError, match="about another function"):
        estimated(times(1e6), state=file)


# --- individual limits ---------------------------------------------------------------------------


def moved(promise_of: Any) -> bool:
    """Say whether a promise is broken by somebody who joins: public limits are A = 1, B = 0.1."""
    without = promise_of([0.0], ["0.1"])
    joined = promise_of([0.0, 100.0], ["0.1", 1])
    return bool(abs(joined.exact_value - without.exact_value) > without.promise.sensitivity)


def test_a_promise_holds_for_whoever_joins() -> None:
    def promise_of(values: list[float], limits: list[Any]) -> Any:
        return bounded("maximum", values, delta_f=limits, classes=[1, "0.1"], empty=0)

    assert not moved(promise_of)
    found = promise_of([0.0], ["0.1"])
    assert found.promise.sensitivity == 1
    assert found.promise.individual == promise_of([0.0, 1.0], ["0.1", 1]).promise.individual
    with pytest.raises(UsageError, match="needs classes"):
        bounded("maximum", [0.0], delta_f=["0.1"], empty=0)
    with pytest.raises(UsageError, match="needs classes"):
        bounded_pair(lambda part: (0, 0), [0.0], delta_f=["0.1"])


def test_planted_a_promise_for_those_who_are_there() -> None:
    def promise_of(values: list[float], limits: list[Any]) -> Any:
        return bounded("maximum", values, delta_f=limits, classes=limits, empty=0)

    assert moved(promise_of)
