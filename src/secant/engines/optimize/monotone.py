"""Functions of one stored column: where do they rise, and for which stored values do they pass a number?

In: an expression over one column that is moved into a declared range. Out: conditions on the column itself that hold
for the very rows for which an engine would find the expression above or below a number, to the last digit: an engine
compares what is stored faster than what it would have to compute. Sums, products with a constant and casts are rounded
monotonely, so a border is found by trying values of the range, which are public. Never here: data.
"""

from __future__ import annotations

import datetime
import operator
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

from secant.plan import nodes as n
from secant.plan.evaluate.scalars import Frame, RowLayout, code
from secant.plan.typing import type_of
from secant.records import frozen
from secant.schema.types import BOOLEAN, DOUBLE

_EXACT = 2**53
"""Whole numbers below this are floats."""
_SMALL = 10**4
"""Constants below this, and what floats hold, have together less than an engine's 38 digits."""
_NOTHING = Frame({}, {}, {})
_PASSES: Mapping[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
Stretch = tuple[int, int]
"""Values of a range by their numbers, the first and the last one of some that follow each other."""


@frozen
class Axis:
    """The values that a column can have after it was moved into its range, numbered from 0."""

    column: n.Column
    low: Any
    last: int

    def value(self, number: int) -> Any:
        """Give the value with a number."""
        kind = self.column.type
        if kind.kind == "DATE":
            return self.low + datetime.timedelta(number)
        return self.low + (
            number if kind.kind == "INTEGER" else Decimal(number).scaleb(-kind.scale)
        )

    def condition(self, stretches: list[Stretch]) -> n.Scalar:
        """Say of the stored column, which is there, that its value in the range is one of these."""
        conditions = []
        for first, last in stretches:
            ends = [] if first == 0 else [self._compared(">=", first)]
            ends += [] if last == self.last else [self._compared("<=", last)]
            conditions.append(n.conjunction(tuple(ends)) or n.Literal(True, BOOLEAN))
        if not conditions:
            return n.Literal(False, BOOLEAN)
        return conditions[0] if len(conditions) == 1 else n.Or(tuple(conditions))

    def _compared(self, op: str, number: int) -> n.Scalar:
        return n.Compare(op, self.column, n.Literal(self.value(number), self.column.type))


@frozen
class Piece:
    """Values over which a function only rises, or only falls."""

    first: int
    last: int
    rises: bool


@frozen
class Curve:
    """An expression over one column, piece by piece."""

    scalar: n.Scalar
    axis: Axis
    pieces: tuple[Piece, ...]

    def where(self, op: str, limit: float) -> list[Stretch]:
        """Give the values for which an engine finds the expression on this side of a number."""
        passes = _PASSES[op]
        at = _computed(self.scalar, self.axis)
        stretches: list[Stretch] = []
        for piece in self.pieces:
            inside = _stretch(lambda i: passes(at(i), limit), piece.first, piece.last)
            if inside is None:
                continue
            if stretches and stretches[-1][1] + 1 == inside[0]:
                inside = stretches.pop()[0], inside[1]
            stretches.append(inside)
        return stretches


def curve_of(scalar: n.Scalar) -> Curve | None:
    """Read an expression over one column in a range as pieces that rise or fall; None if it is none such."""
    clamps = [x for x in n.walk(scalar) if isinstance(x, n.Clamp)]
    axes = [axis_of(x) for x in clamps]
    if not axes or axes[0] is None or any(x is None or not _alike(x, axes[0]) for x in axes):
        return None
    clamped = {x.operand for x in clamps}
    if any(isinstance(x, n.Column) and x not in clamped for x in n.walk(scalar)):
        return None
    pieces = _pieces(scalar, axes[0])
    return None if pieces is None else Curve(scalar, axes[0], tuple(pieces))


def _alike(one: Axis, other: Axis) -> bool:
    return (one.column.name, one.low, one.last) == (other.column.name, other.low, other.last)


def axis_of(clamp: n.Clamp) -> Axis | None:
    """Number the values of a range; None where they are not whole steps that floats hold."""
    column = clamp.operand
    ends = [x.value if isinstance(x, n.Literal) else None for x in (clamp.low, clamp.high)]
    if not isinstance(column, n.Column) or None in ends:
        return None
    low, high = ends
    kind = column.type
    apart: Any
    if kind.kind == "DATE" and all(type(x) is datetime.date for x in ends):
        apart = (high - low).days  # type: ignore[operator]
    elif kind.kind in ("INTEGER", "DECIMAL") and all(type(x) in (int, Decimal) for x in ends):
        scale = kind.scale if kind.kind == "DECIMAL" else 0
        first, last = (Decimal(x).scaleb(scale) for x in ends)  # type: ignore[arg-type]
        if first != int(first) or last != int(last) or max(abs(first), abs(last)) >= _EXACT:
            return None
        apart = int(last - first)
    else:
        return None
    return Axis(column, low, apart) if apart >= 0 else None


def _computed(scalar: n.Scalar, axis: Axis) -> Callable[[int], Any]:
    run = code(scalar, RowLayout({axis.column.name: 0}, _no_subquery))
    return lambda number: run((axis.value(number),), _NOTHING)


def _no_subquery(relation: n.Relation, positions: Mapping[str, int]) -> Any:
    raise AssertionError("functions of a column read nothing else")


def _stretch(passes: Callable[[int], bool], first: int, last: int) -> Stretch | None:
    """Give the values that pass, which are the first ones or the last ones; None if there are none."""
    at_first, at_last = passes(first), passes(last)
    if at_first == at_last:
        return (first, last) if at_first else None
    low, high = first, last
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if passes(middle) == at_first else (low, middle)
    return (first, low) if at_first else (high, last)


def _pieces(scalar: n.Scalar, axis: Axis) -> list[Piece] | None:
    if isinstance(scalar, n.Clamp):
        return [Piece(0, axis.last, True)]
    if isinstance(scalar, n.Cast):
        numbers = type_of(scalar.operand).kind in ("INTEGER", "DECIMAL", "DOUBLE")
        return _pieces(scalar.operand, axis) if scalar.type == DOUBLE and numbers else None
    if isinstance(scalar, n.Attempt):
        return _pieces(scalar.operand, axis)  # numbers of these sizes are added without failing
    if isinstance(scalar, n.Arithmetic):
        return _shifted_pieces(scalar, axis)
    if not isinstance(scalar, n.Call):
        return None
    if scalar.function == "date_diff":
        unit, start, end = scalar.arguments
        days = isinstance(unit, n.Literal) and unit.value == "day"
        return _pieces(end, axis) if days and isinstance(start, n.Literal) else None
    if scalar.function == "abs" and type_of(scalar) == DOUBLE:
        return _folded(scalar.arguments[0], axis)
    return None


def _shifted_pieces(scalar: n.Arithmetic, axis: Axis) -> list[Piece] | None:
    """Read a sum, a difference or a product with a constant, of floats, or of decimals, which are exact."""
    if type_of(scalar).kind not in ("DOUBLE", "DECIMAL"):
        return None
    constant, other = scalar.left, scalar.right
    if isinstance(other, n.Literal):
        constant, other = other, constant
    if not isinstance(constant, n.Literal) or not isinstance(constant.value, (int, float, Decimal)):
        return None
    most = 10**15 if type_of(scalar) == DOUBLE else _SMALL
    if not -most < constant.value < most:
        return None
    pieces = _pieces(other, axis)
    if pieces is None or scalar.op not in ("+", "-", "*"):
        return None
    turned = other is scalar.right if scalar.op == "-" else False
    if scalar.op == "*":
        turned = constant.value < 0
    return [Piece(p.first, p.last, p.rises != turned) for p in pieces]


def _folded(inner: n.Scalar, axis: Axis) -> list[Piece] | None:
    """Read an absolute value: where the number is negative, it falls where that rises."""
    pieces = _pieces(inner, axis)
    if pieces is None:
        return None
    at = _computed(inner, axis)
    merged = []
    for p in pieces:
        below = _stretch(lambda i: at(i) < 0, p.first, p.last)
        if below is None:
            merged.append(p)
            continue
        first, last = below
        if first > p.first:
            merged.append(Piece(p.first, first - 1, p.rises))
        merged.append(Piece(first, last, not p.rises))
        if last < p.last:
            merged.append(Piece(last + 1, p.last, p.rises))
    return merged
