"""Exact measures and smooth bounds of one release: values computed from protected rows, noise not yet on them (I5).

In: a job, the keys to show, an engine. Out: whole numbers and bounds, group by group, all private. A limit of what one
unit adds is the one thing that is drawn here: the measures themselves depend on it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

from secant.analysis.certificate import Curve, Surveyed
from secant.analysis.derivative.statement import Instrument
from secant.analysis.portfolio import Bounded
from secant.errors import InternalError
from secant.plan import nodes as n
from secant.plan.domains import Listed
from secant.plan.measures import Measure
from secant.plan.typing import fields_of
from secant.release.backend import Session
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
from secant.release.limits import ChosenLimit, choose_limits
from secant.release.lower import lower
from secant.release.ranked import Cells, read_cells, statement_of
from secant.release.shares import SLACK


@dataclass(frozen=True, slots=True)
class Measured:
    """Exact measures and smooth bounds, private, for the groups that are shown or may be chosen."""

    keys: Keys
    whole: Mapping[str, list[int]]
    """Measure column -> whole steps; where units are cut down, parts of steps (`Clipped.fine`)."""
    bounds: Mapping[str, list[Fraction]]
    races: Mapping[str, list[list[int]]]
    """Measure column -> the measure cut down to each limit that races, group by group."""
    cells: Mapping[str, list[Cells]]
    """Column of an order statistic -> the counted cells of each group."""
    chosen: Mapping[str, ChosenLimit]
    """Measure column -> the limit of what one unit adds, where it was chosen privately. Public."""


def measured(b: Bounded, job: Job, keys: Keys | None, session: Session) -> Measured:
    """Run the statements of one release."""
    name = b.release.name
    width = len(b.release.exact.keys)
    direct = directly_measured(b, job.noise)
    exact = _grouped(job.statements[name], width, session) if direct.aggregations else {}
    shown = keys
    if shown is None:
        allowed = _listed_parts(b)
        shown = sorted(
            (original for original, _ in exact.values() if allowed(original)),
            key=lambda key: tuple(order_of_keys(v) for v in key),
        )
    places = {call.name: index for index, call in enumerate(direct.aggregations)}
    whole = {
        m.column: [_whole(exact, key, places[m.column], m) for key in shown]
        for m in b.release.measures
        if m.column in places
    }
    made = job.instruments.get(name)
    bounds = {} if made is None else _bounds(b, job, made, exact, shown, session)
    bounds |= _surveyed(b, job, shown, session)
    # How many keys there are is public only where they are known beforehand.
    cut, chosen = _cut(b, job, shown, 1 if keys is None else len(keys), session)
    whole |= cut
    races = _raced(b, job, shown, session)
    whole |= {column: several[-1] for column, several in races.items()}
    return Measured(shown, whole, bounds, races, _cells(b, job, shown, session), chosen)


def _grouped(
    statement: str, width: int, session: Session
) -> dict[tuple[object, ...], tuple[tuple[object, ...], tuple[object, ...]]]:
    """Run a statement that has one row for each key."""
    found = session.rows(statement)
    exact = _by_key(found, width)
    if len(exact) != len(found):
        raise InternalError("BUG-001", "two groups have the same key")
    return exact


def _surveyed(b: Bounded, job: Job, shown: Keys, session: Session) -> dict[str, list[Fraction]]:
    """Give the smooth bounds of measures whose joins are surveyed, in whole steps, group by group."""
    found: dict[str, list[Fraction]] = {}
    figures: list[Any] = []
    width = len(b.release.exact.keys)
    asked = surveys_of(b, job.noise)
    for index, survey in enumerate(asked):
        results = []
        for number, keyed in enumerate(survey.keyed):
            rows = session.rows(job.statements[survey_name(b.release.name, index, number)])
            results.append(_figures(rows, width if keyed else None))
        figures.append(results)
    for measure in b.release.measures:
        noise = job.noise.noise[measure.column]
        bound = noise.curve
        if not isinstance(bound, Surveyed) or noise.beta is None:
            continue
        values = []
        for key in shown:
            place = tuple(comparable_key(v) for v in key)
            rows_each = [
                survey.rows(noise.beta, tuple(r(place) for r in results))
                for survey, results in zip(asked, figures, strict=True)
                if any(survey is one for one in bound.surveys)
            ]
            least = bound.each * min(rows_each)
            values.append(least if bound.cap is None else min(least, bound.cap))
        found[measure.column] = values
    return found


def _figures(rows: list[tuple[object, ...]], width: int | None) -> Any:
    """Give a function from a group's key to its figures; without keys, all figures serve every group."""
    if width is None:
        everything = tuple(rows)
        return lambda key: everything
    by_key: dict[tuple[object, ...], list[tuple[object, ...]]] = {}
    for row in rows:
        by_key.setdefault(tuple(comparable_key(v) for v in row[:width]), []).append(row[width:])
    return lambda key: tuple(by_key.get(key, ()))


