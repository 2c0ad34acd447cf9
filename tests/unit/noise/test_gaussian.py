"""Normal noise: the exact curve, the classical formula where it holds, whole numbers."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import pytest

from secant.errors import Refused, UsageError
from secant.noise.mechanisms.gaussian import (
    GaussianNoise,
    least_multiplier,
    suffices,
)
from secant.sensitivity.bounds import GlobalBound, SmoothBound

ONE = GlobalBound(Fraction(1), "l2")


def exact_delta(multiplier: float, epsilon: float) -> mpmath.mpf:
    """The hockey stick of two shifted normals, by integration of the positive part."""
    with mpmath.workdps(40):
        s, e = mpmath.mpf(multiplier), mpmath.mpf(epsilon)
        start = mpmath.mpf(1) / 2 - e * s * s  # where the log ratio equals ε; positive part below

        def part(x: mpmath.mpf) -> mpmath.mpf:
            return mpmath.npdf(x, 0, s) - mpmath.exp(e) * mpmath.npdf(x, 1, s)

        return mpmath.quad(part, [start - 40 * s, start - 5 * s, start - s, start])


@pytest.mark.parametrize("epsilon", [0.01, 0.3, 1, 5, 20])
@pytest.mark.parametrize("delta", [1e-2, 1e-5, 1e-9])
def test_the_multiplier_is_enough_and_least(epsilon: float, delta: float) -> None:
    multiplier = least_multiplier(Fraction(epsilon), Fraction(delta))
    assert exact_delta(float(multiplier), epsilon) <= delta * (1 + 1e-7)
    assert exact_delta(float(multiplier) * (1 - 1e-6), epsilon) > delta


@pytest.mark.parametrize(
    ("epsilon", "delta"), [(1e-12, 1e-150), (1e6, 1e-9), (0.5, 0.9), (1e-12, 0.999)]
)
def test_extreme_parameters_end(epsilon: float, delta: float) -> None:
    multiplier = least_multiplier(Fraction(epsilon), Fraction(delta))
    assert suffices(multiplier, Fraction(epsilon), Fraction(delta))
    assert not suffices(multiplier * Fraction(999, 1000), Fraction(epsilon), Fraction(delta))


def test_the_classical_formula_would_break_privacy_at_epsilon_9() -> None:
    multiplier = Fraction(math.sqrt(2 * math.log(1.25e5)) / 9)
    assert not suffices(multiplier, Fraction(9), Fraction(1, 10**5))


def test_what_is_not_admitted() -> None:
    mechanism = GaussianNoise()
    assert mechanism.admits(GlobalBound(Fraction(1), "l1"))
    for bound in (GlobalBound(Fraction(1), "linf"), SmoothBound(Fraction(1), 0)):
        assert not mechanism.admits(bound)
        with pytest.raises(UsageError):
            mechanism.calibrate(bound, epsilon=0.5, delta=1e-5, grid=1)  # type: ignore[arg-type]
    with pytest.raises(Refused) as caught:
        mechanism.calibrate(ONE, epsilon=0.5, delta=0, grid=1)
    assert caught.value.code == "REF-103"


def test_a_global_zero_is_noiseless() -> None:
    noise = GaussianNoise().calibrate(GlobalBound(Fraction(0), "l2"), epsilon=1, delta=1e-6, grid=1)
    assert noise.noiseless
    assert noise.draw_many([4, 5]) == [4, 5]


def test_normal_noise_without_a_delta_is_refused_at_once():
    with pytest.raises(UsageError, match="positive delta"):
        least_multiplier(Fraction(1), Fraction(0))
