"""Triangles in one table of edges: a rule of its own, residual.triangle.

In: a shape. Out: what measures the largest number of common neighbors of two nodes, and how many triangles a third
node can make with one row; None if the query is no triangle whose nodes its conditions tell apart, or if an edge can
be there twice. Never here: data.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations, product

from secant.plan import nodes as n
from secant.plan.facts.conjunctive import Atom, under_alias
from secant.plan.rewrites.rewrite import columns_of, substitute
from secant.plan.show import same
from secant.plan.typing import fields_of
from secant.policy.keys import Key
from secant.records import frozen
from secant.schema import types as t
from secant.sensitivity.residual.shape import Shape

_HOLDS = {
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "<>": lambda a, b: a != b,
    "=": lambda a, b: a == b,
}
Order = tuple[str, int, int]
"""A comparison of the nodes of two classes."""


@frozen
class Triangle:
    """Common neighbors of two nodes, measured; each makes at most `times` rows with one edge."""

    statement: n.Relation
    times: int
    claims: frozenset[Key] = frozenset()
    """Keys by which an edge is there once, where the owner accepts them."""


@frozen
class _Side:
    """One copy of the table of edges: its two columns, their classes, and its filters apart from its rows."""

    base: frozenset[str]
    """The two columns of the table."""
    ends: tuple[n.Column, n.Column]
    classes: tuple[int, int]
    core: n.Relation
    filters: tuple[n.Scalar, ...]
    """Over columns of the core, as the ends are."""
    orders: tuple[n.Scalar, ...]
    """Those that read the ends only, over columns of the atom."""


def triangle_of(shape: Shape, keys: tuple[Key, ...]) -> Triangle | None:
    """Recognize a triangle, given the keys of its table (residual.triangle)."""
    sides = _sides(shape)
    if sides is None:
        return None
    claims: set[Key] = set()
    for side in sides:
        key = _once(side, keys)
        if key is None:
            return None
        claims.update(key)
    orders = [o for side in sides for part in side.orders for o in _order(part, shape)]
    orders += [o for c in shape.form.conditions for o in _order(c.scalar, shape)]
    allowed = {
        nodes
        for nodes in product(range(3), repeat=3)
        if all(_HOLDS[op](nodes[i], nodes[j]) for op, i, j in orders)
    }
    if any(len(set(nodes)) < 3 for nodes in allowed):
        return None  # a loop could be an edge of it
    times = max(
        sum(_placed(side, one, two, three) in allowed for side in sides)
        for one, two, three in permutations(range(3))
    )
    ways = {nodes[side.classes[0]] < nodes[side.classes[1]] for nodes in allowed for side in sides}
    rows = _rows(sides)
    shared = _shared_neighbors(rows, sides[0].ends, ways)
    return Triangle(shared, times, frozenset(claims)) if ways else None


def _sides(shape: Shape) -> tuple[_Side, ...] | None:
    """Give the three copies, if each two of them share one class, over the same two columns."""
    form = shape.form
    if len(form.atoms) != 3 or len(form.classes) != 3 or len(shape.tables) != 1:
        return None
    if len(shape.varying) != 3 or any(len(group) != 2 for group in form.classes):
        return None
    sides: list[_Side] = []
    bases: set[tuple[str | None, ...]] = set()
    for index, atom in enumerate(form.atoms):
        own = [
            (atom.origin.get(c), number, c)
            for number, group in enumerate(form.classes)
            for c in group
            if form.home[c] == index
        ]
        if len(own) != 2 or any(base is None for base, _, _ in own):
            return None
        own.sort(key=lambda item: str(item[0]))
        kinds = {f.name: f.type for f in fields_of(atom.relation)}
        ends = (n.Column(own[0][2], kinds[own[0][2]]), n.Column(own[1][2], kinds[own[1][2]]))
        bases.add((own[0][0], own[1][0]))
        sides.append(_peeled(atom, ends, (own[0][1], own[1][1])))
    cores = [under_alias(side.core, "copy") for side in sides]
    alike = all(same(cores[0], core) for core in cores[1:])
    pairs = {frozenset(side.classes) for side in sides}
    return tuple(sides) if len(bases) == 1 and alike and len(pairs) == 3 else None


def _peeled(atom: Atom, ends: tuple[n.Column, n.Column], classes: tuple[int, int]) -> _Side:
    """Take filters and projections that only rename off the rows of a copy."""
    base = frozenset(atom.origin[end.name] for end in ends)
    below: tuple[n.Column, n.Column] | None = ends
    filters: list[n.Scalar] = []
    core = atom.relation
    while below is not None and isinstance(core, (n.Filter, n.Project)):
        if isinstance(core, n.Filter):
            filters += n.conjuncts(core.predicate)
        else:
            names = {i.name: i.expression for i in core.items}
            if not all(isinstance(e, n.Column) for e in names.values()):
                break
            filters = [substitute(part, names) for part in filters]
            below = _through(core, below)
        core = core.input
    assert below is not None, "columns of the table are passed on as they are"
    return _Side(base, below, classes, core, tuple(filters), tuple(_orders(atom, ends)))


def _through(node: n.Project, ends: tuple[n.Column, n.Column]) -> tuple[n.Column, n.Column] | None:
    """Give the columns below a projection that two of its columns are; None if one is computed."""
    names = {i.name: i.expression for i in node.items}
    one, two = (names[end.name] for end in ends)
    return (one, two) if isinstance(one, n.Column) and isinstance(two, n.Column) else None


def _orders(atom: Atom, ends: tuple[n.Column, n.Column]) -> Iterator[n.Scalar]:
    """Give what filters anywhere in a copy say of the two ends, over columns of the atom."""
    below: tuple[n.Column, n.Column] | None = ends
    node = atom.relation
    while below is not None and isinstance(node, (n.Filter, n.Project, n.Distinct, n.Sort)):
        if isinstance(node, n.Filter):
            names: dict[str, n.Scalar] = dict(zip((e.name for e in below), ends, strict=True))
            for part in n.conjuncts(node.predicate):
                if columns_of(part) <= names.keys() and not n.has_subquery(part):
                    yield substitute(part, names)
        elif isinstance(node, n.Project):
            below = _through(node, below)
        node = node.input


def _once(side: _Side, keys: tuple[Key, ...]) -> tuple[Key, ...] | None:
    """Give what is claimed so that an edge is there once: a key, or nothing if rows are its two ends, each once."""
    for key in keys:
        if key.holds_unseen and side.base.issuperset(key.columns):
            return key.claims
    shown = {f.name for f in fields_of(side.core)}
    distinct = isinstance(side.core, n.Distinct) and shown == {end.name for end in side.ends}
    return () if distinct else None


def _order(part: n.Scalar, shape: Shape) -> Iterator[Order]:
    """Give the comparison of two nodes that a condition makes, if it makes one."""
    if not isinstance(part, n.Compare):
        return
    left, right = part.left, part.right
    if not isinstance(left, n.Column) or not isinstance(right, n.Column):
        return
    class_of = {c: number for number, group in enumerate(shape.form.classes) for c in group}
    if left.type == right.type and left.name in class_of and right.name in class_of:
        yield part.op, class_of[left.name], class_of[right.name]


def _placed(side: _Side, one: int, two: int, three: int) -> tuple[int, ...]:
    """Let a row from `one` to `two` stand for a copy, and `three` be the node across."""
    nodes = [three] * 3
    nodes[side.classes[0]], nodes[side.classes[1]] = one, two
    return tuple(nodes)


def _rows(sides: tuple[_Side, ...]) -> n.Relation:
    """Give the rows that can be an edge of a triangle: conditions that all copies share hold for them."""
    first, *others = sides
    shared = tuple(
        part
        for part in first.filters
        if all(any(_alike(part, first, p, other) for p in other.filters) for other in others)
    )
    condition = n.conjunction(shared)
    return first.core if condition is None else n.Filter(first.core, condition)


def _alike(part: n.Scalar, mine: _Side, theirs: n.Scalar, other: _Side) -> bool:
    one, two = (
        under_alias(n.Filter(side.core, p), "copy") for side, p in ((mine, part), (other, theirs))
    )
    return same(one, two)


def _shared_neighbors(
    rows: n.Relation, ends: tuple[n.Column, n.Column], ways: set[bool]
) -> n.Relation:
    """Give the largest number of nodes that two nodes are both joined to by such rows."""
    op = "<>" if len(ways) == 2 else "<" if True in ways else ">"
    filtered = n.Filter(rows, n.Compare(op, *ends))
    kind = ends[0].type
    fields = (n.Field("edge.near", kind), n.Field("edge.far", kind))

    def directed(near: n.Column, far: n.Column, name: str) -> n.Relation:
        return n.Project(filtered, (n.Named(f"{name}.near", near), n.Named(f"{name}.far", far)))

    # Each edge once from either end; stored in both directions it is still one edge.
    both = n.Union(
        directed(ends[0], ends[1], "out"), directed(ends[1], ends[0], "back"),
        len(ways) == 1, fields,
    )  # fmt: skip

    def seen(name: str) -> n.Relation:
        items = (
            n.Named(f"{name}.near", n.Column("edge.near", kind)),
            n.Named(f"{name}.far", n.Column("edge.far", kind)),
        )
        return n.Project(both, items)

    one, two = n.Column("one.far", kind), n.Column("two.far", kind)
    center = n.Compare("=", n.Column("one.near", kind), n.Column("two.near", kind))
    wedges = n.Join("inner", seen("one"), seen("two"), n.And((center, n.Compare("<", one, two))))
    pairs = n.Aggregate(
        wedges,
        (n.Named("pair.one", one), n.Named("pair.two", two)),
        (n.Aggregation("pair.common", "count", None),),
    )
    most = n.Aggregation("triangle.most", "max", n.Column("pair.common", t.INTEGER))
    return n.Aggregate(pairs, (), (most,))
