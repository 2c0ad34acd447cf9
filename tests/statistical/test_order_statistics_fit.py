"""Drawn order statistics follow the probabilities that `inspect` computes, and those follow the definition.

False alarms: at most 1e-9 a test. More draws with SECANT_PROFILE=long.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import pytest
from judging import draws, misfits

from secant.noise import ranked as by_rank
from secant.noise.secrecy import Private
from secant.plan import nodes as n
from secant.plan.rewrites.order_statistics import Grid, Ranked
from secant.schema import types as t

HALF = Fraction(1, 2)
LEVEL = Fraction(95, 100)
CELLS = ((1, 3), (2, 1), (5, 4), (6, 2))


def statistic(count: int, q: Fraction) -> Ranked:
    grid = Grid(Fraction(0), Fraction(1), count)
    cells = n.Aggregate(n.Released("r", ()), (), ())
    return Ranked("c", q, t.INTEGER, grid, cells, 1.0, "a statistic")


def shares(ranked: Ranked, noise: by_rank.RankNoise) -> dict[int, float]:
    """Give the probability of each point that is told apart."""
    assert noise.choice is not None
    found = by_rank.pieces(ranked, CELLS, noise.farthest)
    sizes: dict[Fraction, int] = {}
    for piece in found:
        sizes[piece.distance] = sizes.get(piece.distance, 0) + piece.count
    chance = by_rank.chances(noise.choice, sizes)
    return {
        piece.first + i: chance[piece.distance]
        for piece in found
        for i in range(min(piece.count, 10))
    }


CASES = [
    (9, HALF), (9, Fraction(0)), (9, Fraction(1)), (9, Fraction(9, 10)), (4000, HALF), (4000, Fraction(1)),
]  # fmt: skip


@pytest.mark.parametrize(("count", "q"), CASES)
def test_draws_fit(count: int, q: Fraction) -> None:
    ranked = statistic(count, q)
    noise = by_rank.rank_noise(ranked, ranked.span, Fraction(3, 2))
    sample = [
        v for v, _ in by_rank.drawn(ranked, noise, Private([CELLS] * draws(3_000, 60_000)), LEVEL)
    ]
    # permute-and-flip is integrated to 1e-5, far below what so many draws can tell
    assert misfits(sample, shares(ranked, noise)) == []


@pytest.mark.parametrize(("count", "q"), [(9, HALF), (4000, HALF)])
def test_half_the_sharpness_is_seen(count: int, q: Fraction) -> None:
    ranked = statistic(count, q)
    noise = by_rank.rank_noise(ranked, ranked.span, Fraction(6))
    assert noise.choice is not None
    blunt = replace(noise, choice=replace(noise.choice, sharpness=noise.choice.sharpness / 2))
    sample = [v for v, _ in by_rank.drawn(ranked, blunt, Private([CELLS] * 3_000), LEVEL)]
    assert misfits(sample, shares(ranked, noise))


def test_chances_of_permute_and_flip_by_all_orders() -> None:
    """Three points at distances 0, 1, 2: the first coin that falls right, over all six orders."""
    ranked = statistic(9, HALF)
    noise = by_rank.rank_noise(ranked, Fraction(1), Fraction(1))
    assert noise.choice is not None
    found = by_rank.chances(noise.choice, {Fraction(d): 1 for d in range(3)})
    s = float(noise.choice.sharpness)
    a, b = math.exp(-s), math.exp(-2 * s)
    assert found[Fraction(0)] == pytest.approx(
        (2 + (1 - a) + (1 - b) + 2 * (1 - a) * (1 - b)) / 6, abs=1e-4
    )
    assert sum(found.values()) == pytest.approx(1)
