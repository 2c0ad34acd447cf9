"""Keys that are shown since a noisy number reached a threshold: that number is large by its noise, too.

In: a job, a number that reached a threshold. Out: the number with what its low end must allow for (noise.reached).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

from secant.noise.intervals import NoisyNumber
from secant.release.release_plan import ReleasePlan


def thresholds_of(job: ReleasePlan) -> dict[str, int]:
    """Give for each column that chose the keys of its release what it had to reach."""
    found: dict[str, int] = {}
    for b in job.prepared.bounded:
        choice = job.noise.choices.get(b.release.name)
        if choice is not None and choice.groups and b.release.selector is not None:
            found[b.release.selector] = choice.threshold
    return found


def with_thresholds(
    numbers: Mapping[str, NoisyNumber], thresholds: Mapping[str, int], level: Fraction
) -> Mapping[str, NoisyNumber]:
    """Let the numbers that chose the keys allow for it."""
    if not thresholds:
        return numbers
    return {
        symbol: past_threshold(x, thresholds[x.measure], level) if x.measure in thresholds else x
        for symbol, x in numbers.items()
    }


def past_threshold(number: NoisyNumber, threshold: int, level: Fraction) -> NoisyNumber:
    """Widen the low end of a number that is shown since it reached a threshold; near it, nothing bounds the truth."""
    usual, wide = number.error(level), number.error(1 - (1 - level) / 2)
    if usual is None or wide is None:
        return number
    low = usual - wide if number.value - wide >= threshold else -math.inf
    return replace(number, left_out=(number.left_out[0] + low, number.left_out[1]))
