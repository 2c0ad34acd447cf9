"""Expressions as terms: what the oracle computes must be allowed, and where the reading is exact, nothing else."""

import itertools
import math
from datetime import date, datetime
from decimal import Decimal

import pytest
import z3

from chance import LONG, chance
from secant.plan import nodes as n
from secant.plan.evaluate.evaluate import prepare
from secant.plan.evaluate.values import Failure, compare
from secant.plan.typing import type_of
from secant.schema import types as t
from secant.schema.catalog import Table, catalog
from secant.sensitivity.smt.language import Language, shown
from secant.sensitivity.smt.scalars import Scope
from secant.sql.bind import from_sql

KINDS = {
    "i": t.INTEGER,
    "j": t.INTEGER,
    "m": t.decimal(8, 2),
    "r": t.DOUBLE,
    "s": t.TEXT,
    "d": t.DATE,
    "w": t.TIMESTAMP,
    "b": t.BOOLEAN,
}
CATALOG = catalog(Table("v", tuple(KINDS.items()), ()))
POOLS = {
    "INTEGER": (0, 1, 2, -3, 7, 2**53, 2**53 + 1),
    "DECIMAL": (Decimal("0.00"), Decimal("1.25"), Decimal("-7.50"), Decimal("2.00")),
    "DOUBLE": (0.0, -0.0, 1.5, 2.0, math.nan, math.inf, -math.inf, 2.0**53),
    "TEXT": ("", "a", "ab", "b", "é"),
    "DATE": (date(2020, 2, 29), date(1970, 1, 1), date(1, 1, 1)),
    "TIMESTAMP": tuple(
        datetime.fromisoformat(x)
        for x in ("2020-02-29", "2020-02-29T12:00:01", "1969-12-31T23:59:59.999999")
    ),
    "BOOLEAN": (True, False),
}

EXACT = (
    "i + j", "i - j", "2 * i - j", "-i", "abs(i)", "abs(m)", "i + m", "m * 2", "coalesce(i, j, 3)",
    "CASE WHEN i > j THEN i WHEN b THEN j ELSE m END", "CASE WHEN i IS NULL THEN 1 END",
    "i = j", "i <> j", "i < m", "m >= 1.25", "s < 'ab'", "s = 'a'", "'aa' <= s", "d < w", "d = w",
    "w > timestamp '2020-02-29 00:00:00'", "d = date '1970-01-01'", "b < (i = 1)", "b", "NOT b",
    "b AND i > 0", "b OR i > 0", "NOT (b OR j = 2) AND i IS NOT NULL", "i IN (1, 2, j)",
    "i NOT IN (1, NULL)", "s IN ('a', 'b')", "i IS NOT DISTINCT FROM j", "m IS DISTINCT FROM i",
    "r > 1.5e0", "r = 2", "r < 0", "r IS NULL", "CAST(i AS DECIMAL(20, 4))", "CAST(d AS TIMESTAMP)",
    "i BETWEEN j AND 7", "NULL = i", "coalesce(b, i = j)",
    "date '2020-01-31' + interval '1' month <= w", "1 / 0 > 3",
)  # fmt: skip
LOOSE = (
    "i * j", "i / 2", "i % 2 = 1", "m * m", "r + 1", "-r", "i = r", "i < r", "r = m", "1.0 / r > 0",
    "s LIKE 'a%'", "upper(s) = 'A'", "length(s) + i", "d + 3", "d - date '2020-01-01' > 3",
    "extract(year from d) = 2020", "date_trunc('month', w) < w", "CAST(i AS TEXT) = s",
    "CAST(m AS INTEGER)", "CAST(r AS DECIMAL(8, 2))", "greatest(i, j)", "least(m, i)", "round(m)",
    "nullif(i, j)", "s || 'x'", "w - d", "CASE WHEN r > i THEN upper(s) ELSE s END = 'AB'",
    "d + interval '1' month > w", "sqrt(abs(r)) < 2",
)  # fmt: skip


def parsed(text):
    plan = from_sql(f"SELECT {text} AS z FROM v", CATALOG)
    (project,) = (x for x in n.walk(plan) if isinstance(x, n.Project) and x.items)
    (item,) = project.items
    (scan,) = (x for x in n.walk(plan) if isinstance(x, n.Scan))
    return item.expression, scan


