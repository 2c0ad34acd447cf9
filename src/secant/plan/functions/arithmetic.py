"""What + - * / // % compute, kind by kind.

In: two values that are not NULL. Out: a value; NULL and failures where the engine has them. Never
here: plan nodes and rows. Division by zero is what DuckDB does with
`error_on_division_by_zero=false`: `/` follows IEEE, `//` and `%` of exact numbers give NULL. Whole
numbers that leave 64 bits fail, as do decimals that leave their type.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

from secant.plan.evaluate import values as v
from secant.plan.evaluate.values import Failure, Value
from secant.schema.types import Type


def operation(op: str, kinds: tuple[str, str], result: Type) -> Callable[[Any, Any], Value]:
    """Give what `op` computes on values of two kinds, with a result of a type."""
    if "INTERVAL" in (*kinds, result.kind) or {"DATE", "TIMESTAMP"} & set(kinds):
        return _time_operation(op, kinds)
    if result.kind == "DOUBLE":
        on_floats = {"/": _divide, "%": _float_remainder}.get(op) or _PLAIN[op]
        return lambda a, b: on_floats(float(a), float(b))
    if result.kind == "DECIMAL":
        exact = {"+": v.EXACT.add, "-": v.EXACT.subtract, "*": v.EXACT.multiply}.get(op)
        on_decimals = exact or _decimal_remainder
        return lambda a, b: _fitted(on_decimals(Decimal(a), Decimal(b)), result)
    on_integers = {"//": _quotient, "%": _remainder}.get(op) or _PLAIN[op]
    return lambda a, b: _whole(on_integers(a, b))


_PLAIN: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
}


def _fitted(value: Decimal | None, result: Type) -> Decimal | None:
    return None if value is None else v.fitted(value, result)


def _whole(value: int | None) -> int | None:
    return None if value is None else v.whole(value)


def _divide(a: float, b: float) -> float:
    if b != 0:
        return a / b
    if a == 0 or math.isnan(a):
        return math.nan
    return math.copysign(math.inf, a) * math.copysign(1.0, b)


def _float_remainder(a: float, b: float) -> float:
    try:
        return math.fmod(a, b)
    except ValueError:
        return math.nan


def _decimal_remainder(a: Decimal, b: Decimal) -> Decimal | None:
    return None if b == 0 else v.EXACT.remainder(a, b)


def _quotient(a: int, b: int) -> int | None:
    """Divide and cut toward zero."""
    if b == 0:
        return None
    return abs(a) // abs(b) if (a < 0) == (b < 0) else -(abs(a) // abs(b))


def _remainder(a: int, b: int) -> int | None:
    """Give what the cut quotient leaves: it has the sign of the dividend."""
    quotient = _quotient(a, b)
    # The quotient must fit too: the engine fails where it does not.
    return None if quotient is None else a - b * v.whole(quotient)


def _time_operation(op: str, kinds: tuple[str, str]) -> Callable[[Any, Any], Value]:
    sign = -1 if op == "-" else 1
    match kinds:
        case ("DATE", "DATE"):
            return lambda a, b: a.toordinal() - b.toordinal()
        case ("DATE" | "TIMESTAMP", "DATE" | "TIMESTAMP"):
            return v.between
        case ("DATE" | "TIMESTAMP", "INTERVAL"):
            return lambda a, b: v.shifted(a, b, sign)
        case ("INTERVAL", "DATE" | "TIMESTAMP"):
            return lambda a, b: v.shifted(b, a, 1)
        case ("DATE", "INTEGER"):
            return lambda a, b: _days_later(a, sign * b)
        case ("INTEGER", "DATE"):
            return lambda a, b: _days_later(b, a)
        case ("INTERVAL", "INTERVAL"):
            return lambda a, b: tuple(x + sign * y for x, y in zip(a, b, strict=True))
        case ("INTERVAL", "INTEGER"):
            return lambda a, b: tuple(x * b for x in a)
        case _:
            return lambda a, b: tuple(a * x for x in b)


def _days_later(day: date, count: int) -> date:
    try:
        return day + timedelta(days=count)
    except OverflowError:
        raise Failure from None
