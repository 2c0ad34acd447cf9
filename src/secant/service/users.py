"""Who may ask: users with a role each, their tokens, and the log of what happened to both.

In: a store. Out: users. A share of a budget belongs to a user's name, so a name is never told from another by case
only. There is no user and no password to begin with. Passwords and tokens are kept as hashes.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import re
import secrets
import time
from collections.abc import Callable
from datetime import UTC, datetime

from secant.errors import AccessError, UsageError
from secant.records import frozen
from secant.service.store import Rows, Store, check_printable, secret_of
from secant.service.verifiers import Verifier, check_password, verifier_of

ROLES = ("owner", "analyst", "auditor")
"""Owner: everything but true answers. Analyst: asks, and sees what is their own. Auditor: sees all, asks nothing."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,62}")
TOKEN_MARK = "secant_"  # noqa: S105 - how every token begins
"""How tokens begin, so that scanners for leaked secrets can find them."""
SESSION_SECONDS = 12 * 3600.0
LONGEST_TOKEN_DAYS = 366
STRANGERS_LINES = 60
"""Lines of one kind that people who are not logged in can add to the audit log in a minute."""

_log = logging.getLogger("secant.service")


@frozen
class User:
    """Somebody who has logged in, or could."""

    name: str
    role: str

    def __post_init__(self) -> None:
        if self.role not in ROLES:
            raise AssertionError(f"there is no role {self.role}")


@frozen
class Token:
    """What is known of a token: never the token."""

    token_id: str
    holder: str
    kind: str
    """`token` for programs, `session` for who logged in with a password."""
    note: str
    expires: datetime


@frozen
class Entry:
    """A line of the audit log."""

    time: datetime
    kind: str
    who: str
    about: str


