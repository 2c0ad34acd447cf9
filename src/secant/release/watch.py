"""Calls into an engine that may take for ever: ended when their time is up, and by Ctrl-C.

In: a call, how to stop it, how long it may take. Out: what the call gives. The call runs in a thread of its own,
because Python sees no signal while an engine's code runs in its main thread. A call that cannot be stopped is left
behind: its thread ends with the process, and nobody gets its result.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

from secant.errors import over_limit

T = TypeVar("T")

STOPPING = 5.0
"""Seconds that a call has to end after it was told to stop."""
_AGAIN = 0.05
"""Seconds after which it is told again: an engine forgets an interruption that comes before its statement begins."""


class _Call(threading.Thread, Generic[T]):
    def __init__(self, call: Callable[[], T]) -> None:
        super().__init__(name="secant statement", daemon=True)
        self._call = call
        self.done = threading.Event()
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


def watched(call: Callable[[], T], stop: Callable[[], None], seconds: float | None) -> T:
    """Give what a call gives; if it takes longer, or an interrupt comes, stop it and raise."""
    working = _Call(call)
    try:
        working.start()
        in_time = working.done.wait(seconds)
    except BaseException:
        _end(working, stop)
        raise
    if not in_time:
        _end(working, stop)
        raise over_limit()
    if working.error is not None:
        raise working.error
    return working.result  # type: ignore[return-value]  # there is one, for nothing was raised


def _end(working: _Call[T], stop: Callable[[], None]) -> None:
    given_up = time.monotonic() + STOPPING
    while working.is_alive() and time.monotonic() < given_up:
        stop()
        working.done.wait(_AGAIN)
