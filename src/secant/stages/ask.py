"""Stage *ask*: the text, numbers, protections and parameters of a question.

In: what a caller wrote, and a policy. Out: a question, or an error of usage. Nothing is read or spent here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING

from secant.accuracy.target_error import TargetError, target_of
from secant.errors import PolicyError, UsageError
from secant.ledger.amounts import DELTA_UNITS, as_written
from secant.numeric.parameters import delta_of, epsilon_of, level_of
from secant.policy.coverage import holding
from secant.policy.policy import CERTAIN, KNOWN_BEFOREHAND, Policy, Protection
from secant.records import frozen
from secant.sql.parameters import Parameters

if TYPE_CHECKING:
    from secant.attack import Attacker

Number = float | int | str | Decimal | Fraction


@frozen
class Question:
    """What is asked: a text, and an epsilon, or an error or an attacker from which one is found."""

    text: str
    parameters: Parameters | None
    epsilon: Fraction | None
    error: TargetError | None
    attacker: Attacker | None
    most: TargetError | None
    """The largest error that is allowed; None where all are."""
    deltas: Mapping[str, Fraction]
    level: Fraction
    protections: tuple[Protection, ...]
    """Those that hold."""
    analyst: str = ""
    data: str = ""
    """Names the version of the data, for the evidence of the release; empty where nothing tells it."""
    certain: bool = False
    """Whether ends are asked for that hold for every database."""

    @property
    def planned(self) -> tuple[Protection, ...]:
        """Give the protections, with limits chosen so that errors are known beforehand, or certain, if they must be."""
        if not (self.thorough or self.certain):
            return self.protections
        instead = CERTAIN if self.certain else KNOWN_BEFOREHAND
        return tuple(
            replace(p, truncation=instead.get(p.truncation, p.truncation)) for p in self.protections
        )

    @property
    def thorough(self) -> bool:
        """Whether something depends on errors, so that all of them are worked out."""
        return self.most is not None or self.error is not None


def ask(
    text: str,
    policy: Policy,
    *,
    parameters: Parameters | None = None,
    epsilon: Number | None = None,
    error: Number | None = None,
    max_error: Number | None = None,
    attacker: str | None = None,
    delta: Number | None = None,
    level: Number = 0.95,
    protection: str | None = None,
    analyst: str = "",
    data: str = "",
    certain: bool = False,
) -> Question:
    """Read the text, the numbers and the protections of a question."""
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
    target = None if error is None else target_of(error, "error")
    amount = None
    if epsilon is not None:
        amount = epsilon_of(as_written(epsilon, what="epsilon", code="USE-002"))
    deltas = deltas_of(held, delta)
    most = None if max_error is None else target_of(max_error, "max_error")
    return Question(
        text,
        parameters,
        amount,
        target,
        aim,
        most,
        deltas,
        confidence,
        held,
        analyst,
        data,
        certain,
    )


def deltas_of(protections: tuple[Protection, ...], delta: Number | None) -> dict[str, Fraction]:
    """Give what a question may spend of each δ: a hundredth of all, if nothing else is asked for.

    Less than the ledger counts is none: rounded up, the first question would cost more than there is.
    """
    if delta is None:
        shares = {p.name: p.delta / 100 for p in protections}
        return {name: x if x * DELTA_UNITS >= 1 else Fraction(0) for name, x in shares.items()}
    value = delta_of(as_written(delta, what="delta", code="USE-003"))
    return {p.name: value for p in protections}


def named_protection(policy: Policy, name: str) -> Protection:
    """Give the protection of a name, or say which there are."""
    result = policy.protection(name)
    if result is None:
        names = ", ".join(p.name for p in policy.protections)
        raise UsageError("USE-005", f"there is no protection {name!r}", hint=f"there are: {names}")
    return result


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
