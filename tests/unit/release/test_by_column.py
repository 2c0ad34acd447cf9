"""What stored columns decide: the same rows pass and the same bounds come out as margins would give."""

import dataclasses
import datetime
import random
from decimal import Decimal
from fractions import Fraction

import duckdb
import pytest

from secant.engines.dialect import DUCKDB
from secant.engines.optimize import filter_by_column as by_column
from secant.engines.optimize import monotone as axes
from secant.engines.optimize.filter_by_column import decided_by_columns
from secant.engines.optimize.monotone import curve_of
from secant.engines.print.print_sql import lower
from secant.plan import nodes as n
from secant.plan.evaluate.evaluate import evaluate
from secant.schema.types import DATE, DOUBLE, INTEGER, Type
from secant.sensitivity.derivative.shapes import call, choice, minus, number, plus, times

CENTS = Type("DECIMAL", 15, 2)
_TEXT = Type("TEXT")
START = datetime.date(2020, 1, 1)
DAY = n.Column("sale.day", DATE)
PRICE = n.Column("sale.price", CENTS)
RATE = n.Column("sale.rate", CENTS)
STEPS = 2.0**32


def day():
    """Days since a day, of a date that is moved into a range of a hundred days."""
    ends = (n.Literal(START + datetime.timedelta(d), DATE) for d in (0, 99))
    since = (n.Literal("day", _TEXT), n.Literal(START, DATE))
    return n.Cast(n.Call("date_diff", (*since, n.Clamp(DAY, *ends))), DOUBLE)


def price(low="0.00", high="20.00", column=PRICE):
    ends = (n.Literal(Decimal(x), CENTS) for x in (low, high))
    return n.Cast(n.Clamp(column, *ends), DOUBLE)


MARGINS = {
    "falls": n.Arithmetic("-", number(50.5), day()),
    "rises": minus(times(0.25, day()), 7.0),
    "window": n.Arithmetic("-", number(30.0), call("abs", minus(times(2.0, day()), 81.0))),
    "price": n.Arithmetic("-", number(6.5), price()),
    "cents": minus(times(100.0, price("0.00", "0.10")), 7.5),
    "two edges": n.Arithmetic("-", number(8.0), call("abs", minus(call("abs", minus(day(), 40.0)), 20.0))),
}  # fmt: skip


def sold(items):
    scan = n.Scan("sale", "sale", tuple(n.Field(c.name, c.type) for c in (DAY, PRICE, RATE)))
    there = tuple(n.Not(n.IsNull(c)) for c in (DAY, PRICE))
    return n.Project(n.Filter(scan, n.And(there)), items)


def released(margin, value=None):
    """A filtered sum, with bounds that fade away from the filter's edge."""
    u = n.Column("u", DOUBLE)
    rows = sold((n.Named("u", margin), *(n.Named(c.name, c) for c in (DAY, PRICE, RATE))))
    ramp = n.Call("ramp", (u,))
    away = minus(call("abs", u), 0.5)
    fall = choice(away, "<=", 0.0, number(1.0), call("exp", times(-0.25, away)))
    core = plus(times(2.0, price()), number(3.0))
    near = choice(away, "<", 9.0, n.Arithmetic("*", core, fall), number(0.0))
    summand = ramp if value is None else n.Arithmetic("*", ramp, value)
    made = (n.Named("value", summand), n.Named("away", away), n.Named("near", near))
    steps = n.Cast(n.Arithmetic("*", n.Column("value", DOUBLE), number(STEPS)), INTEGER)
    calls = (
        n.Aggregation("measure", "sum", steps),
        n.Aggregation("least", "min", n.Column("away", DOUBLE)),
        n.Aggregation("most", "max", n.Column("near", DOUBLE)),
    )
    return n.Aggregate(n.Project(rows, made), (), calls)


def sales(draw, rows, *, cents=1):
    def some(low, high, share):
        return (
            None if draw.random() < share else Decimal(draw.randrange(low, high) * cents).scaleb(-2)
        )

    return {
        "sale": [
            {
                "day": None
                if draw.random() < 0.1
                else START + datetime.timedelta(draw.randrange(-9, 120)),
                "price": some(-300, 2500, 0.1),
                "rate": some(-5, 20, 0.3),
            }
            for _ in range(rows)
        ]
    }


