"""Conditions on a margin as conditions on the column it is made of, which engines check fastest.

In: a margin that is a straight line in one clamped column, and an edge. Out: a comparison of the bare
column with a constant of its own type that holds for every row whose margin is above the edge, and perhaps
for a few more: it only spares work (derivative.floor). None where the margin is not of that form.
"""

from __future__ import annotations

import datetime
from fractions import Fraction

from secant.numeric.quick import quick, ratio
from secant.plan import nodes as n
from secant.plan.evaluate.values import EPOCH
from secant.plan.facts.ranges import as_number, as_text
from secant.plan.rewrites.measures import literal
from secant.schema import types as t
from secant.sensitivity.derivative import shapes


def column_above(margin: n.Scalar, edge: float) -> n.Scalar | None:
    """Give a condition on a column that every row meets whose margin exceeds the edge."""
    window = _window(margin)
    if window is not None:
        line, top = window
        both = [_above(line, edge - top), _above(shapes.times(-1.0, line), edge - top)]
        return n.conjunction(tuple(c for c in both if c is not None))
    return _above(margin, edge)


def _window(margin: n.Scalar) -> tuple[n.Scalar, float] | None:
    """Read top - |line|."""
    if not (
        isinstance(margin, n.Arithmetic)
        and margin.op == "+"
        and isinstance(margin.right, n.Literal)
    ):
        return None
    negated, top = margin.left, margin.right.value
    if (
        isinstance(negated, n.Arithmetic)
        and negated.op == "*"
        and isinstance(negated.left, n.Literal)
        and negated.left.value == -1.0
        and isinstance(negated.right, n.Call)
        and negated.right.function == "abs"
        and isinstance(top, float)
    ):
        return negated.right.arguments[0], top
    return None


def _above(margin: n.Scalar, edge: float) -> n.Scalar | None:
    line = _line(margin)
    if line is None:
        return None
    clamp, slope, shift = line
    column = clamp.operand
    ends = as_number(_value(clamp.low)), as_number(_value(clamp.high))
    if not isinstance(column, n.Column) or slope == 0 or ends[0] is None or ends[1] is None:
        return None
    # A hair outward, so that no rounding of the engine can put a row on the other side.
    hair = abs(quick(edge)) / 2**30 + ratio(1, 2**30)
    at = (quick(edge) - hair - shift) / slope
    if not ends[0] < at < ends[1]:
        return None  # the clamp decides on which side such rows are
    upward = slope > 0
    bound = _constant(at, column.type, -1 if upward else 1)
    return None if bound is None else n.Compare(">=" if upward else "<=", column, bound)


def _constant(at: Fraction, kind: t.Type, direction: int) -> n.Literal | None:
    if kind.kind == "DATE":
        days = at.__floor__() if direction < 0 else at.__ceil__()
        return n.Literal(EPOCH + datetime.timedelta(days=int(days)), t.DATE)
    return literal(at, kind, direction) if kind.numeric else None


def _line(scalar: n.Scalar) -> tuple[n.Clamp, Fraction, Fraction] | None:
    """Read slope·x + shift for a clamped column x."""
    if isinstance(scalar, n.Clamp):
        return scalar, quick(1), quick(0)
    if isinstance(scalar, n.Cast) and scalar.type.kind == "DOUBLE":
        return _line(scalar.operand)
    if isinstance(scalar, n.Call) and scalar.function == "date_diff":
        part, start, end = scalar.arguments
        return _line(end) if as_text(part) == "day" and _value(start) == EPOCH else None
    if (
        isinstance(scalar, n.Arithmetic)
        and scalar.op in ("+", "-")
        and _number(scalar.right) is not None
    ):
        inner, constant = _line(scalar.left), _number(scalar.right)
        if inner is None or constant is None:
            return None
        sign = 1 if scalar.op == "+" else -1
        return inner[0], inner[1], inner[2] + sign * constant
    if isinstance(scalar, n.Arithmetic) and scalar.op == "*" and _number(scalar.left) is not None:
        inner, factor = _line(scalar.right), _number(scalar.left)
        if inner is None or factor is None:
            return None
        return inner[0], inner[1] * factor, inner[2] * factor
    return None


def _number(scalar: n.Scalar) -> Fraction | None:
    return as_number(_value(scalar)) if isinstance(scalar, n.Literal) else None


def _value(scalar: n.Scalar) -> object:
    return scalar.value if isinstance(scalar, n.Literal) else None
