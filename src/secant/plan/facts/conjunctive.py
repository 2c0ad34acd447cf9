"""Take a tree of filters, projections and inner joins apart into what it joins and what must hold.

In: a relation, and which tables vary between neighbors. Out: its atoms (one table each, with conditions of its own),
the classes of columns that equalities tie together, what else must hold, and the output columns in terms of the
atoms; or why the relation has no such form. Its rows are then exactly the combinations of one row of each atom that
agree in every class and pass every condition, as a bag. Never here: data, and operators that look at several rows,
except DISTINCT inside an atom.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from secant.plan import nodes as n
from secant.plan.facts.keys import distinguishing_columns
from secant.plan.facts.lineage import source_of, stored_columns
from secant.plan.facts.reads import expressions, reads, tables_read
from secant.plan.rewrites.rewrite import columns_of, substitute
from secant.plan.show import same
from secant.plan.typing import fields_of, type_of
from secant.records import frozen
from secant.schema.types import Type

DEEPEST = 200
"""Operators above each other; deeper trees are not taken apart."""


@frozen
class Atom:
    """One copy of a table, with the conditions that only read its own columns."""

    name: str
    relation: n.Relation
    table: str | None
    """The base table, lower-cased; None for a public relation that is not taken apart."""
    varying: bool
    origin: Mapping[str, str]
    """Column -> column of the base table, where it is passed on as it is."""
    distinct: bool
    """Whether equal rows of the table count once: its rows are not those of the table."""
    key: frozenset[str] | None = None
    """Columns in which no two rows agree, because of a DISTINCT."""


@frozen
class Condition:
    """A condition that no single atom and no class expresses."""

    scalar: n.Scalar
    atoms: frozenset[int]


@frozen
class Conjunctive:
    """Atoms, the classes of columns that must be equal and not NULL, and what else must hold."""

    atoms: tuple[Atom, ...]
    classes: tuple[frozenset[str], ...]
    """Each has columns of at least two atoms."""
    conditions: tuple[Condition, ...]
    outputs: Mapping[str, n.Scalar]
    """Output column -> its expression over columns of the atoms."""
    home: Mapping[str, int]
    """Column of an atom -> the atom's place."""


@frozen
class NotConjunctive:
    """Which node has no place in a conjunctive form, why, and what to do."""

    node: n.Node
    reason: str
    hint: str


def conjunctive(
    relation: n.Relation, varying: Callable[[str], bool]
) -> Conjunctive | NotConjunctive:
    """Take a relation apart; `varying` says of a lower-cased table name whether neighbors may differ there."""
    work = _Work(varying)
    try:
        outputs = work.take(relation, 0)
    except _Stopped as stopped:
        return stopped.verdict
    # Whatever varies must be an atom: rows that are read elsewhere would be counted by nobody.
    met = {atom.table for atom in work.atoms if atom.varying}
    if any(varying(table) and table not in met for table in tables_read(relation)):
        return NotConjunctive(relation, *_OTHER)
    return work.settled(outputs)


class _Stopped(Exception):  # noqa: N818 - control flow inside this module only
    def __init__(self, node: n.Node, reason: str, hint: str) -> None:
        super().__init__()
        self.verdict = NotConjunctive(node, reason, hint)


