"""What single analyses of joins are made of, operator by operator: put to the one analysis that must accept all of it.

Elastic bounds the rows that come or go, so they are counted one by one; residual bounds what they add.
"""

from __future__ import annotations

import random

from joins_cases import EDGES, NOTHING, TRIANGLE, Case
from joins_worlds import COLUMNS, Database, World, database, draw_database, world


def _drawn(name: str, place: World, databases: int = 2) -> tuple[Database, ...]:
    draw = random.Random(name)
    return tuple(draw_database(draw, frozenset(COLUMNS), place) for _ in range(databases))


PLACES = world(("r", "s", "e"), unique={"e": ("x",)})
OPERATORS: dict[str, Case] = {
    name: Case(text, (NOTHING, *_drawn(name, PLACES)), PLACES, bags=True)
    for name, text in {
        "one table": "SELECT count(*) FROM r WHERE b > 1",
        "a join": "SELECT count(*) FROM r, s WHERE r.b = s.b",
        "a join with filters": "SELECT count(*) FROM r, s WHERE r.b = s.b AND s.c > 1 AND r.a = 1",
        "two columns": "SELECT count(*) FROM r, s WHERE r.b = s.b AND r.a = s.c",
        "a chain": "SELECT count(*) FROM r, s, e WHERE r.b = s.b AND s.c = e.y",
        "a star with a public table": "SELECT count(*) FROM r, s, p WHERE r.b = s.b AND r.a = p.a",
        "a key that is kept": "SELECT count(*) FROM r, e WHERE r.a = e.x",
        "a table with itself": "SELECT count(*) FROM r x, r y WHERE x.b = y.b",
        "three copies": "SELECT count(*) FROM r x, r y, r z WHERE x.b = y.a AND y.b = z.a",
        "a cycle": "SELECT count(*) FROM r x, r y, r z WHERE x.b = y.a AND y.b = z.a AND z.b = x.a",
        "all pairs": "SELECT count(*) FROM r, s",
        "an inequality": "SELECT count(*) FROM r, s WHERE r.a < s.c",
        "a union": "SELECT count(*) FROM (SELECT a FROM r UNION ALL SELECT b FROM r) x",
        "a union that is joined": "SELECT count(*) FROM (SELECT a FROM r UNION ALL SELECT b FROM r) x, s "
        "WHERE x.a = s.b",
        "a union of joins": "SELECT count(*) FROM (SELECT r.a FROM r, s WHERE r.b = s.b UNION SELECT r.b FROM r) x",
        "rows in both": "SELECT count(*) FROM (SELECT a, b FROM r INTERSECT ALL SELECT b, c FROM s) x",
        "rows in one": "SELECT count(*) FROM (SELECT a FROM r EXCEPT SELECT b FROM s) x, s WHERE x.a = s.c",
        "different rows": "SELECT count(*) FROM (SELECT DISTINCT a, b FROM r) x, s WHERE x.a = s.b",
        "inner groups": "SELECT count(*) FROM (SELECT b, count(*) AS m FROM r GROUP BY b) x, s WHERE x.b = s.b",
        "one inner row": "SELECT count(*) FROM (SELECT count(*) AS m FROM r) x, s WHERE x.m = s.b",
        "padded by a varying table": "SELECT count(*) FROM r LEFT JOIN s ON r.b = s.b AND s.c = 1",
        "padded and joined": "SELECT count(*) FROM (SELECT s.c FROM r LEFT JOIN s ON r.b = s.b) x, r y WHERE x.c = y.a",
        "padded with itself": "SELECT count(*) FROM r x LEFT JOIN r y ON x.b = y.a WHERE y.b IS NULL",
        "padded public rows": "SELECT count(*) FROM p LEFT JOIN r ON p.a = r.a AND r.b > 1",
        "a shared relation": "WITH q AS (SELECT a, b FROM r WHERE a > 1) SELECT count(*) FROM q x, q y WHERE x.a = y.b",
        "groups of a row": "SELECT r.a, count(*) FROM r, s WHERE r.b = s.b GROUP BY r.a",
        "groups of both": "SELECT r.a, count(*) FROM r, s WHERE r.a = s.c GROUP BY r.a",
        "groups of a copy": "SELECT x.a, count(*) FROM r x, r y WHERE x.b = y.b GROUP BY x.a",
        "groups of all copies": "SELECT x.a, count(*) FROM r x, r y WHERE x.a = y.a GROUP BY x.a",
        "groups of a formula": "SELECT CASE WHEN r.a = 1 THEN 1 ELSE 2 END AS g, count(*) FROM r, s "
        "WHERE r.a = s.c GROUP BY 1",
        "two keys": "SELECT r.a, s.c, count(*) FROM r, s WHERE r.b = s.b GROUP BY r.a, s.c",
        "groups of padded rows": "SELECT r.a, count(*) FROM r LEFT JOIN s ON r.a = s.c GROUP BY r.a",
        "groups of a union": "SELECT x.a, count(*) FROM (SELECT a, b FROM r WHERE a IN (1, 2) UNION ALL "
        "SELECT c, b FROM s) x, s y WHERE x.b = y.b AND x.a IN (1, 2) GROUP BY x.a",
    }.items()
} | {
    "inner counts": Case(
        "SELECT count(*) FROM (SELECT b, count(*) AS m FROM r GROUP BY b) x, s WHERE x.m = s.b",
        (database(r=[(1, 1)], s=[(1, 1), (2, 1)]), *_drawn("inner counts", PLACES)), PLACES, bags=True,
    ),
}  # fmt: skip
"""One operator after the other, for an analysis that bounds the rows that come or go."""

