"""How long it takes to bound a statistic: `python -m bench preprocessing`.

Data are made up here. "no_shortcut" is where nothing can be proved early: heavy tails and a small Δ. Seconds
are of the wall and of this process's own computing; they differ where the machine is shared.
"""

from __future__ import annotations

import json
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np

from secant.stats.bounded import Bounded, bounded

LARGE = 10_000_000
MIDDLE = 100_000


def run() -> dict[str, Any]:
    generator = np.random.default_rng()
    incomes = np.sort(generator.lognormal(10, 1, LARGE))
    tails = np.sort(generator.standard_cauchy(MIDDLE))
    return {
        "median_10000000_presorted": _timed(
            lambda: bounded("median", incomes, delta_f=1, bounds=(0, 1e6))
        ),
        "median_10000000_presorted_far_center": _timed(
            lambda: bounded("median", incomes, delta_f=1e-3, bounds=(0, 1e6))
        ),
        "minimum_10000000_presorted": _timed(
            lambda: bounded("minimum", incomes, delta_f=1, bounds=(0, 1e6))
        ),
        "mean_10000000_in_range": _timed(
            lambda: bounded("mean", incomes, delta_f=1, bounds=(0, 1e6))
        ),
        "mean_100000_in_range": _timed(
            lambda: bounded("mean", incomes[::100], delta_f=20, bounds=(0, 1e6))
        ),
        "trimmed_mean_100000_one_sided_recursions_meet": _timed(
            lambda: bounded("trimmed_mean", incomes[::100], delta_f=20, bounds=(0, 1e6))
        ),
        "variance_100000_theorem_1_8": _timed(
            lambda: bounded("variance", incomes[::100], delta_f=1e8, bounds=(0, 1e6))
        ),
        "mean_100000_no_shortcut": _timed(lambda: bounded("mean", tails, delta_f=1e-4), 1),
        "trimmed_mean_100000_no_shortcut": _timed(
            lambda: bounded("trimmed_mean", tails, delta_f=1e-6, trim="0.01"), 1
        ),
        "quantile_100000_no_shortcut": _timed(
            lambda: bounded("quantile", tails, delta_f=1e-6, q=0.9), 1
        ),
        "variance_100000_no_shortcut": _timed(
            lambda: bounded("variance", np.arange(float(MIDDLE)), delta_f=1000), 1
        ),
        "100000_people_in_10_classes": _people(),
        "peak_bytes_of_a_sweep": {
            str(MIDDLE // part): _peak(
                lambda part=part: bounded("mean", tails[::part], delta_f=1e-6)
            )
            for part in (20, 10, 5)
        },
    }


def _people() -> dict[str, Any]:
    """Everybody has one of ten limits, by lot; the largest is so small that g is far from f and nothing is certain."""
    generator = np.random.default_rng()
    drawn = {
        "tails": generator.standard_cauchy(MIDDLE),
        "incomes": generator.lognormal(10, 1, MIDDLE),
    }
    largest = {"mean": 1e-4, "median": 1e-4, "trimmed_mean": 1e-6, "variance": 1e-2}
    found = {}
    for label, values in drawn.items():
        unit = 1.0 if label == "tails" else 1e4
        for name, most in largest.items():
            most *= unit * unit if name == "variance" else unit
            classes = [most * part / 10 for part in range(1, 11)]
            own = [classes[place] for place in generator.integers(0, 10, MIDDLE)]
            found[f"{name}, {label}"] = _timed(
                lambda n=name, v=values, o=own, c=classes: bounded(
                    n, v, delta_f=o, classes=c, construction="layers"
                ),
                1,
            )
    return found


def _timed(work: Callable[[], Bounded], times: int = 3) -> dict[str, Any]:
    wall, own, proof = float("inf"), float("inf"), ""
    for _ in range(times):
        start, begun = time.perf_counter(), time.process_time()
        proof = work().proof
        wall = min(wall, time.perf_counter() - start)
        own = min(own, time.process_time() - begun)
    return {"seconds": round(wall, 4), "own_seconds": round(own, 4), "by": proof}


def _peak(work: Callable[[], Bounded]) -> int:
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


if __name__ == "__main__":
    print(json.dumps(run(), indent=2))
