"""The one door: shares, reuse, keys, fairness, cancel, and what is left after a stop."""

import datetime
import threading
from decimal import Decimal
from fractions import Fraction

import pytest
from clinic_service import COUNT, PASSWORD, POLICY, SHARES, fill, service_at

from secant.accuracy.warnings import Caution
from secant.display import progress
from secant.errors import (
    AccessError,
    BackendError,
    BudgetError,
    SecantError,
    ServiceError,
    SqlError,
)
from secant.ledger.opening import Account, Accounts
from secant.release.answer import Answer
from secant.runtime import work
from secant.service.asking import Question, Service
from secant.service.queue import FairQueue
from secant.service.stored import read_answer, write_answer
from secant.service.users import User
from secant.service.views import budget_view


@pytest.fixture
def opened():
    services = []

    def at(folder, policy=POLICY, **given) -> Service:
        services.append(service_at(folder, policy, **given))
        return services[-1]

    yield at
    for service in services:
        service.close()


def spent(service):
    with service.opened(User("owner", "owner")) as connection:
        return float(connection.budget["rows"].spent_epsilon)


ADA, BOB = User("ada", "analyst"), User("bob", "analyst")


def test_the_terminal_of_a_service_sees_nothing_of_questions(opened, tmp_path, monkeypatch):
    monkeypatch.setattr(progress, "in_notebook", lambda: True)
    assert progress.shows_bar(None)
    assert opened(tmp_path).do(ADA, lambda opened: progress.shows_bar(None)).result() is False


def test_the_same_question_costs_once(opened, tmp_path):
    service = opened(tmp_path)
    first = service.ask(ADA, Question(COUNT, epsilon="0.5")).result()
    others = [
        Question(COUNT, epsilon="0.5"),
        Question("select COUNT(*) n\n from visits -- again", epsilon="0.5"),
        Question(COUNT, epsilon=0.5, level=0.95),
    ]
    for question in others:
        told = service.ask(ADA, question).result()
        assert told.reused
        assert told.answer.rows == first.answer.rows
        assert told.answer.release_id == first.answer.release_id
        assert told.released_at == first.released_at
    assert not first.reused
    assert spent(service) == 0.5


@pytest.mark.parametrize(
    "question",
    [
        Question(COUNT, epsilon="0.6"),
        Question(COUNT, epsilon="0.5", level="0.9"),
        Question("SELECT count(*) AS m FROM visits", epsilon="0.5"),
        Question("SELECT count(*) AS n FROM visits WHERE cost > 1", epsilon="0.5"),
        Question("SELECT count(*) + 1.0 AS n FROM visits", epsilon="0.5"),
    ],
)
def test_another_question_is_another(opened, tmp_path, question):
    service = opened(tmp_path)
    service.ask(ADA, Question(COUNT, epsilon="0.5")).result()
    assert not service.ask(ADA, question).result().reused


def test_a_question_that_takes_too_long_to_plan_costs_nothing(opened, tmp_path, monkeypatch):
    service = opened(tmp_path)
    for steps in (
        3,
        200,
    ):  # before it is known whether it was asked before, and once it is analyzed
        monkeypatch.setattr(work, "MOST_STEPS", steps)
        with pytest.raises(SqlError) as caught:
            service.ask(ADA, Question(COUNT, epsilon="0.5")).result()
        assert caught.value.code == "SQL-009"
        with pytest.raises(SqlError):
            service.explain(ADA, Question(COUNT, epsilon="0.5")).result()
    monkeypatch.undo()
    assert spent(service) == 0


def test_nobody_gets_what_another_user_paid_for_unless_the_owner_says_so(opened, tmp_path):
    service = opened(tmp_path)
    service.ask(ADA, Question(COUNT, epsilon=1)).result()
    assert not service.ask(BOB, Question(COUNT, epsilon=1)).result().reused
    service = opened(tmp_path, **{"reuse.among": "all"})
    service.ask(ADA, Question(COUNT, epsilon=2)).result()
    assert service.ask(BOB, Question(COUNT, epsilon=2)).result().reused


