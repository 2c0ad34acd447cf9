"""Spark, through Spark Connect: Parquet tables of its catalog, or of a folder that the server reads.

In: `spark:sc://host:port`, with Spark's own settings after `/;` (`token=…`, `use_ssl=true`); `?schema=NAME,NAME`
chooses schemas (else `default`), `?parquet=FOLDER` a folder instead. Out: a Backend. Spark has no transactions: the
files of a question's tables are compared before its first and after its last statement. Nothing of the server's own
messages passes, and its driver may not write them to a log: they quote values.
"""

from __future__ import annotations

import logging
import threading
import time
import uuid
import warnings
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from decimal import Decimal
from functools import partial
from typing import Any, TypeVar
from urllib.parse import parse_qsl

from secant.engines.backend import PublicRows, changed, failed, most_rows, not_accepted
from secant.engines.calendar import day, moment
from secant.engines.connections import Connections
from secant.engines.dialect import Dialect
from secant.engines.spark.catalog import StoredTable, columns_of, files_below, read_catalog
from secant.engines.spark.scalars import SPARK
from secant.engines.spark.text import in_spark_syntax
from secant.engines.watch import watched
from secant.errors import BackendError, UsageError, over_limit
from secant.policy.policy import USUAL, Limits
from secant.schema.catalog import Catalog
from secant.schema.types import MAX_PRECISION

try:
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore"
        )  # the driver warns of versions of packages that it does not use here
        import grpc
        import pyarrow as pa
        from pyspark.errors import PySparkException
        from pyspark.sql.connect.client.retries import DefaultPolicy
        from pyspark.sql.connect.session import SparkSession
except ImportError as error:
    raise UsageError(
        "USE-006", "a data source on Spark needs the pyspark package", hint="install secant[spark]"
    ) from error

T = TypeVar("T")
# What the driver raises: its own errors, Python's where a value or a text cannot be carried over, and its warnings,
# where a program makes errors of them.
_FAILURES = (
    PySparkException, grpc.RpcError, pa.ArrowException, ValueError, OverflowError, UserWarning,
)  # fmt: skip
_OPENING = 60.0
"""Seconds for a server to answer at all: the first session that it makes takes long."""
_SLACK = 10.0
_STEP = 1.0
"""Seconds. Stores of files note times in such steps: a second write in the same one may leave no mark."""
MOST_SESSIONS = 16
"""Questions of one process at the same time; more wait for their turn."""
_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
_SETTINGS = {
    # An error on one row would tell of the row: what cannot be computed is NULL, and what would wrap is tried.
    "spark.sql.ansi.enabled": "false",
    "spark.sql.timestampType": "TIMESTAMP_NTZ",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.caseSensitive": "true",
    "spark.sql.decimalOperations.allowPrecisionLoss": "false",
    # A text constant must not reach the server's environment, nor mean a pattern of names.
    "spark.sql.variable.substitute": "false",
    "spark.sql.parser.quotedRegexColumnNames": "false",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.legacy.consecutiveStringLiterals.enabled": "false",
    "spark.sql.legacy.timeParserPolicy": "CORRECTED",
    "spark.sql.groupByOrdinal": "true",
    "spark.sql.legacy.followThreeValuedLogicInArrayExists": "true",
    # Old dates raise otherwise, depending on who wrote the file.
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
    # Files that are lost or broken must not be rows that are missing.
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.files.ignoreCorruptFiles": "false",
    # The type of a part of a path must not hang on what values there are.
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
}


