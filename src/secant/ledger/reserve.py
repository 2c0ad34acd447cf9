"""The protocol of one release: reserve, mark as sent, settle (ledger.reserve in PROOFS.md).

In: a reservation that the ledger granted. Out: durable records of how far it went. The budget goes
back only while the ledger proves that no statement was sent; `mark_sent` is durable before the
first one (I6).
"""

from __future__ import annotations

from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING

from secant.errors import BudgetError
from secant.ledger.amounts import Charge

if TYPE_CHECKING:
    from secant.ledger.store import Ledger


class Reservation:
    """Budget that is held for one release.

    Leaving the `with` block without `mark_sent()` gives the budget back; leaving it afterwards
    keeps the budget spent, whatever happened inside.
    """

    def __init__(self, ledger: Ledger, release_id: str, charges: tuple[Charge, ...]) -> None:
        self._ledger = ledger
        self._ended = False
        self._sent = False
        self.release_id = release_id
        self.charges = charges

    def mark_sent(self) -> None:
        """Make durable that statements may go out from now on; raise if the reservation has ended.

        Nothing may be sent unless this returns. A second call is harmless.
        """
        if self._ended:
            raise BudgetError("BUD-006", "the reservation has ended", hint="reserve again")
        if not self._sent:
            self._ledger.record_sent(self.release_id)
            self._sent = True

    def settle(self, outcome: str = "answered") -> None:
        """Note that the release is over; nothing comes back, it was spent at `mark_sent`."""
        if not self._sent:
            raise BudgetError("BUD-006", "a release that was not sent cannot be settled")
        if not self._ended:
            self._ledger.record_settled(self.release_id, outcome)
            self._ended = True

    def give_back(self) -> None:
        """Return the budget; raise if a statement may have been sent."""
        if self._sent:
            raise BudgetError("BUD-006", "a release that was sent keeps its charge")
        if not self._ended:
            self._ended = True
            self._ledger.record_returned(self.release_id, "not sent")

    def __enter__(self) -> Reservation:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        # Failing to write the last record is safe: a sent release stays spent, an unsent one is
        # returned when its lease has run out. So it must not hide the caller's error or answer.
        with suppress(BudgetError):
            if self._sent:
                self.settle("answered" if kind is None else "failed")
            else:
                self.give_back()
