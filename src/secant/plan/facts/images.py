"""Which keys can an expression give, if its columns keep to what is declared? The image of a range, written out.

In: a key over columns with declared values or ranges, and the query's own conditions. Out: exactly the values that it
takes there, or None. Columns with few values are tried one by one. A timestamp is tried once in each stretch that the
key's own parts (month, hour, ...) tell apart; a long range of numbers is followed through functions that only rise or
only fall to their whole steps. What is computed here an engine computes alike: functions whose last digits differ from
engine to engine are not followed. Like all lists of keys, an image rests on declared facts and never on data.
"""

from __future__ import annotations

import datetime
import itertools
import math
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction

from secant.plan import nodes as n
from secant.plan.evaluate.evaluate import evaluate
from secant.plan.evaluate.values import EPOCH, EXACT, Failure, date_of, midnight
from secant.plan.facts.range_conditions import as_number
from secant.plan.facts.ranges import Ranges, as_text
from secant.plan.functions.scalar import FUNCTIONS
from secant.plan.rewrites.rewrite import columns_of
from secant.plan.show import same
from secant.plan.typing import type_of
from secant.records import frozen
from secant.schema.types import Type

MOST_TRIED = 20_000
"""So many combinations of values are tried at most."""
MOST_STEPS = 10_000
STRETCHES = ("second", "minute", "hour", "day", "month")
_PART_STRETCH = {
    "year": "month", "quarter": "month", "month": "month", "decade": "month", "century": "month", "week": "day",
    "day": "day", "dow": "day", "doy": "day", "isodow": "day", "isoyear": "day", "hour": "hour", "minute": "minute",
    "second": "second",
}  # fmt: skip
_FOLLOWED = (
    n.Column, n.Literal, n.Arithmetic, n.Negate, n.Compare, n.And, n.Or, n.Not, n.IsNull, n.InList, n.Branch,
    n.Case, n.Cast, n.Call, n.Extract, n.Attempt, n.Clamp,
)  # fmt: skip
_WHOLE = ("floor", "ceil", "round")
_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
Points = Sequence[object]


def image_of(
    key: n.Scalar, conditions: tuple[n.Scalar, ...], ranges: Ranges, present: frozenset[str]
) -> tuple[object, ...] | None:
    """Give all values of a key, NULL last, or None where they cannot be listed; `present` columns are never NULL."""
    names = sorted(columns_of(key))
    if not names or len(names) > 2 or not all(_followed(part) for part in n.walk(key)):
        return None
    kinds = {c.name: c.type for c in n.walk(key) if isinstance(c, n.Column)}
    own = [
        c
        for c in conditions
        if not n.has_subquery(c) and columns_of(c) and columns_of(c) <= {*names}
    ]
    lists: list[Points] = []
    tests: list[n.Scalar] = []
    for name in names:
        column = n.Column(name, kinds[name])
        about = [c for c in own if columns_of(c) == {name}]
        points = _points(column, ranges)
        if points is not None:
            tests += about
        else:
            points = _moments(key, column, about, ranges)
        if points is None and len(names) == 1:
            return _through_steps(key, column, about, ranges, missing=name not in present)
        if points is None:
            return None
        lists.append(points if name in present else (*points, None))
    if math.prod(map(len, lists)) > MOST_TRIED:
        return None
    rows = tuple(itertools.product(*lists))
    values = n.Values(tuple(n.Field(name, kinds[name]) for name in names), rows)
    return _values_of(key, values, tests)


def _followed(part: n.Node) -> bool:
    """Whether every engine computes a part alike, to the last digit."""
    if isinstance(part, n.Call):
        return FUNCTIONS[part.function].stepwise
    if isinstance(part, n.Cast):
        source = type_of(part.operand).kind
        to_text = part.type.kind == "TEXT"
        return source != "TEXT" and (not to_text or source in ("INTEGER", "DATE", "BOOLEAN"))
    return isinstance(part, _FOLLOWED)


