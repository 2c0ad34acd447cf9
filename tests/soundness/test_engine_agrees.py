"""What runs is what was bounded: DuckDB on the printed statement answers as `evaluate` does, and never fails.

An error that depends on a row would tell of the row, so every statement must be answered, whatever the rows hold.
The default profile compares some hundreds of drawn releases, the long one (SECANT_PROFILE=long) thousands.
"""

import functools
import itertools
import random
import re
from collections import Counter
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction

import pytest
from directed_cases import CASES, world_of
from drawn_queries import Questions
from drawn_worlds import COLUMNS, draw_database, draw_pool, draw_world, favored_tables
from drawn_worlds import _kept_unique as kept_unique
from engine_answers import (
    FAILED,
    Engine,
    difference,
    made_hostile,
    releases_of,
    target_on,
)
from neighbor_check import Findings, World
from search import _parents as parents

from chance import LONG, chance, fresh_seed
from naming_public import name_public
from secant.engines.print import print_sql as lower
from secant.plan import nodes as n
from secant.plan.evaluate.evaluate import evaluate
from secant.plan.evaluate.values import Failure, same_key
from secant.policy.policy import ColumnFacts, Policy, Protection, TableFacts
from secant.schema import types as t
from secant.schema.catalog import Table, catalog

QUESTIONS = 9_000 if LONG else 220
COMPARED = 10_000 if LONG else 100  # releases on databases; four times as many are usual
PAIRED = 2_000 if LONG else 120  # questions whose claims are held against the engine's own answers
TRIPLES = 1_000 if LONG else 30
SEARCHED = 900  # questions within which a planted fault must be seen


@pytest.fixture
def engine():
    found = Engine(COLUMNS)
    yield found
    found.close()


def questions(seeds):
    """Draw a world, a question and the tables that it reads for each seed."""
    for seed in seeds:
        draw = random.Random(seed)
        world = draw_world(draw)
        text = Questions(draw, favored_tables(world)).question()
        names = frozenset(name for name in COLUMNS if re.search(rf"\b{name}\b", text))
        yield seed, draw, world, text, names | parents(text)


def databases(draw, world, tables):
    """Draw two databases, and two with hostile values."""
    for share in (0.0, 0.08, 0.0, 0.3):
        found = draw_database(draw, world, tables)
        yield kept_unique(made_hostile(draw, found, COLUMNS, share), world) if share else found


def fresh(count):
    """Give seeds, new ones in each long run; a failure names the one that it came from."""
    start = fresh_seed()
    return range(start, start + count)


def test_drawn_releases_are_answered_as_they_are_meant(engine, record_property):
    compared = releases = 0
    for seed, draw, world, text, tables in questions(fresh(QUESTIONS)):
        found = releases_of(text, world)
        releases += len(found)
        for database in databases(draw, world, tables) if found else ():
            for bounded in found:
                compared += 1
                told = difference(engine, bounded.release, database)
                assert told is None, f"seed {seed}: {text}\n{told}\n{database}"
    record_property("releases", releases)
    print(f"{releases} releases, {compared} answers compared")
    assert compared >= COMPARED


def test_claims_hold_on_the_engine_itself(engine, record_property):
    findings = Findings()
    for seed, draw, world, text, tables in questions(fresh(PAIRED)):
        target = target_on(engine, text, world, findings)
        if target.runners:
            target.try_on(draw_database(draw, world, tables), draw_pool(draw))
        assert [str(v) for v in findings.violations[:1]] == [], f"seed {seed}"
    record_property("triples", findings.triples)
    print(f"{findings.triples} triples on the engine")
    assert findings.triples >= TRIPLES


def test_directed_cases_on_the_engine(engine):
    compared, findings = 0, Findings()
    for name, case in CASES.items():
        world = world_of(*case.protections)
        for bounded in releases_of(case.text, world):
            compared += 1
            assert difference(engine, bounded.release, case.database) is None, name
        target_on(engine, case.text, world, findings).try_on(case.database, case.pool)
    assert [str(v) for v in findings.violations] == []
    assert compared > len(CASES) / 3
    assert findings.triples > compared


# ── values at the ends ───────────────────────────────────────────────────────────────────────────

