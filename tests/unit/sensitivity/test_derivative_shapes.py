"""Smooth bounds of scalar shapes: known values, ranges, refusals, totality, rounding."""

import math
from fractions import Fraction

import pytest

from secant.errors import UsageError
from secant.plan import nodes as n
from secant.plan.evaluate.scalars import Frame, RowLayout, code
from secant.plan.typing import type_of
from secant.schema.types import DOUBLE
from secant.sensitivity.derivative import shapes
from secant.sensitivity.derivative.soften import filter_shapes as filters

X = n.Column("x", DOUBLE)
ONE, TENTH = Fraction(1), Fraction(1, 10)
ALLOWED = {"least", "greatest", "exp", "ln", "power", "abs"}


def at(found: shapes.Smooth | n.Scalar, x: float) -> float:
    expression = found.expression if isinstance(found, shapes.Smooth) else found
    place = RowLayout({"x": 0}, lambda *_: pytest.fail("no subquery here"))
    return code(expression, place)((x,), Frame({}, {}, {}))


def near(value: float):
    return pytest.approx(value, rel=1e-12)


# ── powers ───────────────────────────────────────────────────────────────────────────────────────


def test_the_identity_on_the_whole_line():
    found = shapes.identity_size(X, TENTH, None, None)
    assert at(found, 0.0) == near(10 / math.e)
    assert at(found, 5.0) == at(found, -5.0) == near(10 * math.exp(-0.5))
    assert at(found, 10.0) == at(found, -10.0) == near(10)
    assert at(found, -123.0) == 123
    assert found.rate == TENTH


def test_a_range_lowers_the_bound_of_the_identity():
    found = shapes.identity_size(X, TENTH, Fraction(0), Fraction(2))
    assert at(found, 0.0) == near(2 * math.exp(-0.2))
    assert at(found, 2.0) == near(2)


def test_the_side_that_reaches_further_counts_on_both_sides():
    alpha = Fraction(1)
    found = shapes.identity_size(X, alpha, Fraction(-1, 4), Fraction(5))
    other = shapes.identity_size(X, alpha, Fraction(-5), Fraction(1, 4))
    for x in (-0.25, -0.1, 0.0, 0.9, 4.0):
        expected = max(x if x >= 1 else math.exp(x - 1), 0.25 * math.exp(-(x + 0.25)))
        assert at(found, x) == at(other, -x) == near(expected)


def test_far_from_0_the_identity_is_its_own_bound_and_smoother_than_asked():
    found = shapes.identity_size(X, TENTH, Fraction(20), None)
    assert at(found, 30.0) == 30
    assert found.rate == Fraction(1, 20)
    mirrored = shapes.identity_size(X, TENTH, None, Fraction(-20))
    assert at(mirrored, -30.0) == 30
    assert mirrored.rate == Fraction(1, 20)


def test_a_square_of_negative_numbers_goes_by_their_size():
    found = shapes.power_size(X, Fraction(2), TENTH, None, None)
    assert at(found, -60.0) == 3600  # the printed rule is 3600 times too small here
    assert at(found, 0.0) == near(400 * math.exp(-2))
    slope = shapes.power_slope(X, Fraction(2), TENTH, None, None)
    assert at(slope, -60.0) == 120
    assert at(slope, 0.0) == near(20 / math.e)


def test_the_slope_of_a_first_power_is_constant():
    found = shapes.power_slope(X, ONE, TENTH, None, None)
    assert found == shapes.Smooth(found.expression, Fraction(0))
    assert at(found, -3.0) == 1


def test_the_power_zero():
    assert at(shapes.power_size(X, Fraction(0), ONE, None, None), 0.0) == 1
    assert at(shapes.power_slope(X, Fraction(0), ONE, None, None), 0.0) == 0


def test_roots():
    half = Fraction(1, 2)
    size = shapes.power_size(X, half, ONE, Fraction(1, 4), None)
    assert at(size, 0.25) == near(math.sqrt(0.5) * math.exp(-0.25))
    slope = shapes.power_slope(X, half, ONE, Fraction(1, 4), None)
    assert at(slope, 0.25) == near(1.0)
    assert at(slope, 4.0) == near(max(0.25, math.exp(-3.75)))
    assert shapes.power_slope(X, half, ONE, Fraction(0), None) is None