def _values_of(
    key: n.Scalar, values: n.Values, tests: Sequence[n.Scalar]
) -> tuple[object, ...] | None:
    """Compute a key for all rows that pass the tests; where a row fails, the key is NULL, as in a statement."""
    predicate = n.conjunction(tuple(tests))
    item = (n.Named("key", n.Attempt(key)),)
    try:
        rows = evaluate(
            n.Project(values if predicate is None else n.Filter(values, predicate), item), {}
        )
    except Failure:
        try:
            rows = evaluate(n.Project(values, item), {})  # a list may be too long, never too short
        except Failure:
            return None
    distinct = dict.fromkeys(row[0] for row in rows if row[0] is not None and row[0] == row[0])
    nothing = any(row[0] is None for row in rows)
    return (*distinct, None) if nothing else tuple(distinct)


# ── columns with few values ──────────────────────────────────────────────────────────────────────


def _points(column: n.Column, ranges: Ranges) -> Points | None:
    kind = column.type.kind
    if kind == "BOOLEAN":
        return (False, True)
    if column.name in ranges.origins:
        values = ranges.policy.column(*ranges.origins[column.name]).values
        if values is not None:
            return values
    interval = ranges.of(column)
    if kind not in ("INTEGER", "DATE") or not interval.bounded:
        return None
    low, high = interval.ends()
    first, last = -((-low) // 1), high // 1
    if last - first > MOST_TRIED:
        return None
    whole = range(int(first), int(last) + 1)
    if kind == "INTEGER":
        return whole
    return [when for when in map(date_of, whole) if when is not None]


# ── timestamps ───────────────────────────────────────────────────────────────────────────────────


def _moments(
    key: n.Scalar, column: n.Column, about: list[n.Scalar], ranges: Ranges
) -> Points | None:
    """Give one moment of each stretch that a key tells apart, from the first moment of the range to its last.

    Two moments of one stretch have the same key, and the first moment of the range stands for the rest of its own.
    """
    interval = ranges.of(column)
    stretch = _stretch(key, column.name)
    if column.type.kind != "TIMESTAMP" or stretch is None or not interval.bounded:
        return None
    try:
        first, last = (_moment(end) for end in interval.ends())
        for condition in about:
            first, last = _narrowed(condition, column.name, first, last)
        if last < first:
            return ()
        count = _distance(first, last, stretch)
        if count > MOST_TRIED:
            return None
        starts = [_later(first, stretch, i) for i in range(count + 1)]
    except (OverflowError, ValueError):  # beyond the calendar
        return None
    return [first, *(m for m in starts if first < m <= last)]


def _narrowed(
    condition: n.Scalar, name: str, first: datetime.datetime, last: datetime.datetime
) -> tuple[datetime.datetime, datetime.datetime]:
    """Give the ends that a comparison with a constant leaves; timestamps are whole microseconds."""
    op, value = _side(condition, name), _constant(condition, name)
    if not isinstance(value, datetime.date):
        return first, last
    if not isinstance(value, datetime.datetime):
        value = datetime.datetime.combine(value, datetime.time())
    tick = datetime.timedelta(microseconds=1)
    if op in (">", ">=", "="):
        first = max(first, value + tick if op == ">" else value)
    if op in ("<", "<=", "="):
        last = min(last, value - tick if op == "<" else value)
    return first, last


def _constant(condition: n.Scalar, name: str) -> object:
    """Give what a condition compares a column with."""
    if not isinstance(condition, n.Compare):
        return None
    other = condition.right if _is(condition.left, name) else condition.left
    while isinstance(other, (n.Attempt, n.Cast)):
        other = other.operand
    return other.value if isinstance(other, n.Literal) else None


def _stretch(key: n.Scalar, name: str) -> str | None:
    """Give the longest stretch of time within which a key cannot change; None if it reads the moment itself."""
    parts: list[str] = []
    pending: list[n.Node] = [key]
    while pending:
        node = pending.pop()
        if isinstance(node, n.Column) and node.name == name:
            return None
        if isinstance(node, n.Extract) and _is(node.operand, name):
            parts.append(node.part)
        elif (
            isinstance(node, n.Call)
            and node.function == "date_trunc"
            and _is(node.arguments[1], name)
        ):
            parts.append(as_text(node.arguments[0]) or "")
        elif isinstance(node, n.Cast) and node.type.kind == "DATE" and _is(node.operand, name):
            parts.append("day")
        elif not (isinstance(node, n.IsNull) and _is(node.operand, name)):
            pending += n.children(node)
    stretches = [_PART_STRETCH.get(part) for part in parts]
    if None in stretches:
        return None
    return min((f for f in stretches if f is not None), key=STRETCHES.index, default="month")


def _is(scalar: n.Scalar, name: str) -> bool:
    while isinstance(scalar, n.Attempt):
        scalar = scalar.operand
    return isinstance(scalar, n.Column) and scalar.name == name


def _moment(days: Fraction) -> datetime.datetime:
    return midnight(EPOCH) + datetime.timedelta(microseconds=int(days * 86_400 * 10**6 // 1))


def _distance(first: datetime.datetime, last: datetime.datetime, stretch: str) -> int:
    if stretch == "month":
        return 12 * (last.year - first.year) + last.month - first.month
    return (last - first) // _LENGTHS[stretch] + 1


_LENGTHS = {
    "second": datetime.timedelta(seconds=1), "minute": datetime.timedelta(minutes=1),
    "hour": datetime.timedelta(hours=1), "day": datetime.timedelta(days=1),
}  # fmt: skip


def _later(first: datetime.datetime, stretch: str, count: int) -> datetime.datetime:
    """Give the beginning of the stretch so many after the one of a moment."""
    if stretch == "month":
        years, month = divmod(first.month - 1 + count, 12)
        return datetime.datetime(first.year + years, month + 1, 1)  # noqa: DTZ001
    midnight = datetime.datetime.combine(first.date(), datetime.time())
    length = _LENGTHS[stretch]
    return midnight + ((first - midnight) // length + count) * length


def _side(condition: n.Scalar, name: str) -> str | None:
    """Give how a condition compares a column with a constant, the column on the left."""
    if not isinstance(condition, n.Compare):
        return None
    if _is(condition.left, name) and not columns_of(condition.right):
        return condition.op
    if _is(condition.right, name) and not columns_of(condition.left):
        return _TURNED.get(condition.op, condition.op)
    return None


# ── long ranges of numbers ───────────────────────────────────────────────────────────────────────


@frozen
class _Climb:
    """A function that only rises, or only falls, with its column: how far its values are apart, and whether whole."""

    gap: Fraction
    whole: bool


def _through_steps(
    key: n.Scalar, column: n.Column, about: list[n.Scalar], ranges: Ranges, *, missing: bool
) -> tuple[object, ...] | None:
    """Follow a long range of numbers to the whole numbers that a part of the key makes of it, and compute the rest."""
    part = _whole_part(key, column.name)
    ends = _ends(column, about, ranges)
    if part is None or ends is None:
        return None
    kind = type_of(part)
    field = n.Field(column.name, column.type)
    end_values = _values_of(part, n.Values((field,), tuple((e,) for e in ends)), ())
    numbers = [as_number(v) for v in end_values or ()]
    integers = [int(x) for x in numbers if x is not None and x.denominator == 1]
    if not integers or len(integers) != len(numbers) or max(integers) - min(integers) >= MOST_STEPS:
        return None
    step = n.Field("step", kind)

    @n.once
    def change(node: n.Node) -> n.Node:
        if isinstance(node, n.Scalar) and same(node, part):
            return n.Column("step", kind)
        return n.rebuild(node, change)

    expression = change(key)
    assert isinstance(expression, n.Scalar)
    if columns_of(expression) != {"step"}:
        return None
    rows = tuple((_typed(k, kind),) for k in range(min(integers), max(integers) + 1))
    return _values_of(expression, n.Values((step,), (*rows, (None,)) if missing else rows), ())


def _typed(whole: int, kind: Type) -> object:
    if kind.kind == "DOUBLE":
        return float(whole)
    return whole if kind.kind == "INTEGER" else Decimal(whole).scaleb(0, EXACT)


def _ends(column: n.Column, about: list[n.Scalar], ranges: Ranges) -> tuple[object, object] | None:
    """Give the least and the greatest value of a column; one that a condition leaves out gives way to its neighbor."""
    interval = ranges.of(column)
    if not column.type.numeric or not interval.bounded:
        return None
    low, high = interval.ends()
    strict = {">": False, "<": False}
    for condition in about:
        op = _side(condition, column.name)
        if op in strict:
            number = as_number(_constant(condition, column.name))
            strict[op] |= number == (low if op == ">" else high)
    return _near(low, column.type, up=strict[">"]), _near(
        high, column.type, up=False, down=strict["<"]
    )


def _near(end: Fraction, kind: Type, *, up: bool, down: bool = False) -> object:
    if kind.kind == "DOUBLE":
        value = float(end)
        return math.nextafter(value, math.inf if up else -math.inf) if up or down else value
    unit = Fraction(1, 10**kind.scale) if kind.kind == "DECIMAL" else Fraction(1)
    steps = (end / unit).__floor__() - int(down and (end / unit).denominator == 1) + int(up)
    return steps if kind.kind == "INTEGER" else Decimal(steps).scaleb(-kind.scale, EXACT)


def _whole_part(key: n.Scalar, name: str) -> n.Scalar | None:
    """Give the outermost part of a key that gives whole numbers without gaps as the column rises."""
    pending: list[n.Node] = [key]
    while pending:
        node = pending.pop(0)
        if isinstance(node, n.Scalar):
            climb = _climb(node, name)
            if (
                climb is not None
                and climb.whole
                and climb.gap == 1
                and not isinstance(node, n.Column)
            ):
                return node
        pending += n.children(node)
    return None


def _climb(node: n.Scalar, name: str) -> _Climb | None:
    if isinstance(node, n.Column):
        if node.name != name or not node.type.numeric:
            return None
        whole = node.type.kind == "INTEGER"
        return _Climb(Fraction(int(whole)), whole)
    if isinstance(node, (n.Attempt, n.Negate)):
        return _climb(node.operand, name)
    if isinstance(node, n.Cast):
        inner = _climb(node.operand, name)
        if inner is None or node.type.kind == "DOUBLE":
            return inner if inner is None else _Climb(inner.gap, inner.whole)
        return _rounded(inner) if node.type.kind == "INTEGER" else None
    if isinstance(node, n.Call) and node.function in _WHOLE and len(node.arguments) == 1:
        return _rounded(_climb(node.arguments[0], name))
    if isinstance(node, n.Arithmetic):
        return _computed(node, name)
    return None


def _rounded(inner: _Climb | None) -> _Climb | None:
    """Rounding leaves no gap where what is rounded has none larger than one."""
    return _Climb(Fraction(1), True) if inner is not None and inner.gap <= 1 else None


def _computed(node: n.Arithmetic, name: str) -> _Climb | None:
    left, right = node.left, node.right
    if isinstance(left, n.Literal) and node.op in "+-*":
        left, right = right, left
    number = as_number(right.value) if isinstance(right, n.Literal) else None
    inner = _climb(left, name)
    if inner is None or number is None:
        return None
    if node.op in ("+", "-"):
        return _Climb(inner.gap, inner.whole and number.denominator == 1)
    if number == 0:
        return None
    if node.op == "*":
        return _Climb(inner.gap * abs(number), inner.whole and number.denominator == 1)
    if node.op == "/":
        return _Climb(inner.gap / abs(number), False)
    if node.op == "//":
        return _rounded(_Climb(inner.gap / abs(number), False))
    return None
