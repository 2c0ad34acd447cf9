"""DuckDB: a file, or a directory of Parquet or CSV files, opened read-only and locked down.

In: paths. Out: a Backend. Every source gets an engine of its own in each process: none is shared with other users of
DuckDB, and a forked child, in which the engine's threads are missing, opens another. A question is a cursor with one
transaction. Files are compared before and after it, because the engine reads them while it answers and its lock on
them ends as soon as anything in the process closes one; CSV files are read into memory once.

After `lock` no statement can reach files, the network or settings. Statements are printed from plans (I1); the lock
is the second wall.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import duckdb

from secant.engines.backend import PublicRows, changed, closed, failed, most_rows, not_accepted
from secant.engines.dialect import DUCKDB, Dialect, quote, text
from secant.engines.directory import as_list, files_of, names_of, tables_of, without_lines
from secant.engines.duckdb.catalog import Home, read_catalog
from secant.engines.files import State, same_state, settled_state
from secant.engines.spill import Spill
from secant.engines.watch import watched
from secant.errors import BackendError, over_limit
from secant.policy.policy import USUAL, Limits
from secant.runtime.processes import PerProcess, ProcessLock
from secant.schema.catalog import Catalog

# What the driver raises: its own errors, and Python's where a value or a text cannot be carried over.
_FAILURES = (duckdb.Error, RuntimeError, ValueError, OverflowError)
_CHECK = "check the path: it starts at the folder of the policy file, or at this one"


_numbers = itertools.count()
"""For names of prepared statements: no two statements of a process ever have the same."""
ATTACHED = "secant_source"
"""The database of an engine that holds the tables."""


class DuckDBSession:
    """A cursor in one read-only transaction."""

    def __init__(
        self,
        cursor: duckdb.DuckDBPyConnection,
        catalog: Callable[[], Catalog],
        compare: Callable[[], None],
        limits: Limits,
        dialect: Dialect = DUCKDB,
        answers: PublicRows | None = None,
    ) -> None:
        self._cursor = cursor
        self.known: PublicRows = {} if answers is None else answers
        self.dialect = dialect
        self.catalog, self.confirm = catalog, compare
        self._limits = limits
        self._prepared: dict[str, str] = {}
        """Statement -> the name it is prepared under: planned once, checked and run."""

    def check(self, statement: str) -> None:
        """Let the engine bind and plan the statement without running it; `rows` then need not plan it again."""
        if statement in self._prepared:
            return
        name = f"secant_{next(_numbers)}"
        try:
            self._fetched(f"PREPARE {name} AS {statement}")
        except _FAILURES:
            raise not_accepted() from None
        self._prepared[statement] = name

    def rows(self, statement: str) -> list[tuple[object, ...]]:
        """Run a statement."""
        name = self._prepared.get(statement)
        try:
            return self._fetched(statement if name is None else f"EXECUTE {name}")
        except _FAILURES:
            raise failed() from None

    def keep(self, statement: str) -> str | None:
        """Keep the rows of a statement in a table that this cursor alone sees, and that ends with it."""
        name = f"secant_kept_{next(_numbers)}"
        try:
            self._fetched(f"CREATE TEMPORARY TABLE {name} AS {statement}")
        except _FAILURES:
            raise failed() from None
        return name

    def _fetched(self, statement: str) -> list[tuple[object, ...]]:
        most = most_rows(self._limits)

        def fetch() -> list[tuple[object, ...]]:
            return self._cursor.execute(statement).fetchmany(most + 1)

        try:
            rows = watched(fetch, self._cursor.interrupt, self._limits.seconds)
        except duckdb.OutOfMemoryException:
            raise over_limit() from None
        if len(rows) > most:
            raise over_limit()
        return rows


class DuckDB:
    """A locked DuckDB engine for each process that asks."""

    def __init__(
        self,
        fill: Callable[[duckdb.DuckDBPyConnection], None],
        files: Callable[[], Sequence[Path]],
        limits: Limits,
        *,
        in_memory: bool = False,
        views: bool = False,
        enter: Callable[[duckdb.DuckDBPyConnection], None] | None = None,
        homes: tuple[Home, ...] = (),
    ) -> None:
        self._fill, self._files, self._limits = fill, files, limits
        self._homes = homes or (Home(ATTACHED, "main"),)
        self.dialect: Dialect = DUCKDB
        self._in_memory, self._views, self._enter = in_memory, views, enter
        self._state: State = ()
        self._catalog: Catalog | None = None
        self._closed = False
        # What is read into memory is there once; files may be attached to several engines.
        self._most = 1 if in_memory else limits.at_once
        self._engines = [PerProcess(self._opened, _Engine.close)]
        self._busy = [0]
        self._lock = ProcessLock()

    def catalog(self) -> Catalog:
        """Give names, types and engine-kept keys as they were at the opening."""
        assert self._catalog is not None, "the engine is open"
        return self._catalog

    @contextmanager
    def session(self, tables: Collection[str] = ()) -> Iterator[DuckDBSession]:
        """Begin a question; nobody writes through the engine, so that all tables stay as they are."""
        index = self._begun()
        try:
            engine = self._engines[index].get()
            self._compare()
            with engine.cursor(self._enter) as cursor:
                shared = self._limits, self.dialect, engine.known
                yield DuckDBSession(cursor, self.catalog, self._compare, *shared)
                self._compare()
        finally:
            with self._lock:
                self._busy[index] -= 1

    def _begun(self) -> int:
        """Choose an engine that no question uses, a new one, or the one that fewest use."""
        with self._lock:
            index = min(range(len(self._busy)), key=self._busy.__getitem__)
            if self._busy[index] and len(self._engines) < self._most:
                self._engines.append(PerProcess(self._opened, _Engine.close))
                self._busy.append(0)
                index = len(self._busy) - 1
            self._busy[index] += 1
            return index

    def close(self) -> None:
        """Close the engines of this process."""
        self._closed = True
        for engine in self._engines:
            engine.drop()

    def _compare(self) -> None:
        """Hold the files against what they were at the opening; to what is in memory nobody writes."""
        if not self._in_memory:
            same_state(self._state, self._files())

    def _opened(self) -> _Engine:
        if self._closed:
            raise closed()
        before = settled_state(self._files())
        spill = Spill()
        memory = part_of(self._limits.memory, self._most)
        analysis = {"memory_limit": memory, "temp_directory": str(spill.path)}
        connection = duckdb.connect(":memory:", config=dict(analysis))
        try:
            self._fill(connection)
            catalog, reading = read_catalog(connection, self._homes, own_views=self._views)
            same_state(before, self._files())
            if self._catalog is None:
                self._catalog, self._state, self.dialect = catalog, before, reading
            elif catalog != self._catalog:  # a forked child has read the files again
                raise changed("a file of the data source")
        except BaseException:
            connection.close()
            spill.remove()
            raise
        return _Engine(connection, spill)


def part_of(memory: str, parts: int) -> str:
    """Give an equal part of an amount of memory, such as 50% or 4GB."""
    unit = memory.lstrip("0123456789. ")
    return f"{float(memory.removesuffix(unit)) / parts:.6f}{unit}" if parts > 1 else memory


class _Engine:
    """The engine of one process, with the number of questions that use it."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, spill: Spill) -> None:
        self._connection = connection
        self._spill = spill
        self.known: PublicRows = {}  # as long as the engine: what it has opened does not change under it
        self._lock = threading.Lock()
        self._users = 1  # the first is the backend, until it closes

    @contextmanager
    def cursor(
        self, enter: Callable[[duckdb.DuckDBPyConnection], None] | None
    ) -> Iterator[duckdb.DuckDBPyConnection]:
        """Give a cursor in a transaction of its own; `enter` shows it what the engine keeps for each cursor."""
        with self._lock:
            if not self._users:
                raise closed()
            self._users += 1
            cursor = self._connection.cursor()
        try:
            try:
                cursor.execute(f"USE {ATTACHED}.main")
                if enter is not None:
                    enter(cursor)
                cursor.execute("BEGIN TRANSACTION READ ONLY")
            except _FAILURES:
                raise failed() from None
            yield cursor
        finally:
            with suppress(duckdb.Error):  # raised under a statement that could not be stopped
                cursor.close()
                self.close()

    def close(self) -> None:
        """Count one user less; the last one closes, since an engine cannot be closed under a statement."""
        with self._lock:
            self._users -= 1
            if not self._users:
                self._connection.close()
                self._spill.remove()


