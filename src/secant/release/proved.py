"""Leave out what a plan's own conditions prove: ends that no row is beyond, and how days are counted from none.

In: a plan. Out: one with the same rows and columns. A column that a condition keeps between two constants is not moved
into a range that holds both; days between two dates that are there and finite are their difference, which engines
compute faster than by the name of the unit. Only dates, whole numbers and decimals: none of them is NaN. Never here:
statistics of an engine, which tell of the rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from secant.plan import nodes as n
from secant.plan.regions import joined
from secant.plan.rewrite import transform
from secant.plan.typing import type_of

_ORDERED = ("DATE", "INTEGER", "DECIMAL")
Ends = Mapping[str, tuple[Any, Any]]
"""Column -> constants that it is at least and at most; None where nothing is known."""


def without_proved(plan: n.Relation) -> n.Relation:
    """Shorten what is computed of rows that conditions have cut down."""
    return transform(plan, _shortened, n.Project)


def _shortened(node: n.Node) -> n.Node:
    if not isinstance(node, n.Project):
        return node
    ends = _ends(node.input)

    def change(part: n.Node) -> n.Node:
        if isinstance(part, n.Relation):
            return part  # a subquery has conditions of its own
        made = n.rebuild(part, change)
        if isinstance(made, n.Call) and made.function == "date_diff":
            return _counted(made, ends)
        if isinstance(made, n.Clamp) and _within(made, ends):
            return made.operand
        return made

    items = tuple(change(item) for item in node.items)
    assert all(isinstance(item, n.Named) for item in items)
    return node if items == node.items else n.Project(node.input, items)  # type: ignore[arg-type]


def _ends(rows: n.Relation) -> Ends:
    """Say between which constants conditions keep the columns of rows that are not grouped, padded or renamed."""
    found: dict[str, tuple[Any, Any]] = {}
    for part in joined(rows).conditions:
        if not isinstance(part, n.Compare) or not isinstance(part.left, n.Column):
            continue
        kind, right = part.left.type, part.right
        if kind.kind not in _ORDERED or not isinstance(right, n.Literal):
            continue
        if right.value is None or right.type.kind != kind.kind:
            continue
        low, high = found.get(part.left.name, (None, None))
        if part.op in (">=", ">", "="):
            low = right.value if low is None else max(low, right.value)
        if part.op in ("<=", "<", "="):
            high = right.value if high is None else min(high, right.value)
        found[part.left.name] = low, high
    return found


def _within(clamp: n.Clamp, ends: Ends) -> bool:
    """Whether a column is known to lie in the range that it is moved into."""
    if not isinstance(clamp.operand, n.Column):
        return False
    low, high = ends.get(clamp.operand.name, (None, None))
    if low is None or high is None:
        return False
    first, last = (x.value if isinstance(x, n.Literal) else None for x in (clamp.low, clamp.high))
    return first is not None and last is not None and bool(first <= low and high <= last)


def _counted(call: n.Call, ends: Ends) -> n.Scalar:
    """Write days from a constant to a date as a difference, if the date is never endless."""
    unit, start, end = call.arguments
    dates = type_of(start).kind == type_of(end).kind == "DATE"
    days = isinstance(unit, n.Literal) and unit.value == "day"
    held = isinstance(end, n.Clamp) and all(
        isinstance(x, n.Literal) and x.value is not None for x in (end.low, end.high)
    )
    kept = isinstance(end, n.Column) and None not in ends.get(end.name, (None, None))
    if dates and days and isinstance(start, n.Literal) and (held or kept):
        return n.Arithmetic("-", end, start)
    return call
