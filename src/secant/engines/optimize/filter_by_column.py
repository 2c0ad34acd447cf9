"""Ask stored columns what a margin would tell: which rows pass, which are near an edge, and which is the nearest.

In: a plan. Out: one whose columns mean the same. A filter in steps passes a row wholly or not at all, and that can be
read off the column that it filters; so margins are computed only for rows on a ramp, or near one, and rows that pass
are added up as they are stored. Decimals are added up exactly and rounded to the grid once, which is nearer to the
measure than rounding each row is (derivative.grid (2)); bounds are the same to the last digit (derivative.floor (8)).
Chosen by types, declared ranges and the text. Never here: data.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

from secant.engines.optimize.monotone import Axis, Curve, Stretch, curve_of
from secant.plan import nodes as n
from secant.plan.facts.regions import unfiltered
from secant.plan.rewrites.hoist import definitions, projections
from secant.plan.rewrites.rewrite import substitute, transform
from secant.plan.rewrites.simplify import never_empty
from secant.plan.typing import type_of
from secant.records import frozen
from secant.schema.types import BOOLEAN, DOUBLE, INTEGER, MAX_PRECISION, Type

_DIGITS = 18
"""Digits of a decimal that engines compute with in 64 bits."""
_ROWS = 13
"""Digits of a number of rows that no table has."""
_STEPS = Type("DECIMAL", MAX_PRECISION, 0)
_NONE = n.Literal(0, INTEGER)


def decided_by_columns(plan: n.Relation) -> n.Relation:
    """Compute margins only where stored columns do not decide, in sums and bounds over all rows."""
    return transform(plan, _decided, n.Aggregate)


@frozen
class _Largest:
    """Aggregates that a column is made of, and the column over theirs."""

    calls: tuple[n.Aggregation, ...]
    whole: n.Scalar


def _decided(node: n.Node) -> n.Node:
    if not isinstance(node, n.Aggregate) or node.keys:
        return node
    layers, core = projections(node.input)
    if not isinstance(unfiltered(core)[1], n.Scan):
        return node  # few rows are left of most joins, and a long statement is long to read
    reading = _Reading(definitions(layers), never_empty(core))
    items = []
    for call in node.aggregations:
        largest = _largest_of(call, reading)
        if largest is None:
            return node
        items.append(n.Named(call.name, largest.whole))
        reading.calls.extend(largest.calls)
    return n.Project(n.Aggregate(core, (), tuple(reading.calls), node.span), tuple(items))


class _Reading:
    """What columns are made of, which of the stored ones are never empty, and the aggregates so far."""

    def __init__(self, by_name: Mapping[str, n.Scalar], present: frozenset[str]) -> None:
        self.made, self.present = by_name, present
        self.calls: list[n.Aggregation] = []
        self._written: dict[n.Node, n.Node] = {}

    def written_out(self, scalar: n.Scalar) -> n.Scalar:
        """Write an expression over stored columns."""
        result = self._change(scalar)
        assert isinstance(result, n.Scalar)
        return result

    def _change(self, node: n.Node) -> n.Node:
        if node not in self._written:
            inner = self.made.get(node.name) if isinstance(node, n.Column) else None
            self._written[node] = (
                n.rebuild(node, self._change) if inner is None else self._change(inner)
            )
        return self._written[node]

    def curve(self, scalar: n.Scalar) -> Curve | None:
        """Read an expression over one stored column that is never empty."""
        curve = curve_of(scalar)
        return curve if curve and curve.axis.column.name in self.present else None


def _largest_of(call: n.Aggregation, reading: _Reading) -> _Largest | None:
    if call.distinct or call.second is not None or call.argument is None:
        return None
    argument = reading.written_out(call.argument)
    if n.has_subquery(argument):
        return None
    if call.function == "sum":
        return _summed(call.name, argument, reading)
    if call.function == "max":
        return _largest(call, argument, reading)
    return _least(call.name, argument, reading) if call.function == "min" else None


# ── sums ─────────────────────────────────────────────────────────────────────────────────────────


@frozen
class Filtered:
    """A summand in whole steps: a filter, what is summed of rows that pass, and how many steps one is."""

    margins: tuple[n.Scalar, ...]
    value: n.Scalar | None
    factor: n.Literal


def _summed(name: str, argument: n.Scalar, reading: _Reading) -> _Largest | None:
    summand = filtered(argument)
    if summand is None:
        return None
    curves = [c for m in summand.margins if (c := reading.curve(m)) is not None]
    if len(curves) < len(summand.margins):
        return None
    up = [(c, c.where(">=", 0.5)) for c in curves]
    down = [(c, c.where("<=", -0.5)) for c in curves]
    passed = _all([c.axis.condition(where) for c, where in up])
    failed = _any([c.axis.condition(where) for c, where in down])
    decided = all(
        sum(last - first + 1 for first, last in (*one, *other)) == c.axis.last + 1
        for (c, one), (_, other) in zip(up, down, strict=True)
    )
    factor = summand.factor.value
    assert isinstance(factor, float)
    exact = None if summand.value is None else _exact(summand.value)
    if exact is None or not _fits(exact, factor):
        steps = (
            n.Literal(int(factor), INTEGER)
            if summand.value is None
            else n.Cast(n.Arithmetic("*", summand.value, summand.factor), INTEGER)
        )
        rows = _chosen([(passed, steps)], _NONE)
        if not decided:
            rows = _chosen([(passed, steps), (failed, _NONE)], argument)
        return _Largest((n.Aggregation(name, "sum", rows),), n.Column(name, INTEGER))
    nothing = n.Literal(Decimal(0), Type("DECIMAL", 1, 0))
    summed = n.Aggregation(f"{name}.passed", "sum", _chosen([(passed, exact.scalar)], nothing))
    whole = _in_steps(n.Column(summed.name, type_of(summed)), factor)
    if decided:
        return _Largest((summed,), whole)
    rows = _chosen([(passed, _NONE), (failed, _NONE)], argument)
    ramp = n.Aggregation(f"{name}.ramp", "sum", rows)
    between = n.Cast(n.Column(ramp.name, type_of(ramp)), _STEPS)
    return _Largest((summed, ramp), n.Cast(n.Arithmetic("+", whole, between), _STEPS))


def filtered(argument: n.Scalar) -> Filtered | None:
    """Read a sum's argument as steps of a soft filter, times a value."""
    if not isinstance(argument, n.Cast) or argument.type != INTEGER:
        return None
    product = argument.operand
    if not isinstance(product, n.Arithmetic) or product.op != "*":
        return None
    value, factor = _plain(product.left), product.right
    if not isinstance(factor, n.Literal) or not isinstance(factor.value, float):
        return None
    if not factor.value.is_integer() or not 1 <= factor.value < 2.0**62:
        return None
    condition: n.Scalar | None = None
    if isinstance(value, n.Arithmetic) and value.op == "*":
        condition, value = value.right, value.left
    if not isinstance(value, n.Call) or value.function != "ramp":
        return None
    (margin,) = value.arguments
    several = isinstance(margin, n.Call) and margin.function == "lowest"
    margins = margin.arguments if isinstance(margin, n.Call) and several else (margin,)
    return Filtered(margins, condition, factor)


