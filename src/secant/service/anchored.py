"""An anchor of the ledger that is kept elsewhere: an old copy of ledger and users that was put back is noticed.

In: a file on a disk that whoever can write the ledger cannot set back. Out: BUD-007 if the ledger does not go through
what the file says. The file moves before an answer leaves, so that every answer that somebody saw is behind it. The
anchor beside the ledger cannot show this: it is put back with the ledger.
"""

from __future__ import annotations

import threading
from pathlib import Path

from secant.errors import BudgetError
from secant.ledger.anchor import forgotten, read_anchor_at, try_to_write, write_anchor_at
from secant.ledger.records import Anchor
from secant.ledger.store import Ledger


class Anchored:
    """The anchor that is kept elsewhere, if the owner named a place for it."""

    def __init__(self, path: Path | None) -> None:
        self._place = path
        self._lock = threading.Lock()
        self._checked: Anchor | None = None

    def check(self, ledger: Ledger) -> None:
        """Raise BUD-007 if the ledger does not go through the anchor; looks at the file each time."""
        if self._place is None:
            return
        anchor = self._read(self._place)
        if anchor is None:
            self.move(ledger)  # the first start with this place
            return
        with self._lock:
            if anchor == self._checked:
                return
        if not ledger.goes_through(anchor):
            raise forgotten(
                f"the ledger does not go through the anchor kept elsewhere, record {anchor.sequence}: "
                "charges are lost",
                hint="an old copy was put back: restore the newest one; if it is whole, write down why and "
                "remove the anchor kept elsewhere",
            )
        with self._lock:
            self._checked = anchor

    def check_writable(self) -> None:
        """Raise BUD-002 where the anchor could not be moved now."""
        if self._place is not None:
            try:
                try_to_write(self._place, 4096)
            except OSError as error:
                raise _unwritten() from error

    def move(self, ledger: Ledger) -> None:
        """Make durable elsewhere how far the ledger has come."""
        if self._place is None:
            return
        reached = ledger.end()
        try:
            write_anchor_at(self._place, reached)
        except OSError as error:
            raise _unwritten() from error
        with self._lock:
            self._checked = reached

    def _read(self, path: Path) -> Anchor | None:
        try:
            return read_anchor_at(path)
        except OSError as error:
            raise _unwritten() from error


def _unwritten() -> BudgetError:
    return BudgetError(
        "BUD-002",
        "the anchor that is kept elsewhere cannot be read or written",
        hint="the owner checks its place; no answer leaves before it has moved",
    )