def test_later_data_or_another_policy_give_another_answer(opened, tmp_path):
    service = opened(tmp_path)
    ask = lambda: service.ask(ADA, Question(COUNT, epsilon=1)).result()  # noqa: E731
    assert [ask().reused, ask().reused] == [False, True]
    fill(tmp_path / "shop.duckdb", rows=60)
    assert [ask().reused, ask().reused] == [False, True]
    policy = tmp_path / "policy.toml"
    policy.write_text(POLICY.replace("epsilon = 10", "epsilon = 11"))
    assert [ask().reused, ask().reused] == [False, True]
    policy.write_text(POLICY.replace("epsilon = 10", "epsilon = ten"))
    with pytest.raises(ServiceError) as caught:
        ask()
    assert str(tmp_path) not in caught.value.render()
    policy.write_text(POLICY.replace("epsilon = 10", "epsilon = 2.5"))
    with pytest.raises(BudgetError):
        ask()


def test_a_column_or_a_snapshot_can_tell_the_version(opened, tmp_path):
    service = opened(tmp_path, **{"reuse.version": "column loads.loaded"})
    ask = lambda service: service.ask(ADA, Question(COUNT, epsilon="0.5")).result().reused  # noqa: E731
    assert [ask(service), ask(service)] == [False, True]
    assert spent(service) == 0.5
    first = opened(tmp_path, **{"reuse.version": "snapshot november"})
    assert [ask(first), ask(first)] == [False, True]
    assert not ask(opened(tmp_path, **{"reuse.version": "snapshot december"}))
    none = opened(tmp_path, **{"reuse.version": "none"})
    assert [ask(none), ask(none)] == [False, False]


@pytest.mark.parametrize(
    "version", ["column visits.cost", "column people.id", "time", "snapshot", ""]
)
def test_a_version_that_would_show_rows_or_tells_nothing_is_refused(opened, tmp_path, version):
    service = opened(tmp_path, **{"reuse.version": version})
    with pytest.raises(SecantError, match="version of the data"):
        service.ask(ADA, Question(COUNT, epsilon=1)).result()
    assert not service.ready()


def test_a_stored_answer_ends(opened, tmp_path):
    service = opened(tmp_path, **{"reuse.keep_seconds": 1e-6})
    assert not service.ask(ADA, Question(COUNT, epsilon=1)).result().reused
    assert not service.ask(ADA, Question(COUNT, epsilon=1)).result().reused


def test_a_share_belongs_to_the_user(opened, tmp_path):
    service = opened(tmp_path, POLICY + SHARES)
    for user, most in ((ADA, 2), (BOB, 1)):
        for number in range(most):
            service.ask(user, Question(f"{COUNT} WHERE cost > {number}", epsilon=1)).result()
        with pytest.raises(BudgetError, match="budget"):
            service.ask(user, Question(f"{COUNT} WHERE cost > 5", epsilon=1)).result()
    assert spent(service) == 3


def test_an_auditor_asks_nothing(opened, tmp_path):
    service = opened(tmp_path)
    with pytest.raises(AccessError) as caught:
        service.ask(User("eve", "auditor"), Question(COUNT, epsilon=1))
    assert caught.value.code == "AUT-002"
    assert (
        "stability.scan" in service.explain(User("eve", "auditor"), Question(COUNT)).result().text
    )
    assert spent(service) == 0


def test_a_key_is_charged_once_also_after_a_restart(opened, tmp_path):
    service = opened(tmp_path, **{"reuse.version": "none"})
    first = service.ask(ADA, Question(COUNT, epsilon=1), key="k").result()
    again = service.ask(ADA, Question(COUNT, epsilon=1), key="k").result()
    assert (again.answer.rows, again.reused) == (first.answer.rows, False)
    with pytest.raises(ServiceError) as caught:
        service.ask(ADA, Question(COUNT, epsilon=2), key="k")
    assert caught.value.code == "SRV-002"
    service.close()
    after = opened(tmp_path, **{"reuse.version": "none"})
    assert (
        after.ask(ADA, Question(COUNT, epsilon=1), key="k").result().answer.rows
        == first.answer.rows
    )
    after.ask(BOB, Question(COUNT, epsilon=1), key="k").result()  # a key is a user's own
    assert spent(after) == 2


def test_a_key_that_comes_at_the_same_time_is_charged_once(opened, tmp_path):
    service = opened(tmp_path, **{"reuse.version": "none", "questions.each_user": 4})
    told, threads = [], []
    for number in range(12):
        question = Question(f"{COUNT} WHERE cost > {number // 6}", epsilon=1)
        ask = lambda q=question, k=f"k{number // 6}": told.append(  # noqa: E731
            service.ask(ADA, q, key=k).result()
        )
        threads.append(threading.Thread(target=ask))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(told) == 12
    assert len({each.answer.release_id for each in told}) == 2
    assert spent(service) == 2
    assert service.running(ADA) == []


