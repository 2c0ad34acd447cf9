"""Streams that hide what lies within a stretch of time: which questions can be one, how often limits count.

Rests on stream.window.

In: a protection of kind `window`, a question with its step. Out: the protection as the analyses of `analysis` bound it,
a unit that appears or disappears within one period; how many periods a stretch meets; or a refusal. Never here: data.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from dataclasses import replace

from secant.errors import Refused
from secant.plan import nodes as n
from secant.policy.coverage import tables_of
from secant.policy.policy import Policy, Protection
from secant.policy.streams import LATE, MONTHS, SECONDS, Calendar, Stream
from secant.policy.windows import MICROSECONDS, Span, place_of, span_of, within_cells
from secant.records import frozen
from secant.schema import types as t

TRUNCATED = ("second", "minute", "hour", "day")


@frozen
class Stretches:
    """How a stream is bounded where only what lies within a stretch of time is hidden."""

    protection: Protection
    span: Span
    """Its periods, and how many of them one stretch meets."""
    both: int
    """1 where a unit has all of its rows of a period or none; 2 where it may have others in their place."""


def window_of(protections: Iterable[Protection]) -> Protection | None:
    """Give the protection that hides stretches of time, if one is in force."""
    return next((p for p in protections if p.kind == "window"), None)


def stretches_of(
    stream: Stream, window: Protection, calendar: Calendar, periods: Calendar
) -> Stretches:
    """Say how many periods a stretch meets, and whether a unit is in each of them whole or not at all.

    Rests on stream.window.
    """
    assert window.within is not None
    end = None if calendar.steps is None else calendar.first(calendar.steps + 1)
    whole = stream.personal is None and within_cells(periods, window.within)
    return Stretches(window, span_of(periods, window.within, end), 1 if whole else 2)


def as_unit(protection: Protection) -> Protection:
    """Give the protection as one of kind `unit`: everything of a unit in one period appears or disappears."""
    return replace(protection, kind="unit", within=None, time={})


def check_window(
    stream: Stream,
    policy: Policy,
    protections: tuple[Protection, ...],
    window: Protection,
    aggregate: n.Aggregate,
    step: n.Named,
    calendar: Calendar,
) -> None:
    """Refuse a question whose steps do not go by the times of the rows that are hidden."""
    scans = [node for node in n.walk(aggregate) if isinstance(node, n.Scan)]
    hidden = [scan for scan in scans if scan.table.lower() in window.time]
    others = [s for s in scans if s not in hidden and s.table.lower() not in policy.public]
    if len(hidden) != 1 or others:
        names = ", ".join(sorted(window.time))
        raise _refused(
            f"under {window.name} a stream reads one of the tables {names}, once, and public tables beside it",
            "leave the other tables out, or let another protection pay",
        )
    beside = [
        p.name
        for p in protections
        if p is not window and any(s.table.lower() in tables_of(policy, p) for s in scans)
    ]
    if beside:
        raise _refused(
            f"{window.name} and {', '.join(beside)} hold together, and limits of a stream go by one of them",
            "list them under `alternatives`, and name one in the stream",
        )
    if stream.late != LATE[0]:
        raise _refused(
            f"under {window.name} the step of a row is when it is, not when it arrives",
            'write late = "never", or name the column of arrival under `time`',
        )
    table = hidden[0].table.lower()
    column = f"{hidden[0].alias}.{window.time[table]}".lower()
    if not _same_time(step.expression, column, calendar):
        raise _refused(
            f"under {window.name} the first column of the question is {table}.{window.time[table]}",
            "group by that column itself, by its date where steps are whole days, or by date_trunc of it with a part "
            "into which steps can be cut",
        )
    if stream.personal is not None and not stream.append_only:
        raise _refused(
            "the first rows of a unit in a period must stay the first",
            "write append_only = true in the stream if rows are never changed or removed",
        )


def _same_time(step: n.Scalar, column: str, calendar: Calendar) -> bool:
    """Whether the step of a row is the one that its time lies in: ends of steps are ends of what time is cut to."""
    if isinstance(step, n.Column):
        return step.name.lower() == column
    if isinstance(step, n.Cast) and step.type == t.DATE:
        return _same_time(step.operand, column, calendar)
    if isinstance(step, n.Call) and step.function == "date_trunc" and len(step.arguments) == 2:
        part, moment = step.arguments
        if isinstance(part, n.Literal) and part.value in TRUNCATED:
            return _divides(str(part.value), calendar) and _same_time(moment, column, calendar)
    return False


def _divides(part: str, calendar: Calendar) -> bool:
    """Whether all steps begin where such a part of time begins."""
    if not isinstance(calendar.start, datetime.date):
        return False
    length = SECONDS[part] * MICROSECONDS
    width = calendar.width
    whole = width.unit in MONTHS or (width.count * SECONDS[width.unit] * MICROSECONDS) % length == 0
    return whole and place_of(calendar.start) % length == 0


def _refused(message: str, hint: str) -> Refused:
    return Refused("REF-108", message, hint=hint)
