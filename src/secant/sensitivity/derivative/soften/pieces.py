"""Small pieces of softened expressions: columns held in their ranges, products, what is strict and what widens.

In: plan expressions. Out: plan expressions, or a yes or no about them. Nothing here knows a policy.
"""

from __future__ import annotations

import datetime

from secant.numeric import interval as iv
from secant.plan import nodes as n
from secant.plan.evaluate.values import EPOCH, midnight
from secant.plan.typing import type_of
from secant.schema import types as t
from secant.sensitivity.certificate import CannotBound
from secant.sensitivity.derivative import shapes
from secant.sensitivity.derivative.summand import FARTHEST


def farthest(kind: t.Type) -> int:
    """Give how far a number of a type may be from 0 where nobody has declared it."""
    if kind.kind == "DECIMAL":
        return int(min(FARTHEST, 10 ** (kind.precision - kind.scale) - 1))
    return FARTHEST


_FIRST, _LAST = datetime.date.min, datetime.date.max


def clamped_date(column: n.Column, interval: iv.Interval) -> n.Scalar:
    """Clamp a date to its declared range, if there is one: whole days, rounded outward."""
    low, high = _FIRST, _LAST
    if interval.bounded:
        first, last = interval.ends()
        low = EPOCH + datetime.timedelta(days=int(first.__floor__()))
        high = EPOCH + datetime.timedelta(days=int(last.__ceil__()))
    return n.Clamp(column, n.Literal(low, t.DATE), n.Literal(high, t.DATE))


def clamped_moment(column: n.Column, interval: iv.Interval) -> n.Scalar:
    """Clamp a moment in time to its declared range, which it needs: microseconds, rounded outward."""
    if not interval.bounded:
        raise CannotBound(
            "derivative.range",
            column,
            "how late a moment in time may be is not known",
            "declare the range of the column",
        )
    first, last = (end * 86_400 * 10**6 for end in interval.ends())
    ends = (int(first.__floor__()), int(last.__ceil__()))
    low, high = (midnight(EPOCH) + datetime.timedelta(microseconds=end) for end in ends)
    return n.Clamp(column, n.Literal(low, t.TIMESTAMP), n.Literal(high, t.TIMESTAMP))


def times_truth(truth: n.Scalar | None, value: n.Scalar | None) -> n.Scalar:
    """Multiply a soft truth and a value; None stands for 1."""
    if truth is None or value is None:
        return truth or value or shapes.number(1.0)
    return n.Arithmetic("*", truth, value)


def is_strict(scalar: n.Scalar) -> bool:
    """Whether an expression is unknown as soon as one of its columns is."""
    return all(
        isinstance(
            x,
            (n.Compare, n.InList, n.Column, n.Literal, n.Arithmetic, n.Negate, n.Cast, n.Clamp),
        )
        for x in n.walk(scalar)
    )


def widens(node: n.Cast) -> bool:
    """Whether a cast keeps every value."""
    source, target = type_of(node.operand), node.type
    if target.kind == "DOUBLE" or (source.kind == "DATE" and target.kind == "TIMESTAMP"):
        return True
    exact = source.kind in ("INTEGER", "DECIMAL") and target.kind == "DECIMAL"
    return exact and target.scale >= source.scale


def is_null(scalar: n.Scalar) -> bool:
    """Whether NULL is written."""
    return isinstance(scalar, n.Literal) and scalar.value is None


def word_for(scalar: n.Scalar) -> str:
    """Name an operation for a message."""
    if isinstance(scalar, n.Call):
        return scalar.function
    return type(scalar).__name__.lower()
