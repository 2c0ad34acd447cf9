"""A stream from its name to its series: declare and pay once, read what is complete, draw, show.

In: a compiled stream, an engine, the ledger. Out: the series so far. The order is the proof (stream.once): the charge
is durable before the first statement, a number before it is seen. Which steps are complete is decided by the books'
clock, which never goes back, and by `until`; never by rows.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from secant.display.progress import progress
from secant.engines.backend import Backend, Session
from secant.engines.print.print_sql import lower
from secant.engines.watch import about_to_charge
from secant.errors import UsageError
from secant.ledger.amounts import Charge
from secant.ledger.opening import accounts_of
from secant.ledger.store import Ledger, StreamAccount, broken_stream
from secant.noise.continual import Mechanism
from secant.plan.facts.reads import tables_read
from secant.policy.following import naming
from secant.policy.policy import Policy, Protection
from secant.policy.streams import Calendar, Stream, as_time
from secant.policy.values import moment_of
from secant.records import frozen
from secant.release.answer import Answer
from secant.release.print import check_claims
from secant.release.report import protects
from secant.streams.compiling import Compiled, charges, choices, compile_stream, costs
from secant.streams.declaring import declaration, settled
from secant.streams.drawing import Buffer, advance
from secant.streams.evidence import stream_evidence
from secant.streams.reading import Group, groups_of, statement
from secant.streams.series import LEVEL, Series, errors_of, key_columns, shown

__all__ = ["Buffer", "Opened", "opened_stream", "protection_text", "release_stream", "stream_named"]

MOST_AT_ONCE = 100_000
"""Steps that one call releases, at most."""


@frozen
class Opened:
    """A stream beside the engine and the policy that it is asked under."""

    compiled: Compiled
    policy: Policy
    backend: Backend

    def session(self) -> AbstractContextManager[Session]:
        """Begin a question over the tables of the stream."""
        release = self.compiled.bounded.release
        named = {*tables_read(release.exact), *self.policy.tables, *self.policy.public}
        return self.backend.session(named)


def stream_named(policy: Policy, name: str) -> Stream:
    """Give the stream of a name, or say which there are."""
    stream = policy.stream(name)
    if stream is None:
        names = ", ".join(s.name for s in policy.streams)
        raise UsageError(
            "USE-010",
            f"there is no stream {name!r}",
            hint=f"there are: {names}" if names else "declare it in the policy: [streams.NAME]",
        )
    return stream


def opened_stream(
    policy: Policy,
    name: str,
    protections_in_force: Callable[[str | None], tuple[Protection, ...]],
    backend: Backend,
) -> Opened:
    """Bound a stream under the protections that hold for it."""
    stream = stream_named(policy, name)
    alone = len(policy.protections) == 1 and policy.protections[0].name == stream.protection
    chosen = protections_in_force(None if alone else stream.protection)
    return Opened(
        compile_stream(stream, policy, chosen, naming(policy, backend.catalog())), policy, backend
    )


def release_stream(
    opened: Opened,
    ledger: Callable[[], Ledger],
    *,
    until: object = None,
    analyst: str = "",
    kept: Buffer | None = None,
) -> Series:
    """Release every complete step up to `until` that was not released yet, and give the series up to there."""
    compiled = opened.compiled
    until_step = None if until is None else _until_step(compiled.calendar, compiled.stream, until)
    books = ledger()
    complete = _complete(compiled, until_step, books)
    account = books.stream(compiled.stream.name)
    if account is None and not complete:
        return _series(opened, books, None, [], [], 0)
    done = 0 if account is None else account.through
    with _bar(compiled.stream.name, done, complete) as reached:
        groups, ways = _begun(opened, books, account, analyst)
        account = account or books.stream(compiled.stream.name)
        assert account is not None
        _check_due(compiled.stream.name, account, complete)
        account = advance(compiled, ways, groups, books, complete, opened.session, kept, reached)
    return _series(opened, books, account, groups, ways, _end(complete, until, account))


def _bar(name: str, done: int, complete: int) -> AbstractContextManager[Callable[[int], object]]:
    """Show how many of the steps that the clock or the caller calls complete are released: no row has a say in it."""
    total = False if done >= complete else None
    return progress(f"releasing {name}", complete, done=done, requested=total)


def _check_due(name: str, account: StreamAccount, complete: int) -> None:
    """Refuse a stream that is broken, and more steps than one call releases."""
    if account.lost and account.through < complete:
        raise broken_stream(name)
    if complete - account.through > MOST_AT_ONCE:
        raise UsageError(
            "USE-010",
            f"more than {MOST_AT_ONCE} steps are due",
            hint="release them in parts with `until`, or declare longer steps",
        )


def _end(complete: int, until: object, account: StreamAccount) -> int:
    """Show what was asked for; more may have been released before."""
    return account.through if until is None else min(complete, account.through)


def _begun(
    opened: Opened, books: Ledger, account: StreamAccount | None, analyst: str
) -> tuple[list[Group], list[Mechanism]]:
    """Declare the stream and pay for it, or hold it against how it began."""
    compiled, policy = opened.compiled, opened.policy
    ways = [choice.chosen for choice in choices(compiled)] if account is None else []
    groups: list[Group] = []
    with opened.session() as session:
        if account is None:
            groups = groups_of(compiled, policy.limits.groups, session)
        # Whatever can be refused is refused before anything is paid for or sent.
        session.check(lower(statement(compiled, 1, 1), session.dialect))
        check_claims(compiled.bounded.certificates, session)
    now = declaration(compiled, policy, groups, ways)
    if account is not None:
        return settled(compiled, account.declaration, now)
    charges_due = charges(compiled, ways)
    evidence = stream_evidence(compiled, ways, policy, naming(policy, opened.backend.catalog()))
    about_to_charge()
    recorded = books.declare_stream(
        compiled.stream.name, now, charges_due, analyst=analyst, evidence=evidence
    )
    return settled(compiled, recorded, now)


def _complete(compiled: Compiled, until: int | None, books: Ledger) -> int:
    """Give how many steps are complete, by the clock; where steps are numbers, by the caller's word."""
    calendar, stream = compiled.calendar, compiled.stream
    if isinstance(calendar.start, int):
        if until is None:
            account = books.stream(stream.name)
            if account is None:
                raise UsageError(
                    "USE-010",
                    "steps that are numbers have no clock: nobody knows which of them are over",
                    hint="say up to which step all rows are there, with `until`",
                )
            return account.through
        return until
    over = calendar.complete(books.clock(), stream.wait)
    if until is None:
        return over
    if until > over:
        ends = datetime.datetime.fromtimestamp(calendar.ends(until) + stream.wait, datetime.UTC)
        raise UsageError(
            "USE-010",
            f"the step {_label(calendar, until)} of the stream {stream.name} is not complete",
            hint=f"ask again after {ends:%Y-%m-%d %H:%M} UTC, or for steps before it",
        )
    return until


