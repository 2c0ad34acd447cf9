"""Run a prepared query: look up public keys, reserve, compute exact measures, add noise, do the rest, settle.

Values computed from protected rows live only inside `_released`, as whole numbers, until noise is on them (I5).
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any, Protocol

from secant.analysis.portfolio import Bounded, Prepared
from secant.errors import InternalError, PolicyError, Refused
from secant.mechanisms.discrete_laplace import add_discrete_laplace, discrete_laplace_error
from secant.plan import nodes as n
from secant.plan.domains import Chosen, Listed, Looked
from secant.plan.measures import Measure
from secant.plan.rewrite import columns_of, transform
from secant.plan.typing import fields_of
from secant.release.backend import Backend
from secant.release.dialect import quote
from secant.release.error import Traced, half_width, trace
from secant.release.lower import lower
from secant.release.shares import Calibrated

MAX_KEYS = 200_000


class Permit(Protocol):
    """A reservation of budget: marked before the first statement over protected rows is sent."""

    def mark_sent(self) -> None:
        """Write down, durably, that a statement is about to be sent (I6)."""
        ...


@dataclass(frozen=True, slots=True)
class Job:
    """Everything that a release needs, settled before any budget is touched."""

    prepared: Prepared
    noise: Calibrated
    statements: Mapping[str, str]
    """Release name -> the statement over protected rows."""
    traced: Traced
    level: Fraction


def plan_release(prepared: Prepared, noise: Calibrated, level: Fraction, backend: Backend) -> Job:
    """Print the statements and let the engine bind them; nothing is read."""
    statements = {b.release.name: lower(b.release.exact, backend.dialect) for b in prepared.bounded}
    noisy = frozenset(m.column for b in prepared.bounded for m in b.release.measures)
    return Job(prepared, noise, statements, trace(prepared.post, noisy), level)


def check_job(job: Job, backend: Backend, checked: set[Any]) -> None:
    """Let the engine bind the statements, and hold claims about public tables against public data."""
    for statement in job.statements.values():
        backend.check(statement)
    for b in job.prepared.bounded:
        for certificate in b.certificates:
            for claim in certificate.claims:
                if claim not in checked:
                    _check_key(backend, claim.table, claim.columns)
                    checked.add(claim)


def _check_key(backend: Backend, table: str, columns: tuple[str, ...]) -> None:
    names = ", ".join(quote(c) for c in columns)
    found = backend.rows(
        f"SELECT 1 FROM {quote(table)} GROUP BY {names} HAVING count(*) > 1 LIMIT 1"
    )
    if found:
        raise PolicyError(
            "POL-004",
            f"the declared key ({', '.join(columns)}) of the public table {table} is not unique",
            hint="correct the key in the policy, or the table",
        )


Keys = list[tuple[object, ...]]


def look_up_keys(job: Job, backend: Backend) -> dict[str, Keys | None]:
    """Give for each release the keys that will be shown; None where they are chosen privately."""
    return {b.release.name: _keys(b, backend) for b in job.prepared.bounded}


def _keys(b: Bounded, backend: Backend) -> Keys | None:
    names = [k.name for k in b.release.exact.keys]
    parts: list[tuple[tuple[str, ...], list[tuple[object, ...]]]] = []
    count = 1
    for domain in b.release.domains:
        if isinstance(domain, Chosen):
            return None
        if isinstance(domain, Listed):
            parts.append(((domain.key,), [(v,) for v in domain.values]))
        elif isinstance(domain, Looked):
            parts.append((domain.keys, backend.rows(lower(domain.relation, backend.dialect))))
        count *= len(parts[-1][1])
        if count > MAX_KEYS:
            raise Refused(
                "REF-101",
                f"the answer would have more than {MAX_KEYS} groups",
                hint="group by fewer or coarser columns, or filter the groups",
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


def run(job: Job, keys: Mapping[str, Keys | None], backend: Backend, permit: Permit) -> Shown:
    """Release everything and finish the query on public numbers."""
    tables: dict[str, n.Values] = {}
    if job.prepared.bounded:
        permit.mark_sent()
    for b in job.prepared.bounded:
        tables[b.release.name] = _released(b, job, keys[b.release.name], backend)
    return finish(job, tables, backend)


def unnoised(job: Job, keys: Mapping[str, Keys | None], backend: Backend) -> Shown:
    """For the data owner: what a release would show without its noise. Never for an analyst."""
    quiet = {c: replace(noise, scale=None) for c, noise in job.noise.noise.items()}
    silent = replace(job, noise=replace(job.noise, noise=quiet))
    tables = {
        b.release.name: _released(b, silent, keys[b.release.name], backend)
        for b in job.prepared.bounded
    }
    return finish(job, tables, backend)


def _released(b: Bounded, job: Job, keys: Keys | None, backend: Backend) -> n.Values:
    """Compute one release: exact measures inside, noisy ones outside."""
    width = len(b.release.exact.keys)
    found = backend.rows(job.statements[b.release.name])
    exact = {tuple(_key(v) for v in row[:width]): (row[:width], row[width:]) for row in found}
    if len(exact) != len(found):
        raise InternalError("BUG-001", "two groups have the same key")
    if keys is None:
        shown, start = _choose(b, job, exact)
    else:
        shown, start = keys, {}
    columns: list[list[object]] = []
    for index, measure in enumerate(b.release.measures):
        if measure.column in start:
            noisy = start[measure.column]
        else:
            whole = [_whole(exact, key, index, measure) for key in shown]
            scale = job.noise.noise[measure.column].scale
            noisy = whole if scale is None else add_discrete_laplace(whole, scale=scale)
        columns.append([_value(m, measure) for m in noisy])
    rows = tuple((*key, *(column[i] for column in columns)) for i, key in enumerate(shown))
    return n.Values(_fields(b), rows)


def _choose(
    b: Bounded, job: Job, exact: Mapping[tuple[object, ...], Any]
) -> tuple[Keys, dict[str, list[int]]]:
    """Show the keys whose noisy number of units reaches the threshold, in the order of the keys."""
    choice = job.noise.choices[b.release.name]
    index = next(i for i, m in enumerate(b.release.measures) if m.column == b.release.selector)
    measure = b.release.measures[index]
    allowed = _listed_parts(b)
    keys = sorted(
        (original for original, _ in exact.values() if allowed(original)),
        key=lambda key: tuple(_order(v) for v in key),
    )
    counts = [_whole(exact, key, index, measure) for key in keys]
    scale = job.noise.noise[measure.column].scale
    noisy = counts if scale is None else add_discrete_laplace(counts, scale=scale)
    kept = [
        (key, count) for key, count in zip(keys, noisy, strict=True) if count >= choice.threshold
    ]
    return [key for key, _ in kept], {measure.column: [count for _, count in kept]}


def _order(value: object) -> tuple[bool, str, Any]:
    """Give a total order of keys: where a NaN or a NULL stands must not depend on the other rows."""
    nothing = value is None or value != value
    return nothing, type(value).__name__, 0 if nothing else value


def _listed_parts(b: Bounded) -> Any:
    """Keys with a list keep to it also when other keys are chosen."""
    names = [k.name for k in b.release.exact.keys]
    lists = {d.key: {_key(v) for v in d.values} for d in b.release.domains if isinstance(d, Listed)}

    def allowed(key: tuple[object, ...]) -> bool:
        return all(_key(v) in lists[c] for c, v in zip(names, key, strict=True) if c in lists)

    return allowed


def _key(value: object) -> object:
    """Make keys from the engine and from the policy comparable: 1, 1.0 and Decimal('1') are one key."""
    if isinstance(value, (int, float, Decimal)) and not isinstance(value, bool):
        return Fraction(value) if value == value and abs(value) != float("inf") else str(value)
    return value


def _whole(
    exact: Mapping[tuple[object, ...], Any], key: tuple[object, ...], index: int, measure: Measure
) -> int:
    """Read an exact measure as a whole number of steps; a group that is not there has none."""
    found = exact.get(tuple(_key(v) for v in key))
    value = found[1][index] if found is not None else None
    if value is None:
        return 0
    if measure.type.kind == "DOUBLE":
        return int(value)  # the statement already sums whole multiples
    return int(Fraction(value) / measure.step)


def _value(whole: int, measure: Measure) -> object:
    if measure.type.kind == "DECIMAL":
        return Decimal(whole).scaleb(-measure.type.scale)
    return whole if measure.type.kind == "INTEGER" else float(whole * measure.step)


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


def finish(job: Job, tables: Mapping[str, n.Values], backend: Backend) -> Shown:
    """Put the released tables into the rest of the plan and run it on public numbers."""
    traced = job.traced

    def change(node: n.Node) -> n.Node:
        return tables[node.name] if isinstance(node, n.Released) else node

    plan = transform(traced.plan, change)
    names = [f.name for f in fields_of(plan)]
    rows = backend.rows(lower(plan, backend.dialect))
    width = len(traced.outputs)
    shown = [tuple(row[:width]) for row in rows]
    if not job.prepared.bounded:
        return Shown(traced.outputs, shown, None)
    return Shown(traced.outputs, shown, _errors(job, names, rows))


def _errors(job: Job, names: list[str], rows: list[tuple[object, ...]]) -> list[list[float | None]]:
    measures = {m.column: m for b in job.prepared.bounded for m in b.release.measures}
    made = {}
    for output in job.traced.outputs:
        scalar = job.traced.made_of.get(output)
        used = sorted(columns_of(scalar) & set(measures)) if scalar is not None else []
        level = 1 - (1 - job.level) / max(1, len(used))
        made[output] = (scalar, {c: _error(job, measures[c], level) for c in used})
    found = []
    for row in rows:
        values = dict(zip(names, row, strict=True))
        found.append([_cell(values, output, *made[output]) for output in job.traced.outputs])
    return found


def _error(job: Job, measure: Measure, level: Fraction) -> float:
    scale = job.noise.noise[measure.column].scale
    return 0.0 if scale is None else float(discrete_laplace_error(scale, level) * measure.step)


def _cell(
    values: Mapping[str, object], output: str, scalar: n.Scalar | None, errors: Mapping[str, float]
) -> float | None:
    if scalar is None or not errors:
        return None
    measured = {}
    for column, error in errors.items():
        value = values.get(column)
        if not isinstance(value, (int, float, Decimal)):
            return None
        measured[column] = (float(value), error)
    return half_width(scalar, values[output], measured, values)
