"""Keys: the normal threshold is tight, existing keys only, limits from the policy."""

from __future__ import annotations

import math
from fractions import Fraction
from statistics import NormalDist

import pytest

from secant.errors import UsageError
from secant.noise.mechanisms.gaussian import gaussian_threshold
from secant.noise.mechanisms.whole import WholeLaplace, WholeNormal, reached
from secant.noise.secrecy import Private


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


@pytest.mark.parametrize("law", [WholeLaplace(Fraction(2)), WholeNormal(Fraction(3))])
def test_large_keys_are_shown_small_ones_are_not(law: WholeLaplace | WholeNormal) -> None:
    threshold = law.threshold(delta=Fraction(1, 10**9), groups=2, contribution=1)
    keys: Private[list[str]] = Private(["big", "small"])
    places, shown = reached(keys, law.add(Private([100_000, 1])), threshold)
    assert (places, shown) == ([0], ["big"])  # fails with probability below 2e-9


@pytest.mark.parametrize(
    "arguments",
    [{"delta": 0}, {"delta": 1}, {"delta": 1e-6, "groups": 0}, {"delta": 1e-6, "contribution": 0}],
)
def test_bad_input(arguments: dict[str, float]) -> None:
    with pytest.raises(UsageError):
        gaussian_threshold(Fraction(3), **arguments)  # type: ignore[arg-type]
