"""Small worlds for rows that come and go across joins: a few tables, tiny domains, NULLs, doubles of rows.

In: a `random.Random`. Out: what is public (catalog and policy of kind `rows`), databases as bags of tuples, and all
databases that differ in one row of one protected table. Declared facts are broken at will; what the engine keeps
unique, or the owner accepts as a key, stays unique, on both sides of every pair.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

from naming_public import name_public
from secant.policy.policy import ColumnFacts, Policy, Protection, TableFacts
from secant.schema import types as t
from secant.schema.catalog import Catalog, Table, catalog

Row = tuple[Any, ...]
Database = Mapping[str, tuple[Row, ...]]
"""Table -> its rows, sorted: a bag."""

COLUMNS: dict[str, tuple[str, ...]] = {
    "r": ("a", "b"),
    "s": ("b", "c"),
    "t": ("c", "a"),
    "e": ("x", "y"),
    "p": ("a", "w"),
    "m": ("a", "b", "c"),
    "o": ("a",),
    "d": ("z", "k"),
    "n": ("g", "k"),
}
REAL = ("z",)
"""Columns of doubles."""
KINDS: dict[str, t.Type] = {"z": t.DOUBLE, "g": t.decimal(8, 2)}
"""Types of columns; all others are whole numbers."""
KEYS: dict[str, tuple[str, ...]] = {
    "r": ("a",), "s": ("b", "c"), "e": ("x", "y"), "p": ("a",), "m": ("a", "b"), "o": ("a",),
}  # fmt: skip
SEEN = (1, 2, None)
"""What databases hold at first."""
FRESH = 3
"""What a neighbor may bring in besides."""
VALUES = (*SEEN, FRESH)
RANGE = (-1, 2)
GROUPS = (1, 2, 3)


@dataclass(frozen=True)
class World:
    """What is public: the catalog and the policy, which has one protection."""

    catalog: Catalog
    policy: Policy

    @property
    def protection(self) -> Protection:
        return self.policy.protections[0]

    @property
    def varying(self) -> tuple[str, ...]:
        tables = self.protection.tables
        return tuple(COLUMNS) if tables is None else tables

    def unique(self, table: str) -> tuple[tuple[str, ...], ...]:
        """Give the keys that hold on both sides of every pair: kept by the engine, or accepted by the owner."""
        found = self.catalog.table(table)
        assert found is not None
        believed = "keys" in self.policy.accept and table in self.varying
        declared = self.policy.facts(table).key
        return (*found.unique, declared) if believed and declared else found.unique


def world(
    protected: Sequence[str] | None = None,
    unique: Mapping[str, tuple[str, ...]] | None = None,
    declared: Mapping[str, tuple[str, ...]] | None = None,
    *,
    replaced: bool = False,
    bare: Sequence[str] = (),
    accepted: bool = False,
) -> World:
    """Give a world: protected tables (None: all), keys that the engine keeps, keys that the owner declares.

    With `replaced`, neighbors have another row in the place of one. Of the columns of `bare` tables nothing is
    declared: groups are looked up there if the table is public, and chosen privately if it is not. With `accepted`, the
    owner answers for the declared keys of protected tables.
    """
    kept, told = unique or {}, declared or {}
    known = catalog(
        *(
            Table(
                name,
                tuple((c, KINDS.get(c, t.INTEGER)) for c in columns),
                (kept[name],) if name in kept else (),
            )
            for name, columns in COLUMNS.items()
        )
    )
    facts = {
        name: TableFacts(
            told.get(name, ()),
            {},
            {c: ColumnFacts(range=RANGE, values=None if c in REAL else GROUPS) for c in columns}
            if name not in bare
            else {},
        )
        for name, columns in COLUMNS.items()
    }
    tables = None if protected is None else tuple(protected)
    rows = Protection(
        "rows", "rows", Fraction(1), Fraction(1, 1000), tables=tables, replace=replaced
    )
    policy = Policy("", facts, (rows,), accept=("keys",) if accepted else ())
    return World(known, name_public(policy, known))


def draw_world(draw: random.Random, *, replaced: bool = False) -> World:
    """Draw what is protected and what is known of keys."""
    names = list(COLUMNS)
    protected = None
    if draw.random() < 0.6:
        protected = [x for x in names if draw.random() < 0.6] or ["r"]
    unique = {x: k for x, k in KEYS.items() if draw.random() < 0.2}
    declared = {x: k for x, k in KEYS.items() if draw.random() < 0.4}
    bare = [x for x in ("p", "o", "t") if draw.random() < 0.25]
    accepted = draw.random() < 0.25
    return world(protected, unique, declared, replaced=replaced, bare=bare, accepted=accepted)


# ── databases ────────────────────────────────────────────────────────────────────────────────────


def bag(rows: Sequence[Row]) -> tuple[Row, ...]:
    """Sort rows; NULL goes last."""
    return tuple(sorted(rows, key=lambda row: tuple(map(_order, row))))


def _order(value: Any) -> tuple[int, Any]:
    if value is None:
        return (2, 0)
    return (1, 0) if math.isnan(value) else (0, value)


def database(**tables: Sequence[Row]) -> Database:
    """Write a database down; tables that are left out are empty."""
    return {name: bag(tables.get(name, ())) for name in COLUMNS}


def allowed(rows: Sequence[Row], table: str, world: World) -> bool:
    """Whether the engine's own keys hold; NULLs never collide."""
    for key in world.unique(table):
        places = [COLUMNS[table].index(c) for c in key]
        full = [k for row in rows if None not in (k := tuple(row[i] for i in places))]
        if len(full) != len(set(full)):
            return False
    return True


