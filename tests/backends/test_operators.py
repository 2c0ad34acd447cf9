"""The operators that no SQL text contains: every engine and `evaluate` agree on them too."""

from __future__ import annotations

import itertools
import math
from decimal import Decimal
from fractions import Fraction

import pytest
from engines import PROMPT, on_engines
from row_compare import difference

from secant.plan import nodes as n
from secant.plan.evaluate.evaluate import evaluate
from secant.plan.typing import fields_of
from secant.plan.verify import verify
from secant.schema import types as t

pytestmark = on_engines(engines=PROMPT)


def scan(small, table: str, alias: str) -> n.Scan:
    columns = small.catalog().tables[table].columns
    return n.Scan(table, alias, tuple(n.Field(f"{alias}.{c}", kind) for c, kind in columns))


def column(relation: n.Scan, name: str) -> n.Column:
    kinds = {field.name: field.type for field in relation.columns}
    return n.Column(f"{relation.alias}.{name}", kinds[f"{relation.alias}.{name}"])


def agree(there, small_rows, plan: n.Relation) -> int:
    verify(plan)
    by_hand = evaluate(plan, small_rows)
    assert difference(there.answer(plan), by_hand, ordered=False) is None
    return len(by_hand)


def everything(relation: n.Relation, source: n.Scan) -> n.Project:
    """Read all columns, so that all of them decide which rows come first."""
    short = len(source.alias) + 1
    return n.Project(
        relation,
        tuple(n.Named(f.name[short:], n.Column(f.name, f.type)) for f in source.columns),
    )


@pytest.mark.parametrize("limit", [0, 1, 2, 5])
@pytest.mark.parametrize(
    ("table", "owner", "order"),
    [
        ("visit", ("pid",), ("vid",)),
        ("visit", ("pid",), ()),
        ("visit", ("pid",), ("rating", "cost")),
        ("visit", ("note",), ("day",)),
        ("visit", ("pid", "day"), ("vid",)),
        ("visit", ("pid",), ("cost",)),
        ("person", ("city",), ("height",)),
        ("person", ("city",), ("age", "id")),
        ("person", ("height",), ("id",)),
        ("nothing", ("id",), ("label",)),
    ],
)
def test_truncate(small, small_rows, small_there, table, owner, order, limit):
    source = scan(small, table, "s")
    names = [tuple(f"s.{c}" for c in part) for part in (owner, order)]
    plan = n.Truncate(source, *names, limit)
    kept = agree(small_there, small_rows, everything(plan, source))
    assert kept <= limit * len(small_rows[table])
    counted = n.Aggregate(plan, (), (n.Aggregation("c", "count", None),))
    assert agree(small_there, small_rows, counted) == 1
    assert evaluate(counted, small_rows) == [(kept,)]
    by_owner = tuple(n.Named(f"k{i}", column(source, c)) for i, c in enumerate(owner))
    agree(
        small_there, small_rows, n.Aggregate(plan, by_owner, (n.Aggregation("c", "count", None),))
    )


@pytest.mark.parametrize("limit", [0, 1, 2, 5])
@pytest.mark.parametrize(
    ("table", "owner", "groups"),
    [
        ("visit", ("pid",), ("note",)),
        ("visit", ("pid",), ("cost", "rating")),
        ("visit", ("note",), ("rating",)),
        ("person", ("city",), ("height",)),
        ("person", ("city",), ("active", "age")),
        ("person", ("active", "city"), ("born",)),
        ("person", ("city", "active"), ("age",)),
        ("nothing", ("id",), ("label",)),
    ],
)
def test_truncate_groups(small, small_rows, small_there, table, owner, groups, limit):
    source = scan(small, table, "s")
    names = [tuple(f"s.{c}" for c in part) for part in (owner, groups)]
    plan = n.TruncateGroups(source, *names, limit)
    agree(small_there, small_rows, everything(plan, source))
    keys = tuple(n.Named(f"k{i}", column(source, c)) for i, c in enumerate(groups))
    agree(small_there, small_rows, n.Aggregate(plan, keys, (n.Aggregation("c", "count", None),)))


