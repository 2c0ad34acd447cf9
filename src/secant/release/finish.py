"""The rest of a question, on public numbers: what the analyst sees, with the ends beside each number.

In: a release plan, and released tables with their noise. Out: rows, ends, errors. Never here: a protected row.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import field

from secant.accuracy.binding_facts import stays_open
from secant.accuracy.consistency import NOTHING, Agreement, agree
from secant.accuracy.display import defined, displayed
from secant.accuracy.isotonic import Order, running_rows
from secant.accuracy.noise_lineage import NoiseLineage
from secant.accuracy.reported_error import (
    Closed,
    half_widths,
    leaves_out,
    not_seen,
    reported_ends,
    reported_ranks,
)
from secant.engines.backend import Session
from secant.engines.print.print_sql import lower
from secant.noise.intervals import Span, number_of
from secant.noise.measure_noise import Noise
from secant.plan import nodes as n
from secant.plan.evaluate.evaluate import evaluate
from secant.plan.rewrites.rewrite import transform
from secant.plan.typing import fields_of, type_of
from secant.records import frozen
from secant.release.draw import NoisyTables
from secant.release.release_plan import ReleasePlan
from secant.schema.types import DOUBLE

Rows = Callable[[n.Relation], list[tuple[object, ...]]]
"""How the rows of a plan are computed."""


@frozen
class Result:
    """Rows as the analyst sees them, and the error beside each number."""

    columns: tuple[str, ...]
    rows: list[tuple[object, ...]]
    ends: list[list[Span | None]] | None
    """Beside each number the ends between which the true one lies; None where no row is noisy."""
    noise: list[list[float | None]] | None
    """Beside each number how far noise alone moved it at most."""
    settled: Mapping[str, Noise] = field(default_factory=dict)
    """Measure column -> its noise, with the limit that was chosen privately. Public, but for the owner's."""
    groups: Mapping[str, int] = field(default_factory=dict)
    """Release name -> how many groups it has."""
    ranks: list[list[float | None]] | None = None
    """Beside each order statistic by how many rows it is off at most."""
    raw: list[tuple[object, ...]] | None = None
    """The rows as noise made them, where the shown ones were moved to where the truth can lie."""
    agreement: Agreement = NOTHING
    """What became of totals and parts that were released apart."""
    running: Order = field(default_factory=dict)
    """Running totals of what is never below zero -> the order of their rows."""
    undefined: tuple[str, ...] = ()
    """Columns with a NULL because a divisor came out as 0, or noise left no number otherwise."""
    noisy: tuple[bool, ...] = ()
    """Whether noise decides the values of each column; nothing where nothing is released."""
    certain: list[list[Span | None]] | None = None
    """Ends that hold for every database, where `ends` hold usually; None where no row is noisy."""

    @property
    def errors(self) -> list[list[float | None]] | None:
        """Beside each number how far the true one is at most, to whichever side."""
        return None if self.ends is None else half_widths(self.rows, self.ends)


def finish(
    job: ReleasePlan,
    noisy: NoisyTables,
    rows_of: Rows,
    lineage: NoiseLineage,
    *,
    made_up: bool = False,
) -> Result:
    """Put the released tables, with this noise on them, into the rest of the plan and run it on public numbers."""
    traced = job.traced
    noise = noisy.noise
    tables, agreement = agree(job.prepared.bounded, noisy.tables, noise, made_up=made_up)
    first, *others = traced.closing()
    names, rows = _run(first, tables, rows_of)
    width = len(traced.outputs)
    answer = [tuple(row[:width]) for row in rows]
    if not job.prepared.bounded:
        return Result(traced.outputs, answer, None, None)
    inside: dict[n.Relation, list[Mapping[str, object]]] = {}
    for relation in others:
        columns, rows_inside = _run(relation, tables, rows_of)
        inside[relation] = [dict(zip(columns, row, strict=True)) for row in rows_inside]
    groups = {name: len(table.rows) for name, table in tables.items()}
    closed = Closed(names, rows, inside, groups, agreement, _totals(job, tables), noisy.ends)
    reported = reported_ends(job, closed, noise)
    ranks = reported_ranks(job, len(answer), noisy.ranks)
    answer, raw, (certain, alone, usual) = displayed(
        traced, names, rows, reported.certain, reported.alone, reported.usual
    )
    ends = [
        [
            known if estimated is None or job.certain else estimated
            for known, estimated in zip(*both, strict=True)
        ]
        for both in zip(certain, usual, strict=True)
    ]
    moved = [bool(lineage.columns[c]) for c in traced.outputs]
    answer, undefined = defined(traced, answer, moved)
    widths = half_widths(answer, alone)
    running = running_rows(traced, names, rows)
    beside = groups, ranks, raw, agreement, running, undefined, tuple(moved), certain
    return Result(traced.outputs, answer, ends, widths, noise, *beside)


