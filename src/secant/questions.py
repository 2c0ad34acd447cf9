"""What a question is asked with: its numbers, the protections that hold, and the words in which it is refused.

In: what a caller wrote, a policy, what the analyses said. Out: records and errors. Nothing is read or spent here.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from secant.accuracy.target_error import Wanted, wanted_of
from secant.accuracy.warnings import Caution
from secant.errors import PolicyError, Refused, Span, UsageError
from secant.ledger.amounts import DELTA_UNITS, Charge, as_written
from secant.ledger.opening import Accounts
from secant.noise.shares import NoisePlan
from secant.numeric.parameters import delta_of, epsilon_of, level_of
from secant.plan import nodes as n
from secant.policy.coverage import holding
from secant.policy.policy import Policy, Protection
from secant.records import frozen
from secant.release.answer import Answer
from secant.release.release_plan import ReleasePlan
from secant.release.report import guarantee, mechanisms
from secant.release.run import Result, error_of
from secant.schema.catalog import Catalog
from secant.sensitivity import explain as wording
from secant.sensitivity.certificate import Refusal
from secant.sensitivity.portfolio import Decomposition, PublicFacts, RawRows, prepare

if TYPE_CHECKING:
    from secant.attack import Attacker

Number = float | int | str | Decimal | Fraction


@frozen
class Question:
    """The numbers of a question: an epsilon, or an error from which one is found."""

    epsilon: Fraction | None
    error: Wanted | None
    attacker: Attacker | None
    deltas: dict[str, Fraction]
    level: Fraction
    protections: tuple[Protection, ...]
    data: str = ""
    """Names the version of the data, for the papers of the release; empty where nothing tells it."""


def asked_of(
    policy: Policy,
    epsilon: Number | None,
    error: Number | None,
    delta: Number | None,
    level: Number,
    protection: str | None,
    attacker: str | None = None,
) -> Question:
    """Read the numbers of a question."""
    aim = None
    if attacker is not None:
        from secant.attack import (
            parse_attacker,  # thirteen modules that other questions do not need
        )

        aim = parse_attacker(attacker)
    if None not in (epsilon, error) or (epsilon is None and error is None and aim is None):
        given = "neither epsilon nor error is given"
        raise UsageError(
            "USE-002",
            given if error is None else "epsilon and error are both given",
            hint="give epsilon, such as 0.5, or an error, such as 20, for which the least epsilon is found",
        )
    confidence = level_of(as_written(level, what="level", code="USE-004"))
    held = protections_in_force(policy, protection)
    wanted = None if error is None else wanted_of(error, "error")
    budget = None
    if epsilon is not None:
        budget = epsilon_of(as_written(epsilon, what="epsilon", code="USE-002"))
    return Question(budget, wanted, aim, deltas_of(held, delta), confidence, held)


def deltas_of(protections: tuple[Protection, ...], delta: Number | None) -> dict[str, Fraction]:
    """Give what a question may spend of each δ: a hundredth of all, if nothing else is asked for.

    Less than the ledger counts is none: rounded up, the first question would cost more than there is.
    """
    if delta is None:
        shares = {p.name: p.delta / 100 for p in protections}
        return {name: x if x * DELTA_UNITS >= 1 else Fraction(0) for name, x in shares.items()}
    asked = delta_of(as_written(delta, what="delta", code="USE-003"))
    return {p.name: asked for p in protections}


def named_protection(policy: Policy, name: str) -> Protection:
    """Give the protection of a name, or say which there are."""
    found = policy.protection(name)
    if found is None:
        known = ", ".join(p.name for p in policy.protections)
        raise UsageError("USE-005", f"there is no protection {name!r}", hint=f"there are: {known}")
    return found


def protections_in_force(policy: Policy, chosen: str | None) -> tuple[Protection, ...]:
    """All protections hold together; among declared alternatives a query may choose one."""
    if not policy.protections:
        raise PolicyError(
            "POL-003", "the policy protects nothing", hint="add a [protections.NAME] section"
        )
    if chosen is None:
        return policy.protections
    if chosen not in policy.alternatives:
        if policy.protection(chosen) is None:
            wrong = f"there is no protection {chosen!r}"
        else:
            wrong = f"{chosen} is not an alternative: all protections of the policy hold together"
        others = ", ".join(policy.alternatives)
        hint = f"choose among {others}" if others else "leave it out"
        raise UsageError(
            "USE-005", wrong, hint=f"{hint}; the data owner can list others under `alternatives`"
        )
    return holding(policy, chosen)


def prepared_of(
    text: str,
    plan: n.Relation,
    policy: Policy,
    protections: tuple[Protection, ...],
    catalog: Catalog,
    facts: PublicFacts,
) -> Decomposition:
    """Give the bounded releases of a plan, or raise why there are none."""
    outcome = prepare(plan, policy, protections, catalog, facts)
    if isinstance(outcome, Decomposition):
        return outcome
    raise refusal_of(outcome, text)


def refusal_of(outcome: RawRows | tuple[Refusal, ...], text: str) -> Refused:
    """Say why no analysis bounds a question, and what stands in the way first."""
    if isinstance(outcome, RawRows):
        return Refused(
            "REF-102",
            f"the query shows rows of the protected table {outcome.scan.table}",
            text=text,
            span=outcome.scan.span,
            hint="ask for counts, sums or averages instead",
        )
    first = outcome[0]
    place = getattr(first.node, "span", None)
    return Refused(
        "REF-101",
        "this query cannot be made private as written",
        text=text,
        span=place if isinstance(place, Span) else None,
        details=tuple(dict.fromkeys(wording.refusal_line(r) for r in outcome)),
        hint=first.hint,
    )


def charges_of(noise: NoisePlan) -> list[Charge]:
    """Give what is charged for the noise of a question, protection by protection."""
    return [
        Charge.of_event(name, event)
        for name, cost in noise.paid.items()
        if (event := cost.event) is not None
    ]


def note_of(job: ReleasePlan) -> dict[str, Any]:
    """What the ledger keeps of a release: the shape, never the answer."""
    found = [len(b.release.measures) + len(b.release.ranked) for b in job.prepared.bounded]
    return {"measures": sum(found)}


def answer_of(
    shown: Result,
    job: ReleasePlan,
    policy: Policy,
    protections: tuple[Protection, ...],
    said: tuple[Caution, ...],
    release_id: str | None,
    left: Accounts,
) -> Answer:
    """Put together what an analyst gets."""
    uncovered = [p.name for p in policy.protections if p not in protections]
    return Answer(
        columns=list(shown.columns),
        rows=shown.rows,
        guarantee=[guarantee(p, job.noise, uncovered) for p in protections],
        error=error_of(shown, job),
        mechanisms=mechanisms(job, shown.settled),
        budget=left,
        release_id=release_id,
        warnings=said,
        raw=shown.rows if shown.raw is None else shown.raw,
    )
