"""Audits of a revealed noise level, alone and together with its answer; halved noise is caught."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
from auditing import GRID, Case, check_audit
from judging import draws, violation

from secant.noise.mechanisms.revealed import RevealedNoise, level_index
from secant.sensitivity.bounds import SmoothBound


def revealed_level() -> Case:
    """The level alone is ε₁-DP for the part of ε that it is charged."""
    noise = RevealedNoise().calibrate(
        SmoothBound(Fraction(1, 2), 0), epsilon=4, delta=1e-3, grid=GRID
    )
    # noise calibrated to twice the part, used as if it were one part: half of the spread
    half = replace(noise, level_epsilon=2 * noise.level_epsilon, epsilon=2 * noise.epsilon)

    def level(mechanism: Any, bound: float) -> int:
        return level_index(mechanism.draw(0.0, bound).scale, noise.beta)

    large = float(np.exp(0.5))
    return Case(
        "revealed-level", float(noise.level_epsilon), 0.0,
        lambda: level(noise, 1.0), lambda: level(noise, large),
        lambda: level(half, 1.0), lambda: level(half, large), 4000,
    )  # fmt: skip


LEVEL = revealed_level()


def test_the_level_alone_costs_its_part_and_halved_noise_is_caught() -> None:
    check_audit(LEVEL)


def test_level_and_answer_together_keep_the_whole_guarantee() -> None:
    epsilon, delta, beta = 4.0, 1e-3, 0.5
    noise = RevealedNoise().calibrate(
        SmoothBound(Fraction(beta), 0), epsilon=epsilon, delta=delta, grid=GRID
    )
    large = float(np.exp(beta))

    def label(value: float, bound: float) -> str:
        release = noise.draw(value, bound)
        step = level_index(release.scale, noise.beta) // 16
        return f"{step} {int(np.clip(release.value / release.scale * 4, -6, 6))}"

    one = [label(0.0, 1.0) for _ in range(draws(8000, 80_000))]
    two = [label((large - 1) / beta, large) for _ in range(draws(8000, 80_000))]
    assert violation(one, two, epsilon, delta) <= 0
    assert violation(two, one, epsilon, delta) <= 0