def test_a_key_is_of_the_parameters_too(opened, tmp_path):
    service = opened(tmp_path)
    text = f"{COUNT} WHERE cost > ?"
    service.ask(ADA, Question(text, parameters=(1,), epsilon=1), key="k").result()
    assert service.ask(ADA, Question(text, parameters=(1,), epsilon=1)).result().reused
    assert service.ask(ADA, Question(f"{COUNT} WHERE cost > 1", epsilon=1)).result().reused
    assert not service.ask(ADA, Question(text, parameters=(2,), epsilon=1)).result().reused
    with pytest.raises(ServiceError) as caught:
        service.ask(ADA, Question(text, parameters=(2,), epsilon=1), key="k")
    assert caught.value.code == "SRV-002"


def test_a_key_whose_run_was_killed_is_not_asked_again(opened, tmp_path):
    service = opened(tmp_path)
    service.remembered.begin("ada", "k", "other")
    killed = opened(tmp_path)
    with pytest.raises(ServiceError) as caught:
        killed.remembered.begin("ada", "k", "other")
    assert caught.value.code == "SRV-003"


def test_a_key_that_was_refused_without_charge_may_ask_again(opened, tmp_path):
    service = opened(tmp_path, POLICY.replace("epsilon = 10", "epsilon = 1"))
    with pytest.raises(BudgetError):
        service.ask(ADA, Question(COUNT, epsilon=2), key="k").result()
    with pytest.raises(SecantError):
        service.ask(ADA, Question("SELECT name FROM visits", epsilon=1), key="k").result()
    assert service.ask(ADA, Question(COUNT, epsilon=1), key="k").result().answer.rows


def test_the_same_question_at_the_same_time_is_charged_once(opened, tmp_path):
    service = opened(tmp_path, **{"questions.each_user": 4})
    tickets = [service.ask(ADA, Question(COUNT, epsilon=1)) for _ in range(8)]
    told = [ticket.result() for ticket in tickets]
    assert len({str(each.answer.rows) for each in told}) == 1
    assert [each.reused for each in told].count(False) == 1
    assert spent(service) == 1


