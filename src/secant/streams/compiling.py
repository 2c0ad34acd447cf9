"""From a declared stream to bounded measures with a way of releasing each, before anything is read.

In: a stream of the policy, the catalog. Out: the plan that was bounded and, for each of its measures, how its steps are
released. The bound is that of the question with all of its groups, of which the steps are (stream.steps). Refused is
whatever could change a step after it was read. Public facts only; no session is needed.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from math import ceil
from typing import Any

from secant.errors import Refused
from secant.ledger.amounts import Charge
from secant.noise.calibrate import shares_of
from secant.noise.continual import Choice, Mechanism, StreamFacts, as_it_is, choose
from secant.noise.events import Composed, Event, PureEvent
from secant.plan import nodes as n
from secant.plan.facts.domains import Chosen, Listed, Looked
from secant.plan.facts.reads import scans, tables_read
from secant.plan.rewrites.enforce import StreamKey
from secant.plan.rewrites.rewrite import replaced
from secant.plan.typing import fields_of, type_of
from secant.policy.fit import elements_of
from secant.policy.policy import Policy, Protection
from secant.policy.streams import LATE, Calendar, Moment, Stream, as_time
from secant.records import frozen
from secant.runtime.work import limited_work
from secant.schema import types as t
from secant.schema.catalog import Catalog
from secant.sensitivity import explain as wording
from secant.sensitivity.bound import CertifiedRelease
from secant.sensitivity.bounds import GlobalBound
from secant.sensitivity.certificate import Certificate, is_still
from secant.sensitivity.growth import growth
from secant.sensitivity.public_facts import PublicFacts
from secant.sensitivity.split import Decomposition, RawRows, prepare
from secant.sql.bind import bind
from secant.streams.values import check_values, with_public_bounds
from secant.streams.within import Stretches, as_unit, check_window, stretches_of, window_of

KINDS = {"DATE": datetime.date, "TIMESTAMP": datetime.datetime, "INTEGER": int}


@frozen
class Compiled:
    """A stream that can be released: its plan, its bounds, and the way of each measure."""

    stream: Stream
    calendar: Calendar
    bounded: CertifiedRelease
    post: n.Relation
    """From released measures to what the owner asked for."""
    step_key: str
    """The key of the aggregate that holds the step."""
    raw_step: n.Scalar
    """The same below everything that was enforced."""
    arrival: n.Column | None
    """Where rows count by their step only if they came in time: when they came."""
    facts: tuple[StreamFacts, ...]
    """For each measure, what decides how it is released."""
    protections: tuple[Protection, ...]
    periods: Calendar | None = None
    """Where limits hold in every period anew: when these begin (stream.period); never kept (ledger.growth)."""
    stretches: Stretches | None = None
    """Where only what lies within a stretch of time is hidden: how many periods one meets (stream.window)."""

    @property
    def by_step(self) -> bool:
        """Whether limits hold in every step anew, of which each is one key."""
        return self.stretches is not None and self.stream.personal is None and self.single

    @property
    def single(self) -> bool:
        """Whether each step is one key: days of a date, whole numbers one by one."""
        start, step = self.calendar.start, self.stream.step
        return type(start) in (int, datetime.date) and step.count == 1 and step.unit in ("", "day")

    def period(self, step: int) -> int:
        """Give the first step of the period that a step lies in; limits go by all steps where there are no periods."""
        if self.periods is None:
            return 1
        number = self.periods.step_of(self.calendar.first(step))
        step = max(1, self.calendar.step_of(self.periods.first(number)))
        # A step belongs to the period that it begins in.
        return step if self.periods.step_of(self.calendar.first(step)) == number else step + 1

    @property
    def group_keys(self) -> tuple[str, ...]:
        """Give the keys besides the step, in order."""
        return tuple(k.name for k in self.bounded.release.exact.keys if k.name != self.step_key)


def refused(message: str, hint: str) -> Refused:
    """Say why a question cannot be a stream."""
    return Refused("REF-108", message, hint=hint)


def compile_stream(
    stream: Stream, policy: Policy, protections: tuple[Protection, ...], catalog: Catalog
) -> Compiled:
    """Bound a stream and choose its ways, or refuse it with a reason. Reads no data."""
    with limited_work():
        return _compiled(stream, policy, protections, catalog)


def _compiled(
    stream: Stream, policy: Policy, protections: tuple[Protection, ...], catalog: Catalog
) -> Compiled:
    plan = _unsorted(bind(stream.query, catalog))
    if any(elements_of(scan.table) for scan in scans(plan)):
        raise refused(
            "a stream does not take arrays apart",
            "ask for the length of the array, or for 'x' = ANY(array)",
        )
    aggregate, shown = _parts(plan)
    first = shown[0].expression if shown else None
    keys = {k.name: k for k in aggregate.keys}
    if not isinstance(first, n.Column) or first.name not in keys:
        raise refused(
            "the first column of the question is not a grouped step",
            "write SELECT day, count(*) AS n FROM ... GROUP BY day",
        )
    step = keys[first.name]
    calendar = _calendar(stream, type_of(step.expression))
    _check_kinds(stream, protections)
    window = window_of(protections)
    if window is not None:
        check_window(stream, policy, protections, window, aggregate, step, calendar)
    rows, step, arrival = _in_time(stream, aggregate, step)
    check_values(stream, protections, aggregate, arrival)
    inside = _since_start(step.expression, calendar)
    others = tuple(k for k in aggregate.keys if k.name != step.name)
    changed = replace(aggregate, input=n.Filter(rows, inside), keys=(step, *others))
    fixed = tuple(_limited(p, stream) for p in protections)
    steps = StreamKey(step.name, None if arrival is None else arrival.name)
    outcome = prepare(
        replaced(plan, aggregate, changed),
        policy,
        fixed,
        catalog,
        PublicFacts(stream.epsilon),
        stepped=steps,
    )
    if not isinstance(outcome, Decomposition):
        raise _unbounded(outcome)
    bounded = _only(outcome)
    _check_monotone(stream, bounded, fixed)
    periods = _periods(stream, calendar, bounded, window)
    compiled = Compiled(
        stream,
        calendar,
        bounded,
        outcome.post,
        step.name,
        step.expression,
        arrival,
        (),
        protections,
        periods,
        None
        if window is None or periods is None
        else stretches_of(stream, window, calendar, periods),
    )
    return replace(compiled, facts=_facts(compiled))


def _limited(protection: Protection, stream: Stream) -> Protection:
    """Give a protection with limits that are not chosen, and where they hold in every period, with those."""
    if protection.kind == "window":
        protection = as_unit(protection)
    if protection.kind != "unit":
        return protection
    limits = dict(protection.limits)
    if stream.personal is not None:
        limits[stream.personal.table] = stream.personal.rows
    return replace(protection, truncation="fixed", limits=limits)


def _periods(
    stream: Stream, calendar: Calendar, bounded: CertifiedRelease, window: Protection | None
) -> Calendar | None:
    """Give when periods begin, if limits hold in each of them; within stretches of time each step is one."""
    personal = stream.personal
    if personal is None:
        return None if window is None else calendar
    exact = bounded.release.exact
    if personal.table not in tables_read(exact) or isinstance(exact.input, n.Project):
        raise refused(
            f"the question limits no rows of {personal.table}",
            "`personal` names a table of the question whose rows belong to units",
        )
    if isinstance(calendar.start, int):
        raise refused(
            "steps that are numbers have no periods of time",
            "leave `personal` out",
        )
    if stream.steps is None and window is None:
        raise refused(
            "limits that come back in every period add up without end",
            "declare how many `steps` there will be",
        )
    return Calendar(calendar.start, personal.period)


def _count(calendar: Calendar, periods: Calendar) -> int:
    """Give how many periods the steps lie in."""
    assert calendar.steps is not None
    return periods.step_of(calendar.first(calendar.steps))


def _unsorted(plan: n.Relation) -> n.Relation:
    """Steps come in their own order."""
    if isinstance(plan, n.Sort):
        return _unsorted(plan.input)
    return replace(plan, input=_unsorted(plan.input)) if isinstance(plan, n.Project) else plan


def _parts(plan: n.Relation) -> tuple[n.Aggregate, tuple[n.Named, ...]]:
    """Give the aggregate of a question and what is shown of it; formulas may stand between."""
    node, shown = plan, tuple(n.Named(f.name, n.Column(f.name, f.type)) for f in fields_of(plan))
    while isinstance(node, n.Project):
        under = {item.name: item.expression for item in node.items}
        shown = tuple(
            replace(item, expression=under[item.expression.name])
            if isinstance(item.expression, n.Column) and item.expression.name in under
            else item
            for item in shown
        )
        node = node.input
    if not isinstance(node, n.Aggregate):
        raise refused(
            "a stream is one SELECT with GROUP BY, without HAVING, LIMIT or set operations",
            "ask for the groups of a step as they are, and filter what is shown afterwards",
        )
    return node, shown


def _calendar(stream: Stream, kind: t.Type) -> Calendar:
    """Fit start and steps to the type of the step column."""
    start: Moment = stream.start
    expected = KINDS.get(kind.kind)
    if kind.kind == "TIMESTAMP" and isinstance(start, datetime.date):
        start = as_time(start)
    if expected is None or type(start) is not expected:
        start_text = stream.start if isinstance(stream.start, int) else stream.start.isoformat()
        raise refused(
            f"steps of {stream.step} from {start_text} do not fit a step column of type {kind}",
            "make the first column a date, a timestamp or a whole number, as `start` is; steps of less than a day "
            "need a timestamp",
        )
    return Calendar(start, stream.step, stream.steps)


def _check_kinds(stream: Stream, protections: tuple[Protection, ...]) -> None:
    for protection in protections:
        if protection.renewal:
            raise refused(
                f"the budget of {protection.name} comes back every month, and a stream goes on across months",
                "let a protection without `renewal` pay for the stream",
            )
        if protection.kind == "unit" and not stream.append_only:
            raise refused(
                f"under {protection.name} the first rows of a unit must stay the first: rows that go or change would "
                "let others count in their place",
                "write append_only = true in the stream if rows are never changed or removed",
            )


def _in_time(
    stream: Stream, aggregate: n.Aggregate, step: n.Named
) -> tuple[n.Relation, n.Named, n.Column | None]:
    """Let rows that come late count when they arrive, or note by which column they never do (stream.late)."""
    if stream.arrival is None:
        return aggregate.input, step, None
    short = stream.arrival.rsplit(".", 1)[-1]
    columns = [
        f
        for f in fields_of(aggregate.input)
        if f.name.lower() == stream.arrival
        or ("." not in stream.arrival and f.name.lower().rsplit(".", 1)[-1] == short)
    ]
    kind = type_of(step.expression)
    if len(columns) != 1 or (columns[0].type.kind == "INTEGER") != (kind.kind == "INTEGER"):
        raise refused(
            f"the question reads no column {stream.arrival} that could say when a row came",
            "name a column of a table in FROM, as alias.column: a date or timestamp, or a number where steps are",
        )
    if columns[0].type.kind not in KINDS:
        raise refused(
            f"{stream.arrival} is of type {columns[0].type}, and does not say when a row came",
            "name a column of dates, timestamps or, where steps are numbers, of whole numbers",
        )
    column = n.Column(columns[0].name, columns[0].type)
    if stream.late == LATE[0]:
        return aggregate.input, step, column
    came: n.Scalar = column if column.type == kind else n.Cast(column, kind)
    # A row without a time of arrival has not arrived.
    rows = n.Filter(aggregate.input, n.Not(n.IsNull(column)))
    later = n.Call("greatest", (step.expression, came))
    return rows, replace(step, expression=later), None


def _since_start(step: n.Scalar, calendar: Calendar) -> n.Scalar:
    """Rows before the start, beyond the horizon and without a step count nowhere; nobody's limit is used up by them."""
    kind = type_of(step)
    after = n.Compare(">=", step, n.Literal(calendar.start, kind))
    if calendar.steps is None:
        return after
    end = calendar.first(calendar.steps + 1)
    return n.And((after, n.Compare("<", step, n.Literal(end, kind))))


