"""Thousands of whole histories at once, through the product's own statements on DuckDB.

A history is the value of one more grouped column, and patients of different histories are different: one statement then
gives the sums of all of them. Rows are added to the table at the moments of their histories, and each output is read at
the moment at which it is due. Histories 2k and 2k + 1 are neighbors. Moves are whole numbers, compared exactly.
"""

from __future__ import annotations

import datetime
import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction

import duckdb
import numpy as np

from secant.engines.print.print_sql import lower
from secant.noise.continual import Mechanism
from secant.noise.continual.levels import Tree
from secant.policy.policy import ColumnFacts, Policy, Protection, TableFacts
from secant.policy.streams import Personal, Stream, Width
from secant.policy.windows import MICROSECONDS, Window, place_of
from secant.schema import types as t
from secant.schema.catalog import Catalog, Table, catalog
from secant.streams import reading
from secant.streams.compiling import Compiled, choices, compile_stream

START = datetime.date(2025, 1, 1)
ROWS = 12
"""Rows of a history, at most."""
COLUMNS = ("id", "patient", "day", "ward", "cost", "came", "history")
CATALOG: Catalog = catalog(
    Table(
        "visits",
        tuple((c, t.DATE if c in ("day", "came") else t.INTEGER) for c in COLUMNS),
        (("id",),),
    )
)
QUERIES = (
    "count(*) AS n FROM visits",
    "sum(cost) AS c FROM visits",
    "ward, count(*) AS n, avg(cost) AS c FROM visits",
    "sum(cost) AS c FROM visits WHERE ward = 1",
    "count(DISTINCT ward) AS n FROM visits",
    "count(DISTINCT patient) AS n FROM visits",
)
VALUED = (
    "sum(cost) AS c FROM visits",
    "ward, sum(cost) AS c, avg(cost) AS a FROM visits",
    "sum(cost) AS c FROM visits WHERE ward = 1",
    "count(*) AS n FROM visits WHERE cost > 1",
    "sum(abs(cost)) AS c, sum(cost * cost) AS q FROM visits",
    "sum(CASE WHEN ward = 1 THEN 2 * cost ELSE cost END) AS c FROM visits WHERE cost <> 0",
)
"""Questions for values that move."""
BOTH = (
    *VALUED,
    "count(*) AS n FROM visits",
    "ward, count(*) AS n, avg(cost) AS a FROM visits",
    "count(cost) AS n FROM visits WHERE ward = 1",
)
"""Questions for values that move and rows that come or do not."""
ASKED = {"cells": VALUED, "rows+cells": BOTH}


SHOWN = Fraction(10**9)
"""What a number without noise costs that is not the same in both histories: more than any charge."""


@dataclass(frozen=True)
class Drawn:
    """A stream, how it is released, and in how many steps."""

    compiled: Compiled
    ways: list[Mechanism]
    steps: int
    pairs: int
    kind: str
    within: int
    kept: bool
    """Whether sums of steps are kept for blocks that end later (stream.kept)."""


