"""Choose privately between which of some public points the middle unit lies (truncation.center).

In: how many units lie in each cell. Out: one cell; the fewer units lie between a cell and the middle, the likelier.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from secant.noise.mechanisms.ranks import by_rank
from secant.noise.mechanisms.selection import Choice, ExponentialNoise, Stretch, pick_exponential
from secant.noise.secrecy import Private, unseal

MIDDLE = Fraction(1, 2)
"""The part of the units that lies to the left of what is looked for."""
MOVES = Fraction(1, 2)
"""How far one unit moves the distance of a cell."""


def choose_cell(
    cells: int, units: Private[Mapping[int, int]] | Mapping[int, int], epsilon: Fraction
) -> int:
    """Give the index of a cell; one unit more or less moves the distance of every cell by half at most."""
    # What is left of the least epsilon that may be asked with is less than a mechanism may be asked for.
    choice = Choice(ExponentialNoise.name, epsilon, epsilon / (2 * MOVES), pick_exponential)
    return choice.draw_point(
        [Stretch(first, count, -far) for first, count, far in _far(cells, units)]
    )


def _far(
    cells: int, units: Private[Mapping[int, int]] | Mapping[int, int]
) -> list[tuple[int, int, Fraction]]:
    """Give stretches of cells, and how many units lie between each and the middle. Private."""
    counted = sorted(unseal(units).items())
    total = 2 * sum(number for _, number in counted) + 2
    return [
        (first, count, Fraction(far, 2))
        for first, count, far in by_rank(MIDDLE, cells, counted, total)
    ]
