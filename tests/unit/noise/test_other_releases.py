"""Functions, revealed levels, personal ε, and the choice of a mechanism."""

from __future__ import annotations

import math
from dataclasses import fields
from fractions import Fraction

import pytest

from secant.errors import Refused, UsageError
from secant.noise.mechanisms.bernstein import BernsteinNoise, BernsteinRelease
from secant.noise.mechanisms.discrete_laplace import discrete_laplace_tail
from secant.noise.mechanisms.personal import PersonalLimit, PersonalNoise, personal_scale
from secant.noise.mechanisms.registry import MECHANISMS
from secant.noise.mechanisms.revealed import RevealedNoise, level_index, level_value
from secant.noise.secrecy import Private
from secant.sensitivity.bounds import GlobalBound, SmoothBound

VALUE = GlobalBound(Fraction(1, 1000), "linf")

# --- functions on the unit cube


def exact_release(mechanism: BernsteinNoise, function: object) -> BernsteinRelease:
    """The release that noise of zero would give."""
    points = mechanism.calibrate(VALUE, epsilon=1, grid=Fraction(1, 10**9)).points()
    values = tuple(Fraction(function(*point)) for point in points)  # type: ignore[operator]
    return BernsteinRelease(values, mechanism.dimension, mechanism.cover, mechanism.order)


def test_one_dimension_is_the_bernstein_polynomial() -> None:
    release = exact_release(BernsteinNoise(1, 4, 1), lambda x: x * x)
    for x in (0.0, 0.3, 1.0):  # B_k of x² is x² + x(1-x)/k
        assert release([x]) == pytest.approx(x * x + x * (1 - x) / 4)


@pytest.mark.parametrize("order", [1, 2, 3])
def test_iterating_brings_the_polynomial_closer(order: int) -> None:
    """I - B maps x² to -x(1-x)/k and keeps shrinking by 1/k, so the error is x(1-x)/k^order."""
    release = exact_release(BernsteinNoise(1, 5, order), lambda x: x * x)
    assert release([0.5]) - 0.25 == pytest.approx(0.25 * 5.0**-order)


def test_two_dimensions_and_axes_in_order() -> None:
    release = exact_release(BernsteinNoise(2, 3, 2), lambda x, y: x + 10 * x * y)
    assert release([0.2, 0.7]) == pytest.approx(0.2 + 10 * 0.2 * 0.7)  # bilinear: reproduced


def test_noise_covers_all_lattice_points() -> None:
    noise = BernsteinNoise(2, 9, 1).calibrate(GlobalBound(Fraction(3), "linf"), epsilon=2, grid=1)
    assert noise.noise.scale == Fraction(3 * 100, 2)
    assert len(noise.points()) == 100
    released = noise.draw([Private(1.5)] * 100)
    assert all(value.denominator == 1 for value in released.values)


def test_bad_functions() -> None:
    for arguments in ((0, 1, 1), (1, 0, 1), (1, 1, 0), (1, 1, 17), (7, 10, 1)):
        with pytest.raises(UsageError):
            BernsteinNoise(*arguments)
    for bound in (GlobalBound(Fraction(1)), GlobalBound(Fraction(0), "linf")):
        with pytest.raises(UsageError):
            BernsteinNoise().calibrate(bound, epsilon=1, grid=1)
    noise = BernsteinNoise(1, 2).calibrate(VALUE, epsilon=1, grid=1)
    with pytest.raises(UsageError):
        noise.draw([1, 2])
    release = noise.draw([1, 2, 3])
    for point in ([0.5, 0.5], [1.5], [float("nan")]):
        with pytest.raises(UsageError):
            release(point)


# --- a revealed level


def test_the_level_grid_is_exact_and_monotone() -> None:
    beta = Fraction(1, 7)
    for needed in (Fraction(1), Fraction(1, 10**9), Fraction(355, 113), Fraction(10**20)):
        index = level_index(needed, beta)
        assert level_value(index, beta) >= needed
        assert float(level_value(index - 1, beta)) < float(needed) * (1 + 1e-12)


