"""Make a plan that cannot fail on a row: an error that one row can raise would tell that the row is there.

Every expression that can fail becomes an Attempt (NULL instead of an error). What cannot be made total is refused:
a scalar subquery that might return two rows. Equal values are made alike in the same go: zeros and NaNs have signs
that comparisons do not see, and an engine that keeps one of two equal rows keeps either.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal

from secant.plan import nodes as n
from secant.plan.facts.lineage import source_of
from secant.plan.facts.scopes import bottom_up
from secant.plan.functions.aggregates import SPREAD
from secant.plan.functions.scalar import AGGREGATES, FUNCTIONS
from secant.plan.rewrites.rewrite import transform, with_parts
from secant.plan.rule_table import RuleTable
from secant.plan.typing import fields_of, type_of
from secant.schema import types as t

LARGEST = 1e100  # squares of larger numbers overflow a double, and engines raise then
LARGEST_SUMMED = (
    1e290  # engines that raise where a sum of doubles overflows add any number of these
)
ROW_DIGITS = 12  # no engine goes through a group of more rows
WHOLE = 2**63 - 1
WHOLE_DIGITS = 19
ZERO = n.Literal(0.0, t.DOUBLE)
"""Added to a number it makes both zeros one."""
_SHOWN = n.Literal(0.0, t.DOUBLE)
"""The same, below a cast to text: this very node marks casts that were made alike before."""


def make_total(plan: n.Relation) -> n.Relation:
    """Give the plan with every expression that can fail wrapped and equal values alike (rewrite.total).

    Several aggregates of a question stand on the same rows: these are gone through once, and stay the same rows.
    """
    try:
        return plan._total or plan
    except AttributeError:
        completed = _null_on_error(plan)
    object.__setattr__(plan, "_total", None if completed is plan else completed)
    return completed


def _null_on_error(plan: n.Relation) -> n.Relation:
    def change(node: n.Node) -> n.Node:
        if isinstance(node, n.Scalar):
            return _alike(node)
        if isinstance(node, n.Aggregate):
            calls = tuple(_call(c, node.input) for c in node.aggregations)
            return with_parts(node, keys=tuple(map(_item, node.keys)), aggregations=calls)
        if isinstance(node, n.Window):
            return with_parts(node, calls=tuple(_window_call(c, node.input) for c in node.calls))
        if isinstance(node, (n.Filter, n.Join, n.Project, n.Sort)):
            return n.rebuild(node, _item)
        return node

    return transform(plan, change, *_CHANGED)


_CHANGED = (
    n.Cast, n.Arithmetic, n.Call, n.Filter, n.Join, n.Project, n.Sort, n.Aggregate, n.Window,
)  # fmt: skip
"""What `make_total` has a case for."""


def _item(part: n.Node) -> n.Node:
    """Wrap what can fail in a condition, in a column or in a key; the rows that it stands on are done."""
    if isinstance(part, n.Scalar):
        return _guarded(part)
    return part if isinstance(part, n.Relation) else n.rebuild(part, _item)


def _call(call: n.Aggregation, rows: n.Relation) -> n.Aggregation:
    if call.argument is None:
        return call
    argument = _guarded(call.argument)
    most = _most(argument, rows) if call.function in ("sum", "avg") else None
    if most is not None:
        assert isinstance(most.value, (int, Decimal))
        least = n.Literal(-most.value, most.type)
        usual_sum = n.And((n.Compare(">=", argument, least), n.Compare("<=", argument, most)))
        argument = n.Case((n.Branch(usual_sum, argument),), n.Literal(None, t.NULL))
    if call.function in SPREAD:
        argument = _usual(argument)
    second = None if call.second is None else _usual(_guarded(call.second))
    if second is not None:
        argument = _usual(argument)
    return with_parts(call, argument=argument, second=second)


def _usual(argument: n.Scalar) -> n.Scalar:
    """Leave out numbers whose squares leave the doubles."""
    magnitude = n.Call("abs", (n.Cast(argument, t.DOUBLE),))
    usual = n.Compare("<=", magnitude, n.Literal(LARGEST, t.DOUBLE))
    return n.Case((n.Branch(usual, argument),), n.Literal(None, t.NULL))


def _window_call(call: n.WindowCall, rows: n.Relation) -> n.WindowCall:
    """Guard what a window call computes, and let sums take no value that they could overflow with."""
    arguments = tuple(_guarded(x) for x in call.arguments)
    if call.function in AGGREGATES and arguments:
        (argument,) = arguments
        replaced = _call(n.Aggregation(call.name, call.function, argument), rows).argument
        assert replaced is not None
        if call.function in ("sum", "avg") and type_of(replaced).kind == "DOUBLE":
            magnitude = n.Call("abs", (replaced,))
            usual = n.Compare("<=", magnitude, n.Literal(LARGEST_SUMMED, t.DOUBLE))
            replaced = n.Case((n.Branch(usual, replaced),), n.Literal(None, t.NULL))
        arguments = (replaced,)
    order = tuple(with_parts(k, expression=_guarded(k.expression)) for k in call.order)
    partition = tuple(_guarded(x) for x in call.partition)
    return with_parts(call, arguments=arguments, partition=partition, order=order)


def _most(argument: n.Scalar, rows: n.Relation) -> n.Literal | None:
    """Give the largest value of which any number of rows can be summed; None if the type has no larger one.

    Engines sum exact numbers in 128 bits and raise beyond them.
    """
    kind = type_of(argument)
    digits = t.MAX_PRECISION - ROW_DIGITS
    if kind.kind == "DECIMAL" and kind.precision > digits:
        most = Decimal(10**digits - 1).scaleb(-kind.scale)
        return n.Literal(most, t.decimal(max(digits, kind.scale), kind.scale))
    if kind.kind == "INTEGER" and not _stored(argument, rows):
        return n.Literal(WHOLE, t.INTEGER)  # a sum has 128 bits itself
    return None


def _stored(scalar: n.Scalar, rows: n.Relation) -> bool:
    """Whether an expression is made of constants and columns of base tables."""
    for node in n.walk(scalar):
        if isinstance(node, (n.Relation, n.Outer)):
            return False
        if isinstance(node, n.Column) and source_of(rows, node.name) is None:
            return False
    return True


def total(scalar: n.Scalar) -> n.Scalar:
    """Wrap what can fail, and make equal values alike."""
    return _guarded(alike(scalar))


def _guarded(scalar: n.Scalar) -> n.Scalar:
    """Wrap what can fail. Truth values are left open, so that engines still see plain comparisons."""

    @n.once
    def below(node: n.Node) -> n.Node:
        if isinstance(node, n.Relation):
            return node  # the plan's own walk reaches it
        return _wrapped(node, below) if isinstance(node, n.Scalar) else n.rebuild(node, below)

    return _wrapped(scalar, below)


def _wrapped(scalar: n.Scalar, below: Callable[[n.Node], n.Node]) -> n.Scalar:
    if not can_fail(scalar):
        return scalar
    if isinstance(scalar, n.Attempt):
        return scalar
    open_truth = type_of(scalar).kind == "BOOLEAN" and not fails_itself(scalar)
    if not open_truth and not n.has_subquery(scalar):
        return n.Attempt(scalar)

    return n.rebuild(scalar, below)


# ── equal values ─────────────────────────────────────────────────────────────────────────────────


def alike(scalar: n.Scalar) -> n.Scalar:
    """Give the expression so that equal inputs have equal outputs, whatever their sign bits are (rewrite.total)."""
    done: dict[n.Node, n.Node] = {}

    def visit(node: n.Node) -> n.Node:
        if node not in done:
            below = n.rebuild(node, visit)
            done[node] = _alike(below) if isinstance(below, n.Scalar) else below
        return done[node]

    changed = visit(scalar)
    assert isinstance(changed, n.Scalar)
    return changed


def _alike(scalar: n.Scalar) -> n.Scalar:
    """Take signs that no comparison sees from the four expressions that would show them."""
    if isinstance(scalar, n.Cast) and scalar.type.kind == "TEXT":
        operand = scalar.operand
        done = isinstance(operand, n.Arithmetic) and operand.right is _SHOWN
        if done or type_of(operand).kind != "DOUBLE":
            return scalar
        shown = replace(scalar, operand=n.Arithmetic("+", operand, _SHOWN))
        # Engines write the sign of a NaN as well. No other number has these letters.
        signs = (n.Literal("-nan", t.TEXT), n.Literal("nan", t.TEXT))
        return n.Call("replace", (shown, *signs))
    if isinstance(scalar, n.Arithmetic) and scalar.op == "/":
        divisor = _one_zero(scalar.right)
        return scalar if divisor is scalar.right else replace(scalar, right=divisor)
    if isinstance(scalar, n.Call) and scalar.function == "power":
        number, exponent = scalar.arguments
        if not (isinstance(exponent, n.Literal) and _nonnegative(exponent)):
            single = _one_zero(number)
            return scalar if single is number else replace(scalar, arguments=(single, exponent))
    if isinstance(scalar, n.Call) and scalar.function == "atan2":
        # The angle of (-1, 0.0) is half a turn, that of (-1, -0.0) minus one.
        return with_parts(scalar, arguments=tuple(_one_zero(a) for a in scalar.arguments))
    return scalar


def _one_zero(scalar: n.Scalar) -> n.Scalar:
    """Give a number with 0.0 for -0.0; the same expression if it cannot be -0.0."""
    if type_of(scalar).kind != "DOUBLE":
        return scalar
    if isinstance(scalar, n.Literal) and (scalar.value or _nonnegative(scalar)):
        return scalar
    if isinstance(scalar, n.Call) and scalar.function in ("abs", "exp", "sigmoid", "tauoid"):
        return scalar
    if isinstance(scalar, n.Cast) and type_of(scalar.operand).kind in ("INTEGER", "DECIMAL"):
        return scalar
    if isinstance(scalar, n.Arithmetic) and scalar.op == "+":
        parts = (scalar.left, scalar.right)
        if any(isinstance(p, n.Literal) and (p.value or _nonnegative(p)) for p in parts):
            return scalar  # only the sum of two negative zeros is one
    return n.Arithmetic("+", scalar, ZERO)


def _nonnegative(literal: n.Literal) -> bool:
    """Whether a constant is a number without a minus sign."""
    value = literal.value
    return isinstance(value, (int, float, Decimal)) and math.copysign(1.0, value) > 0


def _ambiguous_date(plan: n.Relation) -> n.Node | None:
    """Give a date moved by an interval that may have been kept in place of an equal one: a month equals 30 days."""
    if not n.holds(plan, n.Arithmetic):
        return None
    nodes = list(n.walk(plan))
    moving = next(
        (node for node in nodes if isinstance(node, n.Arithmetic) and _shifts_date(node)), None
    )
    return moving if moving is not None and any(map(_keeps_either, nodes)) else None


def _keeps_either(node: n.Node) -> bool:
    """Whether rows or values with an interval are kept in place of equal ones."""
    if isinstance(node, n.Outer):  # an engine may run a subquery once for equal values
        return node.type.kind == "INTERVAL"
    if isinstance(node, n.Aggregate):
        return any(type_of(k.expression).kind == "INTERVAL" for k in node.keys)
    if isinstance(node, (n.Distinct, n.Intersect, n.Except)) or (
        isinstance(node, n.Union) and not node.all
    ):
        return any(f.type.kind == "INTERVAL" for f in fields_of(node))
    return False


def _shifts_date(node: n.Arithmetic) -> bool:
    sides = {type_of(node.left).kind: node.left, type_of(node.right).kind: node.right}
    if "INTERVAL" not in sides or not {"DATE", "TIMESTAMP"} & sides.keys():
        return False
    return any(
        isinstance(part, n.Relation)
        or (isinstance(part, (n.Column, n.Outer)) and part.type.kind == "INTERVAL")
        for part in n.walk(sides["INTERVAL"])
    )


# ── keys ─────────────────────────────────────────────────────────────────────────────────────────


def group_key(scalar: n.Scalar) -> n.Scalar:
    """Give a key that cannot fail and that two groups never share once their rows are fetched.

    A driver gives infinite dates as the last date there is, and drops nanoseconds. Groups that only then meet would
    take each other's place, and one row could move a whole group: such keys become one before they are grouped.
    A real is shown with the sign of no row in particular.
    """
    guarded = total(scalar)
    kind = type_of(guarded)
    if kind.kind == "DOUBLE":
        nan = n.Literal(math.nan, t.DOUBLE)
        return n.Case((n.Branch(n.Compare("=", guarded, nan), nan),), _one_zero(guarded))
    if kind.kind not in _LAST:
        return guarded
    first, last = _LAST[kind.kind]
    stored = n.Cast(guarded, kind)
    outside = n.Or(
        (
            n.Compare("<", stored, n.Literal(first, kind)),
            n.Compare(">", stored, n.Literal(last, kind)),
        )
    )
    return n.Case((n.Branch(outside, n.Literal(None, t.NULL)),), stored)


_LAST: dict[str, tuple[datetime.date, datetime.date]] = {
    "DATE": (datetime.date.min, datetime.date.max),
    "TIMESTAMP": (datetime.datetime.min, datetime.datetime.max),  # noqa: DTZ901 - SQL's has none
}


def can_fail(scalar: n.Scalar) -> bool:
    """Whether an expression can fail on a row, leaving aside what its subqueries do."""
    try:
        return scalar._fails
    except AttributeError:
        pass
    for node in bottom_up(scalar, "_fails", _SAFE_INSIDE):
        below = any(c._fails for c in node._below if not _safe_inside(c))
        object.__setattr__(node, "_fails", below or fails_itself(node))
    return not _safe_inside(scalar) and scalar._fails


def _safe_inside(node: n.Node) -> bool:
    """Whether nothing below a node counts for what stands around it."""
    return isinstance(node, _SAFE_INSIDE)


_SAFE_INSIDE = (n.Attempt, n.Relation)


FAILURES: RuleTable[Callable[..., bool]] = RuleTable("failures")
"""Whether a node can fail on a row by itself. One without a rule can (I3)."""


def fails_itself(node: n.Node) -> bool:
    """Whether a node can fail on a row though its parts do not."""
    rule = FAILURES.find(node)
    return rule is None or rule(node)


@FAILURES.rule(
    n.Column, n.Outer, n.Literal, n.And, n.Or, n.Not, n.IsNull, n.Like, n.Branch, n.Extract, n.Attempt, n.Clamp,
    n.Bucket, n.ScalarSubquery, n.Exists, n.Named, n.Aggregation, n.SortKey, n.WindowCall,
    n.Scan, n.Values, n.Filter, n.Project, n.Join, n.Aggregate, n.Distinct, n.Window, n.Sort, n.Limit,
    n.Truncate, n.TruncateGroups, n.Released,
)  # fmt: skip
def _never(node: n.Node) -> bool:
    return False


@FAILURES.rule(n.Arithmetic, n.Negate)
def _computing(node: n.Arithmetic | n.Negate) -> bool:
    return type_of(node).kind != "DOUBLE"


@FAILURES.rule(n.Cast)
def _casting(node: n.Cast) -> bool:
    return not _safe_cast(node)


@FAILURES.rule(n.Quantize)
def _rounding(_: n.Quantize) -> bool:
    return True


@FAILURES.rule(n.Call)
def _calling(node: n.Call) -> bool:
    if node.function == "abs":  # only the smallest whole number has no counterpart
        return type_of(node).kind != "DOUBLE" or _meeting(node)
    # Dates reach further than timestamps, and the first period begins before the first moment.
    partial = node.function == "date_trunc" or FUNCTIONS[node.function].partial
    return partial or _meeting(node)


@FAILURES.rule(n.Compare, n.SameValue, n.InList)
def _meeting(node: n.Compare | n.SameValue | n.InList | n.Call) -> bool:
    """Whether an engine must bring values to one type that cannot hold them all."""
    parts = [c for c in n.children(node) if isinstance(c, n.Scalar)]
    return _wide([type_of(p) for p in parts], parts)


@FAILURES.rule(n.Case)
def _choosing(node: n.Case) -> bool:
    parts = [*(b.value for b in node.branches), node.default]
    return _wide([type_of(p) for p in parts], parts)


@FAILURES.rule(n.InSubquery)
def _searching(node: n.InSubquery) -> bool:
    inner = fields_of(node.relation)[0]
    kinds = [type_of(node.operand), inner.type]
    return _wide(kinds, [node.operand, source_of(node.relation, inner.name)])


@FAILURES.rule(n.Union, n.Intersect, n.Except)
def _combining(node: n.Union | n.Intersect | n.Except) -> bool:
    pairs = zip(fields_of(node.left), fields_of(node.right), strict=True)
    return any(
        _wide([a.type, b.type], [source_of(node.left, a.name), source_of(node.right, b.name)])
        for a, b in pairs
    )


def _wide(kinds: list[t.Type], parts: Sequence[n.Scalar | None]) -> bool:
    if {"DATE", "TIMESTAMP"} <= {k.kind for k in kinds}:
        return True  # dates reach further than timestamps
    if any(k.kind == "DOUBLE" for k in kinds) or all(k.kind != "DECIMAL" for k in kinds):
        return False
    before = after = 0
    for kind, part in zip(kinds, parts, strict=True):
        if kind.kind == "INTEGER" and isinstance(part, n.Literal):
            before = max(before, len(str(part.value)))
        elif kind.kind == "INTEGER":
            # 64 bits in a column, or a sum of such; 128 where numbers were added or multiplied
            column = WHOLE_DIGITS + ROW_DIGITS
            before = max(before, column if isinstance(part, n.Column) else 39)
        elif kind.kind == "DECIMAL":
            before, after = max(before, kind.precision - kind.scale), max(after, kind.scale)
    return before + after > t.MAX_PRECISION


def unguarded(plan: n.Relation) -> n.Node | None:
    """Give an expression that can still fail on a row, or tell equal values apart.

    An Attempt cannot hold a subquery, and intervals cannot be made alike.
    """
    telling = _ambiguous_date(plan)
    return telling if telling is not None else failing(plan)


def failing(plan: n.Relation) -> n.Node | None:
    """Give an expression that can still fail on a row."""
    nodes = n.reached(plan, lambda node: not isinstance(node, n.Attempt))
    return next((node for node in nodes if fails_itself(node)), None)


def _safe_cast(node: n.Cast) -> bool:
    source, target = type_of(node.operand), node.type
    return source == target or target.kind == "TEXT" or (target.kind == "DOUBLE" and source.numeric)


def many_rowed(plan: n.Relation) -> n.ScalarSubquery | None:
    """Give a scalar subquery that could return several rows, which engines answer with an error."""
    for node in n.walk(plan):
        if isinstance(node, n.ScalarSubquery):
            inner = node.relation
            while isinstance(inner, (n.Project, n.Filter, n.Sort)):
                inner = inner.input
            constant = isinstance(inner, n.Values) and len(inner.rows) <= 1
            if not constant and not (isinstance(inner, n.Aggregate) and not inner.keys):
                return node
    return None