WIDE = t.decimal(38, 2)
FINE = t.decimal(18, 18)
TABLES = {
    "person": (("id", t.INTEGER), ("age", t.INTEGER)),
    "event": (
        ("eid", t.INTEGER), ("pid", t.INTEGER), ("big", t.INTEGER), ("real", t.DOUBLE), ("wide", WIDE),
        ("cost", t.decimal(18, 2)), ("fine", FINE), ("note", t.TEXT), ("flag", t.BOOLEAN),
        ("day", t.DATE), ("until", t.DATE), ("moment", t.TIMESTAMP),
    ),
}  # fmt: skip
FACTS = {
    "person": TableFacts(("id",), {}, {"age": ColumnFacts(range=(0, 100))}),
    "event": TableFacts(
        ("eid",),
        {"pid": ("person", "id")},
        {
            "big": ColumnFacts(range=(0, 2**61)),
            "real": ColumnFacts(range=(0, 1)),
            "wide": ColumnFacts(range=(Decimal(0), Decimal(10) ** 15)),
            "cost": ColumnFacts(range=(Decimal(-5), Decimal(10) ** 15)),
            "day": ColumnFacts(range=(date(2000, 1, 1), date(2001, 1, 1))),
        },
    ),
}
PEOPLE = Protection(
    "people", "unit", Fraction(1), Fraction(1, 1000), unit=("person", "id"), limits={"event": 20}
)
ROWS = Protection("rows", "rows", Fraction(1), Fraction(1, 1000))
KNOWN = catalog(*(Table(name, c) for name, c in TABLES.items()))
WORLDS = [World(KNOWN, name_public(Policy("", FACTS, (p,)), KNOWN)) for p in (PEOPLE, ROWS)]
LARGEST = 2**63 - 1
WIDEST = Decimal("999999999999999999999999999999999999.99")
PYTHON_ENDS = {
    "big": (LARGEST, LARGEST, -LARGEST - 1, 2**62, 0, None),
    "real": (1e308, float("inf"), float("nan"), -1e308, -0.0, float("-inf"), None),
    "wide": (WIDEST, WIDEST, WIDEST, WIDEST.copy_negate(), Decimal("0.01"), None),
    "cost": (Decimal("9999999999999999.99"), Decimal("-9999999999999999.99"), Decimal("3.25")),
    "fine": (Decimal("0.999999999999999999"), Decimal("0E-18"), None),
    "note": ("", "12", "x'y", "9" * 40, "2000-02-30", "é𝔘", "\\", "%", " ", None),
    "flag": (True, False, None),
    "day": (date.min, date.max, date(2000, 2, 29), None),
    "until": (date.max, date.min, date(2000, 3, 1), None),
    "moment": (datetime.min, datetime.max, datetime(2000, 2, 29, 23, 59, 59, 999_999), None),  # noqa: DTZ901, DTZ001
}
ENGINE_ENDS = PYTHON_ENDS | {
    "day": ("5877642-06-25 (BC)", "5881580-07-10", "infinity", "-infinity", None),
    "until": ("5881580-07-10", "5877642-06-25 (BC)", "infinity", None),
    "moment": ("290309-12-22 (BC) 00:00:00", "294247-01-10 04:00:54.775806", "infinity", "-infinity"),
}  # fmt: skip
STORED = (
    {"big": "UBIGINT", "pid": "UTINYINT", "real": "FLOAT", "moment": "TIMESTAMP_NS"},
    {"big": "TINYINT", "eid": "SMALLINT", "cost": "DECIMAL(4,1)", "moment": "TIMESTAMP_S"},
    {"big": "UINTEGER", "note": "ENUM('', '12', ' ', '%')", "moment": "TIMESTAMP_MS"},
)
"""Other types that the catalog reads as the same ones."""

