"""What does a part of a plan look at? One answer for all who ask: tables, columns, and the scalars that it holds.

In: any node. Out: all base tables below it, wherever they stand (also in a sort key, an argument, a condition, a
subquery of a subquery); all columns that it names, compares as parts of whole rows, or passes up from a subquery; and
the expressions of one relation. All rest on `nodes.children`, which knows every field of every class. An analysis that
asks whether something is public asks here and walks nothing by itself. Never here: what is protected.
"""

from __future__ import annotations

from collections.abc import Callable

from secant.plan import nodes as n
from secant.plan.typing import fields_of

_NOTHING: frozenset[str] = frozenset()
_SCAN = n.bits(n.Scan)


def scans(*nodes: n.Node) -> tuple[n.Scan, ...]:
    """Give all uses of base tables below some nodes, each once."""
    if len(nodes) == 1:
        return _scans_below(nodes[0])
    return tuple(dict.fromkeys(scan for node in nodes for scan in _scans_below(node)))


def _scans_below(root: n.Node) -> tuple[n.Scan, ...]:
    """Give all uses of base tables below a node, each once, in the order of `walk`."""
    if not n.kinds(root) & _SCAN:
        return ()
    pending = [] if isinstance(root, n.Scan) or hasattr(root, "_scans") else [root]
    while pending:
        node = pending[-1]
        below = [part for part in n.children(node) if part._kinds & _SCAN]
        missing = [p for p in below if not isinstance(p, n.Scan) and not hasattr(p, "_scans")]
        if missing:
            pending.extend(missing)
            continue
        pending.pop()
        below_scans = [scan for part in below for scan in _scans_in(part)]
        object.__setattr__(node, "_scans", tuple(dict.fromkeys(below_scans)))
    return _scans_in(root)


def _scans_in(node: n.Node) -> tuple[n.Scan, ...]:
    # A scan does not remember itself: who holds itself is not let go when the question ends.
    return (node,) if isinstance(node, n.Scan) else node._scans


def tables_read(*nodes: n.Node) -> frozenset[str]:
    """Give the base tables below some nodes, in lower case."""
    return frozenset(scan.table.lower() for scan in scans(*nodes))


def reads(node: n.Node, table: Callable[[str], bool]) -> bool:
    """Whether a node looks at some such table, in whichever of its parts."""
    return any(table(scan.table.lower()) for scan in scans(node))


def expressions(relation: n.Relation) -> tuple[n.Node, ...]:
    """Give what a relation computes by itself: keys, items, conditions, arguments; all that is not an input."""
    return tuple(part for part in n.children(relation) if not isinstance(part, n.Relation))


def columns_read(node: n.Node) -> frozenset[str]:
    """Give all columns that are named below a node, compared as parts of whole rows, or passed up by a subquery."""
    return frozenset().union(*map(columns_named, n.walk(node)))


def columns_named(node: n.Node) -> frozenset[str]:
    """Give the columns that one node looks at by itself, without what stands below it."""
    if isinstance(node, (n.Column, n.Outer)):
        return frozenset((node.name,))
    if type(node) in _WHOLE_ROWS:
        sides = [part for part in n.children(node) if isinstance(part, n.Relation)]
        return frozenset(f.name for side in sides for f in fields_of(side))
    return _NOTHING


_WHOLE_ROWS = frozenset((
    n.Distinct, n.Union, n.Intersect, n.Except, n.InSubquery, n.ScalarSubquery, n.Truncate, n.TruncateGroups,
    n.Window,
))  # fmt: skip
"""Nodes that look at all columns of rows without naming them; truncations and windows break ties by all of them."""
