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
from secant.records import by_identity, compiled, end_constructor, frozen
from secant.runtime.work import counted, spend
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


def _child_fields(node: type[Node]) -> dict[str, bool]:
    """Give the fields where other nodes stand, and which hold several; of a type nobody classed: an error at import."""
    unknown = [f.name for f in fields(node) if f.type not in _PLAIN | _ONE | _SEVERAL]
    if unknown:
        raise AssertionError(f"{node.__name__}.{unknown[0]}: may nodes stand in it?")
    return {f.name: f.type in _SEVERAL for f in fields(node) if f.type not in _PLAIN}


_FIELDS: dict[type[Node], dict[str, bool]] = {node: _child_fields(node) for node in NODES}
"""Where other nodes may stand. Every walk over a plan rests on this table alone."""
_BITS: dict[type[Node], int] = {node: 1 << index for index, node in enumerate(NODES)}
_BITS |= {
    base: sum(_BITS[node] for node in NODES if issubclass(node, base))
    for base in (Node, Scalar, Relation)
}


def _remember_parts(node: type[Node]) -> None:
    """Let a new node know what stands directly below it, which classes it holds, and how long it is written out.

    All below it is older and knows the same of itself. Beside something that is no node of the plan nothing is known.
    """
    places = [f for f in fields(node) if f.name in _FIELDS[node]]
    if not places:  # the class knows it for all of them
        for fact, value in (("_below", ()), ("_kinds", _BITS[node]), ("_size", 1)):
            setattr(node, fact, value)
        return
    if any(f.type in _SEVERAL or f.type == "Scalar | None" for f in places):
        parts = [f"*{f.name}" if f.type in _SEVERAL else f.name for f in places]
        parts = [
            f"*([{p}] if {p} is not None else ())" if f.type == "Scalar | None" else p
            for p, f in zip(parts, places, strict=True)
        ]
        lines = [
            f"  below = ({', '.join(parts)},)",
            "  kinds, size = _bit, 1",
            "  for part in below: kinds |= part._kinds; size += part._size",
        ]
    else:
        one = [f.name for f in places]
        lines = [
            f"  below = ({', '.join(one)},)",
            f"  kinds = {' | '.join(['_bit', *(f'{x}._kinds' for x in one)])}",
            f"  size = {' + '.join(['1', *(f'{x}._size' for x in one)])}",
        ]
    known: dict[str, object] = {"_bit": _BITS[node]}
    known |= {f"_set{fact}": getattr(node, fact).__set__ for fact in ("_below", "_kinds", "_size")}
    lines = [
        "try:",
        *lines,
        "except (AttributeError, TypeError): pass",
        "else: _set_below(self, below); _set_kinds(self, kinds); _set_size(self, size)",
    ]
    end_constructor(node, lines, known)


def _remaker(node: type[Node]) -> Callable[[Any, tuple[Node, ...]], Any]:
    """Write what makes a node of a class again with other nodes directly below."""
    lines, given = [], []
    for f in fields(node):
        if f.name not in _FIELDS[node]:
            given.append(f"old.{f.name}")
            continue
        given.append(f.name)
        if f.type in _SEVERAL:
            lines += [f"{f.name} = below[at : at + len(old.{f.name})]", f"at += len(old.{f.name})"]
        elif f.type == "Scalar | None":
            lines += [
                f"{f.name} = None",
                f"if old.{f.name} is not None: {f.name} = below[at]; at += 1",
            ]
        else:
            lines += [f"{f.name} = below[at]; at += 1"]
    lines = ["at = 0", *lines, f"return {node.__name__}({', '.join(given)})"]
    return compiled(node, ["old", "below"], lines, {})  # type: ignore[no-any-return]


for _node in NODES:
    _remember_parts(_node)
HOLDERS: frozenset[type[Node]] = frozenset(
    node for node in NODES if any(f.type == "Relation" for f in fields(node))
)
"""Classes of nodes that a relation may stand directly below."""
N = TypeVar("N", bound=Node)


_REMADE: dict[type[Node], Callable[[Any, tuple[Node, ...]], Any]] = {}
"""How a node of a class is made again; written when it is first needed."""


def children(node: Node) -> tuple[Node, ...]:
    """Give the nodes directly below, in order; a step of work, as nobody goes through a plan without it."""
    here = counted()
    here.left -= 1
    if here.left < 0:
        spend()
    return node._below


def rebuild(node: N, change: Callable[[Node], Node]) -> N:
    """Give the node with `change` applied to each node directly below; the same node if nothing changed."""
    below = children(node)
    if not below:
        return node
    changed = tuple(map(change, below))
    if changed == below:  # nodes are equal to themselves alone
        return node
    kind = type(node)
    copy = _REMADE.get(kind)
    if copy is None:
        copy = _REMADE[kind] = _remaker(kind)
    return copy(node, changed)  # type: ignore[no-any-return]


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
    below = node._below
    if not below:
        spend()
        return (node,)
    # In the order in which they are met; nodes are compared by identity.
    seen: dict[Node, None] = {node: None}
    stack = [*reversed(below)]
    while stack:
        current = stack.pop()
        if current in seen:
            continue
        seen[current] = None
        if below := current._below:
            stack += below[::-1]
    spend(len(seen))
    return seen


def once(change: Callable[[Node], Node]) -> Callable[[Node], Node]:
    """Let a function of nodes see each shared node once, so that a rewrite keeps what is shared and ends in time.

    For a function that is made for one rewrite: what it found out goes with it.
    """
    done: dict[Node, Node] = {}

    def changed(node: Node) -> Node:
        result = done.get(node)
        if result is None:
            result = done[node] = change(node)
        return result

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
