"""Ours: DISTINCT keeps 0.0 or -0.0, whichever it meets first, and CAST AS TEXT and 1/x could tell which.

One row that came or went then changed the row that was kept, and the sum above it by twice its bound. The same holds
for NaNs of two signs, for every other place where equal values meet, and for months of 30 days. DuckDB also runs a
correlated subquery once for equal values, so that one row could flip the answer for all others.
"""

import itertools
import math
import sys
from fractions import Fraction
from pathlib import Path

import duckdb
import pytest

from apart import apart

sys.path.append(str(Path(__file__).parent.parent / "soundness"))

from engine_answers import Engine, difference, releases_of, target_on
from neighbor_check import Findings, World, target_for

from secant.engines.postgres.scalars import POSTGRES
from secant.engines.postgres.session import open_server
from secant.engines.print.print_sql import lower
from secant.plan import nodes as n
from secant.plan.evaluate.evaluate import evaluate
from secant.plan.evaluate.values import CASTABLE, same_key
from secant.plan.functions.scalar import FUNCTIONS
from secant.plan.rewrites import null_on_error as total
from secant.plan.rewrites.rewrite import normalize
from secant.plan.show import show
from secant.plan.typing import Mistyped, type_of
from secant.policy.policy import ColumnFacts, Policy, Protection, TableFacts
from secant.schema import types as t
from secant.schema.catalog import Table, catalog
from secant.sql.bind import from_sql

TABLES = {
    "item": (("k", t.INTEGER), ("r", t.DOUBLE)),
    "word": (("name", t.TEXT),),
    "known": (("r", t.DOUBLE),),
}
WORLD = World(
    catalog(*(Table(name, columns, ()) for name, columns in TABLES.items())),
    Policy(
        "",
        {"item": TableFacts(columns={"r": ColumnFacts(range=(-1, 1))})},
        (Protection("single", "rows", Fraction(1), tables=("item",)),),
        tuple(name for name in TABLES if name != "item"),
    ),
)
NAN = "CASE WHEN k = 1 THEN CAST('nan' AS DOUBLE) ELSE -CAST('nan' AS DOUBLE) END"
SUMS = {
    "text": "sum(CASE WHEN CAST(x AS TEXT) = '-0.0' THEN 10 ELSE -10 END)",
    "quotient": "sum(CASE WHEN 1 / x < 0 THEN 10 ELSE -10 END)",
    "power": "sum(CASE WHEN power(x, -3) < 0 THEN 10 ELSE -10 END)",
    "root": "sum(CASE WHEN k2 / sqrt(x) < 0 THEN 10 ELSE -10 END)",
    "chosen": "count(CASE WHEN length(CAST(x AS TEXT)) = 4 THEN 1 END)",
}
MERGED = {
    "distinct": "SELECT DISTINCT r AS x, 1 AS k2 FROM item",
    "negated": "SELECT DISTINCT -r AS x, 1 AS k2 FROM item",
    "keys": "SELECT r AS x, 1 AS k2 FROM item GROUP BY r",
    "union": "SELECT r AS x, 1 AS k2 FROM item UNION SELECT r, 1 FROM known",
    "intersect": "SELECT r AS x, 1 AS k2 FROM item INTERSECT SELECT r, 1 FROM known",
    "intersect all": "SELECT r AS x, 1 AS k2 FROM item INTERSECT ALL SELECT r, 1 FROM known",
    "except": "SELECT r AS x, 1 AS k2 FROM item EXCEPT SELECT r, 1 FROM known",
    "except all": "SELECT r AS x, 1 AS k2 FROM item EXCEPT ALL SELECT r, 1 FROM known",
    "largest": "SELECT max(r) AS x, 1 AS k2 FROM item GROUP BY k",
    "once": "SELECT sum(DISTINCT r) AS x, 1 AS k2 FROM item GROUP BY k",
    "nan": f"SELECT DISTINCT {NAN} AS x, 1 AS k2 FROM item",
}
QUESTIONS = {
    f"{place}, {seen}": f"SELECT {call} FROM ({rows}) AS z"
    for (place, rows), (seen, call) in itertools.product(MERGED.items(), SUMS.items())
    if place == "distinct" or seen in ("text", "quotient")
}
LOOKED = (
    "SELECT count(*) FROM item WHERE EXISTS (SELECT 1 FROM word WHERE name = CAST(item.r AS TEXT))"
)
QUESTIONS["subquery"] = LOOKED


