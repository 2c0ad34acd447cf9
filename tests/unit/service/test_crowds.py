"""Ten thousand connections (fewer in the fast profile) are refused or ended, and harm nobody who is there."""

from __future__ import annotations

import os
import socket
import ssl
import time
from contextlib import suppress
from pathlib import Path

import httpx
import pytest
from test_http import Running, ask

from chance import LONG
from secant.service.http import connections

CROWD = 10_000 if LONG else 400
ROOM = 40
TIMEOUT = 30.0 if LONG else 3.0
"""Seconds; longer than it takes on a busy machine to come in so great a number."""


@pytest.fixture
def crowded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(connections, "TIMEOUT", TIMEOUT)
    found = Running(tmp_path, **{"http.connections": ROOM})
    yield found
    found.server.close()


def silent(port: int) -> socket.socket | None:
    """Connect and say nothing."""
    with suppress(OSError):
        return socket.create_connection(("127.0.0.1", port), 10)
    return None


def test_a_crowd_is_refused_and_who_is_there_goes_on(crowded: Running) -> None:
    ada = crowded.user("ada")
    assert ask(ada, epsilon="0.01").status_code == 200  # a connection that stays
    held = []
    try:
        for number in range(CROWD):
            held.append(silent(crowded.port))
            if number % (CROWD // 8) == 0:
                assert ada.get("/v1/me").status_code == 200
        assert ask(ada, epsilon="0.02").status_code == 200
        told = []
        for connection in held[-20:]:
            if connection is not None:
                connection.settimeout(5)
                with suppress(OSError):
                    told.append(connection.recv(12))
        assert set(told) <= {b"HTTP/1.1 503", b""}
    finally:
        for connection in held:
            if connection is not None:
                connection.close()
    assert ada.get("/v1/me").status_code == 200


def test_silence_takes_up_no_analysis_for_long(crowded: Running) -> None:
    """Connections that say nothing, or a letter now and then, are ended; then there is room for others."""
    ada = crowded.user("ada")
    held = [silent(crowded.port) for _ in range(ROOM)]
    try:
        deadline = time.monotonic() + 60 + TIMEOUT
        status = 503
        while status == 503 and time.monotonic() < deadline:
            for connection in held[:5]:
                if connection is not None:
                    with suppress(OSError):
                        connection.send(b"G")
            time.sleep(0.2)
            with suppress(httpx.TransportError):
                status = ada.get("/v1/me").status_code
        assert status == 200
    finally:
        for connection in held:
            if connection is not None:
                connection.close()


@pytest.fixture
def encrypted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(connections, "TIMEOUT", TIMEOUT)
    found = Running(tmp_path, **{"http.connections": ROOM, "tls.self_made": True})
    trusting = ssl.create_default_context(cafile=tmp_path / "secant-self-made.pem")
    yield found, trusting
    found.server.close()


def hello(context: ssl.SSLContext) -> bytes:
    """Give the first words of a client that would like to be encrypted."""
    said = ssl.MemoryBIO()
    begun = context.wrap_bio(ssl.MemoryBIO(), said, server_hostname="localhost")
    with suppress(ssl.SSLWantReadError):
        begun.do_handshake()
    return said.read()


@pytest.mark.parametrize("words", ["nothing", "half of a greeting", "a greeting", "no greeting"])
def test_handshakes_that_never_end_harm_nobody(encrypted, words: str) -> None:
    """The server would not count them: they come before there is a connection that it knows of."""
    running, trusting = encrypted
    greeting = hello(trusting)
    said = {
        "nothing": b"",
        "half of a greeting": greeting[: len(greeting) // 2],
        "a greeting": greeting,
        "no greeting": b"GET / HTTP/1.1\r\n\r\n",
    }[words]
    address = f"https://localhost:{running.port}"
    files = len(os.listdir("/proc/self/fd"))
    held = []
    try:
        with httpx.Client(verify=trusting, base_url=address, timeout=30) as there:
            assert there.get("/healthz").status_code == 200
            for number in range(CROWD):
                connection = silent(running.port)
                held.append(connection)
                if connection is not None:
                    with suppress(OSError):
                        connection.send(said)
                if number % (CROWD // 4) == 0:
                    assert there.get("/healthz").status_code == 200
                    with httpx.Client(verify=trusting, base_url=address, timeout=30) as comes:
                        assert comes.get("/healthz").status_code == 200
    finally:
        ours = sum(connection is not None for connection in held)
        theirs, until = (
            CROWD,
            time.monotonic() + TIMEOUT * 2 / 3,
        )  # before those that stay are given up
        while theirs > 2 * ROOM and time.monotonic() < until:
            time.sleep(0.05)
            theirs = len(os.listdir("/proc/self/fd")) - files - ours
        for connection in held:
            if connection is not None:
                connection.close()
    assert theirs <= 2 * ROOM, "the server keeps what it does not serve"
    with httpx.Client(verify=trusting, base_url=address, timeout=30) as comes:
        assert comes.get("/healthz").status_code == 200
