"""Values as an owner writes them in a policy: numbers, dates, texts, ranges, steps.

In: what the TOML parser gave. Out: exact numbers and dates, or a ValueError whose sentence the
policy reader puts behind the line of the key. Floats never appear: the parser gives decimals.
"""

from __future__ import annotations

import datetime
import re
from decimal import Decimal
from typing import Any

_STEP = re.compile(r"\s*([1-9][0-9]{0,6})\s+(day|days|week|weeks)\s*\Z")
_MEMORY = re.compile(r"([1-9][0-9]{0,5}) ?(%|MB|GB|TB)")
_WEEK = 7 * 24 * 3600
MOST_GROUPS = 1_000_000
_LARGEST_DIGITS = 38  # as wide as the widest exact number of the engines


def scalar_of(value: object) -> object:
    """Give one value, checked: text, number, truth value, date or timestamp."""
    if isinstance(value, datetime.datetime) and value.tzinfo is not None:
        raise ValueError("a time with a zone is not accepted; write it without one")
    if isinstance(value, (bool, str, datetime.date)):
        return value
    if isinstance(value, Decimal) and not value.is_finite():
        raise ValueError(f"{value} is not a finite number")
    if isinstance(value, (int, Decimal)):
        parts = Decimal(value).as_tuple()
        if not isinstance(parts.exponent, int) or len(parts.digits) > _LARGEST_DIGITS:
            raise ValueError(f"a number has more than {_LARGEST_DIGITS} digits")
        if abs(parts.exponent) > _LARGEST_DIGITS:
            raise ValueError("a number is too large or too small")
        return value
    raise ValueError("must hold numbers, texts or dates")


def moment_of(value: str) -> datetime.date:
    """Read an ISO date, or an ISO timestamp without a zone."""
    try:
        if len(value) == len("2000-01-01"):
            return datetime.date.fromisoformat(value)
        moment = datetime.datetime.fromisoformat(value)
    except ValueError:
        raise ValueError(f'"{value}" is neither a number nor a date written YYYY-MM-DD') from None
    if moment.tzinfo is not None:
        raise ValueError("a time with a zone is not accepted; write it without one")
    return moment


def range_of(value: object) -> tuple[Any, Any]:
    """Read `[low, high]`: two numbers, two dates or two timestamps, the smaller one first."""
    if not isinstance(value, list) or len(value) != 2:
        raise ValueError("must be [smallest, largest]")
    low, high = (moment_of(end) if isinstance(end, str) else scalar_of(end) for end in value)
    if isinstance(low, bool) or isinstance(high, bool) or not same_kind(low, high):
        raise ValueError("must be two numbers or two dates")
    if low > high:  # type: ignore[operator]  # both are of one ordered kind here
        raise ValueError(f"{high} is below {low}, the range is reversed")
    return low, high


def values_of(value: object) -> tuple[Any, ...]:
    """Read a list of distinct values of one kind."""
    if not isinstance(value, list) or not value:
        raise ValueError("must be a list with at least one value")
    values = tuple(scalar_of(one) for one in value)
    if any(not same_kind(values[0], one) for one in values):
        raise ValueError("must be values of one kind")
    seen = set()
    for one in values:
        if one in seen:
            raise ValueError(f"{one} is given twice")
        seen.add(one)
    return values


def days_of(value: str) -> int:
    """Read a step between dates, such as "1 day"."""
    match = _STEP.match(value)
    if not match:
        raise ValueError('must be a number, or "1 day" for dates')
    return int(match[1]) * (7 if match[2].startswith("week") else 1)


def same_kind(left: object, right: object) -> bool:
    """Whether two values can be compared with each other."""
    return _kind(left) == _kind(right)


def describe_range(limits: tuple[object, object]) -> str:
    """Print a range as the owner wrote it."""
    return f"[{limits[0]}, {limits[1]}]"


def _kind(value: object) -> str:
    if isinstance(value, bool):
        return "truth"
    if isinstance(value, (int, Decimal)):
        return "number"
    if isinstance(value, datetime.datetime):  # before date, of which it is a subclass
        return "timestamp"
    return "date" if isinstance(value, datetime.date) else "text"


def seconds_of(value: object) -> float:
    """Read how long a statement may take."""
    if isinstance(value, (int, float, Decimal)) and not isinstance(value, bool):
        seconds = Decimal(value)
        if seconds.is_finite() and 0 < seconds <= _WEEK:
            return float(seconds)
    raise ValueError("must be a number of seconds above 0, at most a week")


def memory_of(value: object) -> str:
    """Read how much memory an engine may use: a size, or a share of what the machine has."""
    match = _MEMORY.fullmatch(value) if isinstance(value, str) else None
    if match is None or (match[2] == "%" and not 1 <= int(match[1]) <= 100):
        raise ValueError('must be a size such as "512MB" or "4GB", or a share such as "50%"')
    return match[1] + match[2]


def groups_of(value: object) -> int:
    """Read how many groups an answer may have."""
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MOST_GROUPS:
        raise ValueError(f"must be a whole number from 1 to {MOST_GROUPS}")
    return value
