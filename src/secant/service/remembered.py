"""What was answered: kept for history, given again for nothing, and given again to a request that comes twice.

In: released answers and refusals. Out: the same, later. All that belongs to one answer is written in one transaction,
before the answer leaves. A request that was begun and has no answer here is never asked again under its key. What was
charged stays; what cost nothing can be caused without end, so it is cut, and goes by age and size.
"""

from __future__ import annotations

import hashlib
import json
import logging
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from secant.errors import SecantError, ServiceError
from secant.records import frozen
from secant.release.answer import Answer
from secant.service.settings import History, Reuse
from secant.service.store import Rows, Store
from secant.service.stored import read_answer, write_answer

KEYS_LAST = 7 * 86_400.0
"""Seconds for which an idempotency key is remembered."""
FREE_KEYS_BYTES = 5_000_000
"""Bytes of one user's answers under keys that were charged nothing: the oldest go, and asking again is free."""
_ROW_BYTES = 200
"""What a row takes beside its text."""
_LONGEST_CHOICE = 300
"""Characters of what was asked for beside the text, such as an epsilon."""
_UNCHARGED = ("USE", "SQL", "POL", "REF", "AUT", "SRV")
"""Families of errors after which nothing was charged: the same key may ask again."""

_log = logging.getLogger("secant.service")


@frozen
class Reply:
    """An answer, and whether it was there before."""

    answer: Answer
    reused: bool
    """Whether it was released before, and cost nothing now."""
    released_at: datetime


