"""Rows that are shown as they are come in an order that their own columns decide.

Rests on rewrite.exact.

In: what is left of a question beside its releases, and the tables whose values move while their rows stay. Out: the
same rows, in a total order of what is read of them, also under each LIMIT. Without one, an engine gives rows as they
lie in the file, and they may lie by a column that is protected: a table that was loaded in the order of a hidden value
would show who has the largest.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from secant.plan import nodes as n
from secant.plan.facts.reads import reads
from secant.plan.facts.scopes import read_columns
from secant.plan.rewrites.rewrite import transform
from secant.plan.typing import fields_of


def in_public_order(plan: n.Relation, moving: Callable[[str], bool]) -> n.Relation:
    """Order rows totally, where a table with values that move is read for its other columns."""
    if not reads(plan, moving):
        return plan
    read = read_columns(plan)

    def change(node: n.Node) -> n.Node:
        if isinstance(node, n.Limit) and reads(node.input, moving):
            return replace(node, input=_ordered(node.input, read))
        return node

    return _ordered(transform(plan, change, n.Limit), read)


def _ordered(rows: n.Relation, read: frozenset[str]) -> n.Relation:
    """Break ties by all that is read: rows that are left equal look the same."""
    if isinstance(rows, n.Limit):
        return rows  # in order already
    if isinstance(rows, n.Project):
        below = rows.input
        while isinstance(below, n.Project):
            below = below.input
        if isinstance(below, (n.Sort, n.Limit)):
            return replace(rows, input=_ordered(rows.input, read))
    inner = rows.input if isinstance(rows, n.Sort) else rows
    keys = rows.keys if isinstance(rows, n.Sort) else ()
    fields = [f for f in fields_of(inner) if f.name in read]
    remaining = tuple(n.SortKey(n.Column(f.name, f.type), False, False) for f in fields)
    return n.Sort(inner, (*keys, *remaining)) if keys or remaining else rows
