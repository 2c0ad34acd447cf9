"""`/readyz` tries what a question needs, and says which of it is missing."""

import errno
import os
import resource
import subprocess
import sys
import threading
from contextlib import closing, contextmanager
from pathlib import Path

import httpx
import pytest
from clinic_service import COUNT, PASSWORD, fill, service_at

from secant.errors import BudgetError
from secant.ledger.store import Ledger
from secant.service import anchored, readiness
from secant.service.readiness import Check, Readiness
from secant.service.users import User

ALL = {"source": True, "ledger": True, "store": True}


@pytest.fixture
def afresh(monkeypatch):
    """Let no finding hold for later."""
    monkeypatch.setattr(readiness, "HOLDS", 0.0)


def found(service):
    return service.readiness.looking().result().checks


def test_each_part_is_tried(tmp_path, afresh, monkeypatch):
    with closing(service_at(tmp_path)) as service:
        assert found(service) == ALL
        with monkeypatch.context() as patched:
            patched.setattr(Ledger, "check_writable", _full)
            assert found(service) == {**ALL, "ledger": False}
        with monkeypatch.context() as patched:  # its head can be written, and nothing more
            patched.setattr("secant.ledger.sqlite.try_to_write", _no_room)
            assert found(service) == {**ALL, "ledger": False}
        (tmp_path / "shop.duckdb").rename(tmp_path / "away.duckdb")
        assert not found(service)["source"]
        fill(tmp_path / "shop.duckdb")
        assert found(service) == ALL
        with service.users.store.writing() as rows:
            rows.do("ALTER TABLE meta RENAME TO other")
        assert found(service) == {**ALL, "store": False}
        with service.users.store.writing() as rows:
            rows.do("ALTER TABLE other RENAME TO meta")
        assert service.ready()


def _full(ledger):
    raise BudgetError("BUD-002", "planted: the disk is full")


def test_an_anchor_that_cannot_be_written_is_noticed(tmp_path, afresh):
    (tmp_path / "elsewhere").mkdir()
    place = tmp_path / "elsewhere" / "shop.anchor"
    with closing(service_at(tmp_path, anchor=place)) as service:
        assert found(service) == ALL
        assert list((tmp_path / "elsewhere").iterdir()) == [place], "trying leaves nothing behind"
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(anchored, "try_to_write", _no_room)
            assert found(service) == {**ALL, "ledger": False}
        place.unlink()
        (tmp_path / "elsewhere").rmdir()
        assert found(service) == {**ALL, "ledger": False}


def _no_room(beside, size):
    raise OSError(errno.ENOSPC, "planted")


def test_a_front_adds_what_it_needs(tmp_path, afresh):
    with closing(service_at(tmp_path)) as service:
        answers = [False, True]
        service.readiness.add(Check("shadow", lambda: answers.pop(0)))
        assert found(service) == {**ALL, "shadow": False}
        assert found(service) == {**ALL, "shadow": True}


def test_a_check_that_breaks_says_no(monkeypatch):
    monkeypatch.delenv("SECANT_DEBUG", raising=False)

    def breaks():
        raise ZeroDivisionError("CANARY")

    assert Readiness(Check("x", breaks)).looking().result().checks == {"x": False}


def test_one_look_serves_all_who_ask_meanwhile():
    go_on, looks = threading.Event(), []

    def look():
        looks.append(1)
        go_on.wait(60)

    clock = [0.0]
    ready = Readiness(Check("x", look), now=lambda: clock[0])
    asked = [ready.looking() for _ in range(100)]
    clock[0] += 1000  # one that is on its way is waited for, however long it takes
    asked += [ready.looking() for _ in range(100)]
    go_on.set()
    assert all(future.result().ready for future in asked)
    assert ready.looking().result().ready
    assert len(looks) == 1
    clock[0] += readiness.HOLDS
    assert ready.looking().result().ready
    assert len(looks) == 2


@pytest.mark.postgres
def test_a_ledger_on_a_server_is_tried(tmp_path, afresh, postgres_server):
    place = postgres_server.address(postgres_server.create_database())
    policy = (
        'database.source = "duckdb:shop.duckdb"\n[ledger]\nlocation = "%s"\n'
        '[protections.rows]\nkind = "rows"\ntables = ["visits", "people", "loads"]\nepsilon = 1\n'
    )
    with closing(service_at(tmp_path, policy % place)) as service:
        assert found(service) == ALL
        with service.opened(User("ada", "owner")) as connection:
            connection.ledger.verify()
            assert connection.ledger.end().sequence == 1


@contextmanager
def served(folder):
    program = Path(sys.executable).with_name("secant")
    server = subprocess.Popen(
        [program, "serve", "-p", folder / "policy.toml", "--http", "0"],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env={**os.environ, "SECANT_DEBUG": ""},
    )  # fmt: skip
    try:
        yield server, server.stdout.readline().split()[-1]
    finally:
        server.kill()
        server.wait()


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="limits another process")
def test_a_full_disk_is_not_ready(tmp_path):
    """No file of the service can grow: every question gets BUD-002, so nobody should send one."""
    with closing(service_at(tmp_path)) as service:
        token, _ = service.users.make_token(
            service.users.add("ada", "analyst", PASSWORD), seconds=600
        )
        service.ready()
    with (
        served(tmp_path) as (server, address),
        httpx.Client(
            base_url=address, timeout=60, headers={"Authorization": f"Bearer {token}"}
        ) as ada,
    ):
        assert ada.get("/readyz").status_code == 200
        soft, hard = resource.prlimit(server.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (1000, hard))
        asked = ada.post("/v1/query", json={"sql": COUNT, "epsilon": 0.1})
        assert asked.json()["error"]["code"] == "BUD-002"
        full = _until(ada, 503)
        assert full.json()["checks"] == {"source": True, "ledger": False, "store": False}
        resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (soft, hard))
        _until(ada, 200)
        assert ada.post("/v1/query", json={"sql": COUNT, "epsilon": 0.1}).status_code == 200


def _until(client, status):
    """Ask until a finding of before no longer holds."""
    for _ in range(600):
        found = client.get("/readyz")
        if found.status_code == status:
            return found
        threading.Event().wait(0.1)
    raise AssertionError(found.text)
