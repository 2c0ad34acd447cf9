"""Which numbers rest on facts that nobody declared? Found privately, those hold for all but a few units.

In: an enforced aggregate, and the policy with what was found. Out: the facts, and the columns that they reach. How far
a value outside of such a range lies, or how many rows more a unit has, nothing bounds: no interval can hold it.
"""

from __future__ import annotations

from collections.abc import Iterable

from secant.plan import nodes as n
from secant.plan.facts.lineage import Lineage, Origin
from secant.plan.facts.reads import columns_read, tables_read
from secant.policy.policy import Policy, Protection
from secant.records import frozen, replace


@frozen
class Undeclared:
    """What one release rests on that nobody declared."""

    ranges: frozenset[Origin] = frozenset()
    """Columns whose range was found."""
    limits: frozenset[str] = frozenset()
    """Tables of which one unit's number of rows was found."""
    columns: frozenset[str] = frozenset()
    """Measures and order statistics that values outside of such a range would move."""


def undeclared_of(
    exact: n.Aggregate,
    ranked: Iterable[tuple[str, n.Aggregate]],
    policy: Policy,
    protections: tuple[Protection, ...],
    declared: frozenset[str] = frozenset(),
) -> Undeclared:
    """Follow every measure, and every order statistic with the aggregate that counts its cells, to what was found.

    Sums that are `declared` keep to what is declared alone; what they add up may rest on inner sums all the same.
    """
    tables = tables_read(exact, *(cells for _, cells in ranked))
    limits = frozenset(t for p in protections for t in p.found & tables)
    facts = (x for t in tables for x in policy.facts(t).columns.values())
    if not any(x.found for x in facts):
        return Undeclared(limits=limits)
    lineage = Lineage()
    for relation in (exact, *(cells for _, cells in ranked)):
        lineage.follow(relation)
    if not any(policy.column(*origin).found for origin in lineage.origins.values()):
        return Undeclared(limits=limits)

    def found(*nodes: n.Node | None) -> frozenset[Origin]:
        names = frozenset().union(*(columns_read(x) for x in nodes if x is not None))
        return frozenset(o for o in _origins(names, lineage) if policy.column(*o).found)

    # Inner sums are clamped summand by summand, and whatever is above reads the clamped ones.
    inner = [a for a in n.walk(exact.input) if isinstance(a, n.Aggregate)]
    below = frozenset().union(*(found(*_unbounded_calls(a)) for a in inner))
    rests = {
        call.name: below if call.name in declared else below | found(*_ranged_arguments(call))
        for call in exact.aggregations
    }
    rests |= {column: found(*cells.keys) | below for column, cells in ranked}
    return Undeclared(
        frozenset().union(*rests.values()),
        limits,
        frozenset(column for column, origins in rests.items() if origins),
    )


def declared_only(policy: Policy) -> Policy:
    """Give the policy without the ranges that were found privately."""
    if not any(x.found for facts in policy.tables.values() for x in facts.columns.values()):
        return policy
    tables = {
        name: replace(
            facts,
            columns={
                c: replace(x, range=None, found=False) if x.found else x
                for c, x in facts.columns.items()
            },
        )
        for name, facts in policy.tables.items()
    }
    return replace(policy, tables=tables)


def _unbounded_calls(aggregate: n.Aggregate) -> list[n.Node]:
    return [x for call in aggregate.aggregations for x in _ranged_arguments(call)]


def _ranged_arguments(call: n.Aggregation) -> tuple[n.Scalar, ...]:
    """Give what of a call a range would move: how many values there are, none does."""
    plain = call.argument is None or (call.function == "count" and not call.distinct)
    return () if plain or call.argument is None else (call.argument,)


def _origins(names: frozenset[str], lineage: Lineage) -> Iterable[Origin]:
    """Follow columns down to base tables, by whatever way."""
    pending, seen = list(names), set(names)
    while pending:
        name = pending.pop()
        if name in lineage.origins:
            yield lineage.origins[name]
        parts: list[n.Node] = list(lineage.merged.get(name, ()))
        if name in lineage.definitions:
            parts.append(lineage.definitions[name])
        if name in lineage.aggregations:
            parts.append(lineage.aggregations[name][0])
        if name in lineage.windows:
            parts.append(lineage.windows[name][0])
        more = frozenset().union(*map(columns_read, parts)) - seen
        seen |= more
        pending += more
