"""Ours: an inner sum of reals followed the order in which threads met rows, and filters saw its last digits.

Of 122,880 groups with the rows 0.1, 0.2 and 0.3, `WHERE s > 0.6e0` kept all or none, run by run, where 2 was certified.
A statement must be a function of the rows: here each runs on tables with the same rows in several orders.
"""

from __future__ import annotations

import random
import sys
from fractions import Fraction
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent.parent / "soundness"))

from engine_answers import Engine, releases_of
from neighbor_check import World

from secant.plan.evaluate.evaluate import evaluate
from secant.plan.rewrites import enforce, exact
from secant.plan.rewrites.rewrite import normalize
from secant.policy.policy import ColumnFacts, Policy, Protection, TableFacts
from secant.schema import types as t
from secant.schema.catalog import Table, catalog
from secant.sensitivity.split import prepare
from secant.sql.bind import from_sql

TABLES = {
    "o": (("id", t.INTEGER), ("g", t.INTEGER), ("x", t.DOUBLE), ("y", t.DOUBLE)),
    "p": (("id", t.INTEGER), ("g", t.INTEGER), ("w", t.DOUBLE)),
}
WORLD = World(
    catalog(*(Table(name, columns, ()) for name, columns in TABLES.items())),
    Policy(
        "",
        {
            "o": TableFacts(columns={"x": ColumnFacts(range=(-1, 1))}),
            "p": TableFacts(columns={"w": ColumnFacts(range=(0, 1))}),
        },
        (Protection("single", "rows", Fraction(1), tables=("o",)),),
        public=("p",),
    ),
)
GROUPS = 60
PARTS = (0.1, 0.2, 0.3)
QUESTIONS = {
    "filter": "SELECT count(*) FROM (SELECT g, sum(x) AS s FROM o GROUP BY g) AS d WHERE s > 0.6e0",
    "having": "SELECT count(*) FROM (SELECT g FROM o GROUP BY g HAVING sum(x) > 0.6e0) AS d",
    "mean": "SELECT count(*) FROM (SELECT g, avg(x) AS s FROM o GROUP BY g) AS d WHERE s * 3 > 0.6e0",
    "case": "SELECT sum(CASE WHEN s > 0.6e0 THEN 1 ELSE 0 END) FROM (SELECT sum(x) AS s FROM o GROUP BY g) AS d",
    "distinct": "SELECT count(DISTINCT s) FROM (SELECT sum(x) AS s FROM o GROUP BY g) AS d",
    "text": "SELECT count(*) FROM (SELECT sum(x) AS s FROM o GROUP BY g) AS d WHERE length(CAST(s AS VARCHAR)) > 8",
    "public subquery": "SELECT count(*) FROM o WHERE 36e0 < (SELECT sum(w) FROM p)",
    "public groups": "SELECT count(*) FROM o JOIN (SELECT g, sum(w) AS s FROM p GROUP BY g) AS d "
    "ON o.g = d.g AND d.s > 0.6e0",
}
LIMITED = {
    "ties": "SELECT count(*) FROM o JOIN (SELECT id FROM p ORDER BY w LIMIT 7) AS d ON o.g = d.id",
    "no order": "SELECT count(*) FROM o JOIN (SELECT g FROM p LIMIT 7) AS d ON o.g = d.g",
}
REFUSED = {
    "spread": ("SELECT count(*) FROM (SELECT stddev_pop(y) AS s FROM o GROUP BY g) AS d WHERE s > 0.1",
    "rewrite.exact"),
    "variance": ("SELECT count(*) FROM (SELECT var_samp(id) AS s FROM o GROUP BY g) AS d WHERE s > 0.1",
    "rewrite.exact"),
    "product": ("SELECT count(*) FROM (SELECT product(y) AS s FROM o GROUP BY g) AS d WHERE s > 0.1", "rewrite.exact"),
    "no range": ("SELECT count(*) FROM (SELECT sum(y) AS s FROM o GROUP BY g) AS d WHERE s > 0.1", "rewrite.range"),
    "subquery": ("SELECT count(*) FROM o WHERE x > (SELECT stddev(w) FROM p)", "rewrite.exact"),
}  # fmt: skip


def orders():
    """Give databases with the same rows in several orders."""
    draw = random.Random(5)
    o = [
        {"id": 3 * g + i, "g": g, "x": part, "y": part}
        for g in range(GROUPS)
        for i, part in enumerate(PARTS)
    ]
    p = [
        {"id": 3 * g + i, "g": g, "w": part} for g in range(GROUPS) for i, part in enumerate(PARTS)
    ]
    for _ in range(4):
        draw.shuffle(o)
        draw.shuffle(p)
        yield {"o": list(o), "p": list(p)}


@pytest.fixture(scope="module")
def engine():
    found = Engine(TABLES)
    yield found
    found.close()


def answers(text, engine):
    """Give what the engine says for each order, and what the plan means."""
    (bounded,) = releases_of(text, WORLD)
    run = engine.answers(bounded.release.exact)
    return [run(d) for d in orders()], [evaluate(bounded.release.exact, d) for d in orders()]


@pytest.mark.parametrize("name", [*QUESTIONS, *LIMITED])
def test_a_statement_is_a_function_of_the_rows(name, engine):
    ran, meant = answers((QUESTIONS | LIMITED)[name], engine)
    assert all(rows == ran[0] for rows in ran)
    assert ran == meant


def test_sums_as_they_come_would_be_noticed(engine, monkeypatch):
    monkeypatch.setattr(exact, "_summed", lambda node, ranges: node)
    moved = set()
    for name, text in QUESTIONS.items():
        ran, _ = answers(text, engine)
        if any(rows != ran[0] for rows in ran):
            moved.add(name)
    assert moved >= {"filter", "having", "case", "text", "public groups"}


def test_ties_as_they_come_would_be_noticed(engine, monkeypatch):
    monkeypatch.setattr(exact, "_ordered", lambda node, read: node)
    moved = {
        name
        for name, text in LIMITED.items()
        if len({repr(r) for r in answers(text, engine)[0]}) > 1
    }
    assert moved


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_made_exact_is_refused(name):
    text, rule = REFUSED[name]
    plan = normalize(from_sql(text, WORLD.catalog))
    outcome = prepare(plan, WORLD.policy, WORLD.policy.protections, WORLD.catalog)
    assert isinstance(outcome, tuple)
    assert rule in {refusal.rule for refusal in outcome}


def test_values_out_of_range_are_moved_into_it_before_they_are_added():
    (bounded,) = releases_of(QUESTIONS["filter"], WORLD)
    rows = [{"id": i, "g": 0, "x": x, "y": 0.0} for i, x in enumerate((1e300, -5.0, float("nan")))]
    assert evaluate(bounded.release.exact, {"o": rows, "p": []}) == [(1,)]


def test_enforcing_uses_it():
    assert enforce.make_exact is exact.make_exact