def _until_step(calendar: Calendar, stream: Stream, until: object) -> int:
    """Read up to which step is asked for."""
    value: Any = until
    try:
        if isinstance(calendar.start, int):
            value = int(value) if isinstance(value, str) else value
            fits = isinstance(value, int) and not isinstance(value, bool)
        else:
            value = moment_of(value) if isinstance(value, str) else value
            fits = isinstance(value, datetime.date)
            if fits and isinstance(calendar.start, datetime.datetime):
                value = as_time(value)
            elif isinstance(value, datetime.datetime):
                value = value.date()
    except ValueError:
        fits = False
    if not fits:
        raise UsageError(
            "USE-010",
            f"{str(until)[:50]!r} is no step of the stream {stream.name}",
            hint=f"write it as the start is: {_label(calendar, 1)}",
        )
    step = calendar.step_of(value)
    if step < 1:
        raise UsageError(
            "USE-010",
            f"the stream {stream.name} begins at {_label(calendar, 1)}, after that step",
            hint="rows from before the start are in no step",
        )
    if calendar.steps is not None and step > calendar.steps:
        raise UsageError(
            "USE-010",
            f"the stream {stream.name} has {calendar.steps} steps, the last of them {_label(calendar, calendar.steps)}",
            hint="declare a new stream for what comes after",
        )
    return step


def _label(calendar: Calendar, step: int) -> str:
    first = calendar.first(step)
    return str(first) if isinstance(first, int) else first.isoformat()


def _series(
    opened: Opened,
    books: Ledger,
    account: StreamAccount | None,
    groups: list[Group],
    ways: list[Mechanism],
    until: int,
) -> Series:
    compiled, numbers = opened.compiled, account.values if account else {}
    table = shown(compiled, ways, groups, numbers, until)
    protections = compiled.protections
    uncovered = [p.name for p in opened.policy.protections if p not in protections]
    guarantee = []
    paid = costs(compiled, ways) if ways else {}
    for protection in protections:
        charge = None
        if protection.name in paid:
            charge = Charge.of_event(protection.name, paid[protection.name])
        entry: dict[str, Any] = {
            "protection": protection.name,
            "protects": protection_text(protection),
            "epsilon": 0.0 if charge is None else charge.epsilon / 10**9,
            "delta": 0.0 if charge is None else charge.delta / 10**18,
        }
        guarantee.append({**entry, "not_covered": uncovered} if uncovered else entry)
    keys = key_columns(compiled)
    error = {
        "level": LEVEL,
        "noisy": [index > 0 and c not in keys for index, c in enumerate(table.columns)],
        **errors_of(table),
    }
    measures = compiled.bounded.release.measures
    told_ways = [
        {
            "measure": m.words,
            "step": float(m.step),
            "way": w.name,
            "law": w.law,
            "scale": float(w.stretch(max(1, until)).noise.size * m.step),
            "epsilon": 0.0 if w.law == "none" else float(w.facts.epsilon),
        }
        for m, w in zip(measures, ways, strict=False)
    ]
    accounts = accounts_of(books).of(paid)
    answer = Answer(
        table.columns, table.rows, guarantee, error, told_ways, accounts, None, raw=table.rows
    )
    return Series(
        compiled.stream.name,
        answer,
        tuple(table.numbers),
        keys,
        compiled.stream.shows,
        _seconds_to_next(compiled, books),
        lambda after: shown(compiled, ways, groups, numbers, until, after=after),
    )


def protection_text(protection: Protection) -> str:
    """Say what a stream hides: over all of its steps, or within any stretch of time."""
    what = protects(protection)
    return what if protection.kind == "window" else f"{what}, over the whole stream"


def _seconds_to_next(compiled: Compiled, books: Ledger) -> float | None:
    calendar, stream = compiled.calendar, compiled.stream
    if isinstance(calendar.start, int):
        return None
    now = books.clock()
    over = calendar.complete(now, stream.wait)
    if over == calendar.steps:
        return None
    return max(0.0, calendar.ends(over + 1) + stream.wait - now)
