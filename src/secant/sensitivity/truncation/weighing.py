"""Rows that are ranked weigh less the more of them a unit has: all rows of one unit weigh no more than a limit.

In: the cells of an order statistic, and whose rows they count. Out: the limits to choose from, and plans that add up
weights cell by cell. Which rows of a unit count would decide where its values lie; all of them count here, each a bit
(truncation.weights).
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from secant.plan import nodes as n
from secant.plan.rewrites.measures import Measure
from secant.plan.rewrites.order_statistics import Ranked
from secant.schema import types as t
from secant.sensitivity.certificate import ClippedContribution, Contributions, Step
from secant.sensitivity.truncation.clipping import Additions, cut_down
from secant.sensitivity.truncation.tallying import above_limits

PARTS = 2**20
"""Weights are counted in parts of a row: whoever has a million rows weighs nearly as much as the limit all the same."""
FEW = 4
"""A declared limit up to here is not worth looking for a smaller one."""


def weighed(
    ranked: Ranked, rows: n.Relation, unit: str, limits: tuple[int, ...]
) -> ClippedContribution:
    """Bound what the rows of one unit weigh, all cells of all groups together."""
    count = ranked.counted
    measure = Measure(count.name, Fraction(1), t.INTEGER, ranked.weight, ranked.words)
    a = Additions(
        rows,
        unit,
        ranked.cells.keys,
        (count,),
        {count.name: measure},
        alone=True,
        fine={count.name: PARTS},
    )
    several = {count.name: (0, *limits)} if len(limits) > 1 else {}
    contributions = Contributions(
        above_limits(a, several) if several else None,
        lambda chosen: cut_down(a, chosen),
        each=a.each,
    )
    return ClippedContribution(
        contributions,
        limits,
        partners=(count.name,),
        positive=True,
        fine=PARTS,
        octaves=len(limits) > 1,
    )


def unlimited(ranked: Ranked) -> tuple[n.Relation, int | None]:
    """Give the rows that cells count, before they are limited, and the declared limit."""
    known = ranked.cells.input
    assert isinstance(known, n.Filter), "cells are counted of rows with a value"
    rows, limit = known.input, None
    while isinstance(rows, n.Truncate):
        limit, rows = rows.limit, rows.input
    return replace(known, input=rows), limit


def step_of(ranked: Ranked, bound: ClippedContribution) -> Step:
    """Say what a unit's rows weigh."""
    description = f"{ranked.words}: the rows of a unit weigh less the more it has"
    least, most = bound.limits[0], bound.limits[-1]
    value = f"together as much as {most}, as declared"
    if least != most:
        value = f"together as much as a limit that is chosen privately from {len(bound.limits)}, {least} to {most}"
    return Step("truncation.weights", description, value, (), ranked.counted, most)
