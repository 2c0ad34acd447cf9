"""What every store of a ledger must do: one suite for SQLite and PostgreSQL."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import secrets
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
import pytest

from secant.errors import BudgetError, UsageError
from secant.evidence import KINDS, Evidence, digest
from secant.ledger import Anchor, Budget, Charge, Ledger
from secant.ledger import state as state_module
from secant.ledger.accounting.accountant import Accountant
from secant.ledger.export import check_export
from secant.ledger.postgres import PostgresTransaction
from secant.ledger.records import VERSION, canonical, digest_of
from secant.ledger.sqlite import SqliteTransaction
from secant.ledger.state import State
from secant.ledger.witness import write_anchor
from secant.noise.events import (
    Composed,
    GaussianEvent,
    LaplaceEvent,
    PureEvent,
    RandomEvent,
    Repeated,
)

NOVEMBER = 1_794_800_000.0  # 2026-11-16
DAY = 86_400.0


@dataclass
class Clock:
    """A clock that tests turn by hand."""

    time: float = NOVEMBER


@dataclass
class Store:
    """A place for one ledger, and a way to meddle with it behind its back."""

    kind: str
    location: str
    clock: Clock = field(default_factory=Clock)

    def open(self, **budgets: Any) -> Ledger:
        return self.open_with(budgets)

    def open_with(self, budgets: dict[str, Any], **options: Any) -> Ledger:
        stated = {name: b if isinstance(b, Budget) else Budget.of(b) for name, b in budgets.items()}
        return Ledger.open(self.location, stated, **options)

    def meddle(self, *statements: str) -> None:
        """Change tables as somebody with full rights could."""
        if self.kind == "sqlite":
            guards = ["DROP TRIGGER IF EXISTS records_stay", "DROP TRIGGER IF EXISTS records_hold"]
        else:
            guards = ["ALTER TABLE records DISABLE TRIGGER ALL"]
        with self.connect() as connection:
            for statement in (*guards, *statements):
                connection.execute(statement)
            connection.commit()

    def forge_anchor(self) -> None:
        """Make the anchor beside a file fit what is in it."""
        if self.kind == "sqlite":
            with self.connect() as connection:
                head = connection.execute("SELECT sequence, digest FROM head").fetchone()
            write_anchor(Path(self.location), Anchor(*head), backward=True)

    @contextmanager
    def connect(self) -> Iterator[Any]:
        """Open the tables without the ledger."""
        if self.kind == "sqlite":
            connection: Any = sqlite3.connect(self.location)
        else:
            address, _, schema = self.location.partition("&ledger=")
            connection = psycopg.connect(address, options=f"-c search_path={schema}")
        with closing(connection):
            yield connection


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def store(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    if request.param == "sqlite":
        made = Store("sqlite", str(tmp_path / "shop.ledger"))
    else:
        server = request.getfixturevalue("postgres_server")
        made = Store("postgres", f"{server.address()}&ledger=ledger_{secrets.token_hex(6)}")
    for transaction in (SqliteTransaction, PostgresTransaction):
        monkeypatch.setattr(transaction, "now", lambda self: made.clock.time)
    return made


def spend(ledger: Ledger, epsilon: str, protection: str = "rows", **options: Any) -> str:
    with ledger.reserve([Charge.of(protection, epsilon)], **options) as reservation:
        reservation.mark_sent()
    return reservation.release_id


def spent(ledger: Ledger, protection: str = "rows") -> int:
    return ledger.balances()[protection].spent.epsilon


# --- the protocol of one release -----------------------------------------------------------------


def test_a_release_is_reserved_sent_and_settled(store: Store) -> None:
    with store.open(rows=1) as ledger:
        with ledger.reserve([Charge.of("rows", "0.25")], analyst="ada") as reservation:
            assert spent(ledger) == 250_000_000  # held from the first moment
            reservation.mark_sent()
            reservation.mark_sent()  # harmless
            reservation.settle()
        (release,) = ledger.history()
        assert (release.status, release.analyst, release.spent) == ("answered", "ada", True)
        assert release.release_id == reservation.release_id
        assert ledger.balances()["rows"].remaining == Budget.of("0.75")


def test_leaving_without_sending_gives_the_budget_back(store: Store) -> None:
    with store.open(rows=1) as ledger:
        with pytest.raises(ZeroDivisionError), ledger.reserve([Charge.of("rows", 1)]):
            _ = 1 // 0
        assert spent(ledger) == 0
        assert [release.status for release in ledger.history()] == ["returned"]


def test_leaving_after_sending_keeps_it_spent_whatever_happened(store: Store) -> None:
    with store.open(rows=1) as ledger:
        reservation = ledger.reserve([Charge.of("rows", "0.5")])
        reservation.mark_sent()
        with pytest.raises(ZeroDivisionError), reservation:
            _ = 1 // 0
        assert spent(ledger) == 500_000_000
        assert [release.status for release in ledger.history()] == ["failed"]


def test_a_reservation_has_one_end(store: Store) -> None:
    with store.open(rows=1) as ledger:
        reservation = ledger.reserve([Charge.of("rows", "0.5")])
        with pytest.raises(BudgetError, match="not sent"):
            reservation.settle()
        reservation.give_back()
        reservation.give_back()
        with pytest.raises(BudgetError) as caught:
            reservation.mark_sent()
        assert caught.value.code == "BUD-006"
        other = ledger.reserve([Charge.of("rows", "0.5")])
        other.mark_sent()
        with pytest.raises(BudgetError, match="keeps its charge"):
            other.give_back()
        other.settle()
        other.settle()
        assert spent(ledger) == 500_000_000
        ledger.verify()


def test_a_release_that_costs_nothing_is_recorded_too(store: Store) -> None:
    with store.open(rows=1) as ledger:
        with ledger.reserve([], note={"table": "nation"}) as reservation:
            reservation.mark_sent()
        assert [release.note for release in ledger.history()] == [{"table": "nation"}]
        assert spent(ledger) == 0


# --- what is allowed -----------------------------------------------------------------------------


def test_the_last_unit_can_be_spent_and_not_one_more(store: Store) -> None:
    with store.open(rows="0.3") as ledger:
        for _ in range(3):
            spend(ledger, "0.1")
        with pytest.raises(BudgetError) as caught:
            ledger.reserve([Charge.of("rows", "1e-300")])
        assert caught.value.code == "BUD-001"
        assert caught.value.details == ("rows: asked for ε 0.000000001; left: ε 0",)


def test_all_protections_are_charged_or_none(store: Store) -> None:
    budgets = {"rows": 1, "units": Budget.of(1, "1e-8")}
    with store.open_with(budgets, compositions={"units": "basic"}) as ledger:
        charges = [Charge.of("rows", "0.5"), Charge.of("units", "0.5", "2e-8")]
        with pytest.raises(BudgetError) as caught:
            ledger.reserve(charges)
        assert [line.split(":")[0] for line in caught.value.details] == ["units"]
        assert (spent(ledger, "rows"), spent(ledger, "units")) == (0, 0)
        with ledger.reserve([Charge.of("rows", "0.5"), Charge.of("units", 1, "1e-8")]) as held:
            held.mark_sent()
        assert ledger.balances()["units"].remaining == Budget(0, 0)


def test_charges_to_one_protection_add_up_within_a_release(store: Store) -> None:
    with store.open(rows=1) as ledger, pytest.raises(BudgetError):
        ledger.reserve([Charge.of("rows", "0.6"), Charge.of("rows", "0.6")])


def test_a_budget_may_grow_or_shrink_between_runs(store: Store) -> None:
    with store.open(rows=1) as ledger:
        spend(ledger, "0.8")
    with store.open(rows="0.5") as ledger:
        account = ledger.balances()["rows"]
        assert (account.spent.epsilon, account.remaining.epsilon) == (800_000_000, 0)
        with pytest.raises(BudgetError):
            spend(ledger, "0.1")
    with store.open(rows=2, fresh=1) as ledger:
        spend(ledger, "1.2")
        assert ledger.balances()["rows"].remaining.epsilon == 0
        assert ledger.balances()["fresh"].remaining == Budget.of(1)
    # A protection may leave the policy if the owner says so; its history stays.
    with store.open_with({"fresh": 1}, retired=["rows"]) as ledger:
        assert list(ledger.balances()) == ["fresh"]
        assert len(ledger.history(protection="rows")) == 2
        spend(ledger, "0.1", "fresh")


def test_an_analyst_has_a_share_of_the_common_budget(store: Store) -> None:
    shares = {"rows": {"ada": Budget.of("0.6"), "*": Budget.of("0.2")}}
    with store.open_with({"rows": 1}, analysts=shares) as ledger:
        spend(ledger, "0.5", analyst="ada")
        with pytest.raises(BudgetError) as caught:
            spend(ledger, "0.2", analyst="ada")
        assert caught.value.details == (
            "rows, share of this analyst: asked for ε 0.2; left: ε 0.1",
        )
        spend(ledger, "0.2", analyst="bob")
        with pytest.raises(BudgetError):
            spend(ledger, "1e-9", analyst="bob")
        with pytest.raises(BudgetError) as caught:
            spend(ledger, "0.2", analyst="eve")  # an invented name does not come with a budget
        assert caught.value.details == (
            "rows, share of all analysts without one of their own: asked for ε 0.2; left: ε 0",
        )
        assert ledger.balances(analyst="zoe")["rows"].remaining == Budget(0)
        assert ledger.balances(analyst="ada")["rows"].remaining == Budget.of("0.1")
        assert [r.analyst for r in ledger.history(analyst="bob")] == ["bob"]


def test_an_analyst_without_a_share_takes_from_the_common_budget(store: Store) -> None:
    shares = {"rows": {"ada": Budget.of("0.6")}}
    with store.open_with({"rows": 1}, analysts=shares) as ledger:
        spend(ledger, "0.9", analyst="bob")
        assert ledger.balances(analyst="bob") == {}


def test_a_renewal_comes_each_month_and_is_told_as_such(store: Store) -> None:
    options = {"renewals": {"rows": "monthly"}}
    with store.open_with({"rows": 1, "units": 1}, **options) as ledger:
        spend(ledger, "0.9")
        spend(ledger, "0.9", "units")
        with pytest.raises(BudgetError) as caught:
            spend(ledger, "0.2")
        assert caught.value.details == ("rows: asked for ε 0.2; left in 2026-11: ε 0.1",)
        store.clock.time += 20 * DAY
        spend(ledger, "0.7")
        account = ledger.balances()["rows"]
        assert (account.month, account.spent.epsilon) == ("2026-12", 700_000_000)
        assert account.lifetime.epsilon == 1_600_000_000
        assert "Renewal declared by the owner" in account.statement()
        assert "not differential privacy with ε 1." in account.statement()
        assert account.to_dict()["renewal"] == "monthly"
        with pytest.raises(BudgetError):
            spend(ledger, "0.2", "units")  # nothing renews unless the owner says so
        plain = ledger.balances()["units"]
        assert plain.statement() == "All releases together stay within ε 1."
        assert plain.to_dict()["renewal"] is None
    with store.open(rows=1) as ledger, pytest.raises(BudgetError):
        spend(ledger, "0.1")  # the declaration was withdrawn: all months count again


@pytest.mark.parametrize(
    ("budgets", "options", "code"),
    [
        ({"rows": 1}, {"analysts": {"other": {}}}, "USE-005"),
        ({"rows": 1}, {"renewals": {"other": "monthly"}}, "USE-005"),
        ({"rows": 1}, {"renewals": {"rows": "daily"}}, "USE-001"),
        ({"rows": 1}, {"compositions": {"rows": "loose"}}, "USE-001"),
        ({"rows": 1}, {"compositions": {"other": "basic"}}, "USE-005"),
        ({"rows": 1}, {"wait_seconds": 0}, "USE-001"),
        ({"rows": 1}, {"wait_seconds": float("nan")}, "USE-001"),
    ],
)
def test_limits_that_cannot_be_meant_are_refused(
    store: Store, budgets: Any, options: Any, code: str
) -> None:
    with pytest.raises(UsageError) as caught:
        store.open_with(budgets, **options)
    assert caught.value.code == code


@pytest.mark.parametrize(
    ("charges", "options", "code"),
    [
        ([Charge.of("nobody", 1)], {}, "USE-005"),
        ([], {"lease_seconds": 0}, "USE-001"),
        ([], {"lease_seconds": 10**9}, "USE-001"),
        ([], {"note": {"when": object()}}, "USE-001"),
        ([], {"note": {"x": float("nan")}}, "USE-001"),
        ([], {"note": {"x": "y" * 2_000_000}}, "USE-001"),
        ([], {"analyst": 3}, "USE-001"),
        ([], {"analyst": "\udcff"}, "USE-001"),
        ([], {"analyst": "ada\n"}, "USE-001"),
        ([], {"analyst": "ada\x00"}, "USE-001"),
        ([], {"analyst": "\u202eada"}, "USE-001"),
        ([], {"analyst": "a" * 201}, "USE-001"),
    ],
)
def test_a_wrong_call_writes_nothing(store: Store, charges: Any, options: Any, code: str) -> None:
    with store.open(rows=1) as ledger:
        with pytest.raises(UsageError) as caught:
            ledger.reserve(charges, **options)
        assert caught.value.code == code
        assert len(ledger.records()) == 1


def test_odd_text_comes_back_as_it_was(store: Store) -> None:
    note = {"query": "SELECT '\x00' -- \ud800 Grüße \U0001f512", "n": [1, 2.5, None, True]}
    with store.open(rows=1) as ledger:
        spend(ledger, "0.1", note=note, analyst="Ada Grüße \U0001f512")
        (release,) = ledger.history()
        assert (release.note, release.analyst) == (note, "Ada Grüße \U0001f512")
        assert check_export(ledger.export()) == ledger.verify()


# --- composition ---------------------------------------------------------------------------------


def test_a_delta_buys_a_tighter_composition(store: Store) -> None:
    budget = Budget.of(1, "1e-6")
    with store.open(units=budget) as ledger:
        history = [Repeated(PureEvent("0.001"), 30_000)]
        small = Charge.of_event("units", Composed(history))
        assert small.epsilon == 30 * budget.epsilon  # added up it would never fit
        with ledger.reserve([small]) as reservation:
            reservation.mark_sent()
        account = ledger.balances()["units"]
        expected = Accountant().fits(history, [], epsilon_budget=1, delta_budget="1e-6").total
        assert expected is not None
        assert account.theorem == expected.theorem == "accounting.filter_renyi"
        assert account.spent.epsilon == math.ceil(expected.epsilon * 10**9)
        assert account.lifetime.epsilon == 30 * budget.epsilon
        left = account.remaining
        with pytest.raises(BudgetError) as caught:
            ledger.reserve([small])
        assert caught.value.code == "BUD-001"
        # What remains can be relied on, to the last unit.
        with ledger.reserve([Charge("units", left.epsilon, left.delta)]) as reservation:
            reservation.mark_sent()
    with store.open_with({"units": budget}, compositions={"units": "basic"}) as ledger:
        assert ledger.balances()["units"].remaining == Budget(0, budget.delta - left.delta)


def test_what_remains_before_the_first_release_can_be_relied_on(store: Store) -> None:
    with store.open(units=Budget.of(1, "1e-6")) as ledger:
        left = ledger.balances()["units"].remaining
        assert left == Budget.of(1, "0.75e-6")  # a quarter of δ is the filters' own
        with ledger.reserve([Charge("units", left.epsilon, left.delta)]) as reservation:
            reservation.mark_sent()
        with pytest.raises(BudgetError):
            ledger.reserve([Charge("units", 0, 1)])


def test_a_release_that_no_filter_can_price_is_refused_with_the_reason(store: Store) -> None:
    event = RandomEvent("0.1", 0, "0.05")
    with store.open(units=Budget.of(1, "1e-6")) as ledger:
        spend(ledger, "0.1", "units")
        with pytest.raises(BudgetError) as caught:
            ledger.reserve([Charge.of("units", "0.1", event=event)])
        assert caught.value.code == "BUD-001"
        assert "adaptively" in caught.value.details[0]


def test_a_gaussian_release_needs_the_tight_composition_or_a_price(store: Store) -> None:
    with pytest.raises(BudgetError) as caught:
        Charge.of_event("units", GaussianEvent(20))
    assert caught.value.code == "BUD-005"
    charge = Charge.of("units", "0.5", "1e-7", event=GaussianEvent(20))
    with store.open(units=Budget.of(1, "1e-6")) as ledger:
        for _ in range(5):  # by their prices, two would be all
            with ledger.reserve([charge]) as reservation:
                reservation.mark_sent()
        assert ledger.balances()["units"].spent.epsilon < 1_000_000_000


# --- leases --------------------------------------------------------------------------------------


def test_an_unsent_lease_that_ran_out_is_returned_and_cannot_wake_up(store: Store) -> None:
    with store.open(rows=1) as ledger, store.open(rows=1) as other:
        sleeper = ledger.reserve([Charge.of("rows", 1)], lease_seconds=60)
        with pytest.raises(BudgetError):
            other.reserve([Charge.of("rows", 1)])
        store.clock.time += 61
        taker = other.reserve([Charge.of("rows", 1)])
        store.clock.time -= 61  # not even if the clock is set back
        with pytest.raises(BudgetError) as caught:
            sleeper.mark_sent()
        assert caught.value.code == "BUD-006"
        taker.mark_sent()
        assert spent(other) == 1_000_000_000
        sleeper.give_back()  # too late: it was returned once, and is not returned again
        assert spent(other) == 1_000_000_000
        ledger.verify()


def test_a_lease_that_ran_out_cannot_be_used_even_before_anybody_swept(store: Store) -> None:
    with store.open(rows=1) as ledger:
        sleeper = ledger.reserve([Charge.of("rows", 1)], lease_seconds=60)
        store.clock.time += 60
        with pytest.raises(BudgetError) as caught:
            sleeper.mark_sent()
        assert caught.value.code == "BUD-006"


def test_a_sent_lease_that_ran_out_is_settled_as_spent(store: Store) -> None:
    with store.open(rows=1) as ledger, store.open(rows=1) as other:
        sender = ledger.reserve([Charge.of("rows", "0.7")], lease_seconds=60)
        sender.mark_sent()
        store.clock.time += 10 * DAY
        other.sweep()
        assert spent(other) == 700_000_000
        assert [release.status for release in other.history()] == ["lease ran out"]
        sender.mark_sent()  # it was marked in time; what it sends is paid for
        sender.settle()
        assert spent(other) == 700_000_000
        other.verify()


# --- several users of one ledger -----------------------------------------------------------------


def test_two_ledgers_cannot_both_take_the_last_of_it(store: Store) -> None:
    with store.open(rows=1) as one, store.open(rows=1) as two:
        first = one.reserve([Charge.of("rows", 1)])
        with pytest.raises(BudgetError):
            two.reserve([Charge.of("rows", "1e-9")])
        first.give_back()
        two.reserve([Charge.of("rows", 1)]).mark_sent()
        with pytest.raises(BudgetError):
            one.reserve([Charge.of("rows", "1e-9")])


def test_threads_share_a_ledger(store: Store) -> None:
    granted: list[str] = []
    refusals: list[str] = []

    def work(ledger: Ledger) -> None:
        for _ in range(10):
            try:
                granted.append(spend(ledger, "0.05"))
            except BudgetError as error:
                refusals.append(error.code)

    with store.open(rows=1) as ledger:
        threads = [threading.Thread(target=work, args=(ledger,)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(granted) == 20
        assert refusals == ["BUD-001"] * 20
        assert spent(ledger) == 1_000_000_000
        ledger.verify()


def in_child(action: Callable[[], None]) -> None:
    """Run an action in a forked child; fail if it failed."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            action()
            status = 0
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_forked_child_uses_the_ledger_that_it_inherited(store: Store) -> None:
    with store.open(rows=1) as ledger:
        spend(ledger, "0.1")
        with ledger._lock:  # another thread of the parent may be inside at that moment
            in_child(lambda: [spend(ledger, "0.1") for _ in range(3)] and ledger.close())
        spend(ledger, "0.1")
        assert spent(ledger) == 500_000_000
        ledger.verify()


