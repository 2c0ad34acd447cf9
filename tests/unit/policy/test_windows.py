"""How many periods of a stream a stretch of time meets, against counting them."""

from __future__ import annotations

import bisect
import datetime
import itertools

import pytest

from secant.policy.streams import Calendar, Width, as_time
from secant.policy.windows import (
    Window,
    place_of,
    read_span,
    span_fields,
    span_of,
    window_of,
    within_cells,
)

DAY = datetime.date(2025, 1, 30)
STARTS = (DAY, *map(datetime.datetime.fromisoformat, ("2025-01-27T06:30", "2025-01-27T07:00")))


def ends_of(calendar: Calendar, last: int) -> list[int]:
    """Give where periods begin, one by one, up to a moment or to the last of them."""
    found = []
    for step in itertools.count(1):
        found.append(place_of(calendar.first(step)))
        if found[-1] > last or (calendar.steps is not None and step > calendar.steps):
            break
    return found


def periods_met(ends: list[int], first: int, end: int) -> int:
    """Count the periods that have a moment in [first, end)."""
    before = max(0, bisect.bisect_right(ends, first) - 1)
    return max(0, min(bisect.bisect_left(ends, end), len(ends) - 1) - before)


WIDTHS = [Width(n, u) for n in (1, 2, 5) for u in ("hour", "day", "week", "month")]
WIDTHS += [Width(30, "minute"), Width(1, "year")]


@pytest.mark.parametrize("width", WIDTHS, ids=str)
@pytest.mark.parametrize(
    "window", [Window(1, "day"), Window(30, "day"), Window(7, "hour")], ids=str
)
@pytest.mark.parametrize("start", STARTS, ids=str)
@pytest.mark.parametrize("steps", [None, 3])
def test_no_stretch_meets_more_periods_than_are_priced(width, window, start, steps):
    if width.unit in ("month", "year") and start.day > 28:
        start = start.replace(day=28)
    if width.unit in ("hour", "minute"):
        start = as_time(start)  # as the policy does
    calendar = Calendar(start, width, steps)
    end = None if steps is None else calendar.first(steps + 1)
    span = span_of(calendar, window, end)
    assert read_span(span_fields(span)) == span
    first = place_of(start) // window.cell * window.cell
    worst = 0
    ends = ends_of(calendar, first + 700 * window.cell + 5 * window.length)
    for cells in [*range(-40, 80), 300, 365, 366, 500]:
        at = first + cells * window.cell
        met = periods_met(ends, at, at + window.length)
        assert met <= span.met(at, at + window.length)
        assert met <= span.priced
        worst = max(worst, met)
        for longer in (2, 5):  # a stretch that was declared longer afterwards
            wide = at + longer * window.length
            assert periods_met(ends, at, wide) <= span.met(at, wide)
    if span.regular and steps is None and within_cells(calendar, window):
        assert worst == span.priced


def test_periods_inside_of_cells_are_known_by_where_they_begin():
    window = Window(30, "day")
    assert within_cells(Calendar(DAY, Width(1, "day")), window)
    assert within_cells(Calendar(STARTS[2], Width(1, "hour")), window)
    assert not within_cells(Calendar(STARTS[1], Width(1, "hour")), window)
    assert not within_cells(Calendar(DAY, Width(2, "day")), window)
    assert not within_cells(Calendar(DAY, Width(1, "month")), window)
    assert within_cells(Calendar(7, Width(1)), Window(5))
    assert not within_cells(Calendar(7, Width(2)), Window(5))


def test_long_stretches_are_counted_in_days():
    assert window_of(Width(2, "month")) == Window(62, "day")
    assert window_of(Width(1, "year")) == Window(366, "day")
    assert window_of(Width(3, "week")) == Window(21, "day")
    assert window_of(Width(12, "hour")) == Window(12, "hour")
    assert (str(Window(30, "day")), str(Window(5))) == ("30 days", "5 steps of one")


@pytest.mark.parametrize(
    "value", [None, [], ["time", 0, None, 1, True, 1], ["day", 0, None, 1, True, 1, 1],
              ["time", 0, None, 0, True, 1, 1], ["time", 0.5, None, 1, True, 1, 1],
              ["time", 0, None, 1, 1, 1, 1]],
)  # fmt: skip
def test_what_is_no_span_is_refused(value):
    with pytest.raises(ValueError, match="period"):
        read_span(value)
