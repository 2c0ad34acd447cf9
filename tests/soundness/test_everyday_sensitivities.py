"""What one row moves in sums, histograms, groups and moments, against what the noise is made for."""

from __future__ import annotations

import itertools
import random
from fractions import Fraction

import numpy as np
import pytest

from chance import LONG, fresh_seed
from secant import stats
from secant.stats import groups, moments
from secant.stats.moments import Frame, exact_moments, moment_change
from secant.stats.results import ADD_REMOVE, REPLACE

TRIES = 20_000 if LONG else 600
SEED = fresh_seed()


def vector(rows: np.ndarray, relation: str) -> list[Fraction]:
    columns = rows.shape[1]
    frame = Frame((Fraction(0),) * columns, (Fraction(1),) * columns)
    size, sums, products = exact_moments(frame.steps(rows))
    upper = [products[j][k] for j in range(columns) for k in range(j, columns)]
    return [*([Fraction(size)] if relation == ADD_REMOVE else []), *sums, *upper]


def worst(columns: int, relation: str) -> tuple[float, float]:
    """Give the most that one row moved all moments, as a part of what was promised: in l1 and in l2."""
    source = random.Random(f"{SEED} {columns} {relation}")
    total, square = moment_change(columns, relation)
    found = [0.0, 0.0]
    for _ in range(TRIES // 4):
        rows = np.array(
            [
                [source.choice([-1, 1, 0, source.uniform(-2, 2)]) for _ in range(columns)]
                for _ in range(3)
            ]
        )
        one = vector(rows[:2], relation)
        two = vector(rows if relation == ADD_REMOVE else rows[[0, 2]], relation)
        moved = [float(a - b) for a, b in zip(one, two, strict=True)]
        found[0] = max(found[0], sum(map(abs, moved)) / total)
        found[1] = max(found[1], sum(m * m for m in moved) / square)
    return found[0], found[1]


@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE])
@pytest.mark.parametrize("columns", [1, 2, 3, 4])
def test_no_row_moves_moments_farther_than_promised(columns, relation):
    l1, l2 = worst(columns, relation)
    assert l1 <= 1
    assert l2 <= 1
    if relation == ADD_REMOVE and columns < 3:
        assert l1 == l2 == 1  # attained by a row of ends


def test_a_forgotten_number_of_rows_is_seen(monkeypatch):
    total, square = moment_change(2, ADD_REMOVE)

    def forgetful(*_):
        return total - 1, square - 1

    monkeypatch.setitem(globals(), "moment_change", forgetful)
    assert worst(2, ADD_REMOVE)[0] > 1


def test_products_of_many_rows_are_exact(monkeypatch):
    monkeypatch.setattr(moments, "_CHUNK", 3)
    rows = np.array([[0.25, -1.0], [0.5, 1.0], [-0.75, 0.125], [1.0, 1.0], [0.0, -0.5]])
    size, sums, products = exact_moments(Frame((Fraction(0),) * 2, (Fraction(1),) * 2).steps(rows))
    assert (size, [float(s) for s in sums]) == (5, rows.sum(axis=0).tolist())
    assert float(products[0][1]) == rows[:, 0] @ rows[:, 1]
    assert float(products[1][1]) == rows[:, 1] @ rows[:, 1]


def scale_of_sum(bounds, relation) -> float:
    found = stats.sum([0.0], epsilon=1, bounds=bounds, neighbors=relation, level=0.5)
    return found.error.amount / np.log(2)  # half of Laplace noise lies within ln 2 scales


@pytest.mark.parametrize("bounds", [(0, 1), (-3, 1), (2, 5), (-5, -2)])
def test_noise_of_a_sum_covers_every_value(bounds):
    low, high = bounds
    ends = [low, high, (low + high) / 2]
    assert scale_of_sum(bounds, ADD_REMOVE) == pytest.approx(max(map(abs, ends)), rel=1e-3)
    apart = max(abs(a - b) for a, b in itertools.product(ends, ends))
    assert scale_of_sum(bounds, REPLACE) == pytest.approx(apart, rel=1e-3)


@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE])
def test_a_row_is_in_one_bin(relation, monkeypatch):
    """The counts that noise is added to, on neighbors, differ in l1 by what the noise was made for."""
    seen = []
    honest = groups.DiscreteLaplaceNoise

    class Watched(honest):
        def calibrate(self, bound, **rest):
            noise = super().calibrate(bound, **rest)

            class Noiseless:
                name = noise.name
                error = staticmethod(noise.error)

                @staticmethod
                def draw_many(values):
                    return [
                        value.reveal() if hasattr(value, "reveal") else value for value in values
                    ]

            seen.append(bound.value)
            return Noiseless()

    monkeypatch.setattr(groups, "DiscreteLaplaceNoise", Watched)
    monkeypatch.setattr(groups, "Private", Fraction)
    source = random.Random(SEED)
    largest = 0
    for _ in range(TRIES // 6):
        values = [source.choice([-1, 0, 1, 2, 2.5, 3, 9]) for _ in range(4)]
        other = values[:-1] if relation == ADD_REMOVE else [*values[:-1], source.choice([0, 2, 9])]
        one, two = (
            stats.histogram(v, edges=[0, 1, 2, 3], epsilon=1, neighbors=relation)
            for v in (values, other)
        )
        pairs = zip((*one.counts, one.outside), (*two.counts, two.outside), strict=True)
        largest = max(largest, sum(abs(a - b) for a, b in pairs))
    assert largest == max(seen) == (1 if relation == ADD_REMOVE else 2)