# --- the chain -----------------------------------------------------------------------------------

FORGERIES = {
    "edited": [
        "UPDATE records SET body = replace(body, '250000000', '150000000') WHERE sequence = 5"
    ],
    "edited, with some digest": [
        "UPDATE records SET body = replace(body, '250000000', '150000000') WHERE sequence = 5",
        "UPDATE records SET digest = repeat_zero WHERE sequence = 5",
    ],
    "deleted": ["DELETE FROM records WHERE sequence = 6"],
    "deleted at the start": ["DELETE FROM records WHERE sequence = 1"],
    "all deleted": ["DELETE FROM records"],
    "renumbered": [
        "DELETE FROM records WHERE sequence = 10",
        "UPDATE records SET sequence = 10 WHERE sequence = 11",
    ],
    "reordered": [
        "UPDATE records SET sequence = 1000 WHERE sequence = 4",
        "UPDATE records SET sequence = 4 WHERE sequence = 5",
        "UPDATE records SET sequence = 5 WHERE sequence = 1000",
    ],
    "tail cut": ["DELETE FROM records WHERE sequence > 8"],
    "head moved": ["UPDATE head SET sequence = 8"],
    "head lost": ["DELETE FROM head"],
    "garbage": ["UPDATE records SET body = '{' WHERE sequence = 9"],
    "added": ["INSERT INTO records SELECT 14, body, digest FROM records WHERE sequence = 13"],
}


