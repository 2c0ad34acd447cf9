"""Rewrites that keep the meaning of a plan and give it the shape that analyses read best.

Each pass is one function from plan to plan; NORMALIZE is their order. `normalize` verifies what they leave.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from secant.errors import Span
from secant.plan import nodes as n
from secant.plan.evaluate.evaluate import evaluate
from secant.plan.evaluate.values import Failure
from secant.plan.facts.reads import columns_named
from secant.plan.facts.regions import joined
from secant.plan.rewrites.steps import as_product
from secant.plan.show import same
from secant.plan.typing import Mistyped, fields_of, type_of
from secant.plan.verify import verify
from secant.records import replace
from secant.schema import types as t

Pass = Callable[[n.Relation], n.Relation]


def transform(
    root: n.Relation, change: Callable[[n.Node], n.Node], *classes: type[n.Node]
) -> n.Relation:
    """Apply `change` to every node, children first; a shared node is changed once and stays shared.

    Where classes are given, `change` leaves all others as they are: parts that hold none of them are not gone through.
    """
    done: dict[n.Node, n.Node] = {}
    mask = n.bits(*classes) if classes else -1

    n.kinds(root)  # all below know theirs from now on

    def visit(node: n.Node) -> n.Node:
        if not node._kinds & mask:
            return node
        changed = done.get(node)
        if changed is None:
            changed = done[node] = change(n.rebuild(node, visit))
        return changed

    result = visit(root)
    assert isinstance(result, n.Relation)
    return result


def spell_out(plan: n.Relation) -> n.Relation:
    """Give a plan that computes the same without Quantize."""
    return transform(plan, lambda x: as_product(x) if isinstance(x, n.Quantize) else x, n.Quantize)


def with_parts(node: n.N, **parts: n.Node | tuple[n.Node, ...] | None) -> n.N:
    """Give the node with some of its parts exchanged; the same node if they are what it had."""
    same = all(getattr(node, name) == part for name, part in parts.items())
    return node if same else replace(node, **parts)


def replaced(whole: n.N, old: n.N, new: n.N) -> n.N:
    """Put a node in place of another, wherever it stands: a relation in a plan, a scalar in an expression."""

    @n.once
    def change(node: n.Node) -> n.Node:
        return new if node is old else n.rebuild(node, change)

    return new if whole is old else n.rebuild(whole, change)


def fold_constants(plan: n.Relation) -> n.Relation:
    """Compute what depends on no column: `1 + 10`, `DATE '1995-01-01' + INTERVAL '1' YEAR`."""

    def change(node: n.Node) -> n.Node:
        if isinstance(node, _COMPUTING) and all(
            isinstance(child, n.Literal) for child in n.children(node)
        ):
            return _constant(node)
        return node

    return transform(plan, change, *_COMPUTING)


_COMPUTING = (n.Arithmetic, n.Negate, n.Cast, n.Call, n.Extract)


def _constant(node: n.Scalar) -> n.Scalar:
    """Give the value of an expression over constants; where it fails it stays, and fails at the engine."""
    try:
        ((value,),) = evaluate(n.Project(n.Values((), ((),)), (n.Named("value", node),)), {})
    except Failure:
        return node
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return node
    return n.Literal(value, type_of(node))


def factor_disjunctions(plan: n.Relation) -> n.Relation:
    """Take conditions that stand in every branch of an OR out of it: (a AND b) OR (a AND c) is a AND (b OR c)."""

    def change(node: n.Node) -> n.Node:
        if not isinstance(node, n.Or):
            return node
        branches = [n.conjuncts(o) for o in node.operands]
        shared = tuple(
            part
            for part in branches[0]
            if all(any(same(part, p) for p in b) for b in branches[1:])
            and type_of(part) == t.BOOLEAN  # a bare NULL would change the type of the whole
        )
        if not shared:
            return node
        rests = [tuple(p for p in b if not any(same(p, s) for s in shared)) for b in branches]
        if any(not remaining for remaining in rests):
            return n.conjunction(shared) or node
        return n.And((*shared, n.Or(tuple(n.conjunction(r) or node for r in rests))))

    return transform(plan, change, n.Or)


def push_filters(plan: n.Relation) -> n.Relation:
    """Move each condition of a WHERE over inner joins to the lowest join or table that has its columns."""

    def change(node: n.Node) -> n.Node:
        if isinstance(node, n.Filter) and isinstance(node.input, (n.Join, n.Filter)):
            return _sink(node)
        if isinstance(node, n.Join) and node.kind != "left":
            return _sink(n.Filter(node, n.Literal(True, t.BOOLEAN)))
        return node

    return transform(plan, change, n.Filter, n.Join)


def _sink(node: n.Filter) -> n.Relation:
    region, span = joined(node), node.span
    leaves, parts = region.leaves, [p for p in region.conditions if not _trivial(p)]
    owned = [frozenset(f.name for f in fields_of(leaf)) for leaf in leaves]
    everything = frozenset().union(*owned)
    pending = [(part, columns_of(part) & everything) for part in parts]
    for index, leaf in enumerate(leaves):
        local = tuple(p for p, names in pending if names and names <= owned[index])
        leaves[index] = _filtered(leaf, local, span)
        pending = [(p, names) for p, names in pending if not (names and names <= owned[index])]
    rows, seen = leaves[0], owned[0]
    remaining = list(range(1, len(leaves)))
    while remaining:
        index = next((i for i in remaining if _connected(pending, seen, owned[i])), remaining[0])
        remaining.remove(index)
        seen = seen | owned[index]
        usable = tuple(p for p, names in pending if names and names <= seen)
        pending = [(p, names) for p, names in pending if not (names and names <= seen)]
        condition = n.conjunction(usable)
        kind = "cross" if condition is None else "inner"
        rows = n.Join(kind, rows, leaves[index], condition, _span_of_join(usable) or span)
    return _filtered(rows, tuple(p for p, _ in pending), span)


def _trivial(part: n.Scalar) -> bool:
    return isinstance(part, n.Literal) and part.value is True


def _connected(
    pending: list[tuple[n.Scalar, frozenset[str]]], seen: frozenset[str], leaf: frozenset[str]
) -> bool:
    return any(
        isinstance(p, n.Compare)
        and p.op == "="
        and names & seen
        and names & leaf
        and names <= seen | leaf
        for p, names in pending
    )


def _span_of_join(parts: tuple[n.Scalar, ...]) -> Span | None:
    return next((p.span for p in parts if isinstance(p, n.Compare) and p.span), None)


def _filtered(relation: n.Relation, parts: tuple[n.Scalar, ...], span: Span | None) -> n.Relation:
    predicate = n.conjunction(parts)
    if predicate is None:
        return relation
    if isinstance(relation, n.Filter):
        return replace(relation, predicate=n.And((*n.conjuncts(relation.predicate), *parts)))
    return n.Filter(relation, predicate, span)


def columns_of(scalar: n.Node) -> frozenset[str]:
    """Give all columns that an expression reads, also from inside its subqueries."""
    try:
        return scalar._reads
    except AttributeError:
        parts = [part for child in n.children(scalar) if (part := columns_of(child))]
    names = columns_named(scalar).union(*parts)
    object.__setattr__(scalar, "_reads", names)
    return names


def merge_projections(plan: n.Relation) -> n.Relation:
    """Look through a projection that only renames: nothing is lost and fewer layers are left to read."""

    def change(node: n.Node) -> n.Node:
        if (
            isinstance(node, n.Filter)
            and isinstance(node.input, n.Project)
            and _renames(node.input)
        ):
            names = {i.name: i.expression for i in node.input.items}
            predicate = substitute(node.predicate, names)
            return replace(node.input, input=n.Filter(node.input.input, predicate, node.span))
        return node

    return transform(plan, change, n.Filter)


def _renames(node: n.Project) -> bool:
    return all(isinstance(i.expression, n.Column) for i in node.items)


def substitute(scalar: n.Scalar, columns: dict[str, n.Scalar]) -> n.Scalar:
    """Replace columns by expressions, also where a subquery refers to them from inside."""

    @n.once
    def change(node: n.Node) -> n.Node:
        if isinstance(node, n.Column) and node.name in columns:
            replacement = columns[node.name]
            # A column that stands for itself stays what it is, and with it what is known of all above it.
            itself = isinstance(replacement, n.Column) and (replacement.name, replacement.type) == (
                node.name,
                node.type,
            )
            return node if itself else replacement
        if isinstance(node, n.Outer) and node.name in columns:
            return _from_inside(columns[node.name], node.span)
        return n.rebuild(node, change)

    changed = change(scalar)
    assert isinstance(changed, n.Scalar)
    return changed


def _from_inside(scalar: n.Scalar, span: Span | None) -> n.Scalar:
    """Write an expression of the enclosing query for a place inside a subquery: its columns are outer ones there."""

    def change(node: n.Node) -> n.Node:
        if isinstance(node, n.Column):
            return n.Outer(node.name, node.type, span)
        # what a subquery of its own reads is not of the enclosing query
        return node if isinstance(node, n.Relation) else n.rebuild(node, change)

    changed = change(scalar)
    assert isinstance(changed, n.Scalar)
    return changed


def retype(plan: n.Relation) -> n.Relation:
    """Let every column have the type that its source has now: a softened count is a float.

    Raises Mistyped where an expression does not take the new type.
    """
    kinds: dict[str, t.Type] = {}

    def change(node: n.Node) -> n.Node:
        if isinstance(node, (n.Column, n.Outer)):
            kind = kinds.get(node.name, node.type)
            return node if kind == node.type else replace(node, type=kind)
        if isinstance(node, (n.Union, n.Intersect, n.Except)):
            node = replace(node, columns=_columns_of_both(node))
        if isinstance(node, n.Relation):
            kinds.update((f.name, f.type) for f in fields_of(node))
        if isinstance(node, n.Scalar):
            type_of(node)
        return node

    return transform(plan, change)


def _columns_of_both(node: n.Union | n.Intersect | n.Except) -> tuple[n.Field, ...]:
    """Give the columns of a set operation with the types that hold the values of both sides."""
    fields_of_both = []
    for a, b, out in zip(fields_of(node.left), fields_of(node.right), node.columns, strict=True):
        kind = t.unify(a.type, b.type)
        if kind is None:
            raise Mistyped(f"{a.type} beside {b.type} makes no sense", node)
        fields_of_both.append(n.Field(out.name, kind))
    return tuple(fields_of_both)


NORMALIZE: tuple[Pass, ...] = (fold_constants, factor_disjunctions, merge_projections, push_filters)


def normalize(plan: n.Relation) -> n.Relation:
    """Run every pass in order; what comes out is verified."""
    before = plan
    for step in NORMALIZE:
        plan = step(plan)
    if plan is not before:
        verify(plan)
    return plan
