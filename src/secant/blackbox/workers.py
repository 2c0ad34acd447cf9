"""Calls of foreign code in processes of their own, each call with a time limit.

In: a task, the numbers of its runs, how many processes. Out: results as they come, or one finding
of what went wrong. A process that takes too long is killed, the others with it. A finding carries the
class of an exception and never its text, which may quote a record.
"""

from __future__ import annotations

import multiprocessing
import signal
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from multiprocessing import connection
from pickle import PicklingError
from typing import Any

from secant.blackbox.measure import Misbehaved

Beat = Callable[[], None]
Task = Callable[[int, Beat], Any]
"""Runs in a child: takes a number and a function that starts the clock of the next call."""
Runs = Generator[tuple[int, Any], None, None]

_BATCH_SECONDS = 0.1  # seconds of work that are handed over at once
_GRACE = 0.5  # seconds; a child under load may be late to say that a call began


class TimedOut(Exception):  # noqa: N818 - a finding about the caller's function
    """A call did not end within the time limit, or its process did not survive it."""


@dataclass(slots=True)
class _Worker:
    process: Any
    pipe: Any
    deadline: float
    pace: float = _BATCH_SECONDS
    """Seconds for one run, as last seen."""


def _no_clock() -> None:
    """Start no clock: there is no time limit here."""


def run_here(task: Task, numbers: Sequence[int]) -> Runs:
    """Run in this process, one after the other, without a time limit."""
    for number in numbers:
        yield number, guarded(partial(task, number, _no_clock))


def run_apart(task: Task, numbers: Sequence[int], *, workers: int, time_limit: float) -> Runs:
    """Run in `workers` processes; results come in any order. Close the iterator to stop them."""
    # fork hands over closures and data as they are; where there is none, they must be picklable
    forks = "fork" in multiprocessing.get_all_start_methods()
    context = multiprocessing.get_context("fork" if forks else "spawn")
    left = deque(numbers)
    running: dict[Any, _Worker] = {}
    try:
        for _ in range(min(workers, len(left))):
            worker = _start_worker(context, task, _quiet(time_limit), _silence_limit(time_limit))
            running[worker.pipe] = worker
        for worker in list(running.values()):
            _hand_over(worker, left, len(running), running)
        while running:
            yield from _collect(running, left, time_limit)
    finally:
        for worker in running.values():
            _stop_worker(worker)


def _quiet(time_limit: float) -> float:
    """Give the seconds between two signs of life: rare, since each one wakes the parent."""
    return min(1.0, time_limit / 100)


def _silence_limit(time_limit: float) -> float:
    """Give the seconds after the last sign of life at which a call has surely taken too long."""
    return time_limit + _quiet(time_limit) + _GRACE


def _start_worker(context: Any, task: Task, quiet: float, seconds: float) -> _Worker:
    mine, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(task, theirs, quiet))
    process.start()
    theirs.close()
    return _Worker(process, mine, time.monotonic() + seconds)


def _hand_over(
    worker: _Worker, left: deque[int], workers: int, running: dict[Any, _Worker]
) -> None:
    """Give the worker about a tenth of a second of work, or let it go if none is left."""
    share = min(int(_BATCH_SECONDS / max(worker.pace, 1e-6)), len(left) // (2 * workers))
    numbers = [left.popleft() for _ in range(min(max(1, share), len(left)))]
    try:
        worker.pipe.send(numbers)
    except OSError:
        raise TimedOut("ended its process") from None
    if not numbers:
        del running[worker.pipe]
        worker.process.join(_GRACE)  # a thread that the function left behind would keep it
        _stop_worker(worker)


def _stop_worker(worker: _Worker) -> None:
    worker.process.kill()
    worker.process.join()
    worker.pipe.close()


def _collect(
    running: dict[Any, _Worker], left: deque[int], time_limit: float
) -> Iterator[tuple[int, Any]]:
    until = min(worker.deadline for worker in running.values()) - time.monotonic()
    for pipe in connection.wait(list(running), max(0.0, until)):
        worker = running[pipe]
        try:
            kind, content = worker.pipe.recv()
        except (EOFError, OSError):
            raise TimedOut("ended its process") from None
        worker.deadline = time.monotonic() + _silence_limit(time_limit)
        if kind == "found":
            raise Misbehaved(content)
        yield from content
        if kind == "done":
            worker.pace = worker.pipe.recv()
            _hand_over(worker, left, len(running), running)
            worker.deadline = time.monotonic() + _silence_limit(time_limit)
    now = time.monotonic()
    if any(worker.deadline < now and not worker.pipe.poll() for worker in running.values()):
        raise TimedOut(f"took longer than {time_limit:g} seconds")


def _serve(task: Task, pipe: Any, quiet: float) -> None:
    """Run what is handed over until an empty batch comes; the parent sees to Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    results: list[tuple[int, Any]] = []
    last_sent = 0.0

    def beat() -> None:
        nonlocal last_sent
        if time.monotonic() - last_sent > quiet:
            pipe.send(("alive", results.copy()))
            results.clear()
            last_sent = time.monotonic()

    try:
        while numbers := pipe.recv():
            started = time.perf_counter()
            for number in numbers:
                results.append((number, guarded(partial(task, number, beat))))
            pipe.send(("done", results.copy()))
            pipe.send((time.perf_counter() - started) / len(numbers))
            results.clear()
            last_sent = time.monotonic()
    except Misbehaved as finding:
        pipe.send(("found", str(finding)))
    except (PicklingError, AttributeError, TypeError):  # pickle raises all of these
        pipe.send(("found", "gave a result that cannot leave its process"))
    except (EOFError, OSError, KeyboardInterrupt):
        return  # the parent is gone, or the function wants to be


def guarded(call: Callable[[], Any], whose: str = "") -> Any:
    """Give what foreign code gives; if it raises, only the class of what it raised."""
    try:
        return call()
    except (Misbehaved, KeyboardInterrupt):
        raise
    except BaseException as error:  # noqa: BLE001 - foreign code may raise anything, SystemExit too
        raise Misbehaved(f"{whose}raised {type(error).__name__}") from None
