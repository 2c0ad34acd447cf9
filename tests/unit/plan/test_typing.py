"""Types are DuckDB's where an engine decides them, and nonsense is refused."""

from __future__ import annotations

import itertools
from datetime import date
from decimal import Decimal
from fractions import Fraction

import duckdb
import pytest

from secant.plan import nodes as n
from secant.plan.functions.aggregates import QUANTILES
from secant.plan.functions.scalar import AGGREGATES
from secant.plan.typing import (
    EXTRACT_PARTS,
    RELATION_FIELDS,
    SCALAR_TYPES,
    Mistyped,
    arithmetic_type,
    fields_of,
    type_of,
)
from secant.schema import types as t

DEC, WIDE = t.decimal(15, 2), t.decimal(38, 4)
SAMPLES = {
    t.INTEGER: "7::INTEGER",
    DEC: "1.5::DECIMAL(15,2)",
    WIDE: "1.5::DECIMAL(38,4)",
    t.DOUBLE: "2.5::DOUBLE",
    t.TEXT: "x",
    t.BOOLEAN: "b",
    t.DATE: "DATE '2020-01-31'",
    t.TIMESTAMP: "TIMESTAMP '2020-01-31 12:00:00'",
    t.INTERVAL: "INTERVAL 1 MONTH",
}
OPERATORS = ["+", "-", "*", "/", "//", "%"]


def column(kind: t.Type, name: str = "t.x") -> n.Column:
    return n.Column(name, kind)


def literal(value: object, kind: t.Type) -> n.Literal:
    return n.Literal(value, kind)


ONE = literal(1, t.INTEGER)
TRUE = literal(True, t.BOOLEAN)
NULL = literal(None, t.NULL)


def read(shown: str) -> t.Type:
    """Give the type that DuckDB means."""
    if shown.startswith("DECIMAL"):
        precision, scale = shown[8:-1].split(",")
        return t.decimal(int(precision), int(scale))
    kinds = {"BIGINT": "INTEGER", "INTEGER": "INTEGER", "HUGEINT": "INTEGER", "VARCHAR": "TEXT"}
    kinds |= {"TINYINT": "INTEGER", '"NULL"': "NULL"}
    return t.Type(kinds.get(shown, shown))


def engine_type(duck: duckdb.DuckDBPyConnection, expression: str) -> t.Type | None:
    source = "(SELECT 'words' AS x, true AS b) AS s"
    try:
        found = duck.execute(f"SELECT typeof({expression}) FROM {source}").fetchone()
    except duckdb.Error:
        return None
    assert found is not None
    return read(found[0])


@pytest.mark.parametrize("op", OPERATORS)
def test_arithmetic_has_the_types_of_the_engine(duck, op):
    for left, right in itertools.product(SAMPLES, repeat=2):
        ours = arithmetic_type(op, left, right)
        theirs = engine_type(duck, f"({SAMPLES[left]}) {op} ({SAMPLES[right]})")
        if ours is None:
            # Refused on purpose: floats "divided without rest" keep one, and an interval
            # is not a number.
            on_purpose = (
                (op == "//" and left.numeric and right.numeric)
                or "INTERVAL" in (left.kind, right.kind)
                or theirs is None
            )
            assert on_purpose, (left, op, right, theirs)
        else:
            assert theirs is not None, (left, op, right, ours)
            assert (ours.kind, ours.scale) == (theirs.kind, theirs.scale), (left, op, right)
            assert ours.precision >= theirs.precision


def test_arithmetic_examples():
    assert arithmetic_type("/", t.INTEGER, t.INTEGER) == t.DOUBLE
    assert arithmetic_type("//", t.INTEGER, t.INTEGER) == t.INTEGER
    assert arithmetic_type("*", DEC, DEC) == t.decimal(30, 4)
    assert arithmetic_type("*", WIDE, DEC) == t.decimal(38, 6)
    assert arithmetic_type("*", t.decimal(38, 20), t.decimal(38, 20)) is None
    assert arithmetic_type("+", DEC, t.decimal(10, 4)) == t.decimal(18, 4)
    assert arithmetic_type("-", t.DATE, t.DATE) == t.INTEGER
    assert arithmetic_type("+", t.DATE, t.INTEGER) == t.DATE
    assert arithmetic_type("-", t.DATE, t.INTERVAL) == t.TIMESTAMP
    assert arithmetic_type("+", t.TEXT, t.INTEGER) is None
    assert arithmetic_type("^", t.INTEGER, t.INTEGER) is None
    assert arithmetic_type("+", t.NULL, t.INTEGER) == t.INTEGER


