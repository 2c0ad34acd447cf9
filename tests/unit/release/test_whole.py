"""Margins in whole numbers: what is counted and how near the nearest row is are the same to the last digit."""

import dataclasses
import datetime
import random

import duckdb
import pytest

from secant.engines.dialect import DUCKDB
from secant.engines.optimize import integer_margins as whole
from secant.engines.optimize import narrow_joins as carried
from secant.engines.optimize.integer_margins import in_whole_numbers
from secant.engines.print.print_sql import lower
from secant.plan import nodes as n
from secant.plan.evaluate.evaluate import evaluate
from secant.plan.rewrites.rewrite import replaced
from secant.schema.types import DATE, DOUBLE, INTEGER, TEXT
from secant.sensitivity.derivative.shapes import call, choice, minus, number, plus, times

START = datetime.date(2020, 1, 1)
KEY, LEVEL, PRIORITY = (
    n.Column(f"order.{name}", kind)
    for name, kind in (("key", INTEGER), ("level", INTEGER), ("priority", TEXT))
)
OF, SENT, DUE, CAME = (
    n.Column(f"item.{name}", kind)
    for name, kind in (("of", INTEGER), ("sent", DATE), ("due", DATE), ("came", DATE))
)
DATES = (SENT, DUE, CAME)
STEPS = 2.0**32


def days(column, start=START):
    """Days since a day, of a date that is moved into a range of a hundred days."""
    ends = (n.Literal(START + datetime.timedelta(d), DATE) for d in (0, 99))
    since = (n.Literal("day", TEXT), n.Literal(start, DATE))
    return n.Cast(n.Call("date_diff", (*since, n.Clamp(column, *ends))), DOUBLE)


def level():
    ends = (n.Literal(x, INTEGER) for x in (0, 9))
    return n.Cast(n.Clamp(LEVEL, *ends), DOUBLE)


def below(left, right, shift=-0.5):
    return n.Arithmetic("-", number(shift), n.Arithmetic("-", left, right))


def window(column, steepness=2.0, middle=-81.0, top=30.0):
    return n.Arithmetic(
        "-", number(top), call("abs", plus(times(steepness, days(column)), number(middle)))
    )


MARGINS = {
    "order": (below(days(DUE), days(CAME)), below(days(SENT), days(DUE)), window(CAME)),
    "other start": (below(days(DUE), days(CAME, datetime.date(1970, 1, 1)), 18270.25),),
    "quarters": (below(days(DUE), days(CAME), 0.25), times(0.125, window(SENT)), window(CAME, top=8.5)),
    "both tables": (below(times(3.0, level()), times(0.5, days(CAME)), 2.0), window(DUE, -1.0, 40.0)),
    "one column": (window(CAME),),
}  # fmt: skip
DIFFERENT = n.Or(tuple(n.Compare("<>", PRIORITY, n.Literal(x, TEXT)) for x in ("high", "low")))
NEAR = n.Compare("<=", CAME, n.Literal(START + datetime.timedelta(90), DATE))
EQUAL = n.Compare("=", PRIORITY, n.Literal("high", TEXT))


def joined(*conditions, present=(*DATES, LEVEL)):
    order = n.Scan("order", "order", tuple(n.Field(c.name, c.type) for c in (KEY, LEVEL, PRIORITY)))
    item = n.Scan("item", "item", tuple(n.Field(c.name, c.type) for c in (OF, *DATES)))
    there = tuple(n.Not(n.IsNull(c)) for c in present)
    rows = n.Join("inner", order, item, n.Compare("=", KEY, OF))
    return n.Filter(rows, n.And((*conditions, *there, NEAR)))


