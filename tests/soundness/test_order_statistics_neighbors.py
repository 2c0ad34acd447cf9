"""Order statistics against the definition: probabilities of every outcome on neighbors, computed by brute force.

Cells come from the plan that is bounded and run, by the interpreter; probabilities from a second piece of code that
shares nothing with secant.noise.ranked. Planted faults show that the check can fail.
"""

import itertools
import math
import random
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from directed_cases import PEOPLE, ROWS, SWAP, world_of
from drawn_worlds import draw_database, draw_pool
from neighbor_check import neighbors, prepared_for, rank_distance

from chance import LONG
from secant.noise import calibrate as calibrating
from secant.noise import ranked as by_weight
from secant.noise.calibrate import calibrate
from secant.noise.rank_ends import ladder, shortfalls, wanted
from secant.plan import nodes as n
from secant.plan.evaluate.evaluate import prepare as compiled
from secant.plan.evaluate.values import same_key
from secant.plan.rewrites import order_statistics
from secant.plan.rewrites.order_statistics import RankedCalls
from secant.sensitivity.truncation.weighing import PARTS, unlimited

DATABASES = 400 if LONG else 25
NODES, WEIGHTS = np.polynomial.legendre.leggauss(120)
QUERIES = [
    "SELECT median(cost) FROM visit",
    "SELECT kind, quantile_cont(cost, 0.9) FROM visit GROUP BY kind",
    "SELECT min(cost) FROM visit WHERE code > 0",
    "SELECT max(age) FROM person",
    "SELECT max(cost) FROM visit",
    "SELECT min(qty) FROM item",
    "SELECT tag, quantile_disc(qty, 0.25) FROM item GROUP BY tag",
    "SELECT median(price) FROM item",
    "SELECT p.region, max(v.cost) FROM visit v JOIN place p ON v.code = p.code GROUP BY p.region",
    "SELECT median(s) FROM (SELECT pid, sum(cost) AS s FROM visit GROUP BY pid) q",
    "SELECT kind, median(cost) FROM visit GROUP BY kind",
    "SELECT mode(kind) FROM visit",
    "SELECT tag, mode(qty) FROM item GROUP BY tag",
]
PROTECTIONS = [ROWS, SWAP, PEOPLE]


def chances(noise, distances):
    """Give the probability of each point, from its distance alone."""
    sharpness = float(noise.choice.sharpness)
    weights = np.exp(-sharpness * (distances - distances.min()))
    if noise.choice.name == "exponential":
        return weights / weights.sum()
    # in random order a point is reached at a uniform time; those before it have failed
    times = (NODES + 1) / 2
    others = np.log1p(-np.outer(times, weights))
    each = np.exp(others.sum(axis=1, keepdims=True) - others) * weights
    return (WEIGHTS / 2) @ each


def distances(ranked, noise, cells):
    """Give the distance of every point of the grid; equal ones between occupied points are computed once."""
    marks = sorted({0, ranked.grid.count, *(i for i in cells), *(i + 1 for i in cells)})
    found = np.empty(ranked.grid.count)
    for first, last in itertools.pairwise(marks):
        found[first:last] = float(rank_distance(ranked.fraction, cells, first))
    return np.minimum(found, noise.farthest)


class Watched:
    """One query under one protection: the loss of privacy between two databases."""

    def __init__(self, text, protection):
        self.world = world_of(protection)
        prepared = prepared_for(text, self.world)
        # where no range follows, groups inside are released and nothing is ranked before the noise
        self.accepted = prepared is not None and bool(prepared.bounded[0].release.ranked)
        if not self.accepted:
            return
        (bounded,) = prepared.bounded
        (self.ranked,) = bounded.release.ranked
        delta = {protection.name: Fraction(1, 1000)}
        found = calibrate(prepared.bounded, (protection,), Fraction(1), delta)
        self.noise = found.ranks[self.ranked.column]
        self.charged = found.costs[protection.name][0]
        self.width = len(bounded.release.exact.keys)
        self.run = compiled(self.ranked.cells)
        # what a unit weighs is looked at for each limit that may be chosen, which is paid for apart
        self.limits = () if self.noise.bound is None else self.noise.bound.limits
        self.weighed = {
            limit: compiled(
                self.noise.bound.contributions.clipped({self.ranked.counted.name: limit})
            )
            for limit in self.limits
        }

    @property
    def allowed(self):
        return float(self.noise.epsilon - self.noise.choosing)

    def groups(self, database, run=None):
        found = {}
        for row in (run or self.run)(database):
            group = found.setdefault(tuple(map(same_key, row[: self.width])), {})
            group[row[self.width]] = int(row[self.width + 1])
        return found

    def loss(self, one, two):
        """Give the largest |ln P/P'| of any outcome of all groups together, whichever limit was chosen."""
        if not self.limits:
            return self.lost(self.noise, self.groups(one), self.groups(two))
        found = []
        for limit, run in self.weighed.items():
            chosen = replace(self.noise, limit=limit, chosen=True)
            noise = by_weight.with_limit(self.ranked, self.noise, chosen)
            found.append(self.lost(noise, self.groups(one, run), self.groups(two, run)))
        return max(found)

    def lost(self, noise, before, after):
        total = 0.0
        for key in {*before, *after}:
            cells = before.get(key, {}), after.get(key, {})
            if cells[0] != cells[1]:
                p, q = (chances(noise, distances(self.ranked, noise, c)) for c in cells)
                total += float(np.abs(np.log(p) - np.log(q)).max())
                total += ends_lost(self.ranked, noise, cells)
        return total


