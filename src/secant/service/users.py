"""Who may ask: users with a role each, and their tokens.

In: a store. Out: users. A share of a budget belongs to a user's name, so a name is never told from another by case
only. There is no user and no password to begin with. Passwords and tokens are kept as hashes. Whatever changes
something is written to the audit log with who did it, in the same transaction.
"""

from __future__ import annotations

import hmac
import re
import time
from collections.abc import Callable
from dataclasses import field

from secant.errors import AccessError, UsageError
from secant.records import frozen
from secant.service import tokens
from secant.service.audit_log import AuditLog, Entry
from secant.service.origin import UNKNOWN, Origin, network_of
from secant.service.store import Rows, Store, secret_of
from secant.service.tokens import NewToken, Token, moment
from secant.service.verifiers import Verifier, check_password, verifier_of

ROLES = ("owner", "analyst", "auditor")
"""Owner: everything but true answers. Analyst: asks, and sees what is their own. Auditor: sees all, asks nothing."""
LOGOUT = "logout"
"""How the log calls that somebody ends a session themselves."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,62}")


@frozen
class User:
    """Somebody who has logged in, or could."""

    name: str
    role: str
    since: float | None = field(default=None, compare=False)
    """When somebody who stays connected logged in; None where each request proves anew who sends it."""

    def __post_init__(self) -> None:
        if self.role not in ROLES:
            raise AssertionError(f"there is no role {self.role}")


class Users:
    """The users of a store."""

    def __init__(self, store: Store, *, now: Callable[[], float] = time.time) -> None:
        self.store = store
        self.now = now
        self.audit = AuditLog(store, now)
        self._secret = secret_of(store)

    def hidden(self, what: str, text: str) -> bytes:
        """Give a digest of a text that only this store can make: for names that nobody has, and for marks of forms."""
        message = f"{what} {text}".encode("utf-8", "surrogatepass")
        return hmac.digest(self._secret, message, "sha256")

    # ── users ────────────────────────────────────────────────────────────────────────────────────

    def add(self, name: str, role: str, password: str, *, by: Origin = UNKNOWN) -> User:
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
            self.audit.write(rows, "user added", name, role, by)
        return User(name, role)

    def remove(self, name: str, *, by: Origin = UNKNOWN) -> None:
        """Remove a user and every token they hold or made. What they have spent stays spent, under their name."""
        with self.store.writing() as rows:
            key = _key_of(rows, name)
            tokens.end_all(rows, key)
            rows.do("DELETE FROM users WHERE key = ?", key)
            self.audit.write(rows, "user removed", name, by=by)

    def set_password(self, name: str, password: str, *, by: Origin = UNKNOWN) -> None:
        """Give a user another password; whatever was logged in or made with the one before ends."""
        check_password(password)
        verifier = verifier_of(password)
        with self.store.writing() as rows:
            key = _key_of(rows, name)
            rows.do(
                "UPDATE users SET salt = ?, iterations = ?, stored_key = ?, server_key = ? WHERE key = ?",
                *_columns(verifier), key,
            )  # fmt: skip
            ended = self._end_all(rows, key)
            rows.do("DELETE FROM failures WHERE who = ?", self.failures_of(name))
            self.audit.write(rows, "password changed", name, f"{ended} tokens ended", by)

    def revoke_all(self, name: str, *, by: Origin = UNKNOWN) -> int:
        """End every session and token that a user holds or made; give how many. The password stays."""
        with self.store.writing() as rows:
            ended = self._end_all(rows, _key_of(rows, name))
            self.audit.write(rows, "all revoked", name, f"{ended} tokens ended", by)
        return ended

    def _end_all(self, rows: Rows, key: str) -> int:
        rows.do("UPDATE users SET ended = ? WHERE key = ?", self.now(), key)
        return tokens.end_all(rows, key)

    def check_still(self, user: User) -> None:
        """Raise AUT-001 if somebody who stays connected was removed, revoked or given another role since."""
        if user.since is None:
            return
        with self.store.reading() as rows:
            row = rows.one("SELECT role, ended FROM users WHERE key = ?", user.name.casefold())
        if row is None or row[0] != user.role or row[1] >= user.since:
            raise AccessError(
                "AUT-001", "the login has ended", hint="connect again, or ask the owner"
            )

    def failures_of(self, name: str) -> str:
        """Give the key of a name's failures: people type passwords where a name belongs."""
        return self.hidden("failures of", name.casefold()).hex()

    def failures_key(self, name: str, address: str) -> str:
        """Give the key of the failures of a name from an address."""
        return self.hidden("failures from", f"{network_of(address)} {name.casefold()}").hex()

    def address_key(self, address: str) -> str:
        """Give the key of all failures from an address."""
        return self.hidden("failures at", network_of(address)).hex()

    def set_role(self, name: str, role: str, *, by: Origin = UNKNOWN) -> None:
        """Give a user another role."""
        _check_role(role)
        with self.store.writing() as rows:
            rows.do("UPDATE users SET role = ? WHERE key = ?", role, _key_of(rows, name))
            self.audit.write(rows, "role changed", name, role, by)

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
        salt, stored, server = (bytes.fromhex(row[index]) for index in (2, 4, 5))
        return User(row[0], row[1]), Verifier(salt, row[3], stored, server)

    # ── tokens ───────────────────────────────────────────────────────────────────────────────────

    def make_token(
        self,
        user: User,
        *,
        seconds: float,
        kind: str = "token",
        note: str = "",
        parent: str = "",
        by: Origin = UNKNOWN,
    ) -> tuple[str, Token]:
        """Make a token for a user; it is shown this once, and kept as a hash.

        `parent` is the id of the token by whose right alone it is made: it lives no longer, and ends with it.
        """
        with self.store.writing() as rows:
            key = _key_of(rows, user.name)
            new = NewToken(key, by.actor.casefold(), kind, note, seconds, parent)
            token, token_id, until = tokens.make(rows, new, self.now())
            what = f"{token_id}, child of {parent}" if parent else token_id
            if kind != "session":
                self.audit.write(rows, f"{kind} made", user.name, what, by)
        if kind == "session":  # one for each login, which may be many
            self.audit.note_limited("session made", user.name, what, by, of=user.name)
        return token, Token(token_id, user.name, kind, note, moment(until), parent)

    def by_token(self, token: str) -> User:
        """Give the user who holds a token; AUT-001 if nobody does."""
        return self.holder_of(token)[0]

    def holder_of(self, token: str, *, by: Origin = UNKNOWN) -> tuple[User, str]:
        """Give the user who holds a token, with the role of now, and the token's id; AUT-001 if nobody does."""
        with self.store.reading() as rows:
            row = rows.one(
                "SELECT u.name, u.role, t.id FROM tokens AS t JOIN users AS u ON u.key = t.holder"
                " WHERE t.digest = ? AND t.expires > ?",
                tokens.hashed(token), self.now(),
            )  # fmt: skip
        if row is None:
            self.audit.note_limited("token refused", "", by=by)
            raise tokens.refused()
        return User(row[0], row[1]), row[2]

    def tokens(self, name: str | None = None) -> list[Token]:
        """Give the tokens that are good now, of one user or of all."""
        with self.store.reading() as rows:
            records = rows.all(
                "SELECT t.id, u.name, t.kind, t.note, t.expires, t.parent FROM tokens AS t"
                " JOIN users AS u ON u.key = t.holder WHERE t.expires > ? ORDER BY t.created",
                self.now(),
            )
        listed = [
            Token(i, who, kind, note, moment(end), up) for i, who, kind, note, end, up in records
        ]
        return [t for t in listed if name is None or t.holder.casefold() == name.casefold()]

    def revoke(self, token_id: str, *, what: str = "token revoked", by: Origin = UNKNOWN) -> None:
        """Let the token of an id end now, and whatever it made."""
        with self.store.writing() as rows:
            row = rows.one("SELECT holder FROM tokens WHERE id = ?", token_id)
            ended = tokens.end(rows, "id = ?", token_id)
            if row is None:
                raise UsageError("USE-001", "there is no token of this id")
            more = f" and {ended - 1} that it made" if ended > 1 else ""
            if what != LOGOUT:
                self.audit.write(rows, what, row[0], token_id + more, by)
        if what == LOGOUT:
            self.audit.note_limited(what, row[0], token_id + more, by, of=row[0])

    def log(self, *, most: int = 1000) -> list[Entry]:
        """Give the latest lines of the audit log, newest first."""
        return self.audit.latest(most=most)


def _check_role(role: str) -> None:
    if role not in ROLES:
        raise UsageError("USE-001", "there is no such role", hint=f"roles are {', '.join(ROLES)}")


def _key_of(rows: Rows, name: str) -> str:
    key = name.casefold()
    if not _NAME.fullmatch(name) or rows.one("SELECT 1 FROM users WHERE key = ?", key) is None:
        raise UsageError("USE-001", "there is no such user", hint="see `secant user list`")
    return key


def _columns(verifier: Verifier) -> tuple[str, int, str, str]:
    v = verifier
    return v.salt.hex(), v.iterations, v.stored_key.hex(), v.server_key.hex()
