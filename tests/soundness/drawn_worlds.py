"""Small worlds to search in: a catalog, a policy and databases in which everything collides.

Drawn from a `random.Random`: Hypothesis hands in its own, so that it can shrink; planted-fault tests hand in a seeded
one. Databases break every declared fact (ranges, values, keys, limits, references) unless they are asked to be clean.
"""

from __future__ import annotations

import math
import random
from decimal import Decimal
from fractions import Fraction
from typing import Any

from neighbor_check import Database, Row, World

from naming_public import name_public
from secant.policy.policy import ColumnFacts, Policy, Protection, TableFacts
from secant.schema import types as t
from secant.schema.catalog import Table, catalog

PRICE = t.decimal(8, 2)
COLUMNS: dict[str, tuple[tuple[str, t.Type], ...]] = {
    "person": (("id", t.INTEGER), ("mail", t.TEXT), ("age", t.INTEGER), ("city", t.TEXT)),
    "visit": (("vid", t.INTEGER), ("pid", t.INTEGER), ("code", t.INTEGER), ("cost", PRICE), ("kind", t.TEXT)),
    "item": (("vid", t.INTEGER), ("qty", t.INTEGER), ("price", t.DOUBLE), ("tag", t.TEXT)),
    "note": (("mail", t.TEXT), ("words", t.INTEGER)),
    "meter": (("pid", t.DOUBLE), ("code", t.DOUBLE), ("mark", t.INTEGER)),
    "place": (("code", t.INTEGER), ("region", t.TEXT), ("size", t.INTEGER)),
    "other": (("oid", t.INTEGER), ("amount", t.INTEGER), ("kind", t.TEXT)),
}  # fmt: skip
REFERENCES = {
    "visit": {"pid": ("person", "id"), "code": ("place", "code")},
    "item": {"vid": ("visit", "vid")},
    "note": {"mail": ("person", "mail")},
    "meter": {"pid": ("person", "id"), "code": ("place", "code")},  # reals refer to whole numbers
}
KEYS = {"person": ("id",), "visit": ("vid",), "place": ("code",), "other": ("oid",)}
ROLES = {
    ("person", "id"): "person.id", ("visit", "pid"): "person.id",
    ("visit", "vid"): "visit.vid", ("item", "vid"): "visit.vid",
    ("person", "mail"): "person.mail", ("note", "mail"): "person.mail",
    ("place", "code"): "place.code", ("visit", "code"): "place.code",
    ("other", "oid"): "other.oid", ("meter", "pid"): "person.id", ("meter", "code"): "place.code",
}  # fmt: skip
"""Columns of one role are meant to be joined with each other."""

IDS = (1, 1, 1, 2, 2, 3)
LETTERS = ("a", "b", "ab")
RANGES = {
    ("person", "age"): (0, 3), ("visit", "cost"): (Decimal("0.50"), Decimal("4.00")),
    ("item", "qty"): (-2, 3), ("item", "price"): (0, 2), ("note", "words"): (-1, 2),
    ("place", "size"): (1, 4), ("other", "amount"): (0, 5), ("meter", "mark"): (0, 2),
}  # fmt: skip
VALUES = {
    ("person", "city"): ("a", "b"), ("visit", "kind"): ("a", "b", "ab"), ("item", "tag"): ("a", "b"),
    ("place", "region"): ("a", "b"), ("other", "kind"): ("a",),
}  # fmt: skip
WILD_WHOLE = (0, 1, 2, 3, 5, -4, 2**53, 2**53 + 1, 2**62, -(2**62))
WILD_IDS = (0, 2**53, 2**53 + 1, -(2**62))
WILD_REAL = (0.5, 1.5, -3.25, 1e300, math.nan, math.inf, -math.inf, -0.0, 2.0**53)
WILD_PRICE = tuple(Decimal(x) for x in ("0.00", "1.25", "3.99", "-7.50", "999999.99"))


