"""An aggregate that is asked anew for each row of an outer query becomes one aggregate with groups.

In: a scalar subquery, the relation whose rows ask it, and which relations are public. Out: the aggregate grouped by
what the outer rows ask for (workflow.lookup), whose keys are exactly the values that public outer rows hold, and how
its released groups are looked up; or None where that does not fit. Never here: a bound, a release, a look at data.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from secant.plan import nodes as n
from secant.plan.facts.domains import looked_up, region_of
from secant.plan.facts.scopes import borrowed_by
from secant.plan.rewrites.rewrite import columns_of
from secant.plan.typing import fields_of, type_of
from secant.records import frozen
from secant.schema import types as t

Public = Callable[[n.Relation], bool]


@frozen
class Grouped:
    """A correlated aggregate with the values that outer rows ask for as keys."""

    subquery: n.ScalarSubquery
    source: n.Aggregate
    """The aggregate as it was asked, below the subquery's projections and filters."""
    aggregate: n.Aggregate
    asked: tuple[n.Scalar, ...]
    """For each key, what an outer row asks for."""
    name: str

    def looked_up_in(self, released: n.Relation) -> n.ScalarSubquery:
        """Give the subquery as a look into the released groups."""
        same = tuple(
            n.Compare("=", n.Column(k.name, type_of(k.expression)), outer)
            for k, outer in zip(self.aggregate.keys, self.asked, strict=True)
        )
        predicate = n.conjunction(same)
        assert predicate is not None, "a correlated aggregate is asked for something"
        kinds = {f.name: f.type for f in fields_of(released)}
        row = one_row(
            n.Filter(released, predicate),
            tuple(n.Column(c.name, kinds[c.name]) for c in self.aggregate.aggregations),
            f"{self.name}.found",
        )
        outputs = zip(self.source.aggregations, row.aggregations, strict=True)
        items = tuple(
            n.Named(call.name, _nothing(call, n.Column(one.name, type_of(one))))
            for call, one in outputs
        )
        return replace(self.subquery, relation=_put(self.subquery.relation, n.Project(row, items)))


def _nothing(call: n.Aggregation, column: n.Column) -> n.Scalar:
    """Give what the aggregate is for a row that asks for NULL: it counts nothing, and sums no value."""
    if call.function != "count":
        return column
    return n.Call("coalesce", (column, n.Literal(0, t.INTEGER)))


def one_row(relation: n.Relation, columns: tuple[n.Column, ...], name: str) -> n.Aggregate:
    """Give columns of a relation that has one row at most as an aggregate, which has exactly one."""
    calls = tuple(n.Aggregation(f"{name}{i}", "max", c) for i, c in enumerate(columns))
    return n.Aggregate(relation, (), calls)


def single_aggregate(relation: n.Relation) -> n.Aggregate | None:
    """Give the aggregate without keys that a relation of one row is made of, or None."""
    while isinstance(relation, (n.Project, n.Filter, n.Sort)):
        relation = relation.input
    return relation if isinstance(relation, n.Aggregate) and not relation.keys else None


def _put(relation: n.Relation, replacement: n.Relation) -> n.Relation:
    """Put rows in the place of the aggregate below projections, filters and sorts."""
    if isinstance(relation, (n.Project, n.Filter, n.Sort)):
        return replace(relation, input=_put(relation.input, replacement))
    return replacement


def grouped(
    subquery: n.ScalarSubquery, host: n.Relation, name: str, public: Public
) -> Grouped | None:
    """Group a correlated aggregate by what the rows of `host` ask for; None if that is not public (workflow.lookup).

    `name` begins the names of new columns.
    """
    source = single_aggregate(subquery.relation)
    if source is None:
        return None
    inner, pairs = untied(source.input)
    bare = replace(source, input=inner)
    if not pairs or borrowed_by(bare):
        return None
    outer_scalars = tuple(outer for _, outer in pairs)
    keys = tuple(n.Named(f"{name}.of{i}.{_word(x)}", _here(x)) for i, x in enumerate(outer_scalars))
    asking = _asking(host, keys, public)
    if asking is None:
        return None
    inner, columns = _columns(inner, tuple(own for own, _ in pairs), name)
    there = tuple(n.Column(k.name, type_of(k.expression)) for k in keys)
    tied = tuple(n.Compare("=", a, b) for a, b in zip(columns, there, strict=True))
    rows = n.Join("inner", inner, asking, n.conjunction(tied), subquery.span)
    # Its columns are named anew: the subquery's own names stay with what is looked up.
    calls = tuple(
        replace(call, name=f"{name}.asked{i}") for i, call in enumerate(source.aggregations)
    )
    named = tuple(n.Named(f"{name}.key{i}.{_short(c.name)}", c) for i, c in enumerate(there))
    return Grouped(
        subquery, source, n.Aggregate(rows, named, calls, source.span), outer_scalars, name
    )


