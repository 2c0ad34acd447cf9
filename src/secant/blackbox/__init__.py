"""Black boxes: any program released by a sampled sensitivity (random differential privacy).

In: a function, protected records, a public distribution. Out: a noisy result, a promise of
(ε, δ, γ)-random differential privacy for that distribution, and estimates that can be used again.
Nothing here is ever called plain differential privacy. Proofs are in PROOFS.md beside this file.
"""

from secant.numeric.arrays import installed, lacking

if not installed():  # said here in words of ours: what follows would fail on its first import
    raise lacking()

from secant.blackbox.design import Design, design
from secant.blackbox.distributions import Distribution, exponential, normal, resample, uniform
from secant.blackbox.estimate import Sensitivity
from secant.blackbox.guarantee import RandomPrivacy, shifted_gamma, together
from secant.blackbox.posterior import PosteriorSampler, posterior
from secant.blackbox.release import ACCEPTED, release
from secant.blackbox.result import BlackboxRelease
from secant.blackbox.sampling import sample_sensitivity

__all__ = [
    "ACCEPTED",
    "BlackboxRelease",
    "Design",
    "Distribution",
    "PosteriorSampler",
    "RandomPrivacy",
    "Sensitivity",
    "design",
    "exponential",
    "normal",
    "posterior",
    "release",
    "resample",
    "sample_sensitivity",
    "shifted_gamma",
    "together",
    "uniform",
]
