"""Whether a question could be answered now: each thing that it needs is tried, not believed.

In: named checks. Out: which of them hold. Anybody may ask, so they run one at a time in a thread of their own, and what
they found holds for a moment. Names only: why one fails is for the log.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future

from secant.errors import SecantError, debugging
from secant.records import frozen

HOLDS = 2.0
"""Seconds for which a finding holds."""

_log = logging.getLogger("secant.service")


@frozen
class Check:
    """Something that a question needs."""

    name: str
    look: Callable[[], object]
    """Raises, or gives False, where it is not there."""


@frozen
class Findings:
    """What the checks have found."""

    checks: dict[str, bool]

    @property
    def ready(self) -> bool:
        """Whether all of them hold."""
        return all(self.checks.values())


class Readiness:
    """The checks of a service; fronts add their own."""

    def __init__(self, *checks: Check, now: Callable[[], float] = time.monotonic) -> None:
        self._checks = list(checks)
        self._now = now
        self._lock = threading.Lock()
        self._found: tuple[float, Future[Findings]] | None = None

    def add(self, check: Check) -> None:
        """Let one more thing be needed from now on."""
        with self._lock:
            self._checks = [*(c for c in self._checks if c.name != check.name), check]
            self._found = None

    def looking(self) -> Future[Findings]:
        """Give what was found a moment ago, or is being found: whoever asks meanwhile waits for the same."""
        with self._lock:
            if self._found is not None:
                ended, future = self._found
                if not future.done() or self._now() < ended:
                    return future
            future = Future()
            self._found = (self._now() + HOLDS, future)
            checks = tuple(self._checks)
        threading.Thread(
            target=self._look, args=(checks, future), name="secant readiness", daemon=True
        ).start()
        return future

    def _look(self, checks: tuple[Check, ...], future: Future[Findings]) -> None:
        findings = Findings({check.name: _holds(check) for check in checks})
        with self._lock:
            if self._found is not None and self._found[1] is future:
                self._found = (self._now() + HOLDS, future)
        future.set_result(findings)


def _holds(check: Check) -> bool:
    try:
        if check.look() is not False:
            return True
        _log.warning("not ready: %s", check.name)
    except SecantError as error:
        _log.warning("not ready: %s: %s %s", check.name, error.code, error.message)
    except Exception as error:  # its text may quote data
        if debugging():
            raise
        _log.error("not ready: %s: an unexpected %s", check.name, type(error).__name__)
    return False
