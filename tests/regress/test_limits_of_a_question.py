"""Ours: a question had no limit of time, memory or groups. A join of fourteen copies of 203 rows ran on and on, 195,112
declared keys took 7 GB, and Ctrl-C was not heard. Questions that would take hours, or all memory, end with one and the
same error; what was sent stays charged.
"""

import os
import signal
import subprocess
import sys
import threading
import time

import duckdb
import psycopg
import pytest

import secant
from secant.engines import watch
from secant.engines.postgres import session as postgres
from secant.engines.sources import open_source
from secant.errors import BackendError, Refused
from secant.policy.file import read_policy
from secant.policy.policy import Limits

ENDLESS = "SELECT count(*) AS n FROM " + ", ".join(f"people AS p{i}" for i in range(14))
POLICY = """
[database]
source = "{source}"
{limits}
[tables.people]
key = "id"
[tables.people.columns]
age = {{ range = [0, 120] }}
a = {{ values = {values} }}
b = {{ values = {values} }}
[protections.people]
kind = "rows"
epsilon = 100
delta = 1e-6
"""
COLUMNS = "id BIGINT, age BIGINT, a BIGINT, b BIGINT, name VARCHAR"


def policy(tmp_path, limits="", source="duckdb:town.duckdb", values=200):
    path = tmp_path / "policy.toml"
    written = POLICY.format(source=source, limits=limits, values=list(range(values)))
    path.write_text(written)
    return path


@pytest.fixture
def town(tmp_path):
    with duckdb.connect(str(tmp_path / "town.duckdb")) as connection:
        connection.execute(f"CREATE TABLE people ({COLUMNS})")
        connection.execute(
            "INSERT INTO people SELECT range, range % 97, range % 7, range % 5, 'n' || (range % 150) FROM range(203)"
        )
    return tmp_path


def spent(database):
    return database.budget["people"].spent_epsilon


# ── time ─────────────────────────────────────────────────────────────────────────────────────────────


def test_a_question_of_hours_ends_and_stays_charged(town):
    with secant.connect(policy=policy(town, "statement_seconds = 0.5")) as database:
        with pytest.raises(BackendError) as over:
            database.sql(ENDLESS, epsilon=1)
        assert over.value.code == "BAK-005"
        assert spent(database) == 1
        # the connection goes on, and the next question has its own time
        assert len(database.sql("SELECT count(*) FROM people", epsilon=1).rows) == 1


def statements():
    return [thread for thread in threading.enumerate() if thread.name == "secant statement"]


def test_a_statement_that_took_too_long_is_over(town):
    backend = open_source(f"duckdb:{town / 'town.duckdb'}", limits=Limits(seconds=0.2))
    with backend.session(["people"]) as session, pytest.raises(BackendError, match="limit"):
        session.rows(ENDLESS)
    assert not any(thread.is_alive() and not thread.done.is_set() for thread in statements())
    backend.close()


def test_planted_a_statement_that_nobody_stops_runs_on(town, monkeypatch):
    monkeypatch.setattr(watch, "_end", lambda working, stop: None)
    backend = open_source(f"duckdb:{town / 'town.duckdb'}", limits=Limits(seconds=0.2))
    with backend.session(["people"]) as session:
        with pytest.raises(BackendError, match="limit"):
            session.rows(ENDLESS)
        assert any(not thread.done.is_set() for thread in statements())
        while statements():
            session._cursor.interrupt()
            time.sleep(0.05)
    backend.close()


def test_time_and_memory_are_told_in_the_same_words(town):
    found = set()
    long, large = Limits(seconds=0.2), Limits(memory="64MB")
    # a list cannot be put aside, so it must fit
    lists = "SELECT length(CAST(list(a.id * b.id * c.id) AS VARCHAR)) FROM people AS a, people AS b, people AS c"
    for limits, statement in ((long, ENDLESS), (large, lists)):
        backend = open_source(f"duckdb:{town / 'town.duckdb'}", limits=limits)
        with backend.session(["people"]) as session, pytest.raises(BackendError) as over:
            session.rows(statement)
        backend.close()
        found.add(over.value.render())
    assert len(found) == 1


