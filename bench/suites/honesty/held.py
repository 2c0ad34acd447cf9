"""How often do printed ends hold the true number, cell by cell?

In: the rows of the true answer, and many releases with their ends. Out: one verdict. A cell is a number in a noisy
column, found again by the exact columns of its row. Nothing is run here.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from bench.suites.tpch.accuracy import Cell, Rows, at_level, cells_of, numbers_of, relative
from secant.noise.intervals import Span

Ends = Sequence[Sequence[Span | None]]
ROUNDING = 1e-9
"""What plain and released numbers may differ by, relatively, because both were added up in doubles."""


@dataclass(frozen=True, slots=True)
class Held:
    """What the printed ends of one question are worth."""

    held: float | None
    """Share of the cells with ends whose ends hold the truth, over all releases; None where none has ends."""
    worst_cell: float | None
    """The least such share of a single cell that was shown in at least half of the releases."""
    stated: float
    """Share of the noisy cells that have ends."""
    one_sided: float
    """Share of the cells with ends where nothing bounds the upper or the lower one."""
    half_width: float | None
    """Median over cells and releases of half the distance of two ends, over the true value."""
    error: float | None
    """Median over cells and releases of the relative error."""
    error95: float | None
    """Median over the true cells of each cell's relative error at 95 %."""
    cells: int
    """Numbers of the true answer that carry noise in a release."""


def judge(truth: Rows, released: Sequence[tuple[Rows, Ends | None]], noisy: Sequence[bool]) -> Held:
    """Hold the ends of many releases against the true answer."""
    true = numbers_of(truth, noisy)
    seen: dict[Cell, list[bool]] = {}
    errors: dict[Cell, list[float]] = {cell: [] for cell in true}
    widths: list[float] = []
    shown = one_sided = 0
    for rows, ends in released:
        for cell, number, span in _with_ends(rows, ends, noisy):
            if cell not in true:
                continue  # the user's own text gives no such row, so it has no truth
            value = true[cell]
            shown += 1
            errors[cell].append(relative(number, value))
            if span is None:
                continue
            slack = ROUNDING * abs(value)
            seen.setdefault(cell, []).append(span[0] - slack <= value <= span[1] + slack)
            width = (span[1] - span[0]) / 2
            one_sided += math.isinf(width)
            widths.append(math.inf if not value else width / abs(value))
    verdicts = [held for one in seen.values() for held in one]
    often = [statistics.fmean(one) for one in seen.values() if 2 * len(one) >= len(released)]
    every = [e for one in errors.values() for e in one]
    # A cell that a release does not show is infinitely far off.
    hidden = {c: [*one, *[math.inf] * (len(released) - len(one))] for c, one in errors.items()}
    return Held(
        held=statistics.fmean(verdicts) if verdicts else None,
        worst_cell=min(often, default=None),
        stated=len(verdicts) / shown if shown else 0.0,
        one_sided=one_sided / len(verdicts) if verdicts else 0.0,
        half_width=_finite(statistics.median(widths)) if widths else None,
        error=_finite(statistics.median(every)) if every else None,
        error95=_finite(statistics.median(map(at_level, hidden.values()))) if hidden else None,
        cells=len(true),
    )


def _with_ends(
    rows: Rows, ends: Ends | None, noisy: Sequence[bool]
) -> list[tuple[Cell, float, Span | None]]:
    found = []
    for place, cell, number in cells_of(rows, noisy):
        row, column = place
        found.append((cell, number, None if ends is None else ends[row][column]))
    return found


def _finite(value: float) -> float | None:
    """JSON has no infinity."""
    return value if math.isfinite(value) else None
