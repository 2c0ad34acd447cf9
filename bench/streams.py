"""Errors of streams, simulated: `python -m bench streams`.

For each number of steps and each way: the root of the mean squared error of a running total over all steps, and the
largest over steps, as the formulas of the library say and as its own noise makes them. An event counts 1; epsilon is 1,
and delta is 1e-8 where there is one. The largest is simulated over the tenth of steps that err most, each against its
formula: one step alone would take a hundred times as many runs. The seed's binary tree, with the level that it forgot,
stands for comparison.
"""

from __future__ import annotations

import time
from fractions import Fraction
from typing import Any

import numpy as np

from secant.noise.continual import Mechanism, StreamFacts, choose
from secant.noise.continual.afterwards import revised
from secant.noise.continual.choosing import best
from secant.noise.continual.levels import Tree

DELTA = Fraction(1, 10**8)
STEPS = (64, 1024, 16384)
RUNS = {64: 20_000, 1024: 6_000, 16384: 1_000}
SLOW_RUNS = {64: 4_000, 1024: 500, 16384: 40}
"""Normal noise is drawn number by number."""
KINDS = (("increments", "laplace"), ("tree", "laplace"), ("binary", "laplace"), ("toeplitz", "normal"))  # fmt: skip
WINDOWS = (7, 30, 90, 365)


def run() -> dict[str, Any]:
    return {
        "errors": {str(steps): _errors(steps) for steps in STEPS},
        "open_horizon": _open(),
        "last_steps": {str(w): _window(w) for w in WINDOWS},
        "all_steps_at_once_400": _batch(),
        "users_normal_noise_wins_from": {str(steps): _cross(steps) for steps in STEPS},
        "seconds": {str(steps): _seconds(steps) for steps in (1024, 16384)},
    }


def _errors(steps: int) -> dict[str, Any]:
    facts = StreamFacts(steps, Fraction(1), DELTA, 1)
    found: dict[str, Any] = {}
    for name, law in KINDS:
        way = best(facts, law, name)
        assert way is not None
        variances = way.deviations(steps) ** 2
        runs = (RUNS if law == "laplace" else SLOW_RUNS)[steps]
        squares = _simulated(way, steps, runs)
        worst = variances >= np.quantile(variances, 0.9)
        found[name] = {
            "mean": _two(variances.mean()),
            "largest": _two(variances.max()),
            "simulated_mean": _two(squares.mean()),
            "simulated_largest": _two(variances.max() * (squares / variances)[worst].mean()),
            "runs": runs,
        }
    chosen = choose(StreamFacts(steps, Fraction(1), Fraction(0), 1)).chosen
    found["chosen_without_delta"] = chosen.to_dict()["designs"]
    return found


def _two(square: float) -> float:
    return round(float(np.sqrt(square)), 2)


def _simulated(way: Mechanism, steps: int, runs: int) -> np.ndarray:
    """Give the mean squared error of the running total at each step, over runs of the library's own draws."""
    names = [output.name for step in range(1, steps + 1) for output in way.due(step)]
    noise = way.stretch(1).noise
    total = np.zeros(steps)
    for _ in range(runs):
        released = dict(zip(names, noise.add([0] * len(names)), strict=True))
        total += way.values(released, steps, "running") ** 2
    return np.asarray(total / runs)


def _open() -> dict[str, float]:
    way = choose(StreamFacts(None, Fraction(1), Fraction(0), 1)).chosen
    squares = way.deviations(16384) ** 2
    return {str(steps): _two(squares[:steps].mean()) for steps in STEPS}


def _window(width: int) -> dict[str, float]:
    compared = choose(StreamFacts(None, Fraction(1), Fraction(0), 1, shows=width)).compared
    return {c.name: round(c.mean, 2) for c in compared if c.name != "binary"}


def _batch() -> dict[str, float]:
    steps = 400
    way = Mechanism(
        "tree", "laplace", StreamFacts(steps, Fraction(1), Fraction(0), 1), (Tree(10, 3),)
    )
    released = {output.name: 0 for step in range(1, steps + 1) for output in way.due(step)}
    points = revised(way, released, steps)
    return {
        "one_after_another": _two((way.deviations(steps) ** 2).mean()),
        "at_once": _two(np.mean([point.prefix.deviation**2 for point in points])),
    }


def _cross(steps: int) -> int | None:
    """Give at how many steps a person must count, once each, for normal noise to be chosen."""
    low, high = 0, min(steps, 128)

    def normal(times: int) -> bool:
        facts = StreamFacts(steps, Fraction(1), DELTA, times, squared=times, each=1, times=times)
        return choose(facts).chosen.law == "normal"

    if not normal(high):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if normal(middle) else (middle, high)
    return high


def _seconds(steps: int) -> dict[str, float]:
    facts = StreamFacts(steps, Fraction(1), Fraction(0), 1)
    started = time.perf_counter()
    way = choose(facts).chosen
    chosen = time.perf_counter()
    released = {o.name: way.draw(o, 0) for step in range(1, steps + 1) for o in way.due(step)}
    drawn = time.perf_counter()
    way.series(released, steps)
    read = time.perf_counter()
    way.series(released, steps, since=steps)
    return {
        "choose": round(chosen - started, 2),
        "draw_all": round(drawn - chosen, 2),
        "series_with_ends": round(read - drawn, 2),
        "last_point": round(time.perf_counter() - read, 3),
    }
