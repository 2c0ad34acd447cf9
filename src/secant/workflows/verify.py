"""Check a release by its records: the chain, what the second program says, and whether question and policy still agree.

In: a ledger, a policy, a catalog, the name of a release. Out: a verdict, point by point. Spends nothing, reads no data.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from secant.errors import BudgetError, SecantError, UsageError
from secant.evidence import KINDS, digest, software
from secant.ledger.store import Ledger
from secant.policy.policy import Policy
from secant.release.evidence import plan_document, policy_document, read_parameters
from secant.schema.catalog import Catalog
from secant.sql.bind import bind
from secant.sql.query_context import query_context
from secant.verifier import QUESTION, STREAM, Point, Verdict, verify

LAST = "last"
"""Stands for the latest release."""
SHORTEST = 6
"""Characters of a release's name that name it, if no other one begins with them."""


def check_release(ledger: Ledger, policy: Policy, catalog: Catalog, release: str) -> Verdict:
    """Check one release."""
    try:
        end = ledger.verify()
        chain = Point("chain", "holds", f"{end.sequence} records, each bound to all before it")
    except BudgetError as error:
        return Verdict((Point("chain", "wrong", error.message),))
    record = _record(ledger, release)
    evidence = record.get("papers", {})
    bodies = {k: body for k in KINDS if (body := ledger.paper(evidence.get(k, ""))) is not None}
    verdict = verify(record, bodies)
    points = [chain, *verdict.points]
    if len(bodies) == len(KINDS) and verdict.points[0].outcome == "holds":
        kind = json.loads(bodies["certificate"]).get("kind", QUESTION)
        if kind in (QUESTION, STREAM):  # statistics and black boxes have neither text nor tables
            points += [_planned(bodies, evidence, catalog), _policy(evidence, policy, catalog)]
    return replace(verdict, points=tuple(points))


def _record(ledger: Ledger, release: str) -> dict[str, Any]:
    reserved = [r.fields for r in ledger.records() if '"kind":"reserve"' in r.body]
    if release == LAST and reserved:
        return reserved[-1]
    named = [f for f in reserved if f["release"].startswith(release)]
    exact = [f for f in named if f["release"] == release]
    if len(exact or named) != 1 or len(release) < SHORTEST:
        raise UsageError(
            "USE-001",
            "there is no such release in the ledger, or the beginning of its name is not enough",
            hint="see `secant ledger --history`",
        )
    return (exact or named)[0]


def _planned(bodies: dict[str, str], evidence: dict[str, str], catalog: Catalog) -> Point:
    """Plan the text again."""
    about = "plan"
    question = json.loads(bodies["text"])
    try:
        with query_context(question["text"]):
            parameters = read_parameters(question["parameters"])
            plan = bind(question["text"], catalog, parameters)
            same = digest(plan_document(plan)) == evidence["plan"]
    except SecantError as error:
        return Point(about, "not known", f"the text is not planned any more ({error.code})")
    if same:
        return Point(about, "holds", "the text gives the same plan again")
    if evidence["software"] != software():
        return Point(
            about, "not known", f"Secant {evidence['software']} planned it, this is another"
        )
    return Point(about, "not known", "the text gives another plan now: tables have changed")


def _policy(evidence: dict[str, str], policy: Policy, catalog: Catalog) -> Point:
    """Say whether the policy is still the one of the release; the release was checked by its own in any case."""
    same = digest(policy_document(policy, catalog)) == evidence["policy"]
    description = (
        "the policy is the same now" if same else "checked by its own policy; it is another now"
    )
    return Point("policy", "holds", description)
