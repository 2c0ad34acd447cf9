"""What a noisy tally of people by octave says of those whom a limit would cut.

Rests on truncation.octaves.

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
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache, lru_cache
from itertools import accumulate

from secant.records import frozen

FALSE = 0.01
"""How often an octave without people may be taken for one with people, over the whole tally."""
SEEN = 10.5
"""People in one octave, times epsilon of the tally, from which on they are seen in 95 % of tallies."""
FEW = 3
"""So many people are never taken for seen, however small the noise: a test of many octaves would be wrong too often."""
AGAIN = 0.02
"""How often an octave without people may be confirmed that lies just far enough to be looked at twice."""
RUN = 3
"""People spread over so many octaves are seen together."""
WIDE = 0.01
"""Below this epsilon the law of the noise is not written out: its tail is bounded."""
STEEPER = 4.0
"""By what thresholds of the stricter reading fall for each octave above the likeliest one."""
FALL = 2.5 * math.log(2)
"""By how much less likely an octave is taken to be than the one below it, in logarithms."""
APART = 3
"""From so many octaves above the stricter reading on, an octave is looked at twice."""
LEAST_SLOPE, STEEPEST = 1.1, 40.0
"""Octaves fall at least like a Pareto law of this exponent (less has no mean), and not faster than that."""
SLOPES, SIZES = 26, 13
BENDS = ((0.0, 0.4), (0.1, 0.2), (0.25, 0.15), (0.5, 0.1), (1.0, 0.1), (2.0, 0.05))
"""How much steeper the fall gets by octave, and the weight of each."""
ROUGH = 0.25
"""Octaves that are seen follow the family only roughly: their counts deviate by this share besides."""
SLACK = 0.8
"""What is missed of what is cut, of what may be missed: the tail's family is not the truth."""
HIGHEST = Fraction(99, 100)
"""The highest level for which so many draws tell what is usual."""
COINCIDES = 1.5
"""How much wider an interval may be that holds for every database."""
MISS = 0.02
"""What is missed on each side where limits are compared."""
DRAWS = 1000
FEWEST, MOST = math.log(1e-4), math.log(600)
"""Logarithms of the expected people of an octave between which the exact law is tabled; fewer count as the fewest."""
BETWEEN = (MOST - FEWEST) / 139


@frozen
class OctaveTally:
    """People by octave of what they add: `counts[k]` of [edges[k], edges[k + 1]), with noise on each."""

    edges: tuple[float, ...]
    counts: tuple[int, ...]
    epsilon: float
    """Parameter of the two-sided geometric noise: P(n) falls by exp(-epsilon) for each unit."""


Draw = tuple[tuple[int, float], ...]
"""For each octave how many people are in it, and what each of them adds, or has cut off."""


@frozen
class UsualLimit:
    """The limit that promises the narrowest interval, and how much it usually cuts off."""

    index: int
    """Which of the edges."""
    cut: tuple[Draw, ...]
    """What is cut off whom, drawn many times; octaves in which nobody is cut are left out."""

    def left_out(self, share: float = 1.0, level: float = 0.95) -> tuple[float, float, float]:
        """Give what is usually cut off in a group that holds a share of the measure: least, middle and most.

        Whoever is cut may be of any group, the likelier of those that hold more.
        """
        rounded = 2.0 ** (math.ceil(8 * math.log2(share)) / 8) if share > 0 else 0.0
        return _left_out(self, min(rounded, 1.0), level)


@lru_cache(maxsize=256)
def _left_out(limit: UsualLimit, share: float, level: float) -> tuple[float, float, float]:
    generator = random.Random(repr((limit.index, share)))  # noqa: S311 - as in `usual_limit`
    totals = sorted(
        math.fsum(each * _dealt(many, share, generator) for many, each in draw)
        for draw in limit.cut
    )
    miss = SLACK * (1 - level) / 2
    return _quantile(totals, miss), _quantile(totals, 0.5), _quantile(totals, 1 - miss)


def _dealt(many: int, share: float, generator: random.Random) -> float:
    """Draw how many of so many people are in a group."""
    if share >= 1 or not many:
        return float(many)
    if many <= 30:
        return float(sum(generator.random() < share for _ in range(many)))
    spread = math.sqrt(many * share * (1 - share))
    return min(max(generator.gauss(many * share, spread), 0.0), float(many))


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
    """Give a t with P(sum of so many noises > t) <= chance: the least one, but where noise is very wide."""
    if epsilon < WIDE:
        return math.ceil(_far(several, chance) / epsilon)
    beyond = _tail_of_noise(several, epsilon)
    return bisect_left(beyond, -chance, key=lambda p: -p)


