"""The statements that measure figures: the most rows of a relation that agree in some columns.

In: figures. Out: relations that the engine computes, and which figures are one and the same. Never here: values.
"""

from __future__ import annotations

from dataclasses import replace

from secant.plan import nodes as n
from secant.plan.rewrites.rewrite import transform
from secant.plan.show import same
from secant.plan.typing import fields_of
from secant.schema import types as t
from secant.sensitivity.elastic.amounts import Figure

ROWS = "elastic rows"
MOST = "elastic most"
SCANNED = "elastic"


def statement(figure: Figure) -> n.Aggregate:
    """Give the aggregate whose last column is the figure; the release's keys come first, if the figure has them."""
    kinds = {f.name: f.type for f in fields_of(figure.relation)}
    rows = figure.relation
    known = tuple(n.Not(n.IsNull(n.Column(c, kinds[c]))) for c in figure.columns)
    predicate = n.conjunction(known)
    if predicate is not None:
        rows = n.Filter(rows, predicate)
    held = {f"{SCANNED}.key{index}": name for index, name in enumerate(figure.keys or ())}
    keys = tuple(n.Named(key, n.Column(name, kinds[name])) for key, name in held.items())
    count = n.Aggregation(ROWS, "count", None)
    if not figure.columns:
        return n.Aggregate(rows, keys, (count,))
    agreeing = tuple(n.Named(c, n.Column(c, kinds[c])) for c in figure.columns)
    counted = n.Aggregate(rows, (*keys, *agreeing), (count,))
    above = tuple(n.Named(key, n.Column(key, kinds[name])) for key, name in held.items())
    largest = n.Aggregation(MOST, "max", n.Column(ROWS, t.INTEGER))
    return n.Aggregate(counted, above, (largest,))


def told_apart(figures: tuple[Figure, ...]) -> tuple[tuple[n.Aggregate, ...], tuple[int, ...]]:
    """Give the different statements of these figures, and for each figure which of them measures it."""
    statements: list[n.Aggregate] = []
    which: list[int] = []
    for figure in figures:
        written = statement(_without_alias(figure))
        place = next((i for i, s in enumerate(statements) if same(s, written)), len(statements))
        if place == len(statements):
            statements.append(written)
        which.append(place)
    return tuple(statements), tuple(which)


def _without_alias(figure: Figure) -> Figure:
    """Copies of a table under other names have the same figures, if filters are all that stands above them."""
    node = figure.relation
    while isinstance(node, n.Filter) and not n.has_subquery(node.predicate):
        node = node.input
    if not isinstance(node, n.Scan):
        return figure
    cut = len(node.alias)
    names = {f.name: SCANNED + f.name[cut:] for f in node.columns}
    scan = node

    def change(part: n.Node) -> n.Node:
        if part is scan:
            columns = tuple(replace(f, name=names[f.name]) for f in scan.columns)
            return n.Scan(scan.table, SCANNED, columns)
        if isinstance(part, n.Column):
            return n.Column(names[part.name], part.type)
        return part

    keys = None if figure.keys is None else tuple(names[k] for k in figure.keys)
    return Figure(transform(figure.relation, change), tuple(names[c] for c in figure.columns), keys)
