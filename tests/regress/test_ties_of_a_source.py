"""Ours: what triggers, rules, foreign keys and checks of a source carry into public places was not looked at.

A trigger that adds each visit to a public table of totals, a check that two columns are equal, a foreign key to a
protected column: the catalog names them, and a policy under which they matter stops until its owner accepts them by
name. One case for each decision in `docs/explanation/what-is-protected.md`.
"""

import duckdb
import pytest

import secant
from secant.errors import PolicyError

SHIPS = "CREATE TABLE ships (id INTEGER PRIMARY KEY, speed DOUBLE, x DOUBLE, UNIQUE (speed))"
TOTALS = "CREATE TABLE totals (n DOUBLE)"
TRIGGER = (
    "CREATE TRIGGER keep AFTER INSERT ON ships REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT "
    "INSERT INTO totals SELECT sum(speed) FROM new_rows"
)
CELLS = {"kind": "cells", "epsilon": 9, "distance": {"ships": "speed"}}
UNIT = {"kind": "unit", "unit": "ships.id", "epsilon": 9}
ROWS = {"kind": "rows", "epsilon": 9}


def told(folder, statements, protection, *, public=(), accept=(), question="SELECT 1 AS one"):
    path = folder / "port.duckdb"
    with duckdb.connect(str(path)) as made:
        for statement in statements:
            made.execute(statement)
    policy = {"protections": {"it": protection}}
    policy |= {"accept": list(accept)} if accept else {}
    policy |= {"database": {"public": list(public)}} if public else {}
    with secant.connect(f"duckdb:{path}", policy=policy, ledger=":memory:") as database:
        return database.sql(question, epsilon=1)