def drawn_stream(draw: random.Random, kind: str, pairs: int) -> Drawn:
    """Draw a stream over `2 * pairs` histories."""
    steps = draw.choice((1, 3, 7, 12))
    within = draw.choice((1, 2, 3, 5))
    arrival = draw.choice((None, "came"))
    late = draw.choice(("never", "on arrival")) if arrival and kind != "window" else "never"
    chosen = draw.choice(ASKED.get(kind, QUERIES))
    ward = ", ward" if chosen.startswith("ward") else ""
    personal = None
    if kind in ("unit", "window") and draw.random() < 0.5:
        personal = Personal("visits", draw.choice((1, 2)), Width(draw.choice((2, 3, 4)), "day"))
    stream = Stream(
        "s",
        f"SELECT day, history, {chosen} GROUP BY day, history{ward}",
        Width(draw.choice((1, 1, 2, 3)), "day"),
        START,
        Fraction(draw.choice((1, 2)), draw.choice((1, 3))),
        steps=steps,
        shows=draw.choice(("running", "steps", 3)),
        append_only=kind in ("unit", "cells", "rows+cells") or personal is not None,
        arrival=arrival,
        late=late,
        personal=personal,
    )
    facts = TableFacts(
        key=("id",),
        columns={
            "ward": ColumnFacts(values=(0, 1)),
            "cost": ColumnFacts(range=(-2, 3)),
            "history": ColumnFacts(values=tuple(range(2 * pairs))),
        },
    )
    protection = Protection("all", "rows", Fraction(10))
    if kind in ASKED:
        norm = "cost" if within % 2 else "2*cost"
        protection = Protection("all", kind, Fraction(10), distance={"visits": norm})
        if kind == "rows+cells":
            weight = Fraction(draw.choice((1, 2, 3, 6)), 2)
            protection = replace(protection, add_remove={"visits": weight})
    elif kind != "rows":
        protection = Protection(
            "all",
            kind,
            Fraction(10),
            unit=("visits", "patient"),
            limits={"visits": draw.choice((1, 2))},
            groups=draw.choice((1, 2)),
            within=Window(within, "day") if kind == "window" else None,
            time={"visits": "day"} if kind == "window" else {},
        )
    policy = Policy("", {"visits": facts}, (protection,))
    compiled = compile_stream(stream, policy, policy.protections, CATALOG)
    ways = [choice.chosen for choice in choices(compiled)]
    if draw.random() < 0.5:
        tree = Tree(draw.choice((2, 3)), draw.choice((2, 3)))
        ways = [
            way if way.law == "none" else replace(way, name="tree", designs=(tree,)) for way in ways
        ]
    return Drawn(compiled, ways, steps, pairs, kind, within, draw.random() < 0.4)


@dataclass(frozen=True)
class Histories:
    """Pairs of neighbors."""

    columns: dict[str, np.ndarray]
    moment: np.ndarray
    """When each row is added."""
    first: np.ndarray | None
    """For stretches of time: the day on which that of each pair begins, counted from the start."""
    distance: np.ndarray | None = None
    """For values that move: how far the two of each pair lie apart, by the owner's norm."""


def drawn_histories(drawn: Drawn, chance: np.random.Generator) -> Histories:
    """Draw pairs of neighbors."""
    pairs, width = drawn.pairs, drawn.compiled.stream.step.count
    size = (pairs, ROWS)
    at = chance.integers(-1, drawn.steps + 2, size)
    offset = at * width + chance.integers(0, width, size)
    late = chance.choice((0, 0, 0, 1, 2, 5), size)
    patient = chance.choice((1, 1, 1, 2, -1), size)
    there = np.arange(ROWS) < chance.integers(1, ROWS + 1, (pairs, 1))
    values = {
        "day": np.where(chance.random(size) < 0.04, -(10**6), offset),
        "ward": chance.choice((0, 1, 2, -(10**6)), size),
        "cost": chance.choice((-5, -2, 0, 1, 3, 9, -(10**6)), size),
        "came": np.where(chance.random(size) < 0.04, -(10**6), offset + late * width),
    }
    moment = np.maximum(1, at + 1 + late)
    one, other, first = _neighbors(drawn, chance, there, patient, offset)
    # ids tell in which order rows of one day come, and are the same in neighbors
    order = np.argsort(chance.random(size), axis=1)
    moved, distance = dict(values), None
    if drawn.kind in ASKED:
        moved, distances = _moved(drawn, chance, there, values)
        distance = _apart(drawn, distances, one, other)
    parts, moments = [], []
    for side, kept in enumerate((one, other)):
        history = np.broadcast_to(2 * np.arange(pairs)[:, None] + side, size)
        columns = {
            "id": (history * ROWS + order)[kept],
            "patient": np.where(patient < 0, -(10**6), history * 4 + patient)[kept],
            **{name: column[kept] for name, column in (moved if side else values).items()},
            "history": history[kept],
        }
        parts.append(columns)
        moments.append(moment[kept])
    joined = {name: np.concatenate([part[name] for part in parts]) for name in COLUMNS}
    return Histories(joined, np.concatenate(moments), first, distance)


