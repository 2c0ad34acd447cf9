"""A series as a picture: a line for each group, in its band. SVG written by hand, as the other pictures are.

In: a series, which is public. Out: the text of an SVG file.
"""

from __future__ import annotations

from collections.abc import Sequence

from secant.errors import UsageError
from secant.shown.chart import readable, text_at, ticks
from secant.streams.series import Series, Step

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 860, 420, 80, 24, 48, 60
COLORS = ("#2563a8", "#c0392b", "#2e8b57", "#8e44ad", "#b9770e", "#2c3e50")
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
    known = [v for v in [*values, *ends] if v is not None]
    low, high = min([0.0, *known]), max([0.0, *known])
    high = high if high > low else low + 1.0
    count = max(len(line) for line in lines.values())

    def x(place: int) -> float:
        return LEFT + (place / max(1, count - 1)) * (WIDTH - LEFT - RIGHT)

    def y(value: float) -> float:
        return HEIGHT - BOTTOM - (value - low) / (high - low) * (HEIGHT - TOP - BOTTOM)

    level = series.error["level"] * 100
    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" '
            f'viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12" role="img">'
        ),
        f"<title>{readable(series.name)}</title>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        text_at(
            LEFT,
            24,
            f"{series.name}: {name}, with the band that holds the true number at {level:g} %",
        ),
    ]
    for tick in ticks(low, high):
        parts.append(
            f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(tick):.1f}" y2="{y(tick):.1f}" stroke="#dddddd"/>'
        )
        parts.append(text_at(LEFT - 8, y(tick) + 4, f"{tick:,.6g}", "end"))
    longest = max(lines.values(), key=len)
    for place in sorted({round(i * (count - 1) / 4) for i in range(5)}):
        anchor = "end" if place == count - 1 and count > 1 else "middle" if place else "start"
        parts.append(text_at(x(place), HEIGHT - BOTTOM + 20, str(longest[place].step), anchor))
    for number, (group, line) in enumerate(lines.items()):
        color = COLORS[number % len(COLORS)]
        parts += _band(line, name, x, y, color)
        points = " ".join(
            f"{x(i):.1f},{y(v):.1f}"
            for i, step in enumerate(line)
            if (v := _number(step.values[name])) is not None
        )
        parts.append(
            f'<polyline fill="none" stroke="{color}" stroke-width="1.6" points="{points}"/>'
        )
        if group:
            told = ", ".join(str(v) for v in group)
            parts.append(text_at(LEFT + 10, TOP + 14 * (number + 1), told, "start", color))
    return "\n".join([*parts, "</svg>", ""])


def _lines(series: Series) -> dict[tuple[object, ...], list[Step]]:
    found: dict[tuple[object, ...], list[Step]] = {}
    for step in series.steps:
        found.setdefault(tuple(step.values[k] for k in series.keys), []).append(step)
    return found


def _band(line: Sequence[Step], name: str, x, y, color: str) -> list[str]:  # type: ignore[no-untyped-def]
    """Draw the band where both ends are known throughout."""
    ends = [(step.low[name], step.high[name]) for step in line]
    if any(a is None or b is None for a, b in ends):
        return []
    below = [f"{x(i):.1f},{y(a):.1f}" for i, (a, _) in enumerate(ends)]
    above = [f"{x(i):.1f},{y(b):.1f}" for i, (_, b) in enumerate(ends)]
    points = " ".join([*below, *reversed(above)])
    return [f'<polygon points="{points}" fill="{color}" fill-opacity="0.2"/>']


def _number(value: object) -> float | None:
    return None if value is None else float(value)  # type: ignore[arg-type]
