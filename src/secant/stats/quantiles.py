"""Quantiles, minimum and maximum by rank: statistic.rank, statistic.extreme.

In: values in steps of a public scale; q, ε, the neighbor relation. Out: one point of the scale, drawn
with probability falling with the number of rows between it and the statistic. Points are grouped by
equal score before the draw; the draw is exact (noise.exponential, noise.permute_and_flip).
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Literal

import numpy as np
import numpy.typing as npt

from secant.noise.mechanisms.ranks import by_rank
from secant.noise.mechanisms.selection import Choice, ExponentialNoise, PermuteAndFlip, Stretch
from secant.numeric.parameters import Number
from secant.records import frozen
from secant.sensitivity.bounds import GlobalBound
from secant.stats.results import ADD_REMOVE, Neighbors
from secant.stats.scale import Steps

Floats = npt.NDArray[np.float64]

_TAIL = 40  # the points beyond the farthest score that is told apart weigh exp(-40) together
_PARTS = 16
_POWER = 1.5
BENT_TOP = 1 << 45
"""The last point of a bent scale: at its dense end points are as close as 2^30 even ones."""
_FINE = 1 << 20  # steps: a coarser scale is not bent, its points are the values themselves


@frozen
class Target:
    """What is looked for, as an excess of rows: b times the distance of `by_rank`, for q = a/b."""

    q: Fraction

    @property
    def extreme(self) -> bool:
        """Whether this is the minimum or the maximum."""
        return self.q in (0, 1)

    def unit(self) -> int:
        """How much of the excess one row makes."""
        return self.q.denominator

    def step(self, neighbors: Neighbors) -> Fraction:
        """How far the excess of a point moves at most between neighbors, in its own units."""
        if self.extreme or neighbors != ADD_REMOVE:
            return Fraction(self.unit())
        return max(self.q, 1 - self.q) * self.unit()


@frozen
class Bend:
    """Points that lie the denser the farther they are from one end of the range.

    For the minimum the whole stretch below all rows is equally good by rank. With evenly spaced points
    a draw from it is uniform; with these it leans toward the rows: between the near end and the least
    value, at distance L, it is off by 2L/5 in the mean instead of L/2.
    """

    top: int
    """Of the straight scale."""
    mirrored: bool
    """False: sparse at the lower end, for the minimum; True: at the upper, for the maximum."""

    def bent(self, steps: Steps) -> Steps:
        """Move each value to a point of the bent scale: a rule for each value by itself."""
        away = self.top - steps if self.mirrored else steps
        share = np.power(away / self.top, _POWER)
        indices: Steps = np.clip(np.rint(share * BENT_TOP), 0, BENT_TOP).astype(np.int64)
        return BENT_TOP - indices if self.mirrored else indices

    def straight(self, places: Floats) -> Floats:
        """Give where points of the bent scale lie on the straight one."""
        away = BENT_TOP - places if self.mirrored else places
        steps = np.power(np.clip(away / BENT_TOP, 0.0, 1.0), 1 / _POWER) * self.top
        ranks: Floats = self.top - steps if self.mirrored else steps
        return ranks


@frozen
class RankChoice:
    """A calibrated draw of a point by rank; holds nothing private."""

    target: Target
    choice: Choice
    top: int
    farthest: int
    """Scores are told apart up to here; what lies beyond counts as lying here."""
    bend: Bend | None = None

    def draw(self, values: Steps) -> Fraction:
        """Give one point, in steps of the values' scale."""
        if self.bend is None:
            return Fraction(self.choice.draw_point(self.stretches(np.sort(values))))
        point = self.choice.draw_point(self.stretches(np.sort(self.bend.bent(values))))
        return Fraction(float(self.bend.straight(np.array([point], dtype=np.float64))[0]))

    def spread(self, values: Steps) -> tuple[Floats, Floats]:
        """Give points and how likely each is, for values that are public: some for each group."""
        ordered = np.sort(values if self.bend is None else self.bend.bent(values))
        first, counts, excess = self.groups(ordered)
        heights = np.log(counts) - excess * float(self.choice.sharpness)
        chances = np.exp(heights - heights.max())
        parts = (np.arange(_PARTS) + 0.5) / _PARTS
        points = (first[:, None] + (counts - 1)[:, None] * parts).ravel()
        weights = np.repeat(chances / (chances.sum() * _PARTS), _PARTS)
        return (points if self.bend is None else self.bend.straight(points)), weights

    def stretches(self, ordered: Steps) -> list[Stretch]:
        """Group the points of the scale by how many rows lie below and above them."""
        first, counts, excess = self.groups(ordered)
        pieces = zip(first.tolist(), counts.tolist(), excess.tolist(), strict=True)
        return [Stretch(at, count, -far) for at, count, far in pieces]

    def groups(self, ordered: Steps) -> tuple[Steps, Steps, Steps]:
        """Give first point, number of points and excess of each group, from left to right."""
        center = float(self.target.q) * len(ordered)
        wide = self.farthest / self.target.unit() + 2
        near = ordered[max(0, math.floor(center - wide)) : max(0, math.ceil(center + wide))]
        marks = np.unique(near)
        less = np.searchsorted(ordered, marks, side="left")
        upto = np.searchsorted(ordered, marks, side="right")
        cells = list(zip(marks.tolist(), (upto - less).tolist(), strict=True))
        before = int(less[0]) if len(less) else 0
        groups = by_rank(
            self.target.q, self.top + 1, cells, self.farthest, before=before, total=len(ordered)
        )
        first, counts, excess = np.array(groups, dtype=np.int64).T
        return first, counts, excess

    def rows(self, level: Number) -> float:
        """Give t: with probability `level` at most t rows lie between the point and the statistic."""
        return float(self.choice.error(level, self.top + 1) / self.target.unit())


def rank_choice(
    q: Fraction,
    *,
    top: int,
    epsilon: Fraction,
    neighbors: Neighbors,
    kind: Literal["exponential", "permute-and-flip"] = "exponential",
) -> RankChoice:
    """Calibrate: ε over twice the step of the excess, or over the step where all move one way."""
    target = Target(q)
    mechanism = ExponentialNoise() if kind == "exponential" else PermuteAndFlip()
    bound = GlobalBound(target.step(neighbors), "linf")
    choice = mechanism.calibrate(bound, epsilon=epsilon, monotone=target.extreme)
    bend = Bend(top, mirrored=q == 1) if target.extreme and top >= _FINE else None
    last = top if bend is None else BENT_TOP
    farthest = math.ceil((math.log(last + 1) + _TAIL) / float(choice.sharpness))
    return RankChoice(target, choice, last, farthest, bend)
