"""Scalar subqueries over public tables alone are constants: everybody may know their value.

In: an aggregate, and what may be looked up. Out: the aggregate with constants in place of such subqueries. Bounds,
ranges and the statements that run all read the constant. Never here: a subquery that shows anything that some
protection of the policy hides, or that looks at rows of the query around it.
"""

from __future__ import annotations

from secant.plan import nodes as n
from secant.plan.facts.reads import scans
from secant.plan.rewrites.rewrite import transform
from secant.plan.typing import fields_of
from secant.sensitivity.context import Context, shows_protected


def with_public_values(aggregate: n.Aggregate, context: Context) -> n.Aggregate:
    """Put the values of public scalar subqueries in their places.

    Those of a stream stay: it is written down once, and public tables may be others at its next step.
    """
    if not n.holds(aggregate, n.ScalarSubquery) or context.stepped is not None:
        return aggregate

    def change(node: n.Node) -> n.Node:
        if not isinstance(node, n.ScalarSubquery) or not _public(node.relation, context):
            return node
        return context.public.value(node.relation) or node

    changed = transform(aggregate, change, n.ScalarSubquery)
    assert isinstance(changed, n.Aggregate)
    return changed


def _public(relation: n.Relation, context: Context) -> bool:
    """Whether a subquery stands by itself, waits for no release, and shows nothing that a protection hides."""
    if n.holds(relation, n.Released):
        return False  # it is drawn later
    inside = list(n.walk(relation))
    own = {f.name for r in inside if isinstance(r, n.Relation) for f in fields_of(r)}
    if any(isinstance(x, n.Outer) and x.name not in own for x in inside):
        return False
    policy = context.facts.policy  # all protections, those that were not chosen too
    hidden = (shows_protected(s, policy, policy.protections, context.read) for s in scans(relation))
    return not any(hidden)