@lru_cache(maxsize=256)
def _far(several: int, chance: float) -> float:
    """Bound how far a sum leads, in parts of 1 / epsilon, after Chernoff.

    E exp(s noise) = (cosh e - 1) / (cosh e - cosh s) <= 1 / (1 - (s / e)^2), for cosh is convex in the square of its
    argument; so P(sum > t / e) <= exp(-u t) / (1 - u^2)^several for every u in (0, 1).
    """
    tries = [k / 200 for k in range(1, 200)]
    return min(-(math.log(chance) + several * math.log1p(-(u**2))) / u for u in tries)


def last_seen(tally: OctaveTally, *, strict: bool = False) -> int | None:
    """Give the highest octave that surely holds people; None where none does.

    Runs of one, two and three octaves are held against the exact law of their noise. The strict reading asks for more
    the farther an octave lies above the likeliest one.
    """
    counts, epsilon = tally.counts, tally.epsilon
    octaves = len(counts)
    likeliest = likeliest_octave(tally)
    last = -1
    for run in range(1, min(RUN, octaves) + 1):
        for start in range(octaves - run, -1, -1):
            top = start + run - 1
            if top <= last:
                break
            chance = FALSE / (RUN * octaves)
            if strict:
                chance *= STEEPER ** -max(top - likeliest, 0)
            if sum(counts[start : top + 1]) > max(threshold(run, epsilon, chance), FEW):
                last = max(last, max(range(start, top + 1), key=counts.__getitem__))
                break
    return None if last < 0 else last


def likeliest_octave(tally: OctaveTally) -> int:
    """Give the octave that most people seem to add to; the lower of two that seem alike.

    Where noise alone fills the tally, its highest number may stand anywhere: a limit that is chosen for it would cost
    more than all else, the more the higher it lies.
    """
    weights = [tally.epsilon * count - FALL * k for k, count in enumerate(tally.counts)]
    return max(range(len(weights)), key=weights.__getitem__)


def to_look_at_again(tally: OctaveTally) -> int | None:
    """Give the edge above which people are to be counted once more; None where the tally leaves no doubt.

    An octave far above all others is either a few people who add most of the sum or noise.
    """
    last, sure = last_seen(tally), last_seen(tally, strict=True)
    if last is None or sure is None or last - sure < APART:
        return None
    return sure + 2


def confirmed(tally: OctaveTally, counted: int, epsilon: float) -> int | None:
    """Give the last octave seen, once people above the edge were counted with noise of parameter `epsilon`.

    The farther an octave lies above the others, the more a limit that is made for noise would cost.
    """
    last, sure = last_seen(tally), last_seen(tally, strict=True)
    assert last is not None, "people were counted again, so an octave was seen"
    assert sure is not None, "and others below it"
    chance = AGAIN * 2.0 ** (-(last - sure - APART) / 2)
    return last if counted > max(threshold(1, epsilon, chance), FEW) else sure


def cut_by_tally(tally: OctaveTally, edge: int, miss: float) -> int:
    """Give a number of people above an edge at most, but for `miss` of all tallies, whichever edge was chosen.

    Rests on truncation.octaves.
    """
    above = tally.counts[edge:]
    return max(0, sum(above) + threshold(len(above), tally.epsilon, miss / len(tally.counts)) + 1)


# ── the family of tails ──────────────────────────────────────────────────────────────────────────


def noisy_poisson(count: int, mean: float, epsilon: float) -> float:
    """Give the logarithm of P(Poisson(mean) + two-sided geometric noise = count), or -700 where it is less.

    The weights of 0, 1, 2, … people have one peak: the logarithms of Poisson's law and of the noise's are concave.
    """
    below = min(count, int(mean * math.exp(epsilon)))
    above = max(count + 1, 0, int(mean * math.exp(-epsilon)))
    peak = max(
        (n for n in (below, above) if n >= 0), key=lambda n: _log_weight(n, count, mean, epsilon)
    )
    q = math.exp(-epsilon)
    total = term = 1.0
    n = peak
    while term > total * 1e-16:
        n += 1
        term *= mean / n * (1 / q if n <= count else q)
        total += term
    term, n = 1.0, peak
    while n > 0 and term > total * 1e-16:
        term *= n / mean * (q if n <= count else 1 / q)
        n -= 1
        total += term
    scale = math.log((1 - q) / (1 + q))
    return max(-700.0, scale + _log_weight(peak, count, mean, epsilon) + math.log(total))


