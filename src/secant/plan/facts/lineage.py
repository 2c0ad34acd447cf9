"""Where do columns come from? From tables, from expressions, from groups, from both sides of a union.

In: a relation. Out: for each column that it or anything below it has, what it is made of. A column is named once in a
whole query, so one answer serves all places; a relation that is used twice speaks of two rows under one name, and
whoever cares asks `reused`. Nobody else takes names of columns apart or collects definitions. Never here: a policy.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from secant.plan import nodes as n
from secant.plan.facts.scopes import holders, relations_in
from secant.plan.typing import fields_of

Origin = tuple[str, str]
"""A table and its column, lower-cased."""


def stored_column(scan: n.Scan, name: str) -> str:
    """Give the column of a table behind a column of its scan, as the catalog spells it."""
    return name[len(scan.alias) + 1 :]


def stored_columns(scan: n.Scan) -> Mapping[str, str]:
    """Give for each column of a scan the column of its table, lower-cased."""
    try:
        return scan._stored
    except AttributeError:
        columns = {f.name: stored_column(scan, f.name).lower() for f in scan.columns}
    object.__setattr__(scan, "_stored", columns)
    return columns


def named_in(scan: n.Scan, columns: Iterable[str]) -> tuple[str, ...] | None:
    """Give columns of a table, lower-cased, as a scan names them; None if it lacks one."""
    names = {base: name for name, base in stored_columns(scan).items()}
    requested = tuple(columns)
    return tuple(names[c] for c in requested) if all(c in names for c in requested) else None


def origins_of(*nodes: n.Node) -> dict[str, Origin]:
    """Give for each column of a table below some nodes where it comes from."""
    scans = (x for node in nodes for x in n.walk(node) if isinstance(x, n.Scan))
    return {
        name: (s.table.lower(), base) for s in scans for name, base in stored_columns(s).items()
    }


@dataclass(kw_only=True)
class Lineage:
    """What the columns of a relation, and of all below it, are made of."""

    origins: dict[str, Origin] = field(default_factory=dict)
    """Column -> (table, column) for columns of base tables."""
    definitions: dict[str, n.Scalar] = field(default_factory=dict)
    """Column -> expression, for computed columns and keys of inner groups."""
    aggregations: dict[str, tuple[n.Aggregation, n.Aggregate]] = field(default_factory=dict)
    """Column -> inner aggregate and its groups."""
    windows: dict[str, tuple[n.WindowCall, n.Relation]] = field(default_factory=dict)
    """Column -> window call, and the rows that it looks at."""
    merged: dict[str, tuple[n.Column, n.Column]] = field(default_factory=dict)
    """Column of a set operation -> the columns of both sides."""
    listed: dict[str, tuple[object, ...]] = field(default_factory=dict)
    """Column of written rows -> its values, without NULL."""

    def follow(self, relation: n.Relation) -> None:
        """Take in the columns of a relation and of all relations below it."""
        for node in n.walk(relation):
            if not isinstance(node, n.Relation):
                continue
            if isinstance(node, n.Scan):
                table = node.table.lower()
                self.origins |= {name: (table, c) for name, c in stored_columns(node).items()}
            elif isinstance(node, n.Project):
                self.definitions |= _defined(node.items)
            elif isinstance(node, n.Aggregate):
                self.definitions = _defined(node.keys) | self.definitions
                self.aggregations |= {call.name: (call, node) for call in node.aggregations}
            elif isinstance(node, n.Window):
                self.windows |= {call.name: (call, node.input) for call in node.calls}
            elif isinstance(node, n.Values):
                for index, f in enumerate(node.columns):
                    values = dict.fromkeys(row[index] for row in node.rows)
                    self.listed[f.name] = tuple(v for v in values if v is not None)
            elif isinstance(node, (n.Union, n.Intersect, n.Except)):
                sides = (fields_of(side) for side in (node.left, node.right))
                for f, *both in zip(node.columns, *sides, strict=True):
                    left, right = (n.Column(side.name, side.type) for side in both)
                    self.merged[f.name] = (left, right)

    def origin(self, scalar: n.Scalar | None) -> Origin | None:
        """Follow a column through renames to its table; None for what is computed on the way."""
        while isinstance(scalar, (n.Column, n.Outer)) and scalar.name not in self.origins:
            scalar = self.definitions.get(scalar.name)
        return self.origins.get(scalar.name) if isinstance(scalar, (n.Column, n.Outer)) else None


def is_carried_on(item: n.Named) -> bool:
    """Whether a projection passes a column on as it is."""
    return isinstance(item.expression, n.Column) and item.expression.name == item.name


def _defined(items: Iterable[n.Named]) -> dict[str, n.Scalar]:
    """Give what is computed or renamed: a column that is carried on as it is has no definition there."""
    return {i.name: i.expression for i in items if not is_carried_on(i)}


def source_of(relation: n.Relation, name: str) -> n.Column | n.Literal | None:
    """Follow a column down to a base table or a constant; None where it is computed on the way."""
    while True:
        if isinstance(relation, (n.Filter, n.Sort, n.Distinct, n.Limit)):
            relation = relation.input
        elif isinstance(relation, n.Window):
            if any(call.name == name for call in relation.calls):
                return None
            relation = relation.input
        elif isinstance(relation, n.Project):
            expression = next(i.expression for i in relation.items if i.name == name)
            if not isinstance(expression, n.Column):
                return expression if isinstance(expression, n.Literal) else None
            relation, name = relation.input, expression.name
        elif isinstance(relation, n.Join):
            left = any(f.name == name for f in fields_of(relation.left))
            relation = relation.left if left else relation.right
        elif isinstance(relation, n.Scan):
            return next(n.Column(f.name, f.type) for f in relation.columns if f.name == name)
        else:
            return None


def reused(relation: n.Relation) -> bool:
    """Whether a relation stands in two places: then one name speaks of two rows at once."""
    seen: set[n.Node] = set()
    for node in holders(relation):
        for child in relations_in(node):
            if child in seen:
                return True
            seen.add(child)
    return False
