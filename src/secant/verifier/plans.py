"""Plans as the documents hold them: nodes that name each other by place.

In: a list of [class, fields]. Out: views of single nodes, and what can be read off them alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

RELATIONS = frozenset({
    "Scan", "Values", "Released", "Filter", "Project", "Join", "Aggregate", "Distinct", "Window", "Sort", "Limit",
    "Union", "Intersect", "Except", "Truncate", "TruncateGroups",
})  # fmt: skip


class NotKnown(Exception):  # noqa: N818 - a verdict about one point
    """No rule of this program says that it holds."""


class Wrong(Exception):  # noqa: N818 - a verdict about one point
    """It does not hold."""


@dataclass(frozen=True, slots=True)
class Node:
    """One node of a list of nodes."""

    nodes: tuple[Any, ...] = field(compare=False, repr=False)
    at: int
    """Equal nodes are written once, so the place tells them apart."""

    @property
    def kind(self) -> str:
        """Give its class."""
        return str(self.nodes[self.at][0])

    def held(self, name: str) -> Any:
        """Give a plain field."""
        return self.nodes[self.at][1][name]

    def one(self, name: str) -> Node:
        """Give the node in a field."""
        return Node(self.nodes, self.held(name)["node"])

    def maybe(self, name: str) -> Node | None:
        """Give the node in a field, if there is one."""
        return None if self.held(name) is None else self.one(name)

    def several(self, name: str) -> list[Node]:
        """Give the nodes in a field."""
        return [Node(self.nodes, item["node"]) for item in self.held(name)]

    @property
    def children(self) -> list[Node]:
        """Give all nodes directly below."""
        children = []
        for value in self.nodes[self.at][1].values():
            for item in value if isinstance(value, list) else [value]:
                if isinstance(item, dict) and "node" in item:
                    children.append(Node(self.nodes, item["node"]))
        return children

    @property
    def inputs(self) -> list[Node]:
        """Give the relations that a relation is made from; an order of rows is no relation of its own here."""
        names = ("left", "right") if "left" in self.nodes[self.at][1] else ("input",)
        return [unsorted(self.one(n)) for n in names if n in self.nodes[self.at][1]]


def unsorted(node: Node) -> Node:
    """Leave the order of rows away."""
    while node.kind == "Sort":
        node = node.one("input")
    return node


def below(node: Node) -> Iterator[Node]:
    """Give a node and all below it, each once."""
    seen, stack = set(), [node]
    while stack:
        current = stack.pop()
        if current.at not in seen:
            seen.add(current.at)
            yield current
            stack += current.children


def tables(node: Node) -> set[str]:
    """Give the tables that are read anywhere below."""
    return {str(x.held("table")).lower() for x in below(node) if x.kind == "Scan"}


def tables_in_subqueries(node: Node) -> set[str]:
    """Give the tables that expressions of a relation read by themselves, its inputs left out."""
    parts = [child for child in node.children if child.kind not in RELATIONS]
    return {table for part in parts for table in tables(part)}


def columns(node: Node) -> list[tuple[str, str]]:
    """Give names and types of a relation's columns; an empty type where it is computed."""
    kind = node.kind
    if kind in ("Scan", "Values", "Released", "Union", "Intersect", "Except"):
        return [(c["name"], c["type"]) for c in node.held("columns")]
    if kind == "Project":
        return [(i.held("name"), _type(i.one("expression"))) for i in node.several("items")]
    if kind == "Aggregate":
        keys = [(k.held("name"), _type(k.one("expression"))) for k in node.several("keys")]
        return keys + [(c.held("name"), "") for c in node.several("aggregations")]
    if kind == "Join":
        return columns(node.one("left")) + columns(node.one("right"))
    if kind == "Window":
        return columns(node.one("input")) + [(c.held("name"), "") for c in node.several("calls")]
    if kind in ("Filter", "Sort", "Limit", "Distinct", "Truncate", "TruncateGroups"):
        return columns(node.one("input"))
    raise NotKnown(f"{kind} is not known here")


def _type(expression: Node) -> str:
    return str(expression.held("type")) if expression.kind in ("Column", "Literal", "Cast") else ""


def renamed(node: Node, names: str) -> dict[str, list[str]]:
    """Give for each column that goes through a projection, or is a key of groups, its names above."""
    by_name: dict[str, list[str]] = {}
    for item in node.several(names):
        if item.one("expression").kind == "Column":
            by_name.setdefault(item.one("expression").held("name"), []).append(item.held("name"))
    return by_name


def equalities(join: Node) -> set[tuple[str, str]]:
    """Give the (left, right) columns of one exact type that a join makes equal."""
    left = {name for name, _ in columns(join.one("left"))}
    pairs = set()
    for part in conjuncts(join.maybe("condition")):
        if part.kind != "Compare" or part.held("op") != "=":
            continue
        a, b = part.one("left"), part.one("right")
        if a.kind == b.kind == "Column" and a.held("type") == b.held("type") != "DOUBLE":
            pair = (str(a.held("name")), str(b.held("name")))
            pairs.add(pair if pair[0] in left else pair[::-1])
    return {(a, b) for a, b in pairs if a in left and b not in left}


def conjuncts(predicate: Node | None) -> list[Node]:
    """Split a condition at its outermost ANDs."""
    if predicate is None:
        return []
    if predicate.kind == "And":
        return [part for operand in predicate.several("operands") for part in conjuncts(operand)]
    return [predicate]


def number(node: Node) -> Fraction:
    """Read a constant."""
    value = node.held("value") if node.kind == "Literal" else None
    if isinstance(value, dict) and "decimal" in value:
        return Fraction(value["decimal"])
    if isinstance(value, dict) and "double" in value:
        return Fraction(float.fromhex(value["double"]))
    if isinstance(value, int) and not isinstance(value, bool):
        return Fraction(value)
    raise NotKnown("an amount is no constant")


def ends(node: Node) -> tuple[Fraction, Fraction]:
    """Give between which numbers an expression lies by its own clamps; NULL adds nothing."""
    if node.kind == "Clamp":
        return number(node.one("low")), number(node.one("high"))
    if node.kind == "Literal":
        if node.held("value") is None:
            return Fraction(0), Fraction(0)
        return number(node), number(node)
    if node.kind == "Negate":
        low, high = ends(node.one("operand"))
        return -high, -low
    if node.kind == "Case":
        parts = [ends(b.one("value")) for b in node.several("branches")]
        parts.append(ends(node.one("default")))
        return min(x for x, _ in parts), max(x for _, x in parts)
    if node.kind == "Arithmetic" and node.held("op") in ("+", "-", "*"):
        a, b = ends(node.one("left")), ends(node.one("right"))
        if node.held("op") == "+":
            return a[0] + b[0], a[1] + b[1]
        if node.held("op") == "-":
            return a[0] - b[1], a[1] - b[0]
        products = [x * y for x in a for y in b]
        return min(products), max(products)
    raise NotKnown("a summand is not clamped by constants")