def draw_database(draw: random.Random, tables: frozenset[str], world: World) -> Database:
    """Draw up to four rows for each of some tables, with a heavy row now and then."""
    found: dict[str, tuple[Row, ...]] = {}
    for name, columns in COLUMNS.items():
        rows: list[Row] = []
        for _ in range(draw.randint(0, 4) if name in tables else 0):
            row = tuple(_usual(draw, c) for c in columns)
            for _ in range(draw.choice((1, 1, 1, 1, 1, 1, 2, 5))):
                if allowed([*rows, row], name, world):
                    rows.append(row)
        found[name] = bag(rows)
    return found


def _usual(draw: random.Random, column: str) -> Any:
    value = draw.choice((1, 1, 1, 2, 2, None))
    if value is None or column not in KINDS:
        return value
    if column not in REAL:
        return Decimal(value)
    return draw.choice((float(value), float(value), float(value), math.nan))


def _possible(column: str, values: Sequence[Any]) -> list[Any]:
    if column not in KINDS:
        return list(values)
    if column not in REAL:
        return [None if v is None else Decimal(v) for v in values]
    return [None if v is None else float(v) for v in values] + [math.nan]


def neighbors(
    database: Database,
    tables: frozenset[str],
    world: World,
    draw: random.Random,
    values: Sequence[Any] = VALUES,
    most: int = 24,
) -> Iterator[Database]:
    """Give all databases with one row less, and those with one more row over the small domain and a fresh value.

    Or those with one row replaced, where that is what neighbors are. Where there are more than `most`, so many are
    drawn of a table.
    """
    for name in sorted(tables):
        if name not in world.varying:
            continue
        rows = database[name]
        added = list(itertools.product(*(_possible(c, values) for c in COLUMNS[name])))
        if len(added) > most:
            added = draw.sample(added, most)
        without = [
            rows[:index] + rows[index + 1 :]
            for index in range(len(rows))
            if not index or rows[index] != rows[index - 1]
        ]
        if world.protection.replace:
            found = [bag([*rest, row]) for rest in without for row in added]
            found = draw.sample(found, most) if len(found) > most else found
        else:
            found = [*without, *(bag([*rows, row]) for row in added)]
        for changed in found:
            if allowed(changed, name, world):
                yield {**database, name: changed}
