"""Counts of anything: rows of a frame, words, objects, or what is true in a mask.

In: a collection, ε, and who pays. Out: a `Release`, a whole number. What the entries are is not looked at.
"""

from __future__ import annotations

from collections.abc import Iterable, Sized
from fractions import Fraction
from typing import Any

import numpy as np

from secant.errors import UsageError, public_api
from secant.noise.mechanisms.laplace import DiscreteLaplaceNoise
from secant.numeric.parameters import Number
from secant.sensitivity.bounds import GlobalBound
from secant.stats.calls import release, terms_of
from secant.stats.inputs import check_lengths, check_values, mask_of
from secant.stats.mechanisms import LaplaceMechanism, Statistic
from secant.stats.results import REPLACE, Neighbors, Release
from secant.stats.scale import Scale, Steps


@public_api
def count(
    values: object,
    *,
    epsilon: Number,
    where: object = None,
    budget: object = None,
    neighbors: Neighbors | None = None,
    level: Number = 0.95,
) -> Release:
    """Release how many entries there are, whatever they are; missing ones count too.

    `where` is a mask, as for `proportion`: then only entries where it is true are counted, and under `replace` too.
    What is neither true nor false there is not true.

    >>> count(["red", "blue", None], epsilon=100).value
    3.0
    >>> count([1, 2, 3], where=[True, False, True], epsilon=100).value
    2.0
    """
    terms = terms_of(values, epsilon=epsilon, budget=budget, neighbors=neighbors, level=level)
    if terms.neighbors == REPLACE and where is None:
        raise UsageError(
            "USE-001",
            "where neighbors replace one value, how many there are is public",
            hint="Ask for neighbors='add-remove', take the length, or pass where.",
        )
    scale = Scale(Fraction(0), Fraction(1), 1 << 62)
    statistic = Statistic("count", scale, Fraction(1), lambda ordered: Fraction(len(ordered)))
    noise = DiscreteLaplaceNoise().calibrate(
        GlobalBound(Fraction(1)), epsilon=terms.epsilon, grid=1
    )
    unit = Scale(Fraction(0), Fraction(1), 1)
    _check_entries(values)
    if where is not None:
        check_values(where, mask=True)
        check_lengths(values, where)

    def read(raw: object) -> Steps:
        size = size_of(raw)
        if where is not None:
            mask = mask_of(where)
            if len(mask) != size:
                raise UsageError("USE-001", "the columns must have one entry for each row")
            size = int((mask == 1).sum())
        return np.zeros(size, dtype=np.int64)

    ways = [[LaplaceMechanism(statistic, noise, statistic.exact)]]
    return release(values, unit, statistic, ways, terms, read=read)


def _check_entries(values: object) -> None:
    """Refuse what is no collection, before anything is charged."""
    counted = isinstance(values, (Sized, Iterable)) or hasattr(values, "__array__")
    if isinstance(values, (str, bytes)) or not (counted or bool(getattr(values, "shape", None))):
        raise UsageError("USE-001", "values must be a collection of entries to count")


def size_of(values: Any) -> int:
    """Give how many entries a collection has; of a frame or a table, its rows."""
    if isinstance(values, Sized):
        return len(values)
    shape = getattr(values, "shape", None)
    if isinstance(shape, tuple) and shape:
        return int(shape[0])
    return len(np.asarray(values)) if hasattr(values, "__array__") else sum(1 for _ in values)
