"""For the data owner only: what a release would show without its noise, and the truth beside it. Never for an analyst.

In: a job, an engine. Out: true answers, sensitivities and scales of noise. Releases nothing; the one place outside of
`secant.noise.mechanisms` that takes the seal off private values, besides the draw of order statistics.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from secant.accuracy.noise_lineage import Names, NoiseLineage, noise_lineage
from secant.engines.backend import Session
from secant.engines.print.print_sql import lower
from secant.noise.intervals import number_of
from secant.noise.measure_noise import Noise
from secant.noise.ranked import Cells, RankNoise, exact_index, mechanism_of, scale_of, stray
from secant.noise.secrecy import unseal
from secant.noise.smooth import SMOOTH
from secant.plan import nodes as n
from secant.plan.facts.ranges import as_number
from secant.plan.rewrites.measures import Measure
from secant.plan.rewrites.order_statistics import Ranked
from secant.plan.rewrites.rewrite import columns_of
from secant.records import frozen
from secant.release.answer import plain
from secant.release.components import Component
from secant.release.draw import NoisyTables, table_of
from secant.release.finish import Result, finish, from_engine
from secant.release.measured import Key, comparable, measured, value_of, weighed_keys
from secant.release.release_plan import Keys, ReleasePlan
from secant.release.staged_tables import stage
from secant.sensitivity.bound import CertifiedRelease
from secant.sensitivity.certificate import is_still


@frozen
class Seen:
    """What only the owner knows of the noise of one measure or order statistic."""

    sensitivities: list[Fraction]
    """In units of the answer: one number, or one per group."""
    scales: list[Fraction]
    """What the standard shape of the noise is multiplied by, likewise."""


@frozen
class Unsealed:
    """What one release reads, by group, without noise: for databases that were drawn, never for an owner's rows."""

    values: Mapping[str, Mapping[Key, int]]
    """Measure -> group -> whole steps, where the measure is read as it is."""
    smooth: Mapping[str, Mapping[Key, tuple[int, Fraction]]]
    """Measure -> group -> whole steps with the smooth bound beside them."""
    cells: Mapping[str, Mapping[Key, Cells]]
    """Order statistic -> group -> counted cells."""


def unsealed(
    b: CertifiedRelease, job: ReleasePlan, keys: Keys | None, session: Session
) -> Unsealed:
    """Give what a release reads of each group."""
    weights: dict[str, dict[Key, Any]] = {}
    if b.release.weighed is not None:
        candidates, content = weighed_keys(b, job, session)
        keys = unseal(candidates)
        groups = [comparable(key) for key in keys]
        weights = {b.release.weighed.column: dict(zip(groups, unseal(content), strict=True))}
    private_values = measured(b, job, keys, session)
    groups = [comparable(key) for key in unseal(private_values.keys)]

    def by_group(content: list[Any]) -> dict[Key, Any]:
        return dict(zip(groups, content, strict=True))

    reading = job.readings[b.release.name]
    varying = {*reading.curves, *reading.surveyed}
    plain = [c for c in reading.exact if c not in varying]
    return Unsealed(
        {c: by_group(unseal(private_values.values[c])) for c in plain} | weights,
        {c: by_group(unseal(private_values.values[c])) for c in varying},
        {c: by_group(unseal(content)) for c, content in private_values.cells.items()},
    )


def true_rows(plan: n.Relation, session: Session) -> list[tuple[object, ...]]:
    """Give the answer as the engine computes it, without noise."""
    return session.rows(lower(plan, session.dialect))


