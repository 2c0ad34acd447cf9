"""What an analyst may take of the shadow: time, memory, files, places. Nothing that a session sets lifts a limit."""

from __future__ import annotations

import os
import threading
import time
from contextlib import suppress

import psycopg
import pytest
from hostile_client import Raw

from postgres_port import GROUPS, PASSWORD, USER, running, start
from private_shop import shop_policy
from secant.service.postgres import session
from secant.service.postgres import statements as prepared

SECONDS, PEOPLE = 1.0, 4
ENDLESS = "SELECT count(*) FROM (SELECT generate_series(1, 1000000000000)) AS s"
LIFTED = {
    "SET": "SET statement_timeout = 0",
    "set_config": "SELECT set_config('statement_timeout', '0', false)",
    "pg_settings": "WITH x AS (SELECT 1) UPDATE pg_settings SET setting = 0 WHERE name = 'statement_timeout'",
    "PREPARE": "PREPARE p AS SELECT set_config('statement_timeout', '0', false); EXECUTE p; RESET ALL; EXECUTE p",
}
MEGABYTE = 1_000_000


@pytest.fixture(scope="module")
def port(tmp_path_factory):
    limits = {
        "statement_seconds": SECONDS,
        "session_memory": 64 * MEGABYTE,
        "memory": 2_000 * MEGABYTE,
        "session_disk": 32 * MEGABYTE,
        "disk": 200 * MEGABYTE,
        "connections_of_user": PEOPLE,
    }
    with start(tmp_path_factory.mktemp("limits"), **limits) as server:
        server.service.users.add("eve", "analyst", PASSWORD)
        yield running(server)


@pytest.fixture
def limits(port, monkeypatch):
    """Set other limits for one test."""

    def change(**given):
        shadow = port.front.port._shadow
        monkeypatch.setattr(shadow, "limits", shadow.limits.model_copy(update=given))

    return change


def connected(port, name=USER, more=""):
    address = port.address(more=more).replace("ana:", f"{name}:")
    return psycopg.connect(address, autocommit=True)


def until(what):
    """Wait for something that happens soon; whether it does is what the test is about."""
    deadline = time.monotonic() + 60
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def folder_bytes(port):
    found = 0
    for place, _, names in os.walk(port.front.port.shadow_folder):
        for name in names:
            try:
                found += 512 * os.lstat(os.path.join(place, name)).st_blocks
            except OSError:
                continue
    return found


# ── time ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("way", LIFTED)
def test_no_setting_lets_a_statement_run_on(port, way):
    with connected(port) as connection:
        connection.execute(LIFTED[way])
        with pytest.raises(psycopg.errors.QueryCanceled):
            connection.execute(ENDLESS)
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_no_option_of_the_connection_lets_a_statement_run_on(port):
    address = port.address().replace("options=", "options=-cstatement_timeout%3D0%20")
    with psycopg.connect(address) as connection:
        connection.execute("SET LOCAL statement_timeout = 0")
        with pytest.raises(psycopg.errors.QueryCanceled):
            connection.execute("SELECT pg_sleep(1000)")


def test_a_question_is_not_timed_by_the_shadow(port, monkeypatch):
    """What Secant computes has limits of its own."""
    service = port.server.service
    real = service.ask

    def slow(*given, **named):
        time.sleep(3 * SECONDS)
        return real(*given, **named)

    monkeypatch.setattr(service, "ask", slow)
    with connected(port) as connection:
        assert connection.execute(GROUPS).fetchall()


def test_statements_of_one_user_take_turns(port, limits, monkeypatch):
    """Else one user's sessions take all cores of the shadow."""
    until(lambda: not port.front.port._tasks)
    limits(statements_of_user=1)
    monkeypatch.setattr(port.front.port, "_turns", {})
    sessions = port.front.port._sessions

    def ask(connection):
        with suppress(psycopg.errors.QueryCanceled):
            connection.execute("SELECT pg_sleep(1000)")

    with connected(port) as first, connected(port) as second:
        long = threading.Thread(target=ask, args=(first,))
        long.start()
        until(lambda: any(s.link.busy for s in sessions.values()))
        with connected(port, "eve") as other:
            assert other.execute("SELECT 1").fetchone() == (1,)
        assert second.execute("SELECT 1").fetchone() == (1,)
        assert not any(s.link.busy for s in sessions.values() if s.user.name == USER)
        long.join()


