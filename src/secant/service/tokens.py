"""Tokens: what a request carries instead of a password, how long it lasts, and what ends with it.

In: rows of a store, in one transaction. Out: tokens. A token that was made by another one is its child: it lives no
longer, and ends with it. Only who gives a password, or stands at the machine of the service, makes one that is
nobody's child. Tokens are kept as hashes.
"""

from __future__ import annotations

import hashlib
import secrets
from datetime import UTC, datetime

from secant.errors import AccessError, UsageError
from secant.records import frozen
from secant.service.store import Rows, check_printable

TOKEN_MARK = "secant_"  # noqa: S105 - how every token begins
"""How tokens begin, so that scanners for leaked secrets can find them."""
SESSION_SECONDS = 12 * 3600.0
LONGEST_TOKEN_DAYS = 366
MOST_TOKENS = 200
"""Of one kind and user. Beyond it the oldest session ends; no further token for programs is made."""


@frozen
class Token:
    """What is known of a token: never the token."""

    token_id: str
    holder: str
    kind: str
    """`token` for programs, `session` for who logged in with a password."""
    note: str
    expires: datetime
    parent: str = ""
    """The id of the token that made it, with which it ends; empty where a password or the machine's owner did."""


@frozen
class NewToken:
    """What a token is made with."""

    holder: str
    """Key of the user who holds it."""
    maker: str
    """Key of the user who made it: it ends when everything of that user ends."""
    kind: str
    note: str
    seconds: float
    parent: str = ""


def make(rows: Rows, new: NewToken, now: float) -> tuple[str, str, float]:
    """Make a token; give it, its id, and when it ends."""
    if not 0 < new.seconds <= LONGEST_TOKEN_DAYS * 86400:
        raise UsageError("USE-001", f"a token lasts up to {LONGEST_TOKEN_DAYS} days")
    check_printable("the note of a token", new.note, 100)
    rows.do("DELETE FROM tokens WHERE expires <= ?", now)
    until = now + new.seconds
    if new.parent:
        parent = rows.one("SELECT expires FROM tokens WHERE id = ?", new.parent)
        if parent is None:  # it was revoked while its request was on its way
            raise refused()
        until = min(until, parent[0])
    _make_room(rows, new.holder, new.kind)
    token, token_id = TOKEN_MARK + secrets.token_urlsafe(32), secrets.token_hex(6)
    rows.do(
        "INSERT INTO tokens (digest, id, holder, kind, note, created, expires, parent, maker)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        hashed(token), token_id, new.holder, new.kind, new.note, now, until,
        new.parent, new.maker,
    )  # fmt: skip
    return token, token_id, until


def _make_room(rows: Rows, holder: str, kind: str) -> None:
    ids = rows.all(
        "SELECT id FROM tokens WHERE holder = ? AND kind = ? ORDER BY created", holder, kind
    )
    if len(ids) < MOST_TOKENS:
        return
    if kind == "token":
        raise UsageError(
            "USE-001", f"a user has up to {MOST_TOKENS} tokens", hint="revoke some that nobody uses"
        )
    end(rows, "id = ?", ids[0][0])


def end(rows: Rows, which: str, *values: object) -> int:
    """End the tokens that a condition names, and whatever they made; give how many. The condition is a constant."""
    return rows.do(
        "DELETE FROM tokens WHERE id IN"
        f" (WITH RECURSIVE ended(id) AS (SELECT id FROM tokens WHERE {which}"
        " UNION SELECT t.id FROM tokens AS t JOIN ended AS e ON t.parent = e.id)"
        " SELECT id FROM ended)",
        *values,
    )


def end_all(rows: Rows, user: str) -> int:
    """End every token that a user holds or made, by the user's key."""
    return end(rows, "holder = ? OR maker = ?", user, user)


def refused() -> AccessError:
    """Say that a token is none, in the same words whatever is the matter with it."""
    return AccessError(
        "AUT-001", "the token is refused", hint="log in again, or ask the owner for a token"
    )


def hashed(token: str) -> str:
    """Hash a token; it is long and drawn, so that one round is enough."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def moment(seconds: float) -> datetime:
    """Give a time of the store as one of Python."""
    return datetime.fromtimestamp(seconds, UTC)
