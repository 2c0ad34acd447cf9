"""Order statistics on both engines: exact ones give the same, and so do the cells that releases draw from."""

from __future__ import annotations

import datetime
from decimal import Decimal
from fractions import Fraction

import pytest
from postgres_small import small_postgres  # noqa: F401 - a fixture
from row_compare import difference

from secant.analysis.portfolio import Prepared, prepare
from secant.errors import BackendError
from secant.plan.evaluate import evaluate
from secant.plan.from_sql import from_sql
from secant.plan.rewrite import normalize
from secant.release.lower import lower
from secant.release.postgres_scalars import POSTGRES
from secant.terms.policy import ColumnFacts, Policy, Protection, TableFacts

EXACT = [
    "SELECT median(age), quantile_cont(age, 0.25), quantile_disc(age, 0.3) FROM person",
    "SELECT quantile_disc(born, 0.5), median(born), quantile_disc(name, 0.25) FROM person",
    "SELECT pid, quantile_disc(cost, 0.9), quantile(vid, 0.1) FROM visit GROUP BY pid",
    "SELECT percentile_cont(0.75) WITHIN GROUP (ORDER BY rating) FROM visit WHERE rating < 10",
    "SELECT quantile_disc(amount, 0.5), quantile_cont(amount, 0.5), median(amount) FROM nothing",
]
RELEASED = [
    "SELECT median(age), max(age), min(height) FROM person",
    "SELECT city, median(balance), min(height), count(*) FROM person GROUP BY city",
    "SELECT quantile_disc(born, 0.25), max(balance * 2) FROM person WHERE id > 1",
    "SELECT day, median(rating), max(cost) FROM visit GROUP BY day",
    "SELECT median(amount) FROM nothing",
]
RANGES = {
    "person": {
        "age": (0, 60),
        "height": (-1, 2),
        "balance": (Decimal("-5.5"), 1000),
        "born": (datetime.date(1970, 1, 1), datetime.date(2010, 1, 1)),
    },
    "visit": {"rating": (0, 5), "cost": (0, 100_000)},
    "nothing": {"amount": (0, 10)},
}
POLICY = Policy(
    "",
    {
        table: TableFacts((), {}, {c: ColumnFacts(range=ends) for c, ends in columns.items()})
        for table, columns in RANGES.items()
    },
    (Protection("rows", "rows", Fraction(1), Fraction(1, 1000)),),
)


def counted(text, catalog):
    """Give the aggregates that count the cells of a release."""
    found = prepare(normalize(from_sql(text, catalog)), POLICY, POLICY.protections, catalog)
    assert isinstance(found, Prepared)
    (bounded,) = found.bounded
    assert bounded.release.ranked
    return [ranked.cells for ranked in bounded.release.ranked]


@pytest.mark.parametrize("text", EXACT)
def test_exact_statistics_are_those_of_the_text(small, small_rows, text):
    plan = normalize(from_sql(text, small.catalog()))
    want = evaluate(plan, small_rows)
    assert difference(small.rows(lower(plan)), want, ordered=False) is None
    if "median(born)" not in text:  # DuckDB gives a timestamp between two dates
        assert difference(small.rows(text), want, ordered=False) is None


@pytest.mark.parametrize("text", RELEASED)
def test_cells_are_those_of_the_plan(small, small_rows, text):
    for cells in counted(text, small.catalog()):
        want = evaluate(cells, small_rows)
        assert difference(small.rows(lower(cells)), want, ordered=False) is None
        assert want or "nothing" in text


@pytest.mark.postgres
@pytest.mark.parametrize("text", EXACT)
def test_exact_statistics_on_postgres(small, small_rows, small_postgres, text):  # noqa: F811
    plan = normalize(from_sql(text, small.catalog()))
    got = small_postgres.rows(lower(plan, POSTGRES))
    assert difference(got, evaluate(plan, small_rows), ordered=False) is None


@pytest.mark.postgres
@pytest.mark.parametrize("text", RELEASED)
def test_cells_on_postgres(small, small_rows, small_postgres, text):  # noqa: F811
    for cells in counted(text, small.catalog()):
        got = small_postgres.rows(lower(cells, POSTGRES))
        assert difference(got, evaluate(cells, small_rows), ordered=False) is None


@pytest.mark.parametrize(
    "text", ["SELECT quantile_cont(cost, 0.3) FROM visit", "SELECT quantile_disc(DISTINCT age, 0.3) FROM person"]
)  # fmt: skip
def test_what_postgres_has_not_is_refused_by_name(small, text):
    with pytest.raises(BackendError) as caught:
        lower(normalize(from_sql(text, small.catalog())), POSTGRES)
    assert caught.value.code == "BAK-003"