def test_a_long_text_holds_up_nobody(port, monkeypatch):
    """Four megabytes of commas took the port ten seconds, and everybody waited."""
    real, go = session.read_statements, threading.Event()

    def slow(text, tables):
        if len(text) > 100_000:
            assert go.wait(60)
        return real(text, tables)

    monkeypatch.setattr(session, "read_statements", slow)
    with Raw(port) as client:
        client.send(b"Q", b"SELECT 1" + b",1" * 100_000 + b"\0")
        with connected(port, "eve") as other:
            assert other.execute("SELECT 1").fetchone() == (1,)
        go.set()
        assert client.error() in ("54011", "57014")  # too many columns, or too slow
        client.until_ready()
        client.send(b"Q", b"SELECT 1" + b",1" * 600_000 + b"\0")
        assert client.error() == "54000"
        client.until_ready()
        client.send(b"P", b"\0SELECT 1" + b",1" * 600_000 + b"\0\0\0")
        client.send(b"S")
        assert client.error() == "54000"
        client.until_ready()


# ── memory ───────────────────────────────────────────────────────────────────────────────────────


def test_no_setting_gives_a_session_more_memory(port):
    with connected(port) as connection:
        connection.execute("SET work_mem = '10GB'; SET hash_mem_multiplier = 1000")
        connection.execute("SELECT set_config('temp_buffers', '10GB', false)")
        for text in (
            "SELECT array_length(array_agg(g), 1) FROM generate_series(1, 100000000) AS g",
            "SELECT length(repeat('x', 200000000))",
        ):
            with pytest.raises(psycopg.errors.OutOfMemory):
                connection.execute(text)
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_sessions_together_have_a_limit_of_memory(port, limits):
    limits(memory=30 * MEGABYTE)
    with connected(port) as other, connected(port) as connection:
        with pytest.raises(psycopg.OperationalError) as told:
            connection.execute(
                "SELECT array_length(array_agg(g), 1), pg_sleep(30)"
                " FROM (SELECT generate_series(1, 3000000) AS g) AS s"
            )
        assert told.value.sqlstate == "53200"
        assert other.execute("SELECT 1").fetchone() == (1,)


# ── files ────────────────────────────────────────────────────────────────────────────────────────


def test_one_temporary_table_has_a_limit(port):
    text = "CREATE TEMP TABLE t AS SELECT repeat('x', 1000), generate_series(1, 1000000000) AS g"
    with connected(port) as connection, pytest.raises(psycopg.Error):
        connection.execute(text)
    until(lambda: folder_bytes(port) < 100 * MEGABYTE)


def fill(connection):
    """Make tables each of which is small enough."""
    for number in range(100):
        connection.execute(
            f"CREATE TEMP TABLE t{number} AS SELECT repeat('x', 1000), generate_series(1, 10000)"
        )
        connection.execute("SELECT pg_sleep(0.1)")


def test_temporary_tables_together_have_a_limit(port):
    with connected(port) as connection:
        with pytest.raises(psycopg.OperationalError) as told:
            fill(connection)
        assert told.value.sqlstate == "53100"
    until(lambda: folder_bytes(port) < 100 * MEGABYTE)
    with connected(port, "eve") as other:
        other.execute("CREATE TEMP TABLE small AS SELECT 1 AS x")
        assert other.execute("SELECT x FROM small").fetchone() == (1,)


