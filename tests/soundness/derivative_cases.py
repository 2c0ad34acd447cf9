"""Directed cases: queries that touch every rule of the derivative analysis, and the settings they are asked in.

In: nothing. Out: tables of queries over the schema of `derivative_worlds` and of worlds. A query stands here because
some rule could be wrong about it: repeated variables, self-joins, empty cells, rows that meet several others.
"""

from __future__ import annotations

from derivative_check import World
from derivative_worlds import small_world

VALUES = (
    "SELECT sum(x) FROM a", "SELECT sum(c) FROM a", "SELECT sum(m) FROM a",
    "SELECT sum(x*x) FROM a", "SELECT sum(x*(1-x)) FROM a", "SELECT sum(x-x) FROM a",
    "SELECT sum(x*y) FROM a", "SELECT sum(x*y*v) FROM a", "SELECT sum(x*p) FROM a",
    "SELECT sum(x/y) FROM a", "SELECT sum(x/p) FROM a", "SELECT sum(1/(y*v)) FROM a",
    "SELECT sum(exp(x)) FROM a", "SELECT sum(exp(x*y/4)) FROM a", "SELECT sum(ln(y)) FROM a",
    "SELECT sum(ln(y+v)) FROM a", "SELECT sum(sqrt(v)) FROM a", "SELECT sum(sqrt(y*v)) FROM a",
    "SELECT sum(power(y, 1.5)) FROM a", "SELECT sum(power(x, 3)) FROM a",
    "SELECT sum(power(v, -2)) FROM a", "SELECT sum(power(x-y, 2)) FROM a",
    "SELECT sum(abs(x)) FROM a", "SELECT sum(abs(x-y)) FROM a", "SELECT sum(abs(abs(x)-1)) FROM a",
    "SELECT sum(least(x, y)) FROM a", "SELECT sum(greatest(x*x, y, 2)) FROM a",
    "SELECT sum(least(x, y, v)*greatest(x, v)) FROM a", "SELECT sum(sqrt(x*x+y*y)) FROM a",
    "SELECT sum(sqrt(x*x+y*y)*v) FROM a", "SELECT sum(sqrt(x*x+y*y)/v) FROM a",
    "SELECT sum(power(x*x+v*v, 0.5)+x) FROM a", "SELECT sum(sqrt(power(x,2)+power(y,2)+v*v)) FROM a",
    "SELECT sum(-x*3+y) FROM a", "SELECT sum(v*ln(v)) FROM a", "SELECT sum(1/v) FROM a",
    "SELECT sum(v*v) FROM a", "SELECT sum(y/v+v/y) FROM a", "SELECT sum(m*c) FROM a",
    "SELECT sum(CASE WHEN p > 0 THEN x*y ELSE x END) FROM a",
    "SELECT sum(CASE WHEN x > 1 THEN y ELSE v END) FROM a",
    "SELECT sum(CASE WHEN x > 1 AND y < 2 THEN x WHEN m = 3 THEN 2*y ELSE p END) FROM a",
    "SELECT min(x) FROM a", "SELECT max(x*y) FROM a", "SELECT min(exp(x)/y) FROM a",
    "SELECT max(least(x, y)) FROM a", "SELECT avg(x) FROM a", "SELECT avg(x*y) FROM a",
    "SELECT variance(x) FROM a", "SELECT stddev_pop(x*y) FROM a", "SELECT var_pop(y) FROM a",
    "SELECT sum(coalesce(x, y)) FROM a", "SELECT sum(coalesce(x*y, v)) FROM a",
    "SELECT sum(100*x*p + y) FROM a", "SELECT sum(CASE WHEN g = 1 THEN 100*x ELSE y END + v*0.5) FROM a",
    "SELECT sum(coalesce(x*p, 0)+x) FROM a", "SELECT sum(greatest(x*y, m)) FROM a",
    "SELECT sum(sqrt((x-1)*(x-1)+(y-2)*(y-2))) FROM a", "SELECT sum(sqrt(1+x*x+y*y)) FROM a",
    "SELECT sum(sqrt(power(2*x-y,2)+(x/2-p)*(x/2-p))) FROM a", "SELECT sum(sqrt((x-p)*(x-p))) FROM a",
    "SELECT sum(power(power(abs(x-1),4)+power(y-v,4), 0.25)) FROM a", "SELECT sum(sqrt(power(p*x-v,2)+p*p)) FROM a",
    "SELECT min(sqrt((x-1)*(x-1)+(y-p)*(y-p))/v) FROM a", "SELECT sum(sqrt(power(abs(x)-1,2)+y*y)*v) FROM a",
    "SELECT count(*) FROM a WHERE sqrt((x-1)*(x-1)+(y-2)*(y-2)) < 2", "SELECT sum(sqrt(v*v+(c-2)*(c-2))) FROM a",
)  # fmt: skip
FILTERS = (
    "SELECT count(*) FROM a WHERE x > 1", "SELECT count(*) FROM a WHERE m >= 3",
    "SELECT count(*) FROM a WHERE m = 3", "SELECT count(*) FROM a WHERE m <> 3",
    "SELECT count(*) FROM a WHERE x = 1", "SELECT count(*) FROM a WHERE x <> 1",
    "SELECT count(*) FROM a WHERE m IN (1, 3, 4)", "SELECT count(*) FROM a WHERE m NOT IN (1, 3)",
    "SELECT count(*) FROM a WHERE x IN (1, 2)", "SELECT count(*) FROM a WHERE x BETWEEN 0 AND 2",
    "SELECT count(*) FROM a WHERE NOT (x BETWEEN 0 AND 2)",
    "SELECT count(*) FROM a WHERE x > 1 OR y > 2", "SELECT count(*) FROM a WHERE (x > 1) <> (y > 2)",
    "SELECT count(*) FROM a WHERE (x > 1) = (m > 2)", "SELECT count(*) FROM a WHERE NOT (x > 1 AND m = 2)",
    "SELECT count(*) FROM a WHERE x > 1 AND x < 2 AND y < 3 AND m > 1 AND c < 9",
    "SELECT count(*) FROM a WHERE x > y", "SELECT count(*) FROM a WHERE x*y > 2",
    "SELECT count(*) FROM a WHERE x BETWEEN 0 AND 2 AND x < y AND y < v", "SELECT sum(p*x) FROM a WHERE x IN (0, 2, 3)",
    "SELECT sum(y) FROM a WHERE (g = 1 AND x BETWEEN 0 AND 1) OR (g = 2 AND x BETWEEN 1 AND 3 AND m < 4)",
    "SELECT count(*) FROM a WHERE d < e", "SELECT count(*) FROM a WHERE d >= DATE '2020-01-15'",
    "SELECT count(*) FROM a WHERE d BETWEEN DATE '2020-01-05' AND DATE '2020-01-20' AND e > d",
    "SELECT count(*) FROM a WHERE c = 7.5", "SELECT count(*) FROM a WHERE c <= 7.5 OR g = 1",
    "SELECT count(*) FROM a WHERE (g = 1 AND x > 1) OR (g = 2 AND x > 2)",
    "SELECT count(x) FROM a WHERE y > 2", "SELECT count(CASE WHEN x > 1 THEN 1 END) FROM a",
    "SELECT sum(x) FROM a WHERE y > 2", "SELECT sum(x) FROM a WHERE x > 1",
    "SELECT sum(x*y) FROM a WHERE x > y AND v < 2", "SELECT sum(c) FROM a WHERE m < 3",
    "SELECT sum(p) FROM a WHERE x > 0", "SELECT sum(exp(x)) FROM a WHERE x < 1",
    "SELECT sum(x/v) FROM a WHERE v > 2 OR y < 1", "SELECT min(x) FROM a WHERE y > 2",
    "SELECT max(x*y) FROM a WHERE x < 2 AND m >= 1", "SELECT avg(x) FROM a WHERE y > 2",
    "SELECT variance(x) FROM a WHERE m > 2", "SELECT sum(x) FROM a WHERE abs(x) > 1 AND p > 0",
    "SELECT sum(v) FROM a WHERE ln(v) > 0.5", "SELECT sum(x) FROM a WHERE x IS NOT NULL AND y > 1",
    "SELECT count(*) FROM a WHERE x IS NULL OR y > 1", "SELECT count(*) FROM a WHERE x*0 > 1",
    "SELECT count(*) FROM a WHERE m*0 = 0", "SELECT count(*) FROM a WHERE x > 4.5",
    "SELECT count(*) FROM a WHERE m = 9", "SELECT sum(x) FROM a WHERE m <= -3 AND d > DATE '2020-02-05'",
    "SELECT count(*) FROM a WHERE c < 0.5 AND x BETWEEN 1 AND 1.2", "SELECT sum(y) FROM a WHERE y > 3.8",
    "SELECT count(*), sum(x*y) FROM a WHERE d BETWEEN DATE '2020-01-05' AND DATE '2020-01-06'",
    "SELECT sum(c) FROM a WHERE v < 0.4 AND m IN (1, 2)", "SELECT sum(p) FROM a WHERE v > 7.5 AND c = 7.5",
    "SELECT count(*) FROM a JOIN u ON a.k = u.k WHERE x > 4.5 AND u.q > 0",
    "SELECT sum(a.x*b.z) FROM a JOIN b ON a.k = b.id WHERE a.x > 4.5 AND b.w < 1.2",
    "SELECT count(*) FROM a JOIN a AS o ON a.k = o.id WHERE a.x > 4 AND o.y > 3.5",
    "SELECT sum(CASE WHEN g = 1 THEN 100*x ELSE 0.1*x END + y) FROM a WHERE m > 8",
)  # fmt: skip
JOINS = (
    "SELECT sum(a.x) FROM a JOIN u ON a.k = u.k", "SELECT sum(a.x*u.q) FROM a JOIN u ON a.k = u.k",
    "SELECT sum(a.x*b.z) FROM a JOIN b ON a.k = b.k", "SELECT sum(a.x) FROM a JOIN b ON a.k = b.id",
    "SELECT sum(a.x*b.z) FROM a JOIN b ON a.k = b.id WHERE b.w > 2",
    "SELECT sum(a.x*a.y+b.z*b.w) FROM a, b", "SELECT count(*) FROM a, b WHERE a.x > b.z",
    "SELECT count(*) FROM a JOIN b ON a.k = b.k AND a.x < b.w", "SELECT sum(lone.s) FROM lone",
    "SELECT sum(lone.s*a.x) FROM lone, a", "SELECT count(*) FROM lone, u WHERE s > 0.5",
    "SELECT sum(lone.s*lone.s) FROM lone, u",
    "SELECT sum(a.x*o.x) FROM a, a AS o", "SELECT sum(a.x) FROM a JOIN a AS o ON a.k = o.k",
    "SELECT sum(a.x-o.x) FROM a JOIN a AS o ON a.k = o.id", "SELECT count(*) FROM a, a AS o WHERE a.x > o.x",
    "SELECT sum(a.x*o.y) FROM a JOIN a AS o ON a.id = o.id", "SELECT min(a.x*o.x) FROM a, a AS o",
    "SELECT max(a.x+o.x) FROM a JOIN a AS o ON a.g = o.g WHERE o.y > 2",
    "SELECT min(a.x+b.z) FROM a JOIN b ON a.k = b.k", "SELECT max(a.x*b.w) FROM a, b WHERE b.z > 0",
    "SELECT sum(a.x*b.z*o.x) FROM a JOIN b ON a.k = b.id JOIN a AS o ON o.id = b.k",
    "SELECT avg(a.x) FROM a JOIN u ON a.k = u.k", "SELECT sum(a.x) FROM a JOIN u ON a.k = u.k AND u.h = 1",
    "SELECT sum(a.x) FROM a JOIN u ON a.k = u.h", "SELECT sum(a.x) FROM a, u WHERE u.k = 1",
    "SELECT sum(a.x) FROM a LEFT JOIN u ON a.k = u.k",
    "SELECT sum(a.x*coalesce(u.q, 1)) FROM a LEFT JOIN u ON a.k = u.h",
    "SELECT sum(a.x*b.z) FROM a JOIN b ON a.k = b.id LEFT JOIN u ON b.k = u.k AND u.h = 1",
    "SELECT sum(a.x*b.z) FROM b CROSS JOIN a LEFT JOIN u ON a.id = u.k AND u.k = 1 WHERE b.z > 0",
    "SELECT count(*) FROM a LEFT JOIN u ON a.k = u.k LEFT JOIN u AS w ON u.h = w.k WHERE a.x > 1 AND w.q IS NULL",
    "SELECT max(a.x) FROM a LEFT JOIN u ON a.k < u.k", "SELECT sum(a.x) FROM a WHERE a.k IN (SELECT k FROM u)",
    "SELECT sum(a.x) FROM a WHERE EXISTS (SELECT 1 FROM u WHERE u.k = a.k AND u.h = 2)",
    "SELECT sum(a.x) FROM a JOIN (SELECT k, max(q) AS q FROM u GROUP BY k) AS t ON a.k = t.k",
    "SELECT sum(s) FROM (SELECT x+y AS s FROM a WHERE m > 2) AS t WHERE s > 1",
    "SELECT sum(sqrt((a.x-b.z)*(a.x-b.z)+(a.y-b.w)*(a.y-b.w))) FROM a JOIN b ON a.k = b.id",
    "SELECT sum(sqrt(power(a.x-u.q,2)+a.y*a.y)) FROM a, u",
    "SELECT max(sqrt((a.x-o.x)*(a.x-o.x)+(a.y-o.y)*(a.y-o.y))) FROM a, a AS o",
)  # fmt: skip
GROUPS = (
    "SELECT g, sum(x) FROM a GROUP BY g", "SELECT g, count(*) FROM a WHERE x > 1 GROUP BY g",
    "SELECT g, min(x), max(y), avg(v) FROM a GROUP BY g", "SELECT p, k, sum(x*y) FROM a GROUP BY p, k",
    "SELECT u.h, sum(a.x) FROM a JOIN u ON a.k = u.k GROUP BY u.h",
    "SELECT u.h, min(a.x) FROM a JOIN u ON a.k = u.k GROUP BY u.h",
    "SELECT u.h, sum(a.x) FROM a LEFT JOIN u ON a.k = u.k GROUP BY u.h",
    "SELECT a.g, sum(a.x*u.q) FROM a, u GROUP BY a.g",
    "SELECT a.g, max(a.x*b.z) FROM a JOIN b ON a.k = b.id GROUP BY a.g",
    "SELECT b.k, sum(a.x*b.z) FROM a JOIN b ON a.k = b.id GROUP BY b.k",
    "SELECT a.g, sum(a.x*b.z) FROM a JOIN b ON a.k = b.k GROUP BY a.g",
    "SELECT a.g, min(a.x) FROM a JOIN a AS o ON a.k = o.id GROUP BY a.g", "SELECT g+k, sum(x) FROM a GROUP BY g+k",
    "SELECT m, count(*) FROM b GROUP BY m", "SELECT m, sum(z), max(w) FROM b WHERE w > 2 GROUP BY m",
    "SELECT b.m, b.k, sum(z*u.q) FROM b JOIN u ON b.k = u.k GROUP BY b.m, b.k", "SELECT m, avg(z) FROM b GROUP BY m",
)  # fmt: skip
UNIONS = (
    "SELECT sum(t) FROM (SELECT x AS t FROM a UNION ALL SELECT z FROM b) AS u",
    "SELECT sum(t) FROM (SELECT x AS t FROM a UNION ALL SELECT y FROM a) AS u",
    "SELECT sum(t*t) FROM (SELECT x AS t FROM a UNION ALL SELECT x FROM a) AS u",
    "SELECT count(*) FROM (SELECT x AS t FROM a UNION ALL SELECT z FROM b) AS u WHERE t > 1",
    "SELECT sum(t) FROM (SELECT x*y AS t FROM a WHERE m > 2 UNION ALL SELECT z*w FROM b WHERE w > 3) AS u WHERE t < 4",
    "SELECT sum(t) FROM (SELECT m AS t FROM a UNION ALL SELECT c FROM a WHERE x > 1 UNION ALL SELECT q FROM u) AS u",
    "SELECT min(t), max(t) FROM (SELECT x AS t FROM a UNION ALL SELECT 2*y FROM a WHERE v > 2) AS u",
    "SELECT max(t) FROM (SELECT x AS t FROM a UNION ALL SELECT z FROM b UNION ALL SELECT s FROM lone) AS u",
    "SELECT avg(t) FROM (SELECT x AS t FROM a UNION ALL SELECT w FROM b) AS u WHERE t > 0",
    "SELECT variance(t), count(t) FROM (SELECT v AS t FROM a UNION ALL SELECT w FROM b) AS u",
    "SELECT sum(t*q) FROM (SELECT k, x AS t FROM a UNION ALL SELECT k, z FROM b) AS o JOIN u ON o.k = u.k",
    "SELECT sum(t*o.y) FROM (SELECT k, x AS t FROM a UNION ALL SELECT k, z FROM b) AS s JOIN a AS o ON s.k = o.id",
    ("SELECT sum(l.t*r.t) FROM (SELECT k, x AS t FROM a UNION ALL SELECT k, z FROM b) AS l "
     "JOIN (SELECT id, y AS t FROM a UNION ALL SELECT id, w FROM b) AS r ON l.k = r.id"),
    "SELECT sum(t) FROM (SELECT a.x*u.q AS t FROM a, u UNION ALL SELECT z FROM b) AS s",
    ("SELECT sum(t) FROM (SELECT a.x AS t FROM a JOIN u ON a.k = u.h WHERE a.y > 2 UNION ALL "
     "SELECT b.z FROM b JOIN u ON b.k = u.h) AS s"),
    "SELECT h, sum(t) FROM (SELECT g AS h, x AS t FROM a UNION ALL SELECT k, z FROM b) AS u GROUP BY h",
    "SELECT h, sum(t), max(t) FROM (SELECT g AS h, x AS t FROM a UNION ALL SELECT g, 3*y FROM a) AS u GROUP BY h",
    "SELECT count(*), sum(t) FROM (SELECT x AS t FROM a WHERE g = 1 UNION ALL SELECT q FROM u) AS s",
    "WITH w AS (SELECT x*y t FROM a WHERE v > 1) SELECT sum(t) FROM (SELECT t FROM w UNION ALL SELECT t*t FROM w) AS s",
)  # fmt: skip
"""UNION ALL: of two tables, of one table with itself, below and above joins, in groups."""
NESTED = (
    "SELECT sum(t) FROM (SELECT g, max(x) AS t FROM a GROUP BY g) AS s",
    "SELECT sum(t), avg(t) FROM (SELECT g, min(x*y) AS t FROM a GROUP BY g) AS s",
    "SELECT sum(t*t) FROM (SELECT g, max(x) AS t FROM a WHERE y > 2 GROUP BY g) AS s",
    "SELECT sum(exp(t)), max(t), min(t) FROM (SELECT k, max(x) AS t FROM a GROUP BY k) AS s",
    "SELECT count(*) FROM (SELECT g, max(x) AS t FROM a GROUP BY g) AS s WHERE t > 1",
    "SELECT sum(t) FROM (SELECT g, min(y) AS t FROM a GROUP BY g HAVING min(y) > 2) AS s",
    "SELECT sum(t*h) FROM (SELECT u.h, max(a.x) AS t FROM a JOIN u ON a.k = u.k GROUP BY u.h) AS s",
    "SELECT sum(t) FROM (SELECT u.k, max(a.x*u.q) AS t FROM a, u GROUP BY u.k) AS s",
    "SELECT sum(t) FROM (SELECT a.g, max(a.x*b.z) AS t FROM a JOIN b ON a.k = b.id GROUP BY a.g) AS s",
    "SELECT sum(t) FROM (SELECT a.g, min(a.x - o.x) AS t FROM a JOIN a AS o ON a.k = o.k GROUP BY a.g) AS s",
    "SELECT g, sum(t) FROM (SELECT g, k, max(x) AS t FROM a GROUP BY g, k) AS s GROUP BY g",
    "SELECT g, max(t), count(*) FROM (SELECT g, k, max(x*y) AS t FROM a WHERE m > 2 GROUP BY g, k) AS s GROUP BY g",
    "SELECT sum(t) FROM (SELECT g, max(v) AS t FROM a WHERE k > 0 GROUP BY g) AS s WHERE g < 3",
    "SELECT sum(coalesce(t, 2)) FROM (SELECT g, max(x) AS t FROM a GROUP BY g) AS s",
    ("SELECT sum(t) FROM (SELECT h, max(t) AS t FROM (SELECT g AS h, x AS t FROM a UNION ALL SELECT k, z FROM b) AS o "
     "GROUP BY h) AS s"),
    "SELECT sum(t) FROM (SELECT max(z) AS t FROM b) AS s",
    "SELECT max(t) FROM (SELECT k, min(z) AS t FROM b GROUP BY k) AS s",
)  # fmt: skip
"""Aggregates of the least and greatest of inner groups."""
SETS = (
    "SELECT count(*) FROM (SELECT DISTINCT g FROM a WHERE x > 1) AS s",
    "SELECT count(*), sum(p) FROM (SELECT DISTINCT g, p FROM a WHERE x > 1 AND y < 3) AS s",
    "SELECT count(*) FROM (SELECT DISTINCT k FROM a) AS s",
    "SELECT avg(p) FROM (SELECT DISTINCT p FROM a WHERE x > y) AS s WHERE p < 2",
    "SELECT count(*) FROM (SELECT k FROM a WHERE x > 1 UNION SELECT k FROM b WHERE z > 0) AS s",
    "SELECT count(*) FROM (SELECT k FROM a WHERE x > 1 INTERSECT SELECT k FROM b WHERE z > 0) AS s",
    "SELECT sum(p) FROM (SELECT p FROM a WHERE x > 1 EXCEPT SELECT p FROM a WHERE y > 2) AS s",
    "SELECT count(*) FROM (SELECT k FROM a WHERE x > 1 EXCEPT SELECT k FROM a WHERE y > 2) AS s",
    "SELECT count(*) FROM (SELECT k FROM u EXCEPT SELECT k FROM a WHERE m >= 3) AS s",
    "SELECT count(*) FROM (SELECT DISTINCT u.h FROM a JOIN u ON a.k = u.k WHERE a.x > 1) AS s",
    "SELECT count(*) FROM (SELECT DISTINCT a.g, u.h FROM a, u WHERE a.x > u.q) AS s",
    "SELECT g, count(*) FROM (SELECT DISTINCT g, k FROM a WHERE x > 1) AS s GROUP BY g",
    "SELECT count(*) FROM (SELECT DISTINCT a.g FROM a JOIN b ON a.k = b.id WHERE a.x > b.z) AS s",
    "SELECT count(DISTINCT g) FROM a WHERE x > 1", "SELECT g, count(DISTINCT k) FROM a WHERE x > 1 GROUP BY g",
    "SELECT sum(greatest(least(t, 5), -5)) FROM (SELECT g, sum(x) AS t FROM a GROUP BY g) AS s",
)  # fmt: skip
"""Sets of public columns, of rows that protected values decide."""
COUNTED = (
    "SELECT count(*) FROM a JOIN u ON a.id = u.h WHERE a.m IN (1, 3)",
    "SELECT count(u.h), sum(a.m) FROM a JOIN u ON a.id = u.h WHERE a.m > 2",
    "SELECT count(*) FROM a JOIN u ON a.id = u.h WHERE a.d < DATE '2020-01-20' AND a.m = 3",
    "SELECT count(*) FROM a JOIN u ON a.id = u.h JOIN u AS w ON w.h = a.id WHERE a.m <> 3",
    "SELECT sum(b.m*b.m) FROM b, u WHERE b.id = u.h AND b.m > 1",
    "SELECT count(*) FROM a JOIN a AS o ON a.id = o.k WHERE a.m > 2",
    "SELECT sum(a.m) FROM a JOIN u ON a.id = u.h WHERE a.m > 8", "SELECT sum(a.m) FROM a JOIN b ON a.id = b.k",
    "SELECT avg(a.m) FROM a JOIN u ON a.id = u.h WHERE a.m > 3",
    "SELECT count(*) FROM a JOIN u ON a.id = u.h JOIN b ON b.id = u.k WHERE a.m = 3 AND u.q > 0",
    "SELECT sum(CASE WHEN a.m > 4 THEN a.m ELSE 1 END) FROM a JOIN u ON a.id = u.h WHERE a.d > DATE '2020-01-09'",
)  # fmt: skip
"""All joined rows of a row add the same, which few values decide."""
LOOKED_UP = (
    "SELECT u.k, min(sqrt(power(a.x-u.q,2)+a.y*a.y)) FROM a, u GROUP BY u.k",
    "SELECT u.h, sum(a.x*a.x) FROM a, u GROUP BY u.h", "SELECT u.q, max(a.x) FROM a JOIN u ON a.k = u.h GROUP BY u.q",
    "SELECT w.h, sum(a.x) FROM a JOIN u ON a.k = u.k CROSS JOIN u AS w GROUP BY w.h",
)  # fmt: skip
"""A row moves several groups, whose number public columns bound: answered where they are looked up."""
QUERIES = VALUES + FILTERS + JOINS + GROUPS + UNIONS + NESTED + SETS + COUNTED

