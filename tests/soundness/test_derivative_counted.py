"""Joined rows that add the same are counted: nothing else comes out, and only where a key tells rows apart."""

import random
from dataclasses import replace
from fractions import Fraction

import pytest
from derivative_cases import COUNTED
from derivative_check import World, ask
from derivative_moves import Tally, attack, mover
from derivative_worlds import small_database, small_world

from secant.plan import nodes as n
from secant.plan.evaluate.evaluate import evaluate
from secant.policy.keys import ACCEPTED, Trust, keys_of
from secant.schema.catalog import catalog
from secant.sensitivity.derivative import counted, statement
from secant.sensitivity.derivative.lookups import Lookups

NOT_COUNTED = (
    "SELECT sum(a.m*u.q) FROM a JOIN u ON a.id = u.h",  # two tables decide
    "SELECT sum(a.c) FROM a JOIN u ON a.id = u.h",  # many values
    "SELECT sum(a.x) FROM a JOIN u ON a.id = u.h",  # floats
    "SELECT sum(a.m) FROM a, u",  # a key may be empty, of which there may be several
    "SELECT sum(a.m) FROM a LEFT JOIN u ON a.id = u.h",
    "SELECT a.g, sum(a.m) FROM a JOIN u ON a.id = u.h GROUP BY a.g",
    "SELECT sum(a.m*o.m) FROM a JOIN a AS o ON a.id = o.k",
)
REPEATED = "SELECT count(*) FROM b JOIN u ON b.id = u.h AND b.k = u.h WHERE b.m = 1"


def statements(text, world, beta=Fraction(1, 5)):
    questions = ask(text, world, beta=beta)
    assert not isinstance(questions, str), questions
    readings = [q.job.readings[q.bounded.release.name] for q in questions]
    return [s for reading in readings for s in reading.instrument.statements]


def counts(plans):
    return [x for p in plans for x in n.walk(p) if isinstance(x, n.Column) and ".times" in x.name]


def close(a, b):
    if a is None or b is None:
        return a is b
    return a == b if not isinstance(b, float) else abs(a - b) <= 1e-13 * abs(b)


@pytest.mark.parametrize("text", COUNTED)
def test_these_rows_are_counted(text):
    assert counts(statements(text, small_world()))


@pytest.mark.parametrize("text", NOT_COUNTED)
def test_these_are_looked_at_one_by_one(text):
    assert not counts(statements(text, small_world()))


def test_many_values_are_not_counted(monkeypatch):
    plain = small_world()
    monkeypatch.setattr(counted, "MOST_VALUES", 16)  # -4 to 10, and an empty one
    assert counts(statements(COUNTED[0], plain))
    monkeypatch.setattr(counted, "MOST_VALUES", 15)
    assert not counts(statements(COUNTED[0], plain))


@pytest.mark.parametrize("text", COUNTED)
def test_what_comes_out_is_the_same(text, monkeypatch):
    """Measures to the last digit, whether keys hold or not; bounds, where they hold, to the last digits of floats."""
    world, draw = small_world(), random.Random(text)
    new = statements(text, world)
    monkeypatch.setattr(statement, "counted", lambda sums, name: None)
    old = statements(text, world)
    assert not counts(old)
    moves, met = mover(world, text), 0
    for number in range(60):
        clean = number % 3 > 0
        plain = small_database(nulls=number % 2 == 1, clean=clean, most=8 if clean else 5)(draw)
        database = moves.fill(draw, plain if number else {table: [] for table in plain})
        for one, other in zip(new, old, strict=True):
            (found,), (meant,) = evaluate(one, database), evaluate(other, database)
            whole = [i for i, value in enumerate(meant) if not isinstance(value, float)]
            assert whole
            for i, (a, b) in enumerate(zip(found, meant, strict=True)):
                if clean or i in whole:
                    assert close(a, b), (text, number, found, meant)
            met += any(value for value in meant)
    assert met >= 20


def searched(world, text, *, clean):
    tally, draw = Tally(), random.Random(5)
    for beta in (Fraction(1, 50), Fraction(1)):
        questions = ask(text, world, beta=beta)
        assert not isinstance(questions, str), questions
        attack(draw, questions, mover(world, text), small_database(clean=clean), 300, tally)
    return tally


def test_a_key_that_nobody_checked_would_be_noticed(monkeypatch):
    """Planted: two rows agree in all that rows are gathered by, and their values meet and part again."""
    world = small_world(keys=())
    assert not counts(statements(REPEATED, world))
    assert not searched(world, REPEATED, clean=False).violations
    monkeypatch.setattr(Lookups, "_is_key", lambda self, scan, columns, claims: True)
    assert counts(statements(REPEATED, world))
    assert searched(world, REPEATED, clean=False).violations


def test_an_owners_word_is_not_enough():
    """A declared key of a table whose rows are hidden may be believed; for counts the engine must keep it."""
    hidden = '[protections.rows]\nkind = "rows"\nepsilon = 1.0\ntables = ["a"]'
    plain = small_world(others=hidden)
    believed = World(plain.catalog, replace(plain.policy, accept=(ACCEPTED,)))
    found = plain.catalog.tables.values()
    tables = (replace(t, unique=(("id",),)) if t.name == "a" else t for t in found)
    kept = World(catalog(*tables), plain.policy)
    trusts = [keys_of("a", w.policy, w.catalog)[0].trust for w in (plain, believed, kept)]
    assert trusts == [Trust.DECLARED, Trust.ACCEPTED, Trust.KEPT]
    assert [bool(counts(statements(COUNTED[0], w))) for w in (plain, believed, kept)] == [
        False,
        False,
        True,
    ]
