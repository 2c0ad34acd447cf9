"""What clients do wrong or with intent at the PostgreSQL port: refused, bounded, and charged at most once."""

from __future__ import annotations

import base64
import os
import random
import secrets
import socket
import struct
import threading
import time
from contextlib import suppress

import psycopg
import pytest
from hostile_client import Raw

from postgres_port import GROUPS, PASSWORD, USER, running, start
from private_shop import SECRETS, shop_policy
from secant.service.postgres import port as port_module

ASKED = "SELECT count(*) AS n FROM orders WHERE big > {}"


# ── logging in ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("user", ["nobody", USER, "postgres", "secant_shadow", "", "x" * 5000, "é"])
@pytest.mark.parametrize("password", ["", "wrong password"])
def test_nobody_logs_in_without_the_password(secant_port, user, password):
    """The obvious library lets an unknown user in with an empty password."""
    with Raw(secant_port, login=False) as client:
        client.startup(user)
        if user:
            client.scram(password)
        assert client.error() in ("28P01", "28000")
        with pytest.raises((EOFError, ConnectionError)):
            client.read()
    secant_port.server.service.users.set_password(USER, PASSWORD)  # forgets the failures


@pytest.mark.parametrize(
    "spoil", [lambda p: b"", lambda p: b"\0" * 32, lambda p: p[:-1], lambda p: p + b"\0"]
)
def test_a_proof_must_be_right(secant_port, spoil):
    with Raw(secant_port, login=False) as client:
        client.startup(USER)
        client.scram(PASSWORD, spoil=spoil)
        assert client.error() == "28P01"
    secant_port.server.service.users.set_password(USER, PASSWORD)


def test_a_login_that_is_skipped(secant_port):
    """No message but the next one of the exchange is taken before a login has ended."""
    for kind, body in (
        (b"Q", b"SELECT 1\0"),
        (b"p", b"SCRAM-SHA-256\0" + b"\xff" * 4),
        (b"p", b"PLAIN\0\0\0\0\0"),
    ):
        with Raw(secant_port, login=False) as client:
            client.startup(USER)
            client.read()
            client.send(kind, body)
            assert client.error() == "08P01"
            with pytest.raises((EOFError, ConnectionError)):
                client.read()


def test_a_nonce_of_somebody_else(secant_port):
    with Raw(secant_port, login=False) as client:
        client.startup(USER)
        client.read()
        client.send(b"p", b"SCRAM-SHA-256\0" + struct.pack("!i", 20) + b"n,,n=,r=abcdefghijkl")
        client.read()
        client.send(b"p", b"c=biws,r=another,p=" + base64.b64encode(b"\0" * 32))
        assert client.error() == "08P01"


def test_wrong_tls_name(secant_port):
    more = f"&sslmode=verify-full&sslrootcert={secant_port.certificate}&hostaddr=127.0.0.1"
    address = secant_port.address(more=more).replace("@127.0.0.1", "@secant.example")
    with pytest.raises(psycopg.OperationalError, match=r"secant\.example"):
        psycopg.connect(address)


def test_what_was_sent_before_tls_is_not_taken_for_encrypted(secant_port):
    with Raw(secant_port, login=False) as client:
        client.socket.sendall(struct.pack("!ii", 8, 80877103) + b"stuffed")
        assert client.ended()


# ── messages that are none ───────────────────────────────────────────────────────────────────────


def test_half_a_message(secant_port):
    with Raw(secant_port) as client:
        client.socket.sendall(b"Q" + struct.pack("!i", 100) + b"SELECT")
    _still_works(secant_port)


@pytest.mark.parametrize("size", [2**30, -1, 0, 3, 2**31 - 1])
def test_a_message_that_claims_too_much(secant_port, size):
    with Raw(secant_port) as client:
        client.socket.sendall(b"Q" + struct.pack("!i", size))
        assert client.error() == "08P01"
    with Raw(secant_port, login=False) as client:
        client.socket.sendall(struct.pack("!ii", size, 196608))
        assert client.error() == "08P01"
    _still_works(secant_port)


def test_drawn_bytes_end_connections_and_nothing_else(secant_port):
    draw = random.Random(int(os.environ.get("SECANT_SEED", "7")))
    kinds = b"QPBDECSHFdcfpX\0\xff"
    for _ in range(40):
        with Raw(secant_port) as client:
            client.socket.settimeout(10)
            for _ in range(6):
                body = draw.randbytes(draw.randrange(0, 40))
                if draw.random() < 0.5:
                    body = b"a\0" + b"SELECT 1\0" + body
                with suppress(ConnectionError):
                    client.send(bytes([draw.choice(kinds)]), body)
            with suppress(EOFError, ConnectionError):
                client.send(b"S")
                client.send(b"X")
                while True:
                    client.read()
    _still_works(secant_port)


