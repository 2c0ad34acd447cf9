"""Records in one SQLite file, for the processes of one machine.

In: a path. Out: a Journal. A rollback journal and synchronous=FULL: when `writing()` ends without an
error, the record has reached the file itself, and nothing that matters is left beside it. A file that
exists is never taken for a new ledger, and one that is gone is not replaced while its anchor stands
beside (ledger.witness): neither can reset a budget.
"""

from __future__ import annotations

import os
import secrets
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from secant.errors import BudgetError
from secant.ledger.anchor import anchor_file, forgotten, read_anchor, try_to_write, write_anchor
from secant.ledger.journal import PAPERS, Head, packed, unpacked
from secant.ledger.records import START, VERSION, Anchor, Record, following, newer
from secant.runtime.processes import PerProcess

APPLICATION_ID = 0x5ECA4719
"""Marks the file as a ledger of ours, so that no other SQLite file is taken for one."""
ANCHORED = 3
"""From this version on an anchor stands beside the file; a ledger of before gets it when it is written to."""
_SETTINGS = (
    # A write-ahead log is a second file that can be lost or damaged without a trace. FULL syncs the
    # journal's end too, so that no committed record comes undone after a power failure.
    "PRAGMA journal_mode = TRUNCATE",
    "PRAGMA synchronous = FULL",
)

ROOM = 1 << 18
"""Bytes that must be free beside a ledger: more than one release takes, with its papers and SQLite's journal."""
SIDE_FILES = ("-journal", "-wal", "-shm")
"""What SQLite may leave beside a file, by the ends of their names."""

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
_VERSION_6 = (
    # What records name by digest: each text once, however many releases share it.
    "CREATE TABLE papers (digest TEXT PRIMARY KEY, body BLOB NOT NULL) STRICT, WITHOUT ROWID",
)


