"""Closed forms, shortcuts and grids against the plain recursions that they replace."""

from __future__ import annotations

import inspect
import math
import random
import sys
import types
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

from chance import fresh_seed
from secant.stats.preprocessing import best_window, staircase
from secant.stats.preprocessing.closed_forms import bounded_maximum, bounded_median, bounded_minimum
from secant.stats.preprocessing.ordered import Ranks, Windows, means, sandwich
from secant.stats.preprocessing.ordered_statistics import mean_statistic, ordered_finding
from secant.stats.preprocessing.staircase import bounded_between
from secant.stats.preprocessing.units import (
    LARGEST_SHORT,
    ONE,
    REACH,
    RESULT_BITS,
    VALUE_BITS,
    Units,
    exact_parts,
    split,
)
from secant.stats.preprocessing.variance import (
    bounded_variance,
    exact_variance,
    on_public_grid,
    variance_error_bound,
)

SEED = fresh_seed()
SHARES = {
    bounded_minimum: Fraction(0),
    bounded_median: Fraction(1, 2),
    bounded_maximum: Fraction(1),
}


def drawn(source: random.Random, largest: int) -> np.ndarray:
    count = source.randint(0, largest)
    spread = 10 ** source.uniform(-1, 2.5)
    shift = source.choice([0.0, 0.0, source.gauss(0, spread)])
    shape = source.randrange(3)
    values = [
        source.gauss(shift, spread) if shape else float(source.randint(-5, 5)) for _ in range(count)
    ]
    if count and shape == 2:
        values[0] = source.choice([-1, 1]) * 1e12
    return np.sort(np.array(values))


def sweep(windows: Windows) -> int:
    """Give g by preprocess.ordered as it is written: all windows, one row of windows of equal size after another."""
    count, window, one = windows.count, windows.reader(), int(ONE)
    bounded = [0] * (count + 1)
    for size in range(1, count + 1):
        bounded = [
            max(min(window(i, count - i - size), bounded[i] + one), bounded[i + 1] - one)
            for i in range(count - size + 1)
        ]
    return bounded[0]


def kinds_of_windows(scaled: np.ndarray) -> tuple[Windows, ...]:
    return means(scaled), means(scaled, Fraction(1, 5)), Ranks(scaled, Fraction(1, 3))


def staircase_differs(source: random.Random, tries: int) -> int:
    """Count how often the staircase gives something else than all windows do."""
    differ = 0
    for _ in range(tries):
        scaled = Units(Fraction(0), Fraction(1)).of(drawn(source, 30))
        for windows in kinds_of_windows(scaled):
            lower, upper = sandwich(windows)
            try:
                steps = bounded_between(windows.reader(), windows.count, lower, upper)
            except (IndexError, ZeroDivisionError):  # a fault can lead out of the values
                steps = None
            differ += steps != sweep(windows)
    return differ


def test_the_staircase_is_the_sweep():
    assert not staircase_differs(random.Random(SEED), 300)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("level + (below - position) * _ONE", "level + (below + position) * _ONE"),
        ("level + (below - position) * _ONE", "level"),
        ("level - count * _ONE) // (2 * _ONE)", "level) // _ONE"),
        ("low, upper = level, stairs", "low, lower = level, stairs"),
    ],
)
def test_a_staircase_that_goes_wrong_is_seen(right, wrong, monkeypatch):
    text = inspect.getsource(staircase)
    assert right in text
    planted = {"__name__": "planted"}
    exec(compile(text.replace(right, wrong), "planted", "exec"), planted)
    monkeypatch.setitem(globals(), "bounded_between", planted["bounded_between"])
    assert staircase_differs(random.Random(SEED), 60)


@pytest.mark.parametrize("form", SHARES)
def test_a_closed_form_is_the_sweep(form):
    source = random.Random(SEED)
    for _ in range(400):
        scaled = Units(Fraction(0), Fraction(1)).of(drawn(source, 60))
        assert form(scaled) == sweep(Ranks(scaled, SHARES[form])), (SEED, scaled)


@pytest.mark.parametrize("form", SHARES)
def test_pieces_are_put_together(form, monkeypatch):
    monkeypatch.setattr("secant.stats.preprocessing.closed_forms._PIECE", 4)
    test_a_closed_form_is_the_sweep(form)