def test_bind_that_does_not_fit(secant_port):
    with psycopg.connect(secant_port.address(), autocommit=True) as connection:
        result = connection.pgconn.exec_params(ASKED.format("$1").encode(), [b"abc"], [20])
        assert result.error_field(67) == b"22P02"
        result = connection.pgconn.exec_params(ASKED.format("$1").encode(), [b"\1"], [1700], [1])
        assert result.error_field(67) == b"08P01"
        result = connection.pgconn.exec_params(ASKED.format("$1 AND $2 > 3").encode(), [b"1"], [20])
        assert result.error_field(67) is not None


# ── who leaves, and who does not read ────────────────────────────────────────────────────────────


def test_a_client_that_dies_between_bind_and_execute(secant_port):
    spent = secant_port.spent()
    with Raw(secant_port) as client:
        client.send(b"P", b"s\0" + ASKED.format(71).encode() + b"\0\0\0")
        client.send(b"B", b"p\0s\0\0\0\0\0\0\0")
        client.send(b"D", b"Pp\0")
        client.send(b"H")
        assert [client.read()[0] for _ in range(3)] == [b"1", b"2", b"T"]
    _still_works(secant_port)
    assert secant_port.spent() == spent


def test_a_portal_is_asked_once(secant_port):
    with Raw(secant_port) as client:
        client.send(b"Q", b"BEGIN\0")
        client.until_ready()
        spent = secant_port.spent()
        client.send(b"P", b"s\0" + GROUPS.replace("n FROM", "m FROM").encode() + b"\0\0\0")
        client.send(b"B", b"p\0s\0\0\0\0\0\0\0")
        for _ in range(3):
            client.send(b"E", b"p\0" + struct.pack("!i", 2))
        client.send(b"S")
        kinds = [kind for kind, _ in client.until_ready() if kind in b"DsC"]
        assert kinds[:6] == [b"D", b"D", b"s", b"D", b"D", b"s"]
        assert secant_port.spent() == spent + 50


def test_a_slow_reader_holds_up_nobody(secant_port):
    with Raw(secant_port) as slow:
        slow.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.send(b"Q", b"SELECT repeat('x', 1000) FROM generate_series(1, 20000)\0")
        time.sleep(0.2)
        for _ in range(3):
            _still_works(secant_port)


def test_more_connections_than_there_is_room_for(tmp_path):
    with start(tmp_path) as server:
        port = running(server)
        port.front.port.most = 20
        held, refused = [], 0
        for _ in range(300):
            client = Raw(port, login=False)
            held.append(client)
        for client in held:
            client.socket.settimeout(0.2)
            with suppress(TimeoutError, OSError):
                refused += client.error() == "53300"
        assert refused >= 280
        for client in held:
            client.socket.close()
        _works_in_time(port)


@pytest.mark.parametrize("words", [b"", b"\x16\x03\x01\x02\x00\x01", b"no TLS at all"])
def test_handshakes_that_never_end_make_room_again(tmp_path, monkeypatch, words):
    monkeypatch.setattr(port_module, "LOGIN_SECONDS", 1.5)
    with start(tmp_path) as server:
        port = running(server)
        port.front.port.most = 10
        held = [Raw(port, login=False) for _ in range(60)]
        asked = 0
        for client in held:
            client.socket.settimeout(0.5)
            with suppress(OSError):
                client.socket.sendall(struct.pack("!ii", 8, 80877103))
                asked += client.socket.recv(1) == b"S"
                client.socket.sendall(words)
        assert asked >= 10
        _works_in_time(port)  # while all of them are still held open on this side
        for client in held:
            client.socket.close()


def test_a_cancel_request_needs_the_key(secant_port):
    with psycopg.connect(secant_port.address(), autocommit=True) as connection:
        number = connection.info.backend_pid
        for secret in (0, 1, secrets.randbits(32)):
            with socket.create_connection((secant_port.host, secant_port.port)) as guess:
                guess.sendall(struct.pack("!iiiI", 16, 80877102, number, secret))
                assert guess.recv(10) == b""
        assert connection.execute("SELECT 1").fetchone() == (1,)


