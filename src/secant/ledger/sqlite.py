"""Records in one SQLite file, for the processes of one machine.

In: a path. Out: a Journal. WAL and synchronous=FULL: when `writing()` ends without an error, the
record has reached the disk. A file that exists is never taken for a new ledger, so a truncated one
cannot reset a budget.
"""

from __future__ import annotations

import os
import secrets
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from secant.errors import BudgetError
from secant.ledger.journal import Head, PerProcess
from secant.ledger.records import START, VERSION, Anchor, Record, following, newer

APPLICATION_ID = 0x5ECA4719
"""Marks the file as a ledger of ours, so that no other SQLite file is taken for one."""

_VERSION_1 = (
    """CREATE TABLE records (
        sequence INTEGER PRIMARY KEY, body TEXT NOT NULL, digest TEXT NOT NULL
    ) STRICT""",
)
_VERSION_2 = (
    """CREATE TABLE head (
        one INTEGER PRIMARY KEY CHECK (one = 1),
        sequence INTEGER NOT NULL, digest TEXT NOT NULL, summary_at INTEGER NOT NULL
    ) STRICT""",
    # Against accidents only: who can write the file can also drop a trigger.
    """CREATE TRIGGER records_stay BEFORE DELETE ON records
        BEGIN SELECT RAISE(ABORT, 'ledger records are never deleted'); END""",
    """CREATE TRIGGER records_hold BEFORE UPDATE ON records
        BEGIN SELECT RAISE(ABORT, 'ledger records are never changed'); END""",
)


class SqliteTransaction:
    """One transaction on the file."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self.version: int = connection.execute("PRAGMA user_version").fetchone()[0]
        if self.version > VERSION:  # a newer Secant may have come by while we had the file open
            raise newer(self.version)

    def now(self) -> float:
        """Give this machine's clock."""
        return time.time()

    def head(self) -> Head | None:
        """Give the end of the chain, if this version keeps it."""
        if self.version < 2:
            return None
        row = self._connection.execute("SELECT sequence, digest, summary_at FROM head").fetchone()
        if row is None:
            raise BudgetError("BUD-003", "the ledger has lost its head", hint=_RESTORE)
        return Head(Anchor(row[0], row[1]), row[2])

    def after(self, sequence: int) -> Iterator[Record]:
        """Give the records that follow, in order."""
        for row in self._connection.execute(
            "SELECT sequence, body, digest FROM records WHERE sequence > ? ORDER BY sequence",
            (sequence,),
        ):
            yield Record(*row)

    def at(self, sequence: int) -> Record | None:
        """Give one record, if it is there."""
        row = self._connection.execute(
            "SELECT sequence, body, digest FROM records WHERE sequence = ?", (sequence,)
        ).fetchone()
        return None if row is None else Record(*row)

    def append(self, record: Record, *, summary_at: int) -> None:
        """Write one record and the new head."""
        self._connection.execute(
            "INSERT INTO records (sequence, body, digest) VALUES (?, ?, ?)",
            (record.sequence, record.body, record.digest),
        )
        self._connection.execute(
            "UPDATE head SET sequence = ?, digest = ?, summary_at = ?",
            (record.sequence, record.digest, summary_at),
        )

    def upgrade(self, head: Head) -> None:
        """Bring the tables to the current version; records are not touched."""
        for statement in (*_VERSION_2, f"PRAGMA user_version = {VERSION}"):
            self._connection.execute(statement)
        self._connection.execute(
            "INSERT INTO head (one, sequence, digest, summary_at) VALUES (1, ?, ?, ?)",
            (head.anchor.sequence, head.anchor.digest, head.summary_at),
        )
        self.version = VERSION


