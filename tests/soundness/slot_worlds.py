"""Worlds for the slot search: every type of column, hostile names, several protections of every kind at once.

In: a `random.Random`, a combination of protections and a style of names. Out: a world with plain names, in which owners
and neighbors are found, and the same world as the engine sees it. Databases are drawn with plain names; `as_stored`
gives them the names of the second world.
"""

from __future__ import annotations

import datetime
import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

from neighbor_check import Database, Row, World

from secant.policy.policy import ColumnFacts, Policy, Protection, TableFacts
from secant.schema import types as t
from secant.schema.catalog import Table, catalog

PRICE = t.decimal(8, 2)
TABLES: Mapping[str, tuple[tuple[str, t.Type], ...]] = {
    "person": (("id", t.INTEGER), ("name", t.TEXT), ("age", t.INTEGER), ("born", t.DATE), ("ok", t.BOOLEAN)),
    "visit": (("vid", t.INTEGER), ("pid", t.INTEGER), ("code", t.INTEGER), ("cost", PRICE), ("rate", t.DOUBLE),
              ("kind", t.TEXT), ("seen", t.TIMESTAMP)),
    "item": (("vid", t.INTEGER), ("qty", t.INTEGER), ("price", t.DOUBLE), ("tag", t.TEXT)),
    "other": (("oid", t.INTEGER), ("code", t.INTEGER), ("amount", t.INTEGER), ("weight", t.DOUBLE), ("kind", t.TEXT)),
    "place": (("code", t.INTEGER), ("region", t.TEXT), ("size", t.INTEGER), ("opened", t.DATE), ("open", t.BOOLEAN)),
    "free": (("w", t.INTEGER), ("label", t.TEXT), ("share", t.DOUBLE), ("since", t.TIMESTAMP)),
}  # fmt: skip
REFERENCES = {
    "visit": {"pid": ("person", "id"), "code": ("place", "code")},
    "item": {"vid": ("visit", "vid")},
}
KEYS = {"person": ("id",), "visit": ("vid",), "place": ("code",), "other": ("oid",)}
ROLES = {
    ("person", "id"): "person", ("visit", "pid"): "person", ("visit", "vid"): "visit",
    ("item", "vid"): "visit", ("place", "code"): "place", ("visit", "code"): "place",
    ("other", "code"): "place", ("other", "oid"): "other", ("free", "w"): "place",
}  # fmt: skip
"""Columns of one role are meant to be compared with each other."""
FIRST, LAST = datetime.date(2020, 1, 1), datetime.date(2020, 1, 9)
RANGES: Mapping[tuple[str, str], tuple[Any, Any]] = {
    ("person", "age"): (0, 3), ("person", "born"): (FIRST, LAST),
    ("visit", "cost"): (Decimal("0.50"), Decimal("4.00")), ("visit", "rate"): (0, 2),
    ("item", "qty"): (-2, 3), ("item", "price"): (0, 2), ("other", "amount"): (0, 5),
    ("other", "weight"): (-1, 1), ("place", "size"): (1, 4), ("free", "w"): (0, 3), ("free", "share"): (0, 1),
}  # fmt: skip
VALUES = {
    ("visit", "kind"): ("a", "b"), ("item", "tag"): ("a", "b"), ("other", "kind"): ("a",),
    ("place", "region"): ("a", "b"), ("person", "name"): ("a", "b", "ab"),
}  # fmt: skip
POOLS: Mapping[str, tuple[Any, ...]] = {
    "INTEGER": (0, 1, 1, 2, 3, 5, -4, 2**53 + 1, 2**62, -(2**62)),
    "DOUBLE": (0.1, 0.2, 0.3, 0.5, 1.5, -0.7, 1e300, -1e300, math.nan, math.inf, -math.inf, -0.0),
    "DECIMAL": tuple(Decimal(x) for x in ("0.00", "0.50", "1.25", "3.99", "-7.50", "999999.99")),
    "TEXT": ("a", "b", "ab", "", "A"),
    "BOOLEAN": (True, False),
    # A year short of the ends: beyond them the interpreter has no dates, and the engine has.
    "DATE": (
        FIRST,
        LAST,
        datetime.date(2020, 1, 5),
        datetime.date(2, 1, 1),
        datetime.date(9998, 12, 31),
    ),
    "TIMESTAMP": tuple(datetime.datetime(2020, 1, d, h) for d, h in ((1, 0), (5, 12), (9, 23))),  # noqa: DTZ001
}
CELLS = {
    "visit": ("cost", "rate"), "other": ("amount", "weight"), "person": ("age", "born"), "item": ("qty", "price"),
}  # fmt: skip

