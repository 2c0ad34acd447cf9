"""How far released tables are from the true answer, cell by cell.

In: the rows of the true answer, the rows of many releases, and which columns carry noise. Out: one
verdict. A cell is a number in a noisy column, found again by the exact columns of its row; a cell
that a release does not show is infinitely far off. Nothing is run here.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal

LEVEL = 0.95
HOPELESS = 1.0
"""A cell that is off by more than its true value says nothing."""
Rows = Sequence[Sequence[object]]
Cell = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the releases of one query are worth."""

    useful: bool
    """Whether at least one cell is within 100 % of the truth in 95 of 100 releases."""
    relative_error: float
    """The median over the true cells of each cell's relative error at 95 %."""
    best_cell: float
    """The least of these errors."""
    vector_error: float
    """Length of the vector of all errors at 95 %, over the length of the true one."""
    cells: int
    """Numbers of the true answer that carry noise in a release."""
    missing: float
    """Share of the true cells that a release does not show, on average."""
    extra_rows: float
    """Rows that a release shows and the true answer has not, on average."""
    varied: bool
    """Whether noisy numbers ever differed: noise that is never seen is a fault, not an accuracy."""


def judge(truth: Rows, released: Sequence[Rows], noisy: Sequence[bool]) -> Verdict:
    """Hold many releases against the true answer."""
    extra = statistics.fmean(_extra(truth, rows, noisy) for rows in released)
    varied = any(list(rows) != list(released[0]) for rows in released[1:])
    if not any(noisy):
        return _judge_rows(truth, released, extra)
    true_cells = numbers_of(truth, noisy)
    found = [numbers_of(rows, noisy) for rows in released]
    if not true_cells:
        return Verdict(False, math.inf, math.inf, math.inf, 0, 0.0, extra, varied)
    errors = {
        cell: at_level(relative(run.get(cell), value) for run in found)
        for cell, value in true_cells.items()
    }
    best = min(errors.values())
    lost = statistics.fmean(sum(c not in run for c in true_cells) for run in found)
    return Verdict(
        useful=best <= HOPELESS,
        relative_error=statistics.median(errors.values()),
        best_cell=best,
        vector_error=at_level(_length(run, true_cells) for run in found),
        cells=len(true_cells),
        missing=lost / len(true_cells),
        extra_rows=extra,
        varied=varied,
    )


def _judge_rows(truth: Rows, released: Sequence[Rows], extra: float) -> Verdict:
    """Without noisy numbers noise decides which rows are shown: those too many or too few count."""
    varied = True  # small noise may well leave the choice of rows as it is
    true_rows = Counter(_names(row) for row in truth)
    total = true_rows.total()
    if not total:
        return Verdict(False, math.inf, math.inf, math.inf, 0, 0.0, extra, varied)
    found = [Counter(_names(row) for row in rows) for rows in released]
    lost = [(true_rows - run).total() for run in found]
    wrong = [
        missed + (run - true_rows).total() if run else math.inf
        for missed, run in zip(lost, found, strict=True)
    ]
    error = at_level(count / total for count in wrong)
    missing = statistics.fmean(lost) / total
    return Verdict(error <= HOPELESS, error, error, error, total, missing, extra, varied)


def at_level(errors: Iterable[float]) -> float:
    """Give the error that 95 of 100 releases do not exceed.

    >>> at_level(range(1, 101))
    95
    """
    ordered = sorted(errors)
    return ordered[math.ceil(LEVEL * len(ordered)) - 1]


def numbers_of(rows: Rows, noisy: Sequence[bool]) -> dict[Cell, float]:
    """Give the numbers of noisy columns, by the exact columns of their rows."""
    return {cell: number for _, cell, number in cells_of(rows, noisy)}


def cells_of(rows: Rows, noisy: Sequence[bool]) -> Iterator[tuple[tuple[int, int], Cell, float]]:
    """Give each number of a noisy column with its place and its cell."""
    seen: Counter[Cell] = Counter()
    for index, row in enumerate(rows):
        key = _key(row, noisy)
        seen[key] += 1  # rows with the same exact columns are told apart by their order
        for place, (value, loud) in enumerate(zip(row, noisy, strict=True)):
            number = _number(value) if loud else None
            if number is not None:
                yield (index, place), (key, seen[key], place), number


def _extra(truth: Rows, rows: Rows, noisy: Sequence[bool]) -> int:
    known = Counter(_key(row, noisy) for row in truth)
    return (Counter(_key(row, noisy) for row in rows) - known).total()


def _key(row: Sequence[object], noisy: Sequence[bool]) -> Cell:
    return _names([v for v, loud in zip(row, noisy, strict=True) if not loud])


def _names(row: Sequence[object]) -> Cell:
    return tuple(str(value) for value in row)


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float, Decimal)):
        return None
    number = float(value)
    return number if math.isfinite(number) else None


def relative(shown: float | None, true: float) -> float:
    """Give how far a number is off, over the true one; infinitely far if it is not shown."""
    if shown is None:
        return math.inf
    off = abs(shown - true)
    if not true:
        return math.inf if off else 0.0
    return off / abs(true)


def _length(shown: dict[Cell, float], true: dict[Cell, float]) -> float:
    off = math.hypot(*(shown.get(c, 0.0) - true.get(c, 0.0) for c in {*shown, *true}))
    length = math.hypot(*true.values())
    return off / length if length else math.inf
