"""Scalars as Python functions: the half of `evaluate` that works inside one row.

In: a scalar, and where its columns stand in a row. Out: a function of the row and the frame around
it. Never here: loops over rows, and any way to look at a row other than by the columns named.
NULL is None, and unknown is None: three-valued logic everywhere.
"""

from __future__ import annotations

import operator
import re
from bisect import bisect_left
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any, TypeAlias

from secant.errors import InternalError
from secant.plan import nodes as n
from secant.plan.evaluate import values as v
from secant.plan.evaluate.values import Failure, Value
from secant.plan.functions.arithmetic import operation
from secant.plan.functions.scalar import FUNCTIONS
from secant.plan.rewrites.steps import as_product
from secant.plan.rule_table import RuleTable
from secant.plan.typing import type_of
from secant.records import frozen
from secant.schema.types import Type, unify

Row: TypeAlias = tuple[Value, ...]


@frozen
class Frame:
    """What stands around a row: the database, answers that can be reused, and the outer columns."""

    database: Mapping[str, Any]
    answers: dict[Any, Any]
    outer: Mapping[str, Value]


Code: TypeAlias = Callable[[Row, Frame], Any]
Query: TypeAlias = Callable[[Row, Frame], list[Row]]


@frozen
class RowLayout:
    """Where a scalar stands: the position of each column, and how a subquery there is run."""

    positions: Mapping[str, int]
    subquery: Callable[[n.Relation, Mapping[str, int]], Query]

    def type_of(self, scalar: n.Scalar) -> Type:
        """Give the type of a scalar that stands here."""
        return type_of(scalar)


SCALARS: RuleTable[Callable[..., Code]] = RuleTable("evaluate scalars")
rule = SCALARS.rule


def code(scalar: n.Scalar, layout: RowLayout) -> Code:
    """Give the function that computes a scalar for a row."""
    evaluate = SCALARS.find(scalar)
    if evaluate is None:
        raise InternalError("BUG-001", f"evaluate has no rule for {type(scalar).__name__}")
    return evaluate(scalar, layout)


def widened(scalar: n.Scalar, target: Type, layout: RowLayout) -> Code:
    """Give the function that computes a scalar as a value of a wider type."""
    inner = code(scalar, layout)
    if layout.type_of(scalar) == target:
        return inner
    return lambda row, frame: v.conform(inner(row, frame), target)


# ── leaves ───────────────────────────────────────────────────────────────────────────────────────


@rule(n.Column)
def _column(node: n.Column, layout: RowLayout) -> Code:
    position = layout.positions[node.name]
    return lambda row, _: row[position]


@rule(n.Outer)
def _outer(node: n.Outer, _: RowLayout) -> Code:
    name = node.name
    return lambda _, frame: frame.outer[name]


@rule(n.Literal)
def _literal(node: n.Literal, _: RowLayout) -> Code:
    value = v.conform(node.value, node.type)
    return lambda _row, _frame: value


# ── arithmetic ───────────────────────────────────────────────────────────────────────────────────


@rule(n.Arithmetic)
def _arithmetic(node: n.Arithmetic, layout: RowLayout) -> Code:
    left, right = code(node.left, layout), code(node.right, layout)
    kinds = layout.type_of(node.left).kind, layout.type_of(node.right).kind
    compute = operation(node.op, kinds, layout.type_of(node))

    def run(row: Row, frame: Frame) -> Value:
        a, b = left(row, frame), right(row, frame)
        return None if a is None or b is None else compute(a, b)

    return run


@rule(n.Negate)
def _negate(node: n.Negate, layout: RowLayout) -> Code:
    operand = code(node.operand, layout)

    def run(row: Row, frame: Frame) -> Value:
        value = operand(row, frame)
        if value is None:
            return None
        if isinstance(value, tuple):
            return tuple(-part for part in value)
        return v.whole(-value) if isinstance(value, int) else -value

    return run


# ── comparison ───────────────────────────────────────────────────────────────────────────────────

_TESTS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_PYTHON_ORDER = ("BOOLEAN", "INTEGER", "DECIMAL", "TEXT", "DATE", "TIMESTAMP")
"""Kinds whose values Python itself orders and equates as SQL does."""


