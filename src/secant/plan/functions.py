"""The functions a plan may call: how many arguments, which types, and what they compute.

In: argument types and Python values. Out: result types and Python values, as in DuckDB.
Never here: plan nodes, rows, names that are not on the list. Where the engine raises, `apply`
raises `Failure`; where it gives NaN or infinity, so does `apply`. A NULL argument gives NULL, and
`apply` is not called, unless the function is `null_safe`.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_UP, Decimal
from functools import reduce
from types import MappingProxyType
from typing import Any

from secant.plan.aggregates import AGGREGATES, Aggregator
from secant.plan.values import EXACT, Failure, Value, aligned, compare, round_half_away, whole
from secant.terms.types import BOOLEAN, DOUBLE, INTEGER, NULL, TEXT, TIMESTAMP, Type, decimal, unify

__all__ = [
    "AGGREGATES",
    "DIFFERENCE_PARTS",
    "FUNCTIONS",
    "TRUNCATION_PARTS",
    "Aggregator",
    "Failure",
    "Function",
]

Types = tuple[Type, ...]
UNLIMITED = 1_000
"""Most arguments of a function that takes any number."""


@dataclass(frozen=True, slots=True)
class Function:
    """One scalar function: arity, result type (None: not for these types) and meaning."""

    name: str
    least: int
    most: int
    result: Callable[[Types], Type | None]
    apply: Callable[..., Value]
    partial: bool = False
    """Whether it can fail on some input."""
    null_safe: bool = False
    """Whether it is called with NULL arguments too."""
    written: bool = True
    """Whether a query may name it; the others are made by rewrites."""


# ── result types ─────────────────────────────────────────────────────────────────────────────────


def _to_double(types: Types) -> Type | None:
    return DOUBLE if all(t.numeric for t in types) else None


def _same_number(types: Types) -> Type | None:
    return types[0] if types[0].numeric else None


def _sign(types: Types) -> Type | None:
    return INTEGER if types[0].numeric else None


def _whole(types: Types) -> Type | None:
    if types[0].kind == "DECIMAL":
        return decimal(types[0].precision, 0)
    return _to_double(types)


def _round(types: Types) -> Type | None:
    """With digits, a decimal's scale depends on their value: `typing` narrows what stands here."""
    if len(types) == 2 and types[1].kind not in ("INTEGER", "NULL"):
        return None
    if len(types) == 1 and types[0].kind == "DECIMAL":
        return decimal(types[0].precision, 0)
    return _same_number(types)


def _unified(types: Types) -> Type | None:
    result: Type | None = NULL
    for t in types:
        result = None if result is None else unify(result, t)
    return result


def _nullif(types: Types) -> Type | None:
    return types[0] if _unified(types) is not None else None


def _signature(result: Type, *kinds: str) -> Callable[[Types], Type | None]:
    """Give the rule of a function with a fixed result type and fixed argument kinds."""

    def rule(types: Types) -> Type | None:
        fits = (t.kind in (kind, "NULL") for t, kind in zip(types, kinds, strict=False))
        return result if all(fits) else None

    return rule


def _temporal(result: Type) -> Callable[[Types], Type | None]:
    """Give the rule of a function of a part's name and moments."""

    def rule(types: Types) -> Type | None:
        moments = all(t.temporal or t.kind == "NULL" for t in types[1:])
        return result if types[0] == TEXT and moments else None

    return rule


# ── numbers ──────────────────────────────────────────────────────────────────────────────────────


def _exp(x: Any) -> float:
    try:
        return math.exp(x)
    except OverflowError:
        return math.inf


def _logarithm(function: Callable[[float], float]) -> Callable[[Any], float]:
    def apply(x: Any) -> float:
        x = float(x)
        if x == 0:
            return -math.inf
        return math.nan if x < 0 else function(x)

    return apply


def _sqrt(x: Any) -> float:
    return math.nan if float(x) < 0 else math.sqrt(x)


def _power(x: Any, y: Any) -> float:
    x, y = float(x), float(y)
    odd = y.is_integer() and math.fmod(y, 2) != 0
    try:
        return math.pow(x, y)
    except OverflowError:
        return -math.inf if x < 0 and odd else math.inf
    except ValueError:  # zero to a negative power, or a negative number to a broken one
        if x != 0:
            return math.nan
        return math.copysign(math.inf, x) if odd else math.inf


def _lowest(*numbers: Any) -> float:
    """Least of numbers that are all there; engines compute it faster than one that skips NULLs."""
    return min(float(x) for x in numbers)


def _highest(*numbers: Any) -> float:
    return max(float(x) for x in numbers)


def _ramp(x: Any) -> float:
    """0 up to -1/2, 1 from 1/2 on, straight between: a step that is one unit wide."""
    return min(1.0, max(0.0, float(x) + 0.5))


