"""noise.reveal: an answer with a smooth bound, released together with its exact noise level.

In: ε, δ, a smooth bound; at the draw, the private answer and the private value of the bound. Out: a
noise level that the analyst may see, and the answer with Laplace noise of just that level. Part of
ε pays for the level. The level is a point of a public geometric grid; the bound stays private.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import ClassVar, Literal

from secant.errors import Refused, UsageError
from secant.noise.mechanisms.admission import round_up
from secant.noise.mechanisms.discrete_laplace import (
    discrete_laplace_error,
    discrete_laplace_noise,
    noisy_threshold,
)
from secant.noise.mechanisms.grid import rational
from secant.noise.mechanisms.laws import LaplaceLaw, reach
from secant.noise.mechanisms.smooth import EXACT, Rounding, Secret, private_bound, release
from secant.numeric.ball import Ball, ball, decide, upper, working_precision
from secant.numeric.parameters import Number, delta_of, epsilon_of, level_of, positive
from secant.records import frozen
from secant.sensitivity.bounds import Bound, SmoothBound

_STEPS = 16  # levels of the public grid within one factor exp(β)
Setting = Literal["local", "derivative"]


@frozen
class LevelRelease:
    """A released answer and the scale of the Laplace noise on it; both public."""

    value: Fraction
    scale: Fraction
    grid: Fraction

    def error(self, level: Number) -> Fraction:
        """Give t with P(|released - answer| ≤ t) ≥ level, for this very release."""
        return reach(LaplaceLaw(), level_of(level)) * self.scale + self.grid / 2


@frozen
class LevelNoise:
    """A calibrated release of level and answer."""

    name: str
    epsilon: Fraction
    delta: Fraction
    beta: Fraction
    level_epsilon: Fraction
    """The part of ε that pays for the level."""
    shift: int
    """Grid levels that are added, so that the level is too low with probability at most δ."""
    growth: Fraction
    """How far the answer moves within distance 1, in units of the bound at either end."""
    grid: Fraction
    cap: Fraction | None
    widening: Fraction
    error_unit: ClassVar[str] = "sensitivity"

    def draw(self, value: Secret, sensitivity: Secret) -> LevelRelease:
        """Release level and answer."""
        bound = private_bound(sensitivity, cap=self.cap, grid=self.grid) + rational(self.widening)
        needed = Fraction(int(bound.p), int(bound.q)) * self.growth
        needed /= self.epsilon - self.level_epsilon
        noise = discrete_laplace_noise(1, scale=Fraction(_STEPS) / self.level_epsilon)[0]
        scale = level_value(level_index(needed, self.beta) + self.shift + noise, self.beta)
        released = release(LaplaceLaw(), value, rational(scale), self.grid)
        return LevelRelease(released, scale, self.grid)

    def error(self, level: Number) -> Fraction:
        """Give t with P(|noise| ≤ t · bound) ≥ level, half of the risk for the level being high."""
        half = 1 - (1 - level_of(level)) / 2
        high = discrete_laplace_error(Fraction(_STEPS) / self.level_epsilon, half)
        factor = level_value(1 + self.shift + high, self.beta)
        rest = self.epsilon - self.level_epsilon
        return reach(LaplaceLaw(), half) * factor * self.growth / rest


def level_index(needed: Fraction, beta: Fraction) -> int:
    """Give the least j with exp(j · β/16) ≥ needed; between neighbors it moves by 16 at most."""
    if needed == 1:
        return 0

    def attempt(_: int) -> int | None:
        # the logarithm of a rational other than 1 is irrational: the ceiling is decided in the end
        found = (ball(needed).log() * _STEPS / ball(beta)).ceil().unique_fmpz()
        return None if found is None else int(found)

    return int(decide(attempt, 128))


def level_value(index: int, beta: Fraction) -> Fraction:
    """Give exp(index · β/16), rounded up: a function of public numbers."""
    with working_precision(160):
        level: Ball = ball(index * beta / _STEPS).exp()
        return round_up(upper(level))


@frozen
class RevealedNoise:
    """noise.reveal: (ε, δ)-DP at distance at most 1, and the analyst learns the error bar.

    `setting` says what the smooth bound bounds: the local sensitivity, or the derivative, where the
    answer moves by up to (exp(β) - 1)/β times the bound.
    """

    setting: Setting = "derivative"
    name: ClassVar[str] = "revealed"
    proof: ClassVar[str] = "noise.reveal"

    def __post_init__(self) -> None:
        if self.setting not in ("local", "derivative"):
            raise UsageError("USE-001", "a smooth bound is local or derivative")

    def admits(self, bound: Bound) -> bool:
        """Say whether this mechanism handles bounds of this kind."""
        return isinstance(bound, SmoothBound)

    def calibrate(
        self,
        bound: SmoothBound,
        *,
        epsilon: Number,
        delta: Number,
        grid: Number,
        rounding: Rounding = EXACT,
    ) -> LevelNoise:
        """Fix how ε is split and how far the level is raised."""
        if not self.admits(bound):
            raise UsageError("USE-001", "revealed noise needs a smooth bound")
        budget, step = epsilon_of(epsilon), positive(grid, "grid")
        if not delta_of(delta):
            raise Refused("REF-103", "revealing a noise level needs a positive delta")
        slack = delta_of(delta, positive=True)
        beta = rounding.smoothness(bound.beta)
        part = _level_share(float(budget), float(beta), float(slack))
        # the least t with P(noise ≥ t) ≤ δ is one level more than may be missing
        shift = noisy_threshold(_STEPS / part, delta=slack) - 2
        growth = Fraction(1)
        if self.setting == "derivative":
            with working_precision(128):
                growth = round_up(upper(ball(beta).expm1() / ball(beta)))
        return LevelNoise(
            self.name,
            budget,
            slack,
            beta,
            part,
            shift,
            growth,
            step,
            bound.cap,
            rounding.widening(),
        )


def _level_share(epsilon: float, beta: float, delta: float) -> Fraction:
    """Give the part of ε that makes the median level least; any part would be private."""
    rate = max(math.log(0.5 / delta), 0.01) * beta
    part = -rate / 2 + math.sqrt(rate * rate / 4 + epsilon * rate)
    return Fraction(min(max(part, epsilon / 1000), epsilon * 0.999))