@rule(n.Compare)
def _compare(node: n.Compare, layout: RowLayout) -> Code:
    left, right = code(node.left, layout), code(node.right, layout)
    test = _TESTS[node.op]
    kinds = {layout.type_of(node.left).kind, layout.type_of(node.right).kind}
    if len(kinds) == 1 and kinds <= set(_PYTHON_ORDER):
        holds = test
    else:

        def holds(a: Value, b: Value) -> bool:
            return test(v.compare(a, b), 0)

    def run(row: Row, frame: Frame) -> bool | None:
        a, b = left(row, frame), right(row, frame)
        return None if a is None or b is None else holds(a, b)

    return run


@rule(n.SameValue)
def _same_value(node: n.SameValue, layout: RowLayout) -> Code:
    left, right = code(node.left, layout), code(node.right, layout)

    def run(row: Row, frame: Frame) -> bool:
        a, b = left(row, frame), right(row, frame)
        if a is None or b is None:
            return a is b
        return v.compare(a, b) == 0

    return run


@rule(n.And)
def _and(node: n.And, layout: RowLayout) -> Code:
    return _chain([code(operand, layout) for operand in node.operands], decisive=False)


@rule(n.Or)
def _or(node: n.Or, layout: RowLayout) -> Code:
    return _chain([code(operand, layout) for operand in node.operands], decisive=True)


def _chain(operands: list[Code], decisive: bool) -> Code:
    """One decisive operand decides; else one unknown leaves it unknown."""

    def run(row: Row, frame: Frame) -> bool | None:
        result: bool | None = not decisive
        for operand in operands:
            value: bool | None = operand(row, frame)
            if value is decisive:
                return value
            if value is None:
                result = None
        return result

    return run


@rule(n.Not)
def _not(node: n.Not, layout: RowLayout) -> Code:
    operand = code(node.operand, layout)

    def run(row: Row, frame: Frame) -> bool | None:
        value: bool | None = operand(row, frame)
        return None if value is None else not value

    return run


@rule(n.IsNull)
def _is_null(node: n.IsNull, layout: RowLayout) -> Code:
    operand = code(node.operand, layout)
    return lambda row, frame: operand(row, frame) is None


@lru_cache(maxsize=1024)
def _pattern(pattern: str, escape: str) -> re.Pattern[str]:
    signs = {"%": ".*", "_": "."}
    expression, after = "", False
    for character in pattern:
        if character == escape and not after:
            after = True
            continue
        expression += (
            re.escape(character) if after else signs.get(character) or re.escape(character)
        )
        after = False
    return re.compile(expression, re.DOTALL)


@rule(n.Like)
def _like(node: n.Like, layout: RowLayout) -> Code:
    operand, pattern = code(node.operand, layout), code(node.pattern, layout)

    def run(row: Row, frame: Frame) -> bool | None:
        text, pattern_text = operand(row, frame), pattern(row, frame)
        if text is None or pattern_text is None:
            return None
        return _pattern(pattern_text, node.escape).fullmatch(text) is not None

    return run


@rule(n.InList)
def _in_list(node: n.InList, layout: RowLayout) -> Code:
    operand = code(node.operand, layout)
    items = [code(item, layout) for item in node.items]

    def run(row: Row, frame: Frame) -> bool | None:
        value = operand(row, frame)
        if value is None:
            return None
        values = [item(row, frame) for item in items]
        if any(item is not None and v.compare(value, item) == 0 for item in values):
            return True
        return None if None in values else False

    return run


# ── choices, conversions, functions ──────────────────────────────────────────────────────────────


@rule(n.Case)
def _case(node: n.Case, layout: RowLayout) -> Code:
    target = layout.type_of(node)
    branches = [
        (code(branch.condition, layout), widened(branch.value, target, layout))
        for branch in node.branches
    ]
    default = widened(node.default, target, layout)

    def run(row: Row, frame: Frame) -> Value:
        for condition, value in branches:
            if condition(row, frame) is True:
                return value(row, frame)
        return default(row, frame)

    return run


@rule(n.Cast)
def _cast(node: n.Cast, layout: RowLayout) -> Code:
    operand, target = code(node.operand, layout), node.type
    return lambda row, frame: v.cast(operand(row, frame), target)


@rule(n.Call)
def _call(node: n.Call, layout: RowLayout) -> Code:
    function, target = FUNCTIONS[node.function], layout.type_of(node)
    arguments = [code(argument, layout) for argument in node.arguments]

    def run(row: Row, frame: Frame) -> Value:
        values = [argument(row, frame) for argument in arguments]
        if not function.null_safe and any(value is None for value in values):
            return None
        return v.conform(function.apply(*values), target)

    return run


