"""What is a shown number made of? Follows every output of a plan down to released measures.

In: the plan that runs on released tables. Out: the same plan with the measures carried along, and each output as an
expression over them, for `intervals` to say how far it may be from the truth.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from secant.plan import nodes as n
from secant.plan.rewrite import columns_of, substitute
from secant.plan.typing import fields_of


@dataclass(frozen=True, slots=True)
class Traced:
    """A plan that also returns the measures its outputs rest on, and how each output is made of them."""

    plan: n.Relation
    outputs: tuple[str, ...]
    carried: tuple[str, ...]
    made_of: Mapping[str, n.Scalar | None]
    """Output -> expression over carried and other columns; None if that is not known."""


def trace(plan: n.Relation, noisy: frozenset[str]) -> Traced:
    """Follow every output column down to released measures, and carry those along."""
    outputs = tuple(f.name for f in fields_of(plan))
    made = {name: scalar for name, scalar in _definitions(plan).items() if name in outputs}
    wanted = {c for s in made.values() if s is not None for c in columns_of(s) & noisy}
    # Names of carried columns must survive a top-level rename of outputs.
    carried_plan, carried = _carry(plan, frozenset(wanted))
    kept = tuple(c for c in sorted(carried) if c not in outputs)
    known = carried | set(outputs)
    for name, scalar in made.items():
        if scalar is not None and not (columns_of(scalar) & noisy) <= known:
            made[name] = None
    return Traced(carried_plan, outputs, kept, made)


def _definitions(relation: n.Relation) -> dict[str, n.Scalar | None]:
    if isinstance(relation, (n.Filter, n.Sort, n.Limit)):
        return _definitions(relation.input)
    if isinstance(relation, n.Project):
        below = _definitions(relation.input)
        return {i.name: _over(i.expression, below) for i in relation.items}
    if isinstance(relation, n.Join) and relation.kind != "left":
        return {**_definitions(relation.left), **_definitions(relation.right)}
    if isinstance(relation, (n.Released, n.Scan, n.Values)):
        return {f.name: n.Column(f.name, f.type) for f in fields_of(relation)}
    return {f.name: None for f in fields_of(relation)}


def _over(scalar: n.Scalar, below: Mapping[str, n.Scalar | None]) -> n.Scalar | None:
    names = columns_of(scalar)
    if any(below.get(c) is None for c in names) or n.has_subquery(scalar):
        return None
    known = {c: s for c in names if (s := below[c]) is not None}
    if sum(1 for s in known.values() for _ in n.walk(s)) > 2_000:
        return None  # an expression that repeats itself would grow without end
    return substitute(scalar, known)


def _carry(relation: n.Relation, wanted: frozenset[str]) -> tuple[n.Relation, set[str]]:
    if isinstance(relation, (n.Filter, n.Sort, n.Limit)):
        inner, found = _carry(relation.input, wanted)
        return replace(relation, input=inner), found
    if isinstance(relation, n.Project):
        inner, found = _carry(relation.input, wanted)
        kinds = {f.name: f.type for f in fields_of(inner)}
        names = {i.name for i in relation.items}
        extra = tuple(n.Named(c, n.Column(c, kinds[c])) for c in sorted(found) if c not in names)
        return n.Project(inner, relation.items + extra), found
    if isinstance(relation, n.Join) and relation.kind != "left":
        left, a = _carry(relation.left, wanted)
        right, b = _carry(relation.right, wanted)
        return replace(relation, left=left, right=right), a | b
    if isinstance(relation, n.Released):
        return relation, {f.name for f in relation.columns} & wanted
    return relation, set()
