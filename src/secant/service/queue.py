"""A fair queue: whoever asks much does not keep others waiting.

In: work, each with the name of who asks. Out: futures. Users take turns; one user's questions start in the order in
which they came. What waits when the queue closes is refused, what runs may end.
"""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from secant.errors import SecantError, ServiceError

Work = Callable[[], Any]


def too_many_questions() -> SecantError:
    """Say that too many questions wait."""
    return ServiceError(
        "SRV-001",
        "too many questions are waiting",
        hint="wait for answers before asking more; nothing was charged",
    )


class FairQueue:
    """Some threads, and for each user a line of work that waits for one."""

    def __init__(
        self,
        *,
        workers: int,
        each_user: int,
        waiting: int,
        waiting_of_user: int,
        full: Callable[[], SecantError] = too_many_questions,
        what: str = "question",
    ) -> None:
        self._full = full
        self._each_user, self._waiting, self._waiting_of_user = each_user, waiting, waiting_of_user
        self._lines: OrderedDict[str, deque[tuple[Future[Any], Work]]] = OrderedDict()
        self._running: dict[str, int] = {}
        self._count = 0
        self._closed = False
        self._change = threading.Condition()
        self._threads = [
            threading.Thread(target=self._serve, name=f"secant {what} {n}", daemon=True)
            for n in range(workers)
        ]
        for thread in self._threads:
            thread.start()

    def put(self, who: str, work: Work, future: Future[Any] | None = None) -> Future[Any]:
        """Let some work wait for its turn; an error if too much waits already. `future` gets the result."""
        future = Future() if future is None else future
        with self._change:
            if self._closed:
                raise stopping()
            line = self._lines.setdefault(who, deque())
            if self._count >= self._waiting or len(line) >= self._waiting_of_user:
                if not line:
                    del self._lines[who]
                raise self._full()
            line.append((future, work))
            self._count += 1
            self._change.notify()
        return future

    def sizes(self) -> tuple[int, int]:
        """Give how many wait and how many run."""
        with self._change:
            return self._count, sum(self._running.values())

    def close(self) -> list[Future[Any]]:
        """Take nothing more, and refuse what waits; give the futures that were refused."""
        with self._change:
            self._closed = True
            left = [future for line in self._lines.values() for future, _ in line]
            self._lines.clear()
            self._count = 0
            self._change.notify_all()
        for future in left:
            if future.set_running_or_notify_cancel():
                future.set_exception(stopping())
        return left

    def join(self, seconds: float | None) -> bool:
        """Wait until nothing runs any more; say whether that came in time."""
        with self._change:
            return self._change.wait_for(lambda: not self._running, seconds)

    def _serve(self) -> None:
        while (task := self._next()) is not None:
            who, future, work = task
            try:
                if future.set_running_or_notify_cancel():
                    try:
                        future.set_result(work())
                    except BaseException as error:  # noqa: BLE001 - raised where it is waited for
                        future.set_exception(error)
            finally:
                del future, work, task  # a thread that waits must not keep an answer in memory
                with self._change:
                    self._running[who] -= 1
                    if not self._running[who]:
                        del self._running[who]
                    self._change.notify_all()

    def _next(self) -> tuple[str, Future[Any], Work] | None:
        with self._change:
            while True:
                for who, line in self._lines.items():
                    if self._running.get(who, 0) < self._each_user:
                        future, work = line.popleft()
                        self._count -= 1
                        del self._lines[who]
                        if line:
                            self._lines[who] = line  # at the end: the others come first now
                        self._running[who] = self._running.get(who, 0) + 1
                        return who, future, work
                if self._closed:
                    return None
                self._change.wait()


def stopping() -> ServiceError:
    """Say that the service ends."""
    return ServiceError(
        "SRV-001", "the service stops", hint="ask again when it is back; nothing was charged"
    )