ORDERED = "q1.x = q3.x AND q1.y = q2.x AND q2.y = q3.y AND q1.x < q1.y AND q2.x < q2.y"
TWICE = database(e=[(1, 2)] * 3 + [(2, 3)] * 3 + [(1, 3)])
"""Edges that are there several times."""
RESIDUALS: dict[str, Case] = {
    f"{text} {unique or ''}{declared or ''}": Case(
        text, (NOTHING, *_drawn(text, place), *(() if unique else (TWICE,))), place, (1, 2, 3, 4, None)
    )
    for text, unique, declared in (
        ("SELECT count(*) FROM r", {}, {}),
        ("SELECT sum(r.a) FROM r, s WHERE r.b = s.b AND s.c > 1", {}, {}),
        ("SELECT count(*) FROM r, s WHERE r.b = s.b AND r.a < s.c", {}, {}),
        ("SELECT count(*) FROM r, s, t WHERE r.b = s.b AND s.c = t.c", {}, {}),
        ("SELECT count(*) FROM r, s, t WHERE r.b = s.b AND s.c = t.c", {"s": ("b",)}, {}),
        ("SELECT count(*) FROM r, s, t WHERE r.b = s.b AND s.c = t.c", {}, {"s": ("b",), "t": ("c",)}),
        ("SELECT count(*) FROM r, s, t WHERE r.b = s.b AND s.c = t.c AND t.a = r.a", {}, {"r": ("b",)}),
        ("SELECT count(*) FROM r x, r y WHERE x.b = y.b AND x.a < y.a", {}, {}),
        ("SELECT count(*) FROM r x, r y, r z WHERE x.b = y.b AND y.b = z.b", {}, {}),
        ("SELECT count(*) FROM r x, r y, s WHERE x.b = y.b AND s.b = y.b AND x.a < y.a", {}, {}),
        ("SELECT count(*) FROM r x, r y, s WHERE x.b = s.b AND y.a = s.c", {"r": ("a",)}, {}),
        ("SELECT count(*) FROM (SELECT DISTINCT b FROM r) AS q, s WHERE q.b = s.b AND s.b > 1", {}, {}),
        ("SELECT a, count(*) FROM (SELECT y.a FROM r x, r y WHERE x.b = y.b AND x.a < y.a) AS q GROUP BY a", {}, {}),
        ("SELECT b, count(*) FROM (SELECT r.b FROM r, s WHERE r.b = s.b) AS q GROUP BY b", {}, {}),
        ("SELECT a, count(*) FROM (SELECT t.a FROM r, t WHERE r.b = t.c) AS q GROUP BY a", {}, {}),
        (f"{TRIANGLE} {ORDERED}", EDGES, {}),
        (f"{TRIANGLE} {ORDERED}", {}, {}),
        (f"{TRIANGLE} {ORDERED.replace('<', '<=')}", EDGES, {}),
        (f"{TRIANGLE} q1.y = q2.x AND q2.y = q3.x AND q3.y = q1.x AND q1.x <> q1.y AND q2.x <> q2.y AND q3.x <> q3.y",
         EDGES, {}),
    )
    for place in (world(("r", "s", "e"), unique, declared),)
}  # fmt: skip
"""What residuals, orders of copies and triangles are made of, on drawn databases."""
