"""Compute before a join what one of its tables decides alone, once for each of that table's rows.

In: a plan. Out: one with the same rows and columns, in which the summands of groups that a table's rows stand for are
columns of that table before it is joined, if the table decides all of them: a part is looked at once, not for each of
its suppliers. Nothing is moved where a summand reads a second table: then fewer joined rows may be left than the table
has. What is moved cannot fail on a value, no more than where it stood. Never here: a choice by data.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

from secant.plan import nodes as n
from secant.plan.facts.regions import unfiltered
from secant.plan.rewrites.hoist import projections, stacked
from secant.plan.rewrites.rewrite import columns_of, replaced, transform
from secant.plan.rewrites.simplify import never_empty, shorter
from secant.plan.typing import fields_of, type_of
from secant.records import frozen
from secant.schema.types import Type

_CHEAP = (n.Column, n.Literal)


def computed_early(plan: n.Relation) -> n.Relation:
    """Move the summands of groups below the joins, where one table decides all of them."""
    return transform(plan, _pushed_down, n.Aggregate)


def _pushed_down(node: n.Node) -> n.Node:
    if not isinstance(node, n.Aggregate) or not node.keys:
        return node
    layers, core = projections(node.input)
    layers.reverse()
    leaf = _deciding(node, layers, core)
    if leaf is None:
        return node
    work = _sorted_out(layers, leaf, never_empty(core))
    named = _summands(node, work)
    if named is None or not any(work.early):
        return node
    calls, summands = named
    early = [list(items) for items in (*work.early, summands) if items]
    names = {item.name for items in early for item in items}
    read = frozenset().union(*map(columns_of, (*node.keys, *calls)))
    late: list[tuple[n.Named, ...]] = []
    for items in reversed(work.late):
        passed_items = tuple(item for item in items if item.name in read)
        passed = read & names - {item.name for item in passed_items}
        read = passed.union(*map(columns_of, passed_items))
        late.append(
            (*passed_items, *(n.Named(c, n.Column(c, work.kinds[c])) for c in sorted(passed)))
        )
    read |= conditions_read(core, leaf)
    columns = tuple(n.Named(c, n.Column(c, kind)) for c, kind in work.kinds.items() if c in read)
    above = replaced(core, leaf, stacked(leaf, early, columns))
    for passed_items in reversed(late):
        above = n.Project(above, passed_items)
    return replace(node, input=above, aggregations=calls)


def conditions_read(core: n.Relation, leaf: n.Relation) -> frozenset[str]:
    """Name the columns that joins and conditions read, but for those of the table itself."""
    own = set(n.walk(leaf))
    scalars = [
        x.predicate if isinstance(x, n.Filter) else x.condition
        for x in n.walk(core)
        if isinstance(x, (n.Filter, n.Join)) and x not in own
    ]
    return frozenset().union(*(columns_of(x) for x in scalars if x is not None))


def _deciding(
    node: n.Aggregate, layers: list[n.Project], core: n.Relation
) -> n.Scan | n.Filter | None:
    """Find the table, with the conditions on it alone, whose columns all keys are; None if there is no join."""
    columns = {k.expression.name for k in node.keys if isinstance(k.expression, n.Column)}
    if len(columns) < len(node.keys):
        return None
    for layer in reversed(layers):
        definitions = {item.name: item.expression for item in layer.items}
        expressions = {definitions.get(c) for c in columns}
        columns = {c.name for c in expressions if isinstance(c, n.Column)}
        if len(columns) < len(expressions):
            return None
    leaves = list(joined_tables(core))
    decided = [x for x in leaves if columns <= {f.name for f in fields_of(x)}]
    return decided[0] if len(leaves) > 1 and len(decided) == 1 else None


def joined_tables(core: n.Relation) -> Iterator[n.Scan | n.Filter]:
    """Go through the tables of inner joins, each with the conditions right above it."""
    _, inner = unfiltered(core)
    if isinstance(inner, n.Scan):
        assert isinstance(core, (n.Scan, n.Filter))
        yield core
    elif isinstance(inner, n.Join) and inner.kind != "left":
        yield from joined_tables(inner.left)
        yield from joined_tables(inner.right)


@frozen
class _Work:
    """The items of each layer, from the lowest: those that the table decides, and what stays of the layer."""

    early: list[tuple[n.Named, ...]]
    late: list[tuple[n.Named, ...]]
    kinds: dict[str, Type]
    """What the table decides."""
    constants: Mapping[str, n.Scalar]
    present: frozenset[str]


def _sorted_out(layers: list[n.Project], leaf: n.Scan | n.Filter, present: frozenset[str]) -> _Work:
    kinds = {f.name: f.type for f in fields_of(leaf)}
    constants: dict[str, n.Scalar] = {}
    early, late = [], []
    for layer in layers:
        early_items, late_items = [], []
        for item in layer.items:
            simplified = shorter(item, constants, present)
            if isinstance(simplified.expression, n.Literal):
                constants[simplified.name] = simplified.expression
            plain = isinstance(simplified.expression, _CHEAP)
            if not plain and _only(simplified.expression, kinds):
                early_items.append(simplified)
                simplified = n.Named(
                    simplified.name, n.Column(simplified.name, type_of(simplified.expression))
                )
            late_items.append(simplified)
        kinds |= {item.name: type_of(item.expression) for item in early_items}
        early.append(tuple(early_items))
        late.append(tuple(late_items))
    return _Work(early, late, kinds, constants, present)


def _only(scalar: n.Scalar, decided: Collection[str]) -> bool:
    """Whether an expression reads columns, all of them decided, and nothing else."""
    read = columns_of(scalar)
    outer = any(isinstance(x, n.Outer) for x in n.walk(scalar))
    return (
        bool(read) and all(c in decided for c in read) and not outer and not n.has_subquery(scalar)
    )


def _summands(
    node: n.Aggregate, work: _Work
) -> tuple[tuple[n.Aggregation, ...], tuple[n.Named, ...]] | None:
    """Give the calls over columns, and what these are made of; None if something else than the table decides one."""
    calls, items = [], []
    for call in node.aggregations:
        if call.argument is None:
            calls.append(call)
            continue
        item = shorter(n.Named(f"{call.name}.early", call.argument), work.constants, work.present)
        if call.second is not None or not _only(item.expression, work.kinds):
            return None
        if not isinstance(item.expression, n.Column):
            items.append(item)
            work.kinds[item.name] = type_of(item.expression)
            item = n.Named(item.name, n.Column(item.name, work.kinds[item.name]))
        calls.append(replace(call, argument=item.expression))
    return tuple(calls), tuple(items)
