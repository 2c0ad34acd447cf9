"""PostgreSQL: tables of some schemas; each question is one read-only transaction that sees one moment.

In: a `postgresql://` address; `?schema=NAME` or `?schema=NAME,NAME` chooses schemas (else `public`; tables of all but
the first are called `schema.table`), `?statement_seconds=N` goes before the limit of the policy. Out: a Backend.
Nothing of the address enters a message: it may hold a password. Nothing of the server's own messages does: they can
quote a row.
"""

from __future__ import annotations

import datetime
import itertools
import os
import re
import socket
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from decimal import Decimal
from functools import partial
from typing import Any, LiteralString, TypeVar
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit
from urllib.parse import quote as percent

from secant.engines.backend import PublicRows, changed, closed, failed, most_rows, not_accepted
from secant.engines.calendar import day, moment
from secant.engines.connections import Connections
from secant.engines.dialect import DAY, Dialect, quote
from secant.engines.postgres.catalog import read_catalog
from secant.engines.postgres.scalars import POSTGRES, postgres_of
from secant.engines.watch import watched
from secant.errors import BackendError, UsageError, over_limit
from secant.policy.policy import USUAL, Limits
from secant.schema.catalog import Catalog
from secant.schema.parts import elements_named

try:
    import psycopg
    from psycopg.abc import Buffer
    from psycopg.adapt import Loader
    from psycopg.pq import Format, TransactionStatus
except ImportError as error:
    raise UsageError(
        "USE-006",
        "a data source on PostgreSQL needs the psycopg package",
        hint="install secant[postgres]",
    ) from error

OLDEST = 130_000
"""Version 13; before 12 the server cannot say which columns are computed."""
MOST_SESSIONS = 16
"""Questions of one process at the same time; more wait for their turn."""
_LOCK_MS = 900
"""Below the second after which a server ends somebody's work to resolve a deadlock: we give way, not the owner."""
_SLACK = 10.0
"""Seconds that a server may be late: with what takes no time, or with giving up what takes too long."""
_CANCELING = 2.0
"""Seconds to tell a server that nobody waits any more."""
_WAITING = {"connect_timeout": 10, "keepalives_idle": 30, "tcp_user_timeout": 60_000}
_AT_ONCE = 1000
"""Rows that the server sends together: not all, so that too many are seen before they fill the memory."""
T = TypeVar("T")
_NUMERIC = 1700
_Connection = psycopg.Connection[tuple[Any, ...]]
# What the driver raises: its own errors, and Python's where a value or a text cannot be carried over.
_FAILURES = (psycopg.Error, ValueError, OverflowError)

_SETTINGS = {
    "default_transaction_read_only": "on",
    "default_transaction_isolation": "repeatable read",
    "client_min_messages": "error",  # a notice can quote a row as well
    "standard_conforming_strings": "on",
    "extra_float_digits": "3",
    "transform_null_equals": "off",
    "datestyle": "ISO, YMD",
    "intervalstyle": "postgres",
    "timezone": "UTC",
    "jit": "off",  # compiling a long statement takes longer than most statements run
}
_UNSAID = {
    # A bound rests on more rows than its answer: planned for a turning disk, whole tables would be read for them.
    "random_page_cost": "1.1",
    # Then it is dear, beside pages, to hand rows to one process, and many hands would not be asked for.
    "parallel_tuple_cost": "0.01",
    # Sums are gathered by unit or by row: tens of thousands of them do not fit into the server's own 4 MB.
    "work_mem": "16MB",
}
"""How statements are planned where nobody has said it: not the server's owner, not the role's, not the address."""


class _Date(Loader):
    """Dates as days after 2000; infinite ones become the ends of the calendar, as DuckDB's driver gives them."""

    format = Format.BINARY

    def load(self, data: Buffer) -> datetime.date | str:
        days = int.from_bytes(bytes(data), "big", signed=True)
        if days in (2**31 - 1, -(2**31)):
            return datetime.date.max if days > 0 else datetime.date.min
        return day(days + _FROM_2000)


