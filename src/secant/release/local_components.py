"""For the data owner only: how far each part moves an answer on the rows that are there, beside what is public of it.

In: a job and an engine. Out: for one row of a table, for each column that a norm names, and for the rows with each
listed value of a column, the most that it moves a measure here. Not private: `secant inspect` shows it to nobody else.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

from secant.engines.backend import Session
from secant.engines.print.print_sql import lower
from secant.plan import nodes as n
from secant.plan.facts.facts import Facts
from secant.plan.facts.reads import scans
from secant.plan.rewrites.enforce import MeasuredAggregate
from secant.plan.rewrites.measures import Measure
from secant.plan.typing import fields_of, type_of
from secant.policy.policy import Policy, Protection
from secant.release.components import Component, Subset, component, parts_of, subsets_of
from secant.release.measured import in_steps
from secant.release.release_plan import ReleasePlan
from secant.sensitivity.bound import CertifiedRelease
from secant.sensitivity.certificate import CannotBound, Certificate, SmoothSensitivity, is_still
from secant.sensitivity.derivative.statement import instrument

KEY = "part of rows"
SMOOTHNESS = 20
"""Epsilon over beta where the release itself has no smooth noise: slopes are then told almost as they are."""
Here = dict[object, Fraction]
"""Value of the column that tells rows apart, None for all of them -> the most that a row of it moves the measure."""


def local_components(
    job: ReleasePlan,
    protections: tuple[Protection, ...],
    policy: Policy,
    session: Session,
    requested: bool,
) -> tuple[Component, ...]:
    """Give all parts with what they do on the rows that are there, where one row stands in one joined row."""
    components: list[Component] = []
    if not requested:
        return ()
    facts = Facts(policy, session.catalog())
    for b in job.prepared.bounded:
        if any(isinstance(x, n.Released) for x in n.walk(b.release.exact)):
            continue  # it reads what is drawn before it
        for protection in protections:
            for part in parts_of(b, protection, facts):
                for m, call in zip(b.release.measures, b.release.exact.aggregations, strict=True):
                    subsets = subsets_of(b, protection, part.table, facts)
                    whole = component(m, protection, part)
                    seen = _seen(b, part.certificate, m, call, job, session, None)
                    if seen is None or part.table is None:
                        components.append(whole)
                        continue
                    components.append(replace(whole, here=_change(seen, None, m)))
                    for column in dict.fromkeys(s.column for s in subsets):
                        chosen = [s for s in subsets if s.column == column]
                        seen = _seen(b, part.certificate, m, call, job, session, chosen[0])
                        for subset in chosen if seen is not None else ():
                            assert seen is not None
                            here = _change(seen, subset.value, m)
                            components.append(
                                replace(component(m, protection, part, subset), here=here)
                            )
    return tuple(components)


def _change(seen: Here, value: object, measure: Measure) -> float:
    return float(seen.get(value, Fraction(0)) * measure.step)


def _seen(
    b: CertifiedRelease,
    certificate: Certificate | None,
    measure: Measure,
    call: n.Aggregation,
    job: ReleasePlan,
    session: Session,
    subset: Subset | None,
) -> Here | None:
    """Measure what a part does, by the values of a column; None where no rule says how."""
    bound = None if certificate is None else certificate.bounds.get(measure.column)
    release = _split(b.release, subset)
    if bound is None or certificate is None or release is None:
        return None
    if is_still(bound):
        return {}
    if isinstance(bound, SmoothSensitivity):
        noise = job.noise.noise[measure.column]
        beta = getattr(noise, "beta", None) or noise.epsilon / SMOOTHNESS
        return _slopes(release, bound, measure, beta, session) if beta else None
    if certificate.rows > 1 or measure.preprocessed is not None:
        return None
    return _sizes(release, measure, call, session)


def _split(release: MeasuredAggregate, subset: Subset | None) -> MeasuredAggregate | None:
    """Group the rows of a release by one of their columns, or by nothing."""
    exact = release.exact
    if subset is None:
        return replace(release, exact=replace(exact, keys=()))
    rows = exact.input
    if not isinstance(rows, n.Project):
        return None
    names = {f.name: f.type for f in fields_of(rows.input)}
    columns = [
        n.Column(f.name, f.type)
        for scan in scans(rows)
        if scan.table.lower() == subset.table
        for f in scan.columns
        if f.name.lower() == f"{scan.alias}.{subset.column}".lower() and f.name in names
    ]
    if len(columns) != 1:
        return None
    items = (*rows.items, n.Named(KEY, columns[0]))
    key = n.Named(KEY, n.Column(KEY, type_of(columns[0])))
    split = replace(exact, input=replace(rows, items=items), keys=(key,))
    return replace(release, exact=split)


def _sizes(
    release: MeasuredAggregate, measure: Measure, call: n.Aggregation, session: Session
) -> Here | None:
    """Give the most that one row which is there takes away if it goes: its own summand."""
    exact = release.exact
    if call.distinct or call.function not in ("count", "sum"):
        return None
    if call.function == "count":
        largest = call
    else:
        assert call.argument is not None
        largest = replace(call, function="max", argument=n.Call("abs", (call.argument,)))
    statement = replace(exact, aggregations=(replace(largest, name="most"),))
    sizes: Here = {}
    for key, size in _keyed(statement, session):
        whole = in_steps(size, measure)
        sizes[key] = Fraction(min(whole, 1) if call.function == "count" else whole)
    return sizes


def _slopes(
    release: MeasuredAggregate,
    curve: SmoothSensitivity,
    measure: Measure,
    beta: Fraction,
    session: Session,
) -> Here | None:
    """Give how fast the measure moves with the rows that are there, a unit of distance."""
    try:
        statements = instrument(release, curve.motions(beta))
    except CannotBound:
        return None
    parts = statements.parts.get(measure.column, ())
    roles: dict[object, dict[str, Fraction]] = {}
    width = len(release.exact.keys)
    for number, statement in enumerate(statements.statements):
        columns = [f.name for f in fields_of(statement)]
        for row in session.rows(lower(statement, session.dialect)):
            for part in (p for p in parts if p.statement == number):
                size = part.total(row[columns.index(part.column)]) * curve.factor
                least = curve.floors.get(part.role, Fraction(0)) if part.floored else Fraction(0)
                group = roles.setdefault(row[0] if width else None, {})
                group[part.role] = max(size, least)
    return {key: curve.space.reach(by_role) for key, by_role in roles.items()}


def _keyed(aggregate: n.Aggregate, session: Session) -> Iterator[tuple[object, object]]:
    for row in session.rows(lower(aggregate, session.dialect)):
        yield (row[0] if aggregate.keys else None), row[-1]