def unnoised(
    job: ReleasePlan, keys: Mapping[str, Keys | None], session: Session
) -> tuple[Result, dict[str, Seen]]:
    """Give what a release would show without its noise, and how large that noise would be.

    An order statistic has in place of a sensitivity how far its draws stray from the truth, group by group.
    """
    tables: dict[str, n.Values] = {}
    seen: dict[str, Seen] = {}
    noise: dict[str, Noise] = {}
    ranks: dict[str, RankNoise] = {}
    for b in job.prepared.bounded:
        engine, shown = stage(session, tables), keys[b.release.name]
        if b.release.weighed is not None:
            shown = unseal(weighed_keys(b, job, engine)[0])
        private_values = measured(b, job, shown, engine)
        columns: list[list[object]] = []
        exact = {
            c: private_values.noise[c].unnoised(unseal(values))
            for c, values in private_values.values.items()
        }
        for m in b.release.measures:
            settled, content = (
                private_values.noise[m.column],
                unseal(private_values.values[m.column]),
            )
            columns.append([value_of(w, m) for w in settled.shown(exact[m.column], exact)])
            noise[m.column] = settled.seen(content)
            seen[m.column] = Seen(
                [x * m.step for x in settled.sensitivities(content)],
                [x * m.step for x in settled.scales(content)],
            )
        ranks |= private_values.ranks
        for r in b.release.ranked:
            choice, groups = private_values.ranks[r.column], unseal(private_values.cells[r.column])
            nearest = [exact_index(r, cells) for cells in groups]
            columns.append([None if i is None else r.grid.value(i, r.type) for i in nearest])
            seen[r.column] = Seen([stray(r, choice, cells, job.level) for cells in groups], [])
        tables[b.release.name] = table_of(b, job, unseal(private_values.keys), columns)
    lineage = noise_lineage(job)
    noisy = NoisyTables(tables, noise, ranks)
    return finish(job, noisy, from_engine(session), lineage, made_up=True), seen


def inspection(
    job: ReleasePlan,
    exact: list[tuple[object, ...]],
    softened: Result,
    seen: Mapping[str, Seen],
    seconds: dict[str, float],
    parts: Sequence[Component] = (),
) -> list[dict[str, Any]]:
    """One record an output column, for the owner. For several rows, errors are put together as lengths of vectors.

    `error` is the distance to the true answer that noise and softening together keep to, at the level; None where
    nothing says how far noise leads. `noisy_rows` says whether noise decides which rows are shown. `parts` are what
    tables, columns and some of the rows do by themselves.
    """
    entries = []
    relied = noise_lineage(job)
    exact = _in_order_of(softened, exact, relied)
    measures = {m.column: m for b in job.prepared.bounded for m in b.release.measures}
    ranked = {r.column: r for b in job.prepared.bounded for r in b.release.ranked}
    percent = "95" if job.level == Fraction(95, 100) else ""
    for index, column in enumerate(softened.columns):
        truth = [plain(row[index]) for row in exact]
        soft = [plain(row[index]) for row in softened.rows]
        scalar = job.traced.made_of(column)
        noisy = relied.columns[column]
        named = columns_of(scalar) if scalar is not None else frozenset()
        # Measures that nobody can move are told, too, with a bound of zero; beside an exact value in a row that noise
        # chose, the noise that chose it.
        behind = (noisy or relied.rows) | named
        used = [m for c, m in measures.items() if c in behind]
        ranks = [r for c, r in ranked.items() if c in behind]
        if noisy and not noisy <= named:
            errors = _stated_errors(index, exact, softened)  # other noise than the expression shows
        elif relied.rows and not noisy:
            errors = [None] * len(
                softened.rows
            )  # the value is exact, its place in the answer is not
        elif ranks:
            errors = _strays(job, column, index, ranks, exact, softened, seen)
        else:
            level = _level_of_chosen(job, relied, noisy, softened)
            errors = _errors_of(job, column, index, used, exact, softened, seen, level)
        finite = [e for e in errors if e is not None]
        numbers = [
            float(v) for v in truth if isinstance(v, (int, float)) and not isinstance(v, bool)
        ]
        length = sum(v * v for v in numbers) ** 0.5
        shown = None if used or ranks or relied.rows else 0.0
        error = max(finite) if len(finite) == len(errors) and finite else shown
        together = sum(e * e for e in finite) ** 0.5
        relative = together / length if error is not None and length else None
        one = len(softened.rows) == 1 and len(exact) == 1
        sensitivities = [_numbers(seen[m.column].sensitivities) for m in used]
        sensitivities += [_most_ranks(job, r) for r in ranks]
        scales = [_numbers(seen[m.column].scales) for m in used]
        scales += [scale_of(job.noise.ranks[r.column]) for r in ranks]
        described = [job.noise.noise[m.column].describe(m.step) for m in used]
        betas = [record["beta"] for record in described if "beta" in record]
        analyses = [_analyses(job, m) for m in used] + [_analyses(job, r) for r in ranks]
        entries.append(
            {
                "column": column,
                "exact": truth[0] if one else truth,
                "softened": soft[0] if one else soft,
                "sensitivity": _single(sensitivities),
                "beta": _single(betas) if betas else None,
                "noise_scale": _single(scales),
                f"error{percent}": error,
                f"relative_error{percent}": relative,
                "mechanism": ", ".join([*_names(job, used), *_choices(job, ranks)]) or "none",
                "analysis": ", ".join(dict.fromkeys(analyses)) or "public",
                "noisy_rows": bool(relied.rows),
                "seconds": seconds,
            }
        )
        if parts:
            descriptions = {m.words for m in used}
            entries[-1]["components"] = [p.to_dict() for p in parts if p.measure in descriptions]
    return entries


