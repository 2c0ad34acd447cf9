"""What a PostgreSQL server says of its schemas: tables, types, keys, references, labels, comments, texts of views.

In: a way to ask. Out: tables as they are offered. Only the server's own catalog is read, never a row. Foreign tables,
partitions and stored views show rows of other tables under another name: they are named with the reason, not offered.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from functools import partial
from typing import Any

from secant.engines.dialect import Dialect, quote, text
from secant.engines.offered import Offer, Stored, offered
from secant.engines.postgres.casts import C_TEXT
from secant.engines.postgres.ties import read_ties
from secant.errors import BackendError
from secant.schema import types as t
from secant.schema.catalog import Catalog, Computed, Formula, StoredView

Ask = Callable[[str], list[tuple[Any, ...]]]
TableName = tuple[str, str]
"""A schema and a table of it."""

# The server takes the function or operator whose arguments fit best, also from a schema that it searches late.
_OWN_MEANINGS = """
WITH known (type) AS (
    SELECT oid FROM pg_type WHERE typnamespace = 'pg_catalog'::regnamespace AND typname IN (
        'bool', 'int2', 'int4', 'int8', 'float4', 'float8', 'numeric', 'text', 'varchar', 'bpchar', 'name', 'date',
        'time', 'timestamp', 'timestamptz', 'interval', 'uuid', 'bytea', 'json', 'jsonb', '_text', '_int8', 'unknown',
        'any', 'anyarray', 'anyelement', 'anycompatible', 'anynonarray', 'record')
)
SELECT own.name FROM (
    SELECT f.proname AS name, f.proargtypes::oid[] AS arguments FROM pg_proc AS f
    WHERE f.pronamespace IN (SELECT oid FROM pg_namespace WHERE nspname IN ({schemas}))
      AND EXISTS (SELECT 1 FROM pg_proc AS b
                  WHERE b.proname = f.proname AND b.pronamespace = 'pg_catalog'::regnamespace)
    UNION ALL
    SELECT o.oprname, ARRAY[o.oprleft, o.oprright] FROM pg_operator AS o
    WHERE o.oprnamespace IN (SELECT oid FROM pg_namespace WHERE nspname IN ({schemas}))
) AS own
WHERE NOT EXISTS (SELECT 1 FROM unnest(own.arguments) AS a (type)
                  WHERE a.type <> 0 AND a.type NOT IN (SELECT type FROM known))
ORDER BY 1 LIMIT 1
"""
# Rows of a table with two parents would be rows of both; those of a foreign table are another table's.
_TABLES = """
WITH RECURSIVE below (root, child) AS (
    SELECT inhparent, inhrelid FROM pg_inherits
    UNION SELECT b.root, i.inhrelid FROM below AS b JOIN pg_inherits AS i ON i.inhparent = b.child
)
SELECT s.nspname, c.relname, c.oid::bigint, c.relkind::text, obj_description(c.oid, 'pg_class'),
       EXISTS (SELECT 1 FROM pg_inherits AS i WHERE i.inhrelid = c.oid),
       EXISTS (
         SELECT 1 FROM below AS b JOIN pg_class AS d ON d.oid = b.child
         WHERE b.root = c.oid
           AND (d.relkind NOT IN ('r', 'p') OR (SELECT count(*) FROM pg_inherits AS i WHERE i.inhrelid = d.oid) > 1)
       ),
       CASE WHEN c.relkind = 'v' THEN pg_get_viewdef(c.oid) END
FROM pg_class AS c
JOIN pg_namespace AS s ON s.oid = c.relnamespace
WHERE s.nspname IN ({schemas}) AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
  AND has_any_column_privilege(c.oid, 'SELECT') {only}
  AND NOT EXISTS (SELECT 1 FROM pg_class AS own
                  WHERE own.relname = c.relname AND own.relnamespace = 'pg_catalog'::regnamespace)
