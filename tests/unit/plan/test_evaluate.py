"""`evaluate` means what SQL means: hand-built plans, held against DuckDB on hand-written SQL."""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction

import duckdb
import pytest

from secant.errors import InternalError
from secant.plan import nodes as n
from secant.plan.evaluate.evaluate import RELATIONS, evaluate, prepare
from secant.plan.evaluate.scalars import SCALARS
from secant.plan.evaluate.values import Failure
from secant.plan.typing import type_of
from secant.plan.verify import verify
from secant.schema import types as t

NAN, INF = math.nan, math.inf
DEC = t.decimal(10, 2)
INT, DBL, TXT, BOOL = t.INTEGER, t.DOUBLE, t.TEXT, t.BOOLEAN

ROWS = {
    "t": [
        (1, "a", 1.5, Decimal("1.50"), date(2020, 1, 31), True),
        (2, "b", NAN, Decimal("-2.25"), date(2020, 2, 29), False),
        (2, "b", NAN, Decimal("-2.25"), date(2020, 2, 29), False),
        (3, None, INF, None, None, None),
        (None, "a", None, Decimal("0.10"), date(1999, 12, 31), True),
        (4, "a%", -0.5, Decimal("100.00"), date(2020, 1, 31), None),
    ],
    "u": [(1, "a"), (2, "b"), (2, "c"), (None, "d"), (7, None)],
    "empty": [],
}
TYPES = {
    "t": {"id": INT, "name": TXT, "x": DBL, "d": DEC, "day": t.DATE, "ok": BOOL},
    "u": {"id": INT, "tag": TXT},
    "empty": {"id": INT, "tag": TXT},
}
SQL_TYPES = {INT: "BIGINT", DBL: "DOUBLE", TXT: "VARCHAR", BOOL: "BOOLEAN", t.DATE: "DATE"}


