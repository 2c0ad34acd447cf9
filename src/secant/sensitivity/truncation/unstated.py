"""Plans that count units by their largest and smallest values: what a choice of an undeclared range or limit looks at.

In: a table, a protection that hides its rows or its units, public lists of candidates. Out: plans made of nodes that
every engine prints, each of which counts every unit at most once (truncation.range, truncation.rows). Nothing is read
or chosen here.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from secant.plan import nodes as n
from secant.plan.facts.facts import Facts
from secant.plan.rewrites.enforce import MeasuredAggregate, enforce
from secant.plan.rewrites.measures import literal
from secant.plan.typing import fields_of, type_of
from secant.policy.policy import Policy, Protection
from secant.records import frozen
from secant.schema import types as t
from secant.schema.catalog import Catalog
from secant.sensitivity.certificate import CannotBound
from secant.sensitivity.truncation.analysis import owned_rows

_NAME = "secant_unstated"


@frozen
class Extremes:
    """One row for each unit (or row, where rows are hidden): its largest and smallest value, or its number of rows."""

    relation: n.Relation
    top: n.Scalar
    bottom: n.Scalar | None
    """None where rows of a unit are counted."""

    def outside(self, low: Fraction | None, high: Fraction) -> n.Scalar:
        """Whether a unit has a value above `high`, or below `low`."""
        above = n.Compare(">", self.top, literal(high, type_of(self.top)))
        if low is None or self.bottom is None:
            return above
        return n.Or((n.Compare("<", self.bottom, literal(low, type_of(self.bottom))), above))

    def counted(self, ends: Sequence[tuple[Fraction | None, Fraction]]) -> n.Aggregate:
        """Count for each pair of ends the units that have a value outside: one column each, in order."""
        calls = []
        for place, (low, high) in enumerate(ends):
            branch = n.Branch(self.outside(low, high), n.Literal(1, t.INTEGER))
            one = n.Case((branch,), n.Literal(None, t.INTEGER))
            calls.append(n.Aggregation(f"{_NAME}.outside{place}", "count", one))
        return n.Aggregate(self.relation, (), tuple(calls))


def extremes(
    table: str, column: str | None, policy: Policy, protection: Protection, catalog: Catalog
) -> Extremes | None:
    """Give the values of a column unit by unit, or the number of each unit's rows; None where units share rows."""
    known = catalog.table(table)
    assert known is not None
    fields = tuple(n.Field(f"{_NAME}.{name}", kind) for name, kind in known.columns)
    scan = n.Scan(known.name, _NAME, fields)
    named = next((f for f in fields if column is not None and _same(f.name, column)), None)
    value = None if named is None else n.Column(named.name, named.type)
    if protection.kind == "rows":
        return None if value is None else Extremes(scan, value, value)
    if protection.kind != "unit":
        return None
    counted = n.Aggregate(scan, (), (n.Aggregation(f"{_NAME}.n", "count", value),))
    facts = Facts(policy, catalog)
    release = enforce(counted, _NAME, facts, (protection,))
    if not isinstance(release, MeasuredAggregate):
        return None
    try:
        rows, _, unit = owned_rows(release, facts.owners(protection))
    except CannotBound:
        return None
    owner = next(n.Column(f.name, f.type) for f in fields_of(rows) if f.name == unit)
    owned = n.Filter(rows, n.Not(n.IsNull(owner)))
    key = n.Named(f"{_NAME}.unit", owner)
    if value is None:
        each = n.Aggregate(owned, (key,), (n.Aggregation(f"{_NAME}.rows", "count", None),))
        return Extremes(each, n.Column(f"{_NAME}.rows", t.INTEGER), None)
    kept = release.exact.aggregations[
        0
    ].argument  # enforcement may have given the column another name
    if kept is None or type_of(kept) != value.type:
        return None
    calls = tuple(n.Aggregation(f"{_NAME}.{f}", f, kept) for f in ("max", "min"))
    each = n.Aggregate(owned, (key,), calls)
    top, bottom = (n.Column(f"{_NAME}.{f}", value.type) for f in ("max", "min"))
    return Extremes(each, top, bottom)


def _same(field: str, column: str) -> bool:
    return field.removeprefix(f"{_NAME}.").lower() == column.lower()
