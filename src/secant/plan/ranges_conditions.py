"""What conditions and constants say of columns: numbers, half-lines, comparisons of two columns.

In: a relation's conditions. Out: they are entered into `Ranges`. Only conditions that every row has passed count.
Never here: data.
"""

from __future__ import annotations

import datetime
import math
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING

from secant.numeric import interval as iv
from secant.plan import nodes as n
from secant.plan.matching import exactly_comparable
from secant.plan.ranges_filters import FLIPPED
from secant.plan.typing import type_of
from secant.terms.policy import Policy

if TYPE_CHECKING:
    from secant.plan.ranges import Ranges


def as_number(value: object) -> Fraction | None:
    """Read a constant as a number: dates as days, truth values and text not at all."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, (int, Decimal, float, Fraction)):
        return Fraction(value) if math.isfinite(value) else None
    if isinstance(value, datetime.datetime):
        seconds = (value - datetime.datetime(1970, 1, 1)).total_seconds()  # noqa: DTZ001
        return Fraction(seconds) / 86_400
    if isinstance(value, datetime.date):
        return Fraction(value.toordinal() - datetime.date(1970, 1, 1).toordinal())
    return None


def conditions_on(relation: n.Relation) -> list[n.Scalar]:
    """Give the conditions that every row of the relation has passed."""
    if isinstance(relation, n.Filter):
        return [*conditions_on(relation.input), *n.conjuncts(relation.predicate)]
    if isinstance(relation, (n.Project, n.Sort, n.Distinct, n.Limit, n.Truncate, n.TruncateGroups)):
        return conditions_on(relation.input)
    if isinstance(relation, n.Aggregate) and relation.keys:
        return conditions_on(relation.input)  # they speak of columns, and only key columns live on
    if isinstance(relation, n.Join):
        left = conditions_on(relation.left)
        if relation.kind == "left":
            return left
        return [*left, *conditions_on(relation.right), *n.conjuncts(relation.condition)]
    return []


def learn(found: Ranges, condition: n.Scalar) -> None:
    """Take what a condition says about a single column beside a constant, or beside another column."""
    if isinstance(condition, n.Compare):
        for a, b, op in (
            (condition.left, condition.right, condition.op),
            (condition.right, condition.left, FLIPPED[condition.op]),
        ):
            if isinstance(a, n.Column) and isinstance(b, n.Column):
                if op != "<>" and exactly_comparable(a, b):
                    found.relations.setdefault(a.name, []).append((op, b))
            elif (
                isinstance(a, n.Column)
                and isinstance(b, n.Literal)
                and type_of(b).kind != "TIMESTAMP"
            ):
                value = as_number(b.value)
                if value is not None:
                    _narrow(found, a.name, _half_line(op, value))
    elif isinstance(condition, n.InList) and isinstance(condition.operand, n.Column):
        values = [as_number(i.value) if isinstance(i, n.Literal) else None for i in condition.items]
        numbers = [v for v in values if v is not None]
        if len(numbers) == len(values) and numbers:
            _narrow(found, condition.operand.name, iv.Interval(min(numbers), max(numbers)))


def _half_line(op: str, value: Fraction) -> iv.Interval:
    if op == "=":
        return iv.point(value)
    if op in ("<", "<="):
        return iv.Interval(None, value)
    if op in (">", ">="):
        return iv.Interval(value, None)
    return iv.EVERYTHING


def _narrow(found: Ranges, name: str, by: iv.Interval) -> None:
    both = iv.meet(found.filtered.get(name, iv.EVERYTHING), by)
    if both is not None:  # contradictory filters: no row passes, any interval is right
        found.filtered[name] = both


def declared_keys(policy: Policy, scan: n.Scan) -> list[frozenset[str]]:
    """Give the declared key of a table in the names of one scan."""
    names = {f.name[len(scan.alias) + 1 :].lower(): f.name for f in scan.columns}
    key = policy.facts(scan.table).key
    return [frozenset(names[c] for c in key)] if key and all(c in names for c in key) else []
