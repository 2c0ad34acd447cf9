"""The smooth bound of a preprocessed median: every pair of neighbors among small columns, and faults that are seen.

Universes reach beyond the grid, lie on both sides of the center, on one side, and close together.
"""

from __future__ import annotations

import inspect
import itertools
import math
import random
import sys
import types
from fractions import Fraction

import numpy as np
import pytest

from chance import LONG, fresh_seed
from secant.stats.preprocessing import smooth_median
from secant.stats.preprocessing.closed_forms import bounded_median
from secant.stats.preprocessing.pair_search import EXCESS
from secant.stats.preprocessing.units import ONE, Units

UNIVERSES = (
    (-1e30, -0.5, -0.2, 0.1, 0.3, 1e30),
    (0.1, 0.2, 0.25, 2.0, 5.0),
    (-5.0, -4.8, -4.7, -3.0, 4.0),
    (0.0, 1.5, 3.0, 20.0),
    (-0.3, 0.0, 0.3, 0.9, 2.1, 1e9),
)
LARGEST = 9 if LONG else 6
BETAS = (Fraction(1, 5), Fraction(2))
PLAIN = Units(Fraction(0), Fraction(1))


def neighbors(column: tuple[float, ...], universe: tuple[float, ...], apart: int):
    if apart == 1:
        return {tuple(sorted((*column, value))) for value in universe}
    places = range(len(column))
    return {tuple(sorted((*column[:i], *column[i + 1 :], v))) for i in places for v in universe}


def faults(bound, universe: tuple[float, ...], beta: Fraction, apart: int) -> tuple[int, int]:
    """Count pairs that a bound does not cover, and pairs on which it is not smooth."""
    known: dict[tuple[float, ...], tuple[float, float]] = {}

    def look(column: tuple[float, ...]) -> tuple[float, float]:
        if column not in known:
            scaled = PLAIN.of(np.array(column))
            known[column] = bounded_median(scaled) / ONE, bound(scaled, beta=beta, apart=apart)
        return known[column]

    uncovered = rough = 0
    for size in range(LARGEST):
        for column in itertools.combinations_with_replacement(universe, size):
            for other in neighbors(column, universe, apart):
                (f, s), (g, t) = look(column), look(other)
                uncovered += abs(f - g) > min(s, t) * (1 + 1e-12)
                rough += max(s, t) > min(s, t) * math.exp(beta) * (1 + 2 * EXCESS)
    return uncovered, rough


@pytest.mark.parametrize("apart", [1, 2])
@pytest.mark.parametrize("beta", BETAS)
@pytest.mark.parametrize("universe", UNIVERSES)
def test_the_bound_covers_neighbors_and_is_smooth(universe, beta, apart):
    assert faults(smooth_median.smooth_bounded_median, universe, beta, apart) == (0, 0)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("width[apart::apart]", "width[:-apart:apart]"),  # one distance too few
        ("_ONE - shifts[below]", "-2 * shifts[-1] - shifts[below]"),  # nothing left: forgotten
        ("shifts[:below] + best[:below]", "medians[:below]"),  # values that go, not g that follows
        ("np.append(scaled, REACH)", "np.append(scaled, scaled[-1:])"),  # nothing lies beyond
        ("math.exp(-rate * far) * apart", "0 * apart"),  # nothing beyond the last distance
        ("/ ONE, apart)", "/ ONE, 0.5 * apart)"),  # half of what preprocessing promises
    ],
)
def test_a_bound_that_is_wrong_is_seen(right, wrong, monkeypatch):
    text = inspect.getsource(smooth_median)
    assert right in text
    planted = types.ModuleType("planted")
    monkeypatch.setitem(sys.modules, "planted", planted)
    exec(compile(text.replace(right, wrong), "planted", "exec"), planted.__dict__)
    if "0 * apart" in wrong:
        planted._NOTHING = 0.3  # so that columns this small have a last distance
    seen = 0
    for universe, beta, apart in itertools.product(UNIVERSES, BETAS, (1, 2)):
        try:
            seen += sum(faults(planted.smooth_bounded_median, universe, beta, apart))
        except (IndexError, ValueError, ZeroDivisionError):  # a fault can lead out of the values
            seen += 1
        if seen:
            return
    raise AssertionError("nobody noticed")


def test_long_columns_walk_by_single_values():
    source = random.Random(fresh_seed())
    for _ in range(300 if LONG else 40):
        beta, apart = source.choice([Fraction(1, 50), Fraction(1, 3)]), source.choice([1, 2])
        spread, middle = 10 ** source.uniform(-3, 2), source.choice([0.0, source.gauss(0, 20)])
        column = [source.gauss(middle, spread) for _ in range(source.randint(1, 80))]
        before = None
        for _ in range(12):
            scaled = PLAIN.of(np.sort(np.array(column)))
            now = (
                bounded_median(scaled) / ONE,
                smooth_median.smooth_bounded_median(scaled, beta=beta, apart=apart),
            )
            if before is not None:
                least, most = sorted((now[1], before[1]))
                assert abs(now[0] - before[0]) <= least * (1 + 1e-12)
                assert most <= least * math.exp(beta) * (1 + 2 * EXCESS)
            before = now
            extreme = source.choice([1e30, -1e30, source.gauss(middle, spread)])
            column.sort()
            gone = source.choice([0, -1, source.randrange(len(column))])
            if apart == 2:
                column[gone] = extreme
            elif len(column) > 1 and source.random() < 0.5:
                column.pop(gone)
            else:
                column.append(extreme)


def test_values_close_together_get_less_noise_than_preprocessing_alone():
    scaled = PLAIN.of(np.sort(np.random.default_rng(5).normal(3, 1, 1000)))
    assert smooth_median.smooth_bounded_median(scaled, beta=Fraction(1, 5), apart=1) < 0.02
