"""The HTTP front, over real sockets: what it answers, what it refuses, and what never leaves it."""

import io
import json
import socket
import ssl
import threading
import time
from contextlib import closing, suppress

import httpx
import pytest
from clinic_service import CANARY, COUNT, PASSWORD, POLICY, SHARES, settings_at

import secant
from secant.errors import UsageError
from secant.service.http.guard import check_exposure
from secant.service.http.openapi import OPERATIONS
from secant.service.serving import Server
from secant.service.tls import fingerprint

STREAM = """
[streams.visits_by_cost]
query = "SELECT cost, count(*) AS n FROM visits GROUP BY cost"
step = 1
start = 0
steps = 4
protection = "rows"
epsilon = 0.5
"""


class Running:
    """A service, and clients of its users."""

    def __init__(self, folder, policy=POLICY, **given):
        self.server = Server(settings_at(folder, policy, **{"http.port": 0, **given}))
        self.service = self.server.service
        self.address = self.server.fronts[0].address
        self.port = int(self.address.rpartition(":")[2])

    def user(self, name, role="analyst"):
        token, _ = self.service.users.make_token(
            self.service.users.add(name, role, PASSWORD), seconds=600
        )
        return self.client(token)

    def client(self, token=None, **more):
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        return httpx.Client(base_url=self.address, headers=headers, timeout=60, **more)

    def raw(self, data, *, timeout=10.0):
        """Send bytes as they are, and give all that comes back."""
        with closing(socket.create_connection(("127.0.0.1", self.port), 10)) as connection:
            connection.settimeout(timeout)
            found = b""
            with suppress(ConnectionError):  # it may hang up while we are still sending
                connection.sendall(data)
                connection.shutdown(socket.SHUT_WR)
            with suppress(ConnectionError):
                while part := connection.recv(65536):
                    found += part
            return found


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    found = Running(tmp_path_factory.mktemp("http"), POLICY + SHARES + STREAM)
    yield found
    found.server.close()


@pytest.fixture(scope="module")
def ada(running):
    return running.user("ada")


@pytest.fixture(scope="module")
def olga(running):
    return running.user("olga", "owner")


@pytest.fixture(scope="module")
def eve(running):
    return running.user("eve", "auditor")


def code(response, status=None):
    if status is not None:
        assert response.status_code == status, response.text
    return response.json()["error"]["code"]


def ask(client, sql=COUNT, epsilon=0.001, **more):
    headers = more.pop("headers", {})
    return client.post("/v1/query", json={"sql": sql, "epsilon": epsilon, **more}, headers=headers)


# ── what it answers ──────────────────────────────────────────────────────────────────────────────


def test_a_question_is_answered_and_then_reused(ada):
    first, again = ask(ada, epsilon=0.01), ask(ada, epsilon=0.01)
    assert first.status_code == again.status_code == 200
    assert first.json()["columns"] == ["n"]
    assert (first.json()["reused"], again.json()["reused"]) == (False, True)
    assert first.json()["rows"] == again.json()["rows"]
    fresh = ask(ada, epsilon=0.01, reuse=False)
    assert not fresh.json()["reused"]
    assert fresh.json()["release_id"] != first.json()["release_id"]


def test_an_answer_as_arrow_holds_ends_and_the_guarantee(ada):
    import pyarrow as arrow

    accept = {"Accept": "application/vnd.apache.arrow.stream"}
    response = ask(ada, "SELECT count(*) AS n, sum(cost) AS s FROM visits", 0.01, headers=accept)
    assert response.headers["content-type"] == accept["Accept"]
    with arrow.ipc.open_stream(io.BytesIO(response.content)) as reader:
        table = reader.read_all()
    assert table.column_names == ["n", "n_low", "n_high", "s", "s_low", "s_high"]
    told = json.loads(table.schema.metadata[b"secant"])
    assert told["guarantee"][0]["protection"] == "rows"
    assert told["reused"] is False


def test_progress_comes_as_events(ada):
    accept = {"Accept": "text/event-stream"}
    response = ask(ada, f"{COUNT} WHERE cost > 2", 0.01, headers=accept)
    kinds = [line[7:] for line in response.text.splitlines() if line.startswith("event: ")]
    assert kinds[:2] == ["waiting", "running"]
    assert kinds[-1] == "answer"
    data = [line[6:] for line in response.text.splitlines() if line.startswith("data: ")]
    assert json.loads(data[-1])["columns"] == ["n"]
    refused = ask(ada, "SELECT name FROM visits", 0.01, headers=accept)
    assert '"code":"REF-102"' in refused.text.splitlines()[-2]