@dataclass
class _Work:
    varying: Callable[[str], bool]
    atoms: list[Atom] = field(default_factory=list)
    home: dict[str, int] = field(default_factory=dict)
    taken: set[str] = field(default_factory=set)
    """Names of atoms, which are printed as aliases."""
    pending: list[n.Scalar] = field(default_factory=list)
    read: set[str] = field(default_factory=set)
    """Columns of atoms that conditions and outputs name."""

    def take(self, node: n.Relation, depth: int) -> dict[str, n.Scalar]:
        """Collect atoms and conditions; give the node's columns over columns of atoms."""
        if depth > DEEPEST:
            raise _Stopped(node, "the query is nested too deeply", "write it with fewer subqueries")
        for part in expressions(node):
            self._still(part)
        if _chain(node) is not None:
            return self._atom(node)
        if isinstance(node, n.Sort):
            return self.take(node.input, depth + 1)
        if isinstance(node, n.Filter):
            columns = self.take(node.input, depth + 1)
            self.pending += [self._expanded(p, columns) for p in n.conjuncts(node.predicate)]
            return columns
        if isinstance(node, n.Project):
            columns = self.take(node.input, depth + 1)
            return {i.name: self._expanded(i.expression, columns) for i in node.items}
        if isinstance(node, n.Join) and node.kind != "left":
            columns = self.take(node.left, depth + 1) | self.take(node.right, depth + 1)
            self.pending += [self._expanded(p, columns) for p in n.conjuncts(node.condition)]
            return columns
        if not self._varies(node):
            return self._atom(node)
        raise _Stopped(node, *_WHY.get(type(node), _OTHER))

    def _varies(self, node: n.Node) -> bool:
        return reads(node, self.varying)

    def _expanded(self, scalar: n.Scalar, columns: dict[str, n.Scalar]) -> n.Scalar:
        """Write an expression over columns of atoms."""
        if n.has_subquery(scalar):
            outer = {o.name for o in n.walk(scalar) if isinstance(o, n.Outer)}
            if any(not isinstance(columns[o], n.Column) for o in outer if o in columns):
                raise _Stopped(
                    scalar, "a subquery refers to a computed column", "refer to columns of tables"
                )
        return substitute(scalar, columns)

    def _still(self, part: n.Node) -> None:
        if self._varies(part):
            raise _Stopped(
                part,
                "a subquery looks at protected rows",
                "join the table instead, or protect units rather than rows",
            )

    def _atom(self, node: n.Relation) -> dict[str, n.Scalar]:
        """Add an atom under names of its own; a relation that is used twice is two atoms."""
        if any(isinstance(part, n.Limit) for part in n.walk(node)):
            raise _Stopped(node, *_WHY[n.Limit])  # two statements might keep different rows
        chain = _chain(node)
        scan, distinct = chain if chain is not None else (None, False)
        for link in _links(node) if scan is not None else ():
            for part in expressions(link):
                self._still(part)
        name = scan.alias if scan is not None else "public"
        number, fresh, inner, names = 1, name, node, dict[str, str]()
        while fresh.lower() in self.taken or any(f.name in self.home for f in fields_of(inner)):
            number += 1
            fresh = f"{name}_{number}"
            inner, names = _renamed(node, f"_{number}", fresh)
        self.taken.add(fresh.lower())
        table = scan.table.lower() if scan is not None else None
        if distinct and any(
            f.type.kind == "DOUBLE"
            for part in n.walk(node)
            if isinstance(part, n.Distinct)
            for f in fields_of(part)
        ):
            # Zeros with and without a sign are equal, and which of them stays may change with a row.
            raise _Stopped(node, "DISTINCT over reals", "cast them to a decimal type")
        index = len(self.atoms)
        fields = fields_of(inner)
        self.home |= {f.name: index for f in fields}
        varying = table is not None and self.varying(table)
        key = distinguishing_columns(inner)
        self.atoms.append(Atom(fresh, inner, table, varying, _origin(inner), distinct, key))
        kinds = {f.name: f.type for f in fields}
        return {
            f.name: n.Column(names.get(f.name, f.name), kinds[names.get(f.name, f.name)])
            for f in fields_of(node)
        }

    def settled(self, outputs: dict[str, n.Scalar]) -> Conjunctive:
        """Sort the conditions: equalities between atoms, those of one atom, and the others."""
        for scalar in (*self.pending, *outputs.values()):
            self.read |= columns_of(scalar)
        ties: list[tuple[str, str]] = []
        others: list[Condition] = []
        for scalar in self.pending:
            sides = self._tied(scalar)
            where = self._where(scalar)
            if sides is not None:
                ties.append(sides)
            elif len(where) == 1:
                self._restrict(next(iter(where)), scalar)
            else:
                others.append(Condition(scalar, where))
        classes = _classes(ties)
        for group in classes:
            self._equal_inside(group)
            self._pass_on(group)
        return Conjunctive(tuple(self.atoms), classes, tuple(others), outputs, dict(self.home))

    def _where(self, scalar: n.Scalar) -> frozenset[int]:
        return frozenset(self.home[c] for c in columns_of(scalar) if c in self.home)

    def _tied(self, scalar: n.Scalar) -> tuple[str, str] | None:
        """Give the two columns that an equality between two atoms ties; computed sides become columns."""
        if not isinstance(scalar, n.Compare) or scalar.op != "=" or n.has_subquery(scalar):
            return None
        left, right = self._where(scalar.left), self._where(scalar.right)
        if len(left) != 1 or len(right) != 1 or left == right:
            return None
        if type_of(scalar.left) != type_of(scalar.right):
            return None  # tied to a third type, two values may not fit into one that compares them
        return self._column(next(iter(left)), scalar.left), self._column(
            next(iter(right)), scalar.right
        )

    def _column(self, index: int, side: n.Scalar) -> str:
        if isinstance(side, n.Column):
            return side.name
        atom = self.atoms[index]
        number = 1
        names = {c.lower() for c in self.home}
        while (name := f"{atom.name}.computed_{number}").lower() in names:
            number += 1
        # Only what is read: whatever a projection names, an engine fetches.
        columns = tuple(
            n.Named(f.name, n.Column(f.name, f.type))
            for f in fields_of(atom.relation)
            if f.name in self.read
        )
        relation = n.Project(atom.relation, (*columns, n.Named(name, side)))
        self.atoms[index] = replace(atom, relation=relation)
        self.home[name] = index
        self.read.add(name)
        return name

    def _restrict(self, index: int, scalar: n.Scalar) -> None:
        atom = self.atoms[index]
        self.atoms[index] = replace(atom, relation=n.Filter(atom.relation, scalar))

    def _equal_inside(self, group: frozenset[str]) -> None:
        """Columns of one atom that must equal one column of another are equal themselves."""
        first: dict[int, n.Column] = {}
        for name in sorted(group):
            index = self.home[name]
            kinds = {f.name: f.type for f in fields_of(self.atoms[index].relation)}
            column = n.Column(name, kinds[name])
            earlier = first.setdefault(index, column)
            if earlier is not column:
                self._restrict(index, n.Compare("=", earlier, column))

    def _pass_on(self, group: frozenset[str]) -> None:
        """What is asked of one column of a class holds for all of them: ask it of every atom."""
        waiting = []
        for name in sorted(group):
            for part in _filters(self.atoms[self.home[name]].relation):
                if columns_of(part) == {name} and not n.has_subquery(part):
                    waiting.append((self.home[name], name, part))
        for index, name, part in waiting:
            for other in sorted(group):
                kind = _kind(self.atoms[self.home[other]].relation, other)
                # Two reals can be equal and still differ, as zeros with a sign do.
                if self.home[other] == index or kind.kind == "DOUBLE":
                    continue
                condition = substitute(part, {name: n.Column(other, kind)})
                there = _filters(self.atoms[self.home[other]].relation)
                if not any(same(condition, known_condition) for known_condition in there):
                    self._restrict(self.home[other], condition)


