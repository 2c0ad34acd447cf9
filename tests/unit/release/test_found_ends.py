"""Ends beside numbers that rest on ranges and limits which nobody declared: what those cut may lie anywhere."""

from fractions import Fraction

import pandas
import pytest
from bench.suites.honesty import measure, sets

import secant
from secant.plan.facts.undeclared import Undeclared
from secant.plan.rewrites import enforce
from secant.release.inferred_facts import Found, Lacking

COSTS = [float(i % 90) for i in range(2000)]
COSTS[7] = 1e9
"""One person in a thousand is far outside of whatever range is found."""


@pytest.fixture
def db():
    frame = pandas.DataFrame({"person": [i // 2 for i in range(2000)], "cost": COSTS})
    given = {
        "protections": {"p": {"kind": "unit", "unit": "visits.person", "epsilon": 1000}},
        "tables": {"visits": {"columns": {"person": {"range": [0, 1000]}}}},
    }
    with secant.connect({"visits": frame}, policy=given, ledger=":memory:") as opened:
        found = Found(Lacking("visits", "cost", "p"), Fraction(0), Fraction(100), Fraction(1), 9)
        limit = Found(Lacking("visits", None, "p"), None, Fraction(2), Fraction(1), 9)
        opened._found = (found, limit)
        yield opened._having((found, limit))


def ends(db, text):
    error = db.sql(text, epsilon=5).error
    return [
        (low is not None, high is not None)
        for low, high in zip(error["low"][0], error["high"][0], strict=True)
    ]


@pytest.mark.parametrize(
    ("text", "known"),
    [
        # a sum needs no range, nor any limit of rows: a tally of units says what it leaves out
        ("SELECT sum(cost) AS x FROM visits", (True, True)),
        ("SELECT stddev(cost) AS x FROM visits", (False, False)),
        # values that were moved to the ends of a range move no quantile that lies inside of it
        ("SELECT median(cost) AS x FROM visits", (True, True)),
        ("SELECT max(c) AS x FROM (SELECT cost + 1 AS c FROM visits)", (False, False)),
        # how many sums are large, where inner sums are moved into the range
        ("SELECT count(*) AS x FROM (SELECT person, sum(cost) AS s FROM visits GROUP BY person HAVING sum(cost) > 99)",
         (False, False)),
        ("SELECT sum(n) AS x FROM (SELECT max(cost) AS n FROM visits GROUP BY person)", (False, False)),
        ("SELECT count(*) AS x FROM visits", (True, True)),
        # too few units to be seen: certain ends, which are open above
        ("SELECT count(cost) AS x FROM visits WHERE cost > 1000", (True, False)),
        # neither the range nor the limit cuts these
        ("SELECT count(DISTINCT person) AS x FROM visits", (True, True)),
    ],
)  # fmt: skip
def test_an_end_stands_only_where_it_holds(db, text, known):
    assert ends(db, text) == [known]


def test_noise_and_what_was_found_are_told_all_the_same(db):
    answer = db.sql("SELECT stddev(cost) AS x FROM visits", epsilon=5)
    assert answer.error["noise"][0][0] > 0
    assert answer.error["leaves_out"]["undeclared"] == ["visits.cost"]
    assert [f["column"] for f in answer.error["leaves_out"]["found"]] == ["cost"]
    text = str(answer)
    assert "how far outside is unknown" in text
    assert "Declared" not in text


def test_declared_ranges_have_ends():
    frame = pandas.DataFrame({"person": range(500), "cost": COSTS[100:600]})
    with secant.protect(frame, unit="person", epsilon=9, ranges={"cost": (0, 100)}) as db:
        assert ends(db, "SELECT avg(cost) AS x FROM data") == [(True, True)]


FEW = 0.7
"""Of 24 releases at 95 % fewer than this are held once in a million times."""


def honesty_of(text, monkeypatch):
    monkeypatch.setattr(measure, "CLEAR", 0.0)
    monkeypatch.setattr(measure, "REQUIRED", FEW)
    frame = pandas.DataFrame({"person": range(2000), "cost": COSTS})
    given = {"protections": {"p": {"kind": "unit", "unit": "visits.person", "epsilon": 100}}}
    with secant.connect({"visits": frame}, policy=given, ledger=":memory:") as db:
        return measure.ask(db, sets.Question("found", text), 24)


def test_the_benchmark_finds_facts_anew_and_no_broken_end(monkeypatch):
    row = honesty_of("SELECT stddev(cost), count(*) FROM visits", monkeypatch)
    assert row["status"] == "held"
    assert row["stated"] == 0.5


def test_ends_that_believe_what_was_found_are_caught(monkeypatch):
    """A planted fault: a range that was found counts as if it had been declared."""
    monkeypatch.setattr(enforce, "undeclared_of", lambda *_: Undeclared())
    text = "SELECT avg(cost), stddev(cost) FROM visits"
    assert honesty_of(text, monkeypatch)["status"] == "broken"