@pytest.mark.parametrize("name", sorted(set(AGGREGATES) - {"array_agg"}))  # which gives a list
def test_aggregates_have_the_types_of_the_engine(duck, name):
    for kind, sample in SAMPLES.items():
        ours = AGGREGATES[name].result(kind)
        which = ", 0.5" if name in QUANTILES else f", {sample}" if AGGREGATES[name].pairs else ""
        theirs = engine_type(duck, f"{name}({sample}{which})")
        if ours is not None:
            assert theirs == ours, (name, kind)


def test_every_node_has_a_type_or_fields():
    assert SCALAR_TYPES.covered() | RELATION_FIELDS.covered() == set(n.NODES)
    assert not SCALAR_TYPES.covered() & RELATION_FIELDS.covered()


def test_a_node_without_rule_has_no_type(monkeypatch):
    monkeypatch.delitem(SCALAR_TYPES._rules, n.IsNull)
    with pytest.raises(Mistyped):
        type_of(n.IsNull(ONE))


TEXT, NUMBER, DAY = column(t.TEXT), column(t.INTEGER), column(t.DATE)
TWO_COLUMNS = n.Values((n.Field("a", t.INTEGER), n.Field("b", t.INTEGER)), ())
NUMBERS = n.Values((n.Field("a", t.INTEGER),), ())


@pytest.mark.parametrize(
    ("scalar", "expected"),
    [
        (n.Negate(column(DEC)), DEC),
        (n.Compare("<", NUMBER, column(t.DOUBLE)), t.BOOLEAN),
        (n.SameValue(NULL, TEXT), t.BOOLEAN),
        (n.And((TRUE, n.Not(NULL))), t.BOOLEAN),
        (n.IsNull(DAY), t.BOOLEAN),
        (n.Like(TEXT, literal("%", t.TEXT)), t.BOOLEAN),
        (n.InList(NUMBER, (ONE, NULL, column(t.DOUBLE))), t.BOOLEAN),
        (n.Case((n.Branch(TRUE, ONE),), column(DEC)), t.decimal(21, 2)),
        (n.Case((n.Branch(TRUE, NULL),), TEXT), t.TEXT),
        (n.Cast(TEXT, t.DATE), t.DATE),
        (n.Call("round", (column(DEC), ONE)), t.decimal(15, 1)),
        (n.Call("round", (column(DEC), literal(9, t.INTEGER))), DEC),
        (n.Call("round", (column(DEC), literal(-2, t.INTEGER))), t.decimal(15, 0)),
        (n.Call("round", (column(t.DOUBLE), NUMBER)), t.DOUBLE),
        (n.Call("coalesce", (NULL, NUMBER, column(t.DOUBLE))), t.DOUBLE),
        (n.Call("date_trunc", (literal("month", t.TEXT), DAY)), t.TIMESTAMP),
        (n.Extract("year", DAY), t.INTEGER),
        (n.Extract("epoch", DAY), t.DOUBLE),
        (n.Attempt(n.Cast(TEXT, DEC)), DEC),
        (n.Clamp(column(DEC), ONE, literal(Decimal("9.5"), t.decimal(2, 1))), DEC),
        (n.Clamp(NUMBER, ONE, literal(9.5, t.DOUBLE)), t.DOUBLE),
        (n.Clamp(DAY, literal(date(2020, 1, 1), t.DATE), DAY), t.DATE),
        (n.Quantize(column(t.DOUBLE), Fraction(1, 4), 0, 9), t.INTEGER),
        (n.Quantize(column(DEC), Fraction(1, 4)), t.INTEGER),
        (n.ScalarSubquery(NUMBERS), t.INTEGER),
        (n.InSubquery(column(DEC), NUMBERS), t.BOOLEAN),
        (n.Exists(TWO_COLUMNS), t.BOOLEAN),
        (n.Outer("o.x", t.TEXT), t.TEXT),
    ],
)
def test_types_of_scalars(scalar, expected):
    assert type_of(scalar) == expected


