"""All in one: what a release of a join really reveals about one row, from its noise, its bounds and real neighbors.

For each pair of neighbors the probabilities of answers are computed from the law of the noise, and the largest
logarithm of their ratio, summed over groups and measures, is held against epsilon.
"""

import math
import random
from dataclasses import replace
from fractions import Fraction

import pytest
from joins_cases import FEW, GIANT, NOTHING, UNEVEN
from joins_check import BETAS, Findings, Target, releases_of, tables_in
from joins_worlds import neighbors, world

from chance import LONG
from secant.noise import choosing, shares
from secant.noise.smooth import SurveyNoise
from secant.plan.facts.facts import Facts
from secant.sensitivity.portfolio import CertifiedRelease, Context, bound_aggregate

EPSILON = 1.0
TEXTS = (
    "SELECT count(*) FROM r JOIN s ON r.b = s.b",
    "SELECT count(*), sum(r.a) FROM r JOIN s ON r.b = s.b",
    "SELECT r.b, count(*) FROM r JOIN s ON r.b = s.b GROUP BY r.b",
    "SELECT r.a, count(*) FROM r JOIN s ON r.b = s.b GROUP BY r.a",
    "SELECT q1.a, count(*) FROM r q1 JOIN r q2 ON q1.a = q2.b GROUP BY q1.a",
    "SELECT count(*) FROM o q1, o q2, o q3 WHERE q1.a = q2.a AND q2.a = q3.a",
    "SELECT count(*) FROM (SELECT a FROM r UNION ALL SELECT b FROM r) q JOIN s ON q.a = s.b",
    "SELECT count(*) FROM r LEFT JOIN s ON r.b = s.b",
)
FAR = (0.0, 0.1, 0.5, 0.9, 1.0, 1.1, 1.5, 3.0, 10.0, 50.0, 300.0)


def tail(law, v):
    """Give the probability of more than v, on both sides, of the optimal law."""
    k = float(law.k)
    a = math.exp((k - 1) * math.log1p(-1 / k))
    body = 1 + 2 * a / k
    if v >= 1:
        return a * (1 + 1 / k) ** (k + 1) * (1 + v / k) ** -k / body
    return ((1 - v / k) ** k + 2 * a / k) / body


def below(law, v):
    return 1 - tail(law, v) / 2 if v >= 0 else tail(law, -v) / 2


def probability(law, value, scale, point):
    low, high = (point - 0.5 - value) / scale, (point + 0.5 - value) / scale
    if low >= 0:
        return (tail(law, low) - tail(law, high)) / 2
    if high <= 0:
        return (tail(law, -high) - tail(law, -low)) / 2
    return below(law, high) - below(law, low)


def smooth_loss(law, one, two):
    """Give the largest log-ratio between two values with scales of their own."""
    points = {
        round(value + sign * far * scale)
        for value, scale in (one, two)
        for far in FAR
        for sign in (-1, 1)
    }
    return max(abs(math.log(probability(law, *one, x) / probability(law, *two, x))) for x in points)


def largest_loss(text, *, replaced=False, pairs=40):
    place, draw = world(replaced=replaced), random.Random(2)
    (release,) = releases_of(text, place)
    bounded = bound_aggregate(
        release.original, release.name, Context(Facts(place.policy, place.catalog), (place.protection,))
    )  # fmt: skip
    assert isinstance(bounded, CertifiedRelease)
    made = shares.calibrate(
        (bounded,), (place.protection,), Fraction(EPSILON), {place.protection.name: Fraction(0)}
    )
    tables = tables_in(release.exact)
    target = Target(
        text, place, bounded.release, bounded.certificates[0], tables, Findings(), BETAS
    )
    worst = 0.0
    for start in (NOTHING, FEW, GIANT, UNEVEN):
        found = list(neighbors(start, tables, place, draw))
        for other in draw.sample(found, min(pairs, len(found))):
            worst = max(worst, loss(target, made, start, other))
    return worst


def loss(target, made, before, after):
    one, two = target.read(before), target.read(after)
    nothing = (Fraction(0),) * len(target.release.measures)
    groups = dict.fromkeys((*one.measured, *two.measured, *target._quiet_groups()))
    total = 0.0
    for index, measure in enumerate(target.release.measures):
        noise = made.noise[measure.column]
        for group in groups:
            values = [float(r.measured.get(group, nothing)[index]) for r in (one, two)]
            if not isinstance(noise, SurveyNoise):
                total += abs(values[0] - values[1]) / float(noise.law.scale)
                continue
            bound = noise.bound
            scales = [
                noise.smooth.scale(
                    Fraction(bound.each) * Fraction(target.bound(bound, noise.beta, r, group))
                )
                for r in (one, two)
            ]
            sides = [
                (v, float(Fraction(int(s.p), int(s.q))))
                for v, s in zip(values, scales, strict=True)
            ]
            if sides[0] != sides[1]:
                total += smooth_loss(noise.smooth.law, *sides)
    return total


@pytest.mark.parametrize("replaced", [False, True], ids=["one more or less", "replaced"])
@pytest.mark.parametrize("text", TEXTS)
def test_a_row_costs_no_more_than_epsilon(text, replaced):
    worst = largest_loss(text, replaced=replaced, pairs=200 if LONG else 15)
    assert 0.05 * EPSILON < worst <= EPSILON * (1 + 1e-6)


def test_noise_that_is_too_small_is_noticed(monkeypatch):
    right = shares.calibrate

    def wrong(*arguments):
        made = right(*arguments)
        noise = {
            c: replace(x, smooth=replace(x.smooth, rate=x.smooth.rate * 4))
            for c, x in made.noise.items()
        }
        return replace(made, noise=noise)

    monkeypatch.setattr(shares, "calibrate", wrong)
    assert largest_loss(TEXTS[0]) > EPSILON


def test_groups_that_do_not_share_epsilon_are_noticed(monkeypatch):
    right = choosing._surveyed
    monkeypatch.setattr(
        choosing,
        "_surveyed",
        lambda bound, share, truthful: right(replace(bound, groups=1), share, truthful),
    )
    assert largest_loss(TEXTS[3]) > EPSILON