def untied(relation: n.Relation) -> tuple[n.Relation, list[tuple[n.Scalar, n.Scalar]]]:
    """Take equalities of own and outer values out of filters and inner joins: rows, and (own, outer) pairs."""
    if isinstance(relation, n.Filter):
        rows, below = untied(relation.input)
        remaining, pairs = _split(n.conjuncts(relation.predicate))
        left_over = n.conjunction(remaining)
        if left_over is not None:
            rows = replace(relation, input=rows, predicate=left_over)
        return rows, below + pairs
    if isinstance(relation, n.Join) and relation.kind != "left":
        left, first = untied(relation.left)
        right, second = untied(relation.right)
        remaining, pairs = _split(n.conjuncts(relation.condition))
        condition = n.conjunction(remaining)
        kind = "cross" if condition is None else "inner"
        rows = replace(relation, kind=kind, left=left, right=right, condition=condition)
        return rows, first + second + pairs
    return relation, []


def _split(
    parts: tuple[n.Scalar, ...],
) -> tuple[tuple[n.Scalar, ...], list[tuple[n.Scalar, n.Scalar]]]:
    remaining, pairs = [], []
    for part in parts:
        pair = _pair(part)
        if pair is None:
            remaining.append(part)
        else:
            pairs.append(pair)
    return tuple(remaining), pairs


def _pair(part: n.Scalar) -> tuple[n.Scalar, n.Scalar] | None:
    """Read `own = outer`: one side stands on the subquery's rows alone, the other on outer columns alone."""
    if not isinstance(part, n.Compare) or part.op != "=" or n.has_subquery(part):
        return None
    for own, outer in ((part.left, part.right), (part.right, part.left)):
        kinds = [{type(x) for x in n.walk(side)} & {n.Column, n.Outer} for side in (own, outer)]
        if kinds == [{n.Column}, {n.Outer}]:
            return own, outer
    return None


def _here(scalar: n.Scalar) -> n.Scalar:
    """Write what is asked for over the columns of the asking rows themselves."""

    @n.once
    def change(node: n.Node) -> n.Node:
        if isinstance(node, n.Outer):
            return n.Column(node.name, node.type, node.span)
        return n.rebuild(node, change)

    changed = change(scalar)
    assert isinstance(changed, n.Scalar)
    return changed


def _asking(host: n.Relation, keys: tuple[n.Named, ...], public: Public) -> n.Relation | None:
    """Give all that the rows of a relation ask for, each once; None if protected rows decide it.

    Other conditions of the same filter or inner join count: where they fail, nobody sees what the subquery says.
    """
    if isinstance(host, n.Filter) or (isinstance(host, n.Join) and host.kind != "left"):
        region = region_of(host)
    elif isinstance(host, n.Join):
        region = region_of(n.Join("cross", host.left, host.right, None))
    elif isinstance(host, (n.Project, n.Aggregate, n.Sort)):
        region = region_of(host.input)
    else:
        return None
    visible = {f.name for leaf in region.leaves if public(leaf) for f in fields_of(leaf)}
    expressions = [n.Named(k.name, region.expand(k.expression)) for k in keys]
    if any(not columns_of(k.expression) <= visible for k in expressions):
        return None
    looked = looked_up(expressions, region, public).relation
    conditions = tuple(n.Not(n.IsNull(n.Column(f.name, f.type))) for f in fields_of(looked))
    predicate = n.conjunction(conditions)
    assert predicate is not None
    assert isinstance(looked, n.Distinct)
    # NULL equals nothing: no row could be asked for.
    return n.Distinct(n.Filter(looked.input, predicate))


def _columns(
    relation: n.Relation, owns: tuple[n.Scalar, ...], name: str
) -> tuple[n.Relation, tuple[n.Column, ...]]:
    """Give rows that hold each own side as a column, so that the join compares columns."""
    computed = [
        n.Named(f"{name}.own{i}", own)
        for i, own in enumerate(owns)
        if not isinstance(own, n.Column)
    ]
    if computed:
        passed = tuple(n.Named(f.name, n.Column(f.name, f.type)) for f in fields_of(relation))
        relation = n.Project(relation, (*passed, *computed))
    columns = tuple(
        own if isinstance(own, n.Column) else n.Column(f"{name}.own{i}", type_of(own))
        for i, own in enumerate(owns)
    )
    return relation, columns


def _word(scalar: n.Scalar) -> str:
    return _short(scalar.name) if isinstance(scalar, n.Outer) else "value"


def _short(name: str) -> str:
    return name.rsplit(".", 1)[-1]
