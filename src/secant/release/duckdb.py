"""DuckDB: a file, or a directory of Parquet or CSV files, opened read-only and locked down.

After `lock` no statement can reach files, the network or settings. Statements are printed from plans (I1); the lock
is the second wall.
"""

from __future__ import annotations

import re
import threading
from pathlib import Path

import duckdb

from secant.errors import BackendError
from secant.release.dialect import DUCKDB, Dialect, quote, text
from secant.terms import types as t
from secant.terms.catalog import Catalog, Table, catalog

_TYPES = {
    "BOOLEAN": t.BOOLEAN, "TINYINT": t.INTEGER, "SMALLINT": t.INTEGER, "INTEGER": t.INTEGER,
    "BIGINT": t.INTEGER, "UTINYINT": t.INTEGER, "USMALLINT": t.INTEGER,
    "UINTEGER": t.INTEGER, "UBIGINT": t.INTEGER, "FLOAT": t.DOUBLE, "DOUBLE": t.DOUBLE,
    "VARCHAR": t.TEXT, "DATE": t.DATE, "TIMESTAMP": t.TIMESTAMP, "TIMESTAMP_S": t.TIMESTAMP,
    "TIMESTAMP_MS": t.TIMESTAMP, "TIMESTAMP_NS": t.TIMESTAMP,
}  # fmt: skip

# What the driver raises: its own errors, and Python's where a value or a text cannot be carried over.
_FAILURES = (duckdb.Error, RuntimeError, ValueError, OverflowError)


MOST_PREPARED = 32


class DuckDB:
    """A locked DuckDB connection."""

    dialect: Dialect = DUCKDB

    def __init__(self, connection: duckdb.DuckDBPyConnection, *, views: bool = False) -> None:
        self._connection = connection
        self._views = views
        self._catalog: Catalog | None = None
        self._one_at_a_time = threading.Lock()  # the engine's connection is not for several threads
        self._closed = False
        self._prepared: dict[str, str] = {}
        """Statement -> the name it is prepared under: planned once, checked and run."""

    def catalog(self) -> Catalog:
        """Read names, types and engine-kept keys once."""
        if self._catalog is None:
            self._catalog = _read_catalog(self._connection, views=self._views)
        return self._catalog

    def check(self, statement: str) -> None:
        """Let the engine bind and plan the statement without running it; `rows` then need not plan it again."""
        try:
            if statement not in self._prepared:
                if len(self._prepared) >= MOST_PREPARED:
                    for name in self._prepared.values():
                        self._fetched(f"DEALLOCATE {name}")
                    self._prepared.clear()
                name = f"secant_{len(self._prepared)}"
                self._fetched(f"PREPARE {name} AS {statement}")
                self._prepared[statement] = name
        except _FAILURES:
            raise BackendError(
                "BAK-003",
                "the engine does not accept the statement that the query becomes",
                hint="simplify the query; `secant explain --sql` shows the statement",
            ) from None

    def rows(self, statement: str) -> list[tuple[object, ...]]:
        """Run a statement."""
        name = self._prepared.get(statement)
        try:
            return self._fetched(statement if name is None else f"EXECUTE {name}")
        except _FAILURES:
            raise BackendError(
                "BAK-002",
                "the engine failed while running a statement; its own message is withheld, it may quote data",
                hint="the data owner can run `secant inspect` with the same query",
            ) from None

    def _fetched(self, statement: str) -> list[tuple[object, ...]]:
        with self._one_at_a_time:
            if self._closed:
                raise BackendError("BAK-001", "the data source is closed", hint="connect again")
            return self._connection.execute(statement).fetchall()

    def close(self) -> None:
        """Close the connection."""
        with self._one_at_a_time:
            self._closed = True
            self._connection.close()


def open_file(path: Path, *, threads: int | None = None) -> DuckDB:
    """Open a DuckDB file read-only."""
    if not path.is_file():
        raise BackendError("BAK-001", f"there is no DuckDB file {path}", hint="check the source")
    # Settings go in with the opening: connections of one process share the engine, which the first one locks.
    settings: dict[str, str | bool | int | float | list[str]] = dict(_settings(threads))
    try:
        return DuckDB(duckdb.connect(str(path), read_only=True, config=settings))
    except duckdb.Error:
        raise BackendError(
            "BAK-001",
            f"{path} cannot be opened as a DuckDB file",
            hint="close other programs that write to it, and check that it is a DuckDB file",
        ) from None


