"""What a stream draws: outputs have the law that was calibrated, and series err as much as they say.

False alarms: at most 1e-9 a test, by binomial bounds. Draws are the product's own.
"""

import math
from fractions import Fraction

import numpy as np
import pytest
from judging import ALARM, draws, misfits
from scipy.stats import binom, norm

from secant.noise.continual import Mechanism, StreamFacts
from secant.noise.continual import mechanisms as ways_of_streams
from secant.noise.continual.encoder import Encoder
from secant.noise.continual.levels import Tree
from secant.noise.continual.mechanisms import half_widths_of
from secant.noise.mechanisms.whole import WholeLaplace

DELTA = Fraction(1, 100)
LEVELS = (0.5, 0.95)


def facts(horizon, epsilon, delta=0, **more):
    return StreamFacts(horizon, Fraction(epsilon), Fraction(delta), 1, **more)


TREE = Mechanism("tree", "laplace", facts(30, 2), (Tree(3, 3),))
ENCODED = Mechanism("toeplitz", "normal", facts(30, 8, DELTA), (Encoder(30, 4),))


def laplace_shares(levels, epsilon, reach=12):
    """P(noise = z) by the book: a scale of levels over epsilon."""
    r = math.exp(-epsilon / levels)
    return {z: (1 - r) / (1 + r) * r ** abs(z) for z in range(-reach, reach + 1)}


def normal_shares(deviation, reach):
    cut = norm(0, deviation).cdf
    return {z: float(cut(z + 0.5) - cut(z - 0.5)) for z in range(-reach, reach + 1)}


def drawn(way, step, exact, count):
    """Draw the last output of a step again and again, which nobody may do with a stream."""
    output = way.due(step)[-1]
    return [way.draw(output, exact) - exact for _ in range(count)]


@pytest.mark.parametrize(("step", "exact"), [(1, 0), (9, 1000), (27, -5)])
def test_blocks_have_the_noise_of_their_levels(step, exact):
    assert misfits(drawn(TREE, step, exact, draws(20_000)), laplace_shares(3, 2)) == []


def test_encoded_steps_have_normal_noise():
    deviation = float(ENCODED.stretch(1).noise.deviation)
    found = drawn(ENCODED, 7, 40, draws(8_000, 200_000))
    assert misfits(found, normal_shares(deviation, 10)) == []


def test_noise_of_a_level_too_few_would_be_noticed(monkeypatch):
    """Planted: the seed's epsilon over log2 n, on a tree of three levels."""

    def planted(facts, law, design):
        return WholeLaplace(Fraction(design.levels - 1) / facts.epsilon)

    monkeypatch.setattr(ways_of_streams, "noise_of", planted)
    assert misfits(drawn(TREE, 9, 0, 20_000), laplace_shares(3, 2)) != []


RUNS = draws(3_000, 100_000)
SERIES = {
    "tree": (TREE, 26),
    "epochs": (Mechanism("tree", "laplace", facts(None, 1), (Tree(5, 2), Tree(10, 2))), 37),
    "toeplitz": (
        Mechanism("toeplitz", "normal", facts(20, 1, Fraction(1, 10**6)), (Encoder(20),)),
        20,
    ),
}


def totals(way, until):
    """Give the error of the running total at the last step in many runs, from the product's own noise."""
    outputs = [output for t in range(1, until + 1) for output in way.due(t)]
    errors = np.zeros(RUNS)
    for output in outputs:
        weight = way.values({o.name: int(o is output) for o in outputs}, until, "running")[-1]
        if abs(weight) > 1e-12:
            noise = way.stretch(output.last).noise.add([0] * RUNS)
            errors += weight * np.array(noise, np.float64)
    return errors


@pytest.mark.parametrize("name", SERIES)
def test_running_totals_err_as_much_as_they_say(name):
    way, until = SERIES[name]
    errors = totals(way, until)
    for level in LEVELS:
        (half,) = half_widths_of(way, until, "running", until, level)
        inside = int((np.abs(errors) <= half).sum())
        assert inside >= binom.ppf(ALARM / 2, RUNS, level)
        # and ends are not much wider: by 2 % of a deviation, half a step for each noise of an encoder
        deviation = way.deviations(until)[-1]
        narrow = int((np.abs(errors) <= half - 0.15 * deviation).sum())
        assert narrow <= binom.isf(ALARM / 2, RUNS, level)
