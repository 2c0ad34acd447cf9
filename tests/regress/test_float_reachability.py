"""The floating-point attack: which outputs can a database reach at all?

A textbook sampler in doubles reaches, from two neighboring answers, two nearly disjoint sets of
outputs; an attacker who sees the output knows the answer (BEYOND §10, Mironov 2012). Ours must
reach the same set, the public grid, from every answer.
"""

from __future__ import annotations

import os
from fractions import Fraction

import pytest
from flint import fmpq

from secant.noise.mechanisms.discrete_laplace import add_discrete_laplace
from secant.noise.mechanisms.gaussian import GaussianNoise
from secant.noise.mechanisms.grid import Law, cell_of
from secant.noise.mechanisms.laplace import LaplaceNoise
from secant.noise.mechanisms.laws import CauchyLaw, GaussianLaw, LaplaceLaw, OptimalLaw
from secant.noise.mechanisms.randomness import LazyUniform
from secant.noise.mechanisms.smooth import CauchyNoise, OptimalNoise
from secant.numeric.ball import ball, lower, upper, working_precision
from secant.sensitivity.bounds import GlobalBound, SmoothBound

GRID = Fraction(1, 1024)


K = 10.0
PEAK = (1 - 1 / K) ** (K - 1)
BODY = 1 + 2 * PEAK / K
TAIL = PEAK * (1 + 1 / K) ** (K + 1)
JOINT = PEAK * (1 + 1 / K) / BODY


def naive_noise(head: int) -> float:
    """The optimal noise as one would type it: the inverse of its tail, in doubles."""
    u = head * 2.0**-53
    if u > JOINT:
        return K * (1 - (u * BODY - 2 * PEAK / K) ** (1 / K))
    return K * ((TAIL / (u * BODY)) ** (1 / K) - 1)


def naive_tail(v: float) -> float:
    if v < 1:
        return ((1 - v / K) ** K + 2 * PEAK / K) / BODY
    return TAIL * (1 + v / K) ** -K / BODY


def naive_reaches(output: float, answer: float) -> bool:
    """Search the 53-bit uniforms that could have led from the answer to the output."""
    center = round(naive_tail(output - answer) * 2**53)
    # the map is monotone up to rounding: farther from the center the result cannot match
    near = range(max(1, center - 40), min(2**53, center + 41))
    return any(answer + naive_noise(head) == output for head in near)


def test_the_attack_works_on_a_naive_sampler() -> None:
    heads = [int.from_bytes(os.urandom(8), "little") >> 11 | 1 for _ in range(600)]
    # outputs above both answers, so that either database could have given them
    outputs = [value for head in heads if (value := 0.0 + naive_noise(head)) > 1.0]
    assert len(outputs) > 100  # about 230; fewer with probability below 1e-9
    own = sum(naive_reaches(value, 0.0) for value in outputs)
    other = sum(naive_reaches(value, 1.0) for value in outputs)
    assert own == len(outputs)  # the attacker always finds the real answer possible
    assert other < len(outputs) / 2  # and mostly finds the neighbor impossible: the leak


def reachable(law: Law, answer: Fraction, scale: Fraction, cell: int) -> bool:
    """Say whether our sampler gives this cell from this answer for some uniform, and how surely.

    The sampler is a function of a sign and a real uniform; the uniforms that lead to the cell form
    an interval, whose ends are the tails at the cell's edges. Its middle must lead to the cell.
    """
    offset = answer / GRID
    sign = 1 if cell >= offset else -1
    seen, target = sign * offset, sign * cell
    width = scale / GRID
    ends = [(target + half - seen) / width for half in (Fraction(-1, 2), Fraction(1, 2))]
    with working_precision(256):
        high = upper(law.survival(ball(ends[0]), 256)) if ends[0] > 0 else Fraction(1)
        low = lower(law.survival(ball(ends[1]), 256))
    if not 0 <= low < high <= 1:
        return False
    middle = int((low + high) / 2 * 2**900)
    found = cell_of(
        law,
        fmpq(seen.numerator, seen.denominator),
        fmpq(width.numerator, width.denominator),
        LazyUniform(middle, 900),
    )
    return found == target


LAWS = [
    LaplaceLaw(),
    GaussianLaw(),
    OptimalLaw(Fraction(10)),
    OptimalLaw(Fraction(1)),
    CauchyLaw(Fraction(4)),
]


@pytest.mark.parametrize("law", LAWS, ids=repr)
def test_every_cell_is_reached_from_every_answer(law: Law) -> None:
    """The attack on ours: no cell is impossible for one of two neighbors, near or far out."""
    answers = [Fraction(0), Fraction(1), Fraction(0.3), Fraction(1, 3), Fraction(-7, 10**9)]
    cells = [*range(-40, 41, 8), 1023, 1024, 1025, -5000, 20_000]
    for cell in cells:
        assert {reachable(law, answer, Fraction(3, 2), cell) for answer in answers} == {True}


@pytest.mark.parametrize("scale", [Fraction(1), Fraction(3, 2)])
def test_a_data_dependent_scale_reaches_the_same_cells(scale: Fraction) -> None:
    for cell in (-3000, -1, 0, 1, 777, 9000):
        assert reachable(OptimalLaw(Fraction(10)), Fraction(0.3), scale, cell)


def test_releases_are_grid_points_whatever_the_answer() -> None:
    bound, smooth = GlobalBound(Fraction(1)), SmoothBound(Fraction(1, 10), 0)
    additive = [
        LaplaceNoise().calibrate(bound, epsilon=1, grid=GRID),
        GaussianNoise().calibrate(bound, epsilon=1, delta=1e-6, grid=GRID),
    ]
    scaled = [m.calibrate(smooth, epsilon=1, grid=GRID) for m in (OptimalNoise(), CauchyNoise())]
    for answer in (0.0, 0.3, 1 / 3, 2.0**-60, 12345.678):
        released = [noise.draw(answer) for noise in additive]
        released += [noise.draw(answer, 0.7) for noise in scaled]
        assert all((value / GRID).denominator == 1 for value in released)
    assert all(type(value) is int for value in add_discrete_laplace([3, 2**90], scale=Fraction(5)))
