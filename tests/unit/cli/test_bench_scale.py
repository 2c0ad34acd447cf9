"""The model of shuffles: what it says of (task, person) pairs is what rows that are thrown at random do."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from bench.scale_model import (
    CASES,
    People,
    classes,
    heaviest,
    internet,
    internet_sizes,
    kept,
    over,
    pairs,
    ranked_at_once,
)

ROWS, TASKS, LIMIT = 20_000, 7, 3


def thrown(people: People) -> Counter[tuple[int, int]]:
    """Throw rows at people by their shares and at tasks alike; count them by person and task."""
    draw = random.Random(5)
    shares = [share for count, share in classes(people) for _ in range(round(count))]
    owners = draw.choices(range(len(shares)), shares, k=ROWS)
    return Counter((owner, draw.randrange(TASKS)) for owner in owners)


@pytest.mark.parametrize("skew", [0.0, 0.8, 1.0, 1.2])
def test_pairs_and_first_rows(skew):
    people = People(100, skew)  # so few that each is a class of its own
    found = thrown(people)
    assert pairs(ROWS, people, TASKS) == pytest.approx(len(found), rel=0.02)
    first = sum(min(n, LIMIT) for n in found.values())
    assert kept(ROWS, people, TASKS, LIMIT) == pytest.approx(first, rel=0.02)


@pytest.mark.parametrize("skew", [0.5, 1.0, 1.2])
def test_classes_are_shares_of_zipf(skew):
    people = People(20_000, skew)
    weights = [rank**-skew for rank in range(1, 20_001)]
    assert sum(c for c, _ in classes(people)) == pytest.approx(20_000)
    assert heaviest(1.0, people) == pytest.approx(1 / sum(weights), rel=1e-3)
    many, theirs = over(1e6, people, 100)
    exact = [1e6 * w / sum(weights) for w in weights]
    assert many == pytest.approx(sum(r > 100 for r in exact), rel=0.05)
    assert theirs == pytest.approx(sum(r for r in exact if r > 100), rel=0.05)


def test_what_the_plan_rests_on():
    """Tables kept by person need no exchange by person; ranking at once shuffles less over a join."""
    by_name = {case.name: case for case in CASES}
    sizes = internet_sizes(1.0)
    together = by_name["person, a sum, kept by person"].stages(sizes)
    assert not any(stage.by == "person" for stage in together)
    assert any(stage.by == "person" for stage in by_name["person, a sum"].stages(sizes))
    sent = sum(stage.bytes for stage in by_name["person, sums over a join"].stages(sizes))
    assert sum(stage.bytes for stage in ranked_at_once(sizes)) < sent
    assert {case["case"] for case in internet()} > set(by_name)