@pytest.mark.parametrize("margin", MARGINS.values(), ids=MARGINS)
@pytest.mark.parametrize("op", ["<", "<=", ">", ">="])
def test_a_column_says_which_values_pass_a_number(margin, op):
    """Brute force: every stored value of the range, and some beyond it."""
    curve = curve_of(margin)
    assert curve is not None
    values = [START + datetime.timedelta(d) for d in range(-3, 110)]
    database = {"sale": [{"day": d, "price": Decimal(1), "rate": None} for d in values]}
    if curve.axis.column is PRICE:
        prices = [Decimal(cent).scaleb(-2) for cent in range(-9, 2010)]
        database = {"sale": [{"day": START, "price": p, "rate": None} for p in prices]}
    for limit in (-30.0, -7.5, -0.5, 0.0, 0.3, 0.5, 5.75, 6.5, 1e9):
        asked = curve.axis.condition(curve.where(op, limit))
        computed = n.Compare(op, margin, number(limit))
        rows = evaluate(sold((n.Named("a", asked), n.Named("b", computed))), database)
        assert all(a == b for a, b in rows)


def apart(plan, database):
    """Give the steps that two ways of adding up are apart, and whether bounds agree."""
    changed = decided_by_columns(plan)
    assert isinstance(changed, n.Project)
    (new,), (old,) = evaluate(changed, database), evaluate(plan, database)
    return abs(Fraction(new[0] or 0) - Fraction(old[0] or 0)), new[1:] == old[1:]


@pytest.mark.parametrize("margin", MARGINS.values(), ids=MARGINS)
def test_rows_that_pass_are_added_up_as_they_are_stored(margin):
    """Counts and floats are the same numbers; decimals are off by one rounding instead of one for each row."""
    draw = random.Random(8)
    values = {
        "count": None,
        "float": times(0.37, price()),
        "price": price(),
        "less": n.Arithmetic("*", price(), n.Arithmetic("-", number(1.0), price("0.00", "0.10", RATE))),
        "product": n.Arithmetic("*", n.Arithmetic("*", price(), minus(price("0.00", "0.10", RATE), 1.0)), taxed()),
    }  # fmt: skip
    for name, value in values.items():
        plan = released(margin, value)
        for rows in (0, 1, 2, 5, 60, 60, 200):
            database = sales(draw, rows)
            steps, alike = apart(plan, database)
            assert alike
            # Half a step and what floats err by, 20 * 2^32 / 2^50 steps at most, for each row.
            assert steps <= (0 if name in ("count", "float") else rows)


def test_a_filter_of_several_columns():
    both = n.Call("lowest", (MARGINS["window"], MARGINS["price"]))
    u = n.Column("u", DOUBLE)
    rows = sold((n.Named("u", both),))
    steps = n.Cast(n.Arithmetic("*", n.Call("ramp", (u,)), number(STEPS)), INTEGER)
    plan = n.Aggregate(rows, (), (n.Aggregation("measure", "sum", steps),))
    draw = random.Random(9)
    for count in (0, 1, 50, 300):
        assert apart(plan, sales(draw, count))[0] == 0


def taxed(sign=1):
    return n.Attempt(
        n.Cast(
            n.Arithmetic("+", n.Literal(sign, INTEGER), price("0.00", "0.08", RATE).operand), DOUBLE
        )
    )


def one_sided(core, edge=2.0, margin=MARGINS["falls"]):
    """A bound that fades on one side of an edge only."""
    u = n.Column("u", DOUBLE)
    away = n.Arithmetic("-", number(0.5), u)
    fall = choice(away, "<=", 0.0, number(1.0), call("exp", times(-0.25, away)))
    bound = choice(away, "<", edge, n.Arithmetic("*", core, fall), number(0.0))
    columns = (n.Named(c.name, c) for c in (DAY, PRICE, RATE))
    rows = sold((n.Named("u", margin), *columns))
    made = n.Project(rows, (n.Named("row", bound),))
    calls = (n.Aggregation("most", "max", n.Column("row", DOUBLE)),)
    return n.Aggregate(made, (), calls)


CORES = {
    "rises": call("abs", taxed()),
    "falls": call("abs", taxed(-1)),
    "turns": call("abs", minus(price(column=RATE, high="0.20"), 0.07)),
    "negative": minus(price(column=RATE), 9.0),
}


@pytest.mark.parametrize("core", CORES.values(), ids=CORES)
def test_where_a_bound_does_not_fade_the_extreme_value_gives_the_largest(core):
    plan, draw = one_sided(core), random.Random(14)
    changed = decided_by_columns(plan)
    assert [x for x in n.walk(changed) if isinstance(x, n.Aggregation) and x.name == "most.fading"]
    for rows in (0, 1, 2, 5, 5, 5, 60, 60):
        database = sales(draw, rows)
        assert evaluate(changed, database) == evaluate(plan, database)


def test_where_most_rows_fade_one_maximum_is_taken():
    margin = n.Arithmetic("-", number(10.5), day())
    changed = decided_by_columns(one_sided(CORES["rises"], 50.0, margin))
    assert [x.name for x in n.walk(changed) if isinstance(x, n.Aggregation)] == ["most"]