def test_files_of_a_statement_have_a_limit(port):
    with connected(port) as connection:
        connection.execute("SET work_mem = '64kB'")
        with pytest.raises(psycopg.Error) as told:
            connection.execute(
                "SELECT repeat('x', 1000), g FROM generate_series(1, 1000000) AS g ORDER BY 2 DESC"
            )
        assert told.value.sqlstate in ("53400", "53100")
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_temporary_tables_are_counted(port):
    """Each takes locks and rows of catalogs, which are everybody's."""
    with connected(port) as connection:
        made = "; ".join(f"CREATE TEMP TABLE t{number} (x int)" for number in range(201))
        with pytest.raises(psycopg.errors.ConfigurationLimitExceeded):
            connection.execute(made)
        connection.execute("CREATE TEMP TABLE t (x int); DROP TABLE t")


def test_files_stand_where_the_owner_says(tmp_path):
    place = tmp_path / ("long" * 25)
    place.mkdir()
    for folder in (tmp_path, *tmp_path.parents[:3]):
        folder.chmod(folder.stat().st_mode | 0o011)  # the server is not run by root
    with start(tmp_path, folder=place) as server:
        port = running(server)
        assert port.front.port.shadow_folder.parent == place
        with connected(port) as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)
    assert not list(place.iterdir())


# ── places ───────────────────────────────────────────────────────────────────────────────────────


def test_one_user_does_not_take_all_places(port):
    held = [connected(port) for _ in range(PEOPLE)]
    with pytest.raises(psycopg.OperationalError, match="of this user"):
        connected(port)
    with connected(port, "eve") as other:
        assert other.execute("SELECT 1").fetchone() == (1,)
    for connection in held:
        connection.close()
    until(lambda: not port.front.port._sessions)
    connected(port).close()


def test_one_address_does_not_take_all_places(port, limits):
    until(lambda: not port.front.port._tasks)
    limits(connections_of_address=3)
    held = [Raw(port, login=False) for _ in range(3)]
    refused = Raw(port, login=False)
    assert refused.error() == "53300"
    with Raw(port, source="127.0.0.2") as elsewhere:
        elsewhere.send(b"Q", b"SELECT 1\0")
        assert elsewhere.until_ready()
    for client in (*held, refused):
        client.socket.close()


def test_an_idle_session_ends(port, limits):
    limits(idle_seconds=0.5)
    with Raw(port) as idle, Raw(port) as within:
        within.send(b"Q", b"BEGIN\0")
        within.until_ready()
        assert idle.error() == "57P05"
        assert idle.ended()
        assert within.error() == "57P05"


# ── what sessions could do to each other ─────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "text",
    [
        "DO $$ BEGIN LOOP END LOOP; END $$", "CREATE FUNCTION pg_temp.f() RETURNS int LANGUAGE sql AS 'SELECT 1'",
        "SELECT lo_create(0)", "SELECT lo_from_bytea(0, 'x')", "SELECT pg_advisory_lock(1)",
        "SELECT pg_try_advisory_xact_lock(1)", "SELECT pg_notify('a', 'b')", "SELECT pg_export_snapshot()",
        "SELECT pg_logical_emit_message(false, 'a', 'b')", "SELECT * FROM pg_locks", "CREATE TEMP VIEW v AS SELECT 1",
        "CREATE TEMP SEQUENCE s", "SELECT * FROM pg_largeobject", "CREATE TYPE pg_temp.x AS (y int)",
        "SELECT pg_create_physical_replication_slot('x')", "SELECT pg_reload_conf()", "SELECT pg_ls_dir('.')",
    ],
)  # fmt: skip
def test_a_role_of_an_analyst_can_do_nothing_to_others(port, text):
    """Also past the port, which refuses most of it by its first word."""
    connected(port).close()
    with port.shadow(USER) as connection, pytest.raises(psycopg.errors.InsufficientPrivilege):
        connection.execute(text)


