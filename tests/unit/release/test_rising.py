"""Running totals that do not fall, on request: free, no farther from the truth, with ends that still hold."""

from __future__ import annotations

import json
from itertools import pairwise

import duckdb
import pytest

import secant
from secant.cli import program
from secant.errors import UsageError

POLICY = """
[database]
source = "duckdb:days.duckdb"
[tables.hits.columns]
day = { range = [1, 40], step = 1, null = false }
kind = { values = ["a", "b"], null = false }
cost = { range = [0, 10] }
change = { range = [-10, 10] }
[protections.rows]
kind = "rows"
epsilon = 100000
"""
RUNNING = "SELECT day, sum(count(*)) OVER (ORDER BY day) AS n FROM hits GROUP BY day ORDER BY day"
EACH = (
    "SELECT kind, day, sum(sum(cost)) OVER (PARTITION BY kind ORDER BY day DESC) AS s FROM hits GROUP BY kind, day "
    "ORDER BY day"
)


@pytest.fixture(scope="module")
def policy(tmp_path_factory):
    place = tmp_path_factory.mktemp("days")
    with duckdb.connect(str(place / "days.duckdb")) as db:
        db.execute(
            "CREATE TABLE hits AS SELECT 1 + i % 40 AS day, ['a', 'b'][1 + i % 2] AS kind, "
            "CAST(i % 7 AS DECIMAL(8,2)) AS cost, i % 5 - 2 AS change, DATE '2024-01-01' AS day_of FROM range(200) r(i)"
        )
    (place / "policy.toml").write_text(POLICY)
    return place / "policy.toml"


@pytest.fixture
def db(policy):
    with secant.connect(policy=policy, ledger=":memory:") as opened:
        yield opened


def falls(values):
    return any(a > b for a, b in pairwise(values))


def test_totals_do_not_fall_and_are_no_farther_from_the_truth(db):
    truth = [5 * (i + 1) for i in range(40)]
    fell = 0
    for _ in range(4):
        answer = db.sql(RUNNING, epsilon="0.2")
        better = answer.afterwards(isotonic=True)
        before, after = ([row[1] for row in a.rows] for a in (answer, better))
        fell += falls(before)
        assert not falls(after)
        far = [
            sum((x - t) ** 2 for x, t in zip(found, truth, strict=True))
            for found in (before, after)
        ]
        assert far[1] ** 0.5 <= far[0] ** 0.5 + 0.5 * 40**0.5  # rounded to whole numbers
        assert better.raw == answer.raw
        assert better.budget == answer.budget
        for row, ends, wider in zip(
            better.rows, answer.error["low"], better.error["low"], strict=True
        ):
            assert wider[1] <= min(ends[1], row[1])
        highs = zip(answer.error["high"], better.error["high"], strict=True)
        assert all(wide[1] >= old[1] for old, wide in highs)
    assert fell  # noise of about 10 on steps of 5: without it they fall


def test_partitions_and_orders_are_followed(db):
    answer = db.sql(EACH, epsilon="0.3").afterwards(isotonic=True)
    for kind in "ab":
        series = [row[2] for row in answer.rows if row[0] == kind]
        assert len(series) == 40
        assert not falls(series[::-1])


@pytest.mark.parametrize(
    "text",
    [
        "SELECT day, count(*) AS n FROM hits GROUP BY day",
        "SELECT day, sum(sum(change)) OVER (ORDER BY day) AS n FROM hits GROUP BY day",
        "SELECT day, sum(count(*)) OVER (ORDER BY day ROWS 2 PRECEDING) AS n FROM hits GROUP BY day",
        "SELECT day, avg(count(*)) OVER (ORDER BY day) AS n FROM hits GROUP BY day",
    ],
)
def test_what_may_fall_is_not_made_to_rise(db, text):
    answer = db.sql(text, epsilon=1)
    assert answer.afterwards() is answer
    with pytest.raises(UsageError, match="never below zero"):
        answer.afterwards(isotonic=True)


def test_the_command_has_it(policy, capsys):
    asked = ["query", RUNNING, "--epsilon", "0.2", "--policy", str(policy), "--isotonic", "--json"]
    assert program.main(asked) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert not falls([row[1] for row in rows])
    plain = "SELECT count(*) AS n FROM hits"
    assert (
        program.main(["query", plain, "--epsilon", "1", "--policy", str(policy), "--isotonic"]) == 0
    )
    told = capsys.readouterr()
    assert "never below zero" in told.err
    assert "Guarantee" in told.out
