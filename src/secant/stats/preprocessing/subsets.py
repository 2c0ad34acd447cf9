"""preprocess.subsets: any function of sets, made to move by at most Δ_i when entry i comes or goes.

In: a function of a list of entries, the entries, a public Δ_i for each, the public value of the empty set.
Out: g of all entries, without rounding. Every subset is visited, so the size is limited; nothing is assumed about
the function but that it gives the same finite number for the same entries.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from secant.errors import UsageError
from secant.records import frozen
from secant.stats.inputs import Values

LARGEST_GENERAL = 20
"""2²⁰ calls of the function; each further entry doubles them."""


@frozen
class SubsetResult:
    """What the construction over all subsets found."""

    value: Fraction
    target: float
    """The function of all entries, before it was bounded."""
    error_bound: float
    """Theorem 3.3: the worst order in which entries could have come, and what each changed beyond its Δ."""


def subset_values(function: Callable[[list[Any]], float], entries: Sequence[Any]) -> Values:
    """Call the function on every non-empty subset; the place of its value has the subset's bits."""
    count = checked_size(entries)
    values = np.zeros(1 << count)
    for mask in range(1, 1 << count):
        values[mask] = called(function, [entries[i] for i in range(count) if mask >> i & 1])
    return values


def bounded_subsets(
    values: npt.NDArray[Any], deltas: Sequence[Fraction], empty: Fraction
) -> SubsetResult:
    """Give g of the full set from the function's values on all subsets, floats or fractions (preprocess.subsets)."""
    count = len(deltas)
    original = values.astype(np.float64)
    original[0] = float(empty)
    unit, goals, moves, start = _whole(values, deltas, empty)
    # whole numbers of any size: a grid would have to follow the limits of those who are present
    bounded = np.empty(1 << count, dtype=object)
    bounded[0] = start
    excess = np.zeros(1 << count)
    masks = np.arange(1 << count, dtype=np.int64)
    sizes = np.bitwise_count(masks)
    for size in range(1, count + 1):
        level = masks[sizes == size]
        upper = np.full(level.size, math.inf, dtype=object)
        lower = np.full(level.size, -math.inf, dtype=object)
        worst = np.zeros(level.size)
        for entry, move in enumerate(moves):
            has = (level >> entry & 1).astype(bool)
            smaller = level[has] ^ (1 << entry)
            upper[has] = np.minimum(upper[has], bounded[smaller] + move)
            lower[has] = np.maximum(lower[has], bounded[smaller] - move)
            jump = np.abs(original[level[has]] - original[smaller]) - float(deltas[entry])
            worst[has] = np.maximum(worst[has], excess[smaller] + np.maximum(jump, 0.0))
        bounded[level] = np.maximum(np.minimum(goals[level], upper), lower)
        excess[level] = worst
    return SubsetResult(unit * bounded[-1], float(original[-1]), float(excess[-1]))


def _whole(
    values: npt.NDArray[Any], deltas: Sequence[Fraction], empty: Fraction
) -> tuple[Fraction, npt.NDArray[Any], list[int], int]:
    """Give a unit of which the function's values, the Δ_i and the center are whole multiples, and these."""
    ratios = [value.as_integer_ratio() for value in values.tolist()]
    bottom = math.lcm(
        *{below for _, below in ratios},  # of floats they are few powers of two
        *(delta.denominator for delta in deltas),
        empty.denominator,
    )
    goals = np.empty(len(ratios), dtype=object)
    goals[:] = [above * (bottom // below) for above, below in ratios]
    return Fraction(1, bottom), goals, [int(d * bottom) for d in deltas], int(empty * bottom)


def called(function: Callable[[Any], float], entries: Any) -> float:
    """Call a user's function; what it says about the data when it fails is not repeated."""
    failed = False
    number = math.nan
    try:
        number = float(function(entries))
    except Exception:  # noqa: BLE001 - anything can come out of a user's function
        failed = True
    if failed or not math.isfinite(number):
        what = "raised an error" if failed else "gave something that is not a finite number"
        raise UsageError("USE-001", f"the function {what} on a part of the data")
    return number


def checked_size(entries: Sequence[Any]) -> int:
    """Give the number of entries, or refuse more than would end."""
    if len(entries) > LARGEST_GENERAL:
        raise UsageError(
            "USE-001",
            f"a function of any kind can be bounded for at most {LARGEST_GENERAL} entries: every subset is visited",
            hint="Use a statistic by name, or register the function as ordered if it is.",
        )
    return len(entries)
