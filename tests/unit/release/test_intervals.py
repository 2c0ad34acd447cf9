"""Which parts of an output follow an exact law, and what becomes of the rest."""

from fractions import Fraction

import pytest

from secant.noise.intervals import NoisyNumber, ends_of
from secant.noise.mechanisms.sums import quotient_ends, sum_error, whole_sum_error
from secant.plan import nodes as n
from secant.plan.rewrites.measures import literal
from secant.schema import types as t

LEVEL = Fraction(95, 100)


def noisy(value, scale=10.0, step=0.0, left_out=(0.0, 0.0), sign=0):
    def error(level):
        return sum_error([scale], float(level))

    return NoisyNumber(value, error, scale, step, left_out, sign=sign)


def column(name):
    return n.Column(name, t.DOUBLE)


def arithmetic(op, left, right):
    return n.Arithmetic(op, left, right)


A, B, C = column("a"), column("b"), column("c")
TWO = literal(Fraction(2), t.DOUBLE)


def ends(scalar, row=None, **numbers):
    return ends_of(scalar, numbers, row or {}, LEVEL)


def test_a_sum_follows_the_law_of_the_sum():
    low, high = ends(arithmetic("+", A, arithmetic("*", TWO, B)), a=noisy(5.0), b=noisy(7.0))
    t95 = sum_error([10.0, 20.0], 0.95)
    assert (low, high) == pytest.approx((19 - t95, 19 + t95))


def test_what_cancels_is_known_exactly():
    low, high = ends(arithmetic("-", A, A), a=noisy(5.0))
    assert (low, high) == (0.0, 0.0)


def test_sums_of_counts_follow_the_law_of_whole_numbers():
    low, high = ends(arithmetic("+", A, B), a=noisy(5.0, 3.0, 1.0), b=noisy(7.0, 3.0, 1.0))
    assert (high - low) / 2 == whole_sum_error([3.0, 3.0], 0.95)


def test_a_quotient_is_inverted():
    found = ends(arithmetic("/", A, B), a=noisy(100.0), b=noisy(400.0))
    expected = quotient_ends((100.0, 0.0), (400.0, 0.0), [(10.0, 0.0), (0.0, 10.0)], 0.95)
    assert found == pytest.approx(expected)


def test_an_average_reads_through_the_floor_of_its_count():
    floor = n.Call("greatest", (B, literal(Fraction(1), t.DOUBLE)))
    found = ends(arithmetic("/", A, floor), a=noisy(100.0), b=noisy(400.0, 10.0, 1.0, sign=1))
    assert found is not None
    # A floor that the truth may be below is no count's own: it is not read through.
    high = n.Call("greatest", (B, literal(Fraction(300), t.DOUBLE)))
    assert ends(arithmetic("/", A, high), a=noisy(100.0), b=noisy(400.0)) != pytest.approx(found)


def test_products_take_each_side_at_a_level_at_which_both_hold():
    low, high = ends(arithmetic("*", A, B), a=noisy(100.0), b=noisy(200.0))
    each = sum_error([10.0], 0.975)
    assert high == pytest.approx((100 + each) * (200 + each))
    assert low == pytest.approx((100 - each) * (200 - each))


def test_what_was_left_out_moves_one_end():
    low, high = ends(A, a=noisy(100.0, left_out=(0.0, 50.0)))
    error = sum_error([10.0], 0.95)
    assert (low, high) == pytest.approx((100 - error, 150 + error))
    low, high = ends(n.Negate(A), a=noisy(100.0, left_out=(0.0, 50.0)))
    assert (low, high) == pytest.approx((-150 - error, -100 + error))


def test_without_an_end_only_the_other_is_stated():
    low, high = ends(A, a=noisy(100.0, left_out=(0.0, float("inf"))))
    assert low == pytest.approx(100 - sum_error([10.0], 0.95))
    assert high == float("inf")
    both = noisy(100.0, left_out=(-float("inf"), float("inf")))
    assert ends(A, a=both) is None
    assert ends(arithmetic("/", A, B), a=both, b=noisy(50.0, 0.1)) is None


def test_a_clamp_holds_what_has_no_ends():
    both = noisy(100.0, left_out=(-float("inf"), float("inf")))
    clamped = n.Clamp(arithmetic("/", A, B), literal(Fraction(0), t.DOUBLE), TWO)
    assert ends(clamped, a=both, b=noisy(50.0, 0.1)) == (0.0, 2.0)


def test_other_laws_add_up_their_errors():
    smooth = NoisyNumber(10.0, lambda level: 4.0 if level > LEVEL else 3.0)
    _, high = ends(arithmetic("+", A, B), a=smooth, b=noisy(0.0, 1.0))
    assert high == pytest.approx(10 + 4 + sum_error([1.0], 0.975))
    unknown = NoisyNumber(10.0, lambda level: None)
    assert ends(arithmetic("+", A, B), a=unknown, b=noisy(0.0, 1.0)) is None
