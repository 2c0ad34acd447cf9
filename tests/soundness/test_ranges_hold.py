"""Values inside declared facts never leave what is derived from them; the slips printed in the seed are caught.

Random expressions, filters and groups over a small table whose rows keep to the policy: each value must lie in the
derived interval and in the derived set, each condition must turn out as judged, each key must tell rows apart.
"""

import random
import re
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from itertools import combinations

import pytest

from chance import LONG
from secant.errors import InternalError
from secant.numeric import affine
from secant.numeric import interval as iv
from secant.plan import nodes as n
from secant.plan.evaluate.evaluate import prepare
from secant.plan.evaluate.values import Failure
from secant.plan.facts import keys as facts_keys
from secant.plan.facts import range_filters as ranges_filters
from secant.plan.facts import range_forms as ranges_forms
from secant.plan.facts import range_groups as ranges_groups
from secant.plan.facts.keys import identifies, keys_after
from secant.plan.facts.range_filters import judge, values_of
from secant.plan.facts.range_groups import Stratum, aggregate_range
from secant.plan.facts.ranges import RANGES, as_number, declared_keys, ranges_of
from secant.plan.rewrites.rewrite import normalize
from secant.plan.rewrites.steps import as_product
from secant.plan.typing import fields_of
from secant.policy.policy import ColumnFacts, Policy, TableFacts
from secant.schema import types as t
from secant.schema.catalog import Table, catalog
from secant.sql.bind import from_sql

QUESTIONS = 4000 if LONG else 200
ROWS = 25
COLUMNS = (
    ("id", t.INTEGER), ("a", t.DOUBLE), ("b", t.INTEGER), ("d", t.decimal(8, 2)),
    ("e", t.INTEGER), ("f", t.DOUBLE), ("c", t.TEXT), ("g", t.TEXT),
)  # fmt: skip
CATALOG = catalog(Table("t", COLUMNS), Table("u", COLUMNS))
FACTS = {
    "a": ColumnFacts(range=(Decimal("-1.5"), 3)),
    "b": ColumnFacts(range=(0, 4)),
    "d": ColumnFacts(range=(Decimal("0.25"), 2)),
    "e": ColumnFacts(values=(-2, 1, 3, 7)),
    "f": ColumnFacts(range=(0, 1)),
    "c": ColumnFacts(values=("red", "green", "blue")),
}
POLICY = Policy("", {x: TableFacts(("id",), {}, FACTS) for x in ("t", "u")}, ())
COLORS = ("red", "green", "blue", "gray")


def value_of(column):
    if column != "id" and random.random() < 0.08:
        return None
    corner = random.random() < 0.4
    return {
        "id": lambda: random.randint(0, 10**6),
        "a": lambda: random.choice((-1.5, 0.0, 3.0)) if corner else random.uniform(-1.5, 3),
        "b": lambda: random.randint(0, 4),
        "d": lambda: Decimal(random.choice((25, 200)) if corner else random.randint(25, 200)) / 100,
        "e": lambda: random.choice((-2, 1, 3, 7)),
        "f": lambda: random.choice((0.0, 1.0)) if corner else random.random(),
        "c": lambda: random.choice(COLORS[:3]),
        "g": lambda: random.choice(COLORS),
    }[column]()


def row():
    return tuple(value_of(name) for name, _ in COLUMNS)