def _unbounded(outcome: Any) -> Refused:
    if isinstance(outcome, RawRows):
        return refused(
            f"the question shows rows of the protected table {outcome.scan.table}",
            "ask for counts, sums or averages of each step instead",
        )
    reasons = tuple(dict.fromkeys(wording.refusal_line(r) for r in outcome))
    return Refused(
        "REF-108",
        "this stream cannot be made private as written",
        details=reasons,
        hint=outcome[0].hint,
    )


def _only(outcome: Decomposition) -> CertifiedRelease:
    """Give the one release of a stream, if public numbers bound all of it."""
    if len(outcome.bounded) != 1:
        raise refused(
            "the question reads nothing protected"
            if not outcome.bounded
            else "the question needs several releases, one before the other",
            "ask it as a plain query"
            if not outcome.bounded
            else "ask for the inner numbers first, and write them into the question",
        )
    bounded = outcome.bounded[0]
    if bounded.release.ranked or any(m.preprocessed for m in bounded.release.measures):
        raise refused(
            "order statistics, and statistics that `moves` is declared for, do not add up over steps",
            "use count, sum, avg or variance of columns with a range",
        )
    if any(isinstance(d, Chosen) for d in bounded.release.domains):
        raise refused(
            "the keys of some groups are protected, and a stream must know all of its groups when it begins",
            "declare `values` for the grouped columns",
        )
    if not all(isinstance(d, (Listed, Looked)) for d in bounded.release.domains[1:]):
        raise refused("the groups are not known beforehand", "declare `values` for them")
    bounded = with_public_bounds(bounded)
    for certificate in bounded.certificates:
        for column, bound in certificate.bounds.items():
            if not isinstance(bound, GlobalBound):
                description = next(m.words for m in bounded.release.measures if m.column == column)
                raise refused(
                    f"no public number bounds the {description} under {certificate.protection}",
                    "declare limits of the unit's tables in the policy, or join over keys",
                )
    return bounded