@pytest.mark.parametrize("beta", [Fraction(1, 100), Fraction(2)])
def test_the_level_moves_by_sixteen_steps_at_most(beta: Fraction) -> None:
    for n in range(1, 200):
        c = Fraction(n, 17)
        neighbor = c * Fraction(math.exp(float(beta)) * (1 - 1e-12))
        assert 0 <= level_index(neighbor, beta) - level_index(c, beta) <= 16


@pytest.mark.parametrize("delta", [1e-3, 1e-9])
def test_the_shift_keeps_the_level_high_enough(delta: float) -> None:
    noise = RevealedNoise().calibrate(
        SmoothBound(Fraction(1, 10), 0), epsilon=1, delta=delta, grid=1
    )
    scale = 16 / noise.level_epsilon
    assert discrete_laplace_tail(scale, noise.shift + 1) <= Fraction(delta) * (
        1 + Fraction(1, 2**40)
    )
    assert discrete_laplace_tail(scale, noise.shift) > Fraction(delta) * (1 - Fraction(1, 2**40))
    assert 0 < noise.level_epsilon < noise.epsilon


def test_the_derivative_reading_has_more_noise() -> None:
    bound = SmoothBound(Fraction(1), 0)
    local = RevealedNoise("local").calibrate(bound, epsilon=2, delta=1e-6, grid=1)
    derivative = RevealedNoise("derivative").calibrate(bound, epsilon=2, delta=1e-6, grid=1)
    assert local.growth == 1
    assert derivative.growth >= Fraction(math.e - 1) - Fraction(1, 10**12)


def test_what_is_revealed_is_the_noise_that_was_used() -> None:
    noise = RevealedNoise().calibrate(
        SmoothBound(Fraction(1, 20), 0), epsilon=2, delta=1e-6, grid=Fraction(1, 8)
    )
    release = noise.draw(Private(10.0), Private(3.0))
    assert (release.value * 8).denominator == 1
    assert float(release.error(0.5)) == pytest.approx(float(release.scale) * math.log(2) + 1 / 16)
    assert release.scale == level_value(
        level_index(release.scale, noise.beta) - 1, noise.beta
    )  # rounded up


def test_bad_levels() -> None:
    bound = SmoothBound(Fraction(1, 20), 0)
    with pytest.raises(UsageError):
        RevealedNoise("global")  # type: ignore[arg-type]
    with pytest.raises(UsageError):
        RevealedNoise().calibrate(GlobalBound(Fraction(1)), epsilon=1, delta=1e-6, grid=1)  # type: ignore[arg-type]
    with pytest.raises(Refused) as caught:
        RevealedNoise().calibrate(bound, epsilon=1, delta=0, grid=1)
    assert caught.value.code == "REF-103"


# --- everybody their own ε


def test_the_scale_protects_everybody() -> None:
    limits = [
        PersonalLimit(Fraction(1), Fraction(1)),
        PersonalLimit(Fraction(2), Fraction(1, 2)),
        PersonalLimit(Fraction(0), Fraction(1, 10)),
    ]
    assert personal_scale(limits, "add-remove") == 4
    assert personal_scale(limits, "replace") == 8  # papers.md, error 15
    noise = PersonalNoise("replace").calibrate(limits, grid=1)
    assert noise.noise.scale == 8
    assert noise.epsilon == 1
    choice = PersonalNoise().calibrate_choice(limits)
    assert choice.sharpness == Fraction(1, 8)


def test_bad_limits() -> None:
    with pytest.raises(UsageError):
        PersonalLimit(Fraction(-1), Fraction(1))
    with pytest.raises(UsageError):
        PersonalLimit(Fraction(1), Fraction(0))
    with pytest.raises(UsageError):
        PersonalNoise().calibrate([], grid=1)
    with pytest.raises(UsageError):
        personal_scale([PersonalLimit(Fraction(1), Fraction(1))], "swap")  # type: ignore[arg-type]
    with pytest.raises(UsageError):
        PersonalNoise().calibrate_choice([PersonalLimit(Fraction(0), Fraction(1))])


def test_every_mechanism_is_listed_once_with_its_proof() -> None:
    keys = [(mechanism.name, repr(mechanism)) for mechanism in MECHANISMS]
    assert len(set(keys)) == len(keys)
    for mechanism in MECHANISMS:
        assert mechanism.proof.startswith("noise.")
        assert all(field.init for field in fields(mechanism))
