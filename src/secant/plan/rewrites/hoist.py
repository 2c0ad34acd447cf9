"""Compute what several expressions share once, in projections of its own.

In: rows and expressions over them, in which a shared part is the same node. Out: rows with helper-free
projections below that compute shared parts, and the expressions over them. The meaning stays: engines
are not relied upon to find shared parts, and one of their passes that does is switched off.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import fields
from typing import cast

from secant.plan import nodes as n
from secant.plan.facts.lineage import is_carried_on
from secant.plan.rewrites.rewrite import columns_of
from secant.plan.typing import fields_of, type_of
from secant.schema.types import DOUBLE, Type

_CHEAP = (n.Column, n.Outer, n.Literal)
_REPEATING = ("lowest", "highest", "ramp")
"""Functions that engines are told by writing an argument several times."""


def hoisted(
    rows: n.Relation, items: tuple[n.Named, ...], name: str
) -> tuple[n.Relation, tuple[n.Named, ...]]:
    """Give rows with the shared parts of the items as further columns, and the items over those."""
    items = interned(items)
    uses = _uses(items)
    shared = [node for node, count in uses.items() if count > 1 and not isinstance(node, _CHEAP)]
    if not shared:
        return rows, items
    level: dict[n.Node, int] = {}
    names = {node: f"{name}.shared{i}" for i, node in enumerate(shared)}
    for node in shared:
        _level(node, names, level)
    top = max(level[node] for node in shared)
    rewritten: dict[n.Node, n.Node] = {}
    layers: list[list[n.Named]] = []
    for current in range(1, top + 1):
        layer = []
        for node in shared:
            if level[node] == current:
                assert isinstance(node, n.Scalar)
                layer.append(n.Named(names[node], _rewritten(node, names, rewritten)))
                rewritten[node] = n.Column(names[node], type_of(node))
        layers.append(layer)
    done = tuple(n.Named(i.name, _inside(i.expression, names, rewritten)) for i in items)
    return stacked(rows, layers, done), done


def stacked(
    rows: n.Relation, layers: list[list[n.Named]], items: tuple[n.Named, ...]
) -> n.Relation:
    """Put the layers on top of each other; each passes on only what is read above it."""
    needed = [_columns(items)]
    for layer in reversed(layers[1:]):
        own = {item.name for item in layer}
        needed.append((needed[-1] - own) | _columns(tuple(layer)))
    relation = rows
    kinds = {f.name: f.type for f in fields_of(rows)}
    for layer, above in zip(layers, reversed(needed), strict=True):
        passed = tuple(n.Named(c, n.Column(c, kind)) for c, kind in kinds.items() if c in above)
        relation = n.Project(relation, (*passed, *layer))
        kinds |= {item.name: type_of(item.expression) for item in layer}
    return relation


def passed_on(
    layers: list[tuple[n.Named, ...]], read: frozenset[str], kinds: Mapping[str, Type]
) -> tuple[list[tuple[n.Named, ...]], frozenset[str]]:
    """Keep of layers, the lowest first, what is read above, each with what it passes on; and say what all of them read.

    A layer in which nothing is computed any more is left out.
    """
    passed_layers: list[tuple[n.Named, ...]] = []
    for items in reversed(layers):
        used = tuple(item for item in items if item.name in read)
        passed = read - {item.name for item in used}
        read = passed | _columns(used)
        if used:
            passed_layers.append(
                (*used, *(n.Named(c, n.Column(c, kinds[c])) for c in sorted(passed)))
            )
    passed_layers.reverse()
    return passed_layers, read


def projections(rows: n.Relation) -> tuple[list[n.Project], n.Relation]:
    """Give the projections on top of each other, the uppermost first, and what they stand on."""
    layers: list[n.Project] = []
    while isinstance(rows, n.Project):
        layers.append(rows)
        rows = rows.input
    return layers, rows


def definitions(layers: list[n.Project]) -> dict[str, n.Scalar]:
    """Say what each computed column is made of; what is passed on keeps its first meaning."""
    expressions: dict[str, n.Scalar] = {}
    for layer in reversed(layers):
        for item in layer.items:
            if not is_carried_on(item):
                expressions[item.name] = item.expression
    return expressions


def interned(items: tuple[n.Named, ...]) -> tuple[n.Named, ...]:
    """Make equal parts one node."""
    nodes: dict[object, n.Node] = {}
    done: dict[n.Node, n.Node] = {}

    def visit(node: n.Node) -> n.Node:
        if node in done:
            return done[node]
        if isinstance(node, n.Relation):
            return node
        changed = n.rebuild(node, visit)
        if isinstance(changed, n.Arithmetic):
            changed = _shorter(changed)
        key = (type(changed), *[_part(getattr(changed, name)) for name in _COMPARED[type(changed)]])
        done[node] = nodes.setdefault(key, changed)
        return done[node]

    return tuple(n.Named(i.name, _scalar(visit(i.expression))) for i in items)


_COMPARED = {c: tuple(f.name for f in fields(c) if f.name != "span") for c in n.NODES}
"""What tells two nodes of one class apart."""


def _shorter(node: n.Arithmetic) -> n.Scalar:
    """Leave out arithmetic that changes no float, not even in its last digit."""
    left, right = node.left, node.right
    if node.op == "*" and _is(left, 1.0) and type_of(right) == DOUBLE:
        return right
    if node.op == "*" and _is(right, 1.0) and type_of(left) == DOUBLE:
        return left
    negated = isinstance(left, n.Arithmetic) and left.op == "*" and _is(left.left, -1.0)
    if node.op == "+" and negated and isinstance(right, n.Literal) and right.type == DOUBLE:
        assert isinstance(left, n.Arithmetic)
        return n.Arithmetic("-", right, left.right)
    return node


def _is(scalar: n.Scalar, value: float) -> bool:
    return isinstance(scalar, n.Literal) and scalar.type == DOUBLE and scalar.value == value


def _part(value: object) -> object:
    """Give a part of a node in a form that equal parts share; nodes below are one already."""
    kind = type(value)
    if kind is str or kind is Type or isinstance(value, n.Node):
        return value  # equal only to its like: a node to itself
    if kind is tuple:
        return tuple([_part(x) for x in cast("tuple[object, ...]", value)])
    return kind, repr(value)  # 0.0 is not -0.0, and 1 is neither 1.0 nor True


def _scalar(node: n.Node) -> n.Scalar:
    assert isinstance(node, n.Scalar)
    return node


def _uses(items: tuple[n.Named, ...]) -> Counter[n.Node]:
    """Count how often each scalar is used, a shared one's own parts once. Conditions stay where they are."""
    uses: Counter[n.Node] = Counter()
    stack: list[n.Node] = [i.expression for i in items]
    for node in stack:
        uses[node] += 1
    seen: set[n.Node] = set()
    while stack:
        node = stack.pop()
        if node in seen or isinstance(node, (n.Relation, n.Attempt)):
            continue  # what stands inside an Attempt may fail, and must not leave it
        seen.add(node)
        several = isinstance(node, n.Call) and node.function in _REPEATING
        for child in n.children(node):
            if isinstance(child, n.Scalar):
                uses[child] += 2 if several else 1
                stack.append(child)
            elif isinstance(child, n.Branch):
                for part in (child.condition, child.value):
                    uses[part] += 1
                    stack.append(part)
    if any(n.has_subquery(i.expression) for i in items):
        uses = Counter({x: c for x, c in uses.items() if not n.has_subquery(x)})
    return Counter({x: c for x, c in uses.items() if isinstance(x, n.Scalar)})