# ── statements that are not questions ────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "text",
    [
        "COPY orders FROM STDIN", "COPY orders TO STDOUT", "INSERT INTO orders VALUES (1)", "DELETE FROM orders",
        "UPDATE orders SET total = 1", "DROP TABLE orders", "TRUNCATE orders", "ALTER TABLE orders ADD x int",
        "CREATE TABLE x (y int)", "CREATE TEMP TABLE orders AS SELECT count(*) AS n FROM orders",
        "DO $$ BEGIN END $$", "CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'",
        "GRANT ALL ON orders TO ana",
        "COPY (SELECT 1) TO '/tmp/x'", "COPY (SELECT 1) TO PROGRAM 'id'", "SELECT pg_read_file('/etc/passwd')",
        "EXPLAIN ANALYZE SELECT count(*) FROM orders", "PREPARE x AS SELECT count(*) FROM orders",
        "SET SESSION AUTHORIZATION secant_shadow", "SET ROLE secant_shadow", "LISTEN x", "VACUUM", "LOAD 'x'",
        "CREATE EXTENSION dblink", "SELECT * FROM pg_authid", "ALTER SYSTEM SET fsync = off", "LOCK orders",
        "WITH x AS (DELETE FROM orders RETURNING 1) SELECT * FROM x", "SELECT * INTO copied FROM orders",
        "CREATE TEMP VIEW v AS SELECT * FROM orders", "REFRESH MATERIALIZED VIEW v", "SELECT lo_import('/etc/passwd')",
        'SELECT "id" FROM "public"."customers"', "TABLE customers", "SELECT (SELECT name FROM customers LIMIT 1)",
        "SELECT * FROM ONLY customers", "SELECT query_to_xml('SELECT * FROM customers', true, true, '')",
        "SELECT 1; DELETE FROM orders", "SELECT count(*) AS n FROM orders; DROP TABLE orders",
    ],
)  # fmt: skip
def test_what_is_not_a_question_is_refused(secant_port, text):
    with psycopg.connect(secant_port.address(), autocommit=True) as connection:
        with pytest.raises(psycopg.Error) as told:
            connection.execute(text)
        assert all(secret not in str(told.value) for secret in SECRETS)
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_several_commands_in_one_statement(secant_port):
    with psycopg.connect(secant_port.address(epsilon=None), autocommit=True) as connection:
        cursor = connection.execute(
            f"SET secant.epsilon = 50; SELECT 1 AS one; {GROUPS}; SELECT 2 AS two"
        )
        found = []
        while True:
            found.append(len(cursor.fetchall()) if cursor.description else None)
            if not cursor.nextset():
                break
        assert found == [None, 1, 4, 1]
        with pytest.raises(psycopg.errors.SyntaxError):
            connection.execute("SELECT %s; SELECT 2", (1,))


def test_settings_that_cannot_be_meant(secant_port):
    with psycopg.connect(secant_port.address(), autocommit=True) as connection:
        for name, value in (
            ("epsilon", "-1"),
            ("epsilon", "nan"),
            ("epsilon", "much"),
            ("level", "2"),
            ("protection", "x"),
        ):
            connection.execute(f"SET secant.{name} = '{value}'")
            with pytest.raises(psycopg.Error) as told:
                connection.execute(ASKED.format(5))
            assert told.value.sqlstate == "22023"
            connection.execute(f"RESET secant.{name}")


@pytest.mark.parametrize(
    "text",
    ["SET client_encoding = 'SJIS'", "SELECT set_config('client_encoding', 'LATIN1', false)"],
)
def test_another_encoding_ends_the_connection(secant_port, text):
    with Raw(secant_port) as client:
        client.send(b"Q", text.encode() + b"\0")
        assert client.error() == "22023"
        assert client.ended()
    _still_works(secant_port)


def test_one_user_does_not_see_what_another_does(secant_port):
    users = secant_port.server.service.users
    users.add("eve", "analyst", PASSWORD)
    with psycopg.connect(secant_port.address(), autocommit=True) as connection:
        connection.execute(f"CREATE TEMP TABLE mine AS {GROUPS}")
        with psycopg.connect(
            secant_port.address().replace("ana:", "eve:"), autocommit=True
        ) as other:
            seen = other.execute("SELECT query FROM pg_stat_activity").fetchall()
            assert all("VALUES" not in (row[0] or "") for row in seen)
            schema = connection.execute(
                "SELECT pg_my_temp_schema()::regnamespace::text"
            ).fetchone()[0]
            with pytest.raises(psycopg.Error):
                other.execute(f"SELECT * FROM {schema}.mine")
    users.remove("eve")


