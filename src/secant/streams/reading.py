"""The exact sums of some steps, from the plan that was bounded (I1). Private: they never leave `drawing`.

In: a compiled stream, a session, which steps. Out: for each step and group the whole numbers of all measures. Each
statement takes groups of the bounded aggregate, those of the steps that are asked for, so that history is not read
again (stream.part).
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable
from dataclasses import replace

from secant.engines.backend import Session
from secant.engines.print.print_sql import lower
from secant.errors import InternalError
from secant.plan import nodes as n
from secant.plan.facts.domains import Stepped
from secant.plan.facts.reads import scans
from secant.plan.rewrites.null_on_error import total
from secant.plan.typing import fields_of, type_of
from secant.policy.streams import Moment, as_time
from secant.release.measured import comparable_key, in_steps
from secant.release.print import listed_keys
from secant.schema import types as t
from secant.streams.compiling import Compiled

Group = tuple[object, ...]
Sums = dict[int, dict[Group, tuple[int, ...]]]
"""Step -> group -> whole numbers of all measures; what is not there is zero."""


def groups_of(compiled: Compiled, most: int, session: Session) -> list[Group]:
    """Give all groups of a step, from lists and public tables; they stay as they are once the stream has begun."""
    domains = [d for d in compiled.bounded.release.domains if not isinstance(d, Stepped)]
    groups = listed_keys(compiled.group_keys, domains, most, session)
    assert groups is not None, "a stream knows its groups when it begins"
    return groups


def statement(compiled: Compiled, first: int, last: int) -> n.Aggregate:
    """Give the bounded aggregate with the groups of some steps only (stream.part)."""
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
    owner = owner_of(limited)
    rows = _replaced(
        limited,
        lambda sub: (
            _filtered(sub, _between(step, begin, high, None))
            if owner is None or begin == low
            else _of_owners(sub, owner, step, (begin, low, high))
        ),
    )
    key = n.Column(compiled.step_key, type_of(compiled.raw_step))
    predicate = n.conjunction(tuple(_between(key, low, high, compiled.arrival)))
    assert predicate is not None
    return replace(exact, input=n.Filter(rows, predicate))


def _by_key(rows: n.Relation, key: str) -> n.Relation:
    """Let limits hold for each value of a key anew."""
    if isinstance(rows, (n.Truncate, n.TruncateGroups)):
        return replace(rows, input=_by_key(rows.input, key), owner=(*rows.owner, key))
    return rows


def owner_of(rows: n.Relation) -> str | None:
    """Give the column whose values all limits go by; None if they go by different ones."""
    owners = set()
    while isinstance(rows, (n.Truncate, n.TruncateGroups)):
        owners.add(rows.owner)
        rows = rows.input
    owner = owners.pop() if len(owners) == 1 else ()
    return owner[0] if len(owner) == 1 else None


def enforced_rows(rows: n.Relation) -> n.Project:
    """Give the projection that enforcing made, below the limits above it."""
    while isinstance(rows, (n.Truncate, n.TruncateGroups)):
        rows = rows.input
    assert isinstance(rows, n.Project), "enforced rows are a projection, cut down or not"
    return rows


def _replaced(rows: n.Relation, change: Callable[[n.Project], n.Relation]) -> n.Relation:
    """Change the projection that enforcing made, below the limits above it."""
    if isinstance(rows, (n.Truncate, n.TruncateGroups)):
        return replace(rows, input=_replaced(rows.input, change))
    return change(enforced_rows(rows))


def _filtered(rows: n.Project, conditions: list[n.Scalar]) -> n.Project:
    """Put conditions below a projection, beside those that are there: the engine then skips what they leave out."""
    below = rows.input
    if isinstance(below, n.Filter):
        conditions, below = [below.predicate, *conditions], below.input
    predicate = n.conjunction(tuple(conditions))
    assert predicate is not None
    return replace(rows, input=n.Filter(below, predicate))


def _of_owners(
    rows: n.Project, owner: str, step: n.Scalar, ends: tuple[Moment, Moment, Moment]
) -> n.Relation:
    """Give the rows of some steps, and of those before them the rows of the same owners (stream.part)."""
    begin, low, high = ends
    now = _filtered(rows, _between(step, low, high, None))
    before = _filtered(rows, _between(step, begin, low, None))
    if not isinstance(rows.input, n.Filter) or not isinstance(rows.input.input, n.Scan):
        # A join is computed once, for all of these steps.
        both = _filtered(rows, _between(step, begin, high, None)).input
        now = replace(rows, input=n.Filter(both, _from(step, low)))
        before = replace(rows, input=n.Filter(both, _before(step, low)))
    whose = next(item for item in rows.items if item.name == owner)
    theirs = n.InSubquery(n.Column(owner, type_of(whose.expression)), replace(now, items=(whose,)))
    return n.Union(now, n.Filter(before, theirs), True, tuple(fields_of(rows)))


def read(compiled: Compiled, steps: Iterable[int], session: Session) -> Sums:
    """Read the sums of some steps, neighbors in one statement."""
    sums: Sums = {}
    for first, last in _runs(compiled, sorted(steps)):
        rows = session.rows(lower(statement(compiled, first, last), session.dialect))
        sums |= _gathered(compiled, first, last, rows)
    return sums


def rows_until(compiled: Compiled, step: int, session: Session) -> int | None:
    """Count the rows of one table from the start up to a step; None where tables are joined. Private, as sums are."""
    rows = enforced_rows(compiled.bounded.release.exact.input)
    if len(scans(rows)) != 1:
        return None
    until = [_before(total(compiled.raw_step), compiled.calendar.first(step + 1))]
    counted = n.Aggregate(_filtered(rows, until), (), (n.Aggregation("n", "count", None),))
    ((number,),) = session.rows(lower(counted, session.dialect))
    return int(number)  # type: ignore[call-overload, no-any-return]


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
    conditions: list[n.Scalar] = [
        _from(step, low),
        _before(step, high),
    ]
    return conditions if arrival is None else [*conditions, _came_before(arrival, high)]


def _from(step: n.Scalar, start: Moment) -> n.Scalar:
    return n.Compare(">=", step, n.Literal(start, type_of(step)))


def _before(step: n.Scalar, end: Moment) -> n.Scalar:
    return n.Compare("<", step, n.Literal(end, type_of(step)))


def _came_before(arrival: n.Column, end: Moment) -> n.Scalar:
    """A row counts if it came before its step was over; NULL has not come (stream.late)."""
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