class SparkQuestion:
    """One question: statements over tables whose files stay as they are."""

    def __init__(
        self,
        server: Any,
        catalog: Callable[[], Catalog],
        compare: Callable[[], None],
        limits: Limits,
        dialect: Dialect,
    ) -> None:
        self._server, self._limits = server, limits
        self.catalog, self.confirm, self.dialect = catalog, compare, dialect
        self.known: PublicRows = {}

    def keep(self, statement: str) -> str | None:
        """Keep nothing: the server is only read."""
        return None

    def check(self, statement: str) -> None:
        """Let the server plan the statement without running it."""

        def plan() -> str:
            frame = self._server.sql(in_spark_syntax(statement))
            return str(frame._explain_string(mode="simple"))

        try:
            plan_text = call_within(self._server, plan, self._limits.seconds + _SLACK)
        except _FAILURES:
            raise not_accepted() from None
        if "Error occurred during query planning" in plan_text:
            raise not_accepted()

    def rows(self, statement: str) -> list[tuple[object, ...]]:
        """Run a statement."""
        most = most_rows(self._limits)

        def fetch() -> list[tuple[object, ...]] | None:
            fetched: list[tuple[object, ...]] = []
            query = self._server.sql(in_spark_syntax(statement))
            client = self._server.client
            plan = query._plan.to_proto(client)
            for part in client.to_table_as_iterator(plan, {}):
                if isinstance(part, pa.Table):
                    fetched += python_rows(part)
                if len(fetched) > most:
                    return None
            return fetched

        try:
            rows = call_within(self._server, fetch, self._limits.seconds)
        except _FAILURES:
            raise failed() from None
        if rows is None:
            raise over_limit()
        return rows


class SparkBackend:
    """A Spark server that is only read, over one connection of each process."""

    def __init__(
        self, address: str, *, schemas: tuple[str, ...], folder: str | None, limits: Limits
    ) -> None:
        self._address, self._schemas, self._folder = address, schemas, folder
        self._limits = limits
        self.dialect: Dialect = SPARK
        self._seen: list[tuple[str, int, int]] = []
        self._turns = threading.BoundedSemaphore(MOST_SESSIONS)
        self._servers = Connections(self._connected, _stop)
        try:
            with self._servers.opening() as server:
                read = partial(read_catalog, server, schemas, folder, SPARK)
                looked = call_within(server, read, limits.seconds + _OPENING)
        except _FAILURES:
            raise _unreachable() from None
        self._catalog, self.dialect, self._kept = looked

    def catalog(self) -> Catalog:
        """Give names and types as they were at the opening."""
        return self._catalog

    @contextmanager
    def session(self, tables: Collection[str] = ()) -> Iterator[SparkQuestion]:
        """Begin a question; when it ends, the files of its tables must be what they were."""
        names = {table.name for name in tables if (table := self._catalog.table(name))}
        tables_read = [self._kept[name] for name in sorted(names)]
        with self._turns:
            server = self._servers.get()
            before = (
                self._looked(server, partial(self._begun, server, tables_read))
                if tables_read
                else []
            )

            def compare() -> None:
                if (
                    tables_read
                    and self._looked(server, partial(_state, server, tables_read)) != before
                ):
                    raise changed("a table")

            yield SparkQuestion(server, self.catalog, compare, self._limits, self.dialect)
            compare()

    def close(self) -> None:
        """Let go of the server."""
        self._servers.close()

    def _looked(self, server: Any, look: Callable[[], T]) -> T:
        try:
            return call_within(server, look, self._limits.seconds + _SLACK)
        except _FAILURES:
            raise failed() from None

    def _begun(self, server: Any, tables: list[StoredTable]) -> list[tuple[str, int, int]]:
        """Let the server look again at the files of tables; these must have the columns that they had.

        Columns of a folder's tables are read from its files: where those are the ones that were looked at before, so
        are the columns.
        """
        state = self._settled(server, tables)
        seen = state == self._seen
        for table in tables:
            if table.listed:
                server.sql(in_spark_syntax(f"REFRESH TABLE {table.place}"))
            elif seen:
                continue
            offers = columns_of(server, table)
            now = tuple((name, offer.type) for name, offer in offers.items() if offer.type)
            if now != self._catalog.tables[table.name.lower()].columns:
                raise changed("a table")
        if not seen and _state(server, tables) != state:
            raise changed("a table")
        self._seen = state
        return state

    def _settled(self, server: Any, tables: list[StoredTable]) -> list[tuple[str, int, int]]:
        """List files, once the last of them was written long enough ago for another write to leave a mark."""
        while True:
            state = _state(server, tables)
            newest = max((at for _, _, at in state), default=0) / 1e6
            if abs(time.time() - newest) > _STEP:
                return state
            time.sleep(_STEP / 4)

    def _connected(self) -> Any:
        # They write the server's messages, which quote values, to standard error.
        for name in _LOGGERS:
            logging.getLogger(name).disabled = True
        try:
            return watched(partial(_connect, self._address), lambda: None, _OPENING)
        except (*_FAILURES, RuntimeError):
            raise _unreachable() from None


