"""preprocess.plane: functions into the plane, with a bound on how far they move in the l1 norm.

In: pairs of numbers, or a function of entries that gives a pair; a public Δ (or Δ_i). Out: a pair g
that moves by at most Δ in l1. |a| + |b| is the larger of |a+b| and |a-b|, so each of the two diagonals
is bounded on its own, with the whole Δ. In three dimensions no such construction exists.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from secant.errors import UsageError
from secant.stats.inputs import Values
from secant.stats.preprocessing.subsets import SubsetResult, bounded_subsets, called, checked_size

Pair = tuple[Fraction, Fraction]


def diagonals(pairs: Values) -> tuple[Values, Values]:
    """Give a + b and a - b of each pair."""
    return pairs[:, 0] + pairs[:, 1], pairs[:, 0] - pairs[:, 1]


def turned(pair: Pair) -> Pair:
    """Give (a + b, a - b)."""
    return pair[0] + pair[1], pair[0] - pair[1]


def turned_back(pair: Pair) -> Pair:
    """Give the pair whose sum and difference these are."""
    return (pair[0] + pair[1]) / 2, (pair[0] - pair[1]) / 2


def bounded_plane_subsets(
    function: Callable[[list[Any]], Sequence[float]],
    entries: Sequence[Any],
    deltas: Sequence[Fraction],
    empty: Pair,
) -> tuple[SubsetResult, SubsetResult]:
    """Give g along both diagonals, from the function's pairs on all subsets (preprocess.plane)."""
    count = checked_size(entries)
    pairs = np.zeros((1 << count, 2))
    for mask in range(1, 1 << count):
        chosen = [entries[i] for i in range(count) if mask >> i & 1]
        pairs[mask] = _pair(function, chosen)
    first, second = diagonals(pairs)
    center = turned(empty)
    return (
        bounded_subsets(first, deltas, center[0]),
        bounded_subsets(second, deltas, center[1]),
    )


def _pair(function: Callable[[list[Any]], Sequence[float]], chosen: list[Any]) -> list[float]:
    kept: list[Sequence[float]] = []

    def first(entries: list[Any]) -> float:
        kept.append(function(entries))
        if len(kept[0]) != 2:
            raise UsageError("USE-001", "the function must give two numbers")
        return kept[0][0]

    return [called(first, chosen), called(lambda _: kept[0][1], chosen)]
