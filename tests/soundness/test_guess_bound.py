"""No private mechanism lets an attacker do better than the bound: exact programs, random answers, planted faults."""

import math

import numpy as np
import pytest
from scipy.optimize import linprog

from chance import LONG, fresh_seed
from secant.attack import guess_probability, histogram, normal, uniform, weights

CASES = 400 if LONG else 40
rng = np.random.default_rng(fresh_seed())


def best_of_all_mechanisms(places, shares, inside, rate) -> float:
    """Give the largest posterior share over all answers whose likelihood obeys the metric: a linear program."""
    n = len(places)
    rows = []
    for i in range(n):
        for j in range(n):
            if i != j:
                row = np.zeros(n)
                row[i], row[j] = math.exp(-rate * abs(places[i] - places[j])), -1.0
                rows.append(row)
    found = linprog(
        -np.where(inside, shares, 0.0),
        A_ub=np.array(rows) if rows else None,
        b_ub=np.zeros(len(rows)) if rows else None,
        A_eq=np.array([shares]),
        b_eq=[1.0],
        method="highs",
    )
    assert found.status == 0
    return -found.fun


def solvable(epsilon, values) -> float:
    """Give an epsilon at which no coefficient of the program is so small that the solver takes it for 0."""
    return min(epsilon, 16 / float(values[-1] - values[0]))


def drawn_atoms():
    n = int(rng.integers(2, 9))
    values = np.sort(rng.choice(np.arange(1, 60), n, replace=False)) / 3
    shares = rng.dirichlet(np.full(n, 0.7)) + 1e-6
    return values, shares / shares.sum()


def drawn_density():
    kind = rng.integers(3)
    if kind == 0:
        return uniform(1, 11)
    if kind == 1:
        return normal(float(rng.uniform(0, 12)), float(rng.uniform(0.5, 6)), 1, 11)
    edges = [1, *np.sort(rng.choice(np.arange(2, 11), 3, replace=False)).tolist(), 11]
    shares = rng.integers(0, 5, 4)
    shares[rng.integers(4)] += 1
    return histogram(edges, shares.tolist())


def on_a_grid(prior, cells=20_000):
    """Give midpoints and masses of a prior on 1..11, worked out apart from the code under test."""
    x = np.linspace(1, 11, cells + 1)
    middle = (x[1:] + x[:-1]) / 2
    if hasattr(prior, "mean"):
        f = np.exp(-((middle - prior.mean) ** 2) / (2 * prior.deviation**2))
    elif hasattr(prior, "edges"):
        heights = np.array(prior.weights) / np.diff(prior.edges)
        place = np.searchsorted(prior.edges, middle, side="right") - 1
        held = (place >= 0) & (place < len(heights))
        f = np.where(held, heights[np.clip(place, 0, len(heights) - 1)], 0.0)
    else:
        f = np.ones(cells)
    return middle, f / f.sum()


@pytest.mark.parametrize("logarithmic", [False, True])
def test_atoms_reach_the_optimum_over_all_mechanisms_exactly(logarithmic):
    for _ in range(CASES):
        values, shares = drawn_atoms()
        radius, epsilon = float(rng.choice([0, 1 / 3, 1, 4])), float(rng.uniform(0.05, 3))
        center = float(rng.choice(values))
        epsilon = solvable(epsilon, values)
        inside = np.abs(values - center) <= radius + 1e-9
        places = np.log(values) if logarithmic else values
        truth = best_of_all_mechanisms(places, shares, inside, epsilon)
        prior = weights(values.tolist(), shares.tolist())
        found = guess_probability(prior, center, radius, epsilon, logarithmic=logarithmic)
        assert truth - 1e-7 <= found.posterior <= truth + 1e-6
        assert found.by_distance >= truth - 1e-7
        assert found.prior == pytest.approx(shares[inside].sum(), rel=1e-6)
        anywhere = guess_probability(prior, None, radius, epsilon, logarithmic=logarithmic)
        assert anywhere.posterior >= truth - 1e-7


