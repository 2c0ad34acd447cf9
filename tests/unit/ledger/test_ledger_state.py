"""The fold refuses what no honest writer writes, also when every digest is right."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secant.errors import BudgetError
from secant.ledger.amounts import Budget, Charge, Spent
from secant.ledger.composition import read, surely_covered
from secant.ledger.records import (
    START,
    VERSION,
    Anchor,
    Record,
    canonical,
    digest_of,
    following,
)
from secant.ledger.state import Account, State, price_of, spent_of, starting_at
from secant.noise.events import ApproximateEvent, GaussianEvent, LaplaceEvent, PureEvent

Fields = dict[str, Any]
OPEN: tuple[str, Fields] = ("open", {"ledger": "x"})
CHARGE = {"protection": "rows", "epsilon": 5, "delta": 0, "event": None}
SENT: tuple[str, Fields] = ("sent", {"release": "a"})
SETTLE: tuple[str, Fields] = ("settle", {"release": "a", "outcome": "answered"})
RETURN: tuple[str, Fields] = ("return", {"release": "a", "reason": "not sent"})


def reserve(**changes: Any) -> tuple[str, Fields]:
    fields = {"release": "a", "analyst": "", "charges": [CHARGE], "lease_until": 9.0, "note": {}}
    return "reserve", {**fields, **changes}


def chained(*steps: tuple[str, Fields]) -> list[Record]:
    """Write records whose digests are all right."""
    records, anchor = [], START
    for kind, fields in steps:
        record = following(anchor, kind, 1.0, fields)
        records.append(record)
        anchor = Anchor(record.sequence, record.digest)
    return records


def folded(*steps: tuple[str, Fields]) -> State:
    state = State()
    state.advance(chained(*steps))
    return state


def test_a_release_goes_through_its_records() -> None:
    assert spent_of(folded(OPEN, reserve()).matching("rows")) == Spent(5)
    assert folded(OPEN, reserve(), SENT).open["a"].sent
    assert spent_of(folded(OPEN, reserve(), SENT, SETTLE).matching("rows")) == Spent(5)
    assert folded(OPEN, reserve(), RETURN).accounts == {"rows": {}}


@pytest.mark.parametrize(
    ("steps", "words"),
    [
        ([OPEN, OPEN], "opens a ledger that is open already"),
        ([OPEN, reserve(), reserve()], "reserves twice"),
        ([OPEN, SENT], "not open"),
        ([OPEN, reserve(), RETURN, SENT], "not open"),
        ([OPEN, reserve(), RETURN, RETURN], "not open"),
        ([OPEN, reserve(), SETTLE], "was not sent"),
        ([OPEN, reserve(), SENT, RETURN], "returns the budget of a release that was sent"),
        ([OPEN, ("schema", {"from": 2, "to": 1})], "earlier version"),
        ([OPEN, reserve(charges=[{**CHARGE, "epsilon": -5}])], "lacks a field"),
        ([OPEN, reserve(charges=[{**CHARGE, "epsilon": 0.5}])], "lacks a field"),
        ([OPEN, reserve(charges=[{**CHARGE, "delta": True}])], "lacks a field"),
        ([OPEN, reserve(charges=[{"protection": "rows"}])], "lacks a field"),
        ([OPEN, reserve(charges=None)], "lacks a field"),
        ([OPEN, ("settle", {})], "lacks a field"),
        ([OPEN, ("refund", {"release": "a"})], "no known kind"),
        (
            [
                OPEN,
                (
                    "summary",
                    {"ledger": "x", "latest": 0, "accounts": [["rows"]], "open": [], "streams": []},
                ),
            ],
            "agree",
        ),
        ([OPEN, ("summary", {})], "lacks a field"),
    ],
)
def test_what_no_honest_writer_writes_is_refused(
    steps: list[tuple[str, Fields]], words: str
) -> None:
    with pytest.raises(BudgetError) as caught:
        folded(*steps)
    assert caught.value.code == "BUD-003"
    assert words in caught.value.message


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("[]", "BUD-003"),
        ("7", "BUD-003"),
        ("{}", "BUD-003"),
        ('{"version": "2"}', "BUD-003"),
        ('{"version": 2, "kind": "open"', "BUD-003"),
        (f'{{"version": {VERSION + 1}, "kind": "open"}}', "BUD-004"),
        ('{"version": 99, "kind": "what is this"}', "BUD-004"),
    ],
)
def test_a_body_is_checked_before_it_is_believed(body: str, code: str) -> None:
    record = Record(1, body, digest_of(START.digest, 1, body))
    with pytest.raises(BudgetError) as caught:
        State().advance([record])
    assert caught.value.code == code


def test_a_moment_outside_the_calendar_is_refused() -> None:
    record = following(START, "open", 1.0, {"ledger": "x"})
    after = Anchor(1, record.digest)
    with pytest.raises(BudgetError) as caught:
        State().advance([record, following(after, "reserve", 1e300, reserve()[1])])
    assert caught.value.code == "BUD-003"


def test_something_else_is_no_summary() -> None:
    with pytest.raises(BudgetError) as caught:
        starting_at(chained(OPEN)[0])
    assert caught.value.code == "BUD-003"


def test_the_digest_binds_order_and_place() -> None:
    records = chained(OPEN, reserve(), SENT)
    for wrong in (
        [records[0], records[2]],
        [records[1], records[0], records[2]],
        [records[0], Record(2, records[1].body.replace("5", "4"), records[1].digest)],
        [records[0], Record(3, records[1].body, records[1].digest)],
    ):
        with pytest.raises(BudgetError):
            State().advance(wrong)


def test_bodies_have_one_form() -> None:
    body = chained(OPEN, reserve(analyst="\ud800 \x00 ü"))[1].body
    assert body.isascii()
    assert canonical(json.loads(body)) == body


# --- composition ---------------------------------------------------------------------------------

charges = st.one_of(
    st.builds(
        Charge,
        st.just("p"),
        st.integers(0, 3 * 10**8),
        st.integers(0, 3 * 10**11),
    ),
    st.integers(1, 300).map(lambda n: Charge.of_event("p", LaplaceEvent(f"0.{n:03d}"))),
    st.integers(1, 300).map(lambda n: Charge.of_event("p", PureEvent(f"0.{n:03d}"))),
    st.integers(1, 300).map(lambda n: Charge.of_event("p", ApproximateEvent(f"0.{n}", "1e-7"))),
    st.just(Charge.of("p", "0.1", "1e-7", event=GaussianEvent(60))),
    st.just(Charge("p", 10**5, event=PureEvent("0.5"))),  # a price that is not the event's
)


@given(
    old=st.lists(charges, max_size=6),
    new=st.lists(charges, max_size=2),
    composition=st.sampled_from(["basic", "tight"]),
)
def test_what_is_surely_covered_fits(
    old: list[Charge], new: list[Charge], composition: str
) -> None:
    account = Account()
    for charge in old:
        account.change(price_of(charge), 1)
    for budget in (Budget.of(1, "1e-6"), Budget.of(1), Budget.of("0.2", "1e-7"), Budget(0, 5)):
        reading = read([account], new, budget, composition)
        if surely_covered([account], new, budget, composition):
            assert reading.fits
        if reading.fits and composition == "basic":
            assert surely_covered([account], new, budget, composition)
        if reading.fits:
            assert reading.spent.within(budget)
