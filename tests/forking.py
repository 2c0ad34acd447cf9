"""Children of a test: an action in a forked process, and how it ended; and where a ledger of several processes lies."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from pathlib import Path

import pytest

LEDGERS = ("sqlite", pytest.param("postgres", marks=pytest.mark.postgres))
"""Kinds of ledgers, for a fixture that takes them as parameters."""


def ledger_location(request: pytest.FixtureRequest, folder: Path) -> str:
    """Give a new ledger of the kind that the fixture was asked for."""
    if request.param == "sqlite":
        return str(folder / "policy.ledger")
    server = request.getfixturevalue("postgres_server")
    return f"{server.address()}&ledger=ledger_{secrets.token_hex(6)}"


def start(action: Callable[[], None]) -> int:
    """Run an action in a forked child; give its process id."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            action()
            status = 0
        finally:
            os._exit(status)
    return child


def end(child: int) -> int:
    """Wait for a child; give its exit code, or its signal below zero."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
