"""A budget must not come back under another name: of a protection, of an analyst, or of a month."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb
import pytest

import secant
from secant.cli import main
from secant.errors import BudgetError, PolicyError, SecantError, UsageError
from secant.ledger import Budget, Charge, Ledger, limits
from secant.ledger import store as store_module
from secant.ledger.sqlite import SqliteTransaction
from secant.ledger.state import State

BUDGETS = {"people": Budget.of(10)}
DAY = 86_400.0


def spend(ledger: Ledger, epsilon: str, protection: str = "people", **options: Any) -> None:
    with ledger.reserve([Charge.of(protection, epsilon)], **options) as reservation:
        reservation.mark_sent()


@pytest.fixture
def spent(tmp_path: Path) -> Path:
    """A ledger in which `people` has spent 9 of 10."""
    path = tmp_path / "shop.ledger"
    with Ledger.open(path, BUDGETS) as ledger:
        spend(ledger, "9")
    return path


# --- protections ---------------------------------------------------------------------------------


def test_another_case_is_the_same_account(spent: Path) -> None:
    with Ledger.open(spent, {"People": Budget.of(10)}) as ledger:
        assert ledger.balances()["People"].remaining == Budget.of(1)
        with pytest.raises(BudgetError) as caught:
            spend(ledger, "2", "People")
        assert caught.value.code == "BUD-001"
        spend(ledger, "1", "People")
    with Ledger.open(spent, BUDGETS) as ledger:
        assert ledger.balances()["people"].remaining == Budget(0)


def test_a_new_name_is_refused_until_the_owner_says_what_became_of_the_old(spent: Path) -> None:
    new = {"persons": Budget.of(10)}
    with Ledger.open(spent, new) as ledger:
        assert list(ledger.unnamed()) == ["people"]
        with pytest.raises(BudgetError) as caught:
            spend(ledger, "1", "persons")
        assert caught.value.code == "BUD-008"
        assert caught.value.details == ("people: ε 9",)
    with Ledger.open(spent, new, continues={"persons": ["PEOPLE"]}) as ledger:
        assert ledger.balances()["persons"].remaining == Budget.of(1)
        with pytest.raises(BudgetError):
            spend(ledger, "2", "persons")
    with Ledger.open(spent, new, retired=["People"]) as ledger:
        spend(ledger, "2", "persons")


def test_planted_a_ledger_that_forgets_names(spent: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "_check_named", lambda unnamed: None)
    with Ledger.open(spent, {"persons": Budget.of(10)}) as ledger:
        spend(ledger, "10", "persons")
        assert ledger.balances()["persons"].spent.epsilon == 10 * 10**9  # 19 of 10


@pytest.mark.parametrize(
    "options",
    [{"retired": ["people"]}, {"continues": {"people": ["PEOPLE"]}}, {"continues": {"no": ["x"]}}],
)
def test_names_that_cannot_be_meant(tmp_path: Path, options: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        Ledger.open(tmp_path / "x.ledger", BUDGETS, **options)


def test_two_names_that_differ_in_case_only(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        Ledger.open(tmp_path / "x.ledger", {**BUDGETS, "PEOPLE": Budget.of(1)})


POLICY = """
{top}
[database]
source = "duckdb:shop.duckdb"
[ledger]
{ledger}
[protections.{name}]
kind = "rows"
tables = ["people"]
epsilon = 10
{more}
"""


class Shop:
    def __init__(self, folder: Path) -> None:
        self.file = folder / "policy.toml"
        with duckdb.connect(str(folder / "shop.duckdb")) as connection:
            connection.execute("CREATE TABLE people AS SELECT range AS id FROM range(50)")

    def write(self, name: str, *, ledger: str = "", more: str = "") -> None:
        text = POLICY.format(top="", name=name, ledger=ledger, more=more)
        self.file.write_text(text)

    def ask(self, epsilon: str, **options: Any) -> None:
        with secant.connect(policy=self.file) as db:
            db.sql("SELECT count(*) FROM people", epsilon=epsilon, **options)


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    made = Shop(tmp_path)
    made.write("people")
    made.ask("9")
    return made


def code_of(action: Any) -> str:
    with pytest.raises(SecantError) as caught:
        action()
    return caught.value.code


def test_policies_that_rename(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    shop.write("PEOPLE")
    assert code_of(lambda: shop.ask("2")) == "BUD-001"
    shop.write("persons")
    assert code_of(lambda: shop.ask("2")) == "BUD-008"
    assert main(["check", str(shop.file)]) == 2
    assert "people: has spent ε 9 and is not in the policy" in capsys.readouterr().out
    assert main(["ledger", "--policy", str(shop.file), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["unnamed"] == ["people"]
    shop.write("persons", more='continues = ["People"]')
    assert main(["check", str(shop.file)]) == 0
    assert code_of(lambda: shop.ask("2")) == "BUD-001"
    shop.write("persons", ledger='retired = ["people"]')
    assert main(["check", str(shop.file)]) == 0
    shop.ask("2")


@pytest.mark.parametrize(
    ("ledger", "more"), [('retired = ["People"]', ""), ("", 'continues = ["PEOPLE"]')]
)
def test_a_policy_that_retires_what_is_in_force(shop: Shop, ledger: str, more: str) -> None:
    shop.write("people", ledger=ledger, more=more)
    with pytest.raises(PolicyError, match="mistake") as caught:
        secant.load_policy(shop.file)
    assert "in force" in caught.value.details[0]


# --- analysts ------------------------------------------------------------------------------------

SHARES = {"people": {"ada": Budget.of(3), "*": Budget.of(2)}}


def invented(ledger: Ledger) -> int:
    """Give how often somebody gets the share of those not named, by a new name each time."""
    for number in range(4):
        try:
            spend(ledger, "2", analyst=f"x{number}")
        except BudgetError:
            return number
    return 4


def test_an_invented_name_has_no_share_of_its_own(tmp_path: Path) -> None:
    with Ledger.open(tmp_path / "shop.ledger", BUDGETS, analysts=SHARES) as ledger:
        assert invented(ledger) == 1
        with pytest.raises(BudgetError):
            spend(ledger, "2")  # nor has nobody, nor the star itself
        with pytest.raises(BudgetError):
            spend(ledger, "2", analyst="*")
        spend(ledger, "3", analyst="ada")


def test_planted_a_share_for_every_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits.Limits, "sharers", lambda self, protection, analyst: analyst.__eq__)
    with Ledger.open(tmp_path / "shop.ledger", BUDGETS, analysts=SHARES) as ledger:
        assert invented(ledger) == 4


def test_a_name_that_is_no_text_does_not_break_exports(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = b"\xff".decode("utf-8", "surrogateescape")  # what a shell's $'\xff' becomes
    assert code_of(lambda: shop.ask("0.5", analyst=broken)) == "USE-001"
    # A ledger of before may hold such a name.
    monkeypatch.setattr(store_module, "check_analyst", lambda name: None)
    shop.ask("0.5", analyst=broken)
    policy = ["--policy", str(shop.file)]
    for name in ("copy.csv", "copy.jsonl"):
        assert main(["ledger", *policy, "--export", str(tmp_path / name), "--verify"]) == 0
        assert (tmp_path / name).read_text(encoding="utf-8").count("\n") == 8
    assert main(["ledger", *policy, "--history"]) == 0
    assert main(["ledger", *policy, "--history", "--json"]) == 0
    capsys.readouterr()


@pytest.mark.parametrize("name", ['"\\u0007"', '"\\u202Eada"', f'"{"x" * 201}"', '" "'])
def test_a_policy_names_analysts_in_text(shop: Shop, name: str) -> None:
    shop.write("people", more=f"[protections.people.analysts]\n{name} = {{ epsilon = 1 }}")
    with pytest.raises(PolicyError):
        secant.load_policy(shop.file)


# --- months --------------------------------------------------------------------------------------


def spend_with_a_clock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    """Spend all of December, then set the clock back to November; give what is left there."""
    clock = {"now": 1_794_800_000.0}  # 2026-11-16
    monkeypatch.setattr(SqliteTransaction, "now", lambda self: clock["now"])
    renewals = {"people": "monthly"}
    with Ledger.open(tmp_path / "shop.ledger", BUDGETS, renewals=renewals) as ledger:
        clock["now"] += 20 * DAY
        spend(ledger, "10")
        clock["now"] -= 20 * DAY
        left = ledger.balances()["people"].remaining.epsilon
        if left:
            spend(ledger, "10")
    with Ledger.open(tmp_path / "shop.ledger", BUDGETS, renewals=renewals) as ledger:
        ledger.verify()
    return left


def test_a_clock_that_goes_back_opens_no_month(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert spend_with_a_clock(tmp_path, monkeypatch) == 0


def test_planted_books_without_a_clock_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Ledger, "_time", lambda self, now: now)
    assert spend_with_a_clock(tmp_path, monkeypatch) == 10 * 10**9


def test_a_summary_keeps_the_latest_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("secant.ledger.state.SUMMARY_INTERVAL", 5)
    clock = {"now": 1_794_800_000.0}
    monkeypatch.setattr(SqliteTransaction, "now", lambda self: clock["now"])
    with Ledger.open(tmp_path / "shop.ledger", BUDGETS) as ledger:
        for _ in range(4):
            spend(ledger, "0.1")
            clock["now"] -= DAY
        whole = State()
        whole.advance(ledger.records())
        assert whole.summary_at
    with Ledger.open(tmp_path / "shop.ledger", BUDGETS) as ledger:
        assert ledger._state.latest == whole.latest == ledger.records()[-1].fields["time"]
        ledger.verify()
