"""Numbers on screen: charges up, what is left down, digits where the error leaves any."""

import datetime
import json
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secant.display.numbers import error_text, plain, remaining_text, spent_text, value_text


@given(st.fractions(min_value=0, max_value=10**6))
def test_spent_is_never_shown_too_small_nor_remaining_too_large(value):
    assert Fraction(spent_text(value)) >= value
    assert Fraction(remaining_text(value)) <= value


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Fraction(1, 2), "0.5"),
        (Fraction(10), "10"),
        (Fraction(0), "0"),
        (Fraction(1, 10**9), "1e-9"),
        (Fraction(1, 3), "0.333334"),
        (Fraction(1200), "1200"),
    ],
)
def test_amounts(value, text):
    assert spent_text(value) == text


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (None, None, "NULL"),
        (True, None, "true"),
        (1234567, None, "1,234,567"),
        (1234567, 88, "1,234,567"),
        (Decimal("10.50"), None, "10.50"),
        (123.456789, 0.5, "123.46"),
        (123.456789, 12.0, "123"),
        (0.1 + 0.2, None, "0.3"),
        (Fraction(1, 3), 0.01, "0.333"),
        (float("nan"), None, "NaN"),
        (float("inf"), 3, "Infinity"),
        (1e300, 1e290, "1.000000e+300"),
        (1e-300, None, "1.000000e-300"),
        (0, 5, "0"),
        (datetime.date(2020, 1, 2), None, "2020-01-02"),
        ("a\nb\x1b[1m", None, "a\\nb\\x1b[1m"),
    ],
)
def test_values(value, error, text):
    assert value_text(value, error) == text


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (5.991, "±6.0"),
        (0.123, "±0.13"),
        (1234.2, "±1,235"),
        (0, "exact"),
        (None, "error not known"),
        (float("inf"), "error not known"),
        ("x", "error not known"),
    ],
)
def test_errors_are_rounded_up(error, text):
    assert error_text(error) == text


@given(st.floats(allow_nan=False, allow_infinity=False), st.floats())
def test_any_number_can_be_printed(value, error):
    assert value_text(value, error)
    assert error_text(error)


def test_plain_values_are_json():
    value = {
        "a": (Decimal("1.5"), Decimal(2), Fraction(1, 4), Decimal("NaN")),
        "b": [float("nan"), float("-inf"), None, True],
        3: datetime.date(2020, 1, 2),
    }
    assert json.loads(json.dumps(plain(value), allow_nan=False)) == {
        "a": [1.5, 2, 0.25, "NaN"],
        "b": ["nan", "-inf", None, True],
        "3": "2020-01-02",
    }
