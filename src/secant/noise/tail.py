"""What a noisy tally of people by octave says of those whom a limit would cut (noise.tail).

In: how many people add between 2^k and 2^(k+1) times the least edge, counted with two-sided geometric noise. Out: the
last octave that surely holds people, the limit whose answer will lie nearest, and between which numbers that answer's
error lies usually. All of it is post-processing of numbers that were released: nothing here sees data, and nothing here
is needed for privacy. Floats and a pseudo-random generator therefore serve; it is seeded by the tally, so that whoever
has the tally gets the same error bar.

The law of the tail above the last octave seen is a family of curves with public weights: from Pareto (straight in
octaves) over exponential (ever steeper) to an edge. Each curve is weighed by how well it explains the tally. From the
weighed family the people in each octave are drawn many times, and what each limit would cut of them is added up.
"""

from __future__ import annotations

import math
import random
from bisect import bisect_left
from collections.abc import Sequence
from functools import cache, lru_cache
from itertools import accumulate

from secant.records import frozen

FALSE = 0.01
"""How often an octave without people may be taken for one with people, over the whole tally."""
RUN = 3
"""People spread over so many octaves are seen together."""
STEEPER = 4.0
"""By what thresholds of the stricter reading fall for each octave above the fullest one."""
APART = 3
"""From so many octaves above the stricter reading on, an octave is looked at twice."""
LEAST_SLOPE, STEEPEST = 1.1, 40.0
"""Octaves fall at least like a Pareto law of this exponent (less has no mean), and not faster than that."""
SLOPES, SIZES = 26, 13
BENDS = ((0.0, 0.4), (0.1, 0.2), (0.25, 0.15), (0.5, 0.1), (1.0, 0.1), (2.0, 0.05))
"""How much steeper the fall gets by octave, and the weight of each."""
ROUGH = 0.25
"""Octaves that are seen follow the family only roughly: their counts deviate by this share besides."""
LEVEL = 0.96
"""Inner level: the tail's family is not the truth, so a bit more than the 95 % that are printed."""
DRAWS = 1000
LIGHT, HEAVY, STOPS = 1e-4, 600.0, 140
"""Expected people of an octave between which the exact law is tabled; fewer count as the fewest."""


@frozen
class OctaveTally:
    """People by octave of what they add: `counts[k]` of [edges[k], edges[k + 1]), with noise on each."""

    edges: tuple[float, ...]
    counts: tuple[int, ...]
    epsilon: float
    """Parameter of the two-sided geometric noise: P(n) falls by exp(-epsilon) for each unit."""


@frozen
class UsualLimit:
    """The limit that promises the narrowest interval, and what is to be added to an answer that is cut down to it."""

    index: int
    """Which of the edges."""
    low: float
    middle: float
    high: float


# ── which octaves hold people ────────────────────────────────────────────────────────────────────


@lru_cache(maxsize=32)
def _tail_of_noise(several: int, epsilon: float) -> tuple[float, ...]:
    """Give P(sum of so many noises > t) for t = 0, 1, 2, …, until it is below 1e-25."""
    q = math.exp(-epsilon)
    length = math.ceil((60 + 10 * several) / epsilon) + 2
    at = length  # the place of 0
    mass = [0.0] * (2 * length + 1)
    mass[at] = 1.0
    for _ in range(several):  # convolving with q^|d| is one running sum from each side
        forward = list(accumulate(mass, lambda total, x: total * q + x))
        backward = list(accumulate(reversed(mass), lambda total, x: total * q + x))[::-1]
        mass = [
            (f + b - x) * (1 - q) / (1 + q) for f, b, x in zip(forward, backward, mass, strict=True)
        ]
    beyond = list(accumulate(reversed(mass[at + 1 :])))[::-1]
    return tuple(beyond[: next((t for t, p in enumerate(beyond) if p < 1e-25), len(beyond))])


