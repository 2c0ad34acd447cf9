"""Stretches of time in which everything of one unit is hidden, and how many periods of a stream they meet.

In: what the owner declared: `within = "30 days"`. Out: whole numbers. Time is cut into cells, the days of "30 days", in
UTC; a stretch is so many cells in a row. Times are microseconds since 1970, or numbers as steps are. Never here: data.
"""

from __future__ import annotations

import datetime
from dataclasses import fields

from secant.policy.streams import MONTHS, SECONDS, Calendar, Moment, Width, as_time
from secant.records import frozen

MICROSECONDS = 1_000_000
LONGEST_WINDOW = 10_000
"""Cells of a stretch, at most: an account looks at all places where a stretch can begin."""
_DAYS = {"week": (7, 7), "month": (31, 28), "year": (366, 365)}
"""Days of what is longer than a day: at most, and at least."""
_EPOCH = datetime.datetime(1970, 1, 1)  # noqa: DTZ001 - everything is in UTC


@frozen
class Window:
    """A stretch: so many cells in a row."""

    cells: int
    unit: str = ""
    """What a cell is: a second, minute, hour or day; empty where time is a plain number."""

    @property
    def cell(self) -> int:
        """The length of a cell."""
        return SECONDS[self.unit] * MICROSECONDS if self.unit else 1

    @property
    def length(self) -> int:
        """The length of a stretch."""
        return self.cells * self.cell

    def __str__(self) -> str:
        return str(Width(self.cells, self.unit)) if self.unit else f"{self.cells} steps of one"


@frozen
class Span:
    """When the periods of a stream are, and for how many of them its price is."""

    unit: str
    """`time`, or `number`."""
    start: int
    length: int | None
    """From the beginning of the first period to the end of the last; None where there is no end."""
    period: int
    """The length of the shortest period."""
    regular: bool
    """Whether all are equally long."""
    priced: int
    """What moves in so many periods costs the price."""
    stretch: int
    """No stretch that is as long as this, or shorter, meets more periods than are priced."""

    def met(self, first: int, end: int) -> int:
        """Give how many periods have something in [first, end), at most; the same for all that lie inside."""
        low, high = first - self.start, end - self.start
        if high <= 0 or (self.length is not None and low >= self.length):
            return 0
        if not self.regular or (low >= 0 and (self.length is None or high <= self.length)):
            longer = -(-(end - first) // self.period) + 1
            return self.priced if end - first <= self.stretch else max(self.priced, longer)
        low, high = max(low, 0), high if self.length is None else min(high, self.length)
        return -(-high // self.period) - low // self.period


def window_of(width: Width) -> Window:
    """Give the stretch that a width stands for; months have 31 days, years 366."""
    if width.unit in _DAYS:
        return Window(width.count * _DAYS[width.unit][0], "day")
    return Window(width.count, width.unit)


def place_of(moment: Moment) -> int:
    """Give a moment on the line of time: microseconds since 1970, or the number."""
    if isinstance(moment, int):
        return moment
    return (as_time(moment) - _EPOCH) // datetime.timedelta(microseconds=1)


def span_of(periods: Calendar, window: Window, end: Moment | None) -> Span:
    """Give the periods of a stream up to its end, with how many of them a stretch meets at most (stream.window)."""
    start, width = place_of(periods.start), periods.width
    regular = width.unit not in MONTHS
    shortest = width.count * _length(width.unit, regular)
    length = None if end is None else place_of(end) - start
    most = _most_met(window, shortest, start, regular=regular)
    if length is not None:
        most = min(most, -(-length // shortest))
    unit = "time" if window.unit else "number"
    return Span(unit, start, length, shortest, regular, most, window.length)


def within_cells(periods: Calendar, window: Window) -> bool:
    """Whether every period lies inside of one cell: a unit then has all of its rows of it, or none."""
    width = periods.width
    if width.unit in MONTHS:
        return False
    period = width.count * _length(width.unit, True)
    return window.cell % period == 0 and place_of(periods.start) % period == 0


def _length(unit: str, regular: bool) -> int:
    if not unit:
        return 1
    if regular:
        return SECONDS[unit] * MICROSECONDS
    return _DAYS[unit][1] * SECONDS["day"] * MICROSECONDS


def _most_met(window: Window, period: int, start: int, *, regular: bool) -> int:
    """Give how many periods a stretch meets at most, of which none is shorter than `period`."""
    cell, length = window.cell, window.length
    if regular and cell % period == 0 and start % period == 0:
        return length // period
    if start % cell == 0 and (period % cell == 0 or not regular):
        # Stretches and periods are whole cells: two that are met in part have a cell of the stretch each.
        return (length - 2 * cell) // period + 2 if length > cell else 1
    return -(-length // period) + 1


def span_fields(span: Span) -> list[str | int | bool | None]:
    """Give a span as plain values; `read_span` gives it back."""
    return [getattr(span, f.name) for f in fields(span)]


def read_span(value: object) -> Span:
    """Give the span that `span_fields` wrote; anything else is a ValueError."""
    if not isinstance(value, list) or len(value) != len(fields(Span)):
        raise ValueError("this does not say when the periods of a charge are")
    span = Span(*value)
    numbers = (span.start, span.period, span.priced, span.stretch, span.length or 0)
    if span.unit not in ("time", "number") or not all(type(x) is int for x in numbers):
        raise ValueError("this does not say when the periods of a charge are")
    if min(span.period, span.priced, span.stretch) < 1 or type(span.regular) is not bool:
        raise ValueError("periods are at least 1 long")
    return span
