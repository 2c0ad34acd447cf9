"""Which rows of a join belong to one row of a protected table? Public columns decide, so this can be known.

In: rows that public conditions decide, and keys that are declared or kept by the engine. Out: for each
scan whether its rows stand in at most one joined row, the keys that this rests on, and else the columns
by which joined rows are gathered. A key is believed only as far as combined.keys goes, and gathering by too few columns
only makes a bound larger (derivative.gather).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field

from secant.plan import nodes as n
from secant.plan.facts.facts import Facts
from secant.plan.facts.lineage import named_in, stored_column, stored_columns
from secant.plan.facts.regions import Joined, joined, unfiltered
from secant.plan.typing import fields_of
from secant.policy.keys import Key, Trust
from secant.records import frozen

Fan = tuple[str, tuple[str, ...]]
"""A table and columns: how many rows agree in these columns, at most? None of them: all its rows."""


@frozen
class FoundRows:
    """Lookups that find several rows: their largest numbers, multiplied, bound the joined rows of one row."""

    fans: tuple[Fan, ...]
    claims: frozenset[Key]
    """Keys that the other lookups rest on."""


@frozen
class Gathering:
    """How the joined rows of one row of a scan are found."""

    single: bool
    """Whether a row stands in at most one joined row."""
    keys: tuple[n.Column, ...]
    """Otherwise: columns that rows of the scan have in common at most with each other."""
    claims: frozenset[Key]
    decided: frozenset[str]
    """Columns whose values one row of the scan decides."""
    found: FoundRows | None = None
    """What bounds the joined rows of one row; None where nothing does."""
    fans: tuple[Fan, ...] | None = None
    """The same of all rows that agree in the gathering columns; None where these are not a key that can be checked."""
    keyed: bool = False
    """Whether the gathering columns are a key that the engine keeps, or that is checked and stands in the claims."""


Pairs = tuple[tuple[str, str | None], ...]
"""Columns that are equal; None stands for a constant."""


@frozen
class Padded:
    """The right side of a left join: rows that may be missing, found from the rows on the left only."""

    beside: frozenset[n.Relation]
    equal: Pairs
    """A column of the right side first. Where no row is found these do not hold: nothing follows for the left."""


@frozen
class Lookups:
    """Leaves of a join and the equalities between their columns."""

    leaves: tuple[n.Relation, ...]
    equal: Pairs
    """What is equal in every row."""
    facts: Facts
    padded: Mapping[n.Relation, Padded] = field(default_factory=dict)

    def of(
        self, scan: n.Scan, protected: frozenset[str], leaves: Iterable[n.Relation] = ()
    ) -> Gathering:
        """Follow lookups by key from one scan, where a row of each given leaf is fixed as well."""
        reached: set[n.Relation] = {scan, *leaves}
        decided = {f.name for leaf in reached for f in fields_of(leaf)}
        claims: set[Key] = set()
        grown = True
        while grown:
            grown = False
            for leaf in self.leaves:
                claim = None if leaf in reached else self._looked_up(leaf, decided, reached)
                if claim is not None:
                    reached.add(leaf)
                    decided |= {f.name for f in fields_of(leaf)}
                    claims |= set(claim)
                    grown = True
        single = len(reached) == len(self.leaves)
        if single:
            return Gathering(single, (), frozenset(claims), frozenset(decided))
        keys = self._row_of(scan, protected)
        apart = frozenset(decided)
        found = self._found(reached, decided)
        key = None if found is None else self._checked_key(scan, keys)
        if found is not None and key is not None:
            claims |= found.claims | set(key.claims)
        fans = None if found is None or key is None else found.fans
        keyed = self._is_key(scan, keys, claims)
        return Gathering(single, keys, frozenset(claims), apart, found, fans, keyed)

    def _is_key(self, scan: n.Scan, columns: tuple[n.Column, ...], claims: set[Key]) -> bool:
        """Whether columns are a key that does not rest on an owner's word, and asks for no further claim."""
        names = {stored_column(scan, c.name).lower() for c in columns}
        return any(
            key.trust in (Trust.KEPT, Trust.CHECKED)
            and set(key.columns) == names
            and claims.issuperset(key.claims)
            for key in self.facts.keys(scan.table.lower())
        )

    def _checked_key(self, scan: n.Scan, columns: tuple[n.Column, ...]) -> Key | None:
        """Give the key that is made of these columns; None where none is known to hold."""
        gathered = {stored_column(scan, c.name).lower() for c in columns}
        known_keys = self.facts.keys(scan.table.lower())
        return next((k for k in known_keys if k.holds and set(k.columns) == gathered), None)

    def _found(self, relations: set[n.Relation], decided: set[str]) -> FoundRows | None:
        """Follow lookups that find several rows, too."""
        seen, names, claimed = set(relations), set(decided), set[Key]()
        fans: list[Fan] = []
        while len(seen) < len(self.leaves):
            other_leaves = [leaf for leaf in self.leaves if leaf not in seen]
            looked_up = next(
                (
                    (x, c)
                    for x in other_leaves
                    if (c := self._looked_up(x, names, seen)) is not None
                ),
                None,
            )
            if looked_up is not None:
                leaf: n.Relation = looked_up[0]
                claimed |= set(looked_up[1])
            else:
                scans = [x for x in other_leaves if isinstance(x, n.Scan)]
                if len(scans) < len(other_leaves):
                    return None
                ready = [x for x in scans if self._beside(x, seen)]
                leaf = max(ready, key=lambda x: len(self._fixed(x, names)))
                other, fixed = leaf.table.lower(), tuple(sorted(self._fixed(leaf, names)))
                if not self.facts.is_open(other, fixed):
                    return None
                fans.append((other, fixed))
            seen.add(leaf)
            names |= {f.name for f in fields_of(leaf)}
        return FoundRows(tuple(fans), frozenset(claimed))

    def _fixed(self, leaf: n.Scan, decided: set[str]) -> set[str]:
        """Give the columns of a leaf that what is decided fixes."""
        names = stored_columns(leaf)
        pairs = [*self._pairs(), *(self.padded[leaf].equal if leaf in self.padded else ())]
        return {names[a] for a, b in pairs if a in names and (b is None or b in decided)}

    def _beside(self, leaf: n.Relation, leaves: set[n.Relation]) -> bool:
        """Whether a leaf can be looked up now: what a left join pads comes after all that stands left of it."""
        return leaf not in self.padded or self.padded[leaf].beside <= leaves

    def _looked_up(
        self, leaf: n.Relation, decided: set[str], leaves: set[n.Relation]
    ) -> tuple[Key, ...] | None:
        """Whether what is decided names at most one row of a leaf; with the key claimed for that."""
        if not isinstance(leaf, n.Scan) or not self._beside(leaf, leaves):
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


