"""The tally of units by octave (truncation.octaves): all neighbors of small databases, and the law of what is released.

One unit less moves one count by one, or none; what is then released costs the same on either branch. Draws of the tally
on a database and on a neighbor are told apart by no more than its share of epsilon allows.
"""

import itertools
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace

import pytest
from laws_of_draws import worst_ratio

from secant.noise import limited
from secant.noise.limited import LimitToTally, TalliedLimit
from secant.noise.measure_noise import LaplaceShare, NormalShare
from secant.noise.mechanisms import limits as limit_choices
from secant.noise.mechanisms.limits import take_tally
from secant.noise.secrecy import Private
from secant.sensitivity import bound as bounding
from secant.sensitivity.bounds import GlobalBound
from secant.sensitivity.certificate import Certificate, ClippedContribution, Contributions

LIMITS = (1, 2, 4, 8)


def above(totals):
    """Give for each limit how many units add more: what the engine's buckets say."""
    return [sum(abs(t) > limit for t in totals) for limit in LIMITS]


def counts_of(monkeypatch, totals):
    """Give the counts of a tally without noise."""
    monkeypatch.setattr(limit_choices, "add_discrete_laplace", lambda values, *, scale: values)
    return take_tally(LIMITS, above(totals), Fraction(1)).counts


def moves(monkeypatch, count):
    """Give the largest ℓ1 move of the counts over all small databases and all their neighbors."""
    worst = 0
    for size in range(1, 4):
        for totals in itertools.product((0, 1, 2, 3, 5, 8, 9, -7), repeat=size):
            whole = count(monkeypatch, totals)
            for left_out in range(size):
                less = count(monkeypatch, totals[:left_out] + totals[left_out + 1 :])
                worst = max(worst, sum(abs(a - b) for a, b in zip(whole, less, strict=True)))
    return worst


def test_one_unit_less_moves_one_count_by_one(monkeypatch):
    assert moves(monkeypatch, counts_of) == 1


def counts_with_the_least(monkeypatch, totals):
    """Give the counts of a tally that also sees units up to the least limit."""
    monkeypatch.setattr(limit_choices, "add_discrete_laplace", lambda values, *, scale: values)
    everybody = sum(t != 0 for t in totals)
    return take_tally(LIMITS, [everybody, *above(totals)], Fraction(1)).counts


def test_one_unit_less_moves_one_count_by_one_where_all_are_seen(monkeypatch):
    assert moves(monkeypatch, counts_with_the_least) == 1
    assert counts_with_the_least(monkeypatch, (1, 1, 2, 0, -7)) == (2, 1, 0, 1, 0)


def counts_of_both_sides(monkeypatch, totals):
    """Give the counts of units that add and of units that take away, without noise."""
    monkeypatch.setattr(limit_choices, "add_discrete_laplace", lambda values, *, scale: values)
    sides = [[s * t for t in totals if s * t > 0] for s in (1, -1)]
    told = [x for side in sides for x in (len(side), *above(side))]
    halves = limit_choices.sides_of(Private(told), len(LIMITS))
    assert len(halves) == 2
    return [x for half in halves for x in take_tally(LIMITS, half, Fraction(1)).counts]


def test_one_unit_less_moves_one_count_of_both_sides_by_one(monkeypatch):
    assert moves(monkeypatch, counts_of_both_sides) == 1
    assert counts_of_both_sides(monkeypatch, (1, 2, 5, -7)) == [1, 1, 0, 1, 0, 0, 0, 0, 1, 0]


def test_counting_a_unit_at_every_limit_would_be_noticed(monkeypatch):
    """A planted fault: the numbers of units above each limit are released with the noise of one count."""
    assert moves(monkeypatch, lambda _, totals: above(totals)) == len(LIMITS)


def drawn(totals, epsilon, draws):
    """Draw the counts of the tally that tell two databases apart best: the last octave."""
    return Counter(take_tally(LIMITS, above(totals), epsilon).counts[-1] for _ in range(draws))


def test_the_tally_is_as_private_as_it_says():
    epsilon, draws = Fraction(1), 40_000
    one, other = drawn((9, 3, 2), epsilon, draws), drawn((3, 2), epsilon, draws)
    assert worst_ratio(one, other, draws) <= 1
    assert worst_ratio(other, one, draws) <= 1


def test_half_of_the_noise_would_be_noticed():
    """A planted fault: noise of half the scale, and the audit above has teeth."""
    draws = 40_000
    one, other = (drawn(x, Fraction(2), draws) for x in ((9, 3, 2), (3, 2)))
    assert max(worst_ratio(one, other, draws), worst_ratio(other, one, draws)) > 1


OCTAVES = tuple(2**k for k in range(12))
BOUND = ClippedContribution(
    Contributions(None, lambda chosen: None), OCTAVES, positive=True, partners=("m",), octaves=True
)


def noise_of(share):
    """Give noise whose limit is yet to be tallied."""
    return LimitToTally(Fraction(1), share, BOUND, OCTAVES[-1], Fraction(3, 10))


CROWD, GROUP = [3000] + [0] * 11, [3040] + [40] * 11