def _check_monotone(
    stream: Stream, bounded: CertifiedRelease, protections: tuple[Protection, ...]
) -> None:
    """Refuse what could change a step after it was read, or count other rows of a unit in its place (stream.first)."""
    rows = bounded.release.exact.input
    while isinstance(rows, (n.Truncate, n.TruncateGroups)):
        rows = rows.input
    inner = [x for x in n.walk(rows) if isinstance(x, (n.Truncate, n.TruncateGroups))]
    if growth(rows, lambda table: True) is None or inner:
        raise refused(
            "a row that comes later may change what earlier steps have counted",
            "use inner joins and plain conditions; no subqueries over tables that grow, no outer joins",
        )
    coming = [p.name for p in protections if p.kind == "rows+cells"]
    if coming and rows is not bounded.release.exact.input:
        raise refused(
            f"rows of a unit are limited, and under {coming[0]} others would count in the place of one that is not "
            "there (stream.both)",
            "let the owner list the protections as `alternatives`, and name one of them in the stream",
        )
    if len(scans(rows)) > 1 and not stream.append_only:
        raise refused(
            "the question joins tables, and a row that changes in one of them would move others between steps",
            "write append_only = true in the stream if rows are never changed or removed",
        )


def _often(compiled: Compiled) -> tuple[int, int]:
    """Give in how many periods one protected thing moves, and how many times its bound it moves in each."""
    if compiled.stretches is not None:
        return compiled.stretches.span.priced, compiled.stretches.both
    if compiled.periods is None:
        return 1, 1
    return _count(compiled.calendar, compiled.periods), 1


