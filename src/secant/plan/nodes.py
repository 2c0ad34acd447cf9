"""The plan: immutable nodes for what a query means, after all names are resolved.

In: built by `from_sql` and by rewrites. Out: read by rule tables (`show`, `verify`, `evaluate`, `lower`, the
analyses). Nodes have structure and no behavior. Every relation's output columns have unique names, and a column
is named once in a whole query (`alias.column`), so a correlated reference needs no depth.
Nodes are compared by identity: a shared node (a CTE used twice) is one node, visited once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields
from fractions import Fraction
from itertools import chain
from operator import attrgetter
from typing import Any, TypeVar

from secant.errors import Span
from secant.plan.node_cache import Node as Node
from secant.plan.node_cache import Relation as Relation
from secant.plan.node_cache import Scalar as Scalar
from secant.plan.scalar_nodes import And as And
from secant.plan.scalar_nodes import Arithmetic as Arithmetic
from secant.plan.scalar_nodes import Attempt as Attempt
from secant.plan.scalar_nodes import Branch as Branch
from secant.plan.scalar_nodes import Bucket as Bucket
from secant.plan.scalar_nodes import Call as Call
from secant.plan.scalar_nodes import Case as Case
from secant.plan.scalar_nodes import Cast as Cast
from secant.plan.scalar_nodes import Clamp as Clamp
from secant.plan.scalar_nodes import Column as Column
from secant.plan.scalar_nodes import Compare as Compare
from secant.plan.scalar_nodes import Exists as Exists
from secant.plan.scalar_nodes import Extract as Extract
from secant.plan.scalar_nodes import InList as InList
from secant.plan.scalar_nodes import InSubquery as InSubquery
from secant.plan.scalar_nodes import IsNull as IsNull
from secant.plan.scalar_nodes import Like as Like
from secant.plan.scalar_nodes import Literal as Literal
from secant.plan.scalar_nodes import Negate as Negate
from secant.plan.scalar_nodes import Not as Not
from secant.plan.scalar_nodes import Or as Or
from secant.plan.scalar_nodes import Outer as Outer
from secant.plan.scalar_nodes import Quantize as Quantize
from secant.plan.scalar_nodes import SameValue as SameValue
from secant.plan.scalar_nodes import ScalarSubquery as ScalarSubquery
from secant.records import by_identity, frozen
from secant.runtime.work import spend
from secant.schema.types import Type

# ── pieces of relations ──────────────────────────────────────────────────────────────────────────


@by_identity
class Named(Node):
    """An output column: its name and how it is computed."""

    name: str
    expression: Scalar


@by_identity
class Aggregation(Node):
    """One aggregate: count (argument None means every row), sum, avg, min, max, var_samp, ... of the group's rows."""

    name: str
    function: str
    argument: Scalar | None
    distinct: bool = False
    span: Span | None = None
    fraction: Fraction | None = None
    """Which quantile, from 0 to 1; None for every other function."""
    second: Scalar | None = None
    """What stands beside the argument in statistics of pairs, corr(y, x); a row without either does not count."""


@by_identity
class SortKey(Node):
    """One ordering criterion."""

    expression: Scalar
    descending: bool
    nulls_first: bool


@frozen
class Frame:
    """Which rows around a row a window call sees: from `start` to `end`, None is without end, 0 the row itself.

    Negative ends lie before it. `rows` counts rows, `groups` counts runs of equal order keys; with `range` an end is 0,
    which takes in all rows of equal order keys, or none.
    """

    unit: str  # "rows", "range" or "groups"
    start: int | None
    end: int | None


@by_identity
class WindowCall(Node):
    """`function(arguments) OVER (PARTITION BY partition ORDER BY order frame)`: one value for each row.

    Where the order leaves rows alike and the call tells them apart (`plan.windows`), the row's other values decide,
    so that the value is a function of the rows.
    """

    name: str
    function: str
    arguments: tuple[Scalar, ...]
    partition: tuple[Scalar, ...]
    order: tuple[SortKey, ...]
    frame: Frame | None = None
    """None for functions that see their whole partition by definition, such as rank."""
    span: Span | None = None