def test_an_explanation_spends_nothing(ada):
    before = ada.get("/v1/budget").json()
    told = ada.post("/v1/explain", json={"sql": COUNT, "epsilon": "0.5", "ranges": True}).json()
    assert told["guarantee"][0]["epsilon"] == 0.5
    assert "stability.scan" in told["text"]
    assert ada.get("/v1/budget").json() == before


def test_a_key_is_charged_once(ada):
    key = {"Idempotency-Key": "same"}
    sent = [ask(ada, f"{COUNT} WHERE cost > 3", 0.01, reuse=False, headers=key) for _ in range(3)]
    assert len({response.json()["release_id"] for response in sent}) == 1
    assert code(ask(ada, f"{COUNT} WHERE cost > 4", 0.01, headers=key), 422) == "SRV-002"


def test_errors_have_the_status_that_programs_expect(ada, eve):
    assert code(ask(ada, "SELECT name FROM visits"), 422) == "REF-102"
    assert code(ask(ada, "SELECT nothing FROM visits"), 400) == "SQL-002"
    assert code(ask(ada, epsilon=5), 402) == "BUD-001"
    assert code(ask(ada, epsilon="much"), 400) == "USE-002"
    assert code(ask(eve), 403) == "AUT-002"
    assert code(ada.get("/v1/nothing"), 404) == "SRV-004"
    assert code(ada.get("/v1/query"), 405) == "SRV-004"
    assert code(ada.delete("/v1/running/none"), 400) == "USE-001"
    assert ask(ada, "SELECT name FROM visits").json()["error"]["span"] == [17, 23]


def test_a_stream_is_paid_once(ada, olga):
    assert ada.get("/v1/streams").json()[0]["paid"] is False
    assert ada.get("/v1/streams/visits_by_cost").status_code == 200
    assert ada.get("/v1/streams").json()[0]["paid"] is False
    steps = {"json": {"until": 3}}
    assert code(ada.post("/v1/streams/visits_by_cost", **steps), 403) == "AUT-002"
    first = olga.post("/v1/streams/visits_by_cost", **steps)
    assert first.status_code == 200, first.text
    assert ada.get("/v1/streams").json()[0]["paid"] is True
    assert olga.post("/v1/streams/visits_by_cost", **steps).json()["rows"] == first.json()["rows"]
    assert ada.post("/v1/streams/visits_by_cost", json={}).json()["rows"] == first.json()["rows"]
    assert code(ada.post("/v1/streams/none", json={}), 400) == "USE-010"


def test_the_description_names_every_address(running):
    described = running.client().get("/openapi.json").json()
    assert described["openapi"] == "3.1.0"
    for address, method, *_ in OPERATIONS:
        assert method.lower() in described["paths"][address]
    schema = described["components"]["schemas"]["Query"]
    assert schema["additionalProperties"] is False
    assert set(schema["required"]) == {"sql"}


# ── who may see what ─────────────────────────────────────────────────────────────────────────────


def test_without_a_token_only_health_and_the_description_are_told(running):
    client = running.client()
    for address, method, *_ in OPERATIONS:
        place = address.replace("{name}", "x").replace("{id}", "x")
        body = {"user": "ada", "password": ""} if address == "/v1/login" else {"sql": "x"}
        response = client.request(method, place, json=body if method == "POST" else None)
        if address in ("/healthz", "/readyz"):
            assert response.status_code == 200
        else:
            assert code(response, 401) == "AUT-001"
    assert client.get("/readyz").json() == {
        "status": "ready",
        "checks": {"source": True, "ledger": True, "store": True},
    }


@pytest.mark.parametrize(
    "header",
    ["Bearer", "Bearer secant_x", "Basic YWRhOng=", "bearer " + "x" * 5000, "\xff"],
)
def test_tokens_that_are_none_are_refused(running, header):
    response = running.client().get("/v1/me", headers={"Authorization": header.encode("latin-1")})
    assert code(response, 401) == "AUT-001"