class Users:
    """The users of a store."""

    def __init__(self, store: Store, *, now: Callable[[], float] = time.time) -> None:
        self.store = store
        self.now = now
        self._secret = secret_of(store)
        self._lines: dict[str, tuple[float, int]] = {}
        """Kind of a line that strangers can cause -> when its minute began, and how many came since."""

    def hidden(self, what: str, text: str) -> bytes:
        """Give a digest of a text that only this store can make: for names that nobody has, and for marks of forms."""
        message = f"{what} {text}".encode("utf-8", "surrogatepass")
        return hmac.digest(self._secret, message, "sha256")

    # ── users ────────────────────────────────────────────────────────────────────────────────────

    def add(self, name: str, role: str, password: str) -> User:
        """Add a user; refuse a name that exists, in any case of letters."""
        if not _NAME.fullmatch(name):
            raise UsageError(
                "USE-001",
                "a user's name has up to 63 letters, digits, dots, dashes, underscores or @ signs",
            )
        _check_role(role)
        if password.casefold() == name.casefold():
            raise UsageError("USE-001", "the password is the user's name", hint="choose another")
        verifier = verifier_of(password)
        with self.store.writing() as rows:
            if rows.one("SELECT 1 FROM users WHERE key = ?", name.casefold()) is not None:
                raise UsageError("USE-001", f"there is a user {name!r} already")
            rows.do(
                "INSERT INTO users (key, name, role, created, salt, iterations, stored_key, server_key)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                name.casefold(), name, role, self.now(), *_columns(verifier),
            )  # fmt: skip
            self.write(rows, "user added", name, role)
        return User(name, role)

    def remove(self, name: str) -> None:
        """Remove a user and their tokens. What they have spent stays spent, under their name."""
        with self.store.writing() as rows:
            key = _known(rows, name)
            rows.do("DELETE FROM tokens WHERE holder = ?", key)
            rows.do("DELETE FROM users WHERE key = ?", key)
            self.write(rows, "user removed", name)

    def set_password(self, name: str, password: str) -> None:
        """Give a user another password; sessions end, tokens for programs stay."""
        check_password(password)
        verifier = verifier_of(password)
        with self.store.writing() as rows:
            key = _known(rows, name)
            rows.do(
                "UPDATE users SET salt = ?, iterations = ?, stored_key = ?, server_key = ? WHERE key = ?",
                *_columns(verifier), key,
            )  # fmt: skip
            rows.do("DELETE FROM tokens WHERE holder = ? AND kind = 'session'", key)
            self.forgive(rows, key)
            self.write(rows, "password changed", name)

    def forgive(self, rows: Rows, name: str) -> None:
        """Forget the failures of a name."""
        rows.do("DELETE FROM failures WHERE key = ?", self.failures_key(name))

    def failures_key(self, name: str) -> str:
        """Give the key of a name's failures: people type passwords where a name belongs."""
        return self.hidden("failures of", name.casefold()).hex()

    def set_role(self, name: str, role: str) -> None:
        """Give a user another role."""
        _check_role(role)
        with self.store.writing() as rows:
            rows.do("UPDATE users SET role = ? WHERE key = ?", role, _known(rows, name))
            self.write(rows, "role changed", name, role)

    def all(self) -> list[User]:
        """Give all users, by name."""
        with self.store.reading() as rows:
            return [User(*row) for row in rows.all("SELECT name, role FROM users ORDER BY key")]

    def found(self, name: str) -> tuple[User, Verifier] | None:
        """Give a user and the verifier of the password, or None."""
        if not _NAME.fullmatch(name):
            return None
        with self.store.reading() as rows:
            row = rows.one(
                "SELECT name, role, salt, iterations, stored_key, server_key FROM users WHERE key = ?",
                name.casefold(),
            )
        if row is None:
            return None
        salt, stored, server = (bytes.fromhex(row[place]) for place in (2, 4, 5))
        return User(row[0], row[1]), Verifier(salt, row[3], stored, server)

    # ── tokens ───────────────────────────────────────────────────────────────────────────────────

    def make_token(
        self, user: User, *, seconds: float, kind: str = "token", note: str = ""
    ) -> tuple[str, Token]:
        """Make a token for a user; it is shown this once, and kept as a hash."""
        if not 0 < seconds <= LONGEST_TOKEN_DAYS * 86400:
            raise UsageError("USE-001", f"a token lasts up to {LONGEST_TOKEN_DAYS} days")
        check_printable("the note of a token", note, 100)
        token = TOKEN_MARK + secrets.token_urlsafe(32)
        made, until = self.now(), self.now() + seconds
        token_id = secrets.token_hex(6)
        with self.store.writing() as rows:
            key = _known(rows, user.name)
            rows.do("DELETE FROM tokens WHERE expires <= ?", made)
            rows.do(
                "INSERT INTO tokens (digest, id, holder, kind, note, created, expires)"
                " VALUES (?, ?, ?, ?, ?, ?, ?)",
                _hashed(token), token_id, key, kind, note, made, until,
            )  # fmt: skip
            if kind == "token":
                self.write(rows, "token made", user.name, token_id)
        return token, Token(token_id, user.name, kind, note, _moment(until))

    def by_token(self, token: str) -> User:
        """Give the user who holds a token, with the role of now; AUT-001 if nobody does."""
        with self.store.reading() as rows:
            row = rows.one(
                "SELECT u.name, u.role FROM tokens AS t JOIN users AS u ON u.key = t.holder"
                " WHERE t.digest = ? AND t.expires > ?",
                _hashed(token), self.now(),
            )  # fmt: skip
        if row is None:
            self.note_stranger("token refused", "")
            raise AccessError(
                "AUT-001", "the token is refused", hint="log in again, or ask the owner for a token"
            )
        return User(*row)

    def tokens(self, name: str | None = None) -> list[Token]:
        """Give the tokens that are good now, of one user or of all."""
        with self.store.reading() as rows:
            found = rows.all(
                "SELECT t.id, u.name, t.kind, t.note, t.expires FROM tokens AS t"
                " JOIN users AS u ON u.key = t.holder WHERE t.expires > ? ORDER BY t.created",
                self.now(),
            )
        told = [Token(i, who, kind, note, _moment(end)) for i, who, kind, note, end in found]
        return [t for t in told if name is None or t.holder.casefold() == name.casefold()]

    def end_token(self, token: str) -> None:
        """Let a token end now, as a log-out does."""
        with self.store.writing() as rows:
            rows.do("DELETE FROM tokens WHERE digest = ?", _hashed(token))

    def revoke(self, token_id: str) -> None:
        """Let the token of an id end now."""
        with self.store.writing() as rows:
            if not rows.do("DELETE FROM tokens WHERE id = ?", token_id):
                raise UsageError("USE-001", "there is no token of this id")
            self.write(rows, "token revoked", "", token_id)

    # ── the log ──────────────────────────────────────────────────────────────────────────────────

    def note(self, kind: str, who: str, about: str = "") -> None:
        """Write a line into the audit log, on its own."""
        with self.store.writing() as rows:
            self.write(rows, kind, who, about)

    def note_stranger(self, kind: str, who: str, about: str = "") -> None:
        """Write a line that anybody can cause: so many a minute at most, or they would fill the disk."""
        began, lines = self._lines.get(kind, (0.0, 0))
        now = self.now()
        if now - began >= 60:
            left_out = lines - STRANGERS_LINES
            if left_out > 0:
                self.note(kind, "", f"and {left_out} more")
            began, lines = now, 0
        self._lines[kind] = (began, lines + 1)
        if lines < STRANGERS_LINES:
            self.note(kind, who, about)

    def write(self, rows: Rows, kind: str, who: str, about: str = "") -> None:
        """Write a line into the audit log, with what it tells of."""
        rows.do(
            "INSERT INTO audit (id, at, kind, who, about) VALUES (?, ?, ?, ?, ?)",
            secrets.token_hex(8), self.now(), kind, who, about[:200],
        )  # fmt: skip
        _log.info("%s user=%s %s", kind, who or "-", about[:200])

    def log(self, *, most: int = 1000) -> list[Entry]:
        """Give the latest lines of the audit log, newest first."""
        with self.store.reading() as rows:
            found = rows.all(
                "SELECT at, kind, who, about FROM audit ORDER BY at DESC LIMIT ?", most
            )
        return [Entry(_moment(at), kind, who, about) for at, kind, who, about in found]


def _check_role(role: str) -> None:
    if role not in ROLES:
        raise UsageError("USE-001", "there is no such role", hint=f"roles are {', '.join(ROLES)}")


def _known(rows: Rows, name: str) -> str:
    key = name.casefold()
    if not _NAME.fullmatch(name) or rows.one("SELECT 1 FROM users WHERE key = ?", key) is None:
        raise UsageError("USE-001", "there is no such user", hint="see `secant user list`")
    return key


def _columns(verifier: Verifier) -> tuple[str, int, str, str]:
    v = verifier
    return v.salt.hex(), v.iterations, v.stored_key.hex(), v.server_key.hex()


def _hashed(token: str) -> str:
    """Hash a token; it is long and drawn, so that one round is enough."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