ORDER BY array_position(ARRAY[{schemas}]::text[], s.nspname::text), c.relname
"""
_COLUMNS = """
SELECT c.oid::bigint, a.attname, format_type(coalesce(base.oid, y.oid), CASE WHEN y.typtype = 'd' THEN y.typtypmod
                                                                 ELSE a.atttypmod END),
       coalesce(base.typtype, y.typtype)::text,
       (SELECT array_agg(e.enumlabel::text ORDER BY e.enumsortorder) FROM pg_enum AS e
        WHERE e.enumtypid = coalesce(base.oid, y.oid)),
       (SELECT format_type(z.oid, NULL) || CASE WHEN z.typtype = 'e' THEN ' enum' ELSE '' END FROM pg_type AS z
        WHERE z.oid = (coalesce(base, y)).typelem AND (coalesce(base, y)).typcategory = 'A'),
       a.attgenerated::text, format_type(a.atttypid, a.atttypmod),
       (SELECT pg_get_expr(d.adbin, d.adrelid) FROM pg_attrdef AS d
        WHERE a.attgenerated <> '' AND d.adrelid = a.attrelid AND d.adnum = a.attnum),
       has_column_privilege(c.oid, a.attnum, 'SELECT'), col_description(c.oid, a.attnum), a.attnotnull
FROM pg_class AS c
JOIN pg_attribute AS a ON a.attrelid = c.oid
JOIN pg_type AS y ON y.oid = a.atttypid
LEFT JOIN pg_type AS base ON y.typtype = 'd' AND base.oid = y.typbasetype
WHERE c.oid IN ({oids}) AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY a.attrelid, a.attnum
"""
# A key of a table with children says nothing of the children's rows, unless they are partitions, all with the key.
_KEYS = """
SELECT k.conrelid::bigint,
       (SELECT array_agg(a.attname::text ORDER BY a.attnum) FROM pg_attribute AS a
        WHERE a.attrelid = c.oid AND a.attnum = ANY (k.conkey)),
       k.contype = 'f', fs.nspname, f.relname,
       (SELECT array_agg(a.attname::text ORDER BY a.attnum) FROM pg_attribute AS a
        WHERE a.attrelid = k.confrelid AND a.attnum = ANY (k.confkey))
FROM pg_constraint AS k
JOIN pg_class AS c ON c.oid = k.conrelid
LEFT JOIN pg_class AS f ON f.oid = k.confrelid
LEFT JOIN pg_namespace AS fs ON fs.oid = f.relnamespace
WHERE c.oid IN ({oids}) AND (k.contype = 'f' AND k.convalidated OR k.contype IN ('p', 'u') AND NOT k.condeferrable
  AND EXISTS (SELECT 1 FROM pg_index AS x WHERE x.indexrelid = k.conindid AND x.indisvalid AND x.indisunique)
  AND (c.relkind = 'p' OR NOT EXISTS (SELECT 1 FROM pg_inherits AS i WHERE i.inhparent = c.oid)))