NUMBERS = (
    "(%x + %x)", "(%x - %x)", "(%x * %x)", "(- %x)", "abs(%x)", "(a * %x - %x * a)", "(f * f - %x * f)",
    "(%x / (1 + abs(%x)))", "(%x / (f * f - f + 1))", "sqrt(abs(%x))", "power(%x, 2)", "(e * e - %x * e)",
    "exp(%x / 10)", "ln(1 + abs(%x))", "power(1 + abs(%x), -0.5)", "coalesce(%x, %x)", "least(%x, %x)",
    "CASE WHEN %k THEN %x ELSE %x END", "CASE WHEN %k THEN a WHEN %k THEN %x END", "greatest(%x, 1)",
    "nullif(%x, 1)",
)  # fmt: skip
CONDITIONS = (
    "(a %o %l)", "(b %o %l)", "(d %o %l)", "(e %o %l)", "(f %o %l)", "(a %o f)", "(b %o e)", "(%x %o %x)",
    "(e IN (1, 7, 8))", "(e NOT IN (1, 3))", "(c IN ('red', 'gray'))", "(c = g)", "(c %o 'green')",
    "(c LIKE 'b%')", "(c IS NULL)", "(a IS NOT NULL)", "(b BETWEEN 1 AND 2)", "(upper(c) = 'RED')",
    "(g = 'blue')", "(a * a %o f - 2)", "(e + 1 %o b)",
)  # fmt: skip
TEXTS = (
    "c", "g", "upper(c)", "coalesce(c, 'none')", "substr(c, 1, 1)",
    "CASE WHEN %k THEN c ELSE 'other' END", "CASE WHEN c = 'red' THEN 'r' ELSE g END",
)  # fmt: skip


def filled(template, depth):
    """Write random parts into a template: %x a number, %k a condition, %o a comparison, %l a constant."""
    parts = {
        "x": lambda: number(depth - 1),
        "k": lambda: condition(depth - 1),
        "o": lambda: random.choice(("=", "<>", "<", "<=", ">", ">=")),
        "l": lambda: str(random.randint(-3, 8)),
    }
    return re.sub("%([xkol])", lambda mark: parts[mark[1]](), template)


def number(depth=3):
    if depth <= 0 or random.random() < 0.12:
        return random.choice(
            ("a", "b", "d", "e", "f", "a", "f", str(random.randint(0, 4)), "(-2)", "0.5")
        )
    return filled(random.choice(NUMBERS), depth)


def condition(depth=2):
    if depth > 0 and random.random() < 0.5:
        one, other = condition(depth - 1), condition(depth - 1)
        return random.choice((f"({one} AND {other})", f"({one} OR {other})", f"(NOT {one})"))
    return filled(random.choice(CONDITIONS), min(depth, 1))


def text():
    return filled(random.choice(TEXTS), 2)


def plan_of(query):
    return normalize(from_sql(query, CATALOG))


def inside(interval, value):
    """Whether a value lies in an interval, but for what doubles lose."""
    exact = as_number(value)
    slack = Fraction(1, 10**7) * max(1, abs(exact))
    below = interval.low is not None and exact < interval.low - slack
    return not below and not (interval.high is not None and exact > interval.high + slack)


def answers(run, database):
    with suppress(Failure):
        return run(database)
    return []


def moderate(known, scalar):
    """Whether every part of an expression is of a size at which doubles keep its digits."""
    parts = [known.of(part) for part in n.walk(scalar) if isinstance(part, n.Scalar)]
    return all(max(map(abs, p.ends())) <= 10**5 for p in parts if p.bounded)


def faults_of(checks, more_than):
    """Add up the faults of a whole search, which must have looked at more than so many values."""
    found = list(checks)
    assert len(found) > more_than
    return sum(found)


def scalar_checks(questions):
    """Give of each value how many of its range, its set and its verdict do not hold, over random expressions."""
    for _ in range(questions):
        plan = plan_of(f"SELECT {number()}, {text()}, {condition()} FROM t WHERE {condition()}")
        assert isinstance(plan, n.Project)
        known = ranges_of(plan.input, POLICY, lambda inner: None)
        interval = known.of(plan.items[0].expression)
        values = values_of(known, plan.items[1].expression)
        verdict = judge(known, plan.items[2].expression)
        never = known.empty
        if not moderate(known, plan.items[0].expression):
            continue  # beyond, doubles lose too much to be compared
        run = prepare(plan)
        for _ in range(ROWS):
            for found, word, truth in answers(run, {"t": [row()]}):
                told = {True: verdict.true, False: verdict.false, None: verdict.unknown}[truth]
                yield (
                    never
                    + (found is not None and not inside(interval, found))
                    + (values is not None and word is not None and word not in values)
                    + (not told)
                )


def test_values_sets_and_verdicts_hold():
    assert faults_of(scalar_checks(QUESTIONS), QUESTIONS) == 0