def test_an_auditor_asks_nothing(secant_port):
    users = secant_port.server.service.users
    users.add("aud", "auditor", PASSWORD)
    with psycopg.connect(
        secant_port.address().replace("ana:", "aud:"), autocommit=True
    ) as connection:
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute(GROUPS)
        assert connection.execute("EXPLAIN " + GROUPS).fetchall()
    users.remove("aud")


def test_prepared_statements_after_a_policy_change(tmp_path):
    with start(tmp_path) as server:
        port = running(server)
        text = "SELECT town, count(*) AS n FROM customers GROUP BY town"
        with psycopg.connect(port.address(), autocommit=True) as connection:
            first = connection.execute(text, prepare=True).fetchall()
            assert {row[0] for row in first} == {"Riga", "Tartu", "Oslo", "Nowhere", None}
            changed = shop_policy().replace('"Oslo", "Nowhere"', '"Oslo"')
            (tmp_path / "policy.toml").write_text(changed, encoding="utf-8")
            second = connection.execute(text, prepare=True).fetchall()
            assert {row[0] for row in second} == {"Riga", "Tartu", "Oslo", None}
            (tmp_path / "policy.toml").write_text("broken", encoding="utf-8")
            with pytest.raises(psycopg.Error) as told:
                connection.execute(text, prepare=True)
            assert str(tmp_path) not in str(told.value)


# ── nothing of the data ──────────────────────────────────────────────────────────────────────────


def test_no_secret_is_in_the_shadow(secant_port):
    """Every cell of every catalog of the shadow, its files and its log."""
    _still_works(secant_port)
    with psycopg.connect(secant_port.address(), autocommit=True) as connection:
        tables = connection.execute(
            "SELECT quote_ident(n.nspname) || '.' || quote_ident(c.relname) FROM pg_class c JOIN pg_namespace n"
            " ON n.oid = c.relnamespace WHERE c.relkind IN ('r', 'v')"
            " AND n.nspname IN ('pg_catalog', 'information_schema')"
        ).fetchall()
        read = 0
        for (name,) in tables:
            try:
                rows = connection.execute(f"SELECT t::text FROM {name} AS t").fetchall()
            except psycopg.errors.InsufficientPrivilege:
                continue
            read += len(rows)
            assert not any(secret in (row[0] or "") for row in rows for secret in SECRETS), name
        assert read > 1000
    folder = secant_port.front.port.shadow_folder
    for file in folder.rglob("*"):
        if file.is_file():
            body = file.read_bytes()
            assert not any(secret.encode() in body for secret in SECRETS), file


def test_nothing_is_left_after_a_stop(tmp_path):
    with start(tmp_path) as server:
        port = running(server)
        folder = port.front.port.shadow_folder
        connection = psycopg.connect(port.address(), autocommit=True)
        assert folder.exists()
    assert not folder.exists()
    with pytest.raises(psycopg.OperationalError):
        connection.execute("SELECT 1")
    connection.close()
    with pytest.raises(OSError, match="refused"):
        socket.create_connection((port.host, port.port))


def test_many_clients_get_what_the_budget_has(tmp_path):
    """16 clients with 4 questions each, and budget for 10: 10 answers, no more."""
    with start(tmp_path) as server:
        text = shop_policy().replace("epsilon = 100000", "epsilon = 10")
        (tmp_path / "policy.toml").write_text(text, encoding="utf-8")
        port = running(server)
        answered, refused = [], []

        def ask(number):
            with psycopg.connect(port.address(epsilon=1), autocommit=True) as connection:
                for turn in range(4):
                    try:
                        answered.append(
                            connection.execute(ASKED.format(100 + 4 * number + turn)).fetchone()
                        )
                    except psycopg.errors.ConfigurationLimitExceeded as error:
                        refused.append(error.diag.message_primary)

        threads = [threading.Thread(target=ask, args=(n,)) for n in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert (len(answered), len(refused)) == (10, 54)
        assert all("BUD-001" in message for message in refused)
        assert port.spent() == 10


def _still_works(port):
    with psycopg.connect(port.address(), autocommit=True) as connection:
        assert len(connection.execute(GROUPS).fetchall()) == 4


def _works_in_time(port):
    """Wait until there is analysis again."""
    deadline = time.monotonic() + 30
    while True:
        try:
            return _still_works(port)
        except psycopg.OperationalError:
            assert time.monotonic() < deadline
            time.sleep(0.1)
