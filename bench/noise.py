"""How much noise, and how fast: `python -m bench.noise`.

Times are the best of three and exclude imports. "mean_noise" is in units of the bound over ε, so
that 1 is what Laplace noise on a global bound of the same size would have.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from secant.noise.mechanisms.discrete_laplace import add_discrete_laplace, discrete_laplace_noise
from secant.noise.mechanisms.gaussian import GaussianNoise
from secant.noise.mechanisms.laplace import LaplaceNoise
from secant.noise.mechanisms.laws import OptimalLaw
from secant.noise.mechanisms.smooth import CauchyNoise, OptimalNoise, SmoothNoise
from secant.numeric.ball import ball, upper, working_precision
from secant.sensitivity.bounds import GlobalBound, SmoothBound

GRID = Fraction(1, 1024)
TENTH = SmoothBound(Fraction(1, 10), "bench")


def run() -> dict[str, Any]:
    optimal = OptimalNoise().calibrate(TENTH, epsilon=1, grid=GRID)
    laplace = LaplaceNoise().calibrate(GlobalBound(Fraction(1)), epsilon=1, grid=GRID)
    values = [0.3] * 1_000_000
    return {
        "mean_noise_epsilon_1_beta_0.1": {
            "optimal_exact": optimal_mean(Fraction(10)),
            "optimal_drawn_100000": _drawn_mean(optimal, 100_000),
            "cauchy_exact_rate": 0.7071067811865476 / float(_rate(CauchyNoise())),
            "cauchy_seeds": 0.7071067811865476 / (1 / 5 - 1 / 10),
        },
        "scalar_optimal_100000": _timed(lambda: [optimal.draw(5, 2) for _ in range(100_000)]),
        "laplace_vector_1000000": _timed(lambda: laplace.draw_many(values)),
        "discrete_laplace_vector_1000000": _timed(
            lambda: discrete_laplace_noise(1_000_000, scale=Fraction(1000))
        ),
        "discrete_laplace_scalar_10000": _timed(
            lambda: [add_discrete_laplace([7], scale=Fraction(5)) for _ in range(10_000)]
        ),
        "gaussian_calibration": _timed(
            lambda: GaussianNoise().calibrate(
                GlobalBound(Fraction(1), "l2"), epsilon=1, delta=1e-6, grid=GRID
            )
        ),
    }


def optimal_mean(k: Fraction) -> float:
    """E|V| of the optimal law: the integral of its tail by midpoints, right to 1e-5."""
    law, step, total = OptimalLaw(k), Fraction(1, 200), Fraction(0)
    with working_precision(96):
        for index in range(40_000):
            total += upper(law.survival(ball((index + Fraction(1, 2)) * step), 96)) * step
    return float(total)


def _rate(mechanism: CauchyNoise) -> Fraction:
    return mechanism.calibrate(TENTH, epsilon=1, grid=GRID).rate


def _drawn_mean(noise: SmoothNoise, count: int) -> float:
    return float(sum(abs(noise.draw(0, 1)) for _ in range(count)) / count)


def _timed(work: Callable[[], object]) -> dict[str, float]:
    best = float("inf")
    for _ in range(3):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return {"seconds": round(best, 4)}


if __name__ == "__main__":
    print(json.dumps(run(), indent=2))
