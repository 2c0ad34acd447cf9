"""A function of the caller's on one block after another, each with a limit of time if one is asked for.

In: the function, the rows of each block. Out: a number for each block, or None where it failed, gave
no number, or did not end in time. Which of these happened is not told: it depends on the rows.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from secant.errors import UsageError

Rows = npt.NDArray[np.float64]
Function = Callable[[Rows], Any]


def results_of(
    function: Function, blocks: Sequence[Rows], seconds: float | None
) -> list[float | None]:
    """Call the function on each block: here, or with a limit of time in a process apart."""
    if seconds is None:
        return [_result(function, rows) for rows in blocks]
    return _results_apart(function, blocks, seconds)


def _results_apart(
    function: Function, blocks: Sequence[Rows], seconds: float
) -> list[float | None]:
    """Let a child process work through the blocks; end it where one takes too long, and go on."""
    found: list[float | None] = []
    context = _forking()
    while len(found) < len(blocks):
        answers, sender = context.Pipe(duplex=False)
        child = context.Process(
            target=_serve, args=(function, blocks[len(found) :], sender), daemon=True
        )
        child.start()
        sender.close()
        try:
            while len(found) < len(blocks):
                if not answers.poll(seconds):
                    found.append(None)
                    break
                found.append(answers.recv())
        except EOFError:  # the child died of this block
            found.append(None)
        finally:
            child.kill()
            child.join()
            answers.close()
    return found


def check_time_limit(seconds: float) -> None:
    """Refuse a limit that cannot be kept, before anything is read."""
    if not 0 < seconds <= 86_400:
        raise UsageError("USE-001", "a block may take more than 0 and at most 86400 seconds")
    _forking()


def _forking() -> Any:
    if "fork" not in multiprocessing.get_all_start_methods():
        raise UsageError(
            "USE-001",
            "a limit of time needs a system that can fork processes",
            hint="Leave out seconds, if the function surely ends.",
        )
    return multiprocessing.get_context("fork")


def _serve(function: Function, blocks: Sequence[Rows], sender: Any) -> None:
    for rows in blocks:
        sender.send(_result(function, rows))


def _result(function: Function, rows: Rows) -> float | None:
    if not len(rows):
        return None
    try:
        with np.errstate(all="ignore"):
            result = function(rows)
        return float(result) if np.ndim(result) == 0 else None
    except (Exception, SystemExit):  # noqa: BLE001 - whether a block fails depends on its rows, and must not show
        return None
