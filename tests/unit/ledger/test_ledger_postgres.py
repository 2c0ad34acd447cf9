"""A ledger in PostgreSQL in bad circumstances: a typed error, and no answer leaves unpaid."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import psycopg
import pytest

from secant.errors import BudgetError, UsageError
from secant.ledger import Budget, Charge, Ledger, sessions
from secant.ledger import postgres as postgres_module

if TYPE_CHECKING:
    from postgres_server import PostgresServer

pytestmark = pytest.mark.postgres
BUDGETS = {"rows": Budget.of(10)}


def spend(ledger: Ledger) -> None:
    with ledger.reserve([Charge.of("rows", 1)]) as reservation:
        reservation.mark_sent()


def code_of(caught: pytest.ExceptionInfo[BudgetError]) -> tuple[str, str]:
    return caught.value.code, caught.value.message


@pytest.fixture
def ledger(postgres_database: str) -> Iterator[Ledger]:
    with Ledger.open(postgres_database, BUDGETS, wait_seconds=1) as opened:
        spend(opened)
        yield opened


def test_a_lost_connection_is_an_error_once(ledger: Ledger, postgres_database: str) -> None:
    reservation = ledger.reserve([Charge.of("rows", 1)])
    with psycopg.connect(postgres_database, autocommit=True) as other:
        others = "datname = current_database() AND pid <> pg_backend_pid()"
        other.execute(
            f"SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE {others}"
        )
    with pytest.raises(BudgetError) as caught:
        reservation.mark_sent()
    assert code_of(caught) == ("BUD-002", "the ledger cannot be reached")
    reservation.mark_sent()  # a new connection; the reservation is still there
    reservation.settle()
    assert ledger.balances()["rows"].spent.epsilon == 2 * 10**9
    ledger.verify()


def test_a_ledger_that_another_writer_holds(ledger: Ledger, postgres_database: str) -> None:
    with psycopg.connect(postgres_database) as other:
        other.execute("SELECT 1 FROM secant_ledger.head FOR UPDATE")
        assert ledger.balances()["rows"].spent.epsilon == 10**9  # reading goes on
        with pytest.raises(BudgetError) as caught:
            ledger.reserve([Charge.of("rows", 1)])
        assert code_of(caught) == ("BUD-002", "the ledger is locked")
        other.rollback()
        spend(ledger)


def test_a_role_that_may_only_read(
    ledger: Ledger, postgres_database: str, postgres_server: PostgresServer
) -> None:
    with psycopg.connect(postgres_database) as owner:
        owner.execute("DROP ROLE IF EXISTS watcher")
        owner.execute("CREATE ROLE watcher LOGIN")
        owner.execute("GRANT USAGE ON SCHEMA secant_ledger TO watcher")
        owner.execute("GRANT SELECT ON ALL TABLES IN SCHEMA secant_ledger TO watcher")
    address = postgres_database.replace("//secant@", "//watcher@")
    try:
        with Ledger.open(address, BUDGETS) as watching:
            assert watching.balances()["rows"].spent.epsilon == 10**9
            with pytest.raises(BudgetError) as caught:
                watching.reserve([Charge.of("rows", 1)])
            assert code_of(caught) == ("BUD-002", "the ledger is read-only")
    finally:
        with psycopg.connect(postgres_database) as owner:
            owner.execute("DROP OWNED BY watcher")
            owner.execute("DROP ROLE watcher")


def test_a_server_that_would_lose_charges_is_refused(postgres_database: str) -> None:
    # The test server was started with fsync on; a look-alike answers the question instead.
    with psycopg.connect(postgres_database, autocommit=True) as own:
        own.execute(
            "CREATE FUNCTION public.current_setting(text) RETURNS text LANGUAGE sql"
            " AS $$ SELECT 'off' $$"
        )
    address = f"{postgres_database}&options=-csearch_path%3Dpublic,pg_catalog"
    with pytest.raises(BudgetError) as caught:
        Ledger.open(address, BUDGETS)
    assert caught.value.code == "BUD-002"
    assert "fsync" in caught.value.message


def test_no_part_of_the_address_enters_a_message(postgres_server: PostgresServer) -> None:
    for address in (
        f"postgresql://secant:verysecret@127.0.0.1:{postgres_server.port}/postgres",
        "postgresql://secant:verysecret@127.0.0.1:1/postgres",
    ):
        with pytest.raises(BudgetError) as caught:
            Ledger.open(address, BUDGETS, wait_seconds=2)
        assert caught.value.code == "BUD-002"
        shown = caught.value.render() + str(caught.value.to_dict())
        for part in ("verysecret", "127.0.0.1", "postgres/"):
            assert part not in shown


@pytest.mark.parametrize("name", ["", "x" * 64, "a&ledger=b"])
def test_the_name_of_a_ledger_is_checked(postgres_database: str, name: str) -> None:
    with pytest.raises(UsageError) as caught:
        Ledger.open(f"{postgres_database}&ledger={name}", BUDGETS)
    assert caught.value.code == "USE-001"


def test_ledgers_of_several_names_live_side_by_side(postgres_database: str) -> None:
    odd = f'{postgres_database}&ledger=ode%22r"x;--'
    with Ledger.open(odd, BUDGETS) as one, Ledger.open(postgres_database, BUDGETS) as two:
        spend(one)
        assert one.balances()["rows"].spent.epsilon == 10**9
        assert two.balances()["rows"].spent.epsilon == 0


def test_a_lost_table(ledger: Ledger, postgres_database: str) -> None:
    with psycopg.connect(postgres_database) as other:
        other.execute("DROP TABLE secant_ledger.records")
    for use in (ledger.verify, lambda: spend(ledger)):
        with pytest.raises(BudgetError) as caught:
            use()
        assert code_of(caught) == ("BUD-003", "the ledger has lost a table")
    with pytest.raises(BudgetError) as caught:
        Ledger.open(postgres_database, BUDGETS)  # what is left is not taken for a new ledger
    assert caught.value.code == "BUD-003"


def test_without_the_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(UsageError) as caught:
        importlib.reload(sessions)
    assert caught.value.code == "USE-006"


def test_a_ledger_that_was_dropped_is_not_replaced(ledger: Ledger, postgres_database: str) -> None:
    with psycopg.connect(postgres_database, autocommit=True) as owner:
        owner.execute("DROP SCHEMA secant_ledger CASCADE")
        with pytest.raises(BudgetError) as caught:
            spend(ledger)
        assert caught.value.code == "BUD-003"
        for create in (True, False):
            with pytest.raises(BudgetError) as caught:
                Ledger.open(postgres_database, BUDGETS, create=create)
            assert caught.value.code == "BUD-007"
        owner.execute("DELETE FROM secant_ledgers.started WHERE name = 'secant_ledger'")
    with Ledger.open(postgres_database, BUDGETS) as new:  # the owner starts anew
        assert new.started
        with pytest.raises(BudgetError, match="read before"):
            spend(ledger)  # who had the old one open does not go on in the new one
    with Ledger.open(postgres_database, BUDGETS) as again:
        assert not again.started


def test_planted_a_list_that_nobody_looks_at(
    ledger: Ledger, postgres_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_module, "_registered", lambda connection, name: False)
    with psycopg.connect(postgres_database, autocommit=True) as owner:
        owner.execute("DROP SCHEMA secant_ledger CASCADE")
        owner.execute("DELETE FROM secant_ledgers.started")
    with Ledger.open(postgres_database, BUDGETS) as new:
        assert new.balances()["rows"].remaining == BUDGETS["rows"]