def _connect(address: str) -> Any:
    server = SparkSession.builder.remote(address).create()
    server.client.set_retry_policies([DefaultPolicy(max_retries=3)])
    version = server.version
    if not version.startswith("4."):
        raise BackendError(
            "BAK-001", "the Spark server is not of version 4", hint="use Spark 4.3 or newer"
        )
    for name, value in _SETTINGS.items():
        if server.conf.get(name) != value:  # some warn when they are set
            server.conf.set(name, value)
    return server


def _stop(server: Any) -> None:
    with suppress(*_FAILURES):
        server.client.release_session()
    with suppress(*_FAILURES):
        server.client.close()


def _state(server: Any, tables: list[StoredTable]) -> list[tuple[str, int, int]]:
    return files_below(server, [table.folder for table in tables])


def call_within(server: Any, call: Callable[[], T], seconds: float) -> T:
    """Make a call at a server; whoever gives up, by time or by hand, ends what the server does for it."""
    tag = f"secant-{uuid.uuid4()}"

    def tagged() -> T:
        server.addTag(tag)  # tags belong to a thread, and this call has one of its own
        return call()

    def stop() -> None:
        with suppress(*_FAILURES):
            server.interruptTag(tag)

    return watched(tagged, stop, seconds)


def python_rows(table: pa.Table) -> Iterator[tuple[object, ...]]:
    """Give rows as DuckDB's driver gives them: days and moments outside of Python's calendar as text."""
    columns = [_values(table.column(i)) for i in range(table.num_columns)]
    return zip(*columns, strict=True) if columns else iter([()] * table.num_rows)


def _values(column: pa.ChunkedArray) -> list[object]:
    kind = column.type
    if pa.types.is_date32(kind):
        return [None if d is None else day(d) for d in column.cast(pa.int32()).to_pylist()]
    if pa.types.is_timestamp(kind):
        micros = column.cast(pa.timestamp("us")).cast(pa.int64()).to_pylist()
        return [None if m is None else moment(m) for m in micros]
    values: list[object] = column.to_pylist()
    if pa.types.is_decimal(kind) and kind.precision < MAX_PRECISION and not kind.scale:
        return [int(v) if isinstance(v, Decimal) else v for v in values]
    return values


def open_server(address: str, limits: Limits = USUAL) -> SparkBackend:
    """Open a source on Spark: what stands behind `spark:`."""
    server, _, after = address.partition("?")
    own = dict(parse_qsl(after, keep_blank_values=True))
    if not server.startswith("sc://") or not own.keys() <= {"schema", "parquet"} or len(own) > 1:
        raise UsageError(
            "USE-001",
            "the source on Spark is not understood",
            hint="write spark:sc://HOST:PORT, then nothing, ?schema=NAME or ?parquet=FOLDER",
        )
    schemas = tuple(name for name in own.get("schema", "default").split(",") if name)
    return SparkBackend(
        server, schemas=schemas or ("default",), folder=own.get("parquet"), limits=limits
    )


def _unreachable() -> BackendError:
    return BackendError(
        "BAK-001",
        "the Spark server cannot be reached, or does not let us in",
        hint="check host, port and token of the source, and that Spark Connect runs there",
    )
