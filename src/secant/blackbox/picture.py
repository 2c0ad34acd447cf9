"""Charts as SVG text, without a plotting package.

In: public numbers, labels. Out: a picture that notebooks show and that can be saved. Only what was
released or sampled from a public distribution is ever drawn.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from secant.errors import UsageError
from secant.records import frozen
from secant.stats.plot import Figure

_WIDTH, _HEIGHT = 640, 400
_LEFT, _RIGHT, _TOP, _BOTTOM = 74, 16, 52, 52
_COLORS = ("#1f5fa8", "#c2410c", "#2e7d32", "#6a3d9a", "#555555", "#b8860b")
_MOST_POINTS = 2000


@frozen
class Line:
    """One curve: points in order of x, a label, perhaps dashed."""

    points: Sequence[tuple[float, float]]
    label: str
    dashed: bool = False


@frozen
class _Axis:
    low: float
    high: float
    log: bool
    start: float
    end: float

    def place(self, value: float) -> float:
        low, high, at = (math.log10(v) if self.log else v for v in (self.low, self.high, value))
        return self.start + (at - low) / (high - low) * (self.end - self.start)

    def ticks(self) -> list[float]:
        if self.log:
            first, last = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
            stride = max(1, (last - first) // 6)
            decades = [10.0**power for power in range(first, last + 1, stride)]
            inside = [tick for tick in decades if self.low <= tick <= self.high]
            if len(inside) > 1:
                return inside
            return [self.low, math.sqrt(self.low * self.high), self.high]
        rough = (self.high - self.low) / 5
        unit = 10.0 ** math.floor(math.log10(rough))
        step = next(unit * s for s in (1, 2, 5, 10) if unit * s >= rough)
        first = math.ceil(self.low / step)
        return [step * i for i in range(first, math.floor(self.high / step) + 1)]


def chart(
    lines: Sequence[Line],
    *,
    title: str,
    x_label: str,
    y_label: str,
    log_x: bool = False,
    log_y: bool = False,
    marks: Sequence[tuple[float, str]] = (),
) -> Figure:
    """Draw curves over common axes; `marks` are vertical lines with a label."""
    xs = [x for line in lines for x, _ in line.points] + [x for x, _ in marks]
    ys = [y for line in lines for _, y in line.points]
    if not ys or not all(map(math.isfinite, xs + ys)):
        raise UsageError("USE-001", "a chart needs points, and finite ones")
    if (log_x and min(xs) <= 0) or (log_y and min(ys) <= 0):
        raise UsageError("USE-001", "a logarithmic axis needs positive numbers")
    across = _axis(xs, log_x, _LEFT, _WIDTH - _RIGHT)
    up = _axis(ys, log_y, _HEIGHT - _BOTTOM, _TOP)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" '
        f'font-family="sans-serif" font-size="12"><title>{escape(title)}</title>'
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>'
    )
    parts = [
        head,
        _text(_WIDTH / 2, 18, title, size=14),
        *_frame(across, up, x_label, y_label),
    ]
    for index, line in enumerate(lines):
        parts += _curve(line, index, across, up)
    for at, label in marks:
        x = across.place(at)
        parts.append(_stroke(x, up.start, x, up.end, "#000000", dashed=True))
        left = x > (across.start + across.end) / 2  # words stay inside the frame
        anchor, aside = ("end", -4) if left else ("start", 4)
        parts.append(_text(x + aside, up.end + 12, label, anchor=anchor))
    return Figure("\n".join([*parts, "</svg>"]) + "\n")


def _axis(values: Sequence[float], log: bool, start: float, end: float) -> _Axis:
    low, high = min(values), max(values)
    if low == high:
        low, high = (low / 2, high * 2) if log else (low - (abs(low) or 1), high + (abs(high) or 1))
    return _Axis(low, high, log, start, end)


def _frame(across: _Axis, up: _Axis, x_label: str, y_label: str) -> list[str]:
    parts = []
    for tick in across.ticks():
        x = across.place(tick)
        parts.append(_stroke(x, up.start, x, up.end, "#e5e5e5"))
        parts.append(_text(x, up.start + 16, f"{tick:.4g}"))
    for tick in up.ticks():
        y = up.place(tick)
        parts.append(_stroke(across.start, y, across.end, y, "#e5e5e5"))
        parts.append(_text(across.start - 6, y + 4, f"{tick:.4g}", anchor="end"))
    parts.append(_stroke(across.start, up.start, across.end, up.start, "#000000"))
    parts.append(_stroke(across.start, up.start, across.start, up.end, "#000000"))
    parts.append(_text((across.start + across.end) / 2, _HEIGHT - 14, x_label))
    middle = (up.start + up.end) / 2
    parts.append(f'<g transform="rotate(-90 16 {middle:.1f})">{_text(16, middle, y_label)}</g>')
    return parts


def _curve(line: Line, index: int, across: _Axis, up: _Axis) -> list[str]:
    color = _COLORS[index % len(_COLORS)]
    stride = max(1, len(line.points) // _MOST_POINTS)
    kept = [*line.points[::stride], line.points[-1]]
    path = " ".join(f"{across.place(x):.1f},{up.place(y):.1f}" for x, y in kept)
    dash = ' stroke-dasharray="6 4"' if line.dashed else ""
    at = _LEFT + 8 + (index % 3) * 185
    row = 32 + 14 * (index // 3)
    stroke = f'stroke="{color}"{dash}'
    return [
        f'<polyline points="{path}" fill="none" stroke-width="1.8" {stroke}/>',
        f'<line x1="{at}" y1="{row}" x2="{at + 18}" y2="{row}" stroke-width="2.5" {stroke}/>',
        _text(at + 23, row + 4, line.label, anchor="start", size=11),
    ]


def _text(x: float, y: float, words: str, *, anchor: str = "middle", size: int = 12) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}">'
        f"{escape(words)}</text>"
    )


def _stroke(x1: float, y1: float, x2: float, y2: float, color: str, dashed: bool = False) -> str:
    dash = ' stroke-dasharray="4 3"' if dashed else ""
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{color}"{dash}/>'


def sensitivity_picture(
    distances: Sequence[float], estimate: float, *, title: str, note: str
) -> Figure:
    """Draw the share of samples at most as far as x, as a staircase, with the estimate marked."""
    m = len(distances)
    steps = [(distances[0], 0.0)]
    for index, distance in enumerate(distances):
        steps += [(distance, index / m), (distance, (index + 1) / m)]
    return chart(
        [Line(steps, note)],
        title=title,
        x_label="distance of the two results",
        y_label="share of the samples",
        marks=[(estimate, f"estimate {estimate:.4g}")],
    )


def noise_picture(
    density: Sequence[tuple[float, float]], error: float, *, title: str, note: str
) -> Figure:
    """Draw the density of the noise, with the error that is exceeded rarely marked on both sides.

    A density that begins at zero is that of a lost score: it has one side.
    """
    sides = [-error, error] if density[0][0] < 0 else [error]
    return chart(
        [Line(density, note)],
        title=title,
        x_label="noise" if len(sides) == 2 else "lost score",
        y_label="density" if len(sides) == 2 else "weight",
        marks=[(side, f"{side:.4g}") for side in sides],
    )
