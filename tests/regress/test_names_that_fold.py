"""Ours: names that differ for the plan were one name for the engine, so that what ran was not what was bounded.

DuckDB folds case: `q.u` and `q.U` of a derived table were read as one column, DISTINCT and joins compared the wrong
values, and one row moved a count by 60 where 2 was certified. PostgreSQL cuts names after 63 bytes. A WITH table of
ours hid a table of the same name. Now every computed column is printed under a name of our own.
"""

from __future__ import annotations

import itertools
from dataclasses import replace

import duckdb
import psycopg
import pytest

from apart import apart
from secant.engines.dialect import quote
from secant.engines.duckdb.session import open_file
from secant.engines.postgres.scalars import POSTGRES
from secant.engines.postgres.session import open_server
from secant.engines.print import blocks as writing
from secant.engines.print.print_sql import lower
from secant.errors import BackendError, PolicyError
from secant.plan import nodes as n
from secant.plan.evaluate.evaluate import evaluate
from secant.plan.rewrites.rewrite import normalize
from secant.release.print import _check_key
from secant.schema import types as t
from secant.schema.catalog import Table, catalog
from secant.sql.bind import from_sql, relations

ROWS = {
    "o": [(1, 1, 5), (2, 1, 6), (3, 1, 7), (4, 2, 8), (4, 2, 8)],
    "s3": [(1, 10), (2, 20)],
    "S4": [(3, 30)],
}
COLUMNS = {"o": ("k", "x", "cid"), "s3": ("a", "b"), "S4": ("a", "b")}
PAIRS = [
    ("u", "U"), ("é", "É"), ("ß", "ẞ"), ("k", "\u212a"), ("i", "İ"), ("ı", "I"), ("s", "ſ"),
    ("l" * 70, "l" * 70 + "x"), ("ß" * 40, "ß" * 40 + "x"), ('a"', 'A"'), ("a.b", "A.b"),
]  # fmt: skip
SHAPES = {
    "distinct": "SELECT count(*) FROM (SELECT DISTINCT x AS {0}, cid AS {1} FROM o) AS d(a, b) WHERE a < b",
    "join": "SELECT sum(a) FROM o JOIN (SELECT cid + 0 AS {0}, k AS {1} FROM o) AS d(a, b) ON o.k = d.b",
    "groups": "SELECT sum(a) FROM (SELECT x + 0 AS {0}, cid + 0 AS {1} FROM o) AS d(a, b) GROUP BY b",
    "union": "SELECT sum(a), sum(b) FROM (SELECT x AS {0}, k AS {1} FROM o UNION SELECT k, x FROM o) AS d(a, b)",
    "twice": "WITH w(a, b) AS (SELECT x + 0 AS {0}, cid + 0 AS {1} FROM o) "
    "SELECT count(*) FROM w AS p JOIN w AS q ON p.b = q.b AND p.a = q.a",
}
HIDING = [
    "WITH w AS (SELECT k + 1 AS k FROM o) SELECT count(*), sum(c.b) FROM w JOIN w AS v ON w.k = v.k "
    f"JOIN {table} AS c ON c.a < w.k"
    for table in ("s3", "s4")
]
OWN = [
    'SELECT sum(big) FROM (SELECT 1 AS "key0", x * 1000 AS big FROM o GROUP BY x * 1000) AS d',
    'SELECT sum(a) FROM (SELECT 7 AS "sum0", sum(x) AS y FROM o GROUP BY k) AS d(a, b)',
    'SELECT sum(c) FROM (SELECT cid AS "u.2", x AS u, k AS u FROM o) AS d(a, b, c)',
    'SELECT sum(a) FROM (SELECT x AS "order2", k AS b FROM o ORDER BY cid + k) AS d(a, b)',
    'WITH w AS (SELECT k AS "S1", x AS s1 FROM o) SELECT count(*) FROM w',
]


def written(pair, shape):
    return SHAPES[shape].format(*map(quote, pair))


@pytest.fixture(scope="module")
def duck(tmp_path_factory):
    path = tmp_path_factory.mktemp("names") / "names.duckdb"
    with duckdb.connect(str(path)) as connection:
        _fill(connection.execute)
    return apart(open_file(path))


@pytest.fixture(scope="module")
def server(postgres_server):
    address = postgres_server.address(postgres_server.create_database())
    with psycopg.connect(address, autocommit=True) as connection:
        _fill(connection.execute)
    backend = apart(open_server(address))
    yield backend
    backend.close()


def _fill(execute):
    for table, rows in ROWS.items():
        columns = ", ".join(f"{c} BIGINT" for c in COLUMNS[table])
        execute(f"CREATE TABLE {quote(table)} ({columns})")
        for row in rows:
            execute(f"INSERT INTO {quote(table)} VALUES {row}")


def answers(query, backend):
    """Give what the plan means, and what the engine says."""
    plan = normalize(from_sql(query, backend.catalog()))
    tables = {
        name: [dict(zip(COLUMNS[name], row, strict=True)) for row in rows]
        for name, rows in ROWS.items()
    }
    want = sorted(evaluate(plan, tables), key=repr)
    return want, sorted(backend.rows(lower(plan, backend.dialect)), key=repr)


@pytest.mark.parametrize("shape", SHAPES)
def test_duckdb_runs_what_the_plan_says(duck, shape):
    for pair in PAIRS:
        want, got = answers(written(pair, shape), duck)
        assert got == want, pair


@pytest.mark.postgres
@pytest.mark.parametrize("shape", SHAPES)
def test_postgres_runs_what_the_plan_says(server, shape):
    for pair in PAIRS:
        want, got = answers(written(pair, shape), server)
        assert got == want, pair


