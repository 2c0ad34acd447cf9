"""Limits of individuals: the fast ways against Algorithm 1 over all subsets, and each person against their limit.

20 000 databases with SECANT_PROFILE=long, 1 500 otherwise.
"""

from __future__ import annotations

import importlib
import random
from fractions import Fraction

import numpy as np
import pytest

from chance import LONG, fresh_seed
from secant.stats import bounded
from secant.stats.preprocessing import individual, layers

TRIES = 20_000 if LONG else 1_500
SEED = fresh_seed()
CHOICES = (Fraction(1, 10), Fraction(1, 2), Fraction(1), Fraction(3))
NAMES = ("mean", "trimmed_mean", "median", "quantile", "variance")
EXTRA = {"trimmed_mean": {"trim": "0.25"}, "quantile": {"q": "0.75"}}


def statistic(name: str, values: list[Fraction]) -> Fraction:
    ordered, count = sorted(values), len(values)
    if name in ("mean", "trimmed_mean"):
        cut = count // 4 if name == "trimmed_mean" else 0
        kept = ordered[cut : count - cut]
        return sum(kept, Fraction(0)) / len(kept)
    if name == "variance":
        middle = sum(ordered, Fraction(0)) / count
        return sum((value - middle) ** 2 for value in ordered) / count
    place = (count - 1) * (Fraction(1, 2) if name == "median" else Fraction(3, 4))
    low = int(place)
    return ordered[low] + (place - low) * (ordered[min(low + 1, count - 1)] - ordered[low])


def construction(
    name: str, values: list[Fraction], limits: list[Fraction], empty: Fraction
) -> Fraction:
    """Algorithm 1 as printed, in fractions."""
    count = len(values)
    found = [empty] * (1 << count)
    for mask in range(1, 1 << count):
        inside = [i for i in range(count) if mask >> i & 1]
        upper = min(found[mask ^ (1 << i)] + limits[i] for i in inside)
        lower = max(found[mask ^ (1 << i)] - limits[i] for i in inside)
        target = statistic(name, [values[i] for i in inside])
        found[mask] = max(min(target, upper), lower)
    return found[-1]


def drawn(source: random.Random) -> tuple[list[Fraction], list[Fraction], list[Fraction]]:
    """Give values, their limits and all that are declared; near values are those that limits leave alone."""
    classes = sorted(source.sample(CHOICES, 2))
    wide = source.choice([1, 1, 2, 8])
    count = source.randint(0, 6)
    values = [Fraction(source.randint(-8 * wide, 8 * wide), 8) for _ in range(count)]
    return values, [source.choice(classes) for _ in values], classes


def found_of(name: str, case: tuple[list[Fraction], ...], how: str, empty: Fraction) -> Fraction:
    values, limits, classes = case
    given = [float(value) for value in values]
    return bounded(
        name, given, delta_f=limits, classes=classes, empty=empty, construction=how,
        **EXTRA.get(name, {}),
    ).exact_value  # fmt: skip


def differing(name: str, tries: int) -> tuple[int, int]:
    """Count databases on which g is not Algorithm 1's, and those that were certain at once."""
    source = random.Random(f"{SEED} {name}")
    wrong = sure = 0
    for _ in range(tries):
        case = drawn(source)
        empty = Fraction(0 if name == "variance" else source.choice([-1, 0, 2]))
        wrong += found_of(name, case, "exact", empty) != construction(name, *case[:2], empty)
        if case[0] and name != "variance":
            ordered = np.array(sorted(map(float, case[0])))
            trims = {"mean": Fraction(0), "trimmed_mean": Fraction(1, 4)}
            shares = {"median": Fraction(1, 2), "quantile": Fraction(3, 4)}
            sure += individual.certain_ordered(
                ordered, case[1], empty, trim=trims.get(name), share=shares.get(name)
            )
    return wrong, sure


@pytest.mark.parametrize("name", NAMES)
def test_limits_of_individuals_equal_algorithm_1(name):
    wrong, sure = differing(name, TRIES // 5)
    assert wrong == 0, SEED
    assert name == "variance" or sure > TRIES // 100


@pytest.mark.parametrize("name", NAMES)
def test_a_certainty_that_believes_in_larger_limits_is_seen(name, monkeypatch):
    honest = individual._cheapest
    factor = 20 if name == "variance" else 3  # its certainty has a factor of 4 to spare
    monkeypatch.setattr(individual, "_cheapest", lambda own, size: factor * honest(own, size))
    assert differing(name, 300)[0] > 0


def overstepped(name: str, tries: int) -> int:
    """Count persons who move g by more than their limit."""
    source = random.Random(f"{SEED} layers {name}")
    wrong = 0
    for _ in range(tries):
        values, limits, classes = drawn(source)
        empty = Fraction(0 if name == "variance" else source.choice([-1, 0, 2]))
        whole = found_of(name, (values, limits, classes), "layers", empty)
        for gone, limit in enumerate(limits):
            rest = [i for i in range(len(values)) if i != gone]
            part = [values[i] for i in rest], [limits[i] for i in rest], classes
            wrong += abs(whole - found_of(name, part, "layers", empty)) > limit
    return wrong


@pytest.mark.parametrize("name", NAMES)
def test_layers_keep_the_limit_of_everybody(name):
    assert overstepped(name, TRIES // 10) == 0


def test_layers_of_those_present_are_seen_to_break_a_limit(monkeypatch):
    honest = layers.bounded_layers

    def present(values, limits, declared, *rest):
        return honest(values, limits, sorted(set(limits)) or declared, *rest)

    def moved() -> Fraction:
        careful, classes = [Fraction(1, 10)] * 60, [Fraction(1, 10), Fraction(1)]
        alone = [Fraction(5)] * 60, careful, classes  # alone they reach 5 by steps of 1/10
        joined = [*alone[0], Fraction(5)], [*careful, Fraction(1)], classes
        both = [found_of("median", case, "layers", Fraction(0)) for case in (alone, joined)]
        return abs(both[0] - both[1])

    assert moved() <= 1
    module = importlib.import_module("secant.stats.bounded")
    monkeypatch.setattr(module, "bounded_layers", present)
    assert moved() > 1


@pytest.mark.parametrize("name", NAMES)
def test_one_limit_for_all_in_layers_is_the_construction_for_one_limit(name):
    values = [1.0, 4.0, 2.5, 9.0, 3.0]
    extra = EXTRA.get(name, {})
    one = bounded(name, values, delta_f="0.5", empty=0, **extra)
    same = bounded(
        name, values, delta_f=["0.5"] * 5, classes=["0.5"], empty=0, construction="layers", **extra
    )
    assert same.exact_value == one.exact_value
    assert same.proof == "preprocess.layers"


@pytest.mark.parametrize("name", NAMES)
def test_many_people_with_ten_limits(name):
    generator = np.random.default_rng(SEED)
    count = 100_000 if LONG else 20_000
    values = generator.normal(40, 10, count)
    classes = [Fraction(i, 10) * (10 if name == "variance" else 1) for i in range(1, 11)]
    limits = [classes[i] for i in generator.integers(0, 10, count)]
    center = 0 if name == "variance" else 35
    for how, proof in (("exact", "preprocess.certain"), ("layers", "preprocess.layers")):
        found = bounded(
            name, values, delta_f=limits, classes=classes, empty=center, construction=how,
            **EXTRA.get(name, {}),
        )  # fmt: skip
        assert found.proof == proof
        assert found.promise.sensitivity == classes[-1]
        assert found.error_bound < 5
