"""From what an attacker may guess to the epsilon of a question, and back (attack.inverse).

In: an attacker with what is allowed, the protections in force, what was charged before, and a way to compile the
question at an epsilon. Out: the largest epsilon that keeps to it, or a refusal before anything is spent. Never: data.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from math import floor

from secant.attack import (
    Attacker,
    Charged,
    allowed_epsilon,
    attack_lines,
    attack_report,
    parse_attacker,
)
from secant.errors import Refused, UsageError
from secant.ledger.amounts import DELTA_UNITS, EPSILON_UNITS
from secant.ledger.store import Ledger
from secant.numeric.parameters import EPSILON_SMALLEST
from secant.policy.policy import Policy, Protection
from secant.records import frozen
from secant.release.release_plan import ReleasePlan
from secant.release.report import Explanation
from secant.schema.catalog import Catalog

TRIES = 5
"""Costs are proportional to epsilon but for choices of laws, which may change on the way."""


def charged_before(ledger: Ledger) -> dict[str, Charged]:
    """Give what all releases so far were charged, by protection.

    Sums since the beginning, also of a budget that comes back: answers are not forgotten. What a tighter composition
    prints as spent so far depends on the answers and is no promise; only its budget is (attack.read).
    """
    charged = {}
    for name, balance in ledger.balances().items():
        summed = balance.lifetime
        charged[name] = Charged(
            Fraction(summed.epsilon, EPSILON_UNITS),
            Fraction(summed.delta, DELTA_UNITS),
            Fraction(summed.gamma, DELTA_UNITS),
        )
    return charged


@frozen
class GuessLimit:
    """What somebody may guess at the most, and what was charged so far."""

    attacker: Attacker
    policy: Policy
    protections: Sequence[Protection]
    catalog: Catalog
    charged: Mapping[str, Charged]


def within_allowance(limit: GuessLimit, at: Callable[[Fraction], ReleasePlan]) -> Fraction:
    """Give the largest epsilon of a question that lets nobody guess more than is allowed."""
    epsilon = Fraction(1)
    for _ in range(TRIES):
        job = at(epsilon)
        most = _most(limit, job)
        if most is None:
            raise UsageError(
                "USE-002",
                "the question tells this attacker nothing, so no epsilon follows from it",
                hint="give epsilon",
            )
        largest = min(most * epsilon, Fraction(1_000))
        largest = Fraction(floor(largest * EPSILON_UNITS), EPSILON_UNITS)
        if largest < EPSILON_SMALLEST:
            raise _nothing_left(limit)
        if largest == epsilon:
            return epsilon
        epsilon = largest
        if keeps(limit, at(epsilon)):
            return epsilon
    raise Refused("REF-107", "no epsilon was found that keeps to what may be guessed")


def keeps(limit: GuessLimit, job: ReleasePlan) -> bool:
    """Whether a release, after all before it, lets nobody guess more than is allowed."""
    most = _most(limit, job)
    return most is None or most >= 1


def refuse_beyond(limit: GuessLimit, job: ReleasePlan) -> None:
    """Refuse to spend where more could be guessed than is allowed."""
    if not keeps(limit, job):
        raise _nothing_left(limit)


def _most(limit: GuessLimit, job: ReleasePlan) -> Fraction | None:
    """Give by which factor a job's cost may grow, over all protections; None if without end."""
    factors = []
    for protection in limit.protections:
        epsilon, delta = job.noise.costs.get(protection.name, (Fraction(0), Fraction(0)))
        if not epsilon and not delta:
            continue
        left = allowed_epsilon(
            limit.attacker,
            limit.policy,
            protection,
            limit.catalog,
            reads=job.reads,
            delta=delta,
            charged=limit.charged.get(protection.name),
        )
        if left is not None:
            factors.append(left / epsilon if epsilon else Fraction(int(left > 0)))
    return min(factors, default=None)


def _nothing_left(limit: GuessLimit) -> Refused:
    return Refused(
        "REF-107",
        f"more could be guessed than is allowed: {limit.attacker.allowed}",
        hint="nothing was spent: `secant explain --attacker` shows which epsilon is left",
    )


def with_attacker(
    explanation: Explanation,
    attacker: str,
    policy: Policy,
    catalog: Catalog,
    job: ReleasePlan,
    charged: Mapping[str, Charged] | None,
) -> Explanation:
    """Add to an explanation what the answer would let somebody guess."""
    aim = parse_attacker(attacker)
    guarantee = explanation.record["guarantee"]
    report = attack_report(aim, policy, guarantee, catalog, reads=job.reads, charged=charged)
    text = "\n".join([explanation.text, *attack_lines(aim, report)])
    return replace(explanation, text=text, record={**explanation.record, "attacker": report})
