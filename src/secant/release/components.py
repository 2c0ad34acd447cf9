"""How far each table and each column by itself moves an answer: the parts that a bound is made of.

In: a job and what is known of tables. Out: for each measure the bound for one row of one table, and for a unit of
distance in one column while all others rest (combined.parts), also for the rows with each listed value of a column that
the question looks at. Public numbers, for everybody; what the rows that are there do is told to the owner alone, by
`local_components`. Never here: noise or a price.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from secant.plan.facts.facts import Facts
from secant.plan.facts.parts import Part, Values, disjoint, folded, parts_read
from secant.plan.facts.reads import tables_read
from secant.plan.rewrites.measures import Measure
from secant.policy.coverage import moving_columns
from secant.policy.norms import columns_of, norm_of, parse_norm
from secant.policy.policy import Protection
from secant.records import frozen
from secant.release.release_plan import ReleasePlan
from secant.sensitivity.bound import CertifiedRelease, ask
from secant.sensitivity.bounds import GlobalBound
from secant.sensitivity.certificate import Certificate, ClippedContribution, Move
from secant.sensitivity.interface import Request

MOST_VALUES = 12
"""Listed values of a column by which rows are told apart; of more nobody would read the list."""


@frozen
class Component:
    """What one part of the data can do to one measure."""

    measure: str
    protection: str
    part: str
    """`a row of T`, `T.column`, or what the protection hides as a whole."""
    bound: float | None
    """In the measure's own unit, for a row or a unit of distance; None if no public number bounds it."""
    here: float | None = None
    """What it does on the rows that are there, for the owner; None where that is not told."""

    def to_dict(self) -> dict[str, Any]:
        """Give it as plain values."""
        fields = {
            "measure": self.measure,
            "protection": self.protection,
            "part": self.part,
            "bound": self.bound,
        }
        return fields if self.here is None else {**fields, "here": self.here}


@frozen
class PartOf:
    """A row of a table, or one of its columns, with what is proved of it alone."""

    words: str
    table: str | None
    """None where it is not one table's."""
    certificate: Certificate | None


@frozen
class Subset:
    """Rows of a table that have one value in a column."""

    table: str
    column: str
    value: object
    matters: bool
    """Whether the question looks at such rows at all."""


def components_of(
    job: ReleasePlan, protections: tuple[Protection, ...], facts: Facts
) -> tuple[Component, ...]:
    """Give what each table, and each column that a norm names, does to each measure (combined.parts)."""
    return tuple(
        component(m, p, part, subset)
        for b in job.prepared.bounded
        for p in protections
        for part in parts_of(b, p, facts)
        for subset in (None, *_distinguished(subsets_of(b, p, part.table, facts)))
        for m in b.release.measures
    )


def component(
    measure: Measure, protection: Protection, part: PartOf, subset: Subset | None = None
) -> Component:
    """Say what a part, or its rows with one value of a column, does to a measure."""
    bound = _public(part.certificate, measure)
    if subset is None:
        return Component(measure.words, protection.name, part.words, bound)
    description = f"{part.words}, {subset.column} = {subset.value}"
    return Component(
        measure.words,
        protection.name,
        description,
        bound if subset.matters or bound is None else 0.0,
    )


def _distinguished(subsets: tuple[Subset, ...]) -> Iterator[Subset]:
    """Leave out columns of which all values matter alike: their rows do what all rows do."""
    for subset in subsets:
        if any(not s.matters for s in subsets if s.column == subset.column):
            yield subset


def subsets_of(
    b: CertifiedRelease, protection: Protection, table: str | None, facts: Facts
) -> tuple[Subset, ...]:
    """Give rows of a table by the listed values of columns that stay, and whether the question looks at them."""
    if table is None:
        return ()
    moving = moving_columns(protection, table)
    read = parts_read(b.release.exact, table)
    subsets: list[Subset] = []
    for name, column in facts.policy.facts(table).columns.items():
        values = column.values
        if values is None or len(values) > MOST_VALUES or name in moving:
            continue
        for value in values:
            folded_value = folded(value)
            only: list[Part] = (
                [] if folded_value is None else [{name: (Values(frozenset({folded_value})),)}]
            )
            unread = bool(read) and bool(only) and disjoint(only, read)
            subsets.append(Subset(table, name, value, not unread))
    return tuple(subsets)


def parts_of(b: CertifiedRelease, protection: Protection, facts: Facts) -> Iterator[PartOf]:
    """Give the parts of what a protection hides, each with a certificate of the release for it alone.

    Rests on combined.parts.
    """
    read = sorted(t for t in tables_read(*b.release.aggregates) if t in facts.covered(protection))
    if protection.kind in ("unit", "window"):
        (whole,) = [c for c in b.certificates if c.protection == protection.name]
        yield PartOf("a unit", None, whole)
        return
    for table in read:
        if protection.kind != "cells":
            alone = replace(protection, kind="rows", tables=(table,), distance={})
            certificate = ask(Request(b.release, facts, alone))[0]
            yield PartOf(f"a row of {table}", table, certificate)
        text = protection.distance.get(table)
        for column in () if text is None else columns_of(parse_norm(text)):
            only = norm_of(parse_norm(text), column)
            alone = replace(protection, kind="cells", distance={table: only})
            certificate = ask(Request(b.release, facts, alone))[0]
            yield PartOf(f"{table}.{column}", table, certificate)


def _public(certificate: Certificate | None, measure: Measure) -> float | None:
    bound: Move | None = None if certificate is None else certificate.bounds.get(measure.column)
    if bound is None:
        return None
    if isinstance(bound, ClippedContribution):
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
            change = "by no public number" if c.bound is None else f"by at most {c.bound:.6g}"
            if c.bound == 0:
                change = "not at all"
            elif c.here is not None:
                change += f", here by {c.here:.6g}"
            lines.append(f"    {c.part.ljust(width)}  moves it {change} ({c.protection})")
    return lines
