"""P-CLASSES: ordered functions with a Δ of its own for each individual.

In: values, the public Δ_i of the individual behind each, an ordered function in exact arithmetic. Out: g
exactly. Individuals with the same Δ are interchangeable up to the order of their values, so only runs
of neighbors within each class are visited; the product of their numbers is limited.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import product
from math import prod

from secant.errors import UsageError
from secant.stats.inputs import Values

LARGEST_STATES = 200_000
"""Combinations of runs, one run from each class."""

ExactFunction = Callable[[list[int], Fraction], Fraction]
"""Takes sorted whole multiples of a unit, and the unit; gives the function of the numbers that they are."""
Run = tuple[int, int]


def bounded_classes(
    values: Values, deltas: Sequence[Fraction], function: ExactFunction, empty: Fraction
) -> Fraction:
    """Give g of all values when individual i may move it by deltas[i] (P-CLASSES)."""
    unit, numbers = whole_numbers(values)
    classes = _classes(numbers, deltas)
    moves = [delta for delta, _ in classes]
    members = [members for _, members in classes]
    runs = [_runs(len(own)) for own in members]
    if prod(len(own) for own in runs) > LARGEST_STATES:
        raise UsageError(
            "USE-001",
            "too many individuals with too many different limits: the runs to visit are not counted in days",
            hint="Give most individuals the same limit, and only a few their own.",
        )
    states = sorted(product(*runs), key=_size)
    bounded = {states[0]: empty}
    for state in states[1:]:
        chosen = [
            value
            for own, (start, end) in zip(members, state, strict=True)
            for value in own[start:end]
        ]
        upper, lower = _limits(state, moves, bounded)
        bounded[state] = max(min(function(sorted(chosen), unit), upper), lower)
    return bounded[states[-1]]


def _limits(
    state: tuple[Run, ...], moves: list[Fraction], bounded: dict[tuple[Run, ...], Fraction]
) -> tuple[Fraction, Fraction]:
    """Give how high and how low g may be: each class without its largest, without its smallest member."""
    highs, lows = [], []
    for place, ((start, end), move) in enumerate(zip(state, moves, strict=True)):
        if start < end:
            highs.append(bounded[_with(state, place, (start, end - 1))] + move)
            lows.append(bounded[_with(state, place, (start + 1, end))] - move)
    return min(highs), max(lows)


def _with(state: tuple[Run, ...], place: int, run: Run) -> tuple[Run, ...]:
    own = run if run[0] < run[1] else (0, 0)  # there is one empty run
    return (*state[:place], own, *state[place + 1 :])


def whole_numbers(values: Values) -> tuple[Fraction, list[int]]:
    """Give a unit of which all values are whole multiples, and these."""
    ratios = [value.as_integer_ratio() for value in values.tolist()]
    bottom = max((below for _, below in ratios), default=1)  # powers of two
    return Fraction(1, bottom), [above * (bottom // below) for above, below in ratios]


def _classes(numbers: list[int], deltas: Sequence[Fraction]) -> list[tuple[Fraction, list[int]]]:
    found: dict[Fraction, list[int]] = {}
    for number, delta in zip(numbers, deltas, strict=True):
        found.setdefault(delta, []).append(number)
    return [(delta, sorted(own)) for delta, own in found.items()]


def _runs(count: int) -> list[Run]:
    """Give the empty run and every run of neighbors."""
    full = [(start, end) for start in range(count) for end in range(start + 1, count + 1)]
    return [(0, 0), *full]


def _size(state: tuple[Run, ...]) -> int:
    return sum(end - start for start, end in state)
