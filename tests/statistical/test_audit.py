"""Audits of noise on global bounds, of choices and of keys; halved noise is caught."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from auditing import GRID, ONE, SCORE, Case, check_audit
from judging import draws, violation

from secant.noise.mechanisms.bernstein import BernsteinNoise
from secant.noise.mechanisms.gaussian import GaussianNoise
from secant.noise.mechanisms.laplace import DiscreteLaplaceNoise, LaplaceNoise
from secant.noise.mechanisms.personal import PersonalLimit, PersonalNoise
from secant.noise.mechanisms.selection import ExponentialNoise, PermuteAndFlip
from secant.noise.mechanisms.whole import WholeLaplace, WholeNormal, multiplier, reached, root_up
from secant.noise.secrecy import Private


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


def key_noise(kind: str, *, epsilon: int, delta: float, groups: int = 1) -> tuple[Any, int]:
    """Give the law for counts of keys, as SQL calibrates it, and the threshold from which on keys are shown."""
    law: WholeLaplace | WholeNormal
    if kind == "laplace":
        law, slack = WholeLaplace(Fraction(groups, epsilon)), Fraction(delta)
    else:  # half of δ for counts of keys that exist anyway, half for keys that are new
        slack = Fraction(delta) / 2
        law = WholeNormal(multiplier(Fraction(epsilon), slack) * root_up(Fraction(groups)))
    return law, law.threshold(delta=slack, groups=groups, contribution=1)


def threshold_counts(kind: str) -> Case:
    """A key with many units: its noisy count must not tell the last one."""
    law, _ = key_noise(kind, epsilon=2, delta=0.02)
    half = type(law)(law.size / 2)
    return Case(
        f"threshold-{kind}", 2.0, 0.02,
        lambda: law.add([501])[0], lambda: law.add([500])[0],
        lambda: half.add([501])[0], lambda: half.add([500])[0], 16_000,
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
    return [
        additive("laplace", laplace, replace(laplace, scale=laplace.scale / 2), epsilon=1),
        additive("discrete-laplace", whole, replace(whole, scale=whole.scale / 2), epsilon=1),
        additive(
            "gaussian", normal, replace(normal, sigma=normal.sigma / 2),
            epsilon=1, delta=0.01, count=24_000,
        ),
        choice("exponential", ExponentialNoise()),
        choice("permute-and-flip", PermuteAndFlip()),
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
def test_a_new_key_shows_with_probability_delta_at_most(kind: str) -> None:
    delta = 0.05
    law, threshold = key_noise(kind, epsilon=1, delta=delta, groups=3)
    count = draws(8000, 80_000)

    def tried(least: int) -> list[str]:
        keys: Private[list[str]] = Private(["a", "b", "c"])
        return [
            "some" if reached(keys, law.add([1, 1, 1]), least)[1] else "none" for _ in range(count)
        ]

    absent = ["none"] * count
    assert violation(tried(threshold), absent, 1.0, delta) <= 0
    # the fault of a peer: a threshold that ignores how many keys one unit reaches
    low = threshold - law.error(Fraction(7, 10)) - 2
    assert violation(tried(low), absent, 1.0, delta) > 0


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
