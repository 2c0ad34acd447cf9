"""noise.threshold: which group keys may be shown, when the keys themselves are private.

In: exact counts of units per key that exists, ε, δ and the public limits of one unit. Out: the keys
whose noisy count reaches the threshold, with that noisy count. A key that one unit alone brings in
is shown with probability at most δ; keys that do not exist are never shown.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from fractions import Fraction
from typing import ClassVar, Literal, TypeVar

from secant.errors import UsageError
from secant.noise.mechanisms.discrete_laplace import noisy_threshold
from secant.noise.mechanisms.gaussian import NormalNoise, least_multiplier
from secant.noise.mechanisms.laplace import GlobalNoise
from secant.noise.mechanisms.laws import GaussianLaw, reach
from secant.noise.mechanisms.smooth import Secret
from secant.noise.secrecy import Private, unseal
from secant.numeric.ball import ball, lower, working_precision
from secant.numeric.parameters import Number, count_of, delta_of, epsilon_of, positive
from secant.records import frozen
from secant.sensitivity.bounds import Bound, GlobalBound

Key = TypeVar("Key", bound=Hashable)
Shown = TypeVar("Shown")
Kind = Literal["laplace", "gaussian"]


def gaussian_threshold(
    sigma: Fraction, *, delta: Number, groups: int = 1, contribution: int = 1
) -> int:
    """Give τ: keys whose normally noised and rounded count is at least τ may be shown.

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


def reached(
    keys: Private[list[Shown]], noisy: Sequence[int], threshold: int
) -> tuple[list[int], list[Shown]]:
    """Give the places and the keys whose noisy number reaches the threshold; those below are never seen."""
    places = [i for i, number in enumerate(noisy) if number >= threshold]
    all_keys = unseal(keys)
    return places, [all_keys[i] for i in places]


@frozen
class KeyNoise:
    """Calibrated choice of keys."""

    name: str
    epsilon: Fraction
    delta: Fraction
    noise: GlobalNoise | NormalNoise
    threshold: int
    error_unit: ClassVar[str] = "answer"

    def draw(self, counts: Mapping[Key, Secret]) -> dict[Key, int]:
        """Give the noisy counts of the keys that may be shown; the order of keys is the caller's.

        Every key of `counts` exists in the data. A caller that shows the result in an order that
        depends on the data leaks that order: sort by key first.
        """
        noisy = self.noise.draw_many(list(counts.values()))
        pairs = zip(counts, noisy, strict=True)
        return {key: value.numerator for key, value in pairs if value >= self.threshold}

    def error(self, level: Number) -> Fraction:
        """Give t with P(|noisy count - count| ≤ t) ≥ level for one key."""
        return self.noise.error(level)


@frozen
class ThresholdNoise:
    """noise.threshold: (ε, δ)-DP release of keys and counts, with discrete Laplace or normal noise."""

    kind: Kind = "laplace"
    name: ClassVar[str] = "threshold"
    proof: ClassVar[str] = "noise.threshold"

    def __post_init__(self) -> None:
        if self.kind not in ("laplace", "gaussian"):
            raise UsageError("USE-001", "the noise of a threshold is laplace or gaussian")

    def admits(self, bound: Bound) -> bool:
        """Say whether this mechanism handles the bound: what one unit adds to one count."""
        return (
            isinstance(bound, GlobalBound)
            and bound.norm == "linf"
            and bound.value.denominator == 1
            and bound.value >= 1
        )

    def calibrate(
        self, bound: GlobalBound, *, epsilon: Number, delta: Number, groups: int = 1
    ) -> KeyNoise:
        """Fix noise and threshold for a unit that reaches at most `groups` keys."""
        if not self.admits(bound):
            raise UsageError("USE-001", "a threshold needs a whole bound per key (norm linf)")
        budget, slack = epsilon_of(epsilon), delta_of(delta, positive=True)
        groups, contribution = count_of(groups, "groups"), bound.value.numerator
        one = Fraction(1)
        noise: GlobalNoise | NormalNoise
        if self.kind == "laplace":
            scale = groups * contribution / budget
            noise = GlobalNoise("discrete-laplace", budget, scale, one, discrete=True)
            tau = noisy_threshold(scale, delta=slack, groups=groups, contribution=contribution)
        else:
            # half of δ for the counts of keys that exist anyway, half for keys that are new
            multiplier = least_multiplier(budget, slack / 2)
            with working_precision(128):
                sigma = multiplier * contribution * -lower(-ball(groups).sqrt())
            noise = NormalNoise("gaussian", budget, slack / 2, sigma, one)
            tau = gaussian_threshold(
                sigma, delta=slack / 2, groups=groups, contribution=contribution
            )
        return KeyNoise(self.name, budget, slack, noise, tau)