def _within(x: float) -> float:
    return min(700.0, max(-700.0, x))


def _sigmoid(x: Any, slope: Any) -> float:
    return 1.0 / (1.0 + math.exp(_within(-float(slope) * float(x))))


def _tauoid(x: Any, slope: Any) -> float:
    reach = _within(float(slope) * float(x))
    return 2.0 / (math.exp(reach) + math.exp(-reach))


def _absolute(x: Any) -> Value:
    return whole(abs(x)) if isinstance(x, int) else abs(x)


def _signum(x: Any) -> int:
    return int(x > 0) - int(x < 0)


def _towards(
    rounding: str, whole_float: Callable[[float], int]
) -> Callable[[Any], Decimal | float]:
    def apply(x: Any) -> Decimal | float:
        if isinstance(x, Decimal):
            return x.quantize(Decimal(1), rounding, EXACT) + 0
        x = float(x)
        return math.copysign(whole_float(x), x) if math.isfinite(x) else x

    return apply


def _rounded(x: Any, digits: int = 0) -> Value:
    if isinstance(x, int):
        if digits >= 0:
            return x
        step = 10**-digits
        return whole(int(math.copysign(1, x)) * ((abs(x) + step // 2) // step) * step)
    if isinstance(x, Decimal):
        scale = -int(x.as_tuple().exponent)
        if digits >= scale:
            return x
        shown = Decimal((0, (1,), -max(digits, 0)))
        # An over-wide step rounds everything to zero.
        coarse = (
            x.quantize(Decimal((0, (1,), -digits)), ROUND_HALF_UP, EXACT)
            if digits > -40
            else Decimal(0)
        )
        return coarse.quantize(shown, ROUND_HALF_UP, EXACT) + 0
    return _rounded_float(x, digits)


def _rounded_float(x: float, digits: int) -> float:
    """Scale, round, and scale back in floating point, as the engine does."""
    if not math.isfinite(x):
        return x
    step = _power(10.0, abs(digits))
    scaled = x * step if digits >= 0 else x / step
    if not math.isfinite(scaled):
        return x
    rounded = round_half_away(scaled)
    result = rounded / step if digits >= 0 else rounded * step
    if math.isfinite(result):
        return result
    return x if digits >= 0 else 0.0


def _extreme(better: Callable[[int, int], bool]) -> Callable[..., Value]:
    """Keep the best of the values that are not NULL."""

    def apply(*values: Value) -> Value:
        known = aligned([value for value in values if value is not None])
        if not known:
            return None
        return reduce(lambda a, b: b if better(compare(b, a), 0) else a, known)

    return apply


def _coalesce(*values: Value) -> Value:
    return next((value for value in values if value is not None), None)


def _null_if(value: Value, other: Value) -> Value:
    if value is None or other is None:
        return value
    return None if compare(value, other) == 0 else value


# ── text ─────────────────────────────────────────────────────────────────────────────────────────


def _recased(full: Callable[[str], str], simple: Mapping[str, str]) -> Callable[[str], str]:
    """Map each character to one, as the engine does, also where Unicode maps to several."""

    def one(character: str) -> str:
        if character in simple:
            return simple[character]
        mapped = full(character)
        if len(mapped) == 1:
            return mapped
        title = character.title()
        return title if len(title) == 1 and full is str.upper else character

    return lambda text: "".join(map(one, text))


_SUBSTRING_REACH = 2**32


def _reachable(number: int) -> None:
    if not -_SUBSTRING_REACH <= number < _SUBSTRING_REACH:
        raise Failure


def _substring(text: str, start: int, length: int | None = None) -> str:
    """One-based; a negative start counts from the end, a negative length reaches to the left."""
    _reachable(start)
    _reachable(0 if length is None else length)
    begin = start - 1 if start >= 0 else len(text) + start
    end = len(text) if length is None else begin + length
    if end < begin:
        begin, end = end, begin
    return text[max(begin, 0) : max(end, 0)]


def _left(text: str, count: int) -> str:
    _reachable(max(count, 0))
    return text[:count] if count >= 0 else text[: max(len(text) + count, 0)]


def _right(text: str, count: int) -> str:
    if count >= 0:
        return text[max(len(text) - count, 0) :]
    return text[min(-count, len(text)) :]


def _replace(text: str, old: str, new: str) -> str:
    return text.replace(old, new) if old else text


# ── time ─────────────────────────────────────────────────────────────────────────────────────────

TRUNCATION_PARTS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second")
DIFFERENCE_PARTS = ("year", "quarter", "month", "day")


def _truncated(part: str, moment: date) -> datetime:
    clock = moment if isinstance(moment, datetime) else datetime(1, 1, 1)  # noqa: DTZ001
    day, hour, minute, second = moment.day, clock.hour, clock.minute, clock.second
    if part not in TRUNCATION_PARTS:
        raise Failure
    rank = TRUNCATION_PARTS.index(part)
    month = moment.month
    if part == "year":
        month = 1
    elif part == "quarter":
        month -= (month - 1) % 3
    if rank <= TRUNCATION_PARTS.index("month"):
        day = 1
    hour = hour if rank >= TRUNCATION_PARTS.index("hour") else 0
    minute = minute if rank >= TRUNCATION_PARTS.index("minute") else 0
    second = second if part == "second" else 0
    start = datetime(moment.year, month, day, hour, minute, second)  # noqa: DTZ001
    # The calendar begins on a Monday, so every week has its first day in it.
    return start - timedelta(days=start.weekday()) if part == "week" else start


def _difference(part: str, start: date, end: date) -> int:
    """Count the borders between two moments: between New Year's Eve and New Year lies one year."""
    if part == "day":
        return end.toordinal() - start.toordinal()
    if part not in DIFFERENCE_PARTS:
        raise Failure
    length = {"year": 12, "quarter": 3, "month": 1}[part]
    return (end.year * 12 + end.month - 1) // length - (start.year * 12 + start.month - 1) // length


# ── the list ─────────────────────────────────────────────────────────────────────────────────────

_LIST = (
    Function("exp", 1, 1, _to_double, _exp),
    Function("ln", 1, 1, _to_double, _logarithm(math.log)),
    Function("log10", 1, 1, _to_double, _logarithm(math.log10)),
    Function("sqrt", 1, 1, _to_double, _sqrt),
    Function("power", 2, 2, _to_double, _power),
    Function("abs", 1, 1, _same_number, _absolute, partial=True),
    Function("lowest", 1, 64, _to_double, _lowest, written=False),
    Function("highest", 1, 64, _to_double, _highest, written=False),
    Function("ramp", 1, 1, _to_double, _ramp, written=False),
    Function("sigmoid", 2, 2, _to_double, _sigmoid, written=False),
    Function("tauoid", 2, 2, _to_double, _tauoid, written=False),
    Function("sign", 1, 1, _sign, _signum),
    Function("floor", 1, 1, _whole, _towards(ROUND_FLOOR, math.floor)),
    Function("ceil", 1, 1, _whole, _towards(ROUND_CEILING, math.ceil)),
    Function("round", 1, 2, _round, _rounded, partial=True),
    Function("least", 1, UNLIMITED, _unified, _extreme(operator.lt), null_safe=True),
    Function("greatest", 1, UNLIMITED, _unified, _extreme(operator.gt), null_safe=True),
    Function("coalesce", 1, UNLIMITED, _unified, _coalesce, null_safe=True),
    Function("nullif", 2, 2, _nullif, _null_if, null_safe=True),
    Function("lower", 1, 1, _signature(TEXT, "TEXT"), _recased(str.lower, {"İ": "i"})),
    Function("upper", 1, 1, _signature(TEXT, "TEXT"), _recased(str.upper, {"ß": "ẞ"})),
    Function("length", 1, 1, _signature(INTEGER, "TEXT"), len),
    Function(
        "substring", 2, 3, _signature(TEXT, "TEXT", "INTEGER", "INTEGER"), _substring, partial=True
    ),
    Function("concat_op", 2, 2, _signature(TEXT, "TEXT", "TEXT"), operator.add),
    Function("trim", 1, 1, _signature(TEXT, "TEXT"), lambda text: text.strip(" ")),
    Function("ltrim", 1, 1, _signature(TEXT, "TEXT"), lambda text: text.lstrip(" ")),
    Function("rtrim", 1, 1, _signature(TEXT, "TEXT"), lambda text: text.rstrip(" ")),
    Function("starts_with", 2, 2, _signature(BOOLEAN, "TEXT", "TEXT"), str.startswith),
    Function("contains", 2, 2, _signature(BOOLEAN, "TEXT", "TEXT"), operator.contains),
    Function("replace", 3, 3, _signature(TEXT, "TEXT", "TEXT", "TEXT"), _replace),
    Function("left", 2, 2, _signature(TEXT, "TEXT", "INTEGER"), _left, partial=True),
    Function("right", 2, 2, _signature(TEXT, "TEXT", "INTEGER"), _right),
    Function("date_trunc", 2, 2, _temporal(TIMESTAMP), _truncated),
    Function("date_diff", 3, 3, _temporal(INTEGER), _difference),
)
FUNCTIONS: Mapping[str, Function] = MappingProxyType({f.name: f for f in _LIST})