class _Timestamp(Loader):
    """Timestamps as microseconds after 2000, infinite ones like dates."""

    format = Format.BINARY

    def load(self, data: Buffer) -> datetime.datetime | str:
        micros = int.from_bytes(bytes(data), "big", signed=True)
        if micros in (2**63 - 1, -(2**63)):
            return datetime.datetime.max if micros > 0 else datetime.datetime.min  # noqa: DTZ901
        return moment(micros + _FROM_2000 * DAY)


_FROM_2000 = 10_957
"""Days from 1970, where the calendar counts from, to 2000, where this server does."""


class PostgresSession:
    """A connection in one read-only transaction, which sees one moment of the database."""

    def __init__(
        self,
        connection: _Connection,
        catalog: Callable[[], Catalog],
        limits: Limits,
        dialect: Dialect = POSTGRES,
    ) -> None:
        self._connection = connection
        self.catalog = catalog
        self._limits = limits
        self.dialect = dialect
        self.known: PublicRows = {}

    def check(self, statement: str) -> None:
        """Let the server plan the statement without running it."""
        try:
            self._fetched("EXPLAIN " + statement)
        except _FAILURES:
            self._tell_loss()
            raise not_accepted() from None

    def rows(self, statement: str) -> list[tuple[object, ...]]:
        """Run a statement."""
        try:
            return self._fetched(statement)
        except _FAILURES:
            self._tell_loss()
            raise failed() from None

    def keep(self, statement: str) -> str | None:
        """Keep nothing: the server is only read."""
        return None

    def confirm(self) -> None:
        """Do nothing: the transaction and its locks have kept everything as it was."""

    def _fetched(self, statement: str) -> list[tuple[object, ...]]:
        most = most_rows(self._limits)

        def fetch() -> list[tuple[object, ...]]:
            # Binary results make the driver use the protocol that takes one statement only.
            with self._connection.cursor() as cursor:
                rows = cursor.stream(statement.encode(), binary=True, size=_AT_ONCE)
                answers = list(itertools.islice(rows, most + 1))
                return _numbers(cursor, answers)

        try:
            fetched = _call_within(self._connection, fetch, self._limits.seconds + _SLACK)
        except psycopg.errors.QueryCanceled:
            raise over_limit() from None
        if len(fetched) > most:
            raise over_limit()
        return fetched

    def _tell_loss(self) -> None:
        """Raise if what went wrong was the connection, not the statement."""
        if self._connection.closed:
            raise BackendError(
                "BAK-002",
                "the connection to the data source was lost while a statement ran",
                hint="try again; budget that was reserved for a statement that was sent stays spent",
            ) from None


class PostgresBackend:
    """A PostgreSQL server that is only read, with a connection for each question that runs at the same time."""

    def __init__(self, address: str, *, schemas: tuple[str, ...], limits: Limits) -> None:
        self._address = address
        self._schemas = schemas
        self._limits = limits
        self.dialect: Dialect = POSTGRES
        self._pool = Connections(lambda: _Pool(self._connected), _Pool.close)
        with self._pool.opening() as pool, pool.taken() as connection:
            version = connection.info.server_version
            session = PostgresSession(connection, self.catalog, limits)
            self._catalog, self.dialect, self._where = read_catalog(
                session.rows, schemas, postgres_of(version)
            )

    def catalog(self) -> Catalog:
        """Give names, types and server-kept keys as they were at the opening."""
        return self._catalog

    @contextmanager
    def session(self, tables: Collection[str] = ()) -> Iterator[PostgresSession]:
        """Begin a question: lock its tables against all but writers of rows, then fix the moment that it sees.

        The locks come first: that a table was emptied or rewritten shows also in moments that were fixed before.
        """
        bases = {e.table if (e := elements_named(name)) else name for name in tables}
        locked_tables = [table for name in sorted(bases) if (table := self._catalog.table(name))]
        locked_tables = list(dict.fromkeys(locked_tables))
        with self._pool.get().taken() as connection:
            session = PostgresSession(connection, self.catalog, self._limits, self.dialect)
            if locked_tables:
                _hold(connection, [self.dialect.places[table.name] for table in locked_tables])
                places = [self._where[table.name] for table in locked_tables]
                now, *_ = read_catalog(session.rows, self._schemas, POSTGRES, places)
                if now.tables != {table.name.lower(): table for table in locked_tables}:
                    raise changed("a table")
            yield session

    def close(self) -> None:
        """Close the connections that nobody uses; the others close when their questions end."""
        self._pool.close()

    def _connected(self) -> _Connection:
        try:
            connection = psycopg.connect(
                self._address,
                **_patience(self._address),
                autocommit=True,
                prepare_threshold=None,
                client_encoding="UTF8",
                application_name="secant",
            )
        except _FAILURES:
            raise _unreachable() from None
        try:
            settle = partial(_settle, connection, self._schemas, self._limits.seconds)
            _call_within(connection, settle, _SLACK)
        except psycopg.Error:
            connection.close()
            raise _unreachable() from None
        except BackendError:
            connection.close()
            raise
        return connection


