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
from secant.release.directory import as_list, names_of, tables_of, without_lines
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
        connection = duckdb.connect(str(path), read_only=True, config=settings)
        _refuse_own_meanings(connection)
        return DuckDB(connection)
    except duckdb.Error:
        raise BackendError(
            "BAK-001",
            f"{path} cannot be opened as a DuckDB file",
            hint="close other programs that write to it, and check that it is a DuckDB file",
        ) from None


# A macro of the file goes before the engine's own function of that name, be it `least` or `+`.
_OWN_MEANINGS = """
SELECT DISTINCT function_name FROM duckdb_functions() WHERE NOT internal AND lower(function_name) IN (
    SELECT lower(function_name) FROM duckdb_functions() WHERE internal
    UNION ALL SELECT lower(keyword_name) FROM duckdb_keywords()
) ORDER BY 1 LIMIT 1
"""


def _refuse_own_meanings(connection: duckdb.DuckDBPyConnection) -> None:
    """Refuse a file that gives an SQL function a meaning of its own: what runs would not be what was bounded (I1)."""
    for (name,) in connection.execute(_OWN_MEANINGS).fetchall():
        connection.close()
        raise BackendError(
            "BAK-001",
            f"the DuckDB file has a macro {name}, which is a name of SQL's own",
            hint="rename the macro, or drop it",
        )


def open_directory(path: Path, kind: str, *, threads: int | None = None) -> DuckDB:
    """Open a directory in which each `NAME.parquet` (or `.csv`), or each folder of them, is a table."""
    if not path.is_dir():
        raise BackendError("BAK-001", f"there is no directory {path}", hint="check the source")
    tables = tables_of(path, kind)
    if not tables:
        raise BackendError("BAK-001", f"{path} holds no .{kind} files", hint="check the source")
    if kind == "csv" and (empty := next(without_lines(tables), None)) is not None:
        hint = "write at least the line that names its columns"
        raise BackendError(
            "BAK-001", f"the table {empty} has no columns: its file is empty", hint=hint
        )
    connection = duckdb.connect(":memory:")
    try:
        for name, files in tables.items():
            _add_table(connection, name, files, kind)
    except duckdb.Error:
        connection.close()
        raise BackendError(
            "BAK-001",
            f"a table of {path} cannot be read as {kind.upper()}",
            hint="check that the files are whole and, for CSV, that the text is UTF-8",
        ) from None
    # The rows of CSV files are in memory by now; Parquet files are read again by every statement.
    return _locked(connection, names_of(tables) if kind == "parquet" else [], threads)


def _add_table(
    connection: duckdb.DuckDBPyConnection, name: str, files: tuple[Path, ...], kind: str
) -> None:
    # Columns are those of the files: a folder called `k=v` somewhere above must not add one.
    read = f"read_{kind}({as_list(files)}, hive_partitioning = false"
    if kind == "parquet":
        connection.execute(
            f"CREATE VIEW {quote(name)} AS SELECT {_opaque(connection, read)} FROM {read})"
        )
        return
    # Types come from the whole file, and a line that cannot be read is left out: it must not fail a query.
    connection.execute(
        f"CREATE TABLE {quote(name)} AS SELECT * FROM {read}, sample_size = -1, ignore_errors = true)"
    )


def _opaque(connection: duckdb.DuckDBPyConnection, read: str) -> str:
    """Give the columns of Parquet files; floats so that no filter is held against the ends that a file states.

    Writers leave NaN out of them. A filter would skip groups of rows that hold a NaN, or not, as other rows decide.
    """
    columns = connection.execute(f"DESCRIBE SELECT * FROM {read})").fetchall()
    return ", ".join(
        f"CASE WHEN isnan({quote(c)}) THEN CAST('nan' AS DOUBLE) ELSE {quote(c)} END AS {quote(c)}"
        if kind in ("FLOAT", "DOUBLE")
        else quote(c)
        for c, kind, *_ in columns
    )


def _locked(connection: duckdb.DuckDBPyConnection, files: list[str], threads: int | None) -> DuckDB:
    allowed = ", ".join(text(file) for file in files)
    connection.execute(f"SET allowed_paths = [{allowed}]")
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
        # writes out projections where they are used, which computes shared parts anew each time; the third believes
        # stated ends of columns, which leave NaN out, and drops comparisons that only a NaN would meet.
        (
            "disabled_optimizers",
            "common_subexpressions,partial_aggregate_pushdown,statistics_propagation",
        ),
        (
            "python_enable_replacements",
            "false",
        ),  # a name is a table, never a variable of the program
        ("autoinstall_known_extensions", "false"),
        ("autoload_known_extensions", "false"),
        ("enable_external_access", "false"),
        ("lock_configuration", "true"),
    ]


_OFFERED = "NOT internal AND database_name = current_database() AND schema_name = 'main'"


def _read_catalog(connection: duckdb.DuckDBPyConnection, *, views: bool) -> Catalog:
    # A view shows rows of tables that a policy protects by their own names, not by the view's. Those of a directory are
    # ours, one for each table.
    offered = "SELECT table_name FROM duckdb_tables() WHERE " + _OFFERED
    if views:
        offered += " UNION ALL SELECT view_name FROM duckdb_views() WHERE " + _OFFERED
    rows = connection.execute(
        f"SELECT table_name, column_name, data_type FROM duckdb_columns() WHERE {_OFFERED} "
        f"AND table_name IN ({offered}) ORDER BY table_name, column_index"
    ).fetchall()
    keys = connection.execute(
        "SELECT table_name, constraint_column_names FROM duckdb_constraints() "
        "WHERE constraint_type IN ('PRIMARY KEY', 'UNIQUE') "
        "AND database_name = current_database() AND schema_name = 'main'"
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
