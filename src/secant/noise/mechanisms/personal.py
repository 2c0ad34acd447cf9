"""noise.personal: every individual has an ε of their own.

In: for every individual that could be in the data, a bound on their influence and their ε (a public
list); at the draw, private answers or scores. Out: a release that is ε_j-DP for each j. The list
must not depend on who is present: a scale taken over those present would tell.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import ClassVar, Literal

from secant.errors import UsageError
from secant.noise.mechanisms.laplace import GlobalNoise, fitting
from secant.noise.mechanisms.selection import Choice, pick_exponential
from secant.noise.mechanisms.smooth import Secret
from secant.numeric.parameters import Number, epsilon_of, exact, positive
from secant.records import frozen
from secant.sensitivity.bounds import Bound, GlobalBound

Neighbors = Literal["add-remove", "replace"]


@frozen
class PersonalLimit:
    """What one individual may change, and how strongly they are protected."""

    influence: Fraction
    """How far the answer moves when this individual appears or disappears."""
    epsilon: Fraction

    def __post_init__(self) -> None:
        if exact(self.influence, "influence") < 0:
            raise UsageError("USE-001", "an influence is at least 0")
        epsilon_of(self.epsilon)


def personal_scale(limits: Sequence[PersonalLimit], neighbors: Neighbors) -> Fraction:
    """Give the least scale that protects everybody on the public list."""
    if not limits:
        raise UsageError("USE-001", "the list of individuals is empty")
    if neighbors not in ("add-remove", "replace"):
        raise UsageError("USE-001", "neighbors are add-remove or replace")
    # replacing an entry removes one and adds one, so that the answer may move twice
    moves = 1 if neighbors == "add-remove" else 2
    return max(moves * limit.influence / limit.epsilon for limit in limits)


@frozen
class PersonalRelease:
    """Calibrated noise that protects each individual as promised to them."""

    name: str
    limits: tuple[PersonalLimit, ...]
    noise: GlobalNoise
    error_unit: ClassVar[str] = "answer"

    @property
    def epsilon(self) -> Fraction:
        """Give the weakest promise on the list: what the release costs at most."""
        return max(limit.epsilon for limit in self.limits)

    @property
    def delta(self) -> Fraction:
        """Give δ, which is zero."""
        return Fraction(0)

    def draw(self, value: Secret) -> Fraction:
        """Release one answer."""
        return self.noise.draw(value)

    def error(self, level: Number) -> Fraction:
        """Give t with P(|released - answer| ≤ t) ≥ level."""
        return self.noise.error(level)


@frozen
class PersonalNoise:
    """noise.personal: Laplace noise or an exponential choice with personal ε."""

    neighbors: Neighbors = "add-remove"
    name: ClassVar[str] = "personal"
    proof: ClassVar[str] = "noise.personal"

    def admits(self, bound: Bound) -> bool:
        """Say whether this mechanism handles bounds of this kind, one for each individual."""
        return isinstance(bound, GlobalBound)

    def calibrate(self, limits: Sequence[PersonalLimit], *, grid: Number) -> PersonalRelease:
        """Fix the scale of Laplace noise."""
        step, scale = positive(grid, "grid"), personal_scale(limits, self.neighbors)
        most = max(limit.epsilon for limit in limits)
        noise = GlobalNoise("laplace", most, fitting(scale, step), step, discrete=False)
        return PersonalRelease(self.name, tuple(limits), noise)

    def calibrate_choice(self, limits: Sequence[PersonalLimit]) -> Choice:
        """Fix the sharpness of an exponential choice; influences are on any one score."""
        scale = personal_scale(limits, self.neighbors)
        if not scale:
            raise UsageError("USE-001", "nobody on the list has any influence")
        most = max(limit.epsilon for limit in limits)
        return Choice("personal-exponential", most, 1 / (2 * scale), pick_exponential)
