"""The small corpus on Spark: the plan's statement gives what DuckDB gives for the text."""

from __future__ import annotations

from contextlib import suppress

import duckdb
import pytest
from postgres_small import SCHEMA, ordered
from random_queries import Writer
from row_compare import difference
from spark_small import copied, on_spark
from test_order_statistics_engines import RELEASED, counted
from test_postgres_small import SHAPES, SMALL

from chance import LONG
from secant.errors import BackendError, SqlError
from secant.plan.evaluate import evaluate
from secant.plan.from_sql import from_sql
from secant.plan.rewrite import normalize
from secant.plan.total import make_total
from secant.release.lower import lower

pytestmark = pytest.mark.spark
ROUNDS, STATEMENTS = (10, 50) if LONG else (1, 15)
# What costs time on Spark is planning: the whole corpus in all shapes is for the long profile.
EVERY = 1 if LONG else 8
REFUSED = {
    # Java before 19 does not write the shortest text that reads back as the same number, and nobody can tell it to.
    "CAST(height AS VARCHAR)": "texts of floating-point numbers differ",
}


def refused(query: str) -> bool:
    return any(part in query for part in REFUSED)


@pytest.fixture(scope="module")
def small_spark(spark_server, tmp_path_factory):
    folder = tmp_path_factory.mktemp("spark_small") / "parquet"
    with duckdb.connect() as connection:
        connection.execute(SCHEMA.read_text())
        copied(connection, ("person", "visit", "nothing"), folder)
    backend = on_spark(spark_server.address, folder)
    yield backend
    backend.close()


CORPUS = [(q, s) for i, q in enumerate(SMALL) for s in SHAPES if LONG or (i % EVERY == 0 and s == "total")]  # fmt: skip


@pytest.mark.parametrize(("query", "shape"), CORPUS)
def test_small_queries(small, small_spark, query, shape):
    plan = SHAPES[shape](from_sql(query, small.catalog()))
    if refused(query):
        with pytest.raises(BackendError) as caught:
            small_spark.check(lower(plan, small_spark.dialect))
        assert caught.value.code == "BAK-003"
        return
    want = small.rows(lower(plan) if shape == "total" else query)
    got = small_spark.rows(lower(plan, small_spark.dialect))
    assert difference(got, want, ordered=ordered(plan)) is None


def test_most_of_the_corpus_is_answered():
    assert sum(map(refused, SMALL)) == len(REFUSED)
    assert len(SMALL) > 190


@pytest.mark.parametrize("seed", range(300, 300 + ROUNDS))
def test_random_statements(small, small_spark, seed):
    writer, answered = Writer(seed), 0
    for _ in range(STATEMENTS):
        query, statement = writer.statement(), ""
        try:
            plan = make_total(normalize(from_sql(query, small.catalog())))
            want = small.rows(lower(plan))
        except (SqlError, BackendError):
            continue
        with suppress(BackendError):  # what Spark computes otherwise is refused
            statement = lower(plan, small_spark.dialect)
        if not statement:
            continue
        assert difference(small_spark.rows(statement), want, ordered=False) is None, query
        answered += 1
    assert answered > STATEMENTS / 3


@pytest.mark.parametrize("text", RELEASED)
def test_cells_of_order_statistics(small, small_rows, small_spark, text):
    for cells in counted(text, small.catalog()):
        got = small_spark.rows(lower(cells, small_spark.dialect))
        assert difference(got, evaluate(cells, small_rows), ordered=False) is None


AGGREGATED = """
SELECT city, count(*), count(age), count(DISTINCT age), sum(age), avg(age), min(age), max(name), sum(balance),
  avg(balance), sum(id * 1000000007), avg(id * 1000000007), min(active), max(active), sum(DISTINCT age), max(height),
  var_samp(age), var_pop(age), stddev_samp(age), stddev_pop(age), covar_pop(age, id), corr(age, id),
  mode(age), mode(name), median(age), quantile_disc(age, 0.3), quantile_disc(name, 0.5), quantile_cont(age, 0.7),
  min(born), max(seen)
FROM person GROUP BY city
"""


def test_aggregates(small, small_spark):
    plan = make_total(normalize(from_sql(AGGREGATED, small.catalog())))
    want = small.rows(lower(plan))
    assert (
        difference(small_spark.rows(lower(plan, small_spark.dialect)), want, ordered=False) is None
    )
    assert len(want) >= 5


@pytest.mark.parametrize(
    "call", ["product(age)", "quantile_disc(DISTINCT age, 0.5)", "median(balance)"]
)
def test_aggregates_that_spark_has_not_are_refused(small, small_spark, call):
    plan = make_total(normalize(from_sql(f"SELECT {call} FROM person", small.catalog())))
    with pytest.raises(BackendError) as caught:
        lower(plan, small_spark.dialect)
    assert caught.value.code == "BAK-003"


def test_a_sum_of_whole_numbers_has_more_than_64_bits(small, small_spark):
    text = "SELECT sum(CASE WHEN TRUE THEN 9223372036854775807 END), avg(id * 0 + 9223372036854775807) FROM person"
    plan = make_total(normalize(from_sql(text, small.catalog())))
    assert small_spark.rows(lower(plan, small_spark.dialect)) == small.rows(lower(plan))
