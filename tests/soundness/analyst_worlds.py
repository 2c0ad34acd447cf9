"""A small world with what analysts' databases hold: uuid keys, enums, moments with zones, JSON, arrays, a public table.

In: a `random.Random`. Out: a catalog that Secant's own door to DuckDB has read, a policy, and rows as the plan means
them, which break every declared fact at will. A row also carries the documents and arrays that it was stored with.
"""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb
from neighbor_check import Database, Row, World

from naming_public import name_public
from secant.engines.duckdb.session import open_file
from secant.policy.check import fit_policy
from secant.policy.policy import ColumnFacts, Policy, Protection, TableFacts
from secant.schema.catalog import Catalog
from secant.schema.parts import Elements

SCHEMA = """
CREATE TYPE mood AS ENUM ('calm', 'sad', 'wild');
CREATE TABLE person (id UUID{0}, feeling mood, age INTEGER, city TEXT, born DATE, seen TIMESTAMPTZ, boss UUID,
                     facts JSON, tags TEXT[]);
CREATE TABLE visit (vid INTEGER{0}, pid UUID, day DATE, clock TIME, cost DECIMAL(8, 2), rate DOUBLE PRECISION,
                    code INTEGER, kind TEXT, notes JSON, marks INTEGER[]);
CREATE TABLE sale (ticket INTEGER, item INTEGER, pid UUID, qty INTEGER, day DATE, paid BOOLEAN);
CREATE TABLE back (ticket INTEGER, item INTEGER, pid UUID, qty INTEGER, day DATE);
CREATE TABLE place (code INTEGER, region TEXT, size INTEGER, since DATE);
CREATE VIEW seen_visits AS SELECT pid, kind, cost, code, day FROM visit WHERE kind <> 'ab';
"""
COLUMNS: Mapping[str, Mapping[str, str]] = {
    "person": {"id": "uuid", "feeling": "enum", "age": "int", "city": "text", "born": "date", "seen": "time",
               "boss": "uuid"},
    "visit": {"vid": "int", "pid": "uuid", "day": "date", "clock": "clock", "cost": "dec", "rate": "real",
              "code": "int", "kind": "text"},
    "sale": {"ticket": "int", "item": "int", "pid": "uuid", "qty": "int", "day": "date", "paid": "bool"},
    "back": {"ticket": "int", "item": "int", "pid": "uuid", "qty": "int", "day": "date"},
    "place": {"code": "int", "region": "text", "size": "int", "since": "date"},
}  # fmt: skip
VIEWS: Mapping[str, Mapping[str, str]] = {
    "seen_visits": {c: COLUMNS["visit"][c] for c in ("pid", "kind", "cost", "code", "day")}
}
DOCUMENTS = {"person": "facts", "visit": "notes"}
ARRAYS = {"person": "tags", "visit": "marks"}
PARTS: Mapping[str, Mapping[str, tuple[str, str]]] = {
    "person": {"{0}.facts->>'a'": ("text", "facts->>'a'"), "({0}.facts->>'n')::int": ("int", "(facts->>'n')::bigint"),
               "cardinality({0}.tags)": ("int", "cardinality(tags)"),
               "'a' = ANY({0}.tags)": ("bool", "'a' = ANY(tags)")},
    "visit": {"{0}.notes->'b'->>'c'": ("text", "notes->'b'->>'c'"),
              "({0}.notes->>'n')::double precision": ("real", "(notes->>'n')::double"),
              "cardinality({0}.marks)": ("int", "cardinality(marks)"),
              "1 = ANY({0}.marks)": ("bool", "1 = ANY(marks)")},
}  # fmt: skip
"""Table -> how a part is written over an alias -> its kind, and the column of the plan that it is."""
SPREAD = tuple(Elements(table, column) for table, column in ARRAYS.items())
ROLES = {
    ("person", "id"): "person", ("visit", "pid"): "person", ("sale", "pid"): "person", ("back", "pid"): "person",
    ("seen_visits", "pid"): "person", ("person", "boss"): "person", ("sale", "ticket"): "ticket",
    ("back", "ticket"): "ticket", ("sale", "item"): "item", ("back", "item"): "item", ("visit", "vid"): "visit",
    ("visit", "code"): "place", ("place", "code"): "place", ("seen_visits", "code"): "place",
}  # fmt: skip
"""Columns of one role are meant to be compared."""