def filled(store: Store) -> Anchor:
    with store.open(rows=10) as ledger:
        for _ in range(4):
            spend(ledger, "0.25")
        return ledger.verify()


@pytest.mark.parametrize("forgery", FORGERIES)
def test_a_forged_ledger_shows(store: Store, forgery: str) -> None:
    assert filled(store).sequence == 13
    zeros = f"'{'0' * 64}'"
    store.meddle(*(statement.replace("repeat_zero", zeros) for statement in FORGERIES[forgery]))
    with pytest.raises(BudgetError) as caught, store.open(rows=10) as ledger:
        ledger.verify()
    assert caught.value.code == "BUD-003"


def test_a_cut_that_hides_its_traces_shows_against_an_anchor_only(store: Store) -> None:
    anchor = filled(store)
    digest = "(SELECT digest FROM records WHERE sequence = 7)"
    store.meddle(
        "DELETE FROM records WHERE sequence > 7", f"UPDATE head SET sequence = 7, digest = {digest}"
    )
    if store.kind == "sqlite":  # the anchor beside the file shows it, as long as it is not cut too
        with pytest.raises(BudgetError) as caught:
            store.open(rows=10)
        assert caught.value.code == "BUD-007"
        store.forge_anchor()
    with store.open(rows=10) as ledger:
        ledger.verify()  # nothing inside the store can tell
        with pytest.raises(BudgetError) as caught:
            ledger.verify(anchor)
        assert caught.value.code == "BUD-003"


