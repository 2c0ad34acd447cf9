"""Balls enclose, ends round outward, questions are decided."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import pytest
from flint import arb

from secant.errors import InternalError
from secant.numeric.ball import (
    ball,
    ceiling,
    decide,
    dyadic_interval,
    interval,
    lower,
    upper,
    working_precision,
)


@pytest.mark.parametrize("value", [Fraction(1, 3), Fraction(-22, 7), Fraction(0), 5, 2**300 + 1])
@pytest.mark.parametrize("bits", [16, 64, 500])
def test_a_ball_holds_its_number(value: Fraction, bits: int) -> None:
    with working_precision(bits):
        enclosure = ball(value)
        assert lower(enclosure) <= value <= upper(enclosure)


def test_ends_are_exact_and_outward() -> None:
    with working_precision(40):
        root = arb(2).sqrt()
    with mpmath.workdps(60):
        truth = Fraction(str(mpmath.sqrt(2)))
    assert lower(root) < truth < upper(root)
    assert upper(root) - lower(root) < Fraction(1, 2**36)


@pytest.mark.parametrize("sign", [1, -1])
def test_ends_that_are_too_small_to_write_down_stay_outward(sign: int) -> None:
    tiny = arb(-(10**9)).exp() * sign
    assert lower(tiny) <= 0 <= upper(tiny) or (sign > 0 and lower(tiny) >= 0)
    assert upper(tiny) - lower(tiny) > 0
    assert upper(tiny) < Fraction(1, 2**1000)
    assert lower(tiny) > -Fraction(1, 2**1000)


def test_a_dyadic_interval_holds_both_ends() -> None:
    with working_precision(30):
        cell = dyadic_interval(5, 3)
        assert lower(cell) <= Fraction(5, 8)
        assert upper(cell) >= Fraction(6, 8)
        assert upper(cell) - lower(cell) < Fraction(1, 8) + Fraction(1, 2**20)


def test_an_interval_holds_its_ends() -> None:
    wide = interval(Fraction(1, 3), Fraction(2, 3))
    assert lower(wide) <= Fraction(1, 3)
    assert upper(wide) >= Fraction(2, 3)


@pytest.mark.parametrize(
    ("value", "expected"),
    [(Fraction(7, 2), 4), (Fraction(-7, 2), -3), (Fraction(10**40, 3), 10**40 // 3 + 1)],
)
def test_a_ceiling_between_whole_numbers(value: Fraction, expected: int) -> None:
    assert ceiling(lambda: ball(value)) == expected


def test_a_ceiling_at_a_whole_number_is_never_too_small() -> None:
    # exp(ln 5) is 5, and no precision can tell it from its neighbors
    assert ceiling(lambda: arb(5).log().exp()) in (5, 6)


def test_decide_refines_until_there_is_an_answer() -> None:
    seen: list[int] = []

    def attempt(bits: int) -> str | None:
        seen.append(bits)
        return "done" if bits >= 256 else None

    assert decide(attempt, 64) == "done"
    assert seen == [64, 128, 256]


def test_a_question_without_an_answer_is_our_fault() -> None:
    with pytest.raises(InternalError):
        decide(lambda _: None, 1 << 20)
