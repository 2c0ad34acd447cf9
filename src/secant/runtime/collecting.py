"""The collector of cyclic garbage, while a question is open.

In: nothing. Out: a block in which Python looks for cycles of objects less often. A plan has no cycles and goes by
itself, yet the collector goes through each of its nodes several times while it grows: a sixth of the time from a text
to a job. Nothing that a question says depends on when cycles are found. The collector is not turned off: it starts
after as many new objects as a large plan has, so that what waits for it is bounded, however many are planned at once.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

from secant.runtime.processes import ProcessLock

SELDOM = 100_000
"""New objects until the collector starts: some ten megabytes of them."""


class _Planning:
    """How many questions are being planned, and what the collector was set to before the first of them."""

    def __init__(self) -> None:
        self.lock = ProcessLock()
        self.questions = 0
        self.usual: tuple[int, int, int] | None = None


_planning = _Planning()


@contextmanager
def seldom_collecting() -> Iterator[None]:
    """Let the collector start after more new objects than usual; what the program has set is back at the end."""
    with _planning.lock:
        usual = gc.get_threshold()
        if not _planning.questions and 0 < usual[0] < SELDOM:  # zero: the program has turned it off
            _planning.usual = usual
            gc.set_threshold(SELDOM, *usual[1:])
        _planning.questions += 1
    try:
        yield
    finally:
        with _planning.lock:
            _planning.questions -= 1
            if not _planning.questions and _planning.usual is not None:
                if gc.get_threshold()[0] == SELDOM:  # else the program has set it meanwhile
                    gc.set_threshold(*_planning.usual)
                _planning.usual = None
