"""Keys: the normal threshold is tight, existing keys only, limits from the policy."""

from __future__ import annotations

import math
from fractions import Fraction
from statistics import NormalDist

import pytest

from secant.errors import UsageError
from secant.noise.mechanisms.threshold import ThresholdNoise, gaussian_threshold
from secant.noise.secrecy import Private
from secant.sensitivity.bounds import GlobalBound

PER_KEY = GlobalBound(Fraction(1), "linf")


@pytest.mark.parametrize("sigma", [Fraction(1, 2), Fraction(5), Fraction(10**9)])
@pytest.mark.parametrize("groups", [1, 7])
@pytest.mark.parametrize("contribution", [1, 4])
@pytest.mark.parametrize("delta", [1e-3, 1e-9])
def test_the_normal_threshold_is_tight(
    sigma: Fraction, groups: int, contribution: int, delta: float
) -> None:
    tau = gaussian_threshold(sigma, delta=delta, groups=groups, contribution=contribution)

    def shown(threshold: int) -> float:
        gap = float((threshold - contribution - Fraction(1, 2)) / sigma)
        each = NormalDist().cdf(-gap)
        return -math.expm1(groups * math.log1p(-each))

    assert shown(tau) <= delta * (1 + 1e-6)
    if tau > contribution + 1:
        assert shown(tau - max(1, int(sigma) // 10**6)) > delta * (1 - 1e-6)


def test_a_huge_delta_still_hides_single_units() -> None:
    assert gaussian_threshold(Fraction(3), delta=0.9) == 2


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_large_keys_are_shown_small_ones_are_not(kind: str) -> None:
    noise = ThresholdNoise(kind).calibrate(PER_KEY, epsilon=1, delta=1e-9, groups=2)  # type: ignore[arg-type]
    counts = {"big": Private(100_000), "small": Private(1)}
    shown = noise.draw(counts)
    assert set(shown) == {"big"}  # fails with probability below 2e-9
    assert abs(shown["big"] - 100_000) < 2000
    assert noise.draw({}) == {}


def test_noise_and_threshold_follow_the_limits() -> None:
    one = ThresholdNoise().calibrate(PER_KEY, epsilon=1, delta=1e-6)
    many = ThresholdNoise().calibrate(
        GlobalBound(Fraction(3), "linf"), epsilon=1, delta=1e-6, groups=5
    )
    assert one.noise.scale == 1  # type: ignore[union-attr]
    assert many.noise.scale == 15  # type: ignore[union-attr]
    assert many.threshold > one.threshold
    normal = ThresholdNoise("gaussian").calibrate(PER_KEY, epsilon=1, delta=1e-6, groups=100)
    single = ThresholdNoise("gaussian").calibrate(PER_KEY, epsilon=1, delta=1e-6)
    assert float(normal.noise.sigma / single.noise.sigma) == pytest.approx(10)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "bound",
    [
        GlobalBound(Fraction(1)),
        GlobalBound(Fraction(1, 2), "linf"),
        GlobalBound(Fraction(0), "linf"),
    ],
)
def test_other_bounds_are_not_admitted(bound: GlobalBound) -> None:
    assert not ThresholdNoise().admits(bound)
    with pytest.raises(UsageError):
        ThresholdNoise().calibrate(bound, epsilon=1, delta=1e-6)


def test_bad_input() -> None:
    with pytest.raises(UsageError):
        ThresholdNoise("uniform")  # type: ignore[arg-type]
    for kind in ("laplace", "gaussian"):
        for arguments in (
            {"delta": 0},
            {"delta": 1},
            {"delta": 1e-6, "groups": 0},
            {"delta": 1e-6, "epsilon": 0},
        ):
            with pytest.raises(UsageError):
                ThresholdNoise(kind).calibrate(PER_KEY, **{"epsilon": 1, **arguments})  # type: ignore[arg-type]
