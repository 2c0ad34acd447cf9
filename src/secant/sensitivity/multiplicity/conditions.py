"""What a condition on a whole combination still says of some of its rows, the others being anything.

Rests on multiplicity.exists.

In: a condition, the columns that are known, and columns that the join makes equal to them. Out: a weaker condition on
the known columns alone, or None if nothing is left of it. NOT is pushed to the leaves first: a leaf with an unknown
column is then taken as true wherever it stands. Never here: data.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from secant.plan import nodes as n
from secant.plan.facts.conjunctive import Conjunctive
from secant.plan.rewrites.rewrite import columns_of, substitute
from secant.plan.typing import fields_of


def projected(
    scalar: n.Scalar,
    columns: frozenset[str],
    equal: Mapping[str, n.Scalar],
    *,
    negated: bool = False,
) -> n.Scalar | None:
    """Give what is left of a condition, or of its negation; None for nothing."""
    if isinstance(scalar, n.Not):
        return projected(scalar.operand, columns, equal, negated=not negated)
    if isinstance(scalar, (n.And, n.Or)):
        parts = [projected(o, columns, equal, negated=negated) for o in scalar.operands]
        left = tuple(p for p in parts if p is not None)
        if isinstance(scalar, n.And) != negated:
            return n.conjunction(left)
        if len(left) < len(parts):
            return None  # an alternative that anything can fulfill
        return left[0] if len(left) == 1 else n.Or(left)
    projection = expressed(scalar, columns, equal)
    if projection is None:
        return None
    return n.Not(projection) if negated else projection


def expressed(
    scalar: n.Scalar, columns: frozenset[str], equal: Mapping[str, n.Scalar]
) -> n.Scalar | None:
    """Write an expression over known columns, if that can be done."""
    unknown = columns_of(scalar) - columns
    if not unknown:
        return scalar
    if not unknown <= equal.keys():
        return None
    return substitute(scalar, {c: equal[c] for c in unknown})


def equal_to(query: Conjunctive, places: frozenset[int]) -> dict[str, n.Scalar]:
    """Give for columns of other atoms a column of these atoms that holds the very same value.

    Types must be the same, and doubles are left out: 0.0 equals -0.0, and functions tell them apart.
    """
    kinds = {f.name: f.type for atom in query.atoms for f in fields_of(atom.relation)}
    equal: dict[str, n.Scalar] = {}
    for group in query.classes:
        inside = sorted(c for c in group if query.home[c] in places)
        for column in sorted(group):
            alike = [c for c in inside if kinds[c] == kinds[column] and kinds[c].kind != "DOUBLE"]
            if query.home[column] not in places and alike:
                equal[column] = n.Column(alike[0], kinds[alike[0]])
    return equal


def conditions_of(query: Conjunctive) -> list[n.Scalar]:
    """Give all conditions that a combination fulfils, but for the classes: also those on one atom."""
    conditions = [c.scalar for c in query.conditions]
    for atom in query.atoms:
        relation = atom.relation
        while isinstance(relation, n.Filter):
            conditions += n.conjuncts(relation.predicate)
            relation = relation.input
    return conditions


def left_of(
    conditions: Iterable[n.Scalar], query: Conjunctive, places: frozenset[int]
) -> tuple[n.Scalar, ...]:
    """Give what all conditions say of some atoms together, without what one atom checks by itself."""
    columns = frozenset(c for c, home in query.home.items() if home in places)
    equal = equal_to(query, places)
    kept_conditions = []
    for scalar in conditions:
        own = columns_of(scalar)
        if own <= columns and len({query.home[c] for c in own if c in query.home}) == 1:
            continue  # a condition on one of these atoms stands in its relation
        left = projected(scalar, columns, equal)
        if left is not None:
            kept_conditions.append(left)
    return tuple(kept_conditions)
