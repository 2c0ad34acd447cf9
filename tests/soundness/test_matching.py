"""Different values assigned to units (truncation.matching), on all small sets of pairs and all their neighbors.

What is released is a limit, and the noisy number of values that can be assigned under it.
The law is computed, not drawn.
"""

from __future__ import annotations

import itertools
import math
import random
from fractions import Fraction

import numpy as np
import pytest
from laws_of_draws import flips
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import maximum_flow

import chance
from secant.noise.mechanisms import matching as module
from secant.noise.mechanisms.matching import (
    assignable,
    lost_at_most,
    penalties,
    scores_of,
)
from secant.release.tallies import read_tallies
from secant.sensitivity.certificate import Tallies

LIMITS = (1, 2, 4)
PAIRS = tuple(itertools.product(range(3), range(3)))
NOBODYS = ((None, 0), (None, 1))


def databases():
    """All sets of pairs of three units and three values, each with all sets of values of nobody."""
    for size in range(len(PAIRS) + 1):
        for pairs in itertools.combinations(PAIRS, size):
            for nobodys in ((), NOBODYS[:1], NOBODYS[1:], NOBODYS):
                yield (*pairs, *nobodys)


def neighbors(pairs):
    """Leave out each unit, and each row of nobody."""
    for unit in {u for u, _ in pairs if u is not None}:
        yield tuple(p for p in pairs if p[0] != unit)
    for row in (p for p in pairs if p[0] is None):
        yield tuple(p for p in pairs if p != row)


def by_trying(pairs, limit):
    """Assign values in all possible ways, or to nobody."""
    free = {v for u, v in pairs if u is None}
    values = sorted({v for _, v in pairs} - free)
    best = 0
    for owners in itertools.product(*([None, *(u for u, w in pairs if w == v)] for v in values)):
        held = [u for u in owners if u is not None]
        if all(held.count(u) <= limit for u in held):
            best = max(best, len(held))
    return len(free) + best


def by_flow(pairs, limit):
    """The same for many pairs, by a program that is not ours."""
    units = {u: i + 1 for i, u in enumerate(sorted({u for u, _ in pairs}))}
    values = {v: i + 1 + len(units) for i, v in enumerate(sorted({v for _, v in pairs}))}
    end = 1 + len(units) + len(values)
    tails = [0] * len(units) + [units[u] for u, _ in pairs] + list(values.values())
    heads = list(units.values()) + [values[v] for _, v in pairs] + [end] * len(values)
    room = np.array([limit] * len(units) + [1] * (len(pairs) + len(values)), np.int32)
    graph = csr_matrix((room, (tails, heads)), shape=(end + 1, end + 1))
    return int(maximum_flow(graph, 0, end).flow_value)


COUNTED = {frozenset(pairs): assignable(pairs, LIMITS) for pairs in databases()}


def test_as_many_are_assigned_as_can_be():
    for pairs, (above, assigned, octaves) in COUNTED.items():
        assert assigned == [by_trying(pairs, limit) for limit in LIMITS]
        sizes = [sum(u == unit for u, _ in pairs) for unit in range(3)]
        assert above == [sum(size > limit for size in sizes) for limit in LIMITS]
        assert octaves == [sum(size > end for size in sizes) for end in (0, 1, 2, 4)]


def test_as_many_are_assigned_among_many():
    draw = random.Random(chance.fresh_seed())
    limits = (1, 2, 3, 5, 9)
    for _ in range(300):
        units, values, share = draw.randint(1, 30), draw.randint(1, 60), draw.random()
        pairs = [(u, v) for u in range(units) for v in range(values) if draw.random() < share]
        draw.shuffle(pairs)
        if pairs:
            assert assignable(pairs, limits)[1] == [by_flow(pairs, limit) for limit in limits]


def worst_move(counted):
    """Give the largest move of what is assigned, in parts of the limit; infinite if anything rises."""
    worst = Fraction(0)
    for pairs in databases():
        for less in neighbors(pairs):
            both = zip(counted(pairs), counted(less), LIMITS, strict=True)
            for one, other, limit in both:
                worst = max(worst, Fraction(one - other, limit) if one >= other else Fraction(99))
    return worst


def test_a_unit_moves_what_is_assigned_by_the_limit():
    assert worst_move(lambda pairs: COUNTED[frozenset(pairs)][1]) == 1


def _shared_are_free(pairs, limit):
    """Planted: a value that several units have is taken to find room."""
    holders = {v: {u for u, w in pairs if w == v} for _, v in pairs}
    alone = [(u, v) for u, v in pairs if len(holders[v]) == 1]
    return len([v for v, units in holders.items() if len(units) > 1]) + by_trying(alone, limit)


