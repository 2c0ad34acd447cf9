"""Noise for whole numbers by one of two laws: discrete Laplace (noise.discrete_laplace), or a rounded normal law.

Rests on noise.gaussian.

In: a public scale or deviation, in whole steps; at the draw, private whole numbers. Out: whole numbers, how far they
stray, and thresholds for keys. Which of the two is used is settled before anything is read.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar, TypeVar

from secant.noise.mechanisms.discrete_laplace import (
    add_discrete_laplace,
    discrete_laplace_error,
    noisy_threshold,
)
from secant.noise.mechanisms.gaussian import gaussian_threshold, least_multiplier, suffices
from secant.noise.mechanisms.grid import draw_cell, rational
from secant.noise.mechanisms.laws import GaussianLaw, reach
from secant.noise.secrecy import Private, unseal
from secant.numeric.parameters import positive
from secant.records import frozen

_SHIFT = 1 << 48
Value = TypeVar("Value")
Key = TypeVar("Key")
Whole = Private[list[int]] | Sequence[int]


@frozen
class WholeLaplace:
    """Discrete Laplace noise."""

    scale: Fraction
    """In whole steps."""
    normal: ClassVar[bool] = False

    @property
    def size(self) -> Fraction:
        """What the standard shape of the law is multiplied by."""
        return self.scale

    def add(self, values: Whole) -> list[int]:
        """Add independent noise to each value."""
        return add_discrete_laplace(unseal(values), scale=self.scale)

    def tail(self, v: float) -> float:
        """Give P(noise > v sizes), as of the continuous law."""
        return 1 - 0.5 * math.exp(v) if v < 0 else 0.5 * math.exp(-v)

    def error(self, level: Fraction) -> int:
        """Give the smallest t with P(|noise| ≤ t) ≥ level."""
        return discrete_laplace_error(self.scale, level)

    def finer(self, parts: int) -> WholeLaplace:
        """Give the noise for numbers that are counted in parts of a step."""
        return WholeLaplace(self.scale * parts)

    def threshold(self, *, delta: Fraction, groups: int, contribution: int) -> int:
        """Give the noisy count from which on keys may be shown (noise.threshold)."""
        return noisy_threshold(self.scale, delta=delta, groups=groups, contribution=contribution)


@frozen
class WholeNormal:
    """Normal noise on whole numbers, rounded: the rounding comes after the noise, so it costs nothing."""

    deviation: Fraction
    """In whole steps."""
    normal: ClassVar[bool] = True

    @property
    def size(self) -> Fraction:
        """What the standard shape of the law is multiplied by."""
        return self.deviation

    def add(self, values: Whole) -> list[int]:
        """Add independent noise to each value."""
        width = rational(positive(self.deviation, "the noise in steps"))
        return [draw_cell(GaussianLaw(), rational(value), width) for value in unseal(values)]

    def tail(self, v: float) -> float:
        """Give P(noise > v sizes), as of the continuous law."""
        return math.erfc(v / 2**0.5) / 2

    def error(self, level: Fraction) -> int:
        """Give the smallest t with P(|noise| ≤ t) ≥ level: a whole t is passed from t + 1/2 on."""
        return max(0, math.ceil(reach(GaussianLaw(), level) * self.deviation - Fraction(1, 2)))

    def finer(self, parts: int) -> WholeNormal:
        """Give the noise for numbers that are counted in parts of a step."""
        return WholeNormal(self.deviation * parts)

    def threshold(self, *, delta: Fraction, groups: int, contribution: int) -> int:
        """Give the noisy count from which on keys may be shown (noise.threshold)."""
        return gaussian_threshold(
            self.deviation, delta=delta, groups=groups, contribution=contribution
        )


WholeLaw = WholeLaplace | WholeNormal


def reached(
    keys: Private[list[Key]], noisy: Sequence[int], threshold: int
) -> tuple[list[int], list[Key]]:
    """Give the places and the keys whose noisy number reaches the threshold; those below are never seen."""
    places = [i for i, number in enumerate(noisy) if number >= threshold]
    all_keys = unseal(keys)
    return places, [all_keys[i] for i in places]


def unmoved(values: Private[list[Value]]) -> list[Value]:
    """Give what no protection moves as it is: nobody's data are in it."""
    return unseal(values)


@lru_cache(maxsize=1024)
def multiplier(epsilon: Fraction, delta: Fraction) -> Fraction:
    """Give the least deviation over the l2 bound that is (ε, δ)-private."""
    return least_multiplier(epsilon, delta)


def normal_for(squared: Fraction, rho: Fraction) -> WholeNormal:
    """Give the normal noise that is ρ-zCDP for a squared l2 bound (noise.normals); its deviation is rounded up."""
    return WholeNormal(root_up(squared / (2 * rho)))


def root_up(value: Fraction) -> Fraction:
    """Give a number that is at least the square root, and hardly more."""
    return Fraction(math.isqrt(math.ceil(value * _SHIFT * _SHIFT)) + 1, _SHIFT)


def epsilon_of_rho(rho: Fraction, delta: Fraction, most: Fraction) -> Fraction:
    """Give an ε, rounded up and at most `most`, which is known to hold, of normal noise that is ρ-zCDP at this δ."""
    wide = normal_for(Fraction(1), rho).deviation
    low, high = Fraction(0), most
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (low, middle) if suffices(wide, middle, delta) else (middle, high)
    return high
