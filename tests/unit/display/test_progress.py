"""Bars where somebody looks: a terminal, a notebook; nothing in a pipe."""

import sys
import time
import types

import pytest

import secant
from secant.display import progress as shown
from secant.errors import Refused
from secant.notebook import answered


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
    monkeypatch.setattr(shown, "DELAY", 0.0)
    return screen


class AtOnce:
    """A timer that does not wait, and needs no thread."""

    def __init__(self, seconds, function, args):
        self.start = lambda: function(*args)

    def cancel(self):
        """There is nothing left to cancel, nor to join."""

    join = cancel


@pytest.fixture
def impatient(notebook, monkeypatch):
    monkeypatch.setattr(shown.threading, "Timer", AtOnce)
    return notebook


def test_a_notebook_sees_every_step_and_then_nothing(impatient):
    with shown.progress("<counting>", 3) as reached:
        for done in (1, 2, 3):
            reached(done)
    assert len(impatient.pages) == 5
    assert "0 of 3" in impatient.pages[0]
    assert 'value="3" max="3"' in impatient.pages[3]
    assert "&lt;counting&gt;" in impatient.pages[0]
    assert impatient.pages[-1] == ""


def test_a_notebook_sees_work_that_holds_its_thread(notebook):
    with shown.waiting("<asking>"):
        end = time.monotonic() + 30
        while not notebook.pages and time.monotonic() < end:
            time.sleep(0.001)
    assert notebook.pages == [shown.waiting_page("<asking>"), ""]
    assert "&lt;asking&gt;" in notebook.pages[0]


def test_work_that_is_soon_over_shows_nothing(notebook, monkeypatch):
    monkeypatch.setattr(shown, "DELAY", 60.0)
    with shown.progress("counting", 3) as reached, shown.waiting("asking"):
        reached(1)
    assert notebook.pages == []


def test_silence_is_kept(impatient):
    with shown.silent(), shown.progress("counting", 3) as reached, shown.waiting("asking"):
        reached(1)
    assert impatient.pages == []


def test_a_question_and_a_cell_say_that_they_are_at_work(impatient):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"who": range(40)})
    count = "SELECT count(*) AS n FROM data"
    with secant.protect(frame, unit="who", epsilon=9) as db:
        db.sql(count, epsilon=1)
        assert impatient.pages == [shown.waiting_page("asking"), ""]
        answered("db --explain --epsilon 1", count, {"db": db})
        assert impatient.pages[2:] == [shown.waiting_page("deriving"), ""]
        with pytest.raises(Refused):
            answered("db --epsilon 1", "SELECT who FROM data", {"db": db})
        assert impatient.pages[4:] == [shown.waiting_page("asking"), ""]


def test_a_pipe_sees_nothing_unless_it_asks(capsys):
    with shown.progress("counting", 2) as reached, shown.waiting("asking"):
        reached(1)
    assert capsys.readouterr() == ("", "")
    with shown.progress("counting [/b]", 2, requested=True) as reached:
        reached(1)
        reached(2)
    out, err = capsys.readouterr()
    assert (out, "counting [/b]" in err) == ("", True)
