"""The optimal composition of unequal releases against exact lattices, quadrature and mpmath."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from accounting_oracle import (
    binomial_delta,
    brute_curve,
    brute_delta,
    gaussian_delta,
    invert,
    laplace_delta,
    lattice_optimum,
    mp,
    two_laplaces_delta,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from chance import LONG
from secant.ledger.accounting import losses
from secant.ledger.accounting.advanced import advanced_second
from secant.ledger.accounting.dp_accounting_bridge import dp_accounting_epsilon
from secant.ledger.accounting.losses import Losses, _epsilon, loss_distribution
from secant.ledger.accounting.tally import tally
from secant.noise.events import (
    ApproximateEvent,
    Event,
    GaussianEvent,
    LaplaceEvent,
    PureEvent,
    Repeated,
    ZCdpEvent,
)

DELTA = Fraction(1, 10**6)


def _loss(events: list[Event], delta: Fraction = DELTA) -> Fraction:
    found = loss_distribution(tally(events), delta)
    assert found is not None
    return found


@pytest.mark.parametrize("delta", [1e-6, 1e-12])
def test_a_thousand_unequal_releases_are_within_a_percent(delta: float) -> None:
    # No two alike; the oracle's lattice holds every loss exactly.
    numerators = [5 + i for i in range(1000 if LONG else 250)]
    best = lattice_optimum(numerators, 2000, delta)
    found = float(_loss([PureEvent(Fraction(n, 2000)) for n in numerators], Fraction(delta)))
    assert best * (1 - 1e-9) <= found <= best * 1.01
    assert found <= best * 1.0005  # what it really does


@pytest.mark.parametrize("spread", [1, 7, 60])
def test_unequal_releases_far_from_the_grid(spread: int) -> None:
    # Few large and many small releases, all on the lattice of 1/1009.
    numerators = [1000 // spread, *(1 + (17 * i) % spread for i in range(80))]
    best = lattice_optimum(numerators, 1009, 1e-5)
    found = float(_loss([PureEvent(Fraction(n, 1009)) for n in numerators], Fraction(1, 10**5)))
    assert best * (1 - 1e-9) <= found <= best * 1.002


releases = st.lists(
    st.tuples(st.fractions("1/50", 3, max_denominator=97), st.sampled_from([0, 1e-4, 0.01])),
    min_size=1,
    max_size=6,
)


@given(releases, st.sampled_from([1e-3, 0.05, 0.3]))
@settings(max_examples=1500 if LONG else 60, deadline=None)
def test_it_holds_against_brute_force(rows: list[tuple[Fraction, float]], delta: float) -> None:
    events: list[Event] = [ApproximateEvent(e, d) if d else PureEvent(e) for e, d in rows]
    found = loss_distribution(tally(events), Fraction(delta))
    if found is None:
        assert sum(d for _, d in rows) > delta * 0.99
        return
    curve = brute_curve(rows)
    assert curve(found) <= mp(Fraction(delta))
    best = invert(curve, delta, sum(e for e, _ in rows), steps=24)
    assert mp(found) <= best * mpmath.mpf("1.002") + mpmath.mpf("1e-9")


@pytest.mark.parametrize(("epsilon", "count"), [("0.01", 500), ("0.3", 50), ("3", 4), ("20", 3)])
def test_equal_releases_meet_the_exact_optimum(epsilon: str, count: int) -> None:
    counts = tally([Repeated(PureEvent(epsilon), count)])
    found, best = loss_distribution(counts, DELTA), advanced_second(counts, DELTA)
    assert found is not None
    assert best is not None
    assert best * (1 - Fraction(1, 10**8)) <= found <= best * (1 + Fraction(1, 10**4))
    assert binomial_delta(Fraction(epsilon), count, found) <= mp(DELTA)


@pytest.mark.parametrize("epsilon", ["0.05", "1", "9"])
@pytest.mark.parametrize("delta", ["1e-6", "0.01"])
def test_one_and_two_laplace_releases(epsilon: str, delta: str) -> None:
    size, whole = Fraction(epsilon), Fraction(delta)
    one = _loss([LaplaceEvent(size)], whole)
    assert laplace_delta(size, one) <= mp(whole)
    best = max(mpmath.mpf(0), mp(size) + 2 * mpmath.log(1 - mp(whole)))
    assert mp(one) <= best * mpmath.mpf("1.002")
    two = _loss([LaplaceEvent(size), LaplaceEvent(size / 3)], whole)
    assert two_laplaces_delta(size, size / 3, two) <= mp(whole)
    if two > 0:
        below = two * Fraction(998, 1000)
        assert two_laplaces_delta(size, size / 3, below) > mp(whole)


@pytest.mark.parametrize("sigma", ["1/2", "3", "40"])
@pytest.mark.parametrize("delta", ["1e-5", "1e-40"])
def test_a_gaussian_release(sigma: str, delta: str) -> None:
    found = _loss([Repeated(GaussianEvent(sigma), 4)], Fraction(delta))
    shift = 2 / mp(Fraction(sigma))
    assert gaussian_delta(shift, found) <= mp(Fraction(delta))
    assert gaussian_delta(shift, found * Fraction(9999, 10_000)) > mp(Fraction(delta))


def test_a_gaussian_beside_a_pure_release() -> None:
    # δ(ε) = p·δ_G(ε - e) + (1-p)·δ_G(ε + e): the pure loss is ±e, the Gaussian curve is known.
    events: list[Event] = [GaussianEvent(2), PureEvent("0.7")]
    found = _loss(events)
    e, shift = mpmath.mpf("0.7"), mpmath.mpf("0.5")
    p = 1 / (1 + mpmath.exp(-e))

    def delta_of(g: mpmath.mpf) -> mpmath.mpf:
        return p * gaussian_delta(shift, g - e) + (1 - p) * gaussian_delta(shift, g + e)

    assert delta_of(mp(found)) <= mp(DELTA)
    assert delta_of(mp(found) * mpmath.mpf("0.999")) > mp(DELTA)


MIXED: list[list[Event]] = [
    [Repeated(PureEvent("0.1"), 100)],
    [Repeated(LaplaceEvent("0.1"), 100)],
    [Repeated(GaussianEvent(10), 10)],
    [
        Repeated(LaplaceEvent(1), 10),
        Repeated(PureEvent("0.1"), 10),
        GaussianEvent(3),
        Repeated(ApproximateEvent("0.3", "1e-9"), 10),
    ],
]


@pytest.mark.parametrize("events", MIXED, ids=["pure", "laplace", "gaussian", "mixed"])
def test_it_agrees_with_dp_accounting(events: list[Event]) -> None:
    pytest.importorskip("dp_accounting")
    other = dp_accounting_epsilon(tally(events), DELTA)
    assert other is not None
    assert float(_loss(events)) == pytest.approx(float(other), rel=2e-4)


def test_what_it_leaves_to_others() -> None:
    assert loss_distribution(tally([ZCdpEvent(1), PureEvent(1)]), DELTA) is None
    assert loss_distribution({}, DELTA) is None
    assert loss_distribution(tally([PureEvent(1)]), Fraction(0)) is None
    assert loss_distribution(tally([PureEvent(1)]), Fraction(1, 10**260)) is None
    assert loss_distribution(tally([Repeated(PureEvent(1), 10**7)]), DELTA) is None
    assert loss_distribution(tally([GaussianEvent("1e-9")]), DELTA) is None


def test_extreme_sizes_hold() -> None:
    for low in ("1e-30", "1e-12", "1e-3"):
        for high in ("1e-30", "1e-3", "1e3", "1e9"):
            events: list[Event] = [PureEvent(low), LaplaceEvent(high), PureEvent(high)]
            found = loss_distribution(tally(events), Fraction(1, 3))
            if found is not None:
                pures = [(Fraction(low), 0), (Fraction(high), 0)]
                # Dropping the Laplace release can only make it easier.
                assert brute_delta(pures, found) <= mpmath.mpf(1) / 3


def test_small_deltas_keep_their_meaning() -> None:
    # A Fourier transform would drown these; only non-negative numbers are added here.
    for exponent in (15, 40, 120, 240):
        delta = Fraction(1, 10**exponent)
        events: list[Event] = [Repeated(PureEvent("0.2"), 60), PureEvent("0.3")]
        found = _loss(events, delta)
        best = lattice_optimum([2] * 60 + [3], 10, float(delta))
        assert best * (1 - 1e-9) <= float(found) <= best * 1.001


def test_the_grid_does_not_depend_on_the_order_of_events() -> None:
    rows: list[Event] = [PureEvent(Fraction(n, 90)) for n in range(1, 30)]
    assert float(_loss(rows)) == pytest.approx(float(_loss(rows[::-1])), rel=1e-7)
    assert np.isfinite(float(_loss(rows)))


def test_a_delta_near_one_costs_nothing() -> None:
    found = _loss([Repeated(PureEvent("0.3"), 8), GaussianEvent(4)], Fraction(99, 100))
    assert found == 0


def test_a_loss_beyond_every_bound_has_no_epsilon() -> None:
    # One cell at loss 1 and a tenth at infinity: δ never falls below a tenth.
    whole = Losses(first=1, masses=np.array([0.9]), infinite=0.1, terms=1)
    assert _epsilon(whole, 1.0, 0.05) is None
    found = _epsilon(whole, 1.0, 0.2)
    assert found is not None
    # 0.9·(1 - e^(ε-1)) + 0.1 = 0.2
    assert float(found) == pytest.approx(1 + np.log(8 / 9), rel=1e-8)


def _shares_rounded_down(offset: losses.Row, step: float) -> losses.Row:
    return np.zeros_like(offset)


def _shares_slightly_low(offset: losses.Row, step: float) -> losses.Row:
    # Linear in the loss instead of in e^(-loss): Σ mass·e^(-loss) is no longer kept.
    return offset * 0.99


@pytest.mark.parametrize("fault", [_shares_rounded_down, _shares_slightly_low])
def test_planted_rounding_faults_are_caught(
    fault: Callable[[losses.Row, float], losses.Row], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(losses, "_share", fault)
    rows = [(Fraction(n, 97), 0) for n in (31, 47, 53, 71, 83)]
    found = _loss([PureEvent(e) for e, _ in rows], Fraction(1, 20))
    assert brute_delta(rows, found) > mpmath.mpf(1) / 20
