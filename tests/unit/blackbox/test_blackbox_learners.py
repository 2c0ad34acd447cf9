"""The learners of the figures: the SVM is optimal, and moves less than Proposition 19 allows."""

import importlib.util
import math
import sys
from pathlib import Path

import numpy as np
import pytest

from secant.blackbox import Distribution, release, sample_sensitivity
from secant.noise.mechanisms.bernstein import BernsteinNoise

PLACE = Path(__file__).parents[3] / "bench" / "learners.py"


@pytest.fixture(scope="module")
def learners():
    spec = importlib.util.spec_from_file_location("bench_learners", PLACE)
    module = importlib.util.module_from_spec(spec)
    sys.modules["bench_learners"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("dimension", [1, 2, 8, 30])
@pytest.mark.parametrize("cost", [0.5, 3.0, 100.0])
def test_no_small_step_improves_the_svm(learners, dimension, cost):
    generator = np.random.default_rng(dimension)
    records = learners.TwoClasses(dimension)(200, generator)
    found = learners.LinearSvm(cost)(records)
    rows = records[:, -1:] * np.column_stack([records[:, :-1], np.ones(len(records))])

    def loss(at):
        return 0.5 * at[:-1] @ at[:-1] + cost / 200 * np.maximum(0, 1 - rows @ at).sum()

    best = loss(found)
    for size in (1e-1, 1e-3, 1e-5):
        for _ in range(50):
            step = generator.normal(size=len(found))
            assert loss(found + size * step) >= best - 1e-12


def test_the_svm_moves_less_than_its_bound(learners):
    law = Distribution("two classes", learners.TwoClasses(2))
    found = sample_sensitivity(
        learners.LinearSvm(3.0), law, n=100, m=30, workers=0, generator=np.random.default_rng(1)
    )
    assert found.shape == (3,)
    assert 0 < found.distances[-1] <= 2 + 2 * 3 * math.sqrt(2) + 4 * 3 * 2 / 100


def test_a_density_is_released(learners):
    law = Distribution("two bumps", learners.TwoBumps())
    records = law.draw(300, np.random.default_rng(1))
    density = learners.KernelDensity()
    options = {"epsilon": 500, "gamma": 0.1, "workers": 0, "mechanism": BernsteinNoise(1, 10, 3)}
    found = release(density, records, law, **options)
    exact = density(records)
    # the noise is small here; what is left is what a polynomial of degree 10 misses
    assert found.value((0.75,)) == pytest.approx(exact((0.75,)), abs=1.5)
    most = density.kernel(np.zeros(1))[0] / 300
    assert found.sensitivity.estimate <= 11 * most
