"""Every mechanism, in one list: what contract tests are held to.

Which of them a measure of a query gets is settled in `secant.release.noise.choosing`, from public fields only.
"""

from __future__ import annotations

from secant.mechanisms.bernstein import BernsteinNoise
from secant.mechanisms.discrete_gaussian import DiscreteGaussianNoise
from secant.mechanisms.gaussian import ClassicalGaussianNoise, GaussianNoise
from secant.mechanisms.laplace import DiscreteLaplaceNoise, LaplaceNoise
from secant.mechanisms.many_betas import ManyBetasNoise
from secant.mechanisms.personal import PersonalNoise
from secant.mechanisms.revealed import RevealedNoise
from secant.mechanisms.selection import ExponentialNoise, PermuteAndFlip, ReportNoisyMax
from secant.mechanisms.smooth import CauchyNoise, OptimalNoise, SmoothLaplaceNoise, StudentNoise
from secant.mechanisms.threshold import ThresholdNoise

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
