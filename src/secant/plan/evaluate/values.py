"""What the values of a plan are in Python, and how SQL orders, equates and converts them.

In: Python values: int, Decimal, float, str, bool, date, datetime, None, and intervals as
(months, days, microseconds). Out: values of the same kinds. Never here: plan nodes, rows, an error
that a user sees. The meaning is DuckDB's: NaN is equal to itself and greater than everything,
decimals beside floats become floats, halves round away from zero.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Hashable
from datetime import date, datetime, timedelta
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from fractions import Fraction
from typing import Any

from secant.schema.types import MAX_PRECISION, Type

Value = object
Interval = tuple[int, int, int]

INT64 = (-(2**63), 2**63 - 1)
INT128 = (-(2**127), 2**127 - 1)
MICROSECONDS_PER_DAY = 86_400_000_000
EPOCH = date(1970, 1, 1)
"""Where dates count as days, it is day 0."""
DAYS_PER_MONTH = 30
"""How long a month counts when two intervals are compared."""

# Wide enough for the exact product of two decimals of the widest type.
EXACT = Context(prec=2 * MAX_PRECISION + 2)
_QUANTA = tuple(Decimal((0, (1,), -scale)) for scale in range(MAX_PRECISION + 1))


class Failure(Exception):  # noqa: N818 - it is an outcome that `Attempt` turns into NULL, no user sees it
    """Computing a value fails on this input, as the engine would fail."""


# ── order and equality ───────────────────────────────────────────────────────────────────────────


def aligned(values: list[Value]) -> list[Value]:
    """Bring values that are compared to one representation, as the engine casts them."""
    if any(isinstance(value, float) for value in values):
        return [float(value) if isinstance(value, int | Decimal) else value for value in values]
    if any(isinstance(value, datetime) for value in values):
        return [midnight(value) if isinstance(value, date) else value for value in values]
    return values


def day_of(when: date) -> int:
    """Give a date as a number of days."""
    return when.toordinal() - EPOCH.toordinal()


def date_of(day: int) -> date | None:
    """Give the date of a number of days; None outside of the calendar."""
    ordinal = day + EPOCH.toordinal()
    return date.fromordinal(ordinal) if 1 <= ordinal <= date.max.toordinal() else None


def midnight(day: date) -> datetime:
    """Give a day as the moment it begins; a moment stays what it is."""
    return day if isinstance(day, datetime) else datetime(day.year, day.month, day.day)  # noqa: DTZ001


def order_key(value: Value) -> tuple[bool, Any]:
    """Give a key that sorts and equates values that are not NULL and already aligned."""
    if isinstance(value, float):
        return (True, 0.0) if math.isnan(value) else (False, value)
    if isinstance(value, tuple):
        months, days, microseconds = value
        days += months * DAYS_PER_MONTH
        return (False, days * MICROSECONDS_PER_DAY + microseconds)
    if isinstance(value, str):
        return (
            False,
            value.encode(),
        )  # the engine compares bytes; so do code points, but for surrogates
    return (False, value)


def same_key(value: Value) -> Hashable:
    """Give a key under which values of one column are the same: NULL as NULL, NaN as NaN."""
    return None if value is None else order_key(value)


def compare(left: Value, right: Value) -> int:
    """Give -1, 0 or 1 for two values that are not NULL."""
    left, right = aligned([left, right])
    a, b = order_key(left), order_key(right)
    return (a > b) - (a < b)


# ── conversion ───────────────────────────────────────────────────────────────────────────────────


def conform(value: Value, target: Type) -> Value:
    """Give the value as one of a type that it widens to; only a float's rounding is lost."""
    if value is None:
        return None
    if target.kind == "DOUBLE" and isinstance(value, int | Decimal):
        return float(value)
    if target.kind == "DECIMAL" and isinstance(value, int | Decimal):
        value = Decimal(value)
        return value if value.same_quantum(_QUANTA[target.scale]) else fitted(value, target)
    if target.kind == "TIMESTAMP" and isinstance(value, date):
        return midnight(value)
    return value


