"""What is guessed against ε: points of the bounds of a report, for a picture.

In: an attacker and a policy. Out: for each protection and question the chance before, and bounds at many ε. Points are
of the same bounds that a report tells; no data is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from secant.attack.attacker import questions_of
from secant.attack.chances import Amount, Chance
from secant.attack.goals import Attacker, parse_attacker
from secant.policy.policy import Policy, Protection
from secant.records import frozen
from secant.schema.catalog import Catalog


@frozen
class GuessCurve:
    """Bounds of one guess, by the ε of all answers together."""

    protection: str
    guesses: str
    points: tuple[tuple[float, Chance], ...]


def guess_curves(
    attacker: str | Attacker,
    policy: Policy,
    protections: Sequence[Protection],
    catalog: Catalog | None,
    epsilons: Sequence[Fraction],
) -> list[GuessCurve]:
    """Give the bounds of every guess that a protection leaves, at each ε."""
    aim = parse_attacker(attacker) if isinstance(attacker, str) else attacker
    return [
        GuessCurve(
            protection.name,
            question.guesses,
            tuple((float(e), question.bound([Amount(e)])) for e in epsilons),
        )
        for protection in protections
        for question in questions_of(aim, policy, protection, catalog)
        if question.guesses != "nothing"
    ]
