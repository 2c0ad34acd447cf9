"""Fixtures for the commands: a connection that answers from a script, and a way to run one."""

import pytest
from fake_engine import ERROR, Answer, Connection

import secant
from secant.cli import main


@pytest.fixture
def connection(monkeypatch):
    """Give the connection that `secant.connect` returns."""
    fake = Connection(result=Answer(["n"], [(42,)], ERROR))

    def connect(source=None, **options):
        fake.opened.update(options, source=source)
        return fake

    monkeypatch.setitem(secant.__dict__, "connect", connect)
    return fake


@pytest.fixture
def run(capsys):
    """Run a command; give its status, standard output and standard error."""

    def run_command(*words: str):
        status = main(list(words))
        said = capsys.readouterr()
        return status, said.out, said.err

    return run_command