def test_g_lies_between_the_one_sided_recursions():
    source, met = random.Random(SEED), 0
    for _ in range(300):
        scaled = Units(Fraction(0), Fraction(1)).of(drawn(source, 40))
        for windows in kinds_of_windows(scaled):
            lower, upper = sandwich(windows)
            assert lower <= sweep(windows) <= upper, (SEED, scaled)
            met += lower == upper
    assert met > 50


def test_the_range_condition_gives_what_the_sweep_gives():
    source = random.Random(SEED)
    units = Units(Fraction(3), Fraction(1, 7))
    shortcuts = 0
    for _ in range(300):
        count = source.randint(1, 50)
        low = 3 - source.random() * count / 7
        values = np.sort([low + source.random() * count / 7 * 0.999 for _ in range(count)])
        found = ordered_finding(mean_statistic(), values, units)
        shortcuts += found.proof == "preprocess.range"
        assert found.exact_value == units.back(sweep(means(units.of(values)))), (SEED, values)
    assert shortcuts > 200


def test_sums_of_windows_are_exact():
    source = random.Random(SEED)
    scaled = Units(Fraction(0), Fraction(1)).of(
        np.array([source.uniform(-1, 1) * 2.0 ** source.randint(-38, 34) for _ in range(2000)])
    )
    total = sum((Fraction(value) for value in scaled.tolist()), Fraction(0))
    coarse, fine = split(scaled)
    assert sum(map(Fraction, coarse.tolist())) + sum(map(Fraction, fine.tolist())) == total
    assert Fraction(float(coarse.sum())) + Fraction(float(fine.sum())) == total
    assert sum(Fraction(part) for part in exact_parts(scaled)) == total
    # the extreme case of both parts
    assert LARGEST_SHORT * REACH * 2 <= 2**53
    assert LARGEST_SHORT * 2**VALUE_BITS // 4 <= 2**53
    assert 2 * LARGEST_SHORT * ONE <= 2**53


def test_units_keep_the_order_and_lie_on_the_grid():
    source = random.Random(SEED)
    units = Units(Fraction(1, 3), Fraction(1, 10))
    values = np.sort([source.uniform(-1, 1) * 10 ** source.randint(-20, 30) for _ in range(3000)])
    scaled = units.of(values)
    assert (scaled[:-1] <= scaled[1:]).all()
    assert all((Fraction(value) * 2**VALUE_BITS).denominator == 1 for value in scaled.tolist())
    assert np.abs(scaled).max() == REACH
    assert units.back(int(ONE)) == Fraction(1, 3) + Fraction(1, 10)
    assert units.back(-1) == Fraction(1, 3) - Fraction(1, 10 * 2**RESULT_BITS)


def plain_variance(values: np.ndarray, limit: float) -> float:
    """Algorithm 3 as printed."""
    count = values.size
    row = [0.0] * (count + 1)
    for size in range(1, count + 1):
        row = [
            min(float(np.var(values[i : i + size])), row[i] + limit, row[i + 1] + limit)
            for i in range(count - size + 1)
        ]
    return row[0]


def test_the_variance_is_algorithm_3():
    source = random.Random(SEED)
    for _ in range(60):
        values, limit = drawn(source, 30), source.choice(["0.1", "3", "250"])
        found = bounded_variance(on_public_grid(values, Fraction(limit)), Fraction(limit))
        expected = plain_variance(values, float(limit))
        assert float(found) == pytest.approx(expected, rel=1e-9, abs=1e-9), (SEED, values, limit)


@cache
def windows_at_their_best() -> list[tuple[np.ndarray, float, set[tuple[int, int]]]]:
    """Give numbers, the square of their unit, and the best windows: found in fractions, among all."""
    source, found = random.Random(SEED), []
    while len(found) < 150:
        values, limit = drawn(source, 24), Fraction(source.choice(["0.1", "3", "250"]))
        whole, count = on_public_grid(values, limit), values.size
        if count < 2:
            continue
        scale, numbers = whole.scale(limit), [int(number) for number in whole.numbers.tolist()]
        costs = {}
        for start, size in ((i, k) for k in range(1, count + 1) for i in range(count - k + 1)):
            window = numbers[start : start + size]
            spread = size * sum(number * number for number in window) - sum(window) ** 2
            costs[start, size] = scale * spread / size**2 + count - size
        least = min(costs.values())
        best = {window for window, cost in costs.items() if cost == least}
        found.append((whole.numbers, float(scale), best))
    return found


