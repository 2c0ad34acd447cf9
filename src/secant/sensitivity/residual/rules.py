"""J-rules: which counts bound what one row adds to a join, and how they grow when other rows come.

In: a shape. Out: the figures to be measured, and for each table a polynomial in the rows that came to every table,
whose coefficients are products of figures. One row takes the place of every nonempty set of copies of its table at
once (residual.copies); what is left is counted part by part (residual.parts), and rows that came replace further atoms
(residual.grow).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import permutations

from secant.plan import nodes as n
from secant.plan.facts.conjunctive import under_alias
from secant.plan.show import same
from secant.records import frozen
from secant.sensitivity.certificate import CannotBound
from secant.sensitivity.residual.shape import Atoms, Classes, Shape, subsets

MOST_COPIES = 8
"""More copies of varying tables have too many residuals."""
MOST_FIGURES = 96
_MOST_PERMUTED = 4


@frozen
class Figure:
    """The largest number of combinations of rows of some atoms that agree in the boundary."""

    atoms: Atoms
    boundary: Classes


@frozen
class Term:
    """A product of figures, times the rows that came to tables, as often as they were chosen."""

    powers: tuple[int, ...]
    figures: tuple[int, ...]


Part = tuple[Term, ...]
Product = tuple[Part, ...]
Polynomial = dict[tuple[int, ...], int]
"""Powers of the numbers of rows that came to each table -> coefficient."""


@frozen
class Growth:
    """What one row of a table can add: a sum of products of parts."""

    table: str
    products: tuple[Product, ...]


@dataclass
class Residuals:
    """Finds the figures of a shape; each is counted once, however often it is needed."""

    shape: Shape
    merge: bool
    """Whether figures of alike atoms are one: not where keys tell them apart."""
    figures: list[Figure] = field(default_factory=list)
    _numbers: dict[object, int] = field(default_factory=dict)
    _labels: list[n.Relation] = field(default_factory=list)
    _labels_by_atom: dict[int, int] = field(default_factory=dict)

    def growths(self) -> tuple[Growth, ...]:
        """Give what one row of each varying table can add."""
        if len(self.shape.varying) > MOST_COPIES:
            raise CannotBound(
                "residual.copies",
                self.shape.form.atoms[0].relation,
                f"more than {MOST_COPIES} protected tables, or copies of them, are joined",
                "join fewer tables, or protect a unit that owns the rows",
            )
        return tuple(Growth(t, self._products(t)) for t in self.shape.tables)

    def _products(self, table: str) -> tuple[Product, ...]:
        """Sum over the sets of copies that one row of the table can stand in for (residual.copies)."""
        shape = self.shape
        copies, paired = shape.copies(table), self._ordered_pair(table)
        products = []
        for chosen in subsets(copies, 1):
            if paired is not None and paired in chosen:
                continue  # counted with the other of the two (residual.order)
            if self._impossible(chosen):
                continue
            remaining = shape.everything - chosen
            parts = [
                part
                for tied in shape.parts(remaining)
                for part in self._split(
                    tied, shape.classes(tied) & shape.classes(shape.everything - tied)
                )
            ]
            products.append(tuple(self._grown(*part) for part in parts))
        return tuple(products)

    def _impossible(self, chosen: Atoms) -> bool:
        """Whether one row cannot stand for all these copies: it is not less than itself (residual.copies)."""
        origin = [self.shape.form.atoms[i].origin for i in sorted(chosen)]
        base = {c: b for names in origin for c, b in names.items()}
        for condition in self.shape.form.conditions:
            part = condition.scalar
            if not condition.atoms <= chosen or not isinstance(part, n.Compare):
                continue
            left, right = part.left, part.right
            if isinstance(left, n.Column) and isinstance(right, n.Column):
                equal = left.name in base and base.get(left.name) == base.get(right.name)
                if equal and part.op in ("<", ">", "<>"):
                    return True
        return False

    # ── parts ────────────────────────────────────────────────────────────────────────────────────

    def _split(self, atoms: Atoms, boundary: Classes) -> Iterator[tuple[Atoms, Classes]]:
        """Give parts whose counts multiply to a bound of the whole's (residual.parts)."""
        shape = self.shape
        sure = shape.determined(atoms, boundary, shape.kept) & shape.varying
        if sure:
            yield from self._after(atoms - sure, boundary | shape.classes(sure))
            return
        likely = shape.determined(atoms, boundary, shape.likely)
        if likely == atoms:
            yield from self._one_by_one(atoms, boundary)
            return
        if not self._manageable(atoms, boundary):
            guess = tuple(sorted(likely))
            for first in subsets(guess, 1) if len(guess) <= MOST_COPIES else ():
                if first == atoms or shape.determined(first, boundary, shape.likely) != first:
                    continue
                halves = [(p, shape.classes(p) & boundary) for p in shape.parts(first)]
                classes = boundary | shape.classes(first)
                halves += [(p, shape.classes(p) & classes) for p in shape.parts(atoms - first)]
                if all(self._manageable(*half) for half in halves):
                    for half in halves:
                        yield from self._split(*half)
                    return
        yield atoms, boundary

    def _one_by_one(self, atoms: Atoms, boundary: Classes) -> Iterator[tuple[Atoms, Classes]]:
        """Give single atoms, each after those that its key comes from: no join is needed to count them."""
        shape, classes = self.shape, boundary
        while atoms:
            atom = min(i for i in atoms if any(key <= classes for key in shape.likely[i]))
            yield frozenset((atom,)), shape.touched[atom] & classes
            atoms -= {atom}
            classes |= shape.touched[atom]

    def _after(self, atoms: Atoms, classes: Classes) -> Iterator[tuple[Atoms, Classes]]:
        for part in self.shape.parts(atoms):
            yield from self._split(part, self.shape.classes(part) & classes)

    def _manageable(self, atoms: Atoms, boundary: Classes) -> bool:
        return all(
            self.shape.cheap(part, over)
            for gone in subsets(tuple(sorted(atoms & self.shape.varying)))
            for part, over in self._left(atoms, boundary, gone)
        )

    def _left(
        self, atoms: Atoms, boundary: Classes, gone: Atoms
    ) -> Iterator[tuple[Atoms, Classes]]:
        """Give what is left of a part when rows that came stand in for some atoms, with its boundaries."""
        shape = self.shape
        for part in shape.parts(atoms - gone):
            yield part, shape.classes(part) & (boundary | shape.classes(atoms - part))

    def _grown(self, atoms: Atoms, boundary: Classes) -> Part:
        """Sum over the sets of atoms that rows that came stand in for (residual.grow)."""
        terms = []
        for gone in subsets(tuple(sorted(atoms & self.shape.varying))):
            left = self._left(atoms, boundary, gone)
            numbers = [self._number(part, over) for part, over in left]
            powers = tuple(
                sum(self.shape.form.atoms[i].table == t for i in gone) for t in self.shape.tables
            )
            terms.append(Term(powers, tuple(x for x in numbers if x is not None)))
        return tuple(terms)

    # ── figures ──────────────────────────────────────────────────────────────────────────────────

    def _number(self, atoms: Atoms, boundary: Classes) -> int | None:
        """Give the place of a figure; None for one that kept keys hold at 1."""
        if self.shape.determined(atoms, boundary, self.shape.kept) == atoms:
            return None
        if len(atoms) == 1:
            # Rows that agree in less are no fewer; where a key is declared they are hardly more, and quicker to count.
            (atom,) = atoms
            likely = [key for key in self.shape.likely[atom] if key <= boundary]
            boundary = min(likely, key=len, default=boundary)
        name = self._name(atoms, boundary)
        if name not in self._numbers:
            if len(self.figures) >= MOST_FIGURES:
                raise CannotBound(
                    "residual.grow",
                    self.shape.form.atoms[min(atoms)].relation,
                    "the join has too many different residuals",
                    "join fewer protected tables",
                )
            self._numbers[name] = len(self.figures)
            self.figures.append(Figure(atoms, boundary))
        return self._numbers[name]

    def _name(self, atoms: Atoms, boundary: Classes) -> object:
        """Give the same name to figures that are the same but for which copies they count."""
        if not self.merge or self.shape.conditions(atoms) or not self._has_origins(atoms):
            return atoms, boundary
        if len(atoms) > _MOST_PERMUTED:
            # One likely order instead of all: what is written the same is the same anyway.
            alone = {i: self._order_key((i,), boundary) for i in atoms}
            return self._order_key(tuple(sorted(atoms, key=lambda i: (alone[i], i))), boundary)
        return min(self._order_key(order, boundary) for order in permutations(sorted(atoms)))

    def _has_origins(self, atoms: Atoms) -> bool:
        form = self.shape.form
        columns = [c for group in form.classes for c in group if form.home[c] in atoms]
        return all(c in form.atoms[form.home[c]].origin for c in columns)

    def _order_key(self, order: Sequence[int], boundary: Classes) -> tuple[object, ...]:
        form = self.shape.form
        labels = tuple(self._label(i) for i in order)
        ties = []
        for number, group in enumerate(form.classes):
            columns = sorted(
                (order.index(form.home[c]), form.atoms[form.home[c]].origin[c])
                for c in group
                if form.home[c] in order
            )
            if columns:  # of every class: rows with a NULL in one are left out
                ties.append((number in boundary, tuple(columns)))
        return labels, tuple(sorted(ties))

    def _label(self, index: int) -> int:
        """Number relations that say the same under any alias."""
        if index not in self._labels_by_atom:
            relation = under_alias(self.shape.form.atoms[index].relation, "copy")
            labels = (i for i, labeled in enumerate(self._labels) if same(labeled, relation))
            number = next(labels, len(self._labels))
            if number == len(self._labels):
                self._labels.append(relation)
            self._labels_by_atom[index] = number
        return self._labels_by_atom[index]

    # ── two ordered copies ───────────────────────────────────────────────────────────────────────

    def _ordered_pair(self, table: str) -> int | None:
        """Give one of two copies that a strict order of one column tells apart and nothing else does.

        Rests on residual.order.
        """
        shape, form = self.shape, self.shape.form
        copies = shape.copies(table)
        # Keys would tell the copies apart, too.
        if not self.merge or len(copies) != 2 or self._label(copies[0]) != self._label(copies[1]):
            return None
        first, second = (form.atoms[i].origin for i in copies)
        ordered = [c for c in form.conditions if c.atoms == frozenset(copies)]
        if len(ordered) != 1 or any(
            c.atoms & frozenset(copies) for c in form.conditions if c is not ordered[0]
        ):
            return None
        part = ordered[0].scalar
        if not isinstance(part, n.Compare) or part.op not in ("<", ">"):
            return None
        if not isinstance(part.left, n.Column) or not isinstance(part.right, n.Column):
            return None
        base = {**first, **second}
        if part.left.name not in base or base[part.left.name] != base.get(part.right.name):
            return None
        return copies[1] if self._swaps(copies[0], copies[1]) else None

    def _swaps(self, one: int, other: int) -> bool:
        """Whether the classes stay the same when two copies change places."""
        form = self.shape.form
        places = {one: other, other: one}
        named = {(i, b): c for i in places for c, b in form.atoms[i].origin.items()}

        def swapped(column: str) -> str | None:
            home = form.home[column]
            if home not in places:
                return column
            base = form.atoms[home].origin.get(column)
            return named.get((places[home], base)) if base is not None else None

        return all(frozenset(map(swapped, group)) in form.classes for group in form.classes)


def polynomial(growth: Growth, tables: int, values: Sequence[int]) -> Polynomial:
    """Put measured figures into what one row of a table can add."""
    total: Polynomial = {}
    for product in growth.products:
        terms: Polynomial = {(0,) * tables: 1}
        for part in product:
            grown: Polynomial = {}
            for term in part:
                amount = 1
                for number in term.figures:
                    amount *= values[number]
                grown[term.powers] = grown.get(term.powers, 0) + amount
            terms = _multiplied(terms, grown)
        for powers, amount in terms.items():
            total[powers] = total.get(powers, 0) + amount
    return total


def _multiplied(left: Polynomial, right: Polynomial) -> Polynomial:
    terms: Polynomial = {}
    for a, x in left.items():
        for b, y in right.items():
            powers = tuple(i + j for i, j in zip(a, b, strict=True))
            terms[powers] = terms.get(powers, 0) + x * y
    return terms
