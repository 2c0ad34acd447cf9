"""Passes go through no part of a plan that they leave alone: what comes out is what a full pass gives."""

from __future__ import annotations

import pytest

from secant.plan import nodes as n
from secant.plan.facts.scopes import holders
from secant.plan.rewrites.null_after_release import unfailing
from secant.plan.rewrites.null_on_error import make_total
from secant.plan.rewrites.rewrite import normalize
from secant.plan.show import canonical
from secant.schema import types as t
from secant.schema.catalog import Catalog, Table
from secant.sql.bind import from_sql

CATALOG = Catalog({
    "a": Table("a", (("id", t.INTEGER), ("x", t.DOUBLE), ("k", t.decimal(9, 2)), ("d", t.DATE))),
    "b": Table("b", (("id", t.INTEGER), ("y", t.INTEGER), ("s", t.TEXT))),
})  # fmt: skip
TEXTS = (
    "SELECT count(*) FROM a",
    "SELECT x / k, CAST(x AS TEXT) FROM a WHERE (id = 1 AND x > 2 + 3) OR (id = 1 AND k < 4)",
    "SELECT s, sum(y * y) FROM a, b WHERE a.id = b.id AND d < DATE '2020-01-01' GROUP BY s ORDER BY 2",
    "SELECT id FROM a WHERE x > (SELECT avg(y) FROM b WHERE b.id = a.id) AND EXISTS (SELECT 1 FROM b)",
    "SELECT x + (SELECT y FROM b) FROM a WHERE id IN (SELECT y + 1 FROM b WHERE s LIKE 'a%')",
    "WITH c AS (SELECT id, max(x) AS m FROM a GROUP BY id) SELECT p.m / q.m FROM c p JOIN c q ON p.id = q.id",
    "SELECT DISTINCT sum(y) OVER (PARTITION BY s ORDER BY id + 1) FROM b",
    "SELECT id FROM a UNION ALL SELECT y * 2 FROM b EXCEPT SELECT id FROM b LIMIT 3",
    "SELECT power(x, y), atan2(x, y) FROM a LEFT JOIN b ON a.id = b.id AND a.x / 2 > 1",
)


def plans(text: str) -> list[str]:
    plan = normalize(from_sql(text, CATALOG))
    return [canonical(made) for made in (plan, make_total(plan), unfailing(plan))]


@pytest.mark.parametrize("text", TEXTS)
def test_what_is_skipped_would_have_stayed(text, monkeypatch):
    skipping = plans(text)
    # every part may hold what a pass looks for; whether an expression holds a subquery decides more than that
    exact = n.bits
    monkeypatch.setattr(n, "bits", lambda *of: exact(*of) if of == (n.Relation,) else -1)
    assert plans(text) == skipping


@pytest.mark.parametrize("text", TEXTS)
def test_nodes_know_which_classes_they_hold_and_who_holds_relations(text):
    plan = normalize(from_sql(text, CATALOG))
    for node in n.walk(plan):
        assert n.kinds(node) == n.bits(*{type(x) for x in n._walk(node)})
        assert n.holds(node, n.Scalar) == any(isinstance(x, n.Scalar) for x in n._walk(node))
        for kind in (n.Scan, n.Outer, n.ScalarSubquery):
            assert n.holds(node, kind) == any(type(x) is kind for x in n._walk(node))
    assert set(holders(plan)) == {
        x for x in n.walk(plan) if isinstance(x, n.Relation) or type(x) in n.HOLDERS
    }


def test_a_plan_that_cannot_fail_stays_the_same_node():
    plan = normalize(from_sql("SELECT x, count(*) FROM a WHERE x > 1 GROUP BY x", CATALOG))
    assert make_total(plan) is plan
    failing = normalize(from_sql("SELECT k * k FROM a WHERE x > 1", CATALOG))
    assert make_total(failing) is not failing
