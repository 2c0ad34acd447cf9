"""Which columns of a relation can be NULL? By what the engine keeps, what is declared, and the query's own conditions.

In: a relation, a policy and a catalog, or an expression. Out: names of columns that are never NULL, or whether an
expression may be. It decides which groups are shown, never how far one of them moves: whoever is wrong here leaves a
group out, or shows one that is empty.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache

from secant.plan import nodes as n
from secant.plan.facts.lineage import stored_columns
from secant.plan.facts.range_filters import present_after
from secant.plan.typing import fields_of
from secant.policy.policy import Policy
from secant.schema.catalog import Catalog

Names = frozenset[str]
_SAME_ROWS = (n.Sort, n.Truncate, n.TruncateGroups, n.Distinct, n.Limit, n.Window)


def never_null(relations: Iterable[n.Relation], policy: Policy, catalog: Catalog) -> Names:
    """Give the columns of some relations that are never NULL."""

    @cache
    def present(relation: n.Relation) -> Names:
        return _present(relation, present, policy, catalog)

    return frozenset().union(*map(present, relations))


def can_be_null(scalar: n.Scalar, present: Names) -> bool:
    """Whether an expression can be NULL where these columns are not; one that fails on a row is not thought of."""
    if isinstance(scalar, n.Literal):
        return scalar.value is None
    if isinstance(scalar, n.Column):
        return scalar.name not in present
    if isinstance(scalar, (n.IsNull, n.Exists)):
        return False
    if n.has_subquery(scalar):
        return True
    if isinstance(scalar, n.Case):
        values = (*(branch.value for branch in scalar.branches), scalar.default)
        return any(can_be_null(value, present) for value in values)
    parts = [part for part in n.children(scalar) if isinstance(part, n.Scalar)]
    some = all if isinstance(scalar, n.Call) and scalar.function == "coalesce" else any
    return some(can_be_null(part, present) for part in parts)


def _present(
    relation: n.Relation, look: Callable[[n.Relation], Names], policy: Policy, catalog: Catalog
) -> Names:
    if isinstance(relation, n.Scan):
        return _stored(relation, policy, catalog)
    if isinstance(relation, n.Values):
        return frozenset(
            f.name
            for index, f in enumerate(relation.columns)
            if all(row[index] is not None for row in relation.rows)
        )
    if isinstance(relation, n.Filter):
        return look(relation.input) | present_after(n.conjuncts(relation.predicate))
    if isinstance(relation, n.Project):
        inner = look(relation.input)
        return frozenset(i.name for i in relation.items if not can_be_null(i.expression, inner))
    if isinstance(relation, n.Join):
        if relation.kind == "left":
            return look(relation.left)
        both = look(relation.left) | look(relation.right)
        return both | present_after(n.conjuncts(relation.condition))
    if isinstance(relation, n.Aggregate):
        inner = look(relation.input)
        counts = {a.name for a in relation.aggregations if a.function == "count"}
        return frozenset(
            k.name for k in relation.keys if not can_be_null(k.expression, inner)
        ) | frozenset(counts)
    if isinstance(relation, n.Union):
        sides = [(fields_of(s), look(s)) for s in (relation.left, relation.right)]
        return frozenset(
            f.name
            for index, f in enumerate(relation.columns)
            if all(fields[index].name in names for fields, names in sides)
        )
    if isinstance(relation, _SAME_ROWS):
        return look(relation.input)
    return frozenset()


def _stored(scan: n.Scan, policy: Policy, catalog: Catalog) -> Names:
    table = catalog.table(scan.table)
    not_null = frozenset() if table is None else frozenset(c.lower() for c in table.not_null)
    return frozenset(
        name
        for name, column in stored_columns(scan).items()
        if column.lower() in not_null or not policy.column(scan.table, column).null
    )