def ends_lost(ranked, noise, cells):
    """Give the same of how far the ends lie, wherever the point was drawn."""
    if noise.ends is None:
        return 0.0
    worst = 0.0
    count = ranked.grid.count
    marks = {i + d for i in {*cells[0], *cells[1]} for d in (-1, 0, 1)}
    for place in {0, count - 1, *(m for m in marks if 0 <= m < count)}:
        widths = ladder(place, count)
        for inside in (wanted(noise.ends, len(widths), Fraction(95, 100)), Fraction(1)):
            p, q = (
                flipped(
                    noise.ends,
                    shortfalls(ranked.fraction, widths, place, sorted(c.items()), inside),
                )
                for c in cells
            )
            worst = max(worst, float(np.abs(np.log(p) - np.log(q)).max()))
    return worst


def flipped(choice, short):
    """Give the probability of each half width by permute-and-flip."""
    far = np.array([float(x) for x in short])
    weights = np.exp(-float(choice.sharpness) * (far - far.min()))
    times = (NODES + 1) / 2
    others = np.log1p(-np.outer(times, weights))
    each = np.exp(others.sum(axis=1, keepdims=True) - others) * weights
    return (WEIGHTS / 2) @ each


def worst(text, protection, databases=DATABASES, seed=3):
    """Give the largest loss over all neighbors of some databases, and how many there were."""
    watched = Watched(text, protection)
    if not watched.accepted:
        return None, 0, watched
    draw = random.Random(seed)
    largest, tried = 0.0, 0
    for _ in range(databases):
        database = draw_database(draw, watched.world)
        for neighbor in neighbors(database, watched.world, protection, draw_pool(draw)):
            tried += 1
            largest = max(largest, watched.loss(database, neighbor))
    return largest, tried, watched


@pytest.mark.parametrize("protection", PROTECTIONS, ids=["rows", "replaced", "people"])
def test_no_outcome_tells_more_than_epsilon(protection):
    accepted = tried = 0
    near = 0.0
    for text in QUERIES:
        largest, count, watched = worst(text, protection)
        if largest is None:
            continue
        accepted, tried = accepted + 1, tried + count
        assert largest <= watched.allowed * (1 + 1e-6), text
        near = max(near, largest / watched.allowed)
    assert accepted >= 6
    assert tried >= 6 * DATABASES
    assert near > 0.7  # what is found comes near to what is allowed


def test_what_is_charged_is_what_is_used():
    for protection in PROTECTIONS:
        watched = Watched("SELECT median(cost) FROM visit", protection)
        assert watched.charged == watched.noise.epsilon == 1


@pytest.mark.parametrize("protection", [ROWS, PEOPLE], ids=["rows", "people"])
@pytest.mark.parametrize(
    "text",
    [
        "SELECT median(cost) FROM visit",
        "SELECT kind, max(cost) FROM visit GROUP BY kind",
        "SELECT quantile_disc(cost, 0.9) FROM visit",
        "SELECT mode(kind) FROM visit",
    ],
)
def test_a_planted_fault_is_seen(monkeypatch, text, protection):
    """A third of how far a unit moves two points apart: it loses more than is charged."""
    largest, _, watched = worst(text, protection, databases=60)
    assert watched.accepted
    assert largest <= watched.allowed * (1 + 1e-6)
    right = by_weight.rank_noise
    for room in (by_weight, calibrating):
        monkeypatch.setattr(
            room,
            "rank_noise",
            lambda ranked, bound, *rest, **more: right(ranked, bound / 3, *rest, **more),
        )
    largest, _, watched = worst(text, protection, databases=60)
    assert watched.charged == 1
    assert largest > watched.allowed * 1.05