def released(margins, rows, *, keyed=False, edge=9.3):
    """Rows that pass a filter, the nearest to its edge, and a bound that fades away from it."""
    u, away = n.Column("u", DOUBLE), n.Column("away", DOUBLE)
    parts = tuple(n.Named(f"u{i}", m) for i, m in enumerate(margins))
    key = n.Named("key", KEY)
    first = n.Project(rows, (key, *parts))
    least = n.Call("lowest", tuple(n.Column(x.name, DOUBLE) for x in parts))
    passed = n.Named("key", n.Column("key", INTEGER))
    second = n.Project(first, (passed, n.Named("u", least)))
    third = n.Project(
        second, (passed, n.Named("u", u), n.Named("away", minus(call("abs", u), 0.5)))
    )
    fall = choice(away, "<=", 0.0, number(1.0), call("exp", times(-0.025, away)))
    bound = choice(
        away, "<", edge, call("greatest", times(2.0, fall), number(0.125)), number(0.125)
    )
    items = (n.Named("value", n.Call("ramp", (u,))), n.Named("row", away), n.Named("fade", bound))
    top = n.Project(third, (passed, *items))
    steps = n.Cast(n.Arithmetic("*", n.Column("value", DOUBLE), number(STEPS)), INTEGER)
    calls = (
        n.Aggregation("rows", "count", None),
        n.Aggregation("measure", "sum", steps),
        n.Aggregation("nearest", "min", n.Column("row", DOUBLE)),
        n.Aggregation("farthest", "max", n.Column("row", DOUBLE)),
        n.Aggregation("largest", "max", n.Column("fade", DOUBLE)),
    )
    return n.Aggregate(top, (passed,) if keyed else (), calls)


def orders(draw, count):
    def day():
        return None if draw.random() < 0.1 else START + datetime.timedelta(draw.randrange(-9, 120))

    return {
        "order": [
            {
                "key": draw.choice([None, *range(count)]),
                "level": draw.choice([None, -3, 0, 1, 5, 9, 14]),
                "priority": draw.choice([None, "high", "low", "none"]),
            }
            for _ in range(count)
        ],
        "item": [
            {"of": draw.choice([None, *range(count)]), "sent": day(), "due": day(), "came": day()}
            for _ in range(5 * count)
        ],
    }


def agrees(plan, changed, draw, times_=12):
    for _ in range(times_):
        database = orders(draw, draw.choice([0, 1, 3, 20]))
        old, new = (sorted(evaluate(p, database), key=repr) for p in (plan, changed))
        if old != new:
            return False
    return True


def ramps(plan):
    return [x for x in n.walk(plan) if isinstance(x, n.Call) and x.function == "ramp"]


def carried_through(plan):
    """Give the columns of tables that a join takes computed ones of."""
    joins = [x for x in n.walk(plan) if isinstance(x, n.Join)]
    return [
        i.name
        for x in joins
        for y in (x.left, x.right)
        if isinstance(y, n.Project)
        for i in y.items
    ]


@pytest.mark.parametrize("margins", MARGINS.values(), ids=MARGINS)
@pytest.mark.parametrize("condition", [DIFFERENT, EQUAL])
@pytest.mark.parametrize("keyed", [True, False])
def test_whole_margins_count_the_same_rows(margins, condition, keyed):
    """Brute force: dates beyond the range, empty cells, orders with one key, empty tables."""
    plan = released(margins, joined(condition), keyed=keyed)
    changed = in_whole_numbers(plan)
    assert ramps(plan)
    assert not ramps(changed)
    assert agrees(plan, changed, random.Random(31))


@pytest.mark.parametrize("edge", [-0.5, 0.0, 0.25, 3.0, 7.5, 9.75])
def test_a_number_between_two_margins_parts_the_same_rows(edge):
    for margins in MARGINS.values():
        plan = released(margins, joined(DIFFERENT), keyed=True, edge=edge)
        assert agrees(plan, in_whole_numbers(plan), random.Random(32), 4)


def test_one_column_is_carried_where_several_would_be():
    plan = released(MARGINS["order"], joined(DIFFERENT))
    assert not carried_through(plan)
    assert carried_through(in_whole_numbers(plan)) == ["item.of", "u"]


@pytest.mark.parametrize(
    ("margins", "condition"),
    [
        ("order", EQUAL),  # the join spares rows
        ("order", n.Compare("<", LEVEL, n.Literal(3, INTEGER))),
        ("one column", DIFFERENT),  # as many columns either way
        ("both tables", DIFFERENT),
    ],
)
def test_other_margins_are_computed_of_joined_rows(margins, condition):
    changed = in_whole_numbers(released(MARGINS[margins], joined(condition)))
    assert not ramps(changed)
    assert not carried_through(changed)


def test_a_date_that_is_read_above_is_carried_as_well():
    """Two dates and one number are no less than three dates."""
    plan = released((*MARGINS["order"], below(days(SENT), times(3.0, level()))), joined(DIFFERENT))
    shown = carried_through(in_whole_numbers(plan))
    assert shown in ([], ["item.of", "item.sent", "u0"])
    assert agrees(plan, in_whole_numbers(plan), random.Random(33))


