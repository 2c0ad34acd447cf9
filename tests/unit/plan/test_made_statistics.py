"""Statistics that are made of other aggregates mean what DuckDB means: text, printed plan and interpreter agree."""

import math

import duckdb
import pytest

from secant.engines.print.print_sql import lower
from secant.errors import SqlError
from secant.plan.evaluate.evaluate import evaluate
from secant.plan.rewrites.rewrite import normalize
from secant.schema.catalog import Table, catalog
from secant.schema.types import BOOLEAN, DOUBLE, INTEGER, TEXT
from secant.sql.bind import from_sql

COLUMNS = (("k", INTEGER), ("y", DOUBLE), ("x", INTEGER), ("s", TEXT), ("b", BOOLEAN))
CATALOG = catalog(Table("t", COLUMNS))
ROWS = [
    (1, 1.5, 2, "a", True), (1, 2.5, 3, "b", False), (1, -4.25, 11, "b", None), (2, None, 3, "a", True),
    (2, 4.0, None, None, True), (2, 5.0, 7, "c", True), (2, 6.5, 7, "c", False), (3, 5.0, 7, None, None),
]  # fmt: skip
PAIRS = (
    "corr", "covar_pop", "covar_samp", "regr_slope", "regr_intercept", "regr_r2", "regr_count", "regr_avgx",
    "regr_avgy", "regr_sxx", "regr_syy", "regr_sxy",
)  # fmt: skip


@pytest.fixture(scope="module")
def engine():
    found = duckdb.connect()
    found.execute("CREATE TABLE t (k BIGINT, y DOUBLE, x BIGINT, s VARCHAR, b BOOLEAN)")
    found.executemany("INSERT INTO t VALUES (?, ?, ?, ?, ?)", ROWS)
    return found


def alike(value):
    """NaN is NULL here: where a side does not vary there is no number."""
    if isinstance(value, float):
        return None if math.isnan(value) else float(f"{value:.10g}")
    return value


def answers(engine, text):
    plan = normalize(from_sql(text, CATALOG))
    found = engine.execute(text).fetchall(), engine.execute(lower(plan)).fetchall()
    every = (*found, evaluate(plan, {"t": ROWS}))
    return [sorted((tuple(map(alike, row)) for row in rows), key=repr) for rows in every]


@pytest.mark.parametrize("name", PAIRS)
def test_statistics_of_pairs(engine, name):
    for text in (
        f"SELECT {name}(y, x) FROM t",
        f"SELECT k, {name}(y, x) FROM t GROUP BY k",
        f"SELECT {name}(y, x) FILTER (WHERE b) FROM t",
        f"SELECT {name}(x, y) + 1 FROM t WHERE k < 0",
        f"SELECT k, {name}(y, 3) FROM t GROUP BY k",
    ):
        written, printed, computed = answers(engine, text)
        assert written == printed == computed, text


@pytest.mark.parametrize(
    "text",
    [
        "SELECT k, bool_and(b), bool_or(b), bool_and(x > 2), bool_or(s = 'a') FROM t GROUP BY k",
        "SELECT bool_and(b) FROM t WHERE k > 9",
        "SELECT k, count_if(x > 2), count_if(b) FROM t WHERE k < 3 GROUP BY k",
        "SELECT k, mode(x) FROM t WHERE k = 2 GROUP BY k",
        "SELECT mode(s) FROM t WHERE s <> 'a'",
        "SELECT mode(x), mode(s) FROM t WHERE k > 9",
        "SELECT mode() WITHIN GROUP (ORDER BY x) FROM t WHERE k = 2",
    ],
)
def test_truth_values_and_modes(engine, text):
    written, printed, computed = answers(engine, text)
    if (
        "s <> 'a'" in text
    ):  # of several that are equally frequent, the least; DuckDB gives the first it meets
        assert printed == computed == [("b",)]
        return
    assert written == printed == computed


def test_a_condition_that_holds_nowhere_counts_none(engine):
    """DuckDB says NULL of no rows, as a sum does; a number of rows is 0."""
    _, printed, computed = answers(engine, "SELECT count_if(b) FROM t WHERE k = 3")
    assert printed == computed == [(0,)]


def test_names_that_other_engines_have():
    for text, same in (
        ("SELECT every(b) AS c FROM t", "SELECT bool_and(b) AS c FROM t"),
        ("SELECT mean(y) AS c FROM t", "SELECT avg(y) AS c FROM t"),
        ("SELECT approx_count_distinct(s) AS c FROM t", "SELECT count(DISTINCT s) AS c FROM t"),
        ("SELECT approx_quantile(x, 0.5) AS c FROM t", "SELECT quantile_disc(x, 0.5) AS c FROM t"),
    ):
        assert lower(normalize(from_sql(text, CATALOG))) == lower(
            normalize(from_sql(same, CATALOG))
        )


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("SELECT bool_and(x) FROM t", "SQL-004"),
        ("SELECT count_if(x) FROM t", "SQL-004"),
        ("SELECT corr(y, s) FROM t", "SQL-004"),
        ("SELECT corr(y) FROM t", "SQL-001"),
    ],
)
def test_what_they_do_not_take(text, code):
    with pytest.raises(SqlError) as caught:
        from_sql(text, CATALOG)
    assert caught.value.code == code