def open_file(
    path: Path,
    *,
    threads: int | None = None,
    limits: Limits = USUAL,
    schemas: Sequence[str] = ("main",),
    attached: Sequence[Path] = (),
) -> DuckDB:
    """Open a DuckDB file read-only, with others beside it: their tables are called `NAME.table` after the file."""
    for each in (path, *attached):
        if not each.is_file():
            raise BackendError("BAK-001", f"there is no DuckDB file {each}", hint=_CHECK)
    places = [each.resolve() for each in (path, *attached)]
    names = [ATTACHED, *(f"{ATTACHED}_{i}" for i in range(1, len(places)))]
    homes = [Home(ATTACHED, schema, schema if i else "") for i, schema in enumerate(schemas)]
    homes += [Home(n, "main", p.stem) for n, p in zip(names[1:], places[1:], strict=True)]
    _refuse_twice([*places], [home.prefix.lower() for home in homes])

    def fill(engine: duckdb.DuckDBPyConnection) -> None:
        try:
            for name, location in zip(names, places, strict=True):
                engine.execute(f"ATTACH {text(str(location))} AS {name} (READ_ONLY, TYPE duckdb)")
            engine.execute(f"USE {ATTACHED}.main")
            _refuse_own_meanings(engine)
            lock(engine, [], threads)
        except duckdb.Error:
            raise BackendError(
                "BAK-001",
                f"{path} cannot be opened as a DuckDB file",
                hint="close other programs that write to it, and check that it is a DuckDB file",
            ) from None

    read = [
        each
        for location in places
        for each in (location, location.with_name(location.name + ".wal"))
    ]
    return DuckDB(fill, lambda: read, limits, homes=tuple(homes))


