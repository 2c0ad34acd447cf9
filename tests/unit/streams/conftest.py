"""Fixtures for streams: a clinic, and the clock of its books."""

import datetime
from types import SimpleNamespace

import pytest
from stream_clinic import Clinic

from secant.ledger import sqlite


@pytest.fixture
def clinic(tmp_path):
    return Clinic(tmp_path)


@pytest.fixture
def clock(monkeypatch):
    """Set the clock of the machine that the books are on."""

    def at(text: str) -> None:
        moment = datetime.datetime.fromisoformat(text).replace(tzinfo=datetime.UTC).timestamp()
        monkeypatch.setattr(sqlite, "time", SimpleNamespace(time=lambda: moment))

    return at
