"""Which columns a scalar stands on, and which it borrows from the queries around it.

In: relations. Out: the order from the leaves up, the scalars of one relation, and the outer columns
that a relation still needs. Never here: types of expressions, values.
"""

from __future__ import annotations

from collections.abc import Iterator

from secant.plan import nodes as n
from secant.plan.facts.reads import columns_read, expressions
from secant.plan.typing import Fields, fields_of
from secant.runtime.work import spend


def bottom_up(root: n.Node, known: str = "", past: tuple[type[n.Node], ...] = ()) -> list[n.Node]:
    """Give all nodes, each once, what is below before what is above.

    Left out are nodes that know a fact already, those of some classes, and what stands below either.
    """
    found: dict[n.Node, None] = {}
    pending: list[n.Node | None] = [root]
    while pending:
        node = pending.pop()
        if node is None:  # a mark: all below what is next was given
            node = pending.pop()
            assert node is not None
        elif node in found or (known and hasattr(node, known)) or isinstance(node, past):
            continue
        elif below := node._below:
            pending += (node, None)
            pending += below
            continue
        found[node] = None
    spend(len(found))
    return list(found)


def relations_in(node: n.Node) -> tuple[n.Relation, ...]:
    """Give the relations directly below: the inputs of a relation, the subquery of a scalar."""
    if type(node) not in n.HOLDERS:
        return ()
    return tuple(child for child in n.children(node) if isinstance(child, n.Relation))


def standing_on(relation: n.Relation) -> Fields:
    """Give the columns that the relation's own scalars can name."""
    return tuple(field for part in relations_in(relation) for field in fields_of(part))


def own_parts(relation: n.Relation) -> tuple[n.Node, ...]:
    """Give the scalars and pieces of one relation, not those of its inputs or subqueries."""
    try:
        return relation._own
    except AttributeError:
        pass
    parts: dict[n.Node, None] = {}
    pending = [part for part in relation._below if not isinstance(part, n.Relation)]
    while pending:
        part = pending.pop()
        if part in parts:
            continue
        parts[part] = None
        if type(part) in n.HOLDERS:
            pending += [child for child in part._below if not isinstance(child, n.Relation)]
        else:
            pending += part._below
    spend(1 + len(parts))
    object.__setattr__(relation, "_own", tuple(parts))
    return relation._own


def own_names(relation: n.Relation) -> frozenset[str]:
    """Give the columns, its own and outer ones, that the scalars of one relation name, without their subqueries."""
    try:
        return relation._named
    except AttributeError:
        parts = own_parts(relation)
    names = frozenset([x.name for x in parts if isinstance(x, (n.Column, n.Outer))])
    object.__setattr__(relation, "_named", names)
    return names


def holders(root: n.Relation) -> Iterator[n.Node]:
    """Give every relation of a plan and every scalar that holds one, each once."""
    seen: set[n.Node] = {root}
    pending: list[n.Node] = [root]
    while pending:
        node = pending.pop()
        yield node
        new = [x for x in _holders_below(node) if x not in seen]
        seen.update(new)
        pending += new


def _holders_below(node: n.Node) -> tuple[n.Node, ...]:
    """Give the relations directly below, and the scalars of a relation that hold one, each once."""
    try:
        return node._holding
    except AttributeError:
        pass
    below: list[n.Node] = list(relations_in(node))
    if isinstance(node, n.Relation) and any(map(n.has_subquery, expressions(node))):
        below += [part for part in own_parts(node) if type(part) in n.HOLDERS]
    object.__setattr__(node, "_holding", tuple(dict.fromkeys(below)))
    return node._holding


Borrowed = dict[n.Relation, dict[str, n.Outer]]
"""For each relation the outer columns that it and all below still need."""


def borrowed(root: n.Relation) -> Borrowed:
    """Find for each relation in a plan the outer columns that no query inside it provides."""
    return {node: borrowed_by(node) for node in bottom_up(root) if isinstance(node, n.Relation)}


def borrowed_by(root: n.Relation) -> dict[str, n.Outer]:
    """Give the outer columns that a relation and all below still need; found once for a relation."""
    pending = [root] if _unasked(root) else []
    while pending:
        node = pending[-1]
        inside = (query for part in own_parts(node) for query in relations_in(part))
        first = [r for r in (*relations_in(node), *inside) if _unasked(r)]
        if first:
            pending += first
        else:
            object.__setattr__(node, "_borrowed", _needs(node))
            pending.pop()
    return root._borrowed if hasattr(root, "_borrowed") else {}


def _unasked(relation: n.Relation) -> bool:
    """Whether a relation may borrow something, and nobody has looked yet."""
    return not hasattr(relation, "_borrowed") and n.holds(relation, n.Outer)


def _needs(node: n.Relation) -> dict[str, n.Outer]:
    needs: dict[str, n.Outer] = {}
    for source in relations_in(node):
        needs.update(borrowed_by(source))
    for part in own_parts(node):
        if isinstance(part, n.Outer):
            needs[part.name] = part
        for query in relations_in(part):
            free = borrowed_by(query)
            if free:
                provided = {field.name for field in standing_on(node)}
                needs.update((name, o) for name, o in free.items() if name not in provided)
    return needs


def free_columns(scalar: n.Node) -> frozenset[str]:
    """Give the columns of its own relation that a scalar reads, also from inside its subqueries."""
    names: set[str] = set()
    for part in n.reached(scalar, _outside_of_queries):
        if isinstance(part, (n.Column, n.Outer)):
            names.add(part.name)
        elif isinstance(part, n.Relation):
            names |= borrowed_by(part).keys()
    return frozenset(names)


def _outside_of_queries(part: n.Node) -> bool:
    return not isinstance(part, n.Relation)


def read_columns(plan: n.Relation) -> frozenset[str]:
    """Give all columns that a plan reads, compares as part of whole rows, or shows."""
    return columns_read(plan) | {f.name for f in fields_of(plan)}
