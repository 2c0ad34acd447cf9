"""Stage *enforce*: declared facts become operators of one aggregate, and what is measured for it is fixed.

In: an aggregate over protected rows, and the context of its question. Out: a measured aggregate, whose filters are
softened first where values are protected (cells); or the reason against it. Never here: a bound.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace

from secant.plan import nodes as n
from secant.plan.facts.facts import Facts
from secant.plan.facts.lineage import stored_column
from secant.plan.facts.reads import scans
from secant.plan.facts.scopes import read_columns
from secant.plan.rewrites.enforce import MeasuredAggregate, enforce
from secant.plan.rewrites.measures import Problem
from secant.plan.rewrites.quotients import cut_together
from secant.plan.rewrites.rewrite import transform
from secant.plan.typing import fields_of
from secant.policy.coverage import is_protected
from secant.records import frozen
from secant.sensitivity.certificate import (
    CannotBound,
    Refusal,
)
from secant.sensitivity.context import Context, shows_protected
from secant.sensitivity.derivative.public_rows import public_rows_of
from secant.sensitivity.derivative.soften.softened import Softened
from secant.sensitivity.derivative.soften.unions import soften
from secant.sensitivity.public_facts import PublicFacts
from secant.sensitivity.truncation.centering import about_centers


@frozen
class EnforcedAggregate:
    """An aggregate, ready to be bounded: what is measured for it, and how it became soft."""

    release: MeasuredAggregate
    softened: Softened | None = None
    public_rows: Mapping[str, Mapping[str, n.Scalar]] = field(default_factory=dict)
    """Protection -> scan alias -> the condition under which a row does not move."""


def enforced_aggregate(
    aggregate: n.Aggregate, name: str, context: Context
) -> EnforcedAggregate | Refusal:
    """Enforce what is declared; where values are protected, on the softened aggregate."""
    policy, read, used = context.facts.policy, read_columns(aggregate), scans(aggregate)
    touched = [
        p for p in context.protections if any(shows_protected(s, policy, (p,), read) for s in used)
    ]
    cells = tuple(p for p in touched if p.distance)
    if not cells:
        release = _enforced_rows(aggregate, name, context)
        if isinstance(release, Problem):
            return _refusal(release)
        return EnforcedAggregate(cut_together(release, context.quotients))
    aggregate = with_public_values(aggregate, context)
    moving = all(p.kind == "cells" for p in touched)
    metric = all(p.distance for p in touched)
    estimate = context.public.rows if moving else PublicFacts().rows
    share = context.public.epsilon / max(1, len(aggregate.aggregations))
    try:
        softened = soften(aggregate, policy, cells, share, estimate, context.open.ends)
        marked, catalog = scans(softened.aggregate), context.facts.catalog
        public_rows = {p.name: public_rows_of(p, policy, marked, catalog) for p in cells}
    except CannotBound as verdict:
        return verdict.refusal("derivative")
    release = enforce(
        softened.aggregate, name, context.facts, context.protections,
        moving=moving, metric=metric, stepped=context.stepped,
    )  # fmt: skip
    if isinstance(release, Problem):
        return _refusal(release)
    release = replace(release, notes=(*softened.notes, *release.notes))
    return EnforcedAggregate(cut_together(release, context.quotients), softened, public_rows)


def _refusal(problem: Problem) -> Refusal:
    return Refusal("enforce", problem.rule, problem.reason, problem.hint, problem.node)


def _tallied(
    aggregate: n.Aggregate, name: str, facts: Facts, context: Context
) -> MeasuredAggregate | Problem:
    """Let sums without a range be limited by a tally of units, where a tally limits them (rewrite.wide)."""
    protections, stepped = context.protections, context.stepped
    if stepped is None and len(protections) == 1 and protections[0].tallied:
        release = enforce(aggregate, name, facts, protections, tallied=True)
        if isinstance(release, Problem):
            return release
        # What is divided is cut down together, by limits that no tally chooses: that needs ranges, but about a center.
        whole = cut_together(release, context.quotients)
        wide = [release.wide & family for family in whole.together]
        if not any(wide) or frozenset().union(*wide) <= about_centers(whole, None).keys():
            return release
    return enforce(aggregate, name, facts, protections, stepped=stepped)


_LOOKED_UP = ("rewrite.range", "rewrite.subquery")
"""What is in the way for want of a public number: a range, or the value of a subquery inside an expression."""


def _enforced_rows(
    aggregate: n.Aggregate, name: str, context: Context
) -> MeasuredAggregate | Problem:
    """Enforce what is declared; ranges that are missing are looked up where a table is public (combined.ends)."""
    facts = context.facts
    release = _tallied(aggregate, name, facts, context)
    if isinstance(release, Problem):
        if release.rule not in _LOOKED_UP:
            return release
    elif not release.wide:
        return release
    aggregate = with_public_values(aggregate, context)
    policy, read = facts.policy, read_columns(aggregate)
    tables = dict(policy.tables)
    looked: list[str] = []
    for scan in scans(aggregate):
        if is_protected(scan.table.lower(), policy, policy.protections):
            continue
        table = scan.table.lower()
        for f in scan.columns:
            column = stored_column(scan, f.name).lower()
            declared = policy.column(table, column)
            if not f.type.numeric or f.name not in read or declared.range or declared.values:
                continue
            ends = context.open.ends(table, column)
            if ends is not None:
                old = tables.get(table, policy.facts(table))
                columns = {**old.columns, column: replace(declared, range=ends)}
                tables[table] = replace(old, columns=columns)
                looked.append(f"range of {table}.{column}: looked up, the table is public")
    enlarged = facts.with_ranges(replace(policy, tables=tables))
    release = _tallied(aggregate, name, enlarged, context)
    if isinstance(release, Problem):
        return release
    return replace(release, notes=(*dict.fromkeys(looked), *release.notes))


# ── public scalar subqueries are constants ──────────────────────────────────────────────────────────


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