@pytest.mark.parametrize(
    ("name", "limits"),
    [("vid", (11, 13, 15)), ("pid", (1, 2, 3)), ("cost", tuple(map(Decimal, ("-1.50", "0.00", "20.25"))))],
)  # fmt: skip
def test_buckets(small, small_rows, small_there, name, limits):
    """Rows, and sums of rows, by how many numbers lie below them; a NULL lies above none."""
    source = scan(small, "visit", "s")
    value = column(source, name)
    keys = (n.Named("b", n.Bucket(value, limits)),)
    calls = (n.Aggregation("c", "count", None), n.Aggregation("x", "sum", value))
    assert agree(small_there, small_rows, n.Aggregate(source, keys, calls)) > 1
    summed = n.Aggregate(source, (n.Named("p", column(source, "pid")),), calls)
    total = n.Column("x", {f.name: f.type for f in fields_of(summed)}["x"])
    again = (n.Named("b", n.Bucket(total, limits)),)
    counts = (n.Aggregation("d", "count", None), n.Aggregation("y", "sum", total))
    agree(small_there, small_rows, n.Aggregate(summed, again, counts))


def test_truncation_below_joins_and_twice(small, small_rows, small_there):
    people, visits = scan(small, "person", "p"), scan(small, "visit", "v")
    few = n.Truncate(visits, ("v.pid",), ("v.vid",), 2)
    joined = n.Join(
        "inner", people, few, n.Compare("=", column(people, "id"), column(visits, "pid"))
    )
    again = n.Truncate(joined, ("p.city",), ("v.vid",), 2)
    plan = n.Project(
        again, (n.Named("a", column(people, "city")), n.Named("b", column(visits, "vid")))
    )
    # Two equal persons tie on every column that is read; they differ in none.
    assert agree(small_there, small_rows, plan) > 2
    both = n.Union(plan, plan, True, (n.Field("a", t.TEXT), n.Field("b", t.INTEGER)))
    assert agree(small_there, small_rows, both) > 4


def test_clamp(small, small_rows, small_there):
    people = scan(small, "person", "p")
    height, balance = column(people, "height"), column(people, "balance")
    born, age = column(people, "born"), column(people, "age")
    day = small_rows["person"][0][6]
    cases = [
        n.Clamp(height, n.Literal(0.0, t.DOUBLE), n.Literal(1.7, t.DOUBLE)),
        n.Clamp(height, n.Literal(0, t.INTEGER), n.Literal(1, t.INTEGER)),
        n.Clamp(balance, n.Literal(0, t.INTEGER), n.Literal(50, t.INTEGER)),
        n.Clamp(age, n.Literal(-1, t.INTEGER), n.Literal(40, t.INTEGER)),
        n.Clamp(born, n.Literal(day, t.DATE), n.Literal(day, t.DATE)),
        n.Clamp(
            n.Call("ln", (height,)), n.Literal(-1.0, t.DOUBLE), n.Literal(1.0, t.DOUBLE)
        ),
    ]  # fmt: skip
    for case in cases:
        assert agree(small_there, small_rows, n.Project(people, (n.Named("x", case),))) == 9


def test_whole_steps(small, small_rows, small_there):
    people = scan(small, "person", "p")
    height = n.Clamp(column(people, "height"), n.Literal(-9.0, t.DOUBLE), n.Literal(9.0, t.DOUBLE))
    for step in (Fraction(1, 1024), Fraction(1, 3), Fraction(4)):
        for ends in ((), (-2, 5)):
            plan = n.Project(people, (n.Named("x", n.Quantize(height, step, *ends)),))
            assert agree(small_there, small_rows, plan) == 9


