"""The guarantees, not the samplers: density ratios at finite steps, over all corners a bound allows.

Densities are written down here from their definitions; only rates, shapes and shifts come from
Secant. Each claim has a planted fault that breaks it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from secant.noise.mechanisms.smooth import (
    CauchyNoise,
    OptimalNoise,
    Rounding,
    SmoothNoise,
)
from secant.sensitivity.bounds import SmoothBound

Y = np.concatenate([-np.logspace(8, -7, 6001), [0.0], np.logspace(-7, 8, 6001)])
Density = Callable[[np.ndarray], np.ndarray]


def optimal_log_density(k: float) -> Density:
    a = (1 - 1 / k) ** (k - 1) if k > 1 else 1.0
    joint = math.log(a) + (k + 1) * math.log1p(1 / k)

    def log_density(v: np.ndarray) -> np.ndarray:
        v = np.abs(v)
        inside = (k - 1) * np.log1p(-np.minimum(v, 1) / k) if k > 1 else np.zeros_like(v)
        return np.where(v < 1, inside, joint - (k + 1) * np.log1p(v / k))

    return log_density


def cauchy_log_density(gamma: float) -> Density:
    return lambda v: -np.logaddexp(0, gamma * np.log(np.maximum(np.abs(v), 1e-300)))


def loss(density: Density, a1: float, s1: float, a2: float, s2: float) -> float:
    """The largest |ln ratio| of two placed and scaled densities, seen near either center."""
    y = np.concatenate([a1 + s1 * Y, a2 + s2 * Y])
    one = density((y - a1) / s1) - math.log(s1)
    two = density((y - a2) / s2) - math.log(s2)
    return float(np.max(np.abs(one - two)))


def worst_local(density: Density, rate: float, beta: float) -> float:
    """Neighbors at distance 1: |f - f'| ≤ min(c, c'), c'/c within e^±β."""
    worst = 0.0
    for r in np.linspace(-beta, beta, 9):
        for share in (-1.0, -0.5, 0.0, 0.5, 1.0):
            move = share * min(1.0, math.exp(r))
            worst = max(worst, loss(density, 0.0, 1 / rate, move, math.exp(r) / rate))
    return worst


def worst_path(density: Density, rate: float, beta: float) -> float:
    """Derivative bounds: along a path of length 1 the bound grows like e^βt and the answer with it."""
    worst = 0.0
    for length in (0.01, 0.3, 1.0):
        for sign in (-1, 1):
            move = sign * math.expm1(beta * length) / beta
            for ratio in (math.exp(beta * length),):
                worst = max(worst, loss(density, 0.0, 1 / rate, move, ratio / rate) / length)
    return worst


FAMILIES: list[tuple[str, Callable[[float], Density], OptimalNoise]] = [
    ("optimal", optimal_log_density, OptimalNoise()),
    ("cauchy 4", lambda k: cauchy_log_density(4.0), CauchyNoise()),
    ("cauchy 3/2", lambda k: cauchy_log_density(1.5), CauchyNoise(Fraction(3, 2))),
]  # type: ignore[list-item]


@pytest.mark.parametrize(("name", "density", "family"), FAMILIES, ids=[f[0] for f in FAMILIES])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("order", [4, 10, 40])
def test_no_density_ratio_exceeds_epsilon(
    name: str, density: Callable[[float], Density], family: OptimalNoise, epsilon: float, order: int
) -> None:
    beta = epsilon / order
    noise = family.calibrate(SmoothBound(Fraction(beta), 0), epsilon=Fraction(epsilon), grid=1)
    law = density(epsilon / beta)
    rate = float(noise.rate)
    assert worst_local(law, rate, beta) <= epsilon * (1 + 1e-6)
    assert worst_path(law, rate, beta) <= epsilon * (1 + 1e-6)
    # with a rate that is a tenth too large the path, which is tight in short steps, tells
    assert worst_path(law, rate * 1.1, beta) > epsilon


@pytest.mark.parametrize("k", [1.0, 1.5, 3.0])
def test_the_optimal_noise_is_tight_and_works_down_to_k_1(k: float) -> None:
    epsilon = 1.0
    law = optimal_log_density(k)
    assert worst_local(law, epsilon, epsilon / k) == pytest.approx(epsilon, rel=1e-5)
    assert worst_local(law, epsilon, epsilon / k * 1.1) > epsilon


