"""Logins over HTTP: a flood of them starves nobody, and a stolen token leaves nothing behind."""

import threading
from concurrent.futures import ThreadPoolExecutor, as_completed
from itertools import islice

import pytest
from clinic_service import PASSWORD
from test_http import Running, code

from secant.service import logins
from secant.service.logins import FREE_FAILURES

CROWD = 60
WORKERS = 2


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    found = Running(tmp_path_factory.mktemp("logins"), **{"logins.workers": WORKERS})
    yield found
    found.server.close()


@pytest.fixture
def users(running):
    """Give ada and olga, as they were added: with no tokens but one each."""
    found = {}
    for name, role in (("ada", "analyst"), ("olga", "owner")):
        found[name] = running.user(name, role)
    yield found
    for name in found:
        running.service.users.remove(name)
    with running.service.users.store.writing() as rows:
        rows.do("DELETE FROM failures")


def log_in(running, name="ada", password=PASSWORD, **more):
    body = {"user": name, "password": password}
    return running.client().post("/v1/login", json=body, **more)


# ── floods ───────────────────────────────────────────────────────────────────────────────────────


def test_a_flood_of_logins_starves_nobody_who_has_a_token(running, users, monkeypatch):
    """Each check of a password stands still: whoever has a token is served all the same."""
    go_on, lock = threading.Event(), threading.Lock()
    at_once, most = 0, 0

    def stands_still(verifier, password):
        nonlocal at_once, most
        with lock:
            at_once += 1
            most = max(most, at_once)
        go_on.wait(60)
        with lock:
            at_once -= 1
        return False

    monkeypatch.setattr(logins, "matches", stands_still)
    room = running.service.settings.logins.waiting_of_address + 1  # one is being checked
    with ThreadPoolExecutor(CROWD) as pool:
        flood = [pool.submit(log_in, running) for _ in range(CROWD)]
        try:
            early = list(islice(as_completed(flood, 60), CROWD - room))
            assert users["ada"].get("/v1/me").json()["user"] == "ada"
            assert most == 1
        finally:
            go_on.set()
        said = [f.result() for f in early]
    assert {(r.status_code, code(r), r.headers["retry-after"]) for r in said} == {
        (429, "AUT-004", "1")
    }
    assert {f.result().status_code for f in flood} <= {401, 429}


def test_of_one_address_one_password_is_checked_at_a_time(running, monkeypatch):
    go_on, checked = threading.Event(), []

    def stands_still(verifier, password):
        checked.append(password)
        go_on.wait(60)
        return False

    monkeypatch.setattr(logins, "matches", stands_still)
    attempt = running.service.logins.attempt
    waiting = [attempt("x", f"a{n}", way="test", address="10.0.0.66") for n in range(5)]
    other = attempt("x", "other", way="test", address="10.0.0.1")
    while len(checked) < WORKERS:
        threading.Event().wait(0.01)
    assert sorted(checked) == ["a0", "other"], "the second worker is for others"
    go_on.set()
    for future in (*waiting, other):
        assert future.exception().code == "AUT-001"


def test_a_login_is_small(running):
    body = {"user": "ada", "password": "x" * 20_000}
    assert code(running.client().post("/v1/login", json=body), 400) == "SRV-004"


# ── lock-outs ────────────────────────────────────────────────────────────────────────────────────


def test_wrong_passwords_over_http_do_not_lock_the_port(running, users):
    for _ in range(FREE_FAILURES):
        assert code(log_in(running, password="wrong"), 401) == "AUT-001"
    locked = log_in(running)
    assert code(locked, 429) == "AUT-003"
    assert int(locked.headers["retry-after"]) >= 1
    door = running.service.logins
    assert door.login("ada", PASSWORD, way="postgres", address="10.1.1.1").name == "ada"


def test_behind_a_proxy_the_client_counts(tmp_path):
    given = {"http.behind_proxy": True, "http.forwarded_for": True}
    behind = Running(tmp_path, **given)
    try:
        behind.user("ada")
        for number in range(FREE_FAILURES + 1):
            # What stands before the last address is the client's own word.
            said = {"X-Forwarded-For": f"10.9.9.{number}, 203.0.113.9"}
            refused = log_in(behind, password="wrong", headers=said)
        assert code(refused, 429) == "AUT-003"
        assert log_in(behind, headers={"X-Forwarded-For": "10.0.0.1"}).status_code == 200
        lines = [line.origin.address for line in behind.service.users.log() if "login" in line.kind]
        assert lines.count("203.0.113.9") == FREE_FAILURES + 1
    finally:
        behind.server.close()


