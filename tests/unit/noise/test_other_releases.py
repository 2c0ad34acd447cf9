"""Functions, personal ε, and the choice of a mechanism."""

from __future__ import annotations

from dataclasses import fields
from fractions import Fraction

import pytest

from secant.errors import UsageError
from secant.noise.mechanisms.bernstein import BernsteinNoise, BernsteinRelease
from secant.noise.mechanisms.personal import PersonalLimit, PersonalNoise, personal_scale
from secant.noise.mechanisms.registry import MECHANISMS
from secant.noise.secrecy import Private
from secant.sensitivity.bounds import GlobalBound

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
