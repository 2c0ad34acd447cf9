"""What is made of a released series: least squares over all steps, rising series, filters."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import chance
from secant.errors import UsageError
from secant.noise.continual import Mechanism, StreamFacts, choose
from secant.noise.continual.afterwards import followed, isotonic, revised
from secant.noise.continual.choosing import best
from secant.noise.continual.encoder import Encoder
from secant.noise.continual.ends import variance_of
from secant.noise.continual.levels import Tree


def facts(horizon, delta=0, **more):
    return StreamFacts(horizon, Fraction(1), Fraction(delta), 1, **more)


REVISED = {
    "tree": (Mechanism("tree", "laplace", facts(40), (Tree(3, 3),)), 40),
    "on the way": (Mechanism("tree", "laplace", facts(100), (Tree(4, 3),)), 27),
    "epochs": (Mechanism("tree", "laplace", facts(None), (Tree(5, 2), Tree(3, 3))), 35),
    "increments": (Mechanism("increments", "laplace", facts(9), (Tree(2, 1),)), 9),
}


def outputs(way, until):
    return [output for t in range(1, until + 1) for output in way.due(t)]


@pytest.mark.parametrize("name", REVISED)
def test_all_steps_at_once_are_the_least_squares(name):
    way, until = REVISED[name]
    found = outputs(way, until)
    variances = np.array([variance_of(way.stretch(o.last).noise) for o in found])
    weights = np.zeros((len(found), until))
    for row, output in zip(weights, found, strict=True):
        row[output.first - 1 : output.last] = 1
    luck = chance.chance()
    numbers = [luck.randrange(-30, 60) for _ in found]
    # weighted least squares by the normal equations, of a matrix that knows nothing of trees
    inverse = np.linalg.pinv(weights / np.sqrt(variances)[:, None]) / np.sqrt(variances)
    single = inverse @ numbers
    errors = np.sqrt((inverse**2) @ variances)
    running = np.tril(np.ones((until, until))) @ inverse
    points = revised(way, {o.name: n for o, n in zip(found, numbers, strict=True)}, until)
    assert [p.increment.value for p in points] == pytest.approx(single)
    assert [p.prefix.value for p in points] == pytest.approx(running @ numbers)
    assert [p.increment.deviation for p in points] == pytest.approx(errors)
    assert [p.prefix.deviation for p in points] == pytest.approx(np.sqrt(running**2 @ variances))
    for point in points:
        assert point.prefix.low < point.prefix.value < point.prefix.high


def test_all_steps_at_once_are_better_than_one_after_another():
    way = Mechanism("tree", "laplace", facts(400), (Tree(10, 3),))
    points = revised(way, {o.name: 0 for o in outputs(way, 400)}, 400)
    batch = math.sqrt(np.mean([p.prefix.deviation**2 for p in points]))
    assert batch == pytest.approx(9.2, rel=0.02)
    assert math.sqrt(np.mean(way.deviations(400) ** 2)) == pytest.approx(13.2, rel=0.02)


def test_an_encoder_has_nothing_to_revise():
    way = Mechanism("toeplitz", "normal", facts(9, Fraction(1, 10**6)), (Encoder(9),))
    released = {o.name: i for i, o in enumerate(outputs(way, 9))}
    assert revised(way, released, 9) == way.series(released, 9)


def test_the_nearest_rising_series_is_found():
    assert isotonic([1, 3, 2, 2, 5, 4]) == [1, 7 / 3, 7 / 3, 7 / 3, 4.5, 4.5]
    assert isotonic([]) == []
    assert isotonic([3, 2, 1]) == [2, 2, 2]


def rising(luck, rate, steps=400):
    truth = np.cumsum([luck.random() < rate for _ in range(steps)]).astype(float)
    noise = np.array([luck.gauss(0, 5) for _ in range(steps)])
    return truth, truth + noise


@pytest.mark.parametrize("rate", [0.01, 0.5, 1.0])
def test_a_rising_series_is_never_further_from_the_truth(rate):
    luck = chance.chance()
    for _ in range(20):
        truth, seen = rising(luck, rate)
        before, after = ((np.array(x) - truth) ** 2 for x in (seen, isotonic(list(seen))))
        assert after.sum() <= before.sum()


def test_a_running_maximum_would_be_noticed():
    """Planted: it is further from the truth than what was released."""
    luck = chance.chance()
    truth, seen = rising(luck, 0.01)
    maximum = np.maximum.accumulate(seen)
    assert ((maximum - truth) ** 2).sum() > ((seen - truth) ** 2).sum()


def filtered(seen, drift):
    """Kalman's filter of a walk whose steps have variance `drift`: forwards, one number at a time."""
    mean, variance = seen[0].value, seen[0].deviation ** 2
    found = [mean]
    for one in seen[1:]:
        variance += drift
        gain = variance / (variance + one.deviation**2)
        mean += gain * (one.value - mean)
        variance *= 1 - gain
        found.append(mean)
    return found


def test_a_walk_is_followed_through_all_blocks():
    """Against the textbook: a Kalman filter over single steps, and the sums of blocks taken for what they are."""
    way = choose(StreamFacts(400, Fraction(1), Fraction(0), 1)).chosen
    plain = replace(way, name="increments", designs=(Tree(2, 1),))
    draw = np.random.default_rng(5)
    steps = np.rint(100 + np.cumsum(draw.normal(0, 2, 400))).astype(int)
    sums = {i + 1: int(x) for i, x in enumerate(steps)}
    released = {o.name: plain.draw(o, o.of(sums)) for t in range(1, 401) for o in plain.due(t)}
    followed_steps = followed(plain, released, 400, 4.0)
    points = [point.increment for point in plain.series(released, 400)]
    # the last step of the walk is what the filter says, once its start is forgotten
    assert followed_steps[-1] == pytest.approx(filtered(points, 4.0)[-1], abs=1e-6)
    totals, kinds = np.zeros(2), ("walk", "blocks")
    for _ in range(40):
        released = {o.name: way.draw(o, o.of(sums)) for t in range(1, 401) for o in way.due(t)}
        walk = np.cumsum(followed(way, released, 400, 4.0))
        series = dict(zip(kinds, (walk, way.values(released, 400, "running")), strict=True))
        totals += [np.mean((series[kind] - np.cumsum(steps)) ** 2) for kind in kinds]
    # about half of the squared error; its mean over 40 draws is off by a tenth, so that seven deviations lie between
    assert totals[0] < totals[1]


@pytest.mark.parametrize("drift", [0.0, -1.0, math.inf, math.nan])
def test_a_walk_needs_a_drift(drift):
    way = choose(StreamFacts(4, Fraction(1), Fraction(0), 1)).chosen
    with pytest.raises(UsageError):
        followed(way, {}, 4, drift)


def test_an_encoder_is_followed_too():
    way = best(StreamFacts(30, Fraction(5), Fraction(1, 10**6), 1), "normal", "toeplitz")
    sums = dict.fromkeys(range(1, 31), 50)
    released = {o.name: way.draw(o, o.of(sums)) for t in range(1, 31) for o in way.due(t)}
    assert followed(way, released, 30, 1.0) == pytest.approx([50] * 30, abs=15)
