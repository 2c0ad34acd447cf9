"""Every scalar function and operator on hostile values: each engine gives what DuckDB gives, and never raises.

Plans are taken as a release takes them, made unable to fail: NULL must stand exactly where DuckDB's TRY has it.
Expressions over the same two tables are one statement: binding and planning cost more than running.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from dataclasses import replace
from decimal import Decimal

import pytest
from engines import OTHERS, PROMPT, on_engines
from scalar_grid import CASES, GRID, NARROW, UNWRITTEN, grid_of, plan_of, transform_all, unlike

from secant.engines.backend import Backend
from secant.engines.print.print_sql import lower
from secant.errors import BackendError, SqlError
from secant.plan import nodes as n
from secant.plan.evaluate.evaluate import evaluate
from secant.plan.functions.scalar import AGGREGATES, FUNCTIONS
from secant.plan.rewrites.null_on_error import make_total
from secant.plan.rewrites.rewrite import normalize
from secant.sql.bind import from_sql

BY_TABLES: dict[tuple[str, str], list[str]] = defaultdict(list)
for _left, _right, _expression in CASES:
    BY_TABLES[_left, _right].append(_expression)
ASKED = [engine for engine in OTHERS if engine in PROMPT]
FEW = [
    ("wides", "one"), ("words", "one"), ("days", "one"), ("wholes", "decimals"), ("reals", "reals"),
    ("words", "wholes"),
]  # fmt: skip
"""What the fast profile asks where planning takes long: the values that functions of engines most often raise on."""


def test_the_comparison_can_fail():
    assert unlike(1.0, 1.0 + 1e-11)
    assert unlike(1, 1.0)
    assert unlike(Decimal(1), 1)
    assert unlike(None, math.nan)
    assert not unlike(math.nan, math.nan)


def left_out(engine, left: str, expression: str) -> bool:
    return expression == "CAST(a.v AS VARCHAR)" and left == "reals" and not engine.writes_floats


def endless(engine, expression: str, value: str) -> bool:
    """Whether a text stands for a day without end, which the engine has not."""
    days = expression in ("CAST(a.v AS DATE)", "CAST(a.v AS TIMESTAMP)")
    return days and value == "'-inf'" and not engine.endless_days


@on_engines("left right", BY_TABLES, few=FEW, engines=OTHERS)
def test_values_are_those_of_duckdb(grid_there, grid_here, engine, left, right):
    expressions = [e for e in BY_TABLES[left, right] if not left_out(engine, left, e)]
    apart = [e for e in expressions if e.startswith(tuple(UNWRITTEN))]
    together = [e for e in expressions if e not in apart]
    wrong = {}
    for few in [[e] for e in apart] + [together]:
        plan = plan_of(grid_here, left, right, ", ".join(few))
        got = {row[:2]: row[2:] for row in grid_there.answer(plan)}
        want = {row[:2]: row[2:] for row in grid_here.rows(lower(plan))}
        assert got.keys() == want.keys()
        for key, values in want.items():
            pairs = zip(few, got[key], values, strict=True)
            wrong.update({(e, key): (g, w) for e, g, w in pairs if unlike(g, w)})
    if {left, right} & NARROW:
        wrong = {
            at: pair for at, pair in wrong.items() if not meant(grid_here, left, right, *at, pair)
        }
    values = [grid_of(engine)[table][1] for table in (left, right)]
    shown = {(e, values[0][i], values[1][j]): pair for (e, (i, j)), pair in wrong.items()}
    assert {at: pair for at, pair in shown.items() if not endless(engine, *at[:2])} == {}


def meant(here, left, right, expression, key, pair) -> bool:
    """Whether DuckDB failed where the plan's types leave room: then `evaluate` says what the value is."""
    if pair[1] is not None:
        return False
    rows = {name: [*here.rows(f"SELECT * FROM {name}")] for name in (left, right)}
    by_hand = evaluate(plan_of(here, left, right, expression), rows)
    return not unlike(pair[0], {row[:2]: row[2] for row in by_hand}[key])


