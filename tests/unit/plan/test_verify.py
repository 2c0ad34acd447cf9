"""`verify` accepts well-formed plans and finds each way in which a plan can be broken."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal

import pytest

from secant.errors import InternalError
from secant.plan import nodes as n
from secant.plan.verify import verify
from secant.records import by_identity
from secant.schema import types as t

INT, TXT = t.INTEGER, t.TEXT


def scan(alias: str, *columns: tuple[str, t.Type]) -> n.Scan:
    given = columns or (("id", INT), ("name", TXT))
    return n.Scan("t", alias, tuple(n.Field(f"{alias}.{name}", kind) for name, kind in given))


def col(name: str, kind: t.Type = INT) -> n.Column:
    return n.Column(name, kind)


def lit(value: object, kind: t.Type = INT) -> n.Literal:
    return n.Literal(value, kind)


def equal(left: n.Scalar, right: n.Scalar) -> n.Compare:
    return n.Compare("=", left, right)


T, U = scan("t"), scan("u")
TRUE = lit(True, t.BOOLEAN)
CORRELATED = n.Filter(U, equal(col("u.id"), n.Outer("t.id", INT)))
DEEP = n.Filter(scan("w"), n.Exists(n.Filter(scan("x"), equal(col("x.id"), n.Outer("t.id", INT)))))


@pytest.mark.parametrize(
    "plan",
    [
        T,
        n.Join("inner", T, U, equal(col("t.id"), col("u.id"))),
        n.Join("cross", T, U, None),
        n.Filter(T, n.Exists(CORRELATED)),
        n.Filter(T, n.Exists(DEEP)),
        n.Filter(T, n.InSubquery(col("t.id"), n.Project(CORRELATED, (n.Named("i", col("u.id")),)))),
        n.Filter(T, lit(None, t.NULL)),
        n.Aggregate(T, (n.Named("k", col("t.name", TXT)),), (n.Aggregation("c", "count", None),)),
        n.Sort(T, (n.SortKey(n.Call("lower", (col("t.name", TXT),)), True, False),)),
        n.Limit(T, None, 3),
        n.Truncate(T, ("t.id",), ("t.name",), 0),
        n.TruncateGroups(T, ("t.id",), ("t.name",), 2),
        n.Union(T, T, False, (n.Field("a", INT), n.Field("b", TXT))),
        n.Values((n.Field("a", t.DOUBLE),), ((1,), (None,), (float("nan"),))),
        n.Values((), ((),)),
        n.Released("r", (n.Field("a", INT),)),
        n.Project(T, (n.Named("c", n.Clamp(col("t.id"), lit(0), lit(9))),)),
    ],
)
def test_well_formed_plans(plan):
    verify(plan)


def test_a_node_used_twice_is_one_alias():
    left, right = (n.Project(T, (n.Named(f"{q}.id", col("t.id")),)) for q in ("a", "b"))
    verify(n.Join("inner", left, right, equal(col("a.id"), col("b.id"))))


BROKEN = {
    "no such column": n.Filter(T, equal(col("t.idd"), lit(1))),
    "column of the other side": n.Filter(T, equal(col("u.id"), lit(1))),
    "column hidden by a projection": n.Filter(
        n.Project(T, (n.Named("a", col("t.id")),)), equal(col("t.id"), lit(1))
    ),
    "wrong type of a column": n.Filter(T, equal(col("t.name"), lit(1))),
    "column of the query around": n.Filter(
        T, n.Exists(n.Filter(U, equal(col("u.id"), col("t.id"))))
    ),
    "outer column at the top": CORRELATED,
    "outer column of nobody": n.Filter(
        T, n.Exists(n.Filter(U, equal(col("u.id"), n.Outer("w.id", INT))))
    ),
    "wrong type of an outer column": n.Filter(
        T, n.Exists(n.Filter(U, equal(col("u.name", TXT), n.Outer("t.id", TXT))))
    ),
    "two columns of one name": n.Project(T, (n.Named("a", col("t.id")), n.Named("a", lit(1)))),
    "two sides of one name": n.Join(
        "cross", n.Project(T, (n.Named("a", lit(1)),)), n.Project(U, (n.Named("a", lit(1)),)), None
    ),
    "key and aggregate of one name": n.Aggregate(
        T, (n.Named("c", col("t.id")),), (n.Aggregation("c", "count", None),)
    ),
    "one alias for two scans": n.Union(
        scan("t"), scan("t"), True, (n.Field("a", INT), n.Field("b", TXT))
    ),
    "column without alias": n.Scan("t", "t", (n.Field("id", INT),)),
    "condition that is a number": n.Filter(T, col("t.id")),
    "join on a text": n.Join("inner", T, U, col("t.name", TXT)),
    "inner join without condition": n.Join("inner", T, U, None),
    "cross join with condition": n.Join("cross", T, U, TRUE),
    "unknown join": n.Join("outer", T, U, TRUE),
    "mistyped expression": n.Project(T, (n.Named("a", n.Negate(col("t.name", TXT))),)),
    "mistyped sort key": n.Sort(
        T, (n.SortKey(n.Call("exp", (col("t.name", TXT),)), False, False),)
    ),
    "mistyped subquery": n.Filter(T, n.Exists(n.Filter(U, n.Not(col("u.id"))))),
    "wrong number of arguments": n.Project(T, (n.Named("a", n.Call("nullif", (col("t.id"),))),)),
    "unknown aggregate": n.Aggregate(T, (), (n.Aggregation("a", "first", col("t.id")),)),
    "negative limit": n.Limit(T, -1, 0),
    "negative offset": n.Limit(T, 1, -1),
    "set operation of two widths": n.Union(
        T, n.Project(U, (n.Named("a", lit(1)),)), True, (n.Field("a", INT), n.Field("b", TXT))
    ),
    "set operation of strangers": n.Except(
        n.Project(T, (n.Named("a", col("t.id")),)),
        n.Project(U, (n.Named("b", col("u.name", TXT)),)),
        True,
        (n.Field("a", INT),),
    ),
    "set operation with another type": n.Intersect(
        n.Project(T, (n.Named("a", col("t.id")),)),
        n.Project(U, (n.Named("b", lit(1.5, t.DOUBLE)),)),
        True,
        (n.Field("a", INT),),
    ),
    "truncation by no column": n.Truncate(T, ("t.id",), ("t.age",), 1),
    "truncation of no owner": n.Truncate(T, (), ("t.id",), 1),
    "truncation of a strange owner": n.TruncateGroups(T, ("u.id",), ("t.id",), 1),
    "negative truncation": n.TruncateGroups(T, ("t.id",), ("t.name",), -1),
    "constant of another type": n.Project(T, (n.Named("a", lit("1")),)),
    "truth as a number": n.Project(T, (n.Named("a", lit(True)),)),
    "moment as a date": n.Project(
        T, (n.Named("a", lit(datetime.fromisoformat("2020-01-01"), t.DATE)),)
    ),
    "ragged constants": n.Values((n.Field("a", INT),), ((1, 2),)),
    "constants of another type": n.Values((n.Field("a", INT),), ((Decimal(1),),)),
    "aggregate as a projection": n.Project(T, (n.Aggregation("a", "count", None),)),  # type: ignore[arg-type]
    "relation as a condition": n.Filter(T, U),  # type: ignore[arg-type]
    "sort key in an expression": n.Project(
        T, (n.Named("a", n.Negate(n.SortKey(lit(1), False, False))),)  # type: ignore[arg-type]
    ),
}  # fmt: skip


@pytest.mark.parametrize("plan", BROKEN.values(), ids=BROKEN.keys())
def test_broken_plans(plan):
    with pytest.raises(InternalError) as caught:
        verify(plan)
    assert caught.value.code == "BUG-001"
    with pytest.raises(InternalError):
        verify(n.Limit(plan, 1, 0))


def test_a_class_outside_the_plan_is_refused():
    @by_identity
    class Shout(n.Scalar):
        operand: n.Scalar

    with pytest.raises(InternalError):
        verify(n.Project(T, (n.Named("a", Shout(lit(1))),)))


def test_no_message_shows_a_constant():
    for plan in (
        BROKEN["constants of another type"],
        n.Filter(T, equal(lit("Smith", TXT), lit(1))),
    ):
        with pytest.raises(InternalError) as caught:
            verify(plan)
        assert "Smith" not in caught.value.message
        assert "Decimal" not in caught.value.message


def test_a_wide_plan_of_a_hundred_joins():
    plan: n.Relation = scan("t0")
    for index in range(1, 101):
        condition = equal(col(f"t{index - 1}.id"), col(f"t{index}.id"))
        plan = n.Join("inner", plan, scan(f"t{index}"), condition)
    verify(plan)
    with pytest.raises(InternalError):
        verify(n.Filter(plan, equal(col("t101.id"), lit(1))))