def test_reciprocals():
    size = shapes.reciprocal_size(X, ONE, TENTH, None)
    assert at(size, 0.1) == near(10)
    assert at(size, 1.1) == near(10 / math.e)
    assert at(size, 20.0) == near(0.05)
    slope = shapes.reciprocal_slope(X, ONE, TENTH, None)
    assert at(slope, 0.1) == near(100)
    assert at(slope, 50.0) == near(1 / 2500)
    assert at(shapes.reciprocal_size(X, ONE, None, -TENTH), -1.1) == near(10 / math.e)


def test_a_reciprocal_that_is_smooth_enough_is_its_own_bound():
    found = shapes.reciprocal_size(X, ONE, Fraction(2), Fraction(9))
    assert found.rate == Fraction(1, 2)
    assert at(found, 4.0) == 0.25


def test_on_a_narrow_range_the_peak_of_a_reciprocal_is_all_that_counts():
    found = shapes.reciprocal_size(X, ONE, TENTH, Fraction(1))
    assert not any(
        isinstance(p, n.Call) and p.function == "power" for p in n.walk(found.expression)
    )


@pytest.mark.parametrize(
    ("exponent", "low", "high"),
    [
        ("-1", None, None),
        ("-1", -1, 1),
        ("-1", 0, 1),
        ("-2", 0, None),
        ("-1", -1, 0),
        ("1/2", -1, 1),
        ("5/2", None, None),
        ("-1/2", -3, -1),
        ("-1/2", 0, 1),
        (2**21, 0, 1),
    ],
)
def test_a_power_that_is_not_defined_or_not_bounded_has_no_bound(exponent, low, high):
    low, high = (None if end is None else Fraction(end) for end in (low, high))
    assert shapes.power_size(X, Fraction(exponent), ONE, low, high) is None
    assert shapes.power_slope(X, Fraction(exponent), ONE, low, high) is None


def test_a_bound_that_would_overflow_is_none():
    tiny = Fraction(1, 10**200)
    assert shapes.reciprocal_slope(X, ONE, tiny, None) is None
    assert shapes.power_size(X, Fraction(4), Fraction(1, 10**100), None, None) is None


def test_a_range_that_holds_only_0():
    assert at(shapes.identity_size(X, ONE, Fraction(0), Fraction(0)), 0.0) == 0


# ── exponentials and logarithms ──────────────────────────────────────────────────────────────────


def test_a_flat_exponential_is_its_own_bound():
    size = shapes.exponent_size(X, -TENTH, ONE, None, None)
    slope = shapes.exponent_slope(X, -TENTH, ONE, None, None)
    assert size.rate == slope.rate == TENTH
    assert at(size, -7.0) == near(math.exp(0.7))
    assert at(slope, -7.0) == near(0.1 * math.exp(0.7))


def test_a_steep_exponential_is_bounded_from_the_end_of_its_range():
    found = shapes.exponent_size(X, Fraction(2), ONE, Fraction(0), Fraction(3))
    assert at(found, 1.0) == near(math.exp(6 - 2))
    found = shapes.exponent_slope(X, Fraction(-2), ONE, Fraction(-3), None)
    assert at(found, 1.0) == near(2 * math.exp(6 - 4))
    assert shapes.exponent_size(X, Fraction(2), ONE, Fraction(0), None) is None
    assert shapes.exponent_slope(X, Fraction(-2), ONE, None, Fraction(3)) is None


@pytest.mark.parametrize("end", [2000, -2000])
def test_an_exponential_beyond_the_floats_is_held_back(end):
    found = shapes.exponent_size(X, Fraction(1), Fraction(1, 2), None, Fraction(end))
    for x in (end, end - 100, end - 4000):
        assert math.exp(-700) <= at(found, float(x)) <= math.exp(700)
    assert at(found, end - 1e308) == near(math.exp(-700))


def test_an_exponential_to_the_0():
    assert at(shapes.exponent_size(X, Fraction(0), ONE, None, None), 5.0) == 1
    assert at(shapes.exponent_slope(X, Fraction(0), ONE, None, None), 5.0) == 0


def test_logarithms_right_of_1():
    found = shapes.logarithm_size(X, 1 / Fraction(math.e), ONE, None)
    assert at(found, 5.0) == near(math.log(5))
    assert at(found, 1.0) == near(math.exp(-(math.e - 1) / math.e))  # from e, where ln is 1
    far = shapes.logarithm_size(X, ONE, Fraction(10), None)
    assert float(far.rate) == near(1 / (10 * math.log(10)))


