"""Closed composition formulas against brute force over outcomes, exact fractions and mpmath."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import pytest
from accounting_oracle import binomial_delta, brute_delta, invert, mp, printed_delta
from hypothesis import given, settings
from hypothesis import strategies as st

from chance import LONG
from secant.errors import BudgetError
from secant.ledger.accounting.advanced import (
    advanced_first,
    advanced_second,
    optimal_identical,
    self_adaptive,
)
from secant.ledger.accounting.basic import basic_composition
from secant.ledger.accounting.tally import slack, tally, total_delta
from secant.noise.events import (
    ApproximateEvent,
    Event,
    GaussianEvent,
    LaplaceEvent,
    PureEvent,
    Repeated,
)

SIZES = [Fraction(1, 100), Fraction(1, 10), Fraction(1, 2), Fraction(2), Fraction(7)]
DELTAS = [Fraction(1, 10**9), Fraction(1, 10**3), Fraction(1, 5)]


def test_basic_composition_is_exact() -> None:
    events = [Repeated(PureEvent("0.1"), 3), ApproximateEvent("0.2", "1e-6"), LaplaceEvent("1/3")]
    assert basic_composition(events) == (Fraction(5, 6), Fraction(1, 10**6))
    assert basic_composition([]) == (0, 0)
    thirds = [PureEvent(Fraction(1, n)) for n in range(1, 400)]
    assert basic_composition(thirds)[0] == sum(Fraction(1, n) for n in range(1, 400))


def test_basic_composition_refuses_what_has_no_epsilon() -> None:
    with pytest.raises(BudgetError) as refusal:
        basic_composition([PureEvent(1), GaussianEvent(1)])
    assert refusal.value.code == "BUD-005"


def test_a_delta_above_one_says_one() -> None:
    assert basic_composition([Repeated(ApproximateEvent(1, "0.5"), 3)]) == (3, 1)


@pytest.mark.parametrize("epsilon", SIZES, ids=str)
@pytest.mark.parametrize("count", [1, 2, 3, 7, 30, 101])
def test_the_optimum_for_equal_parameters(epsilon: Fraction, count: int) -> None:
    for delta in DELTAS:
        found = optimal_identical(epsilon, count, delta)
        best = invert(lambda g: binomial_delta(epsilon, count, g), delta, count * epsilon)
        assert mp(found) >= best - mpmath.mpf(10) ** -18
        assert mp(found) <= best * (1 + mpmath.mpf(10) ** -15) + mpmath.mpf(10) ** -18
        assert binomial_delta(epsilon, count, found) <= mp(delta)


@pytest.mark.parametrize("count", [3, 10, 30])
@pytest.mark.parametrize("epsilon", SIZES[:4], ids=str)
def test_the_printed_formula_is_a_point_of_the_optimum(count: int, epsilon: Fraction) -> None:
    # The DPSQL notes give δ only at ε' = (k-2i)ε; there the optimum must reproduce ε' itself.
    for i in range(1, count // 2 + 1):
        delta = printed_delta(epsilon, count, i)
        assert abs(delta - binomial_delta(epsilon, count, (count - 2 * i) * epsilon)) < 1e-40
        if delta > mpmath.mpf(10) ** -290:
            numerator = int(mpmath.ceil(delta * mpmath.mpf(2) ** 1200))
            found = optimal_identical(epsilon, count, Fraction(numerator, 2**1200))
            assert abs(mp(found) - mp((count - 2 * i) * epsilon)) < mpmath.mpf(10) ** -12


@pytest.mark.parametrize("count", [1, 4, 9, 12])
def test_exact_randomized_response_in_fractions(count: int) -> None:
    # Odds 3:1, so ε = ln 3 and every probability is a fraction; e^ε' enters rounded down.
    up = mpmath.ceil(mpmath.log(3) * mpmath.mpf(10) ** 50)
    epsilon = Fraction(int(up), 10**50)
    for delta in (Fraction(1, 10**6), Fraction(1, 50), Fraction(1, 3)):
        found = optimal_identical(epsilon, count, delta)
        threshold = Fraction(int(mpmath.floor(mpmath.exp(mp(found)) * 10**40)), 10**40)
        below = threshold * Fraction(999_999, 1_000_000)

        def reached(t: Fraction) -> Fraction:
            return sum(
                (
                    math.comb(count, minus)
                    * max(Fraction(0), Fraction(3) ** (count - minus) - t * Fraction(3) ** minus)
                    / 4**count
                    for minus in range(count + 1)
                ),
                Fraction(0),
            )

        assert reached(threshold) <= delta * (1 + Fraction(1, 10**20))
        if found > 0:
            assert reached(below) > delta  # not a millionth better


def test_tiny_huge_and_many() -> None:
    tiny, huge = Fraction(1, 10**30), Fraction(10**9)
    assert 0 < optimal_identical(tiny, 1000, Fraction(1, 10**300)) <= 1000 * tiny
    assert optimal_identical(tiny, 1000, Fraction(1, 100)) == 0
    whole = optimal_identical(huge, 1000, Fraction(1, 2))
    assert 1000 * huge - 1 < whole <= 1000 * huge
    assert mp(whole) >= 1000 * mp(huge) + mpmath.log(mpmath.mpf(1) / 2)


releases = st.lists(
    st.tuples(st.fractions("1/50", 2, max_denominator=60), st.sampled_from([0, 1e-4, 0.02])),
    min_size=1,
    max_size=6,
)


def _events(rows: list[tuple[Fraction, float]]) -> list[Event]:
    return [ApproximateEvent(e, d) if d else PureEvent(e) for e, d in rows]


@given(releases, st.sampled_from([1e-3, 0.05, 0.3]))
@settings(max_examples=600 if LONG else 60, deadline=None)
def test_every_formula_holds_against_brute_force(
    rows: list[tuple[Fraction, float]], delta: float
) -> None:
    counts, whole = tally(_events(rows)), Fraction(delta)
    for theorem in (advanced_first, self_adaptive, advanced_second):
        found = theorem(counts, whole)
        if found is not None:
            assert brute_delta(rows, found) <= mp(whole) * (1 + mpmath.mpf(10) ** -30)


@given(releases, st.sampled_from([1e-6, 0.01, 0.2]))
@settings(max_examples=600 if LONG else 60, deadline=None)
def test_formulas_as_written_in_mpmath(rows: list[tuple[Fraction, float]], rest: float) -> None:
    counts = tally(_events(rows))
    whole = total_delta(counts, Fraction(rest))
    d = mp(slack(counts, whole))
    assert abs(d / mp(rest) - 1) < 1e-12
    e = [mp(pair[0]) for pair in rows]
    squares = mpmath.fsum(x * x for x in e)
    drift = mpmath.fsum(x * (mpmath.exp(x) - 1) / (mpmath.exp(x) + 1) for x in e)
    first = mpmath.sqrt(2 * squares * mpmath.log(1 / d))
    third = mpmath.sqrt(2 * squares * mpmath.log(mpmath.e + mpmath.sqrt(squares) / d))
    expected = min(mpmath.fsum(e), drift + first, drift + third)
    drv = first + mpmath.fsum(x * (mpmath.exp(x) - 1) for x in e)
    for found, value in ((self_adaptive, expected), (advanced_first, drv)):
        got = found(counts, whole)
        assert got is not None
        assert abs(mp(got) / value - 1) < mpmath.mpf(10) ** -20
        assert mp(got) >= value * (1 - mpmath.mpf(10) ** -50)


def test_the_delta_of_the_whole_is_the_corrected_one() -> None:
    # papers.md, error 25: 1-(1-δ)^k(1-δ') with the slack δ' of the formula.
    counts = tally([Repeated(ApproximateEvent(1, "1e-7"), 100)])
    expected = 1 - (1 - mpmath.mpf("1e-7")) ** 100 * (1 - mpmath.mpf("1e-6"))
    found = total_delta(counts, Fraction(1, 10**6))
    assert abs(mp(found) - expected) < mpmath.mpf(10) ** -25
    assert mp(found) >= expected - mpmath.mpf(10) ** -50


def test_no_slack_no_formula() -> None:
    counts = tally([Repeated(ApproximateEvent(1, "0.01"), 5)])
    for theorem in (advanced_first, advanced_second, self_adaptive):
        assert theorem(counts, Fraction(1, 100)) is None
        assert theorem(tally([PureEvent(1)]), Fraction(0)) is None
        assert theorem(tally([PureEvent(1), GaussianEvent(1)]), Fraction(1, 100)) is None
        assert theorem({}, Fraction(1, 100)) is None
    assert advanced_second(tally([PureEvent(1), PureEvent(2)]), Fraction(1, 100)) is None
