"""Noise for running sums over public steps: on the sums of blocks of steps, put together by least squares.

Rests on continual.batch.

In: plain noise, a tree, and in which order groups follow each other. Out: numbers of all groups, and how far any sum of
running sums is from the truth. Public facts only. Shown steps add up to the running sums that are shown.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from secant.noise.continual.batch import blocks, change_of_blocks, noises_of, steps_of
from secant.noise.continual.levels import Tree
from secant.noise.cost import Cost
from secant.noise.intervals import NoisyNumber, Span
from secant.noise.measure_noise import LawfulNoise, PlainNoise
from secant.noise.mechanisms.sums import HIGHEST, Weighted, sum_error, weighted_error
from secant.noise.secrecy import Private, sealed_map
from secant.records import frozen
from secant.sensitivity.bounds import GlobalBound
from secant.sensitivity.certificate import Certificate

Block = tuple[int, int]
"""A running sum: which partition, and how many of its steps."""


@frozen
class RunningNoise(LawfulNoise):
    """Plain noise on the sums of blocks; what is shown of each step follows from all of them."""

    plain: PlainNoise
    """What each step would get by itself."""
    tree: Tree
    runs: tuple[tuple[int, ...], ...]
    """For each partition the places of its groups, in the order of their steps."""

    @property
    def hidden(self) -> tuple[Fraction, Fraction]:
        """Give what all blocks together move by."""
        return change_of_blocks(self.tree, self.plain.size, self.plain.squared)

    def cost(self, certificate: Certificate, column: str) -> Cost:
        """Cost a protection as much less as it is moved less."""
        bound = certificate.bounds[column]
        assert isinstance(bound, GlobalBound), "blocks are for public bounds"
        (size, squared), hidden = (
            change_of_blocks(self.tree, bound.value, certificate.squared(column)),
            self.hidden,
        )
        return self.share.cost(size / hidden[0], squared / hidden[1])

    def draw(self, values: Private[list[int]]) -> list[int]:
        """Add noise to the sums of blocks, and give the steps that follow from them."""

        def sums(read: list[int]) -> list[int]:
            return [x for run in self.runs for x in blocks(self.tree, [read[i] for i in run])]

        noisy = self.law.add(sealed_map(values, sums))
        totals: dict[int, int] = {}
        at = 0
        for run in self.runs:
            count = sum(len(run) // self.tree.block(level) for level in range(self.tree.levels))
            totals |= dict(
                zip(run, steps_of(self.tree, len(run), noisy[at : at + count]), strict=True)
            )
            at += count
        return [totals[i] for i in range(len(totals))]

    def reach(self, weights: Mapping[Block, float], level: Fraction) -> float:
        """Give how far a weighted sum of shown running sums is from the true one, in whole steps (continual.batch)."""
        counted: dict[float, int] = {}
        for run in dict.fromkeys(run for run, _ in weights):
            inside = {steps: w for (other, steps), w in weights.items() if other == run}
            for w, count in noises_of(self.tree, len(self.runs[run]), inside).items():
                size = round(abs(w), 12)
                counted[size] = counted.get(size, 0) + count
        law = self.law
        top = max(1.0, *counted)
        kinds = [(w / top, count) for w, count in sorted(counted.items()) if w]
        if level <= HIGHEST:
            weighted = tuple(Weighted(float(law.size), w, count, law.normal) for w, count in kinds)
            far = weighted_error(weighted, float(level))
        else:
            scales = [w * float(law.size) for w, count in kinds for _ in range(count)]
            far = sum_error(*((), float(level), scales) if law.normal else (scales, float(level)))
            far += sum(w * count for w, count in kinds)
        # Running sums are rounded to whole steps; whole numbers are a whole number apart.
        error = far * top + sum(map(abs, weights.values())) / 2
        return math.floor(error) if all(w % 1 == 0 for w in weights.values()) else error

    def single(self, run: int, steps: int) -> dict[Block, float]:
        """Give one step as the difference of two running sums."""
        before = {(run, steps - 1): -1.0} if steps > 1 else {}
        return {(run, steps): 1.0, **before}

    def number(self, step: Fraction, left_out: Span) -> NoisyNumber:
        """Know the law of running sums, which are put in one by one."""
        return NoisyNumber(0.0, lambda level: None, None, float(step), left_out)

    def usual_error(self, level: Fraction, one: Fraction) -> int | None:
        """Know how far one step is off."""
        return math.ceil(self.reach(self.single(0, len(self.runs[0])), level))

    def describe(self, step: Fraction) -> dict[str, Any]:
        """Name the law, its size, and the blocks."""
        blocks = {"branching": self.tree.branching, "levels": self.tree.levels}
        return {**self.share.describe(self.law, step), "running": blocks}

    def words(self, step: Fraction, level: Fraction) -> str:
        """Say that blocks of steps get noise, how far running sums lead, and how far they would without blocks."""
        steps = max(map(len, self.runs))
        at = self.runs.index(max(self.runs, key=len))
        errors = [
            float(x * step)
            for x in (self.reach({(at, steps): 1.0}, level), self._plain(steps, level))
        ]
        sizes = ", ".join(str(self.tree.block(x)) for x in range(self.tree.levels))
        return (
            f"{self.share.words(self.law, step)} on the sums of blocks of {sizes} steps, for running sums over "
            f"{steps} steps (continual.batch); the last one within {errors[0]:.6g} at "
            f"{float(level):.0%}, by plain sums {errors[1]:.6g}"
        )

    def _plain(self, steps: int, level: Fraction) -> float:
        law = self.share.law(*self.plain.hidden)
        return weighted_error((Weighted(float(law.size), 1.0, steps, law.normal),), float(level))


@frozen
class RunningSums:
    """The numbers of one measure that blocks were drawn for, as they are shown."""

    noise: RunningNoise
    step: float
    places: Mapping[int, Block]
    """Row of the released table -> the running sum up to it."""
    totals: Mapping[Block, float]
    """Running sums as they are shown."""

    def error(self, weights: Mapping[Block, float], level: Fraction) -> float:
        """Give how far a weighted sum of running sums is from the true one."""
        return self.noise.reach(weights, level) * self.step


def steps_shown(noise: RunningNoise, step: Fraction, shown: Sequence[float]) -> RunningSums:
    """Give the running sums behind the shown steps."""
    places, totals = {}, {}
    for run, rows in enumerate(noise.runs):
        total = 0.0
        for steps, row in enumerate(rows, 1):
            if row < len(shown):  # of made-up answers a few rows may do
                total += shown[row]
                places[row] = run, steps
                totals[run, steps] = total
    return RunningSums(noise, float(step), places, totals)
