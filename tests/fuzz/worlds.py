"""Databases with hostile values, their neighbors, and policies of every kind: what drawn questions are asked of.

A world is a pair of databases that differ as the protections of its policy say, opened under one policy with a
ledger each. Public tables are alike in both.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
from drawn_texts import LONG_COLUMN

import secant
from naming_public import naming_public
from secant.engine import Connection

SECRET = "S3CRET"
SCHEMA = f"""
CREATE TABLE person (id BIGINT, name TEXT, city TEXT, age INTEGER, height DOUBLE PRECISION, balance DECIMAL(12, 2),
                     born DATE, active BOOLEAN, seen TIMESTAMP);
CREATE TABLE visit (vid BIGINT, pid BIGINT, day DATE, cost DECIMAL(10, 2), rate DOUBLE PRECISION, note TEXT,
                    big BIGINT);
CREATE TABLE place (id BIGINT, x DOUBLE PRECISION, y DOUBLE PRECISION, speed DOUBLE PRECISION, kind TEXT);
CREATE TABLE city (name TEXT, country TEXT, people BIGINT);
CREATE TABLE "Odd ""Täble" (id BIGINT, "Key" TEXT, "a ""b" DOUBLE PRECISION, "straße" DECIMAL(12, 3),
                          {LONG_COLUMN} BIGINT);
"""
HOSTILE: dict[str, list[Any]] = {
    "int": [None, 0, -1, 9223372036854775807, -9223372036854775808],
    "short": [None, 0, 2147483647, -2147483648],
    "decimal": [None, Decimal("99999999.99"), Decimal("-99999999.99"), Decimal("0.00")],
    "double": [None, float("nan"), float("inf"), float("-inf"), 1.7e308, -0.0, 5e-324],
    "text": [None, "", SECRET, f"{SECRET}'\"%_\\", "ß😀İ" * 50, "12x", "1e400", "9999-99-99"],
    "date": [None, "0001-01-01", "9999-12-31", "2020-02-29"],
    "time": [None, "0001-01-01 00:00:00", "9999-12-31 23:59:59.999999"],
    "bool": [None, True],
}
TABLES = f"""
[tables.person]
key = "id"
[tables.person.columns]
age = {{ range = [0, 120] }}
height = {{ range = [0, 2.5] }}
balance = {{ range = [-1000, 1000] }}
city = {{ values = ["Riga", "Oslo", "Nowhere"] }}
born = {{ range = ["1900-01-01", "2030-01-01"] }}
[tables.visit]
key = "vid"
references = {{ pid = "person.id" }}
[tables.visit.columns]
cost = {{ range = [0, 100] }}
rate = {{ range = [0, 1] }}
big = {{ range = [-1000, 1000] }}
note = {{ values = ["ok", "bad", ""] }}
[tables.place]
key = "id"
[tables.place.columns]
x = {{ range = [-10, 10] }}
y = {{ range = [-10, 10] }}
speed = {{ range = [0.5, 40] }}
kind = {{ values = ["a", "b"] }}
[tables.city]
key = "name"
[tables.'Odd "Täble'.columns]
id = {{ range = [0, 100] }}
'a "b' = {{ range = [-1, 1] }}
"straße" = {{ range = [0, 5] }}
{LONG_COLUMN} = {{ range = [0, 9] }}
"""
BUDGET = 'epsilon = 1000000\ndelta = {delta}\ncomposition = "basic"\n'
ODD = "'odd \"täble'"
ROWS = '[protections.single]\nkind = "rows"\ntables = ["person", "visit", "place", ' + ODD + "]\n"
UNIT = '[protections.people]\nkind = "unit"\nunit = "person.id"\n'
CELLS = '[protections.positions]\nkind = "cells"\ndistance = { place = "l1(l2(x, y), 2*speed)" }\n'


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of policy: its protections, and what neighbors differ in."""

    name: str
    protections: str
    neighbor: str
    head: str = ""
    choice: str | None = None

    @property
    def adds_up(self) -> bool:
        """Whether what is spent is the sum of all prices: other ways of adding up come to less."""
        protections = self.protections.count('kind = "unit"') + self.protections.count(
            'kind = "cells"'
        )
        protections += self.protections.count('kind = "rows')
        return self.protections.count('composition = "basic"') == protections


