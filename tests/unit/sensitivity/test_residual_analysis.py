"""The residual analysis: which figures it measures, how tight they are, and what it refuses."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import duckdb
import pytest

from secant.engines.print.print_sql import lower
from secant.plan import nodes as n
from secant.plan.evaluate.evaluate import evaluate
from secant.plan.facts.facts import Facts
from secant.plan.rewrites.enforce import MeasuredAggregate, enforce
from secant.plan.rewrites.rewrite import normalize
from secant.plan.verify import verify
from secant.policy.keys import Key, Trust
from secant.policy.policy import ColumnFacts, Policy, Protection, TableFacts
from secant.schema import types as t
from secant.schema.catalog import Table, catalog
from secant.sensitivity.certificate import Certificate, Refusal, Step, Surveyed
from secant.sensitivity.interface import Request
from secant.sensitivity.residual import rules
from secant.sensitivity.residual.analysis import ResidualAnalysis
from secant.sql.bind import from_sql

BETA = Fraction(1, 10)
TABLES = {
    "c": ("ck", "seg"), "o": ("ok", "ck"), "l": ("ok", "sk"), "s": ("sk", "nk"), "e": ("src", "dst"),
    "g": ("id", "grp"), "part": ("class0", "count"),
}  # fmt: skip
Rows = Mapping[str, Sequence[tuple[int, ...]]]
ORDERED = "a.src = c.src AND a.dst = b.src AND b.dst = c.dst AND a.src < a.dst AND b.src < b.dst"
CHAIN = "SELECT count(*) FROM c, o, l WHERE c.ck = o.ck AND o.ok = l.ok"


def asked(
    text: str,
    *,
    unique: Mapping[str, tuple[str, ...]] | None = None,
    declared: Mapping[str, tuple[str, ...]] | None = None,
    listed: bool = True,
) -> Certificate | Refusal:
    kept, told = unique or {}, declared or {}
    known = catalog(
        *(
            Table(
                name,
                tuple((c, t.INTEGER) for c in columns),
                (kept[name],) if name in kept else (),
            )
            for name, columns in TABLES.items()
        )
    )
    values = (1, 2, 3) if listed else None
    facts = {
        name: TableFacts(told.get(name, ()), {}, {c: ColumnFacts(values=values) for c in columns})
        for name, columns in TABLES.items()
    }
    rows = Protection(
        "rows", "rows", Fraction(1), Fraction(1, 1000), tables=("c", "o", "l", "e", "g", "part")
    )
    policy = Policy("", facts, (rows,))
    plan = normalize(from_sql(text, known))
    aggregate = next(x for x in n.walk(plan) if isinstance(x, n.Aggregate))
    release = enforce(aggregate, "release1", Facts(policy, known), (rows,))
    assert isinstance(release, MeasuredAggregate), release
    return ResidualAnalysis().bound(Request(release, Facts(policy, known), rows))


def bounded(text: str, **more: Any) -> Certificate:
    found = asked(text, **more)
    assert isinstance(found, Certificate), found
    return found


def smooth(found: Certificate, rows: Rows, beta: Fraction = BETA) -> float:
    (bound,) = found.bounds.values()
    assert isinstance(bound, Surveyed)
    (survey,) = bound.surveys
    database = {name: tuple(rows.get(name, ())) for name in TABLES}
    figures = tuple(tuple(evaluate(s, database)) for s in survey.statements)
    return float(survey.rows(beta, figures))


def measured(found: Certificate) -> int:
    """Count the figures that the statements of the only survey give."""
    (bound,) = found.bounds.values()
    assert isinstance(bound, Surveyed)
    nothing: Rows = dict.fromkeys(TABLES, ())
    return sum(len(tuple(evaluate(s, nothing))) for s in bound.surveys[0].statements)


def used_rules(found: Certificate) -> set[str]:
    def below(step: Step) -> set[str]:
        return {step.rule}.union(*(below(p) for p in step.premises))

    return set().union(*(below(step) for step in found.derivation))


def test_a_single_table_needs_no_figure():
    found = bounded("SELECT count(*) FROM c WHERE seg = 1")
    (bound,) = found.bounds.values()
    assert isinstance(bound, Surveyed)
    assert bound.surveys[0].statements == ()
    assert bound.surveys[0].rows(BETA, ()) == 1


def test_the_chain_is_bounded_by_what_is_there():
    # one customer with 40 orders of one line each; one order with 30 lines
    rows = {
        "c": [(1, 1), (2, 1)],
        "o": [(i, 1) for i in range(40)] + [(100, 2)],
        "l": [(i, 0) for i in range(40)] + [(100, 0)] * 30,
    }
    # A customer more meets 40 lines, and 30 more after an order more. Elastic sensitivity multiplies 40 by 30.
    exact = max(
        math.exp(-0.1 * (i + j)) * (40 + i * (30 + j)) for i in range(40) for j in range(40)
    )
    assert exact <= smooth(bounded(CHAIN), rows) * (1 + 1e-9) <= 1.2 * exact
    assert "residual.split" in used_rules(bounded(CHAIN))


def test_the_chain_is_within_twice_the_exact_smooth_sensitivity():
    rows = {
        "c": [(i, 1) for i in range(5)],
        "o": [(10 * i + j, i) for i in range(5) for j in range(10)],
        "l": [(10 * i + j, 0) for i in range(5) for j in range(10) for _ in range(60)],
    }
    found = smooth(bounded(CHAIN), rows)
    local = 600  # a customer more beside one that is there
    # no smooth bound is smaller: after k rows more a customer can have k lines more, or an order more
    exact = max(
        math.exp(-0.1 * (i + j)) * (local + i * (60 + j)) for i in range(60) for j in range(60)
    )
    assert exact <= found * (1 + 1e-9)
    assert found <= 2 * exact


def test_kept_keys_do_not_grow():
    text = "SELECT count(*) FROM g a, g b WHERE a.id = b.id"
    rows = {"g": [(1, 1), (2, 1)]}
    assert smooth(bounded(text, unique={"g": ("id",)}), rows) == 3
    assert smooth(bounded(text), rows) > 8


def test_public_rows_that_a_checked_key_tells_apart_are_not_counted():
    text = "SELECT count(*) FROM o, l, s WHERE o.ok = l.ok AND l.sk = s.sk AND s.nk = 2"
    rows = {"o": [(1, 1), (2, 1)], "l": [(1, 5), (1, 6), (2, 6)], "s": [(5, 2), (6, 2), (7, 1)]}
    checked, counted = bounded(text, declared={"s": ("sk",)}), bounded(text)
    assert checked.claims == (Key("s", ("sk",), Trust.CHECKED),)
    assert counted.claims == ()
    assert measured(counted) - measured(checked) == 1
    assert smooth(checked, rows) == smooth(counted, rows)


def test_a_declared_key_of_a_table_whose_rows_come_and_go_is_counted():
    text = "SELECT count(*) FROM o, l WHERE o.ok = l.ok"
    found = bounded(text, declared={"o": ("ok",)})
    assert found.claims == ()
    assert smooth(found, {"o": [(1, 1)] * 30}) >= 30


def test_a_self_join_by_group_is_exact():
    text = "SELECT count(*) FROM g a, g b WHERE a.grp = b.grp"
    rows = {"g": [(i, 1) for i in range(30)] + [(i, 2) for i in range(7)]}
    # a row more in the group of 30 adds 2 * 30 + 1 pairs, and after k rows more 2 (30 + k) + 1
    exact = max(math.exp(-0.1 * k) * (2 * (30 + k) + 1) for k in range(100))
    assert smooth(bounded(text), rows) == pytest.approx(exact)


def test_an_ordered_self_join_is_not_counted_twice():
    text = "SELECT count(*) FROM g a, g b WHERE a.grp = b.grp AND a.id < b.id"
    rows = {"g": [(i, 1) for i in range(30)]}
    assert smooth(bounded(text), rows) == pytest.approx(30)
    assert smooth(bounded(text.replace("<", "<>")), rows) == pytest.approx(60)


def test_alike_residuals_are_measured_once():
    found = bounded("SELECT count(*) FROM g a, g b, g c WHERE a.grp = b.grp AND b.grp = c.grp")
    (bound,) = found.bounds.values()
    assert isinstance(bound, Surveyed)
    (statement,) = bound.surveys[0].statements
    database: Rows = dict.fromkeys(TABLES, ())
    assert len(evaluate(statement, {**database, "g": ((1, 1),)})) == 2  # of two copies, of one


@pytest.mark.parametrize(
    "text",
    [
        "SELECT count(*) FROM g a, g b, g c, e WHERE a.grp = b.grp AND b.grp = c.id AND e.src = a.id",
        "SELECT count(*) FROM e a, e b, e c, e d WHERE a.dst = b.src AND b.dst = c.src AND c.dst = d.src",
        "SELECT count(*) FROM " + ", ".join(f"g g{i}" for i in range(6)) + " WHERE "
        + " AND ".join(f"g0.grp = g{i}.grp" for i in range(1, 6)),
    ],
)  # fmt: skip
def test_measuring_alike_residuals_once_changes_nothing(text, monkeypatch):
    draw = random.Random(2)
    databases = [
        {t: [(draw.randrange(3), draw.randrange(3)) for _ in range(6)] for t in ("g", "e")}
        for _ in range(4)
    ]
    merged = bounded(text)
    monkeypatch.setattr(rules.Residuals, "_name", lambda _, atoms, boundary: (atoms, boundary))
    apart = bounded(text)
    assert [smooth(merged, d) for d in databases] == [smooth(apart, d) for d in databases]


def power_law(nodes: int, seed: int) -> list[tuple[int, int]]:
    draw = random.Random(seed)
    weights = [(i + 1) ** -0.6 for i in range(nodes)]
    scale = nodes * 4 / sum(weights)
    weights = [w * scale for w in weights]
    total = sum(weights)
    return [
        (i, j)
        for i in range(nodes)
        for j in range(i + 1, nodes)
        if draw.random() < min(1, weights[i] * weights[j] / total)
    ]


def exact_triangles(edges: list[tuple[int, int]], nodes: int, beta: float) -> float:
    """The smooth sensitivity by its definition: for each pair the cheapest way to make common neighbors."""
    near: list[set[int]] = [set() for _ in range(nodes)]
    for i, j in edges:
        near[i].add(j)
        near[j].add(i)
    best = 0.0
    for i in range(nodes):
        for j in range(i + 1, nodes):
            both = len(near[i] & near[j])
            one = len((near[i] ^ near[j]) - {i, j})
            for s in range(40):
                value = math.exp(-beta * s) * (both + (s + min(s, one)) // 2)
                best = max(best, value)
    return best


@pytest.mark.parametrize(
    ("text", "unique"),
    [
        (f"SELECT count(*) FROM e a, e b, e c WHERE {ORDERED}", {"e": ("src", "dst")}),
        (
            (
                "WITH w AS (SELECT DISTINCT src, dst FROM e) "
                f"SELECT count(*) FROM w a, w b, w c WHERE {ORDERED}"
            ),
            {},
        ),
        (
            (
                "WITH w AS (SELECT DISTINCT src AS x, dst AS y FROM e WHERE src < dst) "
                "SELECT count(*) FROM w a, w b, w c WHERE a.x = c.x AND a.y = b.x AND b.y = c.y"
            ),
            {},
        ),
    ],
)
def test_triangles_are_within_twice_the_exact_smooth_sensitivity(text, unique):
    nodes = 120
    edges = power_law(nodes, 3)
    found = bounded(text, unique=unique)
    assert "residual.triangle" in used_rules(found)
    exact = exact_triangles(edges, nodes, 0.1)
    bound = smooth(found, {"e": edges})
    assert exact <= bound * (1 + 1e-9)
    assert bound <= 2 * exact


@pytest.mark.parametrize(
    ("text", "unique"),
    [
        (f"SELECT count(*) FROM e a, e b, e c WHERE {ORDERED}", {}),
        (f"SELECT count(*) FROM e a, e b, e c WHERE {ORDERED}", {"e": ("src",)}),
        (
            "SELECT count(*) FROM e a, e b, e c WHERE a.dst = b.src AND b.dst = c.src AND c.dst = a.src",
            {"e": ("src", "dst")},
        ),
        (
            f"SELECT count(*) FROM e a, e b, e c, g WHERE {ORDERED} AND g.id = a.src",
            {"e": ("src", "dst")},
        ),
    ],
)
def test_other_triangles_are_plain_joins(text, unique):
    found = used_rules(bounded(text, unique=unique))
    assert ("residual.triangle" in found) == (unique == {"e": ("src",)})


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("SELECT count(*) FROM " + ", ".join(f"g g{i}" for i in range(10)), "residual.copies"),
        ("SELECT count(*) FROM c LEFT JOIN o ON c.ck = o.ck", "residual.form"),
        ("SELECT count(*) FROM c WHERE ck IN (SELECT ck FROM o)", "residual.form"),
        ("SELECT count(*) FROM (SELECT ck FROM c LIMIT 3) AS q", "residual.form"),
        ("SELECT count(*) FROM s", "residual.form"),
        ("SELECT median(c.ck) FROM c, o WHERE c.ck = o.ck", "residual.rank"),
    ],
)
def test_refusals(text, rule):
    found = asked(text)
    assert isinstance(found, Refusal)
    assert (found.rule, found.analysis) == (rule, "residual")
    assert found.reason
    assert found.hint


def test_groups():
    own = bounded(
        "SELECT ck, count(*) FROM (SELECT c.ck FROM c, o WHERE c.ck = o.ck) AS q GROUP BY ck"
    )
    assert own.groups == 1
    other = bounded(
        "SELECT seg, count(*) FROM (SELECT c.seg FROM c, o WHERE c.ck = o.ck) AS q GROUP BY seg"
    )
    assert (
        other.groups == 4
    )  # an order does not tell its customer's segment, nor whether there is one
    chosen = asked("SELECT seg, count(*) FROM c GROUP BY seg", listed=False)
    assert isinstance(chosen, Refusal)
    assert chosen.rule == "residual.keys"


STATEMENTS = (
    CHAIN,
    "SELECT count(*) FROM part AS part1, part AS part2 WHERE part1.count = part2.class0",
    "SELECT count(*) FROM c, o, l, s WHERE c.ck = o.ck AND o.ok = l.ok AND l.sk = s.sk AND c.seg = s.nk",
    "SELECT count(*) FROM c, o, l WHERE c.ck = o.ck AND o.ok = l.ok AND c.seg < l.sk",
    "SELECT count(*) FROM g a, g b, g c WHERE a.grp = b.grp AND b.id = c.id",
    "SELECT ck, count(*) FROM (SELECT c.ck FROM c, o WHERE c.ck = o.ck) AS q GROUP BY ck",
    "SELECT count(*) FROM c CROSS JOIN g",
)


@pytest.mark.parametrize("text", STATEMENTS)
def test_the_engine_measures_what_the_plan_says(text):
    draw = random.Random(1)
    rows = {
        name: [(draw.randrange(1, 4), draw.randrange(1, 4)) for _ in range(12)] for name in TABLES
    }
    found = bounded(text)
    (bound,) = found.bounds.values()
    assert isinstance(bound, Surveyed)
    with duckdb.connect() as engine:
        for name, columns in TABLES.items():
            engine.execute(f"CREATE TABLE {name} ({', '.join(f'{c} BIGINT' for c in columns)})")
            engine.executemany(f"INSERT INTO {name} VALUES (?, ?)", rows[name])
        for statement in bound.surveys[0].statements:
            verify(statement)
            said = engine.execute(lower(statement)).fetchall()
            assert sorted(said) == sorted(evaluate(statement, rows))