# ── relations ────────────────────────────────────────────────────────────────────────────────────


@frozen
class Field:
    """An output column's name and type. It is a value, not a node: compared by what it says."""

    name: str
    type: Type


@by_identity
class Scan(Relation):
    """A base table under an alias; its columns are named `alias.column`."""

    table: str
    alias: str
    columns: tuple[Field, ...]
    span: Span | None = None


@by_identity
class Values(Relation):
    """Rows written in the query or released before: public constants."""

    columns: tuple[Field, ...]
    rows: tuple[tuple[object, ...], ...]


@by_identity
class Filter(Relation):
    """The rows for which the predicate is true."""

    input: Relation
    predicate: Scalar
    span: Span | None = None


@by_identity
class Project(Relation):
    """One output row for each input row."""

    input: Relation
    items: tuple[Named, ...]


@by_identity
class Join(Relation):
    """Pairs of rows for which the condition is true; `left` keeps unmatched left rows with NULLs."""

    kind: str  # "inner", "left" or "cross"
    left: Relation
    right: Relation
    condition: Scalar | None
    span: Span | None = None


@by_identity
class Aggregate(Relation):
    """One row for each group; without keys exactly one row, also over nothing."""

    input: Relation
    keys: tuple[Named, ...]
    aggregations: tuple[Aggregation, ...]
    span: Span | None = None


@by_identity
class Distinct(Relation):
    """Each different row once; NULLs count as equal."""

    input: Relation
    span: Span | None = None


@by_identity
class Window(Relation):
    """The rows, each with the values of window calls beside its own."""

    input: Relation
    calls: tuple[WindowCall, ...]
    span: Span | None = None


@by_identity
class Sort(Relation):
    """The rows in order."""

    input: Relation
    keys: tuple[SortKey, ...]


@by_identity
class Limit(Relation):
    """At most `count` rows after skipping `offset`; count None means all."""

    input: Relation
    count: int | None
    offset: int
    span: Span | None = None


@by_identity
class Union(Relation):
    """Rows of both inputs by position; without `all` each different row once. Columns are named as given."""

    left: Relation
    right: Relation
    all: bool
    columns: tuple[Field, ...]
    span: Span | None = None


@by_identity
class Intersect(Relation):
    """Rows in both inputs; with `all`, as often as the smaller multiplicity."""

    left: Relation
    right: Relation
    all: bool
    columns: tuple[Field, ...]
    span: Span | None = None


@by_identity
class Except(Relation):
    """Rows of the left input that are not in the right one; with `all`, multiplicities subtract."""

    left: Relation
    right: Relation
    all: bool
    columns: tuple[Field, ...]
    span: Span | None = None


@by_identity
class Truncate(Relation):
    """The first `limit` rows of each owner, by `order` and then by the other columns that are read.

    Rows without owner stay, unless the limit is 0: each is as good as an owner with one row.
    """

    input: Relation
    owner: tuple[str, ...]
    order: tuple[str, ...]
    limit: int


@by_identity
class TruncateGroups(Relation):
    """The rows of the first `limit` groups (values of `groups`) of each owner, in the order of the group values.

    Rows without owner stay.
    """

    input: Relation
    owner: tuple[str, ...]
    groups: tuple[str, ...]
    limit: int


@by_identity
class Released(Relation):
    """The answer of an earlier release, which is public: later stages read it like a table."""

    name: str
    columns: tuple[Field, ...]


NODES: tuple[type[Node], ...] = (
    Column, Outer, Literal, Arithmetic, Negate, Compare, SameValue, And, Or, Not, IsNull, Like, InList,
    Branch, Case, Cast, Call, Extract, Attempt, Clamp, Quantize, Bucket, ScalarSubquery, InSubquery, Exists,
    Named, Aggregation, SortKey, WindowCall,
    Scan, Values, Filter, Project, Join, Aggregate, Distinct, Window, Sort, Limit, Union, Intersect, Except,
    Truncate, TruncateGroups, Released,
)  # fmt: skip

