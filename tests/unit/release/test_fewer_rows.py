"""What DuckDB is told to compute for fewer rows: once for each margin, or before a join; what comes out is the same."""

import datetime
import random
from decimal import Decimal

import pytest

from secant.engines.optimize import drop_implied as proved
from secant.engines.optimize import preaggregate as by_margin
from secant.engines.optimize import preaggregate_by_key as by_key
from secant.engines.optimize.drop_implied import without_proved
from secant.engines.optimize.preaggregate import gathered_by_margin
from secant.engines.optimize.push_down_projections import computed_early
from secant.plan import nodes as n
from secant.plan.evaluate.evaluate import evaluate
from secant.schema.types import DATE, DOUBLE, INTEGER, Type
from secant.sensitivity.derivative.shapes import call, choice, minus, number, plus, times

CENTS = Type("DECIMAL", 15, 2)
START = datetime.date(2020, 1, 1)


def column(name, kind=DOUBLE):
    return n.Column(name, kind)


def sold(low="0.00", high="100.00", *, filtered=True):
    """Sales near a day: their margin, their price as a float."""
    scan = n.Scan("sale", "sale", (n.Field("sale.day", DATE), n.Field("sale.price", CENTS)))
    first = n.Compare(">=", column("sale.day", DATE), n.Literal(START, DATE))
    day = n.Clamp(
        column("sale.day", DATE),
        n.Literal(START, DATE),
        n.Literal(START + datetime.timedelta(99), DATE),
    )
    days = n.Call("date_diff", (n.Literal("day", _TEXT), n.Literal(START, DATE), day))
    price = n.Clamp(
        column("sale.price", CENTS),
        n.Literal(Decimal(low), CENTS),
        n.Literal(Decimal(high), CENTS),
    )
    return n.Project(
        n.Filter(scan, first) if filtered else scan,
        (
            n.Named("u", minus(n.Cast(days, DOUBLE), 50.5)),
            n.Named("p", n.Cast(price, DOUBLE)),
        ),
    )


_TEXT = Type("TEXT")


def fading(factor=2.0):
    """A bound that rises with the price, where the factor is not negative, and falls with the margin."""
    away = minus(call("abs", column("u")), 0.5)
    fall = choice(away, "<=", 0.0, number(1.0), call("exp", times(-0.25, away)))
    core = plus(times(factor, column("p")), number(3.0))
    return choice(
        away, "<", 30.0, call("greatest", n.Arithmetic("*", core, fall), number(0.5)), number(0.5)
    )


def released(rows, bound):
    value = n.Arithmetic("*", n.Call("ramp", (column("u"),)), column("p"))
    steps = n.Cast(times(1024.0, column("value")), INTEGER)
    made = n.Project(rows, (n.Named("value", value), n.Named("row", bound)))
    calls = (
        n.Aggregation("measure", "sum", steps),
        n.Aggregation("bound", "max", column("row")),
    )
    return n.Aggregate(made, (), calls)


def sales(draw, rows):
    return {
        "sale": [
            {
                "day": None
                if draw.random() < 0.1
                else START + datetime.timedelta(draw.randrange(-9, 120)),
                "price": None
                if draw.random() < 0.2
                else Decimal(draw.randrange(-500, 15000)) / 100,
            }
            for _ in range(rows)
        ]
    }


def groups(plan):
    return [x for x in n.walk(plan) if isinstance(x, n.Aggregate) and x.keys]


def test_a_bound_for_each_margin_gives_the_largest_of_all_rows():
    plan, draw = released(sold(), fading()), random.Random(6)
    changed = gathered_by_margin(plan)
    assert groups(changed)
    assert not groups(plan)
    for rows in (0, 1, 2, 5, 60, 60, 60):
        database = sales(draw, rows)
        assert evaluate(changed, database) == evaluate(plan, database)


@pytest.mark.parametrize(
    "plan",
    [
        released(sold(), fading(-2.0)),  # falls where the price rises
        released(sold(filtered=False), fading()),  # most rows are far: none of them needs more
        released(sold(), plus(fading(), call("abs", column("p")))),
    ],
)
def test_other_rows_are_looked_at_one_by_one(plan):
    assert gathered_by_margin(plan) is plan


def test_too_many_margins_are_not_gathered(monkeypatch):
    plan = released(sold(), fading())
    monkeypatch.setattr(by_margin, "MOST", 101)
    assert gathered_by_margin(plan) is not plan
    monkeypatch.setattr(by_margin, "MOST", 100)
    assert gathered_by_margin(plan) is plan


