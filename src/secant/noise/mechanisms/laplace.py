"""noise.laplace: real Laplace noise released on a public grid, and the discrete law on whole steps.

In: a global bound, ε, a public grid; at the draw, private answers. Out: multiples of the grid.
Answers that are promised to lie on the grid take discrete noise, others the rounded real noise;
which of the two is fixed by the mechanism, never by the value.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import ClassVar

from secant.errors import InternalError, UsageError
from secant.noise.mechanisms.discrete_laplace import discrete_laplace_error, discrete_laplace_noise
from secant.noise.mechanisms.geometric import GUARD, UNIT, Shape, draw_geometric, shape_of
from secant.noise.mechanisms.laws import LaplaceLaw, reach
from secant.noise.mechanisms.randomness import LazyUniform, word
from secant.noise.mechanisms.smooth import Secret, private_ratio
from secant.numeric.ball import ball, decide
from secant.numeric.parameters import Number, epsilon_of, level_of, positive
from secant.records import frozen
from secant.sensitivity.bounds import Bound, GlobalBound

_STEEP = 2.0**-900  # below this rate floats have lost digits


@frozen
class GlobalNoise:
    """Calibrated Laplace noise for a global bound."""

    name: str
    epsilon: Fraction
    scale: Fraction
    """In units of the answer; zero only for a global bound of zero, which needs no noise."""
    grid: Fraction
    discrete: bool
    delta: Fraction = Fraction(0)
    error_unit: ClassVar[str] = "answer"

    @property
    def noiseless(self) -> bool:
        """Say that the answer depends on nothing protected, so that it is released as it is."""
        return self.scale == 0

    def draw(self, value: Secret) -> Fraction:
        """Release one answer."""
        return self.draw_many([value])[0]

    def draw_many(self, values: Sequence[Secret]) -> list[Fraction]:
        """Release several answers, whose joint bound in the l1 norm the noise was calibrated to."""
        if self.discrete:
            steps = [on_grid(value, self.grid) for value in values]
            if not self.noiseless:
                noise = discrete_laplace_noise(len(steps), scale=self.scale / self.grid)
                steps = [step + drawn for step, drawn in zip(steps, noise, strict=True)]
        elif self.noiseless:
            steps = [nearest(value, self.grid) for value in values]
        else:
            steps = laplace_cells(values, scale=self.scale, grid=self.grid)
        points = {step: step * self.grid for step in set(steps)}  # few, unless the grid is fine
        return [points[step] for step in steps]

    def error(self, level: Number) -> Fraction:
        """Give t with P(|released - answer| ≤ t) ≥ level."""
        chance = level_of(level)
        if self.noiseless:
            return Fraction(0) if self.discrete else self.grid / 2
        if self.discrete:
            return discrete_laplace_error(self.scale / self.grid, chance) * self.grid
        return reach(LaplaceLaw(), chance) * self.scale + self.grid / 2


def fitting(scale: Fraction, grid: Fraction) -> Fraction:
    """Give the scale back if it is zero or within reach of the grid; raise before anything runs."""
    if scale:
        positive(scale / grid, "the noise in grid steps")
    return scale


def nearest(value: Secret, grid: Fraction) -> int:
    """Give the index of the grid point next to an answer that depends on nothing protected."""
    top, bottom = private_ratio(value)
    half = bottom * grid.numerator
    return (2 * top * grid.denominator + half) // (2 * half)


def on_grid(value: Secret, grid: Fraction) -> int:
    """Give the index of an answer that was promised to lie on the grid."""
    top, bottom = private_ratio(value)
    steps, remainder = divmod(top * grid.denominator, bottom * grid.numerator)
    if remainder:
        raise InternalError("BUG-001", "an answer was promised to lie on the grid and does not")
    return steps


@frozen
class NoiseForSums:
    """What both laws for a global bound in the l1 norm share."""

    name: ClassVar[str]
    discrete: ClassVar[bool]

    def admits(self, bound: Bound) -> bool:
        """Say whether this mechanism handles bounds of this kind."""
        return isinstance(bound, GlobalBound) and bound.norm == "l1"

    def calibrate(
        self, bound: GlobalBound, *, epsilon: Number, grid: Number, delta: Number = 0
    ) -> GlobalNoise:
        """Fix the scale: bound / ε."""
        if not self.admits(bound):
            raise UsageError("USE-001", f"{self.name} noise needs a global bound in the l1 norm")
        budget, step = epsilon_of(epsilon), positive(grid, "grid")
        # answers on the grid differ by whole steps, so the part of a step cannot be reached
        moves = (bound.value // step) * step if self.discrete else bound.value
        scale = fitting(moves / budget, step)
        return GlobalNoise(self.name, budget, scale, step, discrete=self.discrete)


@frozen
class LaplaceNoise(NoiseForSums):
    """noise.laplace: ε-DP for any answer with a global bound in the l1 norm."""

    name: ClassVar[str] = "laplace"
    proof: ClassVar[str] = "noise.laplace"
    discrete: ClassVar[bool] = False


@frozen
class DiscreteLaplaceNoise(NoiseForSums):
    """noise.discrete_laplace: ε-DP for answers that are multiples of the grid."""

    name: ClassVar[str] = "discrete-laplace"
    proof: ClassVar[str] = "noise.discrete_laplace"
    discrete: ClassVar[bool] = True


def laplace_cells(values: Sequence[Secret], *, scale: Fraction, grid: Fraction) -> list[int]:
    """Give the grid index nearest to each value + Laplace(scale), exactly.

    |noise| / grid = G + F with independent parts: G whole and geometric, F in [0, 1). Only whether
    F passes the edge of the value's own cell matters.
    """
    shape = shape_of(scale / grid)
    rate = float(1 / shape.scale)
    cells = []
    for value in values:
        head = word()
        minus = bool(head & 1)  # the low bits of the word are independent of the 53 used below
        cell, top, bottom = _edge(value, minus, grid)
        cell += draw_geometric(shape, head >> 11) + _pass_edge(shape, rate, top, bottom)
        cells.append(-cell if minus else cell)
    return cells


def _edge(value: Secret, minus: bool, grid: Fraction) -> tuple[int, int, int]:
    """Give a value's cell, seen in the direction of its sign, and the distance to its far edge.

    The distance is a fraction, numerator and denominator, of the grid step, above 0 and at most 1.
    """
    top, bottom = private_ratio(value)
    half = bottom * grid.numerator
    cell, remainder = divmod((-top if minus else top) * 2 * grid.denominator + half, 2 * half)
    return cell, 2 * half - remainder, 2 * half


def _pass_edge(shape: Shape, rate: float, top: int, bottom: int) -> bool:
    """Say whether F lies beyond the edge at t = top / bottom.

    P = (exp(-t/s) - exp(-1/s)) / (1 - exp(-1/s)); the float is within 2^-48 of it.
    """
    test = word() >> 11
    if rate > _STEEP:
        distance = top / bottom
        chance = math.exp(-distance * rate) * math.expm1(-(1 - distance) * rate) / math.expm1(-rate)
        gap = test * UNIT - chance
        if abs(gap) >= 4 * GUARD:
            return gap < 0
    return _passes(shape, Fraction(top, bottom), LazyUniform(test, 53))


def _passes(shape: Shape, distance: Fraction, uniform: LazyUniform) -> bool:
    if distance == 1:
        return False

    def attempt(precision: int) -> bool | None:
        end = ball(-1 / shape.scale).expm1()
        chance = (ball(-distance / shape.scale).expm1() - end) / -end
        gap = uniform.enclosure(precision) - chance
        return None if gap.contains(0) else bool(gap < 0)

    return bool(decide(attempt, 128))