class SqliteTransaction:
    """One transaction on the file."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection = connection
        # The first read locks the file: whoever commits waits for us, so the anchor cannot be ahead.
        self.version: int = connection.execute("PRAGMA user_version").fetchone()[0]
        if self.version > VERSION:  # a newer Secant may have come by while we had the file open
            raise newer(self.version)
        self.witness = read_anchor(path)

    def check_anchored(self) -> None:
        """Raise if there should be an anchor and is none. One that holds no charge yet needs none."""
        head = self.head()
        if self.witness is None and self.version >= ANCHORED and head and head.anchor.sequence > 1:
            raise forgotten("the anchor beside the ledger is missing")

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
        sequence, digest, summary_at = _typed_row(row, (int, str, int))
        return Head(Anchor(sequence, digest), summary_at)

    def after(self, sequence: int) -> Iterator[Record]:
        """Give the records that follow, in order."""
        for row in self._connection.execute(
            "SELECT sequence, body, digest FROM records WHERE sequence > ? ORDER BY sequence",
            (sequence,),
        ):
            yield Record(*_typed_row(row, (int, str, str)))

    def at(self, sequence: int) -> Record | None:
        """Give one record, if it is there."""
        row = self._connection.execute(
            "SELECT sequence, body, digest FROM records WHERE sequence = ?", (sequence,)
        ).fetchone()
        return None if row is None else Record(*_typed_row(row, (int, str, str)))

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

    def touch(self) -> None:
        """Write the head as it is."""
        # A row that is set to what it holds is not written; the head of the file is.
        self._connection.execute(f"PRAGMA user_version = {self.version}")

    def keep(self, digest: str, paper: str) -> None:
        """Keep a document by its digest; one that is there already stays."""
        self._connection.execute(
            "INSERT INTO papers (digest, body) VALUES (?, ?) ON CONFLICT DO NOTHING",
            (digest, packed(paper)),
        )

    def paper(self, digest: str) -> str | None:
        """Give the document of a digest, as it is kept; None if it is not."""
        if self.version < PAPERS:
            return None
        row = self._connection.execute(
            "SELECT body FROM papers WHERE digest = ?", (digest,)
        ).fetchone()
        return None if row is None else unpacked(row[0])

    def upgrade(self, head: Head) -> None:
        """Bring the tables to the current version; records are not touched."""
        if self.version < 2:
            for statement in _VERSION_2:
                self._connection.execute(statement)
            self._connection.execute(
                "INSERT INTO head (one, sequence, digest, summary_at) VALUES (1, ?, ?, ?)",
                (head.anchor.sequence, head.anchor.digest, head.summary_at),
            )
        if self.version < PAPERS:
            for statement in _VERSION_6:
                self._connection.execute(statement)
        self._connection.execute(f"PRAGMA user_version = {VERSION}")
        self.version = VERSION


class SqliteJournal:
    """A ledger file. Threads may share it; after a fork the child gets its own connection."""

    def __init__(
        self,
        path: Path,
        *,
        create: bool = True,
        wait_seconds: float = 30.0,
        restored: bool = False,
    ) -> None:
        self._path = path.absolute()
        self._wait_seconds = wait_seconds
        self._restored = restored
        self._file: tuple[int, int] | None = None
        with _typed():
            self.started = not self._path.exists() and self._start(create=create)
        self._connection = PerProcess(self._connect, sqlite3.Connection.close)

    def _start(self, *, create: bool) -> bool:
        """Make a missing ledger, unless something beside it says that there was one."""
        left = [anchor_file(self._path), *(Path(f"{self._path}{end}") for end in SIDE_FILES)]
        for trace in left:
            if trace.exists():
                raise forgotten(
                    f"the ledger is gone, but {trace.name} is still there",
                    hint="restore the ledger from a backup; to start a new one with all its budget,"
                    f" remove {trace.name} as well",
                )
        if not create:
            raise BudgetError(
                "BUD-002",
                "the ledger cannot be opened: there is none at this place",
                hint="check the path; the first release that is charged starts a ledger",
            )
        return create_file(self._path)

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
                before = _identity(self._path)
                if connection.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
                    raise BudgetError("BUD-002", "the file is not a Secant ledger")
                connection.execute("PRAGMA synchronous = FULL")
                self._file = before
                self._check_file()
            except BaseException:
                connection.close()
                raise
            return connection

    def _check_file(self) -> None:
        """Raise unless the path still leads to the file that is open.

        SQLite goes on with a file that was deleted; its records would be nowhere, and whoever comes
        next would find all the budget.
        """
        if _identity(self._path) != self._file:
            raise forgotten(
                "the ledger file was removed or replaced while it was open",
                hint="stop releasing; put the file back, then open the ledger again",
            )

    @contextmanager
    def writing(self) -> Iterator[SqliteTransaction]:
        """Begin a transaction that excludes all other writers; commit it at the end."""
        with self._connection.taken() as connection, _typed():
            for (
                setting
            ) in _SETTINGS:  # a ledger of before version 3 gives up its write-ahead log here
                connection.execute(setting)
            yield from self._transaction(connection, "BEGIN IMMEDIATE")
            self._check_file()  # what was committed to a deleted file is nowhere

    @contextmanager
    def reading(self) -> Iterator[SqliteTransaction]:
        """Begin a transaction that sees one moment of the file."""
        with self._connection.taken() as connection, _typed():
            yield from self._transaction(connection, "BEGIN")
        with _typed():
            self._let_go_of_old_form()

    def _let_go_of_old_form(self) -> None:
        # Who holds a write-ahead log open keeps the first writer from giving it up.
        with self._connection.taken() as connection:
            mode = connection.execute("PRAGMA journal_mode").fetchone()[0]
        if mode == "wal":
            self._connection.drop()

    def _transaction(
        self, connection: sqlite3.Connection, begin: str
    ) -> Iterator[SqliteTransaction]:
        connection.execute(begin)
        try:
            self._check_file()
            transaction = SqliteTransaction(connection, self._path)
            if not self._restored:
                transaction.check_anchored()
            yield transaction
            connection.execute("COMMIT")
        except BaseException:
            # SQLite may have rolled back by itself (full disk); then there is nothing to undo.
            with suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
            raise

    def check_room(self) -> None:
        """Raise BUD-002 where the folder takes no file of the size of a release and its papers."""
        with _typed():
            try_to_write(self._path, ROOM)

    def attest(self, anchor: Anchor, *, backward: bool = False) -> None:
        """Make durable, beside the file, that the chain has come as far as `anchor`."""
        with _typed():
            write_anchor(self._path, anchor, backward=backward)
        self._restored = self._restored and not backward

    def close(self) -> None:
        """Close the file."""
        self._connection.drop()


def _typed_row(row: tuple[Any, ...], types: tuple[type, ...]) -> tuple[Any, ...]:
    """Give the row; in a damaged file a column may hold anything, whatever was declared."""
    if tuple(type(value) for value in row) != types:
        raise BudgetError("BUD-003", "the ledger file is damaged", hint=_RESTORE)
    return row


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino


def create_file(path: Path) -> bool:
    """Make a new ledger at `path`, whole or not at all; if somebody else was first, keep theirs.

    Says whether the ledger is ours. Nobody but its owner may read or write it.
    """
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}.new")
    try:
        os.close(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        with closing(sqlite3.connect(draft, isolation_level=None)) as connection:
            for setting in _SETTINGS:
                connection.execute(setting)
            connection.execute("BEGIN IMMEDIATE")
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            for statement in _VERSION_1:
                connection.execute(statement)
            transaction = SqliteTransaction(connection, draft)
            transaction.upgrade(Head(START, 0))
            fields = {"ledger": secrets.token_hex(16)}
            first = following(START, "open", time.time(), fields)
            transaction.append(first, summary_at=0)
            connection.execute("COMMIT")
        try:
            os.link(draft, path)  # a link, unlike a rename, never replaces what is there
        except FileExistsError:
            return False
        _sync_directory(path.parent)
        write_anchor(path, Anchor(first.sequence, first.digest))
        return True
    finally:
        for leftover in (draft, *(Path(f"{draft}{end}") for end in SIDE_FILES)):
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
    except (
        UnicodeDecodeError
    ) as error:  # SQLite quotes what it cannot read, and Python cannot either
        raise BudgetError("BUD-003", "the ledger file is damaged", hint=_RESTORE) from error
    except OSError as error:
        raise BudgetError(
            "BUD-002", "the ledger cannot be opened or written", hint="check path, rights and space"
        ) from error
