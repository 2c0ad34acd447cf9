"""Stages, by brute force: whatever was released first, the bound of what follows holds on all neighbors.

Rests on workflow.staged.
"""

import random
import re
from dataclasses import replace
from fractions import Fraction

import pytest
from drawn_worlds import COLUMNS, KEYS, RANGES, REFERENCES, VALUES, draw_database, draw_pool
from neighbor_check import Findings, Target, World, _Limits, _Runner
from staged_tables import certified, has_stages, with_constants

from chance import LONG
from naming_public import name_public
from secant.plan import nodes as n
from secant.plan.evaluate.evaluate import evaluate
from secant.plan.evaluate.evaluate import prepare as compiled
from secant.plan.evaluate.values import same_key
from secant.plan.facts.domains import Looked
from secant.plan.rewrites.rewrite import normalize, transform
from secant.policy.policy import ColumnFacts, Policy, Protection, TableFacts
from secant.schema.catalog import Table, catalog
from secant.sensitivity.portfolio import Decomposition, prepare
from secant.sql.bind import from_sql

ROUNDS = 400 if LONG else 6

PEOPLE = Protection(
    "people", "unit", Fraction(1), Fraction(1, 1000), unit=("person", "id"),
    limits={"visit": 2, "item": 2, "note": 2, "meter": 2}, truncation="fixed",
)  # fmt: skip
CHOSEN = replace(PEOPLE, truncation="chosen")
ROWS = Protection(
    "rows", "rows", Fraction(1), Fraction(1, 1000),
    tables=("person", "visit", "item", "note", "meter"),
)  # fmt: skip
REPLACED = replace(ROWS, replace=True)

ABOVE_AVERAGE = "SELECT count(*) FROM visit WHERE cost > (SELECT avg(cost) FROM visit)"
STAGED = {
    "constant": ABOVE_AVERAGE,
    "keys": (
        "SELECT kind, sum(cost), count(*) FROM visit WHERE cost > "
        "(SELECT avg(w.cost) FROM visit w WHERE w.kind = 'a') GROUP BY kind"
    ),
    "looked up for each public row": (
        "SELECT sum(v.cost) FROM visit v JOIN place p ON v.code = p.code "
        "WHERE v.cost < (SELECT 2 * avg(w.cost) FROM visit w WHERE w.code = p.code)"
    ),
    "listed": (
        "SELECT count(*) FROM person WHERE city IN "
        "(SELECT p.city FROM person p GROUP BY p.city HAVING count(*) > 1)"
    ),
    "three stages": (
        "SELECT count(*) FROM person WHERE age > (SELECT avg(p.age) FROM person p "
        "WHERE p.age > (SELECT avg(q.age) FROM person q))"
    ),
    "groups put together": (
        "SELECT count(*) FROM person WHERE age >= (SELECT max(m) FROM "
        "(SELECT p.city, count(*) AS m FROM person p GROUP BY p.city) AS u)"
    ),
    "inside a value": (
        "SELECT sum(CASE WHEN cost > (SELECT avg(w.cost) FROM visit w) THEN cost ELSE 1 END) FROM visit"
    ),
}  # fmt: skip
OF_UNITS = {
    "beside a subquery of the same unit": (
        "SELECT city, count(*) FROM person WHERE age > (SELECT avg(p.age) FROM person p) "
        "AND NOT EXISTS (SELECT * FROM visit WHERE pid = id) GROUP BY city"
    ),
    "across a join": (
        "SELECT sum(i.qty) FROM visit v JOIN item i ON v.vid = i.vid "
        "WHERE v.cost > (SELECT avg(w.cost) FROM visit w)"
    ),
}  # fmt: skip
LOOKED_UP = {
    "two columns": (
        "SELECT p.code FROM place p WHERE p.size > 1 AND p.size > "
        "(SELECT sum(v.cost) FROM visit v WHERE v.code = p.code AND v.kind = p.region)"
    ),
    "a value": (
        "SELECT p.code, (SELECT count(*) FROM visit v WHERE v.code + 1 = p.code + p.size) FROM place p"
    ),
    "in a subquery": (
        "SELECT count(*) FROM place q WHERE q.code IN (SELECT p.code FROM place p WHERE p.size < "
        "(SELECT count(*) FROM visit v WHERE v.code = p.code))"
    ),
}  # fmt: skip


def world_of(protection):
    tables = {}
    for name, columns in COLUMNS.items():
        facts = {c: ColumnFacts(range=RANGES[name, c]) for c, _ in columns if (name, c) in RANGES}
        facts |= {c: ColumnFacts(values=VALUES[name, c]) for c, _ in columns if (name, c) in VALUES}
        tables[name] = TableFacts(KEYS.get(name, ()), REFERENCES.get(name, {}), facts)
    known = catalog(*(Table(name, columns) for name, columns in COLUMNS.items()))
    return World(known, name_public(Policy("", tables, (protection,)), known))


def prepared_in(world, text):
    plan = normalize(from_sql(text, world.catalog))
    outcome = prepare(plan, world.policy, world.policy.protections, world.catalog)
    assert isinstance(outcome, Decomposition), outcome
    return outcome


def target(text, world, prepared, findings):
    runners = tuple(
        _Runner(
            b,
            compiled(b.release.exact),
            tuple(compiled(r.cells) for r in b.release.ranked),
            tuple(x for c in b.certificates for x in _Limits.all_of(c)),
        )
        for b in prepared.bounded
    )
    return Target(text, world, runners, findings)