def fitted(value: Decimal, target: Type) -> Decimal:
    """Give the decimal with the scale of the type, rounded half away; fails if it is too wide."""
    try:
        result = value.quantize(_QUANTA[target.scale], ROUND_HALF_UP, EXACT)
    except InvalidOperation:
        raise Failure from None
    if abs(result) >= Decimal(10) ** (target.precision - target.scale):
        raise Failure
    return result + 0  # minus zero does not exist in the engine


def whole(value: int, bounds: tuple[int, int] = INT64) -> int:
    """Give the number if the engine's integers hold it; fails otherwise."""
    if not bounds[0] <= value <= bounds[1]:
        raise Failure
    return value


def round_away(value: Fraction) -> int:
    """Round to the nearest whole number, halves away from zero."""
    magnitude = math.floor(abs(value) + Fraction(1, 2))
    return -magnitude if value < 0 else magnitude


def cast(value: Value, target: Type) -> Value:
    """Convert a value as CAST does; fails where CAST raises an error."""
    if value is None:
        return None
    return _CASTS[target.kind](value, target)


def _to_boolean(value: Value, _: Type) -> Value:
    if isinstance(value, str):
        word = value.lower()
        if word in ("true", "t", "yes", "y", "1"):
            return True
        if word in ("false", "f", "no", "n", "0"):
            return False
        raise Failure
    return value != 0


_WHOLE = re.compile(r"[+-]?\d+(_\d+)*\Z")
_NUMBER = re.compile(r"[+-]?(\d+(_\d+)*\.?\d*|\.\d+)([eE][+-]?\d+)?\Z")
_FLOAT_NAMES = ("nan", "inf", "-inf", "infinity", "-infinity", "+inf", "+infinity")


def _to_integer(value: Value, _: Type) -> Value:
    if isinstance(value, str):
        return whole(round_away(_exact_number(value)))
    if isinstance(value, float):
        if not math.isfinite(value):
            raise Failure
        return whole(round(value))  # floats round half to even, decimals half away from zero
    assert isinstance(value, int | Decimal)
    return whole(round_away(Fraction(value)))


def _to_double(value: Value, _: Type) -> Value:
    if isinstance(value, str):
        text = value.strip()
        if text.lower() not in _FLOAT_NAMES and not _NUMBER.match(text):
            raise Failure
        return float(text)
    assert isinstance(value, int | Decimal | float)
    return float(value)


def _to_decimal(value: Value, target: Type) -> Value:
    if isinstance(value, str):
        return fitted(_exact(_exact_number(value), target), target)
    if isinstance(value, float):
        if not math.isfinite(value) or abs(value) >= 10.0**MAX_PRECISION:
            raise Failure
        # The engine multiplies in floating point and rounds what comes out.
        scaled = value * 10.0**target.scale
        return fitted(Decimal(round_half_away(scaled)).scaleb(-target.scale, EXACT), target)
    assert isinstance(value, int | Decimal)
    return fitted(Decimal(value), target)


def _exact_number(text: str) -> Fraction:
    text = text.strip()
    if not (_WHOLE.match(text) or _NUMBER.match(text)):
        raise Failure
    exponent = re.search(r"[eE]([+-]?\d+)\Z", text)
    if exponent and abs(int(exponent.group(1))) > 2 * MAX_PRECISION:
        raise Failure
    return Fraction(Decimal(text.replace("_", "")))


def _exact(value: Fraction, target: Type) -> Decimal:
    return Decimal(round_away(value * 10**target.scale)).scaleb(-target.scale, EXACT)


def round_half_away(value: float) -> float:
    """Round a finite float to a whole float, halves away from zero."""
    truncated = float(math.trunc(value))
    if abs(value - truncated) >= 0.5:
        truncated += math.copysign(1.0, value)
    return math.copysign(truncated, value)