def _moved(drawn, chance, there, values):
    """Move the values of one row or several; which cells are empty is public."""
    cost = values["cost"]
    often = chance.choice((0.0, 0.3, 1.0), (drawn.pairs, 1))
    one = np.arange(ROWS) == chance.integers(0, ROWS, (drawn.pairs, 1))
    here = there & (cost > -(10**6)) & (one | (chance.random(cost.shape) < often))
    by = np.where(here, chance.choice((-4, -1, 1, 2), cost.shape), 0)
    weight = 2 if drawn.within % 2 == 0 else 1
    return {**values, "cost": cost + by}, weight * np.abs(by)


def _apart(drawn, distances, one, other):
    """Give how far two histories lie apart: a row that is far off may as well go, and another one come."""
    weights = drawn.compiled.protections[0].add_remove
    if not weights:
        return distances.sum(axis=1)
    weight = float(weights["visits"])
    moved = np.where(one & other, np.minimum(distances, 2 * weight), 0)
    return moved.sum(axis=1) + weight * (one != other).sum(axis=1)


def _neighbors(drawn, chance, there, patient, offset):
    """Take a row out, or a patient, or what a patient has on some days of a stretch: from one history or the other."""
    pairs = drawn.pairs
    if drawn.kind == "cells":
        return there, there, None
    if drawn.kind == "rows+cells":
        # each row is in both, in one, or in the other; often one row alone is not in both
        often = chance.choice((0.0, 0.0, 0.3, 1.0), (pairs, 1))
        alone = np.arange(ROWS) == chance.integers(0, ROWS, (pairs, 1))
        open_ = (chance.random((pairs, ROWS)) < often) | (alone & (chance.random((pairs, 1)) < 0.7))
        fate = np.where(open_, chance.choice((0, 1, 2), (pairs, ROWS)), 0)
        return there & (fate != 1), there & (fate != 2), None
    if drawn.kind == "rows":
        gone = np.arange(ROWS) == chance.integers(0, ROWS, (pairs, 1))
        return there, there & ~gone, None
    nobodys = patient < 0
    if drawn.kind == "unit":
        # each row of nobody is a patient of its own
        alone = nobodys & (np.arange(ROWS) == chance.integers(0, ROWS, (pairs, 1)))
        whole = chance.random((pairs, 1)) < 0.85
        return there, there & ~np.where(whole, patient == 1, alone), None
    days = drawn.steps * drawn.compiled.stream.step.count
    first = chance.integers(-2, days + 1, (pairs, 1))
    inside = (offset >= first) & (offset < first + drawn.within) & (patient == 1)
    # on each day of the stretch: in both, in one, or in the other
    fate = chance.choice((0, 1, 1, 2), (pairs, drawn.within))
    chosen = np.take_along_axis(fate, np.clip(offset - first, 0, drawn.within - 1), axis=1)
    one, other = there & ~(inside & (chosen == 1)), there & ~(inside & (chosen == 2))
    return one, other, first[:, 0]


def moves(
    drawn: Drawn,
    histories: Histories,
    keeps: Callable[[int], bool] = lambda step: True,
) -> list[np.ndarray]:
    """Give, for each measure, by how much all released sums of two neighbors differ together."""
    # whole numbers; in floats, for those of real values need more than 64 bits, and have room for what is lost
    found = [np.zeros(drawn.pairs) for _ in drawn.ways]
    kept: dict[tuple[int, int], np.ndarray] = {}
    with duckdb.connect() as engine:
        engine.execute(
            "CREATE TABLE visits (id INTEGER, patient INTEGER, day DATE, ward INTEGER, cost INTEGER, came DATE,"
            " history INTEGER)"
        )
        for now in range(1, drawn.steps + 1):
            new = histories.moment == now
            _add(engine, {name: column[new] for name, column in histories.columns.items()})
            for measure, way in enumerate(drawn.ways):
                if drawn.kept:
                    kept[measure, now] = _sums(drawn, engine, [now], measure)
                for output in way.due(now):
                    assert all(weight == 1 for _, weight in output.weights)  # trees only
                    steps = [s for s, _ in output.weights]
                    again = [s for s in steps if not (drawn.kept and keeps(s))]
                    sums = _sums(drawn, engine, again, measure)
                    sums = sum((kept[measure, s] for s in steps if s not in again), sums)
                    found[measure] += np.abs(sums[0::2] - sums[1::2]).sum(axis=1)
    return found


