"""What a release of a black box gives back: value, error, promise, cost, and a picture.

In: what was released, with public facts about it. Out: records, text, plain values, an SVG. Nothing
here was computed from protected data but the released value itself.
"""

from __future__ import annotations

import math
from dataclasses import field
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from secant.blackbox.estimate import Sensitivity
from secant.blackbox.guarantee import RandomPrivacy
from secant.blackbox.respond import NoisePlan
from secant.display.curves import noise_picture
from secant.display.drawing import Picture
from secant.noise.mechanisms.bernstein import LatticeNoise
from secant.noise.mechanisms.gaussian import NormalNoise
from secant.noise.mechanisms.selection import Choice
from secant.records import frozen


@frozen
class BlackboxRelease:
    """What was released, and everything that may be known about it."""

    value: Any
    """A number, an array, a candidate or its index, or a function."""
    guarantee: RandomPrivacy
    mechanism: str
    sensitivity: Sensitivity = field(repr=False)
    noise: NoisePlan | None = field(repr=False)
    level: Fraction
    error: float | None
    """What is exceeded with probability at most 1 - level: by each number, the score, the curve."""
    charged_to: str | None
    release_id: str | None

    @property
    def cost(self) -> str:
        """Say what was paid, and by whom."""
        g = self.guarantee
        price = f"ε {float(g.epsilon):.6g}, δ {float(g.delta):.6g}, γ {float(g.gamma):.6g}"
        if self.charged_to is None:
            return f"{price}; charged to nobody: no budget was named"
        return f"{price}; charged to {self.charged_to}"

    def __str__(self) -> str:
        shown = "a function" if callable(self.value) else str(self.value)
        error = "not known for a mechanism of your own"
        if self.error is not None:
            error = f"at most {self.error:.6g} with probability {float(self.level):.6g}"
        return "\n".join(
            [
                f"value      {shown}",
                f"error      {error} ({self.mechanism})",
                f"guarantee  {self.guarantee}",
                f"cost       {self.cost}",
                f"rests on   {self.sensitivity}",
            ]
        )

    def to_dict(self) -> dict[str, Any]:
        """Give all but a released function as plain values, for JSON."""
        value = None if callable(self.value) else np.asarray(self.value).tolist()
        return {
            "value": value,
            "guarantee": self.guarantee.to_dict(),
            "mechanism": self.mechanism,
            "sensitivity": self.sensitivity.estimate,
            "error": {"level": float(self.level), "value": self.error},
            "charged_to": self.charged_to,
            "release_id": self.release_id,
        }

    def plot(self) -> Picture:
        """Draw the noise and the error; for a mechanism of the caller's own, the sensitivity."""
        curve = None if self.noise is None else _density(self.noise)
        if curve is None or self.error is None:
            return self.sensitivity.plot()
        title = f"{self.mechanism}: noise, and the error at level {float(self.level):.4g}"
        gamma = float(self.guarantee.gamma)
        note = f"random differential privacy, γ = {gamma:.4g}"
        axis, y_label = ("noise", "density") if curve[0][0] < 0 else ("lost score", "weight")
        return noise_picture(curve, self.error, title=title, note=note, axis=axis, y_label=y_label)


def stated_error(noise: NoisePlan | None, level: Fraction, size: int) -> float | None:
    """Give what is exceeded with probability at most 1 - level; None if nobody can say."""
    if noise is None:
        return None
    error = noise.error(level, size) if isinstance(noise, Choice) else noise.error(level)
    return float(Decimal(error.numerator) / Decimal(error.denominator))


def _density(noise: NoisePlan) -> list[tuple[float, float]] | None:
    """Give points of the density of one number's noise, or of a choice's weight by lost score."""
    places = [index / 50 for index in range(-300, 301)]
    if isinstance(noise, LatticeNoise):
        noise = noise.noise
    if isinstance(noise, Choice):
        unit = 1 / float(noise.sharpness)
        return [(abs(x) * unit, math.exp(-abs(x))) for x in places if x >= 0]
    if isinstance(noise, NormalNoise):
        unit = float(noise.sigma)
        return [(x * unit, math.exp(-x * x / 2) / (unit * math.sqrt(math.tau))) for x in places]
    unit = float(noise.scale)
    return [(x * unit, math.exp(-abs(x)) / (2 * unit)) for x in places]
