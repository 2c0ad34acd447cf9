"""Where the service keeps what it must not forget: users, tokens, the audit log, answers, requests.

In: SQL that SQLite and PostgreSQL both understand, with `?` for values. Out: rows. The store stands beside the ledger
and in the same kind of place. Budgets are never kept here, and no true answer ever is.
"""

from __future__ import annotations

import os
import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

from secant.errors import ServiceError, UsageError
from secant.runtime.processes import PerProcess

VERSION = 2
APPLICATION_ID = 0x5ECA5EF1
"""Marks the file as ours, so that no other SQLite file is taken for a store of users."""
ENDING = ".service"

# One text for both engines: types that SQLite takes by affinity and PostgreSQL by name.
_FAILURES = """CREATE TABLE failures (
        key TEXT PRIMARY KEY, who TEXT NOT NULL, times BIGINT NOT NULL, latest DOUBLE PRECISION NOT NULL)"""
_INDEXES = (
    "CREATE INDEX tokens_by_holder ON tokens (holder)",
    "CREATE INDEX questions_of_user ON questions (who, charged, at, size)",
    "CREATE INDEX questions_by_charge ON questions (charged, at)",
    "CREATE INDEX answers_by_charge ON answers (charged, expires, size)",
    "CREATE INDEX requests_of_user ON requests (who, state, at, size)",
)
_TABLES = (
    "CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    """CREATE TABLE users (
        key TEXT PRIMARY KEY, name TEXT NOT NULL, role TEXT NOT NULL, created DOUBLE PRECISION NOT NULL,
        salt TEXT NOT NULL, iterations BIGINT NOT NULL, stored_key TEXT NOT NULL, server_key TEXT NOT NULL,
        ended DOUBLE PRECISION NOT NULL DEFAULT 0)""",
    """CREATE TABLE tokens (
        digest TEXT PRIMARY KEY, id TEXT NOT NULL, holder TEXT NOT NULL, kind TEXT NOT NULL, note TEXT NOT NULL,
        created DOUBLE PRECISION NOT NULL, expires DOUBLE PRECISION NOT NULL,
        parent TEXT NOT NULL DEFAULT '', maker TEXT NOT NULL DEFAULT '')""",
    _FAILURES,
    """CREATE TABLE audit (
        id TEXT PRIMARY KEY, at DOUBLE PRECISION NOT NULL, kind TEXT NOT NULL, who TEXT NOT NULL,
        about TEXT NOT NULL, actor TEXT NOT NULL DEFAULT '', address TEXT NOT NULL DEFAULT '',
        token TEXT NOT NULL DEFAULT '', request TEXT NOT NULL DEFAULT '', way TEXT NOT NULL DEFAULT '')""",
    "CREATE INDEX audit_by_time ON audit (at)",
    """CREATE TABLE questions (
        id TEXT PRIMARY KEY, at DOUBLE PRECISION NOT NULL, who TEXT NOT NULL, body TEXT NOT NULL,
        outcome TEXT NOT NULL, release_id TEXT NOT NULL,
        charged BIGINT NOT NULL DEFAULT 1, size BIGINT NOT NULL DEFAULT 0)""",
    "CREATE INDEX questions_by_time ON questions (at)",
    """CREATE TABLE answers (
        key TEXT PRIMARY KEY, at DOUBLE PRECISION NOT NULL, expires DOUBLE PRECISION NOT NULL,
        body TEXT NOT NULL, charged BIGINT NOT NULL DEFAULT 1, size BIGINT NOT NULL DEFAULT 0)""",
    "CREATE INDEX answers_by_end ON answers (expires)",
    """CREATE TABLE requests (
        who TEXT NOT NULL, key TEXT NOT NULL, digest TEXT NOT NULL, state TEXT NOT NULL,
        body TEXT NOT NULL, at DOUBLE PRECISION NOT NULL, size BIGINT NOT NULL DEFAULT 0,
        PRIMARY KEY (who, key))""",
    *_INDEXES,
)
_FROM_1 = (
    "ALTER TABLE users ADD COLUMN ended DOUBLE PRECISION NOT NULL DEFAULT 0",
    *(
        f"ALTER TABLE tokens ADD COLUMN {name} TEXT NOT NULL DEFAULT ''"
        for name in ("parent", "maker")
    ),
    *(
        f"ALTER TABLE audit ADD COLUMN {name} TEXT NOT NULL DEFAULT ''"
        for name in ("actor", "address", "token", "request", "way")
    ),
    "DROP TABLE failures",
    _FAILURES,
    *(
        f"ALTER TABLE {name} ADD COLUMN charged BIGINT NOT NULL DEFAULT 1"
        for name in ("questions", "answers")
    ),
    *(
        f"ALTER TABLE {name} ADD COLUMN size BIGINT NOT NULL DEFAULT 0"
        for name in ("questions", "answers", "requests")
    ),
    "UPDATE questions SET size = length(body)",
    # What failed or was canceled may have been charged; it stays, like what was answered for a charge.
    "UPDATE questions SET charged = 0 WHERE outcome IN ('refused', 'reused')",
    "UPDATE questions SET charged = 0 WHERE outcome = 'answered' AND release_id = ''",
    "UPDATE answers SET size = length(body)",
    "UPDATE requests SET size = length(body)",
    *_INDEXES,
    f"UPDATE meta SET value = '{VERSION}' WHERE name = 'version'",
)
"""From version 1: tokens have parents, lines of the log have origins, what is kept for nothing has a size."""


class Rows(Protocol):
    """One transaction."""

    def do(self, statement: str, *values: object) -> int:
        """Run a statement and give how many rows it changed."""

    def all(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        """Run a query and give its rows."""

    def one(self, statement: str, *values: object) -> tuple[Any, ...] | None:
        """Run a query and give its first row, if there is one."""


class Store(Protocol):
    """An open store. Threads may share it."""

    def writing(self) -> AbstractContextManager[Rows]:
        """Begin a transaction that excludes other writers; commit it at the end, durably."""

    def reading(self) -> AbstractContextManager[Rows]:
        """Begin a transaction that only looks."""

    def close(self) -> None:
        """Let go of the file or connection."""


def store_place(ledger: str | Path) -> str | Path:
    """Say where the store of a ledger is: beside it."""
    return ledger if "://" in str(ledger) else Path(f"{ledger}{ENDING}")


def open_store(ledger: str | Path) -> Store:
    """Open the store beside a ledger; make it if there is none. It begins without users."""
    location = store_place(ledger)
    if isinstance(location, Path):
        return _Sqlite(location)
    from secant.service.store_postgres import PostgresStore  # the driver is an extra

    return PostgresStore(location)


def prepared(rows: Rows) -> None:
    """Make the tables of a store that has none, with a secret of its own."""
    for statement in _TABLES:
        rows.do(statement)
    for name, value in (("version", str(VERSION)), ("secret", secrets.token_hex(32))):
        rows.do("INSERT INTO meta (name, value) VALUES (?, ?)", name, value)


def upgrade(rows: Rows) -> None:
    """Bring the tables of the version before to this one; raise if Secant does not know them. Needs a writer's rows."""
    if version_of(rows) == "1":
        for statement in _FROM_1:
            rows.do(statement)
    if version_of(rows) != str(VERSION):
        raise broken("the store of users was written by another version", "use that version")


def version_of(rows: Rows) -> str:
    """Give the version of the tables."""
    row = rows.one("SELECT value FROM meta WHERE name = 'version'")
    return "" if row is None else str(row[0])


def secret_of(store: Store) -> bytes:
    """Give the secret of the store: for answers to names that nobody has, and for marks of forms."""
    with store.reading() as rows:
        row = rows.one("SELECT value FROM meta WHERE name = 'secret'")
    if row is None:
        raise broken("the store of users has lost its secret", "restore it from a backup")
    return bytes.fromhex(row[0])


def check_writable(store: Store) -> None:
    """Raise SRV-005 unless the store can be written now."""
    with store.writing() as rows:
        rows.do("DELETE FROM meta WHERE name = 'written'")
        # Another value each time: SQLite does not write a row that stays as it is.
        value = secrets.token_hex(8)
        rows.do("INSERT INTO meta (name, value) VALUES ('written', ?)", value)


def broken(what: str, hint: str) -> ServiceError:
    """Say that the store cannot be used."""
    return ServiceError("SRV-005", what, hint=hint)


class _SqliteRows:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def do(self, statement: str, *values: object) -> int:
        return self._connection.execute(statement, values).rowcount

    def all(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        return self._connection.execute(statement, values).fetchall()

    def one(self, statement: str, *values: object) -> tuple[Any, ...] | None:
        row: tuple[Any, ...] | None = self._connection.execute(statement, values).fetchone()
        return row


class _Sqlite:
    """A store in one file, for the processes of one machine."""

    def __init__(self, path: Path) -> None:
        self._path = path.absolute()
        with _typed():
            _create(self._path)
            self._connection = PerProcess(self._connect, sqlite3.Connection.close)

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            f"{self._path.as_uri()}?mode=rw",
            uri=True,
            timeout=30.0,
            isolation_level=None,
            check_same_thread=False,
        )
        try:
            if connection.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
                raise broken("the file beside the ledger is no store of users", "move it away")
            connection.execute("PRAGMA journal_mode = WAL")
            # A request that was noted must stay noted after a power failure: it keeps a second charge away.
            connection.execute("PRAGMA synchronous = FULL")
            self._upgrade(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    @staticmethod
    def _upgrade(connection: sqlite3.Connection) -> None:
        rows = _SqliteRows(connection)
        if version_of(rows) == str(VERSION):
            return
        connection.execute("BEGIN IMMEDIATE")
        try:
            upgrade(rows)
            connection.execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
            raise

    @contextmanager
    def writing(self) -> Iterator[Rows]:
        yield from self._transaction("BEGIN IMMEDIATE")

    @contextmanager
    def reading(self) -> Iterator[Rows]:
        yield from self._transaction("BEGIN")

    def _transaction(self, begin: str) -> Iterator[Rows]:
        with _typed(), self._connection.taken() as connection:
            connection.execute(begin)
            try:
                yield _SqliteRows(connection)
                connection.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")
                raise

    def close(self) -> None:
        with _typed():
            self._connection.drop()


def _create(path: Path) -> None:
    """Make a new store, whole or not at all; if somebody else was first, keep theirs. Only its owner may read it."""
    if path.exists():
        return
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}.new")
    try:
        os.close(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        connection = sqlite3.connect(draft, isolation_level=None)
        try:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            prepared(_SqliteRows(connection))
            connection.execute("COMMIT")
        finally:
            connection.close()
        with suppress(FileExistsError):
            os.link(draft, path)  # a link, unlike a rename, never replaces what is there
    finally:
        draft.unlink(missing_ok=True)
        Path(f"{draft}-journal").unlink(missing_ok=True)


@contextmanager
def _typed() -> Iterator[None]:
    """Turn SQLite's and the system's errors into ours."""
    try:
        yield
    except sqlite3.Error as error:
        raise broken(
            "the store of users cannot be read or written",
            "check the file, its rights and the disk",
        ) from error
    except OSError as error:
        raise broken(
            "the store of users cannot be opened", "check the folder of the ledger and its rights"
        ) from error


def check_printable(what: str, text: object, longest: int) -> str:
    """Give a text that can be written into a log as it is; refuse any other."""
    if not isinstance(text, str) or not text.isprintable() or len(text) > longest:
        raise UsageError("USE-001", f"{what} has up to {longest} printable characters")
    return text
