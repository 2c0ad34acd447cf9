"""Parameters are exact, finite and in range before anything happens."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest

from secant.errors import UsageError
from secant.numeric.parameters import (
    count_of,
    delta_of,
    epsilon_of,
    exact,
    level_of,
    positive,
)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (3, Fraction(3)),
        (0.1, Fraction(0.1)),
        ("0.1", Fraction(1, 10)),
        (Decimal("1e-9"), Fraction(1, 10**9)),
        (Fraction(2, 7), Fraction(2, 7)),
    ],
)
def test_numbers_are_taken_for_exactly_what_they_are(value: object, expected: Fraction) -> None:
    assert exact(value, "x") == expected  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "value",
    [float("nan"), float("inf"), -float("inf"), Decimal("NaN"), Decimal("Infinity"), "abc", "",
     "1/0", None, True, object(), "1e999999999", Decimal("1e999999"), "1e-999999999999",
     "1e1_000_000_000", "1e0000000000999999999"],
)  # fmt: skip
def test_what_is_not_a_number_is_refused(value: object) -> None:
    with pytest.raises(UsageError) as caught:
        exact(value, "x")  # type: ignore[arg-type]
    assert caught.value.code == "USE-001"


@pytest.mark.parametrize("value", [0, -1, 1e-300, 1e300, float("nan"), float("inf"), "x", None])
def test_epsilon(value: object) -> None:
    with pytest.raises(UsageError) as caught:
        epsilon_of(value)  # type: ignore[arg-type]
    assert caught.value.code == "USE-002"


@pytest.mark.parametrize("value", [1e-12, 0.1, 1, 1e6])
def test_epsilon_in_range(value: float) -> None:
    assert epsilon_of(Fraction(str(value))) == Fraction(str(value))


@pytest.mark.parametrize("value", [-0.1, 1, 2, float("nan"), None])
def test_delta(value: object) -> None:
    with pytest.raises(UsageError) as caught:
        delta_of(value)  # type: ignore[arg-type]
    assert caught.value.code == "USE-003"


def test_delta_zero_is_a_delta_but_not_a_positive_one() -> None:
    assert delta_of(0) == 0
    with pytest.raises(UsageError) as caught:
        delta_of(0, positive=True)
    assert caught.value.code == "USE-003"


@pytest.mark.parametrize("value", [0, 1, -1, 1.5, float("nan")])
def test_level(value: float) -> None:
    with pytest.raises(UsageError) as caught:
        level_of(value)
    assert caught.value.code == "USE-004"


@pytest.mark.parametrize("value", [0, -3, 1e-300, float("inf")])
def test_positive(value: float) -> None:
    with pytest.raises(UsageError):
        positive(value, "scale")


@pytest.mark.parametrize("value", [0, -1, 1.5, True, "3"])
def test_count(value: object) -> None:
    with pytest.raises(UsageError):
        count_of(value, "groups")  # type: ignore[arg-type]