SHIP = "SELECT min(sqrt(x*x+y*y)/v) FROM a"
SHIP_NORM = {"a": "l1(l2(0.01*x, 0.01*y), 5*ln(v))"}

_B = "l1(z, w, m)"


def settings() -> dict[str, World]:
    """Give the worlds in which the queries are asked."""
    return {
        "plain": small_world(),
        "largest": small_world(
            {"a": "linf(x, y, v, 0.5*m, 0.1*d, 0.2*e, c)", "b": "linf(2*z, w, m)", "lone": "s"},
            tables="linf",
        ),
        "round": small_world(
            {
                "a": "l2(l1(x, 3*y), v, l1.5(m, 0.1*d, 0.1*e), 0.5*c)",
                "b": "l2(z, w, m)",
                "lone": "3*s",
            },
            rows={"a": "l2", "b": "l1.5"},
            tables="l2",
        ),
        "logarithm": small_world(
            {"a": "l1(l2(0.5*x, 0.5*y), 2*ln(v), linf(m, 0.2*l1(d, e)))", "b": "linf(z, 3*ln(w))"},
            rows={"a": "linf"},
        ),
        "root": small_world(
            {
                "a": "l1(l2(0.5*x, sqrt(y)), 2*sqrt(v), linf(m, 0.2*l1(d, e)), 0.5*sqrt(c))",
                "b": "linf(z, 3*sqrt(w), sqrt(m))",
                "lone": "sqrt(s)",
            },
            rows={"a": "l2"},
        ),
        "sigmoid": small_world(settings='softening = { kind = "sigmoid", slope = 2.0 }'),
        "round sigmoid": small_world(
            {"a": "linf(x, l2(y, 2*v), m, 0.1*l1(d, e), c)", "b": _B, "lone": "s"},
            settings='softening = { kind = "sigmoid", slope = 0.7 }',
            rows={"a": "l1.5"},
            tables="l1.5",
        ),
        "exact": small_world(settings='softening = { kind = "exact" }', keys=()),
        "wide": small_world(
            {"a": "l1.5(x, l1(2*y, m), linf(v, c), 0.1*d)"},
            settings='softening = { kind = "ramp", width = 1.5 }',
            keys=("a", "u"),
        ),
        "nearly one": small_world(
            {"a": "l1(l1.01(x, y), 0.5*v, l1.001(m, c), d)", "b": "l1.01(z, w)", "lone": "s"},
            settings='softening = { kind = "ramp", width = 0.1 }',
        ),
        "repeated": small_world(
            {
                "a": "linf(l1(x, 0.5*y), 2*l2(0.2*x, y, v), l1(m, 0.5*m), 0.1*l1(d, e, linf(d, e)), c)",
                "b": "l1(z, linf(z, w), m)",
            }
        ),
        "open rows": small_world(
            {"a": "l1(linf(x, y), v, m, 0.1*linf(d, e), c)", "b": "l1(z, w, m)"},
            settings='public_rows = { a = "g = 1", b = "k = 2" }',
        ),
    }
