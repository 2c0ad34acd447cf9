"""Choices: exact shares of the uniform, exact comparisons, public candidates."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from flint import arb, fmpq

from secant.errors import InternalError, UsageError
from secant.noise.mechanisms import selection
from secant.noise.mechanisms.randomness import LazyUniform
from secant.noise.mechanisms.selection import (
    ExponentialNoise,
    PermuteAndFlip,
    Stretch,
    pick_exponential,
    pick_flip,
)
from secant.noise.secrecy import Private
from secant.numeric.ball import working_precision
from secant.sensitivity.bounds import GlobalBound, SmoothBound

BITS = 200
UNIT = GlobalBound(Fraction(1), "linf")
MECHANISMS = [ExponentialNoise(), PermuteAndFlip()]


def fixed(monkeypatch: pytest.MonkeyPatch, *numerators: int) -> None:
    """Let the next lazy uniforms be these, known to 200 bits."""
    stream = iter(numerators)
    monkeypatch.setattr(selection, "LazyUniform", lambda: LazyUniform(next(stream), BITS))


def test_the_exponential_mechanism_gives_each_candidate_exactly_its_share(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counts, exponents = [1, 5, 2], [Fraction(3, 7), Fraction(2), Fraction(0)]
    with working_precision(400):
        weights = [
            n * arb(fmpq(-e.numerator, e.denominator)).exp()
            for n, e in zip(counts, exponents, strict=True)
        ]
        total = weights[0] + weights[1] + weights[2]
        edges = [weights[0] / total, (weights[0] + weights[1]) / total]
        cuts = [int((edge * (fmpq(2) ** BITS)).floor().unique_fmpz()) for edge in edges]
    for index, cut in enumerate(cuts):
        fixed(monkeypatch, cut - 1)
        assert pick_exponential(counts, exponents) == index
        fixed(monkeypatch, cut + 1)
        assert pick_exponential(counts, exponents) == index + 1
    fixed(monkeypatch, 1)
    assert pick_exponential(counts, exponents) == 0
    fixed(monkeypatch, 2**BITS - 2)
    assert pick_exponential(counts, exponents) == 2


def test_flip_compares_the_largest_of_n_exponentials(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two groups: given U₀, the second wins from an exactly known U₁ on."""
    counts, exponents, start = [3, 7], [Fraction(0), Fraction(1, 2)], 2**199
    with working_precision(500):
        first = -(1 - (arb(1) / 2) ** (arb(1) / 3)).log()  # U₀ = 1/2, largest of three
        edge = ((1 - (-(first + arb(1) / 2)).exp()) ** arb(7)) * (fmpq(2) ** BITS)
        cut = int(edge.floor().unique_fmpz())
    fixed(monkeypatch, start, cut - 2)
    assert pick_flip(counts, exponents) == 0
    fixed(monkeypatch, start, cut + 2)
    assert pick_flip(counts, exponents) == 1


def test_the_sharpness_follows_the_bound() -> None:
    for mechanism in MECHANISMS:
        half = mechanism.calibrate(GlobalBound(Fraction(3), "linf"), epsilon=2)
        full = mechanism.calibrate(GlobalBound(Fraction(3), "linf"), epsilon=2, monotone=True)
        assert (half.sharpness, full.sharpness) == (Fraction(1, 3), Fraction(2, 3))


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda m: m.name)
def test_scores_are_private_and_relative(mechanism: ExponentialNoise) -> None:
    choice = mechanism.calibrate(UNIT, epsilon=1)
    assert (
        choice.draw([Private(0.0), Private(10**6), Private(-5.5)]) == 1
    )  # misses: below e^-499000
    assert choice.draw([Private(7)]) == 0


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda m: m.name)
def test_points_of_a_grid_come_from_the_winning_stretch(mechanism: ExponentialNoise) -> None:
    choice = mechanism.calibrate(UNIT, epsilon=2)
    stretches = [
        Stretch(0, 2**60, Private(-500)),
        Stretch(2**60, 10, Private(0)),
        Stretch(2**60 + 10, 2**60, Private(-500)),
    ]
    drawn = {choice.draw_point(stretches) - 2**60 for _ in range(400)}
    assert drawn <= set(range(10))
    assert len(drawn) == 10  # one of ten is missing: below 10 · 0.9^400 < 1e-17


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda m: m.name)
def test_bad_input(mechanism: ExponentialNoise) -> None:
    for bound in (
        GlobalBound(Fraction(1)),
        GlobalBound(Fraction(0), "linf"),
        SmoothBound(Fraction(1), 0),
    ):
        assert not mechanism.admits(bound)
        with pytest.raises(UsageError):
            mechanism.calibrate(bound, epsilon=1)
    choice = mechanism.calibrate(UNIT, epsilon=1)
    with pytest.raises(UsageError):
        choice.draw([])
    with pytest.raises(UsageError):
        choice.draw_point([])
    with pytest.raises(InternalError):
        choice.draw_point([Stretch(0, 0, 1)])
    with pytest.raises(InternalError):
        choice.draw([Private(float("nan")), 1])
    with pytest.raises(UsageError):
        choice.error(0.95, 0)


@pytest.mark.parametrize("n", [2, 100])
@pytest.mark.parametrize("level", [0.5, 0.95, 0.9999])
def test_the_errors_hold_by_formula(n: int, level: float) -> None:
    t = float(ExponentialNoise().calibrate(UNIT, epsilon=2).error(level, n))  # sharpness 1
    assert n * math.exp(-t) <= (1 - level) * (1 + 1e-9)
