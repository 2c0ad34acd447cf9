"""Run a prepared query: look up public keys, reserve, compute exact measures, add noise, do the rest, settle.

Values computed from protected rows come sealed from `measured`, and stay so until noise is on them (I5).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from fractions import Fraction
from operator import itemgetter
from typing import Any, Protocol

from secant.accuracy.consistency import NOTHING, Agreement, agree
from secant.accuracy.display import defined, displayed
from secant.accuracy.isotonic import Order, running_rows
from secant.accuracy.noise_lineage import noise_lineage
from secant.accuracy.reported_error import (
    Closed,
    half_widths,
    leaves_out,
    not_seen,
    reported_ends,
    reported_ranks,
)
from secant.accuracy.trace import signs_of, trace
from secant.engines.backend import Session, public_rows
from secant.engines.dialect import quote, stored_rows
from secant.engines.print.print_sql import lower
from secant.engines.watch import about_to_charge
from secant.errors import PolicyError, Refused, over_limit
from secant.noise.intervals import Span, number_of
from secant.noise.measure_noise import Noise
from secant.noise.mechanisms.threshold import reached
from secant.noise.mechanisms.whole import unmoved
from secant.noise.query_plan import reading_of
from secant.noise.ranked import drawn
from secant.noise.secrecy import Private, sealed_map
from secant.noise.shares import NoisePlan
from secant.plan import nodes as n
from secant.plan.evaluate.evaluate import evaluate
from secant.plan.facts.domains import Chosen, Domain, Listed, Looked, Open
from secant.plan.rewrites.rewrite import transform
from secant.plan.typing import fields_of, type_of
from secant.policy.keys import Trust
from secant.policy.policy import Limits
from secant.records import frozen
from secant.release.measured import PrivateValues, measured, value_of
from secant.release.reads import reads_of
from secant.release.release_plan import Keys, ReleasePlan
from secant.release.staged_tables import placeholders, provided, stage
from secant.schema.types import DOUBLE
from secant.sensitivity.bounding import CertifiedRelease
from secant.sensitivity.certificate import Certificate
from secant.sensitivity.portfolio import Decomposition
from secant.work import limited_work

Rows = Callable[[n.Relation], list[tuple[object, ...]]]
"""How the rows of a plan are computed."""


class Reservation(Protocol):
    """A reservation of budget: marked before the first statement over protected rows is sent."""

    def mark_sent(self) -> None:
        """Write down, durably, that a statement is about to be sent (I6)."""
        ...


def plan_release(
    prepared: Decomposition, noise: NoisePlan, level: Fraction, session: Session, limits: Limits
) -> ReleasePlan:
    """Print the statements and let the engine bind them; nothing is read."""
    readings = {b.release.name: reading_of(b.release, noise.noise) for b in prepared.bounded}
    relations = {name: x for r in readings.values() for name, x in r.relations().items()}
    statements = {name: lower(relation, session.dialect) for name, relation in relations.items()}
    noisy: dict[str, int] = {}
    for b in prepared.bounded:
        signs = signs_of(b.release.finish)
        noisy |= {m.column: signs.get(m.column, 0) for m in b.release.measures}
        noisy |= {r.column: 0 for r in b.release.ranked}
    rest = "" if prepared.bounded else lower(prepared.post, session.dialect)
    lacking = {b.release.name for b in prepared.bounded if b.release.selector is not None}
    traced = trace(prepared.post, noisy, frozenset(lacking))
    return ReleasePlan(
        prepared=prepared,
        noise=noise,
        statements=statements,
        readings=readings,
        traced=traced,
        level=level,
        rest=rest,
        groups=limits.groups,
        reads=reads_of(relations.values()),
    )


def check_job(job: ReleasePlan, session: Session) -> None:
    """Let the engine bind every statement, and hold claims about public tables against public data.

    What follows the releases is bound, too, with NULLs for what is not drawn yet: once a release is paid for, nothing
    may be left that the engine has not accepted. The claims are checked for every release on the data that answer it:
    a table can change between two, unless the engine reads files that it compares with what they were.
    """
    with limited_work():
        _check_job(job, session)


def _check_job(job: ReleasePlan, session: Session) -> None:
    not_yet = placeholders({b.release.name: released_fields(b) for b in job.prepared.bounded})
    for statement in job.statements.values():
        session.check(provided(statement, not_yet, session.dialect))
    for relation in job.traced.closing():
        if not _is_easy(relation):
            session.check(lower(_closing(relation, not_yet), session.dialect))
    check_claims([c for b in job.prepared.bounded for c in b.certificates], session)
    for relation in (r for b in job.prepared.bounded for r in b.release.scalars):
        _check_scalar(session, relation)


def check_claims(certificates: Sequence[Certificate], session: Session) -> None:
    """Hold claims about keys of public tables against public data."""
    claims = dict.fromkeys(claim for c in certificates for claim in c.claims)
    for claim in (c for c in claims if c.trust is Trust.CHECKED):
        _check_key(session, claim.table, claim.columns)


def _check_scalar(session: Session, relation: n.Relation) -> None:
    """Refuse a text that would fail in every database: its scalar subquery over public rows has several."""
    counted = n.Aggregate(relation, (), (n.Aggregation("rows", "count", None),))
    ((rows,),) = public_rows(session, lower(counted, session.dialect))
    if isinstance(rows, int) and rows > 1:
        raise Refused(
            "REF-101",
            "a scalar subquery over public tables has several rows",
            hint="aggregate inside the subquery, for example with max()",
        )


def _check_key(session: Session, table: str, columns: tuple[str, ...]) -> None:
    catalog = session.catalog()
    spelled = catalog.spelled(table, columns)[1]
    names = ", ".join(quote(c) for c in spelled)
    rows = stored_rows(session.dialect, catalog.tables[table.lower()], spelled)
    twice = f"SELECT 1 FROM {rows} AS t GROUP BY {names} HAVING count(*) > 1 LIMIT 1"
    if public_rows(session, twice):
        raise PolicyError(
            "POL-004",
            f"the declared key ({', '.join(columns)}) of the public table {table} is not unique",
            hint="correct the key in the policy, or the table",
        )


def look_up_keys(job: ReleasePlan, session: Session) -> dict[str, Keys | None]:
    """Give for each release the keys that will be shown; None where the release itself will find them."""
    keys = {}
    for b in job.prepared.bounded:
        names = [k.name for k in b.release.exact.keys]
        keys[b.release.name] = known_keys(names, b.release.domains, job.groups, session)
    return keys


def known_keys(
    names: Sequence[str], domains: Sequence[Domain], most: int, session: Session
) -> Keys | None:
    """Give all combinations of keys, from lists and public tables; None where some are found only in the data."""
    parts: list[tuple[tuple[str, ...], list[tuple[object, ...]]]] = []
    count = 1
    for domain in domains:
        if isinstance(domain, (Chosen, Open)):
            return None
        if isinstance(domain, Listed):
            parts.append(((domain.key,), [(v,) for v in domain.values]))
        elif isinstance(domain, Looked):
            parts.append((domain.keys, session.rows(lower(domain.relation, session.dialect))))
        count *= len(parts[-1][1])
        if count > most:  # the product is known before it is written out
            raise Refused(
                "REF-101",
                f"the answer would have more than {most} groups",
                hint="group by fewer or coarser columns, filter the groups, or let the data owner raise `groups`",
            )
    given = [name for part, _ in parts for name in part]
    places = [given.index(name) for name in names]
    values: Iterable[tuple[object, ...]]
    if all(
        len(part) == 1 for part, _ in parts
    ):  # there may be many: nothing is done to each of them
        values = itertools.product(*([value for (value,) in rows] for _, rows in parts))
    else:
        values = [()]
        for _, rows in parts:
            values = [(*start, *row) for start in values for row in rows]
    if places == list(range(len(given))):
        return list(values)
    if len(places) > 1:
        return list(map(itemgetter(*places), values))
    return [tuple([row[place] for place in places]) for row in values]


def run(
    job: ReleasePlan, keys: Mapping[str, Keys | None], session: Session, reservation: Reservation
) -> Result:
    """Release everything and finish the query on public numbers."""
    if job.prepared.bounded:
        about_to_charge()
        reservation.mark_sent()
    tables, noise = draw(job, keys, session)
    return finish(job, tables, from_engine(session), noise)


def draw(
    job: ReleasePlan, keys: Mapping[str, Keys | None], session: Session
) -> tuple[Mapping[str, n.Values], Mapping[str, Noise]]:
    """Read the measures and put noise on them; the permit was marked before."""
    tables: dict[str, n.Values] = {}
    noise: dict[str, Noise] = {}
    engine = stage(session, tables)
    for b in job.prepared.bounded:
        tables[b.release.name], settled = _released(b, job, keys[b.release.name], engine)
        noise |= settled
    return tables, noise


def _released(
    b: CertifiedRelease, job: ReleasePlan, keys: Keys | None, session: Session
) -> tuple[n.Values, Mapping[str, Noise]]:
    """Compute one release, and give the noise that is on it, with the limits that were chosen privately."""
    figures = measured(b, job, keys, session)
    groups = keys
    places: list[int] | None = None
    start: dict[str, list[int]] = {}
    if groups is None and b.release.selector is None:
        groups = unmoved(figures.keys)  # rows stay under every protection, so their keys are public
    elif groups is None:
        places, groups, start = _choose(b, job, figures)
    columns: list[list[object]] = []
    for measure in b.release.measures:
        noisy = start.get(measure.column)
        if noisy is None:
            noisy = figures.noise[measure.column].draw(_at(figures.values[measure.column], places))
        columns.append([value_of(m, measure) for m in noisy])
    for ranked in b.release.ranked:
        cells = _at(figures.cells[ranked.column], places)
        columns.append(drawn(ranked, job.noise.ranks[ranked.column], cells))
    return table_of(b, job, groups, columns), figures.noise


def _at(values: Private[list[Any]], places: list[int] | None) -> Private[list[Any]]:
    """Keep what was read of some groups."""
    return (
        values if places is None else sealed_map(values, lambda groups: [groups[i] for i in places])
    )


def _choose(
    b: CertifiedRelease, job: ReleasePlan, figures: PrivateValues
) -> tuple[list[int], Keys, dict[str, list[int]]]:
    """Show the keys whose noisy number of units reaches the threshold, in the order of the keys."""
    assert b.release.selector is not None
    noisy = figures.noise[b.release.selector].draw(figures.values[b.release.selector])
    places, keys = reached(figures.keys, noisy, job.noise.choices[b.release.name].threshold)
    return places, keys, {b.release.selector: [noisy[i] for i in places]}


def table_of(
    b: CertifiedRelease, job: ReleasePlan, groups: Keys, columns: list[list[object]]
) -> n.Values:
    """Give the released table."""
    if len(groups) > job.groups:
        raise over_limit()
    rows = tuple((*key, *(column[i] for column in columns)) for i, key in enumerate(groups))
    return n.Values(released_fields(b), rows)


def released_fields(b: CertifiedRelease) -> tuple[n.Field, ...]:
    """Give the columns of the table that is released: keys, then measures."""
    released = b.release.finish.input
    assert isinstance(released, n.Released)
    return released.columns


@frozen
class Result:
    """Rows as the analyst sees them, and the error beside each number."""

    columns: tuple[str, ...]
    rows: list[tuple[object, ...]]
    ends: list[list[Span | None]] | None
    """Beside each number the ends between which the true one lies; None where no row is noisy."""
    noise: list[list[float | None]] | None
    """Beside each number how far noise alone moved it at most."""
    settled: Mapping[str, Noise] = field(default_factory=dict)
    """Measure column -> its noise, with the limit that was chosen privately. Public, but for the owner's."""
    groups: Mapping[str, int] = field(default_factory=dict)
    """Release name -> how many groups it has."""
    ranks: list[list[float | None]] | None = None
    """Beside each order statistic by how many rows it is off at most."""
    raw: list[tuple[object, ...]] | None = None
    """The rows as noise made them, where the shown ones were moved to where the truth can lie."""
    agreement: Agreement = NOTHING
    """What became of totals and parts that were released apart."""
    running: Order = field(default_factory=dict)
    """Running totals of what is never below zero -> the order of their rows."""
    undefined: tuple[str, ...] = ()
    """Columns with a NULL because a divisor came out as 0, or noise left no number otherwise."""
    certain: list[list[Span | None]] | None = None
    """Ends that hold for every database, where `ends` hold usually; None where no row is noisy."""

    @property
    def errors(self) -> list[list[float | None]] | None:
        """Beside each number how far the true one is at most, to whichever side."""
        return None if self.ends is None else half_widths(self.rows, self.ends)