def _filters(node: n.Relation) -> list[n.Scalar]:
    """Give the conditions on top of a relation."""
    conditions: list[n.Scalar] = []
    while isinstance(node, n.Filter):
        conditions += n.conjuncts(node.predicate)
        node = node.input
    return conditions


def _kind(node: n.Relation, name: str) -> Type:
    return next(f.type for f in fields_of(node) if f.name == name)


_OTHER = ("this operator looks at several protected rows", "join tables directly")
_WHY: dict[type[n.Node], tuple[str, str]] = {
    n.Join: (
        "a LEFT JOIN pads rows, and a protected row changes which",
        "use an inner join, or protect a unit",
    ),
    n.Aggregate: ("an inner GROUP BY looks at many protected rows", "protect a unit"),
    n.Distinct: ("DISTINCT over a join of protected tables", "count distinct values instead"),
    n.Union: ("a union of protected rows", "count the parts one by one"),
    n.Intersect: ("a set operation over protected rows", "join on the columns instead"),
    n.Except: ("a set operation over protected rows", "join on the columns instead"),
    n.Limit: ("which rows LIMIT keeps is not fixed", "aggregate first, then limit"),
}


def _chain(node: n.Relation) -> tuple[n.Scan, bool] | None:
    """Follow filters, projections and DISTINCT down to one table; tell whether a DISTINCT is met."""
    distinct = False
    while isinstance(node, (n.Filter, n.Project, n.Distinct, n.Sort)):
        distinct = distinct or isinstance(node, n.Distinct)
        node = node.input
    return (node, distinct) if isinstance(node, n.Scan) else None


