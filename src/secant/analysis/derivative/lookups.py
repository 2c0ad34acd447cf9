"""Which rows of a join belong to one row of a protected table? Public columns decide, so this can be known.

In: rows that public conditions decide, and keys that are declared or kept by the engine. Out: for each
scan whether its rows stand in at most one joined row, the keys that this rests on, and else the columns
by which joined rows are gathered. A declared key is not believed: it is checked on public columns
before anything is spent, and gathering by too few columns only makes a bound larger (D-GATHER).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from secant.analysis.certificate import KeyClaim
from secant.plan import nodes as n
from secant.plan.ranges import conditions_on
from secant.plan.typing import fields_of
from secant.terms.catalog import Catalog
from secant.terms.policy import Policy


@dataclass(frozen=True, slots=True)
class Gathering:
    """How the joined rows of one row of a scan are found."""

    single: bool
    """Whether a row stands in at most one joined row."""
    keys: tuple[n.Column, ...]
    """Otherwise: columns that rows of the scan have in common at most with each other."""
    claims: frozenset[KeyClaim]
    decided: frozenset[str]
    """Columns whose values one row of the scan decides."""


@dataclass(frozen=True, slots=True)
class Lookups:
    """Leaves of a join and the equalities between their columns."""

    leaves: tuple[n.Relation, ...]
    equal: tuple[tuple[str, str | None], ...]
    """Pairs of columns that are equal in every row; None stands for a constant."""
    policy: Policy
    catalog: Catalog
    trusted: Callable[[str], bool]
    """Whether a table's declared key may be checked: everything about its keys is public."""

    def of(self, scan: n.Scan, protected: frozenset[str]) -> Gathering:
        """Follow lookups by key from one scan."""
        decided = {f.name for f in fields_of(scan)}
        found: set[n.Relation] = {scan}
        claims: set[KeyClaim] = set()
        grown = True
        while grown:
            grown = False
            for leaf in self.leaves:
                claim = None if leaf in found else self._looked_up(leaf, decided)
                if claim is not None:
                    found.add(leaf)
                    decided |= {f.name for f in fields_of(leaf)}
                    claims |= set(claim)
                    grown = True
        single = len(found) == len(self.leaves)
        keys = () if single else self._row_of(scan, protected)
        return Gathering(single, keys, frozenset(claims), frozenset(decided))

    def _looked_up(self, leaf: n.Relation, decided: set[str]) -> tuple[KeyClaim, ...] | None:
        """Whether what is decided names at most one row of a leaf; with the key claimed for that."""
        if not isinstance(leaf, n.Scan):
            return None
        table, prefix = leaf.table.lower(), f"{leaf.alias}."
        fixed = {
            a[len(prefix) :].lower()
            for a, b in self._pairs()
            if a.startswith(prefix) and (b is None or b in decided)
        }
        known = self.catalog.table(table)
        for unique in known.unique if known is not None else ():
            if {c.lower() for c in unique} <= fixed:
                return ()
        key = self.policy.facts(table).key
        if key and set(key) <= fixed and self.trusted(table):
            return (KeyClaim(table, key),)
        return None

    def _pairs(self) -> list[tuple[str, str | None]]:
        return [*self.equal, *((b, a) for a, b in self.equal if b is not None)]

    def _row_of(self, scan: n.Scan, protected: frozenset[str]) -> tuple[n.Column, ...]:
        """Give columns to gather by: the declared key, or else all public columns."""
        prefix = len(scan.alias) + 1
        public = [f for f in scan.columns if f.name not in protected]
        key = self.policy.facts(scan.table.lower()).key
        named = [f for f in public if f.name[prefix:].lower() in key]
        chosen = named if key and len(named) == len(key) else public
        return tuple(n.Column(f.name, f.type) for f in chosen)


def lookups_of(
    relation: n.Relation, policy: Policy, catalog: Catalog, trusted: Callable[[str], bool]
) -> Lookups:
    """Collect leaves and equalities of a tree of filters and inner joins; anything else is a leaf."""
    leaves: list[n.Relation] = []
    stack = [relation]
    while stack:
        node = stack.pop()
        if isinstance(node, n.Filter):
            stack.append(node.input)
        elif isinstance(node, n.Join) and node.kind != "left":
            stack += [node.right, node.left]
        else:
            leaves.append(node)
    pairs: list[tuple[str, str | None]] = []
    for condition in conditions_on(relation):
        if isinstance(condition, n.Compare) and condition.op == "=":
            left, right = condition.left, condition.right
            for a, b in ((left, right), (right, left)):
                if isinstance(a, n.Column) and isinstance(b, n.Literal):
                    pairs.append((a.name, None))
            if (
                isinstance(left, n.Column)
                and isinstance(right, n.Column)
                and left.type == right.type
            ):
                pairs.append((left.name, right.name))
    return Lookups(tuple(leaves), tuple(pairs), policy, catalog, trusted)
