"""The discrete Laplace sampler: exact boundaries, tails, error, threshold, bad input."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import pytest
from flint import arb, fmpq

from secant.errors import UsageError
from secant.noise.mechanisms import geometric as subject
from secant.noise.mechanisms.discrete_laplace import (
    add_discrete_laplace,
    discrete_laplace_error,
    discrete_laplace_noise,
    discrete_laplace_tail,
    noisy_threshold,
)
from secant.noise.mechanisms.randomness import LazyUniform
from secant.numeric.ball import working_precision

SCALES = [Fraction(1, 3), Fraction(1), Fraction(7, 3), Fraction(10), Fraction(10**40, 7)]


def exact_tail(scale: Fraction, t: int) -> float:
    """P(noise ≥ t) straight from the definition, by summing the series."""
    ratio = math.exp(-1 / scale)
    total = (1 + ratio) / (1 - ratio)
    return sum(ratio ** abs(z) for z in range(t, 4000)) / total


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(7, 3), Fraction(1000)])
def test_each_outcome_owns_exactly_its_share_of_the_uniform(scale: Fraction) -> None:
    """The heads that give k blocks end where U = exp(-k / scale), to the last of the 53 bits."""
    shape = subject.shape_of(scale)
    for k in range(1, 8):
        low, high = 1, 2**53 - 1  # blocks fall as the head grows; find the largest head with >= k
        while low < high:
            middle = (low + high + 1) // 2
            sure = middle if subject.blocks_of(shape, middle) >= k else None
            low, high = (middle, high) if sure else (low, middle - 1)
        with working_precision(200):
            edge = arb(fmpq(-k * scale.denominator, scale.numerator)).exp() * 2**53
            boundary = int(edge.floor().unique_fmpz())
        # the head that holds the boundary is split by its further bits, any other is not
        assert low in (boundary, boundary - 1)


@pytest.mark.parametrize("scale", SCALES[:4])
def test_floats_and_exact_arithmetic_agree_on_the_same_bits(scale: Fraction) -> None:
    shape = subject.shape_of(scale)
    heads = [1, 2, 3, 2**20, 2**52 - 1, 2**52, 2**53 - 2, 2**53 - 1]
    heads += [int(2**53 * math.exp(-k / scale)) + shift for k in range(1, 9) for shift in (-2, 2)]
    decided = 0
    for head in heads:
        if not 0 < head < 2**53:
            continue
        low = subject.exact_blocks(shape, LazyUniform((head << 200) | (2**200 - 1), 253))
        high = subject.exact_blocks(shape, LazyUniform(head << 200, 253))
        if low == high:
            decided += 1
            assert subject.blocks_of(shape, head) == low
    assert decided > len(heads) // 2


def test_the_undecided_head_is_settled_by_its_further_bits() -> None:
    scale = Fraction(7, 3)
    shape = subject.shape_of(scale)
    with working_precision(400):
        edge = (arb(fmpq(-3 * 3, 7)).exp() * (fmpq(2) ** 300)).floor().unique_fmpz()
    assert subject.exact_blocks(shape, LazyUniform(int(edge) - 1, 300)) == 3
    assert subject.exact_blocks(shape, LazyUniform(int(edge) + 1, 300)) == 2


def test_the_offset_inside_a_block_is_kept_with_the_exact_probability() -> None:
    shape = subject.shape_of(Fraction(2**40 + 1, 3))
    offset = (1 << shape.shift) - 1
    with working_precision(400):
        keep = arb(fmpq(-offset * 3, 2**40 + 1)).exp() * (fmpq(2) ** 300)
        edge = int(keep.floor().unique_fmpz())
    assert subject.below_exponential(LazyUniform(edge - 1, 300), offset / shape.scale)
    assert not subject.below_exponential(LazyUniform(edge + 1, 300), offset / shape.scale)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("count", [0, 1, 47, 48, 500])
def test_every_value_gets_noise(scale: Fraction, count: int) -> None:
    assert len(discrete_laplace_noise(count, scale=scale)) == count
    noisy = add_discrete_laplace([2**120] * count, scale=scale)
    assert [type(value) for value in noisy] == [int] * count


def test_tiny_noise_on_a_huge_integer_keeps_every_digit() -> None:
    value = 2**120 + 12345
    assert add_discrete_laplace([value] * 3, scale=Fraction(1, 1000)) == [value] * 3


@pytest.mark.parametrize("t", [-5, -1, 0, 1, 2, 17])
@pytest.mark.parametrize("scale", SCALES[:4])
def test_the_tail_is_the_sum_of_its_terms(scale: Fraction, t: int) -> None:
    tail = discrete_laplace_tail(scale, t)
    assert float(tail) == pytest.approx(exact_tail(scale, t), rel=1e-9)


@pytest.mark.parametrize("level", [0.01, 0.5, 0.95, 1 - 1e-9])
@pytest.mark.parametrize("scale", SCALES)
def test_the_error_is_the_smallest_that_holds(scale: Fraction, level: float) -> None:
    t = discrete_laplace_error(scale, level)
    miss = 1 - Fraction(level)
    assert 2 * discrete_laplace_tail(scale, t + 1) <= miss * (
        1 + Fraction(1, 2**55)
    )  # the tail is rounded up
    if t:
        assert 2 * discrete_laplace_tail(scale, t) * (1 + Fraction(1, 2**50)) > miss


@pytest.mark.parametrize("groups", [1, 3, 1000])
@pytest.mark.parametrize("contribution", [1, 4])
@pytest.mark.parametrize("delta", [1e-3, 1e-8, 1e-30])
@pytest.mark.parametrize("scale", SCALES)
def test_the_threshold_is_tight(
    scale: Fraction, delta: float, contribution: int, groups: int
) -> None:
    tau = noisy_threshold(scale, delta=delta, groups=groups, contribution=contribution)

    def shown(threshold: int) -> float:
        each = discrete_laplace_tail(scale, threshold - contribution)
        return -math.expm1(groups * math.log1p(-float(each)))

    assert shown(tau) <= delta * (1 + 1e-9)
    if tau > contribution + 1:
        assert shown(tau - 1) > delta * (1 - 1e-9)


def test_the_threshold_falls_with_delta_and_grows_with_groups() -> None:
    by_delta = [noisy_threshold(Fraction(5), delta=d) for d in (1e-12, 1e-9, 1e-6, 1e-3, 0.4)]
    by_groups = [noisy_threshold(Fraction(5), delta=1e-6, groups=g) for g in (1, 2, 5, 100)]
    assert all(left > right for left, right in pairwise(by_delta))
    assert all(left < right for left, right in pairwise(by_groups))


@pytest.mark.parametrize("scale", [0, -1, float("nan"), float("inf"), None, "wide", True, 1e-300])
def test_a_scale_that_cannot_be_meant(scale: object) -> None:
    with pytest.raises(UsageError, match="scale"):
        discrete_laplace_noise(1, scale=scale)  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [1.0, True, None, "1"])
def test_only_whole_numbers(value: object) -> None:
    with pytest.raises(UsageError) as caught:
        add_discrete_laplace([value], scale=Fraction(1))  # type: ignore[list-item]
    assert caught.value.code == "USE-001"


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"delta": 0}, "USE-003"),
        ({"delta": 1}, "USE-003"),
        ({"delta": float("nan")}, "USE-003"),
        ({"delta": 1e-6, "groups": 0}, "USE-001"),
        ({"delta": 1e-6, "contribution": 1.5}, "USE-001"),
    ],
)
def test_a_threshold_that_cannot_be_meant(arguments: dict[str, object], code: str) -> None:
    with pytest.raises(UsageError) as caught:
        noisy_threshold(Fraction(1), **arguments)  # type: ignore[arg-type]
    assert caught.value.code == code


@pytest.mark.parametrize("level", [0, 1, -0.5, 2, float("nan")])
def test_a_level_that_cannot_be_meant(level: float) -> None:
    with pytest.raises(UsageError) as caught:
        discrete_laplace_error(Fraction(1), level)
    assert caught.value.code == "USE-004"