def test_attempt(small, small_rows, small_there):
    people = scan(small, "person", "p")
    name, height, age = (column(people, c) for c in ("name", "height", "age"))
    big = n.Literal(2**62, t.INTEGER)
    cases = [
        n.Attempt(n.Cast(name, t.INTEGER)),
        n.Attempt(n.Cast(height, t.INTEGER)),
        n.Attempt(n.Arithmetic("*", age, big)),
        n.Attempt(n.Arithmetic("+", n.Call("abs", (age,)), big)),
        n.Attempt(n.Arithmetic("//", age, n.Literal(0, t.INTEGER))),
        n.Attempt(n.Cast(height, t.decimal(5, 2))),
        n.Attempt(n.Attempt(n.Cast(n.Call("left", (name, age)), t.DATE))),
    ]
    for case in cases:
        assert agree(small_there, small_rows, n.Project(people, (n.Named("x", case),))) == 9
    filtered = n.Filter(people, n.Compare(">", n.Attempt(n.Cast(height, t.INTEGER)), age))
    agree(small_there, small_rows, everything(filtered, people))


def test_values_and_same_value(small, small_rows, small_there):
    people = scan(small, "person", "p")
    groups = n.Values((n.Field("g.city", t.TEXT),), (("Riga",), (None,), ("Nowhere",)))
    same = n.SameValue(n.Column("g.city", t.TEXT), column(people, "city"))
    joined = n.Join("left", groups, people, same)
    plan = n.Aggregate(
        joined,
        (n.Named("k", n.Column("g.city", t.TEXT)),),
        (n.Aggregation("c", "count", column(people, "id")),),
    )
    assert agree(small_there, small_rows, plan) == 3
    kinds: list[tuple[t.Type, object]] = [
        (t.DOUBLE, math.nan), (t.DOUBLE, -math.inf), (t.DOUBLE, 0.1), (t.BOOLEAN, True),
        (t.TEXT, "it's\n\x01"), (t.TEXT, "it's\n\x01\\n%"), (t.INTEGER, -(2**63) + 1), (t.INTEGER, -(2**63)),
        (t.DATE, small_rows["person"][0][6]), (t.TIMESTAMP, small_rows["person"][0][8]),
        (t.decimal(20, 5), small_rows["person"][0][5]), (t.decimal(20, 5), Decimal("1.5")),
        (t.decimal(5, 0), Decimal(7)),
    ]  # fmt: skip
    for kind, value in kinds:
        constants = n.Values((n.Field("a", kind),), ((value,), (None,)))
        assert agree(small_there, small_rows, constants) == 2
        assert agree(small_there, small_rows, n.Values((n.Field("a", kind),), ())) == 0


@pytest.mark.parametrize("kind", ["inner", "left"])
def test_constants_on_either_side_of_a_join(small, small_rows, small_there, kind):
    people, visits = scan(small, "person", "p"), scan(small, "visit", "v")
    one = n.Named("q.one", n.Literal(1, t.INTEGER))
    left = n.Project(people, (n.Named("q.id", column(people, "id")), one))
    right = n.Project(
        visits, (n.Named("r.id", column(visits, "pid")), n.Named("r.two", n.Literal(2, t.INTEGER)))
    )
    sides = [(left, "q.id", "q.one"), (right, "r.id", "r.two")]
    for (a, a_id, a_one), (b, b_id, b_one) in itertools.permutations(sides):
        on = n.Compare("=", n.Column(a_id, t.INTEGER), n.Column(b_id, t.INTEGER))
        outputs = [n.Column(name, t.INTEGER) for name in (a_id, a_one, b_one)]
        items = tuple(n.Named(f"o{i}", c) for i, c in enumerate(outputs))
        assert agree(small_there, small_rows, n.Project(n.Join(kind, a, b, on), items)) > 3


def test_truncation_of_rows_that_a_sum_decides_about(small, small_there, small_rows):
    """Such rows are computed once: counted by one set of rows and cut by another, an owner could keep too many."""
    people = scan(small, "person", "p")
    total = n.Aggregation("g.total", "sum", column(people, "age"))
    keys = tuple(n.Named(f"g.{c}", column(people, c)) for c in ("id", "city"))
    grouped = n.Aggregate(people, keys, (total,))
    old = n.Filter(grouped, n.Compare(">", n.Column("g.total", t.INTEGER), n.Literal(1, t.INTEGER)))
    plan = n.Truncate(old, ("g.city",), ("g.id",), 1)
    shown = n.Project(plan, (n.Named("a", n.Column("g.id", t.INTEGER)),))
    assert agree(small_there, small_rows, shown) > 1
