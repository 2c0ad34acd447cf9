"""The audit log: what happened to users, tokens and questions, who did it, and from where.

In: events with their origin. Out: lines of the store and of the process's log. Lines that somebody can cause without
end are limited to so many a minute; what was left out is counted.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable
from datetime import UTC, datetime

from secant.records import frozen
from secant.service.origin import UNKNOWN, Origin
from secant.service.store import Rows, Store

LINES_A_MINUTE = 60
"""Lines of one kind that people who are not logged in together, or one user alone, can add in a minute."""
_MOST_KINDS = 10_000
"""Kinds and users whose lines are counted."""

_log = logging.getLogger("secant.service")


@frozen
class Entry:
    """A line of the audit log."""

    time: datetime
    kind: str
    who: str
    """Whom it is about."""
    about: str
    origin: Origin
    """Who did it, and from where."""


class AuditLog:
    """The log of a store."""

    def __init__(self, store: Store, now: Callable[[], float]) -> None:
        self._store, self._now = store, now
        self._lines: dict[tuple[str, str], tuple[float, int]] = {}
        """Kind of a line, and whose -> when its minute began, and how many came since."""

    def write(self, rows: Rows, kind: str, who: str, about: str = "", by: Origin = UNKNOWN) -> None:
        """Write a line, in the transaction of what it tells of."""
        rows.do(
            "INSERT INTO audit (id, at, kind, who, about, actor, address, token, request, way)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            secrets.token_hex(8), self._now(), kind, who, about[:200],
            by.actor, by.address[:60], by.token_id, by.request_id, by.way,
        )  # fmt: skip
        _log.info(
            "%s user=%s by=%s from=%s way=%s token=%s request=%s %s",
            kind, who or "-", by.actor or "-", by.address[:60] or "-", by.way or "-",
            by.token_id or "-", by.request_id or "-", about[:200],
        )  # fmt: skip

    def note(self, kind: str, who: str, about: str = "", by: Origin = UNKNOWN) -> None:
        """Write a line on its own."""
        with self._store.writing() as rows:
            self.write(rows, kind, who, about, by)

    def note_limited(
        self, kind: str, who: str, about: str = "", by: Origin = UNKNOWN, *, of: str = ""
    ) -> None:
        """Write a line that can be caused without end, so many a minute at most: it must not fill the disk.

        `of` is the user whose lines are counted; strangers are counted together.
        """
        now = self._now()
        began, lines = self._lines.get((kind, of), (0.0, 0))
        if now - began >= 60:
            left_out = lines - LINES_A_MINUTE
            if left_out > 0:
                self.note(kind, of, f"and {left_out} more")
            began, lines = now, 0
        if len(self._lines) >= _MOST_KINDS:
            self._lines.clear()
        self._lines[kind, of] = (began, lines + 1)
        if lines < LINES_A_MINUTE:
            self.note(kind, who, about, by)

    def latest(self, *, most: int = 1000) -> list[Entry]:
        """Give the latest lines, newest first."""
        with self._store.reading() as rows:
            entries = rows.all(
                "SELECT at, kind, who, about, actor, address, token, request, way"
                " FROM audit ORDER BY at DESC LIMIT ?",
                most,
            )
        return [
            Entry(datetime.fromtimestamp(at, UTC), kind, who, about, Origin(*origin))
            for at, kind, who, about, *origin in entries
        ]