ORDER BY k.contype <> 'p', 1, 2
"""
_SCHEMAS = """
SELECT nspname FROM pg_namespace
WHERE has_schema_privilege(oid, 'USAGE') AND nspname NOT LIKE 'pg\\_%' AND nspname <> 'information_schema'
ORDER BY 1
"""
_OTHER_ROWS = {
    "m": "it is a stored view: its rows are those of other tables, as they were; name those, or a plain view",
    "f": "it is a foreign table: its rows are kept elsewhere",
}
_PLAIN = {
    "boolean": t.BOOLEAN, "smallint": t.INTEGER, "integer": t.INTEGER, "bigint": t.INTEGER,
    "real": t.DOUBLE, "double precision": t.DOUBLE, "text": t.TEXT, "name": t.TEXT, "date": t.DATE,
    "timestamp without time zone": t.TIMESTAMP, "character varying": t.TEXT, "character": t.TEXT,
}  # fmt: skip
# A number of any size, as a double: what a double cannot hold is infinite, or 0, and NaN is NULL as it is of a numeric
# with digits. The cast alone would raise.
_ANY_NUMBER = (
    "CASE WHEN {0} = 'NaN' THEN NULL WHEN abs({0}) BETWEEN 1e-300 AND 1e300 THEN CAST({0} AS double precision) "
    "WHEN abs({0}) < 1e-300 THEN float8 '0' WHEN {0} > 0 THEN float8 'Infinity' "
    "WHEN {0} < 0 THEN float8 '-Infinity' END"
)
_SHOWN = {
    "uuid": Offer(t.UUID, C_TEXT),
    # A digest, since blobs have any size, and the largest could not be written out.
    "bytea": Offer(t.BLOB, "(encode(sha256({0}), 'hex') COLLATE \"C\")", merges=True),
    "timestamp with time zone": Offer(t.TIMESTAMP, "({0} AT TIME ZONE 'UTC')"),
    "time without time zone": Offer(t.TIME, "(DATE '1970-01-01' + {0})"),
    "numeric": Offer(t.DOUBLE, _ANY_NUMBER, merges=True),
    "json": Offer(part="json"),
    "jsonb": Offer(part="jsonb"),
    "interval": Offer(part="interval"),
    "time with time zone": Offer(reason="a time of day with a zone is no one moment: store time or timestamptz"),
    "citext": Offer(reason="it compares text without minding case: store text"),
    "money": Offer(reason="what it means hangs on settings of the server: store numeric"),
}  # fmt: skip
_WHOLE_ELEMENTS = ("smallint", "integer", "bigint")
_TEXT_ELEMENTS = ("text", "character varying", "uuid", "name")


def column_offer(
    type_text: str, typtype: str = "b", labels: tuple[str, ...] = (), element: str | None = None
) -> Offer:
    """Say how a column is offered, from its type as the server writes it."""
    if typtype == "e":
        return Offer(t.ENUM, C_TEXT, labels=labels)
    if element is not None and type_text.endswith("[]"):
        if element in _WHOLE_ELEMENTS:
            return Offer(part="array of INTEGER")
        textual = element in _TEXT_ELEMENTS or element.endswith(" enum")
        return Offer(part="array of TEXT" if textual else "array")
    match = re.fullmatch(r"numeric\((\d+),(-?\d+)\)", type_text)
    if match:
        precision, scale = int(match[1]), int(match[2])
        if 0 <= scale <= precision <= t.MAX_PRECISION:
            return Offer(t.decimal(precision, scale))
        return _SHOWN["numeric"]
    plain = re.sub(r"\(\d+\)", "", type_text)
    if plain in _PLAIN:
        return Offer(_PLAIN[plain])
    offer = _SHOWN.get(plain) if typtype == "b" else None
    return offer or Offer(reason=f"its type, {type_text}, has no counterpart here")


def check_schemas(ask: Ask, schemas: tuple[str, ...]) -> None:
    """Refuse a schema that is not there, and one that gives SQL's own words another meaning (I1)."""
    there = [name for (name,) in ask(_SCHEMAS)]
    for schema in schemas:
        if schema not in there:
            raise BackendError(
                "BAK-001",
                f"the database has no schema {schema[:80]!r} that this user may use",
                hint="the schemas are: " + (", ".join(there[:40]) or "none"),
            )
    for (name,) in ask(_OWN_MEANINGS.format(schemas=_texts(schemas))):
        raise BackendError(
            "BAK-001",
            f"the schema has a function or an operator {name}, which is a name of SQL's own",
            hint="move it to another schema, or drop it",
        )


