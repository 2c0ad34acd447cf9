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
from secant.plan.rewrites.steps import spelled
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
class Place:
    """Where a scalar stands: the position of each column, and how a subquery there is run."""

    positions: Mapping[str, int]
    subquery: Callable[[n.Relation, Mapping[str, int]], Query]

    def type_of(self, scalar: n.Scalar) -> Type:
        """Give the type of a scalar that stands here."""
        return type_of(scalar)


SCALARS: RuleTable[Callable[..., Code]] = RuleTable("evaluate scalars")
rule = SCALARS.rule


def code(scalar: n.Scalar, place: Place) -> Code:
    """Give the function that computes a scalar for a row."""
    found = SCALARS.find(scalar)
    if found is None:
        raise InternalError("BUG-001", f"evaluate has no rule for {type(scalar).__name__}")
    return found(scalar, place)


def widened(scalar: n.Scalar, target: Type, place: Place) -> Code:
    """Give the function that computes a scalar as a value of a wider type."""
    inner = code(scalar, place)
    if place.type_of(scalar) == target:
        return inner
    return lambda row, frame: v.conform(inner(row, frame), target)


# ── leaves ───────────────────────────────────────────────────────────────────────────────────────


@rule(n.Column)
def _column(node: n.Column, place: Place) -> Code:
    position = place.positions[node.name]
    return lambda row, _: row[position]


@rule(n.Outer)
def _outer(node: n.Outer, _: Place) -> Code:
    name = node.name
    return lambda _, frame: frame.outer[name]


@rule(n.Literal)
def _literal(node: n.Literal, _: Place) -> Code:
    value = v.conform(node.value, node.type)
    return lambda _row, _frame: value


# ── arithmetic ───────────────────────────────────────────────────────────────────────────────────


@rule(n.Arithmetic)
def _arithmetic(node: n.Arithmetic, place: Place) -> Code:
    left, right = code(node.left, place), code(node.right, place)
    kinds = place.type_of(node.left).kind, place.type_of(node.right).kind
    compute = operation(node.op, kinds, place.type_of(node))

    def run(row: Row, frame: Frame) -> Value:
        a, b = left(row, frame), right(row, frame)
        return None if a is None or b is None else compute(a, b)

    return run


@rule(n.Negate)
def _negate(node: n.Negate, place: Place) -> Code:
    operand = code(node.operand, place)

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
def _compare(node: n.Compare, place: Place) -> Code:
    left, right = code(node.left, place), code(node.right, place)
    test = _TESTS[node.op]
    kinds = {place.type_of(node.left).kind, place.type_of(node.right).kind}
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
def _same_value(node: n.SameValue, place: Place) -> Code:
    left, right = code(node.left, place), code(node.right, place)

    def run(row: Row, frame: Frame) -> bool:
        a, b = left(row, frame), right(row, frame)
        if a is None or b is None:
            return a is b
        return v.compare(a, b) == 0

    return run


@rule(n.And)
def _and(node: n.And, place: Place) -> Code:
    return _chain([code(operand, place) for operand in node.operands], decisive=False)


@rule(n.Or)
def _or(node: n.Or, place: Place) -> Code:
    return _chain([code(operand, place) for operand in node.operands], decisive=True)


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
def _not(node: n.Not, place: Place) -> Code:
    operand = code(node.operand, place)

    def run(row: Row, frame: Frame) -> bool | None:
        value: bool | None = operand(row, frame)
        return None if value is None else not value

    return run


@rule(n.IsNull)
def _is_null(node: n.IsNull, place: Place) -> Code:
    operand = code(node.operand, place)
    return lambda row, frame: operand(row, frame) is None


@lru_cache(maxsize=1024)
def _pattern(written: str, escape: str) -> re.Pattern[str]:
    signs = {"%": ".*", "_": "."}
    found, after = "", False
    for character in written:
        if character == escape and not after:
            after = True
            continue
        found += re.escape(character) if after else signs.get(character) or re.escape(character)
        after = False
    return re.compile(found, re.DOTALL)


@rule(n.Like)
def _like(node: n.Like, place: Place) -> Code:
    operand, pattern = code(node.operand, place), code(node.pattern, place)

    def run(row: Row, frame: Frame) -> bool | None:
        text, written = operand(row, frame), pattern(row, frame)
        if text is None or written is None:
            return None
        return _pattern(written, node.escape).fullmatch(text) is not None

    return run


