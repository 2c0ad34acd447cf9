"""Stage *open*: a session that sees one state of the data, and the public facts that are looked up there.

In: a plan, and a source under a policy. Out: a snapshot, for as long as a question takes. No protected row is read.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from secant.engines.backend import Backend, Session
from secant.plan import nodes as n
from secant.plan.facts.reads import scans
from secant.policy.policy import Policy
from secant.records import frozen
from secant.release.public_facts import public_facts
from secant.schema.catalog import Catalog
from secant.sensitivity.public_facts import PublicFacts


@frozen
class Source:
    """Where questions are asked: tables, what the owner says of them, and what names mean."""

    backend: Backend
    policy: Policy
    catalog: Catalog


@frozen
class Snapshot:
    """One state of the data: the session that will answer, what the owner says, and public facts."""

    session: Session
    policy: Policy
    catalog: Catalog
    facts: PublicFacts


@contextmanager
def open_snapshot(plan: n.Relation, source: Source) -> Iterator[Snapshot]:
    """Open a session in which all tables stay as they are that a plan may read."""
    # Keys, owners and public rows are looked up in tables that the query does not name, but the policy does.
    named = {*(s.table for s in scans(plan)), *source.policy.tables, *source.policy.public}
    with source.backend.session(named) as session:
        facts = public_facts(source.policy, session)
        yield Snapshot(session, source.policy, source.catalog, facts)