def test_an_anchor_stays_good_while_the_ledger_grows(store: Store) -> None:
    anchor = filled(store)
    with store.open(rows=10) as ledger:
        spend(ledger, "0.5")
        assert ledger.verify(anchor).sequence == anchor.sequence + 3
        with pytest.raises(BudgetError):
            ledger.verify(Anchor(anchor.sequence, "f" * 64))


def test_a_change_behind_an_open_ledger_stops_it(store: Store) -> None:
    with store.open(rows=10) as ledger:
        spend(ledger, "0.25")
        store.meddle("UPDATE records SET digest = body WHERE sequence = 4")
        with pytest.raises(BudgetError) as caught:
            ledger.reserve([Charge.of("rows", "0.1")])
        assert caught.value.code == "BUD-003"


def test_records_cannot_be_changed_by_accident(store: Store) -> None:
    filled(store)
    with store.connect() as connection:
        for statement in ("DELETE FROM records", "UPDATE records SET digest = ''"):
            with pytest.raises(Exception, match="ledger records are never"):
                connection.execute(statement)
            connection.rollback()


def test_a_newer_version_is_left_alone(store: Store) -> None:
    with store.open(rows=10) as ledger:
        spend(ledger, "0.25")
        sqlite = store.kind == "sqlite"
        newer = f"PRAGMA user_version = {VERSION + 1}"
        store.meddle(newer if sqlite else f"UPDATE head SET version={VERSION + 1}")
        for use in (ledger.balances, lambda: spend(ledger, "0.1"), lambda: store.open(rows=10)):
            with pytest.raises(BudgetError) as caught:
                use()
            assert caught.value.code == "BUD-004"