def _kinds() -> tuple[Kind, ...]:
    some, none = BUDGET.format(delta="0.001"), BUDGET.format(delta="0")
    limits = "[protections.people.limits]\nvisit = 5\n"
    either = 'alternatives = ["people", "single"]\n'
    return (
        Kind("rows", ROWS + some, "row"),
        Kind("rows without delta", ROWS + none, "row"),
        Kind("rows replaced", ROWS + "replace = true\n" + some, "replaced"),
        Kind("unit", UNIT + some + limits, "unit"),
        Kind("unit without limits", UNIT + some, "unit"),
        Kind("unit chosen", UNIT + 'truncation = "chosen"\n' + some + limits, "unit"),
        Kind("unit race", UNIT + 'truncation = "race"\n' + some + limits, "unit"),
        Kind("unit groups", UNIT + none + limits + "groups = 2\n", "unit"),
        Kind("cells", CELLS + some, "moved"),
        Kind("cells softened", CELLS + some + 'softening = { kind = "ramp", width = 0.5 }\n', "moved"),
        Kind("unit and cells", UNIT + some + limits + CELLS + some, "unit"),
        Kind("unit and rows", UNIT + some + limits + ROWS + some, "row"),
        Kind("alternatives", UNIT + some + limits + ROWS + some, "unit", either, "people"),
        Kind("other alternative", UNIT + some + limits + ROWS + some, "row", either, "single"),
    )  # fmt: skip


KINDS = _kinds()

Rows = dict[str, list[tuple[Any, ...]]]
COLUMNS = {
    "person": ("int", "text", "text", "short", "double", "decimal", "date", "bool", "time"),
    "visit": ("int", "int", "date", "decimal", "double", "text", "int"),
    "place": ("int", "double", "double", "double", "text"),
    "city": ("text", "text", "int"),
    'Odd "Täble': ("int", "text", "double", "decimal", "int"),
}


def _usual(draw: random.Random) -> Rows:
    """Draw rows that fit the declared facts."""
    cities, notes = ["Riga", "Oslo", "Nowhere"], ["ok", "bad", ""]
    day = [f"2024-{m:02}-{d:02}" for m in (1, 2, 12) for d in (1, 29)]
    return {
        "person": [
            (i, f"name{i}", draw.choice(cities), draw.randrange(90), draw.random() * 2,
             Decimal(draw.randrange(-9999, 9999)) / 100, draw.choice(day), draw.random() < 0.5, "2024-05-06 07:08:09.5")
            for i in range(1, 8)
        ],
        "visit": [
            (i, draw.randrange(1, 9), draw.choice(day), Decimal(draw.randrange(10000)) / 100, draw.random(),
             draw.choice(notes), draw.randrange(-9, 9))
            for i in range(1, 13)
        ],
        "place": [
            (i, draw.uniform(-9, 9), draw.uniform(-9, 9), draw.uniform(1, 30), draw.choice("ab")) for i in range(1, 7)
        ],
        "city": [("Riga", "LV", 600000), ("Oslo", "NO", 700000), ("Tartu", "EE", 95000)],
        'Odd "Täble': [(i, draw.choice(["k", "K"]), draw.uniform(-1, 1), Decimal("1.125"), i) for i in range(1, 5)],
    }  # fmt: skip


def _hostile(draw: random.Random, table: str, key: int) -> tuple[Any, ...]:
    values = [draw.choice(HOSTILE[kind]) for kind in COLUMNS[table]]
    if "int" in COLUMNS[table] and draw.random() < 0.8:
        values[0] = key if COLUMNS[table][0] == "int" else values[0]
    if table == "visit" and draw.random() < 0.7:
        values[1] = draw.randrange(1, 9)
    return tuple(values)


