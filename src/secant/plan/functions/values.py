"""What functions compute, on Python values, as in DuckDB; `functions` lists them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from datetime import date, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from functools import reduce
from typing import Any

from secant.plan.evaluate.values import (
    EPOCH,
    EXACT,
    Failure,
    Value,
    aligned,
    compare,
    midnight,
    round_half_away,
    whole,
)

# ── numbers ──────────────────────────────────────────────────────────────────────────────────────


def exponential(x: Any) -> float:
    """e^x; infinity where that overflows."""
    try:
        return math.exp(x)
    except OverflowError:
        return math.inf


def logarithm(function: Callable[[float], float]) -> Callable[[Any], float]:
    """A logarithm: minus infinity at 0, NaN below."""

    def apply(x: Any) -> float:
        x = float(x)
        if x == 0:
            return -math.inf
        return math.nan if x < 0 else function(x)

    return apply


def square_root(x: Any) -> float:
    """NaN below 0."""
    return math.nan if float(x) < 0 else math.sqrt(x)


def power(x: Any, y: Any) -> float:
    """x^y, infinite or NaN as the engine has it."""
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


def lowest(*numbers: Any) -> float:
    """Least of numbers that are all there; engines compute it faster than one that skips NULLs."""
    return min(float(x) for x in numbers)


def highest(*numbers: Any) -> float:
    """The greatest of numbers that are all there."""
    return max(float(x) for x in numbers)


def ramp(x: Any) -> float:
    """0 up to -1/2, 1 from 1/2 on, straight between: a step that is one unit wide."""
    return min(1.0, max(0.0, float(x) + 0.5))


def _within(x: float) -> float:
    return min(700.0, max(-700.0, x))


def sigmoid(x: Any, slope: Any) -> float:
    """A soft step."""
    return 1.0 / (1.0 + math.exp(_within(-float(slope) * float(x))))


def tauoid(x: Any, slope: Any) -> float:
    """A soft peak."""
    argument = _within(float(slope) * float(x))
    return 2.0 / (math.exp(argument) + math.exp(-argument))


def absolute(x: Any) -> Value:
    """|x|."""
    return whole(abs(x)) if isinstance(x, int) else abs(x)


def signum(x: Any) -> int:
    """-1, 0 or 1."""
    return int(x > 0) - int(x < 0)


def toward(rounding: str, whole_float: Callable[[float], int]) -> Callable[[Any], Decimal | float]:
    """Round to a whole number in one direction."""

    def apply(x: Any) -> Decimal | float:
        if isinstance(x, Decimal):
            return x.quantize(Decimal(1), rounding, EXACT) + 0
        x = float(x)
        return math.copysign(whole_float(x), x) if math.isfinite(x) else x

    return apply


def rounded(x: Any, digits: int = 0) -> Value:
    """Round half away from zero to so many digits."""
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
    step = power(10.0, abs(digits))
    scaled = x * step if digits >= 0 else x / step
    if not math.isfinite(scaled):
        return x
    rounded = round_half_away(scaled)
    result = rounded / step if digits >= 0 else rounded * step
    if math.isfinite(result):
        return result
    return x if digits >= 0 else 0.0


def extreme(better: Callable[[int, int], bool]) -> Callable[..., Value]:
    """Keep the best of the values that are not NULL."""

    def apply(*values: Value) -> Value:
        present = aligned([value for value in values if value is not None])
        if not present:
            return None
        return reduce(lambda a, b: b if better(compare(b, a), 0) else a, present)

    return apply


def coalesce(*values: Value) -> Value:
    """The first value that is not NULL."""
    return next((value for value in values if value is not None), None)


def null_if(value: Value, other: Value) -> Value:
    """NULL where both are equal, else the first."""
    if value is None or other is None:
        return value
    return None if compare(value, other) == 0 else value


# ── text ─────────────────────────────────────────────────────────────────────────────────────────


def recased(full: Callable[[str], str], simple: Mapping[str, str]) -> Callable[[str], str]:
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


_SUBSTRING_LIMIT = 2**32


def _reachable(number: int) -> None:
    if not -_SUBSTRING_LIMIT <= number < _SUBSTRING_LIMIT:
        raise Failure


def substring(text: str, start: int, length: int | None = None) -> str:
    """One-based; a negative start counts from the end, a negative length reaches to the left."""
    _reachable(start)
    _reachable(0 if length is None else length)
    begin = start - 1 if start >= 0 else len(text) + start
    end = len(text) if length is None else begin + length
    if end < begin:
        begin, end = end, begin
    return text[max(begin, 0) : max(end, 0)]


def left(text: str, count: int) -> str:
    """The first characters; a negative count leaves out so many at the end."""
    _reachable(max(count, 0))
    return text[:count] if count >= 0 else text[: max(len(text) + count, 0)]


def right(text: str, count: int) -> str:
    """The last characters; a negative count leaves out so many at the start."""
    if count >= 0:
        return text[max(len(text) - count, 0) :]
    return text[min(-count, len(text)) :]


def replaced(text: str, old: str, new: str) -> str:
    """Every occurrence exchanged; nothing for an empty one."""
    return text.replace(old, new) if old else text


# ── time ─────────────────────────────────────────────────────────────────────────────────────────

TRUNCATION_PARTS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second")
DIFFERENCE_PARTS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second")


_SECONDS = {
    "hour": timedelta(hours=1),
    "minute": timedelta(minutes=1),
    "second": timedelta(seconds=1),
}


def truncated(part: str, moment: date) -> datetime:
    """The start of the year, month, ... that a moment lies in."""
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


def difference(part: str, start: date, end: date) -> int:
    """Count the borders between two moments: between New Year's Eve and New Year lies one year."""
    if part == "day":
        return end.toordinal() - start.toordinal()
    if part == "week":  # whole weeks, as the engine has it
        days = end.toordinal() - start.toordinal()
        return int(math.copysign(abs(days) // 7, days))
    if part in _SECONDS:
        first, last = ((midnight(m) - midnight(EPOCH)) // _SECONDS[part] for m in (start, end))
        return last - first
    if part not in DIFFERENCE_PARTS:
        raise Failure
    length = {"year": 12, "quarter": 3, "month": 1}[part]
    return (end.year * 12 + end.month - 1) // length - (start.year * 12 + start.month - 1) // length