PER_PERSON = (
    "sum(big)", "avg(big)", "sum(wide)", "avg(wide)", "sum(DISTINCT wide)", "sum(cost * cost)", "sum(real)",
    "avg(real)", "var_pop(real)", "stddev_samp(wide)", "sum(big) + sum(big)", "sum(big) * max(big)", "-sum(big)",
    "sum(big) // min(big)", "max(day) - min(until)", "sum(CASE WHEN flag THEN wide ELSE cost END)",
)  # fmt: skip
CONDITIONS = (
    "abs(big) > 3", "-big > 3", "big * big > 3", "big + big > 3", "big // (-1) > 3", "big % (-1) > 3", "big // 0 > 3",
    "wide = big", "greatest(wide, big) > 3", "coalesce(wide, big) > 3", "nullif(wide, big) > 3", "fine < big",
    "wide IN (1, big)", "wide BETWEEN 1 AND big", "wide * wide > 0", "wide + wide > 0", "wide / 0 > 0",
    "(wide % 0.01) = 0", "round(wide, -37) > 3", "round(wide) > 3", "floor(wide) > 3", "ceil(wide) > 3",
    "sqrt(real) > 1", "ln(real) > 1", "exp(real) > 1", "power(real, real) > 2", "1 / real > 0", "log10(real) > 0",
    "substring(note, big) = 'a'", "left(note, big) = ''", "right(note, big) = ''", "note LIKE note",
    "upper(note) = lower(note)", "note || note = note", "length(note) > 3", "trim(note) = ''",
    "CAST(note AS INTEGER) > 3", "CAST(note AS DATE) > day", "CAST(note AS DOUBLE) > real", "CAST(real AS INTEGER) > 0",
    "CAST(wide AS INTEGER) > 0", "CAST(big AS DECIMAL(18, 2)) > 0", "CAST(moment AS DATE) > day",
    "CAST(day AS TIMESTAMP) > moment", "CAST(real AS VARCHAR) = 'nan'", "day > moment", "day - until > 4",
    "day + 1 > until", "day + INTERVAL '1 month' > until", "moment - moment > INTERVAL '1 day'",
    "date_trunc('month', day) > TIMESTAMP '2000-01-01'", "date_trunc('week', moment) < moment",
    "date_diff('day', day, until) > 3", "date_diff('day', day, moment) > 3", "extract(year FROM day) > 2000",
    "extract(dow FROM moment) = 1",
)  # fmt: skip
HARD = (
    *(f"SELECT {f}({c}) FROM event" for f in ("sum", "avg", "var_pop") for c in ("big", "cost", "real", "wide")),
    "SELECT sum(DISTINCT big) FROM event", "SELECT avg(DISTINCT cost) FROM event",
    *(f"SELECT count(DISTINCT {x}) FROM event" for x in ("real", "day", "note", "date_trunc('month', day)")),
    *(f"SELECT {x} AS k, count(*) FROM event GROUP BY 1" for x in (
        "day", "moment", "note", "real", "flag", "date_trunc('year', moment)", "date_trunc('month', day)",
        "extract(year FROM day)", "CAST(real AS VARCHAR)")),
    *(f"SELECT count(*) FROM event WHERE {x}" for x in CONDITIONS),
    *(f"SELECT sum(CASE WHEN {x} THEN 1 ELSE 0 END) FROM event" for x in CONDITIONS),
    *(f"SELECT count(*) FROM (SELECT pid, {x} AS s FROM event GROUP BY pid) q WHERE s > 0" for x in PER_PERSON[:-2]),
    "SELECT count(*) FROM (SELECT pid, max(day) - min(until) AS s FROM event GROUP BY pid) q WHERE s > 0",
    *(f"SELECT count(*) FROM (SELECT pid FROM event GROUP BY pid HAVING {x} > 0) q" for x in PER_PERSON),
    "SELECT count(*) FROM (SELECT pid FROM event GROUP BY pid HAVING sum(big) > 0.000000000000000001) q",
    *(f"SELECT count(*) FROM (SELECT pid, sum({x}) AS x FROM (SELECT pid, eid, sum(big) AS s, sum(wide) AS w "
      "FROM event GROUP BY pid, eid) z GROUP BY pid) q WHERE x > 0" for x in ("s * s", "s", "w", "-s", "s + s")),
    # What is written twice: an engine that computes it once, outside of what guards it, would fail.
    "SELECT count(big * 2 + big * 2) FROM event", "SELECT count(big * 2), count(big * 2 + 1) FROM event",
    "SELECT sum(CASE WHEN wide = big OR wide + 1 > big THEN 1 ELSE 0 END), count(DISTINCT wide < big) FROM event",
    "SELECT count(day + big), count(until + big) FROM event",
    "SELECT count(*) FROM event e WHERE e.wide > (SELECT sum(f.wide) FROM event f WHERE f.pid = e.pid)",
    "SELECT count(*) FROM event e WHERE e.big IN (SELECT f.big FROM event f WHERE f.pid = e.pid)",
    "SELECT count(*) FROM event e JOIN person p ON e.pid = p.id AND e.day = e.moment",
    "SELECT count(*) FROM (SELECT pid, wide FROM event UNION ALL SELECT pid, big FROM event) q WHERE wide > 3",
)  # fmt: skip
ACCEPTED = 2 * len(HARD) * 0.8
"""Both worlds; what the policy cannot bound is refused."""


