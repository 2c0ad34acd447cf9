"""Whether an expression is empty (NULL), and whether that is public.

In: expressions over columns. Out: a condition over which cells are empty, or that it cannot be said.
The owner's norms measure how far a value moves; an empty cell has no value to move. So which cells are
empty is public (derivative.null), and so is whether an expression is empty that only passes emptiness on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from secant.plan import nodes as n
from secant.plan.facts.reads import columns_named
from secant.plan.functions.scalar import FUNCTIONS
from secant.plan.rewrites.rewrite import columns_of
from secant.plan.rule_table import RuleTable
from secant.schema import types as t

_ANY = ("coalesce", "least", "greatest")
Empty = n.Scalar | bool | None
Of = Callable[[n.Scalar], Empty]
"""Asks the same of a part."""


EMPTINESS: RuleTable[Callable[..., Empty]] = RuleTable("emptiness")


def emptiness(scalar: n.Scalar) -> Empty:
    """Give the condition under which an expression is empty, from which cells are; None if that is not all.

    True and False stand for always and never. A node without a rule may be empty for any reason (I3).
    """
    by_part: dict[n.Scalar, Empty] = {}

    def empty(part: n.Scalar) -> Empty:  # what is shared is asked once, and stays shared
        if part not in by_part:
            rule = EMPTINESS.find(part)
            by_part[part] = None if rule is None else rule(part, empty)
        return by_part[part]

    return empty(scalar)


@EMPTINESS.rule(n.Literal)
def _literal(scalar: n.Literal, _: Of) -> Empty:
    return scalar.value is None


@EMPTINESS.rule(n.Column)
def _column(scalar: n.Column, _: Of) -> Empty:
    return n.IsNull(scalar)


@EMPTINESS.rule(n.Negate)
def _negate(scalar: n.Negate, empty: Of) -> Empty:
    return empty(scalar.operand)


@EMPTINESS.rule(n.Cast)
def _cast(scalar: n.Cast, empty: Of) -> Empty:
    return empty(scalar.operand) if scalar.type.numeric else None


@EMPTINESS.rule(n.Clamp)
def _clamp(scalar: n.Clamp, empty: Of) -> Empty:
    return _any([empty(x) for x in (scalar.operand, scalar.low, scalar.high)])


@EMPTINESS.rule(n.Arithmetic)
def _arithmetic(scalar: n.Arithmetic, empty: Of) -> Empty:
    if scalar.op in ("+", "-", "*"):
        return _any([empty(scalar.left), empty(scalar.right)])
    divisor = scalar.right
    never_zero = isinstance(divisor, n.Literal) and bool(divisor.value)
    return empty(scalar.left) if scalar.op == "/" and never_zero else None


@EMPTINESS.rule(n.Call)
def _call(scalar: n.Call, empty: Of) -> Empty:
    if FUNCTIONS[scalar.function].never_null:
        return _any([empty(a) for a in scalar.arguments])
    if scalar.function in _ANY:
        return _all([empty(a) for a in scalar.arguments])
    return None


def _any(parts: list[Empty]) -> Empty:
    if None in parts:
        return None
    if True in parts:
        return True
    conditions = [p for p in parts if isinstance(p, n.Scalar)]
    if not conditions:
        return False
    return conditions[0] if len(conditions) == 1 else n.Or(tuple(conditions))


def _all(parts: list[Empty]) -> Empty:
    if None in parts:
        return None
    if False in parts:
        return False
    conditions = [p for p in parts if isinstance(p, n.Scalar)]
    if not conditions:
        return True
    return conditions[0] if len(conditions) == 1 else n.And(tuple(conditions))


def moves(scalar: n.Node, protected: frozenset[str]) -> bool:
    """Whether an expression depends on a protected value; on emptiness alone it does not (derivative.null)."""
    if columns_of(scalar).isdisjoint(protected):
        return False
    return any(not columns.isdisjoint(protected) for columns in _read(scalar))


def moves_below(node: n.Node, protected: frozenset[str], done: dict[n.Node, bool]) -> bool:
    """As `moves`, for whoever asks about every part of one expression: each part is looked at once."""
    if node not in done:
        if not protected.isdisjoint(columns_named(node)):
            done[node] = True
        elif _asks_for_emptiness(node):
            done[node] = False
        else:
            done[node] = any(moves_below(c, protected, done) for c in n.children(node))
    return done[node]


def _read(node: n.Node) -> Iterator[frozenset[str]]:
    nodes = n.reached(node, lambda x: not _asks_for_emptiness(x))
    return (columns_named(x) for x in nodes if not _asks_for_emptiness(x))


def _asks_for_emptiness(node: n.Node) -> bool:
    return isinstance(node, n.IsNull) and emptiness(node.operand) is not None


def present(scalar: n.Scalar) -> n.Scalar | None:
    """Give 1 where a value is there and 0 where it is empty; None if that depends on values."""
    empty = emptiness(scalar)
    if empty is None:
        return None
    one, none = n.Literal(1.0, t.DOUBLE), n.Literal(0.0, t.DOUBLE)
    if isinstance(empty, bool):
        return none if empty else one
    return n.Case((n.Branch(empty, none),), one)
