"""Leave out what a plan's own conditions prove: ends that no row is beyond, days from no date, cells that are empty.

In: a plan. Out: one with the same rows and columns. A column that a condition keeps between two constants is not moved
into a range that holds both; days between two dates that are there and finite are their difference, which engines
compute faster than by the name of the unit; and of numbers that are all there the last one is the least if no other is.
Ends only of dates, whole numbers and decimals: none of them is NaN. Never here: statistics of an engine, which tell of
the rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from secant.plan import nodes as n
from secant.plan.facts.regions import joined
from secant.plan.rewrites.rewrite import transform
from secant.plan.rewrites.simplify import never_empty
from secant.plan.typing import type_of
from secant.schema.types import DOUBLE

_ORDERED = ("DATE", "INTEGER", "DECIMAL")
_SHORTENED = n.bits(n.Call, n.Clamp)
"""What is written shorter."""
Ends = Mapping[str, tuple[Any, Any]]
"""Column -> constants that it is at least and at most; None where nothing is known."""


def without_proved(plan: n.Relation) -> n.Relation:
    """Shorten what is computed of rows that conditions have cut down."""
    return transform(plan, _shortened, n.Project)


def _shortened(node: n.Node) -> n.Node:
    if not isinstance(node, n.Project) or not any(n.kinds(i) & _SHORTENED for i in node.items):
        return node
    ends = _ends(node.input)
    picks = any(map(_picks, (x for item in node.items for x in n.walk(item.expression))))
    there = _there(node.input) if picks else frozenset()

    @n.once
    def change(part: n.Node) -> n.Node:
        if isinstance(part, n.Relation) or not n.kinds(part) & _SHORTENED:
            return part  # a subquery has conditions of its own
        changed = n.rebuild(part, change)
        if isinstance(changed, n.Call) and changed.function == "date_diff":
            return _counted(changed, ends)
        if isinstance(changed, n.Clamp) and _within(changed, ends):
            return changed.operand
        if _picks(changed) and all(_is_there(x, there) for x in n.children(changed)):
            assert isinstance(changed, n.Call)
            return _first(changed)
        return changed

    items = tuple(change(item) for item in node.items)
    assert all(isinstance(item, n.Named) for item in items)
    return node if items == node.items else n.Project(node.input, items)  # type: ignore[arg-type]


def _ends(rows: n.Relation) -> Ends:
    """Say between which constants conditions keep the columns of rows that are not grouped, padded or renamed."""
    ends: dict[str, tuple[Any, Any]] = {}
    for part in joined(rows).conditions:
        if not isinstance(part, n.Compare) or not isinstance(part.left, n.Column):
            continue
        kind, right = part.left.type, part.right
        if kind.kind not in _ORDERED or not isinstance(right, n.Literal):
            continue
        if right.value is None or right.type.kind != kind.kind:
            continue
        low, high = ends.get(part.left.name, (None, None))
        if part.op in (">=", ">", "="):
            low = right.value if low is None else max(low, right.value)
        if part.op in ("<=", "<", "="):
            high = right.value if high is None else min(high, right.value)
        ends[part.left.name] = low, high
    return ends


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
    clamped = isinstance(end, n.Clamp) and all(
        isinstance(x, n.Literal) and x.value is not None for x in (end.low, end.high)
    )
    bounded = isinstance(end, n.Column) and None not in ends.get(end.name, (None, None))
    if dates and days and isinstance(start, n.Literal) and (clamped or bounded):
        return n.Arithmetic("-", end, start)
    return call


def _picks(node: n.Node) -> bool:
    """Whether the least or the largest is taken of several numbers, or nothing if one of them is empty."""
    return (
        isinstance(node, n.Call)
        and node.function in ("lowest", "highest")
        and len(node.arguments) > 1
    )


def _first(call: n.Call) -> n.Scalar:
    """Compare each number with those after it: one that an earlier one beats is not asked, and the last one is left."""
    op = "<=" if call.function == "lowest" else ">="
    branches = []
    for i, x in enumerate(call.arguments[:-1]):
        beats = n.conjunction(tuple(n.Compare(op, x, y) for y in call.arguments[i + 1 :]))
        assert beats is not None
        branches.append(n.Branch(beats, x))
    return n.Case(tuple(branches), call.arguments[-1])


def _there(rows: n.Relation) -> frozenset[str]:
    """Name the columns of rows that are never empty."""
    if not isinstance(rows, n.Project):
        return never_empty(rows)
    below = _there(rows.input)
    return frozenset(item.name for item in rows.items if _is_there(item.expression, below))


def _is_there(node: n.Node, there: frozenset[str]) -> bool:
    """Whether an expression has a value in every row: made of what is there, by what fails for no value."""
    if isinstance(node, n.Literal):
        return node.value is not None
    if isinstance(node, n.Column):
        return node.name in there
    preserves = isinstance(node, n.Clamp)
    if isinstance(node, n.Arithmetic):
        preserves = node.op in ("+", "-", "*")
    elif isinstance(node, n.Cast):
        preserves = node.type == DOUBLE and type_of(node.operand).numeric
    elif isinstance(node, n.Call) and node.function == "date_diff":
        preserves = isinstance(
            node.arguments[2], n.Clamp
        )  # to an endless date there is no number of days
    elif isinstance(node, n.Call):
        preserves = node.function in ("abs", "lowest", "highest")
    return preserves and all(_is_there(x, there) for x in n.children(node))