def test_a_csv_file_is_read_within_the_limits(tmp_path):
    (tmp_path / "people.csv").write_text("id\n" + "\n".join(str(i) for i in range(300_000)))
    with pytest.raises(BackendError) as over:
        open_source(f"csv:{tmp_path}", limits=Limits(seconds=0.001))
    assert over.value.code == "BAK-005"


# ── groups ───────────────────────────────────────────────────────────────────────────────────────────


def test_declared_groups_are_counted_before_they_are_written_out(town, monkeypatch):
    def never(*lists):
        raise AssertionError("the groups are written out")

    monkeypatch.setattr("secant.release.print.itertools.product", never)
    with secant.connect(policy=policy(town)) as database:
        with pytest.raises(Refused, match="more than 20000 groups"):
            database.sql("SELECT a, b, count(*) FROM people GROUP BY a, b", epsilon=1)
        assert spent(database) == 0
        with pytest.raises(
            AssertionError if os.environ.get("SECANT_DEBUG") == "1" else secant.errors.InternalError
        ):
            database.sql("SELECT a, count(*) FROM people GROUP BY a", epsilon=1)


def test_the_owner_sets_how_many(town):
    database = secant.connect(policy=policy(town, "groups = 9", values=10))
    with database, pytest.raises(Refused, match="more than 9 groups"):
        database.sql("SELECT a, count(*) FROM people GROUP BY a", epsilon=1)
    with secant.connect(policy=policy(town, "groups = 11", values=10)) as database:
        assert len(database.sql("SELECT a, count(*) FROM people GROUP BY a", epsilon=1).rows) == 11


def test_groups_that_are_found_are_limited_and_paid_for(town):
    question = "SELECT name, count(*) AS n FROM people GROUP BY name"
    with secant.connect(policy=policy(town, "groups = 1")) as database:
        with pytest.raises(BackendError) as over:
            database.sql(
                question, epsilon=1, delta=1e-8
            )  # 150 names, and no more than 100 are looked at
        assert over.value.code == "BAK-005"
        assert spent(database) == 1
    with secant.connect(policy=policy(town, "groups = 2")) as database:
        database.sql(question, epsilon=1, delta=1e-8)


# ── Ctrl-C ───────────────────────────────────────────────────────────────────────────────────────────


PROGRAM = "import sys; from secant.cli import main; sys.exit(main())"
DEAF = (
    "from secant.engines.duckdb import session as e; e.watched = lambda call, stop, seconds: call(); "
    + PROGRAM
)


