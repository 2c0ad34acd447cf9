"""A limit and the number behind it, on all small databases and all their neighbors (truncation.choose).

What is released is the pair of limit and noisy number. Its law is computed, not drawn: permute-and-flip by its
definition, and discrete Laplace noise. Between neighbors no pair may become likelier by more than exp(epsilon).
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import pytest
from laws_of_draws import flips

from secant.noise import choosing
from secant.noise.mechanisms import limits as module
from secant.noise.mechanisms.limits import scores_of

LIMITS = (1, 2, 4, 7)
AMOUNTS = (0, 1, 2, 3, 5, 9)
"""What a unit adds: also more than the largest limit."""
EPSILON = Fraction(1)
SHOWN = range(-6, 34)


def law(units, epsilon: Fraction, groups: int, *, over: int = 1, scores=scores_of, sharp: int = 1):
    """Give how likely each pair is, as logarithms; `over` cuts down to a multiple of the limit only."""
    spent = epsilon * choosing.CHOOSING
    rest = epsilon - spent
    above = [sum(x > limit for x in units) for limit in LIMITS]
    chosen = flips(scores(LIMITS, above, spent, rest, groups), float(spent) * sharp)
    found = []
    for limit, chance in zip(LIMITS, chosen, strict=True):
        total = sum(min(x, over * limit) for x in units)
        rate = float(rest) / limit
        norm = math.log(math.tanh(rate / 2))
        found += [math.log(chance) + norm - rate * abs(x - total) for x in SHOWN]
    return found


def databases():
    """All bags of up to three units, and crowds at which scores leave their plateau."""
    for size in range(4):
        yield from itertools.combinations_with_replacement(AMOUNTS, size)
    for x in AMOUNTS:
        yield (x,) * 4 + (9, 3)
        yield (2,) * 6 + (5, x)


def worst(epsilon: Fraction = EPSILON, groups: int = 1, **fault) -> float:
    """Give the largest change of the logarithm of a chance, over all databases and units that go."""
    laws = {}

    def of(units):
        key = tuple(sorted(units))
        if key not in laws:
            laws[key] = law(key, epsilon, groups, **fault)
        return laws[key]

    return max(
        abs(a - b)
        for units in databases()
        for gone in range(len(units))
        for a, b in zip(of(units), of(units[:gone] + units[gone + 1 :]), strict=True)
    )


@pytest.mark.parametrize("epsilon", [Fraction(3, 10), Fraction(1), Fraction(3)])
@pytest.mark.parametrize("groups", [1, 12])
def test_no_pair_of_limit_and_number_tells_more_than_epsilon(epsilon, groups):
    assert worst(epsilon, groups) <= float(epsilon) * (1 + 1e-9)


def twice(limits, above, *spent):
    """Planted: every unit counts twice."""
    return scores_of(limits, [2 * units for units in above], *spent)


def by_data(limits, above, *spent):
    """Planted: a limit that nobody reaches is worth nothing, which the data say and not the list."""
    found = scores_of(limits, above, *spent)
    return [s if units else s - 3 for s, units in zip(found, above, strict=True)]


@pytest.mark.parametrize(
    "fault",
    [{"over": 2}, {"sharp": 2}, {"scores": twice}, {"scores": by_data}],
    ids=["cut down to twice the limit", "sharper", "counted twice", "by data"],
)
def test_a_planted_fault_tells_more(fault):
    assert worst(Fraction(3), **fault) > 3 * (1 + 1e-9)


def test_what_falls_faster_is_as_private(monkeypatch):
    """What the weights of limits are decides about use only."""
    monkeypatch.setattr(module, "FALL", Fraction(11))
    assert worst() <= float(EPSILON) * (1 + 1e-9)
