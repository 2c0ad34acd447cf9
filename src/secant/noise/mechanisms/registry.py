"""Every mechanism, in one list: what contract tests are held to.

Which of them a measure of a query gets is settled in `secant.noise.choosing`, from public fields only.
"""

from __future__ import annotations

from secant.noise.mechanisms.bernstein import BernsteinNoise
from secant.noise.mechanisms.discrete_gaussian import DiscreteGaussianNoise
from secant.noise.mechanisms.gaussian import ClassicalGaussianNoise, GaussianNoise
from secant.noise.mechanisms.laplace import DiscreteLaplaceNoise, LaplaceNoise
from secant.noise.mechanisms.many_betas import ManyBetasNoise
from secant.noise.mechanisms.personal import PersonalNoise
from secant.noise.mechanisms.revealed import RevealedNoise
from secant.noise.mechanisms.selection import ExponentialNoise, PermuteAndFlip, ReportNoisyMax
from secant.noise.mechanisms.smooth import (
    CauchyNoise,
    OptimalNoise,
    SmoothLaplaceNoise,
    StudentNoise,
)
from secant.noise.mechanisms.threshold import ThresholdNoise

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
