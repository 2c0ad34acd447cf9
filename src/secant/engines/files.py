"""Files that must not change while they are read: what the file system says of them, to compare.

In: paths. Out: a state that is equal to a later one only if nothing was written in between, as far as the file system
can tell. No file is opened here: closing one would give up the lock that the engine holds on it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from hashlib import sha256
from operator import attrgetter
from pathlib import Path

from secant.engines.backend import changed
from secant.errors import BackendError

State = tuple[tuple[str, int, int, int, int, int], ...]

_TICK = 0.02
"""Seconds. File systems note times in steps of up to 10 ms: a second write in the same step leaves no mark."""
_TRIES = 50
"""Times that a state is looked at before a file that is being written is given up."""


_parts = attrgetter("parts")  # what paths are compared by, read once for each


def state_of(paths: Iterable[Path]) -> State:
    """Give what tells a later content of the files from this one; a file that is missing has no line."""
    state = []
    for path in sorted(paths, key=_parts):
        try:
            seen = os.stat(path)
        except OSError:
            continue
        # The change time as well: who copies a file can set its modification time back.
        state.append(
            (str(path), seen.st_dev, seen.st_ino, seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns)
        )
    return tuple(state)


def version_name(state: State) -> str:
    """Name the content of files by what the file system says of them."""
    return "files " + sha256(repr(state).encode()).hexdigest()


def settled_state(paths: Iterable[Path]) -> State:
    """Give the state of files whose last change is old enough for the next one to leave a mark."""
    ordered = sorted(paths)
    for _ in range(_TRIES):
        state = state_of(ordered)
        newest = max((max(line[4:]) for line in state), default=0)
        if abs(time.time_ns() - newest) > _TICK * 1e9:
            return state
        time.sleep(_TICK)
    raise BackendError(
        "BAK-001",
        "the files of the data source are being written",
        hint="connect when they are whole",
    )


def same_state(before: State, paths: Iterable[Path]) -> None:
    """Raise BAK-004 if the files are not as they were."""
    if state_of(paths) != before:
        raise changed("a file of the data source")