def databases():
    """Give small bags of zeros of both signs, in every order."""
    public = {"word": [{"name": "-0.0"}], "known": [{"r": 0.0}]}
    for ks in ((1, 2), (1, 3), (1, 1, 3)):
        for signs in itertools.product((0.0, -0.0), repeat=len(ks)):
            rows = [{"k": k, "r": r} for k, r in zip(ks, signs, strict=True)]
            yield {"item": rows, **public}


@pytest.fixture(scope="module")
def engine():
    found = Engine(TABLES)
    yield found
    found.close()


def refuted(text, engine):
    """Give whether some pair of neighbors refutes a claim: as `evaluate` answers, and as DuckDB does."""
    meant, run = Findings(), Findings()
    targets = target_for(text, WORLD, meant), target_on(engine, text, WORLD, run)
    for target in targets:
        assert target is not None, f"refused: {text}"
        assert target.runners
        for database in databases():
            target.try_on(database, {})
    assert min(meant.triples, run.triples) >= 40
    return bool(meant.violations), bool(run.violations)


@pytest.mark.parametrize("name", QUESTIONS)
def test_one_row_moves_the_sum_by_no_more_than_is_claimed(name, engine):
    assert refuted(QUESTIONS[name], engine) == (False, False)


@pytest.mark.parametrize(
    ("name", "where"),
    [
        ("distinct, text", {0, 1}),
        ("distinct, quotient", {0, 1}),
        ("distinct, power", {0, 1}),
        ("distinct, root", {0, 1}),
        ("distinct, chosen", set()),  # at most one group in either case, and it moves by one
        ("union, text", {0, 1}),
        ("intersect, quotient", {0, 1}),
        ("subquery", {1}),  # the interpreter runs it for each row
    ],
)
def test_signs_that_are_left_would_be_noticed(name, where, engine, monkeypatch):
    monkeypatch.setattr(total, "_alike", lambda scalar: scalar)
    found = refuted(QUESTIONS[name], engine)
    assert {i for i, seen in enumerate(found) if seen} == where


def test_one_row_cannot_flip_the_answer_for_equal_ones(engine):
    (bounded,) = releases_of(LOOKED, WORLD)
    run = engine.answers(bounded.release.exact)
    many = [{"k": 0, "r": -0.0} for _ in range(500)]
    answers = [
        run({"item": [*first, *many], "word": [{"name": "-0.0"}, {"name": "0.0"}], "known": []})
        for first in ([{"k": 0, "r": 0.0}], [])
    ]
    assert answers == [[(501,)], [(500,)]]


@pytest.mark.parametrize("name", QUESTIONS)
def test_the_engine_answers_what_is_meant(name, engine):
    (bounded,) = releases_of(QUESTIONS[name], WORLD)
    for database in databases():
        assert difference(engine, bounded.release, database) is None


def test_a_shown_key_has_the_sign_of_no_row(engine):
    policy = Policy("", {}, (Protection("single", "rows", Fraction(1), tables=("item",)),))
    for key in ("r", "-r", f"{NAN} + r"):
        text = f"SELECT {key} AS x, count(*) FROM item GROUP BY {key}"
        (bounded,) = releases_of(text, World(WORLD.catalog, policy))
        for database in databases():
            for rows in engine.rows, evaluate:
                plan = bounded.release.exact
                found = rows(plan, database) if rows is not evaluate else evaluate(plan, database)
                assert [math.copysign(1, row[0]) for row in found] == [1]


