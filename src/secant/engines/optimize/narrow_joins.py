"""Carry one narrow column through a join instead of several columns that it is computed of.

In: what is computed over joined rows, layer by layer, and which of it are small whole numbers. Out: rows with the same
columns, in which such a number that one table's columns are put together to is computed before the table is joined, if
fewer columns are carried then. A join moves each byte that it carries, on every engine. Done only of a table that
conditions of its own have cut down, beside tables that none picks rows of: else the join might have spared most rows.
All of this is in the text of the question. Never here: a choice by data.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from secant.engines.optimize.push_down_projections import conditions_read, joined_tables
from secant.plan import nodes as n
from secant.plan.facts.lineage import is_carried_on
from secant.plan.facts.regions import is_cut_down, joined, unfiltered
from secant.plan.rewrites.hoist import passed_on, stacked
from secant.plan.rewrites.rewrite import columns_of, replaced, substitute
from secant.plan.typing import fields_of, type_of
from secant.records import frozen
from secant.schema.types import INTEGER, Type

Layers = list[tuple[n.Named, ...]]
"""What is computed, the lowest first."""
_NARROW = Type("DECIMAL", 9, 0)
"""Engines hold so many digits in four bytes."""


def carried_narrow(
    node: n.Aggregate, layers: Layers, core: n.Relation, small: Collection[str]
) -> n.Relation:
    """Give the rows of an aggregate; `small` names computed columns that have at most nine digits, or are dates."""
    rows = core
    for table in joined_tables(core) if _named_once(layers) else ():
        below, leaf = _filtered_first(rows, table)
        if not is_cut_down(leaf) or _picks_rows(below, leaf):
            continue
        cut = _cut(leaf, layers, frozenset(small), _read(node))
        if cut is not None:
            layers, rows = _pushed_down(cut, leaf, layers, below, _read(node))
    for items in layers:
        rows = n.Project(rows, items)
    return rows


def _read(node: n.Aggregate) -> frozenset[str]:
    return frozenset().union(*map(columns_of, (*node.keys, *node.aggregations)))


def _computed(layers: Layers) -> Iterator[n.Named]:
    """Go through all that is not only passed on."""
    for items in layers:
        for item in items:
            if not is_carried_on(item):
                yield item


def _filtered_first(
    core: n.Relation, table: n.Scan | n.Filter
) -> tuple[n.Relation, n.Scan | n.Filter]:
    """Ask the conditions on one table's columns before it is joined: an inner join has the same rows then."""
    own = {f.name for f in fields_of(table)}
    parts, core = unfiltered(core)
    mine = [x for x in parts if columns_of(x) and columns_of(x) <= own and not n.has_subquery(x)]
    condition = n.conjunction(tuple(mine))
    leaf = table if condition is None else n.Filter(table, condition)
    remaining = n.conjunction(tuple(x for x in parts if x not in mine))
    rows = replaced(core, table, leaf)
    return (rows if remaining is None else n.Filter(rows, remaining)), leaf


def _named_once(layers: Layers) -> bool:
    names = [item.name for item in _computed(layers)]
    return len(set(names)) == len(names)


def _picks_rows(core: n.Relation, leaf: n.Relation) -> bool:
    """Whether a condition on other tables may leave few joined rows, as far as its text says."""
    own = frozenset(f.name for f in fields_of(leaf))
    parts = [x for x in joined(core).conditions if not columns_of(x) <= own]
    return not all(map(_is_weak, parts))


def _is_weak(condition: n.Scalar) -> bool:
    """Whether a condition keeps most rows: a join by a key does, and one that asks that values differ or are there."""
    if isinstance(condition, n.Compare):
        both = isinstance(condition.left, n.Column) and isinstance(condition.right, n.Column)
        return condition.op == "<>" or (condition.op == "=" and both)
    if isinstance(condition, n.Or):
        return any(map(_is_weak, condition.operands))
    return isinstance(condition, n.Not) and isinstance(condition.operand, n.IsNull)


@frozen
class _Cut:
    """What is computed before a join: names, and those among them of which nothing else is computed there."""

    early: frozenset[str]
    roots: frozenset[str]


def _cut(
    leaf: n.Relation, layers: Layers, small: frozenset[str], read: frozenset[str]
) -> _Cut | None:
    """Choose numbers that put several columns of a table together; None if no fewer columns are carried then."""
    own = frozenset(f.name for f in fields_of(leaf))
    needed: dict[str, frozenset[str]] = {}
    joining: list[str] = []
    for item in _computed(layers):
        parts = columns_of(item.expression)
        if item.name in small and parts and all(c in own or c in needed for c in parts):
            below = [needed[c] for c in parts if c in needed]
            needed[item.name] = frozenset({item.name}).union(*below)
            joining += [item.name] if len(parts) > 1 else []
    roots = frozenset(x for x in joining if not any(x in needed[y] for y in joining if y != x))
    early = frozenset().union(*(needed[x] for x in roots))
    reads = {item.name: columns_of(item.expression) for item in _computed(layers)}
    before = read.union(*reads.values()) & own
    after = read.union(*(r for name, r in reads.items() if name not in early)) & (own | early)
    return _Cut(early, roots) if roots and len(after) < len(before) else None


def _pushed_down(
    cut: _Cut, leaf: n.Relation, layers: Layers, core: n.Relation, read: frozenset[str]
) -> tuple[Layers, n.Relation]:
    """Compute the chosen numbers above a table and below its joins."""
    early_layers, late = [], []
    kinds = {f.name: f.type for f in fields_of(core)}
    narrow: dict[str, n.Scalar] = {}
    for items in layers:
        early = []
        for item in items:
            if item.name not in cut.early or isinstance(item.expression, n.Column):
                continue
            kinds[item.name] = kind = type_of(item.expression)
            if item.name in cut.roots and kind == INTEGER:
                kinds[item.name] = _NARROW
                narrow[item.name] = n.Cast(n.Column(item.name, _NARROW), INTEGER)
                item = n.Named(item.name, n.Cast(item.expression, _NARROW))
            early.append(item)
        early_layers += [early] if early else []
    for items in layers:
        remaining = tuple(i for i in _computed([items]) if i.name not in cut.early)
        late.append(tuple(n.Named(i.name, substitute(i.expression, narrow)) for i in remaining))
        kinds |= {i.name: type_of(i.expression) for i in late[-1]}
    above, columns = passed_on(late, read, kinds)
    columns |= conditions_read(core, leaf)
    own = {f.name for f in fields_of(leaf)} | cut.early
    carried = tuple(n.Named(c, n.Column(c, kinds[c])) for c in kinds if c in columns & own)
    return above, replaced(core, leaf, stacked(leaf, early_layers, carried))