def finish(
    job: ReleasePlan,
    tables: Mapping[str, n.Values],
    rows_of: Rows,
    noise: Mapping[str, Noise],
    *,
    made_up: bool = False,
) -> Result:
    """Put the released tables, with this noise on them, into the rest of the plan and run it on public numbers."""
    traced = job.traced
    tables, agreement = agree(job.prepared.bounded, tables, noise, made_up=made_up)
    first, *others = traced.closing()
    names, rows = _run(first, tables, rows_of)
    width = len(traced.outputs)
    answer = [tuple(row[:width]) for row in rows]
    if not job.prepared.bounded:
        return Result(traced.outputs, answer, None, None)
    inside: dict[n.Relation, list[Mapping[str, object]]] = {}
    for relation in others:
        columns, rows_inside = _run(relation, tables, rows_of)
        inside[relation] = [dict(zip(columns, row, strict=True)) for row in rows_inside]
    groups = {name: len(table.rows) for name, table in tables.items()}
    closed = Closed(names, rows, inside, groups, agreement, _totals(job, tables))
    stated = reported_ends(job, closed, noise)
    ranks = reported_ranks(job, len(answer))
    answer, raw, (certain, alone, usual) = displayed(
        traced, names, rows, stated.certain, stated.alone, stated.usual
    )
    ends = [
        [known if estimated is None else estimated for known, estimated in zip(*both, strict=True)]
        for both in zip(certain, usual, strict=True)
    ]
    relied = noise_lineage(job)
    answer, undefined = defined(traced, answer, [bool(relied.columns[c]) for c in traced.outputs])
    widths = half_widths(answer, alone)
    running = running_rows(traced, names, rows)
    beside = groups, ranks, raw, agreement, running, undefined, certain
    return Result(traced.outputs, answer, ends, widths, noise, *beside)