def draw_world(draw: random.Random, *, generous: bool = False) -> World:
    """Draw a policy over the schema. `generous` limits never bite on the databases drawn here."""
    protections = _protections(draw, generous)
    unique = {name: (KEYS[name],) if draw.random() < 0.15 else () for name in KEYS}
    tables = {}
    for name, columns in COLUMNS.items():
        facts: dict[str, ColumnFacts] = {}
        for column, _ in columns:
            spot = (name, column)
            if spot in RANGES and (generous or draw.random() < 0.97):
                step = 1 if draw.random() < 0.4 else None
                facts[column] = ColumnFacts(range=RANGES[spot], step=step)
            elif spot in VALUES and draw.random() < 0.6:
                facts[column] = ColumnFacts(values=VALUES[spot])
        key = KEYS.get(name, ()) if draw.random() < 0.85 else ()
        tables[name] = TableFacts(key, REFERENCES.get(name, {}), facts)
    known = catalog(*(Table(name, c, unique.get(name, ())) for name, c in COLUMNS.items()))
    return World(known, name_public(Policy("", tables, protections), known))


def _protections(draw: random.Random, generous: bool) -> tuple[Protection, ...]:
    kind = draw.random()
    if kind < 0.5:
        return (_people(draw, generous),)
    if kind < 0.75:
        return (_rows(draw),)
    if kind < 0.85:
        return _shuffled(draw, _people(draw, generous), _rows(draw))
    if kind < 0.93:
        return _shuffled(draw, _people(draw, generous), _visits(draw, generous))
    return _shuffled(draw, _people(draw, generous), _others(draw, generous))


def favored_tables(world: World) -> tuple[str, ...]:
    """Give the tables that are protected, the busiest of them twice."""
    found: list[str] = []
    for protection in world.policy.protections:
        if protection.kind == "rows":
            found += protection.tables or tuple(COLUMNS)
        else:
            found += {"people": ("person", "visit", "visit", "visit", "item", "item", "note", "meter"),
                      "visits": ("visit", "item"), "others": ("other",)}[protection.name]  # fmt: skip
    return tuple(found)


def _shuffled(draw: random.Random, *protections: Protection) -> tuple[Protection, ...]:
    found = list(protections)
    draw.shuffle(found)
    return tuple(found)


def _people(draw: random.Random, generous: bool) -> Protection:
    tables = ("visit", "item", "note", "meter")
    limits = {x: 60 if generous else draw.choice((1, 2, 3)) for x in tables}
    if not generous and draw.random() < 0.3:
        limits["person"] = 2
    groups = None if generous or draw.random() < 0.6 else draw.choice((1, 2))
    return Protection(
        "people", "unit", Fraction(1), Fraction(1, 1000),
        unit=("person", "id"), limits=limits, groups=groups,
        truncation=draw.choice(("auto", "chosen", "race", "fixed")),
    )  # fmt: skip


def _visits(draw: random.Random, generous: bool) -> Protection:
    limits = {"item": 60 if generous else draw.choice((1, 2))}
    return Protection("visits", "unit", Fraction(1), unit=("visit", "vid"), limits=limits)


def _others(draw: random.Random, generous: bool) -> Protection:
    return Protection("others", "unit", Fraction(1), unit=("other", "oid"), limits={"other": 2})


def _rows(draw: random.Random) -> Protection:
    tables = draw.choice(
        (
            None,
            ("person", "visit", "item", "note", "meter"),
            ("visit", "item", "other"),
            ("item",),
            ("visit",),
        )
    )
    return Protection(
        "rows", "rows", Fraction(1), Fraction(1, 1000), tables=tables, replace=draw.random() < 0.35
    )


# ── databases ────────────────────────────────────────────────────────────────────────────────────


def draw_database(
    draw: random.Random, world: World, tables: frozenset[str] = frozenset(COLUMNS)
) -> Database:
    """Draw rows of some tables that break declared facts at will; what the engine keeps unique is unique."""
    database = {
        name: [_wild_row(draw, name) for _ in range(draw.randint(0, 6) if name in tables else 0)]
        for name in COLUMNS
    }
    return _kept_unique(database, world)


