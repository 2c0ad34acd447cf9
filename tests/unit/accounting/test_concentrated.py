"""Rényi divergences and their conversion against integrals, sums and the exact Gaussian curve."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import pytest
from accounting_oracle import binomial_delta, gaussian_delta, invert, mp
from hypothesis import given, settings
from hypothesis import strategies as st

from secant.ledger.accounting.concentrated import (
    from_renyi,
    gaussian,
    gaussian_epsilon,
    renyi,
    renyi_divergence,
    zero_concentrated,
)
from secant.ledger.accounting.tally import tally
from secant.noise.events import (
    ApproximateEvent,
    GaussianEvent,
    LaplaceEvent,
    MetricEvent,
    PureEvent,
    RandomEvent,
    RenyiEvent,
    Repeated,
    ZCdpEvent,
)

ORDERS = [Fraction(11, 10), Fraction(2), Fraction(13, 2), Fraction(40)]
DELTA = Fraction(1, 10**6)


@pytest.mark.parametrize("order", ORDERS, ids=str)
@pytest.mark.parametrize("epsilon", ["0.001", "0.3", "4"])
def test_divergence_of_randomized_response(order: Fraction, epsilon: str) -> None:
    a, e = mp(order), mpmath.mpf(epsilon)
    p, q = 1 / (1 + mpmath.exp(-e)), 1 / (1 + mpmath.exp(e))
    expected = mpmath.log(p**a * q ** (1 - a) + q**a * p ** (1 - a)) / (a - 1)
    _close_above(renyi_divergence(PureEvent(epsilon), order), expected)


@pytest.mark.parametrize("order", ORDERS, ids=str)
@pytest.mark.parametrize("epsilon", ["0.001", "0.3", "4"])
def test_divergence_of_laplace(order: Fraction, epsilon: str) -> None:
    a, e = mp(order), mpmath.mpf(epsilon)

    def density(x: mpmath.mpf) -> mpmath.mpf:
        return mpmath.exp(-a * abs(x) - (1 - a) * abs(x - e)) / 2

    # The two tails are exponentials, integrated by hand; between the centers by quadrature.
    tails = (mpmath.exp((a - 1) * e) + mpmath.exp(-a * e)) / 2
    expected = mpmath.log(tails + mpmath.quad(density, [0, e])) / (a - 1)
    _close_above(renyi_divergence(LaplaceEvent(epsilon), order), expected)


@pytest.mark.parametrize("order", ORDERS[:3], ids=str)
def test_divergence_of_gaussian(order: Fraction) -> None:
    a, m = mp(order), mpmath.mpf(1) / 2

    def density(x: mpmath.mpf) -> mpmath.mpf:
        return mpmath.npdf(x) ** a * mpmath.npdf(x - m) ** (1 - a)

    # Completing the square puts the mass of the integrand around (1-α)·m.
    middle = (1 - a) * m
    integral = mpmath.quad(density, [middle + step for step in range(-24, 25, 6)])
    _close_above(renyi_divergence(GaussianEvent(2), order), mpmath.log(integral) / (a - 1))


def _close_above(found: Fraction | None, expected: mpmath.mpf) -> None:
    assert found is not None
    assert abs(mp(found) / expected - 1) < mpmath.mpf(10) ** -15
    assert mp(found) >= expected * (1 - mpmath.mpf(10) ** -20)


def test_what_has_no_divergence() -> None:
    for leaf in (MetricEvent(1), RandomEvent(1, 0, "0.1"), ApproximateEvent(1, "0.1")):
        assert renyi_divergence(leaf, Fraction(2)) is None


def test_a_listed_curve_is_interpolated_from_above() -> None:
    # A true curve (Gaussian, α/2) listed at a few orders must stay below what is read off between.
    listed = [Fraction(2), Fraction(4), Fraction(10), Fraction(64)]
    event = RenyiEvent([(order, order / 2) for order in listed])
    for order in [Fraction(n, 7) for n in range(8, 448)]:
        read = renyi_divergence(event, order)
        assert read is not None
        assert read >= order / 2
    for order in listed:
        assert renyi_divergence(event, order) == order / 2
    assert renyi_divergence(event, Fraction(65)) is None


@given(
    st.fractions("11/10", 200, max_denominator=20),
    st.floats(1e-3, 3),
    st.floats(1e-12, 0.3),
)
@settings(max_examples=80, deadline=None)
def test_conversion_holds_for_gaussians(order: Fraction, shift: float, delta: float) -> None:
    square = Fraction(shift) ** 2
    epsilon = from_renyi(order, order * square / 2, Fraction(delta))
    assert gaussian_delta(shift, epsilon) <= mp(Fraction(delta))


@pytest.mark.parametrize(("epsilon", "count"), [("0.1", 40), ("0.5", 20), ("0.01", 200), ("2", 3)])
def test_sums_of_divergences_hold_and_are_close(epsilon: str, count: int) -> None:
    counts = tally([Repeated(PureEvent(epsilon), count)])
    best = invert(
        lambda g: binomial_delta(Fraction(epsilon), count, g), DELTA, count * Fraction(epsilon)
    )
    by_renyi, by_zcdp = renyi(counts, DELTA), zero_concentrated(counts, DELTA)
    assert by_renyi is not None
    assert by_zcdp is not None
    assert best <= mp(by_renyi) <= best * mpmath.mpf("1.12")
    assert by_renyi <= by_zcdp * (1 + Fraction(1, 10**6))


@pytest.mark.parametrize("sigma", ["0.3", "1", "10", "423/10"])
@pytest.mark.parametrize("delta", ["1e-6", "1e-30", "0.2"])
def test_gaussians_compose_exactly(sigma: str, delta: str) -> None:
    counts = tally([Repeated(GaussianEvent(sigma), 8), GaussianEvent(5)])
    found = gaussian(counts, Fraction(delta))
    assert found is not None
    shift = mpmath.sqrt(8 / mp(Fraction(sigma)) ** 2 + mpmath.mpf(1) / 25)
    assert gaussian_delta(shift, found) <= mp(Fraction(delta))
    if found:
        assert gaussian_delta(shift, found * Fraction(999_999, 1_000_000)) > mp(Fraction(delta))


def test_composed_gaussian_figures_of_beyond() -> None:
    # BEYOND §8: k releases for a total of (1, 1e-6) need σ = 13.4 (k=10) and 42.3 (k=100).
    for count, sigma in ((10, "13.4"), (100, "42.3")):
        epsilon = gaussian_epsilon(count / Fraction(sigma) ** 2, DELTA)
        assert abs(epsilon - 1) < Fraction(1, 200)


def test_zcdp_adds_rho() -> None:
    apart = tally([Repeated(ZCdpEvent("0.01"), 5), GaussianEvent(10), PureEvent("0.2")])
    together = tally([ZCdpEvent(Fraction(5, 100) + Fraction(1, 200) + Fraction(4, 200))])
    assert zero_concentrated(apart, DELTA) == zero_concentrated(together, DELTA)
    assert zero_concentrated(tally([RenyiEvent([(2, 1)])]), DELTA) is None


def test_own_deltas_are_paid_first() -> None:
    pure, split = (
        tally([PureEvent(1), ZCdpEvent("0.1")]),
        tally([ApproximateEvent(1, "5e-7"), ZCdpEvent("0.1")]),
    )
    plain, charged = renyi(pure, DELTA), renyi(split, DELTA)
    assert plain is not None
    assert charged is not None
    assert charged > plain
    assert renyi(split, Fraction(4, 10**7)) is None


def test_extreme_parameters_stay_finite() -> None:
    smallest = Fraction(1, 10**300)
    for event in (PureEvent("1e-30"), LaplaceEvent("1e-30"), PureEvent("1e9"), LaplaceEvent("1e9")):
        found = renyi(tally([event]), smallest)
        assert found is not None
        assert found > 0
    assert gaussian(tally([GaussianEvent("1e30")]), Fraction(1, 2)) == 0