def test_values_that_are_taken_to_find_room_would_be_noticed():
    assert worst_move(lambda pairs: [_shared_are_free(pairs, limit) for limit in LIMITS]) > 1


def test_more_room_than_the_limit_would_be_noticed():
    assert worst_move(lambda pairs: assignable(pairs, [2 * x for x in LIMITS])[1]) > 1


# ── the limit and the number ─────────────────────────────────────────────────────────────────────

CHOOSING, NOISING = Fraction(1), Fraction(2)
SHOWN = range(-8, 14)


def chances(assigned, choosing=CHOOSING, noising=NOISING):
    """Give how likely each limit is: permute-and-flip by its definition."""
    fallen = penalties(LIMITS, choosing)
    scores = [s - p for s, p in zip(scores_of(LIMITS, assigned, noising), fallen, strict=True)]
    return flips(scores, choosing / module.REACH)


def law(assigned):
    """Give the logarithm of the chance of each pair of limit and number."""
    found = []
    for limit, chance_of, number in zip(LIMITS, chances(assigned), assigned, strict=True):
        rate = float(NOISING) / limit
        norm = math.log(math.tanh(rate / 2)) + math.log(chance_of)
        found += [norm - rate * abs(x - number) for x in SHOWN]
    return found


def worst_loss():
    """Give the largest change of a logarithm between neighbors, over crowds of values, too."""
    laws = {}

    def of(assigned):
        key = tuple(assigned)
        if key not in laws:
            laws[key] = law(key)
        return laws[key]

    moves = {
        (tuple(COUNTED[frozenset(p)][1]), tuple(COUNTED[frozenset(less)][1]))
        for p in databases()
        for less in neighbors(p)
    }
    # Units that are far apart have values of their own: what is assigned adds up, and a crowd leaves the plateau.
    crowds = [(0, 0, 0), (4, 8, 16), (9, 18, 36), (9, 9, 9)]
    alone = [(1, 2, 4), (1, 2, 2), (1, 1, 1), (0, 0, 4), (0, 2, 4), (1, 2, 0), (1, 0, 0), (0, 2, 0)]
    moves |= {
        (tuple(a + b for a, b in zip(crowd, more, strict=True)), crowd)
        for crowd in crowds
        for more in alone
    }
    return max(abs(a - b) for one, other in moves for a, b in zip(of(one), of(other), strict=True))


def test_no_pair_of_limit_and_number_tells_more_than_epsilon():
    assert worst_loss() <= float(CHOOSING + NOISING) * (1 + 1e-9)


def _all_larger(limits, assigned, noising):
    """Planted: a unit counts twice for what a larger limit wins."""
    return [2 * score for score in scores_of(limits, assigned, noising)]


@pytest.mark.parametrize(
    ("name", "fault"),
    [("REACH", Fraction(1, 2)), ("scores_of", _all_larger)],
    ids=["sharper", "counted twice"],
)
def test_a_planted_fault_tells_more(monkeypatch, name, fault):
    scores = {}

    def largest_move():
        """Give how far apart the scores of two limits move, times what they are weighed with."""
        found = scores_of if name != "scores_of" else fault
        reach = module.REACH
        for crowd in [(0, 0, 0), (9, 18, 36)]:
            for more in [(0, 0, 4), (1, 2, 4), (1, 0, 0), (0, 2, 0)]:
                one = found(LIMITS, [a + b for a, b in zip(crowd, more, strict=True)], NOISING)
                other = found(LIMITS, crowd, NOISING)
                apart = [a - b for a, b in zip(one, other, strict=True)]
                scores[crowd, more] = (max(apart) - min(apart)) / reach
        return max(scores.values())

    honest = largest_move() if name != "scores_of" else Fraction(0)
    assert honest <= 1
    if name == "REACH":
        monkeypatch.setattr(module, name, fault)
    assert largest_move() > 1


def test_no_more_is_lost_than_is_said():
    miss = 0.05
    for assigned in [(4, 8, 16), (9, 18, 36), (30, 60, 120), (3, 3, 3), (0, 0, 4)]:
        missed = 0.0
        for index, chance_of in enumerate(chances(assigned)):
            parts = lost_at_most(LIMITS, LIMITS[index], CHOOSING, NOISING, miss)
            if assigned[-1] - assigned[index] > parts * LIMITS[-1]:
                missed += chance_of
        assert missed <= miss


def test_a_value_that_is_no_number_is_one_value():
    nan = [float("nan"), float("nan")]
    tallies = Tallies(None, {"m": (1, 2)}, assigned=True)
    read = read_tallies(tallies, [(1, nan[0]), (2, nan[1]), (2, 3.0)], None)
    assert read["m"].cut == [2, 2]
