"""Exact measures and smooth bounds of one release: values computed from protected rows, noise not yet on them (I5).

In: a job, the keys to show, an engine. Out: what was read of each measure, group by group, sealed. A limit of what one
unit adds is the one thing that is drawn here: the measures themselves depend on it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any

from secant.engines.backend import Session
from secant.engines.print.print_sql import lower
from secant.errors import InternalError
from secant.noise.centered import CenteredLimit, CenterToChoose
from secant.noise.limited import ClippedNoise
from secant.noise.measure_noise import Noise
from secant.noise.mechanisms.limits import take_tally
from secant.noise.query_plan import Reading, Units, keys_name, numbered, survey_name
from secant.noise.ranked import Cells, RankNoise, read_cells, settled, statement_of, with_limit
from secant.noise.secrecy import Private
from secant.noise.smooth import CurveNoise, SurveyNoise
from secant.plan import nodes as n
from secant.plan.evaluate.values import EXACT
from secant.plan.facts.domains import Listed
from secant.plan.rewrites.measures import Measure
from secant.plan.rewrites.order_statistics import Ranked
from secant.plan.rewrites.rewrite import transform
from secant.plan.typing import fields_of
from secant.records import frozen
from secant.release.centered import center_of, read_about
from secant.release.release_plan import Keys, ReleasePlan
from secant.release.tallies import Tally, read_tallies
from secant.sensitivity.bound import CertifiedRelease
from secant.sensitivity.certificate import Figures, Survey, Tallies
from secant.sensitivity.residual.answers import ANSWER

Key = tuple[object, ...]
Rows = dict[Key, tuple[Key, tuple[Any, ...]]]
"""Comparable key -> the key as it came, and what stands beside it."""
Counted = dict[str, list[list[Fraction]]]
"""Measure column -> for each group the rows that differ, by each survey."""


@frozen
class PrivateValues:
    """What was read of one release, sealed, for the groups that are shown or may be chosen."""

    keys: Private[Keys]
    values: Mapping[str, Private[list[Any]]]
    """Measure column -> what its noise is drawn from, group by group: whole steps (or parts of them, where units are
    cut down), with a smooth bound beside each, or cut down to each limit that races."""
    cells: Mapping[str, Private[list[Cells]]]
    """Column of an order statistic -> the counted cells of each group."""
    noise: Mapping[str, Noise]
    """Measure column -> its noise, with the limit that was chosen. Public."""
    drawn: Mapping[str, list[int]]
    """Measure column -> noisy numbers, where others were read by them. Public."""
    ranks: Mapping[str, RankNoise]
    """The same for each order statistic."""


def weighed_keys(
    b: CertifiedRelease, job: ReleasePlan, session: Session
) -> tuple[Private[Keys], Private[list[int]]]:
    """Give the keys that somebody has, in order, and what their units weigh together."""
    allowed = _listed_parts(b)
    rows = session.rows(job.statements[keys_name(b.release.name)])
    found = sorted(
        ((row[:-1], int(str(row[-1]))) for row in rows if allowed(row[:-1])),
        key=lambda found: tuple(order_of_keys(v) for v in found[0]),
    )
    return Private([key for key, _ in found]), Private([weights for _, weights in found])


def measured(
    b: CertifiedRelease, job: ReleasePlan, keys: Keys | None, session: Session
) -> PrivateValues:
    """Run the statements of one release."""
    return _Reader(b, job, job.readings[b.release.name], session).read(keys)


@dataclass(slots=True)
class _Reader:
    """One release while it is read. Everything here is private."""

    b: CertifiedRelease
    job: ReleasePlan
    reading: Reading
    session: Session
    kept: dict[int, Callable[[n.Relation], str]] = field(default_factory=dict)
    """How plans are written that begin with a relation that is kept in a table of its own."""

    @property
    def name(self) -> str:
        return self.b.release.name

    @property
    def measures(self) -> dict[str, Measure]:
        return {m.column: m for m in self.b.release.measures}

    def read(self, keys: Keys | None) -> PrivateValues:
        tables, together = self._tables()
        shown = keys
        if shown is None:
            allowed = _listed_parts(self.b)
            originals = (original for original, _ in (tables or [{}])[0].values())
            shown = sorted(
                (original for original in originals if allowed(original)),
                key=lambda key: tuple(order_of_keys(v) for v in key),
            )
        places = [comparable(key) for key in shown]
        values: dict[str, list[Any]] = {}
        for index, f in enumerate(self._columns(0) if tables else ()):
            if f in self.reading.exact:
                values[f] = self._whole(tables[0], places, index, f)
        counted = self._surveys(places, together)
        bounds = self._curves(tables, places, counted)
        for c, x in self.reading.surveyed.items():
            bounds[c] = [x.bound_of(rows) for rows in counted[c]]
        values |= {c: list(zip(values[c], interval, strict=True)) for c, interval in bounds.items()}
        noise = {m.column: self.job.noise.noise[m.column] for m in self.b.release.measures}
        for index, units in enumerate(self.reading.units.values()):
            # How many keys there are is public only where they are known beforehand.
            settled, chosen = self._clipped(index, units, places, 1 if keys is None else len(keys))
            noise |= settled
            values |= chosen
            values |= self._raced(index, units, places)
        drawn: dict[str, list[int]] = {}
        for column, centered in self.reading.centered.items():
            divisor = centered.centering.divisor
            if divisor not in drawn:
                drawn[divisor] = noise[divisor].draw(Private(values[divisor]))
            noise[column], values[column] = self._about_center(centered, places, drawn[divisor])
        cells, ranks = self._cells(places)
        return PrivateValues(
            Private(shown),
            {c: Private(value) for c, value in values.items()},
            {c: Private(groups) for c, groups in cells.items()},
            noise,
            drawn,
            ranks,
        )

    def _tables(self) -> tuple[list[Rows], Figures | None]:
        """Run the statements of the measures; give the figures, too, where one statement has both."""
        if self.reading.together is None:
            statements = range(len(self.reading.instrument.statements))
            return [
                self._grouped(self.job.statements[numbered(self.name, i)]) for i in statements
            ], None
        rows = self.session.rows(self.job.statements[self.name])
        numbers = [int(str(row[0])) for row in rows]
        (measures,) = (row[2:] for which, row in zip(numbers, rows, strict=True) if which == ANSWER)
        figures = tuple(
            row[:2] for which, row in zip(numbers, rows, strict=True) if which != ANSWER
        )
        return [{(): ((), measures)}], figures

    def _columns(self, statement: int) -> list[str]:
        """Name what stands beside the keys in a statement of the instrument."""
        relation = self.reading.instrument.statements[statement]
        return [f.name for f in fields_of(relation)[len(self.b.release.exact.keys) :]]

    def _grouped(self, statement: str) -> Rows:
        """Run a statement that has one row for each key."""
        width = len(self.b.release.exact.keys)
        rows = self.session.rows(statement)
        grouped = {comparable(row[:width]): (row[:width], row[width:]) for row in rows}
        if len(grouped) != len(rows):
            raise InternalError("BUG-001", "two groups have the same key")
        return grouped

    def _whole(self, rows: Rows, places: list[Key], index: int, column: str) -> list[int]:
        """Read an exact measure as whole numbers of steps; a group that is not there has none."""
        measure = self.measures[column]
        beside = [rows.get(key) for key in places]
        return [in_steps(None if x is None else x[1][index], measure) for x in beside]

    def _curves(
        self, tables: list[Rows], places: list[Key], counted: Counted
    ) -> dict[str, list[Fraction]]:
        """Put the parts of every smooth bound together, in whole steps, rounded up."""
        columns = [
            {name: i for i, name in enumerate(self._columns(statement))}
            for statement in range(len(tables))
        ]
        bounds: dict[str, list[Fraction]] = {}
        for column, noise in self.reading.curves.items():
            parts = self.reading.instrument.parts.get(column, ())
            bounds[column] = []
            for key, rows in zip(places, counted[column], strict=True):
                sizes = []
                for part in parts:
                    row = tables[part.statement].get(key)
                    at = columns[part.statement][part.column]
                    size = part.total(None if row is None else row[1][at])
                    sizes.append((part.role, size, part.floored))
                bounds[column].append(noise.bound_of(sizes, rows))
        return bounds

    def _surveys(self, places: list[Key], together: Figures | None) -> Counted:
        """Give how many rows of the joins one row moves, group by group, where measures rest on that."""
        width = len(self.b.release.exact.keys)
        figures: dict[int, list[Callable[[Key], Figures]]] = {}
        for index, survey in enumerate(self.reading.surveys):
            if together is not None:
                figures[id(survey)] = [_figures(list(together), None)]
                continue
            figures[id(survey)] = [
                _figures(
                    self.session.rows(self.job.statements[survey_name(self.name, index, number)]),
                    width if keyed else None,
                )
                for number, keyed in enumerate(survey.keyed)
            ]
        users: dict[str, CurveNoise | SurveyNoise] = {
            **self.reading.surveyed,
            **self.reading.curves,
        }
        amounts: dict[tuple[int, Fraction, tuple[Figures, ...]], Fraction] = {}

        def rows(survey: Survey, rate: Fraction, key: Key) -> Fraction:
            # Groups with equal figures have equal bounds, and most groups are like others.
            question = (id(survey), rate, tuple(figure(key) for figure in figures[id(survey)]))
            if question not in amounts:
                amounts[question] = survey.rows(rate, question[2])
            return amounts[question]

        return {
            column: [[rows(s, noise.rate, key) for s in noise.surveys] for key in places]
            for column, noise in users.items()
        }

    def _clipped(
        self, index: int, units: Units, places: list[Key], groups: int
    ) -> tuple[dict[str, ClippedNoise], dict[str, list[int]]]:
        """Choose limits privately, and measure with every unit's additions cut down to them."""
        contributions = units.made
        if not units.clipped:
            return {}, {}
        if contributions.at_once is not None:
            tallies = self._tallies(
                contributions.at_once,
                self._beginning_with(contributions.each)(contributions.at_once.plan)
                if self.reading.centered
                else self.job.statements[numbered(f"{self.name} units", index)],
            )
            settled = _settled(units, tallies, groups)
            values = {}
            for c, x in settled.items():
                value = tallies[c].cut[contributions.at_once.limits[c].index(x.limit)]
                values[c] = [x.bound.fine * value] * len(places)
            return settled, values
        several = contributions.above is not None or bool(self.reading.centered)
        print_plan = self._beginning_with(contributions.each if several else None)
        tallies = {}
        if contributions.above is not None:
            tallies = self._tallies(contributions.above, print_plan(contributions.above.plan))
        settled = _settled(units, tallies, groups)
        plan = contributions.clipped({c: x.limit for c, x in settled.items()})
        rows = self._grouped(print_plan(plan))
        return settled, {
            call.name: self._whole(rows, places, i, call.name)
            for i, call in enumerate(plan.aggregations)
        }

    def _about_center(
        self, noise: CenterToChoose, places: list[Key], rows: list[int]
    ) -> tuple[CenteredLimit, list[int]]:
        """Choose a center by noisy numbers of rows, and measure what units add beyond it."""
        print_plan = self._beginning_with(noise.bound.contributions.each)

        def run(plan: n.Relation) -> list[tuple[Any, ...]]:
            return self.session.rows(print_plan(plan))

        center = center_of(noise, sum(rows), run)
        settled, found = read_about(noise, center, len(rows), run)
        parts = {comparable(row[:-1]): int(row[-1] or 0) for row in found}
        return settled, [parts.get(key, 0) for key in places]

    def _beginning_with(self, each: n.Relation | None) -> Callable[[n.Relation], str]:
        """Give how plans are written that begin with what each unit adds: that is added up once, if two of them do."""
        session = self.session
        print_plan = partial(lower, dialect=session.dialect)
        if each is None:
            return print_plan
        if id(each) in self.kept:
            return self.kept[id(each)]
        fields = fields_of(each)
        if any(f.type.kind in session.dialect.shown for f in fields):
            return (
                print_plan  # the outermost columns of a statement are not written like those inside
            )
        table = session.keep(print_plan(each))
        if table is None:
            return print_plan
        table_rows = n.Released(
            table, fields
        )  # printed like one, column by column; unlike one it is private
        self.kept[id(each)] = lambda plan: print_plan(
            transform(plan, lambda x: table_rows if x is each else x)
        )
        return self.kept[id(each)]

    def _tallies(self, tallies: Tallies, statement: str) -> Mapping[str, Tally]:
        """Run a statement that counts units bucket by bucket."""
        measures = self.measures
        return read_tallies(
            tallies, self.session.rows(statement), lambda c, value: in_steps(value, measures[c])
        )

    def _raced(
        self, index: int, units: Units, places: list[Key]
    ) -> dict[str, list[tuple[int, ...]]]:
        """Measure with every unit's additions cut down to each of the limits that race."""
        if not units.racing:
            return {}
        rows = self._grouped(self.job.statements[numbered(f"{self.name} race", index)])
        values: dict[str, list[tuple[int, ...]]] = {}
        at = 0
        for column, noise in units.racing.items():
            ends = range(at, at + len(noise.bound.limits))
            answers = [self._whole(rows, places, i, column) for i in ends]
            values[column] = list(zip(*answers, strict=True))
            at = ends.stop
        return values

    def _cells(self, places: list[Key]) -> tuple[dict[str, list[Cells]], dict[str, RankNoise]]:
        """Run the statements that count cells, once each; a group that is not there has no rows."""
        counted: dict[str, dict[Key, Cells]] = {}
        cells: dict[str, list[Cells]] = {}
        ranks: dict[str, RankNoise] = {}
        limits: dict[str, RankNoise] = {}
        for ranked in self.b.release.ranked:
            statement, noise = statement_of(ranked), self.job.noise.ranks[ranked.column]
            if statement not in counted:
                limits[statement], rows = self._counted_cells(ranked, noise)
                counted[statement] = read_cells(rows, ranked.grid, comparable)
            ranks[ranked.column] = with_limit(ranked, noise, limits[statement])
            cells[ranked.column] = [counted[statement].get(key, ()) for key in places]
        return cells, ranks

    def _counted_cells(
        self, ranked: Ranked, noise: RankNoise
    ) -> tuple[RankNoise, Sequence[tuple[Any, ...]]]:
        """Count the rows of each cell, or weigh them: what the rows of a unit weigh is chosen privately first."""
        statement = statement_of(ranked)
        weighed = self.reading.weighed.get(statement)
        above = None if weighed is None else weighed.bound.contributions.above
        if weighed is None or above is None:
            return noise, self.session.rows(self.job.statements[statement])
        print_plan = self._beginning_with(weighed.bound.contributions.each)
        rows = self.session.rows(print_plan(above.plan))
        tallies = read_tallies(above, rows, lambda *_: 0)  # nothing is summed
        units = tallies[weighed.column]
        tally = take_tally(weighed.bound.limits, Private(units.above), weighed.choosing)
        chosen = settled(ranked, noise, tally)
        assert chosen.limit is not None, "a limit was chosen"
        return chosen, self.session.rows(print_plan(weighed.cut(chosen.limit)))


