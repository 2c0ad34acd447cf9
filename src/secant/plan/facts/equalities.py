"""Which columns does a join make equal, exactly?

Keys and owners may be read off an equality only if it compares exact values: two whole numbers beyond 2^53 can both
equal one double.
"""

from __future__ import annotations

from secant.plan import nodes as n
from secant.plan.typing import fields_of

Typed = n.Column | n.Outer | n.Field


def exactly_comparable(a: Typed, b: Typed) -> bool:
    """Whether equality of the two columns is equality of their values."""
    return (a.type.kind == "DOUBLE") == (b.type.kind == "DOUBLE")


def equal_columns(node: n.Join) -> list[tuple[str, str]]:
    """Give the (left column, right column) pairs that the join condition makes equal."""
    left = {f.name for f in fields_of(node.left)}
    pairs = []
    for part in n.conjuncts(node.condition):
        if not isinstance(part, n.Compare) or part.op != "=":
            continue
        a, b = part.left, part.right
        if isinstance(a, n.Column) and isinstance(b, n.Column) and exactly_comparable(a, b):
            if a.name in left and b.name not in left:
                pairs.append((a.name, b.name))
            elif b.name in left and a.name not in left:
                pairs.append((b.name, a.name))
    return pairs
