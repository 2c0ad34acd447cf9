"""Tests whose false-alarm probability is proved, not hoped for.

Every judge takes `alarm`, the probability at most that it objects to a right sampler, and uses
finite-sample bounds only: binomial quantiles, the DKW-Massart inequality, Clopper-Pearson limits.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Sequence

import numpy as np
from scipy import stats

from chance import LONG

ALARM = 1e-9


def draws(short: int, long: int = 1_000_000) -> int:
    """Give how many draws this profile takes."""
    return long if LONG else short


def misfits(
    sample: Sequence[Hashable], shares: dict[Hashable, float], alarm: float = ALARM
) -> list[Hashable]:
    """Give the outcomes whose count a right sampler would hardly show; the rest is one outcome."""
    counts = Counter(value if value in shares else "rest" for value in sample)
    expected = {**shares, "rest": max(0.0, 1.0 - sum(shares.values()))}
    each = alarm / (2 * len(expected))
    n = len(sample)
    found = []
    for outcome, share in expected.items():
        # shares are floats: leave them 1e-12 of room
        low = stats.binom.ppf(each, n, max(0.0, share - 1e-12)) - 1
        high = stats.binom.isf(each, n, min(1.0, share + 1e-12)) + 1
        if not low <= counts[outcome] <= high:
            found.append(outcome)
    return found


def distance_is_large(
    sample: np.ndarray, cdf: Callable[[np.ndarray], np.ndarray], alarm: float = ALARM
) -> bool:
    """Say whether the empirical distribution strays from `cdf` more than DKW-Massart allows."""
    ordered = np.sort(sample)
    n = len(ordered)
    values = cdf(ordered)
    upper, lower = np.arange(1, n + 1) / n - values, values - np.arange(n) / n
    return max(float(upper.max()), float(lower.max())) > math.sqrt(math.log(2 / alarm) / (2 * n))


def violation(
    one: Sequence[float] | Sequence[Hashable],
    two: Sequence[float] | Sequence[Hashable],
    epsilon: float,
    delta: float = 0.0,
    *,
    bins: int = 16,
    alarm: float = ALARM,
) -> float:
    """Give by how much P₁(S) > e^ε P₂(S) + δ is certain for the best S found; at most 0 if not.

    The event S is chosen on the first half of each sample and judged on the second, so choosing
    costs nothing. Numbers are cut at quantiles of the first halves.
    """
    first, second = (_halves(side) for side in (one, two))
    if isinstance(one[0], (int, float)):
        pool = np.concatenate([first[0], second[0]]).astype(float)
        cuts = np.unique(np.quantile(pool, np.linspace(0, 1, bins + 1)[1:-1]))
        first, second = (
            tuple(np.searchsorted(cuts, np.asarray(half, float)).tolist() for half in side)
            for side in (first, second)
        )
    seen_one, seen_two = Counter(first[0]), Counter(second[0])
    event = {
        outcome
        for outcome, count in seen_one.items()
        if count / len(first[0]) > math.exp(epsilon) * seen_two[outcome] / len(second[0])
    }
    hits_one = sum(outcome in event for outcome in first[1])
    hits_two = sum(outcome in event for outcome in second[1])
    low = stats.beta.ppf(alarm / 2, hits_one, len(first[1]) - hits_one + 1) if hits_one else 0.0
    high = stats.beta.isf(alarm / 2, hits_two + 1, max(len(second[1]) - hits_two, 1e-9))
    return float(low - math.exp(epsilon) * high - delta)


def _halves(sample: Sequence[object]) -> tuple[Sequence[object], Sequence[object]]:
    middle = len(sample) // 2
    return sample[:middle], sample[middle:]