@pytest.mark.parametrize(
    "margin",
    [
        n.Arithmetic("-", number(0.3), days(CAME)),  # no few binary digits
        times(0.1, days(CAME)),
        plus(days(CAME), number(2.0**31)),
        times(2.0**28, days(CAME)),
        n.Arithmetic("*", days(CAME), days(DUE)),
        call("exp", days(CAME)),
        n.Cast(n.Call("date_diff", (n.Literal("day", TEXT), n.Literal(START, DATE), CAME)), DOUBLE),
        n.Cast(LEVEL, DOUBLE),  # has no range
    ],
)
def test_what_floats_may_round_stays(margin):
    plan = released((margin,), joined(DIFFERENT))
    assert in_whole_numbers(plan) is plan


def test_what_may_be_empty_stays():
    plan = released(MARGINS["order"], joined(DIFFERENT, present=(SENT, LEVEL)))
    assert in_whole_numbers(plan) is plan


def test_rows_of_one_table_are_left_to_others():
    item = n.Scan("item", "item", tuple(n.Field(c.name, c.type) for c in (KEY, OF, *DATES)))
    there = n.And(tuple(n.Not(n.IsNull(c)) for c in DATES))
    plan = released(MARGINS["order"], n.Filter(item, there))
    assert in_whole_numbers(plan) is plan


ODD = ("NULL", "'infinity'", "'-infinity'", "'0001-01-01'", "'9999-12-31'", "'2020-02-20'")


@pytest.mark.parametrize("margins", MARGINS.values(), ids=MARGINS)
@pytest.mark.parametrize("condition", [DIFFERENT, EQUAL])
def test_duckdb_finds_the_same_either_way(margins, condition):
    """Also of dates that have no end, and of numbers beyond all ranges; to the last digit."""
    draw = random.Random(34)
    plan = released(margins, joined(condition))
    plain = dataclasses.replace(DUCKDB, optimize=())
    with duckdb.connect() as connection:
        connection.execute('CREATE TABLE "order" ("key" BIGINT, "level" BIGINT, "priority" TEXT)')
        connection.execute(
            'CREATE TABLE "item" ("of" BIGINT, "sent" DATE, "due" DATE, "came" DATE)'
        )
        for count in (0, 1, 20):
            database = orders(draw, count)
            for table, rows in database.items():
                for row in rows:
                    places = ", ".join("?" * len(row))
                    connection.execute(
                        f'INSERT INTO "{table}" VALUES ({places})', list(row.values())
                    )
            for odd in ODD if count else ():
                connection.execute(f"""INSERT INTO "order" VALUES (0, {2**63 - 1}, 'high')""")
                for other in ODD:
                    connection.execute(
                        f'INSERT INTO "item" VALUES (0, {odd}, {other}, {odd}), (0, {other}, {odd}, {other})'
                    )
            (new,) = connection.execute(lower(plan, DUCKDB)).fetchall()
            (old,) = connection.execute(lower(plan, plain)).fetchall()
            assert new == old


def _unlike(some):
    return [dataclasses.replace(x, parts=max(y.parts for y in some)) for x in some]


def _shifted(reading, node):
    found = _asked(reading, node)
    limit = None if found is None else n.Literal(found.right.value + 1, INTEGER)
    return None if found is None else dataclasses.replace(found, right=limit)


def _lost(core, table):
    while isinstance(core, n.Filter):
        core = core.input
    leaf = n.Filter(table, NEAR)
    return replaced(core, table, leaf), leaf


_asked = whole._Reading._asked


@pytest.mark.parametrize(
    ("place", "name", "fault"),
    [
        (whole, "_alike", _unlike),
        (whole._Reading, "_asked", _shifted),
        (whole, "_size", lambda found: found),
        (whole, "_float", lambda found, parts: n.Cast(found, DOUBLE)),
        (carried, "_filtered_first", _lost),
    ],
)
def test_a_planted_fault_is_seen(monkeypatch, place, name, fault):
    """Halves beside wholes, a border off by one, no absolute value, halves as wholes, a condition that is lost."""
    plans = [released(m, joined(DIFFERENT), keyed=True, edge=7.5) for m in MARGINS.values()]
    assert all(agrees(p, in_whole_numbers(p), random.Random(35)) for p in plans)
    monkeypatch.setattr(place, name, fault)
    assert not all(agrees(p, in_whole_numbers(p), random.Random(35)) for p in plans)
