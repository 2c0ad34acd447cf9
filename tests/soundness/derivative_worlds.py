"""Small schemas in which everything can go wrong, and databases over them.

In: norms and settings. Out: a world, and a function that draws its databases: few rows, keys that collide unless
they are to be kept, empty cells where they are asked for. Protected cells are filled in later, by a mover.
"""

from __future__ import annotations

import datetime
import random
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

from derivative_check import World, world
from derivative_distance import Database

from secant.schema import types as t
from secant.schema.catalog import Table, catalog

COLUMNS: dict[str, tuple[tuple[str, t.Type], ...]] = {
    "a": (
        ("id", t.INTEGER), ("g", t.INTEGER), ("k", t.INTEGER), ("p", t.DOUBLE), ("x", t.DOUBLE),
        ("y", t.DOUBLE), ("v", t.DOUBLE), ("m", t.INTEGER), ("d", t.DATE), ("e", t.DATE),
        ("c", t.decimal(8, 2)),
    ),
    "b": (("id", t.INTEGER), ("k", t.INTEGER), ("z", t.DOUBLE), ("w", t.DOUBLE), ("m", t.INTEGER)),
    "u": (("k", t.INTEGER), ("h", t.INTEGER), ("q", t.DOUBLE)),
    "lone": (("s", t.DOUBLE),),
}  # fmt: skip
RANGES = """
[database]
source = "duckdb:none"
[tables.a.columns]
x = { range = [-3, 5] }
y = { range = [0.5, 4] }
v = { range = [0.25, 8] }
m = { range = [-4, 10], step = 1 }
d = { range = ["2020-01-01", "2020-02-10"], step = "1 day" }
e = { range = ["2020-01-01", "2020-02-10"], step = "1 day" }
c = { range = [0, 20], step = 0.01 }
p = { range = [-2, 3] }
[tables.b.columns]
z = { range = [-2, 2] }
w = { range = [1, 6] }
m = { range = [0, 5], step = 1, values = [0, 1, 2, 4] }
[tables.u.columns]
q = { range = [-1, 2] }
[tables.lone.columns]
s = { range = [0, 1] }
"""
KEYS = {"a": ("id",), "b": ("id",), "u": ("k",)}
PLAIN = {
    "a": "l1(x, y, v, 0.5*m, 0.1*linf(d, e), c)",
    "b": "l1(z, w, m)",
    "lone": "s",
}


def small_world(
    norms: Mapping[str, str] | None = None,
    *,
    rows: Mapping[str, str] | None = None,
    tables: str = "l1",
    settings: str = "",
    keys: tuple[str, ...] = ("a", "b", "u"),
    others: str = "",
) -> World:
    """Give a world with these norms; the other tables are public, unless `others` protects them too."""
    known = catalog(*(Table(name, columns) for name, columns in COLUMNS.items()))
    written = [RANGES]
    for table in keys:
        names = ", ".join(f'"{c}"' for c in KEYS[table])
        written.append(f"[tables.{table}]\nkey = [{names}]")
    written.append('[protections.cells]\nkind = "cells"\nepsilon = 1000.0')
    written.append(f'tables = "{tables}"\n{settings}')
    if rows:
        written.append("rows = { " + ", ".join(f'{k} = "{v}"' for k, v in rows.items()) + " }")
    written.append("[protections.cells.distance]")
    written += [f'{k} = "{v}"' for k, v in (PLAIN if norms is None else norms).items()]
    written.append(others)
    return world(known, "\n".join(written))


def _public(draw: random.Random, kind: t.Type) -> Any:
    """Draw a value as a public column has it; in a protected one it is replaced."""
    if kind.kind == "DATE":
        return datetime.date(2020, 1, draw.choice((1, 10, 20)))
    if kind.kind == "DECIMAL":
        return Decimal(draw.choice(("0.00", "1.25", "7.50")))
    return draw.choice((0, 1, 3)) if kind.kind == "INTEGER" else draw.choice((0.0, 1.0, -0.5, 2.5))


def small_database(
    *, nulls: bool = False, clean: bool = False, most: int = 3
) -> Callable[[random.Random], Database]:
    """Give a drawer of databases; `clean` ones keep the declared keys."""

    def cell(draw: random.Random, value: Any) -> Any:
        return None if nulls and draw.random() < 0.25 else value

    def databases(draw: random.Random) -> Database:
        ids = range(1, 9) if clean else (1, 1, 2, 3)
        found: dict[str, list[dict[str, Any]]] = {}
        for table, columns in COLUMNS.items():
            number = 0 if draw.random() < 0.05 else draw.randint(1, most)
            keys = draw.sample(list(ids), number) if clean else draw.choices(list(ids), k=number)
            rows = []
            for key in keys:
                row: dict[str, Any] = {}
                for column, kind in columns:
                    if (column,) == KEYS.get(table):
                        row[column] = key
                    elif kind.kind == "INTEGER" and column in ("g", "k", "h"):
                        row[column] = cell(draw, draw.choice((1, 1, 2)))
                    else:
                        row[column] = cell(draw, _public(draw, kind))
                rows.append(row)
            found[table] = rows
        return found

    return databases
