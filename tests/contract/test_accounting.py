"""What every theorem and every filter must do, whoever wrote it; and that breaking it shows."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import mpmath
import pytest

from secant.errors import BudgetError
from secant.ledger.accounting import FILTERS, THEOREMS, Accountant, basic_composition, tally
from secant.ledger.accounting.tally import Tally, own_deltas, without_failures
from secant.noise.events import (
    LEAVES,
    ApproximateEvent,
    Composed,
    ConcentratedEvent,
    Event,
    GaussianEvent,
    LaplaceEvent,
    Leaf,
    MetricEvent,
    PureEvent,
    RandomEvent,
    RenyiEvent,
    Repeated,
    ZCdpEvent,
)

DELTA = Fraction(1, 10**5)
Price = Callable[[Tally, Fraction], Fraction | None]

SAMPLES: tuple[Leaf, ...] = (
    PureEvent("0.3"),
    ApproximateEvent("0.3", "1e-8"),
    LaplaceEvent("0.3"),
    GaussianEvent(4),
    ZCdpEvent("0.03"),
    ConcentratedEvent("0.03", "1.4", "1e-8"),
    RenyiEvent([(2, "0.06"), (8, "0.25"), (32, 1)]),
    MetricEvent("0.3"),
    RandomEvent("0.3", "1e-8", "0.001"),
)


def _filter_price(name: str) -> Price:
    (rule,) = [rule for rule in FILTERS if rule.theorem == name]

    def price(counts: Tally, delta: Fraction) -> Fraction | None:
        if not counts or own_deltas(counts) >= delta:
            return None
        rest = delta - own_deltas(counts)
        return rule.reading(without_failures(counts), Fraction(20), rest)

    return price


PRICES: dict[str, Price] = {theorem.name: theorem.epsilon for theorem in THEOREMS}
PRICES |= {rule.theorem: _filter_price(rule.theorem) for rule in FILTERS}


def test_every_kind_of_event_is_here() -> None:
    assert {type(sample) for sample in SAMPLES} == set(LEAVES)
    priced = {
        type(sample)
        for sample in SAMPLES
        for price in PRICES.values()
        if price({sample: 3}, DELTA) is not None
    }
    # Metric, random and concentrated releases are priced by the accountant's own rules.
    assert priced == set(LEAVES) - {MetricEvent, RandomEvent, ConcentratedEvent}


# --- the checks, as functions, so that planted faults can be put before them ---------------------


def check_count(price: Price) -> None:
    """n of one release cost what one release n times costs, and more than one."""
    for leaf in SAMPLES:
        shapes: list[list[Event]] = [
            [Repeated(leaf, 12)],
            [leaf] * 12,
            [Repeated(Composed([leaf, leaf]), 6)],
            [Composed([Repeated(Repeated(leaf, 3), 2)]), Composed([Composed([leaf] * 6)])],
        ]
        costs = {price(tally(shape), DELTA) for shape in shapes}
        assert len(costs) == 1
        (many,), one = costs, price(tally([leaf]), DELTA)
        assert (many is None) == (one is None)
        if many is not None and one is not None:
            assert many > one


def check_monotone(price: Price) -> None:
    """More releases, larger parameters or a smaller δ never cost less."""
    tiny = Fraction(1, 10**4)  # what a numerical theorem may be off by
    for leaf in SAMPLES:
        base = price(tally([Repeated(leaf, 8)]), DELTA)
        if base is None:
            continue
        for other in SAMPLES:
            more = price(tally([Repeated(leaf, 8), other]), DELTA)
            assert more is None or more >= base * (1 - tiny)
        stricter = price(tally([Repeated(leaf, 8)]), DELTA / 100)
        assert stricter is None or stricter >= base * (1 - tiny)
    for smaller, larger in (
        (PureEvent("0.3"), PureEvent("0.31")),
        (LaplaceEvent("0.3"), LaplaceEvent("0.31")),
        (GaussianEvent(4), GaussianEvent("3.9")),
        (ZCdpEvent("0.03"), ZCdpEvent("0.031")),
    ):
        low, high = price({smaller: 8}, DELTA), price({larger: 8}, DELTA)
        assert low is None or high is None or high >= low


def check_sound(price: Price) -> None:
    """No theorem promises less than releases that attain their parameters really cost."""
    for count in (1, 2, 9, 40):
        for epsilon in ("0.05", "0.3", "2"):
            for own in ("0", "1e-7", "1e-6"):
                leaf = ApproximateEvent(epsilon, own) if own != "0" else PureEvent(epsilon)
                found = price({leaf: count}, DELTA)
                if found is not None:
                    reached = _worst_delta(Fraction(epsilon), Fraction(own), count, found)
                    assert reached <= mpmath.mpf("1e-5") * (1 + mpmath.mpf("1e-12"))
        for leaf, shift in (
            (GaussianEvent(4), mpmath.mpf(1) / 4),
            (ZCdpEvent("0.03"), mpmath.sqrt("0.06")),
        ):
            found = price({leaf: count}, DELTA)
            if found is not None:
                assert _gaussian_delta(shift * mpmath.sqrt(count), found) <= mpmath.mpf("1e-5")


def _mp(value: Fraction) -> mpmath.mpf:
    return mpmath.mpf(value.numerator) / value.denominator


def _worst_delta(epsilon: Fraction, own: Fraction, count: int, whole: Fraction) -> mpmath.mpf:
    with mpmath.workdps(40):
        e, g = _mp(epsilon), _mp(whole)
        kept = (1 - _mp(own)) ** count
        response = (
            mpmath.fsum(
                mpmath.binomial(count, minus)
                * max(0, mpmath.exp((count - minus) * e) - mpmath.exp(minus * e + g))
                for minus in range(count + 1)
            )
            / (1 + mpmath.exp(e)) ** count
        )
        return 1 - kept + kept * response


def _gaussian_delta(shift: mpmath.mpf, whole: Fraction) -> mpmath.mpf:
    with mpmath.workdps(40):
        g = _mp(whole)
        upper = mpmath.ncdf(shift / 2 - g / shift)
        return upper - mpmath.exp(g) * mpmath.ncdf(-shift / 2 - g / shift)


CHECKS = (check_count, check_monotone, check_sound)


@pytest.mark.parametrize("name", PRICES)
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_the_contract_holds(check: Callable[[Price], None], name: str) -> None:
    if name == "accounting.dp_accounting":
        pytest.importorskip("dp_accounting")
    check(PRICES[name])


# --- planted faults: each must be caught by at least one check -----------------------------------


def _count_dropped(price: Price) -> Price:
    return lambda counts, delta: price(dict.fromkeys(counts, 1), delta)


def _own_delta_dropped(price: Price) -> Price:
    return lambda counts, delta: price(without_failures(counts), delta)


def _slack_dropped(price: Price) -> Price:
    # δ' forgotten: the formula is evaluated as if any failure were allowed.
    return lambda counts, delta: price(counts, Fraction(99, 100))


def _half(price: Price) -> Price:
    def halved(counts: Tally, delta: Fraction) -> Fraction | None:
        found = price(counts, delta)
        return None if found is None else found / 2

    return halved


def _root_of_count(price: Price) -> Price:
    def rooted(counts: Tally, delta: Fraction) -> Fraction | None:
        return price({leaf: max(1, int(n**0.5)) for leaf, n in counts.items()}, delta)

    return rooted


FAULTS = (_count_dropped, _own_delta_dropped, _slack_dropped, _half, _root_of_count)
# Faults that a theorem cannot have: it has no δ' to drop, or knows no release with a δ of its own.
CANNOT = {
    (_slack_dropped, "accounting.basic"),
    (_slack_dropped, "accounting.filter_basic"),
    (_own_delta_dropped, "accounting.gauss"),
    (_own_delta_dropped, "accounting.filter_gauss"),
}
PLANTED = [
    pytest.param(fault, name, id=f"{name}{fault.__name__}")
    for fault in FAULTS
    for name in PRICES
    if name != "accounting.dp_accounting" and (fault, name) not in CANNOT
]


@pytest.mark.parametrize(("fault", "name"), PLANTED)
def test_planted_faults_are_caught(fault: Callable[[Price], Price], name: str) -> None:
    broken = fault(PRICES[name])
    caught = []
    for check in CHECKS:
        try:
            check(broken)
        except AssertionError:
            caught.append(check)
    assert caught


# --- the accountant as a whole -------------------------------------------------------------------


@pytest.mark.parametrize("adaptive", [False, True])
def test_nothing_costs_nothing(adaptive: bool) -> None:
    empty: list[Event] = [Composed([]), Repeated(Composed([Composed([])]), 5)]
    for events in ([], empty):
        total = Accountant().total(events, delta="1e-6", adaptive=adaptive)
        assert (total.epsilon, total.delta, total.gamma) == (0, 0, 0)
        assert Accountant().fits(
            events, events, epsilon_budget="1e-30", delta_budget=0, adaptive=adaptive
        )
    assert basic_composition(empty) == (0, 0)
    for leaf in SAMPLES:
        plain = Accountant().total([leaf], delta="1e-6", adaptive=adaptive)
        assert Accountant().total([leaf, *empty], delta="1e-6", adaptive=adaptive) == plain


@pytest.mark.parametrize("leaf", SAMPLES, ids=lambda leaf: leaf.kind)
@pytest.mark.parametrize("adaptive", [False, True])
def test_many_of_one_cost_one_many_times(leaf: Leaf, adaptive: bool) -> None:
    def total(events: list[Event]) -> Fraction:
        return Accountant().total(events, delta="1e-5", adaptive=adaptive).epsilon

    packed = total([Repeated(leaf, 24)])
    assert packed == total([Composed([leaf] * 24)])
    assert packed == total([Repeated(Composed([leaf, Repeated(leaf, 2)]), 8)])
    assert packed > total([leaf])


class _Stranger(PureEvent):
    """A subclass is as unknown as a stranger: it may mean something else by the same field."""


@pytest.mark.parametrize("stranger", [_Stranger(1), object(), None, 0.1, "pure", PureEvent])
def test_unknown_events_are_refused_at_any_depth(stranger: object) -> None:
    for events in ([stranger], [PureEvent(1), stranger]):
        with pytest.raises(BudgetError) as refusal:
            Accountant().total(events, delta="1e-6", adaptive=False)  # type: ignore[arg-type]
        assert refusal.value.code == "BUD-005"
        with pytest.raises(BudgetError):
            basic_composition(events)  # type: ignore[arg-type]
    inner: Event = PureEvent(1)
    for _ in range(10):
        inner = Repeated(Composed([inner]), 2)
        with pytest.raises(BudgetError):
            Composed([inner, stranger])  # type: ignore[list-item]
        with pytest.raises(BudgetError):
            Repeated(stranger, 2)  # type: ignore[arg-type]