@pytest.fixture
def as_they_are(monkeypatch):
    """Print names as the plan has them, and let the plan have them as they are written."""

    def fresh(wanted, taken):
        while wanted in taken:
            wanted += "_"
        taken.add(wanted)
        return wanted

    monkeypatch.setattr(writing.Writer, "column", lambda writer, name: quote(name))
    monkeypatch.setattr(relations, "fresh", fresh)


def _wrong(backend, pairs, shapes):
    found = set()
    for pair, shape in itertools.product(pairs, shapes):
        try:
            want, got = answers(written(pair, shape), backend)
        except BackendError:
            found.add(shape)  # an engine that sees the ambiguity refuses the statement
            continue
        if got != want:
            found.add(shape)
    return found


@pytest.mark.usefixtures("as_they_are")
def test_names_as_they_are_would_be_noticed(duck):
    assert _wrong(duck, [("u", "U")], SHAPES) == {"distinct", "join", "groups", "twice"}


@pytest.mark.postgres
@pytest.mark.usefixtures("as_they_are")
def test_long_names_as_they_are_would_be_noticed(server):
    assert _wrong(server, [("l" * 70, "l" * 70 + "x")], SHAPES) >= {"join", "groups"}


@pytest.mark.parametrize("query", HIDING)
def test_a_table_called_as_ours_is_read(duck, query):
    want, got = answers(query, duck)
    assert got == want


def test_a_table_that_is_hidden_would_be_noticed(duck, monkeypatch):
    def alias(writer):
        writer.count += 1
        return f"s{writer.count}"

    monkeypatch.setattr(writing.Writer, "alias", alias)
    # Where a source says in which schema a table is, nothing hides it.
    monkeypatch.setattr(
        "secant.engines.print.print_sql.table_text", lambda dialect, table: quote(table)
    )
    wrong = 0
    for query in HIDING:
        try:
            want, got = answers(query, duck)
            wrong += want != got
        except BackendError:
            wrong += 1
    assert wrong


@pytest.mark.parametrize("query", OWN)
def test_names_like_those_of_the_plan(duck, query):
    want, got = answers(query, duck)
    assert got == want
    assert _said_twice(from_sql(query, duck.catalog())) == set()


def test_a_name_with_two_meanings_would_be_noticed(duck):
    plan = from_sql(OWN[0], duck.catalog())
    (group,) = (x for x in n.walk(plan) if isinstance(x, n.Aggregate) and x.keys)
    key = replace(group.keys[0], name="q1.sum0")
    assert _said_twice(
        n.Project(replace(group, keys=(key,)), (n.Named("q1.sum0", n.Literal(1, t.INTEGER)),))
    )


def _said_twice(plan):
    """Give the names that mean several things; a column that is handed on keeps its name."""
    meanings: dict[str, set[object]] = {}
    for node in n.walk(plan):
        made = []
        if isinstance(node, n.Project):
            made = [(i.name, i.expression) for i in node.items]
        elif isinstance(node, n.Aggregate):
            made = [(k.name, k.expression) for k in node.keys] + [
                (a.name, a) for a in node.aggregations
            ]
        elif isinstance(node, n.Scan):
            made = [(f.name, node) for f in node.columns]
        for name, meaning in made:
            if not (isinstance(meaning, n.Column) and meaning.name == name):
                meanings.setdefault(name, set()).add(meaning)
    return {name for name, several in meanings.items() if len(several) > 1}


# ── names of the source ──────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "tables",
    [
        (Table("People", ()), Table("people", ())),
        (Table("É", ()), Table("é", ())),
        (Table("t", (("U", t.INTEGER), ("u", t.INTEGER))),),
        (Table("t", (("K", t.INTEGER), ("\u212a", t.INTEGER))),),
    ],
)
def test_a_source_with_names_that_a_policy_cannot_tell_apart_is_refused(tables):
    with pytest.raises(BackendError, match="differ in case only"):
        catalog(*tables)


@pytest.mark.postgres
def test_postgres_tables_that_differ_in_case_are_refused(postgres_server):
    address = postgres_server.address(postgres_server.create_database())
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute('CREATE TABLE people (id BIGINT); CREATE TABLE "People" (id BIGINT)')
    with pytest.raises(BackendError, match="differ in case only"):
        open_server(address)


@pytest.mark.postgres
def test_a_claim_is_checked_on_the_table_itself_and_not_on_a_view_of_nearly_its_name(
    postgres_server,
):
    address = postgres_server.address(postgres_server.create_database())
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(
            'CREATE TABLE "Codes" ("Id" BIGINT); INSERT INTO "Codes" VALUES (1), (1)'
        )
        connection.execute('CREATE VIEW codes AS SELECT DISTINCT "Id" AS id FROM "Codes"')
    backend = apart(open_server(address))
    with pytest.raises(PolicyError, match="not unique"):
        _check_key(backend, "codes", ("id",))
    backend.close()


@pytest.mark.postgres
def test_columns_of_any_case_are_read_as_they_are_stored(postgres_server):
    address = postgres_server.address(postgres_server.create_database())
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute('CREATE TABLE "Big.T" ("A.b" BIGINT, "sElect" BIGINT, "Ü""" BIGINT)')
        connection.execute('INSERT INTO "Big.T" VALUES (1, 2, 3)')
    backend = apart(open_server(address))
    plan = from_sql('SELECT "a.B", "SELECT", "ü""" FROM "big.t"', backend.catalog())
    assert backend.rows(lower(plan, POSTGRES)) == [(1, 2, 3)]
    backend.close()
