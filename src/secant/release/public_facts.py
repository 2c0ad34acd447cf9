"""Public facts that steer a release, looked up in the session that will answer it.

In: a session. Out: counts, ends and fans of public columns, and values of public subqueries, as the analyses ask for
them. Each is looked up once for the data that the session knows: again in the next question where that may see other
data, and not where files are read that may not change at all.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from functools import cache

from secant.engines.backend import Session, public_rows
from secant.engines.dialect import quote, stored_rows
from secant.engines.print.print_sql import lower
from secant.plan import nodes as n
from secant.plan.facts.cardinality import expected_rows
from secant.plan.facts.ranges import as_number
from secant.plan.rewrites.null_after_release import unfailing
from secant.plan.typing import fields_of
from secant.policy.coverage import is_open
from secant.policy.policy import Policy
from secant.schema.types import Type
from secant.sensitivity.public_facts import PublicFacts


def public_facts(policy: Policy, session: Session) -> PublicFacts:
    """Give what may steer how useful a release is; None wherever a protection covers what would be looked at.

    For an epsilon of 1; `at` gives the same facts for another one, and nothing is looked up twice.
    """

    def rows_of(table: str, columns: Sequence[str] = ()) -> tuple[str, list[str]]:
        """Write the rows of a table with the columns that are looked at, and no other; give their names."""
        facts = session.catalog().table(table)
        assert facts is not None, f"{table} is in the catalog"
        names = session.catalog().spelled(table, columns)[1]
        return stored_rows(session.dialect, facts, names), [quote(name) for name in names]

    def stored(table: str, columns: Sequence[str]) -> bool:
        """Whether these are columns that the table stores.

        Parts of documents and arrays are not looked up: they are known by names in lower case here, and the part of
        another spelling may be another one, in other rows.
        """
        stored_table = session.catalog().table(table)
        return stored_table is not None and {c.lower() for c, _ in stored_table.columns}.issuperset(
            columns
        )

    @cache
    def count(table: str) -> int | None:
        if not is_open(policy, table):
            return None
        ((number,),) = public_rows(session, f"SELECT count(*) FROM {rows_of(table)[0]} AS t")
        return number if isinstance(number, int) else None

    @cache
    def fan(table: str, columns: tuple[str, ...]) -> int | None:
        if not columns:
            return count(table)
        if not is_open(policy, table, columns) or not stored(table, columns):
            return None
        rows, names = rows_of(table, columns)
        counts = f"SELECT count(*) AS n FROM {rows} AS t GROUP BY {', '.join(names)}"
        ((number,),) = public_rows(session, f"SELECT max(n) FROM ({counts}) AS counted")
        return number if isinstance(number, int) else None

    @cache
    def ends(table: str, column: str) -> tuple[Fraction, Fraction] | None:
        if not is_open(policy, table, (column,)) or not stored(table, (column,)):
            return None
        rows, (exact,) = rows_of(table, [column])
        ((low, high),) = public_rows(session, f"SELECT min({exact}), max({exact}) FROM {rows} AS t")
        first, last = as_number(low), as_number(high)
        return None if first is None or last is None else (first, last)

    def expected(relation: n.Relation) -> int | None:
        return expected_rows(relation, policy, count)

    def value(relation: n.Relation) -> n.Literal | None:
        (column,) = fields_of(relation)
        rows = public_rows(session, lower(n.Limit(unfailing(relation), 2, 0), session.dialect))
        if len(rows) > 1:
            return None
        return _literal(rows[0][0] if rows else None, column.type)

    return PublicFacts(rows=expected, ends=ends, count=count, fan=fan, value=value)


_TYPES: dict[str, type] = {
    "INTEGER": int, "DOUBLE": float, "DECIMAL": Decimal, "TEXT": str, "BOOLEAN": bool, "DATE": date,
    "TIMESTAMP": datetime,
}  # fmt: skip


def _literal(value: object, kind: Type) -> n.Literal | None:
    """Write a value that was read as a constant of its column's type; None where that may be another value."""
    if value is None:
        return n.Literal(None, kind)
    if type(value) is not _TYPES.get(kind.kind):
        return None
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Decimal) and not (value.is_finite() and _fits(Fraction(value), kind)):
        return None
    return n.Literal(value, kind)


def _fits(value: Fraction, kind: Type) -> bool:
    assert kind.precision is not None
    assert kind.scale is not None
    steps = value * 10**kind.scale
    return bool(steps.denominator == 1 and abs(steps) < 10**kind.precision)
