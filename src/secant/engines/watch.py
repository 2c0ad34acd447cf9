"""Calls into an engine that may take for ever: ended when their time is up, by Ctrl-C, and by another thread.

In: a call, how to stop it, how long it may take. Out: what the call gives. The call runs in a thread of its own,
because Python sees no signal while an engine's code runs in its main thread. A call that cannot be stopped is left
behind: its thread ends with the process, and nobody gets its result.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Generic, TypeVar

from secant.errors import BackendError, over_limit

T = TypeVar("T")

STOPPING = 5.0
"""Seconds that a call has to end after it was told to stop."""
_AGAIN = 0.05
"""Seconds after which it is told again: an engine forgets an interruption that comes before its statement begins."""


class Interrupt:
    """How another thread ends one question, and how long the question may take altogether."""

    def __init__(self) -> None:
        self._until: float | None = None
        self._lock = threading.Lock()
        self._waiting: set[threading.Event] = set()
        self._stopped = False
        self.charged = False
        """Whether the question has come to where it is charged; what was sent stays charged, whoever leaves."""

    def begin(self, seconds: float) -> None:
        """Let the time of the question begin; raise if it was stopped before."""
        self._until = time.monotonic() + seconds
        self.check()

    def stop(self) -> None:
        """End the statement that runs, and let no other begin."""
        with self._lock:
            self._stop()

    def _stop(self) -> None:
        self._stopped = True
        for event in self._waiting:
            event.set()

    def charge(self) -> None:
        """Let the question be charged from here on; raise if it was stopped before, when it costs nothing yet."""
        with self._lock:
            if self._stopped:
                raise canceled()
            self.charged = True

    def abandon(self) -> bool:
        """Stop a question that nobody waits for, unless it is charged; say whether it was stopped."""
        with self._lock:
            if not self.charged:
                self._stop()
            return not self.charged

    def check(self) -> None:
        """Raise if the question was stopped, or has had its time."""
        if self._stopped:
            raise canceled()
        if self._until is not None and time.monotonic() >= self._until:
            raise over_limit()

    def wait(self, event: threading.Event, seconds: float | None) -> None:
        """Wait for an event, for so long at most; `stop` ends the waiting by setting it."""
        if self._until is not None:
            left = max(0.0, self._until - time.monotonic())
            seconds = left if seconds is None else min(seconds, left)
        with self._lock:
            self._waiting.add(event)
            if self._stopped:
                event.set()
        try:
            event.wait(seconds)
        finally:
            with self._lock:
                self._waiting.discard(event)


_current: ContextVar[Interrupt] = ContextVar("secant interrupt")


@contextmanager
def interruptible(interrupt: Interrupt | None) -> Iterator[None]:
    """Let all statements that this thread sends in the block end with `interrupt`, if there is one."""
    if interrupt is None:
        yield
        return
    before = _current.set(interrupt)
    try:
        yield
    finally:
        _current.reset(before)


def about_to_charge() -> None:
    """Say that the question of this thread is charged next; raise if it was stopped, while that is still free."""
    interrupt = _current.get(None)
    if interrupt is not None:
        interrupt.charge()


def canceled() -> BackendError:
    """Say that whoever asked, or the owner, ended a question."""
    return BackendError(
        "BAK-006",
        "the question was canceled",
        hint="ask again; budget that was reserved for a statement that was sent stays spent",
    )


class _Call(threading.Thread, Generic[T]):
    def __init__(self, call: Callable[[], T]) -> None:
        super().__init__(name="secant statement", daemon=True)
        self._call = call
        self.done = threading.Event()
        self.awake = threading.Event()
        """Set when there is something to look at: the call is done, or must end."""
        self.result: T | None = None
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            self.result = self._call()
        except BaseException as error:  # noqa: BLE001 - raised where the call is waited for
            self.error = error
        finally:
            del self._call
            self.done.set()
            self.awake.set()


def watched(call: Callable[[], T], stop: Callable[[], None], seconds: float | None) -> T:
    """Give what a call gives; if it takes longer, or an interrupt comes, stop it and raise."""
    interrupt = _current.get(None) or Interrupt()
    interrupt.check()
    working = _Call(call)
    try:
        working.start()
        interrupt.wait(working.awake, seconds)
    except BaseException:
        _end(working, stop)
        raise
    if not working.done.is_set():
        _end(working, stop)
        interrupt.check()
        raise over_limit()
    if working.error is not None:
        raise working.error
    return working.result  # type: ignore[return-value]  # there is one, for nothing was raised


def _end(working: _Call[T], stop: Callable[[], None]) -> None:
    given_up = time.monotonic() + STOPPING
    while working.is_alive() and time.monotonic() < given_up:
        stop()
        working.done.wait(_AGAIN)
