"""UNION ALL over values that move: the branches of a union, each of which is read as if it were asked for alone.

In: rows below an aggregate. Out: relations with the same columns whose rows, put together, are those rows. Filters,
projections and inner joins go into the branches, so that each of them is a tree that can be stripped
(derivative.union). Never here: data, a bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product

from secant.plan import nodes as n
from secant.plan.rewrites.rewrite import substitute
from secant.plan.typing import fields_of
from secant.sensitivity.certificate import CannotBound
from secant.sensitivity.derivative.soften.stripped import sees

MOST_BRANCHES = 16
"""Branches after joins of unions are multiplied out: each is a scan of its own."""


def branches_of(relation: n.Relation) -> tuple[n.Relation, ...]:
    """Split what a union of all rows stands under nothing but projections and filters; one branch if there is none."""
    if isinstance(relation, n.Union) and relation.all:
        return tuple(
            renamed(branch, relation)
            for side in (relation.left, relation.right)
            for branch in branches_of(side)
        )
    if isinstance(relation, (n.Project, n.Filter)):
        below = branches_of(relation.input)
        return (relation,) if len(below) == 1 else tuple(replace(relation, input=b) for b in below)
    return (relation,)


def spread(relation: n.Relation, protected: frozenset[str]) -> tuple[n.Relation, ...]:
    """Split unions of protected values, also below inner joins: a join of a union is a union of joins."""
    branches = _spread(relation, protected)
    if len(branches) > MOST_BRANCHES:
        raise CannotBound(
            "derivative.union",
            relation,
            f"joins of unions have {len(branches)} branches, more than {MOST_BRANCHES}",
            "ask for some of the branches by themselves, and add the answers up",
        )
    return branches


def _spread(relation: n.Relation, protected: frozenset[str]) -> tuple[n.Relation, ...]:
    if not sees(relation, protected):
        return (relation,)
    if isinstance(relation, n.Union) and relation.all:
        return tuple(
            renamed(branch, relation)
            for side in (relation.left, relation.right)
            for branch in _spread(side, protected)
        )
    if isinstance(relation, (n.Project, n.Filter, n.Sort)):
        below = _spread(relation.input, protected)
        return (relation,) if len(below) == 1 else tuple(replace(relation, input=b) for b in below)
    if isinstance(relation, n.Join):
        lefts = _spread(relation.left, protected)
        # Which rows a left join pads depends on all rows of its right side.
        rights = (
            (relation.right,) if relation.kind == "left" else _spread(relation.right, protected)
        )
        if len(lefts) * len(rights) > 1:
            return tuple(replace(relation, left=a, right=b) for a, b in product(lefts, rights))
    return (relation,)


def renamed(branch: n.Relation, union: n.Union | n.Intersect | n.Except) -> n.Relation:
    """Show a side's columns under the names, and in the types, of the union."""
    items = []
    for own, column in zip(fields_of(branch), union.columns, strict=True):
        value: n.Scalar = n.Column(own.name, own.type)
        items.append(
            n.Named(column.name, value if own.type == column.type else n.Cast(value, column.type))
        )
    return n.Project(branch, tuple(items))


def pulled(branch: n.Project) -> tuple[n.Relation, tuple[n.Named, ...]]:
    """Write a branch's columns over what its projections read, so that other columns can be computed beside them."""
    items, below = branch.items, branch.input
    while isinstance(below, n.Project):
        inner: dict[str, n.Scalar] = {i.name: i.expression for i in below.items}
        items = tuple(n.Named(i.name, substitute(i.expression, inner)) for i in items)
        below = below.input
    return below, items


def together(branches: Sequence[n.Project]) -> n.Relation:
    """Put branches back together, under the names of the first. Below, every name is used once."""
    columns = fields_of(branches[0])
    union: n.Relation = _apart(branches[0], 0)
    for number, branch in enumerate(branches[1:], 1):
        last = number == len(branches) - 1
        shown = tuple(f if last else n.Field(f"{f.name}.first{number}", f.type) for f in columns)
        union = n.Union(union, _apart(branch, number), True, shown)
    return union


def _apart(branch: n.Project, number: int) -> n.Project:
    items = tuple(n.Named(f"{i.name}.branch{number}", i.expression) for i in branch.items)
    return n.Project(branch.input, items)