def changed_database(
    draw: random.Random, world: World, database: Database, tables: frozenset[str]
) -> Database:
    """Give the database with a row more, a row less, a row doubled or another value in a row."""
    found = {name: list(rows) for name, rows in database.items()}
    for _ in range(draw.choice((1, 1, 2, 3))):
        name = draw.choice(sorted(tables))
        rows = found[name]
        action = draw.random()
        if not rows or (action < 0.35 and len(rows) < 8):
            rows.append(
                dict(draw.choice(rows)) if rows and draw.random() < 0.5 else _wild_row(draw, name)
            )
        elif action < 0.5:
            rows.pop(draw.randrange(len(rows)))
        else:
            index = draw.randrange(len(rows))
            column, kind = draw.choice(COLUMNS[name])
            rows[index] = {**rows[index], column: _wild(draw, name, column, kind)}
    return _kept_unique(found, world)


def _kept_unique(database: dict[str, list[Row]], world: World) -> Database:
    for name, rows in database.items():
        table = world.catalog.table(name)
        assert table is not None
        for key in table.unique:
            rows = _first_of_each(rows, key, nulls=True)
        if name == "place":  # public, and its key is checked before anything is spent
            rows = _first_of_each(rows, ("code",), nulls=False)
        database[name] = rows
    return database


def _first_of_each(rows: list[Row], key: tuple[str, ...], nulls: bool) -> list[Row]:
    found: dict[Any, Row] = {}
    for index, row in enumerate(rows):
        value = tuple(row[c] for c in key)
        found.setdefault((index, "null") if nulls and None in value else value, row)
    return list(found.values())


def _wild_row(draw: random.Random, table: str) -> Row:
    return {column: _wild(draw, table, column, kind) for column, kind in COLUMNS[table]}


def _wild(draw: random.Random, table: str, column: str, kind: t.Type) -> Any:
    if draw.random() < 0.08:
        return None
    role = ROLES.get((table, column))
    if kind.kind == "TEXT":
        return draw.choice(LETTERS)
    if role is not None:
        return draw.choice(IDS) if draw.random() < 0.97 else draw.choice(WILD_IDS)
    if draw.random() < 0.2:
        return draw.choice({"INTEGER": WILD_WHOLE, "DOUBLE": WILD_REAL}.get(kind.kind, WILD_PRICE))
    return _tame(draw, table, column, kind)


def _tame(draw: random.Random, table: str, column: str, kind: t.Type) -> Any:
    low, high = RANGES[(table, column)]
    if kind.kind == "INTEGER":
        return draw.randint(low, high)
    if kind.kind == "DOUBLE":
        return draw.choice((low, high, 0.5, 1.25, 0.1))
    return draw.choice((low, high, Decimal("1.25"), Decimal("3.99")))


def draw_pool(draw: random.Random) -> dict[str, list[Row]]:
    """Draw rows that can be added to, or put in the place of others."""
    return {name: [_wild_row(draw, name)] for name in COLUMNS}


def draw_clean_database(draw: random.Random, world: World, *, most: int = 4) -> Database:
    """Draw rows for which everything declared holds: keys, references, ranges, values; no unit is NULL."""
    counts = {name: draw.randint(1, most) for name in COLUMNS}
    database: dict[str, list[Row]] = {}
    for name in ("place", "person", "visit", "item", "note", "meter", "other"):
        rows = []
        for index in range(counts[name]):
            row: dict[str, Any] = {}
            for column, kind in COLUMNS[name]:
                row[column] = _clean(draw, name, column, kind, index, database)
            rows.append(row)
        database[name] = rows
    return {name: database[name] for name in COLUMNS}


def _clean(
    draw: random.Random,
    table: str,
    column: str,
    kind: t.Type,
    index: int,
    database: dict[str, list[Row]],
) -> Any:
    reference = REFERENCES.get(table, {}).get(column)
    if reference is not None:
        parent, key = reference
        return draw.choice(database[parent])[key]
    if KEYS.get(table) == (column,):
        return index + 1
    if (table, column) == ("person", "mail"):
        return f"m{index}"
    if (table, column) in VALUES:
        return draw.choice(VALUES[(table, column)])
    return _tame(draw, table, column, kind)
