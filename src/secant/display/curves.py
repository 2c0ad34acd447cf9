"""Curves over common axes: densities of noise, sampled sensitivities, guesses and errors against ε.

In: public numbers, labels; what `secant inspect` draws is for the owner. Out: a picture.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from secant.display.drawing import (
    BLACK,
    COLORS,
    Axis,
    Picture,
    area_between,
    axis_of,
    curve_through,
    line_at,
    page,
    text_at,
)
from secant.errors import UsageError
from secant.records import frozen

WIDTH, HEIGHT = 640, 400
LEFT, RIGHT, TOP, BOTTOM = 74, 16, 52, 52
MOST_POINTS = 2000


@frozen
class Line:
    """One curve: points in order of x, a label, perhaps dashed. Without points it is only named."""

    points: Sequence[tuple[float, float]]
    label: str
    dashed: bool = False
    shaded: float | None = None
    """How far from zero the area below the curve is filled."""


def chart(
    lines: Sequence[Line],
    *,
    title: str,
    x_label: str,
    y_label: str,
    log_x: bool = False,
    log_y: bool = False,
    marks: Sequence[tuple[float, str]] = (),
    reached: Sequence[tuple[float, float]] = (),
) -> Picture:
    """Draw curves over common axes.

    `marks` are vertical lines with a label; `reached` are points that the axes hold in any case.
    """
    points = [*reached, *(point for line in lines for point in line.points)]
    xs, ys = [x for x, _ in points] + [x for x, _ in marks], [y for _, y in points]
    if not ys or not all(map(math.isfinite, xs + ys)):
        raise UsageError("USE-001", "a chart needs points, and finite ones")
    if (log_x and min(xs) <= 0) or (log_y and min(ys) <= 0):
        raise UsageError("USE-001", "a logarithmic axis needs positive numbers")
    across = axis_of(xs, LEFT, WIDTH - RIGHT, log=log_x)
    up = axis_of(ys, HEIGHT - BOTTOM, TOP, log=log_y)
    parts = [text_at(WIDTH / 2, 18, title, "middle", size=14)]
    parts += _frame(across, up, x_label, y_label)
    for index, line in enumerate(lines):
        parts += _curve(line, index, across, up)
    for at, label in marks:
        x = across.place(at)
        parts.append(line_at(x, up.start, x, up.end, BLACK, dashed=True))
        left = x > (across.start + across.end) / 2  # words stay inside the frame
        anchor, aside = ("end", -4) if left else ("start", 4)
        parts.append(text_at(x + aside, up.end + 12, label, anchor))
    return Picture(page(WIDTH, HEIGHT, title, parts))


def _frame(across: Axis, up: Axis, x_label: str, y_label: str) -> list[str]:
    parts = []
    for tick in across.ticks():
        x = across.place(tick)
        parts.append(line_at(x, up.start, x, up.end))
        parts.append(text_at(x, up.start + 16, f"{tick:.4g}", "middle"))
    for tick in up.ticks():
        y = up.place(tick)
        parts.append(line_at(across.start, y, across.end, y))
        parts.append(text_at(across.start - 6, y + 4, f"{tick:.4g}", "end"))
    parts.append(line_at(across.start, up.start, across.end, up.start, BLACK))
    parts.append(line_at(across.start, up.start, across.start, up.end, BLACK))
    parts.append(text_at((across.start + across.end) / 2, HEIGHT - 14, x_label, "middle"))
    parts.append(text_at(16, (up.start + up.end) / 2, y_label, "middle", upward=True))
    return parts


def _curve(line: Line, index: int, across: Axis, up: Axis) -> list[str]:
    color = COLORS[index % len(COLORS)]
    at = LEFT + 8 + (index % 3) * 185
    row = 32 + 14 * (index // 3)
    parts = [
        line_at(at, row, at + 18, row, color, dashed=line.dashed),
        text_at(at + 23, row + 4, line.label, size=11),
    ]
    if not line.points:
        return parts
    if line.shaded is not None:
        inside = [(x, y) for x, y in line.points if abs(x) <= line.shaded]
        filled = [(inside[0][0], up.low), *inside, (inside[-1][0], up.low)]
        parts.append(area_between(((across.place(x), up.place(y)) for x, y in filled), color))
    stride = max(1, len(line.points) // MOST_POINTS)
    points = [*line.points[::stride], line.points[-1]]
    places = ((across.place(x), up.place(y)) for x, y in points)
    return [*parts, curve_through(places, color, dashed=line.dashed)]


def noise_picture(
    density: Sequence[tuple[float, float]],
    error: float,
    *,
    title: str,
    note: str,
    axis: str,
    y_label: str = "density",
) -> Picture:
    """Draw the density of a noise, filled up to the error that is exceeded rarely, which is marked.

    A density that begins at zero has one side: that of a score that is lost, or of an error without a sign.
    """
    sides = [-error, error] if density[0][0] < 0 else [error]
    return chart(
        [Line(density, note, shaded=error)],
        title=title,
        x_label=axis,
        y_label=y_label,
        marks=[(side, f"{side:.4g}") for side in sides],
        reached=[(0.0, 0.0)],
    )
