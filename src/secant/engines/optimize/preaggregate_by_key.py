"""Gather rows by stored columns that decide part of their margin, so that less is computed for each row.

In: an aggregate whose bounds rise with one decimal and otherwise hang on the margin. Out: the same, with rows gathered
by columns that have few values and by what is left of the margin; of the decimal only the largest and the sum are
taken, as they are stored. A sum of products in which one factor alone differs is the product with that factor's sum, no
farther from the measure than the rows one by one (derivative.grid (3)). Chosen by types, declared ranges and the text.
Never here: data.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from secant.engines.optimize.monotone import curve_of
from secant.plan import nodes as n
from secant.plan.rewrites.hoist import hoisted
from secant.plan.rewrites.rewrite import columns_of, substitute
from secant.plan.typing import type_of
from secant.records import frozen
from secant.schema.types import DOUBLE, INTEGER, MAX_PRECISION, Type

FEW = 64
"""Values of a column that is gathered by, at most."""
_STEPS = Type("DECIMAL", MAX_PRECISION, 0)
_DIGITS = 18
"""Digits of a decimal of which engines hold sums over all rows there may be."""
Definitions = Mapping[str, n.Scalar]


@frozen
class _Keys:
    """What rows are gathered by: stored columns, and the least of the margins that these do not decide."""

    columns: tuple[n.Column, ...]
    left: tuple[n.Scalar, ...]
    margin: n.Scalar
    """The margin over these columns and the column of what is left."""


def gathered_by_key(
    node: n.Aggregate,
    core: n.Relation,
    margin: str,
    definitions: Definitions,
    bounds: Mapping[str, tuple[n.Scalar, str]],
) -> n.Relation | None:
    """Aggregate by stored columns first; None if margins, values or sums are not made for it.

    `bounds` has, for each maximum, what it is of over the margin and over the value that it rises with.
    """
    remaining = n.Column(f"{margin}.left", DOUBLE)
    keys = _keys(_expanded(definitions[margin], definitions), remaining)
    values = {value for _, value in bounds.values()}
    if keys is None or len(values) != 1:
        return None
    (value,) = values
    stored = _stored(_expanded(definitions[value], definitions)) if value in definitions else None
    if stored is None:
        return None
    largest = n.Aggregation(f"{value}.largest", "max", n.Column(f"{value}.stored", type_of(stored)))
    summed = replace(largest, name=f"{value}.summed", function="sum")
    replacements: dict[str, n.Scalar] = {
        margin: keys.margin,
        value: n.Cast(n.Column(largest.name, type_of(largest)), DOUBLE),
    }
    total = n.Cast(n.Column(summed.name, type_of(summed)), DOUBLE)
    items, outer = [], []
    for call in node.aggregations:
        part = f"{call.name}.margin"
        if call.name in bounds:
            items.append(n.Named(part, substitute(bounds[call.name][0], replacements)))
        else:
            steps = _steps(call, definitions, margin, value)
            if steps is None:
                return None
            items.append(n.Named(part, substitute(steps, replacements | {value: total})))
        outer.append(replace(call, argument=n.Column(part, type_of(items[-1].expression))))
    decided = {c.name for c in keys.columns} | {remaining.name, largest.name, summed.name}
    if any(not columns_of(item) <= decided for item in items):
        return None
    rows = _rows(core, keys, remaining.name, n.Named(f"{value}.stored", stored))
    names = (*keys.columns, remaining)
    parts = n.Aggregate(rows, tuple(n.Named(c.name, c) for c in names), (largest, summed))
    relation, hoisted_items = hoisted(parts, tuple(items), f"{margin}.once")
    return n.Aggregate(n.Project(relation, hoisted_items), (), tuple(outer), node.span)


def _expanded(scalar: n.Scalar, definitions: Definitions) -> n.Scalar:
    """Write an expression over stored columns."""

    @n.once
    def change(node: n.Node) -> n.Node:
        inner = definitions.get(node.name) if isinstance(node, n.Column) else None
        return n.rebuild(node, change) if inner is None else change(inner)

    changed = change(scalar)
    assert isinstance(changed, n.Scalar)
    return changed


def _keys(margin: n.Scalar, remaining: n.Column) -> _Keys | None:
    """Split a least margin; None if no column decides a part of it, or nothing is left."""
    if not isinstance(margin, n.Call) or margin.function != "lowest":
        return None
    decided, left, columns = [], [], []
    for part in margin.arguments:
        curve = curve_of(part)
        if curve is not None and curve.axis.last < FEW:
            decided.append(part)
            columns.append(curve.axis.column)
        else:
            left.append(part)
    if len(columns) != 1 or not left:
        return None  # the groups of several columns are too many
    return _Keys(tuple(columns), tuple(left), n.Call("lowest", (*decided, remaining)))


def _stored(value: n.Scalar) -> n.Scalar | None:
    """Give the clamped decimal that a float is made of."""
    if (
        not isinstance(value, n.Cast)
        or value.type != DOUBLE
        or not isinstance(value.operand, n.Clamp)
    ):
        return None
    kind = type_of(value.operand)
    fits = kind.kind == "DECIMAL" and kind.precision <= _DIGITS
    return value.operand if fits and isinstance(value.operand.operand, n.Column) else None


def _steps(
    call: n.Aggregation, definitions: Definitions, margin: str, value: str
) -> n.Scalar | None:
    """Write a sum's steps over the margin and one value that is a factor; None if it is something else."""
    argument = call.argument
    if call.function != "sum" or call.distinct or not isinstance(argument, n.Cast):
        return None
    if argument.type != INTEGER or type_of(argument.operand) != DOUBLE:
        return None
    others = {k: v for k, v in definitions.items() if k not in (margin, value)}
    steps = _expanded(argument.operand, others)
    return n.Cast(steps, _STEPS) if _is_factor(steps, value) else None


def _is_factor(scalar: n.Scalar, value: str) -> bool:
    """Whether an expression is a product of a column, once, and of what does not read it."""
    if isinstance(scalar, n.Column):
        return scalar.name == value
    if isinstance(scalar, n.Cast):
        return scalar.type == DOUBLE and _is_factor(scalar.operand, value)
    if not isinstance(scalar, n.Arithmetic) or scalar.op != "*":
        return False
    one, other = scalar.left, scalar.right
    if value in columns_of(one):
        one, other = other, one
    return value not in columns_of(one) and _is_factor(other, value)


def _rows(core: n.Relation, keys: _Keys, remaining: str, stored: n.Named) -> n.Relation:
    """Compute of each row what it is gathered by and what is taken of it."""
    passed = tuple(n.Named(c.name, c) for c in keys.columns)
    if len(keys.left) == 1:
        return n.Project(core, (*passed, n.Named(remaining, keys.left[0]), stored))
    parts = tuple(n.Named(f"{remaining}{i}", part) for i, part in enumerate(keys.left))
    least = n.Call("lowest", tuple(n.Column(part.name, DOUBLE) for part in parts))
    value = n.Named(stored.name, n.Column(stored.name, type_of(stored.expression)))
    below = n.Project(core, (*passed, *parts, stored))
    return n.Project(below, (*passed, n.Named(remaining, least), value))
