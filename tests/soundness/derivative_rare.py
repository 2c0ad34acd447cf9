"""Directed cases that were once answered wrongly: each with the databases that show it.

In: nothing. Out: a query, a world and one pair of databases, for every fault that a search has found in the derivative
analysis. They stay here so that the fault cannot come back unnoticed.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

from derivative_check import World
from derivative_distance import Database
from derivative_worlds import small_database, small_world

_BASE = small_database(clean=True)(random.Random(3))
_A = {**_BASE["a"][0], "id": 1, "g": 2, "k": 2, "p": 0.0, "x": 0.0, "y": 2.0, "v": 1.0, "m": 3}
_B = {**_BASE["b"][0], "id": 1, "k": 2, "z": 0.0, "w": 3.0, "m": 1}
_U = [{"k": 2, "h": 1, "q": 1.0}, {"k": 2, "h": 2, "q": 0.5}, {"k": 1, "h": 1, "q": 0.0}]
START: Database = {**_BASE, "a": [_A], "b": [_B], "u": _U, "lone": [{"s": 0.5}]}


@dataclass(frozen=True)
class Once:
    """A query, a world, and what moves in it."""

    what: str
    text: str
    world: World
    moved: dict[str, dict[str, Any]]
    """Table -> new values of cells in its first row."""
    before: dict[str, dict[str, Any]]

    def pair(self) -> tuple[Database, Database]:
        """Give the two databases."""
        first = _changed(START, self.before)
        return first, _changed(first, self.moved)


def _changed(database: Database, cells: dict[str, dict[str, Any]]) -> Database:
    found = dict(database)
    for table, values in cells.items():
        found[table] = [{**database[table][0], **values}, *database[table][1:]]
    return found


_XY = {"a": "l1(x, y)", "b": "l1(z, w)"}
_TWO = (
    "CASE WHEN a.g = 1 THEN 1000*a.x ELSE 0 END + 62*a.y + "
    "CASE WHEN {o}.k = 1 THEN 1000*{c} ELSE 124*{c} END"
)
RARE = (
    Once(
        "a table without public columns is not gathered", "SELECT count(*) FROM lone, u WHERE s > 0.5",
        small_world(), {"lone": {"s": 0.501}}, {},
    ),
    Once(
        "a table without public columns, times itself", "SELECT sum(lone.s*lone.s) FROM lone, u",
        small_world(), {"lone": {"s": 0.501}}, {},
    ),
    Once(
        "one row in two groups by a key that is none",
        "SELECT u.h, min(a.x) FROM a JOIN u ON a.k = u.k GROUP BY u.h", small_world(),
        {"a": {"x": 1.0}}, {},
    ),
    Once(
        "an empty cell inside coalesce", "SELECT sum(coalesce(x*y, v)) FROM a",
        small_world({"a": "linf(x, y, v)"}), {"a": {"v": 1.5}}, {"a": {"y": None}},
    ),
    Once(
        "an empty cell inside coalesce, in a sum", "SELECT sum(coalesce(x*p, 0) + x) FROM a",
        small_world(), {"a": {"x": 0.5}}, {"a": {"p": None}},
    ),
    Once(
        "a column left out, rows gathered", "SELECT sum(1000*a.x*a.p + a.y) FROM a, u",
        small_world(_XY), {"a": {"y": 3.0}}, {},
    ),
    Once(
        "a column left out, rows combined by l2", "SELECT sum(1000*a.x*a.p + a.y) FROM a",
        small_world(_XY, rows={"a": "l2"}), {"a": {"y": 3.0}}, {},
    ),
    Once(
        "a column left out of one scan of two",
        f"SELECT sum({_TWO.format(o='o', c='o.y')}) FROM a JOIN a AS o ON a.id = o.id",
        small_world(_XY), {"a": {"y": 3.0}}, {},
    ),
    Once(
        "a column left out of one table of two",
        f"SELECT sum({_TWO.format(o='b', c='b.z')}) FROM a JOIN b ON a.id = b.id",
        small_world(_XY, tables="linf"), {"a": {"y": 3.0}, "b": {"z": 1.0}}, {},
    ),
    Once(
        "powers of small parts vanish, over rows", "SELECT sum(x*y) FROM a",
        small_world({"a": "1000*x"}, rows={"a": "l1.01"}), {"a": {"x": 0.5}}, {},
    ),
    Once(
        "powers of small parts vanish, over columns", "SELECT sum(0.0001*x*y) FROM a",
        small_world({"a": "l1.01(x, y)"}), {"a": {"x": 0.5}}, {},
    ),
    Once(
        "powers of large parts overflow", "SELECT sum(exp(10*x)) FROM a",
        small_world({"a": "x"}, rows={"a": "l1.000001"}), {"a": {"x": 0.001}}, {},
    ),
)  # fmt: skip
