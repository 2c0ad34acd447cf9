"""The small corpus on PostgreSQL: the plan's statement gives what DuckDB gives for the text."""

from __future__ import annotations

from pathlib import Path

import pytest
from postgres_small import ordered, small_postgres  # noqa: F401 - a fixture
from random_queries import Writer
from row_compare import difference

from chance import LONG
from secant.errors import BackendError, SqlError
from secant.plan.from_sql import from_sql
from secant.plan.rewrite import normalize
from secant.plan.total import make_total
from secant.release.lower import lower

pytestmark = pytest.mark.postgres
ROUNDS = 40 if LONG else 2
STATEMENTS = 100
SMALL = [
    line
    for line in (Path(__file__).parent.parent / "data" / "small_queries.sql")
    .read_text()
    .splitlines()
    if line and not line.startswith("--")
]
SHAPES = {
    "bound": lambda plan: plan,
    "normalized": normalize,
    "total": lambda plan: make_total(normalize(plan)),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("query", SMALL)
def test_small_queries(small, small_postgres, query, shape):  # noqa: F811
    plan = SHAPES[shape](from_sql(query, small.catalog()))
    statement = lower(plan, small_postgres.dialect)
    small_postgres.check(statement)
    # A plan that cannot fail leaves out what the text would fail on, so it is its own measure.
    want = small.rows(lower(plan) if shape == "total" else query)
    assert difference(small_postgres.rows(statement), want, ordered=ordered(plan)) is None


@pytest.mark.parametrize("seed", range(100, 100 + ROUNDS))
def test_random_statements(small, small_postgres, seed):  # noqa: F811
    """Plain plans and plans that cannot fail, as the releases use them."""
    writer, answered = Writer(seed), 0
    for _ in range(STATEMENTS):
        query = writer.statement()
        try:
            plain = normalize(from_sql(query, small.catalog()))
            wanted = small.rows(query)
        except (SqlError, BackendError):
            continue
        safe = make_total(plain)
        for plan, want in ((plain, wanted), (safe, small.rows(lower(safe)))):
            statement = lower(plan, small_postgres.dialect)
            try:
                small_postgres.check(statement)
            except BackendError as refused:
                pytest.fail(f"{refused.message}: {query}")
            got = small_postgres.rows(statement)
            assert difference(got, want, ordered=False) is None, query
        answered += 1
    assert answered > STATEMENTS / 3


def test_an_alias_like_ours_is_kept_apart(small, small_postgres):  # noqa: F811
    query = "SELECT s1.id, s2.j FROM person AS s1 JOIN (SELECT id + 1 AS j FROM person) AS s2 ON s2.j = s1.id"
    plan = normalize(from_sql(query, small.catalog()))
    want = small.rows(query)
    assert (
        difference(small_postgres.rows(lower(plan, small_postgres.dialect)), want, ordered=False)
        is None
    )
    assert difference(small.rows(lower(plan)), want, ordered=False) is None
    assert want
