"""How often the usual error of a sum holds, over a battery of tails: `python -m bench usual`.

Each cell makes fresh people and fresh noise: the tally of people by octave takes 0.3 of epsilon, the second look 0.2
where it is needed, the noise on the cut sum what is left. Written for each cell: how often the interval holds the sum,
how often noise alone would, the median half width in shares of the sum, and the error over that of the best fixed limit
with all of epsilon, known by looking. Nothing here is private: numpy draws the noise.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from secant.noise.tail import (
    OctaveTally,
    confirmed,
    last_seen,
    to_look_at_again,
    usual_limit,
)

OCTAVES = 24
TALLYING, LOOKING = 0.3, 0.2
PEOPLE = (500, 5_000, 50_000)
EPSILONS = (0.3, 1.0, 3.0)
SCOPE = 300
"""People times epsilon from which on a usual error is promised."""
Draw = Callable[[int, np.random.Generator], np.ndarray]


def _with_few(body: Draw, few: int, times: float) -> Draw:
    """Let a few people add many times what the others do."""

    def draw(people: int, generator: np.random.Generator) -> np.ndarray:
        added = body(people, generator)
        chosen = generator.choice(people, few, replace=False)
        added[chosen] = times * np.median(added) * generator.uniform(0.8, 1.2, few)
        return added

    return draw


def _poisson(people: int, generator: np.random.Generator) -> np.ndarray:
    return 1.0 + generator.poisson(8, people)


def _pareto(exponent: float) -> Draw:
    return lambda people, generator: np.ceil(15 * (1 + generator.pareto(exponent, people)))


def _lognormal(deviation: float) -> Draw:
    return lambda people, generator: np.ceil(generator.lognormal(3.5, deviation, people))


TAILS: Mapping[str, Draw] = {
    "constant": lambda people, generator: np.full(people, 25.0),
    "uniform": lambda people, generator: generator.integers(1, 61, people).astype(float),
    "poisson": _poisson,
    "geometric": lambda people, generator: generator.geometric(0.08, people).astype(float),
    "lognormal 0.5": _lognormal(0.5),
    "lognormal 1": _lognormal(1),
    "lognormal 1.5": _lognormal(1.5),
    "lognormal 2": _lognormal(2),
    "pareto 1.2": _pareto(1.2),
    "pareto 2": _pareto(2),
    "pareto 3": _pareto(3),
    "zipf 1.5": lambda people, generator: np.minimum(generator.zipf(2.5, people), 2**20) * 1.0,
    "bimodal": lambda people, generator: np.where(
        generator.random(people) < 0.2, generator.normal(900, 90, people), 20
    ).clip(1),
    "gamma 0.5": lambda people, generator: np.ceil(60 * generator.gamma(0.5, 1, people)),
    "couriers": _with_few(_poisson, 60, 200),
    "giant": _with_few(_poisson, 1, 2000),
}
FEW = {"couriers": 60, "giant": 1}
"""Tails with a group apart, and its people: in scope from 35 / epsilon on."""


def in_scope(tail: str, people: int, epsilon: float) -> bool:
    """Say whether a usual error is promised for a cell."""
    return people * epsilon >= SCOPE and FEW.get(tail, people) * epsilon >= 35


def one(added: np.ndarray, epsilon: float, generator: np.random.Generator) -> dict[str, float]:
    """Draw an answer with its usual error, and compare."""

    def noise(parameter: float, size: int) -> np.ndarray:
        sides = generator.geometric(1 - math.exp(-parameter), (2, size))
        return sides[0] - sides[1]

    edges = tuple(2.0**k for k in range(OCTAVES + 1))
    tallying, noising = TALLYING * epsilon, (1 - TALLYING) * epsilon
    exact, _ = np.histogram(added, edges)
    counts = tuple(int(x) for x in exact + noise(tallying, OCTAVES))
    tally = OctaveTally(edges, counts, tallying)
    last, edge = last_seen(tally, strict=True), to_look_at_again(tally)
    if edge is None and last is not None:
        last = last_seen(tally)
    if edge is not None:
        counted = int((added >= edges[edge]).sum() + noise(LOOKING * epsilon, 1)[0])
        last, noising = confirmed(tally, counted, LOOKING * epsilon), noising - LOOKING * epsilon
    truth, best = float(added.sum()), _oracle(added, epsilon)
    if last is None:
        return {"none": 1.0}
    limit = usual_limit(tally, last, lambda k: (edges[k] / noising, False), choices=OCTAVES)
    assert limit is not None
    scale = edges[limit.index] / noising
    cut = float(np.minimum(added, edges[limit.index]).sum() + generator.laplace(0, scale))
    least, middle, most = limit.left_out()
    low = cut + middle - math.hypot(3 * scale, middle - least)
    high = cut + middle + math.hypot(3 * scale, most - middle)
    return {
        "none": 0.0,
        "holds": float(low <= truth <= high),
        "noise_holds": float(abs(cut - truth) <= 3 * scale),
        "half": (high - low) / 2 / truth,
        "over_oracle": abs(cut - truth) / best,
        "half_over_oracle": (high - low) / 2 / best,
    }


def _oracle(added: np.ndarray, epsilon: float) -> float:
    """Give the root of the mean squared error of the best fixed limit."""
    limits = np.unique(np.quantile(added, 1 - np.geomspace(1 / len(added), 0.5, 60)))
    limits = np.append(limits, added.max())
    cut = [np.maximum(added - x, 0).sum() ** 2 + 2 * (x / epsilon) ** 2 for x in limits]
    return math.sqrt(min(cut))


def run(draws: int = 20, tails: str = "") -> dict[str, Any]:
    """Measure every cell; summarize those in scope."""
    wanted = [x.strip() for x in tails.split(",") if x.strip()] or list(TAILS)
    cells: dict[str, dict[str, float]] = {}
    for tail in wanted:
        for people in PEOPLE:
            for epsilon in EPSILONS:
                generator = np.random.default_rng(
                    [list(TAILS).index(tail), people, int(10 * epsilon)]
                )
                drawn = [
                    one(TAILS[tail](people, generator), epsilon, generator) for _ in range(draws)
                ]
                told = [d for d in drawn if not d["none"]]
                cell = {
                    "in_scope": float(in_scope(tail, people, epsilon)),
                    "none": 1 - len(told) / draws,
                }
                for key in ("holds", "noise_holds"):
                    cell[key] = float(np.mean([d[key] for d in told])) if told else math.nan
                for key in ("half", "over_oracle", "half_over_oracle"):
                    cell[key] = float(np.median([d[key] for d in told])) if told else math.nan
                cells[f"{tail}, {people}, {epsilon}"] = {k: round(v, 3) for k, v in cell.items()}
    scope = [c for c in cells.values() if c["in_scope"]]
    summary = {
        "cells": len(scope),
        "holds": float(np.mean([c["holds"] for c in scope])),
        "least": min(c["holds"] for c in scope),
        "noise_holds": float(np.mean([c["noise_holds"] for c in scope])),
        "median_error_over_oracle": float(
            np.exp(np.mean([math.log(c["over_oracle"]) for c in scope]))
        ),
        "half_over_oracle": float(
            np.exp(np.mean([math.log(c["half_over_oracle"]) for c in scope]))
        ),
    }
    return {"in_scope": {k: round(v, 3) for k, v in summary.items()}, "cells": cells}


def main() -> None:
    """Print as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--tails", default="", help="names, separated by commas")
    asked = parser.parse_args()
    print(json.dumps(run(asked.draws, asked.tails), indent=2))


if __name__ == "__main__":
    main()
