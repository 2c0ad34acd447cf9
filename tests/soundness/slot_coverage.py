"""What a random search has drawn, slot by slot, so that nothing is left out unnoticed.

In: plans as they were read and as they were enforced. Out: counts for every slot of every node that can hold a scalar
or a relation, found by the types of the nodes' fields, and the slots that were never drawn. A field of a type that is
not known here is an error: a new kind of slot must be thought about.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, fields

from secant.plan import nodes as n
from secant.plan.functions.scalar import AGGREGATES, FUNCTIONS
from secant.plan.rewrites.order_statistics import FUNCTIONS as RANKED
from secant.plan.typing import EXTRACT_PARTS

PIECES: tuple[type[n.Node], ...] = (n.Branch, n.Named, n.Aggregation, n.SortKey, n.WindowCall)
"""Parts of nodes that hold scalars themselves: their slots are named after the node that they stand in."""
REWRITTEN: tuple[type[n.Node], ...] = (
    n.Attempt, n.Clamp, n.Quantize, n.Truncate, n.TruncateGroups, n.Released,
)  # fmt: skip
"""Nodes that rewrites make: they are looked for in what is enforced. (A corr is read as a Clamp, of columns alone.)"""
ADDED: tuple[type[n.Node], ...] = (n.Bucket,)
"""Nodes that an analysis adds to what is enforced: no text and no rewrite makes them."""
SUBQUERIES: tuple[type[n.Scalar], ...] = (n.ScalarSubquery, n.InSubquery, n.Exists)
SCALARS = tuple(
    x for x in n.NODES if issubclass(x, n.Scalar) and x not in REWRITTEN and x not in SUBQUERIES
)
_SCALAR = {"Scalar", "Scalar | None", "tuple[Scalar, ...]"}
_RELATION = {"Relation"}
_PIECE = {f"tuple[{p.__name__}, ...]": p for p in PIECES}
_PLAIN = {
    "str", "bool", "int", "int | None", "Fraction", "Fraction | None", "object", "Type", "Span | None",
    "Frame | None", "tuple[str, ...]", "tuple[object, ...]", "tuple[Field, ...]", "tuple[tuple[object, ...], ...]",
}  # fmt: skip
LAYERS = ("protected", "public")


@dataclass(frozen=True)
class Slot:
    """A place in a plan: `Sort.keys/SortKey.expression`."""

    node: type[n.Node]
    name: str
    relation: bool
    read: Callable[[n.Node], list[n.Node]]


def _listed(value: object) -> list[n.Node]:
    found = value if isinstance(value, tuple) else (value,)
    return [item for item in found if isinstance(item, n.Node)]


def _slots_of(node: type[n.Node], before: str = "") -> Iterator[Slot]:
    for f in fields(node):
        name, kind = f"{before}{node.__name__}.{f.name}", str(f.type)
        if kind in _PLAIN:
            continue
        if kind in _PIECE:
            for inner in _slots_of(_PIECE[kind], f"{name}/"):

                def read(host: n.Node, at: str = f.name, inner: Slot = inner) -> list[n.Node]:
                    return [x for piece in getattr(host, at) for x in inner.read(piece)]

                yield Slot(node, inner.name, inner.relation, read)
        elif kind in _SCALAR or kind in _RELATION:

            def read(host: n.Node, at: str = f.name) -> list[n.Node]:
                return _listed(getattr(host, at))

            yield Slot(node, name, kind in _RELATION, read)
        else:
            raise AssertionError(f"{name} has a type that no search knows: {kind}")


SLOTS = {node: tuple(_slots_of(node)) for node in n.NODES if node not in PIECES + ADDED}
"""Every slot of every node, by the types of its fields."""


def wanted() -> set[str]:
    """Give all that a search must draw."""
    found = {f"node {x.__name__}" for x in n.NODES if x not in REWRITTEN + ADDED}
    found |= {f"enforced {x.__name__}" for x in REWRITTEN}
    for node, slots in SLOTS.items():
        for slot in slots:
            if node in REWRITTEN:
                found.add(f"enforced {slot.name}")
            elif slot.relation:
                found |= {f"slot {slot.name} {layer}" for layer in LAYERS}
            else:
                kinds = itertools.product(SUBQUERIES, LAYERS)
                found |= {f"slot {slot.name} {x.__name__} {layer}" for x, layer in kinds}
    found |= {f"function {f.name}" for f in FUNCTIONS.values() if f.written}
    found |= {f"aggregate {a}{d}" for a in AGGREGATES for d in ("", " distinct")}
    found |= {f"rank {a} {many}" for a in RANKED for many in ("one protection", "several")}
    found |= {f"join {kind}" for kind in ("inner", "left", "cross")}
    found |= {f"set {x}{y}" for x in ("Union", "Intersect", "Except") for y in ("", " all")}
    found |= {
        f"operator {x}" for x in ("+", "-", "*", "/", "//", "%", "=", "<>", "<", "<=", ">", ">=")
    }
    found |= {f"part {x}" for x in EXTRACT_PARTS}
    found |= {f"cast {x}" for x in ("INTEGER", "DOUBLE", "DECIMAL", "TEXT", "DATE", "TIMESTAMP")}
    found |= {f"limit {x}" for x in ("count", "offset")}
    found |= {f"sort {x}" for x in ("ascending", "descending", "nulls first", "nulls last")}
    found |= {"stage constant", "stage in the answer", "stage looked up"}
    return found - UNREACHABLE.keys()


UNREACHABLE = {
    "aggregate min distinct": "read as min: the same value",
    "aggregate max distinct": "read as max: the same value",
    "aggregate mode distinct": "refused: of different values none is more frequent",
    "aggregate covar_pop distinct": "refused, as in all statistics of pairs: they take (y, x) without DISTINCT",
    **{
        f"slot Window.calls/WindowCall.{slot} {x.__name__} {layer}": "a window call takes no subquery"
        for slot in ("arguments", "partition", "order/SortKey.expression")
        for x in SUBQUERIES
        for layer in LAYERS
    },
    "aggregate array_agg": "never written: it collects values for statistics outside of the engine",
    "aggregate array_agg distinct": "never written, as array_agg",
}
"""What no text leads to; a test sees that none does."""


@dataclass
class Coverage:
    """Counts of what was drawn, and of what of it was accepted."""

    drawn: Counter[str] = field(default_factory=Counter)
    accepted: Counter[str] = field(default_factory=Counter)
    inside: Counter[tuple[str, str]] = field(default_factory=Counter)
    """(slot, scalar node somewhere in it) -> plans."""

    def add(self, other: Coverage) -> None:
        """Take in what another search has drawn."""
        self.drawn += other.drawn
        self.accepted += other.accepted
        self.inside += other.inside

    def note(self, keys: set[str], accepted: bool) -> None:
        """Count the keys of one question."""
        self.drawn.update(keys)
        if accepted:
            self.accepted.update(keys)

    def missing(self, accepted: Iterable[str] = ()) -> list[str]:
        """Give what was never drawn, and what of some was never accepted."""
        return sorted(
            {key for key in wanted() if not self.drawn[key]}
            | {key for key in accepted if not self.accepted[key]}
        )

    def table(self) -> str:
        """Show all counts: drawn, and of those accepted."""
        lines = [f"{'slot':<72}{'drawn':>8}{'accepted':>10}"]
        keys = sorted(self.drawn.keys() | wanted())
        lines += [f"{k:<72}{self.drawn[k]:>8}{self.accepted[k]:>10}" for k in keys]
        lines += [f"inside {s} {x:<20}{c:>8}" for (s, x), c in sorted(self.inside.items())]
        return "\n".join(lines)


def keys_of(plan: n.Node, protected: Callable[[str], bool]) -> set[str]:
    """Give what a plan, as it was read, draws."""
    found: set[str] = set()
    for node in n.walk(plan):
        found.add(f"node {type(node).__name__}")
        found |= _kinds_of(node)
        for slot in SLOTS.get(type(node), ()):
            for child in slot.read(node):
                if slot.relation:
                    found.add(f"slot {slot.name} {_layer(child, protected)}")
                else:
                    found |= {
                        f"slot {slot.name} {type(x).__name__} {_layer(x.relation, protected)}"
                        for x in _scalars(child)
                        if isinstance(x, SUBQUERIES)
                    }
    return found


def inside_of(plan: n.Node) -> set[tuple[str, str]]:
    """Give which scalar nodes stand somewhere in each slot of a relation."""
    return {
        (slot.name, type(x).__name__)
        for node in n.walk(plan)
        if isinstance(node, n.Relation)
        for slot in SLOTS[type(node)]
        if not slot.relation
        for child in slot.read(node)
        for x in _scalars(child)
    }


def enforced_keys(plans: list[n.Node]) -> set[str]:
    """Give what only rewrites make, from plans that are run."""
    found: set[str] = set()
    for node in (x for plan in plans for x in n.walk(plan)):
        if isinstance(node, REWRITTEN):
            found.add(f"enforced {type(node).__name__}")
            found |= {f"enforced {s.name}" for s in SLOTS[type(node)] if s.read(node)}
    return found


def _layer(relation: n.Node, protected: Callable[[str], bool]) -> str:
    scans = (x.table for x in n.walk(relation) if isinstance(x, n.Scan))
    return LAYERS[0] if any(protected(table) for table in scans) else LAYERS[1]


def _scalars(scalar: n.Node) -> Iterator[n.Node]:
    """Give an expression and all below it, short of the relations of its subqueries."""
    yield scalar
    for child in n.children(scalar):
        if not isinstance(child, n.Relation):
            yield from _scalars(child)


def _kinds_of(node: n.Node) -> set[str]:
    if isinstance(
        node, n.Call
    ):  # written ones have a place in the text; those that corr is made of have none
        return set() if node.span is None else {f"function {node.function}"}
    if isinstance(node, n.Aggregation):
        return {f"aggregate {node.function}{' distinct' if node.distinct else ''}"}
    if isinstance(node, n.Join):
        return {f"join {node.kind}"}
    if isinstance(node, (n.Union, n.Intersect, n.Except)):
        return {f"set {type(node).__name__}{' all' if node.all else ''}"}
    if isinstance(node, (n.Arithmetic, n.Compare)):
        return {f"operator {node.op}"}
    if isinstance(node, n.Extract):
        return {f"part {node.part}"}
    if isinstance(node, n.Cast):
        return {f"cast {node.type.kind}"}
    if isinstance(node, n.Limit):
        return {"limit count"} if not node.offset else {"limit offset"}
    if isinstance(node, n.SortKey):
        return {
            f"sort {'descending' if node.descending else 'ascending'}",
            f"sort nulls {'first' if node.nulls_first else 'last'}",
        }
    return set()