# ── names ────────────────────────────────────────────────────────────────────────────────────────

LONG = "x" * 60
STYLES = ("plain", "cased", "quoted", "unicode", "long")
ODD = ('a "b"', "x;--", "'", "sel.ect", "order", "a b", "\\", "%s", "{x}", "release1")
"""A dot comes fourth: no policy can refer to a name that has one."""
FOREIGN = ("é", "ß", "ı", "ﬁ", "ǆ", "ſ", "Å", "𝔘", "и", "σ")


def stored_name(style: str, word: str, place: int) -> str:
    """Give the name that an engine stores for a plain word."""
    if style == "cased":
        return "".join(c.upper() if i % 2 else c for i, c in enumerate(word))
    if style == "quoted":
        return f"{word} {ODD[place % len(ODD)]}"
    if style == "unicode":
        return f"{word}{FOREIGN[place % len(FOREIGN)]}"
    return f"{LONG}{word}" if style == "long" else word


# ── protections ──────────────────────────────────────────────────────────────────────────────────


def _people(draw: random.Random) -> Protection:
    return Protection(
        "people", "unit", Fraction(1), Fraction(1, 1000), unit=("person", "id"),
        limits={"visit": draw.choice((1, 2)), "item": draw.choice((1, 2))},
        groups=draw.choice((None, None, 1)), truncation=draw.choice(("auto", "chosen", "race", "fixed")),
    )  # fmt: skip


def _visits(draw: random.Random) -> Protection:
    return Protection(
        "visits", "unit", Fraction(1), Fraction(1, 1000), unit=("visit", "vid"), limits={"item": draw.choice((1, 2))}
    )  # fmt: skip


def _rows(*tables: str, name: str = "rows", replaced: bool = False) -> Any:
    return lambda draw: Protection(
        name, "rows", Fraction(1), Fraction(1, 1000), tables=tables or None, replace=replaced
    )


def _cells(*tables: str, name: str = "cells") -> Any:
    def make(draw: random.Random) -> Protection:
        norms = {}
        for table in tables:
            one, two = CELLS[table]
            norms[table] = draw.choice((one, f"l1({one}, {two})", f"linf(2*{one}, {two})"))
        return Protection(name, "cells", Fraction(1), Fraction(1, 1000), distance=norms)

    return make


COMBINATIONS: Mapping[str, tuple[Any, ...]] = {
    "unit": (_people,),
    "rows": (_rows("person", "visit", "item", "other"),),
    "rows, all tables": (_rows(),),
    "replace": (_rows("visit", "other", "item", replaced=True),),
    "cells": (_cells("visit", "other"),),
    "unit and unit": (_people, _visits),
    "unit and rows, the same": (_people, _rows("visit", "item")),
    "unit and rows, others": (_people, _rows("other")),
    "unit and replace": (_people, _rows("visit", "other", replaced=True)),
    "unit and cells, the same": (_people, _cells("visit")),
    "unit and cells, others": (_people, _cells("other")),
    "rows and rows": (_rows("visit"), _rows("other", "visit", name="more")),
    "rows and replace": (_rows("visit", "item"), _rows("visit", "other", name="swaps", replaced=True)),
    "rows and cells, the same": (_rows("visit"), _cells("visit", "other")),
    "rows and cells, others": (_rows("visit", "person"), _cells("other")),
    "replace and replace": (_rows("visit", replaced=True), _rows("other", name="swaps", replaced=True)),
    "replace and cells": (_rows("visit", replaced=True), _cells("other", "person")),
    "cells and cells": (_cells("visit", "other"), _cells("other", "person", name="more")),
    "three": (_people, _rows("visit", "other"), _cells("other", "visit")),
}  # fmt: skip


