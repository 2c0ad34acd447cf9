"""Laplace noise on a grid: exact parts, exact edges, promises kept."""

from __future__ import annotations

from fractions import Fraction

import pytest
from flint import arb, fmpq

from secant.errors import InternalError, UsageError
from secant.noise.mechanisms import laplace as subject
from secant.noise.mechanisms.geometric import shape_of
from secant.noise.mechanisms.laplace import (
    DiscreteLaplaceNoise,
    GlobalNoise,
    LaplaceNoise,
    laplace_cells,
)
from secant.noise.mechanisms.randomness import LazyUniform
from secant.noise.secrecy import Private
from secant.numeric.ball import working_precision
from secant.sensitivity.bounds import GlobalBound, SmoothBound

ONE = GlobalBound(Fraction(1))


@pytest.mark.parametrize("scale", [Fraction(1, 50), Fraction(1), Fraction(10**30)])
@pytest.mark.parametrize("distance", [Fraction(1, 1000), Fraction(1, 3), Fraction(999, 1000)])
def test_the_edge_is_passed_with_exactly_its_probability(
    scale: Fraction, distance: Fraction
) -> None:
    with working_precision(600):
        rate = fmpq(scale.denominator, scale.numerator)
        end = arb(-rate).exp()
        near = arb(-rate * fmpq(distance.numerator, distance.denominator)).exp()
        chance = (near - end) / (1 - end) * (fmpq(2) ** 300)
        boundary = int(chance.floor().unique_fmpz())
    shape = shape_of(scale)
    if boundary > 0:
        assert subject._passes(shape, distance, LazyUniform(boundary - 1, 300))
    assert not subject._passes(shape, distance, LazyUniform(boundary + 1, 300))


def test_an_edge_at_a_whole_step_is_never_passed() -> None:
    assert not subject._passes(shape_of(Fraction(1)), Fraction(1), LazyUniform(0, 300))


def test_floats_agree_with_exact_arithmetic_on_the_same_bits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shape = shape_of(Fraction(5, 3))
    edges = [(n, 64) for n in range(1, 65)] * 8
    fresh = [subject.word() for _ in edges]
    left = iter(fresh)
    monkeypatch.setattr(subject, "word", lambda: next(left))
    fast = [subject._pass_edge(shape, 3 / 5, *edge) for edge in edges]
    exact = [
        subject._passes(shape, Fraction(*edge), LazyUniform(word >> 11, 53))
        for edge, word in zip(edges, fresh, strict=True)
    ]
    assert fast == exact
    assert 50 < sum(fast) < 462  # about half; a constant answer would fail


@pytest.mark.parametrize(("value", "sign", "cell", "edge"), [
    (Fraction(1, 3), False, 0, Fraction(1, 6)),
    (Fraction(1, 3), True, 0, Fraction(5, 6)),
    (Fraction(1, 2), False, 1, Fraction(1)),
    (Fraction(-9, 4), False, -2, Fraction(3, 4)),
    (Fraction(7), True, -7, Fraction(1, 2)),
])  # fmt: skip
def test_a_value_knows_its_cell_and_the_way_to_its_edge(
    value: Fraction, sign: bool, cell: int, edge: Fraction
) -> None:
    found, top, bottom = subject._edge(Private(value), sign, Fraction(1))
    assert (found, Fraction(top, bottom)) == (cell, edge)
    # the same with everything in units of 3/7
    found, top, bottom = subject._edge(value * Fraction(3, 7), sign, Fraction(3, 7))
    assert (found, Fraction(top, bottom)) == (cell, edge)


def test_no_values_no_noise() -> None:
    assert laplace_cells([], scale=Fraction(1), grid=Fraction(1)) == []


@pytest.mark.parametrize("count", [1, 15, 16, 300])
def test_releases_lie_on_the_grid(count: int) -> None:
    noise = LaplaceNoise().calibrate(ONE, epsilon=0.5, grid="0.3")
    released = noise.draw_many([Private(0.77)] * count)
    assert all((value / Fraction(3, 10)).denominator == 1 for value in released)
    assert len(released) == count


def test_the_scale_is_the_bound_over_epsilon() -> None:
    assert LaplaceNoise().calibrate(
        GlobalBound(Fraction(7, 3)), epsilon=2, grid=1
    ).scale == Fraction(7, 6)


def test_part_of_a_step_cannot_be_reached_on_the_grid() -> None:
    noise = DiscreteLaplaceNoise().calibrate(GlobalBound(Fraction(29, 10)), epsilon=2, grid=1)
    assert noise.scale == 1  # two steps of ε = 2
    assert (
        DiscreteLaplaceNoise().calibrate(GlobalBound(Fraction(1, 2)), epsilon=1, grid=1).noiseless
    )


@pytest.mark.parametrize("mechanism", [LaplaceNoise(), DiscreteLaplaceNoise()])
def test_only_a_global_zero_is_noiseless(mechanism: LaplaceNoise) -> None:
    noise = mechanism.calibrate(GlobalBound(Fraction(0)), epsilon=1, grid=1)
    assert noise.noiseless
    assert noise.draw_many([3, -4]) == [3, -4]
    assert noise.error(0.5) <= Fraction(1, 2)
    assert not mechanism.calibrate(ONE, epsilon=1, grid=1).noiseless


def test_a_noiseless_answer_is_put_on_the_grid() -> None:
    noise = LaplaceNoise().calibrate(GlobalBound(Fraction(0)), epsilon=1, grid=Fraction(1, 4))
    assert noise.draw_many([0.3, -0.3, 0.125]) == [Fraction(1, 4), Fraction(-1, 4), Fraction(1, 4)]


def test_an_answer_off_the_grid_breaks_the_promise() -> None:
    noise = DiscreteLaplaceNoise().calibrate(ONE, epsilon=1, grid=1)
    with pytest.raises(InternalError) as caught:
        noise.draw(Private(0.5))
    assert "0.5" not in caught.value.message


@pytest.mark.parametrize("mechanism", [LaplaceNoise(), DiscreteLaplaceNoise()])
@pytest.mark.parametrize(
    "bound",
    [GlobalBound(Fraction(1), "l2"), GlobalBound(Fraction(1), "linf"), SmoothBound(Fraction(1), 0)],
)
def test_other_bounds_are_not_admitted(mechanism: LaplaceNoise, bound: GlobalBound) -> None:
    assert not mechanism.admits(bound)
    with pytest.raises(UsageError):
        mechanism.calibrate(bound, epsilon=1, grid=1)


def test_the_error_is_the_textbook_one_plus_half_a_step() -> None:
    noise = GlobalNoise("laplace", Fraction(1), Fraction(2), Fraction(1, 8), discrete=False)
    assert float(noise.error(0.95)) == pytest.approx(2 * 2.995732273554 + 1 / 16, rel=1e-9)