def at_the_ends(draw, ends, count=14):
    """Draw events of two people in which most values are at some end."""
    events = []
    for eid in range(count):
        drawn = {column: draw.choice(values) for column, values in ends.items()}
        events.append({"eid": eid % 12, "pid": draw.choice((1, 1, 1, 2, None)), **drawn})
    return {"person": [{"id": 1, "age": 1}, {"id": 2, "age": -5}], "event": events}


@functools.cache
def hard_releases():
    return [
        (text, world, bounded)
        for text, world in itertools.product(HARD, WORLDS)
        for bounded in releases_of(text, world)
    ]


def test_values_at_the_ends_are_answered_as_they_are_meant():
    engine, draw, compared = Engine(TABLES), chance(), 0
    rounds = [at_the_ends(draw, PYTHON_ENDS) for _ in range(20 if LONG else 1)]
    for text, _, bounded in hard_releases():
        for database in rounds:
            compared += 1
            told = difference(engine, bounded.release, database)
            assert told != FAILED, f"{text}: the engine fails on {database}"
            excused = any(part in text for part in DIFFERENT)
            assert told is None or excused, f"{text}\n{told}\n{database}"
    assert compared >= len(rounds) * ACCEPTED
    engine.close()


# Differences that do no harm: both sides are computed from the unit's rows alone, and every measure is clamped above.
DIFFERENT = {
    "cost * cost": "DuckDB multiplies decimals of up to 18 digits in 64 bits: a large product is NULL",
    "day + ": "DuckDB has days after the year 9999, Python has not",
    "-big > 3": "DuckDB turns the sides, so that the smallest number needs no counterpart",
    "-sum(big)": "a sum of whole numbers has 128 bits, what is computed with it has 64",
    "sum(-s)": "a sum of whole numbers has 128 bits, what is computed with it has 64",
    "sum(big) //": "the sum must fit into 64 bits in the engine, in `evaluate` only the quotient",
}


@pytest.mark.parametrize("stored", [{}, *STORED], ids=str)
def test_the_ends_of_the_engine_never_fail_and_keep_the_claims(stored):
    """Python has no such dates, so that only the claims can be checked: on the engine's own answers."""
    engine, draw, findings, answered = Engine(TABLES, stored), chance(), Findings(), 0
    database = at_the_ends(draw, ENGINE_ENDS)
    tried = [x for x in hard_releases() if LONG or draw.random() < 0.25]
    for text, world, bounded in tried:
        if not engine.takes(bounded.release.exact):
            continue  # refused before anything is spent, whatever the rows are
        answered += 1
        try:
            engine.rows(bounded.release.exact, database)
        except Failure:
            pytest.fail(f"{text}: the engine fails on {database}")
        if LONG or draw.random() < 0.15:
            target_on(engine, text, world, findings).try_on(database, {})
    assert [str(v) for v in findings.violations] == []
    assert findings.triples > 0
    assert answered > 0.8 * len(tried)
    engine.close()


# ── truncation ───────────────────────────────────────────────────────────────────────────────────

OWNED = {"r": (("a", t.INTEGER), ("b", t.DOUBLE), ("x", t.TEXT), ("y", t.DOUBLE), ("d", t.DATE))}
SCAN = n.Scan("r", "r", tuple(n.Field(f"r.{c}", kind) for c, kind in OWNED["r"]))