def threshold(several: int, epsilon: float, chance: float) -> int:
    """Give the least t with P(sum of so many noises > t) <= chance."""
    beyond = _tail_of_noise(several, epsilon)
    return bisect_left(beyond, -chance, key=lambda p: -p)


def last_seen(tally: OctaveTally, *, strict: bool = False) -> int | None:
    """Give the highest octave that surely holds people; None where none does.

    Runs of one, two and three octaves are held against the exact law of their noise. The strict reading asks for more
    the farther an octave lies above the fullest.
    """
    counts, epsilon = tally.counts, tally.epsilon
    octaves = len(counts)
    fullest = max(range(octaves), key=counts.__getitem__)
    last = -1
    for run in range(1, min(RUN, octaves) + 1):
        for start in range(octaves - run, -1, -1):
            top = start + run - 1
            if top <= last:
                break
            chance = FALSE / (RUN * octaves)
            if strict:
                chance *= STEEPER ** -max(top - fullest, 0)
            if sum(counts[start : top + 1]) > threshold(run, epsilon, chance):
                last = max(last, max(range(start, top + 1), key=counts.__getitem__))
                break
    return None if last < 0 else last


def to_look_at_again(tally: OctaveTally) -> int | None:
    """Give the edge above which people are to be counted once more; None where the tally leaves no doubt.

    An octave far above all others is either a few people who add most of the sum or noise; a limit that is chosen for
    noise costs more than all else.
    """
    last, sure = last_seen(tally), last_seen(tally, strict=True)
    if last is None or sure is None or last - sure < APART:
        return None
    return sure + 2


def confirmed(tally: OctaveTally, counted: int, epsilon: float) -> int | None:
    """Give the last octave seen, once people above the edge were counted with noise of parameter `epsilon`."""
    kept = counted > threshold(1, epsilon, 0.02)
    return last_seen(tally, strict=not kept)


# ── the family of tails ──────────────────────────────────────────────────────────────────────────


@cache
def _stops() -> tuple[float, ...]:
    """Give the expected numbers of people at which the exact law is tabled: even in their logarithm."""
    step = math.log(HEAVY / LIGHT) / (STOPS - 1)
    return tuple(LIGHT * math.exp(step * i) for i in range(STOPS))


def noisy_poisson(count: int, mean: float, epsilon: float) -> float:
    """Give the logarithm of P(Poisson(mean) + two-sided geometric noise = count).

    Below the count the noise's e^(epsilon n) turns Poisson(mean) into Poisson(mean e^epsilon), above it into
    Poisson(mean e^-epsilon); each part is that law's share below or above the count.
    """
    q = math.exp(-epsilon)
    scale = math.log((1 - q) / (1 + q))
    above = epsilon * count + mean * math.expm1(-epsilon)
    if count < 0:
        return scale + above
    below = -epsilon * count + mean * math.expm1(epsilon)
    under, _ = _poisson_split(count, mean * math.exp(epsilon))
    _, over = _poisson_split(count, mean * q)
    parts = [
        weight + math.log(share) for weight, share in ((below, under), (above, over)) if share > 0.0
    ]
    top = max(parts, default=-math.inf)
    if top == -math.inf:
        return -700.0
    return max(-700.0, scale + top + math.log(sum(math.exp(p - top) for p in parts)))


def _poisson_split(count: int, mean: float) -> tuple[float, float]:
    """Give P(Poisson(mean) <= count) and P(Poisson(mean) > count)."""
    peak = count * math.log(mean) - mean - math.lgamma(count + 1)
    if count >= mean:  # the small part is above
        term, total, n = math.exp(peak), 0.0, count
        while True:
            n += 1
            term *= mean / n
            total += term
            if term <= total * 1e-16:
                return 1.0 - total, total
    term = total = math.exp(peak)
    for n in range(count, 0, -1):
        term *= n / mean
        total += term
        if term <= total * 1e-16:
            break
    return total, 1.0 - total


