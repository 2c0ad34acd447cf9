"""Noise for β-smooth bounds: noise.optimal, noise.cauchy, noise.smooth_laplace.

In: ε, a smooth bound's β, a public grid; at the draw, the private answer and the private value of
the bound. Out: a multiple of the grid. Shape, rate and grid are fixed before data are seen; the
private scale is never returned, printed or compared with anything but a public cap and floor.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from decimal import Decimal
from fractions import Fraction
from numbers import Integral
from typing import Any, ClassVar

from flint import fmpq

from secant.errors import InternalError, Refused, UsageError
from secant.noise.mechanisms.admission import Score, largest_rate, round_down, round_up
from secant.noise.mechanisms.grid import Law, draw_cell, rational
from secant.noise.mechanisms.laws import CauchyLaw, LaplaceLaw, OptimalLaw, reach
from secant.noise.secrecy import Private, unseal
from secant.numeric.ball import ball, lower, upper, working_precision
from secant.numeric.parameters import (
    Number,
    delta_of,
    epsilon_of,
    level_of,
    positive,
)
from secant.records import frozen
from secant.sensitivity.bounds import Bound, SmoothBound

_FLOOR = fmpq(1, 1 << 32)  # of the grid step: a smooth bound is never taken as zero
ROUGHEST = Fraction(128)
"""No jump gains more than at this beta: noise is 1e26 times less than the bound by then."""
Secret = Private[Any] | int | float | Decimal | Fraction


@frozen
class Rounding:
    """How far the computed answer and bound may be from the real ones (noise.floats)."""

    answer: Fraction = Fraction(0)
    """Largest error of the computed answer."""
    bound: Fraction = Fraction(0)
    """Largest relative excess of the computed bound, which is never below the real one."""
    resolution: Fraction = Fraction(1)
    """Least distance between two different databases; 1 for rows and units."""

    def __post_init__(self) -> None:
        if min(self.answer, self.bound) < 0 or self.resolution <= 0:
            raise UsageError(
                "USE-001", "rounding errors are not negative, a resolution is positive"
            )

    def smoothness(self, beta: Fraction) -> Fraction:
        """Give the smoothness that the computed bound still has, rounded up."""
        if not self.bound:
            return beta
        with working_precision(128):
            excess = ball(self.bound).log1p() / ball(self.resolution)
        return round_up(beta + upper(excess))

    def widening(self) -> Fraction:
        """Give what is added to the bound so that it covers the answer's own error."""
        return 2 * self.answer / self.resolution


EXACT = Rounding()


@frozen
class SmoothNoise:
    """A calibrated mechanism for one smooth bound: ready to draw, holds nothing private."""

    name: str
    law: Law
    epsilon: Fraction
    delta: Fraction
    beta: Fraction
    rate: Fraction
    """The noise is (bound / rate) · V."""
    grid: Fraction
    cap: Fraction | None
    widening: Fraction
    error_unit: ClassVar[str] = "sensitivity"

    def draw(self, value: Secret, sensitivity: Secret) -> Fraction:
        """Release the answer with noise, as a multiple of the grid."""
        return release(self.law, value, self.scale(sensitivity), self.grid)

    def draw_whole(
        self, pairs: Private[list[tuple[int, Fraction]]], widening: Fraction
    ) -> list[int]:
        """Release whole numbers on a grid of 1, each with the bound beside it, widened."""
        return [int(self.draw(value, bound + widening)) for value, bound in unseal(pairs)]

    def scale(self, sensitivity: Secret) -> fmpq:
        """Give the private scale of the noise; for the draw and for the owner's inspection."""
        bound = private_bound(sensitivity, cap=self.cap, grid=self.grid)
        if self.widening:
            bound += rational(self.widening)
        return bound / rational(self.rate)

    def error(self, level: Number) -> Fraction:
        """Give t with P(|noise| ≤ t · bound) ≥ level, `bound` as used: capped and widened.

        The bound is the owner's to know; a grid step's half comes on top.
        """
        return reach(self.law, level_of(level)) / self.rate


def private_bound(sensitivity: Secret, *, cap: Fraction | None, grid: Fraction) -> fmpq:
    """Give the bound that the noise is scaled to: capped, and never zero (noise.least)."""
    content: Any = unseal(sensitivity)
    bound = rational(cap) if cap is not None and content >= cap else private_number(content)
    # the floor comes last: with a cap below it, a larger bound would get less noise
    return max(bound, rational(grid) * _FLOOR)


def private_ratio(value: Secret) -> tuple[int, int]:
    """Give a private number exactly; what an analysis must have ruled out is a fault of ours."""
    content: Any = unseal(value)
    if isinstance(content, Integral):
        return int(content), 1
    try:
        top, bottom = content.as_integer_ratio()
    except (AttributeError, ValueError, OverflowError):
        # the cause would quote the value
        raise InternalError("BUG-001", "a private value is not a finite number") from None
    return top, bottom


def private_number(value: Secret) -> fmpq:
    """Give a private number in the form that balls are made of."""
    return fmpq(*private_ratio(value))