class SqliteJournal:
    """A ledger file. Threads may share it; after a fork the child gets its own connection."""

    def __init__(self, path: Path, *, create: bool = True, wait_seconds: float = 30.0) -> None:
        self._path = path.absolute()
        self._wait_seconds = wait_seconds
        with _typed():
            if create and not self._path.exists():
                create_file(self._path)
        self._connection = PerProcess(self._connect, sqlite3.Connection.close)

    def _connect(self) -> sqlite3.Connection:
        with _typed():
            # A file of zero bytes is a valid empty database to SQLite; to us it is a lost ledger.
            if self._path.exists() and self._path.stat().st_size == 0:
                raise BudgetError("BUD-003", "the ledger file is empty", hint=_RESTORE)
            connection = sqlite3.connect(
                f"{self._path.as_uri()}?mode=rw",
                uri=True,
                timeout=self._wait_seconds,
                isolation_level=None,
                check_same_thread=False,
            )
            try:
                if connection.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
                    raise BudgetError("BUD-002", "the file is not a Secant ledger")
                connection.execute("PRAGMA synchronous = FULL")
            except BaseException:
                connection.close()
                raise
            return connection

    @contextmanager
    def writing(self) -> Iterator[SqliteTransaction]:
        """Begin a transaction that excludes all other writers; commit it at the end."""
        yield from self._transaction("BEGIN IMMEDIATE")

    @contextmanager
    def reading(self) -> Iterator[SqliteTransaction]:
        """Begin a transaction that sees one moment of the file."""
        yield from self._transaction("BEGIN")

    def _transaction(self, begin: str) -> Iterator[SqliteTransaction]:
        with self._connection.taken() as connection, _typed():
            connection.execute(begin)
            try:
                yield SqliteTransaction(connection)
                connection.execute("COMMIT")
            except BaseException:
                # SQLite may have rolled back by itself (full disk); then there is nothing to undo.
                with suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")
                raise

    def close(self) -> None:
        """Close the file."""
        self._connection.drop()


def create_file(path: Path) -> None:
    """Make a new ledger at `path`, whole or not at all; if somebody else was first, keep theirs."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}.new")
    try:
        with closing(sqlite3.connect(draft, isolation_level=None)) as connection:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("BEGIN IMMEDIATE")
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            for statement in _VERSION_1:
                connection.execute(statement)
            transaction = SqliteTransaction(connection)
            transaction.upgrade(Head(START, 0))
            fields = {"ledger": secrets.token_hex(16)}
            transaction.append(following(START, "open", time.time(), fields), summary_at=0)
            connection.execute("COMMIT")
        with suppress(FileExistsError):
            os.link(draft, path)  # a link, unlike a rename, never replaces what is there
        _sync_directory(path.parent)
    finally:
        for leftover in (draft, Path(f"{draft}-wal"), Path(f"{draft}-shm")):
            leftover.unlink(missing_ok=True)


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


_RESTORE = "restore it from a backup, and compare the digest with the last export"
_MEANINGS: dict[int, tuple[str, str, str]] = {
    sqlite3.SQLITE_BUSY: ("BUD-002", "the ledger is locked by another process", "try again later"),
    sqlite3.SQLITE_LOCKED: ("BUD-002", "the ledger is locked", "try again later"),
    sqlite3.SQLITE_READONLY: ("BUD-002", "the ledger is read-only", "make the file writable"),
    sqlite3.SQLITE_FULL: ("BUD-002", "the disk of the ledger is full", "free some space"),
    sqlite3.SQLITE_IOERR: ("BUD-002", "the ledger cannot be written or read", "check the disk"),
    sqlite3.SQLITE_CANTOPEN: ("BUD-002", "the ledger cannot be opened", "check path and rights"),
    sqlite3.SQLITE_PERM: ("BUD-002", "the ledger cannot be opened", "check path and rights"),
    sqlite3.SQLITE_NOTADB: ("BUD-003", "the ledger file is damaged or no ledger", _RESTORE),
    sqlite3.SQLITE_CORRUPT: ("BUD-003", "the ledger file is damaged", _RESTORE),
    sqlite3.SQLITE_ERROR: ("BUD-003", "the ledger has lost a table", _RESTORE),
}


@contextmanager
def _typed() -> Iterator[None]:
    """Turn SQLite's and the system's errors into ours."""
    try:
        yield
    except sqlite3.Error as error:
        primary = (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF
        code, message, hint = _MEANINGS.get(
            primary, ("BUD-002", "the ledger cannot be used", "check the file")
        )
        raise BudgetError(code, message, hint=hint) from error
    except OSError as error:
        raise BudgetError(
            "BUD-002", "the ledger cannot be opened or written", hint="check path, rights and space"
        ) from error