def _totals(job: ReleasePlan, tables: Mapping[str, n.Values]) -> dict[str, float]:
    """Add up the numbers of each measure that has several groups."""
    return {
        m.column: math.fsum(x for row in rows if (x := number_of(row[at])) is not None)
        for b in job.prepared.bounded
        if len(rows := tables[b.release.name].rows) > 1
        for at, m in enumerate(b.release.measures, len(b.release.exact.keys))
    }


def _run(
    relation: n.Relation, tables: Mapping[str, n.Values], rows_of: Rows
) -> tuple[tuple[str, ...], list[tuple[object, ...]]]:
    plan = _closing(relation, tables)
    names = tuple(f.name for f in fields_of(plan))
    # An engine has no rows without columns, and is asked for a constant there.
    return names, [row[: len(names)] for row in rows_of(plan)]


def from_engine(session: Session) -> Rows:
    """Let the engine compute what follows the releases, unless that is so little that asking takes longer."""
    return lambda plan: (
        list(evaluate(plan, {})) if _is_easy(plan) else session.rows(lower(plan, session.dialect))
    )


EASY = frozenset({"INTEGER", "DOUBLE", "TEXT"})


def _is_easy(relation: n.Relation) -> bool:
    """Whether a plan only picks released columns and takes the larger or smaller: nothing that engines differ in."""
    while isinstance(relation, n.Project):
        for node in (x for item in relation.items for x in n.walk(item.expression)):
            plain = isinstance(node, (n.Column, n.Literal)) or (
                isinstance(node, n.Call)
                and node.function in ("least", "greatest")
                and type_of(node) == DOUBLE
            )
            if not plain:
                return False
        relation = relation.input
    return isinstance(relation, (n.Released, n.Values)) and all(
        f.type.kind in EASY for f in relation.columns
    )