def release(law: Law, value: Secret, scale: fmpq, grid: Fraction) -> Fraction:
    """Give the grid point nearest to value + scale · V (noise.grid)."""
    step = rational(grid)
    return draw_cell(law, private_number(value) / step, scale / step) * grid


@frozen
class NoiseForSmoothBounds(ABC):
    """What mechanisms for smooth bounds share; each says which law it takes and how fast."""

    name: ClassVar[str]

    def admits(self, bound: Bound) -> bool:
        """Say whether this mechanism handles bounds of this kind."""
        return isinstance(bound, SmoothBound)

    @abstractmethod
    def fit(
        self, epsilon: Fraction, delta: Fraction, beta: Fraction, *, jumps: bool
    ) -> tuple[Law, Fraction]:
        """Give the law and the largest rate that is private at this smoothness; a rate of 0 where none is."""

    def calibrate(
        self,
        bound: SmoothBound,
        *,
        epsilon: Number,
        grid: Number,
        delta: Number = 0,
        rounding: Rounding = EXACT,
    ) -> SmoothNoise:
        """Fix shape and rate."""
        if not self.admits(bound):
            raise UsageError("USE-001", f"{self.name} noise needs a smooth bound")
        budget, slack, step = epsilon_of(epsilon), delta_of(delta), positive(grid, "grid")
        beta = rounding.smoothness(bound.beta)
        law, rate = self.fit(budget, slack, beta, jumps=bound.jumps)
        if rate <= 0:
            raise too_rough()
        used = slack if isinstance(law, LaplaceLaw) else Fraction(0)  # the other laws are pure
        return SmoothNoise(
            self.name, law, budget, used, beta, rate, step, bound.cap, rounding.widening()
        )


@frozen
class OptimalNoise(NoiseForSmoothBounds):
    """noise.optimal: pure ε-DP with the least noise of all additive mechanisms for a smooth bound."""

    name: ClassVar[str] = "optimal"
    proof: ClassVar[str] = "noise.optimal"

    def fit(
        self, epsilon: Fraction, delta: Fraction, beta: Fraction, *, jumps: bool
    ) -> tuple[Law, Fraction]:
        """Take k = ε/β and rate ε, or more where neighbors are one jump apart."""
        if beta > epsilon:
            raise too_rough()
        return OptimalLaw(epsilon / beta), jump_rate(epsilon, beta) if jumps else epsilon


@frozen
class CauchyNoise(NoiseForSmoothBounds):
    """noise.cauchy: generalized Cauchy noise with the exact condition, for any gamma > 1."""

    gamma: Fraction = Fraction(4)
    name: ClassVar[str] = "cauchy"
    proof: ClassVar[str] = "noise.cauchy"

    def __post_init__(self) -> None:
        if not isinstance(self.gamma, Fraction) or not 1 < self.gamma <= 1000:
            raise UsageError("USE-001", "gamma must be an exact number above 1 and at most 1000")

    def shape(self) -> tuple[Law, Score]:
        """Give the law and its score, neither of which depends on β."""
        return CauchyLaw(self.gamma), Score(self.gamma, self.gamma, self.gamma**2)

    def fit(
        self, epsilon: Fraction, delta: Fraction, beta: Fraction, *, jumps: bool
    ) -> tuple[Law, Fraction]:
        """Take the largest rate that (★) allows."""
        law, score = self.shape()
        return law, largest_rate(score, epsilon=epsilon, beta=beta)


@frozen
class SmoothLaplaceNoise(NoiseForSmoothBounds):
    """noise.smooth_laplace: Laplace noise scaled to a smooth bound, (ε, δ)-DP at distance at most 1."""

    name: ClassVar[str] = "smooth-laplace"
    proof: ClassVar[str] = "noise.smooth_laplace"

    def fit(
        self, epsilon: Fraction, delta: Fraction, beta: Fraction, *, jumps: bool
    ) -> tuple[Law, Fraction]:
        """Take the largest rate whose exact tail stays below δ."""
        if not delta:
            raise Refused("REF-103", "Laplace noise on a smooth bound needs a positive delta")
        with working_precision(192):
            smooth = ball(beta)
            tail = ball(epsilon + beta) / smooth.expm1()
            by_delta = smooth * ((ball(delta) / -((-smooth).expm1())).log() + tail)
            by_shift = ball(epsilon - beta) * smooth / (2 * (smooth / 2).expm1())
            by_growth = ball(epsilon) * smooth / smooth.expm1()
            rate = round_down(min(map(lower, (by_delta, by_shift, by_growth))))
        return LaplaceLaw(), rate


def jump_rate(rate: Fraction, beta: Fraction) -> Fraction:
    """Give a rate for bounds of single jumps where `rate` serves bounds of derivatives, rounded down (noise.jump)."""
    # The gain grows with beta, so that of a smaller beta serves; above, it has more digits than anything needs.
    used = min(beta, ROUGHEST)
    with working_precision(128):
        gain = 2 * (ball(used) / 2).expm1() / ball(used)
        return round_down(lower(ball(rate) * gain))


def too_rough() -> Refused:
    """Say that no noise of this shape makes the release private."""
    return Refused(
        "REF-101",
        "the bound is not smooth enough for this epsilon",
        hint="raise epsilon, or compute the bound with a smaller beta",
    )
