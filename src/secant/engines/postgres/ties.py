"""What a PostgreSQL server says of triggers, rules, row policies, checks, foreign keys and functions of tables.

In: a way to ask, and tables by their numbers. Out: ties. Only the catalog is read, never the text of a function: what
it does, nobody could tell from it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from secant.schema.catalog import Tie

# Rows of partitions and children are rows of the table that is named. What the server brings itself is not listed among
# what something depends on; functions of extensions are, and are taken for what they are documented to be, but for
# triggers.
_TIES = """
WITH RECURSIVE part (oid, root) AS (
    SELECT oid, oid FROM pg_class WHERE oid IN ({oids})
    UNION SELECT i.inhrelid, p.root FROM part AS p JOIN pg_inherits AS i ON i.inhparent = p.oid
), own (classid, objid, objsubid) AS (
    SELECT d.classid, d.objid, d.objsubid FROM pg_depend AS d
    WHERE d.refclassid IN ('pg_proc'::regclass, 'pg_operator'::regclass)
      AND d.classid IN ('pg_attrdef'::regclass, 'pg_class'::regclass, 'pg_constraint'::regclass,
                        'pg_rewrite'::regclass, 'pg_policy'::regclass)
      AND NOT EXISTS (SELECT 1 FROM pg_depend AS e
                      WHERE e.classid = d.refclassid AND e.objid = d.refobjid AND e.deptype = 'e')
)
SELECT p.root::bigint, 'trigger', g.tgname::text, NULL::text[], NULL::text[], FALSE, NULL::text[]
FROM part AS p
JOIN pg_trigger AS g ON g.tgrelid = p.oid AND NOT g.tgisinternal
JOIN pg_proc AS f ON f.oid = g.tgfoid AND f.pronamespace <> 'pg_catalog'::regnamespace
UNION
SELECT p.root::bigint, 'rule', r.rulename::text, NULL, NULL,
       NOT EXISTS (SELECT 1 FROM own WHERE own.classid = 'pg_rewrite'::regclass AND own.objid = r.oid),
       (SELECT array_agg(DISTINCT ARRAY[s.nspname::text, t.relname::text])
        FROM pg_depend AS d JOIN pg_class AS t ON t.oid = d.refobjid JOIN pg_namespace AS s ON s.oid = t.relnamespace
        WHERE d.classid = 'pg_rewrite'::regclass AND d.objid = r.oid AND d.refclassid = 'pg_class'::regclass
          AND d.refobjid <> p.oid)
FROM part AS p
JOIN pg_rewrite AS r ON r.ev_class = p.oid AND r.ev_type <> '1'
UNION
SELECT p.root::bigint, 'row policy', y.polname::text, NULL, NULL,
       NOT EXISTS (SELECT 1 FROM own WHERE own.classid = 'pg_policy'::regclass AND own.objid = y.oid),
       (SELECT array_agg(DISTINCT ARRAY[s.nspname::text, t.relname::text])
        FROM pg_depend AS d JOIN pg_class AS t ON t.oid = d.refobjid JOIN pg_namespace AS s ON s.oid = t.relnamespace
        WHERE d.classid = 'pg_policy'::regclass AND d.objid = y.oid AND d.refclassid = 'pg_class'::regclass
          AND d.refobjid <> p.oid)
FROM part AS p
JOIN pg_policy AS y ON y.polrelid = p.oid AND p.oid = p.root AND row_security_active(p.oid)
UNION
SELECT p.root::bigint, CASE k.contype WHEN 'f' THEN 'foreign key' ELSE 'check' END, k.conname::text,
       (SELECT array_agg(a.attname::text ORDER BY u.place) FROM unnest(k.conkey) WITH ORDINALITY AS u (number, place)
        JOIN pg_attribute AS a ON a.attrelid = k.conrelid AND a.attnum = u.number),
       (SELECT array_agg(a.attname::text ORDER BY u.place) FROM unnest(k.confkey) WITH ORDINALITY AS u (number, place)
        JOIN pg_attribute AS a ON a.attrelid = k.confrelid AND a.attnum = u.number),
       NOT EXISTS (SELECT 1 FROM own WHERE own.classid = 'pg_constraint'::regclass AND own.objid = k.oid),
       CASE WHEN k.contype = 'f' THEN ARRAY[ARRAY[s.nspname::text, t.relname::text]] END
FROM part AS p
JOIN pg_constraint AS k ON k.conrelid = p.oid AND k.contype IN ('c', 'f')
LEFT JOIN pg_class AS t ON t.oid = k.confrelid
LEFT JOIN pg_namespace AS s ON s.oid = t.relnamespace
UNION
SELECT p.root::bigint, 'function', a.attname::text, ARRAY[a.attname::text], NULL, FALSE, NULL
FROM part AS p
JOIN pg_attribute AS a ON a.attrelid = p.oid AND a.attnum > 0 AND NOT a.attisdropped
JOIN pg_attrdef AS d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
WHERE EXISTS (
    SELECT 1 FROM own WHERE own.classid = 'pg_attrdef'::regclass AND own.objid = d.oid
       OR own.classid = 'pg_class'::regclass AND own.objid = a.attrelid AND own.objsubid = a.attnum)
ORDER BY 1, 2, 3
"""


def read_ties(
    ask: Callable[[str], list[tuple[Any, ...]]],
    oids: list[int],
    named: Callable[[str, str], str],
) -> dict[int, list[Tie]]:
    """Read the ties of tables; `named` gives the name of a table from its schema and its own."""
    ties: dict[int, list[Tie]] = {}
    rows = ask(_TIES.format(oids=", ".join(map(str, oids)))) if oids else []
    for oid, kind, name, columns, others, validated, tables in rows:
        own = tuple(column.lower() for column in columns or ())
        there = tuple(named(*pair).lower() for pair in tables or ())
        targets = tuple((there[0], column.lower()) for column in others or ())
        if kind == "check" and validated and len(own) < 2:
            continue  # it says something of one value alone
        reaches = there if validated else None
        ties.setdefault(oid, []).append(Tie(kind, name, own, targets, reaches))
    return ties
