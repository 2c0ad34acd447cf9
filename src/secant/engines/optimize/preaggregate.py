"""Take the largest bound of many rows from their margins: of all rows with one margin only the largest value counts.

In: a plan. Out: one with the same rows and columns. Where a table's rows were cut down to those near an edge, each of
them would need exponentials for its bound. A bound that rises with one value, and otherwise hangs on the margin alone,
is largest at the largest value; floats keep that order, since their sums and products are rounded by one rule. So rows
are gathered by margin first, and the bound is computed once for each (derivative.floor). Done only where types and
declared ranges leave few margins: a public choice. Never here: data.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from secant.engines.optimize.preaggregate_by_key import gathered_by_key
from secant.plan import nodes as n
from secant.plan.facts.domain_size import values_within
from secant.plan.facts.regions import is_cut_down, unfiltered
from secant.plan.rewrites.hoist import definitions, hoisted, passed_on, projections
from secant.plan.rewrites.rewrite import columns_of, substitute, transform
from secant.plan.typing import fields_of, type_of
from secant.records import frozen
from secant.schema.types import INTEGER

MOST = 1 << 15
"""Margins, at most: gathering by more costs as much as what it spares."""
_PICKING = ("lowest", "highest", "least", "greatest")
Definitions = Mapping[str, n.Scalar]


def gathered_by_margin(plan: n.Relation) -> n.Relation:
    """Gather rows by their margins where bounds are taken of all rows of a table near an edge."""
    return transform(plan, _gathered, n.Aggregate)


def _gathered(node: n.Node) -> n.Node:
    if not isinstance(node, n.Aggregate) or node.keys:
        return node
    layers, core = projections(node.input)
    margin = _margin(node, layers)
    near_an_edge = is_cut_down(core) and isinstance(unfiltered(core)[1], n.Scan)
    if margin is None or not near_an_edge or not all(map(_divisible, node.aggregations)):
        return node
    by_name = definitions(layers)
    values = _values(by_name, margin)
    if values is None or values > MOST:
        return node
    rising = {c.name: x for c in node.aggregations if (x := _risen(c, by_name, margin)) is not None}
    if not rising:
        return node
    bounds = {name: (risen.bound, risen.value) for name, risen in rising.items()}
    finer = gathered_by_key(node, core, margin, by_name, bounds)
    return finer or _rewritten(node, layers, core, margin, rising)


def _margin(node: n.Aggregate, layers: list[n.Project]) -> str | None:
    """Name the column that the only step of the summands reads; None if there is none such."""
    if not layers:
        return None
    steps = {
        x.arguments[0]
        for item in layers[0].items
        for x in n.walk(item.expression)
        if isinstance(x, n.Call) and x.function == "ramp"
    }
    names = {x.name for x in steps if isinstance(x, n.Column)}
    return names.pop() if len(names) == 1 and all(isinstance(x, n.Column) for x in steps) else None


def _divisible(call: n.Aggregation) -> bool:
    """Whether an aggregate of groups gives that of all rows, to the last digit."""
    if call.distinct or call.argument is None:
        return False
    whole = call.function == "sum" and type_of(call.argument) == INTEGER
    return whole or call.function in ("min", "max")


def _values(by_name: Definitions, name: str) -> int | None:
    """Give the most values that a column can have, an empty one among them; None if that is not public."""

    def count(scalar: n.Scalar) -> int | None:
        if isinstance(scalar, n.Literal):
            return 1
        if isinstance(scalar, n.Column):
            return count(by_name[scalar.name]) if scalar.name in by_name else None
        if isinstance(scalar, n.Clamp):
            return values_within(scalar)
        if not isinstance(scalar, (n.Arithmetic, n.Cast, n.Call)):
            return None
        parts = [x for x in n.children(scalar) if not isinstance(x, n.Literal)]
        counts = [count(x) for x in parts if isinstance(x, n.Scalar)]
        finite = [c for c in counts if c is not None]
        if len(finite) < len(parts):
            return None
        if isinstance(scalar, n.Call) and scalar.function in _PICKING:
            return sum(finite)
        return finite[0] if len(finite) == 1 else None

    return count(n.Column(name, type_of(by_name[name]))) if name in by_name else None


@frozen
class _Risen:
    """A bound over the margin and one value that it rises with."""

    bound: n.Scalar
    value: str


def _risen(call: n.Aggregation, by_name: Definitions, margin: str) -> _Risen | None:
    """Write a bound over its margin and one other column, if it never falls where that rises."""
    if call.function != "max" or not isinstance(call.argument, n.Column):
        return None

    @n.once
    def change(node: n.Node) -> n.Node:
        if not isinstance(node, n.Column):
            return n.rebuild(node, change)
        inner = by_name.get(node.name)
        if inner is None or node.name == margin:
            return node
        # A column that is computed of stored ones stays: it is what the largest is taken of.
        return change(inner) if all(c in by_name for c in columns_of(inner)) else node

    bound = change(call.argument)
    assert isinstance(bound, n.Scalar)
    others = columns_of(bound) - {margin}
    if len(others) != 1 or not any(
        isinstance(x, n.Call) and x.function == "exp" for x in n.walk(bound)
    ):
        return None
    (value,) = others
    return _Risen(bound, value) if _rises(bound, value) else None


def _rises(scalar: n.Scalar, value: str) -> bool:
    """Whether an expression never falls where a column rises, in floats, too, and with an empty one below all."""
    if value not in columns_of(scalar):
        return True
    if isinstance(scalar, n.Column):
        return True
    if isinstance(scalar, n.Arithmetic):
        left, right = scalar.left, scalar.right
        if scalar.op == "+":
            return _rises(left, value) and _rises(right, value)
        if scalar.op == "*":
            one, other = (left, right) if value in columns_of(right) else (right, left)
            return value not in columns_of(one) and _not_negative(one) and _rises(other, value)
        return False
    if isinstance(scalar, n.Call) and scalar.function == "greatest":
        return all(_rises(x, value) for x in scalar.arguments)
    if isinstance(scalar, n.Case):
        return _rises(scalar.default, value) and all(
            value not in columns_of(b.condition) and _rises(b.value, value) for b in scalar.branches
        )
    return False


def _not_negative(scalar: n.Scalar) -> bool:
    if isinstance(scalar, n.Literal):
        return isinstance(scalar.value, float) and scalar.value >= 0
    if isinstance(scalar, n.Case):
        return _not_negative(scalar.default) and all(
            _not_negative(b.value) for b in scalar.branches
        )
    if isinstance(scalar, n.Arithmetic) and scalar.op == "*":
        return _not_negative(scalar.left) and _not_negative(scalar.right)
    return isinstance(scalar, n.Call) and scalar.function == "exp"


def _rewritten(
    node: n.Aggregate,
    layers: list[n.Project],
    core: n.Relation,
    margin: str,
    risen: Mapping[str, _Risen],
) -> n.Relation:
    """Aggregate by margin first, then write the bounds, then aggregate."""
    kinds = {f.name: f.type for relation in (core, *layers) for f in fields_of(relation)}
    inner, outer, summands = [], [], []
    for call in node.aggregations:
        part = n.Column(f"{call.name}.margin", type_of(call))
        bound = risen.get(call.name)
        if bound is None:
            inner.append(replace(call, name=part.name))
            summands.append(n.Named(part.name, part))
        else:
            largest = n.Column(f"{bound.value}.largest", kinds[bound.value])
            largest_call = n.Aggregation(largest.name, "max", n.Column(bound.value, largest.type))
            inner += [] if largest_call in inner else [largest_call]
            summands.append(n.Named(part.name, substitute(bound.bound, {bound.value: largest})))
        outer.append(replace(call, argument=part))
    read = frozenset({margin}).union(*map(columns_of, inner))
    remaining, _ = passed_on([layer.items for layer in reversed(layers)], read, kinds)
    rows = core
    for items in remaining:
        rows = n.Project(rows, items)
    key = n.Named(margin, n.Column(margin, kinds[margin]))
    parts = n.Aggregate(rows, (key,), tuple(inner))
    relation, items = hoisted(parts, tuple(summands), f"{margin}.once")
    return replace(node, input=n.Project(relation, items), aggregations=tuple(outer))
