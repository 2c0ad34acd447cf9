"""Leave out of expressions what need not be asked: columns that are never empty, and constants.

In: an expression, and what is known of the rows that it is computed of. Out: one that has the same value on these rows.
Never here: data.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from secant.plan import nodes as n
from secant.plan.facts.range_filters import present_after
from secant.plan.facts.regions import joined
from secant.plan.rewrites.hoist import interned
from secant.schema.types import DOUBLE


def never_empty(rows: n.Relation) -> frozenset[str]:
    """Name the columns that a condition asks for: where one is empty, the row is not there."""
    return present_after(joined(rows).conditions)


def shorter(item: n.Named, constants: Mapping[str, n.Scalar], present: frozenset[str]) -> n.Named:
    """Write an expression without asking for what is known: constants, and which columns are never empty."""
    if n.has_subquery(item.expression):
        return item

    @n.once
    def change(node: n.Node) -> n.Node:
        rewritten = n.rebuild(node, change)
        if isinstance(rewritten, n.Column):
            return constants.get(rewritten.name, rewritten)
        if isinstance(rewritten, n.Case):
            left = tuple(b for b in rewritten.branches if not _never(b.condition, present))
            return replace(rewritten, branches=left) if left else rewritten.default
        if isinstance(rewritten, n.Call) and rewritten.function == "abs":
            (inner,) = rewritten.arguments
            if isinstance(inner, n.Literal) and isinstance(inner.value, float):
                return n.Literal(abs(inner.value), DOUBLE)
        return rewritten

    changed = change(item.expression)
    assert isinstance(changed, n.Scalar)
    return interned((n.Named(item.name, changed),))[0]


def _never(condition: n.Scalar, present: frozenset[str]) -> bool:
    """Whether a condition asks if a column is empty that never is."""
    return (
        isinstance(condition, n.IsNull)
        and isinstance(condition.operand, n.Column)
        and condition.operand.name in present
    )
