"""A release saw several states of the data, and facts about public tables were believed for ever.

Each statement had a transaction of its own, so a measure and the survey that scales its noise could see different rows;
a public key that was checked once was never looked at again. Now a question has one session: claims, lookups, measures
and surveys see one state, or the answer is withheld.
"""

import itertools
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import psycopg
import pytest

from apart import Wrapped
from asked_at_once import EPSILON, TABLES, open_at, open_files
from chance import LONG
from secant.engines.duckdb import session as duckdb_source
from secant.engines.postgres import session as server
from secant.errors import BackendError, SecantError
from secant.release import print as printing

JOIN = "SELECT count(*) AS n FROM visits AS v JOIN places AS p ON v.k = p.k"
PAIRS = "SELECT count(*) AS n FROM visits AS a JOIN visits AS b ON a.k = b.k AND a.cost < b.cost"
WHOLE, RELEASES = 900, 500 if LONG else 25

# In the first state the key holds and JOIN is 900; in the second it is broken and JOIN would be 21. One that checks the
# key in the first and counts in the second answers 21.
FIRST = (
    "DELETE FROM visits",
    "DELETE FROM places",
    "INSERT INTO visits SELECT * FROM all_visits",
    "INSERT INTO places SELECT * FROM all_places",
)
SECOND = (
    "DELETE FROM visits WHERE id > 1 OR k >= 7",
    "INSERT INTO places SELECT * FROM all_places",
    "INSERT INTO places SELECT * FROM all_places",
)


@pytest.fixture
def address(postgres_database):
    with psycopg.connect(postgres_database) as connection:
        connection.execute(TABLES)
        connection.execute("CREATE SCHEMA kept")
        for table in ("visits", "places"):
            connection.execute(f"CREATE TABLE kept.all_{table} AS SELECT * FROM {table}")
    return postgres_database


@pytest.fixture
def db(tmp_path, address):
    with open_at(tmp_path, address) as opened:
        yield opened


class Writer:
    """Somebody who changes both tables in one transaction, to and fro."""

    def __init__(self, address):
        self._connection = psycopg.connect(address, autocommit=True)
        self._connection.execute("SET search_path = public, kept")
        self._second = False
        self._stopped = False

    def turn(self):
        with self._connection.transaction():
            for statement in FIRST if self._second else SECOND:
                self._connection.execute(statement)
        self._second = not self._second

    def to(self, second):
        if self._second != second:
            self.turn()

    def run(self):
        while not self._stopped:
            self.turn()

    def stop(self):
        self._stopped = True

    def close(self):
        self._connection.close()


@pytest.fixture
def writer(address):
    found = Writer(address)
    yield found
    found.close()


class Interrupted(Wrapped):
    """A backend between whose statements somebody does something."""

    def __init__(self, inner, act):
        super().__init__(inner)
        self.act, self.statements, self.sessions = act, [], 0

    def session(self, tables=()):
        self.sessions += 1
        return super().session(tables)

    def check(self, session, statement):
        self._noted(session, statement)
        session.check(statement)

    def rows(self, session, statement):
        self._noted(session, statement)
        return session.rows(statement)

    def _noted(self, session, statement):
        self.act(session)
        self.statements.append(statement)


def outcome(db, text=JOIN):
    """Give the number that was answered, or the code of the error."""
    try:
        return db.sql(text, epsilon=EPSILON).rows[0][0]
    except SecantError as error:
        return error.code


def each_statement_apart(monkeypatch):
    """Plant the old fault: every statement begins a transaction of its own."""
    original = server.PostgresSession._fetched

    def apart(self, statement):
        self._connection.execute("ROLLBACK")
        self._connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        return original(self, statement)

    monkeypatch.setattr(server.PostgresSession, "_fetched", apart)


# ── one state for all statements ─────────────────────────────────────────────────────────────────


@pytest.mark.postgres
def test_a_commit_between_any_two_statements_is_not_seen(db, writer):
    db._backend = Interrupted(db._backend, lambda session: writer.turn())
    for second in (False, True, False):
        writer.to(second)
        assert outcome(db) == ("POL-004" if second else WHOLE)


@pytest.mark.postgres
def test_planted_a_transaction_for_each_statement_mixes_states(db, writer, monkeypatch):
    each_statement_apart(monkeypatch)
    backend, found = db._backend, set()
    for every in (1, 2):  # between check and release may stand any number of statements
        counted = itertools.count()
        db._backend = Interrupted(
            backend, lambda session, c=counted, e=every: next(c) % e == 0 and writer.turn()
        )
        for second in (False, True):
            writer.to(second)
            found.add(outcome(db))
    assert not found <= {WHOLE, "POL-004"}


@pytest.mark.postgres
def test_a_writer_that_never_rests(db, writer):
    running = threading.Thread(target=writer.run)
    running.start()
    try:
        found = [outcome(db) for _ in range(RELEASES)]
    finally:
        writer.stop()
        running.join()
    assert set(found) <= {WHOLE, "POL-004"}
    answered = found.count(WHOLE)
    assert db.budget["rows"].spent_epsilon == answered * EPSILON
    if LONG:
        assert 0 < answered < RELEASES  # both states were met


