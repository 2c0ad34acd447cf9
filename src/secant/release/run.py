"""Run a prepared query: look up public keys, reserve, compute exact measures, add noise, do the rest, settle.

Values computed from protected rows live only inside `measured` and `_released`, until noise is on them (I5).
"""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Protocol

from secant.analysis.certificate import CannotBound, Certificate, Curve
from secant.analysis.derivative.statement import Instrument, Motion, instrument
from secant.analysis.portfolio import Bounded, Prepared
from secant.errors import InternalError, PolicyError, Refused, over_limit
from secant.plan import nodes as n
from secant.plan.domains import Chosen, Domain, Listed, Looked, Open
from secant.plan.measures import Measure
from secant.plan.rewrite import transform
from secant.plan.typing import fields_of
from secant.plan.values import EXACT
from secant.release.backend import Session
from secant.release.dialect import quote
from secant.release.display import displayed
from secant.release.error import signs_of, trace
from secant.release.intervals import Span
from secant.release.job import (
    Job,
    Keys,
    contributions_of,
    directly_measured,
    numbered,
    survey_name,
    surveys_of,
)
from secant.release.limits import ChosenLimit, race
from secant.release.lower import lower
from secant.release.measured import Measured, measured
from secant.release.ranked import drawn, exact_index, statement_of, stray
from secant.release.reads import reads_of
from secant.release.reliance import reliance
from secant.release.shares import Calibrated, MeasureNoise
from secant.release.stages import placeholders, provided, stage
from secant.release.stated import (
    Bounds,
    Closed,
    half_widths,
    leaves_out,
    stated_ends,
    stated_ranks,
)
from secant.terms.policy import Limits

Rows = Callable[[n.Relation], list[tuple[object, ...]]]
"""How the rows of a plan are computed."""


class Permit(Protocol):
    """A reservation of budget: marked before the first statement over protected rows is sent."""

    def mark_sent(self) -> None:
        """Write down, durably, that a statement is about to be sent (I6)."""
        ...


def plan_release(
    prepared: Prepared, noise: Calibrated, level: Fraction, session: Session, limits: Limits
) -> Job:
    """Print the statements and let the engine bind them; nothing is read."""
    relations: dict[str, n.Relation] = {}
    instruments: dict[str, Instrument] = {}
    for b in prepared.bounded:
        name = b.release.name
        relations |= {statement_of(ranked): ranked.cells for ranked in b.release.ranked}
        relations |= _figures_of(b, noise)
        made = _instrument(b, noise)
        if made is None:
            direct = directly_measured(b, noise)
            if direct.aggregations:  # order statistics alone need their cells only
                relations[name] = direct
            continue
        instruments[name] = made
        relations |= {numbered(name, i): relation for i, relation in enumerate(made.statements)}
    statements = {name: lower(relation, session.dialect) for name, relation in relations.items()}
    noisy: dict[str, int] = {}
    for b in prepared.bounded:
        signs = signs_of(b.release.finish)
        noisy |= {m.column: signs.get(m.column, 0) for m in b.release.measures}
        noisy |= {r.column: 0 for r in b.release.ranked}
    rest = "" if prepared.bounded else lower(prepared.post, session.dialect)
    lacking = {b.release.name for b in prepared.bounded if b.release.selector is not None}
    traced = trace(prepared.post, noisy, frozenset(lacking))
    return Job(
        prepared=prepared,
        noise=noise,
        statements=statements,
        instruments=instruments,
        traced=traced,
        level=level,
        rest=rest,
        groups=limits.groups,
        reads=reads_of(relations.values()),
    )


def _figures_of(b: Bounded, noise: Calibrated) -> dict[str, n.Relation]:
    """Give what is asked besides the measures: surveys of joins, and what units add."""
    name = b.release.name
    relations: dict[str, n.Relation] = {}
    for index, survey in enumerate(surveys_of(b, noise)):
        for number, relation in enumerate(survey.statements):
            relations[survey_name(name, index, number)] = relation
    for index, clipped in enumerate(contributions_of(b, noise)):
        made = next(iter(clipped.values())).contributions
        if made.at_once is not None:
            relations[numbered(f"{name} units", index)] = made.at_once
        else:
            if made.above is not None:
                relations[numbered(f"{name} above", index)] = made.above
            most = {c: x.limits[-1] for c, x in clipped.items() if not x.race}
            if most:
                relations[numbered(f"{name} cut", index)] = made.clipped(most)
        racing = {c: x.limits for c, x in clipped.items() if x.race}
        if racing and made.raced is not None:
            relations[f"{name} race"] = made.raced(racing)
    return relations