_PLAIN = {
    "str", "bool", "int", "int | None", "Fraction", "Fraction | None", "Frame | None", "object", "Type", "Span | None",
    "tuple[str, ...]", "tuple[object, ...]", "tuple[Field, ...]", "tuple[tuple[object, ...], ...]",
}  # fmt: skip
"""Types of fields that hold no node."""
_ONE = {"Scalar", "Scalar | None", "Relation"}
_SEVERAL = {
    "tuple[Scalar, ...]", "tuple[Branch, ...]", "tuple[Named, ...]", "tuple[Aggregation, ...]",
    "tuple[SortKey, ...]", "tuple[WindowCall, ...]",
}  # fmt: skip


def _places(node: type[Node]) -> dict[str, bool]:
    """Give the fields where other nodes stand, and which hold several; of a type nobody classed: an error at import."""
    unknown = [f.name for f in fields(node) if f.type not in _PLAIN | _ONE | _SEVERAL]
    if unknown:
        raise AssertionError(f"{node.__name__}.{unknown[0]}: may nodes stand in it?")
    return {f.name: f.type in _SEVERAL for f in fields(node) if f.type not in _PLAIN}


_FIELDS: dict[type[Node], dict[str, bool]] = {node: _places(node) for node in NODES}
"""Where other nodes may stand. Every walk over a plan rests on this table alone."""
_NAMES: dict[type[Node], tuple[str, ...]] = {c: tuple(f.name for f in fields(c)) for c in NODES}
_BITS: dict[type[Node], int] = {node: 1 << place for place, node in enumerate(NODES)}
_BITS |= {
    base: sum(_BITS[node] for node in NODES if issubclass(node, base))
    for base in (Node, Scalar, Relation)
}
for _leaf in [
    node for node, places in _FIELDS.items() if not places
]:  # the class knows it for all of them
    setattr(_leaf, "_below", ())  # noqa: B010 - types do not let a class say what its instances remember
    setattr(_leaf, "_kinds", _BITS[_leaf])  # noqa: B010
HOLDERS: frozenset[type[Node]] = frozenset(
    node for node in NODES if any(f.type == "Relation" for f in fields(node))
)
"""Classes of nodes that a relation may stand directly below."""
N = TypeVar("N", bound=Node)


def _gathered(node: Node) -> tuple[Node, ...]:
    found: list[Node] = []
    for name, several in _FIELDS[type(node)].items():
        value = getattr(node, name)
        if several:
            found += value
        elif value is not None:
            found.append(value)
    return tuple(found)


def _reader(node: type[Node]) -> Callable[[Node], tuple[Node, ...]]:
    """Give what reads the nodes below one of a class; the usual shapes are read at once."""
    places = [f for f in fields(node) if f.name in _FIELDS[node]]
    if not all(f.type in ("Scalar", "Relation") for f in places) or not places:
        return _gathered
    read: Callable[[Node], Any] = attrgetter(*(f.name for f in places))
    return read if len(places) > 1 else lambda one: (read(one),)


_READ: dict[type[Node], Callable[[Node], tuple[Node, ...]]] = {
    node: _reader(node) for node in NODES
}


def children(node: Node) -> tuple[Node, ...]:
    """Give the nodes directly below, in order; a step of work, as nobody goes through a plan without it."""
    spend()
    try:
        return node._below
    except AttributeError:
        pass
    found = _READ[type(node)](node)
    object.__setattr__(node, "_below", found)
    return found


def rebuild(node: N, change: Callable[[Node], Node]) -> N:
    """Give the node with `change` applied to each node directly below; the same node if nothing changed."""
    below = children(node)
    if not below:
        return node
    changed = tuple(map(change, below))
    if changed == below:  # nodes are equal to themselves alone
        return node
    arguments = {name: getattr(node, name) for name in _NAMES[type(node)]}
    place = 0
    for name, several in _FIELDS[type(node)].items():
        old = arguments[name]
        if several:
            arguments[name] = changed[place : place + len(old)]
            place += len(old)
        elif old is not None:
            arguments[name] = changed[place]
            place += 1
    made = type(node)(**arguments)
    object.__setattr__(made, "_below", changed)
    return made


