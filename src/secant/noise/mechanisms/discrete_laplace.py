"""noise.discrete_laplace: integer noise z with probability proportional to exp(-|z| / scale).

In: integers and a rational scale. Out: the integers with noise added, and facts about the noise
that hold for certain. The scale is public: a global bound over ε. No bound that depends on data is
used here.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from secant.errors import UsageError
from secant.noise.mechanisms.geometric import Shape, draw_geometric, shape_of
from secant.noise.mechanisms.randomness import word
from secant.numeric.ball import Ball, ball, ceiling, decide, lower, upper
from secant.numeric.parameters import Number, count_of, delta_of, level_of, positive

_NEGLIGIBLE = Fraction(1, 1 << 60000)


def add_discrete_laplace(values: Sequence[int], *, scale: Fraction) -> list[int]:
    """Add independent noise to each value, P(noise = z) ∝ exp(-|z| / scale), exactly."""
    for value in values:
        if isinstance(value, bool) or not isinstance(value, int):
            raise UsageError("USE-001", "discrete noise is added to whole numbers only")
    noise = discrete_laplace_noise(len(values), scale=scale)
    return [value + drawn for value, drawn in zip(values, noise, strict=True)]


def discrete_laplace_noise(count: int, *, scale: Fraction) -> list[int]:
    """Draw `count` independent values z, each with probability ∝ exp(-|z| / scale), exactly."""
    shape = shape_of(positive(scale, "scale"))
    return [_draw(shape) for _ in range(count)]


def _draw(shape: Shape) -> int:
    """Draw once: a geometric magnitude and a sign, where minus zero is drawn again."""
    while True:
        head = word()
        magnitude = draw_geometric(shape, head >> 11)
        if not head & 1:  # the low bits of the word are independent of the 53 used above
            return magnitude
        if magnitude:
            return -magnitude


def discrete_laplace_tail(scale: Fraction, t: int) -> Fraction:
    """Give P(noise ≥ t), rounded up by less than one part in 2^60, or to 2^-60000 at least."""
    scale = positive(scale, "scale")

    def attempt(_: int) -> Fraction | None:
        ratio = ball(-1 / scale).exp()
        far = ball(-Fraction(t if t > 0 else 1 - t) / scale).exp() / (1 + ratio)
        value = far if t > 0 else 1 - far
        top, bottom = upper(value), lower(value)
        narrow = (top - bottom) * (1 << 60) < bottom
        return top if narrow or top < _NEGLIGIBLE else None

    return min(Fraction(1), Fraction(decide(attempt, 128)))


def discrete_laplace_error(scale: Fraction, level: Number) -> int:
    """Give the smallest t with P(|noise| ≤ t) ≥ level, never a smaller one."""
    scale, miss = positive(scale, "scale"), 1 - level_of(level)

    def reach() -> Ball:
        # P(|noise| > t) = 2 r^(t+1) / (1 + r) with r = exp(-1/scale)
        return (2 / ((1 + ball(-1 / scale).exp()) * ball(miss))).log() * ball(scale) - 1

    return max(0, ceiling(reach))


def noisy_threshold(
    scale: Fraction, *, delta: Number, groups: int = 1, contribution: int = 1
) -> int:
    """Give τ: keys whose noisy count is at least τ may be shown (noise.threshold).

    One unit reaches at most `groups` keys and adds at most `contribution` to the count of each. The
    probability that any key that exists only because of it is shown is at most `delta`.
    """
    scale, limit = positive(scale, "scale"), delta_of(delta, positive=True)
    groups, contribution = count_of(groups, "groups"), count_of(contribution, "contribution")

    def reach() -> Ball:
        each = -((-ball(limit)).log1p() / groups).expm1()  # 1 - (1 - δ)^(1/groups)
        return -(each * (1 + ball(-1 / scale).exp())).log() * ball(scale)

    return contribution + max(1, ceiling(reach))
