"""Ranges and limits that nobody declared: what a choice looks at moves by one with one unit, ends come from lists."""

import math
import random
from fractions import Fraction

import pandas
import pytest
from laws_of_draws import flips

import secant
from secant.engines.print.print_sql import lower
from secant.plan import nodes as n
from secant.release import inferred_facts as unstated
from secant.schema import types as t
from secant.sensitivity.truncation.unstated import extremes

ENDS = [(Fraction(-s), Fraction(s)) for s in (1, 2, 5, 10, 100)]
NAN = float("nan")


def tables(rows, people):
    visits = pandas.DataFrame(
        {
            "person": pandas.array([p for p, _ in rows], dtype="Int64"),
            "cost": pandas.array([v for _, v in rows], dtype="Float64"),
        }
    )
    return {"people": pandas.DataFrame({"id": people}), "visits": visits}


def policy(kind, **more):
    protection = {"kind": kind, "epsilon": 100, **more}
    if kind == "unit":
        protection["unit"] = "people.id"
    return {
        "tables": {
            "people": {"key": ["id"]},
            "visits": {"references": {"person": "people.id"}},
        },
        "protections": {"p": protection},
    }


def counts(rows, people, kind, column="cost", **more):
    """Run the statement that a choice looks at."""
    with secant.connect(tables(rows, people), policy=policy(kind, **more), ledger=":memory:") as db:
        made = extremes("visits", column, db.policy, db.policy.protections[0], db.catalog)
        assert made is not None
        ends = ENDS if column else [(None, Fraction(k)) for k in (1, 2, 3, 4)]
        with db._backend.session() as session:
            return list(session.rows(lower(made.counted(ends), session.dialect))[0])


def moves(before, after):
    return [a - b for a, b in zip(after, before, strict=True)]


def one_way(moved):
    return all(m in (0, 1) for m in moved) or all(m in (0, -1) for m in moved)


def worlds(number):
    draw = random.Random(number)
    people = list(range(draw.randint(1, 4)))
    values = [None, NAN, 0.0, 0.5, -1.5, 3.0, -7.0, 99.0, 1e30]
    owners = [*people, None]
    return people, [(draw.choice(owners), draw.choice(values)) for _ in range(draw.randint(0, 9))]


@pytest.mark.parametrize("column", ["cost", None])
def test_one_unit_moves_each_count_by_one_at_most(column):
    for number in range(6):
        people, rows = worlds(number)
        before = counts(rows, people, "unit", column)
        for gone in people:
            left = [p for p in people if p != gone]
            after = counts([r for r in rows if r[0] != gone], left, "unit", column)
            assert one_way(moves(before, after)), (number, gone)
            assert all(m <= 0 for m in moves(before, after))


def test_one_row_moves_each_count_by_one_at_most():
    for number in range(4):
        people, rows = worlds(number)
        before = counts(rows, people, "rows")
        for place in range(len(rows)):
            assert one_way(moves(before, counts(rows[:place] + rows[place + 1 :], people, "rows")))


def test_a_row_in_place_of_another_moves_all_counts_one_way():
    people, rows = worlds(5)
    before = counts(rows, people, "rows", replace=True)
    for value in (None, NAN, 0.5, -7.0, 1e30):
        swapped = [(rows[0][0], value), *rows[1:]]
        assert one_way(moves(before, counts(swapped, people, "rows", replace=True)))


def test_counting_rows_instead_of_units_would_be_noticed(monkeypatch):
    """A planted fault: a unit with many large values counts many times."""
    from secant.sensitivity.truncation import unstated as plans

    def by_row(table, column, policy, protection, catalog):
        known = catalog.table(table)
        fields = tuple(n.Field(f"x.{c}", k) for c, k in known.columns)
        value = next(n.Column(f.name, f.type) for f in fields if f.name == f"x.{column}")
        return plans.Extremes(n.Scan(known.name, "x", fields), value, value)

    monkeypatch.setattr(f"{__name__}.extremes", by_row)
    rows = [(0, 99.0), (0, 99.0), (1, 0.5)]
    assert not one_way(moves(counts(rows, [0, 1], "unit"), counts(rows[2:], [1], "unit")))


def scores(outside, epsilon):
    return [-units - unstated.FALL * step / epsilon for step, units in enumerate(outside)]


@pytest.mark.parametrize("outside", [(9, 4, 1, 0), (3, 3, 3, 3), (40, 12, 2, 1), (1, 0, 0, 0)])
def test_the_choice_moves_by_epsilon_at_most(outside):
    epsilon = Fraction(1, 2)
    before = flips(scores(outside, epsilon), epsilon)
    for reached in range(len(outside) + 1):
        more = [a + (i < reached) for i, a in enumerate(outside)]
        after = flips(scores(more, epsilon), epsilon)
        assert all(
            abs(math.log(a / b)) <= float(epsilon) + 1e-9
            for a, b in zip(before, after, strict=True)
        )
    twice = flips(scores([a + 3 * (i < 2) for i, a in enumerate(outside)], epsilon), epsilon)
    if outside == (9, 4, 1, 0):  # the check has teeth: counts that move by three break it
        assert max(abs(math.log(a / b)) for a, b in zip(before, twice, strict=True)) > 0.5


def ends_of(values, find=unstated.find):
    frame = pandas.DataFrame({"person": range(len(values)), "cost": values})
    given = {"protections": {"p": {"kind": "unit", "unit": "visits.person", "epsilon": 100}}}
    with secant.connect({"visits": frame}, policy=given, ledger=":memory:") as db:
        db.sql("SELECT stddev(cost) AS s FROM visits", epsilon=1)
        return db.policy.column("visits", "cost").range


def allowed(low, high):
    sizes = unstated.ladder(t.DOUBLE)
    high = Fraction(high)
    return high in sizes and Fraction(low) in (high / 2, Fraction(0), -high / 2, -high)


def test_ends_come_from_a_public_list():
    draw = random.Random(3)
    for _ in range(3):
        assert allowed(*ends_of([draw.gauss(50, 77.123) for _ in range(400)]))


def test_a_range_from_the_data_would_be_noticed(monkeypatch):
    """A planted fault: the largest value itself becomes the end."""
    honest = unstated.find

    def following(*arguments):
        return tuple(
            unstated.replace(f, high=Fraction("91.375"), low=Fraction("-3.25"))
            for f in honest(*arguments)
        )

    monkeypatch.setattr("secant.workflows.infer_facts.find", following)
    assert not allowed(*ends_of([1.0, 91.375, -3.25]))


def test_what_is_left_out_is_not_more_than_is_said():
    """At 95 %, so of 20 choices no more than 12 may be wrong: a false alarm is rarer than 1e-9."""
    draw = random.Random(11)
    values = [draw.lognormvariate(3, 1.2) for _ in range(300)]
    frame = pandas.DataFrame({"person": range(300), "cost": values})
    given = {"protections": {"p": {"kind": "unit", "unit": "visits.person", "epsilon": 100}}}
    wrong = 0
    with secant.connect({"visits": frame}, policy=given, ledger=":memory:") as db:
        fact = unstated.Lacking("visits", "cost", "p")
        with db._backend.session() as session:

            def count(statement):
                return session.rows(lower(statement, session.dialect))[0]

            for _ in range(20):
                (found,) = unstated.find([fact], db.policy, db.catalog, Fraction(1, 5), count)
                truly = sum(not found.low <= v <= found.high for v in values)
                wrong += truly > found.outside
    assert wrong <= 12