def _in_order_of(
    softened: Result, exact: list[tuple[object, ...]], relied: NoiseLineage
) -> list[tuple[object, ...]]:
    """Put true rows in the order of softened ones, by columns that no noise touches; as they are if these differ."""
    places = [i for i, column in enumerate(softened.columns) if not relied.columns[column]]
    keys = [comparable(tuple(row[i] for i in places)) for row in softened.rows]
    by_key = {comparable(tuple(row[i] for i in places)): row for row in exact}
    same = len(set(keys)) == len(keys) and len(by_key) == len(exact) and by_key.keys() == {*keys}
    return [by_key[key] for key in keys] if places and same else exact


def _single(values: list[Any]) -> Any:
    return values[0] if len(values) == 1 else values or 0.0


def _numbers(values: list[Fraction]) -> Any:
    return _single([float(v) for v in values])


def _choices(job: ReleasePlan, ranks: list[Ranked]) -> list[str]:
    """Name the ways in which order statistics are chosen."""
    names = [str(mechanism_of(r, job.noise.ranks[r.column])["mechanism"]) for r in ranks]
    return list(dict.fromkeys(names))


def _most_ranks(job: ReleasePlan, ranked: Ranked) -> float:
    """Give how far rank distances move apart at most, under all protections, in rows."""
    noise = job.noise.ranks[ranked.column]
    return (
        0.0
        if noise.choice is None
        else float(noise.choice.epsilon / (noise.choice.sharpness * noise.fine))
    )


def _strays(
    job: ReleasePlan,
    column: str,
    index: int,
    ranks: list[Ranked],
    exact: list[tuple[object, ...]],
    softened: Result,
    seen: Mapping[str, Seen],
) -> list[float | None]:
    """Give for each row how far draws of an order statistic stray, and the grid besides; dates in days."""
    scalar = job.traced.made_of(column)
    while isinstance(scalar, n.Attempt):
        scalar = scalar.operand
    groups = seen[ranks[0].column].sensitivities
    rows = list(zip(exact, softened.rows, groups, strict=False))
    if not isinstance(scalar, n.Column) or not len(exact) == len(softened.rows) == len(groups):
        return [None] * len(softened.rows)
    strays: list[float | None] = []
    for true, soft, far in rows:
        numbers = as_number(true[index]), as_number(soft[index])
        if numbers[0] is None or numbers[1] is None:
            strays.append(None)
        else:
            strays.append(float(far + abs(numbers[0] - numbers[1])))
    return strays


def _analyses(job: ReleasePlan, measure: Measure | Ranked) -> str:
    for b in job.prepared.bounded:
        if measure in b.release.measures or measure in b.release.ranked:
            certificates = [c for c in b.certificates if not is_still(c.bounds[measure.column])]
            return ", ".join(dict.fromkeys(c.analysis for c in certificates)) or "public"
    return "public"