@pytest.mark.parametrize(
    ("epsilon", "order"), [(0.2, 10), (1.0, 10), (1.0, 2), (5.0, 10), (6.0, 2)]
)
def test_jumps_need_less_noise_and_a_path_needs_all_of_it(epsilon: float, order: int) -> None:
    """|f - f'| ≤ min(J, J'): a larger rate suffices. Planted: the same rate for a path, and a tenth more for jumps."""
    beta = Fraction(epsilon) / order
    plain, jumping = (
        OptimalNoise().calibrate(SmoothBound(beta, 0, jumps=j), epsilon=Fraction(epsilon), grid=1)
        for j in (False, True)
    )
    law, slope = optimal_log_density(order), float(beta)
    gain = float(jumping.rate / plain.rate)
    assert gain == pytest.approx(2 * math.expm1(slope / 2) / slope)
    assert gain > 1
    assert worst_local(law, float(jumping.rate), slope) <= epsilon * (1 + 1e-6)
    assert worst_path(law, float(jumping.rate), slope) > epsilon * (1 + (gain - 1) / 3)
    # The jump itself tells: with both bounds alike, a rate twice as much above the plain one is too large.
    alike = loss(law, 0.0, 1 / float(jumping.rate), 1.0, 1 / float(jumping.rate))
    assert alike <= epsilon * (1 + 1e-6)
    careless = float(jumping.rate) * (1.1 + 2 * (gain - 1))
    assert worst_local(law, careless, slope) > epsilon


# --- errors of computation


def computed(noise: SmoothNoise, sensitivity: float) -> float:
    scale = noise.scale(sensitivity)
    return int(scale.p) / int(scale.q)


def test_rounding_errors_are_covered_and_matter() -> None:
    epsilon, beta, eta, xi = 1.0, 0.1, 0.2, 0.05
    rounding = Rounding(Fraction(eta), Fraction(xi))
    bound = SmoothBound(Fraction(beta), 0)
    careful = OptimalNoise().calibrate(
        bound, epsilon=epsilon, grid=Fraction(1, 1024), rounding=rounding
    )
    careless = OptimalNoise().calibrate(bound, epsilon=epsilon, grid=Fraction(1, 1024))
    worst = {"careful": 0.0, "careless": 0.0}
    for r in np.linspace(-beta, beta, 7):
        c, other = 1.0, math.exp(r)
        for over, over_other in ((0.0, 0.0), (xi, 0.0), (0.0, xi)):
            for sign in (-1, 1):
                move = sign * (min(c, other) + 2 * eta)  # both answers off by η, in opposite ways
                for name, noise in (("careful", careful), ("careless", careless)):
                    law = optimal_log_density(float(noise.law.k))  # type: ignore[attr-defined]
                    scales = [
                        computed(noise, x) for x in (c * (1 + over), other * (1 + over_other))
                    ]
                    worst[name] = max(worst[name], loss(law, 0.0, scales[0], move, scales[1]))
    assert worst["careful"] <= epsilon * (1 + 1e-6)
    assert worst["careless"] > epsilon * 1.2


# --- several β: f = x², c_β(x) = 2 max(x, e^(βx-1)/β)


def square_bound(x: float, beta: float) -> float:
    return 2 * (x if x >= 1 / beta else math.exp(beta * x - 1) / beta)


def test_the_least_of_several_scales_is_private_and_a_choice_of_shape_is_not() -> None:
    epsilon, family = 1.0, CauchyNoise()
    betas = [0.01 * n for n in range(1, 31)]
    rates = {
        b: float(family.calibrate(SmoothBound(Fraction(b), 0), epsilon=1, grid=1).rate)
        for b in betas
    }

    def scale(x: float) -> float:
        return min(square_bound(x, beta) / rate for beta, rate in rates.items())

    points = np.linspace(0.5, 60, 120)
    law = cauchy_log_density(4.0)
    steps = list(pairwise(points))
    worst = max(loss(law, a * a, scale(a), b * b, scale(b)) / (b - a) for a, b in steps)
    assert worst <= epsilon * (1 + 1e-6)
    assert worst > 0.7 * epsilon  # nothing is wasted
    # the fault: p* with the k of whichever β has the least noise. The shape jumps at a switch.
    y = np.logspace(-3, 8, 4001)
    x = 9.0
    one = optimal_log_density(3.0)(y / square_bound(x, 1 / 3))
    two = optimal_log_density(10.0)(y / square_bound(x, 1 / 10))
    assert float(np.max(np.abs(one - two))) > 20 * epsilon
