"""Audits of noise on global bounds, of choices and of keys; halved noise is caught."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from auditing import GRID, ONE, SCORE, Case, check_audit
from judging import draws, violation

from secant.noise.mechanisms.bernstein import BernsteinNoise
from secant.noise.mechanisms.discrete_gaussian import DiscreteGaussianNoise
from secant.noise.mechanisms.gaussian import ClassicalGaussianNoise, GaussianNoise
from secant.noise.mechanisms.laplace import DiscreteLaplaceNoise, LaplaceNoise
from secant.noise.mechanisms.personal import PersonalLimit, PersonalNoise
from secant.noise.mechanisms.selection import ExponentialNoise, PermuteAndFlip, ReportNoisyMax
from secant.noise.mechanisms.threshold import ThresholdNoise


def additive(
    name: str, noise: Any, half: Any, *, epsilon: float, delta: float = 0.0, count: int = 8000
) -> Case:
    """Answers 0 and 1, which a global bound of 1 allows."""
    return Case(
        name, epsilon, delta,
        lambda: float(noise.draw(1)), lambda: float(noise.draw(0)),
        lambda: float(half.draw(1)), lambda: float(half.draw(0)), count,
    )  # fmt: skip


def choice(name: str, mechanism: Any) -> Case:
    """Five scores, of which one falls and the others rise by the bound."""
    picked = mechanism.calibrate(SCORE, epsilon=2)
    twice = replace(picked, sharpness=2 * picked.sharpness)
    here, there = [1, 0, 0, 0, 0], [0, 1, 1, 1, 1]
    return Case(
        name, 2.0, 0.0,
        lambda: f"{picked.draw(here)}", lambda: f"{picked.draw(there)}",
        lambda: f"{twice.draw(here)}", lambda: f"{twice.draw(there)}", 6000,
    )  # fmt: skip


def threshold_counts(kind: Any) -> Case:
    """A key with many units: its noisy count must not tell the last one."""
    noise = ThresholdNoise(kind).calibrate(SCORE, epsilon=2, delta=0.02)
    inner = noise.noise
    half = replace(
        noise,
        noise=replace(inner, scale=inner.scale / 2)
        if kind == "laplace"
        else replace(inner, sigma=inner.sigma / 2),  # type: ignore[union-attr,call-arg]
    )
    return Case(
        f"threshold-{kind}", 2.0, 0.02,
        lambda: noise.draw({"a": 501})["a"], lambda: noise.draw({"a": 500})["a"],
        lambda: half.draw({"a": 501})["a"], lambda: half.draw({"a": 500})["a"], 16_000,
    )  # fmt: skip


def function_release() -> Case:
    noise = BernsteinNoise(1, 1).calibrate(SCORE, epsilon=2, grid=GRID)
    half = replace(noise, noise=replace(noise.noise, scale=noise.noise.scale / 2))

    def label(release: Any) -> str:
        return "".join("x" if value >= 1 else "." for value in release.values)

    return Case(
        "bernstein", 2.0, 0.0,
        lambda: label(noise.draw([1, 1])), lambda: label(noise.draw([0, 0])),
        lambda: label(half.draw([1, 1])), lambda: label(half.draw([0, 0])), 10_000,
    )  # fmt: skip


def personal() -> Case:
    """The most protected individual, with ε = 1/2 among others with ε = 2, appears."""
    limits = [PersonalLimit(Fraction(1), Fraction(2)), PersonalLimit(Fraction(1), Fraction(1, 2))]
    noise = PersonalNoise().calibrate(limits, grid=GRID)
    half = replace(noise, noise=replace(noise.noise, scale=noise.noise.scale / 2))
    return additive("personal", noise, half, epsilon=0.5, count=14_000)


def cases() -> list[Case]:
    laplace = LaplaceNoise().calibrate(ONE, epsilon=1, grid=GRID)
    whole = DiscreteLaplaceNoise().calibrate(ONE, epsilon=1, grid=1)
    normal = GaussianNoise().calibrate(ONE, epsilon=1, delta=0.01, grid=GRID)
    classical = ClassicalGaussianNoise().calibrate(ONE, epsilon=0.9, delta=0.01, grid=GRID)
    discrete = DiscreteGaussianNoise().calibrate(ONE, epsilon=1, delta=0.01, grid=1)
    return [
        additive("laplace", laplace, replace(laplace, scale=laplace.scale / 2), epsilon=1),
        additive("discrete-laplace", whole, replace(whole, scale=whole.scale / 2), epsilon=1),
        additive(
            "gaussian", normal, replace(normal, sigma=normal.sigma / 2),
            epsilon=1, delta=0.01, count=24_000,
        ),
        additive(
            # the formula wastes so much that half of it shows only in the exact check (unit tests)
            "gaussian-classical", classical, replace(classical, sigma=classical.sigma / 4),
            epsilon=0.9, delta=0.01,
        ),
        additive(
            "discrete-gaussian", discrete, replace(discrete, variance=discrete.variance / 4),
            epsilon=1, delta=0.01, count=16_000,
        ),
        choice("exponential", ExponentialNoise()),
        choice("permute-and-flip", PermuteAndFlip()),
        choice("noisy-max", ReportNoisyMax()),
        threshold_counts("laplace"),
        threshold_counts("gaussian"),
        function_release(),
        personal(),
    ]  # fmt: skip


CASES = cases()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_no_ratio_above_the_guarantee_and_halved_noise_is_caught(case: Case) -> None:
    check_audit(case)


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_a_new_key_shows_with_probability_delta_at_most(kind: Any) -> None:
    delta = 0.05
    noise = ThresholdNoise(kind).calibrate(SCORE, epsilon=1, delta=delta, groups=3)
    unit = {"a": 1, "b": 1, "c": 1}
    count = draws(8000, 80_000)
    shown = ["some" if noise.draw(unit) else "none" for _ in range(count)]
    absent = ["none"] * count
    assert violation(shown, absent, 1.0, delta) <= 0
    # the fault of a peer: a threshold that ignores how many keys one unit reaches
    low = replace(noise, threshold=noise.threshold - int(noise.error(0.7)) - 2)
    wrong = ["some" if low.draw(unit) else "none" for _ in range(count)]
    assert violation(wrong, absent, 1.0, delta) > 0


def test_a_personal_scale_over_those_present_is_caught() -> None:
    """papers.md, error 15: were the maximum taken over those present, the scale itself would tell."""
    lax, strict = (
        PersonalLimit(Fraction(1), Fraction(2)),
        PersonalLimit(Fraction(1), Fraction(1, 4)),
    )
    with_strict = PersonalNoise().calibrate([lax, strict], grid=GRID)
    without = PersonalNoise().calibrate([lax], grid=GRID)
    one = [float(with_strict.draw(1)) for _ in range(8000)]
    two = [float(without.draw(0)) for _ in range(8000)]
    assert violation(one, two, 0.25) > 0
