"""Logging in: a name and a password, or a SCRAM exchange, becomes a user, or a refusal that tells nothing.

In: what a client sends, and its address. Out: a user. A name that nobody has is treated like one whose password is
wrong: the same steps, the same words, and the same lock-out after failures. Failures are counted by name and address
together, and by address: whoever types wrong passwords locks out themselves, never the right password from elsewhere.
The log keeps a name that nobody has as a keyed digest, because people type passwords where a name belongs.
"""

from __future__ import annotations

import threading
from concurrent.futures import Future
from dataclasses import replace

from secant.errors import AccessError
from secant.records import frozen
from secant.service import settings
from secant.service.origin import UNKNOWN, Origin, network_of
from secant.service.queue import FairQueue
from secant.service.store import Rows
from secant.service.users import User, Users
from secant.service.verifiers import LONGEST, Verifier, matches, nobodys, signature_for

FREE_FAILURES = 5
"""Failures in a row, of one name from one address, that cost no waiting."""
LONGEST_WAIT = 900.0
"""Seconds; each further failure doubles the waiting up to this."""
ADDRESS_FAILURES = 100
"""Failures of one address, whatever the names, that cost no waiting: many people may share an address."""
ADDRESS_SECONDS = 10.0
"""Seconds after which an address may fail once more."""
_MOST_NAMES = 10_000
"""Names and addresses whose failures are remembered: somebody who tries names must not fill the disk."""
_FORGOTTEN_AFTER = 86_400.0


@frozen
class Exchange:
    """A SCRAM exchange that has begun: for the PostgreSQL port."""

    name: str
    verifier: Verifier
    user: User | None


class Logins:
    """The door of a store of users. Close it."""

    def __init__(self, users: Users, limits: settings.Logins | None = None) -> None:
        self._users = users
        self._limits = limits or settings.Logins()
        self._lock = threading.Lock()
        self._queue: FairQueue | None = None

    def begin(self, name: str) -> Exchange:
        """Begin a SCRAM exchange. Every name has a verifier; counts as nothing until `finish`."""
        stored = self._users.found(name)
        user, verifier = stored if stored is not None else (None, nobodys(self._salt(name)))
        return Exchange(name, verifier, user)

    def finish(
        self, exchange: Exchange, message: bytes, proof: bytes, *, way: str, address: str = ""
    ) -> tuple[User, bytes]:
        """Check the client's proof over the exchange's messages; give the user and the server's signature.

        `address` is the client's, without a port: failures are counted by it. Takes no time to speak of, since the
        client did the hashing.
        """
        by = Origin(way=way, address=address)
        self._count(exchange.name, by)
        signature = signature_for(exchange.verifier, message, proof)
        if signature is None or exchange.user is None:
            raise self._refused(exchange.name, "login", by)
        return self._admitted(exchange.user, "login", by), signature

    def login(
        self, name: str, password: str, *, way: str, address: str = "", by: Origin | None = None
    ) -> User:
        """Check a password; give the user. Waits: a front that serves many takes `attempt`."""
        return self.attempt(name, password, way=way, address=address, by=by).result()

    def attempt(
        self,
        name: str,
        password: str,
        *,
        way: str,
        address: str = "",
        by: Origin | None = None,
        kind: str = "login",
    ) -> Future[User]:
        """Let a password be checked when its turn comes; AUT-004 at once where too many wait.

        Hashing has threads of its own, so that a flood of logins takes none of those that serve others. Addresses take
        turns. `kind` is how the log calls it.
        """
        by = replace(by or UNKNOWN, way=way, address=address)
        return self._threads().put(
            network_of(address), lambda: self._checked(name, password, kind, by)
        )

    def close(self) -> None:
        """Check nothing more."""
        with self._lock:
            if self._queue is not None:
                self._queue.close()

    def _threads(self) -> FairQueue:
        """Give the threads that hash; they begin with the first login."""
        with self._lock:
            if self._queue is None:
                self._queue = FairQueue(
                    workers=self._limits.workers,
                    each_user=1,
                    waiting=self._limits.waiting,
                    waiting_of_user=self._limits.waiting_of_address,
                    full=_too_many,
                    what="login",
                )
            return self._queue

    def _checked(self, name: str, password: str, kind: str, by: Origin) -> User:
        self._count(name, by)
        exchange = self.begin(name)
        fits = len(password) <= LONGEST and matches(exchange.verifier, password)
        if not fits or exchange.user is None:
            raise self._refused(name, kind, by)
        return self._admitted(exchange.user, kind, by)

    def _count(self, name: str, by: Origin) -> None:
        """Count a failure before the password is looked at: attempts at the same time cannot get around it."""
        now = self._users.now()
        own = self._users.failures_key(name, by.address)
        shared = self._users.address_key(by.address)
        with self._users.store.writing() as rows:
            times, latest = _failures_of(rows, own)
            # Of an address the end of its debt is kept: each failure adds some seconds to it.
            all_times, ends = _failures_of(rows, shared)
            debt = max(ends, now) + ADDRESS_SECONDS
            wait = max(
                latest + _waiting(times) - now, debt - now - ADDRESS_FAILURES * ADDRESS_SECONDS
            )
            if wait <= 0:
                if not times or not all_times:
                    _make_room(rows, now)
                _put(rows, own, self._users.failures_of(name), times + 1, now)
                _put(rows, shared, "", all_times + 1, debt)
        if wait > 0:
            self._users.audit.note_limited("login locked", self._log_name(name), by=by)
            raise _later(
                "AUT-003",
                "too many logins have failed from this address",
                f"wait {int(wait) + 1} seconds; tokens go on working",
                int(wait) + 1,
            )

    def _refused(self, name: str, kind: str, by: Origin) -> AccessError:
        self._users.audit.note_limited(f"{kind} refused", self._log_name(name), by=by)
        return AccessError(
            "AUT-001",
            "the login is refused",
            hint="check the name and the password, or ask the owner",
        )

    def _admitted(self, user: User, kind: str, by: Origin) -> User:
        now = self._users.now()
        with self._users.store.writing() as rows:
            key = self._users.failures_key(user.name, by.address)
            rows.do("DELETE FROM failures WHERE key = ?", key)
            # It was no failure: what it was counted as is taken back from the address.
            rows.do(
                "UPDATE failures SET latest = latest - ? WHERE key = ?",
                ADDRESS_SECONDS, self._users.address_key(by.address),
            )  # fmt: skip
        # A program that logs in for each request must not fill the disk.
        self._users.audit.note_limited(
            kind, user.name, by=replace(by, actor=user.name), of=user.name
        )
        return replace(user, since=now)

    def _log_name(self, name: str) -> str:
        """Give how the log names who could not log in."""
        stored = self._users.found(name)
        if stored is not None:
            return stored[0].name
        return f"?{self._salt(name).hex()[:8]}"

    def _salt(self, name: str) -> bytes:
        """Give the salt that a name has if nobody has the name: the same each time."""
        return self._users.hidden("salt of", name.casefold())


