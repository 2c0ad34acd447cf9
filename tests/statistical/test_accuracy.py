"""(α, β)-accuracy by simulation: the stated error holds, and is not much larger than needed.

False alarms: at most 1e-9 a test, by binomial quantiles.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest
from judging import ALARM, draws
from scipy import stats

from secant.noise.mechanisms.bernstein import BernsteinNoise
from secant.noise.mechanisms.gaussian import GaussianNoise
from secant.noise.mechanisms.laplace import DiscreteLaplaceNoise, LaplaceNoise
from secant.noise.mechanisms.selection import ExponentialNoise, PermuteAndFlip
from secant.noise.mechanisms.smooth import (
    CauchyNoise,
    OptimalNoise,
    SmoothLaplaceNoise,
)
from secant.sensitivity.bounds import GlobalBound, SmoothBound

FAILURE = Fraction(1, 10)
ONE = GlobalBound(Fraction(1))
FINE = Fraction(1, 4096)
SMOOTH = SmoothBound(Fraction(1, 60), 0)

ADDITIVE = [
    (LaplaceNoise().calibrate(ONE, epsilon=1, grid=FINE), True),
    (DiscreteLaplaceNoise().calibrate(GlobalBound(Fraction(30)), epsilon=1, grid=1), False),
    (GaussianNoise().calibrate(ONE, epsilon=1, delta=1e-6, grid=FINE), True),
]  # fmt: skip
SCALED = [
    (OptimalNoise().calibrate(SMOOTH, epsilon=1, grid=FINE), 8000),
    (CauchyNoise(Fraction(2)).calibrate(SMOOTH, epsilon=1, grid=FINE), 8000),
    (SmoothLaplaceNoise().calibrate(SMOOTH, epsilon=1, delta=1e-6, grid=FINE), 8000),
]


def judge(misses: int, count: int, *, tight: bool) -> None:
    assert misses <= stats.binom.isf(ALARM / 2, count, float(FAILURE))
    if tight:  # an error that is stated too large by much would be missed too seldom
        assert misses >= stats.binom.ppf(ALARM / 2, count, float(FAILURE) * 0.98) - 1


@pytest.mark.parametrize(("noise", "tight"), ADDITIVE, ids=lambda value: getattr(value, "name", ""))
def test_additive_noise(noise: Any, tight: bool) -> None:
    count = draws(12_000, 200_000)
    alpha = noise.error(1 - FAILURE)
    released = noise.draw_many([0] * count)
    judge(sum(abs(value) > alpha for value in released), count, tight=tight)


@pytest.mark.parametrize(("noise", "short"), SCALED, ids=lambda value: getattr(value, "name", ""))
def test_noise_on_smooth_bounds_in_units_of_the_bound(noise: Any, short: int) -> None:
    count, sensitivity = draws(short, 10 * short), Fraction(7)
    alpha = noise.error(1 - FAILURE) * sensitivity + FINE / 2
    misses = sum(abs(noise.draw(0, sensitivity)) > alpha for _ in range(count))
    judge(misses, count, tight=True)


def test_the_laplace_line_of_the_notes() -> None:
    noise = LaplaceNoise().calibrate(GlobalBound(Fraction(3)), epsilon=2, grid=Fraction(1, 10**9))
    assert float(noise.error(1 - FAILURE)) == pytest.approx(1.5 * math.log(10), rel=1e-6)


@pytest.mark.parametrize("mechanism", [ExponentialNoise(), PermuteAndFlip()], ids=lambda m: m.name)
def test_choices(mechanism: Any) -> None:
    picked = mechanism.calibrate(GlobalBound(Fraction(1), "linf"), epsilon=1)
    alpha = picked.error(1 - FAILURE, 20)
    scores = [0, *([-Fraction(alpha) - Fraction(1, 100)] * 19)]  # the worst case of the bound
    count = draws(2500, 50_000)
    judge(sum(picked.draw(scores) != 0 for _ in range(count)), count, tight=False)


def test_a_function() -> None:
    noise = BernsteinNoise(1, 4, 2).calibrate(
        GlobalBound(Fraction(1), "linf"), epsilon=1, grid=FINE
    )
    alpha = float(noise.error(1 - FAILURE))
    count = draws(600, 5000)
    places = [0.0, 0.1, 0.25, 0.5, 0.8, 1.0]
    misses = 0
    for _ in range(count):
        release = noise.draw([0] * 5)
        misses += max(abs(release([place])) for place in places) > alpha
    judge(misses, count, tight=False)


def test_half_of_the_stated_error_is_caught() -> None:
    noise = ADDITIVE[0][0]
    alpha = noise.error(1 - FAILURE) / 2
    misses = sum(abs(value) > alpha for value in noise.draw_many([0] * 12_000))
    with pytest.raises(AssertionError):
        judge(misses, 12_000, tight=False)
