"""Accounts that slide: the worst stretch of time keeps to the budget, and nothing else does (ledger.window)."""

from __future__ import annotations

import datetime
from dataclasses import replace
from fractions import Fraction
from math import ceil
from pathlib import Path

import pytest

import chance
from secant.errors import BudgetError
from secant.ledger import Budget, Charge, Ledger, sliding
from secant.ledger.amounts import DELTA_UNITS
from secant.policy.streams import Calendar, Width, as_time
from secant.policy.windows import Window, span_of

MONTH = Window(30, "day")
BUDGETS = {"recent": Budget.of("1.5", "1e-6")}


def opened(place: Path, window: Window = MONTH, **more) -> Ledger:
    return Ledger.open(place / "books.ledger", BUDGETS, windows={"recent": window}, **more)


def charged(start, steps, epsilon="1", delta=0, width=Width(1, "day"), window=MONTH) -> Charge:  # noqa: B008
    calendar = Calendar(as_time(start) if width.unit == "hour" else start, width, steps)
    end = None if steps is None else calendar.first(steps + 1)
    return replace(Charge.of("recent", epsilon, delta), span=span_of(calendar, window, end))


def day(number: int) -> datetime.date:
    return datetime.date(2025, 1, 1) + datetime.timedelta(days=number)


def test_streams_one_after_another_cost_no_more_than_one(tmp_path):
    with opened(tmp_path) as ledger:
        ledger.declare_stream("a", {}, [charged(day(0), 100)])
        ledger.declare_stream("b", {}, [charged(day(100), None)])
        assert ledger.balances()["recent"].spent.epsilon == 10**9
        assert ledger.balances()["recent"].lifetime.epsilon == 2 * 10**9
        assert "any 30 days in a row" in ledger.balances()["recent"].statement()
        with pytest.raises(BudgetError) as caught:
            ledger.declare_stream("c", {}, [charged(day(70), 31, "0.6")])
        assert caught.value.code == "BUD-001"
        ledger.declare_stream("c", {}, [charged(day(70), 31, "0.5")])
        assert ledger.balances()["recent"].remaining.epsilon == 0
        ledger.declare_stream("d", {}, [charged(day(-30), 30, "1.5")])
        ledger.verify()
    with opened(tmp_path) as ledger:  # the same from the books
        assert ledger.balances()["recent"].spent.epsilon == 1_500_000_000
        assert ledger.history()[0].charges[0].span == charged(day(0), 100).span


def test_parts_of_a_stretch_cost_their_part(tmp_path):
    with opened(tmp_path) as ledger:
        ledger.declare_stream("a", {}, [charged(day(0), 60, "0.9")])
        ledger.declare_stream("b", {}, [charged(day(60), None, "1.5")])
        # 15 days of the first and 15 of the second: less than 30 of the second
        assert ledger.balances()["recent"].spent.epsilon == 1_500_000_000
        # one day that costs 0.3 fits where a stretch around it costs 1.2 at most: it meets 10 days of the second
        ledger.declare_stream("c", {}, [charged(day(40), 1, "0.3")])
        with pytest.raises(BudgetError):
            ledger.declare_stream("d", {}, [charged(day(50), 1, "0.3")])


def test_a_charge_without_times_counts_in_every_stretch(tmp_path):
    with opened(tmp_path) as ledger:
        with ledger.reserve([Charge.of("recent", "0.7")]) as reservation:
            reservation.mark_sent()
        ledger.declare_stream("a", {}, [charged(day(0), 10, "0.8")])
        with pytest.raises(BudgetError):
            ledger.declare_stream("b", {}, [charged(day(1000), 10, "0.9")])


def test_a_longer_stretch_declared_afterwards_costs_more(tmp_path):
    with opened(tmp_path) as ledger:
        ledger.declare_stream("a", {}, [charged(day(0), None, "1")])
    with opened(tmp_path, Window(45, "day")) as ledger:
        assert ledger.balances()["recent"].spent.epsilon == ceil(Fraction(45, 30) * 10**9) + ceil(
            Fraction(1, 30) * 10**9
        )
    with opened(tmp_path, Window(30)) as ledger, pytest.raises(BudgetError) as caught:
        ledger.declare_stream("b", {}, [charged(1, 5, width=Width(1), window=Window(30))])
    assert "another kind" in "".join(caught.value.details)


def test_charges_with_delta_count_whole(tmp_path):
    with opened(tmp_path) as ledger:
        ledger.declare_stream("a", {}, [charged(day(0), 100, "0.5", "1e-7")])
        ledger.declare_stream("b", {}, [charged(day(100), None, "0.5", "1e-7")])
        spent = ledger.balances()["recent"].spent
        assert (spent.epsilon, spent.delta) == (10**9, 2 * 10**11)
    with opened(tmp_path, Window(60, "day")) as ledger:
        spent = ledger.balances()["recent"].spent
        # 61 periods inside of one stream are three times 30: δ grows by more than their number
        assert spent.epsilon == 1_500_000_000
        assert 3 * 10**11 < spent.delta <= DELTA_UNITS


def by_hand(charges, window, cells):
    """Look at every stretch that begins at one of some cells: the most that charges come to, exactly."""
    worst = Fraction(0)
    for place in cells:
        first = place * window.cell
        total = Fraction(0)
        for charge in charges:
            total += Fraction(
                charge.epsilon * charge.span.met(first, first + window.length), charge.span.priced
            )
        worst = max(worst, total)
    return ceil(worst)


def test_no_stretch_is_overlooked():
    draw = chance.chance()
    for _ in range(300 if not chance.LONG else 20_000):
        window = Window(draw.randrange(1, 9), draw.choice(("day", "hour")))
        width = Width(draw.choice((1, 2, 5)), draw.choice(("day", "hour", "week")))
        charges = [
            charged(
                day(draw.randrange(25)),
                draw.choice((None, 1, 4, 9)),
                f"0.{draw.randrange(1, 9)}",
                0,
                width,
                window,
            )
            for _ in range(draw.randrange(1, 5))
        ]
        start = charges[0].span.start // window.cell
        cells = (
            range(start - 1500, start + 3000)
            if window.unit == "hour"
            else range(start - 60, start + 400)
        )
        read = sliding.read_sliding((), charges, BUDGETS["recent"], window)
        assert read.spent.epsilon >= by_hand(charges, window, cells)
        assert read.theorem == "ledger.window"


def test_planted_an_account_that_looks_at_stretches_by_themselves_is_caught(monkeypatch):
    """Plant: only stretches that begin with a stream are looked at, not those that reach into two."""
    monkeypatch.setattr(sliding, "_starts", lambda spans, window: [s.start for s in spans])
    two = [charged(day(0), 10, "1"), charged(day(12), None, "1")]
    window = MONTH
    cells = range(two[0].span.start // window.cell - 40, two[0].span.start // window.cell + 60)
    later = [two[1], charged(day(-20), 25, "1")]
    missed = [
        sliding.read_sliding((), some, BUDGETS["recent"], window).spent.epsilon
        < by_hand(some, window, cells)
        for some in (
            two,
            later,
            [charged(day(0), 20, "1"), charged(day(25), 3, "1"), charged(day(-5), 4, "1")],
        )
    ]
    assert any(missed)
