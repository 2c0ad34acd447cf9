"""Read off for every limit what follows from units that were counted bucket by bucket (truncation.tally).

In: the rows of one statement, private. Out: by measure, how many units add more than each limit, and the sums with what
units add cut down to each, in whole steps: private as well. Whole numbers only, so that no order of adding matters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import accumulate
from typing import Any

from secant.noise.mechanisms.matching import assignable
from secant.records import frozen
from secant.sensitivity.certificate import Tallies


@frozen
class Tally:
    """What the buckets of one measure say of each of its limits."""

    above: list[int]
    """For each limit how many units add more, or take more away."""
    taking: list[int]
    """For each limit how many units take more away, where they are counted apart from those that add."""
    cut: list[int]
    """For each limit the sum with what units add cut down to it, or the values that can be assigned; or nothing."""
    octaves: list[int]
    """Where values are assigned, how many units have more than none, 1, 2, 4, … of them."""

    @property
    def sides(self) -> list[int]:
        """Give the units that add more than each limit, then those that take more away, where they are told apart."""
        if not self.taking:
            return self.above
        return [*(a - b for a, b in zip(self.above, self.taking, strict=True)), *self.taking]


def read_tallies(
    tallies: Tallies, rows: Iterable[tuple[Any, ...]], in_steps: Callable[[str, Any], int]
) -> Mapping[str, Tally]:
    """Sort the rows (measure, bucket, units, sums) by measure; `in_steps` reads a sum of a measure."""
    names = tuple(tallies.limits)
    if tallies.assigned:
        ((name, limits),) = tallies.limits.items()
        pairs = ((_like_itself(unit), _like_itself(value)) for unit, value in rows)
        above, cut, octaves = assignable(pairs, limits)
        return {name: Tally(above, [], cut, octaves)}
    rows_by_measure: dict[str, dict[int, tuple[int, int]]] = {name: {} for name in names}
    for row in rows:
        index, (bucket, units, *sums) = (0, row) if len(names) == 1 else (int(row[0]), row[1:])
        name = names[index]
        total = in_steps(name, sums[index]) if tallies.sums else 0
        rows_by_measure[name][int(bucket)] = int(units), total
    return {name: _tally(tallies, name, buckets) for name, buckets in rows_by_measure.items()}


def _tally(tallies: Tallies, name: str, buckets: Mapping[int, tuple[int, int]]) -> Tally:
    """Add up from the outermost buckets inward who is outside, and from the innermost outward what is inside."""
    limits = tallies.limits[name]
    size = len(limits)
    middle = size if name in tallies.signed else 0
    none = 0, 0
    high = [buckets.get(middle + k, none) for k in range(size + 1)]
    low = [buckets.get(middle - k, none) if middle else none for k in range(size + 1)]
    more = list(accumulate((units for units, _ in reversed(high[1:]))))[::-1]
    less = list(accumulate((units for units, _ in reversed(low[1:]))))[::-1]
    inside = high[0][1]
    cut = []
    for k, limit in enumerate(limits):
        if k:
            inside += high[k][1] + low[k][1]
        cut.append(inside + limit * (more[k] - less[k]))
    units = [a + b for a, b in zip(more, less, strict=True)]
    return Tally(units, less if middle else [], cut if tallies.sums else [], [])


def _like_itself(value: Any) -> Any:
    """Give a value that equals itself, as values do in the engine: a NaN does not, in Python. Lists have no hash."""
    if isinstance(value, (list, dict)):
        return repr(value)
    return value if value == value else ("NaN",)
