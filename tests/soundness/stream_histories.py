"""Whole histories of small tables, and what a stream releases of them through the product's own statements."""

from __future__ import annotations

import datetime
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from secant.noise.continual import Mechanism
from secant.plan.evaluate.evaluate import evaluate
from secant.policy.policy import ColumnFacts, Policy, Protection, TableFacts
from secant.policy.streams import Personal, Stream, Width
from secant.schema import types as t
from secant.schema.catalog import Catalog, Table, catalog
from secant.streams.compiling import Compiled, choices, compile_stream
from secant.streams.reading import _gathered, _runs, statement

START = datetime.date(2025, 1, 1)
CATALOG: Catalog = catalog(
    Table(
        "visits",
        (
            ("id", t.INTEGER),
            ("patient", t.INTEGER),
            ("day", t.DATE),
            ("ward", t.INTEGER),
            ("cost", t.INTEGER),
            ("came", t.DATE),
        ),
        (("id",),),
    )
)
FACTS = TableFacts(
    key=("id",),
    columns={"ward": ColumnFacts(values=(0, 1)), "cost": ColumnFacts(range=(-2, 3))},
)
QUERIES = (
    "SELECT day, count(*) AS n FROM visits GROUP BY day",
    "SELECT day, sum(cost) AS c FROM visits GROUP BY day",
    "SELECT day, ward, count(*) AS n, avg(cost) AS c FROM visits GROUP BY day, ward",
    "SELECT day, sum(cost) AS c FROM visits WHERE ward = 1 GROUP BY day",
    "SELECT day, count(DISTINCT ward) AS n FROM visits GROUP BY day",
    "SELECT day, count(DISTINCT patient) AS n FROM visits GROUP BY day",
)


@dataclass(frozen=True)
class Row:
    """A row, with the moment at which it is added: known to the history, not to the table."""

    values: tuple[object, ...]
    added: int

    @property
    def patient(self) -> object:
        return self.values[1]


def policy_of(kind: str, limit: int) -> Policy:
    if kind == "rows":
        protection = Protection("all", "rows", Fraction(10))
    else:
        protection = Protection(
            "all", "unit", Fraction(10), unit=("visits", "patient"), limits={"visits": limit}
        )
    return Policy("", {"visits": FACTS}, (protection,))


def drawn_stream(chance: random.Random, kind: str, limit: int) -> tuple[Compiled, int]:
    """Draw a stream, and give it with its number of steps."""
    steps = chance.choice((1, 3, 7, 12))
    arrival = chance.choice((None, "came"))
    stream = Stream(
        "s",
        chance.choice(QUERIES),
        Width(chance.choice((1, 2)), "day"),
        START,
        Fraction(chance.choice((1, 2)), chance.choice((1, 3))),
        steps=steps,
        shows=chance.choice(("running", "steps", 3)),
        append_only=kind == "unit",
        arrival=arrival,
        late=chance.choice(("never", "on arrival")) if arrival else "never",
        personal=chance.choice((None, Personal("visits", 1, Width(3, "day"))))
        if kind == "unit"
        else None,
    )
    policy = policy_of(kind, limit)
    return compile_stream(stream, policy, policy.protections, CATALOG), steps


def drawn_history(chance: random.Random, compiled: Compiled, steps: int) -> list[Row]:
    """Draw rows: some before the start, some beyond the end, some late, some without a day, ids in any order."""
    rows = []
    ids = chance.sample(range(100), 14)
    for number in ids[: chance.randrange(1, 15)]:
        at = chance.randrange(-1, steps + 2)
        width = compiled.stream.step.count
        day = START + datetime.timedelta(days=at * width + chance.randrange(width))
        late = chance.choice((0, 0, 0, 1, 2, 5))
        came = day + datetime.timedelta(days=late * width)
        rows.append(
            Row(
                (
                    number,
                    chance.choice((1, 1, 2, None)),
                    None if chance.random() < 0.05 else day,
                    chance.choice((0, 1, 2, None)),
                    chance.choice((-5, -2, 0, 1, 3, 9, None)),
                    None if chance.random() < 0.05 else came,
                ),
                max(1, at + 1 + late),
            )
        )
    return rows


def sums_at(
    compiled: Compiled, rows: Sequence[Row], first: int, last: int, now: int
) -> dict[int, dict[tuple[object, ...], tuple[int, ...]]]:
    """Give the sums of some steps, read at a moment."""
    there = [row.values for row in rows if row.added <= now]
    runs = _runs(compiled, list(range(first, last + 1)))
    found = {}
    for a, b in runs:
        answer = evaluate(statement(compiled, a, b), {"visits": there})
        found |= _gathered(compiled, a, b, [tuple(r) for r in answer])
    return found


def released(compiled: Compiled, ways: Sequence[Mechanism], rows: Sequence[Row], steps: int):
    """Give the exact number under every output, as it is at the moment at which the output is due."""
    found: dict[tuple[object, ...], int] = {}
    for step in range(1, steps + 1):
        for measure, way in enumerate(ways):
            for output in way.due(step):
                needed = [s for s, _ in output.weights]
                sums = sums_at(compiled, rows, min(needed), max(needed), step)
                for at, weight in output.weights:
                    for group, values in sums[at].items():
                        key = (measure, output.name, group)
                        found[key] = found.get(key, 0) + weight * values[measure]
    return found


def loss(
    compiled: Compiled, ways: Sequence[Mechanism], a: Sequence[Row], b: Sequence[Row], steps: int
):
    """Give what two histories cost: the sum of sizes of all moves, each over the scale of its noise."""
    one, other = (released(compiled, ways, rows, steps) for rows in (a, b))
    total = Fraction(0)
    groups = _listed(compiled)
    for key in one.keys() | other.keys():
        if groups is not None and key[2] not in groups:
            continue  # groups that are not declared are never released
        moved = abs(one.get(key, 0) - other.get(key, 0))
        way = ways[key[0]]
        total += moved / way.stretch(steps).noise.scale
    return total


def _listed(compiled: Compiled):
    if not compiled.group_keys:
        return None
    return {(Fraction(0),), (Fraction(1),)}


def neighbors(chance: random.Random, kind: str, rows: list[Row]) -> list[Row]:
    """Take one row, or everything of one patient, out of a history; each row of nobody is a patient of its own."""
    gone = chance.randrange(len(rows))
    patient = rows[gone].patient
    if kind == "rows" or patient is None:
        return rows[:gone] + rows[gone + 1 :]
    return [row for row in rows if row.patient != patient]


def with_ways(compiled: Compiled, design: object) -> list[Mechanism]:
    """Give the ways of a stream with another design in place of the chosen one."""
    return [replace(way, name="tree", designs=(design,)) for way in chosen_ways(compiled)]


def chosen_ways(compiled: Compiled) -> list[Mechanism]:
    """Give the ways that the product takes."""
    return [choice.chosen for choice in choices(compiled)]