def step_checks(questions):
    """Give of each whole number of steps whether it leaves its range, with ends and without."""
    for _ in range(questions):
        plan = plan_of(f"SELECT CAST({number()} AS DOUBLE) FROM t WHERE {condition()}")
        known = ranges_of(plan.input, POLICY, lambda inner: None)
        operand = plan.items[0].expression
        if not moderate(known, operand):
            continue
        ends = random.choice(((), (-3, 9), (0, 4)))
        step = Fraction(random.choice((1, 4, 32)), 8)
        steps = n.Quantize(operand, step, *ends)
        interval = known.of(steps)
        run = prepare(n.Project(plan.input, (n.Named("x", steps),)))
        for _ in range(ROWS):
            for (found,) in answers(run, {"t": [row()]}):
                left = found is not None and not inside(interval, found)
                yield left + (bool(ends) and not interval.bounded)


def test_whole_steps_hold():
    assert faults_of(step_checks(QUESTIONS), QUESTIONS) == 0


@pytest.mark.parametrize(
    "wrong",
    [
        lambda known, node: known.of(node.operand),
        lambda known, node: known.of(as_product(replace(node, step=2 * node.step))),
    ],
    ids=["a step is taken for one", "steps of twice the size"],
)
def test_forgotten_steps_are_caught(monkeypatch, wrong):
    monkeypatch.setitem(RANGES._rules, n.Quantize, wrong)
    assert any(step_checks(QUESTIONS))


def test_joined_columns_hold_what_the_join_leaves():
    for op in ("=", "<", "<=", ">", ">="):
        query = f"SELECT t.a - u.f, t.c, u.g FROM t JOIN u ON t.a {op} u.f AND t.c = u.g WHERE u.f < 0.5"
        plan = plan_of(query)
        known = ranges_of(plan.input, POLICY, lambda inner: None)
        interval = known.of(plan.items[0].expression)
        named = values_of(known, plan.items[2].expression)
        assert named == ("red", "green", "blue")
        run = prepare(plan)
        seen = 0
        for _ in range(300 if LONG else 40):
            database = {"t": [row() for _ in range(8)], "u": [row() for _ in range(8)]}
            for difference, _, word in answers(run, database):
                seen += 1
                assert inside(interval, difference)
                assert word in named
        assert seen > 0 or op == "="