def _instrument(b: Bounded, noise: Calibrated) -> Instrument | None:
    """Write measures and the parts of their smooth bounds into common statements."""
    motions: list[Motion] = []
    curved = False
    for measure in b.release.measures:
        made = noise.noise[measure.column]
        if isinstance(made.curve, Curve) and made.beta is not None:
            try:
                motions += made.curve.motions(made.beta)
            except CannotBound as verdict:
                raise Refused(
                    "REF-104", verdict.reason, hint=verdict.hint or "ask with a larger epsilon"
                ) from None
            curved = True
    return instrument(b.release, motions) if curved else None


def check_job(job: Job, session: Session) -> None:
    """Let the engine bind every statement, and hold claims about public tables against public data.

    What follows the releases is bound, too, with NULLs for what is not drawn yet: once a release is paid for, nothing
    may be left that the engine has not accepted. The claims are checked for every release, in the session that answers
    it: a table can change between two.
    """
    not_yet = placeholders({b.release.name: released_fields(b) for b in job.prepared.bounded})
    for statement in job.statements.values():
        session.check(provided(statement, not_yet, session.dialect))
    for relation in job.traced.closing():
        session.check(lower(_closing(relation, not_yet), session.dialect))
    check_claims([c for b in job.prepared.bounded for c in b.certificates], session)


def check_claims(certificates: Sequence[Certificate], session: Session) -> None:
    """Hold claims about keys of public tables against public data."""
    for claim in dict.fromkeys(claim for c in certificates for claim in c.claims):
        _check_key(session, claim.table, claim.columns)


def _check_key(session: Session, table: str, columns: tuple[str, ...]) -> None:
    name, exact = session.catalog().spelled(table, columns)
    names = ", ".join(quote(c) for c in exact)
    found = session.rows(
        f"SELECT 1 FROM {quote(name)} GROUP BY {names} HAVING count(*) > 1 LIMIT 1"
    )
    if found:
        raise PolicyError(
            "POL-004",
            f"the declared key ({', '.join(columns)}) of the public table {table} is not unique",
            hint="correct the key in the policy, or the table",
        )


def look_up_keys(job: Job, session: Session) -> dict[str, Keys | None]:
    """Give for each release the keys that will be shown; None where the release itself will find them."""
    found = {}
    for b in job.prepared.bounded:
        names = [k.name for k in b.release.exact.keys]
        found[b.release.name] = known_keys(names, b.release.domains, job.groups, session)
    return found


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
    keys = []
    for combination in itertools.product(*(rows for _, rows in parts)):
        found = {
            name: value
            for (part, _), row in zip(parts, combination, strict=True)
            for name, value in zip(part, row, strict=True)
        }
        keys.append(tuple(found[name] for name in names))
    return keys


def run(job: Job, keys: Mapping[str, Keys | None], session: Session, permit: Permit) -> Shown:
    """Release everything and finish the query on public numbers."""
    tables: dict[str, n.Values] = {}
    limits: dict[str, ChosenLimit] = {}
    if job.prepared.bounded:
        permit.mark_sent()
    engine = stage(session, tables)
    for b in job.prepared.bounded:
        tables[b.release.name], chosen = _released(b, job, keys[b.release.name], engine)
        limits |= chosen
    return finish(job, tables, from_engine(session), limits)


def unnoised(
    job: Job, keys: Mapping[str, Keys | None], session: Session
) -> tuple[Shown, dict[str, list[Fraction]]]:
    """For the data owner: what a release would show without its noise, and its smooth bounds. Never for an analyst.

    An order statistic has in place of a bound how far its draws stray from the truth, group by group.
    """
    tables: dict[str, n.Values] = {}
    bounds: dict[str, list[Fraction]] = {}
    limits: dict[str, ChosenLimit] = {}
    for b in job.prepared.bounded:
        found = measured(b, job, keys[b.release.name], stage(session, tables))
        columns = [
            [value_of(w, m) for w in _whole_steps(found, m, job)] for m in b.release.measures
        ]
        for r in b.release.ranked:
            noise, groups = job.noise.ranks[r.column], found.cells[r.column]
            nearest = [exact_index(r, cells) for cells in groups]
            columns.append([None if i is None else r.grid.value(i, r.type) for i in nearest])
            bounds[r.column] = [stray(r, noise, cells, job.level) for cells in groups]
        tables[b.release.name] = _table(b, job, found.keys, columns)
        bounds |= {c: list(values) for c, values in found.bounds.items()}
        bounds |= {c: [Fraction(x.limit)] * len(found.keys) for c, x in found.chosen.items()}
        limits |= found.chosen
    return finish(job, tables, from_engine(session), limits, bounds), bounds


