"""An event log with a heavy tail and no declared limit: how far a count is off, computed and not drawn."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from bench.suites.honesty.events import EVENTS, PEOPLE, TAIL

from secant.noise import choosing as picking
from secant.noise.mechanisms import limits

WITHIN, MISSED = 0.05, 0.05
CANDIDATES = sorted({int(Fraction(99, 70) ** i) for i in range(41)} | {2**20})


def everybody() -> list[int]:
    """Give how many events each person of the log has."""
    total = sum(rank**-TAIL for rank in range(1, PEOPLE + 1))
    return [max(1, round(EVENTS / total * rank**-TAIL)) for rank in range(1, PEOPLE + 1)]


def chances(scores: list[float], epsilon: float) -> list[float]:
    """Give how likely permute-and-flip takes each: the largest of scores with exponential noise, integrated."""
    steps, reach = 4000, 60.0
    best = max(scores)
    places = [epsilon * (s - best) for s in scores]
    found = [0.0] * len(scores)
    for step in range(steps):
        top = reach * (step + 0.5) / steps
        below = [1 - math.exp(-max(top - p, 0.0)) if top > p else 0.0 for p in places]
        for i, p in enumerate(places):
            others = math.prod(below[:i] + below[i + 1 :])
            found[i] += math.exp(p - top) * others * reach / steps
    return found


def off_by_more(epsilon: Fraction) -> float:
    """Give how often the count of all events is off by more than 5 %."""
    people = everybody()
    choosing = epsilon * picking.CHOOSING_FREELY
    noising = epsilon - choosing
    above = [sum(x > limit for x in people) for limit in CANDIDATES]
    scores = [float(s) for s in limits.scores_of(CANDIDATES, above, choosing, noising, 1)]
    likely = chances(scores, float(choosing))
    assert math.isclose(sum(likely), 1, abs_tol=0.01)
    truth, missed = sum(people), 0.0
    for limit, chance in zip(CANDIDATES, likely, strict=True):
        lost = truth - sum(min(x, limit) for x in people)
        scale = limit / float(noising)
        for reach in (WITHIN * truth - lost, WITHIN * truth + lost):
            tail = math.exp(-abs(reach) / scale) / 2
            missed += chance * (tail if reach > 0 else 1 - tail)
    return missed


def test_a_count_of_events_is_within_five_percent():
    assert off_by_more(Fraction(1)) < MISSED


@pytest.mark.parametrize(("part", "fall"), [(Fraction(1, 5), 2), (Fraction(3, 10), 1)])
def test_a_worse_choice_is_seen(monkeypatch, part, fall):
    """Planted: what was used before, and weights that fall too slowly."""
    monkeypatch.setattr(picking, "CHOOSING_FREELY", part)
    monkeypatch.setattr(limits, "FALL", Fraction(fall))
    assert off_by_more(Fraction(1)) > MISSED