_PARTS: dict[str, Callable[[datetime], int | float]] = {
    "year": lambda m: m.year,
    "quarter": lambda m: (m.month + 2) // 3,
    "month": lambda m: m.month,
    "day": lambda m: m.day,
    "dow": lambda m: m.isoweekday() % 7,
    "doy": lambda m: m.timetuple().tm_yday,
    "week": lambda m: m.isocalendar().week,
    "isodow": lambda m: m.isoweekday(),
    "isoyear": lambda m: m.isocalendar().year,
    "decade": lambda m: m.year // 10,
    "century": lambda m: (m.year - 1) // 100 + 1,
    "hour": lambda m: m.hour,
    "minute": lambda m: m.minute,
    "second": lambda m: m.second,
    "epoch": lambda m: (m - v.midnight(v.EPOCH)) / timedelta(seconds=1),
}


@rule(n.Extract)
def _extract(node: n.Extract, layout: RowLayout) -> Code:
    operand, part = code(node.operand, layout), _PARTS[node.part]

    def run(row: Row, frame: Frame) -> Value:
        moment = operand(row, frame)
        return None if moment is None else part(v.midnight(moment))

    return run


@rule(n.Attempt)
def _attempt(node: n.Attempt, layout: RowLayout) -> Code:
    operand = code(node.operand, layout)

    def run(row: Row, frame: Frame) -> Value:
        try:
            return operand(row, frame)
        except Failure:
            return None

    return run


@rule(n.Clamp)
def _clamp(node: n.Clamp, layout: RowLayout) -> Code:
    target = layout.type_of(node)
    operand, low, high = (widened(p, target, layout) for p in (node.operand, node.low, node.high))
    least, greatest = FUNCTIONS["least"].apply, FUNCTIONS["greatest"].apply

    def run(row: Row, frame: Frame) -> Value:
        value = operand(row, frame)
        if value is None:
            return None
        return least(greatest(value, low(row, frame)), high(row, frame))

    return run


@rule(n.Quantize)
def _quantize(node: n.Quantize, layout: RowLayout) -> Code:
    return code(as_product(node), layout)


@rule(n.Bucket)
def _bucket(node: n.Bucket, layout: RowLayout) -> Code:
    operand, limits = code(node.operand, layout), node.limits

    def run(row: Row, frame: Frame) -> Value:
        value = operand(row, frame)
        return 0 if value is None else bisect_left(limits, value)

    return run


# ── subqueries ───────────────────────────────────────────────────────────────────────────────────


@rule(n.ScalarSubquery)
def _scalar_subquery(node: n.ScalarSubquery, layout: RowLayout) -> Code:
    query = layout.subquery(node.relation, layout.positions)

    def run(row: Row, frame: Frame) -> Value:
        rows = query(row, frame)
        if len(rows) > 1:
            raise Failure
        return rows[0][0] if rows else None

    return run


@rule(n.InSubquery)
def _in_subquery(node: n.InSubquery, layout: RowLayout) -> Code:
    query = layout.subquery(node.relation, layout.positions)
    inner = n.ScalarSubquery(node.relation)  # its type is that of the one column
    target = unify(layout.type_of(node.operand), layout.type_of(inner))
    assert target is not None
    operand = widened(node.operand, target, layout)

    def run(row: Row, frame: Frame) -> bool | None:
        rows, value = query(row, frame), operand(row, frame)
        if not rows:
            return False
        if value is None:
            return None
        members = _members(rows, target, node, frame)
        if v.same_key(value) in members:
            return True
        return None if None in members else False

    return run


def _members(rows: list[Row], target: Type, node: n.InSubquery, frame: Frame) -> set[Any]:
    """Give the keys of a subquery's rows; they are kept as long as the answer they came from."""
    key = ("members", node, id(rows))
    if key not in frame.answers:
        # The rows are kept beside the set, so that their id is not given to other rows.
        frame.answers[key] = rows, {v.same_key(v.conform(value, target)) for (value,) in rows}
    members: set[Any] = frame.answers[key][1]
    return members


@rule(n.Exists)
def _exists(node: n.Exists, layout: RowLayout) -> Code:
    query = layout.subquery(node.relation, layout.positions)
    return lambda row, frame: bool(query(row, frame))