def _whole_steps(found: Measured, measure: Measure, job: Job) -> list[int]:
    clipped = job.noise.noise[measure.column].clipped
    whole = found.whole[measure.column]
    return whole if clipped is None else _coarse(whole, clipped.fine)


def _released(
    b: Bounded, job: Job, keys: Keys | None, session: Session
) -> tuple[n.Values, Mapping[str, ChosenLimit]]:
    """Compute one release: exact measures inside, noisy ones outside, and the limits that were chosen privately."""
    found = measured(b, job, keys, session)
    shown = found.keys
    start: dict[str, list[int]] = {}
    chosen = list(range(len(shown)))
    if b.release.selector is not None and keys is None:
        chosen, start = _choose(b, job, found)
    columns: list[list[object]] = []
    for measure in b.release.measures:
        if measure.column in start:
            noisy = start[measure.column]
        elif measure.column in found.races:
            made = job.noise.noise[measure.column]
            assert made.clipped is not None
            several = [[one[i] for i in chosen] for one in found.races[measure.column]]
            noisy = race(made.clipped.limits, several, made.racing)
        else:
            whole = [found.whole[measure.column][i] for i in chosen]
            bounds = found.bounds.get(measure.column)
            noisy = _noisy(
                job.noise.noise[measure.column],
                whole,
                bounds and [bounds[i] for i in chosen],
                found.chosen.get(measure.column),
            )
        columns.append([value_of(m, measure) for m in noisy])
    for ranked in b.release.ranked:
        choice, groups = job.noise.ranks[ranked.column], found.cells[ranked.column]
        columns.append([drawn(ranked, choice, groups[i]) for i in chosen])
    return _table(b, job, [shown[i] for i in chosen], columns), found.chosen


def _noisy(
    noise: MeasureNoise,
    whole: list[int],
    bounds: list[Fraction] | None,
    limit: ChosenLimit | None,
) -> list[int]:
    if noise.smooth is not None:
        if bounds is None and not isinstance(noise.curve, Curve):
            raise InternalError("BUG-001", "a survey has no figures")
        exact_bounds = bounds if bounds is not None else [Fraction(0)] * len(whole)
        return [
            int(noise.smooth.draw(value, bound + noise.widening))
            for value, bound in zip(whole, exact_bounds, strict=True)
        ]
    if not whole:
        return whole
    law = noise.law(None if limit is None else limit.limit)
    if law is None:
        if not noise.still:
            raise InternalError("BUG-001", "a measure that moves has no noise")
        return whole
    fine = 1 if noise.clipped is None else noise.clipped.fine
    return _coarse(law.finer(fine).add(whole), fine)


