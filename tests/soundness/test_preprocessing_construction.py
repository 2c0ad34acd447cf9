"""Every fast way to g against the construction over all subsets, written down once more here.

1 000 small databases by default, 20 000 with SECANT_PROFILE=long; on each, Theorems 1.6, 1.7 and 1.8.
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable

import numpy as np
import pytest

from chance import LONG, fresh_seed
from secant.stats.bounded import bounded, bounded_pair
from secant.stats.preprocessing.registered import register_ordered

TRIES = 20_000 if LONG else 1_000
SEED = fresh_seed()
LIMITS = (0.1, 0.5, 1.0, 3.0)
CENTERS = (0.0, -2.0, 4.0)
Values = list[float]


def quantile(share: float) -> Callable[[Values], float]:
    def of(values: Values) -> float:
        place = (len(values) - 1) * share
        low = int(place)
        high = min(low + 1, len(values) - 1)
        return values[low] + (place - low) * (values[high] - values[low])

    return of


def trimmed(values: Values) -> float:
    cut = len(values) // 4
    return statistics.fmean(values[cut : len(values) - cut])


def variance(values: Values) -> float:
    center = statistics.fmean(values)
    return statistics.fmean((value - center) ** 2 for value in values)


def midrange(values: Values) -> float:
    return (values[0] + values[-1]) / 2


NAMED: dict[str, tuple[Callable[[Values], float], dict[str, object]]] = {
    "mean": (statistics.fmean, {}),
    "trimmed_mean": (trimmed, {"trim": 0.25}),
    "median": (quantile(0.5), {}),
    "quantile": (quantile(0.25), {"q": 0.25}),
    "minimum": (min, {}),
    "maximum": (max, {}),
    "variance": (variance, {}),
}


def construction(
    function: Callable[[Values], float], values: Values, limits: Values, empty: float
) -> float:
    """Algorithm 1 as printed, over all subsets of sorted values."""
    count = len(values)
    found = [empty] * (1 << count)
    for mask in range(1, 1 << count):
        inside = [i for i in range(count) if mask >> i & 1]
        upper = min(found[mask ^ (1 << i)] + limits[i] for i in inside)
        lower = max(found[mask ^ (1 << i)] - limits[i] for i in inside)
        found[mask] = max(min(function([values[i] for i in inside]), upper), lower)
    return found[-1]


def drawn(source: random.Random, largest: int = 7) -> Values:
    count = source.randint(0, largest)
    shape = source.randrange(5)
    if shape == 0:
        return sorted(source.gauss(0, 3) for _ in range(count))
    if shape == 1:
        return sorted(float(source.randint(-3, 3)) for _ in range(count))
    if shape == 2:
        return sorted(source.gauss(0, 1) / (abs(source.gauss(0, 1)) + 1e-3) for _ in range(count))
    if shape == 3:
        return sorted(source.choice([0.0, 10.0]) for _ in range(count))
    return sorted(source.uniform(-1, 1) * 10 ** source.randint(-2, 6) for _ in range(count))


def agree(left: float, right: float, limit: float) -> bool:
    return abs(left - right) <= 1e-9 * max(limit, 1.0) * 2


@pytest.mark.parametrize("name", NAMED)
def test_every_named_statistic_equals_the_construction(name):
    function, extra = NAMED[name]
    source = random.Random(f"{SEED} {name}")
    for _ in range(TRIES):
        values, limit = drawn(source), source.choice(LIMITS)
        empty = 0.0 if name == "variance" else source.choice(CENTERS)
        found = bounded(name, values, delta_f=limit, empty=empty, **extra)
        expected = construction(function, values, [limit] * len(values), empty)
        assert agree(found.value, expected, limit), (SEED, values, limit, empty)
        target = function(values) if values else empty
        assert abs(found.value - target) <= found.error_bound + 1e-12 * abs(target), (SEED, values)
        assert not found.exact or agree(found.value, target, max(limit, abs(target)))


def test_a_registered_function_equals_the_construction():
    source = random.Random(SEED)
    function = register_ordered("midrange", midrange)
    for _ in range(TRIES // 5):
        values, limit, empty = drawn(source), source.choice(LIMITS), source.choice(CENTERS)
        found = bounded(function, values, delta_f=limit, empty=empty)
        expected = construction(midrange, values, [limit] * len(values), empty)
        assert agree(found.value, expected, limit), (SEED, values, limit, empty)


@pytest.mark.parametrize("name", [name for name in NAMED if name != "variance"])
def test_individual_limits_equal_the_construction(name):
    function, extra = NAMED[name]
    source = random.Random(f"{SEED} {name}")
    for _ in range(TRIES // 10):
        values, empty = drawn(source, largest=6), source.choice(CENTERS)
        choices = source.sample([0.0, 0.1, 0.5, 1.0, 3.0], 2)
        limits = [source.choice(choices) for _ in values]
        found = bounded(name, values, delta_f=limits, classes=choices, empty=empty, **extra)
        expected = construction(function, values, limits, empty)
        assert agree(found.value, expected, 3.0), (SEED, values, limits, empty)


def test_any_function_with_limits_of_its_own_equals_the_construction():
    source = random.Random(SEED)

    def jumpy(values: Values) -> float:
        return sum(values) * (1 if len(values) % 2 else -2)

    for _ in range(TRIES // 5):
        values, empty = drawn(source), source.choice(CENTERS)
        limits = [source.choice(LIMITS) for _ in values]
        found = bounded(jumpy, values, delta_f=limits, classes=LIMITS, empty=empty)
        expected = construction(jumpy, values, limits, empty)
        assert agree(found.value, expected, 3.0), (SEED, values, limits, empty)
        assert abs(found.value - (jumpy(values) if values else empty)) <= found.error_bound


def test_pairs_are_the_nearest_points_of_the_intersection_of_balls():
    source = random.Random(SEED)
    for _ in range(TRIES // 20):
        pairs = [(source.gauss(0, 2), source.gauss(1, 3)) for _ in range(source.randint(0, 6))]
        limit = source.choice(LIMITS)
        found = bounded_pair("mean", pairs, delta_f=limit, empty=(1, -1))
        slow = bounded_pair(lambda part: np.mean(part, axis=0), pairs, delta_f=limit, empty=(1, -1))
        for side, diagonal in ((1, lambda a, b: a + b), (-1, lambda a, b: a - b)):
            expected = construction(
                statistics.fmean,
                sorted(diagonal(*pair) for pair in pairs),
                [limit] * len(pairs),
                1.0 - side,
            )
            assert agree(diagonal(*found.value), expected, limit), (SEED, pairs)
            assert agree(diagonal(*slow.value), expected, limit), (SEED, pairs)
        true = np.mean(pairs, axis=0) if pairs else np.array([1.0, -1.0])
        assert np.abs(true - found.value).sum() <= found.error_bound


def reach_of_rank(values: Values, k: int) -> float:
    """A⁽ᵏ⁾ of the median: the widest stretch of k+1 gaps that holds a middle value."""
    count = len(values)
    worst = 0.0
    for middle in {(count - 1) // 2, count // 2}:
        for shift in range(k + 2):
            low, high = middle + shift - k - 1, middle + shift
            if low < 0 or high >= count:
                return float("inf")
            worst = max(worst, values[high] - values[low])
    return worst


def test_theorem_1_6_the_median_is_met():
    source, met = random.Random(SEED), 0
    for _ in range(20 * TRIES):
        count, limit = source.randint(3, 15), source.uniform(0.2, 1.5)
        values = list(np.cumsum([source.expovariate(1) for _ in range(count)]))
        scale = source.uniform(0.2, 2)
        values = [value * scale for value in values]
        middle = quantile(0.5)(values)
        empty = middle + source.uniform(-0.6, 0.6) * count * limit
        if abs(middle - empty) > count / 2 * limit:
            continue
        if all(reach_of_rank(values, k) <= 2 * (k + 1) * limit for k in range(count // 4 + 1)):
            met += 1
            if met > TRIES:
                break
            assert bounded("median", values, delta_f=limit, empty=empty).exact, (SEED, values)
    assert met > 50


def test_theorem_1_7_the_mean():
    source = random.Random(SEED)
    for _ in range(TRIES):
        values, limit, empty = drawn(source, 25), source.choice(LIMITS), source.gauss(0, 3)
        if not values:
            continue
        count, mean = len(values), statistics.fmean(values)
        printed = max(abs(mean - empty) - count * limit / 3, 0)
        printed += sum(max(27 * abs(value - mean) / count - limit, 0) for value in values)
        found = bounded("mean", values, delta_f=limit, empty=empty)
        assert abs(found.value - mean) <= printed + 1e-9 * (1 + abs(mean))
        start = empty - source.random() * count * limit
        near = [start + source.choice([0.0, 1.0, source.random()]) * count * limit for _ in values]
        inside = bounded("mean", near, delta_f=limit * (1 + 1e-9), empty=empty)
        assert inside.exact, (SEED, near, limit, empty)
        assert abs(inside.value - statistics.fmean(near)) < 1e-8


def test_theorem_1_8_the_variance():
    source = random.Random(SEED)
    for _ in range(TRIES):
        values, limit = drawn(source, 25), source.choice(LIMITS)
        if not values:
            continue
        count, spread = len(values), variance(values)
        shares = [sum((x - y) ** 2 for y in values) * 4 / count**2 for x in values]
        printed = max(spread - count * limit / 2, 0) + sum(max(s - limit, 0) for s in shares)
        found = bounded("variance", values, delta_f=limit)
        assert found.value <= spread * (1 + 1e-9) + 1e-9
        assert spread - found.value <= printed + 1e-9 * (1 + spread)
        assert printed > 0 or found.exact


def one_sided_median(values: Values, limit: float, empty: float) -> float:
    """The misreading of Lemma 5.4: the side is chosen once, for the whole database."""
    middle = quantile(0.5)
    up = middle(values) >= empty
    reached = empty
    for size in range(1, len(values) + 1):
        part = values[:size] if up else values[len(values) - size :]
        reached = min(middle(part), reached + limit) if up else max(middle(part), reached - limit)
    return reached


def swapped_mean(values: Values, limit: float, empty: float) -> float:
    """Algorithm 2 with the two ends mixed up."""
    count = len(values)
    row = [empty] * (count + 1)
    for size in range(1, count + 1):
        row = [
            max(min(statistics.fmean(values[i : i + size]), row[i + 1] + limit), row[i] - limit)
            for i in range(count - size + 1)
        ]
    return row[0]


@pytest.mark.parametrize(
    ("fault", "function"), [(one_sided_median, quantile(0.5)), (swapped_mean, statistics.fmean)]
)
def test_planted_faults_are_seen(fault, function):
    source = random.Random(SEED)
    wrong = 0
    for _ in range(500):
        values, limit = drawn(source), source.choice(LIMITS)
        if values:
            expected = construction(function, values, [limit] * len(values), 0.0)
            wrong += not agree(fault(values, limit, 0.0), expected, limit)
    assert wrong > 10