def _cut(
    b: Bounded, job: Job, shown: Keys, groups: int, session: Session
) -> tuple[dict[str, list[int]], dict[str, ChosenLimit]]:
    """Choose limits privately, and measure with every unit's additions cut down to them."""
    whole: dict[str, list[int]] = {}
    chosen: dict[str, ChosenLimit] = {}
    measures = {m.column: m for m in b.release.measures}
    for number, clipped in enumerate(contributions_of(b, job.noise)):
        made = next(iter(clipped.values())).contributions
        wanted = {c: x for c, x in clipped.items() if not x.race}
        several = {c: x for c, x in wanted.items() if len(x.limits) > 1}
        noises = {c: job.noise.noise[c] for c in several}
        epsilons = {c: (x.choosing, x.epsilon - x.choosing) for c, x in noises.items()}
        alone = {c: x.limits[0] for c, x in wanted.items()}
        if made.at_once is not None:
            found = _named(made.at_once, job, numbered(f"{b.release.name} units", number), session)
            chosen |= choose_limits(several, found, epsilons, groups)
            alone |= {c: chosen[c].limit for c in several}
            for c, x in wanted.items():
                value = found[f"{c}.limit{x.limits.index(alone[c])}"]
                whole[c] = [x.fine * in_steps(value, measures[c])] * len(shown)
        elif wanted:
            if several and made.above is not None:
                name = numbered(f"{b.release.name} above", number)
                above = _named(made.above, job, name, session)
                chosen |= choose_limits(several, above, epsilons, groups)
                alone |= {c: chosen[c].limit for c in several}
            plan = made.clipped(alone)
            exact = _grouped(lower(plan, session.dialect), len(b.release.exact.keys), session)
            whole |= {
                call.name: [_whole(exact, key, index, measures[call.name]) for key in shown]
                for index, call in enumerate(plan.aggregations)
            }
    return whole, chosen


def _named(plan: n.Aggregate, job: Job, statement: str, session: Session) -> dict[str, object]:
    """Run a statement without keys, and give its one row by name."""
    (row,) = session.rows(job.statements[statement])
    return {call.name: value for call, value in zip(plan.aggregations, row, strict=True)}


def _raced(b: Bounded, job: Job, shown: Keys, session: Session) -> dict[str, list[list[int]]]:
    """Measure with every unit's additions cut down to each of the limits that race."""
    racing = {c: x for c, x in clipped_of(b, job.noise).items() if x.race}
    if not racing:
        return {}
    exact = _grouped(job.statements[f"{b.release.name} race"], len(b.release.exact.keys), session)
    measures = {m.column: m for m in b.release.measures}
    found: dict[str, list[list[int]]] = {}
    place = 0
    for column, bound in racing.items():
        found[column] = [
            [_whole(exact, key, place + index, measures[column]) for key in shown]
            for index in range(len(bound.limits))
        ]
        place += len(bound.limits)
    return found


def _by_key(rows: list[tuple[object, ...]], width: int) -> dict[tuple[object, ...], Any]:
    """Give rows by their keys in a form that can be compared: keys as they came, and what follows them."""
    return {
        tuple(comparable_key(v) for v in row[:width]): (row[:width], row[width:]) for row in rows
    }


