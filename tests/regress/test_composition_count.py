"""A peer's fault: the count of a repeated release is ignored, so five releases cost one.

dp-accounting 0.6, privacy-loss accountant, randomized response: five times ε = 1 reports ε = 1.
"""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from secant.ledger.accounting import Accountant, tally
from secant.ledger.accounting.dp_accounting_bridge import dp_accounting_epsilon
from secant.noise.events import (
    ApproximateEvent,
    Event,
    GaussianEvent,
    LaplaceEvent,
    PureEvent,
    Repeated,
)


def test_the_peer_still_has_the_fault() -> None:
    """If this fails the peer was repaired, and DEPENDENCIES.md should say so."""
    peer = pytest.importorskip("dp_accounting")
    pld = pytest.importorskip("dp_accounting.pld")
    relation = peer.NeighboringRelation.REPLACE_ONE
    # Two buckets and this noise are randomized response with ε = 1.
    one = peer.RandomizedResponseDpEvent(2 / (1 + math.e), 2)
    accountant = pld.PLDAccountant(relation)
    accountant.compose(one, 5)
    assert accountant.get_epsilon(1e-9) == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize(
    "event",
    [PureEvent(1), ApproximateEvent(1, "1e-12"), LaplaceEvent(1), GaussianEvent(2)],
    ids=lambda event: event.kind,
)
def test_the_bridge_counts(event: Event) -> None:
    pytest.importorskip("dp_accounting")
    delta = Fraction(1, 10**9)
    once, packed = tally([event]), tally([Repeated(event, 5)])
    one, five = dp_accounting_epsilon(once, delta), dp_accounting_epsilon(packed, delta)
    assert one is not None
    assert five is not None
    assert five > 2 * one
    ours = Accountant().total([Repeated(event, 5)], delta=delta, adaptive=False).epsilon
    assert float(five) == pytest.approx(float(ours), rel=1e-3)


def test_five_times_one_is_five() -> None:
    five = Accountant().total([Repeated(PureEvent(1), 5)], delta="1e-9", adaptive=False)
    assert Fraction(4999, 1000) < five.epsilon <= 5
