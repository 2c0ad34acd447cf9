"""Errors of running sums over public steps, plain and by blocks: `python -m bench running_sums`.

Counts at epsilon 1, one row added or removed. `printed` is the error at 95 % by the law, in the mean of all steps and
at the last one; `drawn` is the root of the mean squared error of 200 drawn series, over all steps. Where blocks are not
better, plain sums are what a question gets.
"""

from __future__ import annotations

import math
import statistics
from fractions import Fraction
from itertools import accumulate
from typing import Any

from secant.noise.measure_noise import LaplaceShare, PlainNoise
from secant.noise.mechanisms.sums import whole_sum_error
from secant.noise.running import RunningNoise
from secant.noise.secrecy import Private
from secant.release.running_blocks import tree_for

STEPS = (12, 52, 365, 1000)
DRAWS = 200
LEVEL = Fraction(95, 100)
ONE = Fraction(1)
PLAIN = PlainNoise(ONE, LaplaceShare(ONE), ONE, ONE)


def run() -> dict[str, Any]:
    """Compare both ways for each number of steps, with running sums alone and with the steps beside them."""
    return {
        str(steps): {
            "plain": _plain(steps),
            "by blocks": _by_blocks(steps, shown=False),
            "by blocks, steps shown as well": _by_blocks(steps, shown=True),
        }
        for steps in STEPS
    }


def _plain(steps: int) -> dict[str, Any]:
    errors = [float(whole_sum_error([1.0] * t, float(LEVEL))) for t in range(1, steps + 1)]
    return _told(PLAIN, steps, errors)


def _by_blocks(steps: int, *, shown: bool) -> dict[str, Any] | None:
    tree = tree_for(PLAIN, steps, shown)
    if tree is None:
        return None
    noise = RunningNoise(ONE, PLAIN.share, PLAIN, tree, (tuple(range(steps)),))
    errors = [noise.reach({(0, t): 1.0}, LEVEL) for t in range(1, steps + 1)]
    single = noise.reach(noise.single(0, steps // 2), LEVEL)
    told = {"branching": tree.branching, "levels": tree.levels, "printed, one step": single}
    return {**_told(noise, steps, errors), **told}


def _told(noise: PlainNoise | RunningNoise, steps: int, errors: list[float]) -> dict[str, Any]:
    squares = []
    for _ in range(DRAWS):
        squares += [x * x for x in accumulate(noise.draw(Private([0] * steps)))]
    return {
        "printed, mean": round(statistics.mean(errors), 1),
        "printed, last": errors[-1],
        "drawn": round(math.sqrt(statistics.mean(squares)), 2),
    }
