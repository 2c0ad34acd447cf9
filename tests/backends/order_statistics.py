"""Medians, quantiles and extremes: questions about them, and the cells that their releases draw from."""

from __future__ import annotations

import datetime
from decimal import Decimal
from fractions import Fraction

from secant.plan import nodes as n
from secant.plan.rewrites.rewrite import normalize
from secant.policy.policy import ColumnFacts, Policy, Protection, TableFacts
from secant.schema.catalog import Catalog
from secant.sensitivity.portfolio import Decomposition, prepare
from secant.sql.bind import from_sql

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


def counted(text: str, catalog: Catalog) -> list[n.Relation]:
    """Give the aggregates that count the cells of a release."""
    found = prepare(normalize(from_sql(text, catalog)), POLICY, POLICY.protections, catalog)
    assert isinstance(found, Decomposition)
    (bounded,) = found.bounded
    assert bounded.release.ranked
    return [ranked.cells for ranked in bounded.release.ranked]
