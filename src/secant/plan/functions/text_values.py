"""What further functions of texts, calendars and angles compute, as in DuckDB; `functions` lists them."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Sequence
from datetime import date
from decimal import Decimal
from typing import Any

from secant.plan.evaluate.values import Failure, midnight

FORMAT = re.compile(r"%[YmdHMSyj%]|[^%\"\\]")
"""Parts of a written format that every engine knows."""
_PARTS: dict[str, Callable[[Any], str]] = {
    "%Y": lambda m: f"{m.year:04d}",
    "%m": lambda m: f"{m.month:02d}",
    "%d": lambda m: f"{m.day:02d}",
    "%H": lambda m: f"{m.hour:02d}",
    "%M": lambda m: f"{m.minute:02d}",
    "%S": lambda m: f"{m.second:02d}",
    "%y": lambda m: f"{m.year % 100:02d}",
    "%j": lambda m: f"{m.timetuple().tm_yday:03d}",
    "%%": lambda _: "%",
}
POSTGRES_PARTS = {
    "%Y": "YYYY", "%m": "MM", "%d": "DD", "%H": "HH24", "%M": "MI", "%S": "SS", "%y": "YY", "%j": "DDD", "%%": '"%"',
}  # fmt: skip


def formatted(moment: date, pattern: str) -> str:
    """Give a moment as text, part by part."""
    whole = midnight(moment)
    return "".join(_PARTS[p](whole) if p in _PARTS else p for p in FORMAT.findall(pattern))


def position_of(text: str, part: str) -> int:
    """Count characters up to where a part begins, from 1; 0 if it is not there."""
    return text.find(part) + 1


def piece(text: str, delimiter: str, number: int) -> str:
    """Give a piece of a text that a delimiter cuts, from 1; empty beyond the last."""
    pieces = text.split(delimiter)
    return pieces[number - 1] if number <= len(pieces) else ""


def joined(delimiter: Any, *parts: Any) -> str | None:
    """Put the texts that are there together."""
    return None if delimiter is None else delimiter.join(p for p in parts if p is not None)


def translated(text: str, old: str, new: str) -> str:
    """Exchange characters one by one; those without a partner go."""
    table: dict[int, str | None] = {}
    for index, character in enumerate(old):
        table.setdefault(ord(character), new[index] if index < len(new) else None)
    return text.translate(table)


def padded(left: bool) -> Callable[[str, int, str], str]:
    """Fill a text up to a length, or cut it."""

    def apply(text: str, length: int, fill: str) -> str:
        missing = length - len(text)
        if missing <= 0:
            return text[:length]
        more = (fill * (missing // len(fill) + 1))[:missing]
        return more + text if left else text + more

    return apply


def turned(text: str) -> str:
    """Give the characters of a text from the last to the first."""
    return text[::-1]


def digest(name: str) -> Callable[[str], str]:
    """Give a digest of a text in hexadecimal digits."""
    return lambda text: hashlib.new(name, text.encode(), usedforsecurity=False).hexdigest()


def bytes_of(text: str) -> int:
    """Count the bytes of a text."""
    return len(text.encode())


def angle(function: Callable[[float], float]) -> Callable[[Any], float]:
    """Compute a function of an angle, or an angle; NaN where there is none."""

    def apply(x: Any) -> float:
        try:
            return function(float(x))
        except ValueError:
            return math.nan

    return apply


def checked_date(year: int, month: int, day: int) -> date | None:
    """Give a date of a calendar of four-digit years; NULL for other years, a failure for other days."""
    if not 1 <= year <= 9999:
        return None
    try:
        return date(year, month, day)
    except (ValueError, OverflowError):
        raise Failure from None


def full_years(start: date, end: date) -> int:
    """Count the birthdays between two moments."""
    if midnight(end) < midnight(start):
        return -full_years(end, start)
    a, b = midnight(start), midnight(end)
    before = (b.month, b.day, b.time()) < (a.month, a.day, a.time())
    return b.year - a.year - before


def bucket(x: Any, low: Any, high: Any, count: int) -> int:
    """Give which of so many equal stretches of a range a number lies in; 0 below, one more than the last above."""
    value, first, last = float(x), float(low), float(high)
    if value < first:
        return 0
    if value >= last or math.isnan(value):
        return count + 1
    return math.floor((value - first) * count / (last - first)) + 1


# ── what may be written ──────────────────────────────────────────────────────────────────────────

LONGEST = 1_000


def check_piece(constants: Sequence[object]) -> str:
    """Pieces are counted from 1, and something cuts them."""
    fits = bool(constants[1]) and isinstance(constants[2], int) and constants[2] >= 1
    return (
        ""
        if fits
        else "split_part takes a delimiter that is not empty, and the number of a piece from 1"
    )


def check_times(constants: Sequence[object]) -> str:
    """A text is repeated so often as is written."""
    fits = isinstance(constants[1], int) and 0 <= constants[1] <= LONGEST
    return "" if fits else f"repeat takes a number from 0 to {LONGEST}"


def check_padding(constants: Sequence[object]) -> str:
    """A text is filled up to a length that is written, with something."""
    fits = isinstance(constants[1], int) and 0 <= constants[1] <= LONGEST and bool(constants[2])
    return "" if fits else f"padding takes a length from 0 to {LONGEST} and a text to fill with"


def check_format(constants: Sequence[object]) -> str:
    """A format consists of parts that every engine knows."""
    pattern = str(constants[1])
    supported = "".join(FORMAT.findall(pattern)) == pattern and len(pattern) <= LONGEST
    return (
        ""
        if supported
        else "a format consists of %Y, %m, %d, %H, %M, %S, %y, %j and other characters"
    )


def check_buckets(constants: Sequence[object]) -> str:
    """Buckets have ends that are written."""
    low, high, count = constants[1:]
    numbers = all(isinstance(x, (int, float, Decimal)) for x in (low, high))
    fits = (
        numbers
        and float(str(low)) < float(str(high))
        and isinstance(count, int)
        and 1 <= count <= 10_000
    )
    return (
        ""
        if fits
        else "width_bucket takes two ends, the lower first, and a number of buckets up to 10,000"
    )
