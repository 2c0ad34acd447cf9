"""What residuals are made of: atoms, the classes that tie them, and which rows a key determines.

In: a conjunctive form, and the keys of its tables. Out: connected parts, their boundaries, and whether a part's group
counts can be computed without a join that grows. Keys that nobody keeps steer only how something is computed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

from secant.plan import nodes as n
from secant.plan.facts.conjunctive import Conjunctive
from secant.plan.facts.facts import Facts
from secant.policy.keys import Key

Atoms = frozenset[int]
Classes = frozenset[int]


@dataclass(frozen=True)
class Shape:
    """A conjunctive form by numbers: atoms by place, classes by place."""

    form: Conjunctive
    touched: tuple[Classes, ...]
    """For each atom the classes that it has a column in."""
    kept: tuple[tuple[Classes, ...], ...]
    """For each atom the classes that hold a key that holds in every neighbor, or that a DISTINCT makes one."""
    likely: tuple[tuple[Classes, ...], ...]
    """The same with declared keys, which nobody has checked: for costs only."""
    claims: frozenset[Key] = frozenset()
    """Keys among those that hold which the engine does not keep: the owner accepts them, or they are checked."""

    @cached_property
    def everything(self) -> Atoms:
        """All atoms."""
        return frozenset(range(len(self.form.atoms)))

    @cached_property
    def varying(self) -> Atoms:
        """The atoms whose rows come and go."""
        return frozenset(i for i in self.everything if self.form.atoms[i].varying)

    @cached_property
    def tables(self) -> tuple[str, ...]:
        """The tables whose rows come and go."""
        return tuple(sorted({self.form.atoms[i].table or "" for i in self.varying}))

    def copies(self, table: str) -> tuple[int, ...]:
        """Give the atoms that are copies of a table."""
        return tuple(i for i in sorted(self.varying) if self.form.atoms[i].table == table)

    def classes(self, atoms: Atoms) -> Classes:
        """Give the classes that some of the atoms touch."""
        return frozenset().union(*(self.touched[i] for i in atoms))

    def conditions(self, atoms: Atoms) -> tuple[n.Scalar, ...]:
        """Give the conditions that relate only these atoms."""
        return tuple(c.scalar for c in self.form.conditions if c.atoms and c.atoms <= atoms)

    def parts(self, atoms: Atoms) -> list[Atoms]:
        """Split atoms where no class and no condition ties them."""
        ties = [self._touching(c) & atoms for c in range(len(self.form.classes))]
        ties += [c.atoms for c in self.form.conditions if c.atoms <= atoms]
        parts: list[Atoms] = [frozenset((i,)) for i in sorted(atoms)]
        for tie in ties:
            met = [part for part in parts if part & tie]
            if len(met) > 1:
                parts = [part for part in parts if part not in met]
                parts.append(frozenset().union(*met))
        return sorted(parts, key=sorted)

    def _touching(self, group: int) -> Atoms:
        return frozenset(i for i in self.everything if group in self.touched[i])

    def determined(
        self, atoms: Atoms, boundary: Classes, keys: tuple[tuple[Classes, ...], ...]
    ) -> Atoms:
        """Give the atoms whose row is the only one that fits, one after the other, once the boundary is fixed."""
        determined: Atoms = frozenset()
        classes = boundary
        while True:
            more = [i for i in atoms - determined if any(key <= classes for key in keys[i])]
            if not more:
                return determined
            determined |= {more[0]}
            classes |= self.touched[more[0]]

    def roots(
        self, atoms: Atoms, boundary: Classes
    ) -> list[tuple[int, list[tuple[Atoms, Classes]]]]:
        """Give every atom with what hangs on it and over which classes, those with least to carry first."""
        roots = []
        for root in sorted(atoms):
            below = [
                (part, self.classes(part) & (boundary | self.touched[root]))
                for part in self.parts(atoms - {root})
            ]
            roots.append((root, below))
        return sorted(roots, key=lambda r: sum(len(classes) for _, classes in r[1]))

    def cheap(self, atoms: Atoms, boundary: Classes) -> bool:
        """Whether group counts can be computed, from one root, by joins that do not grow."""
        if len(atoms) == 1:
            return True
        if self.conditions(atoms):
            return False
        return any(
            all(self._no_growth(root, part, over) for part, over in below)
            for root, below in self.roots(atoms, boundary)
        )

    def _no_growth(self, root: int, part: Atoms, over: Classes) -> bool:
        joined = over & self.touched[root]
        if not self.cheap(part, over):
            return False
        return (
            over <= joined
            or any(key <= joined for key in self.likely[root])
            or self.determined(part, joined, self.likely) == part
        )


def shape_of(form: Conjunctive, facts: Facts) -> Shape:
    """Number the classes, and find the keys of every atom among them."""
    class_of = {c: number for number, group in enumerate(form.classes) for c in group}
    touched = tuple(
        frozenset(class_of[c] for c, home in form.home.items() if home == i and c in class_of)
        for i in range(len(form.atoms))
    )

    sure_keys: list[tuple[Classes, ...]] = []
    likely: list[tuple[Classes, ...]] = []
    claims: set[Key] = set()
    for atom in form.atoms:
        at = {base: class_of[c] for c, base in atom.origin.items() if c in class_of}
        sure: list[Classes] = []
        others: list[Classes] = []
        for key in facts.keys(atom.table) if atom.table is not None else ():
            if all(c in at for c in key.columns):
                classes = frozenset(at[c] for c in key.columns)
                # Where rows stay, a key that is checked before the release holds in every neighbor, too.
                holds = key.holds_unseen if atom.varying else key.holds
                (sure if holds else others).append(classes)
                claims.update(key.claims if holds else ())
        if atom.key and atom.key <= class_of.keys():
            sure.append(frozenset(class_of[c] for c in atom.key))
        sure_keys.append(tuple(sure))
        likely.append((*sure, *others))
    return Shape(form, touched, tuple(sure_keys), tuple(likely), frozenset(claims))


def subsets(items: tuple[int, ...], least: int = 0) -> list[Atoms]:
    """Give all subsets of at least some size, small ones first."""
    sizes = range(least, len(items) + 1)
    return [frozenset(chosen) for size in sizes for chosen in combinations(items, size)]
