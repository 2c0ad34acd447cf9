"""A sampling run on disk, so that it can go on where it was cut off (blackbox.resume).

In: what the run is about and each measured distance. Out: a text file, one JSON line a record, that
only grows. The first line fixes everything that decides the distances, the seed included; a file
that is about another run is refused. Sampled records are never written.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

from secant.errors import UsageError

VERSION = 2
_HINT = "name another state file, or remove this one to start afresh"


class RunState:
    """An open state file: what is measured already, and where to write what comes."""

    def __init__(self, file: TextIO | None, head: Mapping[str, Any]) -> None:
        self._file = file
        self.head = dict(head)
        self.measured: dict[int, float] = {}
        self.seals: dict[int, str] = {}
        """Digests of the results of some samples."""
        self.shape: tuple[int, ...] | None = None

    @property
    def seed(self) -> int:
        """Give the seed of the run."""
        return int(self.head["seed"], 16)

    def add(self, number: int, distance: float, shape: tuple[int, ...] | None, seal: str) -> None:
        """Keep one distance, durably if there is a file."""
        self.measured[number] = distance
        self.shape = shape
        if seal:
            self.seals[number] = seal
        if self._file is not None:
            line = [number, distance.hex(), None if shape is None else list(shape), seal]
            self._file.write(json.dumps(line) + "\n")

    def flush(self) -> None:
        """Hand what was added to the operating system."""
        if self._file is not None:
            self._file.flush()


@contextmanager
def run_state(
    location: str | Path | None, about: Mapping[str, Any], seed: int
) -> Iterator[RunState]:
    """Open the run's file, creating it if it is missing; without a place nothing is kept."""
    head = {"secant": "sensitivity", "version": VERSION, **about, "seed": f"{seed:x}"}
    if location is None:
        yield RunState(None, head)
        return
    path = Path(location)
    try:
        path.touch(exist_ok=True)
        file = path.open("r+", encoding="utf-8")
    except OSError:
        raise UsageError("USE-009", "the state file cannot be opened", hint=_HINT) from None
    with file:
        _lock(file)
        try:
            yield _read(file, head)
        finally:
            file.flush()


def _lock(file: TextIO) -> None:
    try:
        import fcntl
    except ImportError:  # not on Windows: there two runs on one file are the caller's care
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise UsageError("USE-009", "another run uses this state file", hint=_HINT) from None


def _read(file: TextIO, head: Mapping[str, Any]) -> RunState:
    text = file.read()
    whole = text[: text.rfind("\n") + 1]  # a line that was cut off never counted
    file.seek(len(whole.encode("utf-8")))
    file.truncate()
    lines = whole.splitlines()
    if not lines:
        file.write(json.dumps(head) + "\n")
        return RunState(file, head)
    try:
        stored = json.loads(lines[0])
        state = RunState(file, stored)
        same = {key: value for key, value in stored.items() if key != "seed"}
        if same != {key: value for key, value in head.items() if key != "seed"}:
            raise UsageError(
                "USE-009",
                "the state file is about another run",
                hint=_HINT,
                details=tuple(f"{key} differs" for key in _different(stored, head)),
            )
        int(stored["seed"], 16)
        _replay(state, lines[1:], int(head["m"]))
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError) as error:
        if isinstance(error, UsageError):
            raise
        raise UsageError("USE-009", "the state file cannot be read", hint=_HINT) from None
    return state


def _different(stored: Mapping[str, Any], head: Mapping[str, Any]) -> Iterable[str]:
    return [key for key in head if key != "seed" and stored.get(key) != head[key]]


def _replay(state: RunState, lines: list[str], m: int) -> None:
    for line in lines:
        number, distance, shape, seal = json.loads(line)
        measured = float.fromhex(distance)
        if not (isinstance(number, int) and 0 <= number < m and 0 <= measured < math.inf):
            raise ValueError("a line is out of range")
        state.measured[number] = measured
        if seal:
            state.seals[number] = str(seal)
        state.shape = None if shape is None else tuple(int(side) for side in shape)
