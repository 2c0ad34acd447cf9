"""The error that is printed beside each number: two ends that hold the true answer of the user's own text.

In: released numbers and public facts about their noise. Out: ends, row by row. What a limit may have cut off is part of
them: it was chosen privately, so how many units it cut is known only up to a bound (U-CUT).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction

from secant.analysis.portfolio import Bounded
from secant.mechanisms.discrete_laplace import discrete_laplace_error
from secant.plan import nodes as n
from secant.plan.measures import Measure
from secant.plan.rewrite import columns_of
from secant.release.binding import below_and_above, groups_cut, nobodys_rows, ranges_used
from secant.release.intervals import NoisyNumber, Span, ends_of, number_of
from secant.release.job import Job, directly_measured
from secant.release.limits import ChosenLimit, cut_at_most
from secant.release.shares import MeasureNoise
from secant.release.stages import reads_released

Bounds = Mapping[str, list[Fraction]]


def stated_ends(
    job: Job,
    names: list[str],
    rows: list[tuple[object, ...]],
    limits: Mapping[str, ChosenLimit],
    bounds: Bounds | None,
    *,
    cut: bool = True,
) -> list[list[Span | None]]:
    """Give the ends of every cell; None where nothing noisy is seen, or where the data decide.

    Without `cut` they hold the answer as limits left it, not the user's own: noise alone.
    """
    measures = {m.column: m for b in job.prepared.bounded for m in b.release.measures}
    unknown = {r.column for b in job.prepared.bounded for r in b.release.ranked}
    # How far noise of an earlier release leads a later one from the truth, the data decide, too.
    unknown |= {
        m.column
        for b in job.prepared.bounded
        if any(reads_released(a) for a in b.release.aggregates)
        for m in b.release.measures
    }
    # Nothing bounds what units with more groups than are counted would have added.
    beyond = {
        m.column: below_and_above(b.release, m.column)
        for b in job.prepared.bounded
        if cut and groups_cut(b.release) is not None
        for m in b.release.measures
        if m.column != b.release.selector
    }
    made_of = {}
    for output in job.traced.outputs:
        scalar = job.traced.made_of.get(output)
        used = columns_of(scalar) & measures.keys() if scalar is not None else set()
        if scalar is None or not used or columns_of(scalar) & unknown:
            continue
        # Half of what may be missed is for how many units were cut, the other half for the noise.
        cutting = {p for c in used for p in _partners(job, c) if cut and p in limits}
        level = 1 - (1 - job.level) / 2 if cutting else job.level
        miss = float(1 - level) / len(cutting) if cutting else None
        laws = {c: _law(job, measures[c], limits, miss, bounds, beyond.get(c)) for c in used}
        made_of[output] = (scalar, laws, level)
    found = []
    for row in rows:
        values = dict(zip(names, row, strict=True))
        ends: list[Span | None] = []
        for output in job.traced.outputs:
            if output not in made_of:
                ends.append(None)
                continue
            scalar, laws, level = made_of[output]
            numbers = {c: number_of(values.get(c)) for c in laws}
            if None in numbers.values() or number_of(values[output]) is None:
                ends.append(None)
                continue
            released = {c: laws[c].at(x) for c, x in numbers.items() if x is not None}
            ends.append(ends_of(scalar, released, values, level))
        found.append(ends)
    return found


def half_widths(
    rows: list[tuple[object, ...]], ends: list[list[Span | None]]
) -> list[list[float | None]]:
    """Give for each number how far the true one is at most, to whichever side."""
    return [
        [_half_width(value, span) for value, span in zip(row, spans, strict=True)]
        for row, spans in zip(rows, ends, strict=True)
    ]


def _half_width(value: object, span: Span | None) -> float | None:
    shown = number_of(value)
    if shown is None or span is None:
        return None
    width = max(span[1] - shown, shown - span[0], 0.0)
    return width if math.isfinite(width) else None


def _law(
    job: Job,
    measure: Measure,
    limits: Mapping[str, ChosenLimit],
    miss: float | None,
    bounds: Bounds | None,
    beyond: Span | None = None,
) -> NoisyNumber:
    """Give what is public about the noise of a measure; the number itself is put in row by row."""
    noise = job.noise.noise[measure.column]
    chosen = limits.get(measure.column)
    if noise.racing or (noise.choosing and chosen is None):
        return NoisyNumber(0.0, lambda level: None)  # how far below the truth, the data decide
    if noise.smooth is not None:
        return NoisyNumber(0.0, lambda level: _smooth_error(job, measure, level, bounds))
    scale = noise.scale if chosen is None else noise.scale_for(Fraction(chosen.limit))
    if scale is None:
        return NoisyNumber(0.0, lambda level: 0.0, 0.0)

    fine = 1 if noise.clipped is None else noise.clipped.fine

    def error(level: Fraction) -> float:
        # Drawn in parts of a step, and rounded to whole ones.
        rounded = discrete_laplace_error(scale * fine, level) + (fine // 2)
        return float(Fraction(rounded, fine) * measure.step)

    step = float(measure.step)
    cut = (0.0, 0.0) if miss is None else left_out(job, measure, limits, miss)
    if beyond is not None:
        cut = beyond
    return NoisyNumber(0.0, error, float(scale) * step, step, cut)


def _partners(job: Job, column: str) -> tuple[str, ...]:
    """Give the measures whose limits cut one down."""
    clipped = job.noise.noise[column].clipped
    return () if clipped is None else clipped.partners


def units_cut(job: Job, column: str, limits: Mapping[str, ChosenLimit], miss: float) -> int:
    """Give how many units were cut down in a measure at most, but for `miss` of all choices of each limit (U-CUT)."""
    found = 0
    for partner in _partners(job, column):
        clipped = job.noise.noise[partner].clipped
        if partner in limits and clipped is not None:
            found += cut_at_most(clipped, limits[partner], miss)
    return found


def left_out(job: Job, measure: Measure, limits: Mapping[str, ChosenLimit], miss: float) -> Span:
    """Give how far what was cut off may lead from the measured number to the true one, down and up."""
    clipped = job.noise.noise[measure.column].clipped
    units = units_cut(job, measure.column, limits, miss)
    if clipped is None or not units:
        return 0.0, 0.0
    own = limits.get(measure.column)
    alone = own is not None and len(clipped.partners) == 1
    # Cut down by its own limit a unit keeps that much; by another measure's, perhaps nothing.
    kept = own.limit if own is not None and alone else 0
    most = math.inf if clipped.cap is None else float((clipped.cap - kept) * measure.step) * units
    return (0.0 if clipped.positive else -most), most


def _smooth_error(
    job: Job, measure: Measure, level: Fraction, bounds: Bounds | None
) -> float | None:
    noise = job.noise.noise[measure.column]
    private = (bounds or {}).get(measure.column)
    if private is None:
        return public_error(noise, level, measure) if _exact(job, measure) else None
    assert noise.smooth is not None
    most = max(private, default=Fraction(0)) + noise.widening
    return float(noise.smooth.error(level) * most * measure.step)


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


def may_be_cut(job: Job, limits: Mapping[str, ChosenLimit]) -> bool:
    """Whether ends hold more than noise."""
    return bool(limits) or any(groups_cut(b.release) is not None for b in job.prepared.bounded)


def leaves_out(job: Job, limits: Mapping[str, ChosenLimit]) -> dict[str, object] | None:
    """Say what limits may have left out of an answer; None where nothing can be left out.

    Declared limits and ranges are enforced, not believed: how much they cut is not known. Limits that were chosen
    privately cut a number of units that is known up to a bound.
    """
    level = 1 - (1 - job.level) / 2
    found: list[dict[str, object]] = []
    ranges: dict[tuple[str, float, float], None] = {}
    for b in job.prepared.bounded:
        found += [x for m in b.release.measures if (x := _left_out_of(job, m, limits, level))]
        for node in n.walk(b.release.exact):
            if isinstance(node, n.Truncate) and _in_use(b, job):
                found.append(_declared("number of rows", node.limit))
        ranges |= dict.fromkeys((m.words, low, high) for m, low, high in ranges_used(b.release))
    cut = [groups_cut(b.release) for b in job.prepared.bounded]
    groups = [limit for limit in cut if limit is not None]
    nobodys = any(nobodys_rows(b) for b in job.prepared.bounded)
    if not (found or ranges or groups or nobodys):
        return None
    counts = [x for x in found if x["units_cut_at_most"] is not None]
    most = max(counts, key=lambda x: int(str(x["units_cut_at_most"])), default=None)
    first = most or (found[0] if found else _declared("", None))
    return {k: first[k] for k in ("units_cut_at_most", "limit", "level")} | {
        "measures": found,
        "groups": min(groups, default=None),
        "ranges": [{"measure": words, "low": low, "high": high} for words, low, high in ranges],
        "rows_without_unit": nobodys,
    }


def _left_out_of(
    job: Job, measure: Measure, limits: Mapping[str, ChosenLimit], level: Fraction
) -> dict[str, object] | None:
    clipped = job.noise.noise[measure.column].clipped
    if clipped is None:
        return None
    own = limits.get(measure.column)
    limit = float((clipped.limits[-1] if own is None else own.limit) * measure.step)
    if not any(p in limits for p in clipped.partners):
        return _declared(measure.words, limit)
    miss = float(1 - level) / len(clipped.partners)
    return {
        "measure": measure.words,
        "limit": limit,
        "units_cut_at_most": units_cut(job, measure.column, limits, miss),
        "level": float(level),
    }


def _declared(words: str, limit: float | None) -> dict[str, object]:
    return {"measure": words, "limit": limit, "units_cut_at_most": None, "level": None}


def _in_use(b: Bounded, job: Job) -> bool:
    """Whether the rows as the release limits them are what is measured."""
    return bool(directly_measured(b, job.noise).aggregations) or bool(b.release.ranked)