def test_an_analyst_sees_what_is_their_own(running, ada, olga, eve):
    bob = running.user("bob")
    ask(bob, f"{COUNT} WHERE cost < 2", 0.01)
    ask(ada, f"{COUNT} WHERE cost < 3", 0.01)
    assert {asked["user"] for asked in bob.get("/v1/history").json()} == {"bob"}
    assert "bob" not in {asked["user"] for asked in ada.get("/v1/history").json()}
    assert {"ada", "bob"} <= {asked["user"] for asked in olga.get("/v1/history").json()}
    assert {"ada", "bob"} <= {asked["user"] for asked in eve.get("/v1/history").json()}
    own, all_shares = bob.get("/v1/budget").json()[0], olga.get("/v1/budget").json()[0]
    assert own["share"]["budget"]["epsilon"] == "1"
    assert own["shares"] is None
    assert set(all_shares["shares"]) == {"ada", "bob"}
    for client in (ada, bob):
        for place in ("/v1/users", "/v1/audit", "/metrics"):
            assert code(client.get(place), 403) == "AUT-002"
    assert len(olga.get("/v1/audit").json()) > 3
    for client in (ada, eve):
        body = {"user": "mallory", "role": "owner"}
        assert code(client.post("/v1/users", json=body), 403) == "AUT-002"
        assert code(client.delete("/v1/users/bob"), 403) == "AUT-002"
        assert code(client.post("/v1/users/bob/password", json={}), 403) == "AUT-002"
        assert code(client.post("/v1/tokens", json={"user": "olga"}), 403) == "AUT-002"


def test_an_owner_adds_a_user_who_logs_in_and_out(running, olga):
    body = {"user": "carl", "role": "analyst", "current": PASSWORD}
    made = olga.post("/v1/users", json=body)
    assert made.status_code == 201
    login = running.client().post(
        "/v1/login", json={"user": "carl", "password": made.json()["password"]}
    )
    carl = running.client(login.json()["token"])
    assert carl.get("/v1/me").json() == {"user": "carl", "role": "analyst", "csrf": None}
    token = carl.post("/v1/tokens", json={"days": 1, "note": "dashboard"})
    assert token.status_code == 201
    assert [t["note"] for t in carl.get("/v1/tokens").json()] == ["", "dashboard"]
    assert code(carl.delete("/v1/tokens/none"), 400) == "USE-001"
    assert carl.delete(f"/v1/tokens/{token.json()['id']}").status_code == 204
    assert carl.post("/v1/logout").status_code == 204
    assert code(carl.get("/v1/me"), 401) == "AUT-001"
    assert olga.delete("/v1/users/carl").status_code == 204
    assert code(olga.delete("/v1/users/olga"), 400) == "USE-001"


def test_an_unknown_user_with_an_empty_password_is_refused_like_any_other(running):
    client = running.client()
    said = {
        client.post("/v1/login", json={"user": user, "password": password}).text
        for user, password in (("ada", "x"), ("nobody", ""), ("", ""), ("nobody", PASSWORD))
    }
    assert len(said) == 1
    assert "AUT-001" in said.pop()


def test_tables_that_nobody_may_read_are_not_named(ada):
    names = {table["table"]: table["public"] for table in ada.get("/v1/tables").json()}
    assert names == {"loads": True, "people": False, "visits": False}


# ── bad input ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"\xff\xfe",
        b'{"sql": 1}',
        b'{"sql": "SELECT 1", "epsilon": NaN}',
        b'{"sql": "SELECT 1", "epsilon": Infinity}',
        b'{"sql": "SELECT 1", "epsilon": [1]}',
        b'{"sql": "SELECT 1", "more": 1}',
        b'{"sql": "\\ud800"}',
        b'{"sql": "SELECT \\u0000", "epsilon": 1}',
        b'{"sql": "x", "epsilon": ' + b"9" * 5000 + b"}",
        b'{"sql": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"sql": "' + b"x" * 999_900 + b'"}',
    ],
)
def test_bodies_that_are_refused(ada, body):
    response = ada.post("/v1/query", content=body, headers={"Content-Type": "application/json"})
    assert response.status_code == 400
    assert code(response) in ("SRV-004", "SQL-001", "SQL-007")
    assert len(response.content) < 3000