@rule(n.InList)
def _in_list(node: n.InList, place: Place) -> Code:
    operand = code(node.operand, place)
    items = [code(item, place) for item in node.items]

    def run(row: Row, frame: Frame) -> bool | None:
        value = operand(row, frame)
        if value is None:
            return None
        found = [item(row, frame) for item in items]
        if any(item is not None and v.compare(value, item) == 0 for item in found):
            return True
        return None if None in found else False

    return run


# ── choices, conversions, functions ──────────────────────────────────────────────────────────────


@rule(n.Case)
def _case(node: n.Case, place: Place) -> Code:
    target = place.type_of(node)
    branches = [
        (code(branch.condition, place), widened(branch.value, target, place))
        for branch in node.branches
    ]
    default = widened(node.default, target, place)

    def run(row: Row, frame: Frame) -> Value:
        for condition, value in branches:
            if condition(row, frame) is True:
                return value(row, frame)
        return default(row, frame)

    return run


@rule(n.Cast)
def _cast(node: n.Cast, place: Place) -> Code:
    operand, target = code(node.operand, place), node.type
    return lambda row, frame: v.cast(operand(row, frame), target)


@rule(n.Call)
def _call(node: n.Call, place: Place) -> Code:
    function, target = FUNCTIONS[node.function], place.type_of(node)
    arguments = [code(argument, place) for argument in node.arguments]

    def run(row: Row, frame: Frame) -> Value:
        given = [argument(row, frame) for argument in arguments]
        if not function.null_safe and any(value is None for value in given):
            return None
        return v.conform(function.apply(*given), target)

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
def _extract(node: n.Extract, place: Place) -> Code:
    operand, part = code(node.operand, place), _PARTS[node.part]

    def run(row: Row, frame: Frame) -> Value:
        moment = operand(row, frame)
        return None if moment is None else part(v.midnight(moment))

    return run


@rule(n.Attempt)
def _attempt(node: n.Attempt, place: Place) -> Code:
    operand = code(node.operand, place)

    def run(row: Row, frame: Frame) -> Value:
        try:
            return operand(row, frame)
        except Failure:
            return None

    return run


@rule(n.Clamp)
def _clamp(node: n.Clamp, place: Place) -> Code:
    target = place.type_of(node)
    operand, low, high = (widened(p, target, place) for p in (node.operand, node.low, node.high))
    least, greatest = FUNCTIONS["least"].apply, FUNCTIONS["greatest"].apply

    def run(row: Row, frame: Frame) -> Value:
        value = operand(row, frame)
        if value is None:
            return None
        return least(greatest(value, low(row, frame)), high(row, frame))

    return run


@rule(n.Quantize)
def _quantize(node: n.Quantize, place: Place) -> Code:
    return code(spelled(node), place)


@rule(n.Bucket)
def _bucket(node: n.Bucket, place: Place) -> Code:
    operand, limits = code(node.operand, place), node.limits

    def run(row: Row, frame: Frame) -> Value:
        value = operand(row, frame)
        return 0 if value is None else bisect_left(limits, value)

    return run


# ── subqueries ───────────────────────────────────────────────────────────────────────────────────


@rule(n.ScalarSubquery)
def _scalar_subquery(node: n.ScalarSubquery, place: Place) -> Code:
    query = place.subquery(node.relation, place.positions)

    def run(row: Row, frame: Frame) -> Value:
        rows = query(row, frame)
        if len(rows) > 1:
            raise Failure
        return rows[0][0] if rows else None

    return run


@rule(n.InSubquery)
def _in_subquery(node: n.InSubquery, place: Place) -> Code:
    query = place.subquery(node.relation, place.positions)
    inner = n.ScalarSubquery(node.relation)  # its type is that of the one column
    target = unify(place.type_of(node.operand), place.type_of(inner))
    assert target is not None
    operand = widened(node.operand, target, place)

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
def _exists(node: n.Exists, place: Place) -> Code:
    query = place.subquery(node.relation, place.positions)
    return lambda row, frame: bool(query(row, frame))