def _coarse(parts: list[int], fine: int) -> list[int]:
    """Round parts of steps to whole steps, once noise is on them."""
    return [(2 * x + fine) // (2 * fine) for x in parts]


def _table(b: Bounded, job: Job, shown: Keys, columns: list[list[object]]) -> n.Values:
    if len(shown) > job.groups:
        raise over_limit()
    rows = tuple((*key, *(column[i] for column in columns)) for i, key in enumerate(shown))
    return n.Values(released_fields(b), rows)


def _choose(b: Bounded, job: Job, found: Measured) -> tuple[list[int], dict[str, list[int]]]:
    """Show the keys whose noisy number of units reaches the threshold, in the order of the keys."""
    choice = job.noise.choices[b.release.name]
    assert b.release.selector is not None
    counts = found.whole[b.release.selector]
    law = job.noise.noise[b.release.selector].law()
    noisy = counts if law is None else law.add(counts)
    kept = [(i, count) for i, count in enumerate(noisy) if count >= choice.threshold]
    return [i for i, _ in kept], {b.release.selector: [count for _, count in kept]}


def value_of(whole: int, measure: Measure) -> object:
    """Give a noisy measure as a value of its type; noise beyond all that an engine can write ends there."""
    kind = measure.type
    if kind.kind == "DOUBLE":
        reach = Fraction(sys.float_info.max)
        return float(max(-reach, min(reach, whole * measure.step)))
    most = 2**127 - 1 if kind.kind == "INTEGER" else 10**kind.precision - 1
    within = max(-most, min(most, whole))
    return within if kind.kind == "INTEGER" else Decimal(within).scaleb(-kind.scale, EXACT)


def released_fields(b: Bounded) -> tuple[n.Field, ...]:
    """Give the columns of the table that is released: keys, then measures."""
    released = b.release.finish.input
    assert isinstance(released, n.Released)
    return released.columns


@dataclass(frozen=True, slots=True)
class Shown:
    """Rows as the analyst sees them, and the error beside each number."""

    columns: tuple[str, ...]
    rows: list[tuple[object, ...]]
    ends: list[list[Span | None]] | None
    """Beside each number the ends between which the true one lies; None where no row is noisy."""
    noise: list[list[float | None]] | None
    """Beside each number how far noise alone moved it at most."""
    limits: Mapping[str, ChosenLimit] = field(default_factory=dict)
    """Measure column -> the limit of what one unit adds, where it was chosen privately. Public."""
    groups: Mapping[str, int] = field(default_factory=dict)
    """Release name -> how many groups it has."""
    ranks: list[list[float | None]] | None = None
    """Beside each order statistic by how many rows it is off at most."""
    raw: list[tuple[object, ...]] | None = None
    """The rows as noise made them, where the shown ones were moved to where the truth can lie."""

    @property
    def errors(self) -> list[list[float | None]] | None:
        """Beside each number how far the true one is at most, to whichever side."""
        return None if self.ends is None else half_widths(self.rows, self.ends)


def finish(
    job: Job,
    tables: Mapping[str, n.Values],
    rows_of: Rows,
    limits: Mapping[str, ChosenLimit],
    bounds: Bounds | None = None,
) -> Shown:
    """Put the released tables into the rest of the plan and run it on public numbers.

    `limits` were chosen privately; `bounds`, for the owner's errors only, are the values of smooth bounds.
    """
    traced = job.traced
    first, *others = traced.closing()
    names, rows = _run(first, tables, rows_of)
    width = len(traced.outputs)
    shown = [tuple(row[:width]) for row in rows]
    if not job.prepared.bounded:
        return Shown(traced.outputs, shown, None, None)
    inside: dict[n.Relation, list[Mapping[str, object]]] = {}
    for relation in others:
        columns, found = _run(relation, tables, rows_of)
        inside[relation] = [dict(zip(columns, row, strict=True)) for row in found]
    groups = {name: len(table.rows) for name, table in tables.items()}
    ends, alone = stated_ends(job, Closed(names, rows, inside, groups), limits, bounds)
    ranks = stated_ranks(job, len(shown))
    shown, raw, (ends, alone) = displayed(traced, names, rows, ends, alone)
    noise = half_widths(shown, alone)
    return Shown(traced.outputs, shown, ends, noise, limits, groups, ranks, raw)


def _run(
    relation: n.Relation, tables: Mapping[str, n.Values], rows_of: Rows
) -> tuple[tuple[str, ...], list[tuple[object, ...]]]:
    plan = _closing(relation, tables)
    names = tuple(f.name for f in fields_of(plan))
    # An engine has no rows without columns, and is asked for a constant there.
    return names, [row[: len(names)] for row in rows_of(plan)]


def from_engine(session: Session) -> Rows:
    """Let the engine compute what follows the releases."""
    return lambda plan: session.rows(lower(plan, session.dialect))


def _closing(relation: n.Relation, tables: Mapping[str, n.Values]) -> n.Relation:
    """Give what follows the releases, with tables in their places; further columns number their rows."""

    def change(node: n.Node) -> n.Node:
        if not isinstance(node, n.Released):
            return node
        table = tables[node.name]
        if len(node.columns) == len(table.columns):
            return table
        return n.Values(node.columns, tuple((*row, i) for i, row in enumerate(table.rows)))

    return transform(relation, change)


def error_of(shown: Shown, job: Job) -> dict[str, object]:
    """Give the ends between which true numbers lie, how far noise moves them, and what limits left out."""
    ends = shown.ends or []
    relied = reliance(job)
    return {
        "level": float(job.level),
        "values": shown.errors,
        "low": None if shown.ends is None else [[_end(x, 0) for x in row] for row in ends],
        "high": None if shown.ends is None else [[_end(x, 1) for x in row] for row in ends],
        "noise": shown.noise,
        "ranks": shown.ranks,
        "noisy": [bool(relied.columns[c]) for c in shown.columns],
        "leaves_out": leaves_out(job, shown.limits),
    }


def _end(span: tuple[float, float] | None, side: int) -> float | None:
    return None if span is None or math.isinf(span[side]) else span[side]
