"""The statements that measure figures: group counts, passed from atom to atom, and the largest of them.

In: a shape, its figures, and the release's keys. Out: relations whose rows are (keys..., number of the figure, value).
Counts are multiplied and summed as doubles, which are exact below 2^53 and never overflow here (residual.figures). A
count that several figures need is one shared node, which the printer writes once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from secant.plan import nodes as n
from secant.plan.rewrites.rewrite import columns_of
from secant.plan.typing import fields_of, type_of
from secant.records import frozen
from secant.schema import types as t
from secant.sensitivity.residual.rules import Figure
from secant.sensitivity.residual.shape import Atoms, Classes, Shape

Keys = Mapping[int, tuple[n.Scalar, ...]]
"""For each atom that determines the release's keys: how, in its columns."""


@frozen
class Counted:
    """Combinations of rows by what they agree in: columns, and how often each combination of values occurs."""

    relation: n.Relation
    classes: Mapping[int, n.Column]
    keys: tuple[n.Column, ...]
    """The release's keys; none if no atom in it determines them."""
    count: n.Column | None
    """How often; None if every row stands for itself."""


@dataclass
class Statements:
    """Writes the counts of parts; what two figures need is one node."""

    shape: Shape
    keys: Keys
    numbered: bool = False
    """Whether rows that a declared key tells apart are numbered instead of counted (residual.answer)."""
    done: dict[tuple[Atoms, Classes], Counted] = field(default_factory=dict)
    once: dict[Atoms, Counted] = field(default_factory=dict)
    """Rows of one atom, or of several joined, which are read once for all that asks for them."""
    _names: int = 0

    @cached_property
    def _tested(self) -> frozenset[str]:
        """Columns that conditions between atoms read."""
        return frozenset().union(*(columns_of(c.scalar) for c in self.shape.form.conditions))

    @cached_property
    def _prefix(self) -> str:
        """What no column of an atom begins with: people choose aliases as they like."""
        prefix = "part"
        while any(name.lower().startswith(prefix) for name in self.shape.form.home):
            prefix += "_"
        return prefix

    def keyed(self, figure: Figure) -> bool:
        """Whether a figure is measured for each group by itself."""
        return any(i in self.keys for i in figure.atoms)

    def statement(self, figures: Sequence[tuple[int, Figure]]) -> n.Relation:
        """Give one relation that measures all these figures, which are all keyed or all not."""
        ordered = sorted(figures, key=lambda f: len(f[1].atoms))
        parts = [self._largest(number, figure) for number, figure in ordered]
        whole = parts[0]
        for part in parts[1:]:
            whole = n.Union(whole, part, True, fields_of(whole))
        return whole

    def _largest(self, number: int, figure: Figure) -> n.Relation:
        counted = self._ranked(figure) or self.counted(figure.atoms, figure.boundary)
        assert counted.count is not None, "a figure's rows are grouped"
        name = self.fresh()
        keys = tuple(n.Named(f"{name}.key{i}", key) for i, key in enumerate(counted.keys))
        best = n.Aggregation(f"{name}.most", "max", counted.count)
        grouped = n.Aggregate(counted.relation, keys, (best,))
        items = [n.Named(k.name, n.Column(k.name, type_of(k.expression))) for k in keys]
        value = n.Cast(n.Column(best.name, counted.count.type), t.DOUBLE)
        items += [
            n.Named(f"{name}.which", n.Literal(number, t.INTEGER)),
            n.Named(f"{name}.value", value),
        ]
        return n.Project(grouped, tuple(items))

    def _ranked(self, figure: Figure) -> Counted | None:
        """Number rows that hardly ever agree: the last number is the count, and sorting beats one group for each."""
        if not self.ranks(figure) or (figure.atoms, figure.boundary) in self.done:
            return None
        (index,) = figure.atoms
        counted = self.atom(index)
        own = [counted.classes[c] for c in sorted(figure.boundary)]
        # The columns of the boundary alone: whatever else a row holds would be sorted, too.
        rows = n.Project(counted.relation, tuple(n.Named(c.name, c) for c in own))
        number = n.WindowCall(f"{self.fresh()}.number", "row_number", (), tuple(own), ())
        relation = n.Window(rows, (number,))
        return Counted(relation, {}, (), n.Column(number.name, type_of(number)))

    def ranks(self, figure: Figure) -> bool:
        """Whether the rows of a figure are numbered: those of one atom that a declared key tells apart."""
        if not self.numbered or self.keys or len(figure.atoms) > 1:
            return False
        (index,) = figure.atoms
        return any(key <= figure.boundary for key in self.shape.likely[index])

    def read_once(self, atoms: Atoms, read: frozenset[str]) -> Counted:
        """Let all that asks for some atoms, joined, read them from one place.

        What is kept is the classes by which the others are joined, and the columns that are named.
        """
        counted = self.joined(atoms)
        shared = self.shape.classes(self.shape.everything - atoms)
        classes = {number: c for number, c in counted.classes.items() if number in shared}
        kinds = {f.name: f.type for f in fields_of(counted.relation)}
        names = {c.name for c in classes.values()} | (kinds.keys() & read)
        items = tuple(n.Named(c, n.Column(c, kinds[c])) for c in sorted(names))
        relation = n.Project(counted.relation, items)
        self.once[atoms] = replace(counted, relation=relation, classes=classes)
        return self.once[atoms]

    def counted(self, atoms: Atoms, boundary: Classes) -> Counted:
        """Count the combinations of rows of some atoms for each value of the boundary (residual.figures)."""
        key = (atoms, boundary)
        if key not in self.done:
            if self.shape.conditions(atoms):
                counted = self.joined(atoms)
            else:
                root, below = self.shape.roots(atoms, boundary)[0]
                counted = self.hung(root, below)
            self.done[key] = self.grouped(counted, boundary)
        return self.done[key]

    def hung(self, root: int, below: list[tuple[Atoms, Classes]]) -> Counted:
        """Join an atom with the counts of what hangs on it."""
        counted = self.atom(root)
        for part, over in below:
            counted = self.pair(counted, self._message(root, part, over))
        return counted

    def _message(self, root: int, part: Atoms, over: Classes) -> Counted:
        """Count what hangs on an atom; rows that are probably different anyway stay as they are."""
        if len(part) == 1 and (part, over) not in self.done:
            (atom,) = part
            if any(key <= over for key in self.shape.likely[atom]):
                return self.atom(atom)
        classes = over & self.shape.touched[root]
        if self.numbered and self.shape.determined(part, classes, self.shape.likely) == part:
            return self.joined(part)
        return self.counted(part, over)

    def joined(self, atoms: Atoms) -> Counted:
        """Join atoms that conditions relate, one by one, each condition as soon as it can be tested."""
        order = sorted(atoms)
        begun = max((o for o in self.once if o <= atoms), key=len, default=frozenset[int]())
        if len(begun) > 1:
            counted, seen = self.once[begun], set(begun)
        else:
            counted, seen = self.atom(order[0]), {order[0]}
        tested: set[int] = set()
        while len(seen) < len(atoms):
            waiting = [i for i in order if i not in seen]
            classes = self.shape.classes(frozenset(seen))
            nearest = max(waiting, key=lambda i: len(self.shape.touched[i] & classes))
            seen.add(nearest)
            ready = [
                (number, c.scalar)
                for number, c in enumerate(self.shape.form.conditions)
                if c.atoms and c.atoms <= seen and number not in tested
            ]
            tested |= {number for number, _ in ready}
            counted = self.pair(counted, self.atom(nearest), tuple(c for _, c in ready))
        return counted

    def atom(self, index: int) -> Counted:
        """Give the rows of an atom that can match: a NULL matches nothing."""
        if frozenset((index,)) in self.once:
            return self.once[frozenset((index,))]
        atom = self.shape.form.atoms[index]
        relation = _copied(atom.relation)
        kinds = {f.name: f.type for f in fields_of(relation)}
        columns = {
            number: n.Column(name, kinds[name])
            for number, group in enumerate(self.shape.form.classes)
            for name in sorted(group, reverse=True)
            if self.shape.form.home[name] == index
        }
        there = tuple(n.Not(n.IsNull(c)) for c in columns.values())
        predicate = n.conjunction(there)
        if predicate is not None:
            relation = n.Filter(relation, predicate)
        keys: tuple[n.Column, ...] = ()
        if index in self.keys:
            name = self.fresh()
            named = [n.Named(f"{name}.key{i}", key) for i, key in enumerate(self.keys[index])]
            read = {c.name for c in columns.values()} | self._tested
            stored = [n.Named(f, n.Column(f, kind)) for f, kind in kinds.items() if f in read]
            relation = n.Project(relation, (*stored, *named))
            keys = tuple(n.Column(k.name, type_of(k.expression)) for k in named)
        return Counted(relation, columns, keys, None)

    def pair(self, left: Counted, right: Counted, tests: tuple[n.Scalar, ...] = ()) -> Counted:
        """Join two counts on the classes, and the keys, that both have."""
        shared = sorted(left.classes.keys() & right.classes.keys())
        parts: list[n.Scalar] = [n.Compare("=", left.classes[c], right.classes[c]) for c in shared]
        if left.keys and right.keys:
            parts += [n.SameValue(a, b) for a, b in zip(left.keys, right.keys, strict=True)]
        condition = n.conjunction((*parts, *tests))
        kind = "cross" if condition is None else "inner"
        relation: n.Relation = n.Join(kind, left.relation, right.relation, condition)
        count = left.count or right.count
        if left.count is not None and right.count is not None:
            name = f"{self.fresh()}.count"
            product = n.Arithmetic("*", _double(left.count), _double(right.count))
            columns = [*left.classes.values(), *right.classes.values(), *left.keys, *right.keys]
            items = [n.Named(c.name, c) for c in columns]
            relation = n.Project(relation, (*items, n.Named(name, product)))
            count = n.Column(name, t.DOUBLE)
        return Counted(relation, {**right.classes, **left.classes}, left.keys or right.keys, count)

    def grouped(
        self,
        counted: Counted,
        over: Classes,
        beside: tuple[n.Aggregation, ...] = (),
        *,
        whole: bool = False,
    ) -> Counted:
        """Count for each value of some classes, and of the keys; other calls may stand beside the count.

        Counts that are whole numbers stay so where somebody reads more than the largest of them off.
        """
        name = self.fresh()
        keys = [n.Named(f"{name}.class{c}", counted.classes[c]) for c in sorted(over)]
        own = [n.Named(f"{name}.key{i}", key) for i, key in enumerate(counted.keys)]
        if counted.count is None:
            call = n.Aggregation(f"{name}.count", "count", None)
        else:
            summed = counted.count if whole else _double(counted.count)
            call = n.Aggregation(f"{name}.count", "sum", summed)
        relation = n.Aggregate(counted.relation, (*keys, *own), (call, *beside))
        classes = {
            c: n.Column(k.name, counted.classes[c].type)
            for c, k in zip(sorted(over), keys, strict=True)
        }
        columns = tuple(n.Column(k.name, type_of(k.expression)) for k in own)
        return Counted(relation, classes, columns, n.Column(call.name, type_of(call)))

    def fresh(self) -> str:
        """Give the beginning of names that nothing else has."""
        self._names += 1
        return f"{self._prefix}{self._names}"


def _double(count: n.Column) -> n.Scalar:
    return count if count.type == t.DOUBLE else n.Cast(count, t.DOUBLE)


def _copied(relation: n.Relation) -> n.Relation:
    """Give a chain of filters and projections as nodes of its own, so that each use reads only what it needs."""
    if isinstance(relation, (n.Filter, n.Project, n.Sort)):
        return replace(relation, input=_copied(relation.input))
    return relation