def _settled(units: Units, tallies: Mapping[str, Tally], groups: int) -> dict[str, ClippedNoise]:
    """Let every noise choose its limit by how many units add more than each; nothing counts where there is one only."""
    return {
        c: x.settled(Private(_told(tallies[c], x) if c in tallies else []), groups)
        for c, x in units.clipped.items()
    }


def _told(tally: Tally, noise: ClippedNoise) -> list[int]:
    if noise.bound.assigned:
        return [*tally.cut, *tally.octaves]
    return tally.sides if noise.bound.octaves else tally.above


def _figures(rows: list[Key], width: int | None) -> Callable[[Key], Figures]:
    """Give a function from a group's key to its figures; without keys, all figures serve every group."""
    if width is None:
        everything = tuple(rows)
        return lambda key: everything
    by_key: dict[Key, list[Key]] = {}
    for row in rows:
        by_key.setdefault(comparable(row[:width]), []).append(row[width:])
    return lambda key: tuple(by_key.get(key, ()))


def order_of_keys(value: object) -> tuple[bool, str, Any]:
    """Give a total order of keys: where a NaN or a NULL stands must not depend on the other rows."""
    nothing = value is None or value != value
    return nothing, type(value).__name__, 0 if nothing else value


def _listed_parts(b: CertifiedRelease) -> Any:
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