def _refuse_twice(places: list[Path], prefixes: list[str]) -> None:
    """Refuse rows that would have two names: a policy protects them by one."""
    if len(set(places)) < len(places) or len(set(prefixes)) < len(prefixes):
        raise BackendError(
            "BAK-001",
            "two schemas or attached files of the source have one name, or are the same",
            hint="name each once; rename a file that is called like a schema",
        )


_HAS_FUNCTIONS = "SELECT 1 FROM duckdb_functions() WHERE NOT internal LIMIT 1"
# A macro of the file goes before the engine's own function of that name, be it `least` or `+`.
_OWN_MEANINGS = """
SELECT DISTINCT function_name FROM duckdb_functions() WHERE NOT internal AND lower(function_name) IN (
    SELECT lower(function_name) FROM duckdb_functions() WHERE internal
    UNION ALL SELECT lower(keyword_name) FROM duckdb_keywords()
) ORDER BY 1 LIMIT 1
"""


def _refuse_own_meanings(engine: duckdb.DuckDBPyConnection) -> None:
    """Refuse a file that gives an SQL function a meaning of its own: what runs would not be what was bounded (I1)."""
    if not engine.execute(_HAS_FUNCTIONS).fetchall():  # as good as always, and half as long
        return
    for (name,) in engine.execute(_OWN_MEANINGS).fetchall():
        raise BackendError(
            "BAK-001",
            f"the DuckDB file has a macro {name}, which is a name of SQL's own",
            hint="rename the macro, or drop it",
        )


