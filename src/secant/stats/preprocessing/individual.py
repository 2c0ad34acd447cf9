"""preprocess.classes: statistics with a Δ of its own for each individual.

In: values, the public Δ_i of the individual behind each, a statistic in exact arithmetic. Out: g exactly. Where limits
change nothing, g = f is proved at once, for any number of people (preprocess.certain). Else individuals with the same Δ
are interchangeable up to the order of their values, so only runs of neighbors within each class are visited; the
product of their numbers is limited. The variance is not ordered: all subsets of a few values are visited.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import product
from math import prod
from typing import Protocol

import numpy as np
import numpy.typing as npt

from secant.errors import UsageError
from secant.stats.inputs import Values
from secant.stats.preprocessing.subsets import LARGEST_GENERAL, bounded_subsets
from secant.stats.promises import Finding

LARGEST_STATES = 200_000
"""Combinations of runs, one run from each class."""

ExactFunction = Callable[[list[int], Fraction], Fraction]
"""Takes sorted whole multiples of a unit, and the unit; gives the function of the numbers that they are."""
Run = tuple[int, int]


class Ordered(Protocol):
    """An ordered function in exact arithmetic."""

    def exactly(self, numbers: list[int], unit: Fraction) -> Fraction:
        """Give the function of sorted whole multiples of a unit."""
        ...


def individual_finding(
    spec: Ordered | str, data: Values, limits: tuple[Fraction, ...], center: Fraction
) -> Finding:
    """Give g with a limit for each individual: of an ordered function, or of the variance, which is a name here."""
    if not data.size:
        return Finding(
            center, float(center), 0.0, True, "there are no values", "preprocess.subsets"
        )
    ordered = np.sort(data)
    if isinstance(spec, str):
        target = whole_variance(ordered)
        if certain_variance(ordered, limits):
            return _finding(target, target, "preprocess.certain")
        return _finding(_bounded_variance(data, limits), target, "preprocess.subsets")
    unit, numbers = whole_numbers(ordered)
    target = spec.exactly(numbers, unit)
    trim, share = getattr(spec, "trim", None), getattr(spec, "share", None)
    named = trim is not None or share is not None
    if named and certain_ordered(ordered, limits, center, trim=trim, share=share):
        return _finding(target, target, "preprocess.certain")
    return _finding(
        bounded_classes(data, limits, spec.exactly, center), target, "preprocess.classes"
    )


def _finding(value: Fraction, target: Fraction, proof: str) -> Finding:
    gap = float(abs(value - target)) * (1 + 2.0**-50)
    reason = "g was computed and equals f" if value == target else "g was computed"
    if proof == "preprocess.certain":
        reason = "every part of the data is as near to the whole as its missing members allow"
    return Finding(value, float(target), gap, value == target, reason, proof)


def whole_variance(ordered: Values) -> Fraction:
    """Give the population variance of values as they are, unrounded; 0 for no values."""
    unit, numbers = whole_numbers(ordered)
    return _spread(numbers) * unit * unit


def _spread(numbers: Sequence[int]) -> Fraction:
    count = len(numbers)
    if not count:
        return Fraction(0)
    total = sum(numbers)
    return Fraction(count * sum(number * number for number in numbers) - total * total, count**2)


def _bounded_variance(data: Values, limits: tuple[Fraction, ...]) -> Fraction:
    if data.size > LARGEST_GENERAL:
        raise _too_many()
    unit, numbers = whole_numbers(data)
    spreads = np.empty(1 << data.size, dtype=object)
    for mask in range(1 << data.size):
        inside = [number for i, number in enumerate(numbers) if mask >> i & 1]
        spreads[mask] = _spread(inside) * unit * unit
    return bounded_subsets(spreads, limits, Fraction(0)).value


def _too_many() -> UsageError:
    return UsageError(
        "USE-001",
        "too many individuals with too many different limits: the runs to visit are not counted in days",
        hint="Pass construction='layers', which takes any number of people, or larger limits.",
    )


def bounded_classes(
    values: Values, deltas: Sequence[Fraction], function: ExactFunction, empty: Fraction
) -> Fraction:
    """Give g of all values when individual i may move it by deltas[i] (preprocess.classes)."""
    unit, numbers = whole_numbers(values)
    classes = _classes(numbers, deltas)
    moves = [delta for delta, _ in classes]
    members = [members for _, members in classes]
    if prod(len(own) * (len(own) + 1) // 2 + 1 for own in members) > LARGEST_STATES:
        raise _too_many()
    runs = [_runs(len(own)) for own in members]
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
    for index, ((start, end), move) in enumerate(zip(state, moves, strict=True)):
        if start < end:
            highs.append(bounded[_with(state, index, (start, end - 1))] + move)
            lows.append(bounded[_with(state, index, (start + 1, end))] - move)
    return min(highs), max(lows)


def _with(state: tuple[Run, ...], index: int, run: Run) -> tuple[Run, ...]:
    own = run if run[0] < run[1] else (0, 0)  # there is one empty run
    return (*state[:index], own, *state[index + 1 :])


def whole_numbers(values: Values) -> tuple[Fraction, list[int]]:
    """Give a unit of which all values are whole multiples, and these."""
    ratios = [value.as_integer_ratio() for value in values.tolist()]
    bottom = max((below for _, below in ratios), default=1)  # powers of two
    return Fraction(1, bottom), [above * (bottom // below) for above, below in ratios]


def _classes(numbers: list[int], deltas: Sequence[Fraction]) -> list[tuple[Fraction, list[int]]]:
    classes: dict[Fraction, list[int]] = {}
    for number, delta in zip(numbers, deltas, strict=True):
        classes.setdefault(delta, []).append(number)
    return [(delta, sorted(own)) for delta, own in classes.items()]


def _runs(count: int) -> list[Run]:
    """Give the empty run and every run of neighbors."""
    full = [(start, end) for start in range(count) for end in range(start + 1, count + 1)]
    return [(0, 0), *full]


def _size(state: tuple[Run, ...]) -> int:
    return sum(end - start for start, end in state)


# ── preprocess.certain: when limits of individuals change nothing, found without visiting subsets ───


_LOOSE = 1 - 2.0**-30
_EPS = float(np.finfo(np.longdouble).eps)


def certain_ordered(
    ordered: Values,
    limits: Sequence[Fraction],
    empty: Fraction,
    *,
    trim: Fraction | None,
    share: Fraction | None,
) -> bool:
    """Say whether g = f is sure for a trimmed mean, or for the quantile at a share."""
    size = int(ordered.size)
    sizes = np.arange(1, size + 1, dtype=np.int64)
    if trim is not None:
        running = np.concatenate(([0.0], np.cumsum(ordered, dtype=np.longdouble)))
        cut = trim.numerator * sizes // trim.denominator
        remaining = (sizes - 2 * cut).astype(np.float64)
        least = ((running[sizes - cut] - running[cut]) / remaining).astype(np.float64)
        start = size - sizes
        most = ((running[size - cut] - running[start + cut]) / remaining).astype(np.float64)
    else:
        assert share is not None
        least = _ranked(ordered, np.zeros(size, dtype=np.int64), sizes, share)
        most = _ranked(ordered, size - sizes, sizes, share)
    margin = 8 * size * size * _EPS * float(np.abs(ordered).max()) + 2.0**-40 * abs(float(empty))
    margin += 2.0**-48 * float(np.abs(ordered).max())
    spare = _cheapest(limits, size)
    target = float(least[-1])
    if abs(target - float(empty)) + margin > float(spare[size]):
        return False
    missing = spare[size - sizes[:-1]]
    above = bool((most[:-1] - target + margin <= missing).all())
    return above and bool((target - least[:-1] + margin <= missing).all())


def certain_variance(ordered: Values, limits: Sequence[Fraction]) -> bool:
    """Say whether g = f is sure for the population variance, with 0 for no values."""
    size = int(ordered.size)
    centered = ordered - ordered[size // 2]
    centered = centered - centered.mean()
    squares = float((centered * centered).sum()) * (1 + 2.0**-30)
    spread = squares / size
    own = np.sort(4.0 * (size * centered * centered + squares) / size**2)[::-1] * (1 + 2.0**-30)
    spare = _cheapest(limits, size)
    # the lower side: each who leaves takes at most their share, while half remain
    if size > 1 and not float(own[0]) <= float(spare[1]):
        return False
    if spread > float(spare[(size + 1) // 2]):
        return False
    # the upper side: what remains has at most n/(n-k) times the variance, and a quarter of the squared range
    widest = (float(centered.max()) - float(centered.min())) ** 2 / 4 * (1 + 2.0**-30)
    gone = np.arange(1, size, dtype=np.float64)
    grown = np.minimum(spread * gone / (size - gone), max(widest - spread * (1 - 2.0**-20), 0.0))
    return bool((grown <= spare[1:size]).all())


def _ranked(
    ordered: Values, start: npt.NDArray[np.int64], sizes: npt.NDArray[np.int64], share: Fraction
) -> Values:
    """Give quantiles of windows that begin at `start`."""
    position = (sizes - 1) * share.numerator // share.denominator
    part = ((sizes - 1) * share.numerator % share.denominator) / share.denominator
    below = ordered[start + position]
    above = ordered[np.minimum(start + position + 1, ordered.size - 1)]
    values: Values = below + part * (above - below)
    return values


def _cheapest(limits: Sequence[Fraction], size: int) -> Values:
    """Give the least that 0, 1, 2, … of those present may move together, rounded down."""
    own = np.sort(np.array([float(limit) for limit in limits], dtype=np.float64))
    costs: Values = np.concatenate(([0.0], np.cumsum(own))) * (_LOOSE - size * 2.0**-50)
    return costs
