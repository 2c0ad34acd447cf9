"""Powers are enclosed, exactly where that is easy; floats are never too small."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secant.errors import InternalError
from secant.numeric.interval import point
from secant.numeric.powers import float_above, power

BASES = st.fractions(Fraction(1, 10**6), 10**6, max_denominator=10**6)
EXPONENTS = st.fractions(-30, 30, max_denominator=12)


@given(BASES, EXPONENTS)
def test_a_root_taken_back_encloses_the_number(value, exponent):
    low, high = power(value, exponent).ends()
    whole = value**exponent.numerator
    assert low**exponent.denominator <= whole <= high**exponent.denominator
    assert high - low <= high / 2**80


@given(BASES, st.integers(-30, 30))
def test_whole_powers_are_exact(value, exponent):
    assert power(value, Fraction(exponent)) == point(value**exponent)


def test_edges():
    half = Fraction(1, 2)
    assert power(Fraction(0), half) == point(0)
    assert power(Fraction(0), Fraction(0)) == point(1)
    assert power(Fraction(1), Fraction(-7, 3)) == point(1)
    tiny = power(Fraction(1, 10**9), Fraction(10**7, 3))
    assert tiny.low == 0 < tiny.high < Fraction(1, 1 << 4000)


@pytest.mark.parametrize(("value", "exponent"), [(-1, 2), (0, -1)])
def test_what_has_no_power_is_a_bug_of_the_caller(value, exponent):
    with pytest.raises(InternalError):
        power(Fraction(value), Fraction(exponent))


@given(st.fractions())
def test_a_float_above_is_the_next_one(value):
    rounded = float_above(value)
    assert Fraction(rounded) >= value
    assert Fraction(math.nextafter(rounded, -math.inf)) < value


def test_floats_that_do_not_fit():
    assert float_above(Fraction(10) ** 400) == math.inf
    assert float_above(Fraction(-(10**400))) == -math.nextafter(math.inf, 0)
    assert float_above(Fraction(1, 10**400)) == math.nextafter(0, 1)
