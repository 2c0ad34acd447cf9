"""The error that is printed beside each number: two ends that hold the true answer of the user's own text.

In: released numbers and public facts about their noise. Out: ends, row by row. What a limit may have cut off is part of
them: it was chosen privately, so how many units it cut is known only up to a bound (truncation.cut).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction

from secant.accuracy.binding_facts import (
    ClampedRange,
    below_and_above,
    groups_cut,
    nobodys_rows,
    ranges_used,
    rests_on_inferred_limit,
)
from secant.accuracy.consistency import NOTHING, Agreement
from secant.accuracy.resolve import Resolver, Unresolved, noise_behind
from secant.accuracy.trace import Drawn, counts_of
from secant.noise.assigned import AssignedLimit
from secant.noise.intervals import NoisyNumber, Pieces, Span, ends_of, number_of, pieces_of
from secant.noise.limited import TalliedLimit
from secant.noise.measure_noise import Noise
from secant.noise.ranked import RankNoise, ranks_off
from secant.noise.tail import SEEN
from secant.plan import nodes as n
from secant.plan.rewrites.measures import Measure
from secant.plan.rewrites.order_statistics import Grid
from secant.plan.rewrites.rewrite import columns_of
from secant.records import frozen
from secant.release.release_plan import ReleasePlan
from secant.release.staged_tables import reads_released
from secant.sensitivity.bound import CertifiedRelease

Settled = Mapping[str, Noise]
"""Measure column -> its noise, with the limit that was chosen where one was."""


@frozen
class Closed:
    """What ran on released tables: the rows of the answer with what they carry, and of all that is gathered."""

    names: tuple[str, ...]
    rows: list[tuple[object, ...]]
    inside: Mapping[n.Relation, list[Mapping[str, object]]]
    sizes: Mapping[str, int]
    """Release -> how many rows it shows."""
    agreement: Agreement = NOTHING
    """Numbers that were made to agree with others."""
    totals: Mapping[str, float] = field(default_factory=dict)
    """Measure column of several groups -> the sum of its numbers."""
    between: Mapping[str, list[Span | None]] = field(default_factory=dict)
    """Column of an order statistic -> for each row of its release between which values it usually lies."""


@frozen
class ReportedEnds:
    """Ends of every cell; None where nothing noisy is seen, or where the data decide."""

    certain: list[list[Span | None]]
    """They hold for every database."""
    alone: list[list[Span | None]]
    """The same without what limits cut: noise alone."""
    usual: list[list[Span | None]]
    """They hold usually, for what limits cut is estimated; None where nothing is estimated."""


def reported_ends(job: ReleasePlan, closed: Closed, settled: Settled) -> ReportedEnds:
    """Give the ends of every cell."""
    columns = [_column_ends(job, output, closed, settled) for output in job.traced.outputs]
    return ReportedEnds(
        *([list(row) for row in zip(*(c[i] for c in columns), strict=True)] for i in range(3))
    )


Ends = list[Span | None]


def _column_ends(
    job: ReleasePlan, output: str, closed: Closed, settled: Settled
) -> tuple[Ends, Ends, Ends]:
    nothing: Ends = [None] * len(closed.rows)
    scalar = job.traced.made.get(output)
    if scalar is None:
        return nothing, nothing, nothing
    noise = noise_behind(scalar, job.traced)
    used = {d.column for d in noise.values()}
    measured = used & settled.keys()
    cutting = {p for c in measured for p in settled[c].partners if settled[p].chosen}
    alone = _Reported(job, closed, settled, scalar, noise).ends(output, 0, cut=False)
    between = _between(job, closed, output, scalar, noise)
    if used & _beyond(job) or not all(settled[c].as_asked for c in measured):
        # Values outside of a range that was found privately may lie anywhere (truncation.range): nothing holds them.
        # Nor does anything say how far an answer to softened filters lies from the one to the text.
        return nothing, alone if measured == used else nothing, between
    ends = alone
    openly = _cut_openly(job, used)
    if cutting or openly or used & thresholds_of(job).keys():
        stated = _Reported(job, closed, settled, scalar, noise)
        ends = stated.ends(output, len(cutting), cut=True)
    usual = between
    estimated = {p for p in cutting if settled[p].usually_cut(Fraction(1), job.level)}
    whole = {p for p in cutting if settled[p].cuts_nobody}
    told = bool(estimated) and estimated | whole == cutting
    if told and not openly and not closed.agreement.columns & used:
        stated = _Reported(job, closed, settled, scalar, noise, usual=True)
        usual = stated.ends(output, 0, cut=True)
        place = closed.names.index(output)
        shown = [number_of(row[place]) for row in closed.rows]
        # What is cut is more likely some than none: the number itself lies between its ends all the same.
        usual = [
            span if span is None or x is None else (min(span[0], x), max(span[1], x))
            for span, x in zip(usual, shown, strict=True)
        ]
    # How far a draw leads an order statistic in value, the data decide.
    return ends, alone if measured == used else nothing, usual


def _between(
    job: ReleasePlan, closed: Closed, output: str, scalar: n.Scalar, noise: Mapping[str, Drawn]
) -> Ends:
    """Give between which values an output lies usually that is one order statistic; None for all others.

    Values beyond a range that was found privately were moved to its ends: an end that touches one says nothing.
    """
    nothing: Ends = [None] * len(closed.rows)
    if len(noise) != 1 or columns_of(scalar) & job.traced.gathered.keys():
        return nothing
    ((symbol, drawn),) = noise.items()
    spans, grid = closed.between.get(drawn.column), ends_of_grid(job, drawn.column)
    if spans is None or grid is None:
        return nothing
    found: Ends = []
    open_ended = drawn.column in _beyond(job)
    for values in closed.rows:
        row = dict(zip(closed.names, values, strict=True))
        index = row.get(drawn.row)
        span = spans[index] if isinstance(index, int) else None
        if span is None or (open_ended and (span[0] <= grid[0] or span[1] >= grid[1])):
            found.append(None)
        else:
            found.append(ends_of(scalar, {}, {**row, symbol: span}, job.level))
    return found


def _beyond(job: ReleasePlan) -> frozenset[str]:
    """Give the columns that values outside of a range would move which was found privately."""
    return frozenset().union(*(b.release.undeclared.columns for b in job.prepared.bounded))


def _cut_openly(job: ReleasePlan, used: set[str]) -> bool:
    """Whether a limit cuts measures that are used, of which nothing says how much it cuts."""
    return any(
        _open(b, m.column)
        for b in job.prepared.bounded
        for m in b.release.measures
        if m.column in used
    )


def _open(b: CertifiedRelease, column: str) -> bool:
    """Whether units may have more groups than are counted, or more rows than a limit that was found privately."""
    return groups_cut(b.release) is not None or rests_on_inferred_limit(b, column)


@dataclass(slots=True)
class _Reported:
    """One output while its ends are found."""

    job: ReleasePlan
    closed: Closed
    settled: Settled
    scalar: n.Scalar
    noise: Mapping[str, Drawn]
    usual: bool = False
    """Whether what limits cut is estimated instead of bounded."""
    laws: dict[str, NoisyNumber] = field(default_factory=dict)
    thresholds: Mapping[str, int] = field(default_factory=dict)

    def ends(self, output: str, cutting: int, *, cut: bool) -> Ends:
        job, traced = self.job, self.job.traced
        miss = 1 - job.level
        if traced.chosen:
            # Noise decides which rows are shown, and prefers those that it moved far: all must hold together.
            tables = {d.row: d.release for d in self.noise.values()}
            miss /= math.prod(max(1, self.closed.sizes[r]) for r in tables.values())
        gathers = bool(columns_of(self.scalar) & traced.gathered.keys())
        # What may be missed is shared: how many units were cut, which groups are there, and the noise.
        share = miss / (1 + bool(cutting) + gathers)
        miss_each = float(share) / cutting if cutting else None
        used = {d.column for d in self.noise.values()}
        self.laws = {c: self._law(c, miss_each, cut=cut) for c in used}
        self.thresholds = thresholds_of(job) if cut else {}
        index = self.closed.names.index(output)
        rows = [dict(zip(self.closed.names, row, strict=True)) for row in self.closed.rows]
        alone = [row for a in traced.alone for row in self.closed.inside[a.rows][:1]]
        found: Ends = []
        pieces = self._pieces()
        resolver = self._resolver(share)
        for row, values in zip(self.closed.rows, rows, strict=True):
            if number_of(row[index]) is None:
                found.append(None)
            elif pieces is not None:
                found.append(self._in_place(values, 1 - share, pieces))
            else:
                everything = {k: v for one in (*alone, values) for k, v in one.items()}
                found.append(self._resolved(resolver, everything, 1 - share))
        return found

    def _law(self, column: str, miss: float | None, *, cut: bool) -> NoisyNumber:
        for b in self.job.prepared.bounded:
            for m in b.release.measures:
                if m.column == column:
                    # How far noise of an earlier release leads a later one from the truth, the data decide.
                    staged = any(reads_released(a) for a in b.release.aggregates)
                    lost = (0.0, 0.0) if miss is None else left_out(self.settled, m, miss)
                    if cut and (_open(b, column) or (m.wide and not self.usual)):
                        # Nothing bounds what units with more groups or rows than are counted would have added,
                        # or what a single row adds of which nobody declared a range.
                        lost = below_and_above(b.release, column)
                    law = self.settled[column].number(m.step, lost)
                    if self.usual:
                        law = self._usually(law, m)
                    return replace(law, error=_unknown, scale=None) if staged else law
        return NoisyNumber(0.0, _unknown)

    def _usually(self, law: NoisyNumber, m: Measure) -> NoisyNumber:
        """Put in what a limit usually cuts off; of several groups, each has its share of it."""
        noise = self.settled[m.column]
        # What lies beyond a center is cut off groups that have more rows, whatever the sums are.
        total = self.closed.totals.get(m.column if law.about is None else law.about[0])
        level = self.job.level
        error = law.error(level) or 0.0

        def estimate(value: float) -> tuple[float, Span]:
            share = 1.0 if total is None else (abs(value) + error) / max(abs(total), error)
            usually = noise.usually_cut(m.step, level, min(share, 1.0), value)
            low, middle, high = usually or (0.0, 0.0, 0.0)
            return middle, (low - middle, high - middle)

        return replace(law, left_out=estimate(math.inf)[1], estimate=estimate)

    def _pieces(self) -> Pieces | None:
        """Read the shape once for all rows, if it is the same in all and no noise can stand in it twice."""
        tables = [d.release for d in {d.row: d for d in self.noise.values()}.values()]
        if len(set(tables)) < len(tables) or columns_of(self.scalar) - self.noise.keys():
            return None
        if self.closed.agreement.columns & {d.column for d in self.noise.values()}:
            return None
        if any(ends_of_grid(self.job, d.column) is not None for d in self.noise.values()):
            return None
        return pieces_of(self.scalar, self._numbers(dict.fromkeys(self.noise, 0.0)), {})

    def _numbers(self, values: Mapping[str, float]) -> dict[str, NoisyNumber]:
        symbols = {(d.release, d.row, d.column): symbol for symbol, d in self.noise.items()}
        numbers = {}
        for symbol, d in self.noise.items():
            law = replace(self.laws[d.column], sign=d.sign, measure=d.column)
            if law.about is None:
                numbers[symbol] = law.at(values[symbol])
                continue
            other = symbols.get((d.release, d.row, law.about[0]), "")
            rows = values.get(other, math.inf)
            located = replace(law, about=(other, law.about[1]))
            numbers[symbol] = replace(located.at(rows), value=values[symbol])
        return numbers

    def _in_place(self, row: Mapping[str, object], level: Fraction, pieces: Pieces) -> Span | None:
        values = {c: number_of(row.get(c)) for c in self.noise}
        present = {c: x for c, x in values.items() if x is not None}
        if len(present) < len(values):
            return None
        numbers = with_thresholds(self._numbers(present), self.thresholds, level)
        return ends_of(self.scalar, numbers, {}, level, pieces)

    def _resolved(
        self, resolver: Resolver, row: Mapping[str, object], level: Fraction
    ) -> Span | None:
        try:
            resolved = resolver.resolve(self.scalar, row)
        except Unresolved:
            return None
        numbers = with_thresholds(resolver.noisy, self.thresholds, level)
        return ends_of(resolved, numbers, resolver.known, level)

    def _resolver(self, share: Fraction) -> Resolver:
        releases = [b.release for b in self.job.prepared.bounded]
        counts: dict[str, str] = {}
        for r in releases:
            calls = zip(r.measures, r.exact.aggregations, strict=True)
            whole = frozenset(m.column for m, call in calls if call.function == "count")
            counts |= counts_of(r.finish, whole)
        groups = max(1, *self.closed.sizes.values())
        agreed = self.closed.agreement.columns

        def least(column: str, shown: float) -> float:
            if column in agreed:  # its law is another one
                return -math.inf
            error = self.laws[column].error(1 - share / groups) if column in self.laws else None
            return -math.inf if error is None else shown - error

        return Resolver(
            self.job.traced,
            self.closed.inside,
            self.laws.__getitem__,
            lambda c: ends_of_grid(self.job, c),
            counts,
            least,
            self.closed.agreement,
        )


def _unknown(level: Fraction) -> None:
    """Nothing public says how far a number is from the true one."""
    return


def ends_of_grid(job: ReleasePlan, column: str) -> Span | None:
    """Give the ends of the points that an order statistic is drawn from; None for any other column, and for dates."""
    for b in job.prepared.bounded:
        for r in b.release.ranked:
            if r.column == column:
                if not r.type.numeric:
                    return -math.inf, math.inf
                points = (0, r.grid.count - 1) if isinstance(r.grid, Grid) else range(r.grid.count)
                values = [float(str(r.grid.value(i, r.type))) for i in points]
                return min(values), max(values)
    return None


def reported_ranks(
    job: ReleasePlan, rows: int, ranks: Mapping[str, RankNoise]
) -> list[list[float | None]] | None:
    """Give for each order statistic how many rows it is off at most (noise.ranks); None if there is none."""
    noise = {r.column: r for b in job.prepared.bounded for r in b.release.ranked}
    found: list[float | None] = []
    for output in job.traced.outputs:
        scalar = job.traced.made.get(output)
        drawn = {} if scalar is None else noise_behind(scalar, job.traced)
        columns = {d.column for d in drawn.values()}
        one = next(iter(columns)) if len(columns) == 1 else ""
        single = scalar is not None and not columns_of(scalar) & job.traced.gathered.keys()
        if single and one in noise:
            drawn_noise = ranks.get(one, job.noise.ranks[one])
            found.append(
                None if drawn_noise.open else ranks_off(noise[one], drawn_noise, job.level)
            )
        else:
            found.append(None if scalar is None else _rows_off(job, scalar))
    return [list(found) for _ in range(rows)] if any(x is not None for x in found) else None


def _rows_off(job: ReleasePlan, scalar: n.Scalar) -> float | None:
    """Give by how many rows a truth value is off that says whether a count is zero (noise.truths); None for others."""
    while isinstance(scalar, (n.Not, n.Attempt)):
        scalar = scalar.operand
    if not isinstance(scalar, n.Compare) or job.traced.chosen:
        return None
    count = scalar.left
    if isinstance(count, n.Call) and count.function == "greatest":
        count, *least = count.arguments
        if not all(isinstance(x, n.Literal) and not x.value for x in least):
            return None
    drawn = job.traced.drawn.get(count.name) if isinstance(count, n.Column) else None
    zero = isinstance(scalar.right, n.Literal) and not scalar.right.value
    if drawn is None or not zero or scalar.op not in ("=", ">", "<>", "<="):
        return None
    for b in job.prepared.bounded:
        for m, call in zip(b.release.measures, b.release.exact.aggregations, strict=True):
            if m.column == drawn.column:
                noise = job.noise.noise[m.column]
                countable = (
                    call.function == "count" and not noise.candidates(1) and not _open(b, m.column)
                ) and noise.as_asked
                staged = any(reads_released(a) for a in b.release.aggregates)
                number = noise.number(m.step, (0.0, 0.0))
                return number.error(job.level) if countable and not staged else None
    return None


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


def units_cut(settled: Settled, column: str, miss: float) -> int:
    """Give how many units were cut down in a measure at most, but for `miss` of all choices of each limit.

    Rests on truncation.cut.
    """
    return sum(settled[partner].units_cut(miss) for partner in settled[column].partners)


def left_out(settled: Settled, measure: Measure, miss: float) -> Span:
    """Give how far what was cut off may lead from the measured number to the true one, down and up."""
    units = units_cut(settled, measure.column, miss)
    return settled[measure.column].left_out(units, measure.step)


def leaves_out(
    job: ReleasePlan, settled: Settled, agreement: Agreement = NOTHING
) -> dict[str, object] | None:
    """Say what limits may have left out of an answer; None where nothing can be left out.

    Declared limits and ranges are enforced, not believed: how much they cut is not known. Limits that were chosen
    privately cut a number of units that is known up to a bound.
    """
    level = 1 - (1 - job.level) / 2
    measures: list[dict[str, object]] = []
    ranges: dict[ClampedRange, None] = {}
    for b in job.prepared.bounded:
        measures += [x for m in b.release.measures if (x := _left_out_of(settled, m, level))]
        for node in n.walk(b.release.exact):
            if isinstance(node, n.Truncate) and _in_use(b, job):
                measures.append(_declared("number of rows", node.limit))
        ranges |= dict.fromkeys(ranges_used(b.release))
    cut = [groups_cut(b.release) for b in job.prepared.bounded]
    groups = [limit for limit in cut if limit is not None]
    nobodys = any(nobodys_rows(b) for b in job.prepared.bounded)
    moves = {
        m.words: float(m.preprocessed.moves)
        for b in job.prepared.bounded
        for m in b.release.measures
        if m.preprocessed is not None
    }
    personal = {p for b in job.prepared.bounded for p in b.release.personal}
    totals = "apart" if agreement.apart else "agree" if agreement.declared else None
    unstated = [b.release.undeclared for b in job.prepared.bounded]
    undeclared = {".".join(origin) for u in unstated for origin in u.ranges}
    undeclared |= {
        table
        for b in job.prepared.bounded
        if any(rests_on_inferred_limit(b, m.column) for m in b.release.measures) or b.release.ranked
        for table in b.release.undeclared.limits
    }
    if not (measures or ranges or groups or nobodys or moves or personal or undeclared or totals):
        return None
    counts = [x for x in measures if x["units_cut_at_most"] is not None]
    most = max(counts, key=lambda x: int(str(x["units_cut_at_most"])), default=None)
    first = most or (measures[0] if measures else _declared("", None))
    return {k: first[k] for k in ("units_cut_at_most", "limit", "level")} | {
        "measures": measures,
        "groups": min(groups, default=None),
        "ranges": [{"measure": r.words, "low": r.low, "high": r.high} for r in ranges],
        "moves": [
            {"measure": description, "moves": amount} for description, amount in moves.items()
        ],
        "personal": sorted(personal),
        "rows_without_unit": nobodys,
        "undeclared": sorted(undeclared),
        "totals": totals,
    }


def _left_out_of(settled: Settled, measure: Measure, level: Fraction) -> dict[str, object] | None:
    noise = settled[measure.column]
    if noise.most is None:
        return None
    limit = float(noise.most * measure.step)
    if not any(settled[p].chosen for p in noise.partners):
        return _declared(measure.words, limit)
    if isinstance(noise, AssignedLimit):
        return _declared(measure.words, limit) | {"assigned": True}
    miss = float(1 - level) / len(noise.partners)
    return {
        "measure": measure.words,
        "limit": limit,
        "units_cut_at_most": units_cut(settled, measure.column, miss),
        "level": float(level),
    }


def not_seen(job: ReleasePlan, settled: Settled) -> dict[str, float] | None:
    """Say whom the usual error cannot see: so few people, who each add far more than so much."""
    tallied = [
        (x.tally.epsilon, x.limit, m)
        for b in job.prepared.bounded
        for m in b.release.measures
        if isinstance(x := settled[m.column], (TalliedLimit, AssignedLimit))
        and x.tally is not None
        and x.usually_cut(m.step, job.level) is not None
    ]
    if not tallied:
        return None
    epsilon, limit, measure = min(tallied, key=lambda each: each[0])
    return {"people": math.ceil(SEEN / epsilon), "beyond": float(limit * measure.step)}


def _declared(description: str, limit: float | None) -> dict[str, object]:
    return {"measure": description, "limit": limit, "units_cut_at_most": None, "level": None}


def _in_use(b: CertifiedRelease, job: ReleasePlan) -> bool:
    """Whether the rows as the release limits them are what is measured."""
    return bool(job.readings[b.release.name].exact) or bool(b.release.ranked)


# ── keys that were shown for a noisy number (noise.reached) ─────────────────────────────────────────


def thresholds_of(job: ReleasePlan) -> dict[str, int]:
    """Give for each column that chose the keys of its release what it had to reach."""
    thresholds: dict[str, int] = {}
    for b in job.prepared.bounded:
        choice = job.noise.choices.get(b.release.name)
        if choice is not None and choice.groups and b.release.selector is not None:
            thresholds[b.release.selector] = choice.threshold
    return thresholds


def with_thresholds(
    numbers: Mapping[str, NoisyNumber], thresholds: Mapping[str, int], level: Fraction
) -> Mapping[str, NoisyNumber]:
    """Let the numbers that chose the keys allow for it."""
    if not thresholds:
        return numbers
    return {
        symbol: past_threshold(x, thresholds[x.measure], level) if x.measure in thresholds else x
        for symbol, x in numbers.items()
    }


def past_threshold(number: NoisyNumber, threshold: int, level: Fraction) -> NoisyNumber:
    """Widen the low end of a number that is shown since it reached a threshold; near it, nothing bounds the truth."""
    usual, wide = number.error(level), number.error(1 - (1 - level) / 2)
    if usual is None or wide is None:
        return number
    low = usual - wide if number.value - wide >= threshold else -math.inf
    return replace(number, left_out=(number.left_out[0] + low, number.left_out[1]))
