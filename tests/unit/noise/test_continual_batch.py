"""Blocks of steps that are all known: their sums, least squares by hand, and when they are worth it."""

from __future__ import annotations

import random
from fractions import Fraction
from itertools import accumulate, pairwise

import numpy as np
import pytest

from secant.noise.continual import batch
from secant.noise.continual.batch import (
    best_tree,
    blocks,
    change_of_blocks,
    leaves,
    noises_of,
    steps_of,
)
from secant.noise.continual.levels import Tree
from secant.noise.mechanisms import sums
from secant.noise.mechanisms.sums import Weighted, weighted_error


def design(tree, steps):
    """One row for each block, one column for each step."""
    rows = [
        [int(k * size <= i < (k + 1) * size) for i in range(steps)]
        for size in map(tree.block, range(tree.levels))
        for k in range(steps // size)
    ]
    return np.array(rows, float)


def drawn(seed):
    rng = random.Random(seed)
    return rng, Tree(rng.randint(2, 5), rng.randint(1, 4)), rng.randint(1, 60)


@pytest.mark.parametrize("seed", range(60))
def test_estimates_and_their_noises_are_those_of_least_squares(seed):
    rng, tree, steps = drawn(seed)
    inside = design(tree, steps)
    numbers = [rng.randint(-20, 20) for _ in inside]
    starts = [0, *accumulate(steps // tree.block(level) for level in range(tree.levels))]
    estimates = np.linalg.lstsq(inside, np.array(numbers, float), rcond=None)[0]
    found = leaves(tree, [numbers[low:high] for low, high in pairwise(starts)])
    assert np.allclose(found, estimates, atol=1e-8)
    shown = np.cumsum(steps_of(tree, steps, numbers))
    assert np.all(np.abs(shown - np.cumsum(estimates)) <= 0.5 + 1e-9)
    weights = {rng.randint(1, steps): rng.choice([1.0, -1.0, 0.5]) for _ in range(3)}
    each = sum(w * (np.arange(steps) < t) for t, w in weights.items())
    best = np.linalg.solve(inside.T @ inside, each) @ inside.T
    sizes = sorted(
        abs(w) for w, count in noises_of(tree, steps, weights).items() for _ in range(count)
    )
    wanted = sorted(abs(best))[-len(sizes) :] if sizes else []
    assert np.allclose(sizes, wanted, atol=1e-9)
    assert sum(x * x for x in sizes) == pytest.approx(float(best @ best), abs=1e-9)
    t = rng.randint(1, steps)
    squares = sum(w * w * count for w, count in noises_of(tree, steps, {t: 1.0}).items())
    assert batch._variance(tree, steps, t) == pytest.approx(squares)


@pytest.mark.parametrize("seed", range(60))
def test_without_noise_steps_are_the_truth_and_blocks_move_as_far_as_is_said(seed):
    rng, tree, steps = drawn(seed)
    values = [rng.randint(0, 10**15) for _ in range(steps)]
    assert steps_of(tree, steps, blocks(tree, values)) == values
    small = [x % 1000 for x in values]
    assert blocks(tree, small) == [round(x) for x in design(tree, steps) @ small]
    by = [rng.choice([0, 0, 0, 1, -2, 3]) for _ in range(steps)]
    size, squared = sum(map(abs, by)), sum(x * x for x in by)
    other = blocks(tree, [a + b for a, b in zip(values, by, strict=True)])
    differ = [abs(a - b) for a, b in zip(blocks(tree, values), other, strict=True)]
    most = change_of_blocks(tree, Fraction(size), Fraction(squared))
    assert sum(differ) <= most[0]
    assert sum(x * x for x in differ) <= most[1]


def test_a_move_of_one_step_or_of_neighbors_reaches_what_is_said():
    tree = Tree(3, 3)
    one = blocks(tree, [1, *[0] * 26])
    assert (sum(one), sum(x * x for x in one)) == change_of_blocks(tree, Fraction(1), Fraction(1))
    three = blocks(tree, [1, 1, 1, *[0] * 24])
    assert (sum(three), sum(x * x for x in three)) == change_of_blocks(
        tree, Fraction(3), Fraction(3)
    )


def test_few_steps_are_added_up_as_they_are_and_many_are_not():
    def by_laplace(tree):
        return float(tree.levels**2)

    assert best_tree(12, False, by_laplace) is None
    assert best_tree(52, False, by_laplace) is not None
    assert best_tree(52, True, by_laplace) is None, "single steps lose more than sums gain"
    assert best_tree(1000, True, by_laplace).levels == 2
    assert best_tree(1000, False, lambda tree: 1e4) is None


def test_waves_that_are_left_out_change_no_error(monkeypatch):
    rng = random.Random(7)
    kinds = [
        tuple(
            Weighted(rng.choice([0.3, 3.0, 9.0]), rng.choice([1.0, 0.37, 0.02]), count, normal)
            for count, normal in ((rng.choice([1, 5, 100]), False), (rng.choice([1, 20]), rng.random() < 0.3))
        )
        for _ in range(6)
    ]  # fmt: skip
    few = [weighted_error.__wrapped__(k, 0.95) for k in kinds]
    monkeypatch.setattr(sums, "_waves", lambda noises, half, terms, deep: range(1, terms + 1))
    assert [weighted_error.__wrapped__(k, 0.95) for k in kinds] == pytest.approx(few, rel=1e-9)
