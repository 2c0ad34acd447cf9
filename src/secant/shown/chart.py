"""An answer as a picture: a point for each row, with its error bar. SVG written by hand, as the other pictures are.

In: an answer, which is public. Out: the text of an SVG file.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from secant.errors import UsageError
from secant.shown.numbers import value_text
from secant.shown.parts import Released, noisy_columns, percent

WIDTH, ROW, LEFT, RIGHT, TOP, BOTTOM = 760, 26, 190, 30, 44, 44
MOST_BARS = 60
_INK, _BAND, _LINES, _WORDS = "#2563a8", "#9dbfe0", "#dddddd", "#22303c"


def chart(answer: Released, column: str | None = None) -> str:
    """Draw one noisy column of an answer, row by row; the others are the words beside it."""
    place = _place_of(answer, column)
    rows = answer.rows[:MOST_BARS]
    noisy = noisy_columns(answer.error)
    words = [[value_text(v) for i, v in enumerate(row) if i not in noisy] for row in rows]
    points = [_point(answer, number, place) for number in range(len(rows))]
    known = [x for p in points for x in p if x is not None]
    low, high = min([0.0, *known]), max([0.0, *known])
    high = high if high > low else low + 1.0
    height = TOP + ROW * len(rows) + BOTTOM

    def x(value: float) -> float:
        return LEFT + (value - low) / (high - low) * (WIDTH - LEFT - RIGHT)

    title = f"{answer.columns[place]}, with what holds the true number at {percent(answer.error['level'])}"
    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
            f'viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="12" role="img">'
        ),
        f"<title>{readable(title)}</title>",
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
        text_at(LEFT, 24, title),
    ]
    for tick in ticks(low, high):
        parts.append(
            f'<line x1="{x(tick):.1f}" x2="{x(tick):.1f}" y1="{TOP}" y2="{height - BOTTOM}" stroke="{_LINES}"/>'
        )
        parts.append(text_at(x(tick), height - BOTTOM + 18, f"{tick:,.6g}", "middle"))
    for number, (below, value, above) in enumerate(points):
        y = TOP + ROW * (number + 0.5)
        parts.append(text_at(LEFT - 10, y + 4, ", ".join(words[number])[:40], "end"))
        if below is not None and above is not None:
            parts.append(
                f'<rect x="{x(below):.1f}" y="{y - 6:.1f}" width="{max(1.0, x(above) - x(below)):.1f}" '
                f'height="12" fill="{_BAND}"/>'
            )
        if value is not None:
            parts.append(f'<circle cx="{x(value):.1f}" cy="{y:.1f}" r="4" fill="{_INK}"/>')
    return "\n".join([*parts, "</svg>", ""])


def _place_of(answer: Released, column: str | None) -> int:
    """Give which column is drawn: the one that is named, or the first that is noisy."""
    if column is not None and column not in answer.columns:
        hint = f"the columns are: {', '.join(answer.columns)}"
        raise UsageError("USE-001", f"there is no column {column} to draw", hint=hint)
    noisy = sorted(noisy_columns(answer.error))
    place = answer.columns.index(column) if column is not None else noisy[0] if noisy else None
    if place is None or not answer.rows:
        raise UsageError(
            "USE-001",
            "there is nothing to draw: no number of this answer is noisy",
            hint="ask for counts, sums or averages",
        )
    return place


def _point(
    answer: Released, number: int, place: int
) -> tuple[float | None, float | None, float | None]:
    error = answer.error
    ends = [error[side][number][place] if error.get(side) else None for side in ("low", "high")]
    value = answer.rows[number][place]
    return _finite(ends[0]), _finite(value), _finite(ends[1])


def _finite(value: object) -> float | None:
    try:
        found = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None
    return found if math.isfinite(found) else None


def ticks(low: float, high: float) -> Sequence[float]:
    """Give about five round numbers of a range."""
    size = 10 ** math.floor(math.log10((high - low) / 4))
    step = next(size * k for k in (1, 2, 5, 10) if (high - low) / (size * k) <= 6)
    return [k * step for k in range(math.ceil(low / step), math.floor(high / step) + 1)]


def text_at(x: float, y: float, words: str, anchor: str = "start", color: str = _WORDS) -> str:
    """Write words into a picture."""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{color}">{readable(words)}</text>'


def readable(words: str) -> str:
    """Escape words; characters that XML forbids would make the whole drawing unreadable."""
    return escape("".join(c if c.isprintable() else "?" for c in words))
