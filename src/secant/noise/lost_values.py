"""How many different values usually find no unit, where a limited number is assigned to each.

In: a noisy tally of units by octave of how many values they have, the limit, and how many values were counted under it.
Out: a number that is usually not exceeded. Post-processing: nothing here sees data, and nothing is needed for privacy.

The more values units have beyond the limit, the more may be lost; but if these were mostly values of nobody else, those
up to the limit would be so, too, and more would have been counted. So each value of a unit is taken to be its own with
the largest chance that the count allows, and half as much again: what then lies beyond the limit is what may be lost.
"""

from __future__ import annotations

import math
import random
from functools import lru_cache

from secant.noise.tail import SLACK, Draw, OctaveTally, people_above

UNLIKE = 1.5
"""By how much more often values beyond the limit may be a unit's own than those below."""
MOST_TERMS = 64
"""Up to this limit chances are added up one by one; above it the normal law serves."""


@lru_cache(maxsize=256)
def usually_lost(tally: OctaveTally, last: int, limit: int, counted: float, level: float) -> float:
    """Give how many values usually find no unit at most; `counted` is infinite where nothing is known of it."""
    draws = _drawn(tally, last)
    places = range(len(tally.counts))
    units = [sum(draw[k][0] for draw in draws) / len(draws) for k in places]
    sizes = [tally.edges[k] * 2**0.5 if k else 1.0 for k in places]
    own = min(1.0, UNLIKE * _share(units, sizes, limit, counted))
    finest = [_beyond(2 ** (k / 2), own, limit) for k in range(2 * len(places) + 3)]
    totals = sorted(sum(many * _between(finest, at) for many, at in draw) for draw in draws)
    miss = SLACK * (1 - level) / 2
    return totals[min(len(totals) - 1, math.ceil((1 - miss) * len(totals)) - 1)]


@lru_cache(maxsize=64)
def _drawn(tally: OctaveTally, last: int) -> list[Draw]:
    seed = repr((tally.edges, tally.counts, tally.epsilon, last))
    return people_above(tally, last, random.Random(seed))  # noqa: S311 - post-processing


def _share(units: list[float], sizes: list[float], limit: int, counted: float) -> float:
    """Give the share of values that are a unit's own if all that were counted are."""

    def expected(share: float) -> float:
        pairs = zip(units, sizes, strict=True)
        return sum(n * (d * share - _beyond(d, share, limit)) for n, d in pairs if n)

    if expected(1.0) <= counted:
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(25):
        middle = (low + high) / 2
        low, high = (low, middle) if expected(middle) > counted else (middle, high)
    return high


def _beyond(size: float, share: float, limit: int) -> float:
    """Give how many of so many values lie beyond the limit on average, each of which counts with a chance."""
    many = round(size)
    if many <= limit:
        return 0.0
    mean = many * share
    if share >= 1:
        return mean - limit
    if limit > MOST_TERMS:
        spread = math.sqrt(mean * (1 - share))
        z = (mean - limit) / spread if spread else -math.inf
        if z < -30:
            return 0.0
        density = math.exp(-z * z / 2) / math.sqrt(2 * math.pi)
        return max(0.0, spread * (density + z * math.erfc(-z / math.sqrt(2)) / 2))
    chance = math.exp(many * math.log1p(-share))
    upto, kept = 0.0, 0.0
    for k in range(limit):
        upto += chance
        kept += max(0.0, 1 - upto)
        chance *= (many - k) / (k + 1) * share / (1 - share)
    return max(0.0, mean - kept)


def _between(finest: list[float], at: float) -> float:
    """Read off between half octaves, in proportion."""
    place = min(max(2 * math.log2(max(at, 1.0)), 0.0), len(finest) - 1.001)
    left = int(place)
    return finest[left] + (place - left) * (finest[left + 1] - finest[left])
