"""Moments in time move by days and parts of days: no pair of small databases refutes a bound over them."""

import datetime
import random
from fractions import Fraction

import duckdb
import psycopg
import pytest
from derivative_check import ask, told, world

import secant
from secant.schema import types as t
from secant.schema.catalog import Table, catalog

START = datetime.datetime(2025, 1, 1)  # noqa: DTZ001 - as databases store them
POLICY = """
[database]
source = "duckdb:none"
[tables.trips]
key = ["id"]
[tables.trips.columns]
at = {{ range = ["2025-01-01", "2025-01-09"] }}
back = {{ range = ["2025-01-01", "2025-01-09"] }}
fare = {{ range = [0, 50] }}
[protections.cells]
kind = "cells"
epsilon = 1000.0
{settings}
distance = {{ trips = "{norm}" }}
"""
WORLDS = {
    "hours": ("l1(24*at, 24*back, fare)", ""),
    "together": ("l1(linf(2*at, back), 0.1*fare)", 'softening = { kind = "ramp", width = 0.5 }'),
    "sigmoid": ("l2(at, back, fare)", 'softening = { kind = "sigmoid", slope = 1.5 }'),
}
QUERIES = (
    "SELECT count(*) FROM trips WHERE at >= TIMESTAMP '2025-01-03 12:00:00'",
    "SELECT sum(fare) FROM trips WHERE at BETWEEN TIMESTAMP '2025-01-02' AND TIMESTAMP '2025-01-04 06:30:00'",
    "SELECT count(*) FROM trips WHERE at < back", "SELECT sum(fare) FROM trips WHERE at > DATE '2025-01-03'",
    "SELECT count(*) FROM trips WHERE back > at + INTERVAL '36' HOUR AND fare < 20",
)  # fmt: skip


def here(name):
    norm, settings = WORLDS[name]
    columns = (("id", t.INTEGER), ("at", t.TIMESTAMP), ("back", t.TIMESTAMP), ("fare", t.DOUBLE))
    return world(catalog(Table("trips", columns)), POLICY.format(norm=norm, settings=settings))


def moment(draw):
    """Draw a moment, mostly near those that the queries name; sometimes outside of the range."""
    day = draw.choice((1, 2, 2.5, 3, 3.27, draw.uniform(-1, 9)))
    return START + datetime.timedelta(days=day, microseconds=draw.randint(-(10**9), 10**9))


def moved(draw, row):
    size = draw.choice((1, 10**6, 3600 * 10**6, 86_400 * 10**6))
    found = dict(row)
    for column in draw.sample(["at", "back"], draw.randint(1, 2)):
        found[column] += datetime.timedelta(microseconds=draw.randint(-size, size))
    if draw.random() < 0.5:
        found["fare"] = min(60.0, max(-5.0, found["fare"] + draw.uniform(-2, 2)))
    return found


@pytest.mark.parametrize("name", WORLDS)
@pytest.mark.parametrize("text", QUERIES)
def test_no_pair_refutes_the_bound(text, name):
    draw, moving, nearest = random.Random(f"{text} {name}"), 0, 0.0
    for beta in (Fraction(1, 5), Fraction(20)):
        questions = ask(text, here(name), beta=beta)
        assert not isinstance(questions, str), questions
        for _ in range(40):
            rows = [
                {"id": i, "at": moment(draw), "back": moment(draw), "fare": draw.uniform(0, 50)}
                for i in range(draw.randint(1, 3))
            ]
            after = [moved(draw, row) for row in rows]
            for question in questions:
                worst = question.pair({"trips": rows}, {"trips": after})
                assert worst.ratio <= 1 + 1e-5, told(worst, question)
                moving += worst.ratio > 0
                nearest = max(nearest, worst.ratio)
    assert moving > 10
    assert nearest > 0.05


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("SELECT min(at) FROM trips", "derivative.value"),
        ("SELECT count(*) FROM trips WHERE extract(hour FROM at) > 3", "derivative.value"),
        (
            "SELECT count(*) FROM trips WHERE date_trunc('day', at) > DATE '2025-01-02'",
            "derivative.value",
        ),
    ],
)
def test_parts_of_moments_jump(text, rule):
    assert rule in ask(text, here("hours"))


def test_a_moment_needs_a_range():
    columns = (("id", t.INTEGER), ("at", t.TIMESTAMP), ("back", t.TIMESTAMP), ("fare", t.DOUBLE))
    policy = POLICY.format(norm="at", settings="").replace(
        'at = { range = ["2025-01-01", "2025-01-09"] }', "", 1
    )
    found = ask(QUERIES[0], world(catalog(Table("trips", columns)), policy))
    assert "derivative.range" in found


def test_postgresql_computes_what_duckdb_does(postgres_database, tmp_path):
    """The same trips in both engines: the softened answer and its bound agree."""
    rows = "SELECT i AS id, TIMESTAMP '2025-01-01' + i * INTERVAL '100' MINUTE AS at, i % 50 AS fare FROM"
    with psycopg.connect(postgres_database, autocommit=True) as data:
        data.execute(f"CREATE TABLE trips AS {rows} generate_series(0, 99) AS t(i)")
        data.execute("UPDATE trips SET \"at\" = 'infinity' WHERE id = 7")
    place = tmp_path / "trips.duckdb"
    with duckdb.connect(str(place)) as data:
        data.execute(f"CREATE TABLE trips AS {rows} range(100) AS t(i)")
        data.execute("UPDATE trips SET \"at\" = 'infinity' WHERE id = 7")
    facts = {"at": {"range": ["2025-01-01", "2025-01-07"]}, "fare": {"range": [0, 50]}}
    policy = {
        "tables": {"trips": {"columns": facts}},
        "protections": {
            "v": {"kind": "cells", "epsilon": 9, "distance": {"trips": "l1(24*at, fare)"}}
        },
    }
    text = "SELECT sum(fare) AS f FROM trips WHERE at >= TIMESTAMP '2025-01-03 12:07:00'"
    found = []
    for source in (f"duckdb:{place}", postgres_database):
        with secant.connect(source, policy=policy, ledger=":memory:") as db:
            found.append(db.inspect(text, epsilon=1)[0])
    for told_ in ("softened", "sensitivity"):
        assert found[0][told_] == pytest.approx(found[1][told_], rel=1e-9)
    assert found[0]["softened"] == pytest.approx(found[0]["exact"], rel=0.2)
