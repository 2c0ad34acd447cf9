"""noise.discrete_gaussian: whole-number noise z with probability proportional to exp(-z² / (2 variance)).

In: a global bound in the l2 norm, ε, δ, a grid that every answer lies on. Out: multiples of the
grid. The variance is rational, so every probability that the sampler flips a coin with is exp of a
rational, and exact.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import ClassVar

from flint import arb

from secant.errors import Refused, UsageError
from secant.noise.mechanisms.discrete_laplace import discrete_laplace_noise
from secant.noise.mechanisms.gaussian import least_multiplier
from secant.noise.mechanisms.geometric import flip_exponential
from secant.noise.mechanisms.laplace import on_grid
from secant.noise.mechanisms.laws import GaussianLaw, reach
from secant.noise.mechanisms.smooth import Secret
from secant.numeric.ball import Ball, ball, decide
from secant.numeric.parameters import Number, delta_of, epsilon_of, level_of, positive
from secant.records import frozen
from secant.sensitivity.bounds import Bound, GlobalBound

_EXACT_UP_TO = 256  # standard deviations, in steps, for which tails are summed term by term


def discrete_gaussian_noise(count: int, *, variance: Fraction) -> list[int]:
    """Draw `count` independent values z, each with probability ∝ exp(-z² / (2 variance)), exactly.

    Discrete Laplace proposals, kept with the probability that turns one law into the other.
    """
    variance = positive(variance, "variance")
    scale = math.isqrt(variance.numerator // variance.denominator) + 1
    kept: list[int] = []
    while len(kept) < count:
        for proposal in discrete_laplace_noise(count - len(kept), scale=Fraction(scale)):
            excess = abs(proposal) - variance / scale
            if flip_exponential(excess * excess / (2 * variance)):
                kept.append(proposal)
    return kept


@frozen
class WholeNormalNoise:
    """Calibrated discrete Gaussian noise."""

    name: str
    epsilon: Fraction
    delta: Fraction
    variance: Fraction
    """In squared grid steps; zero only for a global bound below one step."""
    grid: Fraction
    error_unit: ClassVar[str] = "answer"

    @property
    def noiseless(self) -> bool:
        """Say that the answer depends on nothing protected, so that it is released as it is."""
        return self.variance == 0

    def draw(self, value: Secret) -> Fraction:
        """Release one answer."""
        return self.draw_many([value])[0]

    def draw_many(self, values: Sequence[Secret]) -> list[Fraction]:
        """Release several answers, whose joint bound in the l2 norm the noise was calibrated to."""
        steps = [on_grid(value, self.grid) for value in values]
        if not self.noiseless:
            noise = discrete_gaussian_noise(len(steps), variance=self.variance)
            steps = [step + drawn for step, drawn in zip(steps, noise, strict=True)]
        return [step * self.grid for step in steps]

    def error(self, level: Number) -> Fraction:
        """Give t with P(|released - answer| ≤ t) ≥ level; at most one grid step too large."""
        chance = level_of(level)
        # P(noise ≥ m) is at most the normal tail at m - 1, for every m ≥ 1
        return math.ceil(reach(GaussianLaw(), chance) * _root_up(self.variance)) * self.grid


def _root_up(value: Fraction) -> Fraction:
    """Give a number that is at least the square root, by one part in 2^40 at most."""
    shift = 1 << 48
    return Fraction(math.isqrt(math.ceil(value * shift * shift)) + 1, shift)


@frozen
class DiscreteGaussianNoise:
    """noise.discrete_gaussian: (ε, δ)-DP for answers that are multiples of the grid."""

    name: ClassVar[str] = "discrete-gaussian"
    proof: ClassVar[str] = "noise.discrete_gaussian"

    def admits(self, bound: Bound) -> bool:
        """Say whether this mechanism handles bounds of this kind: the l2 norm is at most l1."""
        return isinstance(bound, GlobalBound) and bound.norm != "linf"

    def calibrate(
        self, bound: GlobalBound, *, epsilon: Number, delta: Number, grid: Number
    ) -> WholeNormalNoise:
        """Fix the variance: by Rényi divergence, or term by term where one step is the bound."""
        if not self.admits(bound):
            raise UsageError("USE-001", "discrete normal noise needs a global bound in l2")
        budget, slack, step = epsilon_of(epsilon), delta_of(delta), positive(grid, "grid")
        if not slack:
            raise Refused("REF-103", "normal noise needs a positive delta")
        slack = delta_of(delta, positive=True)
        # squared distances between grid points are whole: the part of a step cannot be reached
        squared = Fraction((bound.value / step) ** 2 // 1)
        if not squared:
            return WholeNormalNoise(self.name, budget, slack, Fraction(0), step)
        variance = squared / (2 * _largest_rho(budget, slack))
        if squared == 1 and variance <= _EXACT_UP_TO**2:
            variance = _tightened(variance, budget, slack)
        positive(variance, "the noise in grid steps")
        return WholeNormalNoise(self.name, budget, slack, variance, step)


def renyi_delta(rho: Fraction, epsilon: Fraction, order: Fraction) -> Ball:
    """Enclose the δ that a Rényi divergence of order · rho at this order yields for ε."""
    slope = ball((order - 1) * (order * rho - epsilon)).exp() / ball(order - 1)
    return slope * (ball(order) * ball(1 - 1 / order).log()).exp()


def _largest_rho(epsilon: Fraction, delta: Fraction) -> Fraction:
    """Give a large ρ such that ρ-zCDP implies (ε, δ)-DP, certified at one order."""

    def best_order(rho: float) -> Fraction:
        target = float(epsilon)

        def exponent(t: float) -> float:
            order = 1 + math.exp(t)
            return (order - 1) * (order * rho - target) - t + order * math.log1p(-1 / order)

        low, high = -20.0, 40.0  # ln(order - 1), searched where the exponent is least
        for _ in range(120):
            third = (high - low) / 3
            if exponent(low + third) < exponent(high - third):
                high -= third
            else:
                low += third
        return 1 + Fraction(math.exp((low + high) / 2))

    def enough(rho: Fraction) -> bool:
        order = best_order(float(rho))

        def attempt(precision: int) -> bool | None:
            gap = renyi_delta(rho, epsilon, order) - ball(delta)
            if gap <= 0:
                return True
            return False if gap > 0 or precision > 512 else None

        return bool(decide(attempt, 128))

    low = epsilon
    while not enough(low):
        low /= 2
    high = 2 * low
    for _ in range(24):
        middle = (low + high) / 2
        low, high = (middle, high) if enough(middle) else (low, middle)
    return low


def discrete_gaussian_tail(variance: Fraction, start: int) -> Ball:
    """Enclose P(noise ≥ start), term by term."""
    spread = -1 / (2 * variance)
    cut = math.isqrt(math.ceil(variance * 2 * 400)) + abs(start) + 2  # terms below exp(-400)
    total = arb(1) + 2 * sum((ball(spread * n * n).exp() for n in range(1, cut)), arb(0))
    tail = sum((ball(spread * n * n).exp() for n in range(start, cut)), arb(0))
    # what was left out is below a geometric series with the ratio of its first two terms
    rest = ball(spread * cut * cut).exp() / (1 - ball(spread * (2 * cut + 1)).exp())
    return tail.union(tail + rest) / total.union(total + 2 * rest)


def discrete_gaussian_delta(variance: Fraction, epsilon: Fraction) -> Ball:
    """Enclose the least δ for ε when answers differ by one step."""
    middle = epsilon * variance
    first = math.floor(middle - Fraction(1, 2)) + 1
    second = math.floor(middle + Fraction(1, 2)) + 1
    far = discrete_gaussian_tail(variance, second)
    return discrete_gaussian_tail(variance, first) - ball(epsilon).exp() * far


def _tightened(variance: Fraction, epsilon: Fraction, delta: Fraction) -> Fraction:
    """Lower a variance that is enough to nearly the least that is, by the exact δ."""

    def enough(candidate: Fraction) -> bool:
        def attempt(precision: int) -> bool | None:
            gap = discrete_gaussian_delta(candidate, epsilon) - ball(delta)
            if gap <= 0:
                return True
            return False if gap > 0 or precision > 256 else None

        return bool(decide(attempt, 128))

    low, high = least_multiplier(epsilon, delta) ** 2 / 2, variance
    for _ in range(10):
        middle = (low + high) / 2
        middle = Fraction(math.ceil(middle * 4096), 4096)
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
