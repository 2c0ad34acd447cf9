"""A release on two databases that are as near as sampled is (ε, δ)-indistinguishable; less noise is caught.

False alarm at most 1e-9 a test (judging.violation). The planted fault is an estimate that was shrunk.
"""

import dataclasses
import functools

import numpy as np
import pytest
from judging import draws, violation

from secant.blackbox import release, sample_sensitivity, uniform
from secant.noise.mechanisms.bernstein import BernsteinNoise

ONE = np.linspace(0.05, 0.9, 6)
EPSILON = 1.0


def mean(records):
    return records.mean()


def scores(records):
    return [float((records < 0.5).sum()), float((records >= 0.5).sum())]


def curve(records):
    return lambda point: float((records < point[0]).mean())


def neighbor(function, estimate):
    """Give a database that differs in one record and moves the result by the estimate, about."""
    two = ONE.copy()
    if function is mean:
        two[-1] -= 6 * 0.999 * estimate.estimate
    else:
        two[-1] = 0.4 if function is scores else 0.05
    return two


@functools.cache
def estimated(function, norm, points=None):
    return sample_sensitivity(
        function,
        uniform(),
        n=6,
        gamma=0.2,
        norm=norm,
        points=points,
        workers=0,
        generator=np.random.default_rng(5),
    )


CASES = {
    "laplace": (mean, "l1", "laplace", None, 0.0, float),
    "gaussian": (mean, "l2", "gaussian", None, 0.01, float),
    "exponential": (scores, "linf", "exponential", None, 0.0, int),
    "permute-and-flip": (scores, "linf", "permute-and-flip", None, 0.0, int),
    "bernstein": (curve, "l1", BernsteinNoise(1, 2, 1), (0.0, 0.5, 1.0), 0.0, None),
}


def sample(case, data, estimate, count):
    function, _, mechanism, _, delta, read = CASES[case]
    options = {"epsilon": EPSILON, "delta": delta, "mechanism": mechanism, "workers": 0}
    found = (release(function, data, estimate, **options).value for _ in range(count))
    return [read(value) if read else float(value.values[1]) for value in found]


@pytest.mark.parametrize("case", CASES)
def test_two_near_databases_are_indistinguishable(case):
    function, norm, _, points, delta, _ = CASES[case]
    estimate = estimated(function, norm, points)
    two = neighbor(function, estimate)
    ruler = estimate.ruler
    apart = ruler.apart(ruler.read(function(ONE)), ruler.read(function(two)))
    assert apart <= estimate.estimate
    # normal noise is calibrated anew for each release, which is slow
    count = draws(800, 10_000) if case == "gaussian" else draws(2500, 60_000)
    honest = [sample(case, data, estimate, count) for data in (ONE, two)]
    assert violation(*honest, EPSILON, delta) <= 0
    assert violation(*honest[::-1], EPSILON, delta) <= 0


@pytest.mark.parametrize("case", ["laplace", "gaussian", "exponential"])
def test_a_shrunken_estimate_is_caught(case):
    function, norm, _, points, delta, _ = CASES[case]
    estimate = estimated(function, norm, points)
    shrunk = dataclasses.replace(
        estimate, distances=tuple(distance / 8 for distance in estimate.distances)
    )
    planted = [sample(case, data, shrunk, 600) for data in (ONE, neighbor(function, estimate))]
    assert max(violation(*planted, EPSILON, delta), violation(*planted[::-1], EPSILON, delta)) > 0
