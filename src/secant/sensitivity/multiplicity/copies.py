"""From a query to what the engine counts: for every copy of a protected table, what its rows meet.

Rests on multiplicity.copy, multiplicity.keyed.

In: a query as atoms, classes and conditions, and what is known of keys. Out: for each copy the parts that the other
atoms fall into, which factors of the product grow, and the statements that count them, each written once. Never here:
data, and what the counts are turned into.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from secant.plan import nodes as n
from secant.plan.facts.conjunctive import Conjunctive
from secant.plan.rewrites.rewrite import substitute
from secant.plan.typing import fields_of
from secant.policy.keys import Key
from secant.records import frozen
from secant.schema.types import INTEGER, Type
from secant.sensitivity.multiplicity.conditions import conditions_of, equal_to, expressed, left_of
from secant.sensitivity.multiplicity.filling import Growth


@frozen
class Factor:
    """Rows of one atom that fit a pattern: a factor of the product."""

    statement: int
    classes: tuple[int, ...]
    slot: int | None
    """Its place among the factors that grow; None for a public atom."""


@frozen
class Part:
    """Other atoms that equalities tie together without the copy: what they join to, and its factors."""

    joined: int
    classes: tuple[int, ...]
    factors: tuple[Factor, ...]


@frozen
class Copy:
    """One copy of a protected table: what one of its rows meets."""

    place: int
    table: str
    patterned: Part | None
    """The part that is read pattern by pattern."""
    whole: tuple[Part, ...]
    """Parts of which only the largest figures are read."""
    growth: Growth
    labels: Mapping[int, tuple[str, ...]]
    """Class -> the table's own columns that hold its value in this copy."""


@frozen
class Layout:
    """All copies, the statements they read, and what they rest on."""

    copies: tuple[Copy, ...]
    statements: tuple[n.Relation, ...]
    keyed: tuple[bool, ...]
    claims: frozenset[Key]
    kinds: tuple[frozenset[str], ...]
    """For each class the kinds of types that its columns have."""


