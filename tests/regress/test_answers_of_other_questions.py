"""One connection in several threads, or in forked children, answered with the exact result of another question.

Prepared statements had names that repeated and were looked up outside of the lock, so a sum came back under the noise
of a count; children spoke on the sockets of their parent. Every question has a cursor or a connection of its own now.
"""

import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from apart import apart
from asked_at_once import (
    EPSILON,
    TABLES,
    in_child,
    open_at,
    open_files,
    question,
    wrong_answers,
    wrong_in_children,
    wrong_in_threads,
)
from chance import LONG
from secant import engine
from secant.engines.duckdb.session import DuckDB, DuckDBSession
from secant.errors import BackendError
from secant.runtime import processes

THREADS, CHILDREN = 8, 4
EACH = 1000 if LONG else 12


@pytest.fixture
def postgres(tmp_path, postgres_database):
    with psycopg.connect(postgres_database) as connection:
        connection.execute(TABLES)
    with open_at(tmp_path, postgres_database) as db:
        yield db


@pytest.fixture(params=["duckdb", "parquet", "csv"])
def files(tmp_path, request):
    with open_files(tmp_path, request.param) as db:
        yield db


def charged(db):
    """How many questions have been paid."""
    return db.budget["rows"].spent_epsilon / EPSILON


def costs(start, count):
    return sum("visits" in question(number)[0] for number in range(start, start + count))


def test_each_question_has_its_own_answer():
    answers = [repr(question(number)[1]) for number in range(160)]
    assert len(set(answers)) == 160


@pytest.mark.postgres
def test_threads_on_postgres(postgres):
    assert wrong_in_threads(postgres, THREADS, EACH) == []
    assert charged(postgres) == sum(costs(s, EACH) for s in range(0, 7 * THREADS, 7))


def test_threads_on_files(files):
    assert wrong_in_threads(files, THREADS, EACH) == []
    assert charged(files) == sum(costs(s, EACH) for s in range(0, 7 * THREADS, 7))


@pytest.mark.postgres
def test_children_on_postgres(postgres):
    assert wrong_answers(postgres, 0, 3) == []
    assert wrong_in_children(postgres, CHILDREN, EACH) == []
    asked = [costs(s, EACH) for s in range(0, 11 * CHILDREN + 1, 11)]
    assert charged(postgres) == costs(0, 3) + sum(asked)
    assert wrong_answers(postgres, 0, 3) == []  # no child has ended the session of its parent


def test_children_on_files(files):
    assert wrong_answers(files, 0, 3) == []
    assert wrong_in_children(files, CHILDREN, EACH) == []
    asked = [costs(s, EACH) for s in range(0, 11 * CHILDREN + 1, 11)]
    assert charged(files) == costs(0, 3) + sum(asked)
    assert wrong_answers(files, 0, 3) == []


ENDING = """
import os, sys, time
sys.path.append({tests!r})
from pathlib import Path
from asked_at_once import open_files, wrong_answers
from secant.runtime import processes

if {planted}:
    processes._everything.clear()
db = open_files(Path({directory!r}), {kind!r})
assert wrong_answers(db, 0, 3) == []
if {planted}:
    processes._everything.clear()
child = os.fork()
if not child:
    sys.exit(0)  # frees what it has inherited
for _ in range(600):
    process, status = os.waitpid(child, os.WNOHANG)
    if process:
        break
    time.sleep(0.05)
else:
    os.kill(child, 9)
    status = "hangs"
assert wrong_answers(db, 0, 3) == []
print("child", status)
"""


@pytest.mark.parametrize("planted", [False, True])
@pytest.mark.parametrize("kind", ["duckdb", "csv"])
def test_a_child_that_ends_does_not_wait_for_threads_of_its_parent(tmp_path, kind, planted):
    """The engine's own end joins threads that a child does not have: it crashes, or never ends."""
    tests = str(Path(__file__).parents[1])
    program = ENDING.format(tests=tests, directory=str(tmp_path), kind=kind, planted=planted)
    done = subprocess.run(
        [sys.executable, "-c", program], check=False, capture_output=True, text=True
    )
    assert done.returncode == 0
    assert (done.stdout == "child 0\n") is not planted