# ── what is written ──────────────────────────────────────────────────────────────────────────────


def made(text):
    return total.make_total(normalize(from_sql(text, WORLD.catalog)))


def test_what_shows_a_sign_is_given_one_zero():
    written = lower(
        made("SELECT CAST(r AS TEXT), 1 / r, power(r, -1) FROM (SELECT DISTINCT r FROM item) AS z")
    )
    assert written.count("+ 0.0e0)") == 3
    assert "'-nan', 'nan')" in written


@pytest.mark.parametrize(
    "text",
    [
        "SELECT DISTINCT r FROM item",
        "SELECT r, max(r), sum(r), avg(DISTINCT r) FROM item GROUP BY r",
        "SELECT r FROM item UNION SELECT r + k FROM item",
        "SELECT r / 2, r / k, r / (1 + r), k / exp(r), power(r, 2), CAST(k AS TEXT) FROM item",
        "SELECT a.r FROM item AS a JOIN item AS b ON a.r = b.r WHERE a.r IN (SELECT r FROM item)",
    ],
)
def test_what_shows_no_sign_stays(text, monkeypatch):
    changed = show(made(text))
    monkeypatch.setattr(total, "_alike", lambda scalar: scalar)
    assert changed == show(made(text))


def test_making_alike_twice_is_making_alike_once():
    once = made("SELECT CAST(1 / r AS TEXT), power(r / r, k) FROM item")
    assert show(total.make_total(once)) == show(once)


def test_engines_leave_the_added_zero():
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE item AS SELECT CAST('-0.0' AS DOUBLE) AS r FROM range(3)")
        found = connection.execute("SELECT DISTINCT r + CAST(0.0 AS DOUBLE) FROM item").fetchall()
    assert str(found) == "[(0.0,)]"


# ── every expression there is ────────────────────────────────────────────────────────────────────

REAL = n.Column("v.x", t.DOUBLE)
OTHERS = [
    *(n.Literal(x, t.DOUBLE) for x in (0.0, 1.0, -3.0, 2.5, -math.inf)),
    *(n.Literal(x, t.INTEGER) for x in (0, -1, 2)),
]


def expressions(operators="+ - * / // %", absent=()):
    """Give every cast, operator and function of a real, alone and beside other numbers."""
    yield from (
        n.Cast(REAL, kind) for kind in (t.TEXT, t.INTEGER, t.BOOLEAN, t.decimal(9, 2), t.DOUBLE)
    )
    yield n.Negate(REAL)
    yield n.Clamp(REAL, n.Literal(-1.0, t.DOUBLE), n.Literal(1.0, t.DOUBLE))
    pairs = (
        [(REAL, other) for other in OTHERS] + [(other, REAL) for other in OTHERS] + [(REAL, REAL)]
    )
    for op in operators.split():
        yield from (n.Arithmetic(op, *pair) for pair in pairs)
    for op in ("=", "<>", "<", "<=", ">", ">="):
        yield n.Compare(op, REAL, OTHERS[0])
    for function in FUNCTIONS.values():
        if function.name in absent:
            continue
        if function.least == 1:
            yield n.Call(function.name, (REAL,))
        if function.least <= 2 <= function.most:
            yield from (n.Call(function.name, pair) for pair in pairs)


def typed(expression):
    try:
        return type_of(expression)
    except Mistyped:
        return None


def shown(expression):
    """Give the expression and what a second one makes of it, as a release computes them."""
    text = n.Cast(expression, t.TEXT)
    return [
        total.total(e) for e in (expression, text) if e is expression or typed(text) is not None
    ]


def over(values, **tried):
    """Give a plan that computes everything for each of the values, which are reals by formulas."""
    makers = [n.Named("v.x", value) for value in values]
    found = [e for e in expressions(**tried) if typed(e) is not None]
    items = [s for e in found for s in shown(e)]
    named = tuple(n.Named(f"c{i}", s) for i, s in enumerate(items))
    one = n.Values((n.Field("one", t.INTEGER),), ((1,),))
    return items, [n.Project(n.Project(one, (maker,)), named) for maker in makers]


