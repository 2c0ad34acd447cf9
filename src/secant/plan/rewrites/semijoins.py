"""EXISTS and IN over rows of other units, written as a join: then rows that come and go can be counted.

Rests on rewrite.exists.

In: rows whose filter asks a subquery that looks at the data of other units. Out: the same rows, with the subquery's
values joined, each once; unchanged where the subquery is not tied by equalities to a key of the asking rows. Never
here: a bound, a truncation.
"""

from __future__ import annotations

from dataclasses import replace

from secant.plan import nodes as n
from secant.plan.facts.ownership import Ownerships
from secant.plan.facts.scopes import borrowed_by
from secant.plan.rewrites.decorrelate import untied
from secant.plan.rewrites.rewrite import transform
from secant.plan.typing import fields_of, type_of

Pair = tuple[n.Scalar, n.Scalar]


def joined(rows: n.Relation, name: str, o: Ownerships) -> n.Relation:
    """Give the rows with every filter that asks about other units' rows standing on a join instead."""
    count = 0

    def change(node: n.Node) -> n.Node:
        nonlocal count
        if not isinstance(node, n.Filter):
            return node
        blocked = o.of(node).blocked
        if (
            blocked is None
            or blocked.rule != "owner.subquery"
            or o.of(node.input).blocked is not None
        ):
            return node
        conjuncts = {id(part) for part in n.conjuncts(node.predicate)}
        matches: dict[int, n.Scalar] = {}
        rows = node.input
        for part in _subqueries(node.predicate):
            tied = _tied(part, positive=id(part) in conjuncts)
            if tied is None or not _compares_a_key(o, node.input, tied[1]):
                continue
            rows, matches[id(part)] = _beside(rows, *tied, f"{name}.exists{count}")
            count += 1
        if not matches:
            return node

        @n.once
        def told(child: n.Node) -> n.Node:
            if id(child) in matches:
                return matches[id(child)]
            return child if isinstance(child, n.Relation) else n.rebuild(child, told)

        predicate = told(node.predicate)
        assert isinstance(predicate, n.Scalar)
        shown = tuple(n.Named(f.name, n.Column(f.name, f.type)) for f in fields_of(node))
        return n.Project(replace(node, input=rows, predicate=predicate), shown)

    return transform(rows, change, n.Exists, n.InSubquery)


def _subqueries(predicate: n.Scalar) -> list[n.Exists | n.InSubquery]:
    """Give the subqueries of a condition, in order, not those inside them."""
    asking = (n.Exists, n.InSubquery)
    nodes = n.reached(predicate, lambda node: not isinstance(node, (*asking, n.Relation)))
    return [node for node in nodes if isinstance(node, asking)]


def _tied(part: n.Exists | n.InSubquery, *, positive: bool) -> tuple[n.Relation, list[Pair]] | None:
    """Give the subquery's rows and what ties them: pairs of an own value and a column of the asking row."""
    inner = part.relation
    pairs: list[Pair] = []
    if isinstance(part, n.InSubquery):
        if not positive or not isinstance(part.operand, n.Column):
            return None  # NOT IN tells NULL from no match
        field = fields_of(inner)[0]
        pairs = [(n.Column(field.name, field.type), _outer(part.operand))]
    else:
        while isinstance(inner, (n.Project, n.Sort, n.Distinct)):
            inner = inner.input
        inner, pairs = untied(inner)
    mixing = (n.Aggregate, n.Window, n.Limit, n.Union, n.Intersect, n.Except)
    if not pairs or any(isinstance(x, mixing) for x in n.walk(inner)):
        return None
    if borrowed_by(inner) or not all(isinstance(b, n.Outer) for _, b in pairs):
        return None
    return inner, pairs


def _outer(column: n.Column) -> n.Outer:
    return n.Outer(column.name, column.type, column.span)


def _compares_a_key(o: Ownerships, rows: n.Relation, pairs: list[Pair]) -> bool:
    """Whether a declared key of the asking rows is compared: else one row of others may decide about many."""
    compared = {b.name for _, b in pairs if isinstance(b, n.Outer)}
    return any(key and key <= compared for key in o.of(rows).keys)


def _beside(
    rows: n.Relation, inner: n.Relation, pairs: list[Pair], name: str
) -> tuple[n.Relation, n.Scalar]:
    """Join the values that the subquery has, each once; a row is asked for where one is there."""
    items = tuple(n.Named(f"{name}.{i}", own) for i, (own, _) in enumerate(pairs))
    values = n.Distinct(n.Project(inner, items))
    columns = tuple(n.Column(i.name, type_of(i.expression)) for i in items)
    here = (n.Column(b.name, b.type) for _, b in pairs if isinstance(b, n.Outer))
    same = tuple(n.Compare("=", a, b) for a, b in zip(here, columns, strict=True))
    joined_rows = n.Join("left", rows, values, n.conjunction(same))
    return joined_rows, n.Not(n.IsNull(columns[0]))