def test_a_stream_is_paid_and_drawn_once(store: Store) -> None:
    with store.open(rows=2) as ledger, store.open(rows=2) as other:
        for books in (ledger, other):
            books.declare_stream("s", {"form": 1}, [Charge.of("rows", 2)])
        assert ledger.draw_stream("s", 1, [{"a": 1}, {"b": -(10**30)}])
        assert not other.draw_stream("s", 1, [{"a": 2}])
        found = other.stream("s")
        assert found is not None
        assert (found.through, found.values) == (2, {"a": 1, "b": -(10**30)})
        assert ledger.balances()["rows"].remaining.epsilon == 0
        ledger.verify()


def test_a_missing_ledger_is_made_only_if_that_is_wanted(store: Store) -> None:
    with pytest.raises(BudgetError) as caught:
        store.open_with({"rows": 1}, create=False)
    assert caught.value.code == "BUD-002"
    store.open(rows=1).close()
    store.open_with({"rows": 1}, create=False).close()


# --- summaries -----------------------------------------------------------------------------------


@pytest.fixture
def frequent_summaries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_module, "SUMMARY_INTERVAL", 5)


def busy(store: Store) -> State:
    """Fill a ledger with every kind of record; give the state that all of them add up to."""
    with store.open(rows=100, units=Budget.of(100, "0.5")) as ledger:
        for number in range(25):
            charges = [
                Charge.of("rows", f"0.{number % 3 + 1}"),
                Charge.of_event("units", LaplaceEvent("0.5")),
                Charge.of("units", "0.1", "1e-9"),
            ]
            reservation = ledger.reserve(charges, analyst=f"a{number % 4}", lease_seconds=60)
            if number % 5:
                reservation.mark_sent()
            if number % 3 == 0:
                store.clock.time += 61
            elif number % 5 and number % 2:
                reservation.settle()
        store.clock.time += 20 * DAY
        spend(ledger, "0.125")
        ledger.reserve([Charge.of("rows", "0.5")])
        state = State()
        state.advance(ledger.records())
        return state


