"""Directed cases for joins: queries and databases that random search meets too seldom, and what is known as bad input.

Each case is a question, a world and some databases; it is put to every analysis. An analysis may refuse, with a reason
and a hint; what it accepts must hold on all neighbors of each database and on walks from there.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import Any

from joins_check import BETAS, Findings, targets_of
from joins_worlds import VALUES, Database, World, database, world

BEYOND = 2**53
"""Two whole numbers that one double equals: this and the next."""


@dataclass(frozen=True)
class Case:
    """A question, what protects it, and the databases to start from."""

    text: str
    databases: Sequence[Database] = (database(),)
    world: World = field(default_factory=world)
    values: Sequence[Any] = VALUES
    steps: int = 2
    bags: bool = False
    """Whether rows that come or go are counted, too, which only an analysis that promises it takes."""

    def findings(
        self,
        analysis: Any,
        *,
        steps: int | None = None,
        first: bool = False,
        betas: tuple[Fraction, ...] = BETAS,
    ) -> Findings:
        """Put the case to an analysis and try what it accepts; with `first`, until something is refuted."""
        findings = Findings()
        draw = random.Random(7)
        for target in targets_of(self.text, self.world, analysis, findings, betas, bags=self.bags):
            for start in self.databases:
                target.walk(start, draw, self.steps if steps is None else steps, self.values)
                if first and findings.violations:
                    return findings
        return findings


NOTHING = database()
FEW = database(
    r=[(1, 1), (1, 2), (2, 1)], s=[(1, 1), (1, 2), (2, None)], t=[(1, 1), (2, 1), (1, 2)],
    e=[(1, 2), (2, 1), (1, 1), (2, 3), (1, 3)], p=[(1, 2), (2, 2)], m=[(1, 1, 1), (1, 2, 1)],
    o=[(1,), (2,)], d=[(1.0, 1), (2.0, 1)],
)  # fmt: skip
GIANT = database(r=[(1, 1)] * 9, s=[(1, 1)] * 7, t=[(1, 1)] * 4, e=[(1, 1)] * 5, o=[(1,)] * 6)
NULLS = database(
    r=[(None, None)] * 5,
    s=[(None, None)] * 4,
    t=[(None, 1)] * 3,
    e=[(None, 1)] * 3,
    o=[(None,)] * 5,
)
ONE_SIDED = database(r=[(1, 1), (1, 1), (2, 2)], e=[(1, 1), (1, 2)], o=[(1,), (1,)])
USUAL = (NOTHING, FEW, GIANT, NULLS, ONE_SIDED)

TRIANGLE = "SELECT count(*) FROM e q1, e q2, e q3 WHERE"
GRAPH = database(e=[(1, 2), (2, 3), (1, 3), (2, 1), (3, 1), (3, 2), (1, 4), (2, 4), (3, 4), (4, 4)])
EDGES = {"e": ("x", "y")}
NODES = (1, 2, 3, 4, 5, None)
DISTINCT_EDGES = "(SELECT DISTINCT x, y FROM e)"

KEPT = world(unique={"r": ("a",), "o": ("a",), "p": ("a",), "e": ("x", "y")})
SOME = world(("r", "s"), declared={"p": ("a",), "o": ("a",)})
TOLD = world(declared={"r": ("a",), "s": ("b",), "o": ("a",)})
BELIEVED = world(declared={"r": ("a",), "o": ("a",), "p": ("a",), "e": ("x", "y")}, accepted=True)
SINGLE = (
    NOTHING,
    database(r=[(1, 1), (2, 1), (None, 1), (None, 1)], p=[(1, 2), (2, 2)], o=[(1,), (2,)]),
    database(
        r=[(1, 2), (2, 2)], t=[(1, 1)] * 4 + [(2, 2)] * 3, o=[(1,), (None,), (None,)],
        e=[(1, 2), (2, 3), (1, 3), (2, 1), (3, 1), (1, 4), (2, 4)],
    ),
)  # fmt: skip
"""Databases where the accepted keys hold; NULLs are no values of a key."""
WITH_PUBLIC = (
    database(r=[(1, 1), (2, 1)], s=[(1, 1)], p=[(1, 1), (2, 1), (None, 2)], o=[(1,), (2,)]),
    database(p=[(1, 1)], o=[(1,)], t=[(1, 1)] * 4),
    database(r=[(None, 1)] * 3, p=[(None, 1)], o=[(None,)], t=[(2, 1), (1, 1)]),
)


def _ten(condition: str) -> str:
    aliases = [f"q{i}" for i in range(10)]
    ties = " AND ".join(condition.format(left=a, right=b) for a, b in pairwise(aliases))
    return f"SELECT count(*) FROM {', '.join(f'o {a}' for a in aliases)} WHERE {ties}"


def _usual(*texts: str, world: World | None = None) -> dict[str, Case]:
    extra = {} if world is None else {"world": world}
    return {text: Case(text, USUAL, **extra) for text in texts}  # type: ignore[arg-type]


BAD_INPUT: dict[str, Case] = {
    **_usual(
        # cross joins
        "SELECT count(*) FROM r, s", "SELECT count(*) FROM r, s, t", "SELECT count(*) FROM o q1, o q2",
        "SELECT count(*) FROM r CROSS JOIN s WHERE r.a = 1 AND s.b = 1",
        # comparisons and joins without keys
        "SELECT count(*) FROM r JOIN s ON r.b < s.b", "SELECT count(*) FROM r JOIN s ON r.b <> s.b",
        "SELECT count(*) FROM s JOIN r ON s.c BETWEEN r.a AND r.b", "SELECT count(*) FROM r JOIN s ON r.b = s.b",
        "SELECT count(*) FROM r q1, r q2 WHERE q1.a < q2.a", "SELECT count(*) FROM r JOIN s ON r.b + 1 = s.b",
        "SELECT count(*) FROM r, s, t WHERE r.b = s.b AND s.c = t.c",
        "SELECT count(*) FROM r JOIN s ON r.b = s.b OR r.a = s.c",
        "SELECT count(*) FROM r JOIN s ON NOT (r.b = s.b)", "SELECT count(*) FROM r JOIN s ON 1 = 1",
        "SELECT count(*) FROM r JOIN s ON r.b = s.b AND r.a = 1 OR s.c = 2",
        "SELECT count(*) FROM r JOIN s ON CASE WHEN r.a = 1 THEN r.b = s.b ELSE TRUE END",
        "SELECT count(*) FROM r, s WHERE r.a IN (s.b, s.c)", "SELECT count(*) FROM r, s WHERE r.a NOT IN (s.b, s.c)",
        # padding
        "SELECT count(*) FROM r LEFT JOIN s ON r.b = s.b", "SELECT count(s.c) FROM r LEFT JOIN s ON r.b = s.b",
        "SELECT sum(coalesce(s.c, 2)) FROM r LEFT JOIN s ON r.b = s.b",
        "SELECT count(*) FROM r LEFT JOIN s ON r.b = s.b WHERE s.b IS NULL",
        "SELECT sum(CASE WHEN s.b IS NULL THEN 2 ELSE 0 END) FROM r LEFT JOIN s ON r.b = s.b",
        "SELECT count(*) FROM r LEFT JOIN s ON r.b = s.b LEFT JOIN t ON s.c = t.c",
        "SELECT count(*) FROM r LEFT JOIN (SELECT DISTINCT b FROM s) q ON r.b = q.b",
        "SELECT count(*) FROM r RIGHT JOIN s ON r.b = s.b",
        "SELECT count(*) FROM r q1 LEFT JOIN r q2 ON q1.a = q2.b",
        "SELECT count(*) FROM (SELECT s.c FROM r LEFT JOIN s ON r.b = s.b) q JOIN t ON q.c IS NOT DISTINCT FROM t.c",
        # subqueries
        "SELECT count(*) FROM r WHERE EXISTS (SELECT 1 FROM s WHERE s.b = r.b)",
        "SELECT count(*) FROM r WHERE NOT EXISTS (SELECT 1 FROM s WHERE s.b = r.b)",
        "SELECT count(*) FROM r WHERE r.b IN (SELECT b FROM s)",
        "SELECT count(*) FROM r WHERE r.b NOT IN (SELECT b FROM s)",
        "SELECT count(*) FROM r WHERE (SELECT count(*) FROM s WHERE s.b = r.b) > 1",
        "SELECT sum((SELECT max(s.c) FROM s WHERE s.b = r.b)) FROM r",
        "SELECT count(*) FROM r q1 WHERE q1.a > (SELECT avg(q2.a) FROM r q2)",
        "SELECT count(*) FROM r, s WHERE r.b = s.b AND EXISTS (SELECT 1 FROM r q WHERE q.a = s.c)",
        # limits
        "SELECT count(*) FROM (SELECT * FROM r ORDER BY a LIMIT 2) q",
        "SELECT count(*) FROM (SELECT a FROM r LIMIT 1) q JOIN s ON q.a = s.b",
        "SELECT count(*) FROM r JOIN (SELECT b FROM s ORDER BY c LIMIT 1 OFFSET 1) q ON r.b = q.b",
    ),
    "ten copies, one key": Case(_ten("{left}.a = {right}.a"), (NOTHING, database(o=[(1,), (1,)])), steps=1),
    "ten copies, ordered": Case(_ten("{left}.a < {right}.a"), (NOTHING, database(o=[(1,), (2,)])), steps=1),
    "ten copies, crossed": Case(
        "SELECT count(*) FROM " + ", ".join(f"o q{i}" for i in range(10)),
        (NOTHING, database(o=[(1,)])), steps=1,
    ),
    "ten copies, star": Case(
        "SELECT count(*) FROM e q0, " + ", ".join(f"e q{i}" for i in range(1, 10)) + " WHERE "
        + " AND ".join(f"q0.x = q{i}.y" for i in range(1, 10)),
        (NOTHING, database(e=[(1, 1), (1, 2)])), steps=1,
    ),
}  # fmt: skip

NULL_KEYS: dict[str, Case] = _usual(
    "SELECT count(*) FROM r JOIN s ON r.b IS NOT DISTINCT FROM s.b",
    "SELECT count(*) FROM r, s WHERE r.b = s.b OR (r.b IS NULL AND s.b IS NULL)",
    "SELECT count(*) FROM r, s WHERE r.b = s.b OR r.b IS NULL",
    "SELECT count(*) FROM r, s WHERE coalesce(r.b, 1) = coalesce(s.b, 1)",
    "SELECT count(*) FROM r, s WHERE NOT (r.b = s.b) IS TRUE",
    "SELECT count(*) FROM o q1, o q2 WHERE q1.a IS NOT DISTINCT FROM q2.a",
    "SELECT count(*) FROM r, s, t WHERE r.b IS NOT DISTINCT FROM s.b AND s.b IS NOT DISTINCT FROM t.c",
    "SELECT r.b, count(*) FROM r JOIN s ON r.b IS NOT DISTINCT FROM s.b GROUP BY r.b",
) | {
    f"kept: {text}": Case(text, (NOTHING, NULLS, WITH_PUBLIC[2]), KEPT)
    for text in (
        "SELECT count(*) FROM r JOIN o ON r.b IS NOT DISTINCT FROM o.a",
        "SELECT count(*) FROM r JOIN o ON r.b = o.a",
        "SELECT count(*) FROM r JOIN p ON r.a IS NOT DISTINCT FROM p.a JOIN o ON o.a IS NOT DISTINCT FROM p.a",
        "SELECT count(*) FROM (SELECT DISTINCT a FROM r) q JOIN r ON q.a IS NOT DISTINCT FROM r.a",
    )
}

SELF_JOINS: dict[str, Case] = _usual(
    "SELECT count(*) FROM o q1, o q2, o q3 WHERE q1.a = q2.a AND q2.a = q3.a",
    "SELECT count(*) FROM o q1, o q2, o q3, o q4 WHERE q1.a = q2.a AND q2.a = q3.a AND q3.a = q4.a",
    "SELECT count(*) FROM e q1, e q2 WHERE q1.y = q2.x",
    "SELECT count(*) FROM e q1, e q2 WHERE q1.x = q2.x",
    "SELECT count(*) FROM e q1, e q2, e q3 WHERE q1.y = q2.x AND q2.y = q3.x",
    "SELECT count(*) FROM e q1, e q2, e q3 WHERE q1.x = q2.x AND q1.x = q3.x",
    "SELECT count(*) FROM e q1, e q2, s WHERE q1.x = s.b AND q2.x = s.b",
    "SELECT count(*) FROM e q1, e q2, s WHERE q1.x = s.b AND q2.y = s.c AND q1.y = q2.x",
    "SELECT count(*) FROM r q1, r q2 WHERE q1.a = q2.b AND q1.b = q2.a",
    "SELECT count(*) FROM r q1, r q2 WHERE q1.a = q2.a AND q1.b < q2.b",
    "SELECT count(*) FROM r q1, r q2 WHERE q1.a = q2.a OR q1.b = q2.b",
    "SELECT count(*) FROM r q1, r q2, s WHERE q1.a = q2.a AND (q1.b = s.b OR q2.b = s.c)",
    "SELECT count(*) FROM r q1, r q2 WHERE NOT (q1.a = q2.a OR NOT q1.b = q2.b)",
    "SELECT count(*) FROM r q1, r q2 WHERE NOT (q1.a = q2.a) AND q1.b = q2.b",
    "WITH q AS (SELECT a, b FROM r WHERE b <> 2) SELECT count(*) FROM q q1, q q2 WHERE q1.a = q2.a",
    "WITH q AS (SELECT DISTINCT a FROM r) SELECT count(*) FROM q q1, q q2, r WHERE q1.a = q2.a AND r.a = q1.a",
    "SELECT count(DISTINCT q1.a) FROM r q1, r q2 WHERE q1.b = q2.b",
    "SELECT sum(q1.a * q2.a) FROM r q1, r q2 WHERE q1.b = q2.b",
    "SELECT sum(q1.a - q2.a) FROM r q1, r q2 WHERE q1.b = q2.b",
)

TRIANGLES: dict[str, Case] = {
    f"{name}, {text}": Case(
        f"{TRIANGLE.replace('e q', edges + ' q')} {text}",
        (NOTHING, database(e=[(1, 2), (2, 3), (1, 3)]), GRAPH),
        place,
        NODES,
        1,
    )
    for name, edges, place in (
        ("bag", "e", world()),
        ("kept", "e", world(unique=EDGES)),
        ("distinct", DISTINCT_EDGES, world()),
    )
    for text in (
        "q1.y = q2.x AND q2.y = q3.x AND q3.y = q1.x",
        "q1.y = q2.x AND q2.y = q3.y AND q1.x = q3.x",
        "q1.y = q2.x AND q2.y = q3.y AND q1.x = q3.x AND q1.x < q1.y AND q2.x < q2.y",
        "q1.y = q2.x AND q2.y = q3.x AND q3.y = q1.x AND q1.x < q2.x AND q2.x < q3.x",
        "q1.y = q2.x AND q2.y = q3.x AND q3.y = q1.x AND q1.x < q2.x AND q1.x < q3.x",
        "q1.y = q2.x AND q2.y = q3.y AND q1.x = q3.x AND q1.x <> q1.y",
        "q1.x = q2.x AND q2.y = q3.y AND q1.y = q3.x AND q1.x > q1.y AND q3.x > q3.y",
        "q1.y = q2.x AND q2.y = q3.x AND q3.y = q1.x AND q1.x = 1",
        "q1.x < q1.y AND q2.x < q2.y AND q3.x < q3.y AND q1.y = q2.x AND q2.y = q3.y AND q1.x = q3.x",
    )
}

SETS: dict[str, Case] = _usual(
    "SELECT count(*) FROM (SELECT a, b FROM r UNION ALL SELECT a, b FROM r) q",
    "SELECT count(*) FROM (SELECT a, b FROM r UNION SELECT a, b FROM r) q",
    "SELECT count(*) FROM (SELECT a FROM r UNION ALL SELECT b FROM r UNION ALL SELECT a FROM r) q JOIN s ON q.a = s.b",
    "SELECT count(*) FROM (SELECT a FROM r UNION SELECT b FROM r) q JOIN s ON q.a = s.b",
    (
        "SELECT count(*) FROM (SELECT a FROM r UNION ALL SELECT c FROM s) q1 "
        "JOIN (SELECT a FROM r UNION ALL SELECT b FROM s) q2 ON q1.a = q2.a"
    ),
    "SELECT count(*) FROM (SELECT r.a FROM r JOIN s ON r.b = s.b UNION ALL SELECT s.c FROM s JOIN t ON s.c = t.c) q",
    "SELECT count(*) FROM (SELECT a FROM r EXCEPT SELECT b FROM s) q JOIN t ON q.a = t.c",
    "SELECT count(*) FROM (SELECT a FROM r EXCEPT ALL SELECT b FROM s) q JOIN t ON q.a = t.c",
    "SELECT count(*) FROM (SELECT a FROM r INTERSECT SELECT b FROM s) q JOIN t ON q.a = t.c",
    "SELECT count(*) FROM (SELECT DISTINCT a FROM r) q JOIN s ON q.a = s.b",
    "SELECT count(*) FROM (SELECT DISTINCT a, b FROM r) q1, (SELECT DISTINCT a, b FROM r) q2 WHERE q1.a = q2.a",
    "SELECT count(*) FROM (SELECT DISTINCT r.a FROM r JOIN s ON r.b = s.b) q JOIN t ON q.a = t.a",
    "SELECT sum(n) FROM (SELECT a, count(*) AS n FROM r GROUP BY a) q JOIN s ON q.a = s.b",
    "SELECT count(*) FROM (SELECT a, count(*) AS n FROM r GROUP BY a) q JOIN s ON q.n = s.b",
    "SELECT count(*) FROM (SELECT a, count(*) AS n FROM r GROUP BY a HAVING count(*) > 1) q JOIN s ON q.a = s.b",
    (
        "SELECT count(*) FROM (SELECT a, max(b) AS n FROM r GROUP BY a) q1 "
        "JOIN (SELECT a, max(b) AS n FROM r GROUP BY a) q2 ON q1.n = q2.n"
    ),
    "SELECT count(*) FROM (SELECT count(*) AS n FROM r) q JOIN s ON q.n = s.b",
    "SELECT count(*) FROM (SELECT b, count(*) AS n FROM r GROUP BY b) q LEFT JOIN s ON q.n = s.c",
    "SELECT count(*) FROM (SELECT r.a, count(*) AS n FROM r JOIN s ON r.b = s.b GROUP BY r.a) q JOIN t ON q.n = t.c",
    "SELECT count(*), count(DISTINCT r.a), sum(s.c), avg(r.a) FROM r JOIN s ON r.b = s.b",
    "SELECT count(*) FILTER (WHERE r.a = 1) FROM r JOIN s ON r.b = s.b",
    "SELECT sum(DISTINCT r.a) FROM r JOIN s ON r.b = s.b JOIN t ON s.c = t.c",
)  # fmt: skip

GROUPED: dict[str, Case] = _usual(
    "SELECT r.a, count(*) FROM r JOIN s ON r.b = s.b GROUP BY r.a",
    "SELECT r.b, count(*) FROM r JOIN s ON r.b = s.b GROUP BY r.b",
    "SELECT s.b, count(*) FROM r JOIN s ON r.b = s.b GROUP BY s.b",
    "SELECT r.a, s.c, count(*) FROM r JOIN s ON r.b = s.b GROUP BY r.a, s.c",
    "SELECT r.b, s.c, count(*) FROM r JOIN s ON r.b = s.b GROUP BY r.b, s.c",
    "SELECT q1.a, count(*) FROM r q1 JOIN r q2 ON q1.b = q2.b GROUP BY q1.a",
    "SELECT q1.a, count(*) FROM r q1 JOIN r q2 ON q1.a = q2.a GROUP BY q1.a",
    "SELECT q1.a, count(*) FROM r q1 JOIN r q2 ON q1.a = q2.b GROUP BY q1.a",
    "SELECT q1.a, count(*), sum(q2.b) FROM r q1, r q2 WHERE q1.a = q2.a AND q1.b < q2.b GROUP BY q1.a",
    "SELECT q2.b, count(*) FROM r q1, r q2 WHERE q1.a < q2.a GROUP BY q2.b",
    "SELECT q1.b, count(*) FROM r q1, r q2 WHERE q1.a < q2.a GROUP BY q1.b",
    "SELECT q2.b, count(*) FROM r q1, r q2, s WHERE q1.a > q2.a AND q1.b = s.b AND q2.b = s.b GROUP BY q2.b",
    "SELECT s.c, count(*) FROM r q1, r q2, s WHERE q1.a > q2.a AND q1.b = s.b AND q2.b = s.b GROUP BY s.c",
    "SELECT r.a, count(*) FROM r, s GROUP BY r.a", "SELECT r.a, count(*) FROM r LEFT JOIN s ON r.b = s.b GROUP BY r.a",
    "SELECT s.c, count(*) FROM r LEFT JOIN s ON r.b = s.b GROUP BY s.c",
    "SELECT s.b, count(*) FROM r LEFT JOIN s ON r.b = s.b GROUP BY s.b",
    "SELECT t.a, count(*) FROM r, s, t WHERE r.b = s.b AND s.c = t.c GROUP BY t.a",
    "SELECT s.b, count(*) FROM r, s, t WHERE r.b = s.b AND s.b = t.c GROUP BY s.b",
    "SELECT q.n, count(*) FROM (SELECT a, max(b) AS n FROM r GROUP BY a) q JOIN s ON q.a = s.b GROUP BY q.n",
    "SELECT q.a, count(*) FROM (SELECT a FROM r UNION ALL SELECT b FROM s) q JOIN t ON q.a = t.c GROUP BY q.a",
    "SELECT r.b = s.b, count(*) FROM r, s GROUP BY r.b = s.b",
    "SELECT CASE WHEN r.a = 1 THEN 1 ELSE 2 END, count(*) FROM r JOIN s ON r.b = s.b GROUP BY 1",
    "SELECT 1, count(*) FROM r JOIN s ON r.b = s.b GROUP BY 1",
    "SELECT r.a, count(DISTINCT s.c) FROM r JOIN s ON r.b = s.b GROUP BY r.a",
    "SELECT o.a, count(*) FROM o, o q2, r WHERE o.a = q2.a AND o.a = r.a GROUP BY o.a",
) | {
    f"some: {text}": Case(text, WITH_PUBLIC, place)
    for place in (SOME, world(("r",)), world(("t", "s")))
    for text in (
        "SELECT p.w, count(*) FROM r JOIN p ON r.a = p.a GROUP BY p.w",
        "SELECT p.a, count(*) FROM r JOIN p ON r.a = p.a GROUP BY p.a",
        "SELECT o.a, count(*) FROM r, s, o WHERE r.b = s.b AND r.a = o.a GROUP BY o.a",
        "SELECT p.w, count(*) FROM r, p WHERE r.a <= p.a GROUP BY p.w",
        "SELECT t.c, count(*) FROM t, r WHERE t.c = r.a GROUP BY t.c",
    )
}  # fmt: skip

PUBLIC_TABLES: dict[str, Case] = {
    f"{name}: {text}": Case(text, WITH_PUBLIC, place)
    for name, place in (("some", SOME), ("told", TOLD), ("kept", KEPT))
    for text in (
        "SELECT count(*) FROM r JOIN p ON r.a = p.a", "SELECT count(*) FROM r JOIN p ON r.a = p.a JOIN o ON p.w = o.a",
        "SELECT count(*) FROM r JOIN s ON r.b = s.b JOIN p ON p.a = r.a",
        "SELECT count(*) FROM r, p WHERE r.a < p.a", "SELECT count(*) FROM p LEFT JOIN r ON r.a = p.a",
        "SELECT count(*) FROM r LEFT JOIN p ON r.a = p.a", "SELECT count(*) FROM r JOIN t ON r.a = t.a",
        "SELECT count(*) FROM t q1 JOIN t q2 ON q1.a = q2.a JOIN r ON r.a = q1.c",
        "SELECT count(*) FROM r WHERE r.a IN (SELECT a FROM p)",
        "SELECT count(*) FROM (SELECT a, count(*) AS n FROM t GROUP BY a) q JOIN r ON r.a = q.n",
        "SELECT count(*) FROM (SELECT a FROM r UNION ALL SELECT a FROM p) q JOIN p ON p.a = q.a",
        "SELECT count(*) FROM r q1 JOIN r q2 ON q1.a = q2.a", "SELECT count(*) FROM o JOIN r ON r.a = o.a",
        "SELECT count(*) FROM r, s WHERE r.b = s.b AND EXISTS (SELECT 1 FROM p WHERE p.a = r.a AND p.w = s.c)",
        "SELECT count(*) FROM r, s WHERE r.b = s.b AND EXISTS (SELECT 1 FROM p WHERE p.a = r.a)",
        "SELECT count(*) FROM r, s WHERE r.b = s.b AND NOT EXISTS (SELECT 1 FROM p WHERE p.a = s.c)",
        "SELECT count(*) FROM r, s WHERE (SELECT max(p.w) FROM p WHERE p.a = r.a) = s.b",
        "SELECT count(*) FROM r q1, r q2 WHERE q1.a = q2.b AND q2.a NOT IN (SELECT w FROM p WHERE p.a = q1.b)",
        (
            "WITH q AS (SELECT r.a, r.b FROM r WHERE EXISTS (SELECT 1 FROM p WHERE p.a = r.a)) "
            "SELECT count(*) FROM q q1, q q2 WHERE q1.b = q2.b"
        ),
        "SELECT count(*) FROM (SELECT r.a, (SELECT max(w) FROM p WHERE p.a = r.a) AS w FROM r) q JOIN s ON q.w = s.b",
        "SELECT count(*) FROM s LEFT JOIN p ON s.c = p.a JOIN r ON r.b = s.b AND r.a IS NOT DISTINCT FROM p.w",
        "SELECT sum(coalesce(p.w, 2)) FROM r LEFT JOIN p ON r.a = p.a JOIN s ON s.b = r.b",
        "SELECT count(*) FROM (SELECT a FROM p UNION ALL SELECT a FROM o) q JOIN r ON r.a = q.a JOIN s ON s.b = r.b",
        "SELECT count(*) FROM (SELECT a, w FROM p ORDER BY a LIMIT 1) q JOIN r ON r.a = q.a JOIN s ON s.b = r.b",
    )
}  # fmt: skip

LARGE = (1, BEYOND, BEYOND + 1, None)
ROUNDED: dict[str, Case] = {
    text: Case(
        text,
        (
            NOTHING,
            database(r=[(BEYOND, 1), (BEYOND + 1, 1)], o=[(BEYOND,), (BEYOND + 1,)], d=[(float(BEYOND), 1)]),
            database(o=[(BEYOND,)] * 3 + [(BEYOND + 1,)] * 3, r=[(BEYOND, 1)] * 2 + [(BEYOND + 1, 1)] * 2),
            database(d=[(float("nan"), 1), (float("nan"), 1)], o=[(1,)]),
        ),
        values=LARGE,
    )
    for text in (
        "SELECT count(*) FROM r, d, o WHERE r.a = d.z AND d.z = o.a", "SELECT count(*) FROM d, o WHERE d.z = o.a",
        "SELECT count(*) FROM d q1, d q2 WHERE q1.z = q2.z",
        "SELECT count(*) FROM d q1, d q2, o WHERE q1.z = o.a AND q2.z = o.a",
        "SELECT count(*) FROM o q1, o q2, d WHERE q1.a = d.z AND q2.a = d.z",
        "SELECT count(*) FROM o JOIN (SELECT DISTINCT z FROM d) q ON o.a = q.z",
        "SELECT count(*) FROM o JOIN d ON o.a = d.z JOIN r ON d.z = r.a WHERE o.a <> r.a",
    )
}  # fmt: skip

UNEVEN = database(
    r=[(1, 1)] * 5 + [(2, 1)] * 3 + [(2, 2)] + [(3, 2)] * 2, s=[(1, 2)] * 4 + [(2, 2), (3, 1)],
    o=[(1,)] * 4 + [(2,)] * 2, t=[(1, 2)] * 3, e=[(1, 2)] * 3 + [(2, 3)] * 4 + [(3, 1)] * 2,
    m=[(1, 1, 2)] * 3 + [(2, 1, 1)] * 2, d=[(1.0, 1)] * 3 + [(3.0, 1)], n=[(Decimal(1), 1)] * 2,
)  # fmt: skip
CONDITIONS: dict[str, Case] = {
    text: Case(text, (NOTHING, UNEVEN), steps=1)
    for text in (
        "SELECT count(*) FROM r, s WHERE (r.a = 1) = (s.b = 1)",
        "SELECT count(*) FROM r q1, r q2 WHERE q1.a + 1 = q2.a",
        "SELECT count(*) FROM r, s WHERE r.a = s.b AND r.a = s.c",
        "SELECT count(*) FROM r, s WHERE (r.a = s.b) IS NULL",
        "SELECT q2.a, count(*) FROM o q1, o q2 WHERE q1.a = q2.a + 1 GROUP BY q2.a",
        "SELECT q1.b - q1.a, count(*) FROM r q1, r q2 WHERE q1.a = q2.b AND q1.b = q2.a GROUP BY q1.b - q1.a",
        "SELECT count(*) FROM m q1, m q2, m q3 WHERE q1.a = q2.a AND q1.b = q2.b AND q2.c = q3.c AND q3.a = q1.a",
        "SELECT count(*) FROM r q1, r q2, s WHERE q1.a < q2.a AND q1.b = s.b AND q2.b = s.c",
        "SELECT count(*) FROM (SELECT DISTINCT a FROM r) q1, (SELECT DISTINCT a FROM r) q2 WHERE q1.a < q2.a",
        "SELECT count(*) FROM (SELECT DISTINCT a, b FROM r) q1, r q2 WHERE q1.a < q2.a",
        "SELECT count(*) FROM r, s, t WHERE (r.b = s.b AND s.c = t.c) OR (r.a = t.a AND s.b = 1)",
        "SELECT count(*) FROM r, s WHERE CASE WHEN r.a = s.b THEN r.b = 1 WHEN r.b = s.c THEN TRUE ELSE s.c = 2 END",
        "SELECT count(*) FROM r, s WHERE NOT (r.a <> s.b OR r.b < s.c)",
        "SELECT d.z, count(*) FROM d LEFT JOIN n ON n.k = d.k WHERE d.z IN (1, 3) GROUP BY d.z",
        "SELECT r.a, count(*) FROM r JOIN n ON r.a = n.g GROUP BY r.a",
        "SELECT n.g, count(*) FROM r JOIN n ON r.a = n.g GROUP BY n.g",
    )
}  # fmt: skip

PAIR_OF_ROLES = database(m=[(1, 7, 1)] * 20 + [(1, 2, 8)] * 20 + [(9, 1, 1)] * 20)
"""Each row serves one copy of three; two of them are worth most for different values of b."""
MERGED: dict[str, Case] = {
    "two copies with values of their own": Case(
        "SELECT count(*) FROM r q1, r q2 WHERE q1.a = q2.a AND q1.b = 1 AND q2.b = 2",
        (database(r=[(1, 1)] * 5 + [(2, 2)]), FEW),
    ),
    "three copies that share one column each": Case(
        "SELECT count(*) FROM m q1, m q2, m q3 WHERE q1.a = q2.a AND q2.b = q3.b AND q3.c = q1.c "
        "AND q1.b = 7 AND q2.c = 8 AND q3.a = 9",
        (PAIR_OF_ROLES,), values=(1, 8), steps=0,
    ),
}  # fmt: skip

_BY_KEY = (
    "SELECT count(*) FROM r JOIN o ON r.a = o.a",
    "SELECT count(*) FROM t JOIN o ON t.a = o.a",
    "SELECT count(*) FROM t JOIN r ON t.a = r.a JOIN p ON p.a = r.a",
    "SELECT count(*) FROM t LEFT JOIN o ON o.a = t.a",
    "SELECT t.c, sum(o.a) FROM t JOIN o ON t.a = o.a GROUP BY t.c",
    f"{TRIANGLE} q1.y = q2.x AND q2.y = q3.y AND q1.x = q3.x AND q1.x < q1.y AND q2.x < q2.y",
)
ACCEPTED_KEYS: dict[str, Case] = {
    f"accepted: {text}": Case(text, SINGLE, BELIEVED, NODES if "q3" in text else VALUES)
    for text in _BY_KEY
}
UNACCEPTED = replace(BELIEVED, policy=replace(BELIEVED.policy, accept=()))
TOLD_KEYS: dict[str, Case] = {
    "a public table whose key does not hold": Case(
        "SELECT count(*) FROM r JOIN p ON r.a = p.a",
        (database(r=[(1, 1)], p=[(1, 1)]), database(r=[(1, 1)], p=[(1, 1), (1, 2), (1, 1)])),
        SOME,
    ),
    **{f"declared: {text}": Case(text, USUAL, UNACCEPTED) for text in _BY_KEY},
}

BAD: dict[str, Case] = {**BAD_INPUT, **NULL_KEYS}
OTHERS: dict[str, Case] = {
    **SELF_JOINS, **TRIANGLES, **SETS, **GROUPED, **PUBLIC_TABLES, **ROUNDED,
    **CONDITIONS, **MERGED, **ACCEPTED_KEYS, **TOLD_KEYS,
}  # fmt: skip
CASES: dict[str, Case] = {**BAD, **OTHERS}