def open_directory(
    path: Path, kind: str, *, threads: int | None = None, limits: Limits = USUAL
) -> DuckDB:
    """Open a directory in which each `NAME.parquet` (or `.csv`), or each folder of them, is a table; or one table."""
    tables = tables_of(path, kind)
    if not tables and not path.is_dir():
        raise BackendError(
            "BAK-001", f"there is no directory and no .{kind} file {path}", hint=_CHECK
        )
    if not tables:
        raise BackendError(
            "BAK-001",
            f"{path} holds no .{kind} files",
            hint=_CHECK,
        )
    if kind == "csv" and (empty := next(without_lines(tables), None)) is not None:
        hint = "write at least the line that names its columns"
        raise BackendError(
            "BAK-001", f"the table {empty} has no columns: its file is empty", hint=hint
        )

    def fill(engine: duckdb.DuckDBPyConnection) -> None:
        try:
            engine.execute(f"ATTACH ':memory:' AS {ATTACHED}")
            engine.execute(f"USE {ATTACHED}.main")
            for name, files in tables.items():
                add = partial(add_files, engine, name, files, kind)
                watched(add, engine.interrupt, limits.seconds)
            # The rows of CSV files are in memory by now; Parquet files are read again by every statement.
            lock(engine, names_of(tables) if kind == "parquet" else [], threads)
        except duckdb.OutOfMemoryException:
            raise over_limit() from None
        except duckdb.Error:
            raise BackendError(
                "BAK-001",
                f"a table of {path} cannot be read as {kind.upper()}",
                hint="check that the files are whole and, for CSV, that the text is UTF-8",
            ) from None

    listing = partial(files_of, path, kind)
    return DuckDB(fill, listing, limits, in_memory=kind == "csv", views=kind == "parquet")


def add_files(
    engine: duckdb.DuckDBPyConnection, name: str, files: tuple[Path, ...], kind: str
) -> None:
    """Show files as a table: Parquet as a view, CSV read into memory."""
    # Columns are those of the files: a folder called `k=v` somewhere above must not add one.
    read = f"read_{kind}({as_list(files)}, hive_partitioning = false"
    if kind == "parquet":
        columns = opaque_columns(engine, f"SELECT * FROM {read})")
        engine.execute(f"CREATE VIEW {quote(name)} AS SELECT {columns} FROM {read})")
        return
    # Types come from the whole file, and a line that cannot be read is left out: it must not fail a query.
    engine.execute(
        f"CREATE TABLE {quote(name)} AS SELECT * FROM {read}, sample_size = -1, ignore_errors = true)"
    )


def opaque_columns(engine: duckdb.DuckDBPyConnection, read: str) -> str:
    """Give the columns of what is read elsewhere; floats so that no filter is held against ends that are stated there.

    Writers of Parquet files leave NaN out of them: a filter would skip groups of rows that hold a NaN, or not, as other
    rows decide. A filter on an Arrow frame would be computed by Arrow, to which a NaN is not the largest number.
    """
    columns = engine.execute(f"DESCRIBE {read}").fetchall()
    return ", ".join(
        f"CASE WHEN isnan({quote(c)}) THEN CAST('nan' AS DOUBLE) ELSE {quote(c)} END AS {quote(c)}"
        if kind in ("FLOAT", "DOUBLE")
        else quote(c)
        for c, kind, *_ in columns
    )


def lock(engine: duckdb.DuckDBPyConnection, files: list[str], threads: int | None) -> None:
    """Fix the settings for all cursors: what is set without GLOBAL holds for one cursor only."""
    allowed = ", ".join(text(file) for file in files)
    engine.execute(f"SET GLOBAL allowed_paths = [{allowed}]")
    for name, value in _settings(threads):
        engine.execute(f"SET GLOBAL {name} = {text(value)}")


def _settings(threads: int | None) -> list[tuple[str, str]]:
    """Give what locks an engine, in the order in which it must be set."""
    thread_setting = [] if threads is None else [("threads", str(int(threads)))]
    return [
        *thread_setting,
        ("error_on_division_by_zero", "false"),  # an error on one row would tell of the row
        ("TimeZone", "UTC"),  # what a moment with a zone is called must not hang on the machine
        # The first of these optimizers moves what is written twice out of TRY, where it raises after all; the second
        # writes out projections where they are used, which computes shared parts anew each time; the third believes
        # stated ends of columns, which leave NaN out, and drops comparisons that only a NaN would meet.
        (
            "disabled_optimizers",
            "common_subexpressions,partial_aggregate_pushdown,statistics_propagation",
        ),
        # a name is a table, never a variable of the program
        ("python_enable_replacements", "false"),
        ("autoinstall_known_extensions", "false"),
        ("autoload_known_extensions", "false"),
        ("enable_external_access", "false"),
        ("lock_configuration", "true"),
    ]