class _Pool:
    """The connections of one process: those that nobody uses, and how many may be in use."""

    def __init__(self, connect: Callable[[], _Connection]) -> None:
        self._connect = connect
        self._lock = threading.Lock()
        self._free: list[_Connection] = []
        self._closed = False
        self._turns = threading.BoundedSemaphore(MOST_SESSIONS)

    @contextmanager
    def taken(self) -> Iterator[_Connection]:
        """Give a connection, in a transaction, that is nobody else's until the end."""
        with self._turns:
            connection = self._begun()
            try:
                yield connection
            finally:
                with suppress(psycopg.Error, BackendError):
                    _call_within(connection, partial(connection.execute, "ROLLBACK"), _SLACK)
                self._give_back(connection)

    def close(self) -> None:
        """Close what is free, and from now on all that comes back."""
        with self._lock:
            self._closed = True
            free, self._free = self._free, []
        for connection in free:
            connection.close()

    def _begun(self) -> _Connection:
        """Begin to read; a connection that ended while nobody used it is replaced, nothing was sent on it."""
        begin: LiteralString = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
        with self._lock:
            if self._closed:
                raise closed()
            connection = self._free.pop() if self._free else None
        if connection is not None:
            with suppress(psycopg.OperationalError, BackendError):
                _call_within(connection, partial(connection.execute, begin), _SLACK)
                return connection
            connection.close()
        connection = self._connect()
        try:
            _call_within(connection, partial(connection.execute, begin), _SLACK)
        except (psycopg.Error, BackendError):
            connection.close()
            raise _unreachable() from None
        return connection

    def _give_back(self, connection: _Connection) -> None:
        """Keep a connection for the next question, if nothing is left of the last one."""
        idle = connection.info.transaction_status == TransactionStatus.IDLE
        with self._lock:
            if idle and not self._closed:
                self._free.append(connection)
                return
        connection.close()


def _hold(connection: _Connection, places: list[str]) -> None:
    """Lock tables, and their partitions, against everything but writers of rows, to the end of the transaction."""
    table_list = ", ".join(places)
    try:
        for statement in (
            f"SET LOCAL lock_timeout = {_LOCK_MS}",
            f"LOCK TABLE {table_list} IN ACCESS SHARE MODE",
        ):
            _call_within(connection, partial(connection.execute, statement.encode()), _SLACK)
    except (psycopg.errors.LockNotAvailable, psycopg.errors.QueryCanceled):
        raise BackendError(
            "BAK-002", "somebody else keeps a table of the data source locked", hint="try again"
        ) from None
    except psycopg.errors.InsufficientPrivilege:
        raise BackendError(
            "BAK-001",
            "a table cannot be held as it is while a question is answered",
            hint="grant SELECT on whole tables, not on columns, to the user of the source",
        ) from None
    except psycopg.errors.UndefinedTable:
        raise changed("a table") from None
    except _FAILURES:
        raise failed() from None


def _call_within(connection: _Connection, call: Callable[[], T], seconds: float) -> T:
    """Make a call on a connection, and leave a server that stays silent."""
    ways = iter(
        (partial(connection.cancel_safe, timeout=_CANCELING), partial(_hang_up, connection))
    )

    def stop() -> None:
        with suppress(psycopg.Error, OSError):
            next(ways, lambda: None)()

    return watched(call, stop, seconds)