def _facts(compiled: Compiled) -> tuple[StreamFacts, ...]:
    """Gather what decides how each measure is released: public facts. Periods add up (stream.period, stream.window)."""
    stream, bounded = compiled.stream, compiled.bounded
    often, both = _often(compiled)
    shares = shares_of((bounded,), stream.epsilon)
    facts = []
    for measure in bounded.release.measures:
        column = measure.column
        still = _is_public(bounded, column)
        bounds = [_sizes(c, column) for c in bounded.certificates]
        size = both * max(1, *(size for size, _ in bounds))
        # The keys of one step are added up, so the length of the move over keys is none over steps (stream.steps).
        squared = max(1, *(squared if compiled.single else size**2 for size, squared in bounds))
        facts.append(
            StreamFacts(
                horizon=stream.steps,
                epsilon=stream.epsilon if still else shares[column],
                # Normal noise is not for distances: twice as far would cost four times as much.
                delta=Fraction(0) if _by_distance(compiled, column) else stream.delta / len(shares),
                bound=often * size,
                squared=often * both**2 * squared,
                times=often * both * max(1, *(c.groups for c in bounded.certificates)),
                each=size if often > 1 else None,
                shows=stream.shows,  # type: ignore[arg-type]
                objective=stream.objective,  # type: ignore[arg-type]
            )
        )
    return tuple(facts)