@pytest.mark.usefixtures("frequent_summaries")
def test_a_summary_says_what_all_records_before_it_say(store: Store) -> None:
    whole = busy(store)
    assert whole.summary_at > 50
    with store.open(rows=100, units=Budget.of(100, "0.5")) as ledger:
        read = ledger._state
        assert (read.summary_at, read.anchor) == (whole.summary_at, whole.anchor)
        assert read.summary() == whole.summary()
        assert ledger.verify() == whole.anchor
        spend(ledger, "0.125")
        ledger.verify()


@pytest.mark.usefixtures("frequent_summaries")
def test_a_forged_summary_shows_when_the_ledger_is_verified(store: Store) -> None:
    state = busy(store)
    with store.open(rows=100) as ledger:
        records = ledger.records()
    body = json.loads(records[state.summary_at - 1].body)
    body["accounts"] = []
    forged = []
    anchor = Anchor(state.summary_at - 1, records[state.summary_at - 2].digest)
    # The forger recomputes every digest from the summary on, and the head.
    for record in records[state.summary_at - 1 :]:
        text = canonical(body) if record.sequence == state.summary_at else record.body
        digest = digest_of(anchor.digest, record.sequence, text)
        anchor = Anchor(record.sequence, digest)
        quoted = text.replace("'", "''")
        forged.append(
            f"UPDATE records SET body = '{quoted}', digest = '{digest}'"
            f" WHERE sequence = {record.sequence}"
        )
    store.meddle(*forged, f"UPDATE head SET digest = '{anchor.digest}'")
    store.forge_anchor()
    with store.open(rows=100) as ledger, pytest.raises(BudgetError) as caught:
        ledger.verify()
    assert caught.value.code == "BUD-003"
    assert "does not agree" in caught.value.message


