"""What is asked of the engine for one release: plans over protected rows, before any of them is sent.

In: a release and the noise of its measures, each of which puts in what it needs. Out: named plans, to be printed. Never
here: what they return; `measured` reads that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING

from secant.noise.centered import points_around
from secant.noise.ranked import RankNoise, statement_of
from secant.plan import nodes as n
from secant.plan.rewrites.enforce import MeasuredAggregate
from secant.records import frozen
from secant.sensitivity.certificate import ClippedContribution, Contributions, Survey
from secant.sensitivity.derivative.statement import Instrument, Motion, instrument

if TYPE_CHECKING:
    from secant.noise.centered import CenterToChoose
    from secant.noise.limited import ClippedNoise, RaceNoise
    from secant.noise.measure_noise import Noise
    from secant.noise.smooth import CurveNoise, SurveyNoise


@dataclass(slots=True)
class Units:
    """Measures that one statement reads with what units add cut down."""

    made: Contributions
    clipped: dict[str, ClippedNoise] = field(default_factory=dict)
    racing: dict[str, RaceNoise] = field(default_factory=dict)


@frozen
class Weighed:
    """Cells in which rows weigh what their unit's rows weigh together, cut down to a limit (truncation.weights)."""

    column: str
    """What is added up."""
    bound: ClippedContribution
    choosing: Fraction
    """What the statistics of these cells give together to find the limit."""

    def cut(self, limit: int) -> n.Aggregate:
        """Give the cells with a limit."""
        return self.bound.contributions.clipped({self.column: limit})


@dataclass(slots=True)
class Reading:
    """How the measures of one release are read; filled once, by their noise."""

    release: MeasuredAggregate
    exact: list[str] = field(default_factory=list)
    """Measures that are read as the release computes them."""
    motions: list[Motion] = field(default_factory=list)
    curves: dict[str, CurveNoise] = field(default_factory=dict)
    surveyed: dict[str, SurveyNoise] = field(default_factory=dict)
    units: dict[int, Units] = field(default_factory=dict)
    centered: dict[str, CenterToChoose] = field(default_factory=dict)
    """Sums that are measured about a center."""
    weighed: dict[str, Weighed] = field(default_factory=dict)
    """Statement of cells -> how they are weighed, where they are not counted."""
    instrument: Instrument = field(default_factory=lambda: Instrument((), {}))
    """The statements for exact measures and the parts of curves, and where each part stands."""

    def units_of(self, contributions: Contributions) -> Units:
        """Give the measures that are read by one statement."""
        return self.units.setdefault(id(contributions), Units(contributions))

    @property
    def surveys(self) -> list[Survey]:
        """Give the surveys that measures rest on, each once."""
        users: list[CurveNoise | SurveyNoise] = [*self.surveyed.values(), *self.curves.values()]
        return list({id(s): s for x in users for s in x.surveys}.values())

    @property
    def together(self) -> n.Relation | None:
        """Give the one statement that has all measures and all figures; None if they are asked for one by one."""
        surveys, calls = self.surveys, [c.name for c in self.release.exact.aggregations]
        if len(surveys) != 1 or self.curves or self.units or self.centered or self.release.ranked:
            return None
        if self.exact != calls or list(self.surveyed) != calls:
            return None
        return surveys[0].answered

    def relations(self) -> dict[str, n.Relation]:
        """Give all that is asked, by name."""
        name = self.release.name
        if self.together is not None:
            return {name: self.together}
        statements: dict[str, n.Relation] = {}
        for r in self.release.ranked:
            cells = statement_of(r)
            weighed = self.weighed.get(cells)
            if weighed is None:
                statements[cells] = r.cells
            else:
                statements[cells] = weighed.cut(weighed.bound.limits[-1])
                if weighed.bound.contributions.above is not None:
                    statements[f"{cells} above"] = weighed.bound.contributions.above.plan
        if self.release.weighed is not None:
            statements[keys_name(name)] = self.release.weighed.units
        for index, survey in enumerate(self.surveys):
            for number, relation in enumerate(survey.statements):
                statements[survey_name(name, index, number)] = relation
        for index, units in enumerate(self.units.values()):
            contributions = units.made
            if contributions.at_once is not None:
                statements[numbered(f"{name} units", index)] = contributions.at_once.plan
            else:
                if contributions.above is not None:
                    statements[numbered(f"{name} above", index)] = contributions.above.plan
                largest = {c: x.bound.limits[-1] for c, x in units.clipped.items()}
                if largest:
                    statements[numbered(f"{name} cut", index)] = contributions.clipped(largest)
            if units.racing and contributions.raced is not None:
                limits = {c: x.bound.limits for c, x in units.racing.items()}
                statements[numbered(f"{name} race", index)] = contributions.raced(limits)
        for index, (column, noise) in enumerate(self.centered.items()):
            statements |= _about_centers(name, index, column, noise)
        for index, relation in enumerate(self.instrument.statements):
            statements[numbered(name, index)] = relation
        return statements


def _about_centers(
    name: str, index: int, column: str, noise: CenterToChoose
) -> dict[str, n.Relation]:
    """Give what is asked for one sum: as it is about the first point; about another one a constant differs."""
    centering = noise.centering
    points = points_around(centering, centering.anchor)
    whole, grouped = centering.whole(centering.anchor), noise.bound.contributions
    statements: dict[str, n.Relation] = {
        numbered(f"{name} places", index): centering.placed(points)
    }
    if whole.at_once is not None:
        statements[numbered(f"{name} about", index)] = whole.at_once.plan
    if grouped.above is not None:
        statements[numbered(f"{name} above about", index)] = grouped.above.plan
        largest = {column: noise.bound.limits[-1]}
        statements[numbered(f"{name} cut about", index)] = grouped.clipped(largest)
    return statements


def reading_of(
    release: MeasuredAggregate, noise: Mapping[str, Noise], ranks: Mapping[str, RankNoise]
) -> Reading:
    """Ask the noise of all measures what has to be read."""
    reading = Reading(release)
    for r in release.ranked:
        drawn = ranks[r.column]
        if drawn.bound is not None:
            before = reading.weighed.get(statement_of(r))
            paid = drawn.choosing + (Fraction(0) if before is None else before.choosing)
            reading.weighed[statement_of(r)] = Weighed(r.counted.name, drawn.bound, paid)
    for measure in release.measures:
        noise[measure.column].read_by(reading, measure.column)
    if reading.curves:
        reading.instrument = instrument(release, reading.motions)
    elif reading.exact:  # order statistics alone need their cells only
        direct = release.exact
        if len(reading.exact) < len(direct.aggregations):
            calls = tuple(c for c in direct.aggregations if c.name in reading.exact)
            direct = replace(direct, aggregations=calls)
        reading.instrument = Instrument((direct,), {})
    return reading


def keys_name(release: str) -> str:
    """Name the statement that adds up the weights by which keys are chosen."""
    return f"{release} keys"


def survey_name(release: str, survey: int, statement: int) -> str:
    """Name a statement of a survey."""
    return f"{release} survey {survey + 1}.{statement + 1}"


def numbered(name: str, index: int) -> str:
    """Name the statements of a release that has several."""
    return f"{name} {index + 1}" if index else name
