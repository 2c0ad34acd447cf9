"""Ours: to choose how softly a filter cuts, the rows of a table were counted that only another protection covers.

`explain`, and every question before its budget was reserved, guessed the rows of a join from the number of rows of
referenced tables; one of those could be protected. Here every statement of `explain` is written down, on every path:
under `cells` it may read public columns of tables whose rows are public, and nothing else of what is protected.
"""

import contextlib

import duckdb
import pytest
import sqlglot
from sqlglot import exp

import secant
from apart import Wrapped
from secant.errors import SecantError
from secant.release import public_facts as lookups

SCHEMA = """
CREATE TABLE cust (id BIGINT, age BIGINT); INSERT INTO cust VALUES (1, 30), (2, 40), (3, 50);
CREATE TABLE o (oid BIGINT, cid BIGINT, amount BIGINT, day BIGINT);
INSERT INTO o VALUES (1, 1, 5, 1), (2, 1, 7, 2), (3, 2, 9, 3);
CREATE TABLE p (k BIGINT, w BIGINT); INSERT INTO p VALUES (1, 10), (2, 20);
"""
FACTS = """
[database]
source = "duckdb:town.duckdb"
public = ["p"]
[tables.cust]
key = "id"
[tables.o]
key = "oid"
references = { cid = "cust.id" }
columns = { amount = { range = [0, 9] } }
[tables.p]
key = "k"
"""
ROWS = '[protections.rows]\nkind = "rows"\nepsilon = 9\ndelta = 0.1\ntables = {}\n'
UNIT = '[protections.unit]\nkind = "unit"\nunit = "cust.id"\nepsilon = 9\ndelta = 0.1\n'
CELLS = '[protections.cells]\nkind = "cells"\nepsilon = 9\n[protections.cells.distance]\n'
POLICIES = {
    "rows": (ROWS.format('["cust", "o"]'), {"cust": True, "o": True}),
    "unit": (UNIT, {"cust": True, "o": True}),
    "cells": (CELLS + 'o = "amount"\ncust = "age"\n', {"o": {"amount"}, "cust": {"age"}}),
    "rows and cells": (
        ROWS.format('["cust"]') + CELLS + 'o = "amount"\n', {"cust": True, "o": {"amount"}}
    ),
}  # fmt: skip
"""Protections, and what statements must not read: whole tables, or columns."""
TEXTS = (
    "SELECT count(*) FROM o", "SELECT sum(amount) FROM o WHERE amount > 3", "SELECT max(amount) FROM o",
    "SELECT sum(amount) FROM o WHERE cid = 1 AND amount > 3", "SELECT day, sum(amount) FROM o GROUP BY day",
    "SELECT sum(o.amount) FROM o JOIN cust ON o.cid = cust.id WHERE cust.age > 35",
    "SELECT count(*) FROM o JOIN p ON o.day = p.k WHERE o.amount > 3", "SELECT sum(w) FROM p",
    "SELECT sum(p.w * o.amount) FROM o JOIN p ON o.day = p.k", "SELECT avg(amount * day) FROM o WHERE amount > 2",
    "SELECT count(*) FROM o a JOIN o b ON a.cid = b.cid", "SELECT * FROM o",
    "SELECT max(CASE WHEN EXISTS (SELECT 1 FROM o) THEN w ELSE 0 END) FROM p",
    "SELECT count(*) FROM o WHERE amount > (SELECT avg(amount) FROM o)",
)  # fmt: skip


@pytest.fixture
def connect(tmp_path):
    with duckdb.connect(str(tmp_path / "town.duckdb")) as connection:
        connection.execute(SCHEMA)

    def opened(name):
        (tmp_path / "policy.toml").write_text(FACTS + POLICIES[name][0])
        return secant.connect(policy=tmp_path / "policy.toml", ledger=tmp_path / "new.ledger")

    return opened


class Recording(Wrapped):
    """Write every statement down that is run."""

    def __init__(self, inner):
        super().__init__(inner)
        self.sent = []

    def rows(self, session, statement):
        self.sent.append(statement)
        return super().rows(session, statement)


def asked_of(db):
    """Explain every question in every way, and give all statements that were sent."""
    db._backend = Recording(db._backend)
    sent = db._backend.sent
    for text in TEXTS:
        for ways in (
            {},
            {"ranges": True},
            {"attacker": "o.amount within 2"},
            {"epsilon": 2, "level": 0.9},
        ):
            try:
                told = db.explain(text, **ways)
                str(told), told.to_dict(), list(told.statements)
            except SecantError:
                pass
        for ask in (db.ranges, db.obligation):
            with contextlib.suppress(SecantError):
                ask(text)
    return sent


def forbidden(statements, protected):
    """Give the statements that read a protected table, or a protected column of one."""
    found = []
    for statement in statements:
        tree = sqlglot.parse_one(statement, read="duckdb")
        tables = {t.name.lower() for t in tree.find_all(exp.Table)}
        columns = {c.name.lower() for c in tree.find_all(exp.Column)}
        for table, what in protected.items():
            if table in tables and (
                what is True or what & columns or (tree.find(exp.Star) and not tree.find(exp.Count))
            ):
                found.append(statement)
    return found


@pytest.mark.parametrize("name", POLICIES)
def test_explain_reads_nothing_protected(name, connect):
    with connect(name) as db:
        statements = asked_of(db)
    assert forbidden(statements, POLICIES[name][1]) == []
    assert (
        name in ("rows", "unit") or statements
    )  # public columns are looked up, so the check sees something


def test_the_old_fault_is_noticed(connect, monkeypatch):
    """A twin: tables are counted whoever protects their rows."""
    monkeypatch.setattr(lookups, "is_open", lambda *_: True)
    with connect("rows and cells") as db:
        assert forbidden(asked_of(db), POLICIES["rows and cells"][1])