def group_faults(questions):
    """Count inner aggregates that leave their range, with at most three rows a group."""
    faults = checks = 0
    for _ in range(questions):
        calls = ("count(*)", "count(%s)", "sum(%s)", "min(%s)", "max(%s)", "avg(%s)", "var_pop(%s)",
                 "stddev_samp(%s)", "sum(DISTINCT %s)", "count(DISTINCT %s)")  # fmt: skip
        call = random.choice(calls)
        call = call.replace("%s", number(1))
        key = random.choice(("b", "c", "id"))
        query = f"SELECT s FROM (SELECT {key}, {call} AS s FROM t WHERE {condition(1)} GROUP BY {key}) AS q"
        plan = plan_of(query)
        known = ranges_of(plan.input, POLICY, lambda inner: 3)
        interval = known.of(plan.items[0].expression)
        run = prepare(plan)
        for _ in range(ROWS // 3):
            place = [name for name, _ in COLUMNS].index(key)
            rows = [row() for _ in range(1 if key == "id" else 3)]
            rows = [(*r[:place], rows[0][place], *r[place + 1 :]) for r in rows]
            for (found,) in answers(run, {"t": rows}):
                checks += 1
                faults += found is not None and not inside(interval, found)
    assert checks > questions / 4
    return faults


def test_groups_hold():
    assert group_faults(QUESTIONS) == 0


AGGREGATES = {"sum": sum, "min": min, "max": max, "count": len, "avg": lambda v: sum(v) / len(v)}


def stratum_checks(count):
    """Give whether sums, minima and maxima of rows that perhaps count leave the range, each by itself."""
    for _ in range(count):
        strata = []
        values = []
        for _ in range(random.randint(1, 3)):
            low, high = sorted(Fraction(random.randint(-9, 9)) for _ in range(2))
            possible = random.randint(0, 3)
            sure = random.randint(0, possible)
            strata.append(Stratum(iv.interval(low, high), sure, possible))
            rows = random.choice((sure, possible, random.randint(sure, possible)))
            values += [random.choice((low, high, (low + high) / 2)) for _ in range(rows)]
        for name, function in AGGREGATES.items():
            if values or name == "count":
                found = ranges_groups.aggregate_range(name, strata)
                value = Fraction(function(values))
                yield found is None or not inside(found, value)


def test_rows_that_perhaps_count():
    assert faults_of(stratum_checks(20 * QUESTIONS), 20 * QUESTIONS) == 0
    assert aggregate_range("sum", [Stratum(iv.interval(1, 2), 0, 0)]) is None


KEYED = (
    "SELECT id, b FROM t",
    "SELECT t.id, u.b FROM t JOIN u ON t.b = u.id",
    "SELECT t.id, u.id FROM t, u",
    "SELECT t.id, u.b FROM t LEFT JOIN u ON t.b = u.id",
    "SELECT t.id, u.id FROM t LEFT JOIN u ON t.b = u.b",
    "SELECT b, c FROM t GROUP BY b, c",
    "SELECT DISTINCT b, c FROM t",
    "SELECT t.id, t.b FROM t JOIN u ON t.b = u.b WHERE u.id = 3",
    "SELECT s, id FROM (SELECT id, sum(b) AS s FROM t GROUP BY id) AS q",
    "SELECT b, s FROM (SELECT b, count(*) AS s FROM t GROUP BY b) AS q",
    "SELECT b, c FROM t UNION SELECT b, c FROM u",
    "SELECT b + 1, id FROM t ORDER BY b LIMIT 1",
)
KEYLESS = (
    "SELECT t.id, t.b, u.b FROM t JOIN u ON t.b = u.b",
    "SELECT id, b FROM t UNION ALL SELECT id, b FROM u",
    "WITH w AS (SELECT id, b FROM t) SELECT x.id, y.id, x.b FROM w AS x JOIN w AS y ON x.b = y.b",
)


def small_table():
    """Give rows with different ids, whose numbers meet each other often."""
    ids = random.sample(range(8), random.randint(1, 6))
    return [
        (i, 0.0, random.randint(0, 3), Decimal(1), 1, 0.5, random.choice("xy"), "z") for i in ids
    ]


def key_faults(query, databases=200 if LONG else 25):
    """Count databases in which columns that should tell rows apart do not."""
    plan = plan_of(query)
    names = [f.name for f in fields_of(plan)]
    found = keys_after(plan, lambda scan: declared_keys(POLICY, scan))
    sets = [s for size in range(len(names) + 1) for s in combinations(range(len(names)), size)]
    telling = [s for s in sets if identifies(found, frozenset(names[i] for i in s))]
    faults = 0
    for _ in range(databases):
        rows = prepare(plan)({"t": small_table(), "u": small_table()})
        for places in telling:
            seen = [tuple(r[i] for i in places) for r in rows]
            faults += len(set(seen)) < len(seen)
    return faults, len(telling)


@pytest.mark.parametrize("query", KEYED + KEYLESS)
def test_keys_tell_rows_apart(query):
    faults, telling = key_faults(query)
    assert faults == 0
    assert telling or query in KEYLESS


def test_a_key_that_is_believed_through_any_join_is_caught(monkeypatch):
    def believed(node, unique):
        return facts_keys._keys(node.left, unique)

    monkeypatch.setitem(facts_keys._RULES, n.Join, believed)
    assert key_faults(KEYLESS[0], 200)[0] > 0


# ── planted faults: the seven slips of section 3.3.11 and their like ──────────────────────────────


def printed_sum(a, b):
    """[a, b] + [c, d] = [a + b, c + d]."""
    if not (a.bounded and b.bounded):
        return iv.EVERYTHING
    ends = sorted((sum(a.ends()), sum(b.ends())))
    return iv.interval(*ends)


def test_the_printed_sum_is_caught(monkeypatch):
    monkeypatch.setattr(iv, "add", printed_sum)
    assert fault_or_crash() > 0


def test_the_printed_variable_is_caught(monkeypatch):
    """1.5 + 0.5 ε for [0, 3]."""

    def printed(name, limits):
        low, high = limits.ends()
        middle = (low + high) / 2
        return affine.Affine(middle, {name: (high - low) / 6} if high > low else {}, within=limits)

    monkeypatch.setattr(affine, "variable", printed)
    assert fault_or_crash("a - f - a * 0.5") > 0


def test_the_printed_product_is_caught(monkeypatch):
    """The error term is the product of the plain sums, which cancel where signs differ."""

    def printed(a, b):
        names = dict.fromkeys((*a.terms, *b.terms))
        terms = {x: a.center * b.terms.get(x, 0) + b.center * a.terms.get(x, 0) for x in names}
        error = abs((sum(a.terms.values()) + a.error) * (sum(b.terms.values()) + b.error))
        return affine.Affine(a.center * b.center, terms, error, iv.multiply(a.range(), b.range()))

    monkeypatch.setattr(affine, "multiply", printed)
    monkeypatch.setitem(ranges_forms._BINARY, "*", printed)
    assert fault_or_crash("(a - f) * (a - f) - f") > 0


def test_the_printed_fixing_is_caught(monkeypatch):
    """ε = a / y instead of (a - y0) / y1."""

    def printed(a, name, limits, value):
        term = a.terms.get(name, Fraction(0))
        low, high = limits.ends()
        moved = term * value.ends()[0] / ((high - low) / 2) if high > low else 0
        terms = {other: found for other, found in a.terms.items() if other != name}
        return affine.Affine(a.center + moved, terms, a.error)

    monkeypatch.setattr(affine, "fixed", printed)
    assert fault_or_crash("e - f + 3 * e") > 0


def test_swapped_methods_for_perhaps_rows_are_caught(monkeypatch):
    """The largest count from the rows that surely pass, the smallest from those that perhaps do."""
    right = aggregate_range

    def swapped(function, strata, **options):
        turned = [Stratum(s.value, s.possible or s.sure, s.sure) for s in strata]
        if function == "count":
            ends = sorted((sum(s.sure for s in strata), sum(s.sure for s in strata)))
            return iv.interval(*ends)
        return right(function, turned, **options)

    monkeypatch.setattr(ranges_groups, "aggregate_range", swapped)
    assert fault_or_crash(strata=True) > 0


def test_a_minimum_of_lower_ends_alone_is_caught(monkeypatch):
    def printed(strata):
        possible = min(s.value.low for s in strata)
        sure = [s.value.low for s in strata if s.sure]
        return iv.interval(possible, min(sure, default=possible))

    monkeypatch.setattr(ranges_groups, "_least", printed)
    assert fault_or_crash(strata=True) > 0


def test_a_sum_that_forgets_negative_rows_that_perhaps_count_is_caught(monkeypatch):
    def forgetful(strata):
        return sum((s.sure * s.value.low for s in strata), Fraction(0))

    monkeypatch.setattr(ranges_groups, "_least_sum", forgetful)
    assert fault_or_crash(strata=True) > 0


def test_a_filter_that_forgets_null_is_caught(monkeypatch):
    monkeypatch.setattr(ranges_filters, "may_be_null", lambda r, scalar: False)
    assert fault_or_crash() > 0


def test_pieces_that_leave_a_gap_are_caught(monkeypatch):
    right = affine.pieces
    monkeypatch.setattr(affine, "pieces", lambda limits, count: right(limits, count)[:-1])
    assert fault_or_crash("f * f * f - f * f / 3") > 0


def fault_or_crash(expression=None, *, strata=False):
    """Look until there is a fault; ranges that contradict each other stop the work, which is a catch as well."""
    try:
        if strata:
            return any(stratum_checks(1000))
        if expression is None:
            return any(scalar_checks(60))
        plan = plan_of(f"SELECT {expression} FROM t")
        interval = ranges_of(plan.input, POLICY, lambda inner: None).of(plan.items[0].expression)
        drawn = [r[0] for _ in range(400) for r in prepare(plan)({"t": [row()]})]
        return sum(not inside(interval, value) for value in drawn if value is not None)
    except (AssertionError, InternalError):
        return 1