@pytest.mark.parametrize(
    "text",
    [
        "CREATE TEMP VIEW v AS SELECT count(*) AS n FROM orders", "CREATE OR REPLACE TEMP VIEW v AS SELECT 1",
        "CREATE FUNCTION temp() RETURNS int LANGUAGE sql AS 'SELECT 1'", "CREATE TEMP SEQUENCE s",
        "ALTER ROLE ana SET statement_timeout = 0", "ALTER DATABASE secant SET statement_timeout = 0",
        "CREATE TRIGGER temp BEFORE INSERT ON t EXECUTE FUNCTION f()", "NOTIFY a", "LISTEN a", "DO 'unclosed",
    ],
)  # fmt: skip
def test_what_others_could_read_or_feel_is_refused(port, text):
    """The definition of a view is in catalogs that all read, with the rows that were released to its owner."""
    spent = port.spent()
    with connected(port) as connection:
        with pytest.raises(psycopg.errors.FeatureNotSupported):
            connection.execute(text)
        assert connection.execute("SELECT 1").fetchone() == (1,)
    assert port.spent() == spent


@pytest.mark.parametrize(
    "text",
    [
        "SET standard_conforming_strings = off",
        "SELECT set_config('standard_conf' || 'orming_strings', 'off', false)",
    ],
)
def test_strings_end_where_our_lexer_believes(port, text):
    with Raw(port) as client:
        client.send(b"Q", text.encode() + b"\0")
        assert client.error() == "22023"
        assert client.ended()


def test_a_setting_that_was_not_reported_holds_for_no_query(port):
    """Without a Sync the shadow does not say what was set; a query that is read otherwise must not come before."""
    with Raw(port) as client:
        set_it = b"SELECT set_config('standard_conforming_strings', 'off', false)"
        client.send(b"P", b"\0" + set_it + b"\0\0\0")
        client.send(b"B", b"\0\0\0\0\0\0\0\0")
        client.send(b"E", b"\0\0\0\0\0")
        client.send(b"Q", b"SELECT '\\''; ALTER ROLE ana SET work_mem = '1GB' --'\0")
        assert client.error() == "08P01"
        assert client.ended()


def test_whoever_holds_a_table_does_not_hold_up_a_new_policy(tmp_path):
    """A lock on a table of the shadow kept everybody from logging in once the policy had changed."""
    with start(tmp_path) as server:
        port = running(server)
        with Raw(port) as holder:
            holder.send(b"Q", b"BEGIN\0")
            holder.until_ready()
            holder.send(b"P", b'\0SELECT 1 FROM U&"\\006frders"\0\0\0')
            holder.send(b"S")
            holder.until_ready()
            changed = shop_policy() + '\n[tables.nothing]\nkey = ["id"]\n'
            (tmp_path / "policy.toml").write_text(changed, encoding="utf-8")
            keys = "SELECT count(*) FROM pg_index WHERE indrelid = 'public.nothing'::regclass"
            with connected(port) as connection:
                assert connection.execute(keys).fetchone() == (1,)


# ── the memory of the service itself ─────────────────────────────────────────────────────────────


def test_prepared_questions_and_values_are_counted_by_bytes(port, monkeypatch):
    monkeypatch.setattr(prepared, "MOST_BYTES", 100_000)
    question = b"SELECT count(*) AS n FROM orders WHERE note = $1"
    with Raw(port) as client:
        client.send(b"P", b"s\0" + question + b"\0\0\0")
        for number in range(20):
            value = b"x" * 10_000
            name = f"p{number}".encode()
            body = name + b"\0s\0\0\0\0\1" + len(value).to_bytes(4, "big") + value + b"\0\0"
            client.send(b"B", body)
        client.send(b"S")
        assert client.error() == "53000"
    with Raw(port) as client:
        for number in range(20):
            text = question.replace(b"$1", b"'" + b"x" * 10_000 + b"'")
            client.send(b"P", f"s{number}".encode() + b"\0" + text + b"\0\0\0")
        client.send(b"S")
        assert client.error() == "53000"


def test_a_row_that_is_too_long_ends_the_session_and_says_so(port):
    with connected(port) as connection:
        with pytest.raises(psycopg.OperationalError) as told:
            connection.execute("SELECT repeat('x', 9000000)")
        assert told.value.sqlstate == "54000"
    with connected(port) as connection:
        assert len(connection.execute("SELECT repeat('x', 1000000)").fetchone()[0]) == 1000000