def _cells(b: Bounded, job: Job, shown: Keys, session: Session) -> dict[str, list[Cells]]:
    """Run the statements that count cells, once each; a group that is not there has no rows."""
    counted: dict[str, dict[tuple[object, ...], Cells]] = {}
    found = {}
    for ranked in b.release.ranked:
        statement = statement_of(ranked)
        if statement not in counted:
            rows = session.rows(job.statements[statement])
            counted[statement] = read_cells(
                rows, ranked.grid, lambda k: tuple(map(comparable_key, k))
            )
        groups = counted[statement]
        found[ranked.column] = [groups.get(tuple(map(comparable_key, key)), ()) for key in shown]
    return found


def _bounds(
    b: Bounded,
    job: Job,
    made: Instrument,
    exact: Mapping[tuple[object, ...], Any],
    shown: Keys,
    session: Session,
) -> dict[str, list[Fraction]]:
    """Put the parts of every smooth bound together, in whole steps, rounded up."""
    name, width = b.release.name, len(b.release.exact.keys)
    tables: list[Mapping[tuple[object, ...], Any]] = [exact]
    for index in range(1, len(made.statements)):
        rows = session.rows(job.statements[numbered(name, index)])
        tables.append(_by_key(rows, width))
    places = [
        {f.name: i for i, f in enumerate(fields_of(relation)[width:])}
        for relation in made.statements
    ]
    found: dict[str, list[Fraction]] = {}
    for column, parts in made.parts.items():
        curve = job.noise.noise[column].curve
        assert isinstance(curve, Curve)
        values = []
        for key in shown:
            by_role: dict[str, Fraction] = {}
            for part in parts:
                row = tables[part.statement].get(tuple(comparable_key(v) for v in key))
                number = None if row is None else row[1][places[part.statement][part.column]]
                found_part = part.total(number) * curve.factor * (1 + SLACK)
                least = curve.floors.get(part.role, Fraction(0)) if part.floored else Fraction(0)
                by_role[part.role] = max(found_part, least)
            bound = curve.space.reach(by_role)
            values.append(bound if curve.cap is None else min(bound, curve.cap))
        found[column] = values
    return found


def order_of_keys(value: object) -> tuple[bool, str, Any]:
    """Give a total order of keys: where a NaN or a NULL stands must not depend on the other rows."""
    nothing = value is None or value != value
    return nothing, type(value).__name__, 0 if nothing else value


def _listed_parts(b: Bounded) -> Any:
    """Keys with a list keep to it also when other keys are chosen."""
    names = [k.name for k in b.release.exact.keys]
    lists = {
        d.key: {comparable_key(v) for v in d.values}
        for d in b.release.domains
        if isinstance(d, Listed)
    }

    def allowed(key: tuple[object, ...]) -> bool:
        return all(
            comparable_key(v) in lists[c] for c, v in zip(names, key, strict=True) if c in lists
        )

    return allowed


def comparable_key(value: object) -> object:
    """Make keys from the engine and from the policy comparable: 1, 1.0 and Decimal('1') are one key."""
    if isinstance(value, (int, float, Decimal)) and not isinstance(value, bool):
        return Fraction(value) if value == value and abs(value) != float("inf") else str(value)
    return value


def _whole(
    exact: Mapping[tuple[object, ...], Any], key: tuple[object, ...], index: int, measure: Measure
) -> int:
    """Read an exact measure as a whole number of steps; a group that is not there has none."""
    found = exact.get(tuple(comparable_key(v) for v in key))
    return in_steps(found[1][index] if found is not None else None, measure)


def in_steps(value: Any, measure: Measure) -> int:
    """Read a number that the engine gave; nothing was there to add up where it is NULL."""
    if value is None:
        return 0
    if measure.type.kind == "DOUBLE":
        return int(value)  # the statement already sums whole multiples
    return int(Fraction(value) / measure.step)
