"""Audits of SQL releases without a range, and of people with an epsilon of their own: each against what they gave.

With a 256th of the noise the audit must see too much. False alarms: 1e-9 an audit.
"""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import duckdb
import pytest
from judging import ALARM, draws, violation

import secant
from chance import LONG
from private_shop import Compiled, compile_release

LEFT = Fraction(1, 256)
COUNT = 150
MOVES = """
[database]
source = "duckdb:{place}"
[tables.people.columns]
height = {{ moves = 1, center = 0 }}
[protections.people]
kind = "rows"
tables = ["people"]
epsilon = 10
"""
PERSONAL = """
[database]
source = "duckdb:{place}"
[tables.people]
key = ["id"]
[tables.people.columns]
height = {{ range = [0, 1] }}
[protections.people]
kind = "unit"
unit = "people.id"
epsilon = 1
personal = {{ column = "people.gives", offers = [0.25, 1] }}
"""


@contextmanager
def sides(folder: Path, policy: str, text: str, one: list, two: list):
    """Compile a question on two neighbors, which stay open."""
    with ExitStack() as stack:
        yield tuple(_compiled(stack, folder, policy, text, {"one": one, "two": two}))


def _compiled(stack, folder: Path, policy: str, text: str, data: dict[str, list]):
    for name, rows in data.items():
        place = folder / f"{name}.duckdb"
        with duckdb.connect(str(place)) as made:
            made.execute(
                "CREATE TABLE people (id INTEGER PRIMARY KEY, gives DOUBLE, height DOUBLE)"
            )
            if rows:
                made.executemany("INSERT INTO people VALUES (?, ?, ?)", rows)
        (folder / f"{name}.toml").write_text(policy.format(place=place))
        db = stack.enter_context(secant.connect(policy=str(folder / f"{name}.toml")))
        yield compile_release(db, text, epsilon=1)


def quieter(compiled: Compiled) -> Compiled:
    """Plant a fault: a small part of the noise, and choices that are as much sharper."""
    less = compiled.with_noise_times(LEFT)
    ranks = {
        column: replace(r, choice=replace(r.choice, sharpness=r.choice.sharpness / LEFT))
        for column, r in less.job.noise.ranks.items()
        if r.choice is not None
    }
    return Compiled(
        replace(less.job, noise=replace(less.job.noise, ranks=ranks)), less.keys, less.backend
    )


def worst(both: tuple[Compiled, ...], epsilon: float, count: int) -> float:
    """Give by how much some event is certainly too likely on one side."""
    drawn = [[float(str(side.draw_rows()[0][0] or 0)) for _ in range(count)] for side in both]
    pairs = (drawn, drawn[::-1])
    return max(violation(a, b, epsilon, alarm=ALARM / 2) for a, b in pairs)


@pytest.mark.parametrize("measure", ["avg", *(["median", "max"] if LONG else [])])
def test_one_row_moves_a_statistic_without_a_range_by_no_more_than_declared(tmp_path, measure):
    text = f"SELECT {measure}(height) FROM people"
    with sides(tmp_path, MOVES, text, [], [(1, 1.0, 1e9)]) as both:
        assert worst(both, 1.0, draws(COUNT, 50 * COUNT)) <= 0
        assert worst(tuple(map(quieter, both)), 1.0, COUNT) > 0


@pytest.mark.parametrize(
    "measure", ["avg(height)", "median(height)", *(["count(*)", "sum(height)"] if LONG else [])]
)
def test_somebody_careful_is_hidden_by_what_they_gave(tmp_path, measure):
    text, more = f"SELECT {measure} FROM people", [(77, 0.25, 1.0)]
    with sides(tmp_path, PERSONAL, text, [], more) as both:
        assert worst(both, 0.25, draws(COUNT, 50 * COUNT)) <= 0
        assert worst(tuple(map(quieter, both)), 0.25, COUNT) > 0
