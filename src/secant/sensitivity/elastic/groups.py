"""Where the keys of a release come from: which columns below hold them, and how many groups one row can reach.

In: a relation, and columns of it that are keys of the release. Out: the columns of its inputs that hold the same
values, and for each varying table how the group of a row follows from the row. Never here: values of keys.
"""

from __future__ import annotations

from collections.abc import Iterable

from secant.plan import nodes as n
from secant.plan.facts.equalities import equal_columns
from secant.plan.facts.lineage import stored_columns
from secant.plan.rewrites.rewrite import columns_of
from secant.plan.typing import fields_of
from secant.records import frozen
from secant.schema.types import Type

Pins = tuple[str, ...] | None
"""Columns that hold the release's keys, in their order; None if not all of them are at hand."""


def renamed(node: n.Project, columns: Iterable[str]) -> dict[str, str]:
    """Give, for those of the columns that a projection only renames, their names below it."""
    plain = {i.name: i.expression.name for i in node.items if isinstance(i.expression, n.Column)}
    return {c: plain[c] for c in columns if c in plain}


def names_on_side(
    node: n.Union | n.Intersect | n.Except, side: n.Relation, columns: Iterable[str]
) -> dict[str, str]:
    """Give the names on one side of a set operation, where values are passed on without a conversion."""
    pairs = {
        a.name: b for a, b in zip(node.columns, fields_of(side), strict=True) if a.type == b.type
    }
    return {c: pairs[c].name for c in columns if c in pairs}


def _partners(node: n.Join) -> tuple[dict[str, str], dict[str, str]]:
    """Give the columns that an inner join makes identical: right to left, and left to right.

    Two reals can be equal and still differ, as zeros with a sign do; equal values of two types are written in two ways.
    """
    kinds: dict[str, Type] = {f.name: f.type for f in fields_of(node)}
    pairs = [
        (a, b) for a, b in equal_columns(node) if kinds[a] == kinds[b] and kinds[a].kind != "DOUBLE"
    ]
    return {b: a for a, b in pairs}, dict(pairs)


def pins_below(node: n.Relation, pins: Pins) -> tuple[Pins, ...]:
    """Give, for each input, the columns that hold the keys: the node's rows of a group come from those rows alone."""
    inputs = [c for c in n.children(node) if isinstance(c, n.Relation)]
    nothing: tuple[Pins, ...] = (None,) * len(inputs)
    if pins is None:
        return nothing
    if isinstance(node, (n.Filter, n.Sort, n.Distinct)):
        return (pins,)
    if isinstance(node, n.Project):
        return (_all(renamed(node, pins), pins),)
    if isinstance(node, n.Aggregate):
        plain = {k.name: k.expression.name for k in node.keys if isinstance(k.expression, n.Column)}
        return (_all(plain, pins),)
    if isinstance(node, (n.Union, n.Intersect, n.Except)):
        sides = (node.left, node.right)
        sides_pins = tuple(_all(names_on_side(node, side, pins), pins) for side in sides)
        return sides_pins if None not in sides_pins else nothing
    if isinstance(node, n.Join):
        ours, theirs = ({f.name: f.name for f in fields_of(x)} for x in (node.left, node.right))
        to_left, to_right = _partners(node)
        if node.kind == "left" and not set(pins) <= set(ours):
            return nothing  # a key of the right side is NULL for rows without a partner
        return _all({**to_left, **ours}, pins), _all({**to_right, **theirs}, pins)
    return nothing


def _all(names: dict[str, str], pins: tuple[str, ...]) -> Pins:
    return tuple(names[p] for p in pins) if all(p in names for p in pins) else None


@frozen
class Source:
    """What a key is computed from: columns, and whether it is one of them as it stands."""

    columns: frozenset[str]
    plain: bool


Sources = tuple[Source | None, ...]
"""For each key of the release; None if it does not follow from the row."""
Reached = tuple[str, tuple[object, ...]]
"""A varying table, and for each key what it follows from: a column, a formula by its number, or None."""


def plain(columns: Iterable[str]) -> Sources:
    """Give the sources of keys that are columns."""
    return tuple(Source(frozenset((c,)), True) for c in columns)


def reached(relation: n.Relation, sources: Sources, varying: frozenset[str]) -> set[Reached]:
    """Give how the groups that one row can reach follow from the row, for each way in which it is used."""
    scans: set[Reached] = set()
    pending = [(relation, sources)]
    while pending:
        node, below = pending.pop()
        if isinstance(node, n.Scan):
            if node.table.lower() in varying:
                scans.add((node.table.lower(), _at_scan(node, below, len(scans))))
            continue
        pending += _sources_below(node, below)
    return scans


def _at_scan(node: n.Scan, sources: Sources, occurrence: int) -> tuple[object, ...]:
    names = stored_columns(node)

    def one(source: Source | None) -> object:
        if source is None or not source.columns <= names.keys():
            return None
        if source.plain:
            (column,) = source.columns
            return names[column]
        return occurrence  # a formula: another use of the table may have another one

    return tuple(map(one, sources))


def _sources_below(node: n.Relation, sources: Sources) -> list[tuple[n.Relation, Sources]]:
    inputs = [c for c in n.children(node) if isinstance(c, n.Relation)]
    if isinstance(node, (n.Filter, n.Sort, n.Distinct)):
        return [(inputs[0], sources)]
    if isinstance(node, n.Project):
        items = {i.name: i.expression for i in node.items}
        return [(node.input, tuple(_through(s, items) for s in sources))]
    if isinstance(node, n.Aggregate):
        keys = {k.name: k.expression for k in node.keys}
        return [(node.input, tuple(_through(s, keys) for s in sources))]
    if isinstance(node, (n.Union, n.Intersect, n.Except)):
        return [
            (side, tuple(_through(s, _converted(node, side)) for s in sources)) for side in inputs
        ]
    if isinstance(node, n.Join):
        to_left, to_right = _partners(node)
        ours, theirs = ({f.name for f in fields_of(x)} for x in (node.left, node.right))
        padded = theirs if node.kind == "left" else set()
        usable = tuple(None if s is None or s.columns & padded else s for s in sources)
        return [
            (node.left, tuple(_to_side(s, ours, to_left) for s in usable)),
            (node.right, tuple(_to_side(s, theirs, to_right) for s in usable)),
        ]
    # Whatever else there is may pass the change of one row on to others.
    return [(x, (None,) * len(sources)) for x in inputs]


def _through(source: Source | None, items: dict[str, n.Scalar]) -> Source | None:
    """Follow a key through computed columns; what asks other rows does not follow from the row."""
    if source is None or not all(c in items for c in source.columns):
        return None
    parts = [items[c] for c in source.columns]
    if any(n.has_subquery(part) for part in parts):
        return None
    columns = frozenset().union(*(columns_of(part) for part in parts))
    return Source(columns, source.plain and all(isinstance(part, n.Column) for part in parts))


def _converted(node: n.Union | n.Intersect | n.Except, side: n.Relation) -> dict[str, n.Scalar]:
    return {
        a.name: n.Column(b.name, b.type)
        if a.type == b.type
        else n.Cast(n.Column(b.name, b.type), a.type)
        for a, b in zip(node.columns, fields_of(side), strict=True)
    }


def _to_side(source: Source | None, names: set[str], partners: dict[str, str]) -> Source | None:
    if source is None or not all(c in names or c in partners for c in source.columns):
        return None
    columns = frozenset(c if c in names else partners[c] for c in source.columns)
    return Source(columns, source.plain)
