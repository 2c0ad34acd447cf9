"""The conjunctive form says the same as the relation that it was taken from."""

from __future__ import annotations

import random
from typing import Any

import pytest

from secant.plan import nodes as n
from secant.plan.evaluate.evaluate import evaluate
from secant.plan.facts.conjunctive import Conjunctive, NotConjunctive, conjunctive
from secant.plan.rewrites.rewrite import normalize
from secant.plan.typing import fields_of
from secant.plan.verify import verify
from secant.schema import types as t
from secant.schema.catalog import Table, catalog
from secant.sql.bind import from_sql

CATALOG = catalog(
    Table("e", (("src", t.INTEGER), ("dst", t.INTEGER))),
    Table("r", (("a", t.INTEGER), ("b", t.INTEGER))),
    Table("s", (("b", t.INTEGER), ("c", t.DOUBLE))),
    Table("p", (("c", t.INTEGER), ("d", t.TEXT))),
)
VARYING = {"e", "r", "s"}


def taken(text: str) -> tuple[n.Relation, Conjunctive | NotConjunctive]:
    plan = normalize(from_sql(text, CATALOG))
    while not isinstance(plan, n.Aggregate):
        (plan,) = (c for c in n.children(plan) if isinstance(c, n.Relation))
    items = [n.Named(k.name, k.expression) for k in plan.keys]
    items += [n.Named(a.name, a.argument) for a in plan.aggregations if a.argument is not None]
    # enforce() puts keys and arguments into a projection of its own
    relation = n.Project(plan.input, tuple(items)) if items else plan.input
    return relation, conjunctive(relation, VARYING.__contains__)


def rejoined(form: Conjunctive) -> n.Relation:
    """Join the atoms again, in the plainest way."""
    joined = form.atoms[0].relation
    for atom in form.atoms[1:]:
        joined = n.Join("cross", joined, atom.relation, None)
    kinds = {f.name: f.type for f in fields_of(joined)}
    parts = [c.scalar for c in form.conditions]
    for group in form.classes:
        first, *rest = (n.Column(name, kinds[name]) for name in sorted(group))
        parts += [n.Compare("=", first, other) for other in rest]
    condition = n.conjunction(tuple(parts))
    kept = joined if condition is None else n.Filter(joined, condition)
    return n.Project(kept, tuple(n.Named(name, e) for name, e in form.outputs.items()))


def drawn(draw: random.Random) -> dict[str, list[dict[str, Any]]]:
    values: dict[str, tuple[Any, ...]] = {
        "INTEGER": (0, 1, 2, None), "DOUBLE": (0.0, 1.0, 2.0, None), "TEXT": ("a", "b", None)
    }  # fmt: skip
    return {
        name: [
            {c: draw.choice(values[kind.kind]) for c, kind in table.columns}
            for _ in range(draw.randrange(6))
        ]
        for name, table in CATALOG.tables.items()
    }


SAME = (
    "SELECT count(*) FROM e",
    "SELECT src, count(*) FROM e WHERE dst > 0 GROUP BY src",
    "SELECT count(*) FROM e a, e b WHERE a.dst = b.src",
    "SELECT count(*) FROM e a, e b, e c WHERE a.dst = b.src AND b.dst = c.dst AND a.src = c.src",
    "SELECT count(*) FROM r, s WHERE r.b = s.b AND r.a < s.c",
    "SELECT count(*) FROM r, s, p WHERE r.b = s.b AND s.c = p.c AND p.d = 'a'",
    "SELECT count(*) FROM r CROSS JOIN s",
    "SELECT count(*) FROM r, s, e WHERE r.b = s.b AND s.b = e.src AND r.b > 0 AND e.src < 2",
    "SELECT count(*) FROM r JOIN s ON r.b = s.b OR r.a = s.b",
    "SELECT d, count(*), sum(r.a) FROM r, p WHERE r.b + 1 = p.c GROUP BY d",
    "SELECT count(*) FROM r JOIN e ON r.a = e.src AND r.b = e.src",
    (
        "WITH w AS (SELECT src AS x, dst AS y FROM e WHERE src < 2) "
        "SELECT count(*) FROM w AS f, w AS g WHERE f.y = g.x"
    ),
    (
        "WITH w AS (SELECT r.a AS x, s.b AS y FROM r, s WHERE r.b = s.b) "
        "SELECT count(*) FROM w AS f, w AS g WHERE f.y = g.x"
    ),
    "SELECT count(*) FROM (SELECT DISTINCT src, dst FROM e) AS f, r WHERE f.dst = r.a",
    "SELECT count(*) FROM r WHERE r.a IN (SELECT c FROM p)",
    "SELECT count(*) FROM r, (SELECT c, count(*) AS m FROM p GROUP BY c) AS q WHERE q.c = r.a",
    "SELECT count(*) FROM (SELECT r.a + s.b AS z FROM r, s) AS q, e WHERE q.z = e.src",
    (
        "SELECT count(*) FROM e a, e b WHERE a.src = b.src AND EXISTS "
        "(SELECT 1 FROM p WHERE p.c = a.dst)"
    ),
)


