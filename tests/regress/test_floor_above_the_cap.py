"""Ours: with a cap below the floor of a smooth bound, a larger bound got less noise.

Just below the cap the floor was taken, at the cap the cap: 256 times less, where neighbors may
differ by a factor exp(beta).
"""

import math
from fractions import Fraction

from secant.noise.mechanisms.smooth import OptimalNoise, private_bound
from secant.sensitivity.bounds import SmoothBound

BETA, CAP = Fraction(1, 10), Fraction(1, 1 << 40)


def test_the_scale_of_a_smooth_bound_is_smooth_at_the_cap():
    noise = OptimalNoise().calibrate(SmoothBound(BETA, None, CAP), epsilon=1, grid=1)
    below, at = (noise.scale(share * CAP) for share in (Fraction(99, 100), Fraction(1)))
    ratio = at / below
    assert math.exp(-0.1) <= int(ratio.p) / int(ratio.q) <= math.exp(0.1)


def test_a_larger_bound_never_gives_a_smaller_one():
    values = [CAP * share / 4 for share in range(9)] + [Fraction(1), math.inf]
    for grid in (Fraction(1), Fraction(1, 1 << 60)):
        found = [private_bound(value, cap=CAP, grid=grid) for value in values]
        assert found == sorted(found)