def _hang_up(connection: _Connection) -> None:
    """End the connection under whoever waits for it; the driver's own way out would wait for them."""
    with socket.socket(fileno=os.dup(connection.fileno())) as line:
        line.shutdown(socket.SHUT_RDWR)


def _patience(address: str) -> dict[str, Any]:
    """Give how long to wait for a server that does not answer, where the address does not say."""
    settings = psycopg.conninfo.conninfo_to_dict(address)
    return {name: value for name, value in _WAITING.items() if name not in settings}


def open_server(address: str, limits: Limits = USUAL) -> PostgresBackend:
    """Open a PostgreSQL source."""
    try:
        parts = urlsplit(address)
        pairs = parse_qsl(parts.query, keep_blank_values=True)
    except ValueError:
        raise _unreachable() from None
    own = {name: value for name, value in pairs if name in ("schema", "statement_seconds")}
    remaining = [(name, value) for name, value in pairs if name not in own]
    others = urlencode(
        remaining, quote_via=percent
    )  # the driver takes a plus for itself, not for a space
    seconds = own.get("statement_seconds")
    if seconds is not None and not re.fullmatch(r"[0-9]{1,6}(\.[0-9]{1,3})?", seconds):
        raise UsageError(
            "USE-001",
            "statement_seconds in the source is not a number of seconds",
            hint="write for instance ?statement_seconds=60",
        )
    named = [name for name in (own.get("schema") or "public").split(",") if name]
    schemas = tuple(dict.fromkeys(named)) or ("public",)
    if any(schema.startswith("pg_") or schema == "information_schema" for schema in schemas):
        raise UsageError(
            "USE-001",
            "the schema in the source is the server's own; it tells of every table",
            hint="name the schema that holds the tables",
        )
    if seconds is not None:
        limits = replace(limits, seconds=float(seconds))
    server = urlunsplit(parts._replace(query=others))
    return PostgresBackend(server, schemas=schemas, limits=limits)


def _settle(session: psycopg.Connection[Any], schemas: tuple[str, ...], seconds: float) -> None:
    """Fix everything that a statement's meaning hangs on, and how it is planned where that was left open."""
    if session.info.server_version < OLDEST:
        raise BackendError(
            "BAK-001", "the PostgreSQL server is too old", hint="use version 13 or newer"
        )
    if session.info.parameter_status("server_encoding") != "UTF8":
        raise BackendError(
            "BAK-001", "the database does not keep its text as UTF-8", hint="use a UTF-8 database"
        )
    settings = {
        **_SETTINGS,
        # Temporary tables come last: they must not stand in for a table that the policy names.
        # Only the first schema: what stands in others is told, and written, with its schema before it.
        "search_path": f"pg_catalog, {quote(schemas[0])}, pg_temp",
        "statement_timeout": str(max(1, round(seconds * 1000))),
    }
    for name, value in settings.items():
        session.execute("SELECT set_config(%s, %s, false)", (name, value))
    for name, value in _UNSAID.items():
        session.execute(
            "SELECT set_config(name, %s, false) FROM pg_catalog.pg_settings "
            "WHERE name = %s AND source = 'default'",
            (value, name),
        )
    session.adapters.register_loader("date", _Date)
    session.adapters.register_loader("timestamp", _Timestamp)


def _numbers(
    cursor: psycopg.Cursor[tuple[Any, ...]], rows: list[tuple[Any, ...]]
) -> list[tuple[object, ...]]:
    """Give sums of whole numbers as whole numbers: the server makes them numbers without a stated scale."""
    columns = cursor.description or ()
    unscaled = {i for i, c in enumerate(columns) if c.type_code == _NUMERIC and c.precision is None}
    if not unscaled:
        return [tuple(row) for row in rows]
    return [
        tuple(_whole(v) if i in unscaled and v is not None else v for i, v in enumerate(row))
        for row in rows
    ]


def _whole(value: Decimal) -> int | Decimal:
    """Give a number without digits behind the point as a whole one; sums of decimals keep theirs."""
    return int(value) if value.as_tuple().exponent == 0 else value


def _unreachable() -> BackendError:
    return BackendError(
        "BAK-001",
        "the PostgreSQL server cannot be reached, or does not let us in",
        hint="check host, port, database, user and password of the source",
    )
