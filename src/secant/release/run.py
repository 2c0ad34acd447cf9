"""Run a prepared query: look up public keys, reserve, compute exact measures, add noise, do the rest, settle.

Values computed from protected rows live only inside `measured` and `_released`, until noise is on them (I5).
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Protocol

from secant.analysis.certificate import CannotBound, Curve
from secant.analysis.derivative.statement import Instrument, Motion, instrument
from secant.analysis.portfolio import Bounded, Prepared
from secant.errors import InternalError, PolicyError, Refused, over_limit
from secant.mechanisms.discrete_laplace import add_discrete_laplace, discrete_laplace_error
from secant.plan import nodes as n
from secant.plan.domains import Chosen, Listed, Looked, Open
from secant.plan.measures import Measure
from secant.plan.rewrite import columns_of, transform
from secant.plan.typing import fields_of
from secant.plan.values import EXACT
from secant.release.backend import Session
from secant.release.dialect import quote
from secant.release.error import half_width, trace
from secant.release.job import (
    Job,
    Keys,
    clipped_of,
    contributions_of,
    directly_measured,
    numbered,
    survey_name,
    surveys_of,
)
from secant.release.limits import race
from secant.release.lower import lower
from secant.release.measured import Measured, measured
from secant.release.ranked import drawn, exact_index, statement_of, stray
from secant.release.shares import Calibrated, MeasureNoise
from secant.release.stages import placeholders, provided, reads_released, stage
from secant.terms.policy import Limits


class Permit(Protocol):
    """A reservation of budget: marked before the first statement over protected rows is sent."""

    def mark_sent(self) -> None:
        """Write down, durably, that a statement is about to be sent (I6)."""
        ...


def plan_release(
    prepared: Prepared, noise: Calibrated, level: Fraction, session: Session, limits: Limits
) -> Job:
    """Print the statements and let the engine bind them; nothing is read."""
    statements: dict[str, str] = {}
    instruments: dict[str, Instrument] = {}
    for b in prepared.bounded:
        name = b.release.name
        for ranked in b.release.ranked:
            if statement_of(ranked) not in statements:
                statements[statement_of(ranked)] = lower(ranked.cells, session.dialect)
        statements |= _figures_of(b, noise, session)
        made = _instrument(b, noise)
        if made is None:
            direct = directly_measured(b, noise)
            if direct.aggregations:  # order statistics alone need their cells only
                statements[name] = lower(direct, session.dialect)
            continue
        instruments[name] = made
        for index, relation in enumerate(made.statements):
            statements[numbered(name, index)] = lower(relation, session.dialect)
    noisy = frozenset(m.column for b in prepared.bounded for m in b.release.measures)
    rest = "" if prepared.bounded else lower(prepared.post, session.dialect)
    traced = trace(prepared.post, noisy)
    return Job(prepared, noise, statements, instruments, traced, level, rest, limits.groups)


def _figures_of(b: Bounded, noise: Calibrated, session: Session) -> dict[str, str]:
    """Print what is asked besides the measures: surveys of joins, and what units add."""
    name = b.release.name
    statements = {}
    for index, survey in enumerate(surveys_of(b, noise)):
        for number, relation in enumerate(survey.statements):
            statements[survey_name(name, index, number)] = lower(relation, session.dialect)
    for index, clipped in enumerate(contributions_of(b, noise)):
        made = next(iter(clipped.values())).contributions
        if made.at_once is not None:
            statements[numbered(f"{name} units", index)] = lower(made.at_once, session.dialect)
        else:
            if made.above is not None:
                statements[numbered(f"{name} above", index)] = lower(made.above, session.dialect)
            most = {c: x.limits[-1] for c, x in clipped.items() if not x.race}
            if most:
                written = lower(made.clipped(most), session.dialect)
                statements[numbered(f"{name} cut", index)] = written
        racing = {c: x.limits for c, x in clipped.items() if x.race}
        if racing and made.raced is not None:
            statements[f"{name} race"] = lower(made.raced(racing), session.dialect)
    return statements


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
    not_yet = placeholders({b.release.name: _fields(b) for b in job.prepared.bounded})
    for statement in job.statements.values():
        session.check(provided(statement, not_yet, session.dialect))
    session.check(lower(_closing(job, not_yet), session.dialect))
    certificates = [c for b in job.prepared.bounded for c in b.certificates]
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
    return {b.release.name: _keys(b, job.groups, session) for b in job.prepared.bounded}


def _keys(b: Bounded, most: int, session: Session) -> Keys | None:
    names = [k.name for k in b.release.exact.keys]
    parts: list[tuple[tuple[str, ...], list[tuple[object, ...]]]] = []
    count = 1
    for domain in b.release.domains:
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
    limits: dict[str, list[Fraction]] = {}
    if job.prepared.bounded:
        permit.mark_sent()
    engine = stage(session, tables)
    for b in job.prepared.bounded:
        tables[b.release.name], chosen = _released(b, job, keys[b.release.name], engine)
        limits |= chosen
    return finish(job, tables, session, limits)


def unnoised(
    job: Job, keys: Mapping[str, Keys | None], session: Session
) -> tuple[Shown, dict[str, list[Fraction]]]:
    """For the data owner: what a release would show without its noise, and its smooth bounds. Never for an analyst.

    An order statistic has in place of a bound how far its draws stray from the truth, group by group.
    """
    tables: dict[str, n.Values] = {}
    bounds: dict[str, list[Fraction]] = {}
    for b in job.prepared.bounded:
        found = measured(b, job, keys[b.release.name], stage(session, tables))
        columns = [[_value(w, m) for w in found.whole[m.column]] for m in b.release.measures]
        for r in b.release.ranked:
            noise, groups = job.noise.ranks[r.column], found.cells[r.column]
            nearest = [exact_index(r, cells) for cells in groups]
            columns.append([None if i is None else r.grid.value(i, r.type) for i in nearest])
            bounds[r.column] = [stray(r, noise, cells, job.level) for cells in groups]
        tables[b.release.name] = _table(b, job, found.keys, columns)
        bounds |= {c: list(values) for c, values in found.bounds.items()}
    return finish(job, tables, session, bounds), bounds


def _released(
    b: Bounded, job: Job, keys: Keys | None, session: Session
) -> tuple[n.Values, dict[str, list[Fraction]]]:
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
                job.noise.noise[measure.column], whole, bounds and [bounds[i] for i in chosen]
            )
        columns.append([_value(m, measure) for m in noisy])
    for ranked in b.release.ranked:
        choice, groups = job.noise.ranks[ranked.column], found.cells[ranked.column]
        columns.append([drawn(ranked, choice, groups[i]) for i in chosen])
    limits = {
        c: found.bounds[c][:1] for c in clipped_of(b, job.noise) if job.noise.noise[c].choosing
    }
    return _table(b, job, [shown[i] for i in chosen], columns), limits


def _noisy(noise: MeasureNoise, whole: list[int], bounds: list[Fraction] | None) -> list[int]:
    if noise.smooth is not None:
        if bounds is None and not isinstance(noise.curve, Curve):
            raise InternalError("BUG-001", "a survey has no figures")
        exact_bounds = bounds if bounds is not None else [Fraction(0)] * len(whole)
        return [
            int(noise.smooth.draw(value, bound + noise.widening))
            for value, bound in zip(whole, exact_bounds, strict=True)
        ]
    if noise.choosing:
        if not whole:
            return whole
        assert bounds is not None, "a limit was chosen"
        return add_discrete_laplace(whole, scale=noise.scale_for(bounds[0]))
    if noise.scale is None:
        if not noise.still:
            raise InternalError("BUG-001", "a measure that moves has no noise")
        return whole
    return add_discrete_laplace(whole, scale=noise.scale)


def _table(b: Bounded, job: Job, shown: Keys, columns: list[list[object]]) -> n.Values:
    if len(shown) > job.groups:
        raise over_limit()
    rows = tuple((*key, *(column[i] for column in columns)) for i, key in enumerate(shown))
    return n.Values(_fields(b), rows)


def _choose(b: Bounded, job: Job, found: Measured) -> tuple[list[int], dict[str, list[int]]]:
    """Show the keys whose noisy number of units reaches the threshold, in the order of the keys."""
    choice = job.noise.choices[b.release.name]
    assert b.release.selector is not None
    counts = found.whole[b.release.selector]
    scale = job.noise.noise[b.release.selector].scale
    noisy = counts if scale is None else add_discrete_laplace(counts, scale=scale)
    kept = [(i, count) for i, count in enumerate(noisy) if count >= choice.threshold]
    return [i for i, _ in kept], {b.release.selector: [count for _, count in kept]}


def _value(whole: int, measure: Measure) -> object:
    """Give a noisy measure as a value of its type; noise beyond all that an engine can write ends there."""
    kind = measure.type
    if kind.kind == "DOUBLE":
        reach = Fraction(sys.float_info.max)
        return float(max(-reach, min(reach, whole * measure.step)))
    most = 2**127 - 1 if kind.kind == "INTEGER" else 10**kind.precision - 1
    within = max(-most, min(most, whole))
    return within if kind.kind == "INTEGER" else Decimal(within).scaleb(-kind.scale, EXACT)


def _fields(b: Bounded) -> tuple[n.Field, ...]:
    released = b.release.finish.input
    assert isinstance(released, n.Released)
    return released.columns


@dataclass(frozen=True, slots=True)
class Shown:
    """Rows as the analyst sees them, and the error beside each number."""

    columns: tuple[str, ...]
    rows: list[tuple[object, ...]]
    errors: list[list[float | None]] | None
    limits: Mapping[str, Fraction] = field(default_factory=dict)
    """Measure column -> the limit of what one unit adds, in whole steps, where it was chosen privately. Public."""


Bounds = Mapping[str, list[Fraction]]


def finish(
    job: Job, tables: Mapping[str, n.Values], session: Session, bounds: Bounds | None = None
) -> Shown:
    """Put the released tables into the rest of the plan and run it on public numbers.

    `bounds` are limits that were chosen privately, and, for the owner's errors only, the values of smooth bounds.
    """
    traced = job.traced
    plan = _closing(job, tables)
    names = [f.name for f in fields_of(plan)]
    rows = session.rows(lower(plan, session.dialect))
    width = len(traced.outputs)
    shown = [tuple(row[:width]) for row in rows]
    if not job.prepared.bounded:
        return Shown(traced.outputs, shown, None)
    limits = {
        column: found[0]
        for column, found in (bounds or {}).items()
        if found and column in job.noise.noise and job.noise.noise[column].choosing
    }
    return Shown(traced.outputs, shown, _errors(job, names, rows, bounds), limits)


def _closing(job: Job, tables: Mapping[str, n.Values]) -> n.Relation:
    """Give what follows the releases, with tables in their places."""

    def change(node: n.Node) -> n.Node:
        return tables[node.name] if isinstance(node, n.Released) else node

    return transform(job.traced.plan, change)


def _errors(
    job: Job, names: list[str], rows: list[tuple[object, ...]], bounds: Bounds | None
) -> list[list[float | None]]:
    measures = {m.column: m for b in job.prepared.bounded for m in b.release.measures}
    ranked = {r.column for b in job.prepared.bounded for r in b.release.ranked}
    # How far noise of an earlier release leads a later one from the truth, the data decide, too.
    ranked |= {
        m.column
        for b in job.prepared.bounded
        if any(map(reads_released, b.release.aggregates))
        for m in b.release.measures
    }
    made: dict[str, tuple[n.Scalar | None, dict[str, float | None]]] = {}
    for output in job.traced.outputs:
        scalar = job.traced.made_of.get(output)
        if scalar is not None and columns_of(scalar) & ranked:
            made[output] = (None, {})  # how far a rank is in value, the data decide
            continue
        used = sorted(columns_of(scalar) & set(measures)) if scalar is not None else []
        level = 1 - (1 - job.level) / max(1, len(used))
        made[output] = (scalar, {c: _error(job, measures[c], level, bounds) for c in used})
    found = []
    for row in rows:
        values = dict(zip(names, row, strict=True))
        found.append([_cell(values, output, *made[output]) for output in job.traced.outputs])
    return found


def _error(job: Job, measure: Measure, level: Fraction, bounds: Bounds | None) -> float | None:
    """Give how far noise moves a measure at a level, from public facts; None where the data decide."""
    noise = job.noise.noise[measure.column]
    if noise.racing:
        return None  # how far the winner is below the truth, the data decide
    if noise.choosing:
        chosen = (bounds or {}).get(measure.column)
        if not chosen:
            return None
        limited = noise.scale_for(chosen[0])
        return float(discrete_laplace_error(limited, level) * measure.step)
    if noise.smooth is not None:
        private = (bounds or {}).get(measure.column)
        if private is not None:
            most = max(private, default=Fraction(0)) + noise.widening
            return float(noise.smooth.error(level) * most * measure.step)
        return public_error(noise, level, measure) if _exact(job, measure) else None
    scale = noise.scale
    return 0.0 if scale is None else float(discrete_laplace_error(scale, level) * measure.step)


def public_error(noise: MeasureNoise, level: Fraction, measure: Measure) -> float | None:
    """Give the most that smooth noise moves a measure at a level, by its public cap; None without one."""
    if noise.smooth is None or noise.cap is None:
        return None
    most = noise.cap + noise.widening
    return float(noise.smooth.error(level) * most * measure.step)


def _exact(job: Job, measure: Measure) -> bool:
    """Whether no filter of the measure was softened beyond the steps that values move in."""
    return all(
        b.softened is None or b.softened.exact
        for b in job.prepared.bounded
        if measure in b.release.measures
    )


def _cell(
    values: Mapping[str, object],
    output: str,
    scalar: n.Scalar | None,
    errors: Mapping[str, float | None],
) -> float | None:
    if scalar is None or not errors:
        return None
    measured = {}
    for column, error in errors.items():
        value = values.get(column)
        if error is None or not isinstance(value, (int, float, Decimal)):
            return None
        measured[column] = (float(value), error)
    return half_width(scalar, values[output], measured, values)