def neighbors(seed: int, neighbor: str) -> tuple[Rows, Rows]:
    """Draw a database and one that differs from it in a row, a unit, or by a move of values."""
    draw = random.Random(seed)
    first = _usual(draw)
    for table in ("person", "visit", 'Odd "Täble'):
        first[table].append(_hostile(draw, table, 90))
    second = {table: list(rows) for table, rows in first.items()}
    if neighbor == "moved":
        place = draw.randrange(len(first["place"]))
        row = list(first["place"][place])
        row[1] += 0.5
        row[3] -= 0.2
        second["place"][place] = tuple(row)
        return first, second
    table = draw.choice(["person", "visit", "visit", 'Odd "Täble', "place"])
    odd = _hostile(draw, table, 99) if table != "place" else (99, 1.0, -1.0, 2.0, None)
    if neighbor == "row":
        first[table].append(odd)
    elif neighbor == "replaced":
        first[table].append(odd)
        second[table].append(
            _hostile(draw, table, 99) if table != "place" else (99, 9.0, 9.0, 1.0, "b")
        )
    else:
        first["person"].append((99, *_hostile(draw, "person", 99)[1:]))
        visits = [list(_hostile(draw, "visit", 200 + i)) for i in range(draw.randrange(9))]
        for visit in visits:
            visit[1] = 99
        first["visit"] += [tuple(v) for v in visits]
    return first, second


def policy_text(kind: Kind) -> str:
    """Write the policy of a world."""
    text = kind.head + TABLES + kind.protections
    return naming_public(text, COLUMNS)


def fill_duckdb(path: Path, rows: Rows) -> str:
    """Write a database file and give its source."""
    with duckdb.connect(str(path)) as connection:
        connection.execute(SCHEMA)
        _insert(connection, rows, "?")
    return f"duckdb:{path}"


def _insert(connection: Any, rows: Rows, mark: str) -> None:
    for table, several in rows.items():
        name = '"' + table.replace('"', '""') + '"'
        marks = ", ".join([mark] * len(COLUMNS[table]))
        cursor = connection.cursor() if mark != "?" else connection
        if several:
            cursor.executemany(f"INSERT INTO {name} VALUES ({marks})", several)


def fill_postgres(address: str, schema: str, rows: Rows) -> str:
    """Write a schema of a PostgreSQL database and give its source."""
    import psycopg

    with psycopg.connect(address, autocommit=False) as connection:
        connection.execute(f'DROP SCHEMA IF EXISTS "{schema}" CASCADE')
        connection.execute(f'CREATE SCHEMA "{schema}"')
        connection.execute(f'SET search_path = "{schema}"')
        for statement in SCHEMA.split(";\n"):
            if statement.strip():
                connection.execute(statement)
        _insert(connection, rows, "%s")
    return address + ("&" if "?" in address else "?") + f"schema={schema}"


@dataclass
class World:
    """Two neighbors under one policy."""

    seed: int
    kind: Kind
    first: Connection
    second: Connection

    def close(self) -> None:
        self.first.close()
        self.second.close()


def open_world(seed: int, directory: Path, address: str | None = None) -> World:
    """Make the world of a seed, on DuckDB or on the PostgreSQL server at an address."""
    kind = KINDS[seed % len(KINDS)]
    return open_under(policy_text(kind), kind, seed, directory, address)


def open_under(
    text: str, kind: Kind, seed: int, directory: Path, address: str | None = None
) -> World:
    """Make the world of a seed under a policy that was written already."""
    policy = directory / f"world{seed}.toml"
    policy.write_text(text, encoding="utf-8")
    opened = []
    for side, rows in zip("ab", neighbors(seed, kind.neighbor), strict=True):
        if address is None:
            file = directory / f"world{seed}{side}.duckdb"
            file.unlink(missing_ok=True)
            source = fill_duckdb(file, rows)
        else:
            source = fill_postgres(address, f"fuzz{side}", rows)
        ledger = directory / f"world{seed}{side}.ledger"
        opened.append(secant.connect(source, policy=policy, ledger=ledger))
    return World(seed, kind, *opened)