@lru_cache(maxsize=4096)
def _explained(count: int, epsilon: float) -> tuple[float, ...]:
    return tuple(noisy_poisson(count, mean, epsilon) for mean in _stops())


def _nearest(log_mean: float) -> int:
    step = math.log(HEAVY / LIGHT) / (STOPS - 1)
    return min(max(round((log_mean - math.log(LIGHT)) / step), 0), STOPS - 1)


@cache
def _falls(below: int, above: int) -> tuple[tuple[float, tuple[float, ...]], ...]:
    """Give (log weight, log2 of the fall) for octaves from `below` under to `above` over the last one seen."""
    found = []
    for i in range(SLOPES):
        slope = LEAST_SLOPE * (STEEPEST / LEAST_SLOPE) ** (i / (SLOPES - 1))
        for bend, weight in BENDS:
            fall = tuple(
                slope * (u if not bend else (2.0 ** min(bend * u, 60.0) - 1) / (bend * math.log(2)))
                for u in range(-below, above + 1)
            )
            found.append((math.log(weight) - math.log(slope), fall))
    return tuple(found)


def _roughly(count: int, mean: float, epsilon: float) -> float:
    """Give how well an octave that is seen is explained: Student's law with four degrees."""
    variance = mean + (ROUGH * mean) ** 2 + 2 / epsilon**2
    return -2.5 * math.log1p((count - mean) ** 2 / variance / 4) - 0.5 * math.log(variance)


def _beyond_table(count: int, log_mean: float, epsilon: float) -> float:
    """The same for an octave above where the family expects more people than are tabled: log-normal."""
    off = (math.log(max(count, 2 / epsilon)) - log_mean) / 0.35
    return -0.5 * min(abs(off), 12.0) ** 2 - log_mean


@frozen
class _Curve:
    """One member of the family."""

    weight: float
    means: tuple[float, ...]
    """Logarithm of the expected people of each octave above the last one seen."""


def _family(tally: OctaveTally, last: int) -> list[_Curve]:
    """Weigh each member by how well it explains the tally."""
    counts, epsilon = tally.counts, tally.epsilon
    least = last
    while least > max(0, last - 2) and counts[least - 1] >= 1.1 * counts[least]:
        least -= 1
    seen, unseen = counts[least : last + 1], counts[last + 1 :]
    size = max(float(counts[last]), 2 / epsilon)
    spread = min(1.2, 3 / math.sqrt(size) + 4 / (epsilon * size) + 0.3)
    tables = [_explained(_within(c, epsilon), epsilon) for c in unseen]
    curves: list[_Curve] = []
    for i in range(SIZES):
        start = math.log(size) + spread * (2 * i / (SIZES - 1) - 1)
        for prior, fall in _falls(last - least, len(unseen)):
            logs = [min(max(start - math.log(2) * f, -60.0), 30.0) for f in fall]
            weight = prior
            for count, log_mean in zip(seen, logs, strict=False):
                weight += _roughly(count, math.exp(log_mean), epsilon)
            means = tuple(logs[len(seen) :])
            for count, table, log_mean in zip(unseen, tables, means, strict=True):
                if log_mean > math.log(HEAVY):
                    weight += _beyond_table(count, log_mean, epsilon)
                else:
                    weight += table[_nearest(log_mean)]
            curves.append(_Curve(weight, means))
    return curves


def _within(count: int, epsilon: float) -> int:
    """Give a count, or the farthest from 0 that the law is told apart for."""
    far = int(60 / epsilon) + 700
    return min(max(count, -far), far)


# ── what limits would cut ────────────────────────────────────────────────────────────────────────


