"""What a release costs each table by itself: who reads a table of ε by outputs and sources sees what was paid for what.

In: a job, that is releases with their certificates and the noise that is on them. Out: by protection and source, the
ε and δ by which the noise hides one row of that source alone. Public facts only. Never here: a charge; the ledger
charges protections, which is at least as much (workflow.sources).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

from secant.noise.calibrate import cost_of
from secant.noise.cost import Cost
from secant.plan.facts.facts import Facts
from secant.plan.facts.parts import Part, disjoint, parts_read
from secant.plan.facts.reads import tables_read
from secant.policy.policy import Protection
from secant.release.release_plan import ReleasePlan
from secant.sensitivity.bound import CertifiedRelease, ask
from secant.sensitivity.bounds import GlobalBound
from secant.sensitivity.certificate import Certificate, is_still
from secant.sensitivity.interface import Request

MOST_COMPARED = 16
"""Outputs that are compared with each other; of more the costs are added up."""


@dataclass(frozen=True, slots=True, order=True)
class Source:
    """What is hidden: a row of a table, or all that a protection hides together."""

    protection: str
    table: str
    """Empty where a protection is not taken apart by tables."""

    @property
    def words(self) -> str:
        """Name it in a heading."""
        return f"{self.protection}: {self.table}" if self.table else self.protection


def costs_by_source(
    job: ReleasePlan, protections: tuple[Protection, ...], facts: Facts
) -> dict[Source, tuple[Fraction, Fraction]]:
    """Give (epsilon, delta) by source, for all releases of one question together (workflow.sources)."""
    costs: dict[Source, Cost] = {}
    for b in job.prepared.bounded:
        for protection in protections:
            for source, certificate in _certificates(b, protection, facts):
                cost = cost_of(job.noise, b, certificate)
                costs[source] = costs.get(source, Cost()) + cost
    return {source: cost.priced(job.noise.normal).price for source, cost in costs.items()}


def _certificates(
    b: CertifiedRelease, protection: Protection, facts: Facts
) -> Iterator[tuple[Source, Certificate]]:
    """Give for each source a certificate of how far its rows move the release."""
    (whole,) = [c for c in b.certificates if c.protection == protection.name]
    if protection.kind != "rows":
        yield Source(protection.name, ""), whole
        return
    covered = facts.covered(protection)
    for table in sorted(t for t in tables_read(*b.release.aggregates) if t in covered):
        alone = replace(protection, tables=(table,))
        certificate, _ = ask(Request(b.release, facts, alone))
        yield Source(protection.name, table), _comparable(certificate, whole)


def _comparable(alone: Certificate | None, whole: Certificate) -> Certificate:
    """Take the bounds of one table where the noise has a public scale; what hides all tables hides one."""
    if alone is None:
        return whole
    columns = {column for column in whole.bounds if _smaller(alone, whole, column)}
    bounds = {c: alone.bounds[c] if c in columns else bound for c, bound in whole.bounds.items()}
    squares = {c: x for c, x in whole.squares.items() if c not in columns}
    squares |= {c: x for c, x in alone.squares.items() if c in columns}
    return replace(whole, bounds=bounds, squares=squares, groups=alone.groups)


def _smaller(alone: Certificate, whole: Certificate, column: str) -> bool:
    one, all_ = alone.bounds.get(column), whole.bounds[column]
    if not isinstance(one, GlobalBound):
        return False
    # A row that moves nothing costs nothing, whatever the noise is.
    return is_still(one) or (isinstance(all_, GlobalBound) and one.value <= all_.value)


def parts_by_table(
    job: ReleasePlan, protections: tuple[Protection, ...], facts: Facts
) -> dict[str, list[Part] | None]:
    """Give for each table whose rows are hidden which part of it a question looks at (workflow.parts).

    Only where noise has a public scale, so that nothing but the measures is computed from rows, and where a row comes
    or goes: one that is replaced may come back in another part.
    """
    by_table: dict[str, list[Part] | None] = {}
    for protection in protections:
        if protection.kind != "rows":
            continue
        for b in job.prepared.bounded:
            (whole,) = [c for c in b.certificates if c.protection == protection.name]
            plain = (
                all(isinstance(x, GlobalBound) for c in b.certificates for x in c.bounds.values())
                and not b.release.ranked
                and not b.release.chooses_keys
                and not protection.replace
            )
            for table in tables_read(*b.release.aggregates):
                if table not in facts.covered(protection):
                    continue
                earlier = by_table.get(table, [])
                parts = parts_read(b.release.exact, table) if plain and whole.bounds else None
                by_table[table] = None if earlier is None or parts is None else [*earlier, *parts]
    return by_table


def together(prices: Mapping[str, Fraction], parts: Mapping[str, list[Part] | None]) -> Fraction:
    """Give what outputs cost one row of a table: the most that outputs come to that may look at the same row.

    Rests on workflow.parts.

    Outputs of which two never look at the same row are not added up.
    """
    names = [name for name, price in prices.items() if price]
    if len(names) > MOST_COMPARED:
        return sum((prices[n] for n in names), Fraction(0))
    apart = {
        frozenset((a, b))
        for i, a in enumerate(names)
        for b in names[:i]
        if (one := parts.get(a)) and (two := parts.get(b)) and disjoint(one, two)
    }

    def most(tables: list[str]) -> Fraction:
        if not tables:
            return Fraction(0)
        first, others = tables[0], tables[1:]
        meeting = [o for o in others if frozenset((first, o)) not in apart]
        price = prices[first] + most(meeting)
        return price if len(meeting) == len(others) else max(price, most(others))

    return most(names)
