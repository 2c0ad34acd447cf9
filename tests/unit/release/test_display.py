"""Numbers are shown where the truth can lie, with ends that still hold it, and raw beside."""

from __future__ import annotations

from decimal import Decimal

import duckdb
import pytest
from scipy.stats import binom

import secant
from private_shop import answers as many_answers
from secant.accuracy import display
from secant.accuracy.display import unlimited_value

POLICY = """
[database]
source = "duckdb:few.duckdb"
[tables.few.columns]
x = { range = [10, 20] }
y = { range = [-5, 5] }
kind = { values = ["a", "b", "c"], null = false }
[protections.rows]
kind = "rows"
epsilon = 1000000
"""
DRAWS = 90
"""A count of 3 is drawn below zero with a chance of 0.247: in none of so many with one of 1e-11."""


@pytest.fixture(scope="module")
def few(tmp_path_factory):
    folder = tmp_path_factory.mktemp("few")
    with duckdb.connect(str(folder / "few.duckdb")) as db:
        db.execute("CREATE TABLE few AS SELECT 12 AS x, -4 AS y, 'a' AS kind FROM range(3)")
    (folder / "policy.toml").write_text(POLICY)
    with secant.connect(policy=folder / "policy.toml") as db:
        yield db


def draws(db, text, epsilon="0.2"):
    return list(many_answers(db, text, DRAWS, epsilon=epsilon))


def holds(answers, place, truth):
    """Whether ends hold the truth often enough; false alarm: 1e-9."""
    found = 0
    for a in answers:
        low, high = a.error["low"][0][place], a.error["high"][0][place]
        found += (low is None or low <= truth) and (high is None or truth <= high)
    return found >= binom.ppf(1e-9, len(answers), 0.95)


GROUPS = "(SELECT kind, count(*) AS n FROM few GROUP BY kind) AS g"


@pytest.mark.parametrize(
    ("text", "truth"),
    [
        ("SELECT count(*) FROM few", 3),
        ("SELECT sum(x) FROM few", 36),
        (f"SELECT sum(n) FROM {GROUPS}", 3),
        ("SELECT count(*) * 2.0 / 3 FROM few", 2),
    ],
)
def test_shown_counts_are_not_below_zero_and_ends_hold(few, text, truth):
    answers = draws(few, text)
    shown = [a.rows[0][0] for a in answers]
    raw = [a.raw[0][0] for a in answers]
    assert min(shown) >= 0
    assert min(raw) < 0
    assert all(float(s) == pytest.approx(max(0, float(r))) for s, r in zip(shown, raw, strict=True))
    assert all(a.error["low"][0][0] >= 0 for a in answers)
    assert all(a.error["low"][0][0] < a.error["high"][0][0] for a in answers)
    assert holds(answers, 0, truth)


def test_averages_stay_inside_their_range(few):
    answers = draws(few, "SELECT avg(x) FROM few")
    assert all(10 <= a.rows[0][0] <= 20 for a in answers)
    assert not all(10 <= a.raw[0][0] <= 20 for a in answers)
    assert all(10 <= a.error["low"][0][0] <= a.error["high"][0][0] <= 20 for a in answers)


def test_what_may_be_negative_is_left_alone(few):
    answers = draws(few, "SELECT sum(y), count(*) - 5 FROM few")
    assert min(a.rows[0][0] for a in answers) < 0
    assert holds(answers, 0, -12)
    assert holds(answers, 1, -2)


def test_a_floor_under_what_may_be_negative_would_be_noticed(few, monkeypatch):
    monkeypatch.setattr(display, "never_negative", lambda scalar, traced: True)
    assert not holds(draws(few, "SELECT sum(y) FROM few", epsilon=20), 0, -12)


def test_both_are_told_to_programs(few):
    answer = few.sql("SELECT kind, count(*) FROM few GROUP BY kind", epsilon=1)
    told = answer.to_dict()
    assert len(told["raw"]) == len(told["rows"]) == 3
    assert [r[0] for r in told["raw"]] == [r[0] for r in told["rows"]]


def test_a_floor_keeps_the_type_of_a_number():
    assert display._floored(Decimal("-1.50")) == 0
    assert isinstance(display._floored(Decimal("-1.50")), Decimal)
    assert display._floored("-1") == "-1"
    assert display._floored(True) is True


def test_what_is_not_arithmetic_has_no_raw_value():
    from secant.plan import nodes as n
    from secant.schema import types as t

    column = n.Column("a", t.INTEGER)
    assert unlimited_value(n.Call("greatest", (column, n.Literal(0, t.INTEGER))), {"a": -3}) == -3
    assert unlimited_value(n.Call("sqrt", (column,)), {"a": 4}) is None
    assert unlimited_value(column, {"a": None}) is None