def _add(engine: duckdb.DuckDBPyConnection, rows: dict[str, np.ndarray]) -> None:
    added = {name: column.astype(np.int64) for name, column in rows.items()}
    engine.register("added", added)
    values = [
        f"DATE '{START}' + CAST(nullif({c}, -1000000) AS INTEGER)"
        if c in ("day", "came")
        else f"nullif({c}, -1000000)"
        for c in COLUMNS
    ]
    engine.execute(f"INSERT INTO visits SELECT {', '.join(values)} FROM added")
    engine.unregister("added")


def _sums(drawn, engine, steps: list[int], measure: int) -> np.ndarray:
    """Give the exact sum of some steps for every history and ward, by the statements that the product would send."""
    compiled = drawn.compiled
    sums = np.zeros((2 * drawn.pairs, 2))
    grouped = len(compiled.group_keys) > 1
    release = compiled.bounded.release
    place = len(release.exact.keys) + measure
    measured = release.measures[measure]
    # sums of real values come in whole steps already
    scale = 1.0 if measured.type.kind == "DOUBLE" else float(measured.step)
    for first, last in reading._runs(compiled, steps):
        text = lower(reading.statement(compiled, first, last))
        got = engine.execute(text).fetchnumpy()
        names = list(got)
        if not len(got[names[0]]):
            continue
        values = np.ma.filled(got[names[place]], 0)
        whole = np.rint(np.asarray(values, np.float64) / scale)
        history = np.asarray(got[names[1]], np.int64)
        ward = np.zeros(len(history), np.int64)
        known = np.ones(len(history), bool)
        if grouped:
            raw = got[names[2]]
            known = ~np.ma.getmaskarray(raw)
            ward = np.where(known, np.ma.filled(raw, 0), 0).astype(np.int64)
            known &= (ward >= 0) & (ward <= 1)  # other wards are in no group of the stream
        np.add.at(sums, (history[known], ward[known]), whole[known])
    return sums


def worst(drawn: Drawn, histories: Histories, found: list[np.ndarray]) -> Fraction:
    """Give the largest part of its epsilon that some pair costs, exactly; of a stretch, of its charge."""
    for moved, way in zip(found, drawn.ways, strict=True):
        if way.law == "none" and moved.any():
            return SHOWN  # what is shown as it is must not move
    found = [moved for moved, way in zip(found, drawn.ways, strict=True) if way.law != "none"]
    scales = [way.stretch(1).noise.scale for way in drawn.ways if way.law != "none"]
    share = _shares(drawn, histories)
    about = sum(moved / float(scale) for moved, scale in zip(found, scales, strict=True)) / share
    costs = [
        sum((Fraction(int(m[k])) / s for m, s in zip(found, scales, strict=True)), Fraction(0))
        / Fraction(float(share[k])).limit_denominator(1000)
        for k in np.argsort(about)[-20:]
    ]
    return max(costs) / drawn.compiled.stream.epsilon


def _shares(drawn: Drawn, histories: Histories) -> np.ndarray:
    """Give which part of its price a stream is charged for the stretch of each pair (ledger.window)."""
    if (
        histories.distance is not None
    ):  # a unit of distance costs epsilon; where nothing moves nothing may show
        return np.where(histories.distance > 0, histories.distance, 1e-3)
    stretches = drawn.compiled.stretches
    if stretches is None or histories.first is None:
        return np.ones(drawn.pairs)
    day = 86_400 * MICROSECONDS
    places = {}
    for first in np.unique(histories.first):
        at = place_of(START) + int(first) * day
        met = stretches.span.met(at, at + drawn.within * day)
        # of a stretch that meets nothing nothing is charged, and nothing may move
        places[int(first)] = met / stretches.span.priced if met else 1e-3
    return np.array([places[int(first)] for first in histories.first])
