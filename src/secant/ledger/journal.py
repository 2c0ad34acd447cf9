"""Where records are kept: the small interface that SQLite and PostgreSQL both fulfill.

In: records to append. Out: records, in order, as they were written. A journal knows no budgets.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Protocol

from secant.ledger.records import Anchor, Record
from secant.records import frozen

PAPERS = 6
"""From this version on stores keep the papers of releases."""


@frozen
class Head:
    """The end of the chain, kept beside the records: a lost tail shows."""

    anchor: Anchor
    summary_at: int
    """Sequence number of the last summary; 0 if there is none."""


def packed(paper: str) -> bytes:
    """Give a document as stores keep it."""
    return zlib.compress(paper.encode())


def unpacked(body: object) -> str:
    """Read a document again; what is damaged gives a text that its digest does not name."""
    try:
        return zlib.decompress(bytes(body)).decode()  # type: ignore[call-overload]
    except (zlib.error, UnicodeDecodeError, TypeError, ValueError):
        return ""


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

    def touch(self) -> None:
        """Write the head as it is: where this fails, no record can be written either."""

    def keep(self, digest: str, paper: str) -> None:
        """Keep a document by its digest; one that is there already stays."""

    def paper(self, digest: str) -> str | None:
        """Give the document of a digest, as it is kept; None if it is not."""

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

    def check_room(self) -> None:
        """Raise BUD-002 where there is no room for a further record; leaves nothing behind."""

    def attest(self, anchor: Anchor, *, backward: bool = False) -> None:
        """Make durable, beside the store, that the chain has come as far as `anchor`."""

    def close(self) -> None:
        """Let go of files and connections."""
