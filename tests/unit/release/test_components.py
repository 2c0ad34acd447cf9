"""What each table and each column by itself does to an answer, against moves of that part alone."""

import random

import duckdb
import pytest

import secant

POLICY = """
[database]
source = "duckdb:{path}"
[tables.ships.columns]
x = {{ range = [0, 10] }}
y = {{ range = [0, 10] }}
speed = {{ range = [1, 50] }}
[protections.cells]
kind = "cells"
epsilon = 10
distance = {{ ships = "l1(l2(0.5*x, y), 10*ln(speed))" }}
"""
QUESTIONS = (
    "SELECT sum(2*x + y) FROM ships",
    "SELECT sum(x / speed) FROM ships",
    "SELECT sum(y*y) FROM ships",
)


@pytest.fixture
def harbor(tmp_path):
    path = tmp_path / "s.duckdb"
    with duckdb.connect(str(path)) as made:
        made.execute("CREATE TABLE ships (id INTEGER, x DOUBLE, y DOUBLE, speed DOUBLE)")
        made.execute("INSERT INTO ships VALUES (1, 3, 4, 10), (2, 1, 9, 2)")
    file = tmp_path / "policy.toml"
    file.write_text(POLICY.format(path=path))
    with secant.connect(policy=file) as database:
        yield database


def told(database, text):
    return {c.part: c.bound for c in database.explain(text).components()}


def test_each_part_by_itself(harbor):
    assert told(harbor, QUESTIONS[0]) == pytest.approx(
        {"ships.x": 4, "ships.y": 1, "ships.speed": 0}, rel=1e-3
    )
    assert told(harbor, QUESTIONS[1]) == pytest.approx(
        {"ships.x": 2, "ships.y": 0, "ships.speed": 1}, rel=1e-3
    )


@pytest.mark.parametrize("text", QUESTIONS)
def test_no_part_is_told_smaller_than_what_happens(harbor, text):
    bounds = told(harbor, text)
    value = {
        QUESTIONS[0]: lambda r: 2 * r["x"] + r["y"],
        QUESTIONS[1]: lambda r: r["x"] / r["speed"],
        QUESTIONS[2]: lambda r: r["y"] ** 2,
    }[text]
    draw = random.Random(text)
    lengths = {"x": lambda a, b: abs(a - b) / 2, "y": lambda a, b: abs(a - b)}
    for _ in range(300):
        row = {"x": draw.uniform(0, 10), "y": draw.uniform(0, 10), "speed": draw.uniform(1, 50)}
        for column, length in lengths.items():
            other = {**row, column: draw.uniform(0, 10)}
            moved = abs(value(row) - value(other))
            assert moved <= bounds[f"ships.{column}"] * length(row[column], other[column]) + 1e-9


def test_rows_have_parts_by_table(tmp_path):
    path = tmp_path / "r.duckdb"
    with duckdb.connect(str(path)) as made:
        made.execute("CREATE TABLE a AS SELECT i AS v FROM range(9) t(i)")
        made.execute("CREATE TABLE b AS SELECT i AS v FROM range(9) t(i)")
    policy = {
        "database": {"source": f"duckdb:{path}"},
        "protections": {"rows": {"kind": "rows", "epsilon": 5}},
    }
    text = "SELECT count(*) FROM (SELECT v FROM a UNION ALL SELECT v FROM b UNION ALL SELECT v FROM b) AS t"
    with secant.connect(policy=policy, ledger=":memory:") as database:
        assert told(database, text) == {"a row of a": 1, "a row of b": 2}