# --- export --------------------------------------------------------------------------------------


def test_an_export_proves_itself(store: Store) -> None:
    anchor = filled(store)
    with store.open(rows=10) as ledger:
        lines = list(ledger.export("jsonl"))
    assert check_export(lines) == anchor
    assert json.loads(lines[-1]) == {
        "kind": "end",
        "sequence": anchor.sequence,
        "digest": anchor.digest,
    }
    for wrong in (
        lines[:-1],
        lines[1:],
        lines[:4] + lines[5:],
        lines[:-2] + lines[-1:],
        [line.replace("250000000", "150000000") for line in lines],
        [*lines[:3], "no json", *lines[3:]],
        [],
    ):
        with pytest.raises(BudgetError) as caught:
            check_export(wrong)
        assert caught.value.code == "BUD-003"


def test_a_spreadsheet_gets_one_row_a_charge(store: Store) -> None:
    with store.open(rows=10, units=Budget.of(10, "1e-6")) as ledger:
        charges = [Charge.of("rows", "0.25"), Charge.of("units", "1.5", "1e-9")]
        with ledger.reserve(charges, analyst="=HYPERLINK(1)") as reservation:
            reservation.mark_sent()
        rows = list(csv.DictReader(io.StringIO("".join(ledger.export("csv")))))
    assert [row["kind"] for row in rows] == ["open", "reserve", "reserve", "sent", "settle"]
    assert [(row["protection"], row["epsilon"], row["delta"]) for row in rows[1:3]] == [
        ("rows", "0.25", "0"),
        ("units", "1.5", "0.000000001"),
    ]
    assert rows[1]["analyst"] == "'=HYPERLINK(1)"  # a spreadsheet would run it as a formula
    assert rows[4]["remark"] == "answered"
    with store.open(rows=10) as ledger, pytest.raises(UsageError):
        ledger.export("xlsx")


