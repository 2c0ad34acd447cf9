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
from secant.numeric.quick import quick
from secant.plan import nodes as n
from secant.plan.evaluate.values import EPOCH, day_of, midnight
from secant.plan.facts.equalities import exactly_comparable
from secant.plan.facts.lineage import named_in
from secant.plan.facts.range_filters import FLIPPED
from secant.plan.typing import type_of
from secant.policy.policy import Policy

if TYPE_CHECKING:
    from secant.plan.facts.ranges import Ranges


def as_number(value: object) -> Fraction | None:
    """Read a constant as a number: dates as days, truth values and text not at all."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, Fraction):
        return value
    if isinstance(value, (int, Decimal, float)):
        return quick(value) if math.isfinite(value) else None
    if isinstance(value, datetime.datetime):
        seconds = (value - midnight(EPOCH)).total_seconds()
        return quick(seconds) / 86_400
    if isinstance(value, datetime.date):
        return quick(day_of(value))
    return None


def learn(ranges: Ranges, condition: n.Scalar) -> None:
    """Take what a condition says about a single column beside a constant, or beside another column."""
    if isinstance(condition, n.Compare):
        for a, b, op in (
            (condition.left, condition.right, condition.op),
            (condition.right, condition.left, FLIPPED[condition.op]),
        ):
            if isinstance(a, n.Column) and isinstance(b, n.Column):
                if op != "<>" and exactly_comparable(a, b):
                    ranges.relations.setdefault(a.name, []).append((op, b))
            elif (
                isinstance(a, n.Column)
                and isinstance(b, n.Literal)
                and type_of(b).kind != "TIMESTAMP"
            ):
                value = as_number(b.value)
                if value is not None:
                    _narrow(ranges, a.name, _half_line(op, value))
    elif isinstance(condition, n.InList) and isinstance(condition.operand, n.Column):
        values = [as_number(i.value) if isinstance(i, n.Literal) else None for i in condition.items]
        numbers = [v for v in values if v is not None]
        if len(numbers) == len(values) and numbers:
            _narrow(ranges, condition.operand.name, iv.Interval(min(numbers), max(numbers)))


def _half_line(op: str, value: Fraction) -> iv.Interval:
    if op == "=":
        return iv.point(value)
    if op in ("<", "<="):
        return iv.Interval(None, value)
    if op in (">", ">="):
        return iv.Interval(value, None)
    return iv.EVERYTHING


def _narrow(ranges: Ranges, name: str, by: iv.Interval) -> None:
    both = iv.meet(ranges.filtered.get(name, iv.EVERYTHING), by)
    if both is not None:  # contradictory filters: no row passes, any interval is right
        ranges.filtered[name] = both


def declared_keys(policy: Policy, scan: n.Scan) -> list[frozenset[str]]:
    """Give the declared key of a table in the names of one scan."""
    key = named_in(scan, policy.facts(scan.table).key)
    return [frozenset(key)] if key else []
