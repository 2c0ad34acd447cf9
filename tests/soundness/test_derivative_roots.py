"""Columns that move in their square root: bounds hold against pairs, are tight, and refuse what has no slope at 0."""

import math
import random
from fractions import Fraction

import pytest
from derivative_check import ask, world
from derivative_moves import Tally, attack, mover
from derivative_worlds import small_database, small_world

from chance import LONG
from secant.schema import types as t
from secant.schema.catalog import Table, catalog

PAIRS = 400 if LONG else 40
BETAS = (Fraction(1, 50), Fraction(1, 5), Fraction(2), Fraction(20))
NORMS = (
    {"a": "l1(sqrt(c), 2*sqrt(v), sqrt(y), x)", "b": "l1(0.5*sqrt(m), sqrt(w))", "lone": "sqrt(s)"},
    {"a": "linf(3*sqrt(c), 0.1*sqrt(v), l2(x, sqrt(y)))", "b": "sqrt(w)", "lone": "10*sqrt(s)"},
    {"a": "l2(0.2*sqrt(c), ln(v), linf(sqrt(y), sqrt(c)))", "b": "l2(m, sqrt(w))", "lone": "s"},
)
QUERIES = (
    "SELECT sum(c) FROM a", "SELECT sum(sqrt(c)) FROM a", "SELECT sum(c*c) FROM a", "SELECT sum(s) FROM lone",
    "SELECT sum(power(c, 1.5)) FROM a", "SELECT sum(power(c, 0.75)) FROM a", "SELECT sum(power(c, 3)) FROM a",
    "SELECT sum(1/v) FROM a", "SELECT sum(power(y, -1.5)) FROM a", "SELECT sum(power(v, 0.3)) FROM a",
    "SELECT sum(ln(v)) FROM a", "SELECT sum(v*ln(v)) FROM a", "SELECT sum(ln(v+c)) FROM a",
    "SELECT sum(exp(c/20)) FROM a", "SELECT sum(c*x) FROM a", "SELECT sum(sqrt(c)*sqrt(v)) FROM a",
    "SELECT sum(sqrt(c+v)) FROM a", "SELECT sum(least(c, v, y)) FROM a", "SELECT sum(c-v) FROM a",
    "SELECT sum(greatest(least(c, 10), 2)) FROM a", "SELECT sum(sqrt(least(c, 5))) FROM a",
    "SELECT min(c) FROM a", "SELECT max(sqrt(c)) FROM a", "SELECT avg(v) FROM a", "SELECT sum(abs(c-10)) FROM a",
    "SELECT count(*) FROM a WHERE c > 5", "SELECT count(*) FROM a WHERE sqrt(c) > 2",
    "SELECT sum(x) FROM a WHERE c < 1",
    "SELECT count(*) FROM a WHERE c BETWEEN 0.5 AND 3", "SELECT sum(c) FROM a WHERE v > 1 AND y < 2",
    "SELECT count(*) FROM b WHERE m = 1", "SELECT sum(w*m) FROM b", "SELECT sum(a.c*b.w) FROM a JOIN b ON a.id = b.id",
    "SELECT sum(s*s) FROM lone", "SELECT count(*) FROM lone WHERE s > 0.1", "SELECT variance(c) FROM a",
)  # fmt: skip


@pytest.mark.parametrize("norms", NORMS, ids=lambda n: n["a"])
def test_no_pair_of_databases_exceeds_the_bound(norms, record_property):
    tally, answered = Tally(), 0
    for text in QUERIES:
        draw = random.Random(f"{text} {norms}")
        soft = draw.choice(("", 'softening = { kind = "sigmoid", slope = 1.5 }'))
        here = small_world(norms, settings=soft)
        questions = ask(text, here, beta=draw.choice(BETAS), rows=draw.choice((None, 10**6)))
        if isinstance(questions, str):
            continue
        answered += 1
        nulls = draw.random() < 0.3
        attack(
            draw,
            questions,
            mover(here, text),
            small_database(nulls=nulls, clean=not nulls),
            PAIRS,
            tally,
        )
    record_property("pairs", tally.pairs)
    assert not tally.violations, f"{len(tally.violations)} violations\n{tally.violations[-1]}"
    assert answered >= 0.75 * len(QUERIES)
    assert tally.moving >= tally.pairs // 5
    assert tally.nearest > 0.9, "no pair came near to its bound: the search is too weak"


POLICY = """
[database]
source = "duckdb:none"
[tables.t]
key = ["id"]
[tables.t.columns]
x = {{ range = {range} }}
[protections.cells]
kind = "cells"
epsilon = 1000.0
distance = {{ t = "{norm}" }}
"""


def asked(text, range_="[0, 100]", norm="2*sqrt(x)", beta=Fraction(20), kind=t.DOUBLE):
    here = world(
        catalog(Table("t", (("id", t.INTEGER), ("x", kind)))),
        POLICY.format(range=range_, norm=norm),
    )
    return ask(text, here, beta=beta)


@pytest.mark.parametrize("power", [Fraction(1, 2), 1, Fraction(3, 2), 2, 3])
def test_a_power_moves_as_its_derivative_by_the_root_says(power):
    """x^r = w^(2r) has the slope 2r·w^(2r−1), and a rough bound is the derivative itself away from 0."""
    (question,) = asked(f"SELECT max(power(x, {float(power)})) FROM t")
    for x in (4.0, 25.0, 100.0):
        ((group,),) = (
            tuple(g.values()) for g in question.read({"t": [{"id": 1, "x": x}]}).measures.values()
        )
        (measure,) = question.bounded.release.measures
        exact = float(2 * power) * math.sqrt(x) ** (2 * float(power) - 1) / 2
        found = group.bound * float(measure.step)
        assert exact * (1 - 1e-9) <= found <= 1.01 * exact, (x, found, exact)


@pytest.mark.parametrize(
    ("text", "given"),
    [
        ("SELECT sum(ln(x)) FROM t", {}),
        ("SELECT sum(1/x) FROM t", {}),
        ("SELECT sum(power(x, 0.3)) FROM t", {}),
        ("SELECT sum(power(x, -1)) FROM t", {}),
        ("SELECT sum(sqrt(sqrt(x))) FROM t", {}),
        # √x is computed with an error of about 2^-49·1000, and a bound may change by e^20 each 1e-9 of it.
        ("SELECT sum(x) FROM t", {"range_": "[0, 1000000]", "norm": "1e9*sqrt(x)"}),
        ("SELECT sum(x) FROM t", {"range_": "[1, 100]", "norm": "1e9*ln(x)"}),
    ],
)
def test_what_has_no_slope_or_is_computed_too_roughly_is_refused(text, given):
    assert isinstance(asked(text, **given), str)


@pytest.mark.parametrize("kind", [t.DOUBLE, t.INTEGER, t.decimal(12, 2)])
@pytest.mark.parametrize("text", ["sum(ln(x))", "sum(1/x)", "sum(power(x, 0.3))", "sum(x)"])
def test_a_range_above_0_answers_it(text, kind):
    questions = asked(f"SELECT {text} FROM t", range_="[1, 100]", beta=Fraction(1), kind=kind)
    assert not isinstance(questions, str), questions
