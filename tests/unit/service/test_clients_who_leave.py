"""A client that leaves: nobody goes on for it, what is paid for is kept, and the log does not call it a fault."""

import http.client
import json
import os
import signal
import ssl
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest
from clinic_service import COUNT, PASSWORD, service_at, settings_at
from test_asking import slow, spent
from test_http import Running, ask

from secant.ledger.store import Ledger
from secant.service.asking import Question
from secant.service.serving import Server, ended_by_signal
from secant.service.tls import fingerprint
from secant.service.users import User

ADA = User("ada", "analyst")


@pytest.fixture
def running(tmp_path):
    found = Running(tmp_path, **{"questions.workers": 1})
    found.ada = found.user("ada")
    yield found
    found.server.close()


def send(running, *, epsilon=1, accept="application/json", **more):
    """Send a question, and give the connection: whoever closes it leaves."""
    connection = http.client.HTTPConnection("127.0.0.1", running.port, timeout=60)
    body = json.dumps({"sql": COUNT, "epsilon": epsilon, **more})
    headers = {
        "Authorization": running.ada.headers["Authorization"],
        "Content-Type": "application/json",
        "Accept": accept,
    }
    connection.request("POST", "/v1/query", body, headers)
    return connection


def until(holds):
    """Wait until something holds; a test that waits in vain fails."""
    for _ in range(6000):
        if holds():
            return
        threading.Event().wait(0.01)
    raise AssertionError("it never came")


def outcomes(service):
    return [asked.outcome for asked in service.remembered.history("ada")]


ways = pytest.mark.parametrize("accept", ["application/json", "text/event-stream"])


def at_reservation(monkeypatch):
    """Let every question stop where it reserves its charge, and before anything is sent."""
    came, go = threading.Event(), threading.Event()
    reserve = Ledger.reserve

    def waits(self, *given, **more):
        came.set()
        go.wait(60)
        return reserve(self, *given, **more)

    monkeypatch.setattr(Ledger, "reserve", waits)
    return came, go


@ways
def test_a_question_whose_client_leaves_early_costs_nothing(running, monkeypatch, accept):
    came, go = at_reservation(monkeypatch)
    connection = send(running, accept=accept)
    assert came.wait(60)
    (ticket,) = running.service.running(ADA)
    connection.close()
    until(lambda: ticket.interrupt._stopped)
    go.set()
    until(lambda: not running.service.running(ADA))
    assert outcomes(running.service) == ["canceled"]
    assert spent(running.service) == 0


@ways
def test_a_question_that_waits_ends_with_its_client(running, monkeypatch, accept):
    sent, go = slow(running.service, monkeypatch)
    first = send(running)
    assert sent.wait(60)
    second = send(running, epsilon=2, accept=accept)
    until(lambda: len(running.service.running(ADA)) == 2)
    second.close()
    until(lambda: len(running.service.running(ADA)) == 1)
    go.set()
    assert first.getresponse().status == 200
    assert spent(running.service) == 1


@ways
def test_what_is_paid_for_is_there_when_the_client_comes_back(running, monkeypatch, accept):
    sent, go = slow(running.service, monkeypatch)
    connection = send(running, accept=accept)
    assert sent.wait(60)
    (ticket,) = running.service.running(ADA)
    connection.close()
    until(lambda: ticket.waiting == 0)
    go.set()
    until(lambda: not running.service.running(ADA))
    again = ask(running.ada, epsilon=1).json()
    assert again["reused"]
    assert spent(running.service) == 1


def test_an_answer_that_nobody_could_get_is_not_waited_for(running, monkeypatch):
    sent, _ = slow(running.service, monkeypatch)
    connection = send(running, reuse=False)
    assert sent.wait(60)
    connection.close()
    until(lambda: not running.service.running(ADA))
    assert outcomes(running.service) == ["canceled"]
    assert spent(running.service) == 1, "what was sent stays charged"


def test_two_who_send_the_same_key_both_have_to_leave(tmp_path, monkeypatch):
    with closing(service_at(tmp_path)) as service:
        came, go = at_reservation(monkeypatch)
        one = service.ask(ADA, Question(COUNT, epsilon=1), key="k")
        assert came.wait(60)
        other = service.ask(ADA, Question(COUNT, epsilon=1), key="k")
        assert one is other
        service.leave(one)
        go.set()
        assert other.result().answer.rows


def test_people_who_leave_are_no_errors(running, caplog):
    caplog.set_level("INFO", "secant.service")
    head = b"POST /v1/login HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    running.raw(head + b"Content-Length: 100\r\n\r\n{")
    until(lambda: "a client left" in caplog.text)
    assert [r for r in caplog.records if r.levelname == "ERROR"] == []


# ── signals ──────────────────────────────────────────────────────────────────────────────────────


def test_a_hang_up_ends_or_reloads():
    reloaded = []

    def reload():
        reloaded.append(1)
        os.kill(os.getpid(), signal.SIGTERM)

    with ended_by_signal(reloads=True) as wait:
        os.kill(os.getpid(), signal.SIGHUP)
        wait(reload)
    assert reloaded == [1]
    with ended_by_signal() as wait:
        os.kill(os.getpid(), signal.SIGHUP)
        wait(reload)
    assert reloaded == [1]


def test_what_ignores_a_hang_up_goes_on_doing_so():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with ended_by_signal():
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_hang_up_lets_what_runs_end_and_is_survived(tmp_path):
    """It killed the process in the middle of everything."""
    settings_at(tmp_path)
    program = Path(sys.executable).with_name("secant")
    server = subprocess.Popen(
        [program, "serve", "-p", tmp_path / "policy.toml", "--http", "0"],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert server.stdout.readline().startswith("Listening")
        server.send_signal(signal.SIGHUP)
        assert any("reloaded" in line for line in server.stderr)
        server.send_signal(signal.SIGTERM)
        assert server.wait(60) == 0
        assert "every charge is settled or kept" in server.stdout.read()
    finally:
        server.kill()
        server.communicate()


def test_another_certificate_is_taken_up(tmp_path, caplog):
    settings = settings_at(tmp_path, **{"http.port": 0, "tls.self_made": True})
    with Server(settings) as server:
        place = int(server.fronts[0].address.rpartition(":")[2])
        certificate, key = tmp_path / "secant-self-made.pem", tmp_path / "secant-self-made.key"
        first, seen = fingerprint(certificate), _certificate(place)
        kept = certificate.read_bytes(), key.read_bytes()
        certificate.unlink()
        server.reload()
        assert fingerprint(certificate) != first
        assert _certificate(place) != seen
        seen = _certificate(place)
        certificate.write_bytes(kept[0])  # of another key
        server.reload()
        assert "certificate and key stay as they were" in caplog.text
        assert _certificate(place) == seen


def _certificate(port):
    return ssl.get_server_certificate(("127.0.0.1", port))


def test_a_reload_opens_policy_and_data_again(tmp_path):
    with closing(service_at(tmp_path)) as service:
        service.users.add("ada", "analyst", PASSWORD)
        with service.opened(ADA) as before:
            service.reload()
            with service.opened(ADA) as after:
                assert after is not before
            assert before.budget, "who has it goes on with it"
