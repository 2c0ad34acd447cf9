"""What every picture of a result is made of: SVG written as text, so that no plotting package is needed.

In: public numbers and words. Out: a picture that notebooks show and that can be saved. Words are escaped, and
characters that XML forbids are replaced: they would make the whole drawing unreadable.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

from secant.records import frozen

WORDS, LINES, BLACK = "#22303c", "#dddddd", "#000000"
COLORS = ("#2563a8", "#c0392b", "#2e8b57", "#8e44ad", "#b9770e", "#2c3e50")
"""Of the lines of a picture, in this order."""


@frozen
class Picture:
    """A drawing as SVG: a notebook shows it, `save` writes it."""

    svg: str

    def _repr_svg_(self) -> str:
        return self.svg

    def save(self, path: str | Path) -> Path:
        """Write the drawing into a file."""
        target = Path(path)
        target.write_text(self.svg, encoding="utf-8")
        return target


@frozen
class Axis:
    """Where numbers lie between two ends of a picture; `low` lies at `start`."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def place(self, value: float) -> float:
        """Give where a number lies."""
        low, high, at = (math.log10(v) if self.log else v for v in (self.low, self.high, value))
        return self.start + (at - low) / (high - low) * (self.end - self.start)

    def ticks(self) -> list[float]:
        """Give about five round numbers of the axis; on a logarithmic one powers of ten if it has two."""
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


def axis_of(values: Sequence[float], start: float, end: float, *, log: bool = False) -> Axis:
    """Give the axis that holds all values, and is never empty."""
    low, high = min(values), max(values)
    if low == high:
        low, high = (low / 2, high * 2) if log else (low - abs(low), high + (abs(high) or 1))
    return Axis(low, high, start, end, log)


def page(width: float, height: float, title: str, parts: Iterable[str]) -> str:
    """Give the text of a whole picture, on white; the title is what a screen reader says."""
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12" role="img">'
    )
    named = f"<title>{readable(title)}</title>"
    white = f'<rect width="{width}" height="{height}" fill="white"/>'
    return "\n".join([head, named, white, *parts, "</svg>", ""])


def text_at(
    x: float,
    y: float,
    text: str,
    anchor: str = "start",
    color: str = WORDS,
    *,
    size: int = 12,
    upward: bool = False,
) -> str:
    """Write words into a picture; `upward` turns them to the left."""
    other = "" if size == 12 else f' font-size="{size}"'
    turn = f' transform="rotate(-90 {x:.1f} {y:.1f})"' if upward else ""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{color}"{other}{turn}>'
        f"{readable(text)}</text>"
    )


def line_at(
    x1: float, y1: float, x2: float, y2: float, color: str = LINES, *, dashed: bool = False
) -> str:
    """Draw a straight line."""
    dash = ' stroke-dasharray="4 3"' if dashed else ""
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{color}"{dash}/>'


def curve_through(
    points: Iterable[tuple[float, float]], color: str, *, dashed: bool = False
) -> str:
    """Draw a line through points of the picture."""
    dash = ' stroke-dasharray="6 4"' if dashed else ""
    return f'<polyline points="{_points(points)}" fill="none" stroke="{color}" stroke-width="1.8"{dash}/>'


def area_between(points: Iterable[tuple[float, float]], color: str) -> str:
    """Fill what points of the picture enclose, so that lines behind it still show."""
    return f'<polygon points="{_points(points)}" fill="{color}" fill-opacity="0.2"/>'


def _points(points: Iterable[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)


def readable(text: str) -> str:
    """Escape words; characters that XML forbids would make the whole drawing unreadable."""
    return escape("".join(c if c.isprintable() else "?" for c in text))
