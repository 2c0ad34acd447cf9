"""Stage *reserve*: evidence is written and the charge is held, before the first statement is sent (I6).

In: a question and its release plan. Out: a reservation, which keeps what was sent paid for. Never here: data.
"""

from __future__ import annotations

from typing import Any

from secant.ledger.amounts import Charge
from secant.ledger.reserve import Reservation
from secant.ledger.store import Ledger
from secant.noise.calibrate import NoisePlan
from secant.plan import nodes as n
from secant.release.evidence import evidence_of
from secant.release.release_plan import ReleasePlan
from secant.stages.ask import Question
from secant.stages.open import Snapshot


def reserve(
    question: Question,
    plan: n.Relation,
    release: ReleasePlan,
    snapshot: Snapshot,
    ledger: Ledger,
) -> Reservation:
    """Write down what a release does, and hold its price in all protections, or raise."""
    declared = (snapshot.policy, snapshot.catalog)
    asked = (question.text, question.parameters)
    evidence = evidence_of(asked, plan, release, declared, question.protections, question.data)
    charges, note = charges_of(release.noise), note_of(release)
    return ledger.reserve(charges, analyst=question.analyst, note=note, evidence=evidence)


def charges_of(noise: NoisePlan) -> list[Charge]:
    """Give what is charged for the noise of a question, protection by protection."""
    return [
        Charge.of_event(name, event)
        for name, cost in noise.paid.items()
        if (event := cost.event) is not None
    ]


def note_of(job: ReleasePlan) -> dict[str, Any]:
    """What the ledger keeps of a release: the shape, never the answer."""
    counts = [len(b.release.measures) + len(b.release.ranked) for b in job.prepared.bounded]
    return {"measures": sum(counts)}