def _plain(scalar: n.Scalar) -> n.Scalar:
    """Leave out a cast that changes nothing."""
    while isinstance(scalar, n.Cast) and scalar.type == type_of(scalar.operand) == DOUBLE:
        scalar = scalar.operand
    return scalar


def _all(conditions: list[n.Scalar]) -> n.Scalar:
    undecided = [x for x in conditions if not _is_constant(x, value=True)]
    if any(_is_constant(x, value=False) for x in undecided):
        return n.Literal(False, BOOLEAN)
    return n.conjunction(tuple(undecided)) or n.Literal(True, BOOLEAN)


def _any(conditions: list[n.Scalar]) -> n.Scalar:
    undecided = [x for x in conditions if not _is_constant(x, value=False)]
    if any(_is_constant(x, value=True) for x in undecided):
        return n.Literal(True, BOOLEAN)
    if not undecided:
        return n.Literal(False, BOOLEAN)
    return undecided[0] if len(undecided) == 1 else n.Or(tuple(undecided))


def _is_constant(condition: n.Scalar, *, value: bool) -> bool:
    return isinstance(condition, n.Literal) and condition.value is value


def _chosen(branches: list[tuple[n.Scalar, n.Scalar]], default: n.Scalar) -> n.Scalar:
    """Write a choice without branches that are never taken, or nothing after one that always is."""
    remaining = []
    for condition, value in branches:
        if _is_constant(condition, value=True):
            default = value
            break
        if not _is_constant(condition, value=False):
            remaining.append(n.Branch(condition, value))
    return n.Case(tuple(remaining), default) if remaining else default


