"""stability.moves: a statistic of one group of a query, made to move by no more than a declared amount for one row.

In: the values of the group as the engine gave them, in any order, and what the policy declares. Out: whole steps from
the public center. Every list of values has an answer, so that no row is what fails. Private: no noise is on it yet.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from secant.plan.rewrites.measures import STEPS_OF_A_MOVE, Preprocessed
from secant.stats.bounded import uniform_finding
from secant.stats.inputs import clamped
from secant.stats.preprocessing.ordered_statistics import (
    Statistic,
    mean_statistic,
    quantile_statistic,
)


def preprocessed_steps(preprocessed: Preprocessed, values: Sequence[float | None]) -> int:
    """Give the statistic in whole steps of what one row may move it; what is no number does not count."""
    numbers = np.array([x for x in values if x is not None], dtype=np.float64)
    data = np.sort(clamped(numbers[~np.isnan(numbers)], None))
    spec: Statistic | str = "variance"
    if preprocessed.name == "mean":
        spec = mean_statistic()
    elif preprocessed.name == "quantile":
        assert preprocessed.share is not None
        spec = quantile_statistic(preprocessed.share)
    value = uniform_finding(spec, data, preprocessed.moves, preprocessed.center).exact_value
    # Ordered statistics are whole steps already; rounding down moves two variances apart by no more than whole steps.
    return math.floor(
        (value - preprocessed.center) * STEPS_OF_A_MOVE / Fraction(preprocessed.moves)
    )