def test_the_worst_window_of_atoms_is_the_worst_of_all():
    for _ in range(CASES // 2):
        values, shares = drawn_atoms()
        radius, epsilon = float(rng.choice([0, 1, 2])), float(rng.uniform(0.05, 2))
        epsilon = solvable(epsilon, values)
        prior = weights(values.tolist(), shares.tolist())
        truth = max(
            best_of_all_mechanisms(
                values,
                shares,
                (values >= start - 1e-9) & (values <= start + 2 * radius + 1e-9),
                epsilon,
            )
            for start in values
        )
        found = guess_probability(prior, None, radius, epsilon)
        assert truth - 1e-7 <= found.posterior <= truth + 1e-6


@pytest.mark.parametrize("logarithmic", [False, True])
def test_no_answer_of_a_laplace_mechanism_beats_the_bound_for_a_density(logarithmic):
    for _ in range(CASES // 2):
        prior = drawn_density()
        x, mass = on_a_grid(prior)
        t = np.log(x) if logarithmic else x
        radius, rate = float(rng.choice([0.25, 0.5, 1.5])), float(rng.uniform(0.1, 4))
        found = guess_probability(prior, None, radius, rate, logarithmic=logarithmic)
        before = np.concatenate([[0.0], np.cumsum(mass)])
        width = round(2 * radius / (x[1] - x[0]))
        assert np.max(before[width:] - before[:-width]) <= found.prior * 1.001 + 1e-3
        best = 0.0
        answers = np.linspace(t[0], t[-1], 80)
        for y in answers:
            posterior = mass * np.exp(-rate * np.abs(t - y))
            sums = np.concatenate([[0.0], np.cumsum(posterior / posterior.sum())])
            best = max(best, float(np.max(sums[width:] - sums[:-width])))
        # The grid's own error is of the order of (k times a cell of 5e-4) squared.
        assert best <= found.posterior + 1e-5
        # An answer half a step away changes the odds by exp(k·step) at most: the bound is tight.
        slip = math.exp(rate * (answers[1] - answers[0]))
        assert found.posterior <= best * slip * 1.002 + 1e-3


def test_no_lipschitz_answer_beats_the_bound_for_a_target():
    for _ in range(CASES // 2):
        prior = drawn_density()
        x, mass = on_a_grid(prior)
        center, radius = float(rng.uniform(2, 10)), 0.75
        weight, epsilon = float(rng.uniform(0.1, 3)), float(rng.uniform(0.1, 2))
        found = guess_probability(prior, center, radius, epsilon, weight)
        inside = np.abs(x - center) <= radius - 5e-4  # cells that are inside as a whole
        for _ in range(20):
            slopes = rng.choice([-1.0, 1.0, 0.3], len(x)) if rng.random() < 0.3 else None
            if slopes is None:
                turns = np.sort(rng.uniform(1, 11, 3))
                slopes = np.where(np.searchsorted(turns, x) % 2 == 0, 1.0, -1.0)
            h = np.exp(np.cumsum(slopes) * (x[1] - x[0]) * weight * epsilon)
            share = float((mass * h)[inside].sum() / (mass * h).sum())
            assert share <= found.posterior + 1e-4
        assert found.posterior <= found.by_distance + 1e-3


def reached(center, radius, rate):
    """Give what a Laplace answer at the center reaches for the uniform prior on [0, 10], in closed form."""
    inside = 1 - math.exp(-rate * radius)
    left, right = center - radius, 10 - center - radius
    outside = math.exp(-rate * radius) * (2 - math.exp(-rate * left) - math.exp(-rate * right))
    return 2 * inside / (2 * inside + outside)


def printed(prior, epsilon, distance):
    """The formula as the seed prints it: a fault, because X'' is taken to be all that is not X'."""
    return 1 / (1 + math.exp(-epsilon * distance) * (1 - prior) / prior)


def test_the_printed_formula_is_caught():
    truth = reached(5, 0.5, 1)
    found = guess_probability(uniform(0, 10), 5, 0.5, 1)
    assert truth == pytest.approx(0.3961, abs=1e-4)
    assert truth <= found.posterior <= truth * 1.001
    assert printed(0.1, 1, 1) == pytest.approx(0.232, abs=1e-3)
    assert printed(0.1, 1, 1) < truth  # the fault would be noticed
    by_one = guess_probability(uniform(0, 10), 5, 0.5, 1, distance=1)
    by_two = guess_probability(uniform(0, 10), 5, 0.5, 1, distance=2)
    assert by_one.by_distance == 1.0
    assert by_two.by_distance == pytest.approx(0.787, abs=1e-3)
    assert printed(0.1, 1, 2) == pytest.approx(0.451, abs=1e-3)


@pytest.mark.parametrize("fault", ["half the rate", "twice the prior outside", "window too small"])
def test_planted_faults_are_caught(fault):
    """Each fault puts the claimed bound below what the linear program reaches."""
    values, shares = np.array([1.0, 2.0, 4.0, 7.0]), np.array([0.2, 0.3, 0.1, 0.4])
    inside = np.abs(values - 2) <= 1
    truth = best_of_all_mechanisms(values, shares, inside, 0.8)
    right = guess_probability(weights(values.tolist(), shares.tolist()), 2, 1, 0.8).posterior
    assert right == pytest.approx(truth, abs=1e-6)
    if fault == "half the rate":
        wrong = guess_probability(weights(values.tolist(), shares.tolist()), 2, 1, 0.4)
    elif fault == "twice the prior outside":
        skewed = np.where(inside, shares, 2 * shares)
        wrong = guess_probability(weights(values.tolist(), skewed.tolist()), 2, 1, 0.8)
    else:
        wrong = guess_probability(weights(values.tolist(), shares.tolist()), 2, 0.5, 0.8)
    assert wrong.posterior < truth - 1e-3