def test_a_body_that_is_too_large_is_refused_before_it_is_read(running, ada):
    assert code(ask(ada, "x" * 1_100_000), 400) == "SRV-004"
    head = b"POST /v1/query HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    for length in (b"1073741824", b"9" * 400, b"-1", b"x"):
        found = running.raw(head + b"Content-Length: " + length + b"\r\n\r\n")
        assert found.startswith(b"HTTP/1.1 400")
    chunks = (
        b"Transfer-Encoding: chunked\r\nAuthorization: " + ada.headers["authorization"].encode()
    )
    many = (b"10000\r\n" + b"x" * 65536 + b"\r\n") * 20
    found = running.raw(head + chunks + b"\r\n\r\n" + many)
    assert found.startswith(b"HTTP/1.1 400") or not found


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x00\x00\x00\x08\x04\xd2\x16\x2f",
        b"GET",
        b"GET / HTTP/1.1\r\nHost: loc",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /" + b"x" * 100_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 100_000 + b"\r\n\r\n",
        b"POST /v1/query HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc",
    ],
)
def test_half_a_message_harms_nobody(running, ada, data):
    found = running.raw(data)
    assert not found.startswith(b"HTTP/1.1 200")
    assert b"Traceback" not in found
    assert ada.get("/v1/me").status_code == 200


@pytest.mark.parametrize("size", [16_400, 60_000])
def test_a_head_that_is_too_large_is_refused_also_in_one_piece(running, size):
    data = b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * size + b"\r\n\r\n"
    assert running.raw(data).startswith(b"HTTP/1.1 400")


def test_a_body_that_comes_slowly_is_given_up(running, ada, monkeypatch):
    monkeypatch.setattr("secant.service.http.bodies.SECONDS", 0.3)
    head = (
        b"POST /v1/query HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        b"Content-Length: 50\r\nAuthorization: "
        + ada.headers["authorization"].encode()
        + b"\r\n\r\n{"
    )
    with closing(socket.create_connection(("127.0.0.1", running.port), 10)) as connection:
        connection.sendall(head)
        connection.settimeout(30)
        assert connection.recv(65536).startswith(b"HTTP/1.1 400")


def test_secrets_in_addresses_are_refused(ada):
    token = ada.headers["authorization"].removeprefix("Bearer ")
    for place in (
        f"/v1/me?token={token}",
        f"/v1/me?x={token}",
        f"/v1/{token}",
        "/v1/me?Password=x",
    ):
        response = ada.get(place)
        assert code(response, 400) == "SRV-004"
        assert token not in response.text


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:80", "", "[", "localhost.evil.example"]
)
def test_other_names_are_refused(running, host):
    found = running.raw(
        f"GET /healthz HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode()
    )
    assert found.startswith(b"HTTP/1.1 400")
    assert b"alive" not in found


def test_many_connections_at_once_leave_analysis_again(tmp_path):
    found = Running(tmp_path, **{"http.connections": 50})
    try:
        ada = found.user("ada")
        held = [socket.create_connection(("127.0.0.1", found.port), 10) for _ in range(120)]
        for connection in held:
            connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        told = [connection.recv(65536)[:12] for connection in held]
        assert b"HTTP/1.1 503" in told
        assert set(told) <= {b"HTTP/1.1 200", b"HTTP/1.1 503"}
        for connection in held:
            connection.close()
        for _ in range(100):
            if ada.get("/v1/me", headers={"Connection": "close"}).status_code == 200:
                break
            time.sleep(0.1)
        assert ada.get("/v1/me").status_code == 200
    finally:
        found.server.close()


def test_readers_that_do_not_read_keep_nobody_waiting(running, ada):
    lines = b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n" * 200
    slow = [socket.create_connection(("127.0.0.1", running.port), 10) for _ in range(20)]
    try:
        for connection in slow:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.setblocking(False)
            with suppress(BlockingIOError):
                connection.send(lines)
        assert ask(ada, epsilon=0.01).status_code == 200
    finally:
        for connection in slow:
            connection.close()


def test_every_response_keeps_browsers_on_a_short_leash(running, ada):
    responses = [
        running.client().get("/"), running.client().get("/nothing"), running.client().get("/static/console.js"),
        running.client().get("/healthz", headers={"Host": "evil.example"}), ada.get("/v1/me"), ask(ada, "x"),
    ]  # fmt: skip
    for response in responses:
        policy = response.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert response.headers["x-content-type-options"] == "nosniff"
        assert response.headers["cache-control"] == "no-store"
        assert "server" not in response.headers
        assert "access-control-allow-origin" not in response.headers


# ── browsers ─────────────────────────────────────────────────────────────────────────────────────


def logged_in(running, name="ada"):
    browser = running.client()
    response = browser.post("/console/login", json={"user": name, "password": PASSWORD})
    assert response.status_code == 204, response.text
    assert "httponly" in response.headers["set-cookie"].lower()
    assert "samesite=strict" in response.headers["set-cookie"].lower()
    return browser


