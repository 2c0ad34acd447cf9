"""Audits of noise on smooth bounds at the extreme pair of neighbors; halved noise is caught."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from auditing import GRID, Case, check_audit
from test_audit import CASES as GLOBAL_CASES

from secant.noise.mechanisms.many_betas import ManyBetasNoise
from secant.noise.mechanisms.registry import MECHANISMS
from secant.noise.mechanisms.smooth import (
    CauchyNoise,
    OptimalNoise,
    SmoothLaplaceNoise,
)
from secant.sensitivity.bounds import SmoothBound


def smooth(
    name: str,
    family: Any,
    *,
    epsilon: float = 2.0,
    order: int = 10,
    delta: float = 0.0,
    count: int = 8000,
) -> Case:
    """The extreme pair: the bound grows by e^β and the answer moves by the smaller bound.

    The heavier the tail, the smaller ε must be for half of the noise to show: over a step of fixed
    length the ratio of Cauchy densities grows like a logarithm.
    """
    beta = epsilon / order
    noise = family.calibrate(
        SmoothBound(Fraction(beta), 0), epsilon=epsilon, delta=delta, grid=GRID
    )
    half = replace(noise, rate=2 * noise.rate)
    large = float(np.exp(beta))
    return Case(
        name, epsilon, delta,
        lambda: float(noise.draw(0.0, 1.0)), lambda: float(noise.draw(1.0, large)),
        lambda: float(half.draw(0.0, 1.0)), lambda: float(half.draw(1.0, large)), count,
    )  # fmt: skip


def many_betas() -> Case:
    bounds = [SmoothBound(Fraction(1, 5), 0), SmoothBound(Fraction(1, 50), 0)]
    noise = ManyBetasNoise(CauchyNoise(Fraction(2))).calibrate(bounds, epsilon=0.5, grid=GRID)
    halves = tuple(replace(choice, rate=2 * choice.rate) for choice in noise.choices if choice)
    half = replace(noise, choices=halves)
    # at the first database the second bound is smaller, at the second the first
    here, there = [1.1, 1.0], [float(1.1 * np.exp(-0.2)), 1.0]
    move = there[0]
    return Case(
        "many-betas", 0.5, 0.0,
        lambda: float(noise.draw(0.0, here)), lambda: float(noise.draw(move, there)),
        lambda: float(half.draw(0.0, here)), lambda: float(half.draw(move, there)), 40_000,
    )  # fmt: skip


CASES = [
    smooth("optimal", OptimalNoise()),
    smooth("cauchy", CauchyNoise(Fraction(2)), epsilon=0.5, count=30_000),
    smooth("smooth-laplace", SmoothLaplaceNoise(), order=40, delta=1e-3),
    many_betas(),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_no_ratio_above_the_guarantee_and_halved_noise_is_caught(case: Case) -> None:
    check_audit(case)


def test_every_mechanism_is_audited() -> None:
    audited = {case.name for case in (*CASES, *GLOBAL_CASES)}
    names = {mechanism.name for mechanism in MECHANISMS}
    assert {name for name in names if not any(a.startswith(name) for a in audited)} == set()