def test_sixteen_clients_with_budget_for_ten(opened, tmp_path):
    service = opened(tmp_path, **{"reuse.version": "none"})
    outcomes = []

    def client(number):
        user = User(f"user{number}", "analyst")
        for each in range(4):
            text = f"{COUNT} WHERE cost > {each} AND id > {number}"
            try:
                service.ask(user, Question(text, epsilon=1)).result()
                outcomes.append("answered")
            except SecantError as error:
                outcomes.append(error.code)

    threads = [threading.Thread(target=client, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outcomes.count("answered") == 10
    assert outcomes.count("BUD-001") == 54
    assert spent(service) == 10
    with service.opened(User("owner", "owner")) as connection:
        connection.ledger.verify()


def slow(service, monkeypatch):
    """Let every statement over protected rows wait for a signal; give the signal, and one that tells it was sent."""
    from secant.engines.duckdb.session import DuckDBSession

    sent, go = threading.Event(), threading.Event()
    fetch = DuckDBSession.rows

    def rows(self, statement):
        from secant.engines import watch

        if "count" in statement.lower():
            sent.set()
            watch.watched(go.wait, go.set, 60)
        return fetch(self, statement)

    monkeypatch.setattr(DuckDBSession, "rows", rows)
    return sent, go


def test_a_question_that_runs_is_canceled_and_stays_charged(opened, tmp_path, monkeypatch):
    service = opened(tmp_path)
    sent, _ = slow(service, monkeypatch)
    ticket = service.ask(ADA, Question(COUNT, epsilon=1), key="k")
    assert sent.wait(60)
    assert [t.ticket_id for t in service.running(ADA)] == [ticket.ticket_id]
    assert service.running(BOB) == []
    with pytest.raises(SecantError, match="no such question"):
        service.cancel(BOB, ticket.ticket_id)
    service.cancel(ADA, ticket.ticket_id)
    with pytest.raises(BackendError) as caught:
        ticket.result()
    assert caught.value.code == "BAK-006"
    assert spent(service) == 1
    with pytest.raises(BackendError):  # the key stays used: it was charged
        service.ask(ADA, Question(COUNT, epsilon=1), key="k").result()
    assert spent(service) == 1
    assert [asked.outcome for asked in service.remembered.history("ada")] == ["canceled"]


def test_a_question_that_waits_is_canceled_for_nothing(opened, tmp_path, monkeypatch):
    service = opened(tmp_path, **{"questions.workers": 1})
    sent, go = slow(service, monkeypatch)
    runs = service.ask(ADA, Question(COUNT, epsilon=1))
    assert sent.wait(60)
    waits = service.ask(ADA, Question(COUNT, epsilon=2), key="k")
    service.cancel(ADA, waits.ticket_id)
    go.set()
    runs.result()
    assert waits.future.cancelled()
    assert spent(service) == 1
    assert service.ask(ADA, Question(COUNT, epsilon=2), key="k").result().answer.rows


def test_a_question_has_its_time(opened, tmp_path, monkeypatch):
    service = opened(tmp_path, **{"questions.seconds": 0.7})
    slow(service, monkeypatch)
    with pytest.raises(BackendError) as caught:
        service.ask(ADA, Question(COUNT, epsilon=1)).result()
    assert caught.value.code == "BAK-005"


def test_a_stop_settles_what_runs_and_refuses_what_waits(tmp_path, monkeypatch):
    service = service_at(tmp_path, **{"questions.workers": 1, "drain_seconds": 0.2})
    sent, _ = slow(service, monkeypatch)
    runs = service.ask(ADA, Question(COUNT, epsilon=1))
    assert sent.wait(60)
    waits = service.ask(BOB, Question(COUNT, epsilon=2), key="k")
    service.close()
    with pytest.raises(BackendError) as caught:
        runs.result(0)
    assert caught.value.code == "BAK-006"
    with pytest.raises(ServiceError):
        waits.result(0)
    with pytest.raises(ServiceError):
        service._queue.put("ada", lambda: None)
    monkeypatch.undo()
    after = service_at(tmp_path)
    assert spent(after) == 1
    assert after.ask(BOB, Question(COUNT, epsilon=2), key="k").result().answer.rows
    with after.opened(User("owner", "owner")) as connection:
        assert [release.status for release in connection.ledger.history()] == ["failed", "answered"]
    after.close()


def test_users_take_turns():
    order, go = [], threading.Event()
    queue = FairQueue(workers=1, each_user=1, waiting=100, waiting_of_user=6)
    first = queue.put("ada", go.wait)
    for number in range(5):
        queue.put("ada", lambda n=number: order.append(f"ada{n}"))
    for number in range(2):
        last = queue.put("bob", lambda n=number: order.append(f"bob{n}"))
    go.set()
    first.result()
    last.result()
    queue.close()
    queue.join(None)
    assert order[:4] in (["ada0", "bob0", "ada1", "bob1"], ["bob0", "ada0", "bob1", *order[3:4]])


def test_a_full_queue_refuses():
    go = threading.Event()
    queue = FairQueue(workers=1, each_user=1, waiting=3, waiting_of_user=2)
    queue.put("ada", go.wait)
    while queue.sizes() != (0, 1):
        pass
    queue.put("ada", int)
    queue.put("ada", int)
    for who in ("ada", "bob", "eve"):
        if who != "bob":
            with pytest.raises(ServiceError) as caught:
                queue.put(who, int)
            assert caught.value.code == "SRV-001"
        else:
            queue.put(who, int)
    go.set()
    queue.close()
    assert queue.join(60)


def test_an_old_copy_of_the_ledger_is_noticed(opened, tmp_path):
    place = tmp_path / "elsewhere" / "anchor"
    place.parent.mkdir()
    folder = tmp_path / "service"
    folder.mkdir()
    service = opened(folder, anchor=place)
    service.ask(ADA, Question(COUNT, epsilon=1)).result()
    service.close()
    files = [folder / "policy.ledger", folder / "policy.ledger.anchor"]
    copies = [file.read_bytes() for file in files]
    service = opened(folder, anchor=place)
    service.ask(ADA, Question(COUNT, epsilon=2)).result()
    service.close()
    for file, copy in zip(files, copies, strict=True):
        file.write_bytes(copy)
    service = opened(folder)
    assert service.ready(), "the anchor beside the ledger was put back with it"
    service.close()
    service = opened(folder, anchor=place)
    assert not service.ready()
    with pytest.raises(BudgetError) as caught:
        service.ask(ADA, Question(COUNT, epsilon=3)).result()
    assert caught.value.code == "BUD-007"


def test_no_answer_leaves_before_the_anchor_has_moved(opened, tmp_path):
    service = opened(tmp_path, anchor=tmp_path / "missing" / "anchor")
    with pytest.raises(BudgetError) as caught:
        service.ask(ADA, Question(COUNT, epsilon=1)).result()
    assert caught.value.code == "BUD-002"


def test_an_answer_is_stored_to_the_bit():
    rows = [
        (1, -0.0, Decimal("1.20"), Fraction(1, 3), None, True, "ä\0\ud800"),
        (2**70, float("inf"), datetime.date(2025, 1, 2), datetime.datetime.fromisoformat("2025-01-02T03:04:05.000006"),
         datetime.timedelta(1, 2, 3), b"\xff", datetime.time(1, 2)),
    ]  # fmt: skip
    account = Account(*(Fraction(n, 7) for n in range(6)))
    caution = Caution("WRN-001", "large", "ask less")
    error = {"level": 0.95, "values": [[1.5, None]], 3: ("a", 1)}
    answer = Answer(["a"], rows, [{"x": 1}], error, [], Accounts(p=account), "r", (caution,), rows)
    again = read_answer(write_answer(answer))
    assert again == answer
    assert str(again.rows) == str(rows)
    assert type(again.budget) is Accounts
    with pytest.raises(TypeError):
        write_answer(Answer(["a"], [(object(),)], [], {}, [], {}, None))


def test_the_history_keeps_the_price_and_no_answer(opened, tmp_path):
    service = opened(tmp_path)
    told = service.ask(ADA, Question(COUNT, epsilon="0.25")).result()
    service.ask(ADA, Question(COUNT, epsilon="0.25")).result()
    with pytest.raises(SecantError):
        service.ask(BOB, Question("SELECT name FROM visits", epsilon=1)).result()
    found = service.remembered.history()
    assert [(a.who, a.outcome) for a in found] == [
        ("bob", "refused"),
        ("ada", "reused"),
        ("ada", "answered"),
    ]
    assert [a.note["charged"] for a in found] == [
        [],
        [],
        [{"protection": "rows", "epsilon": 0.25, "delta": 0.0}],
    ]
    assert found[2].note["release_id"] == told.answer.release_id
    assert [a.who for a in service.remembered.history("bob")] == ["bob"]
    assert service.remembered.history(before=found[1].time.timestamp()) == [found[2]]


def test_a_user_who_logs_in_has_the_share_of_the_name_in_every_case_of_letters(opened, tmp_path):
    service = opened(tmp_path, POLICY + SHARES)
    service.users.add("Bob", "analyst", PASSWORD)
    user = service.logins.login("bOb", PASSWORD, way="test")
    assert user.name == "Bob"
    service.ask(user, Question(COUNT, epsilon=1)).result()
    with pytest.raises(BudgetError):  # under another name there would be more
        service.ask(user, Question(COUNT, epsilon="0.5")).result()
    assert budget_view(service, user)[0]["share"]["remaining"]["epsilon"] == "0"


def test_a_share_whose_name_is_spelled_in_two_ways_is_not_guessed(opened, tmp_path):
    service = opened(tmp_path, POLICY + SHARES + "BOB = { epsilon = 5 }\n")
    with pytest.raises(SecantError):
        service.ask(User("bob", "analyst"), Question(COUNT, epsilon=1)).result()
    assert spent(service) == 0


@pytest.mark.postgres
def test_ledger_and_users_on_a_server(opened, tmp_path, postgres_server):
    place = postgres_server.address(postgres_server.create_database())
    policy = f'{POLICY}[ledger]\nlocation = "{place}"\n'
    service = opened(tmp_path, policy, **{"questions.each_user": 4})
    ada = service.users.add("ada", "analyst", PASSWORD)
    tickets = [service.ask(ada, Question(COUNT, epsilon=1), key=f"k{n % 4}") for n in range(8)]
    assert len({str(ticket.result().answer.rows) for ticket in tickets}) == 1
    tickets = [service.ask(ada, Question(f"{COUNT} WHERE id > {n}", epsilon=1)) for n in range(16)]
    codes = [getattr(ticket.future.exception(), "code", "answered") for ticket in tickets]
    assert (codes.count("answered"), codes.count("BUD-001")) == (9, 7)
    service.close()
    service = opened(tmp_path, policy)
    assert service.logins.login("ada", PASSWORD, way="test") == ada
    assert service.ask(ada, Question(COUNT, epsilon=1)).result().reused
    assert spent(service) == 10
    assert not [file for file in tmp_path.iterdir() if "ledger" in file.name]
