"""A series as a picture: a line for each group, in its band.

In: a series, which is public. Out: the text of an SVG file.
"""

from __future__ import annotations

from secant.display.drawing import (
    COLORS,
    Axis,
    area_between,
    axis_of,
    curve_through,
    line_at,
    page,
    text_at,
)
from secant.errors import UsageError
from secant.streams.series import Series, Step

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 860, 420, 80, 24, 48, 60
MOST_LINES = 12


def picture(series: Series) -> str:
    """Draw the first column of numbers of a series, each group by itself, with the band of its error."""
    names = [c for c in series.columns[1:] if c not in series.keys]
    if not names or not series.rows:
        raise UsageError(
            "USE-010", "there is nothing to draw yet", hint="wait for the first step to be complete"
        )
    lines = _lines(series)
    if len(lines) > MOST_LINES:
        raise UsageError(
            "USE-010",
            f"a picture has at most {MOST_LINES} lines, and this stream has {len(lines)} groups",
            hint="draw the rows of --json with a plotting program",
        )
    name = names[0]
    values = [_number(step.values[name]) for line in lines.values() for step in line]
    ends = [e for line in lines.values() for s in line for e in (s.low[name], s.high[name])]
    finite = [v for v in [*values, *ends] if v is not None]
    count = max(len(line) for line in lines.values())
    up = axis_of([0.0, *finite], HEIGHT - BOTTOM, TOP)
    x, y = Axis(0, max(1, count - 1), LEFT, WIDTH - RIGHT).place, up.place
    level = series.error["level"] * 100
    title = f"{series.name}: {name}, with the band that holds the true number at {level:g} %"
    parts = [text_at(LEFT, 24, title)]
    for tick in up.ticks():
        parts.append(line_at(LEFT, y(tick), WIDTH - RIGHT, y(tick)))
        parts.append(text_at(LEFT - 8, y(tick) + 4, f"{tick:,.6g}", "end"))
    longest = max(lines.values(), key=len)
    for index in sorted({round(i * (count - 1) / 4) for i in range(5)}):
        anchor = "end" if index == count - 1 and count > 1 else "middle" if index else "start"
        parts.append(text_at(x(index), HEIGHT - BOTTOM + 20, str(longest[index].step), anchor))
    for number, (group, line) in enumerate(lines.items()):
        color = COLORS[number % len(COLORS)]
        below = [(x(i), y(low)) for i, s in enumerate(line) if (low := s.low[name]) is not None]
        above = [(x(i), y(high)) for i, s in enumerate(line) if (high := s.high[name]) is not None]
        if len(below) == len(above) == len(line):  # a band where both ends are known throughout
            parts.append(area_between([*below, *reversed(above)], color))
        drawn = [_number(step.values[name]) for step in line]
        points = [(x(i), y(v)) for i, v in enumerate(drawn) if v is not None]
        parts.append(curve_through(points, color))
        if group:
            label = ", ".join(str(v) for v in group)
            parts.append(text_at(LEFT + 10, TOP + 14 * (number + 1), label, "start", color))
    return page(WIDTH, HEIGHT, series.name, parts)


def _lines(series: Series) -> dict[tuple[object, ...], list[Step]]:
    lines: dict[tuple[object, ...], list[Step]] = {}
    for step in series.steps:
        lines.setdefault(tuple(step.values[k] for k in series.keys), []).append(step)
    return lines


def _number(value: object) -> float | None:
    return None if value is None else float(value)  # type: ignore[arg-type]
