"""noise.bernstein: a whole function on the unit cube, released at once and evaluated ever after.

In: the private function's values on a public lattice of [0,1]^d, a bound on how far any value
moves, ε. Out: a polynomial that can be evaluated anywhere without further cost. The lattice, the
order and the grid are public; the polynomial is computed from noisy values only.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import ClassVar

from secant.errors import UsageError
from secant.noise.mechanisms.laplace import GlobalNoise, fitting
from secant.noise.mechanisms.laws import LaplaceLaw, reach
from secant.noise.mechanisms.smooth import Secret
from secant.numeric.arrays import Floats, np
from secant.numeric.ball import ball, upper, working_precision
from secant.numeric.parameters import Number, count_of, epsilon_of, level_of, positive
from secant.records import frozen
from secant.sensitivity.bounds import Bound, GlobalBound

_MOST_POINTS = 10**6


@frozen
class BernsteinRelease:
    """A released function: public, so it may be evaluated, plotted and stored."""

    values: tuple[Fraction, ...]
    """Noisy lattice values; the last coordinate runs fastest."""
    dimension: int
    cover: int
    order: int

    def __call__(self, point: Sequence[float]) -> float:
        """Evaluate the iterated Bernstein polynomial at a point of the unit cube."""
        if len(point) != self.dimension:
            raise UsageError("USE-001", "the point does not have the function's dimension")
        if not all(0.0 <= coordinate <= 1.0 for coordinate in point):
            raise UsageError("USE-001", "the point lies outside the unit cube")
        values = self._coefficients()
        for coordinate in point:
            values = np.tensordot(_basis(self.cover, coordinate), values, axes=(0, 0))
        return float(values)

    def _coefficients(self) -> Floats:
        """Give lattice values g with B(g) = (I - (I - B)^order)(noisy values)."""
        shape = (self.cover + 1,) * self.dimension
        noisy = np.array([float(value) for value in self.values]).reshape(shape)
        table = np.stack([_basis(self.cover, at / self.cover) for at in range(self.cover + 1)])
        total, left = noisy, noisy
        for _ in range(1, self.order):
            smoothed = left
            for axis in range(self.dimension):
                smoothed = np.moveaxis(np.tensordot(table, smoothed, axes=(1, axis)), 0, axis)
            left = left - smoothed
            total = total + left
        return total


def _basis(cover: int, at: float) -> Floats:
    """Give the weights of the lattice points 0 .. cover at a coordinate; they add up to 1."""
    places = range(cover + 1)
    return np.array([math.comb(cover, v) * at**v * (1 - at) ** (cover - v) for v in places])


@frozen
class LatticeNoise:
    """A calibrated Bernstein mechanism."""

    name: str
    epsilon: Fraction
    noise: GlobalNoise
    dimension: int
    cover: int
    order: int
    delta: Fraction = Fraction(0)
    error_unit: ClassVar[str] = "answer"

    def points(self) -> list[tuple[Fraction, ...]]:
        """Give the lattice on which the private function is to be evaluated, in order."""
        side = [Fraction(at, self.cover) for at in range(self.cover + 1)]
        lattice: list[tuple[Fraction, ...]] = [()]
        for _ in range(self.dimension):
            lattice = [(*point, at) for point in lattice for at in side]
        return lattice

    def draw(self, values: Sequence[Secret]) -> BernsteinRelease:
        """Release the function from its values at `points()`."""
        if len(values) != (self.cover + 1) ** self.dimension:
            raise UsageError("USE-001", "one value is needed for each lattice point")
        noisy = tuple(self.noise.draw_many(values))
        return BernsteinRelease(noisy, self.dimension, self.cover, self.order)

    def error(self, level: Number) -> Fraction:
        """Give t with P(noise of the polynomial ≤ t everywhere) ≥ level.

        What the polynomial itself misses of the function comes on top and depends on the function.
        """
        chance, points = level_of(level), (self.cover + 1) ** self.dimension
        with working_precision(256):
            each = upper((ball(chance).log() / points).exp())
        # order h is a sum of averages with weights that add up to 2^h - 1 in absolute value
        most = reach(LaplaceLaw(), each) * self.noise.scale + self.noise.grid / 2
        return most * ((1 << self.order) - 1)


@frozen
class BernsteinNoise:
    """noise.bernstein: ε-DP release of a function whose every value moves by at most the bound."""

    dimension: int = 1
    cover: int = 10
    order: int = 1
    name: ClassVar[str] = "bernstein"
    proof: ClassVar[str] = "noise.bernstein"

    def __post_init__(self) -> None:
        for value, what in ((self.dimension, "dimension"), (self.cover, "cover")):
            count_of(value, what)
        if count_of(self.order, "order") > 16:
            raise UsageError("USE-001", "an order above 16 amplifies the noise beyond use")
        if (self.cover + 1) ** self.dimension > _MOST_POINTS:
            raise UsageError("USE-001", "the lattice has more than a million points")

    def admits(self, bound: Bound) -> bool:
        """Say whether this mechanism handles the bound: how far any one value moves."""
        return isinstance(bound, GlobalBound) and bound.norm == "linf" and bound.value > 0

    def calibrate(self, bound: GlobalBound, *, epsilon: Number, grid: Number) -> LatticeNoise:
        """Fix the scale: bound · number of lattice points / ε."""
        if not self.admits(bound):
            raise UsageError("USE-001", "a function needs a positive bound in the linf norm")
        budget, step = epsilon_of(epsilon), positive(grid, "grid")
        scale = bound.value * (self.cover + 1) ** self.dimension / budget
        noise = GlobalNoise("laplace", budget, fitting(scale, step), step, discrete=False)
        return LatticeNoise(self.name, budget, noise, self.dimension, self.cover, self.order)