def _to_text(value: Value, _: Type) -> Value:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, datetime):
        text = value.isoformat(" ")
        return text.rstrip("0") if value.microsecond else text
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return f"{value:f}"
    return str(value)


_DATE = re.compile(r"(\d{4})([-/])(\d{1,2})\2(\d{1,2})")
_TIME = re.compile(r"[ T](\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d{1,6})\d*)?)?\Z")


def _to_timestamp(value: Value, _: Type) -> Value:
    if isinstance(value, date):
        return midnight(value)
    assert isinstance(value, str)
    text = value.strip()
    day = _DATE.match(text)
    if not day:
        raise Failure
    hour, minute, second, fraction = 0, 0, 0, 0
    remainder = text[day.end() :]
    if remainder:
        time = _TIME.match(remainder)
        if not time:
            raise Failure
        hour, minute, second = int(time[1]), int(time[2]), int(time[3] or 0)
        fraction = int((time[4] or "").ljust(6, "0"))
    try:
        return datetime(int(day[1]), int(day[3]), int(day[4]), hour, minute, second, fraction)  # noqa: DTZ001
    except ValueError:
        raise Failure from None


def _to_date(value: Value, target: Type) -> Value:
    moment = _to_timestamp(value, target)
    assert isinstance(moment, datetime)
    return moment.date()


_CASTS: dict[str, Callable[[Value, Type], Value]] = {
    "BOOLEAN": _to_boolean,
    "INTEGER": _to_integer,
    "DOUBLE": _to_double,
    "DECIMAL": _to_decimal,
    "TEXT": _to_text,
    "DATE": _to_date,
    "TIMESTAMP": _to_timestamp,
    "INTERVAL": lambda value, _: value,
    "NULL": lambda value, _: value,
}
_NUMBERS = ("INTEGER", "DECIMAL", "DOUBLE")
CASTABLE: dict[str, tuple[str, ...]] = {
    "BOOLEAN": ("BOOLEAN", "TEXT", *_NUMBERS),
    "INTEGER": ("BOOLEAN", "TEXT", *_NUMBERS),
    "DECIMAL": ("BOOLEAN", "TEXT", *_NUMBERS),
    "DOUBLE": ("BOOLEAN", "TEXT", *_NUMBERS),
    "TEXT": ("TEXT", "BOOLEAN", "DATE", "TIMESTAMP", *_NUMBERS),
    "DATE": ("DATE", "TIMESTAMP", "TEXT"),
    "TIMESTAMP": ("TIMESTAMP", "DATE", "TEXT"),
    "INTERVAL": ("INTERVAL",),
    "NULL": ("BOOLEAN", "TEXT", "DATE", "TIMESTAMP", "INTERVAL", "NULL", *_NUMBERS),
}
"""From which kind CAST leads to which."""


# ── time ─────────────────────────────────────────────────────────────────────────────────────────


def shifted(moment: date, interval: Interval, sign: int) -> datetime:
    """Give the moment so much later or earlier; the day of a shorter month is its last one."""
    months, days, microseconds = (sign * part for part in interval)
    start = midnight(moment)
    year, month = divmod(start.year * 12 + start.month - 1 + months, 12)
    try:
        start = start.replace(day=1).replace(year=year, month=month + 1)
        day = min(moment.day, _month_length(year, month + 1))
        return start.replace(day=day) + timedelta(days=days, microseconds=microseconds)
    except (ValueError, OverflowError):
        raise Failure from None


def _month_length(year: int, month: int) -> int:
    if month == 12:
        return 31
    return (date(year, month + 1, 1) - date(year, month, 1)).days


def between(later: date, earlier: date) -> Interval:
    """Give the time between two moments in days and microseconds of one sign."""
    gap = midnight(later) - midnight(earlier)
    total = (gap.days * 86_400 + gap.seconds) * 1_000_000 + gap.microseconds
    days, remainder = divmod(abs(total), MICROSECONDS_PER_DAY)
    return (0, days, remainder) if total >= 0 else (0, -days, -remainder)
