"""What a release by a sampled sensitivity promises, in words that cannot be mistaken.

In: ε, δ, the design of the estimate, the name of the distribution. Out: a statement of random
differential privacy, and what is left of it for another distribution (blackbox.shift) or for several
releases together (blackbox.reuse). It never says "differentially private" without the word random.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

from secant.blackbox.design import Design, gamma_of
from secant.errors import UsageError, public_api
from secant.ledger.amounts import as_written
from secant.noise.mechanisms.admission import round_up
from secant.numeric.ball import ball, upper, working_precision
from secant.numeric.parameters import Number, count_of
from secant.records import frozen

DETERMINISTIC = "the function gives the same result for the same records"
INDEPENDENT = "the sampler draws independent records of the named distribution"


@frozen
class RandomPrivacy:
    """(ε, δ, γ)-random differential privacy for one named distribution."""

    epsilon: Fraction
    delta: Fraction
    gamma: Fraction
    distribution: str
    n: int
    """The number of records, which is public; neighbors replace one of them."""
    proof: str
    estimates: tuple[str, ...] = ()
    """Which estimates the promise rests on; γ is paid once for each."""
    confidence: Fraction | None = None
    assumptions: tuple[str, ...] = (DETERMINISTIC, INDEPENDENT)

    def __str__(self) -> str:
        pair = f"({_shown(self.epsilon)}, {_shown(self.delta)})"
        opening = "For"
        if self.confidence is not None:
            opening = f"With confidence {_shown(self.confidence)} over the sampler's own draws: for"
        return (
            f"({_shown(self.epsilon)}, {_shown(self.delta)}, {_shown(self.gamma)})-random "
            f"differential privacy for the distribution {self.distribution!r}. {opening} two "
            f"databases of {self.n} records drawn from it that differ in one record, the release is "
            f"{pair}-indistinguishable with probability at least {_shown(1 - self.gamma)}. This is "
            f"not plain differential privacy: records that are unlikely under this distribution are "
            f"not protected."
        )

    def to_dict(self) -> dict[str, Any]:
        """Give the promise as plain values, for JSON."""
        return {
            "kind": "random differential privacy",
            "epsilon": float(self.epsilon),
            "delta": float(self.delta),
            "gamma": float(self.gamma),
            "distribution": self.distribution,
            "records": self.n,
            "neighbors": "replace one record; the number of records is public",
            "confidence": None if self.confidence is None else float(self.confidence),
            "assumptions": list(self.assumptions),
            "proof": self.proof,
        }

    def under_shift(self, divergence: Number, distribution: str) -> RandomPrivacy:
        """Give the promise for another distribution Q with KL(P‖Q) at most `divergence` (blackbox.shift)."""
        return replace(
            self,
            gamma=shifted_gamma(self.gamma, self.n, divergence),
            distribution=distribution,
            assumptions=(
                *self.assumptions,
                f"KL({self.distribution} ‖ {distribution}) is at most {divergence} for one record",
            ),
        )


def promise(
    epsilon: Fraction,
    delta: Fraction,
    chosen: Design,
    *,
    distribution: str,
    n: int,
    estimate: str,
    assumptions: tuple[str, ...] = (),
) -> RandomPrivacy:
    """State what one release by one estimate promises."""
    return RandomPrivacy(
        epsilon,
        delta,
        chosen.gamma,
        distribution,
        n,
        chosen.proof,
        (estimate,),
        1 - chosen.rho if chosen.method == "binomial" else None,
        (DETERMINISTIC, INDEPENDENT, *assumptions),
    )


@public_api
def shifted_gamma(gamma: Number, n: int, divergence: Number) -> Fraction:
    """Give the γ that holds for a distribution at KL divergence at most τ, rounded up (blackbox.shift).

    >>> round(float(shifted_gamma(0, 100, 0.0001)), 4)
    0.0711
    """
    share = as_written(gamma, what="gamma", code="USE-004")
    if share != 0:
        share = gamma_of(share)
    tau = as_written(divergence, what="divergence")
    if tau < 0:
        raise UsageError("USE-001", "a divergence is not negative")
    if tau == 0:
        return share
    records = count_of(n, "n") + 1
    with working_precision(128):
        pinsker = upper((ball(records * tau) / 2).sqrt())
        # better where the divergence is large; never above 1
        huber = upper((-(ball(-records * tau).expm1())).sqrt())
    shifted = round_up(share + min(pinsker, huber))
    if shifted >= 1:
        raise UsageError("USE-004", "nothing is left of the promise for a distribution so far away")
    return shifted


@public_api
def together(*promises: RandomPrivacy) -> RandomPrivacy:
    """Give the promise of several releases about the same records, chosen in advance (blackbox.reuse).

    ε and δ add up. γ adds up over different estimates; releases by one estimate share its γ.
    """
    if not promises:
        raise UsageError("USE-001", "there is no promise to put together")
    first = promises[0]
    if any(
        (p.distribution, p.n, p.confidence) != (first.distribution, first.n, None) for p in promises
    ):
        raise UsageError(
            "USE-001",
            "promises add up for one distribution, one number of records and without a confidence",
        )
    shares: dict[tuple[str, ...], Fraction] = {}
    for one in promises:
        shares[one.estimates] = max(shares.get(one.estimates, Fraction(0)), one.gamma)
    gamma, delta = sum(shares.values(), Fraction(0)), sum((p.delta for p in promises), Fraction(0))
    if gamma >= 1 or delta >= 1:
        raise UsageError("USE-004", "nothing is left of the promise of so many releases")
    return replace(
        first,
        epsilon=sum((p.epsilon for p in promises), Fraction(0)),
        delta=delta,
        gamma=gamma,
        proof="blackbox.reuse",
        estimates=tuple(dict.fromkeys(name for p in promises for name in p.estimates)),
        assumptions=tuple(
            dict.fromkeys(
                [a for p in promises for a in p.assumptions]
                + ["all functions were chosen before the first answer was seen"]
            )
        ),
    )


def _shown(value: Fraction) -> str:
    return f"{float(value):.6g}"