def test_a_planted_fault_in_extremes_is_seen(monkeypatch):
    """A function that falls is largest at the least value."""
    plan, draw = one_sided(CORES["falls"]), random.Random(15)
    pieces = axes._pieces
    monkeypatch.setattr(
        axes,
        "_folded",
        lambda inner, axis: pieces(inner, axis),
    )
    changed = decided_by_columns(plan)
    databases = [sales(draw, 5) for _ in range(20)]
    assert any(evaluate(changed, d) != evaluate(plan, d) for d in databases)


@pytest.mark.parametrize(
    "margin",
    [
        n.Call("exp", (day(),)),
        n.Arithmetic("*", day(), day()),
        plus(day(), price()),
        minus(n.Cast(PRICE, DOUBLE), 3.0),
        minus(price(column=RATE), 0.05),  # may be empty
        minus(price("0.005", "20.00"), 0.05),  # the range does not start at a cent
    ],
)
def test_other_margins_are_computed(margin):
    plan = released(margin)
    assert decided_by_columns(plan) is plan


def test_long_decimals_are_rounded_row_by_row():
    """What may have more digits than an engine's whole numbers is left to floats, which are the same numbers."""
    huge = price("0.00", "99999999999.00")
    plan = released(MARGINS["falls"], n.Arithmetic("*", huge, huge))
    sums = [x for x in n.walk(decided_by_columns(plan)) if isinstance(x, n.Aggregation)]
    assert [x for x in sums if x.name == "measure"]
    assert not [x for x in sums if x.name == "measure.passed"]


def test_a_cast_that_rounds_stays():
    tenths = n.Cast(n.Cast(price().operand, Type("DECIMAL", 15, 1)), DOUBLE)
    plan, draw = released(MARGINS["falls"], tenths), random.Random(11)
    assert all(apart(plan, sales(draw, 60)) == (0, True) for _ in range(5))


ODD = ("NULL", "'infinity'", "'-infinity'", "'0001-01-01'", "'9999-12-31'", "'2020-02-20'")


@pytest.mark.parametrize("margin", MARGINS.values(), ids=MARGINS)
@pytest.mark.parametrize("value", [None, price(), n.Arithmetic("*", price(), taxed())])
def test_duckdb_finds_the_same_either_way(margin, value):
    """Also of dates that have no end, and of numbers beyond all ranges; bounds to the last digit."""
    draw = random.Random(16)
    plan = released(margin, value)
    assert decided_by_columns(plan) is not plan
    plain = dataclasses.replace(DUCKDB, optimize=())
    with duckdb.connect() as connection:
        connection.execute(
            'CREATE TABLE "sale" ("day" DATE, "price" DECIMAL(15, 2), "rate" DECIMAL(15, 2))'
        )
        for rows in (0, 1, 40, 200):
            for row in sales(draw, rows)["sale"]:
                connection.execute('INSERT INTO "sale" VALUES (?, ?, ?)', list(row.values()))
            for odd in ODD if rows else ():
                connection.execute(
                    f"""INSERT INTO "sale" VALUES ({odd}, 9999999999999.99, -9999999999999.99)"""
                )
            (new,) = connection.execute(lower(plan, DUCKDB)).fetchall()
            (old,) = connection.execute(lower(plan, plain)).fetchall()
            assert new[1:] == old[1:]
            assert abs(int(new[0] or 0) - int(old[0] or 0)) <= (0 if value is None else 300)


def seen(margin, value=None):
    """Whether some database shows another measure or another bound."""
    draw, plan = random.Random(10), released(margin, value)
    found = (apart(plan, sales(draw, rows)) for rows in (60,) * 40)
    return any(steps > 60 or not alike for steps, alike in found)


def _one_further(passes, first, last):
    found = _stretch(passes, first, last)
    return None if found is None else (found[0], min(last, found[1] + 1))


_stretch = axes._stretch


@pytest.fixture(scope="module")
def unplanted():
    """Whether something is seen where nothing is planted."""
    return any(seen(m, price()) for m in MARGINS.values())


@pytest.mark.parametrize(
    ("module", "name", "fault"),
    [
        (axes, "_stretch", _one_further),
        (axes, "_folded", lambda inner, axis: axes._pieces(inner, axis)),
        (by_column, "_in_steps", lambda total, factor: n.Cast(total, Type("DECIMAL", 38, 0))),
    ],
)
def test_a_planted_fault_is_seen(unplanted, monkeypatch, module, name, fault):
    """A border off by one value, an absolute value that is taken to rise, a sum that is not in steps."""
    assert not unplanted
    monkeypatch.setattr(module, name, fault)
    assert any(seen(m, price()) for m in MARGINS.values())
