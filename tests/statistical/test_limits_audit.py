"""Audit of limits that are chosen, each with the number behind it; noise of half the size is caught."""

from __future__ import annotations

from fractions import Fraction

from auditing import Case, check_audit

from secant.noise.mechanisms.discrete_laplace import add_discrete_laplace
from secant.noise.mechanisms.limits import choose_limit
from secant.noise.mechanisms.matching import assignable, choose_assigned

LIMITS = (1, 4, 16)
CHOOSING, NOISING = Fraction(1, 2), Fraction(3, 2)
CROWD = (1,) * 9 + (5, 5)


def released(units: tuple[int, ...], size: Fraction) -> str:
    """Give the limit and the noisy number behind it."""
    above = [sum(x > limit for x in units) for limit in LIMITS]
    limit = choose_limit(LIMITS, above, CHOOSING, NOISING, 1)
    total = sum(min(x, limit) for x in units)
    (noisy,) = add_discrete_laplace([total], scale=size * limit / NOISING)
    return f"{limit} {noisy // 4}"


def test_a_chosen_limit_and_its_number_keep_their_epsilon():
    with_heavy = (*CROWD, 20)
    usual, half = Fraction(1), Fraction(1, 2)
    check_audit(
        Case(
            "chosen limit",
            float(CHOOSING + NOISING),
            0.0,
            lambda: released(with_heavy, usual),
            lambda: released(CROWD, usual),
            lambda: released(with_heavy, half),
            lambda: released(CROWD, half),
            8000,
        )
    )


SHARED = ((1, "a"), (2, "a"), (2, "b"), (3, "b"), (3, "c"))
OWN = tuple((9, f"own {i}") for i in range(16))


def assigned(pairs: tuple[tuple[int, str], ...], size: Fraction) -> str:
    """Give the limit and the noisy number of values that can be assigned."""
    _, numbers, _ = assignable(pairs, LIMITS)
    limit = choose_assigned(LIMITS, numbers, CHOOSING, NOISING)
    number = numbers[LIMITS.index(limit)]
    (noisy,) = add_discrete_laplace([number], scale=size * limit / NOISING)
    return f"{limit} {noisy // 4}"


def test_values_that_are_assigned_keep_their_epsilon():
    usual, half = Fraction(1), Fraction(1, 2)
    check_audit(
        Case(
            "assigned values",
            float(CHOOSING + NOISING),
            0.0,
            lambda: assigned((*SHARED, *OWN), usual),
            lambda: assigned(SHARED, usual),
            lambda: assigned((*SHARED, *OWN), half),
            lambda: assigned(SHARED, half),
            8000,
        )
    )
