"""Public facts that steer a release, looked up in the session that will answer it.

In: a session. Out: counts, ends and fans of public columns, as the analyses ask for them. Within a session each is
looked up once, since its data do not change; nothing is kept beyond it, since the next question may see other data.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache

from secant.analysis.portfolio import PublicFacts
from secant.plan import nodes as n
from secant.plan.expected import expected_rows
from secant.plan.ranges import as_number
from secant.release.backend import Session
from secant.release.dialect import quote
from secant.terms.coverage import is_protected
from secant.terms.norms import columns_of, parse_norm
from secant.terms.policy import Policy


def _is_public(policy: Policy, table: str, columns: tuple[str, ...] = ()) -> bool:
    """Whether no protection of the policy, chosen or not, covers the table's rows or names one of the columns."""
    rows = tuple(p for p in policy.protections if p.kind != "cells")
    norms = [p.distance[table] for p in policy.protections if table in p.distance]
    named = {c for norm in norms for c in columns_of(parse_norm(norm))}
    return not is_protected(table, policy, rows) and named.isdisjoint(columns)


def public_facts(policy: Policy, session: Session) -> PublicFacts:
    """Give what may steer how useful a release is; None wherever a protection covers what would be looked at.

    For an epsilon of 1; `at` gives the same facts for another one, and nothing is looked up twice.
    """

    @cache
    def count(table: str) -> int | None:
        if not _is_public(policy, table):
            return None
        name, _ = session.catalog().spelled(table)
        ((found,),) = session.rows(f"SELECT count(*) FROM {quote(name)}")
        return found if isinstance(found, int) else None

    @cache
    def fan(table: str, columns: tuple[str, ...]) -> int | None:
        if not columns:
            return count(table)
        if not _is_public(policy, table, columns):
            return None
        name, exact = session.catalog().spelled(table, columns)
        names = ", ".join(quote(c) for c in exact)
        ((found,),) = session.rows(
            f"SELECT max(n) FROM (SELECT count(*) AS n FROM {quote(name)} GROUP BY {names}) AS counted"
        )
        return found if isinstance(found, int) else None

    @cache
    def ends(table: str, column: str) -> tuple[Fraction, Fraction] | None:
        if not _is_public(policy, table, (column,)):
            return None
        name, (exact,) = session.catalog().spelled(table, [column])
        ((low, high),) = session.rows(
            f"SELECT min({quote(exact)}), max({quote(exact)}) FROM {quote(name)}"
        )
        first, last = as_number(low), as_number(high)
        return None if first is None or last is None else (first, last)

    def rows(relation: n.Relation) -> int | None:
        return expected_rows(relation, policy, count)

    return PublicFacts(rows=rows, ends=ends, count=count, fan=fan)
