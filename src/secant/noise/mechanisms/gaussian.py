"""noise.gaussian: normal noise for a global bound in the l2 norm, on a public grid.

In: the bound, ε, δ, a public grid; at the draw, private answers. Out: multiples of the grid. The
standard deviation is never taken from a formula alone: the exact δ that it yields is checked.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar

from flint import arb

from secant.errors import Refused, UsageError
from secant.noise.mechanisms.grid import rational
from secant.noise.mechanisms.laplace import fitting, nearest
from secant.noise.mechanisms.laws import GaussianLaw, reach
from secant.noise.mechanisms.smooth import Secret, release
from secant.numeric.ball import Ball, ball, decide, lower, working_precision
from secant.numeric.parameters import Number, count_of, delta_of, epsilon_of, level_of, positive
from secant.records import frozen
from secant.sensitivity.bounds import Bound, GlobalBound

_TIGHT = Fraction(1, 1 << 30)


@frozen
class NormalNoise:
    """Calibrated normal noise."""

    name: str
    epsilon: Fraction
    delta: Fraction
    sigma: Fraction
    """Standard deviation in units of the answer; zero only for a global bound of zero."""
    grid: Fraction
    error_unit: ClassVar[str] = "answer"

    @property
    def noiseless(self) -> bool:
        """Say that the answer depends on nothing protected, so that it is only put on the grid."""
        return self.sigma == 0

    def draw(self, value: Secret) -> Fraction:
        """Release one answer."""
        if self.noiseless:
            return nearest(value, self.grid) * self.grid
        return release(GaussianLaw(), value, rational(self.sigma), self.grid)

    def draw_many(self, values: Sequence[Secret]) -> list[Fraction]:
        """Release several answers, whose joint bound in the l2 norm the noise was calibrated to."""
        return [self.draw(value) for value in values]

    def error(self, level: Number) -> Fraction:
        """Give t with P(|released - answer| ≤ t) ≥ level."""
        return reach(GaussianLaw(), level_of(level)) * self.sigma + self.grid / 2


def normal_delta(multiplier: Fraction, epsilon: Fraction) -> Ball:
    """Enclose the least δ for ε when the noise is `multiplier` times the bound (noise.gaussian)."""
    root, ratio = arb(2).sqrt(), ball(multiplier)
    near, far = 1 / (2 * ratio), ball(epsilon) * ratio
    first = ((far - near) / root).erfc() / 2
    return first - ball(epsilon).exp() * ((far + near) / root).erfc() / 2


def suffices(multiplier: Fraction, epsilon: Fraction, delta: Fraction) -> bool:
    """Say whether noise of `multiplier` times the bound is (ε, δ)-DP; in doubt, no."""

    def attempt(precision: int) -> bool | None:
        gap = normal_delta(multiplier, epsilon) - ball(delta)
        if gap <= 0:
            return True
        return False if gap > 0 or precision > 4096 else None

    return bool(decide(attempt, 128))


@lru_cache(maxsize=256)  # of public numbers alone
def least_multiplier(epsilon: Fraction, delta: Fraction) -> Fraction:
    """Give the smallest σ / bound that is (ε, δ)-DP, rounded up by one part in 2^30 at most."""
    delta = delta_of(delta, positive=True)  # no deviation suffices for 0: the search would not end
    high = Fraction(1)
    while not suffices(high, epsilon, delta):
        high *= 2
    low = high / 2
    while suffices(low, epsilon, delta):
        low, high = low / 2, low
    while high - low > high * _TIGHT:
        middle = (low + high) / 2
        low, high = (low, middle) if suffices(middle, epsilon, delta) else (middle, high)
    return high


def gaussian_threshold(
    sigma: Fraction, *, delta: Number, groups: int = 1, contribution: int = 1
) -> int:
    """Give τ: keys whose normally noised and rounded count is at least τ may be shown (noise.threshold).

    One unit reaches at most `groups` keys and adds at most `contribution` to the count of each. The
    probability that any key that exists only because of it is shown is at most `delta`.
    """
    sigma, limit = positive(sigma, "sigma"), delta_of(delta, positive=True)
    groups, contribution = count_of(groups, "groups"), count_of(contribution, "contribution")
    with working_precision(1200):
        each = lower(-((-ball(limit)).log1p() / groups).expm1())  # 1 - (1 - δ)^(1/groups)
    if each >= Fraction(1, 2):
        return contribution + 1
    # a normal variable exceeds t with half the probability that |V| does; a count is shown when it
    # rounds to τ, so from τ - 1/2 on
    far = sigma * reach(GaussianLaw(), 1 - 2 * each) + Fraction(1, 2)
    return contribution + max(1, -(-far.numerator // far.denominator))


@frozen
class GaussianNoise:
    """noise.gaussian: normal noise with the least standard deviation that is (ε, δ)-DP."""

    name: ClassVar[str] = "gaussian"
    proof: ClassVar[str] = "noise.gaussian"

    def admits(self, bound: Bound) -> bool:
        """Say whether this mechanism handles bounds of this kind: the l2 norm is at most l1."""
        return isinstance(bound, GlobalBound) and bound.norm != "linf"

    def calibrate(
        self, bound: GlobalBound, *, epsilon: Number, delta: Number, grid: Number
    ) -> NormalNoise:
        """Fix the standard deviation by the exact curve."""
        if not self.admits(bound):
            raise UsageError("USE-001", "normal noise needs a global bound in the l2 norm")
        budget, slack = epsilon_of(epsilon), _positive_delta(delta)
        step = positive(grid, "grid")
        sigma = bound.value * least_multiplier(budget, slack) if bound.value else Fraction(0)
        return NormalNoise(self.name, budget, slack, fitting(sigma, step), step)


def _positive_delta(delta: Number) -> Fraction:
    slack = delta_of(delta)
    if not slack:
        raise Refused("REF-103", "normal noise needs a positive delta")
    return delta_of(delta, positive=True)
