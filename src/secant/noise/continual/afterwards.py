"""What can be made of a released series for nothing (continual.revised, continual.isotonic, continual.filter).

In: released numbers and public facts. Out: all steps estimated at once, series that cannot fall, filtered series.
Everything here is computed from what was released; nothing is drawn, read or paid. A running maximum is not offered: it
is biased, and nearly doubles the error of series that hardly rise.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from secant.errors import UsageError
from secant.noise.continual.batch import leaves, noises_of
from secant.noise.continual.encoder import Encoder
from secant.noise.continual.ends import LEVEL, Kind, ends_level, half_width, variance_of
from secant.noise.continual.levels import Tree, number
from secant.noise.continual.mechanisms import Mechanism, Stretch
from secant.noise.continual.records import Estimate, Point
from secant.numeric.arrays import Floats, np


def revised(
    way: Mechanism, released: Mapping[str, int], until: int, since: int = 1, level: float = LEVEL
) -> tuple[Point, ...]:
    """Give the series by least squares over all numbers up to `until`: earlier steps profit from later blocks."""
    if any(isinstance(part.design, Encoder) for part, _ in way.parts(until)):
        # as many outputs as steps: there is nothing to weigh
        return way.series(released, until, since, level)
    ends_level(level)
    points: list[Point] = []
    total = 0.0
    carried: list[Kind] = []
    for part, steps in way.parts(until):
        tree = part.design
        assert isinstance(tree, Tree)
        read = tree.read(released, part.start, steps)
        values = leaves(tree, [list(map(float, level)) for level in read])
        running = total + np.cumsum(values)
        for t in range(max(1, since - part.start), steps + 1):
            single, prefix = (_kinds(part, tree, steps, t, only) for only in (True, False))
            increment = _estimate(float(values[t - 1]), single, level)
            points.append(
                Point(
                    part.start + t,
                    increment,
                    _estimate(float(running[t - 1]), carried + prefix, level),
                    None,
                )
            )
        total = float(running[-1])
        carried = carried + _kinds(part, tree, steps, steps, False)
    return tuple(points)


def _estimate(value: float, kinds: list[Kind], level: float) -> Estimate:
    deviation = math.sqrt(sum(kind.variance for kind in kinds))
    half = half_width(tuple(kinds), level)
    return Estimate(value, deviation, value - half, value + half)


def _kinds(part: Stretch, tree: Tree, steps: int, t: int, single: bool) -> list[Kind]:
    """Give the noises in the estimate of step t alone, or of all steps up to it, from all blocks of `steps` steps."""
    weights = {t: 1.0, t - 1: -1.0} if single and t > 1 else {t: 1.0}
    return [Kind(part.noise, tuple(noises_of(tree, steps, weights).items()))]


def isotonic(values: Sequence[float]) -> list[float]:
    """Give the rising series nearest to a series, for totals that cannot fall (continual.isotonic)."""
    levels: list[tuple[float, int]] = []
    for value in values:
        mean, count = float(value), 1
        while levels and levels[-1][0] > mean:
            other, more = levels.pop()
            mean, count = (mean * count + other * more) / (count + more), count + more
        levels.append((mean, count))
    return [mean for mean, count in levels for _ in range(count)]


NEXT_TO_NOTHING = 1e-9
"""The least variance, in squared steps, that numbers are weighed by."""
MOST_FOLLOWED = 4000
"""Steps that are followed through blocks at once: the equations are solved as they stand."""


def followed(way: Mechanism, released: Mapping[str, int], until: int, drift: float) -> Floats:
    """Give steps 1 to `until` as a walk through all numbers so far, of blocks as well as of steps (continual.filter).

    The model, a walk whose steps have variance `drift`, is the reader's belief: no error is given, because none is
    promised. A wrong model spoils accuracy, never privacy. Of each step it gives what is likeliest after all
    numbers up to `until`, and for the last step what a Kalman filter over all blocks gives.
    """
    if not 0 < drift < math.inf:
        raise UsageError("USE-001", "the drift of a walk is a number above 0")
    if until > MOST_FOLLOWED:
        raise UsageError(
            "USE-010",
            f"up to {MOST_FOLLOWED} steps can be followed",
            hint="ask for fewer steps with `until`, or leave the filter out",
        )
    # How likely steps are: differences of neighbors, and each number with its noise. The least sum of squares.
    precision, pull = np.zeros((until, until)), np.zeros(until)
    inner = np.arange(until - 1)
    precision[inner, inner] += 1 / drift
    precision[inner + 1, inner + 1] += 1 / drift
    precision[inner, inner + 1] -= 1 / drift
    precision[inner + 1, inner] -= 1 / drift
    for step in range(1, until + 1):
        # Noise that rounds away leaves numbers that are as good as exact.
        weight = 1 / max(variance_of(way.stretch(step).noise), NEXT_TO_NOTHING)
        for output in way.due(step):
            row = np.zeros(output.last - output.first + 1)
            for at, times in output.weights:
                row[at - output.first] = times
            inside = slice(output.first - 1, output.last)
            precision[inside, inside] += weight * np.outer(row, row)
            pull[inside] += weight * number(released, output.name) * row
    return np.asarray(np.linalg.solve(precision, pull), np.float64)