@frozen
class PastQuestion:
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

    def __init__(
        self,
        store: Store,
        reuse: Reuse,
        history: History | None = None,
        *,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._store, self._reuse, self._now = store, reuse, now
        self._kept = history or History()

    # ── answers ──────────────────────────────────────────────────────────────────────────────────

    def answer(self, key: str) -> Reply | None:
        """Give a stored answer that may still be given."""
        with self._store.reading() as rows:
            row = rows.one(
                "SELECT at, body FROM answers WHERE key = ? AND expires > ?", key, self._now()
            )
        return None if row is None else Reply(read_answer(row[1]), True, _moment(row[0]))

    def keep(
        self,
        who: str,
        note: dict[str, Any],
        result: Reply,
        *,
        outcome: str,
        ticket_id: str,
        key: str,
        stored_as: str | None,
    ) -> None:
        """Keep an answer: in the history, for reuse, and under the key of its request."""
        now = self._now()
        charged = result.answer.release_id is not None and not result.reused
        try:
            body = write_answer(result.answer)
        except TypeError as error:
            _log.warning("an answer is given once only: %s", error)
            body = ""
        with self._store.writing() as rows:
            self._history(rows, ticket_id, who, note, outcome, charged=charged)
            if body and stored_as is not None:
                rows.do("DELETE FROM answers WHERE key = ? OR expires <= ?", stored_as, now)
                rows.do(
                    "INSERT INTO answers (key, at, expires, body, charged, size) VALUES (?, ?, ?, ?, ?, ?)",
                    stored_as, result.released_at.timestamp(), now + self._reuse.keep_seconds, body,
                    int(charged), len(body) + _ROW_BYTES,
                )  # fmt: skip
                self._make_room(rows)
            if key and body:
                stored = {
                    "at": result.released_at.timestamp(),
                    "reused": result.reused,
                    "answer": body,
                }
                text = json.dumps(stored)
                rows.do(
                    "UPDATE requests SET state = ?, body = ?, size = ? WHERE who = ? AND key = ?",
                    "answered" if charged else "free", text, len(text) + _ROW_BYTES, who, key,
                )  # fmt: skip
            if key and not charged:
                self._drop_free_keys(rows, who)

    def _make_room(self, rows: Rows) -> None:
        """Let answers go that are too many or too large together: first those that cost nothing, then the oldest."""
        row = rows.one("SELECT count(*), sum(size) FROM answers")
        if row is None or (row[0] <= self._reuse.most and row[1] <= self._reuse.bytes):
            return
        rows.do(
            "DELETE FROM answers WHERE key IN (SELECT key FROM"
            " (SELECT key, sum(size) OVER newest AS bytes, count(*) OVER newest AS number FROM answers"
            " WINDOW newest AS (ORDER BY charged DESC, expires DESC, key)) AS summed"
            " WHERE bytes > ? OR number > ?)",
            self._reuse.bytes, self._reuse.most,
        )  # fmt: skip

    def _drop_free_keys(self, rows: Rows, who: str) -> None:
        """Let old keys go whose requests cost nothing: asked again, they are charged once at most, as promised."""
        rows.do(
            "DELETE FROM requests WHERE who = ? AND state = 'free' AND key IN (SELECT key FROM"
            " (SELECT key, sum(size) OVER (ORDER BY at DESC, key) AS bytes FROM requests"
            " WHERE who = ? AND state = 'free') AS summed WHERE bytes > ?)",
            who, who, FREE_KEYS_BYTES,
        )  # fmt: skip

    # ── requests ─────────────────────────────────────────────────────────────────────────────────

    def begin(self, who: str, key: str, digest: str) -> Reply | None:
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
        if state in ("answered", "free"):
            stored = json.loads(body)
            return Reply(read_answer(stored["answer"]), stored["reused"], _moment(stored["at"]))
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
        charged: bool = True,
    ) -> None:
        """Keep that there was no answer; a key whose request may have been charged stays used.

        `charged` says whether the question had come to where it is charged.
        """
        charged = charged and error.family not in _UNCHARGED and error.code != "BUD-001"
        with self._store.writing() as rows:
            self._history(
                rows, ticket_id, who, {**note, "error": error.code}, outcome, charged=charged
            )
            if not key:
                return
            if not charged:
                rows.do("DELETE FROM requests WHERE who = ? AND key = ?", who, key)
            else:
                rows.do(
                    "UPDATE requests SET state = 'failed', body = ? WHERE who = ? AND key = ?",
                    json.dumps(error.to_dict()), who, key,
                )  # fmt: skip

    # ── history ──────────────────────────────────────────────────────────────────────────────────

    def _history(
        self,
        rows: Rows,
        ticket_id: str,
        who: str,
        note: dict[str, Any],
        outcome: str,
        *,
        charged: bool,
    ) -> None:
        longest = self._kept.longest_charged_text if charged else self._kept.longest_text
        body, now = json.dumps(cut(note, longest)), self._now()
        rows.do(
            "INSERT INTO questions (id, at, who, body, outcome, release_id, charged, size)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            ticket_id, _moment(now).timestamp(), who, body, outcome, note.get("release_id") or "",
            int(charged), len(body) + _ROW_BYTES,
        )  # fmt: skip
        if not charged:
            self._forget_old(rows, who, now)

    def _forget_old(self, rows: Rows, who: str, now: float) -> None:
        """Let questions go that cost nothing, by age, and of one user by size; what was charged stays."""
        until = now - self._kept.keep_days * 86_400
        rows.do("DELETE FROM questions WHERE charged = 0 AND at < ?", until)
        row = rows.one("SELECT sum(size) FROM questions WHERE who = ? AND charged = 0", who)
        if row is None or row[0] is None or row[0] <= self._kept.bytes_of_user:
            return
        # A tenth more than needed, so that not every further question has to look again.
        rows.do(
            "DELETE FROM questions WHERE id IN (SELECT id FROM"
            " (SELECT id, sum(size) OVER (ORDER BY at DESC, id) AS bytes FROM questions"
            " WHERE who = ? AND charged = 0) AS summed WHERE bytes > ?)",
            who, self._kept.bytes_of_user * 9 // 10,
        )  # fmt: skip

    def history(
        self, who: str | None = None, *, most: int = 100, before: float | None = None
    ) -> list[PastQuestion]:
        """Give a page of questions, newest first."""
        return self.page(who, most=most, before=before)[0]

    def page(
        self, who: str | None = None, *, most: int = 100, before: float | None = None
    ) -> tuple[list[PastQuestion], bool]:
        """Give a page of questions, newest first, one user's or everybody's, and whether there are older ones.

        A page ends after `most` questions, or where it would be too large; it has one question at least.
        """
        until = before if before is not None else self._now() + 1
        where = "WHERE at < ?"
        values: list[object] = [until]
        if who is not None:
            where += " AND who = ?"
            values.append(who)
        order = "ORDER BY at DESC, id LIMIT ?"
        with self._store.reading() as rows:
            sizes = [
                row[0]
                for row in rows.all(
                    f"SELECT size FROM questions {where} {order}", *values, most + 1
                )
            ]
            fitting = _fitting(sizes[:most], self._kept.page_bytes)
            matching = rows.all(
                f"SELECT id, at, who, outcome, body FROM questions {where} {order}",
                *values, fitting,
            )  # fmt: skip
        page = [
            PastQuestion(i, _moment(at), w, o, json.loads(body)) for i, at, w, o, body in matching
        ]
        return page, fitting < len(sizes)


def _fitting(sizes: list[int], most: int) -> int:
    """Give how many come before too many bytes do; one at least."""
    total = 0
    for number, size in enumerate(sizes):
        total += size
        if total > most and number:
            return number
    return len(sizes)


def cut(note: dict[str, Any], longest: int) -> dict[str, Any]:
    """Give a note whose texts are no longer than that; what was cut is named by its length and its digest."""
    text = note["text"]
    chosen = {
        name: value[:_LONGEST_CHOICE] if isinstance(value, str) else value
        for name, value in note.get("asked", {}).items()
    }
    shortened = {**note, "asked": chosen}
    if len(text) > longest:
        digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
        shortened |= {"text": text[:longest], "cut": {"characters": len(text), "sha256": digest}}
    return shortened


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
