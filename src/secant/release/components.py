"""How far each table and each column by itself moves an answer: the parts that a bound is made of.

In: a job and what is known of tables. Out: for each measure the bound for one row of one table, and for a unit of
distance in one column while all others rest (C-PARTS). Public numbers, for everybody; what the rows that are
there do is not told. Never here: noise or a price.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from secant.analysis.certificate import Certificate, Clipped, Move
from secant.analysis.interface import Request
from secant.analysis.portfolio import ask
from secant.analysis.split import Bounded
from secant.plan.facts import Facts
from secant.plan.measures import Measure
from secant.plan.reads import tables_read
from secant.release.job import Job
from secant.terms.bounds import GlobalBound
from secant.terms.norms import columns_of, norm_of, parse_norm
from secant.terms.policy import Protection


@dataclass(frozen=True, slots=True)
class Component:
    """What one part of the data can do to one measure."""

    measure: str
    protection: str
    part: str
    """`a row of T`, `T.column`, or what the protection hides as a whole."""
    bound: float | None
    """In the measure's own unit, for a row or a unit of distance; None if no public number bounds it."""

    def to_dict(self) -> dict[str, Any]:
        """Give it as plain values."""
        return {
            "measure": self.measure,
            "protection": self.protection,
            "part": self.part,
            "bound": self.bound,
        }


def components_of(
    job: Job, protections: tuple[Protection, ...], facts: Facts
) -> tuple[Component, ...]:
    """Give what each table, and each column that a norm names, does to each measure (C-PARTS)."""
    return tuple(
        Component(m.words, p.name, part, _public(found, m))
        for b in job.prepared.bounded
        for p in protections
        for part, found in _parts(b, p, facts)
        for m in b.release.measures
    )


def _parts(
    b: Bounded, protection: Protection, facts: Facts
) -> Iterator[tuple[str, Certificate | None]]:
    read = sorted(t for t in tables_read(*b.release.aggregates) if t in facts.covered(protection))
    if protection.kind in ("unit", "window"):
        (whole,) = [c for c in b.certificates if c.protection == protection.name]
        yield "a unit", whole
        return
    for table in read:
        if protection.kind != "cells":
            alone = replace(protection, kind="rows", tables=(table,), distance={})
            yield f"a row of {table}", ask(Request(b.release, facts, alone))[0]
        text = protection.distance.get(table)
        for column in () if text is None else dict.fromkeys(columns_of(parse_norm(text))):
            only = norm_of(parse_norm(text), column)
            alone = replace(protection, kind="cells", distance={table: only})
            yield f"{table}.{column}", ask(Request(b.release, facts, alone))[0]


def _public(found: Certificate | None, measure: Measure) -> float | None:
    bound: Move | None = None if found is None else found.bounds.get(measure.column)
    if bound is None:
        return None
    if isinstance(bound, Clipped):
        return float(bound.limits[-1] * measure.step)
    value = bound.value if isinstance(bound, GlobalBound) else bound.cap
    return None if value is None else float(value * measure.step)


def component_lines(components: tuple[Component, ...]) -> list[str]:
    """Write components as `secant explain --components` prints them."""
    if not components:
        return ["components", "  nothing protected is read"]
    width = max(len(c.part) for c in components)
    lines = ["components (each by itself, while all else rests)"]
    for measure in dict.fromkeys(c.measure for c in components):
        lines.append(f"  {measure}")
        for c in (c for c in components if c.measure == measure):
            told = "by no public number" if c.bound is None else f"by at most {c.bound:.6g}"
            if c.bound == 0:
                told = "not at all"
            lines.append(f"    {c.part.ljust(width)}  moves it {told} ({c.protection})")
    return lines
