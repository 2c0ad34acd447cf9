"""Random statements three ways: the engine on the text, the engine on the plan, `evaluate`."""

from __future__ import annotations

import os

import duckdb
import pytest
from random_queries import Writer
from row_compare import difference
from test_tpch_duckdb import DATA, contents

from secant.errors import BackendError, SqlError
from secant.plan.evaluate import evaluate
from secant.plan.from_sql import from_sql
from secant.plan.rewrite import normalise
from secant.plan.values import Failure
from secant.release.duckdb import open_file
from secant.release.lower import lower

ROUNDS = 60 if os.environ.get("SECANT_PROFILE") == "long" else 4
STATEMENTS = 100


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    path = tmp_path_factory.mktemp("random") / "small.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute((DATA / "small_schema.sql").read_text())
    return open_file(path, threads=1)


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_random_statements_three_ways(small, seed):
    rows, writer, answered = contents(small), Writer(seed), 0
    for _ in range(STATEMENTS):
        query = writer.statement()
        try:
            want = small.rows(query)
        except BackendError:
            continue  # the engine itself does not take it
        try:
            plan = from_sql(query, small.catalog())
        except SqlError:
            continue  # refused with a reason; accepted statements must be right
        for shape in (plan, normalise(plan)):
            assert difference(small.rows(lower(shape)), want, ordered=False) is None, query
            try:
                by_hand = evaluate(shape, rows)
            except Failure:
                pytest.fail(f"the interpreter fails where the engine does not: {query}")
            assert difference(by_hand, want, ordered=False) is None, query
        answered += 1
    assert answered > STATEMENTS / 2
