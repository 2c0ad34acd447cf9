"""The exact condition: what is certified holds everywhere, and hardly anything is lost."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from secant.noise.mechanisms.admission import Score, largest_rate, round_down, round_up
from secant.noise.mechanisms.laws import OptimalLaw
from secant.noise.mechanisms.smooth import CauchyNoise

U = np.concatenate([np.logspace(-12, 12, 400_001)])


def needed_epsilon(score: np.ndarray, b: float, beta: float) -> float:
    """sup of β|uq - 1| + b·q over a dense grid of u."""
    return float(np.max(beta * np.abs(U * score - 1) + b * score))


def cauchy_score(gamma: float) -> np.ndarray:
    return (
        gamma / U / (1 + U**-gamma) if gamma < 20 else gamma / U / (1 + np.exp(-gamma * np.log(U)))
    )


CASES = [
    (CauchyNoise(Fraction(g)), cauchy_score(float(g)), e, b)
    for g in (Fraction(21, 20), Fraction(3, 2), 2, 3, 4, 8)
    for e, b in ((1.0, 0.01), (1.0, 0.1), (0.3, 0.02), (5.0, 0.5))
]


@pytest.mark.parametrize(("mechanism", "score", "epsilon", "beta"), CASES)
def test_the_rate_is_sound_and_tight(
    mechanism: CauchyNoise, score: np.ndarray, epsilon: float, beta: float
) -> None:
    _, shape = mechanism.shape()
    rate = float(largest_rate(shape, epsilon=Fraction(epsilon), beta=Fraction(beta)))
    assert rate > 0
    reached = needed_epsilon(score, rate, beta)
    assert reached <= epsilon * (1 + 1e-9)
    assert needed_epsilon(score, rate * (1 + 1e-5), beta) > epsilon


@pytest.mark.parametrize("beta", [Fraction(1, 100), Fraction(1, 2), Fraction(9, 10)])
def test_the_plain_cauchy_rate_is_known_in_closed_form(beta: Fraction) -> None:
    two = Fraction(2)
    rate = largest_rate(Score(two, two, two * two), epsilon=Fraction(1), beta=beta)
    truth = math.sqrt(1 - float(beta) ** 2)
    assert float(rate) <= truth
    assert float(rate) == pytest.approx(truth, rel=1e-6)


def test_the_example_of_the_paper() -> None:
    four = Fraction(4)
    rate = largest_rate(Score(four, four, four**2), epsilon=Fraction(4682, 1000), beta=Fraction(1))
    assert 0.9999 < float(rate) < 1.001  # b = β = 1 needs 4.681; the papers would charge 10


@pytest.mark.parametrize(
    ("gamma", "beta"), [(4, Fraction(1, 3)), (4, Fraction(1, 2)), (2, Fraction(1)), (9, 1)]
)
def test_too_rough_a_bound_has_no_rate(gamma: int, beta: Fraction) -> None:
    g = Fraction(gamma)
    assert largest_rate(Score(g, g, g * g), epsilon=Fraction(1), beta=Fraction(beta)) == 0


@pytest.mark.parametrize("k", [1.0, 1.5, 3.0, 10.0, 40.0])
def test_the_optimal_law_meets_the_condition_with_equality(k: float) -> None:
    """The score, taken from the law's own tail by differences, uses up ε everywhere."""
    law = OptimalLaw(Fraction(k))
    v = np.concatenate([np.linspace(0.05, 0.9, 18), np.linspace(1.1, 20, 40)])
    step = 1e-4

    def tail(x: float) -> float:
        from secant.numeric.ball import ball, lower, working_precision

        with working_precision(200):
            return float(lower(law.survival(ball(Fraction(x)), 200)) * 10**12) / 10**12

    density = np.array([(tail(x - step) - tail(x + step)) / (2 * step) for x in v])
    left = np.array([(tail(x - 2 * step) - tail(x)) / (2 * step) for x in v])
    right = np.array([(tail(x) - tail(x + 2 * step)) / (2 * step) for x in v])
    score = (left - right) / (2 * step) / density
    used = np.abs(v * score - 1) / k + score  # in units of ε
    assert used == pytest.approx(np.ones_like(used), abs=2e-3)


def test_rounding_keeps_its_direction_and_64_bits() -> None:
    for value in (Fraction(1, 3), Fraction(10**30, 7), Fraction(1, 10**30), Fraction(5)):
        assert round_down(value) <= value <= round_up(value)
        assert round_up(value) - round_down(value) <= value / 2**62
    assert round_down(Fraction(0)) == round_up(Fraction(0)) == 0
