"""What follows the releases cannot fail: it is paid for before it is computed.

In: the plan over released and public tables. Out: the same plan, in which what would fail on a row gives NULL: an
expression, also one around a subquery, and a scalar subquery that has several rows. Never here: protected rows; what
stands below a release is made total by `total`, since the analyses read its shape; scalar subqueries over public tables
become single there as well.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import count

from secant.plan import nodes as n
from secant.plan.rewrites.decorrelate import single_aggregate
from secant.plan.rewrites.null_on_error import can_fail, failing, make_total
from secant.plan.rewrites.rewrite import transform
from secant.plan.typing import fields_of, type_of
from secant.schema import types as t

_ONE = n.Literal(1, t.INTEGER)


def unfailing(plan: n.Relation) -> n.Relation:
    """Give the plan with NULL in place of every failure that has one."""
    return make_total(_lifted(single(plan, lambda _: True)))


def still_failing(plan: n.Relation) -> n.Node | None:
    """Give what may fail all the same, such as a condition of a join around a subquery."""
    for node in n.walk(plan) if n.holds(plan, n.ScalarSubquery) else ():
        if isinstance(node, n.ScalarSubquery) and not _has_one_row(node.relation):
            return node
    return failing(plan)


def scalars_of(plan: n.Relation) -> list[n.Relation]:
    """Give the scalar subqueries that may have several rows."""
    if not n.holds(plan, n.ScalarSubquery):
        return []
    scalars = (node.relation for node in n.walk(plan) if isinstance(node, n.ScalarSubquery))
    return [relation for relation in scalars if not _has_one_row(relation)]


# ── scalar subqueries ────────────────────────────────────────────────────────────────────────────


def _has_one_row(relation: n.Relation) -> bool:
    """Whether a relation never has more than one row."""
    while True:
        if isinstance(relation, n.Limit) and relation.count is not None and relation.count <= 1:
            return True
        if isinstance(relation, n.Values) and len(relation.rows) <= 1:
            return True
        if not isinstance(relation, (n.Project, n.Filter, n.Sort, n.Limit, n.Distinct)):
            return single_aggregate(relation) is not None
        relation = relation.input


def single(plan: n.Relation, these: Callable[[n.Relation], bool]) -> n.Relation:
    """Let scalar subqueries over `these` relations be NULL where they have several rows."""
    names = _Names(plan)

    def change(node: n.Node) -> n.Node:
        if not isinstance(node, n.ScalarSubquery) or _has_one_row(node.relation):
            return node
        if not these(node.relation):
            return node
        (column,) = fields_of(node.relation)
        if column.type.kind == "INTERVAL":
            return node  # has no largest value
        argument: n.Scalar = n.Column(column.name, column.type)
        if column.type.kind == "BOOLEAN":  # truth values have no largest one in every engine
            argument = n.Case(
                (n.Branch(argument, _ONE), n.Branch(n.Not(argument), n.Literal(0, t.INTEGER))),
                n.Literal(None, t.NULL),
            )
        rows, only, shown = names.fresh(), names.fresh(), names.fresh()
        counted = n.Aggregation(rows, "count", None)
        largest = n.Aggregation(only, "max", argument)
        alone = n.Compare("=", n.Column(rows, t.INTEGER), _ONE)
        value: n.Scalar = n.Column(only, type_of(largest))
        if column.type.kind == "BOOLEAN":
            value = n.Compare("=", value, _ONE)
        item = n.Case((n.Branch(alone, value),), n.Literal(None, t.NULL))
        one = n.Aggregate(node.relation, (), (counted, largest))
        return replace(node, relation=n.Project(one, (n.Named(shown, item),)))

    return transform(plan, change, n.ScalarSubquery)


# ── expressions around subqueries ────────────────────────────────────────────────────────────────


def _lifted(plan: n.Relation) -> n.Relation:
    """Compute subqueries in columns of their own below the expressions around them, which engines then can try."""
    names = _Names(plan)

    def change(node: n.Node) -> n.Node:
        if not isinstance(node, (n.Project, n.Filter, n.Sort, n.Aggregate)):
            return node
        lifting = _Lifting(names)
        if isinstance(node, n.Project):
            changed: n.Project | n.Filter | n.Sort | n.Aggregate = replace(
                node, items=tuple(map(lifting.named, node.items))
            )
        elif isinstance(node, n.Filter):
            changed = replace(node, predicate=lifting.scalar(node.predicate))
        elif isinstance(node, n.Sort):
            keys = tuple(replace(k, expression=lifting.scalar(k.expression)) for k in node.keys)
            changed = replace(node, keys=keys)
        else:
            calls = tuple(
                replace(
                    c,
                    argument=None if c.argument is None else lifting.scalar(c.argument),
                    second=None if c.second is None else lifting.scalar(c.second),
                )
                for c in node.aggregations
            )
            changed = replace(node, keys=tuple(map(lifting.named, node.keys)), aggregations=calls)
        if not lifting.items:
            return node
        columns = tuple(n.Named(f.name, n.Column(f.name, f.type)) for f in fields_of(node.input))
        below = n.Project(node.input, (*columns, *lifting.items))
        changed = replace(changed, input=below)
        return n.Project(changed, columns) if isinstance(node, (n.Filter, n.Sort)) else changed

    return transform(plan, change, n.ScalarSubquery, n.Exists, n.InSubquery)


@dataclass
class _Names:
    """Names of columns that the plan has none of."""

    plan: n.Relation
    taken: set[str] = field(default_factory=set)

    def fresh(self) -> str:
        if not self.taken:
            relations = (r for r in n.walk(self.plan) if isinstance(r, n.Relation))
            self.taken = {f.name for r in relations for f in fields_of(r)}
        name = next(x for i in count(1) if (x := f"looked{i}.value") not in self.taken)
        self.taken.add(name)
        return name


@dataclass
class _Lifting:
    """The subqueries of one node's expressions, as columns."""

    names: _Names
    items: list[n.Named] = field(default_factory=list)

    def named(self, item: n.Named) -> n.Named:
        return n.Named(item.name, self.scalar(item.expression))

    def scalar(self, scalar: n.Scalar) -> n.Scalar:
        """Give an expression over the columns, if it can fail around a subquery."""
        alone = isinstance(scalar, (n.ScalarSubquery, n.Exists))
        if alone or not n.has_subquery(scalar) or not can_fail(scalar):
            return scalar

        @n.once
        def change(node: n.Node) -> n.Node:
            if isinstance(node, (n.ScalarSubquery, n.Exists, n.InSubquery)):
                name = self.names.fresh()
                self.items.append(n.Named(name, node))
                return n.Column(name, type_of(node))
            return n.rebuild(node, change)

        changed = change(scalar)
        assert isinstance(changed, n.Scalar)
        return changed
