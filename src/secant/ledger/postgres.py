"""Records in one PostgreSQL schema, for the processes of several machines.

In: a `postgresql://` address; `?ledger=NAME` chooses the schema. Out: a Journal. Writers queue for
the row of the head, so that each sees all that was committed before it. The server's clock decides
about leases. A list outside of the schema keeps which ledgers there were, so that one that was dropped
is not replaced. Nothing of the address ever enters a message: it may hold a password.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, LiteralString
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from secant.errors import BudgetError, UsageError
from secant.ledger.anchor import forgotten
from secant.ledger.journal import PAPERS, Head, packed, unpacked
from secant.ledger.records import START, VERSION, Anchor, Record, following, newer
from secant.ledger.sessions import PostgresSession, errors, psycopg, sql

DEFAULT_SCHEMA = "secant_ledger"
REGISTER = "secant_ledgers"
"""The schema of the list of all ledgers of a database."""
_FROZEN_SECONDS = 60
"""A process that holds the head longer than this without a word loses its transaction."""

_TABLES: tuple[LiteralString, ...] = (
    """CREATE TABLE {schema}.records (
        sequence bigint PRIMARY KEY, body text NOT NULL, digest text NOT NULL)""",
    """CREATE TABLE {schema}.head (
        one integer PRIMARY KEY CHECK (one = 1), version integer NOT NULL,
        sequence bigint NOT NULL, digest text NOT NULL, summary_at bigint NOT NULL)""",
    # Against accidents only: who owns the tables can also drop a trigger.
    """CREATE FUNCTION {schema}.refuse() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION 'ledger records are never changed'; END $$""",
    """CREATE TRIGGER records_stay BEFORE UPDATE OR DELETE OR TRUNCATE ON {schema}.records
        FOR EACH STATEMENT EXECUTE FUNCTION {schema}.refuse()""",
    # What records name by digest; since version 6.
    "CREATE TABLE {schema}.papers (digest text PRIMARY KEY, body bytea NOT NULL)",
)
_REGISTER: tuple[LiteralString, ...] = (
    "CREATE SCHEMA IF NOT EXISTS {register}",
    "CREATE TABLE IF NOT EXISTS {register}.started (name text PRIMARY KEY, ledger text NOT NULL)",
)
_BEGIN_WRITING: tuple[LiteralString, ...] = (
    "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE",
    # The owner of the server may have relaxed these for other work; for a ledger they are not open.
    "SET LOCAL synchronous_commit = on",
)


class PostgresTransaction:
    """One transaction on the schema; for writing it holds the row of the head."""

    def __init__(
        self, connection: psycopg.Connection, schema: sql.Identifier, *, writing: bool
    ) -> None:
        self._connection = connection
        self._schema = schema
        lock: LiteralString = " FOR UPDATE" if writing else ""
        row = self._one("SELECT version, sequence, digest, summary_at FROM {schema}.head" + lock)
        if row is None:
            raise BudgetError("BUD-003", "the ledger has lost its head", hint=_RESTORE)
        self.version: int = row[0]
        if self.version > VERSION:
            raise newer(self.version)
        self._head = Head(Anchor(row[1], row[2]), row[3])
        self.witness: Anchor | None = self._head.anchor  # the server keeps both in one transaction

    def now(self) -> float:
        """Give the server's clock: the machines that share a ledger need not agree on the time."""
        row = self._one("SELECT extract(epoch FROM clock_timestamp())::float8")
        assert row is not None
        return float(row[0])

    def head(self) -> Head:
        """Give the end of the chain."""
        return self._head

    def after(self, sequence: int) -> Iterator[Record]:
        """Give the records that follow, in order."""
        query = "SELECT sequence, body, digest FROM {schema}.records WHERE sequence > %s ORDER BY 1"
        with self._connection.cursor() as cursor:
            for row in cursor.execute(self._text(query), (sequence,)):
                yield Record(*row)

    def at(self, sequence: int) -> Record | None:
        """Give one record, if it is there."""
        row = self._one(
            "SELECT sequence, body, digest FROM {schema}.records WHERE sequence = %s", sequence
        )
        return None if row is None else Record(*row)

    def append(self, record: Record, *, summary_at: int) -> None:
        """Write one record and the new head."""
        self._do(
            "INSERT INTO {schema}.records (sequence, body, digest) VALUES (%s, %s, %s)",
            record.sequence,
            record.body,
            record.digest,
        )
        self._do(
            "UPDATE {schema}.head SET sequence = %s, digest = %s, summary_at = %s",
            record.sequence,
            record.digest,
            summary_at,
        )

    def touch(self) -> None:
        """Write the head as it is."""
        self._do("UPDATE {schema}.head SET sequence = sequence")

    def keep(self, digest: str, paper: str) -> None:
        """Keep a document by its digest; one that is there already stays."""
        self._do(
            "INSERT INTO {schema}.papers (digest, body) VALUES (%s, %s) ON CONFLICT DO NOTHING",
            digest,
            packed(paper),
        )

    def paper(self, digest: str) -> str | None:
        """Give the document of a digest, as it is kept; None if it is not."""
        if self.version < PAPERS:
            return None
        row = self._one("SELECT body FROM {schema}.papers WHERE digest = %s", digest)
        return None if row is None else unpacked(row[0])

    def upgrade(self, head: Head) -> None:
        """Note the current version; ledgers here began with version 2, and papers came with 6."""
        if self.version < PAPERS:
            self._do(_TABLES[-1])
        self._do("UPDATE {schema}.head SET version = %s", VERSION)
        self.version = VERSION

    def _text(self, query: LiteralString) -> sql.Composed:
        return sql.SQL(query).format(schema=self._schema)

    def _do(self, query: LiteralString, *values: object) -> None:
        self._connection.execute(self._text(query), values)

    def _one(self, query: LiteralString, *values: object) -> tuple[Any, ...] | None:
        return self._connection.execute(self._text(query), values).fetchone()