def _links(node: n.Relation) -> list[n.Relation]:
    """Give the operators of a chain over one table, outermost first."""
    links: list[n.Relation] = []
    while not isinstance(node, n.Scan):
        assert isinstance(node, (n.Filter, n.Project, n.Distinct, n.Sort)), "see _chain"
        links.append(node)
        node = node.input
    return links


def _origin(node: n.Relation) -> dict[str, str]:
    """Follow columns that are passed on as they are down to the base table."""
    chain = _chain(node)
    if chain is None:
        return {}
    stored = stored_columns(chain[0])
    sources = {f.name: source_of(node, f.name) for f in fields_of(node)}
    return {
        name: stored[source.name]
        for name, source in sources.items()
        if isinstance(source, n.Column)
    }


def _renamed(node: n.Relation, suffix: str, alias: str) -> tuple[n.Relation, dict[str, str]]:
    """Give the relation with columns of other names; a table below gets another alias, too."""
    chain = _chain(node)
    if chain is None:  # an opaque public relation: only what shows is renamed
        fields = fields_of(node)
        names = {f.name: f.name + suffix for f in fields}
        items = tuple(n.Named(names[f.name], n.Column(f.name, f.type)) for f in fields)
        return n.Project(node, items), names
    scan = chain[0]
    names = {f.name: alias + f.name[len(scan.alias) :] for f in scan.columns}
    for project in _projections(node):
        names |= {i.name: i.name + suffix for i in project.items if i.name not in names}
    return _named(node, scan, names, alias), names


def _projections(node: n.Relation) -> list[n.Project]:
    """Give the projections of a chain over one table, outermost first."""
    return [link for link in _links(node) if isinstance(link, n.Project)]


def _named(node: n.Relation, scan: n.Scan, names: dict[str, str], alias: str) -> n.Relation:
    """Give a chain over one table with other names."""

    @n.once
    def change(part: n.Node) -> n.Node:
        if part is scan:
            columns = tuple(n.Field(names[f.name], f.type) for f in scan.columns)
            return n.Scan(scan.table, alias, columns, scan.span)
        part = n.rebuild(part, change)
        if isinstance(part, (n.Column, n.Outer, n.Named)) and part.name in names:
            return replace(part, name=names[part.name])
        return part

    changed = change(node)
    assert isinstance(changed, n.Relation)
    return changed


def under_alias(relation: n.Relation, alias: str) -> n.Relation:
    """Give an atom's relation with all names by place, so that copies can be compared."""
    chain = _chain(relation)
    if chain is None:
        return relation
    scan = chain[0]
    names = {f.name: alias + f.name[len(scan.alias) :] for f in scan.columns}
    for depth, project in enumerate(_projections(relation)):
        for index, item in enumerate(project.items):
            names.setdefault(item.name, f"{alias}.{depth}.{index}")
    return _named(relation, scan, names, alias)


def _classes(ties: list[tuple[str, str]]) -> tuple[frozenset[str], ...]:
    """Give the classes of the smallest equivalence that holds these pairs."""
    groups: list[set[str]] = []
    for pair in ties:
        met = [g for g in groups if g & set(pair)]
        groups = [g for g in groups if g not in met]
        groups.append(set(pair).union(*met))
    return tuple(sorted((frozenset(g) for g in groups), key=sorted))
