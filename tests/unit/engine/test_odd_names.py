"""Names that look like syntax, like each other, or like Secant's own."""

import duckdb
import pytest

import secant
from secant.errors import SecantError

POLICY = """
[database]
source = "duckdb:names.duckdb"

[tables."we.ird".columns]
"a.b" = { range = [0, 5] }
"a\\"b" = { range = [0, 5] }
"größe" = { range = [0, 5] }
"select" = { range = [0, 5] }
"release1.m0" = { range = [0, 5] }
"release1.value0" = { range = [0, 5] }
"q1.count0" = { range = [0, 5] }
camelcase = { range = [0, 5] }
"😀" = { values = [0, 1, 2, 3, 4], null = false }

[tables.release1.columns]
m0 = { range = [0, 5] }
"release1.m0" = { range = [0, 5] }

[protections.single]
kind = "rows"
epsilon = 100000
delta = 0.001
"""


@pytest.fixture(scope="module")
def named(tmp_path_factory):
    directory = tmp_path_factory.mktemp("names")
    with duckdb.connect(str(directory / "names.duckdb")) as connection:
        connection.execute(
            'CREATE TABLE "we.ird" (id BIGINT, "a.b" INTEGER, "a""b" INTEGER, "Größe" INTEGER, "select" INTEGER, '
            '"release1.m0" INTEGER, "q1.count0" INTEGER, "CamelCase" INTEGER, "release1.value0" INTEGER, "😀" INTEGER)'
        )
        connection.execute(
            'INSERT INTO "we.ird" SELECT i, 1, 2, 3, 4, 5, 1, 2, 3, i % 5 FROM range(1000) AS r(i)'
        )
        connection.execute('CREATE TABLE release1 (m0 INTEGER, "release1.m0" INTEGER)')
        connection.execute("INSERT INTO release1 SELECT 1, 2 FROM range(1000)")
        connection.execute("CREATE TABLE q1 (count0 INTEGER)")
        connection.execute("INSERT INTO q1 SELECT 1 FROM range(1000)")
        connection.execute('CREATE TABLE "Case" ("Id" INTEGER, iD2 INTEGER)')
        connection.execute('INSERT INTO "Case" SELECT 1, 1 FROM range(1000)')
        connection.execute(
            "CREATE TABLE odd (i INTEGER, l INTEGER[], s STRUCT(a INTEGER), u UUID, h HUGEINT)"
        )
    (directory / "policy.toml").write_text(POLICY, encoding="utf-8")
    with secant.connect(policy=directory / "policy.toml") as db:
        yield db


ASKED = [
    ('SELECT sum("a.b") FROM "we.ird"', [(1000,)]),
    ('SELECT sum("a""b"), sum("Größe"), sum(größe), sum("select") FROM "we.ird"', [(2000, 3000, 3000, 4000)]),
    ('SELECT sum("release1.m0") AS "release1.m1", sum("q1.count0") AS "release1.m0" FROM "we.ird"', [(5000, 1000)]),
    ('SELECT avg("CAMELCASE"), sum("release1.value0") FROM "we.ird"', [(2, 3000)]),
    ('SELECT "release1.m0", count(*) FROM "we.ird" GROUP BY 1 HAVING count(*) > 9', [(5, 1000)]),
    ('SELECT "😀", count(*) FROM "we.ird" GROUP BY "😀"', [(i, 200) for i in range(5)]),
    ('SELECT sum(w."a.b") AS "a.b" FROM "we.ird" AS w', [(1000,)]),
    ('SELECT count(*) FROM "we.ird" AS "a.b" WHERE "a.b"."a.b" > 0', [(1000,)]),
    ("SELECT release1.m0, count(*) FROM release1 GROUP BY release1.m0 HAVING count(*) > 9", [(1, 1000)]),
    ('SELECT sum(m0), sum("release1.m0") FROM release1', [(1000, 2000)]),
    ('SELECT sum(m0) AS "release1.m0", sum("release1.m0") AS m0 FROM release1 AS release1', [(1000, 2000)]),
    ("SELECT count0, count(*) AS count0 FROM q1 GROUP BY count0", [(1, 1000)]),
    ("SELECT q1.count0, count(*) FROM q1 AS q1 GROUP BY q1.count0", [(1, 1000)]),
    ("SELECT count(*) FROM q1 AS release1", [(1000,)]),
    ('SELECT count(*) FROM "case" WHERE ID = 1 AND "ID2" = 1', [(1000,)]),
    ('SELECT COUNT(*) FROM "CASE"', [(1000,)]),
    ('SELECT count(*) AS "select", sum(m0) AS "from" FROM release1 AS "where"', [(1000, 1000)]),
    ("SELECT sum(m0), sum(m0), count(*), count(*) FROM release1", [(1000, 1000, 1000, 1000)]),
    ("SELECT sum(m0) AS x, count(*) AS x FROM release1", [(1000, 1000)]),
    (('SELECT a."b.c", "a.b".c FROM (SELECT count(*) AS "b.c" FROM q1) AS a, '
     '(SELECT sum(m0) AS c FROM release1) AS "a.b"'), [(1000, 1000)]),
    ('SELECT "a.b"."b.c" FROM (SELECT count(*) AS "b.c" FROM q1) AS "a.b"', [(1000,)]),
    ("SELECT 1 + count(*), 'x', NULL FROM q1", [(1001, "x", None)]),
]  # fmt: skip


@pytest.mark.parametrize(("query", "wanted"), ASKED)
def test_odd_names_mean_what_they_say(named, query, wanted):
    answer = named.sql(query, epsilon=1000)
    assert len(answer.columns) == len(wanted[0])
    assert len(set(answer.columns)) == len(answer.columns)
    assert len(answer.rows) == len(wanted)
    for row, right in zip(answer.rows, wanted, strict=True):
        for value, truth in zip(row, right, strict=True):
            if isinstance(truth, int):
                # Noise of scale at most 0.02 reaches 10 % of 1000 (or one key) with probability below e^-50.
                assert abs(value - truth) <= max(0.5, abs(truth) * 0.1)
            else:
                assert value == truth


def test_errors_follow_the_measures_and_not_the_names(named):
    # Each output is called as the other's measure would be; sums of 5 and of 1 have errors 5 to 1.
    answer = named.sql(
        'SELECT sum("release1.m0") AS "release1.m1", count(*) AS "release1.m0" FROM "we.ird"',
        epsilon=1,
    )
    (errors,) = answer.error["values"]
    assert errors[0] > 3 * errors[1] > 0


@pytest.mark.parametrize("column", ["l", "s"])
def test_columns_of_types_without_a_rule_are_refused_with_the_reason(named, column):
    with pytest.raises(SecantError) as caught:
        named.sql(f"SELECT count({column}) FROM odd", epsilon=1)
    assert caught.value.code == "SQL-002"
    assert f"the column {column} cannot be taken: " in caught.value.message