@dataclass
class Planner:
    """Lays out one query."""

    query: Conjunctive
    keys: tuple[n.Scalar, ...]
    """The release's keys over columns of atoms."""
    unique: Callable[[str], tuple[Key, ...]]
    """Keys of a table."""
    tag: str
    """What names of the statements' columns begin with."""
    statements: dict[tuple[object, ...], tuple[n.Relation, bool]] = field(default_factory=dict)
    """What a statement counts -> the statement, and whether it does so by the release's keys."""
    claims: set[Key] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.conditions = conditions_of(self.query)
        self.types: dict[str, Type] = {
            f.name: f.type for atom in self.query.atoms for f in fields_of(atom.relation)
        }
        self.in_class = [
            frozenset(self.query.home[c] for c in group) for group in self.query.classes
        ]

    def layout(self) -> Layout:
        """Lay out every copy of a protected table."""
        copies = tuple(self._copy(i) for i, a in enumerate(self.query.atoms) if a.varying)
        planned = list(self.statements.values())
        kinds = tuple(frozenset(self.types[c].kind for c in g) for g in self.query.classes)
        return Layout(
            copies,
            tuple(relation for relation, _ in planned),
            tuple(keyed for _, keyed in planned),
            frozenset(self.claims),
            kinds,
        )

    # ── one copy ─────────────────────────────────────────────────────────────────────────────────

    def _copy(self, index: int) -> Copy:
        atoms = self.query.atoms
        table = atoms[index].table
        assert table is not None, "only tables vary"
        others = [j for j in range(len(atoms)) if j != index]
        settled = self._settled(index)
        growing = [j for j in others if atoms[j].varying]
        names = sorted({atoms[j].table or "" for j in growing})
        growth = Growth(
            tuple(names.index(atoms[j].table or "") for j in growing),
            tuple(int(atoms[j].table == table and j > index) for j in growing),
        )
        alone = sum(a.table == table for a in atoms) == 1
        groups = self._parts(others, settled)
        tied = [g for g in groups if self._shared(index, g)]
        separate = [j for g in tied for j in g - settled if self._shared(index, frozenset((j,)))]
        # With one factor that a pattern tells of, largest counts lose little and are one row each.
        coarse = len(tied) > 1 or (alone and len(separate) <= 1)
        patterned = None
        whole = []
        for group in groups:
            fine = group in tied and not coarse
            classes = self._shared(index, group)
            part = Part(
                self._statement(group, classes, largest=not fine),
                classes,
                tuple(
                    self._factor(index, j, growing, largest=not fine)
                    for j in sorted(group - settled)
                ),
            )
            if fine:
                patterned = part
            else:
                whole.append(part)
        return Copy(index, table, patterned, tuple(whole), growth, self._labels(index))

    def _factor(self, index: int, j: int, growing: list[int], *, largest: bool) -> Factor:
        classes = self._shared(index, frozenset((j,)))
        statement = self._statement(frozenset((j,)), classes, largest=largest)
        return Factor(statement, classes, growing.index(j) if j in growing else None)

    def _shared(self, index: int, group: frozenset[int]) -> tuple[int, ...]:
        """Give the classes that a copy shares with some of these atoms."""
        return tuple(k for k, homes in enumerate(self.in_class) if index in homes and homes & group)

    def _parts(self, others: list[int], settled: frozenset[int]) -> list[frozenset[int]]:
        """Give what is joined for counting: protected atoms that a class ties, and public rows that these meet once.

        Joined without the copy, other public atoms could give far more rows than the query ever has: one that is not
        met once is a part of its own, and one that only several parts or the copy itself determine is left out.
        """
        groups: list[frozenset[int]] = [frozenset((j,)) for j in others if j not in settled]
        varying = frozenset(j for j in others if self.query.atoms[j].varying)
        for homes in self.in_class:
            met = [g for g in groups if g & homes & varying]
            if len(met) > 1:
                groups = [g for g in groups if g not in met] + [frozenset().union(*met)]
        waiting = sorted(settled)
        while True:
            pair = next(
                ((j, g) for j in waiting for g in groups if self._met_once(j, set(g))), None
            )
            if pair is None:
                return sorted(groups, key=sorted)
            waiting.remove(pair[0])
            groups[groups.index(pair[1])] = pair[1] | {pair[0]}

    def _settled(self, index: int) -> frozenset[int]:
        """Give the public atoms of which a combination of the others meets at most one row (multiplicity.keyed)."""
        fixed = {index} | {j for j, a in enumerate(self.query.atoms) if a.varying}
        waiting = [j for j in range(len(self.query.atoms)) if j not in fixed]
        settled: set[int] = set()
        while waiting:
            j = next((j for j in waiting if self._met_once(j, fixed)), None)
            if j is None:
                j = waiting[0]
            else:
                settled.add(j)
            waiting.remove(j)
            fixed.add(j)
        return frozenset(settled)

    def _met_once(self, j: int, settled: set[int]) -> bool:
        atom = self.query.atoms[j]
        bound = {
            atom.origin[c]
            for group, homes in zip(self.query.classes, self.in_class, strict=True)
            if homes & (settled - {j})
            for c in group
            if self.query.home[c] == j and c in atom.origin
        }
        for key in self.unique(atom.table) if atom.table is not None else ():
            if key.holds and bound.issuperset(key.columns):
                self.claims.update(key.claims)
                return True
        return False

    def _labels(self, index: int) -> dict[int, tuple[str, ...]]:
        """Name the columns of a pattern by those of the table, so that patterns of all copies can meet."""
        atom = self.query.atoms[index]
        labels = {}
        for k, group in enumerate(self.query.classes):
            own = sorted(c for c in group if self.query.home[c] == index)
            if own:
                # a computed column stands for itself: no other copy speaks of it
                labels[k] = tuple(
                    dict.fromkeys(atom.origin.get(c, f"{c} of copy {index}") for c in own)
                )
        return labels

    # ── statements ───────────────────────────────────────────────────────────────────────────────

    def _statement(self, group: frozenset[int], classes: tuple[int, ...], *, largest: bool) -> int:
        """Give the place of the statement that counts what some atoms join to, by the values of classes."""
        largest = largest and bool(classes)
        key = (*self._counts(group, classes), largest)
        if key not in self.statements:
            self.statements[key] = self._relation(group, classes, largest)
        return list(self.statements).index(key)

    def _counts(self, group: frozenset[int], classes: tuple[int, ...]) -> tuple[object, ...]:
        """Tell what a statement counts: copies of a table that no condition narrows all show the same."""
        columns = [self._representative(k, group).name for k in classes]
        if len(group) == 1:
            (atom,) = (self.query.atoms[j] for j in group)
            keys = keys_over(self.query, self.keys, group) or ()
            named = [*columns, *(k.name for k in keys if isinstance(k, n.Column))]
            plain = isinstance(atom.relation, n.Scan) and len(named) == len(columns) + len(keys)
            if plain and not left_of(self.conditions, self.query, group):
                return (atom.table, tuple(atom.origin[c] for c in named), len(keys))
        return (group, classes)

    def _relation(
        self, group: frozenset[int], classes: tuple[int, ...], largest: bool
    ) -> tuple[n.Relation, bool]:
        keys = keys_over(self.query, self.keys, group)
        name = f"{self.tag}{len(self.statements) + 1}"
        pinned = tuple(n.Named(f"{name}.key{k}", key) for k, key in enumerate(keys or ()))
        values = tuple(n.Named(f"{name}.value{k}", self._representative(k, group)) for k in classes)
        count = n.Aggregation(f"{name}.rows", "count", None)
        counted = n.Aggregate(self._joined(group), (*pinned, *values), (count,))
        if not largest:
            return counted, bool(pinned)
        kinds = {f.name: f.type for f in fields_of(counted)}
        top = n.Aggregate(
            counted,
            tuple(n.Named(f"{p.name}_", n.Column(p.name, kinds[p.name])) for p in pinned),
            (n.Aggregation(f"{name}.most", "max", n.Column(count.name, INTEGER)),),
        )
        return top, bool(pinned)

    def _representative(self, k: int, group: frozenset[int]) -> n.Column:
        name = min(c for c in self.query.classes[k] if self.query.home[c] in group)
        return n.Column(name, self.types[name])

    def _joined(self, group: frozenset[int]) -> n.Relation:
        """Join atoms by their classes and by what the conditions say of them alone (multiplicity.exists)."""
        conditions: list[n.Scalar] = []
        for members in self.query.classes:
            inside = sorted(c for c in members if self.query.home[c] in group)
            first: dict[int, str] = {}
            for c in inside:
                first.setdefault(self.query.home[c], c)
            columns = [n.Column(c, self.types[c]) for c in first.values()]
            conditions += [n.Compare("=", columns[0], c) for c in columns[1:]]
        conditions += left_of(self.conditions, self.query, group)
        places = sorted(group)
        joined = self.query.atoms[places[0]].relation
        for j in places[1:]:
            joined = n.Join("cross", joined, self.query.atoms[j].relation, None)
        predicate = n.conjunction(tuple(conditions))
        return joined if predicate is None else n.Filter(joined, predicate)


def keys_over(
    query: Conjunctive, keys: tuple[n.Scalar, ...], group: frozenset[int]
) -> tuple[n.Scalar, ...] | None:
    """Write the release's keys over columns of some atoms; None if that cannot be done for all of them."""
    columns = frozenset(c for c, home in query.home.items() if home in group)
    equal = equal_to(query, group)
    expressions = []
    for key in keys:
        expression = None if n.has_subquery(key) else expressed(key, columns, equal)
        if expression is None:
            return None
        expressions.append(expression)
    return tuple(expressions)


def over_atoms(query: Conjunctive, keys: tuple[n.Named, ...]) -> tuple[n.Scalar, ...]:
    """Write the release's keys over columns of atoms."""
    return tuple(substitute(k.expression, dict(query.outputs)) for k in keys)
