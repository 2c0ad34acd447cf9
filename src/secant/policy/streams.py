"""A stream as the owner declares it: a question, its steps, and what it may cost.

Records only; `policy_streams` reads them from TOML. What follows from a step's number (where it begins and ends) is
public, and is computed here without looking at data.
"""

from __future__ import annotations

import datetime
from fractions import Fraction

from secant.records import frozen

Moment = int | datetime.date
"""Where a step begins: a whole number, a date, or a timestamp without a zone (UTC)."""
SECONDS = {"second": 1, "minute": 60, "hour": 3600, "day": 86_400, "week": 604_800}
MONTHS = {"month": 1, "year": 12}
MOST_STEPS = 1_000_000
LATE = ("never", "on arrival")
_MIDNIGHT = datetime.time()


@frozen
class Width:
    """How long a step is: so many of a unit, or so many whole numbers where there is no unit."""

    count: int
    unit: str = ""

    def __str__(self) -> str:
        return f"{self.count} {self.unit}{'s' if self.count > 1 else ''}".strip()


@frozen
class Personal:
    """The first so many rows of a unit count in every period; what a period leaves over lapses."""

    table: str
    rows: int
    period: Width


@frozen
class Stream:
    """One series that goes on: declared once, paid once."""

    name: str
    query: str
    step: Width
    start: Moment
    epsilon: Fraction
    delta: Fraction = Fraction(0)
    """Above zero: normal noise may be used."""
    steps: int | None = None
    """How many steps there will be; None where the horizon is open."""
    shows: str | int = "running"
    """`running` totals, `steps`, or the sum of so many last steps."""
    objective: str = "mean"
    """Whether the `mean` or the `largest` error is to be small."""
    protection: str | None = None
    append_only: bool = False
    """The owner's word that rows are never changed or taken out, and none comes to a step that is over."""
    arrival: str | None = None
    """The column that says when a row came."""
    late: str = LATE[0]
    """Whether rows that come after their step count never, or in the step in which they arrive."""
    wait: int = 0
    """So many seconds after its end a step is complete."""
    personal: Personal | None = None


@frozen
class Calendar:
    """Which step is when. Steps are numbered from 1."""

    start: Moment
    width: Width
    steps: int | None = None

    def first(self, step: int) -> Moment:
        """Give where a step begins; OverflowError beyond the last date there is."""
        past = (step - 1) * self.width.count
        if isinstance(self.start, int):
            return self.start + past
        if self.width.unit in MONTHS:
            months = self.start.year * 12 + self.start.month - 1 + past * MONTHS[self.width.unit]
            if months // 12 > datetime.MAXYEAR:
                raise OverflowError
            return self.start.replace(year=months // 12, month=months % 12 + 1)
        return self.start + datetime.timedelta(seconds=past * SECONDS[self.width.unit])

    def step_of(self, value: Moment) -> int:
        """Give the step that a value falls into; 0 or less before the start."""
        if isinstance(self.start, int):
            assert isinstance(value, int)
            return (value - self.start) // self.width.count + 1
        assert isinstance(value, datetime.date)
        if self.width.unit in MONTHS:
            months = (value.year - self.start.year) * 12 + value.month - self.start.month
            whole = months // (self.width.count * MONTHS[self.width.unit])
            return whole + 1 if self.first(whole + 1) <= value else whole  # type: ignore[operator]
        apart = value - self.start
        width = datetime.timedelta(seconds=self.width.count * SECONDS[self.width.unit])
        return apart // width + 1

    def ends(self, step: int) -> float:
        """Give when a step is over, in seconds since 1970 (UTC)."""
        moment = self.first(step + 1)
        assert isinstance(moment, datetime.date)
        return as_time(moment).replace(tzinfo=datetime.UTC).timestamp()

    def complete(self, now: float, wait: int = 0) -> int:
        """Give how many steps are over at a time; 0 where none is. Steps that are numbers have no clock."""
        moment = datetime.datetime.fromtimestamp(now - wait, datetime.UTC).replace(tzinfo=None)
        start = self.start
        assert isinstance(start, datetime.date)
        over = self.step_of(moment if isinstance(start, datetime.datetime) else moment.date()) - 1
        return max(0, over if self.steps is None else min(over, self.steps))


def as_time(moment: datetime.date) -> datetime.datetime:
    """Give a date as the timestamp at which it begins."""
    if isinstance(moment, datetime.datetime):
        return moment
    return datetime.datetime.combine(moment, _MIDNIGHT)
