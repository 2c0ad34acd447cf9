"""Clients that pip does not install, at the PostgreSQL port: checks 32 to 38. `make setup-clients` installs them."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import threading
from pathlib import Path

import pytest
from clients_found import CLIENTS, program, psql, psql_program, run

from postgres_port import GROUPS, PASSWORD, STATUSES, USER


def test_32_psql_18_is_interrupted(secant_port, monkeypatch):
    from secant.engines.duckdb import session as duckdb

    begun, stopped = threading.Event(), threading.Event()

    def slow(session, statement):
        def wait():
            begun.set()
            stopped.wait(60)
            raise RuntimeError("stopped")

        return duckdb.watched(wait, stopped.set, 60)

    monkeypatch.setattr(duckdb.DuckDBSession, "rows", slow)
    where = ["-h", secant_port.host, "-p", str(secant_port.port), "-U", USER, "-d", "shop"]
    environment = {**os.environ, "PGPASSWORD": PASSWORD, "PGOPTIONS": "-csecant.epsilon=50"}
    asking = subprocess.Popen(
        [psql_program(), "-X", *where, "-c", "SELECT count(*) AS n FROM orders WHERE quantity = 8"],
        env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert begun.wait(60)
    asking.send_signal(signal.SIGINT)
    _, said = asking.communicate(timeout=60)
    assert "cancel" in said.lower()
    assert stopped.is_set()


@pytest.mark.long
def test_33_psql_of_the_system_describes(secant_port):
    out = psql(
        _other_psql(), secant_port, r"\d orders", r"\dt+", r"\d+ towns", r"\l", r"\dn", r"\du"
    )
    assert out.returncode == 0, out.stderr
    assert '"orders_pkey" PRIMARY KEY' in out.stdout
    assert "answered exactly" in out.stdout


@pytest.mark.long
def test_34_psql_of_the_system_asks(secant_port):
    out = psql(
        _other_psql(), secant_port, GROUPS, "SELECT id FROM customers",
        rf"\copy ({GROUPS}) TO STDOUT CSV HEADER", f"CREATE TEMP TABLE kept AS {GROUPS}",
        "SELECT count(*) AS statuses FROM kept",
    )  # fmt: skip
    assert "NOTICE" in out.stderr
    assert "^" in out.stderr
    assert "status,n" in out.stdout
    assert "statuses" in out.stdout


@pytest.mark.long
@pytest.mark.parametrize("check", ["35 metadata", "36 asks"])
def test_jdbc(secant_port, check):
    jar = next(CLIENTS.glob("postgresql-*.jar"), None)
    if jar is None:
        pytest.skip("the JDBC driver is not here: make setup-clients")
    source = Path(__file__).with_name("Ask.java")
    out = run([program("java"), "-cp", str(jar), str(source)], secant_port)
    assert out.returncode == 0, out.stderr
    lines = out.stdout.splitlines()
    if check == "35 metadata":
        assert {"table orders", "table customers", "key id"} <= set(lines)
        assert [line for line in lines if line.startswith("column")] == [
            "column town",
            "column country",
            "column people",
        ]
    else:
        assert [line.split()[1] for line in lines if line.startswith("row")] == STATUSES
        assert "refused 42501" in lines


@pytest.mark.long
@pytest.mark.parametrize("check", ["37 pg", "38 postgres.js"])
def test_node(secant_port, check):
    if not (CLIENTS / "node_modules" / "pg").exists():
        pytest.skip("node's packages are not here: make setup-clients")
    script = CLIENTS / "ask.js"  # packages are looked for beside the script
    shutil.copy(Path(__file__).with_name("ask.js"), script)
    out = run([program("node"), str(script)], secant_port)
    assert out.returncode == 0, out.stderr
    name = check.split(" ", 1)[1]
    lines = [
        line.removeprefix(name + " ") for line in out.stdout.splitlines() if line.startswith(name)
    ]
    assert [line.split()[1] for line in lines if line.startswith("row")] == STATUSES
    assert "refused 42501" in lines


def _other_psql() -> Path:
    return Path(program("psql"))