def lookups_of(relation: n.Relation, facts: Facts, protected: frozenset[str]) -> Lookups:
    """Collect leaves and equalities of a tree of filters and joins; anything else is a leaf.

    Of left joins only those are opened whose right side is a table without protected columns.
    """
    region = joined(relation)
    padded: dict[n.Relation, Padded] = {}
    while (opened := next((x for x in region.leaves if _padding(x, protected)), None)) is not None:
        assert isinstance(opened, n.Join)
        scan = _table_of(opened.right)
        assert scan is not None
        left = joined(opened.left)
        index = region.leaves.index(opened)
        region = Joined(
            [*region.leaves[:index], *left.leaves, scan, *region.leaves[index + 1 :]],
            [*region.conditions, *left.conditions],
        )
        # A left side that is opened later is still what stands beside: its own leaves take its place.
        for leaf, padding in padded.items():
            if opened in padding.beside:
                beside = (padding.beside - {opened}) | {*left.leaves, scan}
                padded[leaf] = Padded(beside, padding.equal)
        own = set(stored_columns(scan))
        pairs = _equalities(n.conjuncts(opened.condition))
        turned = [(b, a) for a, b in pairs if b is not None]
        equal = tuple((a, b) for a, b in (*pairs, *turned) if a in own)
        padded[scan] = Padded(frozenset(left.leaves), equal)
    return Lookups(tuple(region.leaves), _equalities(region.conditions), facts, padded)


def _padding(leaf: n.Relation, protected: frozenset[str]) -> bool:
    if not isinstance(leaf, n.Join) or leaf.kind != "left":
        return False
    right = _table_of(leaf.right)
    return right is not None and protected.isdisjoint(f.name for f in right.columns)


def _table_of(relation: n.Relation) -> n.Scan | None:
    """Give the table whose rows a relation shows, perhaps not all of them; None if it is more than that."""
    _, stored = unfiltered(relation)
    return stored if isinstance(stored, n.Scan) else None


def _equalities(conditions: Iterable[n.Scalar]) -> Pairs:
    pairs: list[tuple[str, str | None]] = []
    for condition in conditions:
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
    return tuple(pairs)