def verdicts(text, rows, attempt=False):
    """Give for each row whether the formulas allow what the oracle says, and whether they allow anything else."""
    scalar, scan = parsed(text)
    scalar = n.Attempt(scalar) if attempt else scalar
    run = prepare(n.Project(scan, (n.Named("z", scalar),)))
    language = Language(z3)
    for row in rows:
        try:
            ((real,),) = run({"v": [row]})
        except Failure:
            continue
        columns = {f.name: language.constant(row[f.name[2:]], f.type) for f in scan.columns}
        found = Scope(language, columns, lambda relation: False).value(scalar)
        same = language.same(found, language.constant(real, type_of(scalar)))
        answers = []
        for formula in (same, language.no(same)):
            solver = z3.SimpleSolver(ctx=language.context)
            solver.add(formula)
            answers.append(str(solver.check()) == "sat")
        yield row, *answers


def drawn_row(draw):
    return {
        name: None if draw.random() < 0.2 else draw.choice(POOLS[kind.kind])
        for name, kind in KINDS.items()
    }


def drawn_rows():
    draw = chance()
    return [drawn_row(draw) for _ in range(300 if LONG else 15)]


@pytest.mark.parametrize("text", EXACT)
def test_an_exact_reading_is_the_oracles(text):
    for row, allowed, other in verdicts(text, drawn_rows()):
        assert allowed, row
        assert not other, row


@pytest.mark.parametrize("text", LOOSE)
def test_a_loose_reading_allows_what_the_oracle_says(text):
    for row, allowed, _ in verdicts(text, drawn_rows()):
        assert allowed, row


@pytest.mark.parametrize("text", ["i * j * i * j * i", "CAST(s AS INTEGER)", "i + j", "m * m * m"])
def test_an_attempt_allows_what_fails_to_be_null(text):
    seen = 0
    for row, allowed, _ in verdicts(text, drawn_rows(), attempt=True):
        assert allowed, row
        seen += 1
    assert seen == len(drawn_rows())


def test_an_unknown_function_of_the_same_values_is_the_same():
    scalar, scan = parsed("i * j")
    language = Language(z3)
    columns = {f.name: language.fresh(f.name, f.type.kind) for f in scan.columns}
    scope = Scope(language, columns, lambda relation: False)
    solver = z3.Solver(ctx=language.context)
    solver.add(language.no(language.same(scope.value(scalar), scope.value(scalar))))
    assert str(solver.check()) == "unsat"


def test_a_function_of_floats_tells_two_zeros_apart():
    """0.0 equals -0.0, and 1 / 0.0 does not equal 1 / -0.0: no function symbol may stand for it."""
    scalar, scan = parsed("1.0 / r")
    language = Language(z3)
    columns = {f.name: language.fresh(f.name, f.type.kind) for f in scan.columns}
    scope = Scope(language, columns, lambda relation: False)
    solver = z3.Solver(ctx=language.context)
    solver.add(language.no(language.same(scope.value(scalar), scope.value(scalar))))
    assert str(solver.check()) == "sat"


@pytest.mark.parametrize("kind", ["INTEGER", "DECIMAL", "DOUBLE", "TEXT", "DATE", "TIMESTAMP"])
def test_constants_are_ordered_as_the_oracle_orders_them(kind):
    language = Language(z3)
    pool = list(POOLS[kind])
    chance().shuffle(pool)  # texts find their place in any order of arrival
    type_ = t.decimal(8, 2) if kind == "DECIMAL" else t.Type(kind)
    terms = {id(x): language.constant(x, type_) for x in pool}
    for x, y in itertools.product(pool, pool):
        less = language.compare("<", terms[id(x)], terms[id(y)]).term
        assert str(z3.simplify(less)) == str(compare(x, y) < 0)


def test_made_up_values_are_written_readably():
    language = Language(z3)
    place = language.constant("a", t.TEXT).term
    texts = {p: text for text, p in language.texts.items()}
    assert shown("TEXT", place, texts) == "'a'"
    assert shown("TEXT", "7/2", texts) == "text 7/2"
    assert shown("DATE", 0, {}) == "1970-01-01"
    assert shown("DATE", 10**9, {}) == "1000000000"
    assert shown("BOOLEAN", True, {}) == "true"
