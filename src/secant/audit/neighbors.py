"""Neighboring databases, by the definition of each protection. Nothing here is shared with the analyses.

In: a small database as lists of rows, a policy, a protection. Out: databases that differ from it in one row, or in all
that belongs to one unit alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from secant.plan.evaluate.values import compare, same_key
from secant.policy.policy import Policy, Protection
from secant.schema.catalog import Catalog

Row = Mapping[str, Any]
Database = Mapping[str, Sequence[Row]]
NOBODY = "nobody"
"""Owns what no unit owns, and never goes."""


def owners_of(
    table: str, policy: Policy, unit: tuple[str, str], database: Database
) -> list[set[Any]]:
    """Give the owner set of each row of a table, by the definition."""
    rows = database[table]
    if table == unit[0]:
        return [_single(row[unit[1]]) for row in rows]
    owners_by_row: list[set[Any]] = [set() for _ in rows]
    for column, (parent, key) in policy.facts(table).references.items():
        if not leads(parent, policy, unit, {table}):
            continue
        if (parent, key) == unit:
            for owners, row in zip(owners_by_row, rows, strict=True):
                owners |= _single(row[column])
            continue
        above = owners_of(parent, policy, unit, database)
        for owners, row in zip(owners_by_row, rows, strict=True):
            if row[column] is None:
                continue
            for parent_row, parent_owners in zip(database[parent], above, strict=True):
                value = parent_row[key]
                if value is not None and compare(value, row[column]) == 0:
                    owners |= parent_owners
    return [owners or {NOBODY} for owners in owners_by_row]


def _single(value: Any) -> set[Any]:
    return {NOBODY} if value is None else {same_key(value)}


def leads(table: str, policy: Policy, unit: tuple[str, str], seen: set[str]) -> bool:
    """Whether rows of a table lead to units."""
    if table == unit[0]:
        return True
    if table in seen:
        return False
    references = policy.facts(table).references.values()
    return any(leads(parent, policy, unit, seen | {table}) for parent, _ in references)


def neighbors(
    database: Database,
    policy: Policy,
    catalog: Catalog,
    protection: Protection,
    pool: Mapping[str, Sequence[Row]],
) -> Iterator[Database]:
    """Give every neighbor by removal, and those by addition or replacement with rows of the pool.

    What the engine keeps unique is unique there too: any other database cannot be (smt.key).
    """
    if protection.kind == "unit":
        yield from _without_units(database, policy, protection)
        return
    others = _with_other_rows(database, protection, pool)
    yield from (other for other in others if can_be(other, catalog))


def can_be(database: Database, catalog: Catalog) -> bool:
    """Whether an engine lets a database be: what it keeps unique is."""
    for name, rows in database.items():
        table = catalog.table(name)
        assert table is not None, "a database holds tables of the catalog"
        for key in table.unique:
            keys = [
                tuple(same_key(r[c]) for c in key) for r in rows if None not in (r[c] for c in key)
            ]
            if len(keys) != len(set(keys)):
                return False
    return True


def _with_other_rows(
    database: Database, protection: Protection, pool: Mapping[str, Sequence[Row]]
) -> Iterator[Database]:
    covered = [t for t in database if protection.tables is None or t in protection.tables]
    for table in covered:
        rows = list(database[table])
        extra = [dict(r) for r in pool.get(table, ())]
        for index in range(len(rows)):
            remaining = rows[:index] + rows[index + 1 :]
            if protection.replace:
                for row in extra + rows[:2]:
                    yield {**database, table: [*rows[:index], row, *rows[index + 1 :]]}
            else:
                yield {**database, table: remaining}
        if not protection.replace:
            for row in extra:
                yield {**database, table: [*rows, row]}


def _without_units(
    database: Database, policy: Policy, protection: Protection
) -> Iterator[Database]:
    assert protection.unit is not None
    owners = {
        table: owners_of(table, policy, protection.unit, database)
        for table in database
        if leads(table, policy, protection.unit, set())
    }
    everyone = sorted(set().union(*(o for rows in owners.values() for o in rows)), key=str)
    for unit in everyone:
        if unit == NOBODY:
            continue
        yield {
            table: [r for r, o in zip(rows, owners[table], strict=True) if o != {unit}]
            if table in owners
            else rows
            for table, rows in database.items()
        }


def rank_distance(q: Any, cells: Mapping[int, int], point: int) -> Any:
    """Give how many rows lie between a point and the quantile, or how many it lacks to be the most frequent."""
    if q is None:
        return max(cells.values(), default=0) - cells.get(point, 0)
    total = sum(cells.values())
    below = sum(rows for i, rows in cells.items() if i < point)
    above = sum(rows for i, rows in cells.items() if i > point)
    if q in (0, 1):
        return below if q == 0 else above
    return max(0, below - q * total, above - (1 - q) * total)
