"""The promise, without any tolerance: no step of a random walk of databases moves g by more than Δ.

More and longer walks with SECANT_PROFILE=long.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from chance import LONG, fresh_seed
from secant.stats.bounded import bounded, bounded_pair
from secant.stats.preprocessing.registered import register_ordered

WALKS, STEPS = (150, 60) if LONG else (15, 25)
SEED = fresh_seed()
LIMITS = (0.1, 1 / 3, 1, "0.07", 2.5, 1e-3)
Walked = list[tuple[float, ...]]

STATISTICS: dict[str, dict[str, object]] = {
    "mean": {},
    "trimmed_mean": {"trim": 0.3},
    "median": {},
    "quantile": {"q": 0.9},
    "minimum": {},
    "maximum": {},
    "variance": {},
}


def g(name: str, database: tuple[float, ...], **rest: object) -> Fraction:
    return bounded(name, list(database), **STATISTICS[name], **rest).exact_value


def value(source: random.Random) -> float:
    shape = source.randrange(6)
    if shape == 0:
        return source.gauss(0, 2)
    if shape == 1:
        return float(source.randint(-2, 2))
    if shape == 2:
        return source.uniform(-1, 1) * 10 ** source.randint(-6, 14)
    if shape == 3:
        return source.choice([0.0, 1e-9, 7.0, 7.0 + 2**-40])
    return source.uniform(0, 30)


def walk(source: random.Random, largest: int = 40) -> Walked:
    """Give a database, and step by step its neighbors: a value comes or goes."""
    here = [(value(source),) for _ in range(source.randint(0, largest))]
    trail = [tuple(v for (v,) in here)]
    for _ in range(STEPS):
        if here and source.random() < 0.5:
            here.pop(source.randrange(len(here)))
        else:
            here.append((value(source),))
        trail.append(tuple(v for (v,) in here))
    return trail


def worst_ratio(function: Callable[[tuple[float, ...]], Fraction], trail: Walked, limit: Fraction):
    """Give the largest move along a trail in units of what was promised."""
    found = [function(database) for database in trail]
    moves = (abs(after - before) for before, after in pairwise(found))
    return max(moves, default=Fraction(0)) / limit


@pytest.mark.parametrize("name", STATISTICS)
def test_no_step_moves_g_by_more_than_promised(name):
    source = random.Random(f"{SEED} {name}")
    moved = Fraction(0)
    for _ in range(WALKS):
        limit = source.choice(LIMITS)
        empty = 0 if name == "variance" else source.choice([0, -3.5, 12])
        ratio = worst_ratio(
            lambda x, d=limit, e=empty: g(name, x, delta_f=d, empty=e),
            walk(source),
            Fraction(str(limit)),
        )
        assert ratio <= 1, (SEED, name, limit, empty)
        moved = max(moved, ratio)
    assert moved > Fraction(9, 10)  # the walks do reach the limit


@pytest.mark.parametrize("name", STATISTICS)
def test_replacing_a_value_moves_g_by_no_more_than_promised(name):
    source = random.Random(f"{SEED} {name}")
    for _ in range(WALKS):
        limit = source.choice(LIMITS)
        here = [value(source) for _ in range(source.randint(1, 30))]
        trail = [tuple(here)]
        for _ in range(STEPS):
            here[source.randrange(len(here))] = value(source)
            trail.append(tuple(here))
        ratio = worst_ratio(
            lambda x, d=limit: g(name, x, delta_f=d, neighbors="replace"),
            trail,
            Fraction(str(limit)),
        )
        assert ratio <= 1, (SEED, name, limit)


def test_clamping_to_bounds_keeps_the_promise():
    source = random.Random(SEED)
    for name in STATISTICS:
        for _ in range(WALKS // 3):
            ratio = worst_ratio(
                lambda x, n=name: g(n, x, delta_f="0.05", bounds=(-1, 3)),
                walk(source),
                Fraction(1, 20),
            )
            assert ratio <= 1, (SEED, name)


def test_each_individual_moves_g_by_no_more_than_their_own_limit():
    source = random.Random(SEED)
    for name in ("mean", "median", "trimmed_mean", "maximum"):
        for _ in range(WALKS):
            count = source.randint(1, 9)
            people = [(value(source), source.choice(["0.1", "0.5"])) for _ in range(count)]
            values, limits = zip(*people, strict=True)
            of_two = {"classes": ["0.1", "0.5"], "empty": 1}
            whole = bounded(name, values, delta_f=list(limits), **of_two).exact_value
            for gone in range(count):
                rest = [p for i, p in enumerate(people) if i != gone]
                part = bounded(
                    name, [v for v, _ in rest], delta_f=[d for _, d in rest], **of_two
                ).exact_value
                assert abs(whole - part) <= Fraction(limits[gone]), (SEED, name, people)


def test_any_function_keeps_the_limit_of_each_entry():
    source = random.Random(SEED)
    for _ in range(WALKS):
        entries = [value(source) for _ in range(source.randint(1, 7))]
        classes = [0, "0.1", 0.5, 3]
        limits = [source.choice(classes) for _ in entries]

        def wild(part: list[float]) -> float:
            return sum(part) * len(part) - max(part)

        whole = bounded(wild, entries, delta_f=limits, classes=classes).exact_value
        for gone, limit in enumerate(limits):
            rest = [i for i in range(len(entries)) if i != gone]
            part = bounded(
                wild,
                [entries[i] for i in rest],
                delta_f=[limits[i] for i in rest],
                classes=classes,
            ).exact_value
            assert abs(whole - part) <= Fraction(limit), (SEED, entries)


def test_registered_functions_keep_the_promise():
    source = random.Random(SEED)
    function = register_ordered("midrange", lambda x: (x[0] + x[-1]) / 2)
    for _ in range(WALKS // 3):
        ratio = worst_ratio(
            lambda x: bounded(function, list(x), delta_f=0.5).exact_value,
            walk(source, largest=10),
            Fraction(1, 2),
        )
        assert ratio <= 1, SEED


def test_pairs_move_by_no_more_than_promised_in_l1():
    source = random.Random(SEED)
    for _ in range(WALKS):
        pairs = [(value(source), value(source)) for _ in range(source.randint(1, 25))]
        for _ in range(5):
            whole = bounded_pair("mean", pairs, delta_f="0.1").exact_value
            gone = source.randrange(len(pairs))
            rest = pairs[:gone] + pairs[gone + 1 :]
            part = bounded_pair("mean", rest, delta_f="0.1").exact_value
            moved = abs(whole[0] - part[0]) + abs(whole[1] - part[1])
            assert moved <= Fraction(1, 10), (SEED, pairs)
            pairs = [*rest, (value(source), value(source))]


def test_the_walks_see_what_is_not_bounded():
    source = random.Random(SEED)
    plain = {"mean": np.mean, "median": np.median, "variance": np.var, "maximum": np.max}
    for name, function in plain.items():
        worst = max(
            worst_ratio(
                lambda x, f=function: Fraction(float(f(x))) if x else Fraction(0), t, Fraction(1)
            )
            for t in (walk(source) for _ in range(15))
        )
        assert worst > 1, name


def test_the_walks_see_a_median_whose_side_is_chosen_once():
    source = random.Random(SEED)

    def one_sided(database: tuple[float, ...]) -> Fraction:
        values = sorted(database)
        up = bool(values) and np.median(values) >= 0
        reached = 0.0
        for size in range(1, len(values) + 1):
            middle = float(np.median(values[:size] if up else values[len(values) - size :]))
            reached = min(middle, reached + 1) if up else max(middle, reached - 1)
        return Fraction(reached)

    trails = [walk(source, largest=9) for _ in range(80)]
    assert max(worst_ratio(one_sided, trail, Fraction(1)) for trail in trails) > 1