class PostgresJournal:
    """A ledger in a database. A lost connection is an error once, and is then made anew."""

    def __init__(
        self,
        address: str,
        *,
        create: bool = True,
        wait_seconds: float = 30.0,
    ) -> None:
        self._address, name = split_address(address)
        self.started = False
        self._schema = sql.Identifier(name)
        self._wait_seconds = wait_seconds
        with _typed():
            self._session = PostgresSession(self._address, wait_seconds=wait_seconds)
        try:
            with _typed(), self._session.taken() as connection:
                self._prepare(connection, name, create=create)
        except BaseException:
            self.close()
            raise

    def _prepare(self, connection: psycopg.Connection, name: str, *, create: bool) -> None:
        row = connection.execute("SELECT current_setting('fsync')").fetchone()
        if row is None or row[0] != "on":
            raise BudgetError(
                "BUD-002",
                "the server runs with fsync off: a charge could be lost in a power failure",
                hint="turn fsync on, or keep the ledger on another server",
            )
        if _exists(connection, name):
            return
        if not create and not _registered(connection, name):
            raise BudgetError("BUD-002", "there is no ledger at this address")
        with connection.transaction():
            # Two processes may both find nothing; the second one waits here, then finds tables.
            connection.execute("SELECT pg_advisory_xact_lock(hashtext(%s))", (f"secant {name}",))
            if _exists(connection, name):
                return
            if _registered(connection, name):
                raise forgotten(
                    "the ledger is gone: its tables were dropped",
                    hint="restore them from a backup; to start a new ledger with all its budget, "
                    f"delete its row in {REGISTER}.started",
                )
            self._create(connection, name)
            self.started = True

    def _create(self, connection: psycopg.Connection, name: str) -> None:
        statements: tuple[LiteralString, ...] = ("CREATE SCHEMA IF NOT EXISTS {schema}", *_TABLES)
        for statement in statements:
            connection.execute(sql.SQL(statement).format(schema=self._schema))
        connection.execute(
            sql.SQL("INSERT INTO {schema}.head VALUES (1, %s, %s, %s, 0)").format(
                schema=self._schema
            ),
            (VERSION, START.sequence, START.digest),
        )
        transaction = PostgresTransaction(connection, self._schema, writing=True)
        fields = {"ledger": secrets.token_hex(16)}
        transaction.append(following(START, "open", transaction.now(), fields), summary_at=0)
        register = sql.Identifier(REGISTER)
        # Two ledgers of one database may be started at the same moment.
        connection.execute("SELECT pg_advisory_xact_lock(hashtext(%s))", (REGISTER,))
        for statement in _REGISTER:
            connection.execute(sql.SQL(statement).format(register=register))
        connection.execute(
            sql.SQL("INSERT INTO {register}.started VALUES (%s, %s)").format(register=register),
            (name, fields["ledger"]),
        )

    @contextmanager
    def writing(self) -> Iterator[PostgresTransaction]:
        """Begin a transaction that waits for the head and then excludes all other writers."""
        yield from self._transaction(_BEGIN_WRITING, writing=True)

    @contextmanager
    def reading(self) -> Iterator[PostgresTransaction]:
        """Begin a transaction that sees one moment of the ledger."""
        yield from self._transaction(
            ("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",), writing=False
        )

    def _transaction(
        self, begin: tuple[LiteralString, ...], *, writing: bool
    ) -> Iterator[PostgresTransaction]:
        limits = {
            "lock_timeout": f"{int(self._wait_seconds * 1000)}ms",
            "idle_in_transaction_session_timeout": f"{_FROZEN_SECONDS * 1000}ms",
        }
        with _typed(), self._session.transaction(begin, limits) as connection:
            yield PostgresTransaction(connection, self._schema, writing=writing)

    def check_room(self) -> None:
        """The server's own disk says so itself where the head cannot be written."""

    def attest(self, anchor: Anchor, *, backward: bool = False) -> None:
        """Nothing stands beside a ledger on a server: head and records are of one transaction."""

    def close(self) -> None:
        """End the session."""
        self._session.close()