def interrupted(place, program):
    """Start an endless question, send Ctrl-C when it is paid for; give how the program ends, None if it does not."""
    words = ["query", ENDLESS, "--epsilon", "1", "--policy", str(place)]
    process = subprocess.Popen(
        [sys.executable, "-c", program, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    try:
        with secant.connect(policy=place) as database:
            while not spent(database):
                assert process.poll() is None, process.stderr.read()
                time.sleep(0.05)
        time.sleep(0.5)  # the statement is under way
        process.send_signal(signal.SIGINT)
        out, error = process.communicate(timeout=60 if program == PROGRAM else 3)
        return process.returncode, out, error
    except subprocess.TimeoutExpired:
        return None
    finally:
        process.kill()
        process.communicate()


def test_control_c_ends_the_program_with_130_and_keeps_the_charge(town):
    place = policy(town)
    status, out, error = interrupted(place, PROGRAM)
    assert status == 130, error
    assert out == b""
    assert b"stays charged" in error
    with secant.connect(policy=place) as database:
        assert spent(database) == 1


def test_planted_in_the_main_thread_the_engine_does_not_hear_it(town):
    ended = interrupted(policy(town), DEAF)
    assert ended is None or ended[0] != 130


@pytest.mark.parametrize("prepared", [False, True])
def test_control_c_is_an_interrupt_and_no_failure_of_the_engine(town, prepared):
    backend = open_source(f"duckdb:{town / 'town.duckdb'}")
    with backend.session(["people"]) as session:
        if prepared:
            session.check(ENDLESS)
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            session.rows(ENDLESS)
    with backend.session(["people"]) as session:
        assert session.rows("SELECT count(*) FROM people") == [(203,)]
    backend.close()


# ── PostgreSQL ───────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def people(postgres_database):
    with psycopg.connect(postgres_database, autocommit=True) as connection:
        connection.execute(
            "CREATE TABLE people (id bigint PRIMARY KEY, age bigint, a bigint, b bigint, name text)"
        )
        connection.execute(
            "INSERT INTO people SELECT i, i % 97, i % 7, i % 5, 'n' || (i % 150) FROM generate_series(0, 202) AS s (i)"
        )
    return postgres_database


@pytest.mark.postgres
def test_a_question_of_hours_ends_on_postgres(tmp_path, people):
    with secant.connect(policy=policy(tmp_path, "statement_seconds = 0.5", people)) as database:
        with pytest.raises(BackendError) as over:
            database.sql(ENDLESS, epsilon=1)
        assert over.value.code == "BAK-005"
        assert spent(database) == 1
        assert len(database.sql("SELECT count(*) FROM people", epsilon=1).rows) == 1


@pytest.mark.postgres
def test_groups_that_are_found_are_limited_on_postgres(tmp_path, people):
    with secant.connect(policy=policy(tmp_path, "groups = 1", people)) as database:
        with pytest.raises(BackendError) as over:
            database.sql("SELECT name, count(*) FROM people GROUP BY name", epsilon=1, delta=1e-8)
        assert over.value.code == "BAK-005"
        assert len(database.sql("SELECT count(*) FROM people", epsilon=1).rows) == 1


@pytest.mark.postgres
def test_a_server_that_falls_silent_is_left(tmp_path, people, monkeypatch):
    monkeypatch.setattr(postgres, "_SLACK", 0.5)
    with secant.connect(policy=policy(tmp_path, "statement_seconds = 0.5", people)) as database:
        with psycopg.connect(people, autocommit=True) as other:
            ((busy,),) = other.execute(
                "SELECT pid FROM pg_stat_activity WHERE application_name = 'secant' AND datname = current_database()"
            ).fetchall()
        os.kill(busy, signal.SIGSTOP)
        try:
            # the connection that has fallen silent is replaced: nothing was sent on it
            assert len(database.sql("SELECT count(*) FROM people", epsilon=1).rows) == 1
        finally:
            os.kill(busy, signal.SIGCONT)


@pytest.mark.postgres
def test_a_server_that_falls_silent_under_a_statement_is_left(people, monkeypatch):
    monkeypatch.setattr(postgres, "_SLACK", 0.5)
    backend = open_source(people, limits=Limits(seconds=1))
    with backend.session() as session:
        ((busy,),) = session.rows("SELECT pg_backend_pid()")
        os.kill(busy, signal.SIGSTOP)
        try:
            with pytest.raises(BackendError) as over:
                session.rows("SELECT 1")
        finally:
            os.kill(busy, signal.SIGCONT)
    assert over.value.code == "BAK-005"
    with backend.session() as session:
        assert session.rows("SELECT 1") == [(1,)]
    backend.close()


@pytest.mark.postgres
def test_control_c_is_heard_on_postgres(people):
    backend = open_source(people)
    with backend.session() as session:
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            session.rows("SELECT pg_sleep(600)")
    with backend.session() as session:
        ((left,),) = session.rows(
            "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep%' AND state = 'active'"
        )
    assert left == 0
    backend.close()


# ── the policy ───────────────────────────────────────────────────────────────────────────────────────

PROTECTED = '[protections.p]\nkind = "rows"\nepsilon = 1\n[database]\n'


def test_limits_are_read():
    found = read_policy(PROTECTED + 'statement_seconds = 1.5\nmemory = "4 GB"\ngroups = 7\n').limits
    assert found == Limits(1.5, "4GB", 7)
    assert read_policy(PROTECTED).limits == Limits()


WRONG = [
    *(f"statement_seconds = {v}" for v in ("0", "-1", '"5"', "true", "nan", "inf", "1e9", "[]")),
    *(
        f"memory = {v}"
        for v in ('"0GB"', '"much"', "5", '"101%"', '"0%"', '"4GB; x"', '"-1GB"', "''")
    ),
    *(f"groups = {v}" for v in ("0", "-1", "1.5", "true", '"5"', "1000001")),
]


@pytest.mark.parametrize("line", WRONG)
def test_limits_that_cannot_be_meant(line):
    with pytest.raises(secant.errors.PolicyError) as wrong:
        read_policy(PROTECTED + line)
    assert wrong.value.details[0].startswith("line 5: database.")