def _later(code: str, message: str, hint: str, seconds: int) -> AccessError:
    """Make a refusal that ends by itself after some seconds."""
    error = AccessError(code, message, hint=hint)
    error.retry_after = seconds
    return error


def _too_many() -> AccessError:
    hint = "try again in a second; tokens go on working"
    return _later("AUT-004", "too many logins wait for their turn", hint, 1)


def _waiting(times: int) -> float:
    """Give how many seconds must pass after so many failures in a row."""
    if times < FREE_FAILURES:
        return 0.0
    return float(min(LONGEST_WAIT, 2.0 ** min(times - FREE_FAILURES, 30)))


def _failures_of(rows: Rows, key: str) -> tuple[int, float]:
    row = rows.one("SELECT times, latest FROM failures WHERE key = ?", key)
    return (0, 0.0) if row is None else (row[0], row[1])


def _put(rows: Rows, key: str, who: str, times: int, latest: float) -> None:
    if not rows.do("UPDATE failures SET times = ?, latest = ? WHERE key = ?", times, latest, key):
        rows.do(
            "INSERT INTO failures (key, who, times, latest) VALUES (?, ?, ?, ?)",
            key, who, times, latest,
        )  # fmt: skip


def _make_room(rows: Rows, now: float) -> None:
    """Forget old failures; of too many, those of names that failed seldom and long ago."""
    rows.do("DELETE FROM failures WHERE latest < ?", now - _FORGOTTEN_AFTER)
    row = rows.one("SELECT count(*) FROM failures")
    if row is not None and row[0] >= _MOST_NAMES:
        rows.do(
            "DELETE FROM failures WHERE key IN"
            " (SELECT key FROM failures ORDER BY times, latest LIMIT ?)",
            row[0] - _MOST_NAMES + 2,
        )