REFUSED = {
    "a trigger into a public table": (
        [SHIPS, TOTALS, TRIGGER],
        UNIT,
        ["totals"],
        "trigger ships.keep",
    ),
    "a trigger beside values that move": (
        [SHIPS, TOTALS, TRIGGER],
        CELLS,
        ["totals"],
        "trigger ships.keep",
    ),
    "a trigger of a public table that reads": (
        [
            SHIPS,
            TOTALS,
            "CREATE TABLE days (d INTEGER)",
            (
                "CREATE TRIGGER add_up AFTER INSERT ON days FOR EACH STATEMENT "
                "INSERT INTO totals SELECT max(speed) FROM ships"
            ),
        ],
        UNIT,
        ["totals", "days"],
        "trigger days.add_up",
    ),
    "a trigger that reads a view": (
        [
            SHIPS,
            TOTALS,
            "CREATE VIEW fast AS SELECT max(speed) AS m FROM ships",
            "CREATE TABLE days (d INTEGER)",
            "CREATE TRIGGER add_up AFTER INSERT ON days FOR EACH STATEMENT INSERT INTO totals SELECT m FROM fast",
        ],
        UNIT,
        ["totals", "days"],
        "trigger days.add_up",
    ),
    "a check that ties": (
        [
            "CREATE TABLE ships (id INTEGER, speed DOUBLE, x DOUBLE, CONSTRAINT same CHECK (x = speed))"
        ],
        CELLS,
        [],
        "check ships.",
    ),
    "a foreign key to what moves": (
        [SHIPS, "CREATE TABLE seen (speed DOUBLE REFERENCES ships (speed))"],
        CELLS,
        ["seen"],
        "foreign key seen.",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_may_carry_stops_until_it_is_accepted_by_name(tmp_path, case):
    statements, protection, public, name = REFUSED[case]
    with pytest.raises(PolicyError) as stopped:
        told(tmp_path, statements, protection, public=public)
    (line,) = [d for d in stopped.value.details if f'add "{name}' in d]
    called = line.split('add "')[1].split('"')[0]
    (tmp_path / "port.duckdb").unlink()
    told(tmp_path, statements, protection, public=public, accept=[called])


HARMLESS = {
    "a trigger where all is protected": ([SHIPS, TOTALS, TRIGGER], ROWS, []),
    "a trigger into a protected table": (
        [SHIPS, TOTALS, TRIGGER, "CREATE TABLE days (d INTEGER)"],
        {"kind": "rows", "epsilon": 9, "tables": ["ships", "totals"]},
        ["days"],
    ),
    "a check of one column": (
        ["CREATE TABLE ships (id INTEGER, speed DOUBLE CHECK (speed > 0))"],
        CELLS,
        [],
    ),
    "a check of public columns": (
        ["CREATE TABLE ships (id INTEGER, port INTEGER, speed DOUBLE, CHECK (id > port))"],
        CELLS,
        [],
    ),
    "a check between columns of one hidden row": (
        ["CREATE TABLE ships (id INTEGER, speed DOUBLE, x DOUBLE, CHECK (x = speed))"],
        ROWS,
        [],
    ),
    "a foreign key to a column that stays": (
        [SHIPS, "CREATE TABLE seen (ship INTEGER REFERENCES ships (id))"],
        CELLS,
        ["seen"],
    ),
    "a sequence": (
        ["CREATE SEQUENCE s", "CREATE TABLE ships (id INTEGER DEFAULT nextval('s'), speed DOUBLE)"],
        CELLS,
        [],
    ),
}


@pytest.mark.parametrize("case", HARMLESS)
def test_what_carries_nothing_hidden_to_an_open_place_is_let_be(tmp_path, case):
    statements, protection, public = HARMLESS[case]
    assert told(tmp_path, statements, protection, public=public).rows == [(1,)]


def test_what_is_accepted_must_be_there(tmp_path):
    with pytest.raises(PolicyError, match=r"the source has no trigger ships.gone"):
        told(tmp_path, [SHIPS], CELLS, accept=["trigger ships.gone"])


def test_a_unique_index_is_no_key(tmp_path):
    """DuckDB keeps it, but one over an expression, or over some rows, says nothing of a column."""
    path = tmp_path / "port.duckdb"
    with duckdb.connect(str(path)) as made:
        made.execute("CREATE TABLE ships (a INTEGER, b INTEGER UNIQUE, speed DOUBLE)")
        made.execute("CREATE UNIQUE INDEX one ON ships ((a + 1))")
        made.execute("CREATE UNIQUE INDEX two ON ships (a)")
    policy = {"protections": {"it": CELLS}}
    with secant.connect(f"duckdb:{path}", policy=policy, ledger=":memory:") as database:
        assert database.catalog.tables["ships"].unique == (("b",),)


def test_a_macro_has_no_name_of_sqls_own_and_none_in_questions(tmp_path):
    macro = "CREATE MACRO peek(i) AS (SELECT max(speed) FROM ships WHERE id = i)"
    with pytest.raises(secant.errors.SqlError):
        told(tmp_path, [SHIPS, macro], CELLS, question="SELECT id, peek(id) FROM ships")
    (tmp_path / "port.duckdb").unlink()
    view = "CREATE VIEW peeked AS SELECT id, peek(id) AS s FROM ships"
    with pytest.raises(secant.errors.SqlError):
        told(tmp_path, [SHIPS, macro, view], CELLS, question="SELECT id, s FROM peeked")
    (tmp_path / "port.duckdb").unlink()
    with pytest.raises(secant.errors.BackendError, match="name of SQL's own"):
        told(tmp_path, [SHIPS, macro.replace("peek", "abs")], CELLS)


def test_a_view_of_a_protected_column_is_protected(tmp_path):
    view = "CREATE VIEW copied AS SELECT id, speed AS x FROM ships"
    with pytest.raises(secant.errors.Refused):
        told(tmp_path, [SHIPS, view], CELLS, question="SELECT id, x FROM copied")


def test_a_public_table_that_refers_to_protected_rows_is_warned_of(tmp_path):
    from secant.engines.sources import open_source
    from secant.policy.check import check_policy
    from secant.policy.file import policy_from

    path = tmp_path / "port.duckdb"
    with duckdb.connect(str(path)) as made:
        made.execute(SHIPS)
        made.execute("CREATE TABLE seen (ship INTEGER REFERENCES ships (id))")
    backend = open_source(f"duckdb:{path}")
    policy = policy_from({"database": {"public": ["seen"]}, "protections": {"it": UNIT}})
    problems = check_policy(policy, backend.catalog())
    backend.close()
    assert any("its column ship refers to ships, which is protected" in p.message for p in problems)
