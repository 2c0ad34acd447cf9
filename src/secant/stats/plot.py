"""A curve of noise as a picture: SVG written by hand, so that no plotting package is needed.

In: a density on a public axis and the level of an error bar. Out: an object that notebooks show and
that can be saved. Nothing private is drawn: a noise whose size is private is drawn in units of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from pathlib import Path

_WIDTH, _HEIGHT, _LEFT, _BOTTOM = 560, 300, 40, 48
_INK, _BLUE, _PALE = "#22303c", "#2563a8", "#cfe0f3"


@dataclass(frozen=True, slots=True)
class Curve:
    """A density along a public axis, zero in its middle, and where its error bar ends."""

    axis: str
    density: Callable[[float], float]
    reach: float
    """The distance from zero that the error bar has."""
    sided: int = 2
    """1 where the error has one direction only."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A finished picture."""

    svg: str

    def _repr_svg_(self) -> str:
        return self.svg

    def save(self, path: str | Path) -> Path:
        """Write the picture to a file."""
        place = Path(path)
        place.write_text(self.svg, encoding="utf-8")
        return place


def draw(title: str, curve: Curve | None, *, level: float) -> Figure:
    """Draw a density, shaded where the error lies with probability `level`."""
    if curve is None or not curve.reach > 0:
        return Figure(_frame(title, [_text(_WIDTH / 2, _HEIGHT / 2, "no noise was added")]))
    far = 1.6 * curve.reach
    start = -far if curve.sided == 2 else 0.0
    xs = [start + (far - start) * i / 400 for i in range(401)]
    ys = [curve.density(x) for x in xs]
    highest = max(ys)

    def place(x: float, y: float) -> str:
        across = _LEFT + (x - start) / (far - start) * (_WIDTH - 2 * _LEFT)
        up = _HEIGHT - _BOTTOM - y / highest * (_HEIGHT - _BOTTOM - 44)
        return f"{across:.1f},{up:.1f}"

    inside = [(x, y) for x, y in zip(xs, ys, strict=True) if abs(x) <= curve.reach]
    shade = [place(inside[0][0], 0), *(place(x, y) for x, y in inside), place(inside[-1][0], 0)]
    line = " ".join(place(x, y) for x, y in zip(xs, ys, strict=True))
    parts = [
        f'<polygon points="{" ".join(shade)}" fill="{_PALE}"/>',
        f'<polyline points="{line}" fill="none" stroke="{_BLUE}" stroke-width="2"/>',
        f'<polyline points="{place(start, 0)} {place(far, 0)}" stroke="{_INK}"/>',
    ]
    marks = (-curve.reach, 0.0, curve.reach) if curve.sided == 2 else (0.0, curve.reach)
    for mark in marks:
        across = float(place(mark, 0).split(",")[0])
        parts.append(_text(across, _HEIGHT - _BOTTOM + 16, f"{mark:.4g}"))
    parts.append(_text(_WIDTH / 2, _HEIGHT - 10, f"{curve.axis}; shaded: {level:.4g}"))
    return Figure(_frame(title, parts))


def _text(x: float, y: float, words: str, size: int = 12) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="middle" fill="{_INK}">'
        f"{escape(words)}</text>"
    )


def _frame(title: str, parts: list[str]) -> str:
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        f'width="{_WIDTH}" height="{_HEIGHT}" font-family="sans-serif" role="img">'
    )
    return "\n".join(
        [
            head,
            f"<title>{escape(title)}</title>",
            f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
            _text(_WIDTH / 2, 24, title, 14),
            *parts,
            "</svg>",
        ]
    )