def _totals(job: ReleasePlan, tables: Mapping[str, n.Values]) -> dict[str, float]:
    """Add up the numbers of each measure that has several groups."""
    return {
        m.column: math.fsum(x for row in rows if (x := number_of(row[at])) is not None)
        for b in job.prepared.bounded
        if len(rows := tables[b.release.name].rows) > 1
        for at, m in enumerate(b.release.measures, len(b.release.exact.keys))
    }


def _run(
    relation: n.Relation, tables: Mapping[str, n.Values], rows_of: Rows
) -> tuple[tuple[str, ...], list[tuple[object, ...]]]:
    plan = closing_plan(relation, tables)
    names = tuple(f.name for f in fields_of(plan))
    # An engine has no rows without columns, and is asked for a constant there.
    return names, [row[: len(names)] for row in rows_of(plan)]


def from_engine(session: Session) -> Rows:
    """Let the engine compute what follows the releases, unless that is so little that asking takes longer."""
    return lambda plan: (
        list(evaluate(plan, {})) if is_easy(plan) else session.rows(lower(plan, session.dialect))
    )


EASY = frozenset({"INTEGER", "DOUBLE", "TEXT"})


def is_easy(relation: n.Relation) -> bool:
    """Whether a plan only picks released columns and takes the larger or smaller: nothing that engines differ in."""
    while isinstance(relation, n.Project):
        for node in (x for item in relation.items for x in n.walk(item.expression)):
            plain = isinstance(node, (n.Column, n.Literal)) or (
                isinstance(node, n.Call)
                and node.function in ("least", "greatest")
                and type_of(node) == DOUBLE
            )
            if not plain:
                return False
        relation = relation.input
    return isinstance(relation, (n.Released, n.Values)) and all(
        f.type.kind in EASY for f in relation.columns
    )


def closing_plan(relation: n.Relation, tables: Mapping[str, n.Values]) -> n.Relation:
    """Give what follows the releases, with tables in their places; further columns number their rows."""

    def change(node: n.Node) -> n.Node:
        if not isinstance(node, n.Released):
            return node
        table = tables[node.name]
        if len(node.columns) == len(table.columns):
            return table
        return n.Values(node.columns, tuple((*row, i) for i, row in enumerate(table.rows)))

    return transform(relation, change, n.Released)


def error_of(result: Result, job: ReleasePlan) -> dict[str, object]:
    """Give the ends between which true numbers lie, how far noise moves them, and what limits left out."""
    usual = result.ends != result.certain
    return {
        "level": float(job.level),
        "kind": "usual" if usual else "certain",
        "values": result.errors,
        **_sides(result.ends),
        "certain": _sides(result.certain) if usual else None,
        "not_seen": not_seen(job, result.settled) if usual else None,
        "noise": result.noise,
        "ranks": result.ranks,
        "running": dict(result.running),
        "noisy": list(result.noisy or (False for _ in result.columns)),
        "leaves_out": leaves_out(job, result.settled, result.agreement),
        **({"undefined": list(result.undefined)} if result.undefined else {}),
        **({"stays_open": open_} if (open_ := stays_open(job)) else {}),
    }


def _sides(ends: list[list[Span | None]] | None) -> dict[str, list[list[float | None]] | None]:
    """Give lower and upper ends apart."""
    if ends is None:
        return {"low": None, "high": None}
    low, high = ([[_end(x, side) for x in row] for row in ends] for side in (0, 1))
    return {"low": low, "high": high}


def _end(span: tuple[float, float] | None, side: int) -> float | None:
    return None if span is None or math.isinf(span[side]) else span[side]
