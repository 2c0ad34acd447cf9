"""What a question allows: from the error or the attacker that it names to its epsilon, and to a refusal.

In: a question, and its release plan at any epsilon. Out: one epsilon. Reads public data only; nothing is spent here.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING

from secant.accuracy.forecast import Forecast, forecast
from secant.accuracy.target_error import least_epsilon, meets_target, refuse_above
from secant.errors import Refused
from secant.release.release_plan import ReleasePlan
from secant.runtime.work import limited_work
from secant.stages.ask import Question
from secant.stages.open import Snapshot

if TYPE_CHECKING:
    from secant.ledger.store import Ledger
    from secant.stages.guess_limit import GuessLimit


def find_epsilon(
    question: Question,
    at: Callable[[Fraction], ReleasePlan],
    snapshot: Snapshot,
    ledger: Callable[[], Ledger],
) -> Fraction:
    """Give the epsilon that is given, the least that reaches an error, or the largest that an attacker is allowed."""
    if question.epsilon is not None:
        return question.epsilon
    if question.error is None:
        from secant.stages.guess_limit import within_allowance

        return within_allowance(guess_limit(question, snapshot, ledger), at)
    error = question.error

    def reaches(epsilon: Fraction) -> bool:
        """Whether the error that is wanted is reached."""
        try:
            release = at(epsilon)
        except Refused as refusal:
            if refusal.code != "REF-104":  # too small for a smooth bound: a larger one may do
                raise
            return False
        with limited_work():
            known = forecast(release, snapshot.session, snapshot.policy, snapshot.facts)
        return meets_target(known, error.most(release, known, snapshot.policy, snapshot.facts))

    return least_epsilon(reaches)


def refuse_not_allowed(
    question: Question,
    release: ReleasePlan,
    known: Forecast,
    snapshot: Snapshot,
    ledger: Callable[[], Ledger],
) -> None:
    """Refuse to spend where an error is larger, or more could be guessed, than the question allows."""
    if question.most is not None:
        most = question.most.most(release, known, snapshot.policy, snapshot.facts)
        refuse_above(known, most)
    if question.attacker is not None:
        from secant.stages.guess_limit import refuse_beyond

        refuse_beyond(guess_limit(question, snapshot, ledger), release)


def guess_limit(question: Question, snapshot: Snapshot, ledger: Callable[[], Ledger]) -> GuessLimit:
    """Give what the attacker of a question may guess, who knows all answers so far."""
    from secant.stages.guess_limit import (  # attackers are rarely spoken of
        GuessLimit,
        charged_before,
    )

    assert question.attacker is not None
    charged = charged_before(ledger())
    attacker, protections = question.attacker, question.protections
    return GuessLimit(attacker, snapshot.policy, protections, snapshot.catalog, charged)