def owned_rows(draw):
    choices = {
        "a": (1, 1, 2, None, 2**63 - 1), "b": (0.0, -0.0, float("nan"), 1.5, None), "x": ("", "é", "z", "'", None),
        "y": (float("nan"), float("inf"), -1.0, 0.5, None), "d": (date.min, date.max, None),
    }  # fmt: skip
    rows = [{c: draw.choice(v) for c, v in choices.items()} for _ in range(draw.randint(0, 14))]
    return {"r": rows + [dict(draw.choice(rows)) for _ in range(4) if rows]}


def truncations(draw):
    """Draw a truncation, or one of groups, or both, one upon the other."""
    names = [f.name for f in SCAN.columns]
    plan = SCAN
    for _ in range(draw.choice((1, 1, 2))):
        owner = tuple(draw.sample(names[:2], draw.choice((1, 2))))
        chosen = tuple(draw.sample(names[2:], draw.choice((1, 2, 3))))
        limit = draw.choice((1, 2, 3, 20))
        if draw.random() < 0.5:
            plan = n.Truncate(plan, owner, chosen if draw.random() < 0.7 else (), limit)
        else:
            plan = n.TruncateGroups(plan, owner, chosen, limit)
    return plan


def bag(rows):
    return Counter(tuple(map(same_key, row)) for row in rows)


def test_truncations_keep_the_rows_that_are_meant():
    engine, draw, bitten = Engine(OWNED), chance(), 0
    for _ in range(3_000 if LONG else 150):
        plan, database = truncations(draw), owned_rows(draw)
        got, want = bag(engine.rows(plan, database)), bag(evaluate(plan, database))
        assert got == want, f"{plan}\n{database}"
        bitten += sum(want.values()) < sum(r["a"] is not None for r in database["r"])
    assert bitten > 20
    engine.close()


# ── teeth ────────────────────────────────────────────────────────────────────────────────────────


def _left_out(w, node, env):
    return lower._relation(w, node.input, env)


def _swapped_clamp(w, node, env):
    x, low, high = (lower.write(w, part, env) for part in (node.operand, node.low, node.high))
    return f"CASE WHEN {x} > {high} THEN {low} WHEN {x} < {low} THEN {high} ELSE {x} END"


def _least_and_greatest(w, node, env):
    x, low, high = (lower.write(w, part, env) for part in (node.operand, node.low, node.high))
    return f"least(greatest({x}, {low}), {high})"


def _no_attempt(w, node, env):
    return lower.write(w, node.operand, env)


FAULTS = {
    "rows of units are not truncated": (lower.RELATIONS, n.Truncate, _left_out),
    "groups of units are not truncated": (lower.RELATIONS, n.TruncateGroups, _left_out),
    "the ends of a clamp are swapped": (lower.SCALARS, n.Clamp, _swapped_clamp),
    "NULL is moved to an end": (lower.SCALARS, n.Clamp, _least_and_greatest),
    "what differs is not told apart": (lower.RELATIONS, n.Distinct, _left_out),
}


@functools.cache
def searched(seed):
    """Give what a seed draws, and its releases: no fault in printing changes them, and bounding takes longest."""
    ((_, draw, world, text, tables),) = questions([seed])
    return draw.getstate(), world, tables, releases_of(text, world)


@pytest.mark.parametrize("what", FAULTS)
def test_a_statement_that_is_printed_wrong_is_noticed(what, engine, monkeypatch):
    table, node, wrong = FAULTS[what]
    monkeypatch.setitem(table._rules, node, wrong)
    draw = random.Random()
    for seed in range(SEARCHED):  # the same each time: no luck
        state, world, tables, found = searched(seed)
        draw.setstate(state)
        for bounded in found:
            if any(isinstance(x, node) for x in n.walk(bounded.release.exact)):
                for database in databases(draw, world, tables):
                    if difference(engine, bounded.release, database) is not None:
                        return
    pytest.fail("the fault went unnoticed")


def test_an_expression_that_may_fail_and_is_not_guarded_is_noticed(monkeypatch):
    monkeypatch.setitem(lower.SCALARS._rules, n.Attempt, _no_attempt)
    engine, draw = Engine(TABLES), random.Random(1)
    database, failed = at_the_ends(draw, PYTHON_ENDS), 0
    for _, _, bounded in hard_releases():
        failed += difference(engine, bounded.release, database) == FAILED
    assert failed > 10
    engine.close()
