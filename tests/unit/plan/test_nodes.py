"""The structure of plans: children, rebuilding, walking, and tables of rules."""

from __future__ import annotations

import gc

import pytest

from secant.plan import nodes as n
from secant.plan.facts.reads import scans
from secant.plan.facts.scopes import borrowed_by
from secant.plan.rewrites import null_on_error as total
from secant.plan.rewrites.rewrite import columns_of
from secant.plan.rule_table import RuleTable
from secant.plan.typing import fields_of
from secant.plan.verify import verify
from secant.schema import types as t

ONE, TWO = n.Literal(1, t.INTEGER), n.Literal(2, t.INTEGER)
SCAN = n.Scan("t", "t", (n.Field("t.x", t.INTEGER),))
TRUE = n.Literal(True, t.BOOLEAN)


def test_children_are_given_in_order():
    case = n.Case((n.Branch(TRUE, ONE),), TWO)
    assert list(n.children(case)) == [case.branches[0], TWO]
    join = n.Join("inner", SCAN, n.Distinct(SCAN), TRUE)
    assert list(n.children(join)) == [SCAN, join.right, TRUE]
    assert list(n.children(SCAN)) == []


def test_rebuild_changes_what_is_below_and_keeps_the_rest():
    call = n.Call("least", (ONE, TWO, ONE))
    changed = n.rebuild(call, lambda node: TWO if node is ONE else node)
    assert isinstance(changed, n.Call)
    assert changed.arguments == (TWO, TWO, TWO)
    assert changed.function == "least"
    assert n.rebuild(call, lambda node: node) is call
    negation = n.Negate(ONE)
    assert n.rebuild(negation, lambda _: TWO).operand is TWO


def test_walk_visits_shared_nodes_once():
    union = n.Union(SCAN, SCAN, True, SCAN.columns)
    assert list(n.walk(n.Distinct(union)))[1:] == [union, SCAN]


def test_what_a_node_remembers_is_what_it_would_say_again():
    def made() -> n.Relation:
        left, right = (n.Scan("t", a, (n.Field(f"{a}.x", t.INTEGER),)) for a in ("a", "b"))
        column = n.Column("a.x", t.INTEGER)
        asked = n.InSubquery(column, n.Project(right, (n.Named("x", n.Outer("a.x", t.INTEGER)),)))
        return n.Filter(n.Join("cross", left, n.Distinct(right), None), n.And((asked, TRUE)))

    plan = made()
    first = list(n.walk(plan))
    assert list(n.walk(plan)) == first == list(n._walk(plan))
    assert scans(plan) == scans(plan) == tuple(x for x in first if isinstance(x, n.Scan))
    assert borrowed_by(plan) == borrowed_by(plan) == {}
    query = next(x.relation for x in first if isinstance(x, n.InSubquery))
    assert list(borrowed_by(query)) == ["a.x"]
    # A change makes new nodes, which remember nothing of the old ones.
    changed = n.rebuild(plan, lambda x: x.left if isinstance(x, n.Join) else x)
    assert [s.alias for s in scans(changed)] == ["a", "b"]
    assert [
        s.alias for s in scans(n.rebuild(changed, lambda x: TRUE if isinstance(x, n.And) else x))
    ] == ["a"]


def test_a_plan_goes_with_its_question_and_waits_for_no_collector():
    def held() -> int:
        return sum(type(x) in (n.Scan, n.Filter, n.Distinct) for x in gc.get_objects())

    gc.collect()
    gc.disable()
    try:
        before = held()
        scan = n.Scan("t", "t", (n.Field("t.x", t.INTEGER),))
        plan = n.Distinct(n.Filter(scan, TRUE))
        list(n.walk(plan)), scans(plan), borrowed_by(plan), verify(plan), n.kinds(plan)
        fields_of(plan), columns_of(plan)
        del scan, plan
        assert held() == before
    finally:
        gc.enable()


def test_conjuncts_and_conjunction_undo_each_other():
    parts = (TRUE, n.Not(TRUE), n.IsNull(ONE))
    nested = n.And((n.And(parts[:2]), parts[2]))
    assert n.conjuncts(nested) == parts
    whole = n.conjunction(parts)
    assert isinstance(whole, n.And)
    assert n.conjuncts(whole) == parts
    assert n.conjunction(()) is None
    assert n.conjuncts(None) == ()
    assert n.conjunction((TRUE,)) is TRUE


def test_a_table_takes_one_rule_for_each_node():
    table: RuleTable = RuleTable("example")

    @table.rule(n.Not, n.IsNull, id="X-NOT")
    def _rule(node: n.Node) -> str:
        return "seen"

    assert table.find(n.Not(TRUE)) is _rule
    assert table.find(TRUE) is None
    assert table.ids[n.IsNull] == "X-NOT"
    assert table.covered() == {n.Not, n.IsNull}
    with pytest.raises(AssertionError, match="two rules for Not"):
        table.rule(n.Not)(_rule)
    with pytest.raises(AssertionError, match="Scalar is not listed"):
        table.rule(n.Scalar)(_rule)


def test_a_rule_for_a_class_does_not_serve_its_subclasses():
    class Special(n.Not):
        pass

    table: RuleTable = RuleTable("example")
    table.rule(n.Not)(lambda node: node)
    assert table.find(Special(TRUE)) is None


def test_every_node_says_whether_it_can_fail():
    assert total.FAILURES.covered() == frozenset(n.NODES)


def test_a_node_that_nobody_has_thought_about_can_fail(monkeypatch):
    text = n.Literal("a", t.TEXT)
    assert not total.can_fail(n.Like(n.Column("x", t.TEXT), text))
    monkeypatch.delitem(total.FAILURES._rules, n.Like)
    assert total.can_fail(n.Like(n.Column("x", t.TEXT), text))
