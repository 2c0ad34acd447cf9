"""Where records are kept: the small interface that SQLite and PostgreSQL both fulfil.

In: records to append. Out: records, in order, as they were written. A journal knows no budgets.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import ClassVar, Generic, Protocol, TypeVar

from secant.ledger.records import Anchor, Record

Connection = TypeVar("Connection")


@dataclass(frozen=True, slots=True)
class Head:
    """The end of the chain, kept beside the records: a lost tail shows."""

    anchor: Anchor
    summary_at: int
    """Sequence number of the last summary; 0 if there is none."""


class Transaction(Protocol):
    """A view of the journal; one opened for writing keeps all other writers out."""

    @property
    def version(self) -> int:
        """Give the schema version of the store."""

    @property
    def witness(self) -> Anchor | None:
        """Give the place that the chain must go through by what is kept beside it; None if nothing is."""

    def now(self) -> float:
        """Give the journal's own clock, in seconds since 1970 (UTC)."""

    def head(self) -> Head | None:
        """Give the end of the chain; None in a store of version 1, which did not keep it."""

    def after(self, sequence: int) -> Iterator[Record]:
        """Give the records that follow, in order."""

    def at(self, sequence: int) -> Record | None:
        """Give one record, if it is there."""

    def append(self, record: Record, *, summary_at: int) -> None:
        """Write one record and the new head; durable when the transaction ends without an error."""

    def upgrade(self, head: Head) -> None:
        """Bring the store's tables to the current version; records are not touched."""


class Journal(Protocol):
    """An open store of records."""

    @property
    def started(self) -> bool:
        """Say whether the store was empty until now: a new ledger began."""

    def writing(self) -> AbstractContextManager[Transaction]:
        """Begin a transaction that waits its turn and then excludes all other writers."""

    def reading(self) -> AbstractContextManager[Transaction]:
        """Begin a transaction that only looks, at one moment of the store."""

    def attest(self, anchor: Anchor, *, backward: bool = False) -> None:
        """Make durable, beside the store, that the chain has come as far as `anchor`."""

    def close(self) -> None:
        """Let go of files and connections."""


class ProcessLock:
    """A lock between threads that a forked child finds free, whoever held it in the parent."""

    def __init__(self) -> None:
        self._process, self._lock = os.getpid(), threading.RLock()

    def __enter__(self) -> None:
        if self._process != os.getpid():
            self._process, self._lock = os.getpid(), threading.RLock()
        self._lock.acquire()

    def __exit__(self, *error: object) -> None:
        self._lock.release()


class PerProcess(Generic[Connection]):
    """One connection that the threads of a process take in turns; a forked child opens its own."""

    _abandoned: ClassVar[list[object]] = []
    """Inherited over a fork: closing one in the child would end the parent's session or locks."""

    def __init__(
        self, connect: Callable[[], Connection], close: Callable[[Connection], None]
    ) -> None:
        self._connect, self._close = connect, close
        self._process = os.getpid()
        self._connection: Connection | None = connect()
        self._lock = ProcessLock()

    @contextmanager
    def taken(self) -> Iterator[Connection]:
        """Give this process's connection and keep other threads away from it meanwhile."""
        with self._lock:
            if self._process != os.getpid():
                self._abandoned.append(self._connection)
                self._process, self._connection = os.getpid(), None
            if self._connection is None:
                self._connection = self._connect()
            yield self._connection

    def drop(self) -> None:
        """Close the connection; the next one to take it opens another."""
        with self._lock:
            if self._process == os.getpid() and self._connection is not None:
                self._close(self._connection)
                self._connection = None
