"""The exact sums of some steps, from the plan that was bounded (I1). Private: they never leave `drawing`.

In: a compiled stream, a session, which steps. Out: for each step and group the whole numbers of all measures. Each
statement takes groups of the bounded aggregate, those of the steps that are asked for, so that history is not read
again (V-PART).
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from dataclasses import replace

from secant.errors import InternalError
from secant.plan import nodes as n
from secant.plan.domains import Stepped
from secant.plan.total import total
from secant.plan.typing import type_of
from secant.release.backend import Session
from secant.release.lower import lower
from secant.release.measured import comparable_key, in_steps
from secant.release.run import known_keys
from secant.streams.compiling import Compiled
from secant.terms import types as t
from secant.terms.streams import Moment, as_time

Group = tuple[object, ...]
Sums = dict[int, dict[Group, tuple[int, ...]]]
"""Step -> group -> whole numbers of all measures; what is not there is zero."""


def groups_of(compiled: Compiled, most: int, session: Session) -> list[Group]:
    """Give all groups of a step, from lists and public tables; they stay as they are once the stream has begun."""
    domains = [d for d in compiled.bounded.release.domains if not isinstance(d, Stepped)]
    found = known_keys(compiled.group_keys, domains, most, session)
    assert found is not None, "a stream knows its groups when it begins"
    return found


def statement(compiled: Compiled, first: int, last: int) -> n.Aggregate:
    """Give the bounded aggregate with the groups of some steps only (V-PART)."""
    exact = compiled.bounded.release.exact
    low, high = compiled.calendar.first(first), compiled.calendar.first(last + 1)
    step = total(compiled.raw_step)
    if isinstance(exact.input, n.Project):
        # Nothing but a projection is in between: the engine looks at the rows of these steps alone.
        inside = _filtered(exact.input, _between(step, low, high, compiled.arrival))
        return replace(exact, input=inside)
    # Which rows of a unit come first hangs on those before it in its period, and never on later ones.
    begin = compiled.calendar.first(compiled.period(first))
    limited = exact.input
    if compiled.by_step:
        limited = _by_key(limited, compiled.step_key)
    elif compiled.period(last) != compiled.period(first):
        raise InternalError("BUG-001", "a statement reads steps of two periods")
    rows = _filtered(limited, _between(step, begin, high, None))
    key = n.Column(compiled.step_key, type_of(compiled.raw_step))
    predicate = n.conjunction(tuple(_between(key, low, high, compiled.arrival)))
    assert predicate is not None
    return replace(exact, input=n.Filter(rows, predicate))


def _by_key(rows: n.Relation, key: str) -> n.Relation:
    """Let limits hold for each value of a key anew."""
    if isinstance(rows, (n.Truncate, n.TruncateGroups)):
        return replace(rows, input=_by_key(rows.input, key), owner=(*rows.owner, key))
    return rows


def _filtered(rows: n.Relation, conditions: list[n.Scalar]) -> n.Relation:
    """Put conditions below the projection that enforcing made, and below the limits above it."""
    if isinstance(rows, (n.Truncate, n.TruncateGroups)):
        return replace(rows, input=_filtered(rows.input, conditions))
    assert isinstance(rows, n.Project), "enforced rows are a projection, cut down or not"
    predicate = n.conjunction(tuple(conditions))
    assert predicate is not None
    return replace(rows, input=n.Filter(rows.input, predicate))


def read(compiled: Compiled, steps: Iterable[int], session: Session) -> Sums:
    """Read the sums of some steps, neighbors in one statement."""
    found: Sums = {}
    for first, last in _runs(compiled, sorted(steps)):
        rows = session.rows(lower(statement(compiled, first, last), session.dialect))
        found |= _gathered(compiled, first, last, rows)
    return found


def _gathered(compiled: Compiled, first: int, last: int, rows: list[tuple[object, ...]]) -> Sums:
    """Add up the rows of each step; a key of the engine may be finer than a step."""
    width = len(compiled.bounded.release.exact.keys)
    measures = compiled.bounded.release.measures
    sums: Sums = {step: {} for step in range(first, last + 1)}
    for row in rows:
        step = compiled.calendar.step_of(_moment(row[0], compiled))
        if not first <= step <= last:
            raise InternalError("BUG-001", "a statement gave rows of another step")
        group = tuple(comparable_key(v) for v in row[1:width])
        values = tuple(in_steps(v, m) for v, m in zip(row[width:], measures, strict=True))
        before = sums[step].get(group)
        if before is not None:
            values = tuple(a + b for a, b in zip(before, values, strict=True))
        sums[step][group] = values
    return sums


def _between(step: n.Scalar, low: Moment, high: Moment, arrival: n.Column | None) -> list[n.Scalar]:
    found: list[n.Scalar] = [
        n.Compare(">=", step, n.Literal(low, type_of(step))),
        _before(step, high),
    ]
    return found if arrival is None else [*found, _came_before(arrival, high)]


def _before(step: n.Scalar, end: Moment) -> n.Scalar:
    return n.Compare("<", step, n.Literal(end, type_of(step)))


def _came_before(arrival: n.Column, end: Moment) -> n.Scalar:
    """A row counts if it came before its step was over; NULL has not come (V-LATE)."""
    kind = arrival.type
    if kind == t.DATE and isinstance(end, datetime.datetime):
        # A date says that a row came some time on that day: in time is what came on a day before the end's.
        end = end.date()
    elif kind == t.TIMESTAMP and isinstance(end, datetime.date):
        end = as_time(end)
    return n.Compare("<", arrival, n.Literal(end, kind))


def _moment(value: object, compiled: Compiled) -> Moment:
    if isinstance(compiled.calendar.start, int):
        return int(value)  # type: ignore[call-overload, no-any-return]
    assert isinstance(value, datetime.date)
    return value


def _runs(compiled: Compiled, steps: list[int]) -> list[tuple[int, int]]:
    """Put neighbors of one period together; where rows may come late each step has a statement of its own."""
    runs: list[tuple[int, int]] = []
    for step in steps:
        joined = runs and runs[-1][1] == step - 1 and compiled.arrival is None
        if joined and (compiled.by_step or compiled.period(step) == compiled.period(runs[-1][0])):
            runs[-1] = (runs[-1][0], step)
        else:
            runs.append((step, step))
    return runs