@pytest.fixture(scope="module")
def tables(duck: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    for name, columns in TYPES.items():
        shown = ", ".join(f"{c} {SQL_TYPES.get(k, str(k))}" for c, k in columns.items())
        duck.execute(f"CREATE OR REPLACE TABLE {name} ({shown})")
        for row in ROWS[name]:
            duck.execute(f"INSERT INTO {name} VALUES ({', '.join('?' * len(row))})", row)
    return duck


def scan(table: str, alias: str | None = None) -> n.Scan:
    alias = alias or table
    return n.Scan(table, alias, tuple(n.Field(f"{alias}.{c}", k) for c, k in TYPES[table].items()))


def col(name: str) -> n.Column:
    alias, column = name.split(".")
    table = alias if alias in TYPES else alias[0]
    return n.Column(name, TYPES[table][column])


def outer(name: str) -> n.Outer:
    return n.Outer(name, col(name).type)


def lit(value: object, kind: t.Type | None = None) -> n.Literal:
    kinds = {int: INT, float: DBL, str: TXT, bool: BOOL, date: t.DATE, type(None): t.NULL}
    return n.Literal(value, kind or kinds[type(value)])


def cmp(op: str, left: n.Scalar, right: n.Scalar) -> n.Compare:
    return n.Compare(op, left, right)


def pick(relation: n.Relation, *names: str) -> n.Project:
    return n.Project(relation, tuple(n.Named(f"o.{i}", col(c)) for i, c in enumerate(names)))


def count_of(argument: n.Scalar | None = None, name: str = "c", distinct: bool = False):
    return n.Aggregation(name, "count", argument, distinct)


def key(row) -> tuple[str, ...]:
    """Write values so that NaN is itself and 1, 1.0 and True are not the same."""
    return tuple(f"{value:.12g}f" if isinstance(value, float) else repr(value) for value in row)


T, U = scan("t"), scan("u")
SAME_ID = cmp("=", col("t.id"), col("u.id"))
LESS_ID = cmp("<", col("t.id"), col("u.id"))
U_OF_T = n.Filter(U, cmp("=", col("u.id"), outer("t.id")))
U_TAGS = n.Project(n.Filter(U, cmp(">", col("u.id"), outer("t.id"))), (n.Named("g", col("u.tag")),))
COUNT_U = n.Aggregate(U_OF_T, (), (count_of(),))
BOTH = (n.Field("a", INT), n.Field("b", TXT))
NESTED = n.Filter(
    scan("u", "u1"),
    n.And(
        (
            cmp("=", n.Column("u1.id", INT), outer("t.id")),
            n.Exists(
                n.Filter(
                    scan("u", "u2"),
                    n.And(
                        (
                            cmp("<>", n.Column("u2.tag", TXT), n.Outer("u1.tag", TXT)),
                            cmp("=", n.Column("u2.id", INT), outer("t.id")),
                        )
                    ),
                )
            ),
        )
    ),
)

PAIRS = [
    (T, "SELECT * FROM t"),
    (n.Filter(T, cmp(">", col("t.x"), lit(1.0))), "SELECT * FROM t WHERE x > 1.0"),
    (n.Filter(T, lit(None)), "SELECT * FROM t WHERE NULL"),
    (n.Filter(T, col("t.ok")), "SELECT * FROM t WHERE ok"),
    (n.Filter(T, n.Not(col("t.ok"))), "SELECT * FROM t WHERE NOT ok"),
    (n.Join("cross", T, U, None), "SELECT * FROM t, u"),
    (n.Join("inner", T, U, SAME_ID), "SELECT * FROM t JOIN u ON t.id = u.id"),
    (n.Join("inner", U, T, LESS_ID), "SELECT u.*, t.* FROM u JOIN t ON t.id < u.id"),
    (n.Join("left", T, U, SAME_ID), "SELECT * FROM t LEFT JOIN u ON t.id = u.id"),
    (n.Join("left", T, scan("empty"), lit(True)), "SELECT * FROM t LEFT JOIN empty ON true"),
    (
        n.Join("left", T, U, n.And((SAME_ID, cmp("<>", col("u.tag"), lit("c"))))),
        "SELECT * FROM t LEFT JOIN u ON t.id = u.id AND u.tag <> 'c'",
    ),
    (
        n.Join("left", T, U, n.And((SAME_ID, cmp("=", col("t.name"), lit("a"))))),
        "SELECT * FROM t LEFT JOIN u ON t.id = u.id AND t.name = 'a'",
    ),
    (n.Join("left", T, U, cmp("=", lit(1), lit(2))), "SELECT * FROM t LEFT JOIN u ON 1 = 2"),
    (
        n.Join("inner", T, U, n.SameValue(col("t.id"), col("u.id"))),
        "SELECT * FROM t JOIN u ON t.id IS NOT DISTINCT FROM u.id",
    ),
    (
        n.Join("inner", T, scan("t", "t2"), cmp("=", col("t.x"), n.Column("t2.x", DBL))),
        "SELECT * FROM t JOIN t AS t2 ON t.x = t2.x",
    ),
    (
        n.Filter(n.Join("cross", U, T, None), n.And((SAME_ID, LESS_ID, lit(True)))),
        "SELECT * FROM u, t WHERE t.id = u.id AND t.id < u.id",
    ),
    (n.Filter(T, n.Exists(U_OF_T)), "SELECT * FROM t WHERE EXISTS (FROM u WHERE u.id = t.id)"),
    (
        n.Filter(T, n.Exists(n.Filter(U, cmp("=", n.Arithmetic("+", col("u.id"), outer("t.id")), lit(3))))),
        "SELECT * FROM t WHERE EXISTS (FROM u WHERE u.id + t.id = 3)",
    ),
    (
        n.Filter(T, n.Exists(NESTED)),
        """SELECT * FROM t WHERE EXISTS (SELECT 1 FROM u AS u1 WHERE u1.id = t.id AND EXISTS
           (SELECT 1 FROM u AS u2 WHERE u2.tag <> u1.tag AND u2.id = t.id))""",
    ),
    (
        n.Project(T, (n.Named("in", n.InSubquery(col("t.name"), U_TAGS)),)),
        "SELECT name IN (SELECT tag FROM u WHERE u.id > t.id) FROM t",
    ),
    (
        n.Filter(T, n.Not(n.InSubquery(col("t.id"), pick(U, "u.id")))),
        "SELECT * FROM t WHERE id NOT IN (SELECT id FROM u)",
    ),
    (
        n.Filter(T, n.Not(n.InSubquery(col("t.d"), pick(scan("empty"), "empty.id")))),
        "SELECT * FROM t WHERE d NOT IN (SELECT id FROM empty)",
    ),
    (
        n.Project(T, (n.Named("c", n.ScalarSubquery(COUNT_U)),)),
        "SELECT (SELECT count(*) FROM u WHERE u.id = t.id) FROM t",
    ),
    (
        n.Project(U, (n.Named("none", n.ScalarSubquery(pick(scan("empty"), "empty.tag"))),)),
        "SELECT (SELECT tag FROM empty) FROM u",
    ),
    (n.Distinct(pick(T, "t.x", "t.d")), "SELECT DISTINCT x, d FROM t"),
    (
        n.Aggregate(
            T,
            (n.Named("k", col("t.name")),),
            (
                count_of(),
                count_of(col("t.d"), "n"),
                count_of(col("t.d"), "dn", distinct=True),
                n.Aggregation("s", "sum", col("t.d")),
                n.Aggregation("ds", "sum", col("t.d"), True),
                n.Aggregation("lo", "min", col("t.x")),
                n.Aggregation("hi", "max", col("t.x")),
                n.Aggregation("mean", "avg", col("t.d")),
                n.Aggregation("var", "var_samp", col("t.d")),
                n.Aggregation("si", "sum", col("t.id")),
            ),
        ),
        """SELECT name, count(*), count(d), count(DISTINCT d), sum(d), sum(DISTINCT d), min(x),
           max(x), avg(d), var_samp(d), sum(id)::BIGINT FROM t GROUP BY name""",
    ),
    (
        n.Aggregate(T, (n.Named("x", col("t.x")), n.Named("d", col("t.day"))), (count_of(),)),
        "SELECT x, day, count(*) FROM t GROUP BY x, day",
    ),
    (
        n.Aggregate(scan("empty"), (), (count_of(), n.Aggregation("s", "sum", col("empty.id")))),
        "SELECT count(*), sum(id)::BIGINT FROM empty",
    ),
    (
        n.Aggregate(scan("empty"), (n.Named("k", col("empty.tag")),), (count_of(),)),
        "SELECT tag, count(*) FROM empty GROUP BY tag",
    ),
    (
        n.Aggregate(T, (n.Named("k", lit(1)),), ()),
        "SELECT k FROM (SELECT 1::BIGINT AS k FROM t) GROUP BY k",
    ),
    *(
        (kind(pick(T, "t.id", "t.name"), U, every, BOTH), f"SELECT id, name FROM t {word} FROM u")
        for kind, word, every in (
            (n.Union, "UNION", False),
            (n.Union, "UNION ALL", True),
            (n.Intersect, "INTERSECT", False),
            (n.Intersect, "INTERSECT ALL", True),
            (n.Except, "EXCEPT", False),
            (n.Except, "EXCEPT ALL", True),
        )
    ),
    (
        n.Union(pick(T, "t.id"), pick(T, "t.d"), True, (n.Field("a", t.decimal(21, 2)),)),
        "SELECT id FROM t UNION ALL SELECT d FROM t",
    ),
    (
        n.Values((n.Field("a", DBL), n.Field("b", TXT)), ((1, "x"), (None, None))),
        "SELECT * FROM (VALUES (1.0::DOUBLE, 'x'), (NULL, NULL))",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("plan", "sql"), PAIRS, ids=lambda x: x if isinstance(x, str) else "")
def test_plans_mean_what_their_sql_means(tables, plan, sql):
    verify(plan)
    want, got = tables.execute(sql).fetchall(), evaluate(plan, ROWS)
    assert Counter(map(key, got)) == Counter(map(key, want))


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("nulls_first", [False, True])
@pytest.mark.parametrize("column", ["id", "name", "x", "d", "day", "ok"])
def test_order_of_rows(tables, column, descending, nulls_first):
    keys = (
        n.SortKey(col(f"t.{column}"), descending, nulls_first),
        n.SortKey(col("t.id"), True, False),
    )
    words = f"{'DESC' if descending else 'ASC'} NULLS {'FIRST' if nulls_first else 'LAST'}"
    sql = f"SELECT * FROM t ORDER BY {column} {words}, id DESC NULLS LAST"
    want = list(map(key, tables.execute(sql).fetchall()))
    assert list(map(key, evaluate(n.Sort(T, keys), ROWS))) == want
    cut = n.Limit(n.Sort(T, keys), 2, 1)
    assert list(map(key, evaluate(cut, ROWS))) == want[1:3]
    assert list(map(key, evaluate(n.Limit(n.Sort(T, keys), None, 4), ROWS))) == want[4:]


def test_sorting_keeps_the_order_of_equal_rows():
    plan = n.Sort(U, (n.SortKey(lit(1), True, False),))
    assert evaluate(plan, ROWS) == ROWS["u"]


# ── scalars against DuckDB ───────────────────────────────────────────────────────────────────────

TRUTH = [True, False, None]
POOLS = {
    INT: [None, 0, 1, -7, 3, 2**40],
    DEC: [None, Decimal("0.00"), Decimal("1.50"), Decimal("-2.25"), Decimal("7.00")],
    DBL: [None, 0.0, -0.0, 1.5, -2.25, NAN, INF, -INF],
    t.DATE: [None, date(2020, 1, 31), date(2020, 3, 31), date(1969, 12, 31)],
    t.TIMESTAMP: [None, *map(datetime.fromisoformat, ["2020-01-31 12:30:00", "2019-02-28"])],
    TXT: [None, "", "a", "B", "ab", "é", "%"],
    BOOL: TRUTH,
}


def value_of(scalar: n.Scalar):
    ((value,),) = evaluate(n.Project(n.Values((), ((),)), (n.Named("v", scalar),)), {})
    return value


def written(kind: t.Type) -> str:
    return "CAST(? AS " + {**SQL_TYPES, t.TIMESTAMP: "TIMESTAMP"}.get(kind, str(kind)) + ")"


def agree(duck, template: str, kinds, build) -> int:
    tried = 0
    for values in itertools.product(*(POOLS[kind] for kind in kinds)):
        sql = "SELECT " + template.format(*map(written, kinds))
        try:
            (want,) = duck.execute(sql, list(values)).fetchone()
        except duckdb.OutOfRangeException:
            want = "out of range"
        scalar = build(*(n.Literal(v, k) for v, k in zip(values, kinds, strict=True)))
        try:
            got = value_of(scalar)
        except Failure:
            got = "out of range"
        assert key([got]) == key([want]), (template, values)
        assert type_of(scalar).kind != "NULL"
        tried += 1
    return tried


NUMERIC_PAIRS = list(itertools.product([INT, DEC, DBL], repeat=2))


@pytest.mark.parametrize("op", ["+", "-", "*", "/", "%"])
def test_arithmetic(duck, op):
    for kinds in NUMERIC_PAIRS:
        # The engine types a remainder of mixed numbers wider; its digits are the same.
        assert agree(duck, f"{{}} {op} {{}}", kinds, lambda a, b: n.Arithmetic(op, a, b)) >= 20


def test_whole_division(duck):
    agree(duck, "{} // {}", [INT, INT], lambda a, b: n.Arithmetic("//", a, b))


@pytest.mark.parametrize("kind", [INT, DEC, DBL])
def test_negation(duck, kind):
    agree(duck, "-{}", [kind], n.Negate)


@pytest.mark.parametrize("op", ["=", "<>", "<", "<=", ">", ">="])
def test_comparison(duck, op):
    kinds = [*NUMERIC_PAIRS, (TXT, TXT), (BOOL, BOOL), (t.DATE, t.DATE), (t.DATE, t.TIMESTAMP)]
    for pair in kinds:
        agree(duck, f"{{}} {op} {{}}", pair, lambda a, b: n.Compare(op, a, b))


def test_same_value(duck):
    for kinds in [*NUMERIC_PAIRS, (TXT, TXT), (t.TIMESTAMP, t.DATE)]:
        agree(duck, "{} IS NOT DISTINCT FROM {}", kinds, n.SameValue)


def test_three_valued_logic(duck):
    agree(duck, "{} AND {} AND {}", [BOOL] * 3, lambda *parts: n.And(parts))
    agree(duck, "{} OR {} OR {}", [BOOL] * 3, lambda *parts: n.Or(parts))
    agree(duck, "NOT {}", [BOOL], n.Not)
    agree(duck, "{} IS NULL", [BOOL], n.IsNull)


def test_membership(duck):
    for kinds in ([INT] * 4, [DBL, DBL, DBL], [INT, DEC, DBL], [TXT, TXT, TXT]):
        items = ", ".join(["{}"] * (len(kinds) - 1))
        agree(duck, f"{{}} IN ({items})", kinds, lambda a, *rest: n.InList(a, rest))


@pytest.mark.parametrize(
    "pattern", ["%", "", "a%", "%b", "_", "__", "a_c%", "%a%b%", "\\%", ".*", "[ab]", "é", "%\n%"]
)
def test_like(duck, pattern):
    for text in [
        "",
        "a",
        "ab",
        "abc",
        "a\nc",
        "é",
        "\\x",
        "%",
        ".*",
        "[ab]",
        "xaxbx",
        "👍🏽",
        None,
    ]:
        (want,) = duck.execute("SELECT ?::VARCHAR LIKE ?", [text, pattern]).fetchone()
        assert value_of(n.Like(n.Literal(text, TXT), n.Literal(pattern, TXT))) is want


def test_dates_and_intervals(duck):
    months, days, hours = (1, 0, 0), (0, -40, 0), (0, 1, 7_200_000_000)
    for interval, shown in (
        (months, "INTERVAL 1 MONTH"),
        (days, "INTERVAL (-40) DAY"),
        (hours, "INTERVAL '1 day 2 hours'"),
    ):
        for kind in (t.DATE, t.TIMESTAMP):
            for op in ("+", "-"):
                late = n.Literal(interval, t.INTERVAL)
                agree(
                    duck,
                    f"{{}} {op} {shown}",
                    [kind],
                    lambda a, op=op, late=late: n.Arithmetic(op, a, late),
                )
            agree(duck, f"{shown} + {{}}", [kind], lambda a, late=late: n.Arithmetic("+", late, a))
    agree(duck, "{} - {}", [t.DATE, t.DATE], lambda a, b: n.Arithmetic("-", a, b))
    for shift in (0, 5, -400):
        number = n.Literal(shift, INT)
        agree(duck, f"{{}} + ({shift})", [t.DATE], lambda a, x=number: n.Arithmetic("+", a, x))
        agree(duck, f"({shift}) + {{}}", [t.DATE], lambda a, x=number: n.Arithmetic("+", x, a))
        agree(duck, f"{{}} - ({shift})", [t.DATE], lambda a, x=number: n.Arithmetic("-", a, x))


def test_intervals():
    def interval(*parts: int) -> n.Literal:
        return n.Literal(parts, t.INTERVAL)

    moments = [
        n.Literal(datetime.fromisoformat(x), t.TIMESTAMP)
        for x in ("2020-03-01 01:00", "2020-02-28 02:00")
    ]
    assert value_of(n.Arithmetic("-", *moments)) == (0, 1, 23 * 3_600_000_000)
    assert value_of(n.Arithmetic("-", *reversed(moments))) == (0, -1, -23 * 3_600_000_000)
    assert value_of(n.Arithmetic("+", interval(1, 2, 3), interval(1, 0, -1))) == (2, 2, 2)
    assert value_of(n.Arithmetic("-", interval(1, 2, 3), interval(1, 0, -1))) == (0, 2, 4)
    assert value_of(n.Arithmetic("*", interval(1, 2, 3), lit(2))) == (2, 4, 6)
    assert value_of(n.Arithmetic("*", lit(-1), interval(1, 2, 3))) == (-1, -2, -3)
    assert value_of(n.Negate(interval(1, 2, 3))) == (-1, -2, -3)
    assert value_of(cmp("=", interval(1, 0, 0), interval(0, 30, 0))) is True
    assert value_of(cmp("<", interval(0, 1, 0), interval(0, 0, 90_000_000_000))) is True


@pytest.mark.parametrize(
    "part", ["year", "quarter", "month", "day", "dow", "doy", "hour", "minute", "second", "epoch"]
)
def test_parts_of_dates(duck, part):
    for kind in (t.DATE, t.TIMESTAMP):
        agree(duck, f"extract({part} FROM {{}})", [kind], lambda a: n.Extract(part, a))


def test_case_takes_the_first_true_branch(duck):
    agree(
        duck,
        "CASE WHEN {} THEN 1 WHEN {} THEN 2.5 ELSE {} END::DOUBLE",
        [BOOL, BOOL, DBL],
        lambda a, b, c: n.Case((n.Branch(a, lit(1)), n.Branch(b, lit(2.5))), c),
    )
    assert value_of(n.Case((n.Branch(lit(True), lit(1)),), lit(2.5))) == 1.0
    broken = n.Cast(lit("x"), INT)
    assert value_of(n.Case((n.Branch(lit(True), lit(1)),), broken)) == 1


def test_calls_pass_nulls_on_unless_the_function_takes_them():
    half = n.Arithmetic("/", col("t.id"), lit(2))
    for call, expected in (
        (n.Call("exp", (n.Literal(None, DBL),)), None),
        (n.Call("round", (half, lit(0))), [1.0, 1.0, 1.0, 2.0, None, 2.0]),
        (n.Call("coalesce", (col("t.id"), lit(0.5))), [1.0, 2.0, 2.0, 3.0, 0.5, 4.0]),
        (
            n.Call("least", (col("t.d"), col("t.id"))),
            ["1.00", "-2.25", "-2.25", "3.00", "0.10", "4.00"],
        ),
    ):
        values = [value for (value,) in evaluate(n.Project(T, (n.Named("v", call),)), ROWS)]
        if expected is None:
            assert values == [None] * 6
        else:
            assert [str(x) if isinstance(x, Decimal) else x for x in values] == expected


def test_time_that_leaves_the_calendar_fails():
    last, first = lit(date.max), lit(date.min)
    week = n.Literal("week", TXT)
    for scalar in (
        n.Arithmetic("+", last, lit(1)),
        n.Arithmetic("-", first, n.Literal((1, 0, 0), t.INTERVAL)),
        n.Arithmetic("+", last, n.Literal((0, 1, 0), t.INTERVAL)),
    ):
        assert value_of(n.Attempt(scalar)) is None
    assert value_of(n.Call("date_trunc", (week, first))).date() == date.min


# ── what only Secant has ─────────────────────────────────────────────────────────────────────────


def test_attempt_turns_failure_into_null_and_nothing_else():
    cast = n.Cast(lit("twelve"), INT)
    with pytest.raises(Failure):
        value_of(cast)
    assert value_of(n.Attempt(cast)) is None
    assert value_of(n.Attempt(n.Cast(lit("12"), INT))) == 12
    big = n.Arithmetic("*", lit(2**62), lit(2))
    with pytest.raises(Failure):
        value_of(big)
    assert value_of(n.Attempt(big)) is None
    wide = n.Literal(Decimal(9) * 10**36, t.decimal(38, 0))
    with pytest.raises(Failure):
        value_of(n.Arithmetic("*", wide, wide))


def test_a_scalar_subquery_with_two_rows_fails():
    plan = n.Project(T, (n.Named("v", n.ScalarSubquery(pick(U, "u.tag"))),))
    with pytest.raises(Failure):
        evaluate(plan, ROWS)


def test_clamp():
    def clamped(value: object, kind: t.Type = DBL):
        return value_of(n.Clamp(n.Literal(value, kind), n.Literal(0, kind), n.Literal(5, kind)))

    assert [clamped(x) for x in (-1.0, 0.0, 2.5, 9.0, INF, -INF)] == [0.0, 0.0, 2.5, 5.0, 5.0, 0.0]
    assert clamped(NAN) == 5.0
    assert clamped(None) is None
    assert clamped(Decimal("7.25"), DEC) == Decimal("5.00")
    assert clamped(3, INT) == 3


def test_whole_steps():
    def steps(value: object, *ends: int):
        return value_of(n.Quantize(n.Literal(value, DBL), Fraction(1, 4), *ends))

    assert [steps(x) for x in (-1.0, 0.1, 0.13, 2.5, None)] == [-4, 0, 1, 10, None]
    assert [steps(x, -3, 8) for x in (-1.0, 0.13, 2.5, None)] == [-3, 1, 8, None]


ORDERS = (n.Field("o.who", INT), n.Field("o.day", INT), n.Field("o.kind", TXT))
OWNED = [
    (1, 3, "c"), (1, 1, "b"), (1, 1, "a"), (1, None, "a"), (2, 5, None), (2, 5, "z"),
    (None, 1, "a"), (3, 1, "a"), (3, 1, "a"), (3, 1, "a"),
]  # fmt: skip


def owned(node: n.Relation):
    return sorted(map(key, evaluate(node, {"o": OWNED})))


def test_truncate_keeps_the_first_rows_of_each_owner():
    source = n.Scan("o", "o", ORDERS)
    kept = owned(n.Truncate(source, ("o.who",), ("o.day",), 2))
    expected = [(1, 1, "a"), (1, 1, "b"), (2, 5, "z"), (2, 5, None), (3, 1, "a"), (3, 1, "a")]
    nobodys = [row for row in OWNED if row[0] is None]
    assert nobodys
    assert kept == sorted(map(key, [*expected, *nobodys]))
    assert owned(n.Truncate(source, ("o.who",), ("o.day",), 0)) == []
    assert owned(n.Truncate(source, ("o.who",), (), 99)) == sorted(map(key, OWNED))


def test_truncate_groups_keeps_all_rows_of_the_first_groups():
    source = n.Scan("o", "o", ORDERS)
    kept = owned(n.TruncateGroups(source, ("o.who",), ("o.kind",), 1))
    expected = [(1, 1, "a"), (1, None, "a"), (2, 5, "z"), (3, 1, "a"), (3, 1, "a"), (3, 1, "a")]
    nobodys = [row for row in OWNED if row[0] is None]
    assert kept == sorted(map(key, [*expected, *nobodys]))
    two = owned(n.TruncateGroups(source, ("o.who",), ("o.kind",), 2))
    assert len(two) == 8 + len(nobodys)


@pytest.mark.parametrize("limit", [0, 1, 2, 3])
def test_truncation_is_what_window_functions_say(duck, limit):
    rows = ", ".join(map(str, OWNED)).replace("None", "NULL")
    duck.execute(f"CREATE OR REPLACE TABLE o AS SELECT * FROM (VALUES {rows}) AS o(who, day, kind)")
    source = n.Scan("o", "o", ORDERS)
    nobodys = f"who IS NULL AND {limit} > 0"
    by_rows = f"""SELECT who, day, kind FROM o
        QUALIFY row_number() OVER (PARTITION BY who ORDER BY day, kind) <= {limit} OR {nobodys}"""
    by_groups = f"""SELECT who, day, kind FROM o
        QUALIFY dense_rank() OVER (PARTITION BY who ORDER BY day, kind) <= {limit} OR {nobodys}"""
    for sql, plan in (
        (by_rows, n.Truncate(source, ("o.who",), ("o.day",), limit)),
        (by_groups, n.TruncateGroups(source, ("o.who",), ("o.day", "o.kind"), limit)),
    ):
        assert owned(plan) == sorted(map(key, duck.execute(sql).fetchall()))


def test_released_answers_are_read_like_tables():
    plan = n.Filter(
        n.Released("answer", (n.Field("n", DBL),)), cmp(">", n.Column("n", DBL), lit(1))
    )
    assert evaluate(plan, {"answer": [(0.5,), (2,)]}) == [(2.0,)]


def test_rows_of_another_length_are_refused():
    with pytest.raises(InternalError):
        evaluate(U, {"u": [(1, "a", "b")]})


def test_rows_may_be_mappings():
    rows = [dict(zip(TYPES["u"], row, strict=True)) for row in ROWS["u"]]
    assert evaluate(U, {"u": rows}) == ROWS["u"]


# ── the liberties that evaluate takes ────────────────────────────────────────────────────────────


def test_dictionary_joins_equal_all_combinations():
    """Random conditions over random rows: the clever way and the plain way give the same bag."""
    draw = random.Random(20261116)
    names = [f"{alias}.id" for alias in ("t0", "t1", "t2")]
    scans = [
        n.Scan(a, a, (n.Field(f"{a}.id", INT), n.Field(f"{a}.x", DBL))) for a in ("t0", "t1", "t2")
    ]
    columns = [n.Column(name, INT) for name in names] + [n.Column(f"t{i}.x", DBL) for i in range(3)]
    tried = 0
    for _ in range(300):
        rows = {
            s.table: [
                (draw.choice([None, 1, 2, 3]), draw.choice([None, NAN, 1.0, 2.0])) for _ in range(4)
            ]
            for s in scans
        }
        parts = tuple(
            cmp(
                draw.choice(["=", "=", "=", "<", "<>"]),
                draw.choice(columns),
                draw.choice([*columns, lit(1)]),
            )
            for _ in range(draw.randint(1, 4))
        )
        cross = n.Join("cross", n.Join("cross", scans[0], scans[1], None), scans[2], None)
        clever = evaluate(n.Filter(cross, n.And(parts)), rows)
        # A projection in between hides the join, so the condition is tested on every combination.
        everything = evaluate(cross, rows)
        assert len(everything) == 64
        truth = n.Project(
            n.Values(
                tuple(n.Field(f.name, f.type) for s in scans for f in s.columns), tuple(everything)
            ),
            (n.Named("v", n.And(parts)),),
        )
        verdicts = evaluate(truth, {})
        plain = [
            row for row, (verdict,) in zip(everything, verdicts, strict=True) if verdict is True
        ]
        assert Counter(map(key, clever)) == Counter(map(key, plain))
        tried += len(plain) > 0
    assert tried > 100


def test_a_prepared_plan_remembers_no_database():
    run = prepare(n.Filter(T, n.Exists(U_OF_T)))
    assert len(run(ROWS)) == 3
    assert run({**ROWS, "u": []}) == []
    assert len(run(ROWS)) == 3


def test_shared_relations_are_read_once():
    class Counting(list):
        reads = 0

        def __iter__(self):
            Counting.reads += 1
            return super().__iter__()

    left, right = (n.Project(U, (n.Named(f"{q}.id", col("u.id")),)) for q in ("a", "b"))
    plan = n.Join("cross", left, right, None)
    assert len(evaluate(plan, {"u": Counting(ROWS["u"])})) == 25
    assert Counting.reads == 1


def test_every_node_has_a_meaning():
    pieces = {n.Branch, n.Named, n.Aggregation, n.SortKey, n.WindowCall}
    assert SCALARS.covered() | RELATIONS.covered() | pieces == set(n.NODES)


def test_a_missing_rule_is_refused(monkeypatch):
    monkeypatch.delitem(RELATIONS._rules, n.Distinct)
    with pytest.raises(InternalError):
        evaluate(n.Distinct(T), ROWS)
    monkeypatch.delitem(SCALARS._rules, n.Not)
    with pytest.raises(InternalError):
        evaluate(n.Filter(T, n.Not(lit(True))), ROWS)


def test_a_hundred_joins_and_a_long_case():
    plan: n.Relation = scan("u", "u0")
    for index in range(1, 101):
        condition = cmp("=", n.Column(f"u{index - 1}.tag", TXT), n.Column(f"u{index}.tag", TXT))
        plan = n.Join("inner", plan, scan("u", f"u{index}"), condition)
    assert len(evaluate(plan, ROWS)) == 4
    chain: n.Scalar = lit(-1)
    for number in range(200):
        chain = n.Case((n.Branch(cmp("=", col("t.id"), lit(number)), lit(number)),), chain)
    rows = evaluate(n.Project(T, (n.Named("v", chain),)), ROWS)
    assert [value for (value,) in rows] == [1, 2, 2, 3, -1, 4]
