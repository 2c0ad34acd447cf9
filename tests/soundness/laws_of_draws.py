"""What draws prove of a loss, and the law of permute-and-flip: for tests that hold a mechanism to its epsilon."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Hashable, Sequence
from fractions import Fraction

from scipy.stats import binom


def worst_ratio(one: Counter[Hashable], other: Counter[Hashable], draws: int) -> float:
    """Give the largest log ratio of chances of one outcome that the draws prove, at a false alarm below 1e-9."""
    worst = -math.inf
    for value in set(one):
        low = binom.ppf(1e-12, draws, one[value] / draws) / draws
        high = (binom.ppf(1 - 1e-12, draws, other[value] / draws) + 30) / draws
        if low > 0:
            worst = max(worst, math.log(low / high))
    return worst


def flips(scores: Sequence[Fraction], sharpness: Fraction | float) -> list[float]:
    """Permute-and-flip by its definition: flip in random order until one stands."""
    best = max(scores)
    keep = [math.exp(-float(best - s) * float(sharpness)) for s in scores]
    orders = list(itertools.permutations(range(len(scores))))
    found = [0.0] * len(scores)
    for order in orders:
        left = 1.0
        for i in order:
            found[i] += left * keep[i] / len(orders)
            left *= 1 - keep[i]
    return found