AGGREGATED = [
    (table, f"{function}({distinct}v)")
    for table in GRID
    for function in AGGREGATES
    for distinct in ("", "DISTINCT ")
    if function != "product"  # other engines have none: refused, see the small corpus
    and not (distinct and function in ("median", "min", "max"))
    and not (function == "median" and table in ("words", "days", "moments", "truths"))
]
ENDS = ["k IN (19, 20)", "k = 19", "k IN (20, 21)", "k IN (18, 19, 26)", "k IN (31, 32)", "k > 16 AND k < 19",
        "k IN (27, 28)", "k IN (34, 1)", "k IN (34, 35)", "k = 33"]  # fmt: skip

SUMS = ["sum(v)", "avg(v)", "median(v)", "min(v)", "max(v)"]


def aggregate_plan(here: Backend, text: str, *, median: bool) -> n.Relation | None:
    """Bind an aggregate, None if it is not for this type; a median is put where the text has max."""

    def change(node: n.Node) -> n.Node:
        return replace(node, function="median") if isinstance(node, n.Aggregation) else node

    try:
        plan = normalize(from_sql(text, here.catalog()))
        plan = transform_all(plan, change) if median else plan
    except SqlError:
        return None
    return make_total(plan)


def aggregates_agree(there, here, call: str, source: str, keys: str = "", end: str = "") -> bool:
    """Compare an aggregate of values x.v; False if it is not for this type."""
    written = call.replace("median(", "max(").replace("v)", "x.v)")
    text = f"SELECT {keys}{written} AS r FROM {source} {end}"
    plan = aggregate_plan(here, text, median="median(" in call)
    if plan is None:
        return False
    got = {row[:-1]: row[-1] for row in there.answer(plan)}
    want = {row[:-1]: row[-1] for row in here.rows(lower(plan))}
    assert got.keys() == want.keys()
    for key, value in want.items():
        near = isinstance(got[key], float) and got[key] == pytest.approx(value, rel=1e-12)
        assert near or not unlike(got[key], value), (key, got[key], value)
    return True


@on_engines("table call", AGGREGATED, engines=ASKED)
def test_aggregates_are_those_of_duckdb(grid_there, grid_here, engine, table, call):
    """Of no row, and of the first rows of each table, one more each time, as groups of one statement.

    Floats stop where DuckDB's order of adding decides.
    """
    rows = 20 if table == "reals" else len(grid_of(engine)[table][1])
    alone, there, here = f"{table} AS x", grid_there, grid_here
    if aggregates_agree(there, here, call, alone, end="WHERE k < 0"):
        pairs, groups = (
            f"{alone} JOIN {table} AS g ON x.k <= g.k",
            f"WHERE g.k < {rows} GROUP BY g.k",
        )
        assert aggregates_agree(there, here, call, pairs, "g.k, ", groups)
        assert aggregates_agree(there, here, call, alone, end=f"WHERE k < {rows}")


@on_engines("call condition", itertools.product(SUMS, ENDS), engines=ASKED)
def test_sums_at_the_ends_of_the_floats(grid_there, grid_here, call, condition):
    assert aggregates_agree(grid_there, grid_here, call, "reals AS x", end=f"WHERE {condition}")


ONLY_DUCKDB = {"log2", "regexp_extract", "regexp_replace"}
"""Which part of a text fits a pattern, other engines decide otherwise: refused there, see the small corpus."""


@on_engines(engines=OTHERS[:1])
def test_every_function_is_there(grid_here):
    called = {
        node.function
        for case in CASES
        for node in n.walk(plan_of(grid_here, *case))
        if isinstance(node, n.Call)
    }
    assert called == set(FUNCTIONS) - ONLY_DUCKDB


@on_engines(engines=[engine for engine in OTHERS if not engine.writes_floats])
def test_a_text_of_a_float_is_refused_where_it_would_differ(grid_there, grid_here):
    with pytest.raises(BackendError) as caught:
        grid_there.answer(plan_of(grid_here, "reals", "one", "CAST(a.v AS VARCHAR)"))
    assert caught.value.code == "BAK-003"
