"""A parameter drawn from its posterior, cooled as far as ε asks (blackbox.posterior).

In: a public prior over finitely many parameters, a bound on how far one record moves any log-likelihood, ε. Out: a
calibrated choice whose scores are the log-likelihoods. Nothing here sees data.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import ClassVar

from secant.errors import UsageError, public_api
from secant.ledger.amounts import as_written
from secant.noise.mechanisms.selection import Choice, pick_exponential
from secant.numeric.parameters import Number
from secant.records import frozen
from secant.sensitivity.bounds import GlobalBound

LARGEST_WEIGHT = 10**15


@frozen
class PosteriorSampler:
    """blackbox.posterior: candidate θ with probability ∝ prior(θ) · exp(min(1, ε/2Δ) · log-likelihood of θ)."""

    prior: tuple[int, ...] | None = None
    """Whole-number weights of the candidates, in their order; None for all alike."""
    name: ClassVar[str] = "posterior"
    proof: ClassVar[str] = "blackbox.posterior"

    def calibrate(self, bound: GlobalBound, *, epsilon: Fraction) -> Choice:
        """Fix how far likelihoods are cooled: not at all where one record moves them by ε/2 at most."""
        return Choice(
            self.name, epsilon, min(Fraction(1), epsilon / (2 * bound.value)), pick_exponential
        )

    def candidates(self, size: int) -> int:
        """Give how many equal candidates the prior makes of the rarest one, for the stated error; checks the size."""
        if self.prior is None:
            return size
        if len(self.prior) != size:
            raise UsageError("USE-001", "the prior has one share for each candidate")
        return math.ceil(Fraction(sum(self.prior), min(self.prior)))


@public_api
def posterior(prior: Sequence[Number] | None = None) -> PosteriorSampler:
    """Give the mechanism that draws a parameter from its posterior; `prior` are shares of the candidates.

    >>> posterior([0.5, 0.25, 0.25]).prior
    (2, 1, 1)
    """
    if prior is None:
        return PosteriorSampler()
    shares = [as_written(share, what="a share of the prior") for share in prior]
    if not shares or any(share <= 0 for share in shares):
        raise UsageError("USE-001", "the shares of a prior are positive", hint="leave others out")
    common = math.lcm(*(share.denominator for share in shares))
    whole = [int(share * common) for share in shares]
    shared = math.gcd(*whole)
    weights = tuple(weight // shared for weight in whole)
    if max(weights) > LARGEST_WEIGHT:
        raise UsageError(
            "USE-001", "the shares of the prior have too many digits", hint="round them"
        )
    return PosteriorSampler(weights)
