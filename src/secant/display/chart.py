"""An answer as a picture: a point for each row, with its error bar.

In: an answer, which is public. Out: the text of an SVG file.
"""

from __future__ import annotations

import math

from secant.display.drawing import axis_of, line_at, page, text_at
from secant.display.numbers import value_text
from secant.display.parts import Released, noisy_columns, percent
from secant.errors import UsageError

WIDTH, ROW, LEFT, RIGHT, TOP, BOTTOM = 760, 26, 190, 30, 44, 44
MOST_BARS = 60
_INK, _BAND = "#2563a8", "#9dbfe0"


def chart(answer: Released, column: str | None = None) -> str:
    """Draw one noisy column of an answer, row by row; the others are the words beside it."""
    index = _column_of(answer, column)
    rows = answer.rows[:MOST_BARS]
    noisy = noisy_columns(answer.error)
    labels = [[value_text(v) for i, v in enumerate(row) if i not in noisy] for row in rows]
    points = [_point(answer, number, index) for number in range(len(rows))]
    finite = [x for p in points for x in p if x is not None]
    height = TOP + ROW * len(rows) + BOTTOM
    across = axis_of([0.0, *finite], LEFT, WIDTH - RIGHT)
    x = across.place
    title = f"{answer.columns[index]}, with what holds the true number at {percent(answer.error['level'])}"
    parts = [text_at(LEFT, 24, title)]
    for tick in across.ticks():
        parts.append(line_at(x(tick), TOP, x(tick), height - BOTTOM))
        parts.append(text_at(x(tick), height - BOTTOM + 18, f"{tick:,.6g}", "middle"))
    for number, (below, value, above) in enumerate(points):
        y = TOP + ROW * (number + 0.5)
        parts.append(text_at(LEFT - 10, y + 4, ", ".join(labels[number])[:40], "end"))
        if below is not None and above is not None:
            parts.append(
                f'<rect x="{x(below):.1f}" y="{y - 6:.1f}" width="{max(1.0, x(above) - x(below)):.1f}" '
                f'height="12" fill="{_BAND}"/>'
            )
        if value is not None:
            parts.append(f'<circle cx="{x(value):.1f}" cy="{y:.1f}" r="4" fill="{_INK}"/>')
    return page(WIDTH, height, title, parts)


def _column_of(answer: Released, column: str | None) -> int:
    """Give which column is drawn: the one that is named, or the first that is noisy."""
    if column is not None and column not in answer.columns:
        hint = f"the columns are: {', '.join(answer.columns)}"
        raise UsageError("USE-001", f"there is no column {column} to draw", hint=hint)
    noisy = sorted(noisy_columns(answer.error))
    index = answer.columns.index(column) if column is not None else noisy[0] if noisy else None
    if not answer.rows:
        hint = (
            "groups of few people are not shown: ask with a larger epsilon, or for coarser groups"
        )
        raise _nothing("this answer has no rows", hint)
    if index is None:
        raise _nothing("no number of this answer is noisy", "ask for counts, sums or averages")
    name, drawn = answer.columns[index], [row[index] for row in answer.rows]
    if all(value is None for value in drawn):
        hint = "too few rows stand behind it: ask with a larger epsilon, or about more of them"
        raise _nothing(f"{name} is NULL in every row", hint)
    if all(_finite(value) is None for value in drawn):
        raise _nothing(f"{name} has no numbers", "name a column of numbers")
    return index


def _nothing(why: str, hint: str) -> UsageError:
    return UsageError("USE-001", f"there is nothing to draw: {why}", hint=hint)


def _point(
    answer: Released, number: int, index: int
) -> tuple[float | None, float | None, float | None]:
    error = answer.error
    ends = [error[side][number][index] if error.get(side) else None for side in ("low", "high")]
    value = answer.rows[number][index]
    return _finite(ends[0]), _finite(value), _finite(ends[1])


def _finite(value: object) -> float | None:
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None