@pytest.fixture
def exact_tally(monkeypatch):
    """Take tallies without noise, so that which branch is taken is no matter of luck."""
    monkeypatch.setattr(limit_choices, "add_discrete_laplace", lambda values, *, scale: values)


@pytest.mark.parametrize("counted", [CROWD, GROUP])
def test_what_is_spent_on_either_branch_is_what_was_charged(monkeypatch, exact_tally, counted):
    looks = []
    monkeypatch.setattr(
        limited, "look_again", lambda above, edge, epsilon: looks.append(epsilon) or 40
    )
    noise = noise_of(LaplaceShare(Fraction(7, 10))).settled(Private(counted), 1)
    assert isinstance(noise, TalliedLimit)
    assert noise.choosing + sum(looks) + noise.share.epsilon == 1
    assert noise.law.size * noise.share.epsilon == noise.limit
    assert bool(looks) == (counted is GROUP)


def both_sides(adding, taking):
    """Give what is told of units that add and of units that take away: how many are above each octave's end."""
    return Private([*adding, *taking])


def test_a_second_look_at_both_sides_is_paid_once(monkeypatch, exact_tally):
    looks = []
    monkeypatch.setattr(
        limited, "look_again", lambda above, edge, epsilon: looks.append(epsilon) or 40
    )
    noise = noise_of(LaplaceShare(Fraction(7, 10))).settled(both_sides(GROUP, GROUP), 1)
    assert len(looks) == 2  # of units none of which stands on both sides
    assert noise.choosing + looks[0] + noise.share.epsilon == 1


def test_what_is_cut_leans_to_the_side_where_units_are(exact_tally):
    """Nobody takes away, so nothing that is cut off would have lowered the sum."""
    falling = [4000 >> k for k in range(12)]
    noise = replace(noise_of(LaplaceShare(Fraction(7, 10))), bound=replace(BOUND, positive=False))
    level = Fraction(95, 100)
    low, _, high = noise.settled(both_sides(falling, [0] * 12), 1).usually_cut(Fraction(1), level)
    assert 0 <= low <= high
    low, _, high = noise.settled(both_sides([0] * 12, falling), 1).usually_cut(Fraction(1), level)
    assert low <= high <= 0
    low, _, high = noise.settled(both_sides(falling, falling), 1).usually_cut(Fraction(1), level)
    assert low < 0 < high


def test_what_is_said_beforehand_holds_on_either_branch(exact_tally):
    noise = noise_of(LaplaceShare(Fraction(7, 10)))
    said = {x.limit: x.law.size for x in noise.candidates(1)}
    for counted in (CROWD, GROUP):
        drawn = noise.settled(Private(counted), 1)
        assert drawn.law.size <= said[drawn.limit]


def test_with_normal_noise_nothing_is_looked_at_again(monkeypatch, exact_tally):
    monkeypatch.setattr(limited, "look_again", None)
    noise = noise_of(NormalShare(Fraction(1, 100))).settled(Private(GROUP), 1)
    assert noise.share == NormalShare(Fraction(1, 100))


def test_a_second_look_that_is_not_taken_off_would_be_noticed(monkeypatch, exact_tally):
    """A planted fault: the second look is for nothing."""
    monkeypatch.setattr(limited, "LOOKING", Fraction(0))
    looks = []
    monkeypatch.setattr(
        limited, "look_again", lambda above, edge, epsilon: looks.append(Fraction(1, 5)) or 40
    )
    monkeypatch.setattr(limited, "confirmed", lambda tally, counted, epsilon: 11)
    noise = noise_of(LaplaceShare(Fraction(7, 10))).settled(Private(GROUP), 1)
    assert noise.choosing + sum(looks) + noise.share.epsilon > 1


# ── units in groups ──────────────────────────────────────────────────────────────────────────────


def counted_units(limits):
    """Give the bound of a count of units by group: a unit adds one to each of its groups."""
    made = Contributions(None, lambda chosen: None)
    return ClippedContribution(made, limits, positive=True, partners=("m",), within=1, octaves=True)


def test_the_two_laws_are_compared_at_a_usual_number_of_groups():
    octaves = tuple(2**k for k in range(21))
    noise = LimitToTally(
        Fraction(1),
        LaplaceShare(Fraction(7, 10)),
        counted_units(octaves),
        octaves[-1],
        Fraction(3, 10),
    )
    assert noise.either() == (Fraction(7, 10), limited.USUAL_GROUPS, limited.USUAL_GROUPS)


def test_a_number_of_listed_groups_is_no_cap_of_all_groups():
    """A unit in ten listed groups and in others is cut down by all of them together, so it may lose more than ten."""
    measures = [SimpleNamespace(column="m")]
    release = SimpleNamespace(measures=measures, ranked=[], wide=frozenset(), tallied=False)
    fixed = Certificate("stability", "p", {"m": GlobalBound(Fraction(10))}, 36, 10, 1, (), ())
    chosen = Certificate("truncation", "p", {"m": counted_units((1, 2, 4, 36))}, 0, 0, 0, (), ())
    together = bounding._limited([fixed, chosen], SimpleNamespace(release=release))
    assert together.bounds["m"].cap == 36
    lost = Fraction(10) - 10 * Fraction(4, 46)
    assert lost <= together.bounds["m"].cap - 4 < 36
    assert lost > 10 - 4