def test_the_console_lets_in_and_out(running, ada):
    browser = logged_in(running)
    me = browser.get("/v1/me").json()
    assert (me["user"], me["role"]) == ("ada", "analyst")
    assert browser.post("/console/logout").status_code == 401
    left = browser.post("/console/logout", headers={"X-CSRF-Token": me["csrf"]})
    assert left.status_code == 204
    assert browser.get("/v1/me").status_code == 401


def test_a_request_that_another_site_causes_is_refused(running, ada):
    browser = logged_in(running)
    mark = {"X-CSRF-Token": browser.get("/v1/me").json()["csrf"]}
    before = browser.get("/v1/budget").json()
    body = {"sql": f"{COUNT} WHERE cost > 5", "epsilon": 0.01}
    tricked = (
        {},
        {"X-CSRF-Token": "0" * 64},
        {"X-CSRF-Token": "é".encode()},
        {**mark, "Origin": "https://evil.example"},
        {**mark, "Sec-Fetch-Site": "cross-site"},
        {**mark, "Sec-Fetch-Site": "same-site"},
        {**mark, "Origin": "null"},
    )
    for headers in tricked:
        assert code(browser.post("/v1/query", json=body, headers=headers), 401) == "AUT-001"
    form = {**mark, "Content-Type": "text/plain"}
    assert code(browser.post("/v1/query", content=json.dumps(body), headers=form), 400) == "SRV-004"
    assert browser.get("/v1/budget").json() == before
    assert browser.post("/v1/query", json=body, headers=mark).status_code == 200
    foreign = {"Origin": "https://evil.example"}
    login = {"user": "ada", "password": PASSWORD}
    assert browser.post("/console/login", json=login, headers=foreign).status_code == 401


def test_html_is_shown_as_text_or_not_at_all(running, ada):
    evil = "<script>alert(1)</script>"
    wrong = running.client().post("/console/login", json={"user": evil, "password": evil})
    assert wrong.status_code == 401
    assert evil not in wrong.text
    response = ask(ada, f'SELECT count(*) AS "{evil}" FROM visits', 0.01)
    assert response.json()["columns"] == [evil]
    assert response.headers["content-type"] == "application/json"


# ── nothing leaks, nothing is charged twice ──────────────────────────────────────────────────────


HOSTILE = (
    "SELECT name FROM visits",
    "SELECT name, count(*) AS n FROM visits GROUP BY name",
    "SELECT max(name) FROM visits",
    "SELECT CAST(name AS BIGINT) FROM visits",
    "SELECT sum(CAST(name AS BIGINT)) AS n FROM visits",
    "SELECT count(*) AS n FROM visits WHERE CAST(name AS BIGINT) > 1",
    "SELECT count(*) AS n FROM visits WHERE 1 / (cost - 3) > 1",
    "SELECT name FROM people; DROP TABLE people",
    "COPY visits TO '/tmp/x'",
    "CREATE TABLE t AS SELECT * FROM visits",
    "SELECT * FROM read_csv('/etc/passwd')",
)


def test_a_canary_in_the_data_appears_nowhere(tmp_path, caplog):
    caplog.set_level("DEBUG")
    found = Running(tmp_path)
    heard = []
    try:
        ada, olga = found.user("ada"), found.user("olga", "owner")
        for sql in HOSTILE:
            for accept in ("application/json", "text/event-stream"):
                heard.append(ask(ada, sql, 0.01, headers={"Accept": accept}))
                heard.append(ada.post("/v1/explain", json={"sql": sql}))
        for place in (
            "/",
            "/v1/history",
            "/v1/tables",
            "/v1/budget",
            "/v1/audit",
            "/metrics",
            "/openapi.json",
        ):
            heard.append(olga.get(place))
        heard.append(logged_in(found, "olga").get("/"))
    finally:
        found.server.close()
    written = b"".join(file.read_bytes() for file in tmp_path.iterdir() if file.suffix != ".duckdb")
    with secant.connect(policy=tmp_path / "policy.toml") as database:
        named = {p for r in database.ledger.history() for p in r.papers.values()}
        papers = [body for name in named if (body := database.ledger.paper(name)) is not None]
    assert len(papers) > 4  # compressed in the ledger, so they are looked at one by one
    written += "".join(papers).encode()
    assert len(heard) > 40
    assert sum(response.status_code == 200 for response in heard) > 10
    for text in (*(response.text for response in heard), caplog.text, written.decode("latin-1")):
        assert CANARY not in text
    assert CANARY.encode() in (tmp_path / "shop.duckdb").read_bytes()