def _level(node: n.Node, names: dict[n.Node, str], level: dict[n.Node, int]) -> int:
    """Give how many layers of shared parts lie below a node, itself included if it is shared."""
    if node in level:
        return level[node]
    below = max((_level(c, names, level) for c in n.children(node)), default=0)
    level[node] = below + 1 if node in names else below
    return level[node]


def _inside(
    scalar: n.Scalar, names: dict[n.Node, str], rewritten: dict[n.Node, n.Node]
) -> n.Scalar:
    result = rewritten[scalar] if scalar in names else _rewritten(scalar, names, rewritten)
    assert isinstance(result, n.Scalar)
    return result


def _rewritten(
    node: n.Scalar, names: dict[n.Node, str], rewritten: dict[n.Node, n.Node]
) -> n.Scalar:
    """Write a node over the columns that its shared parts have become."""

    def change(child: n.Node) -> n.Node:
        if child in rewritten:
            return rewritten[child]
        if isinstance(child, n.Attempt):
            return child
        changed = n.rebuild(child, change)
        if not isinstance(child, _CHEAP):
            rewritten[child] = changed
        return changed

    return node if isinstance(node, n.Attempt) else n.rebuild(node, change)


def _columns(items: tuple[n.Named, ...]) -> frozenset[str]:
    return frozenset().union(*(columns_of(i.expression) for i in items))