def _log_weight(people: int, count: int, mean: float, epsilon: float) -> float:
    """Weigh a number of people: by Poisson's law, and by how likely noise leads from it to what was counted."""
    poisson = people * math.log(mean) - mean - math.lgamma(people + 1)
    return poisson - epsilon * abs(count - people)


@lru_cache(maxsize=4096)
def _explained(count: int, epsilon: float) -> tuple[float, ...]:
    means = (math.exp(FEWEST + BETWEEN * i) for i in range(_nearest(MOST) + 1))
    return tuple(noisy_poisson(count, mean, epsilon) for mean in means)


@cache
def _falls(below: int, above: int) -> tuple[tuple[float, tuple[float, ...]], ...]:
    """Give (log weight, fall of the logarithm) for octaves from `below` under to `above` over the last one seen."""
    falls = []
    for i in range(SLOPES):
        slope = LEAST_SLOPE * (STEEPEST / LEAST_SLOPE) ** (i / (SLOPES - 1))
        for bend, weight in BENDS:
            fall = tuple(
                slope * (2.0 ** min(bend * u, 60.0) - 1) / bend if bend else slope * math.log(2) * u
                for u in range(-below, above + 1)
            )
            falls.append((math.log(weight) - math.log(slope), fall))
    return tuple(falls)


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
    """Logarithms of the expected people of the octaves above the last one seen; of all others, as few as are tabled."""


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
    # What the octaves from each one on weigh, if hardly anybody is expected there.
    empty = [*accumulate((table[0] for table in reversed(tables)), initial=0.0)][::-1]
    curves: list[_Curve] = []
    for i in range(SIZES):
        start = math.log(size) + spread * (2 * i / (SIZES - 1) - 1)
        for prior, fall in _falls(last - least, len(unseen)):
            weight = prior
            for count, less in zip(seen, fall, strict=False):
                weight += _roughly(count, math.exp(min(start - less, 30.0)), epsilon)
            means = []
            for count, table, less in zip(unseen, tables, fall[len(seen) :], strict=True):
                log_mean = start - less
                if log_mean < FEWEST:
                    break
                means.append(log_mean)
                weight += (
                    _beyond_table(count, log_mean, epsilon)
                    if log_mean > MOST
                    else table[_nearest(log_mean)]
                )
            curves.append(_Curve(weight + empty[len(means)], tuple(means)))
    return curves


def _nearest(log_mean: float) -> int:
    return round((log_mean - FEWEST) / BETWEEN)


def _within(count: int, epsilon: float) -> int:
    """Give a count, or the farthest from 0 that the law is told apart for."""
    far = int(60 / epsilon) + 700
    return min(max(count, -far), far)


# ── what limits would cut ────────────────────────────────────────────────────────────────────────