# ── planted: what it was like ────────────────────────────────────────────────────────────────────


class Shared(DuckDBSession):
    """One cursor for all, behind a lock; names are numbers that come again, and are looked up without it."""

    lock = threading.Lock()

    def check(self, statement):
        if statement not in self._prepared:
            if len(self._prepared) >= 32:
                for name in list(self._prepared.values()):
                    self._fetched(f"DEALLOCATE {name}")
                self._prepared.clear()
            name = f"secant_{len(self._prepared)}"
            self._fetched(f"PREPARE {name} AS {statement}")
            self._prepared[statement] = name

    def _fetched(self, statement):
        with self.lock:
            return super()._fetched(statement)


def test_planted_names_that_repeat_are_seen(tmp_path, monkeypatch):
    with (
        open_files(tmp_path, "duckdb") as db,
        db._backend._engines[0].get().cursor(None) as cursor,
    ):
        session = Shared(cursor, db._backend.catalog, lambda: None, db.policy.limits)

        @contextmanager
        def shared(self, tables=()):
            yield session

        monkeypatch.setattr(DuckDB, "session", shared)
        assert wrong_in_threads(db, THREADS, 24) != []


@pytest.mark.postgres
def test_a_child_has_a_server_process_of_its_own(postgres, monkeypatch):
    def served_by():
        ((process,),) = apart(postgres).rows("SELECT pg_backend_pid()")
        return process

    ours = served_by()
    with in_child(served_by) as result:
        assert result() not in (ours, "the child has died")
    assert served_by() == ours
    # planted: a child that goes on with what it inherited
    monkeypatch.setattr(processes.PerProcess, "leave_to_parent", lambda self: None)
    with in_child(served_by) as result:
        assert result() == ours


# ── one ledger, one close ────────────────────────────────────────────────────────────────────────


def opened_ledgers(db, monkeypatch):
    """Open the ledger of a connection from eight threads at once; give how many were opened."""
    opened, original = [], engine.open_ledger

    def slow(policy, place, **options):
        time.sleep(0.05)
        opened.append(original(policy, place, **options))
        return opened[-1]

    monkeypatch.setattr(engine, "open_ledger", slow)
    running = [threading.Thread(target=lambda: db.ledger) for _ in range(THREADS)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    for ledger in opened:
        ledger.close()
    return len(opened)


def test_threads_open_one_ledger(tmp_path, monkeypatch):
    with open_files(tmp_path, "csv") as db:
        assert opened_ledgers(db, monkeypatch) == 1


# Whoever comes second may meet half a ledger, and fails in its own thread.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_planted_a_ledger_without_a_lock_is_opened_twice(tmp_path, monkeypatch):
    class NoLock:
        def __enter__(self): ...
        def __exit__(self, *error): ...

    with open_files(tmp_path, "csv") as db:
        db._opening = NoLock()
        assert opened_ledgers(db, monkeypatch) > 1


@pytest.mark.parametrize("kind", ["duckdb", "csv"])
def test_closing_while_a_question_runs_lets_it_end(tmp_path, kind):
    db = open_files(tmp_path, kind)
    with db._backend.session() as session:
        db._backend.close()
        assert session.rows("SELECT count(*) FROM places") == [(40,)]
        with pytest.raises(BackendError, match="closed"), db._backend.session():
            pass
    db.close()


@pytest.mark.postgres
def test_closing_while_a_question_runs_on_postgres_lets_it_end(postgres):
    with postgres._backend.session() as session:
        postgres._backend.close()
        assert session.rows("SELECT count(*) FROM places") == [(40,)]
        with pytest.raises(BackendError, match="closed"), postgres._backend.session():
            pass
