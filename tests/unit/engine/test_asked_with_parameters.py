"""The engine with parameters: prices, derivations and columns are those of the literal; interrupts."""

import threading

import pytest

from private_shop import open_shop
from secant.engines.watch import Interrupt
from secant.errors import BackendError, SqlError, UsageError
from secant.schema import types as t
from secant.sql.bind import from_sql

ASKED = (
    "SELECT status, count(*) AS n, sum(total) AS s FROM orders WHERE quantity >= ? GROUP BY status"
)
WRITTEN = ASKED.replace("?", "3")


def test_derivation_price_and_statements_are_those_of_the_literal(people):
    asked = people.explain(ASKED, parameters=[3], epsilon=1)
    written = people.explain(WRITTEN, epsilon=1)
    assert asked.statements == written.statements
    assert asked.record["guarantee"] == written.record["guarantee"]
    assert people.ranges(ASKED, parameters=[3]) == people.ranges(WRITTEN)


def test_an_answer_with_parameters_is_charged_once(tmp_path):
    with open_shop(tmp_path) as db:
        before = {name: account.to_dict() for name, account in db.budget.items()}
        with pytest.raises(UsageError):
            db.sql(ASKED, epsilon=1)
        with pytest.raises(SqlError):
            db.sql(ASKED, parameters=["three"], epsilon=1)
        assert {name: account.to_dict() for name, account in db.budget.items()} == before
        answer = db.sql(ASKED, parameters=["3"], epsilon=1)
        assert answer.columns == ["status", "n", "s"]
        assert answer.release_id is not None


@pytest.mark.parametrize(
    ("text", "types"),
    [
        ("SELECT count(*) AS n FROM orders", ["INTEGER"]),
        ("SELECT status, sum(total) AS s FROM orders GROUP BY status", ["TEXT", "DECIMAL"]),
        ("SELECT avg(quantity) AS a, sum(quantity) AS q FROM orders", ["DOUBLE", "INTEGER"]),
        ("SELECT sum(rate) AS r FROM orders", ["DOUBLE"]),
        ("SELECT min(day) AS d FROM orders", ["DATE"]),
        ("SELECT count(*) > 5 AS many FROM orders", ["BOOLEAN"]),
        ("SELECT town, people FROM towns", ["TEXT", "INTEGER"]),
    ],
)
def test_described_without_running(people, text, types):
    described = people.describe(text)
    assert [kind.kind for _, kind in described] == types
    assert [name for name, _ in described] == [f.name for f in _fields(people, text)]


def _fields(db, text):
    from secant.plan.typing import fields_of

    return fields_of(from_sql(text, db.catalog))


def test_described_with_a_parameter(people):
    (column,) = people.describe("SELECT sum(total * ?) AS s FROM orders", parameters=[2])
    assert column == ("s", column[1])
    assert column[1].kind == "DECIMAL"
    assert people.describe("SELECT sum(rate * ?) AS s FROM orders", parameters=[2]) == (
        ("s", t.DOUBLE),
    )


def test_interrupted_before_anything_is_spent(tmp_path):
    interrupt = Interrupt()
    interrupt.stop()
    with open_shop(tmp_path) as db:
        before = {name: account.to_dict() for name, account in db.budget.items()}
        with pytest.raises(BackendError) as told:
            db.sql(WRITTEN, epsilon=1, interrupt=interrupt)
        assert told.value.code == "BAK-006"
        assert {name: account.to_dict() for name, account in db.budget.items()} == before


def test_interrupted_while_a_statement_runs(tmp_path, monkeypatch):
    """What was sent stays paid for, and the next question is answered."""
    from secant.engines.duckdb import session as duckdb

    interrupt, stopped = Interrupt(), threading.Event()
    fetched = duckdb.DuckDBSession.rows

    def slow(session, statement):
        def wait():
            interrupt.stop()
            stopped.wait(60)
            raise RuntimeError("stopped")

        return duckdb.watched(wait, stopped.set, 60)

    with open_shop(tmp_path) as db:
        monkeypatch.setattr(duckdb.DuckDBSession, "rows", slow)
        with pytest.raises(BackendError) as told:
            db.sql("SELECT count(*) AS n FROM orders", epsilon=1, interrupt=interrupt)
        assert told.value.code == "BAK-006"
        assert stopped.is_set()
        monkeypatch.setattr(duckdb.DuckDBSession, "rows", fetched)
        assert db.sql("SELECT count(*) AS n FROM orders", epsilon="0.5").rows
