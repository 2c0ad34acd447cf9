"""What is joined, under which conditions? Trees of filters, projections and inner joins, taken apart.

In: a relation. Out: its leaves from left to right, what must hold (inner conditions first), and how columns are
computed on the way. Nobody else walks such trees; `conjunctive` goes further and sorts all by atoms and classes, for
which it must rename what is used twice. Never here: data.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from secant.plan import nodes as n


@dataclass
class Joined:
    """Relations that are joined, and conditions that every combination of their rows must pass."""

    leaves: list[n.Relation] = field(default_factory=list)
    conditions: list[n.Scalar] = field(default_factory=list)
    items: list[n.Named] = field(default_factory=list)
    """What projections compute."""

    def take(self, node: n.Relation, through: tuple[type[n.Relation], ...]) -> None:
        """Look through filters, inner joins and these operators; all else is a leaf."""
        if isinstance(node, n.Filter):
            self.take(node.input, through)
            self.conditions += n.conjuncts(node.predicate)
        elif isinstance(node, n.Join) and node.kind != "left":
            self.take(node.left, through)
            self.take(node.right, through)
            self.conditions += n.conjuncts(node.condition)
        elif isinstance(node, through):
            assert isinstance(node, _LOOKED_THROUGH)
            if isinstance(node, n.Project):
                self.items += node.items
            self.take(node.input, through)
        else:
            self.leaves.append(node)


_LOOKED_THROUGH = (n.Project, n.Sort, n.Truncate, n.TruncateGroups)


def joined(relation: n.Relation) -> Joined:
    """Take filters and inner joins apart."""
    region = Joined()
    region.take(relation, ())
    return region


def projected(relation: n.Relation) -> Joined:
    """Look through everything that neither groups nor pads."""
    region = Joined()
    region.take(relation, _LOOKED_THROUGH)
    return region


def unfiltered(relation: n.Relation) -> tuple[tuple[n.Scalar, ...], n.Relation]:
    """Take the filters on top of a relation off: their conditions, inner ones first, and what they stand on."""
    parts: tuple[n.Scalar, ...] = ()
    while isinstance(relation, n.Filter):
        parts = (*n.conjuncts(relation.predicate), *parts)
        relation = relation.input
    return parts, relation


def is_cut_down(relation: n.Relation) -> bool:
    """Whether a filter on top compares sizes, and so has left out rows."""
    parts, _ = unfiltered(relation)
    return any(isinstance(x, n.Compare) and x.op in ("<=", ">=", "<", ">") for x in parts)


def conditions_on(relation: n.Relation) -> list[n.Scalar]:
    """Give the conditions that every row of the relation has passed."""
    if isinstance(relation, n.Filter):
        return [*conditions_on(relation.input), *n.conjuncts(relation.predicate)]
    if isinstance(relation, (*_LOOKED_THROUGH, n.Distinct, n.Limit, n.Window)):
        return conditions_on(relation.input)
    if isinstance(relation, n.Aggregate) and relation.keys:
        return conditions_on(relation.input)  # they speak of columns, and only key columns live on
    if isinstance(relation, n.Join):
        left = conditions_on(relation.left)
        if relation.kind == "left":
            return left
        return [*left, *conditions_on(relation.right), *n.conjuncts(relation.condition)]
    return []