def test_without_a_proxy_nobody_is_believed(running, users):
    log_in(running, headers={"X-Forwarded-For": "203.0.113.9"})
    assert running.service.users.log()[0].origin.address == "127.0.0.1"


# ── stolen tokens ────────────────────────────────────────────────────────────────────────────────


def test_a_stolen_token_leaves_nothing_behind(running, users):
    ada, olga = users["ada"], users["olga"]
    stolen = log_in(running).json()["token"]
    thief = running.client(stolen)
    child = thief.post("/v1/tokens", json={"days": 366})
    assert child.status_code == 201
    mine = next(t for t in ada.get("/v1/tokens").json() if t["kind"] == "session")
    assert child.json()["expires"] == mine["expires"], "it lives no longer than what made it"
    assert child.json()["parent"] == mine["id"]
    for body in (
        {"password": "a password of the thief"},
        {"current": "guess", "password": PASSWORD},
    ):
        assert code(thief.post("/v1/users/ada/password", json=body), 401) == "AUT-001"
    assert code(thief.post("/v1/tokens", json={"days": 366, "current": "guess"}), 401) == "AUT-001"
    assert olga.delete(f"/v1/tokens/{mine['id']}").status_code == 204
    assert code(running.client(child.json()["token"]).get("/v1/me"), 401) == "AUT-001"
    assert log_in(running).status_code == 200, "the password is the one of before"


def test_a_stolen_token_of_an_owner_makes_no_owner(running, users):
    body = {"user": "mallory", "role": "owner", "password": "a password of the thief"}
    assert code(users["olga"].post("/v1/users", json=body), 401) == "AUT-001"
    assert code(users["olga"].post("/v1/users/ada/password", json={}), 401) == "AUT-001"


def test_a_password_makes_a_token_that_lasts_until_the_password_changes(running, users):
    begun = running.client(log_in(running).json()["token"])
    lasting = begun.post("/v1/tokens", json={"days": 90, "current": PASSWORD}).json()
    assert lasting["parent"] is None
    assert begun.post("/v1/logout").status_code == 204
    program = running.client(lasting["token"])
    assert program.get("/v1/me").status_code == 200
    body = {"current": PASSWORD, "password": PASSWORD + "2"}
    assert program.post("/v1/users/ada/password", json=body).status_code == 200
    assert code(program.get("/v1/me"), 401) == "AUT-001"


def test_everything_of_a_user_is_revoked_at_once(running, users):
    ada, olga = users["ada"], users["olga"]
    tokens = [log_in(running).json()["token"] for _ in range(2)]
    assert code(ada.delete("/v1/users/olga/tokens"), 403) == "AUT-002"
    assert olga.delete("/v1/users/ada/tokens").json() == {"user": "ada", "ended": 3}
    for client in (ada, *(running.client(token) for token in tokens)):
        assert code(client.get("/v1/me"), 401) == "AUT-001"
    assert olga.get("/v1/me").status_code == 200
    assert code(olga.delete("/v1/users/nobody/tokens"), 400) == "USE-001"


def test_the_audit_log_names_who_acted_from_where_and_how(running, users):
    began = running.client(log_in(running).json()["token"])
    body = {"current": PASSWORD, "password": PASSWORD + "2"}
    changed = began.post("/v1/users/ada/password", json=body)
    reset = users["olga"].post("/v1/users/ada/password", json={"current": PASSWORD})
    lines = [
        line for line in users["olga"].get("/v1/audit").json() if line["kind"] == "password changed"
    ]
    by_owner, by_self = lines[:2]
    assert (by_owner["actor"], by_self["actor"]) == ("olga", "ada")
    assert by_owner["request"] == reset.headers["x-request-id"]
    assert by_self["request"] == changed.headers["x-request-id"]
    assert by_owner["token"] != by_self["token"]
    assert {line["address"] for line in lines[:2]} == {"127.0.0.1"}
    assert {line["user"] for line in lines[:2]} == {"ada"}