def split_address(address: str) -> tuple[str, str]:
    """Take the schema's name out of the address; the rest is the driver's."""
    parts = urlsplit(address)
    options = parse_qsl(parts.query, keep_blank_values=True)
    names = [value for key, value in options if key == "ledger"] or [DEFAULT_SCHEMA]
    if len(names) > 1 or not names[0] or len(names[0].encode()) > 63 or "\0" in names[0]:
        raise UsageError("USE-001", "the name of a ledger has between 1 and 63 bytes")
    query = urlencode([(key, value) for key, value in options if key != "ledger"])
    return urlunsplit(parts._replace(query=query)), names[0]


def _exists(connection: psycopg.Connection, name: str) -> bool:
    row = connection.execute(
        "SELECT 1 FROM information_schema.tables WHERE table_schema = %s"
        " AND table_name IN ('records', 'head')",
        (name,),
    ).fetchone()
    return row is not None


def _registered(connection: psycopg.Connection, name: str) -> bool:
    row = connection.execute(
        "SELECT 1 FROM information_schema.tables WHERE table_schema = %s AND table_name = 'started'",
        (REGISTER,),
    ).fetchone()
    if row is None:
        return False
    query = sql.SQL("SELECT 1 FROM {register}.started WHERE name = %s").format(
        register=sql.Identifier(REGISTER)
    )
    return connection.execute(query, (name,)).fetchone() is not None


_RESTORE = "restore it from a backup, and compare the digest with the last export"
_MEANINGS: tuple[tuple[type[psycopg.Error], str, str, str], ...] = (
    (errors.LockNotAvailable, "BUD-002", "the ledger is locked", "try again later"),
    (errors.ReadOnlySqlTransaction, "BUD-002", "the ledger is read-only", "use the primary server"),
    (errors.InsufficientPrivilege, "BUD-002", "the ledger is read-only", "grant the rights"),
    (errors.DiskFull, "BUD-002", "the disk of the ledger is full", "free some space"),
    (errors.UndefinedTable, "BUD-003", "the ledger has lost a table", _RESTORE),
    (errors.UndefinedColumn, "BUD-003", "the ledger has lost a column", _RESTORE),
    (errors.DataCorrupted, "BUD-003", "the ledger is damaged", _RESTORE),
    (errors.IndexCorrupted, "BUD-003", "the ledger is damaged", _RESTORE),
    (errors.UniqueViolation, "BUD-003", "the ledger's head is not its last record", _RESTORE),
    (psycopg.OperationalError, "BUD-002", "the ledger cannot be reached", "check the server"),
)


@contextmanager
def _typed() -> Iterator[None]:
    """Turn the driver's errors into ours; its own text is withheld."""
    try:
        yield
    except psycopg.Error as error:
        for kind, code, message, hint in _MEANINGS:
            if isinstance(error, kind):
                raise BudgetError(code, message, hint=hint) from error
        raise BudgetError(
            "BUD-002", "the ledger cannot be used", hint="check the server"
        ) from error