@dataclass(frozen=True)
class SlotWorld:
    """One policy under two sets of names, and which tables it covers."""

    plain: World
    real: World
    style: str
    combination: str
    stored: Mapping[tuple[str, ...], str]
    """(table,) or (table, column) -> the name in the engine."""
    moving: frozenset[str]
    """Tables whose rows come and go."""
    cells: Mapping[str, frozenset[str]]
    """Table -> columns whose values move."""

    @property
    def protected(self) -> tuple[str, ...]:
        return tuple(x for x in TABLES if x in self.moving or x in self.cells)

    @property
    def public(self) -> tuple[str, ...]:
        return tuple(x for x in TABLES if x not in self.moving and x not in self.cells)

    @property
    def columns(self) -> Mapping[str, Sequence[tuple[str, t.Type]]]:
        """Tables as the engine has them."""
        return {
            self.stored[name,]: [(self.stored[name, c], kind) for c, kind in columns]
            for name, columns in TABLES.items()
        }

    def as_stored(self, database: Database) -> Database:
        """Give a database under the engine's names."""
        if self.style == "plain":
            return database
        return {
            self.stored[name,]: [{self.stored[name, c]: v for c, v in row.items()} for row in rows]
            for name, rows in database.items()
        }


def draw_world(draw: random.Random, combination: str, style: str) -> SlotWorld:
    """Draw a policy of these protections, and its names."""
    protections = tuple(make(draw) for make in COMBINATIONS[combination])
    if draw.random() < 0.5:
        protections = protections[::-1]
    if style not in ("plain", "cased") and any(p.kind == "cells" for p in protections):
        style = "cased"  # norms name columns by letters alone
    declared = {spot for spot in (*RANGES, *VALUES) if draw.random() < 0.93}
    keyed = {name for name in KEYS if draw.random() < 0.85}
    stored = {(name,): stored_name(style, name, i) for i, name in enumerate(TABLES)}
    for name, columns in TABLES.items():
        for i, (column, _) in enumerate(columns):
            stored[name, column] = stored_name(style, column, i)
    plain = {key: key[-1] for key in stored}
    moving: set[str] = set()
    cells: dict[str, frozenset[str]] = {}
    for p in protections:
        if p.kind == "rows":
            moving |= set(p.tables or TABLES)
        elif p.kind == "unit":
            assert p.unit is not None
            moving |= {"person", "visit", "item"} if p.unit[0] == "person" else {"visit", "item"}
        else:
            for table, norm in p.distance.items():
                named = frozenset(c for c in CELLS[table] if c in norm)
                cells[table] = cells.get(table, frozenset()) | named
    public = [x for x in TABLES if x not in moving and x not in cells]
    worlds = [_world(protections, names, declared, keyed, public) for names in (plain, stored)]
    return SlotWorld(*worlds, style, combination, stored, frozenset(moving), cells)


def _world(
    protections: tuple[Protection, ...],
    names: Mapping[tuple[str, ...], str],
    declared: set[tuple[str, str]],
    keyed: set[str],
    public: Sequence[str],
) -> World:
    """Give the world under some names; a policy knows them lower-cased."""
    tables = {}
    for name, columns in TABLES.items():
        facts = {
            names[name, c].lower(): ColumnFacts(
                range=RANGES.get((name, c)), values=VALUES.get((name, c))
            )
            for c, _ in columns
            if (name, c) in declared
        }
        key = tuple(names[name, c].lower() for c in KEYS.get(name, ())) if name in keyed else ()
        references = {
            names[name, c].lower(): (names[to[0],].lower(), names[to].lower())
            for c, to in REFERENCES.get(name, {}).items()
        }
        tables[names[name,].lower()] = TableFacts(key, references, facts)
    known = catalog(
        *(
            Table(names[name,], tuple((names[name, c], kind) for c, kind in columns))
            for name, columns in TABLES.items()
        )
    )
    renamed = tuple(_renamed(p, names) for p in protections)
    named = tuple(names[x,].lower() for x in public)
    return World(known, Policy("", tables, renamed, public=named))