def test_sixteen_clients_with_budget_for_ten_over_http(tmp_path):
    found = Running(tmp_path, **{"questions.waiting": 100})
    try:
        clients = [found.user(f"user{number}") for number in range(16)]
        statuses = []

        def talk(number):
            for each in range(4):
                text = f"{COUNT} WHERE cost > {each} AND id > {number}"
                response = ask(clients[number], text, 1, headers={"Idempotency-Key": f"k{each}"})
                statuses.append("answered" if response.status_code == 200 else code(response))

        threads = [threading.Thread(target=talk, args=(number,)) for number in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert statuses.count("answered") == 10
        assert statuses.count("BUD-001") == 54
        with found.service.opened(found.service.users.all()[0]) as connection:
            connection.ledger.verify()
            assert connection.budget["rows"].remaining_epsilon == 0
        metrics = found.user("olga", "owner").get("/metrics").text
        assert 'secant_questions_total{outcome="answered"} 10' in metrics
        assert 'secant_refusals_total{code="BUD-001"} 54' in metrics
        assert 'secant_epsilon_spent{protection="rows"} 10.0' in metrics
        assert "user" not in metrics
    finally:
        found.server.close()


# ── TLS and where it listens ─────────────────────────────────────────────────────────────────────


def test_self_made_tls_is_believed_by_who_has_the_certificate_under_its_own_name_only(tmp_path):
    found = Running(tmp_path, **{"tls.self_made": True})
    try:
        assert found.address.startswith("https://")
        certificate = tmp_path / "secant-self-made.pem"
        assert (tmp_path / "secant-self-made.key").stat().st_mode & 0o077 == 0
        assert len(fingerprint(certificate).split(":")) == 32
        trusting = ssl.create_default_context(cafile=certificate)
        with httpx.Client(verify=trusting) as client:
            response = client.get(f"https://localhost:{found.port}/healthz")
            assert response.json() == {"status": "alive"}
            assert "strict-transport-security" in response.headers
        with pytest.raises(httpx.ConnectError), httpx.Client() as client:
            client.get(f"https://localhost:{found.port}/healthz")
        with (
            closing(socket.create_connection(("127.0.0.1", found.port), 10)) as plain,
            pytest.raises(ssl.SSLCertVerificationError, match=r"[Hh]ostname"),
        ):
            trusting.wrap_socket(plain, server_hostname="secant.example")
        with httpx.Client(verify=trusting, base_url=f"https://localhost:{found.port}") as browser:
            found.user("ada")
            cookie = browser.post("/console/login", json={"user": "ada", "password": PASSWORD})
            assert cookie.headers["set-cookie"].startswith("__Host-secant=")
            assert "secure" in cookie.headers["set-cookie"].lower()
    finally:
        found.server.close()


@pytest.mark.parametrize(
    ("given", "allowed"),
    [
        ({}, True),
        ({"http.host": "::1"}, True),
        ({"http.host": "0.0.0.0"}, False),
        ({"http.host": "10.0.0.1", "tls.self_made": True}, False),
        ({"http.host": "10.0.0.1", "http.origin": "https://s.example"}, False),
        (
            {"http.host": "10.0.0.1", "tls.self_made": True, "http.origin": "https://s.example"},
            True,
        ),
        (
            {"http.host": "0.0.0.0", "http.behind_proxy": True, "http.origin": "https://s.example"},
            True,
        ),
    ],
)
def test_it_listens_beyond_the_machine_only_if_that_is_safe(tmp_path, given, allowed):
    settings = settings_at(tmp_path, **given)
    if allowed:
        check_exposure(settings)
        assert settings.http.port == 8443
    else:
        with pytest.raises(UsageError, match="would listen"):
            check_exposure(settings)


def test_a_port_that_is_taken_is_told(tmp_path):
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(UsageError, match="cannot listen"):
            Running(tmp_path, **{"http.port": port})


def test_what_is_asked_while_it_stops_is_refused_and_nothing_is_lost(tmp_path):
    found = Running(tmp_path)
    ada = found.user("ada")
    told = ask(ada, epsilon=1).json()
    found.server.close()
    with pytest.raises(httpx.HTTPError):
        ask(ada, epsilon=2)
    after = Running(tmp_path)
    try:
        again = ask(
            after.client(ada.headers["authorization"].removeprefix("Bearer ")), epsilon=1
        ).json()
        assert again["reused"]
        assert again["rows"] == told["rows"]
    finally:
        after.server.close()