def walk(node: Node) -> Iterator[Node]:
    """Give the node and all below, parents first, each shared node once."""
    if not isinstance(node, Relation):
        return iter(_walk(node))
    try:
        spend(len(node._all_below))
        return chain((node,), node._all_below)
    except AttributeError:
        # Without the node itself: who holds itself is not let go when the question ends.
        object.__setattr__(node, "_all_below", tuple(_walk(node))[1:])
    return chain((node,), node._all_below)


def _walk(node: Node) -> Iterable[Node]:
    below = children(node)
    if not below:
        return (node,)
    # In the order in which they are met; nodes are compared by identity.
    seen: dict[Node, None] = {node: None}
    stack = [*reversed(below)]
    while stack:
        current = stack.pop()
        if current in seen:
            continue
        seen[current] = None
        below = children(current)
        if below:
            stack += reversed(below)
    return seen


def once(change: Callable[[Node], Node]) -> Callable[[Node], Node]:
    """Let a function of nodes see each shared node once, so that a rewrite keeps what is shared and ends in time.

    For a function that is made for one rewrite: what it found out goes with it.
    """
    done: dict[Node, Node] = {}

    def changed(node: Node) -> Node:
        made = done.get(node)
        if made is None:
            made = done[node] = change(node)
        return made

    return changed


def reached(root: Node, into: Callable[[Node], bool]) -> Iterator[Node]:
    """Give the node and all below, each shared node once, without what stands below nodes that are not gone into."""
    seen: set[Node] = set()
    stack = [root]
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        yield node
        if into(node):
            stack += reversed(children(node))


def written_size(root: Node) -> int:
    """Count the nodes of a part of a plan as if nothing were shared: that is how long it is once it is written."""
    try:
        return root._size
    except AttributeError:
        stack = [root]
    while stack:
        node = stack[-1]
        below = children(node)
        missing = [child for child in below if not hasattr(child, "_size")]
        if missing:
            stack += missing
            continue
        stack.pop()
        object.__setattr__(node, "_size", 1 + sum(child._size for child in below))
    return root._size


def slots() -> tuple[tuple[type[Node], str], ...]:
    """Give every place of every class of node where another node may stand."""
    return tuple((node, name) for node, names in _FIELDS.items() for name in names)


def bits(*classes: type[Node]) -> int:
    """Give classes of nodes as a set of bits; a class of classes stands for all of them."""
    together = 0
    for one in classes:
        together |= _BITS[one]
    return together


def kinds(node: Node) -> int:
    """Give the classes of all nodes in a part of a plan, itself among them, as a set of bits."""
    try:
        return node._kinds
    except AttributeError:
        pending: list[Node | None] = [node]
    while pending:
        part = pending.pop()
        if part is None:  # a mark: all below what is next has been found
            part = pending.pop()
            assert part is not None
        else:
            missing = [child for child in children(part) if not hasattr(child, "_kinds")]
            if missing:
                pending += (part, None, *missing)
                continue
        found = _BITS[type(part)]
        for child in children(part):
            found |= child._kinds
        object.__setattr__(part, "_kinds", found)
    return node._kinds


def holds(node: Node, *classes: type[Node]) -> bool:
    """Whether a node of one of these classes stands in a part of a plan, itself among them."""
    return bool(kinds(node) & bits(*classes))


def has_subquery(scalar: Node) -> bool:
    """Whether a relation stands inside an expression."""
    return holds(scalar, Relation)


def conjuncts(predicate: Scalar | None) -> tuple[Scalar, ...]:
    """Split a predicate at its top-level ANDs."""
    if predicate is None:
        return ()
    if isinstance(predicate, And):
        return tuple(part for operand in predicate.operands for part in conjuncts(operand))
    return (predicate,)


def conjunction(parts: tuple[Scalar, ...]) -> Scalar | None:
    """Join predicates with AND; None for no predicate."""
    if not parts:
        return None
    return parts[0] if len(parts) == 1 else And(parts)
