"""Rows that the owner has marked public: their values may be known, so nothing is hidden of them.

In: the owner's condition as written in the policy, and the scans of a plan. Out: for each scan the
condition over its columns. It may read public columns only; otherwise moving a value would change
whether the value is hidden (derivative.rows).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from secant.errors import SecantError
from secant.plan import nodes as n
from secant.plan.facts.lineage import stored_column
from secant.plan.facts.reads import columns_read, scans
from secant.plan.rewrites.null_on_error import total
from secant.plan.rewrites.rewrite import substitute
from secant.policy.coverage import is_protected
from secant.policy.policy import Policy, Protection, PublicRows
from secant.schema.catalog import Catalog
from secant.sensitivity.certificate import CannotBound
from secant.sensitivity.derivative.space import space_of
from secant.sql.bind import from_sql


def public_rows_of(
    protection: Protection, policy: Policy, scans: Iterable[n.Scan], catalog: Catalog
) -> dict[str, n.Scalar]:
    """Give for each scan the condition under which its rows do not move."""
    conditions: dict[str, n.Scalar] = {}
    for scan in scans:
        marked = protection.public_rows.get(scan.table.lower())
        if marked is not None:
            conditions[scan.alias] = _condition(marked, scan, policy, catalog)
    return conditions


def _condition(marked: PublicRows, scan: n.Scan, policy: Policy, catalog: Catalog) -> n.Scalar:
    condition = marked.condition
    if condition is None:
        assert marked.ids is not None
        assert marked.key is not None
        table, column = (f'"{name}"' for name in marked.ids)
        condition = f'"{marked.key}" IN (SELECT {column} FROM {table})'
    try:
        # Columns are read as they are stored; derived ones are refused below, since they move with others.
        stored = replace(catalog, derived={})
        plan = from_sql(f'SELECT 1 AS one FROM "{scan.table}" AS marked WHERE {condition}', stored)
    except SecantError:
        raise CannotBound(
            "derivative.rows",
            scan,
            f"public_rows of {scan.table} is not a condition on its columns",
            "correct public_rows in the policy",
        ) from None
    marked_scans = scans(plan)
    cells = [p for p in policy.protections if p.distance]
    others = tuple(p for p in policy.protections if p.kind != "cells")
    protected = frozenset(name for p in cells for name in space_of(p, marked_scans).variables)
    protected |= {
        f.name
        for s in marked_scans
        for f in s.columns
        if stored_column(s, f.name).lower() in catalog.derived.get(s.table.lower(), {})
    }
    # The table itself may belong to units as well: its rows stay here, whoever they belong to.
    inner = [s for s in marked_scans if s.alias != "marked"]
    filters = [f for f in n.walk(plan) if isinstance(f, n.Filter)]
    covered = any(is_protected(s.table.lower(), policy, others) for s in inner)
    if covered or not filters or any(_reads(f, protected) for f in filters):
        raise CannotBound(
            "derivative.rows",
            scan,
            f"public_rows of {scan.table} rests on protected values",
            "let public_rows read public columns only",
        )
    predicate = filters[0].predicate
    own: dict[str, n.Scalar] = {
        f"marked.{stored_column(scan, f.name)}": n.Column(f.name, f.type) for f in scan.columns
    }
    return total(substitute(predicate, own))


def _reads(relation: n.Filter, protected: frozenset[str]) -> bool:
    return not protected.isdisjoint(columns_read(relation))
