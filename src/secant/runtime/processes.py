"""Threads and forked children: locks and connections that belong to one process.

In: a way to make a connection. Out: the one of this process. A child that was forked finds every lock free and makes
its own connections; what it inherits it neither uses nor closes nor frees, since that would speak on the parent's
socket, or wait for threads that exist in the parent only.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Generic, TypeVar
from weakref import WeakSet

Resource = TypeVar("Resource")


class ProcessLock:
    """A lock between threads that a forked child finds free, whoever held it in the parent."""

    def __init__(self) -> None:
        self._process, self._lock = os.getpid(), threading.RLock()

    def __enter__(self) -> None:
        if self._process != os.getpid():
            self._process, self._lock = os.getpid(), threading.RLock()
        self._lock.acquire()

    def __exit__(self, *error: object) -> None:
        self._lock.release()


class PerProcess(Generic[Resource]):
    """Something that is made once in every process that asks for it."""

    def __init__(self, make: Callable[[], Resource], close: Callable[[Resource], None]) -> None:
        self._make, self._close = make, close
        self._lock = ProcessLock()
        self._process = os.getpid()
        self._made: Resource | None = make()
        _everything.add(self)

    def get(self) -> Resource:
        """Give this process's own; make it if there is none."""
        with self._lock:
            self.leave_to_parent()
            if self._made is None:
                self._made = self._make()
            return self._made

    @contextmanager
    def taken(self) -> Iterator[Resource]:
        """Give this process's own, and keep other threads away from it meanwhile."""
        with self._lock:
            yield self.get()

    def drop(self) -> None:
        """Close it; the next one to ask for it makes another."""
        with self._lock:
            self.leave_to_parent()
            if self._made is not None:
                self._close(self._made)
                self._made = None

    def leave_to_parent(self) -> None:
        """Let go of what a parent made, without freeing it."""
        if self._process != os.getpid():
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._made))  # never freed in this process
            self._process, self._made = os.getpid(), None


_everything: WeakSet[PerProcess[Any]] = WeakSet()


def _leave_all() -> None:
    """Run in every forked child: it may end without having asked for anything, and would free what it inherited."""
    for each in list(_everything):
        each.leave_to_parent()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_all)
