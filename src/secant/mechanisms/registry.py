"""Which mechanisms there are, and which one a bound gets.

In: bounds, ε, δ, a public grid. Out: calibrated noise. The choice reads public fields only: the
kind and value of a global bound, the β of a smooth one, never a number computed from data.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Literal

from secant.errors import UsageError
from secant.mechanisms.bernstein import BernsteinNoise, LatticeNoise
from secant.mechanisms.discrete_gaussian import DiscreteGaussianNoise, WholeNormalNoise
from secant.mechanisms.gaussian import ClassicalGaussianNoise, GaussianNoise, NormalNoise
from secant.mechanisms.laplace import DiscreteLaplaceNoise, GlobalNoise, LaplaceNoise
from secant.mechanisms.many_betas import ManyBetasNoise, ManyNoise
from secant.mechanisms.personal import PersonalNoise, PersonalRelease
from secant.mechanisms.revealed import LevelNoise, RevealedNoise
from secant.mechanisms.selection import Choice, ExponentialNoise, PermuteAndFlip, ReportNoisyMax
from secant.mechanisms.smooth import (
    EXACT,
    CauchyNoise,
    OptimalNoise,
    Rounding,
    SmoothLaplaceNoise,
    SmoothNoise,
    StudentNoise,
)
from secant.mechanisms.threshold import KeyNoise, ThresholdNoise
from secant.numeric.parameters import Number, delta_of, epsilon_of, exact
from secant.terms.bounds import Bound, GlobalBound, SmoothBound

Additive = GlobalNoise | NormalNoise | WholeNormalNoise
Calibrated = (
    Additive
    | SmoothNoise
    | ManyNoise
    | LevelNoise
    | KeyNoise
    | Choice
    | LatticeNoise
    | PersonalRelease
)

# Every mechanism, in one place (I8). The shape parameters are defaults.
MECHANISMS = (
    LaplaceNoise(),
    DiscreteLaplaceNoise(),
    GaussianNoise(),
    ClassicalGaussianNoise(),
    DiscreteGaussianNoise(),
    OptimalNoise(),
    CauchyNoise(),
    StudentNoise(),
    SmoothLaplaceNoise(),
    ManyBetasNoise(),
    RevealedNoise(),
    ThresholdNoise("laplace"),
    ThresholdNoise("gaussian"),
    ExponentialNoise(),
    PermuteAndFlip(),
    ReportNoisyMax(),
    BernsteinNoise(),
    PersonalNoise(),
)

Growth = Literal["unknown", "polynomial", "large"]
# ε/β by what is publicly known of the bound as β falls: nothing, that it grows like a power of 1/β,
# or that it is large against 1/ε and hardly depends on β.
_ORDERS: dict[Growth, int] = {"unknown": 10, "polynomial": 2, "large": 40}


def default_beta(epsilon: Number, growth: Growth = "unknown") -> Fraction:
    """Give the β that a smooth bound should be computed with, from public facts."""
    if growth not in _ORDERS:
        raise UsageError("USE-001", "growth is unknown, polynomial or large")
    return epsilon_of(epsilon) / _ORDERS[growth]


def choose(
    bound: Bound,
    *,
    epsilon: Number,
    grid: Number,
    delta: Number = 0,
    whole: bool = False,
    rounding: Rounding = EXACT,
) -> Additive | SmoothNoise:
    """Give the mechanism with the least error for a bound on numbers, calibrated.

    `whole` promises that every answer is a multiple of the grid. Pure noise is taken unless δ > 0
    and normal noise has the smaller 95 % error.
    """
    if isinstance(bound, SmoothBound):
        return OptimalNoise().calibrate(bound, epsilon=epsilon, grid=grid, rounding=rounding)
    if bound.norm == "linf":
        raise UsageError("USE-001", "a bound per coordinate is for choices, keys and functions")
    if rounding.answer:
        bound = GlobalBound(bound.value + rounding.widening(), bound.norm)
    candidates: list[Additive] = []
    if bound.norm == "l1":
        pure = DiscreteLaplaceNoise() if whole else LaplaceNoise()
        candidates.append(pure.calibrate(bound, epsilon=epsilon, grid=grid))
    if delta_of(delta) > 0:
        normal = DiscreteGaussianNoise() if whole else GaussianNoise()
        candidates.append(normal.calibrate(bound, epsilon=epsilon, delta=delta, grid=grid))
    if not candidates:
        raise UsageError("USE-003", "a bound in the l2 norm needs a positive delta")
    return min(candidates, key=lambda noise: noise.error(Fraction(95, 100)))


def accuracy(noise: Calibrated, *, failure: Number, candidates: int | None = None) -> Fraction:
    """Give α such that the released value is off by more than α with probability at most `failure`.

    In units of the answer, the score or the (private) bound, as `noise.error_unit` says. A choice
    is the worse the more `candidates` there are, so it needs their number.
    """
    level = 1 - exact(failure, "failure", "USE-004")
    if not isinstance(noise, Choice):
        return noise.error(level)
    if candidates is None:
        raise UsageError("USE-001", "the accuracy of a choice needs the number of candidates")
    return noise.error(level, candidates)