def test_a_planted_fault_is_seen(monkeypatch):
    """Without asking whether a bound rises, the largest price would hide the largest bound."""
    plan, draw = released(sold(), fading(-0.02)), random.Random(7)
    monkeypatch.setattr(by_margin, "_rises", lambda scalar, value: True)
    monkeypatch.setattr(by_margin, "_not_negative", lambda scalar: True)
    changed = gathered_by_margin(plan)
    assert groups(changed)
    different = 0
    for _ in range(10):
        database = sales(draw, 400)
        different += evaluate(changed, database) != evaluate(plan, database)
    assert different


def discounted(value):
    """Sales near a day and with some discount: the least of two margins, and a price that the discount lowers."""
    scan = n.Scan(
        "sale",
        "sale",
        (n.Field("sale.day", DATE), n.Field("sale.price", CENTS), n.Field("sale.off", CENTS)),
    )
    first = n.Compare(">=", column("sale.day", DATE), n.Literal(START, DATE))

    def held(name, kind, low, high):
        return n.Clamp(column(name, kind), n.Literal(low, kind), n.Literal(high, kind))

    day = held("sale.day", DATE, START, START + datetime.timedelta(99))
    days = n.Call("date_diff", (n.Literal("day", _TEXT), n.Literal(START, DATE), day))
    price = held("sale.price", CENTS, Decimal("0.00"), Decimal("100.00"))
    off = held("sale.off", CENTS, Decimal("0.00"), Decimal("0.10"))
    leaves = n.Project(
        n.Filter(scan, first),
        (
            n.Named("u1", minus(n.Cast(days, DOUBLE), 50.5)),
            n.Named("u2", minus(times(100.0, n.Cast(off, DOUBLE)), 7.0)),
            n.Named("off", n.Cast(off, DOUBLE)),
            n.Named("p", n.Cast(price, DOUBLE)),
        ),
    )
    least = n.Call("lowest", (column("u1"), column("u2")))
    kept = (n.Named("off", column("off")), n.Named("p", column("p")))
    rows = n.Project(leaves, (n.Named("u", least), *kept))
    summand = n.Arithmetic("*", n.Call("ramp", (column("u"),)), value)
    made = n.Project(rows, (n.Named("value", summand), n.Named("row", fading())))
    steps = n.Cast(times(2.0**32, column("value")), INTEGER)
    calls = (n.Aggregation("measure", "sum", steps), n.Aggregation("bound", "max", column("row")))
    return n.Aggregate(made, (), calls)


def with_discounts(draw, rows):
    database = sales(draw, rows)
    for row in database["sale"]:
        row["day"] = (
            None if draw.random() < 0.1 else START + datetime.timedelta(draw.randrange(40, 70))
        )
        row["off"] = None if draw.random() < 0.1 else Decimal(draw.randrange(-2, 14)) / 100
    return database


def farthest(plan, draw, rows=300):
    """Give how many steps a plan that is gathered is from one that is not, at most, if bounds are the same."""
    changed = gathered_by_margin(plan)
    assert [[key.name for key in x.keys] for x in groups(changed)] == [["sale.off", "u.left"]]
    found = []
    for count in (0, 1, 2, 5, rows, rows, rows):
        database = with_discounts(draw, count)
        (new,), (old,) = evaluate(changed, database), evaluate(plan, database)
        assert new[1] == old[1]
        found.append(abs(int(new[0] or 0) - int(old[0] or 0)))
    return max(found)


@pytest.mark.parametrize(
    "value",
    [
        n.Arithmetic("*", column("p"), column("off")),
        n.Arithmetic("*", n.Arithmetic("-", number(1.0), column("off")), column("p")),
        column("p"),
    ],
)
def test_rows_with_one_discount_add_up_their_prices(value):
    """Half a step and what floats err by, 100 * 2^32 / 2^50 steps at most, for each row."""
    assert farthest(discounted(value), random.Random(12)) <= 300


def test_what_is_no_product_of_the_price_is_summed_row_by_row():
    for value in (plus(column("p"), column("off")), n.Arithmetic("*", column("p"), column("p"))):
        changed = gathered_by_margin(discounted(value))
        assert [[key.name for key in x.keys] for x in groups(changed)] == [["u"]]


def test_a_planted_fault_in_sums_is_seen(monkeypatch):
    """A price and a discount for each row are not all prices and one discount."""
    monkeypatch.setattr(by_key, "_is_factor", lambda scalar, value: True)
    assert farthest(discounted(plus(column("p"), column("off"))), random.Random(13)) > 300


