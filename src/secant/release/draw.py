"""Read the measures of a release plan, and put noise on them: the only stage that reads protected rows.

In: a plan whose budget is reserved, and the session. Out: released tables. Values computed from protected rows come
sealed from `measured`, and stay so until noise is on them (I5).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any, Protocol

from secant.engines.backend import Session
from secant.engines.watch import about_to_charge
from secant.errors import over_limit
from secant.noise.intervals import Span
from secant.noise.measure_noise import Noise
from secant.noise.mechanisms.whole import reached, unmoved
from secant.noise.ranked import RankNoise, drawn
from secant.noise.secrecy import Private, sealed_map
from secant.plan import nodes as n
from secant.records import frozen
from secant.release.measured import PrivateValues, measured, value_of, weighed_keys
from secant.release.release_plan import Keys, ReleasePlan, released_fields
from secant.release.staged_tables import stage
from secant.sensitivity.bound import CertifiedRelease


class Reservation(Protocol):
    """Budget that is held: marked before the first statement over protected rows is sent."""

    def mark_sent(self) -> None:
        """Write down, durably, that a statement is about to be sent (I6)."""
        ...


@frozen
class NoisyTables:
    """What was released: public from here on."""

    tables: Mapping[str, n.Values]
    """Release name -> its keys and noisy numbers."""
    noise: Mapping[str, Noise]
    """Measure column -> its noise, with the limit that was chosen privately."""
    ranks: Mapping[str, RankNoise] = field(default_factory=dict)
    """The same for each order statistic."""
    ends: Mapping[str, list[Span | None]] = field(default_factory=dict)
    """Column of an order statistic -> row by row between which values it usually lies."""


def draw(
    job: ReleasePlan, keys: Mapping[str, Keys | None], session: Session, reservation: Reservation
) -> NoisyTables:
    """Mark that statements go out, read the measures, and put noise on them."""
    if job.prepared.bounded:
        about_to_charge()
        reservation.mark_sent()
    tables: dict[str, n.Values] = {}
    noise: dict[str, Noise] = {}
    ranks: dict[str, RankNoise] = {}
    ends: dict[str, list[Span | None]] = {}
    engine = stage(session, tables)
    for b in job.prepared.bounded:
        one = _released(b, job, keys[b.release.name], engine)
        tables |= one.tables
        noise |= one.noise
        ranks |= one.ranks
        ends |= one.ends
    return NoisyTables(tables, noise, ranks, ends)


def _released(
    b: CertifiedRelease, job: ReleasePlan, keys: Keys | None, session: Session
) -> NoisyTables:
    """Compute one release, and give the noise that is on it, with the limits that were chosen privately."""
    if b.release.weighed is not None:
        keys = _chosen(b.release.weighed.column, b, job, session)
    figures = measured(b, job, keys, session)
    groups = keys
    places: list[int] | None = None
    start: dict[str, list[int]] = {}
    if groups is None and b.release.selector is None:
        groups = unmoved(figures.keys)  # rows stay under every protection, so their keys are public
    elif groups is None:
        places, groups, start = _choose(b, job, figures)
    numbers = {**figures.drawn, **start}
    for measure in b.release.measures:
        if measure.column not in numbers:
            values = _at(figures.values[measure.column], places)
            numbers[measure.column] = figures.noise[measure.column].draw(values)
    columns: list[list[object]] = [
        [value_of(x, m) for x in figures.noise[m.column].shown(numbers[m.column], numbers)]
        for m in b.release.measures
    ]
    ends: dict[str, list[Span | None]] = {}
    for ranked in b.release.ranked:
        cells = _at(figures.cells[ranked.column], places)
        points = drawn(ranked, figures.ranks[ranked.column], cells, job.level)
        columns.append([value for value, _ in points])
        ends[ranked.column] = [span for _, span in points]
    table = table_of(b, job, groups, columns)
    return NoisyTables({b.release.name: table}, figures.noise, figures.ranks, ends)


def _at(values: Private[list[Any]], places: list[int] | None) -> Private[list[Any]]:
    """Keep what was read of some groups."""
    return (
        values if places is None else sealed_map(values, lambda groups: [groups[i] for i in places])
    )


def _chosen(column: str, b: CertifiedRelease, job: ReleasePlan, session: Session) -> Keys:
    """Give the keys whose units weigh enough, with noise: they are public before anything else is read."""
    keys, weights = weighed_keys(b, job, session)
    noisy = job.noise.noise[column].draw(weights)
    return reached(keys, noisy, job.noise.choices[b.release.name].threshold)[1]


def _choose(
    b: CertifiedRelease, job: ReleasePlan, figures: PrivateValues
) -> tuple[list[int], Keys, dict[str, list[int]]]:
    """Show the keys whose noisy number of units reaches the threshold, in the order of the keys."""
    assert b.release.selector is not None
    noisy = figures.noise[b.release.selector].draw(figures.values[b.release.selector])
    places, keys = reached(figures.keys, noisy, job.noise.choices[b.release.name].threshold)
    return places, keys, {b.release.selector: [noisy[i] for i in places]}


def table_of(
    b: CertifiedRelease, job: ReleasePlan, groups: Keys, columns: list[list[object]]
) -> n.Values:
    """Give the released table."""
    if len(groups) > job.groups:
        raise over_limit()
    rows = tuple((*key, *(column[i] for column in columns)) for i, key in enumerate(groups))
    return n.Values(released_fields(b), rows)
