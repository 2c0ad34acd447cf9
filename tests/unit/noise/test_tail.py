"""What a noisy tally by octave tells: laws against direct sums, who is seen, and how often the usual error holds."""

import math
import random
from itertools import pairwise

import pytest

from secant.noise.tail import (
    OctaveTally,
    confirmed,
    cut_by_tally,
    last_seen,
    noisy_poisson,
    threshold,
    to_look_at_again,
    usual_limit,
)

EDGES = tuple(2.0**k for k in range(21))


def laplace(generator, epsilon):
    """Draw two-sided geometric noise."""
    one, other = (int(-math.log1p(-generator.random()) / epsilon) for _ in range(2))
    return one - other


def exact(added):
    """Count people by octave."""
    return [sum(a < x <= b for x in added) for a, b in pairwise(EDGES)]


def tallied(added, epsilon, generator):
    """Take a noisy tally."""
    counts = tuple(c + laplace(generator, epsilon) for c in exact(added))
    return OctaveTally(EDGES, counts, epsilon)


@pytest.mark.parametrize("count", [-7, 0, 2, 60, 180])
@pytest.mark.parametrize("mean", [1e-4, 0.4, 5.0, 90.0, 590.0])
@pytest.mark.parametrize("epsilon", [0.09, 0.3, 0.9])
def test_the_law_of_a_noisy_count_is_the_direct_sum(count, mean, epsilon):
    q = math.exp(-epsilon)
    direct = math.fsum(
        math.exp(n * math.log(mean) - mean - math.lgamma(n + 1)) * q ** abs(count - n)
        for n in range(2000)
    )
    expected = math.log(direct * (1 - q) / (1 + q))
    assert noisy_poisson(count, mean, epsilon) == pytest.approx(expected, rel=1e-4, abs=1e-7)


@pytest.mark.parametrize("several", [1, 2, 3, 5])
def test_thresholds_are_those_of_the_convolved_law(several):
    epsilon, far = 0.5, 160
    q = math.exp(-epsilon)
    one = {d: (1 - q) / (1 + q) * q ** abs(d) for d in range(-far, far + 1)}
    law = {0: 1.0}
    for _ in range(several):
        convolved = {}
        for a, p in law.items():
            for b, r in one.items():
                convolved[a + b] = convolved.get(a + b, 0.0) + p * r
        law = {d: p for d, p in convolved.items() if p > 1e-30}
    for chance in (0.3, 0.01, 1e-4, 1e-7):
        t = threshold(several, epsilon, chance)
        beyond = math.fsum(p for d, p in law.items() if d > t)
        assert beyond <= chance * (1 + 1e-9)
        assert t == 0 or beyond + law[t] > chance * (1 - 1e-9)


def test_noise_is_rarely_taken_for_people():
    generator = random.Random(5)
    crowd = [1.5] * 2000
    wrong = sum((last_seen(tallied(crowd, 0.3, generator)) or 0) > 0 for _ in range(400))
    assert wrong <= 30  # 1 in 100 is allowed: more than 30 of 400 have chance below 1e-15


def test_a_group_far_above_is_seen_and_looked_at_again():
    generator = random.Random(6)
    added = [3.0] * 3000 + [3000.0] * 40
    tallies = [tallied(added, 0.3, generator) for _ in range(200)]
    seen = [t for t in tallies if last_seen(t) == 11]
    assert len(seen) >= 150  # 95 % are expected: fewer than 150 of 200 have chance below 1e-15
    (edge,) = {to_look_at_again(t) for t in seen if to_look_at_again(t) is not None}
    assert 3 <= edge <= 11
    assert all(confirmed(t, 40, 0.2) == 11 for t in seen)
    assert all(confirmed(t, 0, 0.2) != 11 or last_seen(t, strict=True) == 11 for t in seen)


@pytest.mark.parametrize("edge", [0, 4, 12, 19])
def test_no_more_people_are_above_an_edge_than_is_said(edge):
    generator = random.Random(edge)
    added = [2.0 ** generator.uniform(0, 9) for _ in range(500)]
    above = sum(x > EDGES[edge] for x in added)
    said = [cut_by_tally(tallied(added, 0.5, generator), edge, 0.2) for _ in range(400)]
    assert sum(x < above for x in said) <= 30  # 1 in 100 is allowed, as in the test of noise above


def test_a_number_without_room_for_noise_would_be_noticed():
    """A planted fault: the noisy tally as it came says too few half of the time."""
    generator = random.Random(9)
    added = [2.0 ** generator.uniform(0, 9) for _ in range(500)]
    above = sum(x > EDGES[4] for x in added)
    said = [sum(tallied(added, 0.5, generator).counts[4:]) for _ in range(400)]
    assert sum(x < above for x in said) > 100


BODIES = {
    "lognormal": lambda g: math.exp(g.gauss(3, 1)),
    "pareto": lambda g: 10 * (1 - g.random()) ** -0.5,
    "geometric": lambda g: 1 + int(-math.log1p(-g.random()) * 12),
    "uniform": lambda g: 1 + 60 * g.random(),
}


def held(body, generator):
    """Draw one answer: whether the usual error holds the sum, and whether noise alone would."""
    added = [BODIES[body](generator) for _ in range(1500)]
    tally = tallied(added, 0.3, generator)
    limit = usual_limit(tally, last_seen(tally), lambda k: (EDGES[k] / 0.7, False), choices=20)
    assert limit is not None
    edge = EDGES[limit.index]
    noise = edge / 0.7 * math.log((1 - generator.random()) / (1 - generator.random()))
    answer, truth = math.fsum(min(x, edge) for x in added) + noise, math.fsum(added)
    low, middle, high = limit.left_out()
    error = 3 * edge / 0.7
    down, up = math.hypot(error, middle - low), math.hypot(error, high - middle)
    return answer + middle - down <= truth <= answer + middle + up, abs(answer - truth) <= error


@pytest.mark.parametrize("body", BODIES)
def test_the_usual_error_holds(body):
    generator = random.Random(body)
    drawn = [held(body, generator) for _ in range(80)]
    assert (
        sum(usual for usual, _ in drawn) >= 62
    )  # at 95 %, fewer than 62 of 80 have chance below 1e-9


def test_noise_alone_would_be_noticed():
    """A planted fault: what the limit cut is left out of the error."""
    generator = random.Random(11)
    drawn = [held("pareto", generator) for _ in range(80)]
    assert sum(noise for _, noise in drawn) < 62


def test_groups_share_what_is_cut():
    generator = random.Random(12)
    added = [BODIES["pareto"](generator) for _ in range(3000)]
    tally = tallied(added, 0.3, generator)
    limit = usual_limit(tally, last_seen(tally), lambda k: (EDGES[k] / 0.7, False), choices=20)
    whole, half, tenth = (limit.left_out(share) for share in (1.0, 0.5, 0.1))
    assert whole[1] >= half[1] >= tenth[1] >= 0
    assert (
        whole[2] > half[2] > tenth[2] > 0.1 * whole[2]
    )  # heavy people are few: a group may have its share or more
    assert limit.left_out(0.1) == tenth  # the same tally says the same