def databases(text, world, draw, rounds=ROUNDS):
    tables = frozenset(name for name in COLUMNS if re.search(rf"\b{name}\b", text))
    for _ in range(rounds):
        yield draw_database(draw, world, tables | {"person", "place"})


def violations(text, world, made, draw, rounds=ROUNDS):
    """Give what neighbors refute, with a new table of constants for each database."""
    findings = Findings()
    for database in databases(text, world, draw, rounds):
        target(text, world, made(draw), findings).try_on(database, draw_pool(draw))
    assert findings.triples > rounds
    return findings.violations


CASES = [
    *((p, text) for p in (PEOPLE, CHOSEN, ROWS, REPLACED) for text in STAGED.values()),
    *((p, text) for p in (PEOPLE, CHOSEN) for text in OF_UNITS.values()),
]


@pytest.mark.parametrize(("protection", "text"), CASES)
def test_whatever_was_released_the_next_bound_holds(protection, text):
    world = world_of(protection)
    prepared = prepared_in(world, text)
    assert has_stages(prepared)
    draw = random.Random(text)
    assert violations(text, world, lambda d: with_constants(prepared, d), draw) == []


@pytest.mark.parametrize("protection", [PEOPLE, ROWS])
@pytest.mark.parametrize("text", LOOKED_UP.values())
def test_groups_for_public_rows_are_bounded_like_any_others(protection, text):
    world = world_of(protection)
    prepared = prepared_in(world, text)
    assert len(prepared.bounded) == 1
    assert not has_stages(prepared)
    assert violations(text, world, lambda d: prepared, random.Random(text)) == []


@pytest.mark.parametrize("protection", [PEOPLE, ROWS])
def test_an_earlier_number_without_noise_is_caught(protection):
    """The fault: what the subquery really says reaches the later stage, and not what was released of it."""
    world = world_of(protection)
    prepared = prepared_in(world, ABOVE_AVERAGE)
    plan = normalize(from_sql(ABOVE_AVERAGE, world.catalog))
    (truth,) = [x for x in n.walk(plan) if isinstance(x, n.ScalarSubquery)]

    def leak(node):
        reads = any(isinstance(x, n.Released) for x in n.walk(node))
        return truth if isinstance(node, n.ScalarSubquery) and reads else node

    later = prepared.bounded[-1]
    release = replace(later.release, exact=transform(later.release.exact, leak))
    certificates = tuple(certified(c, leak) for c in later.certificates)
    leaking = replace(
        prepared, bounded=(replace(later, release=release, certificates=certificates),)
    )
    assert violations(ABOVE_AVERAGE, world, lambda d: leaking, random.Random(1), 200)


# ── the answer is the one that was asked for ─────────────────────────────────────────────────────

EXACT = Protection("rows", "rows", Fraction(1), tables=("visit",))
ASKED = {
    **LOOKED_UP,
    "a count of nothing": (
        "SELECT p.code, p.size, (SELECT count(*) FROM visit v WHERE v.code = p.code) FROM place p"
    ),
    "beside the table's own columns": (
        "SELECT p.code, (SELECT p.size + count(*) FROM visit v WHERE v.code = p.code) FROM place p"
    ),
    "beside other conditions": (
        "SELECT p.code FROM place p JOIN place q ON p.code = q.code WHERE q.size > 1 AND "
        "p.region IN (SELECT r.region FROM place r WHERE r.size < 4) AND "
        "(SELECT count(*) FROM visit v WHERE v.code = q.code) > 0"
    ),
}  # fmt: skip


@pytest.mark.parametrize("text", ASKED.values())
def test_lookups_without_noise_say_what_the_subquery_says(text):
    world = world_of(EXACT)
    plan = normalize(from_sql(text, world.catalog))
    prepared = prepared_in(world, text)
    (bounded,) = prepared.bounded
    release = bounded.release
    draw = random.Random(text)
    compared = 0
    for database in databases(text, world, draw, 4 * ROUNDS):
        # Only what is declared: clamping is not the question here.
        visits = [v for v in database["visit"] if v["cost"] is not None and 1 <= v["cost"] <= 4]
        database = {**database, "visit": visits}
        table = released_exactly(release, database)
        truth = evaluate(plan, database)
        found = evaluate(with_table(prepared.post, table), database)
        if any(None in row for row in truth):
            continue  # a sum of nothing is near 0 here
        empty = any(not m for row in table.rows for m in row[len(release.exact.keys) :])
        if empty and "sum(" in text:
            continue
        compared += 1
        assert sorted(map(repr, map(known, truth))) == sorted(map(repr, map(known, found)))
    assert compared > ROUNDS // 5


def with_table(plan, table):
    return transform(plan, lambda x: table if isinstance(x, n.Released) else x)


def known(row):
    return tuple(map(same_key, row))


def released_exactly(release, database):
    """Give the table that a release without noise would show: a row for every key that is looked up."""
    (domain,) = release.domains
    assert isinstance(domain, Looked)
    width = len(release.exact.keys)
    measured = {known(row[:width]): row[width:] for row in evaluate(release.exact, database)}
    rows = []
    for key in evaluate(domain.relation, database):
        values = measured.get(known(key), (None,) * len(release.measures))
        rows.append((*key, *(0 if v is None else v for v in values)))
    released = release.finish.input
    assert isinstance(released, n.Released)
    return n.Values(released.columns, tuple(rows))
