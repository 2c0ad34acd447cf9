"""noise.geometric: whole numbers g with P(noise ≥ g) = exp(-g / scale), the root of all Laplace noise.

In: a rational scale and fresh bits. Out: independent geometric draws.
No float decides an outcome unless its error bound decides it; what floats leave open is settled by
exact arithmetic on the same random bits (noise.lazy).
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

from secant.noise.mechanisms.randomness import LazyUniform, bits, word
from secant.numeric.ball import ball, decide
from secant.records import frozen

# Every float below is within one part in 2^48 of the real number it stands for; the guard is 2^-40.
GUARD = 2.0**-40
UNIT = 2.0**-53
_RATIO_BITS = 16  # scales up to 2^16 are drawn in one piece, larger ones in blocks of 2^shift


@frozen
class Shape:
    """A scale, split as ratio · 2^shift so that floats can decide nearly every draw."""

    scale: Fraction
    shift: int
    ratio: Fraction
    low: float
    high: float


@lru_cache(maxsize=256)
def shape_of(scale: Fraction) -> Shape:
    """Split a scale."""
    whole = scale.numerator // scale.denominator
    shift = max(0, whole.bit_length() - _RATIO_BITS)
    ratio = scale / (1 << shift)
    near = float(ratio)
    return Shape(
        scale, shift, ratio, near * (1.0 - GUARD), math.nextafter(near, math.inf) * (1.0 + GUARD)
    )


def below_exponential(uniform: LazyUniform, exponent: Fraction) -> bool:
    """Say whether U < exp(-exponent), for the uniform U that has been drawn in part."""
    if exponent <= 0:
        return True

    def attempt(precision: int) -> bool | None:
        gap = uniform.enclosure(precision) - ball(-exponent).exp()
        return None if gap.contains(0) else bool(gap < 0)

    return bool(decide(attempt, 128))


def draw_geometric(shape: Shape, head: int) -> int:
    """Give floor(scale · E), E exponential, from the 53 bits `head` of E's uniform."""
    blocks = blocks_of(shape, head)
    return (blocks << shape.shift) + _offset(shape) if shape.shift else blocks


def blocks_of(shape: Shape, head: int) -> int:
    """Give floor(ratio · -ln U) for the uniform U whose first 53 bits are `head`."""
    if head:
        high = int(-math.log(head * UNIT) * shape.high)
        if high == 0 or high == int(-math.log((head + 1) * UNIT) * shape.low):
            return high
    return exact_blocks(shape, LazyUniform(head, 53))


def exact_blocks(shape: Shape, uniform: LazyUniform) -> int:
    """Give floor(ratio · -ln U) from as many bits as it takes."""

    def attempt(precision: int) -> int | None:
        value = -uniform.enclosure(precision).log() * ball(shape.ratio)
        whole = value.floor().unique_fmpz() if value.is_finite() else None
        return None if whole is None else int(whole)

    return int(decide(attempt, 128))


def _offset(shape: Shape) -> int:
    """Give b in [0, 2^shift) with probability ∝ exp(-b / scale), by rejection from uniform."""
    while True:
        offset, test = bits(shape.shift), word() >> 11
        keep = 1.0 - (offset / (1 << shape.shift)) / shape.low - GUARD  # < exp(-offset / scale)
        if (test + 1) * UNIT <= keep:
            return offset
        if below_exponential(LazyUniform(test, 53), offset / shape.scale):
            return offset
