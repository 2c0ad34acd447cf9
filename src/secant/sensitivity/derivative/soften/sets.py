"""DISTINCT, UNION, INTERSECT and EXCEPT of public columns over rows that soft filters let pass in part.

In: a set operation whose rows protected conditions decide. Out: its members as groups of all rows that may make them,
each with a soft number of times that it occurs on either side, and how far it is a member; and the other way round,
groups of members as the rows that they are made of, for whoever bounds them (derivative.sets). Never here: a bound.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from secant.plan import nodes as n
from secant.plan.facts.ranges import NOTHING_DECLARED, Ranges, as_number
from secant.plan.rewrites.rewrite import columns_of, substitute
from secant.plan.typing import fields_of, type_of
from secant.records import frozen
from secant.schema import types as t
from secant.sensitivity.certificate import CannotBound
from secant.sensitivity.derivative import shapes
from secant.sensitivity.derivative.soften.branches import branches_of, pulled, renamed, together
from secant.sensitivity.derivative.soften.stripped import sees

FINE = 2**38
"""Whole steps that what a row counts must have at most: then rounding is below 2^-39 of it."""
SetOperation = n.Distinct | n.Union | n.Intersect | n.Except


@frozen
class Member:
    """One branch of a side: its rows, what they show, and the soft truth that they count."""

    rows: n.Relation
    columns: tuple[n.Named, ...]
    truth: n.Scalar
    side: int


def set_of(relation: n.Relation, protected: frozenset[str]) -> SetOperation | None:
    """Give the set operation that rows come from, if protected values are below it; UNION ALL is none."""
    while isinstance(relation, (n.Project, n.Filter, n.Sort)):
        relation = relation.input
    if not isinstance(relation, (n.Distinct, n.Union, n.Intersect, n.Except)):
        return None
    if (isinstance(relation, n.Union) and relation.all) or not sees(relation, protected):
        return None
    if isinstance(relation, (n.Intersect, n.Except)) and relation.all:
        raise CannotBound(
            "derivative.sets",
            relation,
            "how often a row occurs on both sides has no declared limit",
            "leave ALL out, or ask for each side by itself",
        )
    return relation


def counted_once(aggregate: n.Aggregate) -> n.Aggregate | None:
    """Write COUNT(DISTINCT x) as a count of a set; None where more than that is asked for."""
    if len(aggregate.aggregations) != 1:
        return None
    (call,) = aggregate.aggregations
    if call.function != "count" or call.argument is None:
        return None
    value = n.Named(f"{call.name}.once", call.argument)
    keys = tuple(n.Named(f"{k.name}.once", k.expression) for k in aggregate.keys)
    rows = n.Distinct(n.Project(aggregate.input, (*keys, value)))
    column = n.Column(value.name, type_of(call.argument))
    return replace(
        aggregate,
        input=rows,
        keys=tuple(
            n.Named(k.name, n.Column(f"{k.name}.once", type_of(k.expression)))
            for k in aggregate.keys
        ),
        aggregations=(replace(call, argument=column, distinct=False),),
    )


def sides_of(node: SetOperation) -> tuple[tuple[int, n.Relation], ...]:
    """Give what is compared, with the side that it counts for: both inputs of a UNION count together."""
    if isinstance(node, n.Distinct):
        return ((0, node.input),)
    right = 0 if isinstance(node, n.Union) else 1
    return (0, renamed(node.left, node)), (right, renamed(node.right, node))


def members(added: Sequence[Member], name: str) -> tuple[n.Aggregate, tuple[n.Column, n.Column]]:
    """Group all rows by what they show; give the groups and the columns that count them on either side."""
    branches = []
    for member in added:
        none = shapes.number(0.0)
        counted = (
            n.Named(f"{name}.left", member.truth if member.side == 0 else none),
            n.Named(f"{name}.right", member.truth if member.side == 1 else none),
        )
        shown = tuple(n.Named(f"{c.name}.member", c.expression) for c in member.columns)
        branches.append(n.Project(member.rows, (*shown, *counted)))
    rows = branches[0] if len(branches) == 1 else together(branches)
    kinds = {f.name: f.type for f in fields_of(rows)}
    keys = tuple(
        n.Named(c.name, n.Column(f"{c.name}.member", kinds[f"{c.name}.member"]))
        for c in added[0].columns
    )
    calls = tuple(
        n.Aggregation(f"{name}.{side}.times", "sum", n.Column(f"{name}.{side}", t.DOUBLE))
        for side in ("left", "right")
    )
    left, right = (n.Column(c.name, type_of(c)) for c in calls)
    return n.Aggregate(rows, keys, calls), (left, right)


def membership(node: SetOperation, left: n.Column, right: n.Column) -> n.Scalar:
    """Write how far a group is a member: 0 or 1 where the numbers are whole, and as steep as they are at most."""
    once = [n.Clamp(times, shapes.number(0.0), shapes.number(1.0)) for times in (left, right)]
    if isinstance(node, n.Intersect):
        return shapes.call("least", *once)
    if isinstance(node, n.Except):
        apart = n.Arithmetic("-", once[0], once[1])
        return n.Clamp(apart, shapes.number(0.0), shapes.number(1.0))
    return once[0]


# ── members as rows ──────────────────────────────────────────────────────────────────────────────


@frozen
class _Slope:
    """The most that a value moves with a count: a number, times a public expression where there is one."""

    size: Fraction
    public: n.Scalar | None = None


def members_as_rows(
    items: Mapping[str, n.Scalar], inner: n.Aggregate, moving: frozenset[str]
) -> n.Project:
    """Write values of groups over the rows that they count: each row with what one more of it may change.

    Rests on derivative.sets.
    """
    keys: dict[str, n.Scalar] = {k.name: k.expression for k in inner.keys}
    needed = tuple(
        n.Named(c.name, c.argument) for c in inner.aggregations if c.argument is not None
    )
    public = {c.name for c in inner.aggregations} - moving
    branches = []
    for branch in branches_of(n.Project(inner.input, (*_passed(keys), *needed))):
        assert isinstance(branch, n.Project)
        below, projected = pulled(branch)
        defined: dict[str, n.Scalar] = {i.name: i.expression for i in projected}
        own = {name: substitute(x, defined) for name, x in keys.items()}
        columns = []
        for name, expression in items.items():
            if columns_of(expression) & public and not columns_of(expression) & moving:
                continue  # of the whole group, and public: nothing moves it
            value: n.Scalar | None = None
            for call, slope in _slopes(expression, moving).items():
                if slope.public is not None and columns_of(slope.public) & public:
                    raise _refused(expression)  # a public number of the group, which no row tells
                part = _counted(defined[call], slope, own)
                value = part if value is None else shapes.plus(value, part)
            columns.append(n.Named(name, value or substitute(expression, own)))
        branches.append(n.Project(below, tuple(columns)))
    if len(branches) == 1:
        return branches[0]
    whole = together(branches)
    return n.Project(
        whole, tuple(n.Named(f.name, n.Column(f.name, f.type)) for f in fields_of(whole))
    )


def _passed(keys: Mapping[str, n.Scalar]) -> tuple[n.Named, ...]:
    names = {x.name: x for e in keys.values() for x in n.walk(e) if isinstance(x, n.Column)}
    return tuple(n.Named(name, column) for name, column in names.items())


def _counted(whole: n.Scalar, slope: _Slope, keys: dict[str, n.Scalar]) -> n.Scalar:
    """Write what a row changes in a value: what it counts, before that is rounded to whole steps, times a slope."""
    whole = whole.operand if isinstance(whole, n.Attempt) else whole
    if not isinstance(whole, n.Quantize):
        raise _refused(whole)
    range_ = Ranges(NOTHING_DECLARED).of(whole.operand)
    if not range_.bounded:
        raise _refused(whole)
    if columns_of(whole) and max(abs(e) for e in range_.ends()) < FINE * whole.step:
        raise _refused(whole)
    size = shapes.number(shapes.float_above(slope.size / whole.step))
    value: n.Scalar = _plain(whole.operand)
    if size.value != 1.0:
        value = n.Arithmetic("*", value, size)
    if slope.public is not None:
        value = n.Arithmetic("*", value, substitute(slope.public, keys))
    return value


def _plain(value: n.Scalar) -> n.Scalar:
    """Take casts to DOUBLE and clamps off that change nothing."""
    while isinstance(value, (n.Cast, n.Clamp)) and _changes_nothing(value):
        value = value.operand
    return value


def _changes_nothing(node: n.Cast | n.Clamp) -> bool:
    if isinstance(node, n.Cast):
        return type_of(node.operand).kind == node.type.kind == "DOUBLE"
    ranges = Ranges(NOTHING_DECLARED)
    operand = ranges.of(node.operand)
    return operand.bounded and ranges.of(node).ends() == operand.ends()


def _slopes(expression: n.Scalar, moving: frozenset[str]) -> dict[str, _Slope]:
    """Give for each count how far the value moves with it, at most; with all counts it moves by their sum."""
    if not columns_of(expression) & moving:
        return {}
    if isinstance(expression, n.Column):
        return {expression.name: _Slope(Fraction(1))}
    if isinstance(expression, n.Cast) and expression.type.kind == "DOUBLE":
        return _slopes(expression.operand, moving)
    if isinstance(expression, n.Attempt) or (
        isinstance(expression, n.Clamp)
        and isinstance(expression.low, n.Literal)
        and isinstance(expression.high, n.Literal)
    ):
        return _slopes(expression.operand, moving)
    if isinstance(expression, n.Call) and expression.function in ("least", "greatest"):
        return _added([_slopes(a, moving) for a in expression.arguments], expression)
    if isinstance(expression, n.Arithmetic):
        left, right = (_slopes(x, moving) for x in (expression.left, expression.right))
        if expression.op in ("+", "-"):
            return _added([left, right], expression)
        if expression.op == "*" and not (left and right):
            factor = expression.right if left else expression.left
            return {c: _scaled(s, factor) for c, s in (left or right).items()}
    raise _refused(expression)


def _scaled(slope: _Slope, factor: n.Scalar) -> _Slope:
    number = as_number(factor.value) if isinstance(factor, n.Literal) else None
    if number is not None:
        return _Slope(slope.size * abs(number), slope.public)
    if slope.public is not None:
        factor = n.Arithmetic("*", slope.public, factor)
    return _Slope(slope.size, factor)


def _added(parts: Sequence[Mapping[str, _Slope]], node: n.Scalar) -> dict[str, _Slope]:
    slopes: dict[str, _Slope] = {}
    for part in parts:
        for call, slope in part.items():
            earlier = slopes.get(call)
            if earlier is not None and not (earlier.public is None and slope.public is None):
                raise _refused(node)
            slopes[call] = slope if earlier is None else _Slope(earlier.size + slope.size)
    return slopes


def _refused(node: n.Scalar) -> CannotBound:
    return CannotBound(
        "derivative.sets",
        node,
        "more than sums, counts and averages over a set has no rule here",
        "count the set, or sum public columns of it",
    )