def signed():
    """Give zeros and NaNs of both signs, as engines come by them."""
    one = n.Column("one", t.INTEGER)
    zero = n.Cast(n.Arithmetic("-", one, one), t.DOUBLE)
    nan = n.Attempt(n.Cast(n.Literal("nan", t.TEXT), t.DOUBLE))
    return zero, n.Negate(zero), nan, n.Negate(nan)


def told_apart(rows, **tried):
    """Give the expressions to which an engine gives different answers for equal values."""
    items, made_plans = over(signed(), **tried)
    assert len(items) > 150
    told = set()
    for first, second in zip(made_plans[::2], made_plans[1::2], strict=True):
        (here,), (there,) = rows(first), rows(second)
        pairs = zip(items, here, there, strict=True)
        told |= {show_scalar(s) for s, a, b in pairs if same_key(a) != same_key(b)}
    return told


def show_scalar(scalar):
    return show(n.Project(n.Values((), ((),)), (n.Named("shown", scalar),)))


def test_no_expression_tells_equal_reals_apart():
    assert told_apart(lambda plan: evaluate(plan, {})) == set()


def test_no_expression_of_the_engine_tells_equal_reals_apart(engine):
    assert told_apart(lambda plan: engine.backend.rows(lower(plan))) == set()


@pytest.mark.postgres
def test_no_expression_of_postgres_tells_equal_reals_apart(postgres_server):
    backend = apart(open_server(postgres_server.address(postgres_server.create_database())))
    try:
        # This engine has no remainder of reals and no log2, and a query that asks for one is refused.
        told = told_apart(
            lambda plan: backend.rows(lower(plan, POSTGRES)), operators="+ - * /", absent=("log2",)
        )
        assert told == set()
    finally:
        backend.close()


def test_expressions_that_tell_would_be_noticed(engine, monkeypatch):
    monkeypatch.setattr(total, "_alike", lambda scalar: scalar)
    for rows in (
        lambda plan: evaluate(plan, {}),
        lambda plan: engine.backend.rows(lower(plan)),
    ):
        told = " ".join(told_apart(rows))
        assert all(
            sign in told
            for sign in ("CAST(v.x AS TEXT)", "(1.0 / v.x)", "power(v.x, -3.0)", "atan2(v.x, -3.0)")
        )


def test_every_cast_of_a_real_is_tried():
    tried = {e.type.kind for e in expressions() if isinstance(e, n.Cast)}
    assert tried == set(CASTABLE["DOUBLE"])


# ── months of thirty days ────────────────────────────────────────────────────────────────────────

SPAN = "CASE WHEN k = 1 THEN INTERVAL '1' MONTH ELSE INTERVAL '30' DAY END"
MOVED = "sum(CASE WHEN DATE '2024-02-01' + i = DATE '2024-03-01' THEN 10 ELSE -10 END)"


@pytest.mark.parametrize(
    "rows",
    [
        f"SELECT DISTINCT {SPAN} AS i FROM item",
        f"SELECT {SPAN} AS i FROM item GROUP BY {SPAN}",
        f"SELECT {SPAN} AS i FROM item UNION SELECT {SPAN} FROM item",
        f"SELECT {SPAN} AS i FROM item EXCEPT ALL SELECT {SPAN} FROM item WHERE k > 2",
    ],
)
def test_intervals_that_meet_move_no_date(rows):
    for bounded in releases_of(f"SELECT {MOVED} FROM ({rows}) AS z", WORLD):
        assert not any(isinstance(node, n.Arithmetic) for node in n.walk(bounded.release.exact))
    assert releases_of(f"SELECT count(i) FROM ({rows}) AS z", WORLD) != ()


def test_intervals_that_never_meet_may_move_dates():
    assert releases_of(f"SELECT {MOVED} FROM (SELECT {SPAN} AS i FROM item) AS z", WORLD) != ()
