"""Streams in the books: paid once, declared once, every step drawn once and in order."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from secant.errors import BudgetError
from secant.ledger import Budget, Charge, Ledger
from secant.ledger import state as fold
from secant.ledger.export import check_export
from secant.ledger.records import following

BUDGETS = {"rows": Budget.of(3)}
WORDS = {"query": "SELECT 1", "epsilon": "1"}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "shop.ledger"


def opened(place: Path) -> Ledger:
    return Ledger.open(place, BUDGETS)


def declare(ledger: Ledger, name: str = "s", epsilon: int = 1):
    return ledger.declare_stream(name, WORDS, [Charge.of("rows", epsilon)])


def spent(ledger: Ledger) -> int:
    return ledger.balances()["rows"].spent.epsilon


def test_a_stream_is_paid_for_once_however_often_it_is_declared(place):
    with opened(place) as ledger:
        assert declare(ledger) == declare(ledger) == WORDS
    with opened(place) as ledger:
        assert ledger.declare_stream("s", {"query": "other"}, [Charge.of("rows", 2)]) == WORDS
        assert spent(ledger) == 10**9
        (release,) = ledger.history()
        assert (release.status, release.note) == ("stream declared", {"stream": "s"})
        ledger.verify()
        check_export(ledger.export())


def test_what_the_budget_does_not_cover_is_neither_paid_nor_declared(place):
    with opened(place) as ledger:
        with pytest.raises(BudgetError) as caught:
            declare(ledger, epsilon=4)
        assert caught.value.code == "BUD-001"
        assert (spent(ledger), ledger.stream("s")) == (0, None)
        declare(ledger, epsilon=3)


def test_steps_are_drawn_in_order_and_each_once(place):
    with opened(place) as ledger, opened(place) as other:
        declare(ledger)
        assert ledger.draw_stream("s", 1, [{"a": 3}, {"a2": -4}])
        assert not other.draw_stream("s", 2, [{"a2": 77}])
        assert not other.draw_stream("s", 4, [{"a4": 77}])
        assert other.draw_stream("s", 3, [{}])
        found = ledger.stream("s")
        assert found is not None
        assert (found.through, found.values) == (3, {"a": 3, "a2": -4})


def test_many_threads_draw_each_step_once(place):
    with opened(place) as ledger:
        declare(ledger)
        drawn: list[tuple[int, int]] = []

        def work(who: int) -> None:
            with opened(place) as own:
                for step in range(1, 11):
                    if own.draw_stream("s", step, [{f"o{step}": who}]):
                        drawn.append((step, who))

        threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        found = ledger.stream("s")
        assert found is not None
        assert sorted(drawn) == [(s, found.values[f"o{s}"]) for s in range(1, 11)]


def test_a_stream_that_was_not_declared_is_not_drawn(place):
    with opened(place) as ledger, pytest.raises(BudgetError):
        ledger.draw_stream("s", 1, [{}])


def test_a_summary_says_how_far_streams_are(place, monkeypatch):
    monkeypatch.setattr(fold, "SUMMARY_INTERVAL", 5)
    with opened(place) as ledger:
        declare(ledger)
        for step in range(1, 20):
            ledger.draw_stream("s", step, [{f"o{step}": step}])
        assert sum(r.fields["kind"] == "summary" for r in ledger.records()) >= 2
        ledger.verify()
    with opened(place) as ledger:
        found = ledger.stream("s")
        assert found is not None
        assert (found.through, len(found.values)) == (19, 19)
        assert not ledger.draw_stream("s", 19, [{}])
        assert ledger.draw_stream("s", 20, [{}])


def test_after_a_restored_ledger_nothing_more_is_drawn(place):
    with opened(place) as ledger:
        declare(ledger)
        ledger.draw_stream("s", 1, [{"a": 1}])
    Ledger.open(place, BUDGETS, restored=True).close()
    with opened(place) as ledger:
        with pytest.raises(BudgetError) as caught:
            ledger.draw_stream("s", 2, [{}])
        assert caught.value.code == "BUD-009"
        found = ledger.stream("s")
        assert found is not None
        assert found.lost
        assert found.values == {"a": 1}


def test_a_ledger_that_has_lost_numbers_is_refused(place):
    with opened(place) as ledger:
        declare(ledger)
        before = place.read_bytes()
        ledger.draw_stream("s", 1, [{"a": 1}])
    place.write_bytes(before)
    with pytest.raises(BudgetError) as caught:
        opened(place)
    assert caught.value.code == "BUD-007"


def forged(state, kind, **fields):
    state.advance([following(state.anchor, kind, 1.0, fields)])


@pytest.mark.parametrize(
    "forgery",
    [
        {"kind": "drawn", "stream": "s", "step": 1, "values": {}},
        {"kind": "drawn", "stream": "s", "step": 3, "values": {}},
        {"kind": "drawn", "stream": "s", "step": 2, "values": {"a": 1.5}},
        {"kind": "drawn", "stream": "other", "step": 1, "values": {}},
        {"kind": "stream", "stream": "s", "declaration": {}},
        {"kind": "stream", "stream": "new", "declaration": "no"},
    ],
    ids=json.dumps,
)
def test_the_fold_refuses_steps_out_of_order(forgery):
    state = fold.State()
    forged(state, "open", ledger="x")
    forged(state, "stream", stream="s", declaration={})
    forged(state, "drawn", stream="s", step=1, values={"a": 1})
    with pytest.raises(BudgetError) as caught:
        forged(state, **forgery)
    assert caught.value.code == "BUD-003"


def test_planted_books_that_do_not_look_draw_twice(place, monkeypatch):
    """Plant: the fold takes any step. The check of a step drawn once sees it."""

    def careless(state, sequence, fields):
        known = state.streams[fields["stream"]]
        state.streams[fields["stream"]] = fold.StreamState(known.declared, fields["step"] - 1)

    monkeypatch.setitem(fold._MEANING, "drawn", careless)
    with opened(place) as ledger:
        declare(ledger)
        assert ledger.draw_stream("s", 1, [{"a": 1}])
        assert ledger.draw_stream("s", 1, [{"a": 2}])
        steps = [r.fields["step"] for r in ledger.records() if r.fields["kind"] == "drawn"]
    assert steps == [1, 1]
    monkeypatch.undo()
    with pytest.raises(BudgetError):
        opened(place)