@pytest.mark.parametrize("text", SAME)
def test_the_form_has_the_rows_of_the_relation(text):
    relation, form = taken(text)
    assert isinstance(form, Conjunctive), form
    again = rejoined(form)
    verify(again)
    order = [f.name for f in fields_of(relation)]
    place = [[f.name for f in fields_of(again)].index(name) for name in order]
    draw = random.Random(7)
    some = 0
    for _ in range(120):
        database = drawn(draw)
        before = sorted(map(repr, evaluate(relation, database)))
        after = sorted(repr(tuple(row[i] for i in place)) for row in evaluate(again, database))
        assert before == after
        some += bool(before)
    assert some > 3


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("SELECT count(*) FROM r LEFT JOIN s ON r.b = s.b", "LEFT JOIN"),
        ("SELECT count(*) FROM (SELECT a FROM r UNION ALL SELECT b FROM s) AS q", "union"),
        ("SELECT count(*) FROM (SELECT a, count(*) FROM r GROUP BY a) AS q", "GROUP BY"),
        ("SELECT count(*) FROM (SELECT a FROM r LIMIT 3) AS q", "LIMIT"),
        ("SELECT count(*) FROM r WHERE a IN (SELECT b FROM s)", "subquery"),
        ("SELECT count(*) FROM p WHERE c IN (SELECT b FROM s)", "subquery"),
        ("SELECT count(*) FROM (SELECT DISTINCT a, c FROM r, s) AS q", "DISTINCT"),
        ("SELECT count(*) FROM (SELECT DISTINCT c FROM s) AS q", "reals"),
        ("SELECT count(*) FROM r, (SELECT c FROM p LIMIT 2) AS q WHERE q.c = r.a", "LIMIT"),
    ],
)
def test_what_has_no_such_form_is_told(text, words):
    _, verdict = taken(text)
    assert isinstance(verdict, NotConjunctive)
    assert words in verdict.reason
    assert verdict.hint


def test_atoms_classes_and_conditions():
    _, form = taken(
        "SELECT count(*) FROM r, s, p WHERE r.b = s.b AND r.a = s.b AND p.c < r.a AND p.d = 'a'"
    )
    assert isinstance(form, Conjunctive)
    assert {a.table: a.varying for a in form.atoms} == {"r": True, "s": True, "p": False}
    assert form.classes == (frozenset({"r.a", "r.b", "s.b"}),)
    (condition,) = form.conditions
    assert {form.atoms[i].table for i in condition.atoms} == {"p", "r"}
    r = next(a for a in form.atoms if a.table == "r")
    assert isinstance(r.relation, n.Filter)  # r.a = r.b follows
    assert r.origin == {"r.a": "a", "r.b": "b"}


def test_a_filter_of_a_class_is_asked_of_every_atom():
    _, form = taken("SELECT count(*) FROM r, s WHERE r.b = s.b AND r.b > 1")
    assert isinstance(form, Conjunctive)
    assert all(isinstance(a.relation, n.Filter) for a in form.atoms)
    _, real = taken("SELECT count(*) FROM s x, s y WHERE x.c = y.c AND x.c > 1")
    assert isinstance(real, Conjunctive)
    assert sum(isinstance(a.relation, n.Filter) for a in real.atoms) == 1


def test_a_distinct_has_a_key():
    _, form = taken(
        "SELECT count(*) FROM (SELECT DISTINCT src, dst FROM e) AS f, r WHERE f.src = r.a"
    )
    assert isinstance(form, Conjunctive)
    keys = {a.table: a.key for a in form.atoms}
    assert keys["r"] is None
    assert keys["e"] is not None
    assert len(keys["e"]) == 2


def test_whole_numbers_and_reals_are_no_class():
    _, form = taken("SELECT count(*) FROM r, s WHERE r.a = s.c")
    assert isinstance(form, Conjunctive)
    assert form.classes == ()
    assert len(form.conditions) == 1


def test_a_relation_used_twice_is_two_atoms():
    _, form = taken(
        "WITH w AS (SELECT src AS x, dst AS y FROM e) SELECT count(*) FROM w AS f, w AS g"
    )
    assert isinstance(form, Conjunctive)
    assert len({a.name for a in form.atoms}) == 2
    names = [f.name for a in form.atoms for f in fields_of(a.relation)]
    assert len(names) == len(set(names))


def test_a_very_deep_query_is_told():
    relation: n.Relation = n.Scan("r", "r", (n.Field("r.a", t.INTEGER),))
    relation = n.Join("cross", relation, n.Scan("r", "q", (n.Field("q.a", t.INTEGER),)), None)
    for _ in range(300):
        relation = n.Filter(relation, n.Literal(True, t.BOOLEAN))
    verdict = conjunctive(relation, VARYING.__contains__)
    assert isinstance(verdict, NotConjunctive)
    assert "deep" in verdict.reason
