"""The connections of a backend to its server: one of each process, until the backend is closed.

In: how to connect and how to let go. Out: what is connected in this process; after the end a refusal that says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

from secant.engines.backend import closed
from secant.runtime.processes import PerProcess

Resource = TypeVar("Resource")


class Connections(Generic[Resource]):
    """What a backend has opened at its server; a forked child opens its own."""

    def __init__(self, connect: Callable[[], Resource], let_go: Callable[[Resource], None]) -> None:
        self._closed, self._connect = False, connect
        self._made = PerProcess(self._opened, let_go)

    def get(self) -> Resource:
        """Give this process's own."""
        return self._made.get()

    @contextmanager
    def opening(self) -> Iterator[Resource]:
        """Give it to a backend that looks around for the first time; if that fails, nothing stays open."""
        try:
            yield self.get()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Let go of it; nobody gets another."""
        self._closed = True
        self._made.drop()

    def _opened(self) -> Resource:
        if self._closed:
            raise closed()
        return self._connect()
