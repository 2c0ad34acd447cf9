"""The structure of plans: children, rebuilding, walking, and tables of rules."""

from __future__ import annotations

import pytest

from secant.plan import nodes as n
from secant.plan import total
from secant.plan.rules import RuleTable
from secant.terms import types as t

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
    like = n.Like(n.Column("x", t.TEXT), text)
    assert not total.can_fail(like)
    monkeypatch.delitem(total.FAILURES._rules, n.Like)
    assert total.can_fail(like)
