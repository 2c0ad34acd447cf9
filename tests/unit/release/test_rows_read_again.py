"""Rows of owners are read again rather than kept, where a second reading gives the same rows."""

import duckdb

from secant.engines.duckdb.session import open_file
from secant.engines.print.print_sql import lower
from secant.plan import nodes as n
from secant.policy.file import policy_from
from secant.policy.following import naming
from secant.schema import types as t

VISIT = n.Scan("visit", "v", (n.Field("v.pid", t.INTEGER), n.Field("v.cost", t.DOUBLE)))
PERSON = n.Scan("person", "p", (n.Field("p.id", t.INTEGER), n.Field("p.city", t.TEXT)))
PID, ID = n.Column("v.pid", t.INTEGER), n.Column("p.id", t.INTEGER)
COST = n.Column("v.cost", t.DOUBLE)
JOINED = n.Join("inner", VISIT, PERSON, n.Compare("=", PID, ID))


def kept_tables(plan):
    return lower(plan).count("MATERIALIZED")


def test_stored_rows_are_not_kept_but_owners_over_the_limit_are():
    assert kept_tables(n.Truncate(JOINED, ("p.id",), ("v.cost",), 2)) == 1
    assert kept_tables(n.TruncateGroups(JOINED, ("p.id",), ("v.cost",), 2)) == 1


def test_owners_are_counted_by_their_own_column_alone():
    counted = lower(n.Truncate(JOINED, ("p.id",), ("v.cost",), 2)).split("HAVING")[0]
    assert "cost" not in counted


def test_rows_that_a_float_sum_decides_about_are_computed_once():
    """Counted by one set of rows and cut by another, an owner could keep more than the limit."""
    total = n.Aggregation("g.total", "sum", COST)
    grouped = n.Aggregate(VISIT, (n.Named("g.pid", PID),), (total,))
    dear = n.Filter(
        grouped, n.Compare(">", n.Column("g.total", t.DOUBLE), n.Literal(1.0, t.DOUBLE))
    )
    assert kept_tables(n.Truncate(dear, ("g.pid",), (), 1)) == 2


def test_rows_that_a_subquery_decides_about_are_computed_once():
    mean = n.Aggregate(VISIT, (), (n.Aggregation("m", "avg", COST),))
    dear = n.Filter(JOINED, n.Compare(">", COST, n.ScalarSubquery(mean)))
    assert kept_tables(n.Truncate(dear, ("p.id",), ("v.cost",), 2)) == 2


def test_columns_that_give_another_value_each_time_are_not_read(tmp_path):
    path = tmp_path / "made.duckdb"
    with duckdb.connect(str(path)) as made:
        made.execute("CREATE TABLE made (a INTEGER, b AS (random()))")
    backend = open_file(path)
    policy = policy_from({"protections": {"all": {"kind": "rows", "epsilon": 1}}})
    offered = naming(policy, backend.catalog()).tables["made"]
    backend.close()
    assert [column for column, _ in offered.columns] == ["a"]
