"""The noise of a statistic as a picture.

In: a density on a public axis and the level of an error bar. Out: a picture. Nothing private is drawn: a
noise whose size is private is drawn in units of it.
"""

from __future__ import annotations

from collections.abc import Callable

from secant.display.curves import HEIGHT, WIDTH, noise_picture
from secant.display.drawing import Picture, page, text_at
from secant.records import frozen


@frozen
class Curve:
    """A density along a public axis, zero in its middle, and where its error bar ends."""

    axis: str
    density: Callable[[float], float]
    reach: float
    """The distance from zero that the error bar has."""
    sided: int = 2
    """1 where the error has one direction only."""


def draw(title: str, curve: Curve | None, *, level: float) -> Picture:
    """Draw a density, filled where the error lies with probability `level`."""
    if curve is None or not curve.reach > 0:
        text = text_at(WIDTH / 2, HEIGHT / 2, "no noise was added", "middle")
        return Picture(page(WIDTH, HEIGHT, title, [text]))
    far = 1.6 * curve.reach
    start = -far if curve.sided == 2 else 0.0
    xs = [start + (far - start) * i / 400 for i in range(401)]
    density = [(x, curve.density(x)) for x in xs]
    return noise_picture(
        density, curve.reach, title=title, note=f"filled: {level:.4g}", axis=curve.axis
    )
