"""Questions whose answers tell which question was answered, and ways to ask them from threads and children at once.

Each number comes from one question only: noise of scale 1/40 or less moves a whole number once in 1e16 times.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb

import secant
from chance import LONG
from secant.engine import Connection
from secant.errors import SecantError

PATIENCE = 3600 if LONG else 300
"""Seconds after which a child is taken to hang; a crowded machine is slow."""
GROUPS = 40
EPSILON = 120
TABLES = f"""
CREATE TABLE visits (id BIGINT, k BIGINT, cost BIGINT);
INSERT INTO visits SELECT i, k, 1 + k % 3
    FROM generate_series(0, {GROUPS - 1}) AS a(k), generate_series(1, 60) AS b(i) WHERE i <= 3 + k;
CREATE TABLE places (k BIGINT, name VARCHAR(20));
INSERT INTO places SELECT k, 'place' || k FROM generate_series(0, {GROUPS - 1}) AS a(k)
"""
POLICY = """
database.public = ["places"]
[tables.visits.columns]
k = { range = [0, 100] }
cost = { range = [0, 3] }
[tables.places]
key = "k"
[protections.rows]
kind = "rows"
tables = ["visits"]
epsilon = 1000000
composition = "basic"
"""


def question(number: int) -> tuple[str, list[tuple[object, ...]]]:
    """Give a question, of one of four forms, and its answer, which is that of no other question."""
    k, form = number % GROUPS, number // GROUPS % 4
    rows = 3 + k
    if form == 0:
        return f"SELECT count(*) AS n FROM visits WHERE k = {k}", [(rows,)]
    if form == 1:
        base = 2_000_000 + 1000 * k
        text = f"SELECT sum(cost) + {base} AS n FROM visits WHERE k = {k}"
        return text, [(base + rows * (1 + k % 3),)]
    if form == 2:
        text = f"SELECT count(*) + 1000000 AS n FROM visits AS v JOIN places AS p ON v.k = p.k WHERE p.k = {k}"
        return text, [(1_000_000 + rows,)]
    return f"SELECT name FROM places WHERE k = {k}", [(f"place{k}",)]


def wrong_answers(db: Connection, start: int, count: int) -> list[str]:
    """Ask some questions, and give those that were answered by anything but their own answer."""
    wrong = []
    for number in range(start, start + count):
        text, expected = question(number)
        try:
            found = db.sql(text, epsilon=EPSILON).rows
        except SecantError as error:
            wrong.append(f"{text}: {error.code} {error.message}")
            continue
        if [tuple(int(v) if isinstance(v, float) else v for v in row) for row in found] != expected:
            wrong.append(f"{text}: {found}")
    return wrong


def wrong_in_threads(db: Connection, threads: int, count: int) -> list[str]:
    """Ask from several threads at once."""
    found: list[str] = []
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-4)
    try:
        running = [
            threading.Thread(target=lambda s=s: found.extend(wrong_answers(db, s, count)))
            for s in range(0, 7 * threads, 7)
        ]
        for thread in running:
            thread.start()
        for thread in running:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    return found


@contextmanager
def in_child(work: Callable[[], object], seconds: int = PATIENCE) -> Iterator[Callable[[], object]]:
    """Do some work in a forked child; give a function that waits for its result."""
    here, there = multiprocessing.Pipe(duplex=False)
    child = os.fork()
    if not child:
        signal.alarm(seconds)  # a child that hangs must not keep the tests
        try:
            there.send(work())
        finally:
            os._exit(0)
    there.close()

    def result() -> object:
        try:
            return here.recv()
        except EOFError:
            return "the child has died"

    try:
        yield result
    finally:
        os.waitpid(child, 0)
        here.close()


def wrong_in_children(db: Connection, children: int, count: int) -> list[str]:
    """Ask from several forked children, and from here, at once."""
    if not children:
        return wrong_answers(db, 0, count)
    with in_child(lambda: wrong_answers(db, 11 * children, count)) as result:
        found = wrong_in_children(db, children - 1, count)
        answered = result()
    return found + (answered if isinstance(answered, list) else [str(answered)])


def open_files(directory: Path, kind: str) -> Connection:
    """Open the tables as a DuckDB file or as a directory of Parquet or CSV files."""
    place = directory / "visits.duckdb"
    if not place.exists():
        with duckdb.connect(str(place)) as connection:
            connection.execute(TABLES)
            for form in ("parquet", "csv"):
                (directory / form).mkdir()
                for table in ("visits", "places"):
                    connection.execute(f"COPY {table} TO '{directory / form / table}.{form}'")
    source = f"duckdb:{place}" if kind == "duckdb" else f"{kind}:{directory / kind}"
    return open_at(directory, source)


def open_at(directory: Path, source: str) -> Connection:
    """Open a source under the policy."""
    policy = directory / "policy.toml"
    policy.write_text(POLICY)
    return secant.connect(source, policy=policy)
