"""Quick fractions are the standard library's in everything but time."""

import copy
import operator
import pickle
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secant.numeric.quick import QuickFraction, quick, ratio
from secant.plan.serialize import plain_value

FRACTIONS = st.fractions(max_denominator=10**9) | st.sampled_from(
    [Fraction(0), Fraction(1), Fraction(-1), Fraction(1, 2**60), Fraction(2**200, 3)]
)
OTHERS = FRACTIONS | st.integers() | st.sampled_from([0, 1, -1])
EXACT = (operator.add, operator.sub, operator.mul, operator.truediv)
COMPARED = (operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne)


def _sound(found):
    assert type(found) is QuickFraction
    assert found.denominator > 0
    plain = Fraction(found.numerator, found.denominator)
    assert (plain.numerator, plain.denominator) == (found.numerator, found.denominator)
    return plain


@pytest.mark.parametrize("operation", EXACT)
@given(FRACTIONS, OTHERS)
def test_sums_products_and_quotients_are_the_same(operation, value, other):
    for left, right in ((value, other), (other, value)):
        pairs = [(quick(left), quick(right))]
        pairs.append((quick(left), right) if left is value else (left, quick(right)))
        for a, b in pairs:
            try:
                wanted = operation(Fraction(left), Fraction(right))
            except ZeroDivisionError:
                with pytest.raises(ZeroDivisionError):
                    operation(a, b)
            else:
                assert _sound(operation(a, b)) == wanted


@pytest.mark.parametrize("operation", COMPARED)
@given(FRACTIONS, OTHERS | st.floats(allow_nan=True))
def test_comparisons_are_the_same(operation, value, other):
    wanted = operation(value, other), operation(other, value)
    assert (operation(quick(value), other), operation(other, quick(value))) == wanted
    if not isinstance(other, float):
        assert operation(quick(value), quick(other)) == wanted[0]
    assert operation(quick(value), quick(value)) == operation(value, value)


@given(FRACTIONS)
def test_one_number_is_the_same_in_all_that_it_says(value):
    found = quick(value)
    assert _sound(-found) == -value
    assert _sound(+found) == value
    assert _sound(abs(found)) == abs(value)
    assert (float(found), bool(found), hash(found)) == (float(value), bool(value), hash(value))
    assert (repr(found), str(found)) == (repr(value), str(value))
    assert _sound(pickle.loads(pickle.dumps(found))) == value
    assert copy.copy(found) is copy.deepcopy(found) is found
    assert found**2 == value**2
    assert found // 3 == value // 3
    assert round(found) == round(value)


@given(FRACTIONS, st.floats(-1e100, 1e100))
def test_beside_floats_it_becomes_a_float(value, other):
    assert quick(value) + other == value + other
    assert other - quick(value) == other - value
    assert quick(value) * other == value * other
    if value:
        assert other / quick(value) == other / value


@given(st.integers() | st.floats(allow_nan=False, allow_infinity=False) | FRACTIONS)
def test_numbers_are_taken_for_what_they_are(value):
    assert _sound(quick(value)) == Fraction(value)


def test_decimals_and_other_whole_numbers_are_read():
    assert _sound(quick(Decimal("1.25"))) == Fraction(5, 4)
    assert _sound(quick(True)) == 1
    with pytest.raises((OverflowError, ValueError)):
        quick(float("inf"))


@given(st.integers(), st.integers(min_value=1))
def test_a_ratio_is_in_lowest_terms(numerator, denominator):
    assert _sound(ratio(numerator, denominator)) == Fraction(numerator, denominator)


def test_papers_write_it_as_any_fraction():
    assert plain_value(quick(0.5)) == plain_value(Fraction(1, 2)) == {"fraction": "1/2"}
