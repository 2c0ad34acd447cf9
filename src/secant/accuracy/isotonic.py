"""Running totals of what is never below zero cannot fall: on request they are shown so, for nothing.

Rests on continual.isotonic.

In: an answer with a column such as `sum(count(*)) OVER (ORDER BY day)`, and which of its rows follow each other. Out:
the nearest column that does not fall. The numbers as they were released stay beside it, and so do their ends, which
hold the truth; they are widened to the shown number where it lies outside.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from secant.accuracy.display import never_negative
from secant.accuracy.trace import Gathered, Traced
from secant.noise.intervals import number_of
from secant.plan import nodes as n

Order = Mapping[str, list[list[int]]]
"""Column -> the rows of each partition, one after another."""


def running_rows(
    traced: Traced, names: Sequence[str], rows: Sequence[Sequence[object]]
) -> dict[str, list[list[int]]]:
    """Give the columns that are running totals of what is never below zero, and the order of their rows."""
    runs: dict[str, list[list[int]]] = {}
    at = {name: column for column, name in enumerate(names)}
    for output in traced.outputs:
        gathered = _running(traced.made.get(output), traced)
        if gathered is None or gathered.near is None:
            continue
        keys = [at.get(outside) for outside, _ in gathered.keys]
        position = at.get(gathered.near.place)
        if position is None or None in keys:
            continue
        partitions: dict[tuple[object, ...], list[tuple[float, int]]] = {}
        for index, row in enumerate(rows):
            there = number_of(row[position])
            if there is not None:
                key = tuple(row[k] for k in keys if k is not None)
                partitions.setdefault(key, []).append((there, index))
        runs[output] = [[index for _, index in sorted(part)] for part in partitions.values()]
    return runs


def _running(scalar: n.Scalar | None, traced: Traced) -> Gathered | None:
    """Give the window behind a column that adds up from the first row to its own; None for any other column."""
    while isinstance(scalar, (n.Cast, n.Attempt)):
        scalar = scalar.operand
    gathered = traced.gathered.get(scalar.name) if isinstance(scalar, n.Column) else None
    if gathered is None or gathered.argument is None or not gathered.running_sum:
        return None
    return gathered if never_negative(gathered.argument, traced) else None


def never_falling(
    columns: Sequence[str],
    rows: Sequence[tuple[Any, ...]],
    error: Mapping[str, Any],
    order: Order,
) -> tuple[list[tuple[Any, ...]], dict[str, Any]]:
    """Give rows whose running totals do not fall, and the error beside them."""
    from secant.noise.continual.afterwards import isotonic

    shown = [list(row) for row in rows]
    low, high = ([list(row) for row in error[side]] for side in ("low", "high"))
    values = [list(row) for row in error["values"]]
    for name, partitions in order.items():
        index = columns.index(name)
        digits = _digits([row[index] for row in rows])
        for part in partitions:
            present = [i for i in part if number_of(rows[i][index]) is not None]
            for i, level in zip(
                present, isotonic([float(rows[i][index]) for i in present]), strict=True
            ):
                adjusted = _typed(level, rows[i][index], digits)
                shown[i][index] = adjusted
                number = float(adjusted)
                low[i][index] = None if low[i][index] is None else min(low[i][index], number)
                high[i][index] = None if high[i][index] is None else max(high[i][index], number)
                ends = low[i][index], high[i][index]
                wide = [abs(x - number) for x in ends if x is not None]
                values[i][index] = max(wide) if len(wide) == 2 else None
    return [tuple(row) for row in shown], {**error, "low": low, "high": high, "values": values}


def _typed(level: float, before: object, digits: int) -> Any:
    """Give a number the type that it had; rounding all alike keeps the order."""
    if isinstance(before, int):
        return math.floor(level + 0.5)
    if isinstance(before, Decimal):
        return Decimal(level).quantize(Decimal((0, (1,), -digits)))
    return level


def _digits(values: Sequence[object]) -> int:
    """Give how many digits decimals have behind the point: zero is shown without any."""
    shown = [v.as_tuple().exponent for v in values if isinstance(v, Decimal)]
    return max((-e for e in shown if isinstance(e, int)), default=0)
