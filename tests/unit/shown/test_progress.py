"""Bars where somebody looks: a terminal, a notebook; nothing in a pipe."""

import sys
import types

import pytest

from secant.shown import progress as shown


class Screen:
    """A notebook that keeps what it was asked to show."""

    def __init__(self):
        self.pages = []

    def display(self, page, display_id):
        self.pages.append(page)
        return self

    def update(self, page):
        self.pages.append(page)


@pytest.fixture
def notebook(monkeypatch):
    screen = Screen()
    shell = types.SimpleNamespace(get_ipython=lambda: types.SimpleNamespace(kernel=True))
    monkeypatch.setitem(sys.modules, "IPython", shell)
    pages = types.SimpleNamespace(HTML=str, display=screen.display)
    monkeypatch.setitem(sys.modules, "IPython.display", pages)
    monkeypatch.setattr(shown, "PATIENCE", 0.0)
    return screen


def test_a_notebook_sees_every_step_and_then_nothing(notebook):
    with shown.progress("<counting>", 3) as advance:
        for _ in range(3):
            advance()
    assert len(notebook.pages) == 4
    assert "1 of 3" in notebook.pages[0]
    assert 'value="3" max="3"' in notebook.pages[2]
    assert "&lt;counting&gt;" in notebook.pages[0]
    assert notebook.pages[-1] == ""


def test_work_that_is_soon_over_shows_nothing(notebook, monkeypatch):
    monkeypatch.setattr(shown, "PATIENCE", 60.0)
    with shown.progress("counting", 3) as advance:
        advance()
    assert notebook.pages == []


def test_a_pipe_sees_nothing_unless_it_asks(capsys):
    with shown.progress("counting", 2) as advance:
        advance()
    assert capsys.readouterr().err == ""
    with shown.progress("counting", 2, asked=True) as advance:
        advance()
        advance()
    assert "counting" in capsys.readouterr().err
