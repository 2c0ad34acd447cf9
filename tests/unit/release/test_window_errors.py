"""Windows over released numbers are free, and say how far off they are where they add up."""

from __future__ import annotations

import math

import duckdb
import pytest
from scipy.stats import binom

import secant
from private_shop import answers
from secant.accuracy import resolve as resolved
from secant.errors import Refused

POLICY = """
[database]
source = "duckdb:ward.duckdb"
[tables.people]
key = "id"
[tables.visits]
references = { pid = "people.id" }
[tables.visits.columns]
month = { values = [1, 2, 3, 4, 5, 6], null = false }
cost = { range = [0, 10] }
ward = { values = ["A", "B"], null = false }
[protections.people]
kind = "unit"
unit = "people.id"
epsilon = 1000000
delta = 1e-6
limits = { visits = 5 }
"""
DRAWS = 60
MONTHS = {1: 200, 2: 180, 3: 150, 4: 120, 5: 90}


@pytest.fixture(scope="module")
def ward(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ward")
    with duckdb.connect(str(folder / "ward.duckdb")) as db:
        db.execute("CREATE TABLE people AS SELECT i AS id FROM range(200) r(i)")
        db.execute("CREATE TABLE visits (pid INTEGER, month INTEGER, cost INTEGER, ward VARCHAR)")
        for month, count in MONTHS.items():
            db.execute(
                f"INSERT INTO visits SELECT i, {month}, (i + {month}) % 10, CASE WHEN i % 2 = 0 THEN 'A' ELSE 'B' END "
                f"FROM range({count}) r(i)"
            )
    (folder / "policy.toml").write_text(POLICY)
    with secant.connect(policy=folder / "policy.toml") as db:
        yield db


COUNTS = "SELECT month, count(*) AS n FROM visits GROUP BY month"
RUNNING = (
    f"SELECT month, sum(n) OVER (ORDER BY month) AS running, 100.0 * n / sum(n) OVER () AS part FROM ({COUNTS}) q "
    "WHERE month < 6 ORDER BY month"
)
MOVING = (
    "SELECT month, avg(n) OVER (ORDER BY month ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS moving, "
    f"n - lag(n) OVER (ORDER BY month) AS change FROM ({COUNTS}) q WHERE month < 6 ORDER BY month"
)


def held(db, text, truth):
    found = 0
    for answer in answers(db, text, DRAWS, epsilon=5):
        error = answer.error
        good = True
        for low, high, true in zip(error["low"], error["high"], truth, strict=True):
            for a, b, x in zip(low[1:], high[1:], true, strict=True):
                if x is not None:
                    assert a is not None or b is not None
                    good &= (-math.inf if a is None else a) - 1e-9 <= x
                    good &= x <= (math.inf if b is None else b) + 1e-9
        found += good
    return found


def truths():
    counts = list(MONTHS.values())
    sums = [sum(counts[: i + 1]) for i in range(5)]
    running = [(sums[i], 100 * counts[i] / sums[-1]) for i in range(5)]
    moving = [
        (
            sum(counts[max(0, i - 1) : i + 1]) / len(counts[max(0, i - 1) : i + 1]),
            counts[i] - counts[i - 1] if i else None,
        )
        for i in range(5)
    ]
    return running, moving


def enough(found):
    """All ten cells of a draw hold with at least half a chance: below this, 95 % each is not believable."""
    return found >= binom.ppf(1e-9, DRAWS, 0.5)


def test_ends_of_windows_hold(ward):
    running, moving = truths()
    assert enough(held(ward, RUNNING, running))
    assert enough(held(ward, MOVING, moving))


def test_a_frame_that_is_taken_for_the_whole_would_be_noticed(ward, monkeypatch):
    monkeypatch.setattr(
        resolved.Resolver, "_near", lambda self, made, near, members, place: members
    )
    running, _ = truths()
    assert not enough(held(ward, RUNNING, running))


def test_rows_that_may_be_missing_shift_no_frame(ward):
    """Nobody came in month 6: the true answer lacks the row, and a frame of rows would reach farther."""
    text = f"SELECT n - lag(n) OVER (ORDER BY month) FROM ({COUNTS}) q"
    errors = [ward.sql(text, epsilon=5).error for _ in range(5)]
    # Once in 200 draws noise says that month 6 is there, and ends stand: in all five with a chance of 3e-12.
    assert any(
        [low[0] for low in error["low"]] == [high[0] for high in error["high"]] == [None] * 6
        for error in errors
    )
    running = ward.sql(f"SELECT sum(n) OVER (ORDER BY month) FROM ({COUNTS}) q", epsilon=5)
    assert all(low[0] is not None for low in running.error["low"])


def test_windows_over_groups_cost_nothing(ward):
    plain = ward.explain(COUNTS, epsilon=1).record["guarantee"]
    more = (
        "SELECT month, rank() OVER (ORDER BY count(*) DESC), sum(count(*)) OVER (), "
        "lag(count(*)) OVER (ORDER BY month) FROM visits GROUP BY month"
    )
    assert ward.explain(more, epsilon=1).record["guarantee"] == plain
    assert len(ward.sql(more, epsilon=1).rows) == 6


def test_windows_of_one_person_are_answered(ward):
    first = (
        "SELECT ward, count(*) FROM (SELECT ward, row_number() OVER (PARTITION BY pid ORDER BY month) AS visit "
        "FROM visits) q WHERE visit = 1 GROUP BY ward"
    )
    found = dict(ward.sql(first, epsilon=20).rows)
    assert abs(found["A"] - 100) < 10
    distinct_on = (
        "SELECT ward, count(*) FROM (SELECT DISTINCT ON (pid) pid, ward FROM visits ORDER BY pid, month) q "
        "GROUP BY ward"
    )
    assert abs(dict(ward.sql(distinct_on, epsilon=20).rows)["B"] - 100) < 10
    waits = (
        "SELECT avg(month - before) FROM (SELECT month, lag(month) OVER (PARTITION BY pid ORDER BY month) AS before "
        "FROM visits) q WHERE before IS NOT NULL"
    )
    assert abs(ward.sql(waits, epsilon=20).rows[0][0] - 1) < 0.5


def test_a_first_row_moves_by_one(ward):
    text = (
        "SELECT count(*) FROM (SELECT row_number() OVER (PARTITION BY pid ORDER BY month) AS visit FROM visits) q "
        "WHERE visit = 1"
    )
    assert ward.sql(text, epsilon=1).error["values"][0][0] <= 4


def test_a_window_of_several_people_says_what_is_possible(ward):
    text = "SELECT count(*) FROM (SELECT row_number() OVER (ORDER BY month) AS r FROM visits) q WHERE r < 9"
    with pytest.raises(Refused) as caught:
        ward.sql(text, epsilon=1)
    assert "PARTITION BY" in caught.value.hint
    loose = (
        "SELECT sum(x) FROM (SELECT sum(cost * 0.5e0) OVER (PARTITION BY pid) AS x FROM visits) q"
    )
    with pytest.raises(Refused, match="cannot be made private"):
        ward.sql(loose, epsilon=1)


def test_totals_of_rollup_are_answered(ward):
    rows = ward.sql(
        "SELECT ward, month, count(*), GROUPING(ward, month) AS level FROM visits GROUP BY ROLLUP (ward, month)",
        epsilon=50,
    ).rows
    assert len(rows) == 2 * 6 + 2 + 1
    (total,) = [row for row in rows if row[3] == 3]
    assert total[:2] == (None, None)
    assert abs(total[2] - sum(MONTHS.values())) < 20
