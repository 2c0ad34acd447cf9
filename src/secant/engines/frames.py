"""Frames of this process as a source: pandas, Polars and Arrow are scanned where they lie, files by the engine.

In: tables by name: a frame, a DuckDB relation, or the path of a CSV or Parquet file or folder. Out: a Backend. A frame
that its owner can write to is taken as it is now (pandas 3 shares until somebody writes; older ones are copied), so
that one question sees one state. Names of tables are what a policy protects: the same frame under two names is refused.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import duckdb

from secant.engines.dialect import quote
from secant.engines.directory import files_of, names_of, tables_of
from secant.engines.duckdb.session import ATTACHED, DuckDB, add_files, lock, opaque_columns
from secant.engines.watch import watched
from secant.errors import BackendError, UsageError, over_limit
from secant.policy.policy import USUAL, Limits

WHOLE = 2**31 - 1
"""Python objects in a pandas column get the type that all of them have, not that of the first thousand."""
_READ = ("parquet", "csv")

Frames = Mapping[str, object]


def open_frames(tables: Frames, *, limits: Limits = USUAL) -> DuckDB:
    """Open frames and files as tables of one source."""
    if not tables:
        raise UsageError(
            "USE-001",
            "there is no table to open",
            hint="pass {'visits': frame}, or a source such as 'parquet:DIR'",
        )
    _refuse_twice(tables)
    frames: dict[str, object] = {}
    files: dict[str, tuple[str, tuple[Path, ...]]] = {}
    for name, table in tables.items():
        if isinstance(table, (str, Path)):
            files[str(name)] = _files(Path(table).expanduser())
        else:
            frames[str(name)] = _snapshot(str(name), table)
    places = {f"secant_frame_{i}": frame for i, frame in enumerate(frames.values())}

    def enter(cursor: duckdb.DuckDBPyConnection) -> None:
        """Show the frames to one cursor: the engine keeps what was registered for each by itself."""
        for location, frame in places.items():
            cursor.register(location, frame)

    def fill(engine: duckdb.DuckDBPyConnection) -> None:
        try:
            engine.execute(f"ATTACH ':memory:' AS {ATTACHED}")
            engine.execute(f"USE {ATTACHED}.main")
            engine.execute(f"SET GLOBAL pandas_analyze_sample = {WHOLE}")
            enter(engine)
            for name, location in zip(frames, places, strict=True):
                columns = opaque_columns(engine, f"SELECT * FROM {location}")
                engine.execute(f"CREATE VIEW {quote(name)} AS SELECT {columns} FROM {location}")
            for name, (kind, parts) in files.items():
                add = partial(add_files, engine, name, parts, kind)
                watched(add, engine.interrupt, limits.seconds)
            lock(engine, names_of({n: p for n, (k, p) in files.items() if k == "parquet"}), None)
        except duckdb.OutOfMemoryException:
            raise over_limit() from None
        except (duckdb.Error, RuntimeError, ValueError, TypeError):
            raise BackendError(
                "BAK-001",
                "a table cannot be read as a frame or a file",
                hint="pass pandas, Polars or Arrow frames, DuckDB relations, or paths of .csv or .parquet files",
            ) from None

    read_again = [f for kind, parts in files.values() if kind == "parquet" for f in parts]
    return DuckDB(fill, lambda: read_again, limits, views=True, enter=enter)


def _refuse_twice(tables: Frames) -> None:
    seen: dict[object, str] = {}
    for name, table in tables.items():
        path = isinstance(table, (str, Path))
        other = seen.setdefault(Path(str(table)).resolve() if path else id(table), str(name))
        if other != name:
            raise UsageError(
                "USE-001",
                f"{other} and {name} are the same table",
                hint="keep one: a table is protected by its name, and these rows would have two",
            )


def _files(path: Path) -> tuple[str, tuple[Path, ...]]:
    """Give what kind of files a path leads to, and which."""
    kind = next((k for k in _READ if path.suffix == f".{k}"), None)
    if kind is not None and path.is_file():
        return kind, (path.resolve(),)
    if path.is_dir():
        for kind in _READ:
            files = [f for f in files_of(path, kind) if f.parent == path.resolve()]
            if files:
                # As in a directory of tables: links that lead away and names that an engine misreads are refused.
                tables_of(path, kind)
                return kind, tuple(files)
    raise BackendError(
        "BAK-001",
        f"{path} is no .csv or .parquet file, and no folder of them",
        hint="check the path",
    )


def _snapshot(name: str, table: object) -> object:
    """Give a frame that stays as it is now, without copying where nobody can write to it."""
    home = type(table).__module__.partition(".")[0]
    if home == "pandas" and hasattr(table, "columns"):
        import pandas

        shared = int(pandas.__version__.partition(".")[0]) >= 3
        return table.copy(deep=not shared)  # type: ignore[attr-defined]
    if isinstance(table, duckdb.DuckDBPyRelation):
        if importlib.util.find_spec("pyarrow") is None:
            raise UsageError("USE-006", "pyarrow is not installed", hint="install secant[frames]")
        return table.to_arrow_table()
    if home == "polars" and type(table).__name__ == "LazyFrame":
        return table.collect()  # type: ignore[attr-defined]
    if home == "polars" and type(table).__name__ == "DataFrame":
        return table.clone()  # type: ignore[attr-defined]
    if home == "pyarrow" and type(table).__name__ == "Table":
        return table
    raise UsageError(
        "USE-001",
        f"the table {name} is a {type(table).__name__}, which cannot be scanned",
        hint="pass a pandas, Polars or Arrow frame, a DuckDB relation, or the path of a .csv or .parquet file",
    )
