"""Reserve, mark as sent, then the statement: what a failure or a kill at each point leaves behind."""

import subprocess
import sys
from pathlib import Path

import pytest

from apart import Wrapped
from private_shop import UNIT, open_shop
from secant.errors import BackendError, BudgetError, SecantError
from secant.ledger.store import Ledger

COUNT = "SELECT count(*) AS n FROM orders"
TOWNS = (
    "SELECT t.town, count(*) FROM customers AS c JOIN towns AS t ON c.town = t.town GROUP BY t.town"
)


class Fake(Wrapped):
    """A backend over another one that writes down what happens, and fails where it is told to."""

    def __init__(self, inner, log, fail=None):
        super().__init__(inner)
        self.log, self.fail = log, fail

    def check(self, session, statement):
        self._note("check")
        session.check(statement)

    def rows(self, session, statement):
        if '"orders"' in statement or '"customers"' in statement:
            self._note("protected statement")
        else:
            self._note("public statement")
        return session.rows(statement)

    def _note(self, what):
        self.log.append(what)
        if what == self.fail:
            raise BackendError("BAK-002", "planted")


@pytest.fixture
def watched(tmp_path, monkeypatch):
    log = []

    def spy(name, word):
        original = getattr(Ledger, name)

        def call(self, *args, **kwargs):
            log.append(word)
            return original(self, *args, **kwargs)

        monkeypatch.setattr(Ledger, name, call)

    spy("reserve", "reserve")
    spy("record_sent", "sent")
    spy("record_settled", "settled")
    spy("record_returned", "returned")
    with open_shop(tmp_path, UNIT) as db:
        db._backend = Fake(db._backend, log)
        yield db, log


def test_the_order_of_a_release(watched):
    db, log = watched
    db.sql(COUNT, epsilon=1)
    assert log == [
        *("check", "check"),  # the release, and what follows it
        *("reserve", "sent", "protected statement", "public statement", "settled"),
    ]


def test_public_keys_are_looked_up_before_anything_is_reserved(watched):
    db, log = watched
    db.sql(TOWNS, epsilon=1)
    reserve = log.index("reserve")
    assert "protected statement" not in log[:reserve]
    assert log[reserve : reserve + 3] == ["reserve", "sent", "protected statement"]


def test_public_questions_and_explanations_touch_no_budget(watched):
    db, log = watched
    db.sql("SELECT town FROM towns", epsilon=1)
    assert log == ["check", "public statement"]
    log.clear()
    db.explain(COUNT, epsilon=1)
    db.explain(TOWNS)
    assert set(log) == {"check", "public statement"}


@pytest.mark.parametrize(
    ("query", "point", "spent"),
    [
        (COUNT, "check", 0),
        (TOWNS, "public statement", 0),
        (COUNT, "protected statement", 1),
        (COUNT, "public statement", 1),
    ],
)
def test_what_a_failing_engine_costs(watched, query, point, spent):
    db, log = watched
    db._backend.fail = point
    with pytest.raises(BackendError):
        db.sql(query, epsilon=1)
    assert db.budget["people"].spent_epsilon == spent
    assert ("sent" in log) == bool(spent)
    assert log[-1] == ("settled" if spent else point)


def test_nothing_is_sent_when_sending_cannot_be_written_down(watched, monkeypatch):
    db, log = watched

    def refuse(self, release_id):
        raise BudgetError("BUD-002", "planted: the disk is full")

    monkeypatch.setattr(Ledger, "record_sent", refuse)
    with pytest.raises(BudgetError):
        db.sql(COUNT, epsilon=1)
    assert "protected statement" not in log
    assert db.budget["people"].spent_epsilon == 0
    assert log[-1] == "returned"


def test_an_answer_is_not_lost_when_settling_cannot_be_written_down(watched, monkeypatch):
    db, _ = watched

    def refuse(self, release_id, outcome):
        raise BudgetError("BUD-002", "planted: the disk is full")

    monkeypatch.setattr(Ledger, "record_settled", refuse)
    try:
        db.sql(COUNT, epsilon=1)
    except SecantError as error:
        assert error.code == "BUD-002"  # noqa: PT017 - either outcome is allowed, the charge is not
    assert db.budget["people"].spent_epsilon == 1


KILLED = """
import os, sys
sys.path[:0] = [{tests!r}, {here!r}]
from pathlib import Path
import secant
from secant.ledger.store import Ledger
from secant.engines.duckdb.session import DuckDBSession

db = secant.connect(policy=Path({policy!r}))
point = {point!r}
if point == "sent":
    Ledger.record_sent = lambda self, release_id: os._exit(9)
else:
    DuckDBSession.rows = lambda self, statement: os._exit(9)
db.sql("SELECT count(*) AS n FROM orders", epsilon=1)
"""


@pytest.mark.parametrize("point", ["sent", "statement"])
def test_what_a_kill_leaves_behind(tmp_path, point):
    with open_shop(tmp_path, UNIT) as db:
        policy = str(db.policy.path)
        here = Path(__file__).parent
        program = KILLED.format(
            tests=str(here.parents[1]), here=str(here), policy=policy, point=point
        )
        done = subprocess.run([sys.executable, "-c", program], check=False, timeout=60)
        assert done.returncode == 9
        # Sent: spent for good. Not sent: held until its lease has run out, so never available twice.
        assert db.budget["people"].spent_epsilon == 1
        (release,) = db.ledger.history()
        assert release.status == ("reserved" if point == "sent" else "sent")