@pytest.mark.postgres
@pytest.mark.parametrize("ask", ["sql", "explain", "inspect"])
@pytest.mark.parametrize("text", [JOIN, PAIRS, "SELECT count(*) FROM places"])
def test_each_question_is_one_session_and_one_snapshot(db, address, ask, text):
    moments = set()
    with psycopg.connect(address, autocommit=True) as other:
        other.execute("CREATE TABLE ticks (n BIGINT)")

        def tick(session):
            other.execute("INSERT INTO ticks VALUES (1)")
            moments.update(session.rows("SELECT pg_backend_pid(), pg_current_snapshot()::text"))

        db._backend = watched = Interrupted(db._backend, tick)
        getattr(db, ask)(text, epsilon=EPSILON)
    assert watched.sessions == 1
    assert len(watched.statements) > 0
    assert len(moments) == 1


@pytest.mark.postgres
def test_planted_snapshots_that_differ_are_seen(db, address, monkeypatch):
    each_statement_apart(monkeypatch)
    with pytest.raises(AssertionError):
        test_each_question_is_one_session_and_one_snapshot(db, address, "sql", JOIN)


# ── facts are looked up in every release ─────────────────────────────────────────────────────────


@pytest.mark.postgres
def test_a_key_that_breaks_later_is_seen(db, writer):
    assert outcome(db) == WHOLE
    writer.turn()
    assert outcome(db) == "POL-004"
    writer.turn()
    assert outcome(db) == WHOLE


@pytest.mark.postgres
def test_planted_a_key_that_is_believed_for_ever_is_seen(db, writer, monkeypatch):
    checked, original = set(), printing._check_key

    def once(session, table, columns):
        if (table, columns) not in checked:
            original(session, table, columns)
            checked.add((table, columns))

    monkeypatch.setattr(printing, "_check_key", once)
    with pytest.raises(AssertionError):
        test_a_key_that_breaks_later_is_seen(db, writer)


def looked_up(db, text):
    """Give the statements that a question sends."""
    watched, db._backend = db._backend, Interrupted(db._backend, lambda session: None)
    try:
        outcome(db, text)
        return db._backend.statements
    finally:
        db._backend = watched


@pytest.mark.parametrize("text", [JOIN, PAIRS])
def test_the_same_question_looks_at_public_tables_of_files_once(tmp_path, text):
    """Files may not change while they are open (above), so that what was seen of public tables still holds."""
    with open_files(tmp_path, "duckdb") as db:
        *first, _ = looked_up(db, text)
        *again, _ = looked_up(db, text)  # the last one holds what was drawn
        once = set(first) - set(again)
        assert len(first) > 2
        assert again == [s for s in first if s not in once]
        assert bool(once) is (text is JOIN)
        assert not any('"visits"' in statement for statement in once)


@pytest.mark.postgres
@pytest.mark.parametrize("text", [JOIN, PAIRS])
def test_the_same_question_looks_everything_up_again_on_a_server(db, text):
    *first, _ = looked_up(db, text)
    *again, _ = looked_up(db, text)
    assert len(first) > 2
    assert again == first


# ── tables that are changed, not only written ────────────────────────────────────────────────────

CHANGES = {
    "a column is gone": "ALTER TABLE visits DROP COLUMN cost",
    "a column has another type": "ALTER TABLE visits ALTER COLUMN cost TYPE numeric(9, 2)",
    "a column has another name": "ALTER TABLE visits RENAME COLUMN cost TO price",
    "a table is gone": "DROP TABLE places",
    "a view takes its place": (
        "ALTER TABLE places RENAME TO old; CREATE VIEW places AS SELECT * FROM old"
    ),
    "a partition of another": (
        "CREATE TABLE whole (LIKE places) PARTITION BY RANGE (k);"
        "ALTER TABLE whole ATTACH PARTITION places DEFAULT"
    ),
    "a key is new": "ALTER TABLE places ADD UNIQUE (k)",
}


@pytest.mark.postgres
@pytest.mark.parametrize("change", CHANGES)
def test_a_table_that_is_no_longer_what_was_opened_is_not_read(db, address, change):
    with psycopg.connect(address, autocommit=True) as other:
        other.execute(CHANGES[change])
    for ask in (db.sql, db.explain, db.inspect):
        with pytest.raises(BackendError) as caught:
            ask(JOIN, epsilon=EPSILON)
        assert caught.value.code == "BAK-004"
    assert db.budget["rows"].spent_epsilon == 0


@pytest.mark.postgres
def test_other_tables_may_come_and_go(db, address):
    with psycopg.connect(address, autocommit=True) as other:
        other.execute("CREATE TABLE elsewhere (k BIGINT)")
        assert outcome(db) == WHOLE
        other.execute("DROP TABLE elsewhere")
        assert outcome(db) == WHOLE