def _is_public(bounded: CertifiedRelease, column: str) -> bool:
    """Whether no protection moves a measure, as rows are counted where only their values are protected.

    Where rows come and go as well they move every count, by 1 over the distance of a row.
    """
    return all(is_still(c.bounds[column]) for c in bounded.certificates)


def _by_distance(compiled: Compiled, column: str) -> bool:
    """Whether a measure moves with values, so that what it costs is told for a unit of distance."""
    moving = {p.name for p in compiled.protections if p.distance}
    return any(
        c.protection in moving and not is_still(c.bounds[column])
        for c in compiled.bounded.certificates
    )


def _sizes(certificate: Certificate, column: str) -> tuple[int, int]:
    """Give how far a measure moves over all steps and groups: as a sum, and as a squared length."""
    bound = certificate.bounds[column]
    assert isinstance(bound, GlobalBound)
    if not bound.value:
        return 0, 0
    return ceil(bound.value), ceil(certificate.squared(column))


def choices(compiled: Compiled) -> list[Choice]:
    """Choose how each measure is released, by public facts; once, before a stream begins."""
    measures = compiled.bounded.release.measures
    return [
        as_it_is(facts) if _is_public(compiled.bounded, m.column) else choose(facts)
        for m, facts in zip(measures, compiled.facts, strict=True)
    ]


def charges(compiled: Compiled, ways: Sequence[Mechanism]) -> list[Charge]:
    """Give what is charged when a stream begins; within stretches of time, with when its periods are.

    Rests on ledger.window.
    """
    span = None if compiled.stretches is None else compiled.stretches.span
    windowed = None if compiled.stretches is None else compiled.stretches.protection.name
    return [
        replace(Charge.of_event(name, event), span=span if name == windowed else None)
        for name, event in costs(compiled, ways).items()
    ]


def costs(compiled: Compiled, ways: Sequence[Mechanism]) -> dict[str, Event]:
    """Give what the whole stream costs each protection that it moves, for ever (stream.once)."""
    costs_by_name: dict[str, Event] = {}
    measures = compiled.bounded.release.measures
    for certificate in compiled.bounded.certificates:
        events = [
            way.cost
            for measure, way in zip(measures, ways, strict=True)
            if not is_still(certificate.bounds[measure.column])
        ]
        pure = sum((e.epsilon for e in events if isinstance(e, PureEvent)), Fraction(0))
        parts: list[Event] = [PureEvent(pure)] if pure else []
        parts += [e for e in events if not isinstance(e, PureEvent)]
        if parts:
            costs_by_name[certificate.protection] = parts[0] if len(parts) == 1 else Composed(parts)
    return costs_by_name