def _closing(relation: n.Relation, tables: Mapping[str, n.Values]) -> n.Relation:
    """Give what follows the releases, with tables in their places; further columns number their rows."""

    def change(node: n.Node) -> n.Node:
        if not isinstance(node, n.Released):
            return node
        table = tables[node.name]
        if len(node.columns) == len(table.columns):
            return table
        return n.Values(node.columns, tuple((*row, i) for i, row in enumerate(table.rows)))

    return transform(relation, change, n.Released)


def error_of(result: Result, job: ReleasePlan) -> dict[str, object]:
    """Give the ends between which true numbers lie, how far noise moves them, and what limits left out."""
    ends = result.ends or []
    relied = noise_lineage(job)
    usual = ends != (result.certain or [])
    return {
        "level": float(job.level),
        "kind": "usual" if usual else "certain",
        "values": result.errors,
        **_sides(result.ends),
        "certain": _sides(result.certain) if usual else None,
        "not_seen": not_seen(job, result.settled) if usual else None,
        "noise": result.noise,
        "ranks": result.ranks,
        "running": dict(result.running),
        "noisy": [bool(relied.columns[c]) for c in result.columns],
        "leaves_out": leaves_out(job, result.settled, result.agreement),
        **({"undefined": list(result.undefined)} if result.undefined else {}),
    }


def _sides(ends: list[list[Span | None]] | None) -> dict[str, list[list[float | None]] | None]:
    """Give lower and upper ends apart."""
    if ends is None:
        return {"low": None, "high": None}
    low, high = ([[_end(x, side) for x in row] for row in ends] for side in (0, 1))
    return {"low": low, "high": high}


def _end(span: tuple[float, float] | None, side: int) -> float | None:
    return None if span is None or math.isinf(span[side]) else span[side]
