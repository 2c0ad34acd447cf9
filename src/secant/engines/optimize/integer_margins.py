"""Compute margins of whole days as whole numbers: engines add and compare these faster than floats.

In: a plan. Out: one with the same rows and columns, to the last digit. A margin of dates or whole numbers, with
constants that have few binary digits, is a whole number of halves, or of quarters, and floats hold each number on the
way exactly; so may whole numbers (derivative.grid (4)). Done where a filter is counted over joined rows: of one table
stored columns tell the margins (`by_column`), and other sums need floats anyway. What a join would carry as several
columns is handed to `carried`. Never here: data.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

from secant.engines.optimize.filter_by_column import filtered
from secant.engines.optimize.monotone import axis_of
from secant.engines.optimize.narrow_joins import Layers, carried_narrow
from secant.plan import nodes as n
from secant.plan.facts.regions import unfiltered
from secant.plan.rewrites.hoist import projections
from secant.plan.rewrites.rewrite import columns_of, substitute, transform
from secant.plan.rewrites.simplify import never_empty
from secant.plan.typing import type_of
from secant.records import frozen
from secant.schema.types import DATE, DOUBLE, INTEGER

MOST = 10**9
"""Whole numbers below this are exact as floats, too, and have nine digits."""
_FINE = 2**10
"""Parts of one, at most."""


@frozen
class Whole:
    """A float as a whole number of equal parts of one; or, with a start, as the date that is so many days after it."""

    scalar: n.Scalar
    parts: int
    low: int
    high: int
    start: datetime.date | None = None

    @property
    def number(self) -> n.Scalar:
        """Give it as a whole number."""
        if self.start is None:
            return self.scalar
        return n.Arithmetic("-", self.scalar, n.Literal(self.start, DATE))

    @property
    def float(self) -> n.Scalar:
        """Give the float: parts are a power of two, so nothing is rounded."""
        return _float(self.number, self.parts)


def in_whole_numbers(plan: n.Relation) -> n.Relation:
    """Write margins over joined rows in whole numbers, carried through joins as one column where that is less."""
    return transform(plan, _rewritten, n.Aggregate)


def _rewritten(node: n.Node) -> n.Node:
    if not isinstance(node, n.Aggregate):
        return node
    layers, core = projections(node.input)
    if (
        not layers
        or not isinstance(unfiltered(core)[1], n.Join)
        or any(map(_asks, (*layers, node)))
    ):
        return node
    present = never_empty(core)
    below, above = _Reading({}, present), _Reading({}, present)
    new_layers: Layers = []
    columns: set[str] = set()
    for layer in reversed(layers):
        below, above = above, _Reading({}, present)
        new_layers.append(tuple(_item(item, below, above.known) for item in layer.items))
        columns |= above.known.keys()
    if not columns or any(above.known.keys() & columns_of(key) for key in node.keys):
        return node
    counted = {c: s for c in node.aggregations if (s := _steps(c, node, layers[0], below))}
    if not counted:
        return node
    steps = {s.name: s for s in counted.values()}
    new_layers[-1] = tuple(steps.get(item.name, item) for item in new_layers[-1])
    calls, items = [], [n.Named(k.name, n.Column(k.name, type_of(k.expression))) for k in node.keys]
    for call in node.aggregations:
        extreme = _extreme(call, above.known)
        result: n.Scalar = n.Column(call.name, type_of(call))
        if call in counted:
            call = replace(call, argument=n.Column(counted[call].name, INTEGER))
        elif extreme is not None:
            call = replace(call, argument=extreme.number)
            result = _float(n.Column(call.name, INTEGER), extreme.parts)
        elif call.argument is not None:
            call = replace(call, argument=above.floated(call.argument))
        calls.append(call)
        items.append(n.Named(call.name, result))
    whole = replace(node, aggregations=tuple(calls))
    rows = replace(whole, input=carried_narrow(whole, new_layers, core, columns))
    return n.Project(rows, tuple(items))


def _asks(node: n.Node) -> bool:
    return any(n.has_subquery(x) for x in n.children(node) if isinstance(x, (n.Scalar, n.Named)))


def _float(number: n.Scalar, parts: int) -> n.Scalar:
    cast = n.Cast(number, DOUBLE)
    return cast if parts == 1 else n.Arithmetic("*", cast, n.Literal(1.0 / parts, DOUBLE))


def _item(item: n.Named, below: _Reading, wholes: dict[str, Whole]) -> n.Named:
    """Write a column as a whole number where it is one; else over the whole ones that it reads."""
    whole = None if isinstance(item.expression, n.Literal) else below.whole(item.expression)
    if whole is None:
        return n.Named(item.name, below.floated(item.expression))
    column = n.Column(item.name, type_of(whole.scalar))
    wholes[item.name] = replace(whole, scalar=column)
    return n.Named(item.name, whole.scalar)


def _extreme(call: n.Aggregation, whole: Mapping[str, Whole]) -> Whole | None:
    """Give the whole numbers of which the least or largest is taken; parts of one are in the same order."""
    if call.function not in ("min", "max") or call.second is not None:
        return None
    return whole.get(call.argument.name) if isinstance(call.argument, n.Column) else None


def _steps(
    call: n.Aggregation, node: n.Aggregate, top: n.Project, below: _Reading
) -> n.Named | None:
    """Write the steps of a filter that is summed alone as a whole number, in place of its column."""
    if call.function != "sum" or call.distinct or call.argument is None:
        return None
    read = columns_of(call.argument)
    others = [x for x in (*node.keys, *node.aggregations) if x is not call]
    if len(read) != 1 or any(read & columns_of(x) for x in others):
        return None
    (name,) = read
    definitions = {item.name: item.expression for item in top.items}
    summand = filtered(substitute(call.argument, {name: definitions[name]}))
    if summand is None or summand.value is not None or len(summand.margins) != 1:
        return None
    margin = below.whole(summand.margins[0])
    assert isinstance(summand.factor.value, float)
    factor = int(summand.factor.value)
    if margin is not None and margin.parts == 1:  # the ramp begins at a half
        margin = _exactly_held(_times(margin, 2, 2))
    if margin is None or factor % margin.parts:
        return None
    half, number = margin.parts // 2, margin.number
    each = n.Literal(factor // margin.parts, INTEGER)
    ramp = n.Arithmetic("*", n.Arithmetic("+", number, n.Literal(half, INTEGER)), each)
    branches = (
        n.Branch(n.Compare(">=", number, n.Literal(half, INTEGER)), n.Literal(factor, INTEGER)),
        n.Branch(n.Compare("<=", number, n.Literal(-half, INTEGER)), n.Literal(0, INTEGER)),
    )
    return n.Named(name, n.Case(branches, ramp))


class _Reading:
    """Which columns of some rows are whole numbers, and which of the stored ones are never empty."""

    def __init__(self, wholes: dict[str, Whole], present: frozenset[str]) -> None:
        self.known, self.present = wholes, present

    def whole(self, scalar: n.Scalar) -> Whole | None:
        """Read a float as a whole number; None where floats may round on the way, or something may be empty."""
        if type_of(scalar) != DOUBLE:
            return None
        if isinstance(scalar, n.Literal):
            return _constant(scalar)
        if isinstance(scalar, n.Column):
            return self.known.get(scalar.name)
        if isinstance(scalar, n.Cast):
            inner = scalar.operand
            return self.whole(inner) if type_of(inner) == DOUBLE else self._stored(inner)
        if isinstance(scalar, n.Arithmetic):
            left, right = self.whole(scalar.left), self.whole(scalar.right)
            return None if left is None or right is None else _computed(scalar.op, left, right)
        if isinstance(scalar, n.Call) and scalar.function in ("abs", "lowest", "highest"):
            parts = [self.whole(x) for x in scalar.arguments]
            some = [x for x in parts if x is not None]
            if len(some) < len(parts):
                return None
            return _size(some[0]) if scalar.function == "abs" else _picked(scalar.function, some)
        return None

    def _stored(self, scalar: n.Scalar) -> Whole | None:
        """Read a stored column that is moved into a range: a whole number, or the days from a date to it."""
        start = None
        if isinstance(scalar, n.Call) and scalar.function == "date_diff":
            unit, first, scalar = scalar.arguments
            if not isinstance(unit, n.Literal) or unit.value != "day":
                return None
            start = first.value if isinstance(first, n.Literal) else None
        axis = axis_of(scalar) if isinstance(scalar, n.Clamp) else None
        if axis is None or axis.column.name not in self.present:
            return None
        ends = axis.value(0), axis.value(axis.last)
        if axis.column.type == DATE and type(start) is datetime.date:
            low, high = ((x - start).days for x in ends)
            return _exactly_held(Whole(scalar, 1, low, high, start))
        if axis.column.type == INTEGER and start is None:
            return _exactly_held(Whole(scalar, 1, int(ends[0]), int(ends[1])))
        return None

    def floated(self, scalar: n.Scalar) -> n.Scalar:
        """Write an expression over floats for one over whole numbers."""

        @n.once
        def change(node: n.Node) -> n.Node:
            if isinstance(node, n.Compare):
                condition = self._asked(node)
                return n.rebuild(node, change) if condition is None else condition
            if not isinstance(node, n.Scalar) or isinstance(node, n.Literal):
                return n.rebuild(node, change)
            whole = self.whole(node)
            return n.rebuild(node, change) if whole is None else whole.float

        changed = change(scalar)
        assert isinstance(changed, n.Scalar)
        return changed

    def _asked(self, node: n.Compare) -> n.Scalar | None:
        """Compare whole numbers instead of a float and a constant."""
        limit = node.right.value if isinstance(node.right, n.Literal) else None
        whole = None if isinstance(node.left, n.Literal) else self.whole(node.left)
        if whole is None or not isinstance(limit, float) or not abs(limit) < MOST:
            return None
        if node.op not in ("<", "<=", ">", ">="):
            return None
        exact = Fraction(limit) * whole.parts
        border = math.ceil(exact) if node.op in ("<", ">=") else math.floor(exact)
        return n.Compare(node.op, whole.number, n.Literal(border, INTEGER))


def _exactly_held(whole: Whole) -> Whole | None:
    """Give it back if it, and all its parts, are so small that floats and whole numbers hold them exactly."""
    return whole if -MOST < whole.low <= whole.high < MOST and whole.parts <= _FINE else None


def _constant(literal: n.Literal) -> Whole | None:
    value = literal.value
    if not isinstance(value, float) or not abs(value) < MOST:
        return None
    number, parts = value.as_integer_ratio()
    return _exactly_held(Whole(n.Literal(number, INTEGER), parts, number, number))


def _times(whole: Whole, factor: int, parts: int) -> Whole:
    """Multiply by a constant, and say of how many parts of one the product is."""
    low, high = sorted((whole.low * factor, whole.high * factor))
    number = whole.number
    if isinstance(number, n.Literal):
        number = n.Literal(low, INTEGER)
    elif factor != 1:
        number = n.Arithmetic("*", number, n.Literal(factor, INTEGER))
    return Whole(number, parts, low, high)


def _alike(some: list[Whole]) -> list[Whole]:
    """Write numbers in the same parts of one."""
    parts = max(x.parts for x in some)
    return [_times(x, parts // x.parts, parts) for x in some]


def _computed(op: str, left: Whole, right: Whole) -> Whole | None:
    if op == "*":
        if isinstance(left.scalar, n.Literal):
            left, right = right, left
        if not isinstance(right.scalar, n.Literal):
            return None
        factor = Fraction(right.low, right.parts * left.parts)
        return _exactly_held(_times(left, factor.numerator, factor.denominator))
    if op not in ("+", "-"):
        return None
    since = left.start is not None and left.start == right.start and op == "-"
    one, other = (left, right) if since else _alike([left, right])
    ends = (other.low, other.high) if op == "+" else (-other.high, -other.low)
    # Of two dates that are counted from one day, engines take the difference.
    scalar = n.Arithmetic(op, *(x.scalar if since else x.number for x in (one, other)))
    return _exactly_held(Whole(scalar, one.parts, one.low + ends[0], one.high + ends[1]))


def _size(whole: Whole) -> Whole:
    most = max(abs(whole.low), abs(whole.high))
    return Whole(n.Call("abs", (whole.number,)), whole.parts, 0, most)


def _picked(function: str, some: list[Whole]) -> Whole | None:
    """Take the least or the largest of numbers that are all there."""
    alike = _alike(some)
    name, pick = ("least", min) if function == "lowest" else ("greatest", max)
    scalar = n.Call(name, tuple(x.number for x in alike))
    low, high = pick(x.low for x in alike), pick(x.high for x in alike)
    return _exactly_held(Whole(scalar, alike[0].parts, low, high))