def best_windows_missed() -> int:
    """Count how often the search leaves out a best window."""
    missed = 0
    for numbers, scale, best in windows_at_their_best():
        try:
            found = best_window.promising_windows(numbers, scale)
        except IndexError:  # a fault can lead out of the values
            found = []
        missed += not best <= set(found)
    return missed


@pytest.mark.parametrize("together", [best_window._TOGETHER, 3])
def test_no_best_window_is_missed(together, monkeypatch):
    monkeypatch.setattr(best_window, "_TOGETHER", together)
    assert not best_windows_missed()


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        (
            "inner * near * near / (inner + more) ** 2 - 1",
            "inner * near * near / (inner + more) - 1",
        ),
        ("- 1 - spread / inner", ""),
        ("np.maximum(np.minimum(below, above), 0.0)", "np.maximum(below, above)"),
        ("spread * inner / (inner + more)", "spread + 1"),
        ("_WIDE * count / root", "count / root / 4"),
        ("count - (end - first) > best", "count - (after - first) > best / 2"),
        ("right + size - 1, count)", "right + size - 1, count - 1)"),
    ],
)
def test_a_search_that_drops_too_much_is_seen(right, wrong, monkeypatch):
    text = inspect.getsource(best_window)
    assert right in text
    planted = types.ModuleType("planted")
    monkeypatch.setitem(sys.modules, "planted", planted)
    exec(compile(text.replace(right, wrong), "planted", "exec"), planted.__dict__)
    monkeypatch.setitem(globals(), "best_window", planted)
    with np.errstate(invalid="ignore"):
        assert best_windows_missed()


def test_a_search_among_many_values_is_short():
    asked = []

    class Counted(best_window._Cell):
        def spread(self, start, end):
            asked.append(start.size)
            return super().spread(start, end)

    even = Counted.of(np.arange(20_000.0), 1 / math.sqrt(200), 20_000)
    even = Counted(even.points, even.sums, even.squares, even.all, even.margin, even.loose)
    best_window._search(even, 20_000, 19_999.0)
    assert (
        sum(asked) < 20_000 * 60
    )  # of 2e8 windows, on data where windows of one size all cost the same


def test_the_variance_of_clusters_far_apart():
    values = np.sort(np.concatenate([np.arange(10.0), 1e9 + np.arange(30.0), [1e14]]))
    found = bounded_variance(on_public_grid(values, Fraction(2)), Fraction(2))
    assert float(found) == pytest.approx(plain_variance(values, 2.0))


def test_the_exact_variance():
    for values in (
        [1.0, 2.0, 4.0],
        [1e15, 1e15 + 1, 1e15 + 3],
        [-1e100, 1e100],
        list(np.linspace(-5, 9, 1000)),
    ):
        array = np.sort(np.array(values))
        whole = on_public_grid(array, Fraction(1))
        numbers = [Fraction(number) * whole.step for number in whole.numbers.tolist()]
        center = sum(numbers) / len(numbers)
        expected = sum((number - center) ** 2 for number in numbers) / len(numbers)
        assert exact_variance(whole) == expected
    assert exact_variance(on_public_grid(np.array([]), Fraction(1))) == 0


def test_the_bound_of_theorem_1_8_is_the_printed_sum():
    source = random.Random(SEED)
    for _ in range(100):
        values = np.array([source.gauss(0, 3) for _ in range(source.randint(1, 20))])
        count = values.size
        shares = 4 * ((values[:, None] - values[None]) ** 2).sum(axis=1) / count**2 - 0.5
        printed = max(values.var() - count * 0.25, 0) + np.maximum(shares, 0).sum()
        assert variance_error_bound(values, 0.5) == pytest.approx(printed, abs=1e-9)
