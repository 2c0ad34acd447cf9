"""A mechanism at two neighboring inputs, and the same with half of its noise.

The audit must find no ratio above e^ε (+ δ) in the first and must find one in the second; false
alarms have probability 1e-9 at most.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from judging import draws, violation

from secant.sensitivity.bounds import GlobalBound

GRID = Fraction(1, 64)
ONE = GlobalBound(Fraction(1))
SCORE = GlobalBound(Fraction(1), "linf")


@dataclass(frozen=True)
class Case:
    """A mechanism at two neighbors, and the same with half of the noise."""

    name: str
    epsilon: float
    delta: float
    one: Callable[[], Any]
    two: Callable[[], Any]
    half_one: Callable[[], Any]
    half_two: Callable[[], Any]
    count: int = 8000


def check_audit(case: Case) -> None:
    """Hold a mechanism to its guarantee, and the audit to catching the planted fault."""
    count = draws(case.count // 2, 10 * case.count)
    one = [case.one() for _ in range(count)]
    two = [case.two() for _ in range(count)]
    assert violation(one, two, case.epsilon, case.delta) <= 0
    assert violation(two, one, case.epsilon, case.delta) <= 0
    half_one = [case.half_one() for _ in range(case.count)]
    half_two = [case.half_two() for _ in range(case.count)]
    caught = max(
        violation(half_one, half_two, case.epsilon, case.delta),
        violation(half_two, half_one, case.epsilon, case.delta),
    )
    assert caught > 0
