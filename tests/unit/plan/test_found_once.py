"""What several aggregates of a question rest on is found once, and is what each would have found."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from secant.plan import nodes as n
from secant.plan.facts.facts import Facts
from secant.plan.rewrites.null_on_error import _null_on_error, make_total
from secant.plan.rewrites.rewrite import normalize
from secant.plan.show import canonical, same, same_call
from secant.policy.policy import ColumnFacts, Policy, Protection, TableFacts
from secant.schema import types as t
from secant.schema.catalog import Catalog, Table, catalog
from secant.sql.bind import from_sql

CATALOG: Catalog = catalog(
    Table("people", (("id", t.INTEGER), ("town", t.TEXT))),
    Table("visits", (("id", t.INTEGER), ("person", t.INTEGER), ("place", t.INTEGER), ("cost", t.INTEGER))),
    Table("places", (("id", t.INTEGER), ("size", t.INTEGER)), ((("id",)),)),
)  # fmt: skip
PEOPLE = Protection(
    "people", "unit", Fraction(1), unit=("people", "id"), limits={"visits": 3, "people": 1}
)
POLICY = Policy(
    "",
    {
        "people": TableFacts(("id",)),
        "visits": TableFacts(("id",), {"person": ("people", "id")}),
        "places": TableFacts(("id",)),
    },
    (PEOPLE,),
    public=("places",),
)
TEXTS = (
    "SELECT sum(size) FROM visits JOIN places ON place = places.id",
    "SELECT town, sum(size) FROM people, visits, places WHERE person = people.id AND places.id = place GROUP BY 1",
    "SELECT count(*) FROM (SELECT person, max(size) AS m FROM visits, places WHERE place = places.id GROUP BY 1) x",
)  # fmt: skip


@pytest.mark.parametrize("text", TEXTS)
def test_neither_keys_nor_owners_read_ranges(text: str) -> None:
    ranged = {"size": ColumnFacts(range=(Fraction(0), Fraction(9)))}
    wide = replace(
        POLICY,
        tables={**POLICY.tables, "places": replace(POLICY.tables["places"], columns=ranged)},
    )
    facts, alone = Facts(POLICY, CATALOG), Facts(wide, CATALOG)
    plan = normalize(from_sql(text, CATALOG))
    relations = [x for x in n.walk(plan) if isinstance(x, n.Relation)]
    for relation in relations:  # what was found before the ranges came is kept
        facts.owners(PEOPLE).of(relation)
    later = facts.with_ranges(wide)
    assert later.policy is wide
    for table in CATALOG.tables:
        assert later.keys(table) == alone.keys(table)
    for relation in relations:
        assert later.owners(PEOPLE).of(relation) == alone.owners(PEOPLE).of(relation)


def test_rows_are_made_total_once_and_stay_the_same_rows() -> None:
    text = "SELECT person, cost / size AS q FROM visits JOIN places ON place = places.id"
    plan = normalize(from_sql(text, CATALOG))
    made = make_total(plan)
    assert make_total(plan) is made
    assert canonical(made) == canonical(_null_on_error(plan))


def test_rows_that_are_total_do_not_hold_themselves() -> None:
    plan = normalize(from_sql("SELECT town FROM people", CATALOG))
    total = make_total(plan)
    assert make_total(total) is total
    assert total._total is None  # else it would not be let go when the question ends


def call(**other: object) -> n.Aggregation:
    parts = {
        "name": "a",
        "function": "sum",
        "argument": n.Column("x", t.INTEGER),
        "distinct": False,
    }
    return n.Aggregation(**{**parts, **other})  # type: ignore[arg-type]


def test_calls_are_the_same_whatever_they_are_called() -> None:
    assert same_call(call(), call(name="b"))
    assert not same(call(), call(name="b"))
    for other in (
        {"function": "min"},
        {"distinct": True},
        {"argument": n.Column("y", t.INTEGER)},
        {"argument": n.Column("x", t.DOUBLE)},
        {"argument": None},
        {"second": n.Column("x", t.INTEGER)},
        {"fraction": Fraction(1, 2)},
    ):
        assert not same_call(call(), call(**other)), other
