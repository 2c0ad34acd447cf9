"""What usually finds no unit: never more than lies beyond the limit, and less the fewer values were counted."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from secant.noise import assigned as module
from secant.noise.assigned import AssignedLimit, LimitToAssign
from secant.noise.lost_values import _beyond, usually_lost
from secant.noise.measure_noise import LaplaceShare
from secant.noise.mechanisms import limits as limit_choices
from secant.noise.secrecy import Private
from secant.noise.tail import OctaveTally
from secant.sensitivity.certificate import ClippedContribution, Contributions

EDGES = (0.5, *(2.0**k for k in range(8)))
TALLY = OctaveTally(EDGES, (0, 400, 900, 700, 0, 0, 0, 0), 1.0)
LAST = 3


@pytest.mark.parametrize("share", [0.01, 0.2, 0.9])
@pytest.mark.parametrize("limit", [1, 3, 7])
def test_what_lies_beyond_a_limit_is_the_mean_of_what_is_too_many(share, limit):
    size = 20
    chances = [math.comb(size, k) * share**k * (1 - share) ** (size - k) for k in range(size + 1)]
    mean = sum(max(k - limit, 0) * p for k, p in enumerate(chances))
    assert _beyond(size, share, limit) == pytest.approx(mean)


def test_far_beyond_the_normal_law_serves():
    exact = sum(max(k - 70, 0) * math.comb(400, k) * 0.2**k * 0.8 ** (400 - k) for k in range(401))
    assert _beyond(400, 0.2, 70) == pytest.approx(exact, rel=0.02)


def test_the_fewer_values_are_counted_the_fewer_are_lost():
    lost = [usually_lost(TALLY, LAST, 2, counted, 0.95) for counted in (50, 500, 4000, math.inf)]
    assert lost == sorted(lost)
    assert lost[0] < 30 < lost[-1]


def test_nothing_is_lost_that_is_not_there():
    everything = sum(n * 2.0 ** (k - 0.4) for k, n in enumerate(TALLY.counts))
    assert usually_lost(TALLY, LAST, 1, math.inf, 0.95) < 2 * everything


def test_all_that_is_spent_is_charged(monkeypatch):
    """The tally, the choice and the noise together take the measure's epsilon."""
    spent = []
    monkeypatch.setattr(
        module,
        "take_tally",
        lambda ends, above, epsilon: (
            spent.append(epsilon) or limit_choices.take_tally(ends, above, epsilon)
        ),
    )
    monkeypatch.setattr(
        module,
        "choose_assigned",
        lambda limits, assigned, choosing, noising: spent.extend((choosing, noising)) or 2,
    )
    made = Contributions(None, lambda chosen: None)
    limits = (1, 2, 4)
    bound = ClippedContribution(made, limits, positive=True, partners=("m",), assigned=True)
    share = LaplaceShare(Fraction(3, 5))
    noise = LimitToAssign(Fraction(1), share, bound, 4, Fraction(2, 5))
    settled = noise.settled(Private([5, 7, 8, 9, 6, 4, 1]), 1)
    assert isinstance(settled, AssignedLimit)
    assert sum(spent) == 1
    assert settled.law.size * share.epsilon == settled.limit