def truncating(address):
    """Give an act that tries to empty the protected table, once, and the list of what came of it."""
    came = []

    def act(session):
        if not came:
            with psycopg.connect(address, autocommit=True) as other:
                other.execute("SET lock_timeout = 200")
                try:
                    other.execute("TRUNCATE visits")
                    came.append("emptied")
                except psycopg.errors.LockNotAvailable:
                    came.append("waits")

    return act, came


@pytest.mark.postgres
def test_emptying_a_table_waits_for_the_question(db, address):
    act, came = truncating(address)
    db._backend = Interrupted(db._backend, act)
    assert outcome(db) == WHOLE
    assert came == ["waits"]


@pytest.mark.postgres
def test_planted_without_locks_a_table_is_emptied_under_the_question(db, address, monkeypatch):
    monkeypatch.setattr(server, "_hold", lambda connection, places: None)
    act, came = truncating(address)
    with db._backend.session(["places"]) as session:
        act(session)
    assert came == ["emptied"]


# ── files ────────────────────────────────────────────────────────────────────────────────────────


def rewritten(path: Path):
    """Write the same bytes again, and put the times of the file back: only its change time tells."""
    facts = path.stat()
    path.write_bytes(path.read_bytes())
    os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))


def replaced(path: Path):
    shutil.copy2(path, path.with_suffix(".other"))
    path.with_suffix(".other").replace(path)


def joined(path: Path):
    (path.parent / "more").mkdir()
    shutil.copy(path, path.parent / "more" / f"more{path.suffix}")


ACTS = [rewritten, replaced, Path.unlink]
PLACES = {"duckdb": "visits.duckdb", "parquet": "parquet/visits.parquet"}


def acting_at(path, act, number):
    """Give an act that changes a file before the statement with that number."""
    left = [number]

    def later(session):
        left[0] -= 1
        if left[0] == -1:
            act(path)

    return later


@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize("kind", PLACES)
def test_a_file_that_changed_before_the_question_is_not_read(tmp_path, kind, act):
    with open_files(tmp_path, kind) as db:
        assert outcome(db) == WHOLE
        act(tmp_path / PLACES[kind])
        for ask in (db.sql, db.explain, db.inspect):
            with pytest.raises(BackendError) as caught:
                ask(JOIN, epsilon=EPSILON)
            assert caught.value.code == "BAK-004"
        assert db.budget["rows"].spent_epsilon == EPSILON


@pytest.mark.parametrize("act", [rewritten, replaced])
@pytest.mark.parametrize("kind", PLACES)
def test_a_file_that_changes_under_the_question_costs_it_its_answer(tmp_path, kind, act):
    with open_files(tmp_path, kind) as db:
        looked_up(db, JOIN)
        count = len(looked_up(db, JOIN))  # without what is known of public tables by now
        change = acting_at(tmp_path / PLACES[kind], act, count - 1)
        db._backend = Interrupted(db._backend, change)
        assert outcome(db) == "BAK-004"
        assert db.budget["rows"].spent_epsilon == 3 * EPSILON
        assert [r.status for r in db.ledger.history()][2:] == ["failed"]


def test_a_file_that_is_added_counts(tmp_path):
    with open_files(tmp_path, "parquet") as db:
        joined(tmp_path / PLACES["parquet"])
        assert outcome(db) == "BAK-004"


def test_planted_files_that_are_not_compared_give_an_answer(tmp_path, monkeypatch):
    with open_files(tmp_path, "parquet") as db:
        monkeypatch.setattr(duckdb_source, "same_state", lambda before, paths: None)
        rewritten(tmp_path / PLACES["parquet"])
        assert outcome(db) == WHOLE


def test_rows_of_csv_files_are_those_of_the_opening(tmp_path):
    with open_files(tmp_path, "csv") as db:
        path = tmp_path / "csv" / "visits.csv"
        path.write_text("\n".join(path.read_text().split("\n")[:8]) + "\n")
        assert outcome(db) == WHOLE
    with open_files(tmp_path, "csv") as db:
        assert outcome(db) == 7


@pytest.mark.parametrize("kind", PLACES)
@pytest.mark.parametrize("ask", ["sql", "explain", "inspect"])
def test_each_question_on_files_is_one_session(tmp_path, kind, ask):
    with open_files(tmp_path, kind) as db:
        db._backend = watched = Interrupted(db._backend, lambda session: None)
        getattr(db, ask)(PAIRS, epsilon=EPSILON)
        assert watched.sessions == 1


def test_a_session_on_files_only_reads(tmp_path):
    with open_files(tmp_path, "csv") as db, db._backend.session() as session:
        assert session.rows("SELECT count(*) FROM places") == [(40,)]
        with pytest.raises(BackendError):
            session.rows("DELETE FROM places")


def test_another_program_that_writes_is_found_out(tmp_path):
    """The lock of the engine ends when anybody in the process closes the file."""
    with open_files(tmp_path, "duckdb") as db:
        place = tmp_path / "visits.duckdb"
        place.read_bytes()
        program = f"import duckdb; duckdb.connect({str(place)!r}).execute('DELETE FROM visits')"
        subprocess.run([sys.executable, "-c", program], check=True)
        assert outcome(db) == "BAK-004"
