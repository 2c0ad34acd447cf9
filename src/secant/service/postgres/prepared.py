"""What a session keeps of questions that are prepared or bound, and how much of it.

In: statements and values of a client. Out: records. They are kept in the memory of the service itself, so that their
bytes are counted, not their number alone.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from secant.records import frozen
from secant.service.postgres.statements import Framed
from secant.service.postgres.values import Columns

MOST = 1000
MOST_BYTES = 16_000_000


@frozen
class Prepared:
    """A statement of a client over tables of the data."""

    frame: Framed
    types: tuple[int, ...]

    @property
    def size(self) -> int:
        """Give about how many bytes are kept for it."""
        return len(self.frame.text)


@dataclass(slots=True)
class Portal:
    """A statement with its values; asked when it is first executed."""

    prepared: Prepared
    values: tuple[object, ...]
    results: tuple[int, ...]
    size: int
    """About how many bytes are kept for it."""
    columns: Columns | None = None
    """As they were described to the client, if they were."""
    asked: bool = False


def is_place(kept: Collection[Prepared | Portal], one: Prepared | Portal) -> bool:
    """Say whether one more may be kept."""
    return len(kept) < MOST and sum(each.size for each in (*kept, one)) <= MOST_BYTES
