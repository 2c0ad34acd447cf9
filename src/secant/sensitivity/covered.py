"""Every table that a query reads is covered by a protection in force, or named public (I3).

In: a plan, the policy and the protections that hold for this query. Out: nothing, or a refusal. An analyst who chooses
among alternatives leaves protections out; what only those cover is not shown to anybody under another's name.
"""

from __future__ import annotations

from secant.errors import PolicyError, Refused
from secant.plan import nodes as n
from secant.plan.facts.lineage import stored_column
from secant.plan.facts.reads import scans
from secant.policy.coverage import is_protected
from secant.policy.fit import elements_of
from secant.policy.policy import Policy, Protection
from secant.sensitivity.derivative.space import space_of


def refuse_uncovered(
    plan: n.Relation, policy: Policy, protections: tuple[Protection, ...], read: frozenset[str]
) -> None:
    """Refuse a plan that reads what no protection in force covers and the owner did not name public.

    `read` are the columns that the plan reads: of a table whose values move, the others are public.
    """
    chosen = {p.name for p in protections}
    left_out = tuple(p for p in policy.protections if p.name not in chosen)
    for scan in scans(plan):
        table = scan.table.lower()
        _refuse_elements(scan, table, policy)
        owners = [p.name for p in left_out if is_protected(table, policy, (p,))]
        if not is_protected(table, policy, protections):
            if owners:
                raise _not_chosen(scan, table, owners)
            if table not in policy.public:
                raise PolicyError(
                    "POL-005",
                    f"{table} is neither protected nor named public",
                    span=scan.span,
                    hint="the data owner decides: a protection that covers it, or public = [...]",
                )
        elif not is_protected(table, policy, (p for p in protections if p.kind != "cells")):
            visible = {name for p in protections for name in space_of(p, (scan,)).variables}
            for p in left_out:
                lost = (set(space_of(p, (scan,)).variables) & read) - visible
                if lost:
                    column = stored_column(scan, min(lost))
                    raise _not_chosen(scan, f"{table}.{column}", [p.name])


def _refuse_elements(scan: n.Scan, table: str, policy: Policy) -> None:
    """Refuse elements of arrays as rows, unless whole units are hidden: a row has as many of them as it likes."""
    base = elements_of(table)
    hiding = [] if base is None else [p for p in policy.protections if p.kind != "unit"]
    if any(is_protected(str(base), policy, (p,)) for p in hiding):
        raise Refused(
            "REF-101",
            f"{table} are as many rows as an array has elements, and {base} is protected row by row",
            span=scan.span,
            hint="ask for the length of the array, or for 'x' = ANY(array)",
        )


def _not_chosen(scan: n.Scan, what: str, owners: list[str]) -> Refused:
    return Refused(
        "REF-105",
        f"{what} is protected by {' and '.join(owners)}, which was not chosen",
        span=scan.span,
        hint=f"ask with the protection {owners[0]}, or leave {what} out",
    )