def open_directory(path: Path, kind: str, *, threads: int | None = None) -> DuckDB:
    """Open a directory in which each `NAME.parquet` (or `.csv`), or each folder of them, is a table."""
    if not path.is_dir():
        raise BackendError("BAK-001", f"there is no directory {path}", hint="check the source")
    tables = _tables(path, kind)
    if not tables:
        raise BackendError("BAK-001", f"{path} holds no .{kind} files", hint="check the source")
    connection = duckdb.connect(":memory:")
    try:
        for name, pattern in tables.items():
            _add_table(connection, name, pattern, kind)
    except duckdb.Error:
        connection.close()
        raise BackendError(
            "BAK-001",
            f"a table of {path} cannot be read as {kind.upper()}",
            hint="check that the files are whole and, for CSV, that the text is UTF-8",
        ) from None
    return _locked(connection, [str(path.resolve())] if kind == "parquet" else [], threads)


def _tables(path: Path, kind: str) -> dict[str, str]:
    found = {f.stem: str(f.resolve()) for f in sorted(path.glob(f"*.{kind}"))}
    for folder in sorted(p for p in path.iterdir() if p.is_dir()):
        if any(folder.glob(f"*.{kind}")):
            found.setdefault(folder.name, str(folder.resolve() / f"*.{kind}"))
    return found


def _add_table(connection: duckdb.DuckDBPyConnection, name: str, pattern: str, kind: str) -> None:
    if kind == "parquet":
        connection.execute(
            f"CREATE VIEW {quote(name)} AS SELECT * FROM read_parquet({text(pattern)})"
        )
        return
    # Types come from the whole file, and a line that cannot be read is left out: it must not fail a query.
    connection.execute(
        f"CREATE TABLE {quote(name)} AS SELECT * FROM "
        f"read_csv({text(pattern)}, sample_size = -1, ignore_errors = true)"
    )


def _locked(
    connection: duckdb.DuckDBPyConnection, directories: list[str], threads: int | None
) -> DuckDB:
    allowed = ", ".join(text(d) for d in directories)
    connection.execute(f"SET allowed_directories = [{allowed}]")
    for name, value in _settings(threads):
        connection.execute(f"SET {name} = {text(value)}")
    return DuckDB(connection, views=True)  # the views of a directory are ours: one for each table


def _settings(threads: int | None) -> list[tuple[str, str]]:
    """Give what locks an engine, in the order in which it must be set."""
    wanted = [] if threads is None else [("threads", str(int(threads)))]
    return [
        *wanted,
        ("error_on_division_by_zero", "false"),  # an error on one row would tell of the row
        # The first of these optimizers moves what is written twice out of TRY, where it raises after all; the second
        # writes out projections where they are used, which computes shared parts anew each time.
        ("disabled_optimizers", "common_subexpressions,partial_aggregate_pushdown"),
        ("autoinstall_known_extensions", "false"),
        ("autoload_known_extensions", "false"),
        ("enable_external_access", "false"),
        ("lock_configuration", "true"),
    ]


def _read_catalog(connection: duckdb.DuckDBPyConnection, *, views: bool) -> Catalog:
    rows = connection.execute(
        "SELECT table_name, column_name, data_type FROM duckdb_columns() "
        "WHERE NOT internal AND schema_name = 'main' ORDER BY table_name, column_index"
    ).fetchall()
    if not views:
        # A view shows rows of tables that a policy protects by their own names, not by the view's.
        hidden = connection.execute(
            "SELECT view_name FROM duckdb_views() WHERE NOT internal AND schema_name = 'main'"
        ).fetchall()
        rows = [row for row in rows if (row[0],) not in hidden]
    keys = connection.execute(
        "SELECT table_name, constraint_column_names FROM duckdb_constraints() "
        "WHERE constraint_type IN ('PRIMARY KEY', 'UNIQUE') AND schema_name = 'main'"
    ).fetchall()
    unique: dict[str, list[tuple[str, ...]]] = {}
    for name, columns in keys:
        unique.setdefault(name, []).append(tuple(columns))
    tables: dict[str, list[tuple[str, t.Type]]] = {}
    for name, column, written in rows:
        tables.setdefault(name, [])
        kind = column_type(written)
        if (
            kind is not None
        ):  # a column of a type that the plan does not know cannot be named in a query
            tables[name].append((column, kind))
    return catalog(*(Table(n, tuple(c), tuple(unique.get(n, ()))) for n, c in tables.items()))


def column_type(written: str) -> t.Type | None:
    """Read an engine type, or None where the plan has no such type."""
    match = re.fullmatch(r"DECIMAL\((\d+),\s*(\d+)\)", written)
    if match:
        return t.decimal(int(match[1]), int(match[2]))
    if written.startswith("ENUM("):
        return t.TEXT
    return _TYPES.get(written)
