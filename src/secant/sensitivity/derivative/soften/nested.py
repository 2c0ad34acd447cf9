"""Aggregates of the least or greatest values of inner groups: bounded as if every inner row stood for its group.

In: the rows of a release that are groups of inner rows. Out: those inner rows, with what the release reads of a group
written over one row of it. A least or greatest value is, wherever it has a derivative, that of one row, so the inner
rows move at least as far, all together, as the groups do (derivative.nested). Never here: a bound.
"""

from __future__ import annotations

from collections.abc import Iterable

from secant.plan import nodes as n
from secant.plan.rewrites.rewrite import columns_of, substitute
from secant.records import frozen
from secant.sensitivity.certificate import CannotBound
from secant.sensitivity.derivative.soften.branches import branches_of
from secant.sensitivity.derivative.soften.emptiness import moves
from secant.sensitivity.derivative.soften.sets import members_as_rows
from secant.sensitivity.derivative.soften.stripped import sees, strip

EXTREMES = ("min", "max")


def inner_of(relation: n.Relation, protected: frozenset[str]) -> n.Aggregate | None:
    """Give the groups that rows are made of, if protected values are in them and nothing else is joined."""
    while isinstance(relation, (n.Project, n.Filter, n.Sort)):
        relation = relation.input
    inside = isinstance(relation, n.Aggregate) and sees(relation, protected)
    return relation if inside and isinstance(relation, n.Aggregate) else None


def moving_calls(inner: n.Aggregate, protected: frozenset[str]) -> dict[str, n.Scalar]:
    """Give the inner aggregates that read protected values, each with what a row gives it, in some branch."""
    items = tuple(n.Named(c.name, c.argument) for c in inner.aggregations if c.argument is not None)
    calls: dict[str, n.Scalar] = {}
    for branch in branches_of(n.Project(inner.input, items)):
        definitions = strip(branch, protected).definitions
        calls |= {i.name: x for i in items if moves(x := definitions[i.name], protected)}
    return calls


@frozen
class Flat:
    """Groups as the rows that they are made of."""

    rows: n.Project
    counted: bool
    """Whether groups count or sum their rows (derivative.sets), rather than take the least or greatest.

    Rests on derivative.nested.
    """


def flattened(rows: n.Relation, keys: Iterable[n.Named], protected: frozenset[str]) -> Flat | None:
    """Write rows that are groups as the inner rows; None if they are no groups of protected values.

    Columns that only public inner aggregates are read in are left out: nothing moves them.
    """
    inner = inner_of(rows, protected)
    if inner is None or not isinstance(rows, n.Project):
        return None
    items = {i.name: i.expression for i in rows.items}
    below: n.Relation = rows.input
    predicates: tuple[n.Scalar, ...] = ()
    while below is not inner:
        assert isinstance(below, (n.Project, n.Filter, n.Sort))
        if isinstance(below, n.Filter):
            predicates += n.conjuncts(below.predicate)
        elif isinstance(below, n.Project):
            defined: dict[str, n.Scalar] = {i.name: i.expression for i in below.items}
            items = {name: substitute(x, defined) for name, x in items.items()}
            predicates = tuple(substitute(p, defined) for p in predicates)
        below = below.input
    moving = moving_calls(inner, protected)
    calls = {c.name: c for c in inner.aggregations}
    for key in keys:
        if isinstance(key.expression, n.Column) and (
            columns_of(items[key.expression.name]) & calls.keys()
        ):
            raise _refused(key.expression, "groups of groups by an inner aggregate")
    jumping = next((p for p in predicates if moves(p, frozenset(moving))), None)
    if jumping is not None:
        raise CannotBound(
            "derivative.strip",
            jumping,
            "a condition on protected values jumps",
            "this is a fault of the softener",
        )
    if moving and all(calls[name].function == "sum" for name in moving):
        return Flat(members_as_rows(items, inner, frozenset(moving)), counted=True)
    own: dict[str, n.Scalar] = {k.name: k.expression for k in inner.keys}
    projected = []
    for name, expression in items.items():
        used = columns_of(expression) & calls.keys()
        if not used or used & moving.keys():
            value = _over_rows(expression, [calls[c] for c in sorted(used)], own)
            projected.append(n.Named(name, value))
    telling = [p for p in predicates if not columns_of(p) & calls.keys()]
    predicate = n.conjunction(tuple(substitute(p, own) for p in telling))
    source = inner.input if predicate is None else n.Filter(inner.input, predicate)
    return Flat(n.Project(source, tuple(projected)), counted=False)


def _over_rows(
    expression: n.Scalar, calls: list[n.Aggregation], keys: dict[str, n.Scalar]
) -> n.Scalar:
    """Write a value of a group over one of its rows: its keys, and at most one least or greatest value."""
    if len(calls) > 1 or any(c.function not in EXTREMES for c in calls):
        raise _refused(expression, "more of a group than its keys and one least or greatest value")
    arguments = {c.name: c.argument for c in calls if c.argument is not None}
    return substitute(expression, {**keys, **arguments})


def _refused(expression: n.Scalar, what: str) -> CannotBound:
    return CannotBound(
        "derivative.nested",
        expression,
        f"{what} has no rule here",
        "aggregate one min() or max() of each inner group at a time; a sum of sums is one sum",
    )
