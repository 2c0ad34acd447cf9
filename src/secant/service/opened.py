"""The connection that questions use now: opened anew when the policy or the data have changed.

In: where policy and data are. Out: a connection, with names for the policy and for the version of the data that it
answers from. A policy that has mistakes after a change stops all questions: what an owner has just forbidden must not
go on under the rules of before.
"""

from __future__ import annotations

import hashlib
import logging
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from secant.engine import Connection, connect
from secant.engines.files import State, state_of, version_name
from secant.engines.sources import source_files
from secant.errors import SecantError, UsageError
from secant.policy.file import load_policy
from secant.policy.policy import Policy
from secant.policy.streams import SECONDS
from secant.service.settings import Settings

_log = logging.getLogger("secant.service")
ALIKE = "15 minutes"
"""How long the rows of a server count as the same, where the owner does not say."""
_clock = time.time


@dataclass(slots=True)
class Opened:
    """A connection that several questions may use at the same time."""

    connection: Connection
    policy_digest: str
    seen: State
    """Files of policy and data as they were before they were read."""
    version: str | None
    """Names the version of the data by their files or as a snapshot; None where a column, the clock or nothing does."""
    users: int = 1
    plans: dict[str, str] = field(default_factory=dict)
    """Digest of a question's text and parameters -> digest of its plan, which depends on the catalog."""


class Openings:
    """Opens, and opens again."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._now: Opened | None = None
        self._files: tuple[State, Policy] | None = None

    @contextmanager
    def taken(self) -> Iterator[Opened]:
        """Give the connection for one question."""
        opened = self._current()
        try:
            yield opened
        finally:
            self._let_go(opened)

    def close(self) -> None:
        """Let go of the connection; questions that run keep it until they end."""
        with self._lock:
            before, self._now = self._now, None
        if before is not None:
            self._let_go(before)

    def _current(self) -> Opened:
        with self._lock:
            seen = self._seen()
            if self._now is None or self._now.seen != seen:
                before, self._now = self._now, None
                if before is not None:
                    self._drop(before)
                    _log.info("policy or data have changed: opening again")
                self._now = self._open(seen)
            self._now.users += 1
            return self._now

    def _seen(self) -> State:
        """Look at the files of policy and data; the policy is read again only where its file has changed."""
        path = self._settings.policy
        state = state_of([path])
        if self._files is None or self._files[0] != state:
            self._files = (state, load_policy(path))
        files = self._data_files(self._files[1])
        return state if files is None else (*state, *state_of(files))

    def _data_files(self, policy: Policy) -> list[Path] | None:
        if self._settings.source is not None:
            return source_files(self._settings.source)
        return source_files(policy.source, beside=self._settings.policy.parent)

    def _open(self, seen: State) -> Opened:
        policy = self._settings.policy
        loaded = load_policy(policy)
        # Each question has its part of the memory: one that needs more fails alone.
        limits = replace(loaded.limits, at_once=self._settings.questions.workers)
        connection = connect(self._settings.source, policy=replace(loaded, limits=limits))
        try:
            check_version(self._settings.reuse.version, connection.policy)
            digest = hashlib.sha256(policy.read_bytes()).hexdigest()
            if self._seen() != seen:
                raise UsageError("USE-001", "policy or data change while they are read")
        except BaseException:
            connection.close()
            raise
        return Opened(connection, digest, seen, self._version(seen, connection.policy))

    def _version(self, seen: State, policy: Policy) -> str | None:
        kind, _, name = self._settings.reuse.version.partition(" ")
        if kind == "snapshot":
            return f"snapshot {name}"
        if kind in ("auto", "files") and self._data_files(policy) is not None:
            return version_name(seen[1:])
        return None

    def _let_go(self, opened: Opened) -> None:
        with self._lock:
            self._drop(opened)

    def _drop(self, opened: Opened) -> None:
        opened.users -= 1
        if not opened.users:
            opened.connection.close()


def check_version(version: str, policy: Policy) -> None:
    """Refuse a version of the data that nobody could tell, or that would show protected rows."""
    kind, _, name = version.partition(" ")
    if kind in ("auto", "files", "none") and not name:
        return
    if kind == "snapshot" and name.strip():
        return
    if kind == "every" and period_of(name) is not None:
        return
    if kind == "column":
        table, _, column = name.partition(".")
        if table.lower() in policy.public and column.isidentifier():
            return
        raise UsageError(
            "USE-001",
            "the column that tells the version of the data must be of a table that the policy names public",
            hint='say version = "column TABLE.COLUMN" under [reuse], and name TABLE public in the policy',
        )
    raise UsageError(
        "USE-001",
        "the version of the data under [reuse] is not understood",
        hint='say "auto", "files", "every 15 minutes", "column TABLE.COLUMN", "snapshot NAME" or "none"',
    )


def period_of(text: str) -> int | None:
    """Read a length of time in seconds: `15 minutes`, `1 day`; None if it is none."""
    match = re.fullmatch(r"([1-9][0-9]{0,5}) (second|minute|hour|day|week)s?", text)
    return None if match is None else int(match[1]) * SECONDS[match[2]]


def version_of(opened: Opened, version: str) -> str | None:
    """Name the version of the data now; None where nothing tells it, and nothing may be reused.

    A server could tell when its rows change, but then everybody who asks twice would hear it: that an answer is made
    anew would say that some row, perhaps somebody's only one, has changed. A clock says nothing of rows.
    """
    kind, _, name = version.partition(" ")
    if kind == "auto" and opened.version is None:
        kind, name = "every", ALIKE
    if kind == "every":
        seconds = period_of(name)
        assert seconds is not None, "it was checked"
        begun = datetime.fromtimestamp(_clock() // seconds * seconds, UTC)
        return f"every {name} {begun:%Y-%m-%dT%H:%M:%SZ}"
    if kind != "column":
        return opened.version
    table, _, column = name.partition(".")
    latest = _quoted(table), _quoted(column)
    try:
        answer = opened.connection.sql(
            f"SELECT max({latest[1]}) AS latest FROM {latest[0]}", epsilon=1
        )
    except SecantError:
        _log.warning(
            "the column that tells the version of the data cannot be read: nothing is reused"
        )
        return None
    if answer.release_id is not None:
        raise AssertionError("a public table was charged for")
    return f"column {answer.rows[0][0]!r}"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
