"""The shadow is killed, crashes or hangs: it is started again, everybody gets in, and readiness tells."""

from __future__ import annotations

import logging
import os
import signal
import socket
import threading
import time
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest
from hostile_client import Raw

from postgres_port import GROUPS, PASSWORD, running, start
from secant.service.postgres import supervision, watching

ENDLESS = "SELECT count(*) FROM (SELECT generate_series(1, 1000000000000)) AS s"


@pytest.fixture(scope="module")
def port(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            supervision, "LONGEST_WAIT", 0.1
        )  # these tests kill more often than servers end
        patch.setattr(watching, "PROBE", 0.25)
        yield from served(tmp_path_factory)


def served(tmp_path_factory):
    with start(tmp_path_factory.mktemp("supervised")) as server:
        for name in ("eve", "joe", "liv", "tom", "zoe"):
            server.service.users.add(name, "analyst", PASSWORD)
        yield running(server)


def until(what):
    """Wait for something that happens soon; whether it does is what the test is about."""
    deadline = time.monotonic() + 60
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def works_for(port, name):
    with psycopg.connect(port.address().replace("ana:", f"{name}:"), autocommit=True) as found:
        assert found.execute(GROUPS).fetchall()


def postmaster(port):
    return port.front.port._shadow.server.process.pid


def healthy(port):
    return port.front.healthy()


def test_a_killed_shadow_is_started_again(port, caplog):
    until(lambda: healthy(port))
    folder = port.front.port.shadow_folder
    before = postmaster(port)
    with psycopg.connect(port.address(), autocommit=True) as connection:
        connection.execute("SELECT 1")
        with caplog.at_level(logging.WARNING, logger="secant.service"):
            os.kill(before, signal.SIGKILL)
            until(lambda: not healthy(port))
            until(lambda: healthy(port))
        # A session that was idle is told, too: its tables and settings are gone.
        with pytest.raises(psycopg.OperationalError) as told:
            connection.execute("SELECT 1")
        assert told.value.sqlstate in ("57P02", None)
    said = [record.getMessage() for record in caplog.records]
    assert any("ended by itself" in line for line in said)
    assert any("runs again" in line for line in said)
    assert postmaster(port) != before
    works_for(port, "ana")
    works_for(port, "eve")
    assert not folder.exists()


@pytest.mark.parametrize(("of", "stranger"), [("ana", "joe"), ("secant_shadow", "liv")])
def test_a_killed_process_of_the_shadow_locks_out_nobody(port, of, stranger):
    until(lambda: healthy(port))
    before = postmaster(port)
    with psycopg.connect(port.address(), autocommit=True), port.shadow() as owner:
        (victim,) = owner.execute(
            "SELECT min(pid) FROM pg_stat_activity WHERE usename = %s AND pid <> pg_backend_pid()",
            (of,),
        ).fetchone()
        os.kill(victim, signal.SIGKILL)
        until(lambda: postmaster_or_none(port) not in (None, before))
    works_for(port, "ana")
    works_for(port, stranger)


def postmaster_or_none(port):
    server = port.front.port._shadow.server
    return None if server is None else server.process.pid


def test_our_own_connection_is_opened_again(port):
    until(lambda: healthy(port))
    with port.shadow() as owner:
        owner.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
            " AND backend_type = 'client backend'"
        )
    works_for(port, "tom")  # who was not there before: a role is made
    assert healthy(port)


def test_a_removed_user_is_sent_away(port):
    until(lambda: healthy(port))
    port.server.service.users.add("max", "analyst", PASSWORD)
    with Raw(port, user="max") as client:
        port.server.service.users.remove("max")
        assert client.error() == "57P01"
        assert client.ended()


def test_wrong_passwords_lock_out_an_address_and_nobody_elsewhere(port):
    until(lambda: healthy(port))
    states = []
    for _ in range(8):
        with Raw(port, login=False, source="127.0.0.3") as client:
            client.startup("eve")
            client.scram("wrong")
            states.append(client.error())
    assert set(states) == {"28P01"}
    works_for(port, "eve")


def endless(port):
    """Let a session compute for ever, as far as it can; give it and its process in the shadow."""
    connection = psycopg.connect(port.address(), autocommit=True)
    connection.execute("SET statement_timeout = 0")
    (process,) = connection.execute("SELECT pg_backend_pid()").fetchone()

    def ask():
        with suppress(psycopg.Error):
            connection.execute(ENDLESS)

    thread = threading.Thread(target=ask)
    thread.start()
    until(lambda: Path(f"/proc/{process}/stat").read_text().split(")")[1].split()[0] == "R")
    return connection, process, thread


def is_gone(process):
    with suppress(OSError):
        return "postgres" not in Path(f"/proc/{process}/comm").read_text() or (
            Path(f"/proc/{process}/stat").read_text().split(")")[1].split()[0] == "Z"
        )
    return True


def test_what_a_client_left_running_ends(port):
    until(lambda: healthy(port))
    connection, process, thread = endless(port)
    with socket.socket(fileno=os.dup(connection.fileno())) as line:
        line.shutdown(socket.SHUT_RDWR)
    until(lambda: is_gone(process))
    thread.join()
    connection.close()


def test_what_a_killed_shadow_left_running_ends(port):
    until(lambda: healthy(port))
    connection, process, thread = endless(port)
    os.kill(postmaster(port), signal.SIGKILL)
    until(lambda: is_gone(process))
    thread.join()
    connection.close()
    works_for(port, "zoe")


def test_a_shadow_that_hangs_is_replaced(port, monkeypatch):
    until(lambda: healthy(port))
    monkeypatch.setattr(watching, "SILENT", 0.5)
    before = postmaster(port)
    with port.shadow() as owner:
        ours = [
            process
            for (process,) in owner.execute(
                "SELECT pid FROM pg_stat_activity WHERE usename = 'secant_shadow'"
                " AND pid <> pg_backend_pid()"
            ).fetchall()
        ]
    for process in (before, *ours):
        os.kill(process, signal.SIGSTOP)
    until(lambda: not healthy(port))
    until(lambda: healthy(port))
    assert postmaster(port) != before
    works_for(port, "ana")
