"""Numbers are drawn once: read, add noise, make durable, and only then show (stream.once).

In: a compiled stream, its books, a way to begin a session. Out: the books with all steps that are complete. Exact sums
live here and in `reading` until noise is on them (I5), and in memory only: `Buffer` holds those that blocks still need,
shows nothing and cannot be copied out. What was drawn and could not be made durable is forgotten: nobody has seen it.
What is durable is never drawn again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from functools import partial
from typing import NoReturn

from secant.engines.backend import Session
from secant.errors import InternalError, Refused
from secant.ledger.store import Ledger, StreamAccount
from secant.noise.continual import Mechanism, Output
from secant.release.measured import comparable_key
from secant.streams.compiling import Compiled
from secant.streams.reading import Group, Sums, read, rows_until

TOGETHER = 64
"""So many steps are made durable at once, at most: a backlog is not written step by step."""


class Buffer:
    """Exact sums of the last steps, for blocks that are not complete yet (stream.kept). Private: for `advance` only.

    Also how many rows the steps so far had: rows that count are not to go, and here it can be seen if they do.
    """

    __slots__ = ("_rows", "_stream", "_sums")

    def __init__(self) -> None:
        self._stream: str | None = None
        self._sums: Sums = {}
        self._rows: tuple[str, int, int] | None = None

    def __repr__(self) -> str:
        return "<sums that are kept>"

    def __reduce__(self, *_: object) -> NoReturn:
        raise InternalError("BUG-001", "exact sums do not leave their process (I5)")

    __copy__ = __deepcopy__ = __reduce__

    def before(self, stream: str, first: int, needed: int) -> Sums:
        """Give the sums of steps up to `first`, if all from `needed` on are here; forget what does not go on."""
        whole = self._stream == stream and max(self._sums, default=0) == first - 1
        if not whole or min(self._sums, default=first) > needed:
            self._stream, self._sums = stream, {}
        return self._sums

    def keep(self, sums: Sums, since: int) -> None:
        """Keep what blocks that end later still need."""
        self._sums = {step: amounts for step, amounts in sums.items() if step >= since}

    def check_rows(self, stream: str, count: Callable[[int], int | None]) -> None:
        """Stop a stream whose table has lost rows of steps that were counted before; a table that grows never does."""
        if self._rows is None or self._rows[0] != stream:
            return
        _, through, rows = self._rows
        now = count(through)
        if now is not None and now < rows:
            raise Refused(
                "REF-108",
                f"rows that the stream {stream} has counted are gone, and it was declared append_only",
                hint="what was released stays, but its promise rests on rows that are never changed or removed: "
                "put them back, or end this stream",
            )

    def note_rows(self, stream: str, through: int, rows: int | None) -> None:
        """Remember how many rows there were in all steps so far."""
        self._rows = None if rows is None else (stream, through, rows)


def name_of(measure: int, group: int, output: str) -> str:
    """Give the name of a number in the books: which measure, which group, which output of the way."""
    return f"{measure}/{group}/{output}"


def advance(
    compiled: Compiled,
    ways: list[Mechanism],
    groups: list[Group],
    ledger: Ledger,
    until: int,
    session: Callable[[], AbstractContextManager[Session]],
    following: Buffer | None = None,
    reached: Callable[[int], object] = lambda step: None,
) -> StreamAccount:
    """Release every step up to `until` that is not released yet, in order; give the books afterwards.

    `reached` is told the last step that is durable, after each batch: it learns numbers of steps only,
    and by the clock no more than how long calls that end at these steps take.
    """
    name, cache = compiled.stream.name, following or Buffer()
    watched = following is not None and compiled.stream.append_only
    while True:
        account = ledger.stream(name)
        assert account is not None, "a stream is declared before it is read"
        first, last = account.through + 1, until
        if first > last:
            return account
        due = {step: [way.due(step) for way in ways] for step in range(first, last + 1)}
        needed = _needed(due.values())
        before = cache.before(name, first, min(needed))
        with session() as engine:
            count = partial(rows_until, compiled, session=engine)
            if watched:
                cache.check_rows(name, count)
                cache.note_rows(name, last, count(last))
            # All that is new at one moment (stream.first); steps of before as they were read then (stream.kept).
            sums = {**before, **read(compiled, needed - before.keys(), engine)}
            engine.confirm()  # what has seen two states is withheld, and nothing is drawn
        # If somebody else is faster, what was drawn here is forgotten, and the books are read again.
        done = _draw(name, ways, groups, ledger, due, sums, reached)
        cache.keep(sums if done else {}, min(way.open_since(last) for way in ways))


def _draw(
    name: str,
    ways: list[Mechanism],
    groups: list[Group],
    ledger: Ledger,
    due: Mapping[int, list[tuple[Output, ...]]],
    sums: Sums,
    reached: Callable[[int], object],
) -> bool:
    """Draw the numbers of some steps and make them durable; say no where somebody else has done so before."""
    steps = list(due)
    for start in range(0, len(steps), TOGETHER):
        batch = steps[start : start + TOGETHER]
        numbers = [_numbers(ways, groups, due[step], sums) for step in batch]
        if not ledger.draw_stream(name, batch[0], numbers):
            return False
        reached(batch[-1])
    return True


def _numbers(
    ways: list[Mechanism], groups: list[Group], due: list[tuple[Output, ...]], sums: Sums
) -> dict[str, int]:
    drawn = {}
    keys = [tuple(comparable_key(v) for v in group) for group in groups]
    for measure, (way, outputs) in enumerate(zip(ways, due, strict=True)):
        for output in outputs:
            for index, key in enumerate(keys):
                exact = sum(
                    weight * values[measure]
                    for step, weight in output.weights
                    if (values := sums[step].get(key)) is not None
                )
                drawn[name_of(measure, index, output.name)] = way.draw(output, exact)
    return drawn


def _needed(due: Iterable[list[tuple[Output, ...]]]) -> set[int]:
    """Give the steps whose sums are needed."""
    return {
        step for outputs in due for some in outputs for output in some for step, _ in output.weights
    }
