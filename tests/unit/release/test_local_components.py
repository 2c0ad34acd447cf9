"""What parts do on the rows that are there, for the owner, against taking rows away and moving values."""

import random

import duckdb
import pytest

import secant
from secant.release import local_components as local

POLICY = """
[database]
source = "duckdb:{path}"
[tables.ships.columns]
port = {{ values = [0, 1, 2] }}
x = {{ range = [0, 100] }}
cargo = {{ range = [0, 60] }}
[protections.ships]
kind = "rows+cells"
epsilon = 20
distance = {{ ships = "l1(0.1*x, 0.2*cargo)" }}
add_remove = {{ ships = 5 }}
"""
QUESTIONS = {
    "SELECT sum(cargo * x) FROM ships WHERE port < 2": lambda r: r[1] * r[2] * (r[0] < 2),
    "SELECT sum(x) FROM ships": lambda r: r[1],
    "SELECT count(*) FROM ships WHERE port = 1": lambda r: 1.0 * (r[0] == 1),
}


@pytest.fixture
def ships():
    draw = random.Random(3)
    return [(i % 3, draw.uniform(0, 100), draw.uniform(0, 40)) for i in range(30)]


@pytest.fixture
def harbor(tmp_path, ships):
    path = tmp_path / "s.duckdb"
    with duckdb.connect(str(path)) as made:
        made.execute("CREATE TABLE ships (port INTEGER, x DOUBLE, cargo DOUBLE)")
        made.executemany("INSERT INTO ships VALUES (?, ?, ?)", ships)
    file = tmp_path / "policy.toml"
    file.write_text(POLICY.format(path=path))
    with secant.connect(policy=file) as database:
        yield database


def told(database, text):
    (column,) = database.inspect(text, epsilon=2, components=True)
    return {c["part"]: (c["bound"], c.get("here")) for c in column["components"]}


def missing(found, ships, value):
    """Name the parts that are told smaller than what happens if a row goes, or a value moves a little."""
    wrong = set()
    for row in ships:
        for name in ("a row of ships", f"a row of ships, port = {row[0]}"):
            if abs(value(row)) > found[name][1] * (1 + 1e-9):
                wrong.add(name)
        for place, column, weight in ((1, "x", 0.1), (2, "cargo", 0.2)):
            moved = [x + 1e-6 * (i == place) for i, x in enumerate(row)]
            rate = abs(value(moved) - value(row)) / 1e-6 / weight
            for name in (f"ships.{column}", f"ships.{column}, port = {row[0]}"):
                if rate > found[name][1] * (1 + 1e-6) + 1e-6:
                    wrong.add(name)
    return wrong


@pytest.mark.parametrize("text", QUESTIONS)
def test_no_part_is_told_smaller_than_what_happens_here(harbor, ships, text):
    value = QUESTIONS[text]
    found = told(harbor, text)
    assert not missing(found, ships, value)
    assert all(here <= bound * (1 + 1e-9) for bound, here in found.values())
    largest = max(abs(value(row)) for row in ships)
    assert found["a row of ships"][1] == pytest.approx(largest, rel=1e-6)


def test_planted_the_smallest_row_is_noticed(harbor, ships, monkeypatch):
    right = local._sizes

    def smallest(release, measure, call, session):
        return {k: v / 2 for k, v in right(release, measure, call, session).items()}

    monkeypatch.setattr(local, "_sizes", smallest)
    text = "SELECT sum(x) FROM ships"
    assert "a row of ships" in missing(told(harbor, text), ships, QUESTIONS[text])


def test_rows_that_the_question_leaves_out_move_nothing(harbor):
    text = next(iter(QUESTIONS))
    public = {c.part: c.bound for c in harbor.explain(text).components()}
    assert public["a row of ships, port = 2"] == public["ships.x, port = 2"] == 0
    assert public["a row of ships, port = 1"] == public["a row of ships"] == 6000
    assert "a row of ships, port = 1" not in {
        c.part for c in harbor.explain("SELECT sum(x) FROM ships").components()
    }
