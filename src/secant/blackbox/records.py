"""Databases as they are handed to a function: rows of an array, of a frame, of a list.

In: n + 1 sampled records. Out: two databases of n records that differ in the last one, in the form
in which the records came. Each is a copy, so a function that changes its argument cannot spoil the
other. Nothing is read from the values.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from secant.errors import UsageError


def size_of(records: Any) -> int:
    """Give the number of records; raise for what has no size."""
    if isinstance(records, (str, bytes, dict)):
        raise UsageError("USE-001", "records are rows of an array, a frame or a list")
    try:
        return len(records)
    except TypeError:
        raise UsageError("USE-001", "records are rows of an array, a frame or a list") from None


def selected(records: Any, places: NDArray[np.int64]) -> Any:
    """Give the records at these places, as a copy of the same kind."""
    if isinstance(records, np.ndarray):
        return records[places]
    if hasattr(records, "iloc"):  # pandas
        return records.iloc[places]
    if hasattr(records, "take"):  # Arrow
        return records.take(places)
    if hasattr(records, "gather") or hasattr(records, "gather_every"):  # Polars
        return records[places]
    picked = [records[index] for index in places.tolist()]
    return tuple(picked) if isinstance(records, tuple) else picked


def neighbors(records: Any, n: int) -> tuple[Any, Any]:
    """Give the first n records, and the same with the last one replaced by record n + 1."""
    first = np.arange(n)
    second = first.copy()
    second[-1] = n
    one, two = selected(records, first), selected(records, second)
    if hasattr(records, "iloc"):
        two.index = one.index  # labels must not tell the two apart
    return one, two
