"""What questions leave in the store: those that were charged stay, those that cost nothing have an end."""

import json
from contextlib import closing
from datetime import UTC, datetime

import pytest
from clinic_service import COUNT, service_at
from test_http import Running, ask

from secant.errors import BackendError, Refused
from secant.release.answer import Answer
from secant.service import remembered
from secant.service.remembered import Remembered, Reply
from secant.service.settings import History, Reuse
from secant.service.store import open_store
from secant.service.users import User

ADA = User("ada", "analyst")
LARGE = 100_000
"""Characters of a text that is too long to be kept."""


class Clock:
    """A clock that goes on by itself, and further when it is told to."""

    time = 1_000_000.0

    def __call__(self):
        self.time += 1
        return self.time


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def store(request, tmp_path):
    if request.param == "sqlite":
        place = tmp_path / "shop.ledger"
    else:
        server = request.getfixturevalue("postgres_server")
        place = server.address(server.create_database())
    with closing(open_store(place)) as found:
        yield found


def kept(store, clock, **more):
    return Remembered(store, Reuse(bytes=50_000), History(**more), now=clock)


def refuse(found, number, *, who="ada", text="x" * LARGE, charged=False):
    note = {"text": text, "asked": {"epsilon": "0" * LARGE}, "charged": [], "release_id": None}
    error = BackendError("BAK-006", "canceled") if charged else Refused("REF-101", "no proof")
    found.fail(
        who, note, error, outcome="refused", ticket_id=f"{who}{number}", key="", charged=charged
    )


def answer(found, number, *, release_id="r", reused=False, key="", rows=1, who="ada"):
    made = Answer(
        columns=("n",), rows=tuple(("x" * 1000,) for _ in range(rows)), guarantee=(),
        error={}, mechanisms=(), budget={}, release_id=release_id,
    )  # fmt: skip
    told = Reply(made, reused, datetime.fromtimestamp(1, UTC))
    note = {"text": f"q{number}", "asked": {}, "charged": [], "release_id": release_id}
    if key:
        found.begin(who, key, "digest")
    found.keep(
        who, note, told,
        outcome="answered", ticket_id=f"a{who}{number}", key=key, stored_as=f"k{number}",
    )  # fmt: skip


def size_of(store, table, where="1 = 1"):
    with store.reading() as rows:
        return rows.one(
            f"SELECT coalesce(sum(length(body)), 0), count(*) FROM {table} WHERE {where}"
        )


def test_refused_questions_are_cut_and_have_an_end(store, clock):
    found = kept(store, clock, bytes_of_user=20_000)
    for number in range(40):
        refuse(found, number)
    total, rows = size_of(store, "questions")
    assert total <= 20_000
    assert 1 < rows < 40
    page = found.history("ada")
    assert page[0].ticket_id == "ada39", "the newest stay"
    assert page[0].note["cut"]["characters"] == LARGE
    assert len(page[0].note["text"]) == 2000
    refuse(found, 0, who="bob")
    assert len(found.history("bob")) == 1
    assert size_of(store, "questions", "who = 'ada'")[1] == rows, "one user's flood is their own"


def test_what_may_have_been_charged_stays(store, clock):
    found = kept(store, clock, bytes_of_user=20_000, keep_days=1)
    answer(found, 0)
    refuse(found, 0, charged=True)
    for number in range(1, 20):
        refuse(found, number)
    clock.time += 2 * 86_400
    refuse(found, 99)
    assert {a.ticket_id for a in found.history()} == {"aada0", "ada0", "ada99"}


def test_a_page_ends_by_its_bytes_and_goes_on(store, clock):
    found = kept(store, clock, page_bytes=10_000)
    for number in range(9):
        refuse(found, number)
    seen, before, pages = [], None, 0
    while True:
        page, more = found.page(most=100, before=before)
        assert len(json.dumps([a.note for a in page])) <= 10_000
        seen += [a.ticket_id for a in page]
        pages += 1
        if not more:
            break
        before = page[-1].time.timestamp()
    assert seen == [f"ada{n}" for n in reversed(range(9))]
    assert pages > 1
    page, more = found.page(most=2)
    assert (len(page), more) == (2, True)


def test_a_page_has_one_question_at_least(store, clock):
    found = kept(store, clock, page_bytes=10_000, longest_text=LARGE)
    refuse(found, 0)
    refuse(found, 1)
    page, more = found.page()
    assert ([a.ticket_id for a in page], more) == (["ada1"], True)


def test_free_answers_make_room_for_those_that_were_paid(store, clock):
    found = kept(store, clock)
    answer(found, 0, rows=10)
    for number in range(1, 20):
        answer(found, number, release_id=None, rows=10)
    assert size_of(store, "answers")[0] <= 50_000
    assert found.answer("k0") is not None
    assert found.answer("k1") is None
    assert found.answer("k19") is not None


def test_keys_of_free_answers_have_an_end(store, clock, monkeypatch):
    monkeypatch.setattr(remembered, "FREE_KEYS_BYTES", 50_000)
    found = kept(store, clock)
    answer(found, 0, key="paid", rows=10)
    for number in range(1, 20):
        answer(found, number, key=f"free{number}", reused=True, rows=10)
    assert size_of(store, "requests")[0] <= 65_000
    assert not found.begin("ada", "paid", "digest").reused
    assert found.begin("ada", "free19", "digest").reused
    assert found.begin("ada", "free1", "digest") is None, "asked again it is charged once at most"


def test_a_question_that_was_stopped_before_its_charge_is_free(tmp_path):
    """Not by the kind of its error, but by how far it came."""
    with closing(service_at(tmp_path)) as service:
        asked = service.ask(ADA, remembered_question(0.1))
        asked.result()
        assert asked.interrupt.charged
        refused = service.ask(ADA, remembered_question(100))
        assert refused.future.exception().code == "BUD-001"
        assert not refused.interrupt.charged
        explained = service.explain(ADA, remembered_question(0.1))
        explained.result()
        assert not explained.interrupt.charged


def remembered_question(epsilon):
    from secant.service.asking import Question

    return Question(COUNT, epsilon=epsilon)


def test_over_http_large_refusals_stay_small(tmp_path):
    running = Running(tmp_path, **{"history.bytes_of_user": 50_000, "history.page_bytes": 10_000})
    try:
        ada = running.user("ada")
        for number in range(20):
            text = f"SELECT name FROM visits -- {number} " + "é" * LARGE
            assert ask(ada, text).status_code in (400, 422)
        with running.service.users.store.reading() as rows:
            assert rows.one("SELECT sum(length(body)) FROM questions")[0] <= 50_000
        first = ada.get("/v1/history?limit=1000")
        assert len(first.content) <= 20_000
        place = first.links["next"]["url"]
        second = ada.get(place)
        assert second.json()[0]["time"] < first.json()[-1]["time"]
    finally:
        running.server.close()
