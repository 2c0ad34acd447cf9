"""Ask for each row what is quickly answered before what is not: an engine may keep to the order of the text.

In: a plan. Out: one with the same rows and columns: a row passes if all conditions hold, in whatever order they are
asked, and none fails on a value. PostgreSQL takes all comparisons for equally dear, and asks them as they are written;
one of decimals or texts takes many times as long as one of days or whole numbers. Chosen by types. Never here: data.
"""

from __future__ import annotations

from secant.plan import nodes as n
from secant.plan.facts.regions import unfiltered
from secant.plan.rewrites.rewrite import transform
from secant.plan.typing import type_of

_QUICK = ("BOOLEAN", "INTEGER", "DATE", "TIMESTAMP", "DOUBLE")
_PLAIN = (n.Column, n.Literal)


def cheap_first(plan: n.Relation) -> n.Relation:
    """Put conditions on quickly compared columns before all others, which keep their order."""
    return transform(plan, _ordered, n.Filter)


def _ordered(node: n.Node) -> n.Node:
    if not isinstance(node, n.Filter):
        return node
    parts, rows = unfiltered(node)
    ordered = tuple(sorted(parts, key=_dear))
    if ordered == parts:
        return node
    predicate = n.conjunction(ordered)
    assert predicate is not None
    return n.Filter(rows, predicate)


def _dear(condition: n.Scalar) -> bool:
    """Whether a condition is anything else than a comparison of quickly compared columns or constants."""
    if isinstance(condition, n.Not):
        condition = condition.operand
    if isinstance(condition, n.Compare):
        sides: tuple[n.Scalar, ...] = (condition.left, condition.right)
    elif isinstance(condition, n.IsNull):
        sides = (condition.operand,)
    else:
        return True
    return not all(isinstance(x, _PLAIN) and type_of(x).kind in _QUICK for x in sides)