# ── exact values ─────────────────────────────────────────────────────────────────────────────────


@frozen
class _Exact:
    """A decimal that is exactly what a float stands for, and how far it is from zero at most, in its last digit."""

    scalar: n.Scalar
    scale: int
    most: int


def _exact(scalar: n.Scalar) -> _Exact | None:
    """Write an expression over clamped decimals as a decimal that no engine rounds; None if it is something else."""
    if isinstance(scalar, n.Attempt):
        return _exact(scalar.operand)  # it is about failures: within these digits there are none
    if isinstance(scalar, n.Cast):
        return _exact(scalar.operand) if scalar.type == DOUBLE else None
    if isinstance(scalar, n.Literal):
        return _constant(scalar)
    if isinstance(scalar, n.Clamp):
        ends = [x.value if isinstance(x, n.Literal) else None for x in (scalar.low, scalar.high)]
        kind = type_of(scalar)
        if kind.kind != "DECIMAL" or not all(isinstance(x, Decimal) for x in ends):
            return None
        most = max(abs(Decimal(x).scaleb(kind.scale)) for x in ends)  # type: ignore[arg-type]
        fits = isinstance(scalar.operand, n.Column) and kind.precision <= _DIGITS
        return _small(_Exact(scalar, kind.scale, int(most) + 1)) if fits else None
    if not isinstance(scalar, n.Arithmetic) or scalar.op not in ("+", "-", "*"):
        return None
    left, right = _exact(scalar.left), _exact(scalar.right)
    if left is None or right is None:
        return None
    result = n.Arithmetic(scalar.op, left.scalar, right.scalar)
    if scalar.op == "*":
        return _small(_Exact(result, left.scale + right.scale, left.most * right.most))
    scale = max(left.scale, right.scale)
    most = sum(x.most * 10 ** (scale - x.scale) for x in (left, right))
    return _small(_Exact(result, scale, most))


def _constant(literal: n.Literal) -> _Exact | None:
    value = literal.value
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) < 10**6:
        return None
    whole = int(value)
    if whole != value:
        return None
    kind = Type("DECIMAL", len(str(abs(whole))), 0)
    return _Exact(n.Literal(Decimal(whole), kind), 0, abs(whole))


def _small(exact: _Exact) -> _Exact | None:
    return exact if exact.most < 10 ** (_DIGITS - 1) and exact.scale < _DIGITS else None


def _fits(exact: _Exact, factor: float) -> bool:
    """Whether a sum over all rows that there may be has, in steps, few enough digits."""
    steps = len(str(int(factor)))
    rows = len(str(exact.most)) + _ROWS
    return rows + steps <= MAX_PRECISION and exact.most * factor < 2.0**62 * 10**exact.scale


def _in_steps(total: n.Column, factor: float) -> n.Scalar:
    """Write a sum of decimals as whole steps, rounded once."""
    digits = len(str(int(factor)))
    scale = total.type.scale
    widened = n.Cast(total, Type("DECIMAL", MAX_PRECISION - digits, scale))
    steps = n.Literal(Decimal(int(factor)), Type("DECIMAL", digits, 0))
    return n.Cast(n.Arithmetic("*", widened, steps), _STEPS)


# ── bounds ───────────────────────────────────────────────────────────────────────────────────────


