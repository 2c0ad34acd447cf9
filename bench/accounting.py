"""How fast and how tight composition is: `python -m bench.accounting`.

Times exclude imports and are the best of three. "above_optimum" compares with a lattice on which
every loss is exact, computed here and not by the accountant.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from secant.ledger.accounting import Accountant
from secant.noise.events import Event, GaussianEvent, LaplaceEvent, PureEvent, Repeated, ZCdpEvent

DELTA = Fraction(1, 10**6)


def run() -> dict[str, Any]:
    numerators = [50 + i for i in range(1000)]  # ε from 0.005 to 0.105, no two alike
    distinct: list[Event] = [PureEvent(Fraction(n, 10_000)) for n in numerators]
    optimum = _lattice_optimum(numerators, 10_000, float(DELTA))
    unequal = _fixed(distinct)
    history: list[Event] = [Repeated(PureEvent("0.001"), 10_000), *distinct[:200]]
    return {
        "pure_1000_unequal": unequal | {"above_optimum": unequal["epsilon"] / optimum - 1},
        "pure_10000_identical": _fixed([Repeated(PureEvent("0.01"), 10_000)]),
        "laplace_1000_unequal": _fixed([LaplaceEvent(Fraction(n, 10_000)) for n in numerators]),
        "laplace_10000_identical": _fixed([Repeated(LaplaceEvent("0.01"), 10_000)]),
        "gaussian_100": _fixed([Repeated(GaussianEvent("42.3"), 100)]),
        "zcdp_and_pure": _fixed([Repeated(ZCdpEvent("0.001"), 100), *distinct[:100]]),
        "adaptive_decision": _decision(history),
        "releases_of_0.01_in_a_budget_of_1": {
            "addition": _analysis(0),
            "adaptive": _analysis(DELTA),
        },
    }


def _fixed(events: list[Event]) -> dict[str, Any]:
    seconds, total = _timed(lambda: Accountant().total(events, delta=DELTA, adaptive=False))
    return {"epsilon": float(total.epsilon), "theorem": total.theorem, "seconds": seconds}


def _decision(history: list[Event]) -> dict[str, Any]:
    def decide() -> Any:
        return Accountant().fits(history, history[:1], epsilon_budget=10, delta_budget=DELTA)

    seconds, decision = _timed(decide)
    return {"fits": decision.fits, "theorem": decision.total.theorem, "seconds": seconds}


def _analysis(delta: Fraction | int) -> int:
    """How many releases of ε = 0.01 a budget of ε = 1 admits when they are chosen adaptively."""
    low, high = 0, 100_000
    while high - low > 1:
        middle = (low + high) // 2
        new = [Repeated(PureEvent("0.01"), middle)]
        if Accountant().fits([], new, epsilon_budget=1, delta_budget=delta):
            low = middle
        else:
            high = middle
    return low


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    best, result = float("inf"), None
    for _ in range(3):
        start = time.perf_counter()
        result = work()
        best = min(best, time.perf_counter() - start)
    return round(best, 4), result


def _lattice_optimum(numerators: list[int], denominator: int, delta: float) -> float:
    reach = 12 * math.isqrt(sum(n * n for n in numerators))  # beyond: less than 1e-30
    masses = np.zeros(2 * reach + 1)
    masses[reach] = 1
    for n in numerators:
        plus = 1 / (1 + math.exp(-n / denominator))
        moved = np.zeros_like(masses)
        moved[n:] += plus * masses[:-n]
        moved[:-n] += (1 - plus) * masses[n:]
        masses = moved
    losses = np.arange(-reach, reach + 1) / denominator
    low, high = 0.0, reach / denominator
    for _ in range(60):
        middle = (low + high) / 2
        above = losses > middle
        if float((masses[above] * -np.expm1(middle - losses[above])).sum()) <= delta:
            high = middle
        else:
            low = middle
    return high


if __name__ == "__main__":
    print(json.dumps(run(), indent=2))
