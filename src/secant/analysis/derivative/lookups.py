"""Which rows of a join belong to one row of a protected table? Public columns decide, so this can be known.

In: rows that public conditions decide, and keys that are declared or kept by the engine. Out: for each
scan whether its rows stand in at most one joined row, the keys that this rests on, and else the columns
by which joined rows are gathered. A key is believed only as far as C-KEYS goes, and gathering by too few columns only
makes a bound larger (D-GATHER).
"""

from __future__ import annotations

from dataclasses import dataclass

from secant.plan import nodes as n
from secant.plan.facts import Facts
from secant.plan.lineage import named_in, stored_column, stored_columns
from secant.plan.regions import joined
from secant.plan.typing import fields_of
from secant.terms.keys import Key

Fan = tuple[str, tuple[str, ...]]
"""A table and columns: how many rows agree in these columns, at most? None of them: all its rows."""


@dataclass(frozen=True, slots=True)
class Gathering:
    """How the joined rows of one row of a scan are found."""

    single: bool
    """Whether a row stands in at most one joined row."""
    keys: tuple[n.Column, ...]
    """Otherwise: columns that rows of the scan have in common at most with each other."""
    claims: frozenset[Key]
    decided: frozenset[str]
    """Columns whose values one row of the scan decides."""
    fans: tuple[Fan, ...] | None = None
    """Lookups that find several rows: their largest numbers, multiplied, bound the joined rows of one row.

    None where that is not known, or where the gathering columns are not a key that can be checked.
    """


@dataclass(frozen=True, slots=True)
class Lookups:
    """Leaves of a join and the equalities between their columns."""

    leaves: tuple[n.Relation, ...]
    equal: tuple[tuple[str, str | None], ...]
    """Pairs of columns that are equal in every row; None stands for a constant."""
    facts: Facts

    def of(self, scan: n.Scan, protected: frozenset[str]) -> Gathering:
        """Follow lookups by key from one scan."""
        decided = {f.name for f in fields_of(scan)}
        found: set[n.Relation] = {scan}
        claims: set[Key] = set()
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
        if single:
            return Gathering(single, (), frozenset(claims), frozenset(decided))
        keys = self._row_of(scan, protected)
        apart = frozenset(decided)
        fans = self._fans(scan, keys, found, decided, claims)
        return Gathering(single, keys, frozenset(claims), apart, fans)

    def _fans(
        self,
        scan: n.Scan,
        keys: tuple[n.Column, ...],
        found: set[n.Relation],
        decided: set[str],
        claims: set[Key],
    ) -> tuple[Fan, ...] | None:
        """Follow lookups that find several rows, too; the gathering columns must be a key that is checked."""
        gathered = {stored_column(scan, k.name).lower() for k in keys}
        known_keys = self.facts.keys(scan.table.lower())
        key = next((k for k in known_keys if k.holds and set(k.columns) == gathered), None)
        if key is None:
            return None
        seen, known, claimed = set(found), set(decided), set(claims)
        fans: list[Fan] = []
        while len(seen) < len(self.leaves):
            rest = [leaf for leaf in self.leaves if leaf not in seen]
            looked_up = next(
                ((x, c) for x in rest if (c := self._looked_up(x, known)) is not None), None
            )
            if looked_up is not None:
                leaf: n.Relation = looked_up[0]
                claimed |= set(looked_up[1])
            else:
                scans = [x for x in rest if isinstance(x, n.Scan)]
                if len(scans) < len(rest):
                    return None
                leaf = max(scans, key=lambda x: len(self._fixed(x, known)))
                other, fixed = leaf.table.lower(), tuple(sorted(self._fixed(leaf, known)))
                if not self.facts.is_open(other, fixed):
                    return None
                fans.append((other, fixed))
            seen.add(leaf)
            known |= {f.name for f in fields_of(leaf)}
        claims |= claimed | set(key.claims)
        return tuple(fans)

    def _fixed(self, leaf: n.Scan, decided: set[str]) -> set[str]:
        """Give the columns of a leaf that what is decided fixes."""
        names = stored_columns(leaf)
        return {names[a] for a, b in self._pairs() if a in names and (b is None or b in decided)}

    def _looked_up(self, leaf: n.Relation, decided: set[str]) -> tuple[Key, ...] | None:
        """Whether what is decided names at most one row of a leaf; with the key claimed for that."""
        if not isinstance(leaf, n.Scan):
            return None
        fixed = self._fixed(leaf, decided)
        for key in self.facts.keys(leaf.table.lower()):
            if key.holds and fixed.issuperset(key.columns):
                return key.claims
        return None

    def _pairs(self) -> list[tuple[str, str | None]]:
        return [*self.equal, *((b, a) for a, b in self.equal if b is not None)]

    def _row_of(self, scan: n.Scan, protected: frozenset[str]) -> tuple[n.Column, ...]:
        """Give columns to gather by: the declared key, or else all public columns."""
        public = [f for f in scan.columns if f.name not in protected]
        key = named_in(scan, self.facts.policy.facts(scan.table).key) or ()
        named = [f for f in public if f.name in key]
        chosen = named if key and len(named) == len(key) else public
        return tuple(n.Column(f.name, f.type) for f in chosen)


def lookups_of(relation: n.Relation, facts: Facts) -> Lookups:
    """Collect leaves and equalities of a tree of filters and inner joins; anything else is a leaf."""
    found = joined(relation)
    pairs: list[tuple[str, str | None]] = []
    for condition in found.conditions:
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
    return Lookups(tuple(found.leaves), tuple(pairs), facts)
