"""The 22 TPC-H queries and the 17 of the paper on Spark, at scale 0.01: what DuckDB gives.

Planning takes most of the time here, so the fast profile asks a few, and the long one all.
"""

from __future__ import annotations

import pytest
from bench.suites.laud.database import duckdb_file, parquet_folder, parquet_of
from bench.suites.laud.forms import QUERIES, profile_of
from bench.suites.laud.measure import measure
from postgres_small import ordered
from row_compare import difference
from spark_small import on_spark
from test_postgres_tpch import QUERIES as TPCH

from apart import apart
from chance import LONG
from secant.plan.from_sql import from_sql
from secant.plan.rewrite import normalize
from secant.plan.total import make_total
from secant.release.duckdb import open_directory
from secant.release.lower import lower

pytestmark = pytest.mark.spark
SCALE = "0.01"
ASKED = TPCH if LONG else ("q02", "q22")
FORMS = {"paper": QUERIES, "native": QUERIES} if LONG else {"native": QUERIES[:1]}


@pytest.fixture(scope="module")
def both(spark_server, tmp_path_factory):
    directory = parquet_of(SCALE, tmp_path_factory.mktemp("spark_tpch"))
    ours = on_spark(spark_server.address, directory)
    theirs = apart(open_directory(directory, "parquet", threads=1))
    yield ours, theirs
    ours.close()
    theirs.close()


@pytest.mark.parametrize("shape", ["plain", "total"] if LONG else ["total"])
@pytest.mark.parametrize("name", ASKED)
def test_answers_are_those_of_duckdb(both, name, shape):
    ours, theirs = both
    plan = normalize(from_sql(TPCH[name], theirs.catalog()))
    plan = plan if shape == "plain" else make_total(plan)
    want = theirs.rows(TPCH[name])
    assert want
    got = ours.rows(lower(plan, ours.dialect))
    assert difference(got, want, ordered=ordered(plan)) is None


@pytest.mark.parametrize("form", FORMS)
def test_softened_answers_and_smooth_bounds(spark_server, tmp_path, form):
    queries = FORMS[form]
    sources = {
        "duckdb": f"duckdb:{duckdb_file(SCALE, tmp_path)}",
        "spark": f"{spark_server.address}?parquet={parquet_folder(SCALE, tmp_path)}",
    }
    found = {
        engine: {row["query"]: row for row in measure(source, profile_of(form), queries)}
        for engine, source in sources.items()
    }
    for query in queries:
        ours, theirs = found["spark"][query], found["duckdb"][query]
        assert ("refused" in ours) == ("refused" in theirs), query
        for number in ("exact", "softened", "sensitivity", "noise_scale"):
            wanted = theirs.get(number)
            near = wanted if wanted is None else pytest.approx(wanted, rel=1e-9)
            assert ours.get(number) == near, (query, number)
    assert sum("softened" in row for row in found["spark"].values()) >= len(queries) - 1
