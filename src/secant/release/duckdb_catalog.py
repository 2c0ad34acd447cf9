"""What DuckDB says of its databases: tables, types, keys, references, labels, comments, texts of views. Never a row.

In: an engine with databases attached, and which of their schemas are asked for. Out: tables as they are offered.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import duckdb

from secant.errors import BackendError
from secant.records import frozen
from secant.release.dialect import DUCKDB, Dialect, quote, text
from secant.release.offered import Offer, Stored, offered
from secant.terms import types as t
from secant.terms.catalog import Catalog, StoredView

_PLAIN = {
    "BOOLEAN": t.BOOLEAN, "TINYINT": t.INTEGER, "SMALLINT": t.INTEGER, "INTEGER": t.INTEGER,
    "BIGINT": t.INTEGER, "UTINYINT": t.INTEGER, "USMALLINT": t.INTEGER,
    "UINTEGER": t.INTEGER, "UBIGINT": t.INTEGER, "FLOAT": t.DOUBLE, "DOUBLE": t.DOUBLE,
    "VARCHAR": t.TEXT, "DATE": t.DATE, "TIMESTAMP": t.TIMESTAMP, "TIMESTAMP_S": t.TIMESTAMP,
    "TIMESTAMP_MS": t.TIMESTAMP,
}  # fmt: skip
_SHOWN = {
    "TIMESTAMP_NS": Offer(t.TIMESTAMP, merges=True),  # becomes microseconds
    "TIMESTAMP WITH TIME ZONE": Offer(t.TIMESTAMP, "CAST({0} AS TIMESTAMP)"),  # the engine's zone is UTC
    "TIME": Offer(t.TIME, "(DATE '1970-01-01' + {0})"),
    "UUID": Offer(t.UUID, "CAST({0} AS VARCHAR)"),
    "BLOB": Offer(t.BLOB, "sha256({0})", merges=True),
    "HUGEINT": Offer(t.DOUBLE, merges=True),
    "UHUGEINT": Offer(t.DOUBLE, merges=True),
    "JSON": Offer(part="json"),
    "INTERVAL": Offer(part="interval"),
    "TIME WITH TIME ZONE": Offer(reason="a time of day with a zone is no one moment: store TIME or TIMESTAMPTZ"),
}  # fmt: skip
_WHOLE_ELEMENTS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT")


@frozen
class Home:
    """A schema of an attached database, and what its tables are called by."""

    database: str
    schema: str
    prefix: str = ""
    """Stands with a dot before the names of tables; empty for those that are called by their name alone."""

    def named(self, name: str) -> str:
        """Give the name of a table of the schema."""
        return f"{self.prefix}.{name}" if self.prefix else name


def column_offer(written: str) -> Offer:
    """Say how a column is offered, from its type as the engine writes it."""
    if match := re.fullmatch(r"DECIMAL\((\d+),\s*(\d+)\)", written):
        return Offer(t.decimal(int(match[1]), int(match[2])))
    if array := re.fullmatch(r"(.*)\[\d*\]", written, re.DOTALL):
        element = array[1]
        if element in _WHOLE_ELEMENTS:
            return Offer(part="array of INTEGER")
        return Offer(part="array of TEXT" if element == "VARCHAR" else "array")
    if re.fullmatch(r"ENUM\(.*\)", written, re.DOTALL):
        labels = re.findall(r"'((?:[^']|'')*)'", written[5:-1])
        read = tuple(label.replace("''", "'") for label in labels)
        return Offer(t.ENUM, "CAST({0} AS VARCHAR)", labels=read)
    if written in _PLAIN:
        return Offer(_PLAIN[written])
    word = re.split(r"[ (]", written, maxsplit=1)[0]
    return _SHOWN.get(written) or Offer(reason=f"its type, {word}, has no counterpart here")


def read_catalog(
    engine: duckdb.DuckDBPyConnection, homes: tuple[Home, ...], *, own_views: bool
) -> tuple[Catalog, Dialect]:
    """Read the tables of some schemas, and how they are read. With `own_views`, views are ours: one for each table."""
    tables: list[Stored] = []
    views: list[StoredView] = []
    for home in homes:
        _check_home(engine, home, homes)
        at = f"NOT internal AND database_name = {text(home.database)} AND schema_name = {text(home.schema)}"
        tables += _tables(engine, home, at, own_views=own_views)
        views += [] if own_views else _views(engine, home, at)
    schemas = tuple(home.prefix or home.schema for home in homes)
    dialect = replace(DUCKDB, rereads=not engine.execute(_COMPUTED).fetchall())
    return offered(tables, dialect, views, schemas=schemas)


# A column that is computed when it is read may call random(): rows are not the same when they are read again.
_COMPUTED = "SELECT 1 FROM duckdb_tables() WHERE sql ILIKE '%GENERATED ALWAYS%' LIMIT 1"


def _check_home(engine: duckdb.DuckDBPyConnection, home: Home, homes: tuple[Home, ...]) -> None:
    found = engine.execute(
        f"SELECT schema_name FROM duckdb_schemas() WHERE database_name = {text(home.database)} "
        "AND schema_name NOT IN ('information_schema', 'pg_catalog') ORDER BY 1"
    ).fetchall()
    if (home.schema,) not in found:
        raise BackendError(
            "BAK-001",
            f"the data source has no schema {home.schema[:80]!r}",
            hint="the schemas are: " + ", ".join(name for (name,) in found[:40]),
        )


def _tables(
    engine: duckdb.DuckDBPyConnection, home: Home, at: str, *, own_views: bool
) -> list[Stored]:
    # A view shows rows of tables that a policy protects by their own names, not by the view's. Those of a directory and
    # of frames are ours, one for each table.
    offered = f"SELECT table_name, comment FROM duckdb_tables() WHERE {at}"
    if own_views:
        offered += f" UNION ALL SELECT view_name, comment FROM duckdb_views() WHERE {at}"
    told = dict(engine.execute(offered).fetchall())
    columns: dict[str, dict[str, tuple[Offer, str | None]]] = {}
    filled: dict[str, list[str]] = {}
    for name, column, written, comment, nullable in engine.execute(
        f"SELECT table_name, column_name, data_type, comment, is_nullable FROM duckdb_columns() WHERE {at} "
        "ORDER BY table_name, column_index"
    ).fetchall():
        if name in told:
            columns.setdefault(name, {})[column] = (column_offer(written), comment)
            filled.setdefault(name, []).extend([] if nullable else [column])
    unique: dict[str, list[tuple[str, ...]]] = {}
    ways: dict[str, list[tuple[str, str, str]]] = {}
    for row in engine.execute(
        "SELECT table_name, constraint_type, constraint_column_names, referenced_table, referenced_column_names "
        f"FROM duckdb_constraints() WHERE database_name = {text(home.database)} AND schema_name = {text(home.schema)} "
        "ORDER BY constraint_type <> 'PRIMARY KEY', constraint_index"
    ).fetchall():
        _constraint(row, home, unique, ways)
    return [
        Stored(
            home.named(name),
            f"{quote(home.database)}.{quote(home.schema)}.{quote(name)}",
            {column: offer for column, (offer, _) in found.items()},
            tuple(unique.get(name, ())),
            tuple(ways.get(name, ())),
            {c: note for c, (_, note) in found.items() if note}
            | ({"": told[name]} if told[name] else {}),
            tuple(filled[name]),
        )
        for name, found in columns.items()
    ]


def _constraint(
    row: tuple[Any, ...],
    home: Home,
    unique: dict[str, list[tuple[str, ...]]],
    ways: dict[str, list[tuple[str, str, str]]],
) -> None:
    name, kind, columns, target, targets = row
    if kind in ("PRIMARY KEY", "UNIQUE"):
        unique.setdefault(name, []).append(tuple(columns))
    elif kind == "FOREIGN KEY" and len(columns) == 1 and target is not None:
        ways.setdefault(name, []).append((columns[0], home.named(target), targets[0]))


def _views(engine: duckdb.DuckDBPyConnection, home: Home, at: str) -> list[StoredView]:
    rows = engine.execute(
        f"SELECT view_name, sql FROM duckdb_views() WHERE {at} ORDER BY 1"
    ).fetchall()
    if not rows:
        return []  # to list columns, the engine looks at all of its own views, too
    columns: dict[str, list[str]] = {}
    for name, column in engine.execute(
        f"SELECT table_name, column_name FROM duckdb_columns() WHERE {at} ORDER BY column_index"
    ).fetchall():
        columns.setdefault(name, []).append(column)
    return [
        StoredView(home.named(name), written, "duckdb", tuple(columns.get(name, ())))
        for name, written in rows
    ]