def stocked(summand):
    """Rows of parts and who supplies them, with what each adds, gathered by part."""
    part = n.Scan("part", "part", (n.Field("part.key", INTEGER), n.Field("part.size", INTEGER)))
    offer = n.Scan(
        "offer",
        "offer",
        (
            n.Field("offer.part", INTEGER),
            n.Field("offer.seller", INTEGER),
            n.Field("offer.stock", INTEGER),
        ),
    )
    same = n.Compare("=", column("part.key", INTEGER), column("offer.part", INTEGER))
    wide = n.Compare("<>", column("offer.seller", INTEGER), n.Literal(3, INTEGER))
    size = n.Clamp(column("part.size", INTEGER), n.Literal(1, INTEGER), n.Literal(50, INTEGER))
    there = n.Case((n.Branch(n.IsNull(column("offer.seller", INTEGER)), number(0.0)),), number(1.0))
    rows = n.Filter(n.Join("inner", offer, part, same), wide)
    layer = n.Project(
        rows,
        (
            n.Named("part.key", column("part.key", INTEGER)),
            n.Named("offer.stock", column("offer.stock", INTEGER)),
            n.Named("float", n.Cast(size, DOUBLE)),
            n.Named("there", there),
        ),
    )
    made = n.Project(
        layer,
        (
            n.Named("key", column("part.key", INTEGER)),
            n.Named("value", n.Arithmetic("*", call("exp", times(-0.1, column("float"))), summand)),
        ),
    )
    calls = (
        n.Aggregation("count", "count", None),
        n.Aggregation("sum", "sum", n.Cast(times(64.0, column("value")), INTEGER)),
        n.Aggregation("most", "max", column("value")),
    )
    found = n.Aggregate(made, (n.Named("key", column("key", INTEGER)),), calls)
    tops = (
        n.Aggregation("all", "sum", column("sum", INTEGER)),
        n.Aggregation("top", "max", column("most")),
        n.Aggregation("rows", "sum", column("count", INTEGER)),
    )
    return n.Aggregate(found, (), tops)


def offers(draw):
    def some(most):
        return None if draw.random() < 0.2 else draw.randrange(most)

    return {
        "part": [{"key": key, "size": some(70)} for key in range(8)],
        "offer": [{"part": some(9), "seller": some(5), "stock": some(4)} for _ in range(30)],
    }


def below_joins(plan):
    joins = [x for x in n.walk(plan) if isinstance(x, n.Join)]
    return [y for x in joins for y in n.walk(x) if isinstance(y, n.Project)]


def test_what_one_table_decides_is_computed_before_it_is_joined():
    plan, draw = stocked(column("there")), random.Random(16)
    changed = computed_early(plan)
    assert below_joins(changed)
    assert not below_joins(plan)
    above = n.walk(changed)
    joined = [x for x in above if isinstance(x, n.Join)]
    assert len(joined) == 1
    read = [x for x in n.walk(changed) if isinstance(x, n.Call) and x.function == "exp"]
    inside = [x for x in n.walk(joined[0]) if isinstance(x, n.Call) and x.function == "exp"]
    assert read
    assert len(read) == len(inside)
    for _ in range(20):
        database = offers(draw)
        assert evaluate(changed, database) == evaluate(plan, database)


def test_what_two_tables_decide_stays_where_it_is():
    stock = n.Cast(column("offer.stock", INTEGER), DOUBLE)
    plan = stocked(stock)
    assert computed_early(plan) is plan


def test_a_column_that_may_be_empty_is_asked_for():
    plan = stocked(
        n.Case((n.Branch(n.IsNull(column("offer.stock", INTEGER)), number(0.0)),), number(1.0))
    )
    assert computed_early(plan) is plan


def counted(low, high, *, first=10, last=30, kind=INTEGER):
    """Days from a constant to a day that is moved into a range, of rows that a condition has cut down."""
    scan = n.Scan("visit", "visit", (n.Field("visit.day", DATE), n.Field("visit.age", kind)))
    age, day = column("visit.age", kind), column("visit.day", DATE)
    kept = n.And(
        (
            n.Compare(">=", age, n.Literal(low, kind)),
            n.Compare("<=", age, n.Literal(high, kind)),
        )
    )
    moved = n.Clamp(age, n.Literal(first, kind), n.Literal(last, kind))
    ends = (n.Literal(START + datetime.timedelta(days), DATE) for days in (0, 9))
    since = (n.Literal("day", _TEXT), n.Literal(START, DATE))
    items = (
        n.Named("age", moved),
        n.Named("held", n.Call("date_diff", (*since, n.Clamp(day, *ends)))),
        n.Named("free", n.Call("date_diff", (*since, day))),
    )
    return n.Project(n.Filter(scan, kept), items)