def comparable(key: Key) -> Key:
    """Give a key that can be compared with one of another origin."""
    return tuple(map(comparable_key, key))


def comparable_key(value: object) -> object:
    """Make keys from the engine and from the policy comparable: 1, 1.0 and Decimal('1') are one key."""
    if isinstance(value, (int, float, Decimal)) and not isinstance(value, bool):
        return Fraction(value) if value == value and abs(value) != float("inf") else str(value)
    return value


def in_steps(value: Any, measure: Measure) -> int:
    """Read a number that the engine gave; nothing was there to add up where it is NULL."""
    if value is None:
        return 0
    if measure.preprocessed is not None:
        from secant.stats.preprocessing.preprocessed import (
            preprocessed_steps,  # statistics need numpy
        )

        return preprocessed_steps(measure.preprocessed, value)
    if measure.type.kind == "DOUBLE":
        return int(value)  # the statement already sums whole multiples
    return int(Fraction(value) / measure.step)


def value_of(whole: int, measure: Measure) -> object:
    """Give a noisy measure as a value of its type; noise beyond all that an engine can write ends there."""
    kind = measure.type
    if kind.kind == "DOUBLE":
        largest = Fraction(sys.float_info.max)
        return float(max(-largest, min(largest, whole * measure.step)))
    most = 2**127 - 1 if kind.kind == "INTEGER" else 10**kind.precision - 1
    within = max(-most, min(most, whole))
    return within if kind.kind == "INTEGER" else Decimal(within).scaleb(-kind.scale, EXACT)


def steps_of(value: object, measure: Measure) -> int | None:
    """Give how many whole steps a released value is: the inverse of `value_of`."""
    if isinstance(value, bool) or not isinstance(value, (int, float, Decimal)):
        return None
    return round(Fraction(value) / measure.step)