def test_logarithms_left_of_1():
    found = shapes.logarithm_size(X, ONE, TENTH, ONE)  # nowhere flat enough
    assert at(found, 0.6) == near(math.log(10) * math.exp(-0.5))
    found = shapes.logarithm_size(X, Fraction(30), Fraction(1, 2), ONE)
    assert at(found, 0.7) == near(-math.log(0.7))  # flat enough in the middle
    assert at(found, 1.0) > 0


@pytest.mark.parametrize(
    "alpha", [2.7182818284590446, 2.7182818284590455, 2.71828182846, 2.7182818]
)
def test_logarithms_where_the_flattest_point_is_just_flat_enough(alpha):
    low = Fraction(1, 100)
    found = shapes.logarithm_size(X, Fraction(alpha), low, ONE)
    for x in (0.01, 1 / math.e, 0.5, 1.0):
        assert at(found, x) == pytest.approx(
            math.log(100) * math.exp(-alpha * (x - 0.01)), rel=1e-6
        )


def test_the_logarithm_of_1_only():
    assert at(shapes.logarithm_size(X, ONE, ONE, ONE), 1.0) == 0


@pytest.mark.parametrize("low", [None, Fraction(0), Fraction(-1), Fraction(1, 2**1100)])
def test_a_logarithm_near_0_has_no_bound(low):
    assert shapes.logarithm_size(X, ONE, low, ONE) is None
    assert shapes.logarithm_slope(X, ONE, low, ONE) is None


# ── filters ──────────────────────────────────────────────────────────────────────────────────────


def test_a_flat_sigmoid_is_its_own_bound():
    a = Fraction(1, 2)
    size, slope = filters.sigmoid_size(X, a, ONE), filters.sigmoid_slope(X, a, ONE)
    assert size.rate == slope.rate == a
    sigma = 1 / (1 + math.exp(-1.5))
    assert at(filters.sigmoid(X, a), 3.0) == at(size, 3.0) == near(sigma)
    assert at(slope, 3.0) == at(slope, -3.0) == near(0.5 * sigma * (1 - sigma))


def test_a_steep_sigmoid_has_the_tight_bounds():
    a, alpha = 4.0, 1.0
    size = filters.sigmoid_size(X, Fraction(4), ONE)
    knee = math.log(a / alpha - 1) / a
    assert at(size, knee - 2) == near((1 - alpha / a) * math.exp(-2))
    assert at(size, knee + 2) == near(1 / (1 + math.exp(-a * (knee + 2))))
    slope = filters.sigmoid_slope(X, Fraction(4), ONE)
    knee = 2 / a * math.atanh(alpha / a)
    assert at(slope, 0.0) == near(1.0)
    assert at(slope, -knee - 3) == near(a * (1 - (alpha / a) ** 2) / 4 * math.exp(-3))
    assert size.rate == slope.rate == 1


def test_the_tauoid():
    a = Fraction(2)
    assert at(filters.tauoid(X, a), 0.5) == near(1 / math.cosh(1))
    assert at(filters.tauoid_size(X, a, a), -0.5) == near(1 / math.cosh(1))
    slope = filters.tauoid_slope(X, a, a)
    assert at(slope, 0.0) == near(2 / 4)  # the printed bound is a, four times as much
    peak = math.asinh(1) / 2
    assert at(slope, peak) == at(slope, -peak) == near(2 / 2)
    assert at(slope, 3.0) == near(2 * math.tanh(6) / math.cosh(6))


def test_a_steep_tauoid_has_the_tight_bounds():
    size = filters.tauoid_size(X, Fraction(5), Fraction(3))
    assert at(size, math.atanh(0.6) / 5 + 1) == near(math.sqrt(1 - 0.36) * math.exp(-3))
    slope = filters.tauoid_slope(X, Fraction(5), Fraction(3))
    far = (0.6 + math.sqrt(0.36 + 8)) / 4
    value = 5 * far * math.sqrt(1 - far**2)
    assert at(slope, math.atanh(far) / 5 + 1) == near(value * math.exp(-3))


def test_a_tauoid_far_flatter_than_alpha_is_bounded_at_a_rate_that_floats_can_follow():
    assert filters.tauoid_slope(X, Fraction(1, 10**6), ONE).rate < Fraction(1025, 10**6)


# ── all of them ──────────────────────────────────────────────────────────────────────────────────


