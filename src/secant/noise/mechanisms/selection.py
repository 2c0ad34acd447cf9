"""Choosing one candidate by a private score: noise.exponential, noise.permute_and_flip.

In: candidates known in advance (a finite list, or the points of a public grid), their private
scores, a public bound on how far one score moves. Out: the index of one candidate. Scores are exact
rationals; the winner is decided by exact arithmetic on fresh bits, and no score is returned.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import ClassVar

from flint import arb

from secant.errors import InternalError, UsageError
from secant.noise.mechanisms.randomness import LazyUniform, below
from secant.noise.mechanisms.smooth import Secret, private_ratio
from secant.numeric.ball import Ball, ball, decide, upper, working_precision
from secant.numeric.parameters import Number, count_of, epsilon_of, level_of
from secant.records import frozen
from secant.sensitivity.bounds import Bound, GlobalBound


@frozen
class Stretch:
    """Neighboring points of a public grid that share one score: indices first .. first+count-1."""

    first: int
    count: int
    score: Secret


@frozen
class Choice:
    """A calibrated choice: the weight of a score, and how ties of a kind are broken."""

    name: str
    epsilon: Fraction
    sharpness: Fraction
    """What scores are multiplied by: ε / (2 · bound), or ε / bound where all move one way."""
    pick: Callable[[Sequence[int], Sequence[Fraction]], int]
    delta: Fraction = Fraction(0)
    error_unit: ClassVar[str] = "score"

    def draw(self, scores: Sequence[Secret], counts: Sequence[int] | None = None) -> int:
        """Give the index of one of finitely many candidates, each as often as `counts` says; once by default."""
        if not scores:
            raise UsageError("USE-001", "there is nothing to choose from")
        if counts is not None and (len(counts) != len(scores) or min(counts) < 1):
            raise UsageError("USE-001", "there is one positive weight for each candidate")
        return self.pick([1] * len(scores) if counts is None else counts, self._exponents(scores))

    def draw_point(self, stretches: Sequence[Stretch]) -> int:
        """Give one point of a public grid, the points given as stretches of equal score.

        The stretches must cover the same public range of indices whatever the data; this is what
        the candidates are.
        """
        if not stretches:
            raise UsageError("USE-001", "there is nothing to choose from")
        if any(stretch.count < 1 for stretch in stretches):
            raise InternalError("BUG-001", "a stretch of candidates is empty")
        counts = [stretch.count for stretch in stretches]
        exponents = self._exponents([stretch.score for stretch in stretches])
        drawn = stretches[self.pick(counts, exponents)]
        return drawn.first + below(drawn.count)

    def _exponents(self, scores: Sequence[Secret]) -> list[Fraction]:
        """Give how far each score lies below the best, times the sharpness."""
        exact = [Fraction(*private_ratio(score)) for score in scores]
        best = max(exact)
        return [(best - score) * self.sharpness for score in exact]

    def error(self, level: Number, candidates: int) -> Fraction:
        """Give t with P(best score - chosen score ≤ t) ≥ level, for any scores (noise.exponential)."""
        miss = (1 - level_of(level)) / count_of(candidates, "the number of candidates")
        with working_precision(128):
            return upper(-ball(miss).log() / ball(self.sharpness))


def pick_exponential(counts: Sequence[int], exponents: Sequence[Fraction]) -> int:
    """Give index i with probability ∝ counts[i] · exp(-exponents[i]), by exact inversion."""
    uniform = LazyUniform()

    def attempt(precision: int) -> int | None:
        weights = [
            ball(-exponent).exp() * count for count, exponent in zip(counts, exponents, strict=True)
        ]
        target = uniform.enclosure(precision) * sum(weights, arb(0))
        reached = arb(0)
        for index, weight in enumerate(weights):
            reached += weight
            if target < reached:
                return index
            if not target > reached:
                return None
        return None

    return int(decide(attempt, 64))


def pick_flip(counts: Sequence[int], exponents: Sequence[Fraction]) -> int:
    """Give the index that permute-and-flip stops at, each index standing for counts[i] candidates.

    Drawn as the largest of -exponent + E, E exponential; the largest of n such E is -ln(1-U^(1/n)).
    """
    uniforms = [LazyUniform() for _ in counts]

    def height(index: int, precision: int) -> Ball:
        root = uniforms[index].enclosure(precision).log() / counts[index]
        return -(-root.expm1()).log() - ball(exponents[index])

    return _highest(len(counts), height)


def _highest(count: int, height: Callable[[int, int], Ball]) -> int:
    """Give the index whose real height is largest, refining until one is certainly above all."""

    def attempt(precision: int) -> int | None:
        heights = [height(index, precision) for index in range(count)]
        if not all(value.is_finite() for value in heights):
            return None
        top = max(range(count), key=lambda index: heights[index].mid())
        others = (value for index, value in enumerate(heights) if index != top)
        return top if all(heights[top] > value for value in others) else None

    return int(decide(attempt, 64))


@frozen
class ChoiceByScores:
    """What both choices share; each says how it picks."""

    name: ClassVar[str]

    def admits(self, bound: Bound) -> bool:
        """Say whether this mechanism handles the bound: how far any one score moves."""
        return isinstance(bound, GlobalBound) and bound.norm == "linf" and bound.value > 0

    def calibrate(self, bound: Bound, *, epsilon: Number, monotone: bool = False) -> Choice:
        """Fix the sharpness; `monotone` where all scores move in one direction together."""
        if not self.admits(bound) or not isinstance(bound, GlobalBound):
            raise UsageError("USE-001", "a choice needs a positive bound on each score (norm linf)")
        budget = epsilon_of(epsilon)
        sharpness = budget / (bound.value * (1 if monotone else 2))
        return Choice(self.name, budget, sharpness, _PICKS[self.name])


@frozen
class ExponentialNoise(ChoiceByScores):
    """noise.exponential: candidate r with probability ∝ exp(ε · score(r) / (2 · bound))."""

    name: ClassVar[str] = "exponential"
    proof: ClassVar[str] = "noise.exponential"


@frozen
class PermuteAndFlip(ChoiceByScores):
    """noise.permute_and_flip: never a worse expected score than the exponential mechanism, same ε."""

    name: ClassVar[str] = "permute-and-flip"
    proof: ClassVar[str] = "noise.permute_and_flip"


_PICKS = {ExponentialNoise.name: pick_exponential, PermuteAndFlip.name: pick_flip}
