"""A server that is kept running: a thread of its own starts it, waits for its end, and starts it again.

In: how a server is started. Out: the server that runs now, if one does. One that ended is never gone on with: its
successor begins with an empty folder. The system ends a server with the thread that started it, so that this thread
lives as long as the port.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from secant.errors import SecantError
from secant.service.postgres.server_process import Server

FIRST_WAIT, LONGEST_WAIT = 0.1, 30.0
"""Seconds before another start; they double while servers end soon."""
STEADY = 60.0
"""Seconds after which a server counts as one that runs."""

_log = logging.getLogger("secant.service")


class Supervised:
    """A server and its successors. Stop it."""

    def __init__(self, start: Callable[[], Server]) -> None:
        """Start the first server, and raise what it raises."""
        self._start = start
        self.server: Server | None = None
        """The server that runs now; None between two."""
        self._began = threading.Event()
        self._stopping = threading.Event()
        self._failure: BaseException | None = None
        self._ended: list[Server] = []
        self._thread = threading.Thread(target=self._run, name="secant shadow", daemon=True)
        self._thread.start()
        self._began.wait()
        if self._failure is not None:
            raise self._failure

    def stop(self) -> None:
        """End the server that runs, and start no other."""
        self._stopping.set()
        server = self.server
        if server is not None:
            server.stop()
        self._thread.join()
        self._remove()

    def _remove(self) -> None:
        """Remove the files of servers that have ended; processes that outlived theirs may write some again."""
        self._ended = [server for server in self._ended if not server.remove()]

    def _run(self) -> None:
        wait = FIRST_WAIT
        while True:
            try:
                server = self._start()
            except BaseException as error:  # noqa: BLE001 - told to who waits, or logged
                if not self._began.is_set():
                    self._failure = error
                    self._began.set()
                    return
                _log.error(
                    "the schema-only PostgreSQL server cannot be started: %s", _reason(error)
                )
            else:
                began = time.monotonic()
                self._serve(server)
                if time.monotonic() - began >= STEADY:
                    wait = FIRST_WAIT
            if self._stopping.wait(wait):
                return
            wait = min(2 * wait, LONGEST_WAIT)

    def _serve(self, server: Server) -> None:
        """Let a server be used until it ends."""
        if self._began.is_set():
            _log.warning("the schema-only PostgreSQL server runs again")
        self.server = server
        self._began.set()
        if self._stopping.is_set():  # asked for while it was starting
            server.stop()
        status = server.process.wait()
        self.server = None
        if not self._stopping.is_set():
            _log.error(
                "the schema-only PostgreSQL server ended by itself (status %s): it is started again",
                status,
            )
            self._ended.append(server)
            self._remove()


def _reason(error: BaseException) -> str:
    return error.message if isinstance(error, SecantError) else type(error).__name__
