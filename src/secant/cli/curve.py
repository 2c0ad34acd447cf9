"""Error against ε: a list of points for each column, as a table, as bars, and as an SVG drawing.

In: what `Connection.inspect` says at each ε of a public grid. Out: text. What is drawn shows how large
errors are beside true answers, so it is for the owner, as `secant inspect` is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from secant.display.curves import Line, chart
from secant.records import frozen

GRID = ("0.01", "0.02", "0.05", "0.1", "0.2", "0.5", "1", "2", "5", "10")
"""The ε of a curve. Public, and the same for every question."""
BARS = 30
_Point = tuple[float, float | None, float | None]
"""ε, error, relative error."""


@frozen
class Curve:
    """Errors of one column that an ε allows: absolute, and relative to the length of the true answers."""

    column: str
    epsilons: tuple[float, ...]
    errors: tuple[float | None, ...]
    relative: tuple[float | None, ...]
    asked: tuple[float, ...]
    """At which ε the question has this error: that ε, or a smaller one that happens to do better."""

    def to_dict(self, level: float) -> dict[str, Any]:
        """Give the curve as plain values."""
        points = zip(self.epsilons, self.errors, self.relative, self.asked, strict=True)
        return {
            "column": self.column,
            "level": level,
            "curve": [
                {"epsilon": e, "error": error, "relative_error": share, "asked_with": requested}
                for e, error, share, requested in points
            ],
        }


def curves_of(inspect: Callable[[str], Sequence[Mapping[str, Any]]]) -> list[Curve]:
    """Inspect a question at every ε of the grid; columns without noise have no curve.

    How wide a filter is softened, and how smooth a bound is, follows from public facts, so on the data at hand a
    smaller ε may do better than a larger one. Who has the larger one may ask with the smaller one: a curve never rises.
    """
    seen: dict[str, list[_Point]] = {}
    for epsilon in GRID:
        for record in inspect(epsilon):
            error, relative = error_of(record), relative_error_of(record)
            seen.setdefault(str(record["column"]), []).append((float(epsilon), error, relative))
    curves = []
    for column, points in seen.items():
        best = _falling(points)
        requested, errors = tuple(p[0] for p in best), tuple(p[1] for p in best)
        if any(e != 0 for e in errors):  # None is an error that nobody can state, not none at all
            epsilons, shares = tuple(p[0] for p in points), tuple(p[2] for p in best)
            curves.append(Curve(column, epsilons, errors, shares, requested))
    return curves


def _falling(points: Sequence[_Point]) -> list[_Point]:
    """Give for each point the one with the least error up to there; what is not stated stays so."""
    falling: list[_Point] = []
    best: _Point | None = None
    for point in points:
        if point[1] is not None and (best is None or best[1] is None or point[1] <= best[1]):
            best = point
        falling.append(point if point[1] is None or best is None else best)
    return falling


def error_of(record: Mapping[str, Any]) -> float | None:
    """Give the absolute error of a column, the largest of its rows; None where it is not stated."""
    error = record.get("error95", record.get("error"))
    if isinstance(error, (list, tuple)):
        return None if None in error else max((float(e) for e in error), default=0.0)
    return None if error is None else float(error)


def relative_error_of(record: Mapping[str, Any]) -> float | None:
    """Give ‖errors‖₂/‖true answers‖₂, one number for all rows; None where it is not stated."""
    error = record.get("relative_error95", record.get("relative_error"))
    return None if error is None else float(error)


def bar(value: float | None, values: Sequence[float | None]) -> str:
    """Draw a number as a bar, on the logarithmic scale of all values."""
    shown = [v for v in values if v is not None and v > 0]
    if value is None or value <= 0:
        return ""
    high = math.log10(max(shown))
    low = min(math.log10(min(shown)), high - 1)  # a decade at least: a flat curve looks flat
    return "#" * (1 + round((math.log10(value) - low) / (high - low) * (BARS - 1)))


def svg(curves: Sequence[Curve], level: float, title: str) -> str:
    """Draw relative error against ε on logarithmic axes.

    A column without a relative error (the true answer is 0) is named in the legend and not drawn.
    """
    lines = []
    for curve in curves:
        pairs = zip(curve.epsilons, curve.relative, strict=True)
        points = [(e, r) for e, r in pairs if r is not None and r > 0]
        name = curve.column if points else f"{curve.column} (no relative error)"
        lines.append(Line(points, name))
    low, high = _decades([y for line in lines for _, y in line.points])
    return chart(
        lines,
        title=title,
        x_label="epsilon",
        y_label=f"error at {level * 100:g} %, relative to the answer",
        log_x=True,
        log_y=True,
        reached=[(float(GRID[0]), low), (float(GRID[-1]), high)],
    ).svg


def _decades(values: Sequence[float]) -> tuple[float, float]:
    if not values:
        return 0.01, 1.0
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    return 10.0**low, 10.0 ** max(high, low + 1)