def moment(written: str) -> datetime:
    """Read a moment of the plan, which has no zone."""
    return datetime.fromisoformat(written)


LETTERS = ("a", "b", "ab")
MOODS = ("calm", "sad", "wild")
FIRST = date(2024, 1, 1)
RANGES: Mapping[str, Mapping[str, tuple[Any, Any]]] = {
    "person": {"age": (0, 3), "born": (FIRST, date(2024, 1, 4)), "(facts->>'n')::bigint": (0, 2),
               "cardinality(tags)": (0, 3), "seen": (moment("2024-01-01"), moment("2024-01-03"))},
    "visit": {"cost": (Decimal("0.50"), Decimal("4.00")), "rate": (0, 2), "day": (FIRST, date(2024, 1, 4)),
              "(notes->>'n')::double": (0, 1), "cardinality(marks)": (0, 3)},
    "sale": {"qty": (-2, 3), "day": (FIRST, date(2024, 1, 4))},
    "back": {"qty": (0, 2), "day": (FIRST, date(2024, 1, 4))},
    "place": {"size": (1, 4)},
}  # fmt: skip
VALUES = {
    "person": {"city": ("a", "b"), "facts->>'a'": ("x", "y")},
    "visit": {"kind": LETTERS, "notes->'b'->>'c'": ("p", "q")},
    "place": {"region": ("a", "b")},
}
KEYS = {"person": ("id",), "visit": ("vid",), "place": ("code",)}
KEYS |= dict.fromkeys(("sale", "back"), ("ticket", "item"))
REFERENCES = {
    "visit": {"pid": ("person", "id"), "code": ("place", "code")},
    "sale": {"pid": ("person", "id")},
    "back": {"pid": ("person", "id")},
}


def uuid(number: int) -> str:
    """Give the uuid of a number."""
    return f"00000000-0000-0000-0000-{number:012}"


