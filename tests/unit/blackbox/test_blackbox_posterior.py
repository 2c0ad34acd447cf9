"""A parameter drawn from its posterior: the law, the promise, what cannot be meant."""

import math
from fractions import Fraction

import numpy as np
import pytest

from secant.blackbox import posterior, release, uniform
from secant.blackbox.posterior import PosteriorSampler
from secant.errors import UsageError
from secant.sensitivity.bounds import GlobalBound

GRID = np.array([0.1, 0.5, 0.9])
"""Chances of a coin: the parameters."""


def likelihood(records):
    """Give the log-likelihood of every parameter: how often a record is below it, and above."""
    below = (np.asarray(records)[:, None] < GRID).sum(axis=0)
    return below * np.log(0.8) + (len(records) - below) * np.log(0.2)


def law(scores, prior, sharpness):
    weights = np.array(prior) * np.exp(sharpness * (np.array(scores) - max(scores)))
    return weights / weights.sum()


def sharpness_of(bound, epsilon):
    return float(
        PosteriorSampler().calibrate(GlobalBound(bound, "linf"), epsilon=epsilon).sharpness
    )


def worst_ratio(epsilon, bound, prior, sharpness):
    """Give the largest logarithm of a ratio over neighbors whose scores move by at most the bound."""
    found = 0.0
    for moves in np.stack(np.meshgrid(*[[-bound, 0, bound]] * 3), -1).reshape(-1, 3):
        one = law([-1.0, 0.0, -3.0], prior, sharpness)
        other = law(np.array([-1.0, 0.0, -3.0]) + moves, prior, sharpness)
        found = max(found, float(np.abs(np.log(one / other)).max()))
    return found


CASES = [(epsilon, bound) for epsilon in ("0.5", "2", "8") for bound in ("0.3", "1.4")]


@pytest.mark.parametrize(("epsilon", "bound"), CASES)
def test_no_two_neighbors_are_told_apart_by_more(epsilon, bound):
    price, far = Fraction(epsilon), Fraction(bound)
    sharpness = sharpness_of(far, price)
    assert sharpness <= 1  # a posterior is never made sharper than it is
    assert worst_ratio(epsilon, float(far), (5, 1, 2), sharpness) <= float(price) + 1e-12


def test_planted_a_posterior_that_is_not_cooled_enough():
    assert worst_ratio("0.5", 1.4, (5, 1, 2), 1.0) > 0.5
    assert worst_ratio("0.5", 1.4, (5, 1, 2), 0.5 / 1.4) > 0.5


def test_draws_follow_the_prior_and_the_cooled_likelihood():
    mechanism = posterior([0.6, 0.1, 0.3])
    choice = mechanism.calibrate(GlobalBound(Fraction(1), "linf"), epsilon=Fraction(1))
    scores = [Fraction(-1), Fraction(0), Fraction(-3)]
    drawn = 3000
    counts = np.bincount([choice.draw(scores, mechanism.prior) for _ in range(drawn)], minlength=3)
    # Hoeffding for three frequencies: a false alarm in at most 1e-9 of all runs.
    slack = math.sqrt(math.log(6e9) / (2 * drawn))
    expected = law([-1.0, 0.0, -3.0], (6, 1, 3), 0.5)
    assert np.abs(counts / drawn - expected).max() <= slack
    for wrong in (law([-1.0, 0.0, -3.0], (1, 1, 1), 0.5), law([-1.0, 0.0, -3.0], (6, 1, 3), 2.0)):
        assert np.abs(wrong - expected).max() > 2 * slack  # planted: no prior, no cooling


def test_a_parameter_is_released():
    records = np.linspace(0, 1, 40)
    options = {"epsilon": 2, "gamma": 0.2, "workers": 0, "candidates": ["low", "middle", "high"]}
    found = release(likelihood, records, uniform(), mechanism=posterior([1, 2, 1]), **options)
    assert found.value in ("low", "middle", "high")
    assert found.mechanism == "posterior"
    assert found.guarantee.gamma == Fraction(1, 5)
    # One record moves a log-likelihood by ln 4 at most, so it is cooled to ε/(2 ln 4) or not at all.
    assert found.noise.sharpness <= 1
    plain = release(likelihood, records, uniform(), mechanism="posterior", **options)
    assert plain.error < found.error  # a rare parameter may be left out more easily


@pytest.mark.parametrize("prior", [[], [1, 0], [1, -1], ["x", 1], [Fraction(1, 10**9 + 7), 10**9]])
def test_a_prior_that_cannot_be_meant(prior):
    with pytest.raises(UsageError):
        posterior(prior)


def test_a_prior_for_other_candidates_is_refused_before_anything():
    touched = []

    def watched(records):
        touched.append(len(records))
        return likelihood(records)

    with pytest.raises(UsageError, match="one share for each candidate"):
        release(
            watched, np.linspace(0, 1, 7), uniform(), epsilon=1, gamma=0.2, workers=0,
            mechanism=posterior([1, 2]),
        )  # fmt: skip
    with pytest.raises(UsageError, match="one score for each candidate"):
        release(
            likelihood, np.linspace(0, 1, 7), uniform(), epsilon=1, gamma=0.2, workers=0,
            mechanism="posterior", candidates=["low"],
        )  # fmt: skip
