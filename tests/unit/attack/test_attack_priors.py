"""Priors: what is refused, and that both readings of a prior hold the right mass."""

import math

import numpy as np
import pytest

from secant.attack import histogram, normal, uniform, weights
from secant.attack.kernel import kernel_of, left_of, right_of
from secant.attack.priors import Atoms, Pieces, ends_of, spread
from secant.errors import UsageError


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: uniform(1, 0),
        lambda: uniform(1, 1),
        lambda: uniform(float("nan"), 1),
        lambda: uniform(0, float("inf")),
        lambda: uniform(0, 1, step=0),
        lambda: uniform(0, 10**200),
        lambda: normal(0, 0, 0, 1),
        lambda: normal(0, -1, 0, 1),
        lambda: normal(0, 1, 1, 1),
        lambda: normal(0, "1e-9", 0, 1),
        lambda: weights([]),
        lambda: weights([1, 1]),
        lambda: weights([1, 2], [1]),
        lambda: weights([1, 2], [-1, 2]),
        lambda: weights([1, 2], [0, 0]),
        lambda: histogram([0], []),
        lambda: histogram([0, 2, 1], [1, 1]),
        lambda: histogram([0, 1], [1, 1]),
        lambda: histogram([0, 1], [float("nan")]),
    ],
)
def test_what_cannot_be_meant_is_refused(wrong):
    with pytest.raises(UsageError) as refusal:
        wrong()
    assert refusal.value.code == "USE-001"


def test_a_distance_in_ln_needs_positive_values():
    with pytest.raises(UsageError, match="positive"):
        spread(uniform(0, 1), logarithmic=True)
    with pytest.raises(UsageError, match="positive"):
        spread(weights([-1, 1]), logarithmic=True)


def test_a_lattice_of_too_many_values_is_refused():
    with pytest.raises(UsageError, match="more than"):
        spread(uniform(0, 10**7, step=1), logarithmic=False)


def test_empty_bins_at_the_ends_are_left_out():
    assert ends_of(histogram([0, 1, 2, 3, 4], [0, 1, 1, 0])) == (1.0, 3.0)


def test_a_step_that_a_float_only_nearly_is_keeps_its_last_point():
    atoms = spread(uniform(0, "0.3", step="0.1"), logarithmic=False)
    assert isinstance(atoms, Atoms)
    assert len(atoms.values) == 4


def integral(prior, logarithmic, rate, place, *, left):
    """Work a one-sided mass out by a sum over a fine grid, up to the constant of the prior."""
    low, high = ends_of(prior)
    edges = np.linspace(low, high, 200_001)
    x = (edges[1:] + edges[:-1]) / 2
    if hasattr(prior, "mean"):
        logs = -((x - prior.mean) ** 2) / (2 * prior.deviation**2)
        f = np.exp(logs - np.max(logs))
    elif hasattr(prior, "edges"):
        heights = np.array(prior.weights) / np.diff(prior.edges)
        f = heights[np.clip(np.searchsorted(prior.edges, x, side="right") - 1, 0, None)]
    else:
        f = np.ones_like(x) / (high - low)
    t = np.log(x) if logarithmic else x
    side = t <= place if left else t >= place
    return float(np.sum((f * np.exp(-rate * np.abs(t - place)))[side]) * (edges[1] - edges[0]))


@pytest.mark.parametrize("logarithmic", [False, True])
@pytest.mark.parametrize("rate", [0.0, 0.3, 5.0])
@pytest.mark.parametrize(
    "prior",
    [uniform(1, 5), normal(2, 0.7, 1, 5), normal(9, 1, 1, 5), histogram([1, 2, 4, 5], [1, 5, 2])],
    ids=["uniform", "normal", "tail", "histogram"],
)
def test_masses_of_pieces_are_those_of_the_density(prior, rate, logarithmic):
    pieces = spread(prior, logarithmic=logarithmic)
    assert isinstance(pieces, Pieces)
    kernel = kernel_of(pieces, rate)
    for value in (1.5, 3.0, 4.9):
        place = math.log(value) if logarithmic else value
        here = np.array([place])
        for function, left in ((left_of, True), (right_of, False)):
            found = math.exp(function(kernel, here)[0])
            truth = integral(prior, logarithmic, rate, place, left=left)
            assert found == pytest.approx(truth, rel=1e-3, abs=0)


def test_a_far_tail_does_not_vanish():
    pieces = spread(normal(0, 1, 0, 1000), logarithmic=False)
    kernel = kernel_of(pieces, 1.0)
    there = left_of(kernel, np.array([900.0]))[0]
    assert np.isfinite(there)
    assert there == pytest.approx(-900 + 0.5 + math.log(math.sqrt(math.pi / 2)), abs=1)