@pytest.mark.parametrize(
    "scalar",
    [
        n.Arithmetic("+", TEXT, ONE),
        n.Arithmetic("//", column(t.DOUBLE), ONE),
        n.Negate(TEXT),
        n.Compare("=", DAY, ONE),
        n.Compare("=", TEXT, ONE),
        n.Compare("~", ONE, ONE),
        n.SameValue(TRUE, ONE),
        n.And((TRUE, ONE)),
        n.Or((TEXT, TRUE)),
        n.Not(NUMBER),
        n.Like(NUMBER, TEXT),
        n.InList(NUMBER, (ONE, TEXT)),
        n.Case((n.Branch(ONE, ONE),), ONE),
        n.Case((n.Branch(TRUE, ONE),), TEXT),
        n.Cast(NUMBER, t.DATE),
        n.Call("no_such_function", (ONE,)),
        n.Call("exp", (ONE, ONE)),
        n.Call("exp", (TEXT,)),
        n.Call("round", (column(DEC), NUMBER)),
        n.Call("round", (column(DEC), column(t.DOUBLE))),
        n.Call("date_trunc", (TEXT, DAY)),
        n.Call("date_trunc", (literal("fortnight", t.TEXT), DAY)),
        n.Call("concat_op", (TEXT, NUMBER)),
        n.Extract("year", NUMBER),
        n.Extract("fortnight", DAY),
        n.Clamp(TEXT, TEXT, TEXT),
        n.Quantize(TEXT, Fraction(1, 4), 0, 9),
        n.Clamp(DAY, ONE, ONE),
        n.ScalarSubquery(TWO_COLUMNS),
        n.InSubquery(TEXT, NUMBERS),
        n.InSubquery(NUMBER, TWO_COLUMNS),
    ],
)
def test_nonsense_is_mistyped_wherever_it_stands(scalar):
    with pytest.raises(Mistyped) as caught:
        type_of(scalar)
    assert isinstance(caught.value.node, n.Node)
    with pytest.raises(Mistyped):
        type_of(n.IsNull(n.Attempt(scalar)))


def test_messages_name_types_and_no_constants():
    with pytest.raises(Mistyped) as caught:
        type_of(n.Compare("=", literal("Smith", t.TEXT), literal(4711, t.INTEGER)))
    assert str(caught.value) == "TEXT cannot be compared with INTEGER"


@pytest.mark.parametrize(
    "aggregation",
    [
        n.Aggregation("a", "sum", TEXT),
        n.Aggregation("a", "avg", DAY),
        n.Aggregation("a", "sum", None),
        n.Aggregation("a", "count", None, distinct=True),
        n.Aggregation("a", "string_agg", TEXT),
    ],
)
def test_aggregates_of_nonsense(aggregation):
    with pytest.raises(Mistyped):
        fields_of(n.Aggregate(NUMBERS, (), (aggregation,)))


def test_fields_of_relations():
    left = n.Scan("t", "t", (n.Field("t.x", t.INTEGER), n.Field("t.d", DEC)))
    right = n.Scan("u", "u", (n.Field("u.y", t.TEXT),))
    join = n.Join("left", left, right, TRUE)
    assert [f.name for f in fields_of(join)] == ["t.x", "t.d", "u.y"]
    grouped = n.Aggregate(
        join,
        (n.Named("k", n.Column("u.y", t.TEXT)),),
        (
            n.Aggregation("s", "sum", n.Column("t.d", DEC)),
            n.Aggregation("c", "count", None),
            n.Aggregation("m", "avg", n.Column("t.x", t.INTEGER)),
        ),
    )
    expected = [("k", t.TEXT), ("s", t.decimal(38, 2)), ("c", t.INTEGER), ("m", t.DOUBLE)]
    for relation in (grouped, n.Distinct(grouped), n.Limit(grouped, 1, 0), n.Sort(grouped, ())):
        assert [(f.name, f.type) for f in fields_of(relation)] == expected
    union = n.Union(left, left, True, (n.Field("a", t.INTEGER), n.Field("b", DEC)))
    assert [f.name for f in fields_of(union)] == ["a", "b"]


def test_deep_plans_do_not_exhaust_the_stack():
    relation: n.Relation = n.Scan("t", "t0", (n.Field("t0.x", t.INTEGER),))
    for index in range(1, 2000):
        scan = n.Scan("t", f"t{index}", (n.Field(f"t{index}.x", t.INTEGER),))
        relation = n.Join("cross", relation, scan, None)
    assert len(fields_of(relation)) == 2000
    chain: n.Scalar = ONE
    for _ in range(5000):
        chain = n.Case((n.Branch(TRUE, ONE),), chain)
    assert type_of(chain) == t.INTEGER


def test_a_node_is_settled_once():
    inner = n.Project(NUMBERS, (n.Named("b", n.Negate(n.Column("a", t.INTEGER))),))
    assert fields_of(inner) is fields_of(inner)
    assert fields_of(n.Filter(inner, TRUE)) is fields_of(inner)


@pytest.mark.parametrize("part", EXTRACT_PARTS)
def test_parts_of_dates_have_the_types_of_the_engine(duck, part):
    theirs = engine_type(duck, f"extract({part} FROM DATE '2020-01-01')")
    assert type_of(n.Extract(part, DAY)) == theirs
