"""Logging in: a name and a password, or a SCRAM exchange, becomes a user, or a refusal that tells nothing.

In: what a client sends. Out: a user. A name that nobody has is treated like one whose password is wrong: the same
steps, the same words, and the same lock-out after failures. The log keeps such a name as a keyed digest, because
people type passwords where a name belongs.
"""

from __future__ import annotations

import threading

from secant.errors import AccessError, ServiceError
from secant.records import frozen
from secant.service.store import Rows
from secant.service.users import User, Users
from secant.service.verifiers import LONGEST, Verifier, matches, nobodys, signature_for

FREE_FAILURES = 5
"""Failures in a row that cost no waiting."""
LONGEST_WAIT = 900.0
"""Seconds; each further failure doubles the waiting up to this."""
_MOST_NAMES = 10_000
"""Names whose failures are remembered: somebody who tries names must not fill the disk."""
_FORGOTTEN_AFTER = 86_400.0
_AT_ONCE = 2
"""Passwords that are checked at the same time: a check takes a core for some 20 ms."""
_LONGEST_TURN = 10.0
"""Seconds that a login waits for its turn."""


@frozen
class Exchange:
    """A SCRAM exchange that has begun: for the PostgreSQL port."""

    name: str
    verifier: Verifier
    user: User | None


class Logins:
    """The door of a store of users."""

    def __init__(self, users: Users) -> None:
        self._users = users
        self._turns = threading.BoundedSemaphore(_AT_ONCE)

    def begin(self, name: str) -> Exchange:
        """Begin a SCRAM exchange. Every name has a verifier; counts as nothing until `finish`."""
        found = self._users.found(name)
        user, verifier = found if found is not None else (None, nobodys(self._salt(name)))
        return Exchange(name, verifier, user)

    def finish(
        self, exchange: Exchange, message: bytes, proof: bytes, *, way: str, address: str = ""
    ) -> tuple[User, bytes]:
        """Check the client's proof over the exchange's messages; give the user and the server's signature."""
        self._count(exchange.name, way)
        signature = signature_for(exchange.verifier, message, proof)
        if signature is None or exchange.user is None:
            raise self._refused(exchange.name, way)
        return self._admitted(exchange.user, way), signature

    def login(self, name: str, password: str, *, way: str) -> User:
        """Check a password; give the user."""
        if not self._turns.acquire(timeout=_LONGEST_TURN):
            raise ServiceError("SRV-001", "too many people log in at once", hint="try again later")
        try:
            self._count(name, way)
            exchange = self.begin(name)
            fits = len(password) <= LONGEST and matches(exchange.verifier, password)
        finally:
            self._turns.release()
        if not fits or exchange.user is None:
            raise self._refused(name, way)
        return self._admitted(exchange.user, way)

    def _count(self, name: str, way: str) -> None:
        """Count a failure before the password is looked at: attempts at the same time cannot get around it."""
        key, now = self._users.failures_key(name), self._users.now()
        with self._users.store.writing() as rows:
            row = rows.one("SELECT times, latest FROM failures WHERE key = ?", key)
            times, latest = row if row is not None else (0, 0.0)
            wait = latest + _waiting(times) - now
            if row is None:
                _make_analysis(rows, now)
                rows.do("INSERT INTO failures (key, times, latest) VALUES (?, 1, ?)", key, now)
            elif wait <= 0:
                rows.do("UPDATE failures SET times = times + 1, latest = ? WHERE key = ?", now, key)
        if wait > 0:
            self._users.note_stranger("login locked", self._written(name), way)
            raise AccessError(
                "AUT-003",
                "too many logins have failed under this name",
                hint=f"wait {int(wait) + 1} seconds; tokens go on working",
            )

    def _refused(self, name: str, way: str) -> AccessError:
        self._users.note_stranger("login refused", self._written(name), way)
        return AccessError(
            "AUT-001",
            "the login is refused",
            hint="check the name and the password, or ask the owner",
        )

    def _admitted(self, user: User, way: str) -> User:
        with self._users.store.writing() as rows:
            self._users.forgive(rows, user.name)
            self._users.write(rows, "login", user.name, way)
        return user

    def _written(self, name: str) -> str:
        """Give how the log names who could not log in."""
        found = self._users.found(name)
        if found is not None:
            return found[0].name
        return f"?{self._salt(name).hex()[:8]}"

    def _salt(self, name: str) -> bytes:
        """Give the salt that a name has if nobody has the name: the same each time."""
        return self._users.hidden("salt of", name.casefold())


def _waiting(times: int) -> float:
    """Give how many seconds must pass after so many failures in a row."""
    if times < FREE_FAILURES:
        return 0.0
    return float(min(LONGEST_WAIT, 2.0 ** min(times - FREE_FAILURES, 30)))


def _make_analysis(rows: Rows, now: float) -> None:
    rows.do("DELETE FROM failures WHERE latest < ?", now - _FORGOTTEN_AFTER)
    row = rows.one("SELECT count(*) FROM failures")
    if row is not None and row[0] >= _MOST_NAMES:
        rows.do(
            "DELETE FROM failures WHERE key IN"
            " (SELECT key FROM failures ORDER BY times, latest LIMIT ?)",
            row[0] - _MOST_NAMES + 1,
        )