def test_papers_are_kept_once_by_digest_and_named_in_the_chain(store: Store) -> None:
    evidence = Evidence({kind: f'{{"of":"{kind}"}}' for kind in KINDS}, "0.1.0", "snapshot 7")
    with store.open(rows=3) as ledger:
        first, second = (spend(ledger, "1", evidence=evidence) for _ in range(2))
        assert {first, second} == {r.release_id for r in ledger.history()}
        assert [r.papers for r in ledger.history()] == [evidence.fields, evidence.fields]
        assert [ledger.paper(evidence.fields[kind]) for kind in KINDS] == [
            evidence.documents[kind] for kind in KINDS
        ]
        assert ledger.paper("0" * 64) is None
    with store.connect() as connection:
        assert connection.execute("SELECT count(*) FROM papers").fetchone() == (len(KINDS),)
    store.meddle("UPDATE papers SET body = (SELECT max(body) FROM papers)")
    with store.open(rows=3) as ledger:
        kept = [ledger.paper(evidence.fields[kind]) for kind in KINDS]
        assert [
            digest(text or "") == evidence.fields[k] for k, text in zip(KINDS, kept, strict=True)
        ].count(True) == 1
    # The record itself cannot be changed to fit: the chain covers the digests.
    body = "replace(body, 'snapshot 7', 'snapshot 8')"
    store.meddle(f"UPDATE records SET body = {body}")
    with pytest.raises(BudgetError) as caught, store.open(rows=3) as ledger:
        ledger.verify()
    assert caught.value.code == "BUD-003"