@cache
def read_catalog(kept: bool) -> Catalog:
    """Give what Secant reads of the schema, with or without keys that the engine keeps."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "world.duckdb"
        with duckdb.connect(str(path)) as engine:
            engine.execute(SCHEMA.format(" PRIMARY KEY" if kept else ""))
        backend = open_file(path, threads=1)
        try:
            return backend.catalog()
        finally:
            backend.close()


def draw_world(draw: random.Random) -> World:
    """Draw a policy over the schema."""
    known = read_catalog(draw.random() < 0.2)
    tables = {}
    for name in COLUMNS:
        facts = {
            c: ColumnFacts(range=ends)
            for c, ends in RANGES.get(name, {}).items()
            if draw.random() < 0.97
        }
        facts |= {
            c: ColumnFacts(values=v) for c, v in VALUES.get(name, {}).items() if draw.random() < 0.7
        }
        needed = name in ("person", "place")  # others refer to them
        key = KEYS[name] if needed or draw.random() < 0.9 else ()
        tables[name] = TableFacts(key, REFERENCES.get(name, {}), facts)
    policy = Policy("", tables, _protections(draw))
    return World(known, fit_policy(name_public(policy, known), known), SPREAD)


def _protections(draw: random.Random) -> tuple[Protection, ...]:
    kind = draw.random()
    if kind < 0.62:
        return (_people(draw),)
    if kind < 0.85:
        return (_rows(draw),)
    both = [_people(draw), _rows(draw)]
    draw.shuffle(both)
    return tuple(both)


def _people(draw: random.Random) -> Protection:
    names = ("visit", "sale", "back", "unnest(visit.marks)", "unnest(person.tags)")
    limits = {name: draw.choice((1, 2, 3)) for name in names}
    if draw.random() < 0.3:
        limits["person"] = 2
    return Protection(
        "people", "unit", Fraction(1), Fraction(1, 1000), unit=("person", "id"), limits=limits,
        groups=draw.choice((None, None, 1, 2)), truncation=draw.choice(("auto", "chosen", "race", "fixed")),
    )  # fmt: skip


def _rows(draw: random.Random) -> Protection:
    tables = draw.choice((None, ("person", "visit", "sale", "back"), ("visit", "sale"), ("sale",)))
    return Protection(
        "rows", "rows", Fraction(1), Fraction(1, 1000), tables=tables, replace=draw.random() < 0.35
    )


def protected_tables(world: World) -> tuple[str, ...]:
    """Give the tables that something protects."""
    found: list[str] = []
    for protection in world.policy.protections:
        own = protection.tables or (*COLUMNS,) if protection.kind == "rows" else (*REFERENCES, "person")  # fmt: skip
        found += own
    return tuple(found)


# ── rows ─────────────────────────────────────────────────────────────────────────────────────────

WILD: Mapping[str, tuple[Any, ...]] = {
    "int": (0, 1, 2, 3, 5, -4, 2**31 - 1, -(2**31)),
    "real": (0.5, 1.5, -3.25, 1e300, float("nan"), float("inf"), float("-inf"), -0.0),
    "dec": tuple(Decimal(x) for x in ("0.00", "1.25", "3.99", "-7.50", "999999.99")),
    "date": (FIRST, date(2024, 2, 29), date(1900, 1, 1), date(9999, 12, 31)),
    "time": tuple(map(moment, ("2024-01-01", "2024-01-02 23:59:59.999999", "1900-01-01"))),
    "clock": tuple(moment(f"1970-01-01 {x}") for x in ("00:00:00", "08:30:00", "23:59:59")),
    "text": LETTERS,
    "enum": MOODS,
    "bool": (True, False),
}
FACTS = ({"a": "x", "n": 1}, {"a": "y", "n": 2}, {"a": "z", "n": "many"}, {"n": 7}, {}, [1], None)
NOTES = ({"b": {"c": "p"}, "n": 0.5}, {"b": {"c": "q"}, "n": 1}, {"b": 3, "n": -9}, {"n": "1e3"}, {}, None)  # fmt: skip
TAGS = (None, [], ["a"], ["a", "b"], ["b", "b", "c"])
MARKS = (None, [], [1], [1, 2, 3], [3, 3])


def draw_row(draw: random.Random, table: str) -> Row:
    """Draw a row, with its document, its array and all parts of them that a question may take."""
    row: dict[str, Any] = {
        column: _value(draw, table, column, kind) for column, kind in COLUMNS[table].items()
    }
    if table in DOCUMENTS:
        document, array = DOCUMENTS[table], ARRAYS[table]
        row[document] = draw.choice(FACTS if table == "person" else NOTES)
        row[array] = draw.choice(TAGS if table == "person" else MARKS)
        row |= _parts(table, row[document], row[array])
    return row


def _parts(table: str, document: Any, array: Sequence[Any] | None) -> Row:
    count = None if array is None else len(array)
    if table == "person":
        has = None if array is None else "a" in array
        whole = _field(document, "n")
        return {"facts->>'a'": _field(document, "a"), "facts->>'n'": whole,
                "(facts->>'n')::bigint": _number(whole, int),
                "cardinality(tags)": count, "'a' = ANY(tags)": has}  # fmt: skip
    has = None if array is None else 1 in array
    number = _field(document, "n")
    return {"notes->'b'->>'c'": _field(document, "b", "c"), "notes->>'n'": number,
            "(notes->>'n')::double": _number(number, float),
            "cardinality(marks)": count, "1 = ANY(marks)": has}  # fmt: skip


def _field(document: Any, *path: str) -> str | None:
    for step in path:
        document = document.get(step) if isinstance(document, dict) else None
    return None if document is None else document if isinstance(document, str) else str(document)


def _number(text: str | None, kind: type) -> Any:
    try:
        return None if text is None else kind(text)
    except ValueError:
        return None


def _value(draw: random.Random, table: str, column: str, kind: str) -> Any:
    if draw.random() < 0.08:
        return None
    if kind == "uuid":
        return uuid(draw.choice((1, 1, 1, 2, 2, 3)))
    if (table, column) in ROLES:
        return draw.choice((1, 1, 1, 2, 2, 3))
    ends = RANGES.get(table, {}).get(column)
    if ends is None or draw.random() < 0.2:
        return draw.choice(WILD[kind])
    low, high = ends
    if kind == "int":
        return draw.randint(low, high)
    if kind == "date":
        return low + timedelta(days=draw.randint(0, (high - low).days))
    if kind == "time":
        return low + timedelta(hours=draw.randint(0, 48))
    prices = (low, high, Decimal("1.25"), Decimal("3.99"))
    return draw.choice(prices if kind == "dec" else (0.0, 2.0, 0.5, 1.25, 0.1))


def draw_database(draw: random.Random, world: World, tables: frozenset[str]) -> Database:
    """Draw some rows of the tables that are asked for."""
    found = {
        name: [draw_row(draw, name) for _ in range(draw.randint(0, 6) if name in tables else 0)]
        for name in COLUMNS
    }
    return _kept(found, world)


def changed(
    draw: random.Random, world: World, database: Database, tables: frozenset[str]
) -> Database:
    """Give the database with a row more, a row less, a row doubled or another row in the place of one."""
    found = {name: list(database[name]) for name in COLUMNS}
    for _ in range(draw.choice((1, 1, 2, 3))):
        rows = found[draw.choice(sorted(tables))]
        name = next(n for n, r in found.items() if r is rows)
        action = draw.random()
        if not rows or (action < 0.35 and len(rows) < 8):
            rows.append(draw.choice(rows) if rows and draw.random() < 0.5 else draw_row(draw, name))
        elif action < 0.5:
            rows.pop(draw.randrange(len(rows)))
        else:
            index = draw.randrange(len(rows))
            other = draw_row(draw, name)
            column = draw.choice(list(COLUMNS[name]))
            rows[index] = {**rows[index], column: other[column]} if draw.random() < 0.7 else other
    return _kept(found, world)


def _kept(database: dict[str, list[Row]], world: World) -> Database:
    """Keep what the engine keeps, and keys of public tables, which are checked before anything is spent."""
    for name, rows in database.items():
        table = world.catalog.table(name)
        assert table is not None
        keys = [*table.unique, *([KEYS[name]] if name in world.policy.public else [])]
        for key in keys:
            seen: dict[Any, Row] = {}
            for row in rows:
                if None not in (row[c] for c in key):
                    seen.setdefault(tuple(row[c] for c in key), row)
            rows = list(seen.values())
        database[name] = rows
    return world.completed(database)


# ── the same rows in an engine ───────────────────────────────────────────────────────────────────


def inserts(database: Database) -> list[str]:
    """Write statements that put rows into an engine's tables."""
    found = []
    for name, columns in COLUMNS.items():
        stored = [*columns, *([DOCUMENTS[name], ARRAYS[name]] if name in DOCUMENTS else [])]
        for row in database[name]:
            values = ", ".join(_written(row[c], columns.get(c, c)) for c in stored)
            found.append(f"INSERT INTO {name} VALUES ({values})")
    return found


def _written(value: Any, kind: str) -> str:
    if kind in DOCUMENTS.values():
        return "NULL" if value is None else f"'{json.dumps(value)}'"
    if value is None:
        return "NULL"
    if kind in ARRAYS.values():
        return f"ARRAY[{', '.join(map(repr, value))}]::{'TEXT' if kind == 'tags' else 'INTEGER'}[]"
    if kind == "real":
        return f"CAST('{value}' AS DOUBLE PRECISION)"
    if kind == "time":
        return f"'{value.isoformat(' ')}+00'"
    if kind == "clock":
        return f"'{value.time()}'"
    return str(value) if kind in ("int", "dec", "bool") else f"'{value}'"