def _largest(call: n.Aggregation, argument: n.Scalar, reading: _Reading) -> _Largest | None:
    """Compute a bound only for rows near an edge, if the column says which these are."""
    if not isinstance(argument, n.Case):
        return None
    if not all(_on_column(b.condition, reading) for b in argument.branches):
        return None

    @n.once
    def change(node: n.Node) -> n.Node:
        rebuilt = n.rebuild(node, change)
        condition = _on_column(rebuilt, reading) if isinstance(rebuilt, n.Compare) else None
        return rebuilt if condition is None else condition

    changed = change(argument)
    assert isinstance(changed, n.Case)
    branches = [(b.condition, b.value) for b in changed.branches]
    full = _full(argument, reading)
    if full is None:
        rows = _chosen(branches, changed.default)
        call_largest = n.Aggregation(call.name, "max", rows)
        return _Largest((call_largest,), n.Column(call.name, type_of(call)))
    whole, curve = full
    nothing = n.Literal(None, DOUBLE)  # a maximum passes over it
    fading = n.Aggregation(
        f"{call.name}.fading", "max", _chosen([(whole, nothing), *branches], changed.default)
    )
    top = _ends(call.name, curve, whole, rising="max")
    return _Largest(
        (*top.calls, fading), n.Call("greatest", (top.whole, n.Column(fading.name, DOUBLE)))
    )


def _full(argument: n.Case, reading: _Reading) -> tuple[n.Scalar, Curve] | None:
    """Say where a bound has not begun to fade, and what it is there, if that is a function of one column."""
    if len(argument.branches) != 1:
        return None
    near = argument.branches[0]
    product = near.value
    if not isinstance(product, n.Arithmetic) or product.op != "*":
        return None
    fade = product.right
    if not isinstance(fade, n.Case) or len(fade.branches) != 1:
        return None
    first = fade.branches[0]
    curve = curve_of(product.left)
    one = isinstance(first.value, n.Literal) and first.value.value == 1.0
    wide, narrow = _passing(near.condition, reading), _passing(first.condition, reading)
    if curve is None or not one or wide is None or narrow is None:
        return None
    (outer, close), (inner, full) = wide, narrow
    inside = all(any(a <= c and d <= b for a, b in close) for c, d in full)
    sizes = [sum(last - first + 1 for first, last in some) for some in (close, full)]
    # Where most near rows fade, one more aggregate costs more than it spares.
    if outer.column.name != inner.column.name or not inside or 2 * sizes[1] < sizes[0]:
        return None
    return inner.condition(full), curve


def _on_column(condition: n.Node, reading: _Reading) -> n.Scalar | None:
    """Write a comparison of a margin with a number as one of the stored column; None if it is none such."""
    passing = _passing(condition, reading)
    return None if passing is None else passing[0].condition(passing[1])


def _passing(condition: n.Node, reading: _Reading) -> tuple[Axis, list[Stretch]] | None:
    """Give the values of a column for which a margin passes a number."""
    if not isinstance(condition, n.Compare) or condition.op not in ("<", "<=", ">", ">="):
        return None
    limit = condition.right
    if not isinstance(limit, n.Literal) or not isinstance(limit.value, float):
        return None
    curve = reading.curve(condition.left)
    return None if curve is None else (curve.axis, curve.where(condition.op, limit.value))


def _least(name: str, argument: n.Scalar, reading: _Reading) -> _Largest | None:
    curve = reading.curve(argument)
    if curve is None:
        return None
    return _ends(name, curve, n.Literal(True, BOOLEAN), rising="min")


def _ends(name: str, curve: Curve, among: n.Scalar, *, rising: str) -> _Largest:
    """Take the extreme of a function from the last value before, and the first one after, each of its turns."""
    falling, extreme = ("max", "least") if rising == "min" else ("min", "greatest")
    column, calls, ends = curve.axis.column, [], []
    for number, piece in enumerate(curve.pieces):
        within = _all([among, curve.axis.condition([(piece.first, piece.last)])])
        rows = _chosen([(within, column)], n.Literal(None, column.type))
        end = n.Column(f"{name}.end{number}", column.type)
        calls.append(n.Aggregation(end.name, rising if piece.rises else falling, rows))
        ends.append(substitute(curve.scalar, {column.name: end}))
    whole = ends[0] if len(ends) == 1 else n.Call(extreme, tuple(ends))
    return _Largest(tuple(calls), whole)
