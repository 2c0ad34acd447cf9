"""Plans are shown as one reads them, and compared by what they say."""

from __future__ import annotations

import math
from datetime import date
from decimal import Decimal
from fractions import Fraction

import pytest

from secant.errors import Span
from secant.plan import nodes as n
from secant.plan.show import RELATION_TEXT, SCALAR_TEXT, same, show, show_scalar
from secant.schema import types as t

T = n.Scan("people", "t", (n.Field("t.id", t.INTEGER), n.Field("t.name", t.TEXT)))
U = n.Scan("u", "u", (n.Field("u.id", t.INTEGER),))
ID, NAME = n.Column("t.id", t.INTEGER), n.Column("t.name", t.TEXT)
ONE = n.Literal(1, t.INTEGER)
OF_T = n.Filter(U, n.Compare("=", n.Column("u.id", t.INTEGER), n.Outer("t.id", t.INTEGER)))


def test_a_whole_plan():
    grouped = n.Aggregate(
        n.Filter(
            n.Join("inner", T, U, n.Compare("=", ID, n.Column("u.id", t.INTEGER))), n.Exists(OF_T)
        ),
        (n.Named("k", NAME),),
        (n.Aggregation("c", "count", None), n.Aggregation("d", "sum", ID, True)),
    )
    plan = n.Limit(n.Sort(grouped, (n.SortKey(n.Column("c", t.INTEGER), True, False),)), 5, 2)
    assert show(plan) == "\n".join(
        [
            "Limit 5 after 2",
            "  Sort c DESC NULLS LAST",
            "    Aggregate c := count(*), d := sum(DISTINCT t.id) by k := t.name",
            "      Filter EXISTS (?)",
            "        ? Filter (u.id = ^t.id)",
            "          #1 Scan u",
            "        Join inner on (t.id = u.id)",
            "          Scan people AS t",
            "          #1 again",
        ]
    )


def test_a_shared_relation_is_written_once():
    sides = [n.Project(T, (n.Named(f"{q}.id", ID),)) for q in ("a", "b")]
    text = show(n.Join("cross", *sides, None))
    assert text.count("people") == 1
    assert text.splitlines()[-1] == "    #1 again"


@pytest.mark.parametrize(
    ("scalar", "text"),
    [
        (n.Arithmetic("+", ID, ONE), "(t.id + 1)"),
        (n.Negate(ID), "(- t.id)"),
        (n.SameValue(ID, n.Literal(None, t.NULL)), "(t.id IS NULL)"),
        (
            n.And((n.IsNull(ID), n.Or((n.Not(n.IsNull(ID)), n.Literal(True, t.BOOLEAN))))),
            "((t.id IS NULL) AND (NOT (t.id IS NULL) OR TRUE))",
        ),
        (n.Like(NAME, n.Literal("it's%", t.TEXT)), "(t.name LIKE 'it''s%')"),
        (n.InList(ID, (ONE, ONE)), "(t.id IN (1, 1))"),
        (
            n.Case((n.Branch(n.IsNull(ID), ONE),), n.Literal(Decimal("2.50"), t.decimal(3, 2))),
            "CASE WHEN (t.id IS NULL) THEN 1 ELSE 2.50 END",
        ),
        (n.Cast(ID, t.decimal(5, 2)), "CAST(t.id AS DECIMAL(5,2))"),
        (n.Call("round", (ID, ONE)), "round(t.id, 1)"),
        (
            n.Extract("year", n.Literal(date(2020, 1, 31), t.DATE)),
            "year(DATE '2020-01-31')",
        ),
        (n.Attempt(n.Clamp(ID, ONE, ONE)), "attempt(clamp(t.id, 1, 1))"),
        (n.Quantize(ID, Fraction(1, 4), -8, 9), "clamp(CAST((t.id * 4.0) AS INTEGER), -8, 9)"),
        (n.Literal((1, 2, 3), t.INTERVAL), "INTERVAL 1 months 2 days 3 us"),
        (n.InSubquery(n.ScalarSubquery(U), U), "((?) IN (?))"),
        (n.Named("t.id", ID), "t.id"),
    ],
)
def test_scalars(scalar, text):
    assert show_scalar(scalar) == text


@pytest.mark.parametrize(
    ("relation", "line"),
    [
        (n.Values((n.Field("a", t.INTEGER),), ((1,), (2,))), "Values (a) 2 rows"),
        (n.Released("answer", (n.Field("a", t.INTEGER),)), "Released answer (a)"),
        (n.Truncate(T, ("t.id",), ("t.name",), 3), "Truncate 3 rows of each t.id by t.name"),
        (
            n.TruncateGroups(T, ("t.id",), ("t.name",), 3),
            "TruncateGroups 3 groups (t.name) of each t.id",
        ),
        (n.Except(U, U, True, U.columns), "Except all (u.id)"),
        (n.Distinct(U), "Distinct"),
        (n.Limit(U, None, 0), "Limit all"),
        (n.Aggregate(U, (), (n.Aggregation("c", "count", None),)), "Aggregate c := count(*)"),
    ],
)
def test_relations(relation, line):
    assert show(relation).splitlines()[0] == line


def test_released_and_written_rows_are_not_shown():
    plan = n.Values((n.Field("a", t.TEXT),), (("Smith",),))
    assert "Smith" not in show(plan)


def test_every_node_is_shown():
    assert SCALAR_TEXT.covered() | RELATION_TEXT.covered() == set(n.NODES)


def test_same_ignores_places_and_identity():
    def plan(span: Span | None, op: str = "=", value: object = 1) -> n.Relation:
        right = n.Literal(value, t.INTEGER)
        scan = n.Scan("t", "t", (n.Field("t.id", t.INTEGER),), span)
        return n.Filter(scan, n.Compare(op, n.Column("t.id", t.INTEGER, span), right, span), span)

    assert same(plan(None), plan(Span(3, 9)))
    assert not same(plan(None), plan(None, "<"))
    assert not same(plan(None), plan(None, value=2))
    assert not same(plan(None), n.Distinct(plan(None)))


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        (1, 1.0, False),
        (1, True, False),
        (math.nan, math.nan, True),
        (Decimal("1.0"), Decimal("1.00"), False),
        (0.0, -0.0, False),
        ((1, 0, 0), (1, 0, 0), True),
        ((1, 0, 0), (1, 0), False),
        (None, 0, False),
    ],
)
def test_same_constants(left, right, expected):
    assert same(n.Literal(left, t.DOUBLE), n.Literal(right, t.DOUBLE)) is expected


def test_same_looks_at_lengths_and_types():
    assert not same(n.And((ID, ID)), n.And((ID,)))
    assert not same(n.Cast(ID, t.TEXT), n.Cast(ID, t.DATE))
    assert not same(n.Case((), ID), n.Negate(ID))
    two = n.Scan("t", "t", (n.Field("t.id", t.INTEGER), n.Field("t.b", t.INTEGER)))
    assert not same(two, n.Scan("t", "t", (n.Field("t.id", t.INTEGER), n.Field("t.c", t.INTEGER))))
    assert not same(ID, n.Aggregation("a", "count", None))


def test_same_is_quick_on_shared_nodes():
    def tower() -> n.Relation:
        relation: n.Relation = n.Values((n.Field("a", t.INTEGER),), ())
        for _ in range(60):  # two uses at each of 60 levels: 2^60 paths
            relation = n.Union(relation, relation, True, (n.Field("a", t.INTEGER),))
        return relation

    assert same(tower(), tower())
    assert len(show(tower()).splitlines()) == 121
