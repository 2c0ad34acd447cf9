"""What DuckDB says of its databases: tables, types, keys, references, labels, comments, texts of views. Never a row.

In: an engine with databases attached, and which of their schemas are asked for. Out: tables as they are offered.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import duckdb

from secant.engines.dialect import DUCKDB, Dialect, quote, text
from secant.engines.offered import Offer, Stored, offered
from secant.errors import BackendError
from secant.records import frozen
from secant.schema import types as t
from secant.schema.catalog import Catalog, Computed, Formula, StoredView, Tie

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


def column_offer(type_text: str) -> Offer:
    """Say how a column is offered, from its type as the engine writes it."""
    if match := re.fullmatch(r"DECIMAL\((\d+),\s*(\d+)\)", type_text):
        return Offer(t.decimal(int(match[1]), int(match[2])))
    if array := re.fullmatch(r"(.*)\[\d*\]", type_text, re.DOTALL):
        element = array[1]
        if element in _WHOLE_ELEMENTS:
            return Offer(part="array of INTEGER")
        return Offer(part="array of TEXT" if element == "VARCHAR" else "array")
    if re.fullmatch(r"ENUM\(.*\)", type_text, re.DOTALL):
        labels = re.findall(r"'((?:[^']|'')*)'", type_text[5:-1])
        read = tuple(label.replace("''", "'") for label in labels)
        return Offer(t.ENUM, "CAST({0} AS VARCHAR)", labels=read)
    if type_text in _PLAIN:
        return Offer(_PLAIN[type_text])
    word = re.split(r"[ (]", type_text, maxsplit=1)[0]
    return _SHOWN.get(type_text) or Offer(reason=f"its type, {word}, has no counterpart here")


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
    return offered(tables, DUCKDB, views, schemas=schemas)


def _check_home(engine: duckdb.DuckDBPyConnection, home: Home, homes: tuple[Home, ...]) -> None:
    schemas = engine.execute(
        f"SELECT schema_name FROM duckdb_schemas() WHERE database_name = {text(home.database)} "
        "AND schema_name NOT IN ('information_schema', 'pg_catalog') ORDER BY 1"
    ).fetchall()
    if (home.schema,) not in schemas:
        raise BackendError(
            "BAK-001",
            f"the data source has no schema {home.schema[:80]!r}",
            hint="the schemas are: " + ", ".join(name for (name,) in schemas[:40]),
        )


def _tables(
    engine: duckdb.DuckDBPyConnection, home: Home, at: str, *, own_views: bool
) -> list[Stored]:
    # A view shows rows of tables that a policy protects by their own names, not by the view's. Those of a directory and
    # of frames are ours, one for each table.
    offered = f"SELECT table_name, comment FROM duckdb_tables() WHERE {at}"
    if own_views:
        offered += f" UNION ALL SELECT view_name, comment FROM duckdb_views() WHERE {at}"
    comments = dict(engine.execute(offered).fetchall())
    columns: dict[str, dict[str, tuple[Offer, str | None]]] = {}
    computed: dict[str, list[Computed]] = {}
    filled: dict[str, list[str]] = {}
    for name, column, type_text, comment, nullable, formula in engine.execute(
        "SELECT table_name, column_name, data_type, comment, is_nullable, "
        "CASE WHEN is_generated THEN generation_expression END "
        f"FROM duckdb_columns() WHERE {at} ORDER BY table_name, column_index"
    ).fetchall():
        if name in comments:
            columns.setdefault(name, {})[column] = (column_offer(type_text), comment)
            filled.setdefault(name, []).extend([] if nullable else [column])
            # It is checked when a row comes, not when the row changes: reading it may fail.
            if formula is not None:
                generated = Computed(column, Formula(formula), virtual=True)
                computed.setdefault(name, []).append(generated)
    unique: dict[str, list[tuple[str, ...]]] = {}
    ways: dict[str, list[tuple[str, str, str]]] = {}
    ties = _triggers(engine, home)
    for row in engine.execute(
        "SELECT table_name, constraint_type, constraint_column_names, referenced_table, referenced_column_names, "
        "constraint_name "
        f"FROM duckdb_constraints() WHERE database_name = {text(home.database)} AND schema_name = {text(home.schema)} "
        "ORDER BY constraint_type <> 'PRIMARY KEY', constraint_index"
    ).fetchall():
        _constraint(row, home, unique, ways)
        ties.setdefault(row[0], []).extend(_tie(row, home))
    return [
        Stored(
            home.named(name),
            f"{quote(home.database)}.{quote(home.schema)}.{quote(name)}",
            {column: offer for column, (offer, _) in offers.items()},
            tuple(unique.get(name, ())),
            tuple(ways.get(name, ())),
            {c: note for c, (_, note) in offers.items() if note}
            | ({"": comments[name]} if comments[name] else {}),
            tuple(computed.get(name, ())),
            tuple(ties.get(name, ())),
            tuple(filled[name]),
        )
        for name, offers in columns.items()
    ]


def _constraint(
    row: tuple[Any, ...],
    home: Home,
    unique: dict[str, list[tuple[str, ...]]],
    ways: dict[str, list[tuple[str, str, str]]],
) -> None:
    name, kind, columns, target, targets, _ = row
    if kind in ("PRIMARY KEY", "UNIQUE"):
        unique.setdefault(name, []).append(tuple(columns))
    elif kind == "FOREIGN KEY" and len(columns) == 1 and target is not None:
        ways.setdefault(name, []).append((columns[0], home.named(target), targets[0]))


def _tie(row: tuple[Any, ...], home: Home) -> Iterator[Tie]:
    """Give what a constraint ties to each other: columns of a row, or a column to another table's."""
    _, kind, columns, target, targets, name = row
    own = tuple(column.lower() for column in columns)
    if kind == "CHECK" and len(own) > 1:
        yield Tie("check", name, own, reaches=())
    elif kind == "FOREIGN KEY" and target is not None:
        there = home.named(target).lower()
        yield Tie("foreign key", name, own, tuple((there, c.lower()) for c in targets))


def _triggers(engine: duckdb.DuckDBPyConnection, home: Home) -> dict[str, list[Tie]]:
    """Give the triggers of each table, and which tables they name; views and macros may read any."""
    triggers: dict[str, list[Tie]] = {}
    for name, trigger, sql in engine.execute(
        "SELECT table_name, trigger_name, sql FROM duckdb_triggers() "
        f"WHERE database_name = {text(home.database)} AND schema_name = {text(home.schema)} ORDER BY 1, 2"
    ).fetchall():
        tables, others = engine.execute(_NAMED.format(written=text(sql.lower()))).fetchall()[0]
        reaches = None if others else tuple(sorted(home.named(t) for t in tables or ()))
        triggers.setdefault(name, []).append(Tie("trigger", trigger, reaches=reaches))
    return triggers


_NAMED = """
SELECT (SELECT list(DISTINCT lower(table_name)) FROM duckdb_tables() WHERE contains({written}, lower(table_name))),
       EXISTS (SELECT 1 FROM duckdb_views() WHERE NOT internal AND contains({written}, lower(view_name)))
       OR EXISTS (SELECT 1 FROM duckdb_functions() WHERE NOT internal AND contains({written}, lower(function_name)))
"""


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
        StoredView(home.named(name), sql, "duckdb", tuple(columns.get(name, ())))
        for name, sql in rows
    ]