def _names(job: ReleasePlan, measures: list[Measure]) -> list[str]:
    """Name the laws of noise; one that is smooth stands for all."""
    names = sorted({job.noise.noise[m.column].family for m in measures})
    return [SMOOTH] if SMOOTH in names else names


def _errors_of(
    job: ReleasePlan,
    column: str,
    index: int,
    used: list[Measure],
    exact: list[tuple[object, ...]],
    softened: Result,
    seen: Mapping[str, Seen],
    level: Fraction,
) -> list[float | None]:
    """Give for each row how far noise and softening together may lead from the truth."""
    if len(exact) != len(softened.rows):
        return [None] * len(softened.rows)
    errors: list[float | None] = []
    for i, (true, soft) in enumerate(zip(exact, softened.rows, strict=True)):
        pair = [plain(true[index]), plain(soft[index])]
        if not all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in pair):
            errors.append(None)
            continue
        bias = abs(float(pair[1]) - float(pair[0]))
        if len(used) == 1 and not softened.agreement.columns and _is_plain(job, column, used[0]):
            scale = _scale_in_row(seen[used[0].column], i)
            errors.append(_together(job.noise.noise[used[0].column], scale, bias, level))
        else:
            noise = softened.noise[i][index] if softened.noise else None
            errors.append(None if noise is None and used else bias + (noise or 0.0))
    return errors


def _stated_errors(
    index: int, exact: list[tuple[object, ...]], softened: Result
) -> list[float | None]:
    """Give for each row what an answer would state, about softened numbers; None where it states nothing."""
    if softened.noise is None or len(exact) != len(softened.rows):
        return [None] * len(softened.rows)
    stated: list[float | None] = []
    for true, soft, noise in zip(exact, softened.rows, softened.noise, strict=True):
        numbers = number_of(plain(true[index])), number_of(plain(soft[index]))
        far = noise[index]
        if far is None or numbers[0] is None or numbers[1] is None:
            stated.append(None)
        else:
            stated.append(far + abs(numbers[1] - numbers[0]))
    return stated


def _level_of_chosen(
    job: ReleasePlan, relied: NoiseLineage, noisy: Names, softened: Result
) -> Fraction:
    """Give the level at which all candidates hold together, where noise decides which of them are shown."""
    if not relied.rows:
        return job.level
    candidates = 1
    for b in job.prepared.bounded:
        if noisy & {m.column for m in b.release.measures}:
            candidates *= max(1, softened.groups.get(b.release.name, 1))
    return 1 - (1 - job.level) / candidates


def _is_plain(job: ReleasePlan, column: str, measure: Measure) -> bool:
    """Whether an output is one measure, perhaps kept inside limits."""
    scalar = job.traced.made_of(column)
    while isinstance(scalar, (n.Call, n.Clamp, n.Attempt)):
        if isinstance(scalar, n.Call) and scalar.function not in ("greatest", "least"):
            return False
        scalar = scalar.arguments[0] if isinstance(scalar, n.Call) else scalar.operand
    return isinstance(scalar, n.Column) and scalar.name == measure.column


def _scale_in_row(seen: Seen, row: int) -> float:
    """Give the scale of a measure's noise in one row; smooth noise varies from group to group."""
    scales = seen.scales
    return float(scales[row] if len(scales) > row else scales[0]) if scales else 0.0


def _together(noise: Noise, scale: float, bias: float, level: Fraction) -> float:
    """Give t with P(|bias + noise| <= t) = level: noise may also lead back to the truth."""
    miss = 1 - float(level)
    if scale <= 0:
        return bias

    def beyond(t: float) -> float:
        return noise.tail((t - bias) / scale) + noise.tail((t + bias) / scale)

    low, high = 0.0, bias + scale
    while beyond(high) > miss:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if beyond(middle) > miss else (low, middle)
    return high