def usual_limit(
    tally: OctaveTally, last: int, noising: float, *, declared: bool = False
) -> UsualLimit:
    """Give the edge whose answer lies nearest to the truth, usually, and what to add to that answer.

    `noising` is the epsilon of the noise that comes on the sum of what people add, cut down to the edge: Laplace of
    scale edge / noising. With `declared`, nobody adds more than the last edge.
    """
    edges = tally.edges
    generator = random.Random(repr((edges, tally.counts, tally.epsilon, last, noising)))  # noqa: S311
    excess = _excesses(tally, last, generator)
    best: UsualLimit | None = None
    for index, edge in enumerate(edges):
        if index == len(edges) - 1 and not declared:
            break
        cut = [draw[index] for draw in excess]
        scale = edge / noising
        off = sorted(x - scale * _laplace(generator) for x in cut)
        miss = (1 - LEVEL) / 2
        low, high = _quantile(off, miss), _quantile(off, 1 - miss)
        if best is None or high - low < best.high - best.low:
            best = UsualLimit(index, low, _quantile(sorted(cut), 0.5), high)
    assert best is not None, "a tally has at least one octave"
    return best


def _excesses(tally: OctaveTally, last: int, generator: random.Random) -> list[list[float]]:
    """Draw what people add above each edge, all people together."""
    edges, counts, epsilon = tally.edges, tally.counts, tally.epsilon
    curves = _family(tally, last)
    top = max(c.weight for c in curves)
    chances = [math.exp(c.weight - top) for c in curves]
    chosen = generator.choices(curves, chances, k=DRAWS)
    found = []
    for curve in chosen:
        people = [max(c + _geometric(epsilon, generator), 0) for c in counts[: last + 1]]
        people += [
            _people(_nearest(log_mean), log_mean, count, epsilon, generator)
            for log_mean, count in zip(curve.means, counts[last + 1 :], strict=True)
        ]
        found.append(_above_edges(edges, people, generator))
    return found


def _above_edges(
    edges: Sequence[float], people: Sequence[int], generator: random.Random
) -> list[float]:
    """Add up what lies above each edge; the people of an octave sit at one random place of it."""
    above, total, number = [0.0], 0.0, 0
    for k in range(len(people) - 1, -1, -1):
        if people[k]:
            number += people[k]
            total += people[k] * edges[k] * (edges[k + 1] / edges[k]) ** generator.random()
        above.append(total - number * edges[k])
    return above[::-1]


def _people(
    stop: int, log_mean: float, count: int, epsilon: float, generator: random.Random
) -> int:
    """Draw the people of an octave, given how many are expected and what was counted there."""
    if log_mean > math.log(HEAVY):
        return round(math.exp(log_mean))
    reached = _posterior(stop, _within(count, epsilon), epsilon)
    return bisect_left(reached, generator.random() * reached[-1])


@lru_cache(maxsize=65536)
def _posterior(stop: int, count: int, epsilon: float) -> tuple[float, ...]:
    """Give sums of weights of 0, 1, 2, … people: Poisson, times the noise's law at what was counted."""
    mean = _stops()[stop]
    sums: list[float] = []
    total, n, log_poisson = 0.0, 0, -mean
    start = -epsilon * abs(count)
    while True:
        weight = math.exp(log_poisson - epsilon * abs(count - n) - start)
        total += weight
        sums.append(total)
        if n > mean and n > count and weight <= total * 1e-12:
            return tuple(sums)
        n += 1
        log_poisson += math.log(mean / n)


def _geometric(epsilon: float, generator: random.Random) -> int:
    """Draw two-sided geometric noise."""
    return _one_sided(epsilon, generator) - _one_sided(epsilon, generator)


def _one_sided(epsilon: float, generator: random.Random) -> int:
    return int(-math.log1p(-generator.random()) / epsilon)


def _laplace(generator: random.Random) -> float:
    return math.log1p(-generator.random()) - math.log1p(-generator.random())


def _quantile(values: Sequence[float], fraction: float) -> float:
    """Give a quantile of sorted values, between neighbors in proportion."""
    at = fraction * (len(values) - 1)
    left = int(at)
    right = min(left + 1, len(values) - 1)
    return values[left] + (at - left) * (values[right] - values[left])