def read_catalog(
    ask: Ask, schemas: tuple[str, ...], dialect: Dialect, only: Collection[TableName] = ()
) -> tuple[Catalog, Dialect, dict[str, TableName]]:
    """Read the tables of some schemas, or only those; also how they are read, and where each is."""
    check_schemas(ask, schemas)
    chosen = ", ".join(f"({text(schema)}, {text(name)})" for schema, name in only)
    table_rows = ask(
        _TABLES.format(
            schemas=_texts(schemas),
            only=f"AND (s.nspname, c.relname) IN ({chosen})" if only else "",
        )
    )
    named = {oid: _named(schemas, schema, name) for schema, name, oid, *_ in table_rows}
    missing = {
        named[oid]: why
        for _, _, oid, kind, _, child, mixed, _ in table_rows
        if (why := _not_own(kind, child, mixed))
    }
    tables = [row for row in table_rows if row[3] in ("r", "p") and named[row[2]] not in missing]
    columns, computed = _columns(
        ask, [row[2] for row in table_rows if row[3] == "v" or row in tables]
    )
    keys, ways = _constraints(ask, [row[2] for row in tables], schemas)
    ties = read_ties(ask, [row[2] for row in tables], partial(_named, schemas))
    stored = [
        Stored(
            named[oid],
            f"{quote(schema)}.{quote(name)}",
            {column: offer for column, (offer, *_) in columns.get(oid, {}).items()},
            tuple(keys.get(oid, ())),
            tuple(ways.get(oid, ())),
            {c: note for c, (_, note, _) in columns.get(oid, {}).items() if note}
            | ({"": comment} if comment else {}),
            tuple(computed.get(oid, ())),
            tuple(ties.get(oid, ())),
            tuple(c for c, (*_, filled) in columns.get(oid, {}).items() if filled),
        )
        for schema, name, oid, _, comment, *_ in tables
    ]
    views = [
        StoredView(named[oid], query, "postgres", tuple(columns.get(oid, {})))
        for _, _, oid, kind, *_, query in table_rows
        if kind == "v"
    ]
    catalog, reading = offered(stored, dialect, views, missing, schemas)
    return catalog, reading, {named[oid]: (schema, name) for schema, name, oid, *_ in tables}


def _texts(names: tuple[str, ...]) -> str:
    return ", ".join(map(text, names))


def _named(schemas: tuple[str, ...], schema: str, name: str) -> str:
    return name if schema == schemas[0] else f"{schema}.{name}"


def _not_own(kind: str, child: bool, mixed: bool) -> str | None:
    """Say why the rows of a table cannot be asked for under its name."""
    if kind in _OTHER_ROWS:
        return _OTHER_ROWS[kind]
    if child and kind in "rp":
        return "its rows are also rows of the table that it is a part of: name that one"
    return "some of its rows are also rows of another table" if mixed else None


def _columns(
    ask: Ask, oids: list[int]
) -> tuple[dict[int, dict[str, tuple[Offer, str | None, bool]]], dict[int, list[Computed]]]:
    """Read how columns are offered, their comments, whether they are never NULL, and which the server computes."""
    columns: dict[int, dict[str, tuple[Offer, str | None, bool]]] = {}
    computed: dict[int, list[Computed]] = {}
    for row in ask(_COLUMNS.format(oids=", ".join(map(str, oids)))) if oids else []:
        oid, name, type_text, typtype, labels, element, kind, own, expression, *details = row
        readable, note, filled = details
        offer = column_offer(type_text, typtype, tuple(labels or ()), element)
        if not readable:
            offer = Offer(reason="the user of the source may not read it")
        elif kind:
            formula = Formula(f"CAST({expression} AS {own})", "postgres")
            computed.setdefault(oid, []).append(Computed(name, formula, virtual=kind == "v"))
        columns.setdefault(oid, {})[name] = (offer, note, filled)
    return columns, computed


def _constraints(
    ask: Ask, oids: list[int], schemas: tuple[str, ...]
) -> tuple[dict[int, list[tuple[str, ...]]], dict[int, list[tuple[str, str, str]]]]:
    """Read keys, and references of one column to tables of the schemas."""
    keys: dict[int, list[tuple[str, ...]]] = {}
    ways: dict[int, list[tuple[str, str, str]]] = {}
    rows = ask(_KEYS.format(oids=", ".join(map(str, oids)))) if oids else []
    for oid, columns, foreign, schema, target, targets in rows:
        if not foreign:
            keys.setdefault(oid, []).append(tuple(columns))
        elif len(columns) == 1 and schema in schemas:
            way = (columns[0], _named(schemas, schema, target), targets[0])
            ways.setdefault(oid, []).append(way)
    return keys, ways