def everything(alpha: Fraction) -> list[shapes.Smooth]:
    """Give one bound of each kind that holds on the whole line."""
    found = [
        shapes.identity_size(X, alpha, None, None),
        shapes.power_size(X, Fraction(5), alpha, None, None),
        shapes.power_slope(X, Fraction(5), alpha, None, None),
        shapes.exponent_size(X, alpha, alpha, None, None),
        shapes.exponent_slope(X, -alpha, alpha, None, None),
    ]
    for parameter in (alpha / 7, alpha, alpha * 7):
        found += [
            bound(X, parameter, alpha)
            for bound in (
                filters.sigmoid_size,
                filters.sigmoid_slope,
                filters.tauoid_size,
                filters.tauoid_slope,
            )
        ]
    return found


VALUES = [
    build(X, parameter)
    for parameter in (TENTH, Fraction(30), Fraction(2) ** 500, Fraction(1, 2**500))
    for build in (filters.sigmoid, filters.tauoid)
]


@pytest.mark.parametrize("alpha", [Fraction(1, 1000), TENTH, Fraction(10)])
def test_every_number_gives_a_positive_number(alpha):
    for found in everything(alpha):
        for x in (-1.7e308, -1e9, -1.0, -5e-324, -0.0, 0.0, 5e-324, 1.0, 1e9, 1.7e308):
            assert 0 < at(found, x) < math.inf


@pytest.mark.parametrize("value", VALUES)
def test_every_number_gives_a_value_between_0_and_1(value):
    for x in (-1.7e308, -1e9, -1.0, -5e-324, 0.0, 5e-324, 1.0, 1e9, 1.7e308):
        assert 0 <= at(value, x) <= 1


def test_expressions_are_doubles_made_of_few_pieces():
    kinds = (n.Arithmetic, n.Call, n.Case, n.Branch, n.Compare, n.Literal, n.Column)
    for expression in [*(found.expression for found in everything(TENTH)), *VALUES]:
        assert type_of(expression) == DOUBLE
        for part in n.walk(expression):
            assert isinstance(part, kinds)
            assert not isinstance(part, n.Call) or part.function in ALLOWED


def test_rates_of_decay_are_rounded_down_and_heights_up():
    found = shapes.identity_size(X, TENTH, Fraction(0), Fraction(1, 3))
    numbers = [p.value for p in n.walk(found.expression) if isinstance(p, n.Literal)]
    rate, (height, *_) = min(numbers), sorted(v for v in numbers if v > 0)
    assert 0.999999 * TENTH < -Fraction(rate) <= TENTH
    assert Fraction(1, 3) <= Fraction(height) < Fraction(1, 3) * (1 + Fraction(1, 2**50))


@pytest.mark.parametrize("alpha", [Fraction(0), Fraction(-1), math.nan, math.inf])
def test_alpha_must_be_a_positive_number(alpha):
    calls = (
        lambda: shapes.identity_size(X, alpha, None, None),
        lambda: shapes.power_slope(X, Fraction(2), alpha, None, None),
        lambda: shapes.exponent_size(X, ONE, alpha, None, None),
        lambda: shapes.logarithm_size(X, alpha, ONE, None),
        lambda: shapes.logarithm_slope(X, alpha, None, None),
        lambda: filters.sigmoid_size(X, ONE, alpha),
        lambda: filters.tauoid_slope(X, ONE, alpha),
    )
    for call in calls:
        with pytest.raises(UsageError, match="alpha"):
            call()


@pytest.mark.parametrize("parameter", [Fraction(0), Fraction(-1), math.nan, math.inf])
def test_a_steepness_or_width_must_be_a_positive_number(parameter):
    for build in (filters.sigmoid, filters.tauoid):
        with pytest.raises(UsageError, match=r"a steepness"):
            build(X, parameter)
    for bound in (
        filters.sigmoid_slope,
        filters.tauoid_size,
    ):
        with pytest.raises(UsageError, match=r"a steepness"):
            bound(X, parameter, ONE)


def test_a_range_must_not_be_empty_and_a_power_must_be_a_number():
    with pytest.raises(UsageError, match="range"):
        shapes.identity_size(X, ONE, Fraction(2), Fraction(1))
    with pytest.raises(UsageError, match="exponent"):
        shapes.power_size(X, math.nan, ONE, None, None)
    with pytest.raises(UsageError, match="rate"):
        shapes.exponent_slope(X, math.inf, ONE, None, None)
