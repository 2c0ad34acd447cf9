"""`secant.stats.bounded`: a statistic with a sensitivity that one chooses, and what that costs in error.

In: data, the public Δ, a public center, a public range if there is one. Out: a record, see promises.py; not
a release. Public parameters are checked before the data are read. Whether a construction can stop early depends on
the data, so running times, and refusals for size, belong to the owner and not to an analyst.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Hashable, Sequence
from fractions import Fraction
from typing import Any, Literal

import numpy as np

from secant.errors import UsageError, public_api
from secant.numeric.parameters import Number, positive
from secant.stats.budget import neighbors_of
from secant.stats.inputs import (
    Values,
    bounds_of,
    clamped,
    decimal_of,
    numbers_of,
    public_number,
    values_of,
)
from secant.stats.preprocessing.individual import individual_finding, whole_numbers, whole_variance
from secant.stats.preprocessing.layers import bounded_layers
from secant.stats.preprocessing.ordered_statistics import (
    Statistic,
    mean_statistic,
    ordered_finding,
    quantile_statistic,
)
from secant.stats.preprocessing.registered import OrderedFunction, registered_finding
from secant.stats.preprocessing.subsets import (
    SubsetResult,
    bounded_subsets,
    called,
    checked_size,
    subset_values,
)
from secant.stats.preprocessing.units import LARGEST, Units
from secant.stats.preprocessing.variance import (
    bounded_variance,
    exact_variance,
    on_public_grid,
    variance_error_bound,
    was_clamped,
)
from secant.stats.promises import Bounded, BoundedPair, Finding, Promise
from secant.stats.results import REPLACE, Neighbors

NAMES = ("mean", "trimmed_mean", "median", "quantile", "minimum", "maximum", "variance")
Limits = Number | Sequence[Number]
Construction = Literal["exact", "layers"]
_VARIANCE = "the variance is at most n·Δ/2, and 4·Σⱼ(xᵢ-xⱼ)²/n² at most Δ for every i (Theorem 1.8)"
_LAYERS = "every layer is met at the largest limit, and all layers have the same statistic (preprocess.layers)"
_ANY = "no order of adding the entries one by one ever moves f by more than Δ_i (Theorem 3.3)"


@public_api
def bounded(
    statistic: str | OrderedFunction | Callable[[list[Any]], float],
    values: object,
    *,
    delta_f: Limits,
    classes: Collection[Number] | None = None,
    bounds: tuple[Number, Number] | None = None,
    empty: Number | None = None,
    neighbors: Neighbors = "add-remove",
    q: Number | None = None,
    trim: Number | None = None,
    construction: Construction = "exact",
) -> Bounded:
    """Give g of the data: as near to a statistic as a sensitivity of `delta_f` allows.

    `statistic` is one of NAMES (`variance` divides by n), what `register_ordered` gave, or any function of a list
    of entries, for up to 20 of them. `delta_f` is one number, or one for each entry; then `classes` lists all limits
    that anybody may have, also those who are not there: the promise is for them too. With limits of individuals
    `construction="exact"` gives the nearest function where it can be found, and "layers" takes any number of people.
    `empty` is the value for no entries: the middle of `bounds` unless given, else 0; for the variance it is 0.
    `quantile` takes `q`, `trimmed_mean` the share `trim` of each end, 0.1 unless given. What is missing or no number is
    left out; under `replace` it counts as `empty`.

    >>> found = bounded("mean", [1, 2, 3, 4], delta_f=1, empty=2)
    >>> found.value, found.exact
    (2.5, True)
    >>> print(found.promise)
    moves by at most 1 for one value added or removed
    """
    relation = neighbors_of(neighbors, None)
    public = bounds_of(bounds)
    spec = specified(statistic, q, trim)
    halved = 2 if relation == REPLACE else 1  # one value leaves, one comes
    limits = _limits(delta_f, halved)
    declared = _declared(classes, limits, halved)
    center = _center(spec, empty, public)
    if construction not in ("exact", "layers"):
        raise UsageError("USE-001", "a construction is 'exact' or 'layers'")
    if construction == "layers" and (spec is None or declared is None):
        raise UsageError(
            "USE-001", "layers are for a statistic by name with one limit for each entry"
        )
    if spec is not None:
        numbers = numbers_of(values)
        present = ~np.isnan(numbers)
        if relation == REPLACE:  # how many entries there are is public, so each counts
            numbers, present = (
                np.where(present, numbers, float(center)),
                np.full_like(present, True),
            )
        if isinstance(limits, tuple) and len(limits) == len(numbers):
            limits = tuple(limit for limit, here in zip(limits, present, strict=True) if here)
        data = clamped(numbers[present], public)
        finding = _named(spec, data, limits, declared, center, layers=construction == "layers")
    else:
        assert callable(statistic)
        if public is not None:
            raise UsageError("USE-001", "bounds are for numbers; a function of any kind has none")
        finding = _any(statistic, _entries(values), limits, center)
    name = spec if isinstance(spec, str) else getattr(spec, "name", "function")
    return Bounded(
        name,
        float(finding.exact_value),
        finding.exact_value,
        _promise(limits, declared, halved, relation, spec),
        finding.error_bound,
        finding.exact,
        finding.reason,
        finding.proof,
        _LAYERS if construction == "layers" else _certain(spec, limits),
    )


@public_api
def bounded_pair(
    statistic: str | Callable[[list[Any]], Sequence[float]],
    values: object,
    *,
    delta_f: Limits,
    classes: Collection[Number] | None = None,
    empty: tuple[Number, Number] = (0, 0),
    neighbors: Neighbors = "add-remove",
) -> BoundedPair:
    """Give g in the plane, with a sensitivity of `delta_f` in the l1 norm.

    `statistic` is "mean", of rows of two numbers, or a function of a list of up to 20 entries that gives two numbers.

    >>> found = bounded_pair("mean", [[1, 2], [3, 4]], delta_f=10)
    >>> [round(part, 6) for part in found.value]
    [2.0, 3.0]
    """
    relation = neighbors_of(neighbors, None)
    halved = 2 if relation == REPLACE else 1
    limits = _limits(delta_f, halved)
    declared = _declared(classes, limits, halved)
    if not isinstance(empty, (tuple, list)) or len(empty) != 2:
        raise UsageError("USE-001", "empty must be a pair of numbers")
    center = (public_number(empty[0], "empty"), public_number(empty[1], "empty"))
    if callable(statistic):
        entries = _entries(values)
        both = _subset_pair(statistic, entries, limits, center)
    elif statistic == "mean":
        if isinstance(limits, tuple):
            raise UsageError("USE-001", "a mean of pairs takes one delta_f for everybody")
        other = [float(part) for part in center] if relation == REPLACE else None
        both = _mean_pair(values_of(values, columns=2, missing=other), limits, center)
    else:
        raise UsageError("USE-001", "a statistic of pairs is 'mean' or a function")
    first, second = both
    pair = turned_back((first.exact_value, second.exact_value))
    return BoundedPair(
        statistic if isinstance(statistic, str) else "function",
        (float(pair[0]), float(pair[1])),
        pair,
        _promise(limits, declared, halved, relation, None, norm_l1=True),
        max(first.error_bound, second.error_bound),  # |a| + |b| is the larger diagonal
        first.exact and second.exact,
        first.reason if first.error_bound >= second.error_bound else second.reason,
        "preprocess.plane",
        _ANY if callable(statistic) else f"along both diagonals, {mean_statistic().certain_when}",
    )


def specified(
    statistic: object, q: Number | None, trim: Number | None
) -> Statistic | OrderedFunction | str | None:
    """Give what a name stands for, None for a function of any kind; public parameters are checked."""
    if q is not None and statistic != "quantile":
        raise UsageError("USE-001", "q is for the quantile only")
    if trim is not None and statistic != "trimmed_mean":
        raise UsageError("USE-001", "trim is for the trimmed mean only")
    if isinstance(statistic, OrderedFunction) or statistic == "variance":
        return statistic
    if statistic == "quantile":
        if q is None:
            raise UsageError("USE-001", "a quantile needs q")
        return quantile_statistic(decimal_of(q, "q"))
    if statistic == "trimmed_mean":
        share = Fraction(1, 10) if trim is None else decimal_of(trim, "trim")
        return mean_statistic(share, "trimmed mean")
    if statistic == "mean":
        return mean_statistic()
    ranks = {"minimum": Fraction(0), "median": Fraction(1, 2), "maximum": Fraction(1)}
    if isinstance(statistic, str) and statistic in ranks:
        return quantile_statistic(ranks[statistic], statistic)
    if callable(statistic):
        return None
    raise UsageError("USE-001", f"a statistic is a function or one of: {', '.join(NAMES)}")


def _limits(delta_f: Limits, halved: int) -> Fraction | tuple[Fraction, ...]:
    """Give Δ, or the Δ_i, for one entry that comes or goes."""
    if isinstance(delta_f, (list, tuple, np.ndarray)):
        by_value: dict[Any, Fraction] = {}  # 100,000 people have few different limits
        limits = []
        for value in delta_f:
            own = by_value.get((type(value), value)) if isinstance(value, Hashable) else None
            if own is None:
                own = public_number(value, "delta_f") / halved
                if own < 0:
                    raise UsageError("USE-001", "no limit in delta_f may be negative")
                by_value[type(value), value] = own
            limits.append(own)
        return tuple(limits)
    single: Any = delta_f  # whatever else was passed is refused here
    return positive(decimal_of(single, "delta_f"), "delta_f") / halved


def _declared(
    classes: Collection[Number] | None, limits: Fraction | tuple[Fraction, ...], halved: int
) -> tuple[Fraction, ...] | None:
    """Give all limits that individuals may have, those of the absent too; None where all have one."""
    if not isinstance(limits, tuple):
        if classes is not None:
            raise UsageError("USE-001", "classes go with one limit for each entry")
        return None
    if classes is None or not len(classes):
        raise UsageError(
            "USE-001",
            "one limit for each entry needs classes: all limits that anybody may have",
            hint="Those who are there do not tell how far somebody who joins may move the value.",
        )
    deltas = _limits(list(classes), halved)
    assert isinstance(deltas, tuple)
    if not set(limits) <= set(deltas):
        raise UsageError("USE-001", "delta_f holds a limit that is not among classes")
    return tuple(sorted(set(deltas)))


def _center(
    spec: object, empty: Number | None, public: tuple[Fraction, Fraction] | None
) -> Fraction:
    if empty is not None:
        center = public_number(empty, "empty")
        if spec == "variance" and center:
            raise UsageError(
                "USE-001",
                "the variance of no values is 0: with another value Algorithm 3 does not hold",
                hint="For up to 20 entries pass a function instead of the name.",
            )
        return center
    return Fraction(0) if spec == "variance" or public is None else sum(public) / Fraction(2)


def _named(
    spec: Statistic | OrderedFunction | str,
    data: Values,
    limits: Fraction | tuple[Fraction, ...],
    declared: tuple[Fraction, ...] | None,
    center: Fraction,
    *,
    layers: bool,
) -> Finding:
    if not isinstance(limits, tuple):
        return uniform_finding(spec, np.sort(data), limits, center)
    assert declared is not None
    own = _matching(limits, data.size)
    if not layers:
        return individual_finding(spec, data, own, center)
    target = center
    if data.size:
        target = _exactly(spec, np.sort(data))
    return bounded_layers(
        data,
        own,
        declared,
        lambda part, most: uniform_finding(spec, part, most, center),
        target,
        center,
    )


def _exactly(spec: Statistic | OrderedFunction | str, ordered: Values) -> Fraction:
    if isinstance(spec, str):
        return whole_variance(ordered)
    unit, numbers = whole_numbers(ordered)
    return spec.exactly(numbers, unit)


def uniform_finding(
    spec: Statistic | OrderedFunction | str,
    ordered: Values,
    limit: Fraction,
    center: Fraction,
) -> Finding:
    """Give g of sorted values with one limit for everybody; no statistic by name is refused for being slow to find."""
    if isinstance(spec, str):
        return _variance(ordered, limit)
    if isinstance(spec, OrderedFunction):
        return registered_finding(spec, ordered, Units(center, limit))
    return ordered_finding(spec, ordered, Units(center, limit))


def _variance(ordered: Values, delta: Fraction) -> Finding:
    if ordered.size > LARGEST:
        raise UsageError("USE-001", f"more than {LARGEST} values cannot be bounded at once")
    whole = on_public_grid(ordered, delta)
    target = exact_variance(whole)
    limit, reason = variance_error_bound(ordered, float(delta) * (1 - 2.0**-20)), "Theorem 1.8"
    if limit == 0 or not ordered.size:
        return Finding(
            target, float(target), _floor(target, delta), True, reason, "preprocess.variance"
        )
    exact_value = bounded_variance(whole, delta)
    exact = exact_value == target and not was_clamped(whole)
    if exact:
        limit, reason = 0.0, "g was computed and equals f"
    gap = max(float(target), float(np.var(ordered))) - float(exact_value)
    return Finding(
        exact_value,
        float(target),
        max(limit, gap) + _floor(target, delta),
        exact,
        reason,
        "preprocess.variance",
    )


def _floor(target: Fraction, delta: Fraction) -> float:
    """Give what the grid of values can add to an error: 2s·√f + s² for steps s of at most √Δ/2³⁹."""
    step = math.sqrt(delta) * 2.0**-39
    return 2.0 * step * math.sqrt(target) + step * step + 2.0**-44 * float(target)


def _any(
    function: Callable[[list[Any]], float],
    entries: list[Any],
    limits: Fraction | tuple[Fraction, ...],
    center: Fraction,
) -> Finding:
    count = checked_size(entries)
    own = _matching(limits, count)
    result = bounded_subsets(subset_values(function, entries), own, center)
    return _subset_finding(result)


def _subset_pair(
    function: Callable[[list[Any]], Sequence[float]],
    entries: list[Any],
    limits: Fraction | tuple[Fraction, ...],
    center: tuple[Fraction, Fraction],
) -> tuple[Finding, Finding]:
    own = _matching(limits, checked_size(entries))
    first, second = (
        _subset_finding(finding)
        for finding in bounded_plane_subsets(function, entries, own, center)
    )
    return first, second


def _mean_pair(
    pairs: Values, delta: Fraction, center: tuple[Fraction, Fraction]
) -> tuple[Finding, Finding]:
    middle = turned(center)
    first, second = (
        ordered_finding(mean_statistic(), np.sort(diagonal), Units(own, delta))
        for diagonal, own in zip(diagonals(pairs), middle, strict=True)
    )
    return first, second


def _subset_finding(result: SubsetResult) -> Finding:
    gap = float(abs(result.value - Fraction(result.target)))
    exact = result.value == Fraction(result.target)
    reason = "g was computed and equals f" if exact else "Theorem 3.3"
    limit = 0.0 if exact else max(result.error_bound, gap) * (1 + 2.0**-40)
    return Finding(result.value, result.target, limit, exact, reason, "preprocess.subsets")


def _matching(limits: Fraction | tuple[Fraction, ...], count: int) -> tuple[Fraction, ...]:
    if not isinstance(limits, tuple):
        return (limits,) * count
    if len(limits) != count:
        raise UsageError("USE-001", "delta_f must hold one limit for each entry")
    return limits


def _entries(values: object) -> list[Any]:
    if isinstance(values, (str, bytes)) or not hasattr(values, "__iter__"):
        raise UsageError("USE-001", "values must be a sequence of entries")
    return list(values)


def _promise(
    limits: Fraction | tuple[Fraction, ...],
    declared: tuple[Fraction, ...] | None,
    halved: int,
    relation: Neighbors,
    spec: object,
    *,
    norm_l1: bool = False,
) -> Promise:
    # Over all who could be there, and not over those who are: who joins may have the largest limit.
    own = None if declared is None else tuple(limit * halved for limit in declared)
    most = max(own) if own is not None else _single(limits) * halved
    assumed = (spec.assumption,) if isinstance(spec, OrderedFunction) else ()
    return Promise(most, relation, own, "l1" if norm_l1 else "absolute", assumed)


def _single(limits: Fraction | tuple[Fraction, ...]) -> Fraction:
    assert isinstance(limits, Fraction)
    return limits


def _certain(spec: object, limits: Fraction | tuple[Fraction, ...]) -> str:
    if spec == "variance":
        return _VARIANCE
    if isinstance(limits, tuple) or not isinstance(spec, (Statistic, OrderedFunction)):
        return _ANY
    return spec.certain_when


# ── preprocess.plane: functions into the plane, with a bound on how far they move in the l1 norm ───


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
    results: list[Sequence[float]] = []

    def first(entries: list[Any]) -> float:
        results.append(function(entries))
        if len(results[0]) != 2:
            raise UsageError("USE-001", "the function must give two numbers")
        return results[0][0]

    return [called(first, chosen), called(lambda _: results[0][1], chosen)]
