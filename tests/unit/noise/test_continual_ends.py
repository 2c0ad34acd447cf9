"""Ends of a series: they hold as often as they say, and are hardly wider than they must be."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom

import chance
from secant.errors import UsageError
from secant.noise.continual import Mechanism, StreamFacts, ends
from secant.noise.continual.afterwards import revised
from secant.noise.continual.encoder import Encoder
from secant.noise.continual.ends import Kind, half_width, half_widths
from secant.noise.continual.levels import Tree
from secant.noise.mechanisms.sums import whole_sum_error
from secant.noise.mechanisms.whole import WholeLaplace, WholeNormal

DRAWS = 200_000 if chance.LONG else 20_000
FEWEST = int(binom.ppf(1e-9, DRAWS, 0.95))


def facts(horizon, epsilon=1, delta=0, **more):
    return StreamFacts(horizon, Fraction(epsilon), Fraction(delta), 1, **more)


def column(*counts):
    return np.array(counts, np.int64)[:, None]


@pytest.mark.parametrize("scale", ["1/50", "1/4", "1/2", "1", "3", "10"])
@pytest.mark.parametrize("count", [1, 2, 5, 50])
def test_sums_of_whole_noises_reach_as_far_as_their_exact_law_says(scale, count):
    scale = Fraction(scale)
    kind = Kind(WholeLaplace(scale), ((1.0, 1),))
    (found,) = half_widths([kind], column(count))
    exact = whole_sum_error([float(scale)] * count, 0.95)
    assert exact <= found <= 1.02 * exact
    assert found == half_width((Kind(WholeLaplace(scale), ((1.0, count),)),))


@pytest.mark.parametrize("deviation", ["1/100", "1/3", "2", "100"])
def test_rounded_normal_noise_reaches_as_far_as_it_says(deviation):
    noise = WholeNormal(Fraction(deviation))
    (found,) = half_widths([Kind(noise, ((1.0, 1),))], column(1))
    exact = noise.error(Fraction(95, 100))
    assert exact <= found <= 1.02 * exact


def test_an_error_that_is_nothing_has_no_width():
    kind = Kind(WholeLaplace(Fraction(3)), ((1.0, 1),))
    assert half_widths([kind], column(0)) == [0]
    assert half_width(()) == 0


def noises(luck, noise, shape):
    """Draw noise by the book: the samplers have tests of their own."""
    if isinstance(noise, WholeNormal):
        return np.rint(luck.normal(0, float(noise.deviation), shape))
    tail = -math.expm1(-1 / float(noise.scale))
    return (luck.geometric(tail, shape) - luck.geometric(tail, shape)).astype(float)


WAYS = {
    "tree": (Mechanism("tree", "laplace", facts(60), (Tree(4, 3),)), (1, 5, 16, 43, 60)),
    "little noise": (Mechanism("tree", "laplace", facts(60, 9), (Tree(4, 3),)), (3, 23, 60)),
    "window": (Mechanism("tree", "laplace", facts(60, shows=11), (Tree(4, 2),)), (5, 30, 53)),
    "epochs": (Mechanism("tree", "laplace", facts(None), (Tree(5, 2), Tree(10, 2))), (7, 10, 41)),
    "normal": (
        Mechanism("tree", "normal", facts(60, 3, Fraction(1, 1000)), (Tree(4, 3),)),
        (1, 21, 60),
    ),
    "toeplitz": (
        Mechanism("toeplitz", "normal", facts(60, 1, Fraction(1, 10**6)), (Encoder(60),)),
        (1, 21, 60),
    ),
}


def held(way, until, luck, read):
    """Count how often ends hold the truth, which is 0, and how wide they are against a deviation."""
    outputs = [output for t in range(1, until + 1) for output in way.due(t)]
    point = read({output.name: 0 for output in outputs})
    low, high = point.low - point.value, point.high - point.value
    # estimates are linear in the numbers: each unit vector gives a weight
    weights = [read({o.name: int(o is output) for o in outputs}).value for output in outputs]
    noise = [noises(luck, way.stretch(output.last).noise, DRAWS) for output in outputs]
    errors = sum(w * z for w, z in zip(weights, noise, strict=True))
    inside = int(((errors >= low) & (errors <= high)).sum())
    return inside, (high - low) / 2 / point.deviation


@pytest.mark.parametrize("name", WAYS)
def test_ends_hold_as_often_as_they_say(name):
    way, steps = WAYS[name]
    luck = np.random.default_rng(chance.fresh_seed())
    for until in steps:

        def read(released, until=until):
            (point,) = way.series(released, until, since=until)
            return point.window or point.prefix

        inside, width = held(way, until, luck, read)
        assert inside >= FEWEST
        assert width <= 2.25 or way.facts.epsilon > 1  # 2.12 for one Laplace noise, 1.96 for many


def test_ends_of_revised_series_hold():
    way = Mechanism("tree", "laplace", facts(40), (Tree(3, 3),))
    luck = np.random.default_rng(chance.fresh_seed())
    for step in (2, 14, 40):

        def read(released, step=step):
            return revised(way, released, 40, since=step)[0].prefix

        inside, width = held(way, 40, luck, read)
        assert inside >= FEWEST
        assert width <= 2.25


@pytest.mark.parametrize("name", WAYS)
def test_ends_at_a_higher_level_are_wider_and_hold_more_often(name):
    way, steps = WAYS[name]
    luck = np.random.default_rng(chance.fresh_seed())
    fewest = binom.ppf(1e-9, DRAWS, 0.995)
    until = steps[-1]

    def read(released):
        (point,) = way.series(released, until, since=until, level=0.995)
        return point.window or point.prefix

    inside, width = held(way, until, luck, read)
    assert inside >= fewest
    assert width > 2.4 or way.facts.epsilon > 1


@pytest.mark.parametrize("level", [0, 1, 0.99999, -1, math.nan])
def test_levels_that_cannot_be_told_are_refused(level):
    with pytest.raises(UsageError):
        WAYS["tree"][0].series({}, 1, level=level)


def test_ends_of_too_low_a_level_would_be_noticed(monkeypatch):
    monkeypatch.setattr(ends, "SLIP", -0.015)
    way = Mechanism("tree", "laplace", facts(61), (Tree(4, 3),))  # its ends are not known yet
    luck = np.random.default_rng(chance.fresh_seed())

    def read(released):
        return way.series(released, 43, since=43)[0].prefix

    assert held(way, 43, luck, read)[0] < FEWEST
