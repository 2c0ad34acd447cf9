"""Every sampler against its distribution; a sampler that is slightly off is caught.

False alarms: at most 1e-9 a test. 1e6 draws with SECANT_PROFILE=long.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from flint import fmpq
from judging import distance_is_large, draws, misfits
from scipy import stats

from secant.noise.mechanisms.discrete_laplace import discrete_laplace_noise
from secant.noise.mechanisms.geometric import Shape, draw_geometric
from secant.noise.mechanisms.grid import Law, draw_cell
from secant.noise.mechanisms.laplace import laplace_cells
from secant.noise.mechanisms.laws import CauchyLaw, GaussianLaw, LaplaceLaw, OptimalLaw
from secant.noise.mechanisms.randomness import word
from secant.numeric.ball import ball, lower, working_precision


def survival(law: Law, v: Fraction) -> float:
    if v <= 0:
        return 1.0
    with working_precision(128):
        return float(lower(law.survival(ball(v), 128)))


def cell_shares(law: Law, offset: Fraction, scale: Fraction, reach: int) -> dict[int, float]:
    """P(cell) for the cells around the offset, from the tail of the law."""

    def below(y: Fraction) -> float:  # P(offset + scale·V < y)
        v = (y - offset) / scale
        return survival(law, -v) / 2 if v < 0 else 1 - survival(law, v) / 2

    half = Fraction(1, 2)
    middle = round(offset)
    return {m: below(m + half) - below(m - half) for m in range(middle - reach, middle + reach + 1)}


REAL = [
    (LaplaceLaw(), 12_000),
    (GaussianLaw(), 12_000),
    (OptimalLaw(Fraction(10)), 20_000),
    (OptimalLaw(Fraction(3, 2)), 12_000),
    (CauchyLaw(Fraction(4)), 5_000),
]


@pytest.mark.parametrize(("law", "count"), REAL, ids=lambda value: repr(value))
def test_real_noise_fills_its_cells(law: Law, count: int) -> None:
    offset, scale = Fraction(1, 3), Fraction(5, 2)
    arguments = (fmpq(1, 3), fmpq(5, 2))
    sample = [draw_cell(law, *arguments) for _ in range(draws(count))]
    assert misfits(sample, cell_shares(law, offset, scale, 12)) == []


def discrete_laplace_shares(scale: Fraction, reach: int) -> dict[int, float]:
    ratio = math.exp(-1 / scale)
    return {z: (1 - ratio) / (1 + ratio) * ratio ** abs(z) for z in range(-reach, reach + 1)}


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(1), Fraction(7, 3), Fraction(20)])
@pytest.mark.parametrize("at_once", [1, 100_000])
def test_discrete_laplace_one_by_one_and_many_at_a_time(scale: Fraction, at_once: int) -> None:
    count = draws(100_000)
    sample: list[int] = []
    while len(sample) < (count if at_once > 1 else count // 4):
        sample += discrete_laplace_noise(at_once, scale=scale)
    assert misfits(sample, discrete_laplace_shares(scale, 30)) == []


@pytest.mark.parametrize("scale", [Fraction(10**6 + 1, 3), Fraction(2**70)])
def test_discrete_laplace_in_blocks(scale: Fraction) -> None:
    sample = np.array(
        [float(z / scale) for z in discrete_laplace_noise(draws(60_000), scale=scale)]
    )
    assert not distance_is_large(sample, stats.laplace.cdf)
    # the low bits of an offset within a block are uniform up to 1/scale
    low = [z % 8 for z in discrete_laplace_noise(draws(60_000), scale=scale)]
    assert misfits(low, dict.fromkeys(range(8), 1 / 8)) == []


def test_blocks_and_offsets_make_up_the_geometric_law() -> None:
    """A split far coarser than any in use, so that offsets are often rejected and drawn again."""
    ratio = Fraction(3, 8)
    shape = Shape(Fraction(3), 3, ratio, float(ratio) * (1 - 2**-40), float(ratio) * (1 + 2**-40))
    sample = [draw_geometric(shape, word() >> 11) for _ in range(draws(12_000, 200_000))]
    r = math.exp(-1 / 3)
    assert misfits(sample, {g: (1 - r) * r**g for g in range(40)}) == []


@pytest.mark.parametrize("offset", [Fraction(0), Fraction(1, 3), Fraction(-7, 2)])
@pytest.mark.parametrize("scale", [Fraction(1, 4), Fraction(3)])
def test_laplace_vectors_fill_their_cells(offset: Fraction, scale: Fraction) -> None:
    sample = laplace_cells([offset] * draws(60_000), scale=scale, grid=Fraction(1))
    assert misfits(sample, cell_shares(LaplaceLaw(), offset, scale, 15)) == []


# --- power: samplers that are a little wrong


def test_a_scale_that_is_ten_percent_off_is_caught() -> None:
    wrong = discrete_laplace_noise(100_000, scale=Fraction(7, 3) * Fraction(110, 100))
    assert misfits(wrong, discrete_laplace_shares(Fraction(7, 3), 30)) != []


def test_minus_zero_kept_is_caught() -> None:
    """The classical slip: a sign and a geometric magnitude, with zero counted twice."""
    geometric = np.random.default_rng(1).geometric(1 - math.exp(-1), 100_000) - 1
    signs = np.random.default_rng(2).choice([-1, 1], 100_000)
    assert misfits((geometric * signs).tolist(), discrete_laplace_shares(Fraction(1), 30)) != []


def test_a_real_law_of_the_wrong_shape_is_caught() -> None:
    sample = [draw_cell(OptimalLaw(Fraction(5)), fmpq(1, 3), fmpq(5, 2)) for _ in range(20_000)]
    assert (
        misfits(sample, cell_shares(OptimalLaw(Fraction(3, 2)), Fraction(1, 3), Fraction(5, 2), 12))
        != []
    )


def test_a_shifted_distribution_is_caught() -> None:
    sample = np.array(discrete_laplace_noise(60_000, scale=Fraction(10**6))) / 1e6 + 0.05
    assert distance_is_large(sample, stats.laplace.cdf)