def _renamed(protection: Protection, names: Mapping[tuple[str, ...], str]) -> Protection:
    unit, tables = protection.unit, protection.tables
    return replace(
        protection,
        unit=None if unit is None else (names[unit[0],].lower(), names[unit].lower()),
        tables=None if tables is None else tuple(names[x,].lower() for x in tables),
        limits={names[x,].lower(): limit for x, limit in protection.limits.items()},
        distance={names[x,].lower(): norm for x, norm in protection.distance.items()},
    )


# ── databases ────────────────────────────────────────────────────────────────────────────────────


def _value(draw: random.Random, table: str, column: str, kind: t.Type) -> Any:
    if draw.random() < 0.06:
        return None
    if (table, column) in ROLES:
        return draw.choice((1, 1, 1, 2, 2, 3))
    spot = RANGES.get((table, column))
    if spot is None or draw.random() < 0.15:
        return draw.choice(POOLS[kind.kind])
    low, high = spot
    if kind.kind == "INTEGER":
        return draw.randint(low, high)
    if kind.kind == "DATE":
        return low + datetime.timedelta(days=draw.randint(0, (high - low).days))
    if kind.kind == "DOUBLE":
        return draw.choice((float(low), float(high), 0.1, 0.2, 0.3, 0.7))
    return draw.choice((low, high, Decimal("1.25"), Decimal("2.00")))


def draw_row(draw: random.Random, table: str) -> Row:
    """Draw a row that breaks declared facts at will."""
    return {column: _value(draw, table, column, kind) for column, kind in TABLES[table]}


def draw_database(draw: random.Random, world: SlotWorld, *, most: int = 4) -> Database:
    """Draw rows; the key of a public table is one, since it is checked before anything is spent."""
    found: dict[str, list[Row]] = {}
    for name in TABLES:
        rows = [draw_row(draw, name) for _ in range(draw.randint(0, most))]
        if name not in world.moving and name in KEYS:
            (key,) = KEYS[name]
            rows = [{**row, key: i + 1} for i, row in enumerate(rows)]
        found[name] = [_settled(draw, world, name, row) for row in rows]
    return found


def _settled(draw: random.Random, world: SlotWorld, table: str, row: Row) -> Row:
    """Values that move by a distance are finite."""
    return {
        c: _finite(draw, table, c) if c in world.cells.get(table, ()) and v is not None else v
        for c, v in row.items()
    }


def _finite(draw: random.Random, table: str, column: str) -> Any:
    low, high = RANGES[table, column]
    if isinstance(low, datetime.date):
        return low + datetime.timedelta(days=draw.randint(-2, (high - low).days + 2))
    if isinstance(low, Decimal):
        return draw.choice((low, high, Decimal("1.25"), Decimal("2.00"), low - 1, high + 1))
    if dict(TABLES[table])[column].kind == "INTEGER":
        return draw.randint(low - 1, high + 1)
    return low + (high - low) * draw.choice((-0.2, 0.0, 0.1, 0.35, 0.5, 0.77, 1.0, 1.2))


def redrawn(draw: random.Random, world: SlotWorld, database: Database) -> Database:
    """Draw all that is protected anew; what is public stays."""
    other = draw_database(draw, world)
    found: dict[str, Sequence[Row]] = {}
    for name, rows in database.items():
        if name in world.moving:
            found[name] = other[name]
        else:
            cells = world.cells.get(name, frozenset())
            found[name] = [
                {c: _finite(draw, name, c) if c in cells and v is not None else v for c, v in row.items()}
                for row in rows
            ]  # fmt: skip
    return found


def moved_cells(
    draw: random.Random, database: Database, distance: Mapping[str, str], tries: int = 6
) -> list[Database]:
    """Give databases in which some protected values are others; what is NULL stays NULL."""
    found = []
    for _ in range(tries):
        table = draw.choice(sorted(distance))
        named = [c for c in CELLS[table] if c in distance[table]]
        rows = [dict(row) for row in database[table]]
        places = [(i, c) for i, row in enumerate(rows) for c in named if row[c] is not None]
        if not places:
            continue
        for i, c in draw.sample(places, draw.randint(1, len(places))):
            rows[i][c] = _finite(draw, table, c)
        found.append({**database, table: rows})
    return found
