"""Conditions in the order in which they are quickly answered: the same rows pass."""

import datetime
import random
from decimal import Decimal

from secant.engines.optimize import order_predicates as module
from secant.engines.optimize.order_predicates import cheap_first
from secant.engines.postgres.scalars import POSTGRES
from secant.engines.print.print_sql import lower
from secant.plan import nodes as n
from secant.plan.evaluate.evaluate import evaluate
from secant.schema.types import DATE, INTEGER, TEXT, Type

CENTS = Type("DECIMAL", 15, 2)
START = datetime.date(2020, 1, 1)
SCAN = n.Scan(
    "sale",
    "sale",
    (
        n.Field("sale.day", DATE),
        n.Field("sale.price", CENTS),
        n.Field("sale.note", TEXT),
        n.Field("sale.pieces", INTEGER),
    ),
)
DAY, PRICE, NOTE, PIECES = (n.Column(f.name, f.type) for f in SCAN.columns)
PRICED = n.Not(n.IsNull(PRICE))
NAMED = n.Like(NOTE, n.Literal("%x%", TEXT), "")
LATE = n.Compare(">=", DAY, n.Literal(START, DATE))
FEW = n.Compare("<", PIECES, n.Literal(3, INTEGER))
CHEAP = n.Compare("<", PRICE, n.Literal(Decimal("5.00"), CENTS))


def conditions(plan):
    assert isinstance(plan, n.Filter)
    assert isinstance(plan.input, n.Scan)
    return n.conjuncts(plan.predicate)


def test_days_and_whole_numbers_come_before_decimals_and_texts():
    plan = n.Filter(n.Filter(SCAN, n.And((PRICED, NAMED))), n.And((LATE, CHEAP, FEW)))
    assert conditions(cheap_first(plan)) == (LATE, FEW, PRICED, NAMED, CHEAP)
    text = lower(plan, POSTGRES).partition(" WHERE ")[2]
    assert text.index("DATE '2020-01-01'") < text.index("'NaN'")


def test_what_is_in_order_stays_as_it_is():
    plan = n.Filter(n.Filter(SCAN, LATE), n.And((PRICED, NAMED)))
    assert cheap_first(plan) is plan


def sales(draw):
    def some(value):
        return None if draw.random() < 0.2 else value

    return {
        "sale": [
            {
                "day": some(START + datetime.timedelta(draw.randrange(-2, 3))),
                "price": some(Decimal(draw.randrange(300, 700)) / 100),
                "note": some(draw.choice(("x", "y", "axe"))),
                "pieces": some(draw.randrange(6)),
            }
            for _ in range(40)
        ]
    }


def differs(plan, draw):
    changed = cheap_first(plan)
    return any(evaluate(changed, d) != evaluate(plan, d) for d in (sales(draw) for _ in range(30)))


def test_the_same_rows_pass():
    draw, parts = random.Random(6), [PRICED, NAMED, LATE, FEW, CHEAP]
    for _ in range(20):
        draw.shuffle(parts)
        first, last = n.And(tuple(parts[:2])), n.And(tuple(parts[2:]))
        assert not differs(n.Filter(n.Filter(SCAN, first), last), draw)


def test_a_condition_that_gets_lost_is_seen(monkeypatch):
    plan = n.Filter(SCAN, n.And((PRICED, NAMED, LATE)))
    keep = [LATE, PRICED]
    monkeypatch.setattr(
        module, "sorted", lambda parts, key: [x for x in parts if x in keep], raising=False
    )
    assert differs(plan, random.Random(7))
