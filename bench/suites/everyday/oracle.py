"""The best known algorithm for each ordinary question, with clips that know the data: what errors are divided by.

In: the tables of a set, and epsilon. Out: the root mean squared error of an answer. Nothing here is private. A clip
is taken for its mean over resamples of the people, never because what it cuts happens to cancel on one of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np

from bench.suites.everyday.sets import GROUPS, MOST, Made, Numbers

RESAMPLES = 12
DELTA = 1e-6
PARTS = np.r_[np.linspace(0.5, 0.95, 6), 0.97, 0.98, 0.99, 0.995, 0.998, 0.999, 0.9995, 1]
AVERAGE, DEVIATION = 0.93, 0.84
"""What of epsilon is left for the numerator once there is a center."""


def normal_size(epsilon: float) -> float:
    """Give the standard deviation at which normal noise on something of length 1 is (epsilon, DELTA)-private."""

    def spent(sigma: float) -> float:
        high, low = 0.5 / sigma - epsilon * sigma, -0.5 / sigma - epsilon * sigma
        return _normal(high) - math.exp(epsilon) * _normal(low)

    low, high = 1e-2, 1e3
    for _ in range(100):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if spent(middle) > DELTA else (low, middle)
    return high


def _normal(x: float) -> float:
    return math.erfc(-x / math.sqrt(2)) / 2


def _ends(sizes: Numbers) -> Numbers:
    positive = sizes[sizes > 0]
    return np.unique(np.quantile(positive, PARTS)) if len(positive) else np.ones(1)


def _weights(made: Made) -> Numbers:
    """Give how often each person is there in each resample."""
    return np.random.default_rng(8).poisson(1.0, (RESAMPLES, made.people)).astype(float)


def _by(person: Numbers, people: int, weights: Numbers | None = None) -> Numbers:
    return np.bincount(person, weights=weights, minlength=people).astype(float)


def _sum(each: Numbers, epsilon: float) -> float:
    """Clip what people add, and add Laplace noise."""
    best = min(
        np.maximum(each - end, 0).sum() ** 2 + 2 * (end / epsilon) ** 2 for end in _ends(each)
    )
    return float(math.sqrt(best))


def _ratio(made: Made, upper: Numbers, lower: Numbers, center: float, spent: float) -> float:
    """Clip residuals about a center, and divide."""
    off = upper - center * lower
    often = _weights(made)
    total = often @ lower
    truth = (often @ upper) / total
    best = math.inf
    for end in _ends(np.abs(off)):
        error = center + (often @ np.clip(off, -end, end)) / total - truth
        best = min(best, float(np.mean(error**2 + 2 * (end / spent / total) ** 2)))
    return math.sqrt(best)


def _average(made: Made, epsilon: float) -> float:
    rows, sums = _by(made.person, made.people), _by(made.person, made.people, made.value)
    return _ratio(made, sums, rows, 1.05 * made.value.mean(), AVERAGE * epsilon)


def _deviation(made: Made, epsilon: float) -> float:
    off = (made.value - made.value.mean()) ** 2
    rows, squares = _by(made.person, made.people), _by(made.person, made.people, off)
    center = 1.05 * made.value.var()
    return _ratio(made, squares, rows, center, DEVIATION * epsilon) / (2 * float(made.value.std()))


def _per_person(made: Made, epsilon: float) -> float:
    there = np.bincount(made.person, minlength=made.people) > 0
    sums = _by(made.person, made.people, made.value)
    return _ratio(made, sums, there.astype(float), 1.05 * sums[there].mean(), AVERAGE * epsilon)


def _chosen(mass: Numbers, q: float, truth: float, scale: float) -> float:
    """Give the mean squared error of a point that is chosen by its distance in rank; mass lies on 0, 1, 2, ..."""
    upto = np.cumsum(mass)
    wanted = q * upto[-1]
    distance = np.maximum(np.maximum(upto - mass - wanted, wanted - upto), 0)
    chance = np.exp(-(distance - distance.min()) / scale)
    points = np.arange(len(mass))
    return float((chance * (points - truth) ** 2).sum() / chance.sum())


def _limits(rows: Numbers) -> Numbers:
    return np.unique(np.r_[1, 2, 5, _ends(rows)].astype(int))


def _quantile(made: Made, q: float, epsilon: float) -> float:
    """Let every row weigh min(1, c / rows of its person)."""
    rows = _by(made.person, made.people)
    truth = float(np.quantile(made.value, q))
    best = math.inf
    for c in _limits(rows):
        weight = np.minimum(1, c / np.maximum(rows, 1))[made.person]
        mass = np.bincount(made.value, weights=weight, minlength=MOST + 1)
        best = min(best, _chosen(mass, q, truth, 2 * max(q, 1 - q) * c / epsilon))
    return math.sqrt(best)


def _medians(made: Made, epsilon: float) -> float:
    rows = _by(made.person, made.people)
    found = math.inf
    truths = [float(np.median(made.value[made.group == g])) for g in range(GROUPS)]
    for c in _limits(rows):
        weight = np.minimum(1, c / np.maximum(rows, 1))[made.person]
        place = made.group * (MOST + 1) + made.value
        mass = np.bincount(place, weights=weight, minlength=GROUPS * (MOST + 1))
        each = mass.reshape(GROUPS, MOST + 1)
        errors = [_chosen(each[g], 0.5, truths[g], c / epsilon) for g in range(GROUPS)]
        found = min(found, float(np.mean(errors)))
    return math.sqrt(found)


def _extreme(made: Made, top: bool, epsilon: float) -> float:
    """Take one extreme of each person, and the rank from the end that serves best."""
    value = made.value if top else MOST - made.value
    own = np.full(made.people, -1)
    np.maximum.at(own, made.person, value)
    mass = np.bincount(own[own >= 0], minlength=MOST + 1).astype(float)
    upto = np.cumsum(mass)
    points, truth = np.arange(MOST + 1), value.max()
    best = math.inf
    for rank in (0, 0.5, 1, 2, 3, 4, 6, 8, 12, 16, 24):
        above, at_least = upto[-1] - upto, upto[-1] - upto + mass
        distance = np.maximum(np.maximum(above - rank, rank - at_least), 0)
        chance = np.exp(-(distance - distance.min()) * epsilon / 2)
        best = min(best, float((chance * (points - truth) ** 2).sum() / chance.sum()))
    return math.sqrt(best)


def _distinct(made: Made, epsilon: float) -> float:
    """Let every person bring in at most l values, as many different ones as there can be."""
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import maximum_flow

    pairs = np.unique(np.c_[made.person, made.item], axis=0)
    truth = len(np.unique(pairs[:, 1]))
    # A value that many people have is assigned after all that fewer have: it always finds somebody.
    holders = np.bincount(pairs[:, 1])
    scarce = np.isin(pairs[:, 1], np.flatnonzero(holders <= truth))
    pairs = pairs[scarce]
    people, who = np.unique(pairs[:, 0], return_inverse=True)
    items, what = np.unique(pairs[:, 1], return_inverse=True)
    best = math.inf
    for most in (1, 2, 3, 4, 6, 8, 12, 16, 32, 64):
        served = len(items)
        if len(pairs):
            start, end = 0, 1 + len(people) + len(items)
            tail = np.r_[np.zeros(len(people), int), 1 + who, 1 + len(people) + np.arange(served)]
            head = np.r_[1 + np.arange(len(people)), 1 + len(people) + what, np.full(served, end)]
            room = np.r_[np.full(len(people), most), np.ones(len(pairs) + served, int)]
            graph = csr_matrix((room.astype(np.int32), (tail, head)), shape=(end + 1, end + 1))
            served = int(maximum_flow(graph, start, end).flow_value)
        lost = len(items) - served
        best = min(best, lost**2 + 2 * (most / epsilon) ** 2)
        if not lost:
            break
    return math.sqrt(best)


def _pairs(made: Made, weights: Numbers | None) -> Numbers:
    """Give what each person adds to each group."""
    place = made.person * GROUPS + made.group
    found = np.bincount(place, weights=weights, minlength=made.people * GROUPS)
    return found.reshape(made.people, GROUPS).astype(float)


def _laws(each: Numbers, epsilon: float) -> tuple[tuple[Numbers, float], ...]:
    """Give for both laws the size of what a person adds, and the deviation of noise at size 1."""
    length = np.sqrt((each**2).sum(1))
    return (np.abs(each).sum(1), math.sqrt(2) / epsilon), (length, normal_size(epsilon))


def _sums(each: Numbers, epsilon: float) -> float:
    best = math.inf
    for size, noise in _laws(each, epsilon):
        for end in _ends(size):
            share = np.minimum(1, end / np.maximum(size, 1e-12))
            lost = ((1 - share)[:, None] * each).sum(0)
            best = min(best, float(np.mean(lost**2)) + (noise * end) ** 2)
    return math.sqrt(best)


def _averages(made: Made, epsilon: float) -> float:
    """Clip residuals about each group's own center together."""
    rows, sums = _pairs(made, None), _pairs(made, made.value.astype(float))
    centers = 1.05 * sums.sum(0) / np.maximum(rows.sum(0), 1)
    off = sums - centers * rows
    often = _weights(made)[: RESAMPLES // 2]
    total = np.maximum(often @ rows, 1)  # a small group may be empty in a resample
    truth = (often @ sums) / total
    best = math.inf
    for size, noise in _laws(off, AVERAGE * epsilon):
        for end in _ends(size):
            share = np.minimum(1, end / np.maximum(size, 1e-12))
            error = centers + (often @ (off * share[:, None])) / total - truth
            best = min(best, float(np.mean(error**2 + (noise * end / total) ** 2)))
    return math.sqrt(best)


def _areas(made: Made, epsilon: float) -> float:
    """Everybody is in one area."""
    each = np.zeros((made.people, GROUPS))
    each[np.arange(made.people), made.area] = _by(made.person, made.people, made.value)
    return _sums(each, epsilon)


ORACLES: Mapping[str, Callable[[Made, float], float]] = {
    "count": lambda made, e: _sum(_by(made.person, made.people), e),
    "sum": lambda made, e: _sum(_by(made.person, made.people, made.value), e),
    "avg": _average,
    "stddev": _deviation,
    "median": lambda made, e: _quantile(made, 0.5, e),
    "p90": lambda made, e: _quantile(made, 0.9, e),
    "min": lambda made, e: _extreme(made, False, e),
    "max": lambda made, e: _extreme(made, True, e),
    "distinct": _distinct,
    "count by group": lambda made, e: _sums(_pairs(made, None), e),
    "sum by group": lambda made, e: _sums(_pairs(made, made.value.astype(float)), e),
    "avg by group": _averages,
    "median by group": _medians,
    "avg per person": _per_person,
    "sum by area": _areas,
}
