"""noise.many_betas: several smooth bounds of one answer, and the data choose the least scale.

In: smooth bounds with different β; at the draw, their private values. Out: a multiple of the grid.
The noise shape is one and the same whatever the data choose; a shape that varied with the data
would tell them apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from fractions import Fraction
from typing import ClassVar

from secant.errors import Refused, UsageError
from secant.noise.mechanisms.smooth import (
    EXACT,
    CauchyNoise,
    Rounding,
    Secret,
    SmoothNoise,
    release,
    too_rough,
)
from secant.numeric.parameters import Number
from secant.records import frozen
from secant.sensitivity.bounds import Bound, SmoothBound


@frozen
class ManyBetasNoise:
    """noise.many_betas: one noise shape, several β; the data choose the least scale, and nothing leaks.

    Only shapes that do not depend on β qualify: the family is Cauchy.
    """

    family: CauchyNoise = field(default_factory=CauchyNoise)
    name: ClassVar[str] = "many-betas"
    proof: ClassVar[str] = "noise.many_betas"

    def admits(self, bound: Bound) -> bool:
        """Say whether this mechanism handles bounds of this kind."""
        return isinstance(bound, SmoothBound)

    def calibrate(
        self,
        bounds: Sequence[SmoothBound] | SmoothBound,
        *,
        epsilon: Number,
        grid: Number,
        delta: Number = 0,
        rounding: Rounding = EXACT,
    ) -> ManyNoise:
        """Fix a rate for each β; those that allow none drop out, for every database alike."""
        offered = tuple(bounds) if isinstance(bounds, Sequence) else (bounds,)
        single: list[SmoothNoise | None] = []
        for bound in offered:
            try:
                single.append(
                    self.family.calibrate(
                        bound, epsilon=epsilon, grid=grid, delta=delta, rounding=rounding
                    )
                )
            except Refused:
                single.append(None)
        usable = [noise for noise in single if noise is not None]
        if not usable:
            raise too_rough()
        return ManyNoise(self.name, tuple(single), usable[0])


@frozen
class ManyNoise:
    """A calibrated mechanism for several smooth bounds of one answer."""

    name: str
    choices: tuple[SmoothNoise | None, ...]
    """One for each bound that was offered, in order; None where its β is too large."""
    shared: SmoothNoise
    """Gives law, grid and ε, which all choices have in common."""
    error_unit: ClassVar[str] = "sensitivity"

    def draw(self, value: Secret, sensitivities: Sequence[Secret]) -> Fraction:
        """Release the answer with the least of the scales, as a multiple of the grid."""
        if len(sensitivities) != len(self.choices):
            raise UsageError("USE-001", "one sensitivity is needed for each smooth bound")
        scales = [
            choice.scale(secret)
            for secret, choice in zip(sensitivities, self.choices, strict=True)
            if choice is not None
        ]
        return release(self.shared.law, value, min(scales), self.shared.grid)

    def error(self, level: Number) -> Fraction:
        """Give t with P(|noise| ≤ t · bound) ≥ level, for the bound with the best rate."""
        return min(choice.error(level) for choice in self.choices if choice is not None)
