"""Days and moments as DuckDB's driver gives them, from the numbers that other servers send.

In: days, or microseconds, since 1970. Out: Python's own values; text for what lies outside of Python's calendar.
"""

from __future__ import annotations

import datetime

from secant.engines.dialect import DAY
from secant.plan.evaluate.values import EPOCH, midnight

_START = midnight(EPOCH)
_CYCLE = 146_097
"""Days of 400 years, after which the calendar repeats itself."""


def day(days: int) -> datetime.date | str:
    """Give a day.

    >>> day(-719_163)
    '0001-12-31 (BC)'
    """
    try:
        return _START.date() + datetime.timedelta(days=days)
    except OverflowError:
        cycles, remainder = divmod(days, _CYCLE)
        date = _START.date() + datetime.timedelta(days=remainder)
        year = date.year + 400 * cycles
        shown = f"{year:04}" if year > 0 else f"{1 - year:04}"
        return f"{shown}-{date.month:02}-{date.day:02}" + ("" if year > 0 else " (BC)")


def moment(micros: int) -> datetime.datetime | str:
    """Give a moment."""
    try:
        return _START + datetime.timedelta(microseconds=micros)
    except OverflowError:
        days, remainder = divmod(micros, DAY)
        clock = (_START + datetime.timedelta(microseconds=remainder)).isoformat(" ")[11:]
        return f"{day(days)} {clock.rstrip('0') if '.' in clock else clock}"