def usual_limit(
    tally: OctaveTally,
    last: int | None,
    noise: Callable[[int], tuple[float, bool]],
    *,
    choices: int,
    least: int = 0,
    groups: int = 1,
    declared: bool = False,
    taking: tuple[OctaveTally, int | None] | None = None,
) -> UsualLimit | None:
    """Give the edge whose answer lies nearest to the truth, usually, and what to add to that answer.

    `noise` says for an edge the scale of the noise that comes on the sum of what people add, cut down to it, and
    whether that is normal instead of Laplace noise. Edges from `least` up to `choices` can be chosen. Of several groups
    each gets that noise, and what is cut is spread over them. None stands for the last edge, where nobody is `declared`
    to add more: it is taken if its noise alone is not much wider than the narrowest interval, and nothing is estimated.

    `taking` is the tally of people who take away, where they were counted apart, with the last octave of theirs. A side
    on which nobody is seen counts as one without people.
    """
    sides = [(1, tally, last), *([] if taking is None else [(-1, *taking)])]
    seed = repr([(t.edges, t.counts, t.epsilon, at, groups) for _, t, at in sides])
    generator = random.Random(seed)  # noqa: S311 - post-processing: nothing private rests on it
    people = [(sign, people_above(t, at, generator)) for sign, t, at in sides if at is not None]
    excess = _excess(tally.edges, people)
    unit = [(_laplace(generator), generator.gauss(0, 1)) for _ in excess]
    best: tuple[float, int] | None = None
    for index in range(least, choices):
        cut = [draw[index] for draw in excess]
        scale, normal = noise(index)
        off = sorted(x / max(1, groups) - scale * u[normal] for x, u in zip(cut, unit, strict=True))
        width = _quantile(off, 1 - MISS) - _quantile(off, MISS)
        if best is None or width < best[0]:
            best = width, index
    assert best is not None, "a tally has at least one octave"
    if declared and all(at is None or at < len(tally.counts) - 1 for _, _, at in sides):
        scale, normal = noise(choices - 1)
        alone = sorted(scale * u[normal] for u in unit)
        if _quantile(alone, 1 - MISS) - _quantile(alone, MISS) <= COINCIDES * best[0]:
            return None
    edge = tally.edges[best[1]]
    return UsualLimit(
        best[1],
        tuple(
            tuple(
                (n, sign * (at - edge))
                for (sign, _), draw in zip(people, draws, strict=True)
                for n, at in draw
                if n and at > edge
            )
            for draws in zip(*(draws for _, draws in people), strict=True)
        ),
    )


def _excess(edges: Sequence[float], people: Sequence[tuple[int, list[Draw]]]) -> list[list[float]]:
    """Give for each draw what lies above each edge, less what those take away who are on the other side."""
    sides = [
        [[sign * x for x in _above_edges(edges, draw)] for draw in draws] for sign, draws in people
    ]
    return [[math.fsum(x) for x in zip(*both, strict=True)] for both in zip(*sides, strict=True)]


def people_above(tally: OctaveTally, last: int, generator: random.Random) -> list[Draw]:
    """Draw who stands in which octave; the people of an octave sit at one random place of it."""
    edges, counts, epsilon = tally.edges, tally.counts, tally.epsilon
    curves = _family(tally, last)
    top = max(c.weight for c in curves)
    chances = [math.exp(c.weight - top) for c in curves]
    unseen = [_within(c, epsilon) for c in counts[last + 1 :]]
    # Octaves where hardly anybody is expected, and somebody may be all the same: noise alone does not say so.
    suspect = {k for k, c in enumerate(unseen) if _posterior(0, c, epsilon)[0] < 1 - 1e-6}
    draws = []
    for curve in generator.choices(curves, chances, k=DRAWS):
        people = [max(c + _geometric(epsilon, generator), 0) for c in counts[: last + 1]]
        for k, log_mean in enumerate(curve.means):
            people.append(
                round(math.exp(log_mean))
                if log_mean > MOST
                else _people(_posterior(_nearest(log_mean), unseen[k], epsilon), generator)
            )
        for k in range(len(curve.means), len(unseen)):
            many = _people(_posterior(0, unseen[k], epsilon), generator) if k in suspect else 0
            people.append(many)
        draws.append(
            tuple(
                (many, edges[k] * (edges[k + 1] / edges[k]) ** generator.random())
                for k, many in enumerate(people)
            )
        )
    return draws


def _above_edges(edges: Sequence[float], people: Draw) -> list[float]:
    """Add up what lies above each edge."""
    above, total, number = [0.0], 0.0, 0
    for k in range(len(people) - 1, -1, -1):
        many, each = people[k]
        number += many
        total += many * each
        above.append(total - number * edges[k])
    return above[::-1]


def _people(reached: Sequence[float], generator: random.Random) -> int:
    return bisect_left(reached, generator.random() * reached[-1])


@lru_cache(maxsize=65536)
def _posterior(stop: int, count: int, epsilon: float) -> tuple[float, ...]:
    """Give sums of chances of 0, 1, 2, … people: Poisson's, times the noise's law at what was counted."""
    mean = math.exp(FEWEST + BETWEEN * stop)
    weights = [_log_weight(0, count, mean, epsilon)]
    best = weights[0]
    while weights[-1] > best - 30 or len(weights) <= mean:
        weights.append(_log_weight(len(weights), count, mean, epsilon))
        best = max(best, weights[-1])
    sums = [*accumulate(math.exp(w - best) for w in weights)]
    return tuple(s / sums[-1] for s in sums)


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