def test_rows_that_weigh_too_much_would_be_noticed():
    """Planted: every row weighs as much as two, however many its unit has."""
    text = "SELECT quantile_cont(cost, 0.9) FROM visit"
    faulty = Watched(text, PEOPLE)
    assert faulty.limits
    all_rows = compiled(replace(faulty.ranked.cells, input=unlimited(faulty.ranked)[0]))

    def counted(database):
        return [(*row[:-1], row[-1] * 2 * PARTS) for row in all_rows(database)]

    faulty.weighed = dict.fromkeys(faulty.limits, counted)
    draw = random.Random(3)
    found = 0.0
    for _ in range(60):
        database = draw_database(draw, faulty.world)
        for neighbor in neighbors(database, faulty.world, PEOPLE, draw_pool(draw)):
            found = max(found, faulty.loss(database, neighbor))
    assert found > faulty.allowed * 1.05


def by_units(text, databases=60):
    """Give the extreme points of the cells beside those of the counted values, for drawn databases."""
    watched = Watched(text, PEOPLE)
    assert watched.accepted
    assert watched.ranked.of_units
    reads = compiled(watched.ranked.cells.input)
    every = compiled(below_units(watched.ranked.cells))
    draw = random.Random(5)
    for _ in range(databases):
        database = draw_database(draw, watched.world)
        yield watched, watched.groups(database), reads(database), every(database)


def below_units(cells):
    """Give the same cells counted over all rows, each by itself."""
    known = cells.input
    (extreme,) = known.input.aggregations
    rows = n.Project(known.input.input, (n.Named(extreme.name, extreme.argument),))
    return replace(cells, input=replace(known, input=rows))


@pytest.mark.parametrize(
    "text",
    ["SELECT max(cost) FROM visit", "SELECT min(cost) FROM visit", "SELECT min(qty) FROM item"],
)
def test_units_have_the_extreme_of_all_rows(text):
    """One row of each unit, and the same smallest or largest point; counted over all rows it is more rows."""
    largest = "max" in text
    fewer = filled = 0
    for _, groups, rows, every in by_units(text):
        cells = groups.get((), {})
        assert sum(cells.values()) == len(rows)
        alone = dict(every)
        assert bool(cells) == bool(alone)
        if cells:
            filled += 1
            end = max if largest else min
            assert end(cells) == end(alone)
            fewer += len(rows) < sum(alone.values())
    assert filled > 30
    assert fewer > 5  # some unit had several rows


def test_the_other_extreme_of_units_would_be_noticed(monkeypatch):
    """Planted: each unit's smallest value where the largest is asked for."""
    monkeypatch.setattr(RankedCalls, "extremes_of", lambda self, argument: ("min",))
    monkeypatch.setattr(order_statistics, "side_of", lambda fraction: "min")
    wrong = 0
    for _, groups, _, every in by_units("SELECT max(cost) FROM visit"):
        cells, alone = groups.get((), {}), dict(every)
        wrong += bool(cells) and max(cells) != max(alone)
    assert wrong > 5


def test_rows_counted_as_units_would_be_noticed(monkeypatch):
    """Planted: an extreme that counts all rows of a unit, under the bound of one row of each."""
    text = "SELECT max(cost) FROM visit"
    largest, _, watched = worst(text, PEOPLE, databases=60)
    assert watched.ranked.of_units
    assert largest <= watched.allowed * (1 + 1e-6)
    faulty = Watched(text, PEOPLE)
    faulty.run = compiled(below_units(faulty.ranked.cells))
    draw = random.Random(3)
    found = 0.0
    for _ in range(60):
        database = draw_database(draw, faulty.world)
        for neighbor in neighbors(database, faulty.world, PEOPLE, draw_pool(draw)):
            found = max(found, faulty.loss(database, neighbor))
    assert found > 1.05


def test_the_brute_force_is_a_distribution():
    for text in ("SELECT max(age) FROM person", "SELECT median(price) FROM item"):
        watched = Watched(text, ROWS)
        for cells in ({}, {1: 2, 3: 1}):
            p = chances(watched.noise, distances(watched.ranked, watched.noise, cells))
            assert math.isclose(p.sum(), 1, rel_tol=1e-9)
            assert (p > 0).all()