@pytest.mark.parametrize(("low", "high"), [(10, 30), (12, 20), (9, 30), (10, 31), (0, 99)])
def test_a_range_is_enforced_unless_conditions_keep_it(low, high):
    plan = counted(low, high)
    changed = without_proved(plan)
    days = [START + datetime.timedelta(d) for d in (-3, 0, 5, 9, 12)]
    database = {
        "visit": [{"day": d, "age": a} for d in (*days, None) for a in (None, *range(0, 100, 1))]
    }
    assert evaluate(changed, database) == evaluate(plan, database)
    moved = [x for x in n.walk(changed) if isinstance(x, n.Clamp) and x.operand.type == INTEGER]
    assert bool(moved) == (low < 10 or high > 30)


def test_floats_are_moved_in_any_case():
    plan = counted(12.0, 20.0, first=10.0, last=30.0, kind=DOUBLE)
    assert [
        x
        for x in n.walk(without_proved(plan))
        if isinstance(x, n.Clamp) and x.operand.type == DOUBLE
    ]


def test_days_of_a_date_that_may_be_endless_are_counted_by_name():
    calls = [x for x in n.walk(without_proved(counted(10, 30))) if isinstance(x, n.Call)]
    assert [type(x.arguments[2]) for x in calls] == [n.Column]


def least(margins, present, function="lowest"):
    """The least of margins over columns, some of which conditions ask for."""
    scan = n.Scan("visit", "visit", (n.Field("visit.day", DATE), n.Field("visit.age", INTEGER)))
    kept = tuple(n.Not(n.IsNull(column(*c))) for c in present)
    rows = n.Filter(scan, n.And(kept)) if kept else scan
    parts = tuple(n.Named(f"u{i}", x) for i, x in enumerate(margins))
    found = n.Call(function, tuple(column(x.name) for x in parts))
    return n.Project(n.Project(rows, parts), (n.Named("u", found),))


AGE, DAY = ("visit.age", INTEGER), ("visit.day", DATE)
SINCE = (n.Literal("day", _TEXT), n.Literal(START, DATE))


def aged(factor=1.0):
    ends = (n.Literal(x, INTEGER) for x in (0, 9))
    return times(factor, n.Cast(n.Clamp(column(*AGE), *ends), DOUBLE))


def counted_days():
    ends = (n.Literal(START + datetime.timedelta(d), DATE) for d in (0, 9))
    return n.Cast(n.Call("date_diff", (*SINCE, n.Clamp(column(*DAY), *ends))), DOUBLE)


def endless_days():
    return n.Cast(n.Call("date_diff", (*SINCE, column(*DAY))), DOUBLE)


PICKED = {
    "two": ((aged(), counted_days()), True),
    "three": ((minus(times(2.0, aged()), 7.0), counted_days(), number(4.5)), True),
    "equal": ((aged(), aged(), call("abs", minus(aged(), 9.0))), True),
    "endless": ((aged(), endless_days()), False),
    "quotient": ((aged(), n.Arithmetic("/", aged(), counted_days())), False),
}


def visited():
    days = [START + datetime.timedelta(d) for d in range(-2, 12)]
    return {"visit": [{"day": d, "age": a} for d in (*days, None) for a in (None, *range(-2, 12))]}


def asked(plan):
    return [
        x for x in n.walk(plan) if isinstance(x, n.Call) and x.function in ("lowest", "highest")
    ]


@pytest.mark.parametrize(("margins", "short"), PICKED.values(), ids=PICKED)
@pytest.mark.parametrize("function", ["lowest", "highest"])
def test_of_numbers_that_are_all_there_the_last_is_not_compared(margins, short, function):
    """Brute force over all days and ages, empty ones among them."""
    plan = least(margins, (AGE, DAY), function)
    changed = without_proved(plan)
    assert bool(asked(changed)) != short
    assert evaluate(changed, visited()) == evaluate(plan, visited())


@pytest.mark.parametrize("present", [(), (AGE,), (DAY,)])
def test_a_number_that_may_be_empty_leaves_nothing(present, monkeypatch):
    """Planted: what is taken to be there and is not, before the last, is passed over."""
    margins = PICKED["two"][0]
    plan = least(margins[::-1] if AGE in present else margins, present)
    changed = without_proved(plan)
    assert asked(changed)
    assert evaluate(changed, visited()) == evaluate(plan, visited())
    monkeypatch.setattr(proved, "_is_there", lambda node, there: True)
    assert evaluate(without_proved(plan), visited()) != evaluate(plan, visited())
