"""Every mechanism, in one list: what contract tests are held to.

Which of them a measure of a query gets is settled in `secant.noise.choosing`, from public fields only.
"""

from __future__ import annotations

from secant.noise.mechanisms.bernstein import BernsteinNoise
from secant.noise.mechanisms.gaussian import GaussianNoise
from secant.noise.mechanisms.laplace import DiscreteLaplaceNoise, LaplaceNoise
from secant.noise.mechanisms.many_betas import ManyBetasNoise
from secant.noise.mechanisms.personal import PersonalNoise
from secant.noise.mechanisms.selection import ExponentialNoise, PermuteAndFlip
from secant.noise.mechanisms.smooth import (
    CauchyNoise,
    OptimalNoise,
    SmoothLaplaceNoise,
)

# Every mechanism, in one place (I8). The shape parameters are defaults.
MECHANISMS = (
    LaplaceNoise(),
    DiscreteLaplaceNoise(),
    GaussianNoise(),
    OptimalNoise(),
    CauchyNoise(),
    SmoothLaplaceNoise(),
    ManyBetasNoise(),
    ExponentialNoise(),
    PermuteAndFlip(),
    BernsteinNoise(),
    PersonalNoise(),
)
