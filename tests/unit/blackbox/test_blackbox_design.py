"""m, k, γ and ρ: the three rows of Table 1, by three theorems, against brute force."""

import math
from fractions import Fraction

import pytest
from scipy import optimize, stats

from secant.blackbox import design
from secant.blackbox.design import METHODS, roomy
from secant.errors import UsageError

GAMMAS = (0.9, 0.5, 0.3, 0.1, 0.05, 0.02, 0.01, 0.001)
SIZES = (1, 2, 5, 19, 20, 100, 999, 1500, 10_000)


def misses(m: int, k: int) -> Fraction:
    """P(G > k-th of m) for a continuous law: its rank among m + 1 is uniform."""
    return Fraction(m + 1 - k, m + 1)


@pytest.mark.parametrize("gamma", GAMMAS)
def test_exchangeability_takes_the_least_m_and_the_least_k(gamma):
    exact = Fraction(str(gamma))
    found = design(gamma=gamma)
    assert misses(found.m, found.k) <= exact
    assert found.m == 1 or min(misses(found.m - 1, k) for k in range(1, found.m)) > exact
    for m in SIZES:
        fitting = [k for k in range(1, m + 1) if misses(m, k) <= exact]
        if fitting:
            assert design(gamma=gamma, m=m).k == min(fitting)
        else:
            with pytest.raises(UsageError, match="cannot be reached") as caught:
                design(gamma=gamma, m=m)
            assert f"m = {math.ceil(1 / exact) - 1} or more" in caught.value.hint


@pytest.mark.parametrize("m", SIZES)
def test_the_least_gamma_for_m(m):
    found = design(m=m)
    assert (found.gamma, found.k) == (Fraction(1, m + 1), m)
    assert design(gamma=found.gamma, m=m).k == m


def test_the_figures_of_the_theory_notes():
    assert design(gamma=0.05).m == 19
    assert design(gamma=0.01).m == 99
    assert design(gamma=0.05, method="dkw").m == 1305
    assert design(gamma=0.01, method="dkw").m == 41971
    with_confidence = design(gamma=0.05, m=1500, method="binomial", confidence=0.99)
    assert with_confidence.k == 1445


@pytest.mark.parametrize("gamma", GAMMAS)
def test_dkw_first_row_is_the_minimum_over_rho(gamma):
    found = design(gamma=gamma, method="dkw")

    def effort(rho: float) -> float:
        return math.log(1 / rho) / (2 * (gamma - rho) ** 2)

    top = min(gamma, 0.5) * (1 - 1e-9)
    best = optimize.minimize_scalar(
        effort, bounds=(1e-12, top), method="bounded", options={"xatol": 1e-12}
    )
    assert found.m == pytest.approx(math.ceil(best.fun), abs=1)
    assert found.m >= effort(float(found.rho)) * (1 - 1e-12)
    assert 0 < found.rho < min(found.gamma, Fraction(1, 2))
    band = float(found.rho) + math.sqrt(math.log(1 / float(found.rho)) / (2 * found.m))
    assert found.m >= found.k >= found.m * (1 - gamma + band) * (1 - 1e-12)


@pytest.mark.parametrize("m", [20, 100, 1000, 10_000, 10**6])
def test_dkw_second_and_third_row_are_the_minimum_over_rho(m):
    def band(rho: float) -> float:
        return rho + math.sqrt(math.log(1 / rho) / (2 * m))

    best = optimize.minimize_scalar(
        band, bounds=(1e-12, 0.5), method="bounded", options={"xatol": 1e-14}
    )
    least = design(m=m, method="dkw")
    assert float(least.gamma) == pytest.approx(best.fun, rel=1e-9)
    assert least.gamma >= Fraction(band(float(least.rho))) * (1 - Fraction(1, 10**14))
    assert least.k == m
    both = design(gamma=0.6, m=m, method="dkw")
    assert both.k == math.ceil(m * (0.4 + best.fun))
    with pytest.raises(UsageError, match="cannot be reached"):
        design(gamma=float(least.gamma) * 0.99, m=m, method="dkw")


@pytest.mark.parametrize("gamma", [0.5, 0.1, 0.05, 0.01])
@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.999])
def test_binomial_is_the_first_k_that_suffices(gamma, confidence):
    rho = 1 - confidence
    least = design(gamma=gamma, method="binomial", confidence=confidence)
    assert (1 - gamma) ** least.m <= rho * (1 + 1e-9)
    assert least.m == 1 or (1 - gamma) ** (least.m - 1) > rho * (1 - 1e-9)
    for m in (least.m, least.m + 3, 10 * least.m, 1500):
        if m < least.m:
            continue
        k = design(gamma=gamma, m=m, method="binomial", confidence=confidence).k
        assert stats.binom.sf(k - 1, m, 1 - gamma) <= rho * (1 + 1e-9)
        assert k == 1 or stats.binom.sf(k - 2, m, 1 - gamma) > rho * (1 - 1e-9)
    with pytest.raises(UsageError, match="cannot be reached"):
        design(gamma=gamma / 2, m=least.m - 1 or 1, method="binomial", confidence=0.9999)


def test_binomial_least_gamma():
    found = design(m=100, method="binomial", confidence=0.99)
    assert float(found.gamma) == pytest.approx(1 - 0.01**0.01, rel=1e-12)
    assert found.k == 100
    assert (1 - found.gamma) ** 100 <= found.rho
    assert found.total == 1 - (1 - found.gamma) * Fraction(99, 100)


def test_a_roomy_design_keeps_gamma_and_takes_ten_times_the_least_m():
    assert roomy(0.05).m == 199
    assert roomy(0.05).k == 190
    assert roomy(0.05, "dkw").m == 1305
    assert roomy(0.05, "binomial", 0.99).m == 10 * 91 - 1


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("gamma", [0, 1, -0.1, 2, math.nan, math.inf, "x", 1e-13, True, None])
def test_a_gamma_that_cannot_be_meant(gamma, method):
    with pytest.raises(UsageError) as caught:
        design(gamma=gamma, method=method, confidence=0.9 if method == "binomial" else None)
    assert caught.value.code in ("USE-001", "USE-004")


@pytest.mark.parametrize("m", [0, -1, 1.5, True, "9"])
def test_an_m_that_cannot_be_meant(m):
    with pytest.raises(UsageError):
        design(m=m)


def test_other_slips():
    with pytest.raises(UsageError, match="method"):
        design(gamma=0.1, method="hoeffding")
    with pytest.raises(UsageError, match="confidence"):
        design(gamma=0.1, method="binomial")
    with pytest.raises(UsageError, match="confidence"):
        design(gamma=0.1, confidence=0.9)
    with pytest.raises(UsageError, match="confidence"):
        design(gamma=0.1, method="binomial", confidence=1.0)
    with pytest.raises(UsageError, match="no gamma below 1"):
        design(m=1, method="dkw")
