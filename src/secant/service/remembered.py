"""What was answered: kept for history, given again for nothing, and given again to a request that comes twice.

In: released answers and refusals. Out: the same, later. All that belongs to one answer is written in one transaction,
before the answer leaves. A request that was begun and has no answer here is never asked again under its key.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from secant.errors import SecantError, ServiceError
from secant.records import frozen
from secant.release.answer import Answer
from secant.service.settings import Reuse
from secant.service.store import Rows, Store
from secant.service.stored import read_answer, write_answer

KEYS_LAST = 7 * 86_400.0
"""Seconds for which an idempotency key is remembered."""
_UNCHARGED = ("USE", "SQL", "POL", "REF", "AUT", "SRV")
"""Families of errors after which nothing was charged: the same key may ask again."""

_log = logging.getLogger("secant.service")


@frozen
class Told:
    """An answer, and whether it was there before."""

    answer: Answer
    reused: bool
    """Whether it was released before, and cost nothing now."""
    released_at: datetime


@frozen
class Asked:
    """A question of the history."""

    ticket_id: str
    time: datetime
    who: str
    outcome: str
    """`answered`, `reused`, `refused`, `failed` or `canceled`."""
    note: dict[str, Any]
    """Text, what was asked for, and what was charged."""


class Remembered:
    """Answers and requests of a store."""

    def __init__(self, store: Store, reuse: Reuse, *, now: Callable[[], float] = time.time) -> None:
        self._store, self._reuse, self._now = store, reuse, now

    # ── answers ──────────────────────────────────────────────────────────────────────────────────

    def answer(self, key: str) -> Told | None:
        """Give a stored answer that may still be given."""
        with self._store.reading() as rows:
            row = rows.one(
                "SELECT at, body FROM answers WHERE key = ? AND expires > ?", key, self._now()
            )
        return None if row is None else Told(read_answer(row[1]), True, _moment(row[0]))

    def keep(
        self,
        who: str,
        note: dict[str, Any],
        told: Told,
        *,
        outcome: str,
        ticket_id: str,
        key: str,
        stored_as: str | None,
    ) -> None:
        """Keep an answer: in the history, for reuse, and under the key of its request."""
        now = self._now()
        try:
            body = write_answer(told.answer)
        except TypeError as error:
            _log.warning("an answer is given once only: %s", error)
            body = ""
        with self._store.writing() as rows:
            self._history(rows, ticket_id, who, note, outcome)
            if body and stored_as is not None:
                self._make_analysis(rows, now)
                rows.do("DELETE FROM answers WHERE key = ?", stored_as)
                rows.do(
                    "INSERT INTO answers (key, at, expires, body) VALUES (?, ?, ?, ?)",
                    stored_as, told.released_at.timestamp(), now + self._reuse.keep_seconds, body,
                )  # fmt: skip
            if key and body:
                kept = {"at": told.released_at.timestamp(), "reused": told.reused, "answer": body}
                rows.do(
                    "UPDATE requests SET state = 'answered', body = ? WHERE who = ? AND key = ?",
                    json.dumps(kept), who, key,
                )  # fmt: skip

    def _make_analysis(self, rows: Rows, now: float) -> None:
        rows.do("DELETE FROM answers WHERE expires <= ?", now)
        row = rows.one("SELECT count(*) FROM answers")
        if row is not None and row[0] >= self._reuse.most:
            rows.do(
                "DELETE FROM answers WHERE key IN (SELECT key FROM answers ORDER BY expires LIMIT ?)",
                row[0] - self._reuse.most + 1,
            )

    # ── requests ─────────────────────────────────────────────────────────────────────────────────

    def begin(self, who: str, key: str, digest: str) -> Told | None:
        """Note that a request begins; give its answer if it came before.

        Raises SRV-002 if the key belongs to another request, SRV-003 if it began and its end is not known, and the
        error that it ended with, if it may have been charged.
        """
        with self._store.writing() as rows:
            rows.do("DELETE FROM requests WHERE at <= ?", self._now() - KEYS_LAST)
            row = rows.one(
                "SELECT digest, state, body FROM requests WHERE who = ? AND key = ?",
                who,
                key,
            )
            if row is None:
                rows.do(
                    "INSERT INTO requests (who, key, digest, state, body, at)"
                    " VALUES (?, ?, ?, 'begun', '', ?)",
                    who, key, digest, self._now(),
                )  # fmt: skip
                return None
        before, state, body = row
        if before != digest:
            raise other_request()
        if state == "answered":
            kept = json.loads(body)
            return Told(read_answer(kept["answer"]), kept["reused"], _moment(kept["at"]))
        if state == "failed":
            raise _error(json.loads(body))
        raise ServiceError(
            "SRV-003",
            "a request of this key was begun, and its end is not known: it may have been charged",
            hint="look into the history, then ask with a new key; the same question may be there for nothing",
        )

    def drop(self, who: str, key: str) -> None:
        """Give a key back whose request was never sent."""
        with self._store.writing() as rows:
            rows.do("DELETE FROM requests WHERE who = ? AND key = ? AND state = 'begun'", who, key)

    def fail(
        self,
        who: str,
        note: dict[str, Any],
        error: SecantError,
        *,
        outcome: str,
        ticket_id: str,
        key: str,
    ) -> None:
        """Keep that there was no answer; a key whose request may have been charged stays used."""
        with self._store.writing() as rows:
            self._history(rows, ticket_id, who, {**note, "error": error.code}, outcome)
            if not key:
                return
            if error.family in _UNCHARGED or error.code == "BUD-001":
                rows.do("DELETE FROM requests WHERE who = ? AND key = ?", who, key)
            else:
                rows.do(
                    "UPDATE requests SET state = 'failed', body = ? WHERE who = ? AND key = ?",
                    json.dumps(error.to_dict()), who, key,
                )  # fmt: skip

    # ── history ──────────────────────────────────────────────────────────────────────────────────

    def _history(
        self, rows: Rows, ticket_id: str, who: str, note: dict[str, Any], outcome: str
    ) -> None:
        rows.do(
            "INSERT INTO questions (id, at, who, body, outcome, release_id) VALUES (?, ?, ?, ?, ?, ?)",
            ticket_id, _moment(self._now()).timestamp(), who, json.dumps(note), outcome, note.get("release_id") or "",
        )  # fmt: skip

    def history(
        self, who: str | None = None, *, most: int = 100, before: float | None = None
    ) -> list[Asked]:
        """Give questions, newest first: one user's, or everybody's."""
        until = before if before is not None else self._now() + 1
        query = "SELECT id, at, who, outcome, body FROM questions WHERE at < ?"
        with self._store.reading() as rows:
            if who is None:
                found = rows.all(query + " ORDER BY at DESC LIMIT ?", until, most)
            else:
                found = rows.all(query + " AND who = ? ORDER BY at DESC LIMIT ?", until, who, most)
        return [Asked(i, _moment(at), w, o, json.loads(body)) for i, at, w, o, body in found]


def other_request() -> ServiceError:
    """Say that a key was used for something else."""
    return ServiceError(
        "SRV-002",
        "the idempotency key belongs to another request",
        hint="use a new key for a new question",
    )


def _error(fields: dict[str, Any]) -> SecantError:
    """Give the error that was written down."""
    family = fields["code"][:3]
    kind = next(kind for kind in SecantError.__subclasses__() if kind.family == family)
    return kind(
        fields["code"], fields["message"], hint=fields["hint"], details=tuple(fields["details"])
    )


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
