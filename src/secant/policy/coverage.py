"""Which tables a protection covers, and which tables nobody speaks of.

In: a policy. Out: sets of table names, from what the owner declared alone. A table is public only because the owner
named it so: one that no protection covers and that is not named is read by nobody (I3).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field

from secant.policy.norms import columns_of, parse_norm
from secant.policy.policy import Policy, Protection
from secant.records import frozen
from secant.schema.catalog import Catalog, Table


class EveryTable:
    """The set of all tables."""

    def __contains__(self, table: object) -> bool:
        return True


EVERY = EveryTable()


def reaches_unit(policy: Policy, unit_table: str) -> frozenset[str]:
    """Give the tables whose rows belong to a unit: its own, and all that refer to it, however far away.

    A policy never changes: it remembers the answer.
    """
    if not hasattr(policy, "_reached"):
        object.__setattr__(policy, "_reached", {})
    if unit_table not in policy._reached:
        policy._reached[unit_table] = _reaching(policy, unit_table)
    return policy._reached[unit_table]


def _reaching(policy: Policy, unit_table: str) -> frozenset[str]:
    reached = {unit_table}
    while True:
        further = {
            name
            for name, facts in policy.tables.items()
            if name not in reached
            and any(target in reached for target, _ in facts.references.values())
        }
        if not further:
            return frozenset(reached)
        reached |= further


def tables_of(policy: Policy, protection: Protection) -> frozenset[str] | EveryTable:
    """Give the tables that a protection covers."""
    if protection.kind == "unit":
        return reaches_unit(policy, protection.unit[0]) if protection.unit else frozenset()
    if protection.kind == "window":
        return frozenset(protection.time)
    if protection.kind == "rows":
        return EVERY if protection.tables is None else frozenset(protection.tables)
    return frozenset(protection.distance)


def is_protected(table: str, policy: Policy, protections: Iterable[Protection]) -> bool:
    """Whether some of the protections covers the table."""
    return any(table in tables_of(policy, p) for p in protections)


def protected_tables(policy: Policy, protection: Protection, catalog: Catalog) -> frozenset[str]:
    """Give the tables of the database in which a protection hides something."""
    covered = tables_of(policy, protection)
    return frozenset(name for name in catalog.tables if name in covered)


def open_tables(policy: Policy, catalog: Catalog) -> tuple[str, ...]:
    """Give the tables that no protection covers and that the owner did not name public."""
    return tuple(
        name
        for name in catalog.tables
        if name not in policy.public and not is_protected(name, policy, policy.protections)
    )


def moving_columns(protection: Protection, table: str) -> frozenset[str]:
    """Give the columns of a table that a norm of the protection names."""
    text = protection.distance.get(table)
    return frozenset() if text is None else frozenset(columns_of(parse_norm(text)))


def is_open(policy: Policy, table: str, columns: Iterable[str] = ()) -> bool:
    """Whether no protection of the policy, chosen or not, hides rows of a table or values of these columns."""
    others = (p for p in policy.protections if p.kind != "cells")
    named = frozenset[str]().union(*(moving_columns(p, table) for p in policy.protections))
    return not is_protected(table, policy, others) and named.isdisjoint(columns)


def holding(policy: Policy, chosen: str | None) -> tuple[Protection, ...]:
    """Give the protections that hold for a query: all, but of the alternatives only the chosen one."""
    if chosen is None:
        return policy.protections
    others = set(policy.alternatives) - {chosen}
    return tuple(p for p in policy.protections if p.name not in others)


@frozen
class Coverage:
    """What becomes of one table under a policy."""

    rows: tuple[str, ...] = ()
    """Protections that hide its rows."""
    values: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By protection: the columns whose values it hides, while the rows stay."""
    public: bool = False
    """Whether the owner named it: everybody may see every row."""
    public_columns: tuple[str, ...] = ()
    """Columns that are public although a protection covers the table: no norm names them."""
    refused: tuple[str, ...] = ()
    """Alternatives under which nothing about the table is answered, since they do not cover it."""


def coverage(policy: Policy, catalog: Catalog) -> dict[str, Coverage]:
    """Say for every table of the database who protects it, and what of it is public."""
    return {name: _table_coverage(policy, catalog, name) for name in catalog.tables}


def _with_computed(columns: frozenset[str], table: Table) -> frozenset[str]:
    """Add the columns that the engine computes from some that move."""
    more = (
        c.column.lower() for c in table.computed if c.inputs and not columns.isdisjoint(c.inputs)
    )
    return columns.union(more)


def _table_coverage(policy: Policy, catalog: Catalog, name: str) -> Coverage:
    covering = [p for p in policy.protections if is_protected(name, policy, (p,))]
    cells = [p for p in covering if p.kind == "cells"]
    table = catalog.tables[name]
    # Of some columns only parts can be asked for; they are as public as others that nobody names.
    columns = [column.lower() for column, _ in (*table.columns, *table.parts)]
    hidden = {p.name: _with_computed(moving_columns(p, name), table) for p in cells}
    # What the owner derives from other columns may move with them.
    named = frozenset(policy.facts(name).derived).union(*hidden.values())
    refused, open_somewhere = [], False
    for choice in policy.alternatives or (None,):
        protections = [p for p in holding(policy, choice) if p in covering]
        if choice is not None and covering and not protections:
            refused.append(choice)
        open_somewhere |= bool(protections) and all(p.kind == "cells" for p in protections)
    return Coverage(
        rows=tuple(p.name for p in covering if p.kind != "cells"),
        values={who: tuple(c for c in columns if c in some) for who, some in hidden.items()},
        public=name in policy.public and not covering,
        public_columns=tuple(c for c in columns if open_somewhere and c not in named),
        refused=tuple(refused),
    )
