"""Released statistics of one column: mean, trimmed mean, median, quantile, extremes, variance.

In: values, bounds, ε, and who pays. Out: a `Release` with its error, guarantee and cost. Each function
states which ways there are; the way is chosen by public facts, and the data are read once, after the
charge. The empty column has an answer like any other, so that its emptiness shows in nothing.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from secant.errors import UsageError, public_api
from secant.numeric.parameters import Number
from secant.stats.calls import Terms, release, terms_of
from secant.stats.definitions import (
    by_size_ways,
    mean_statistic,
    rank_statistic,
    rank_ways,
    variance_statistic,
)
from secant.stats.inputs import public_number, values_of, written
from secant.stats.preprocessing import ordered_statistics as ordered
from secant.stats.preprocessing.unbounded import FAMILY, delta_of_call, release_unbounded
from secant.stats.private_size import PRIVATE, with_private_n
from secant.stats.results import Neighbors, Release
from secant.stats.scale import Scale, scale_of

_FINEST_SHARE = 10**9
_HALF = Fraction(1, 2)


@public_api
def mean(
    values: object,
    *,
    epsilon: Number,
    bounds: tuple[Number, Number] | None = None,
    delta_f: Number | None = None,
    budget: object = None,
    neighbors: Neighbors | None = None,
    n: int | str | None = None,
    empty: Number | None = None,
    compare: bool = False,
    mechanism: str = "auto",
    level: Number = 0.95,
) -> Release:
    """Release the mean; values outside the bounds count as the bounds.

    >>> 40 < mean([42.0] * 1000, epsilon=10, bounds=(0, 100)).value < 44
    True
    """
    if n == PRIVATE:
        return with_private_n(
            mean, values, values_of, epsilon=epsilon, budget=budget, neighbors=neighbors, level=level,
            bounds=bounds, delta_f=delta_f, empty=empty, compare=compare, mechanism=mechanism,
        )  # fmt: skip
    terms = terms_of(
        values, epsilon=epsilon, budget=budget, neighbors=neighbors, n=n, compare=compare,
        mechanism=mechanism, level=level,
    )  # fmt: skip
    if delta_f is not None and bounds is None:
        return release_unbounded(values, "mean", terms, delta_f=delta_f, empty=empty)
    terms, delta = preprocessed(terms, delta_f)
    scale = scale_of(bounds)
    statistic = mean_statistic("mean", scale, terms, Fraction(0), empty_index(empty, scale))
    ways = by_size_ways(statistic, terms, ordered.mean_statistic(), delta)
    return release(values, scale, statistic, ways, terms)


@public_api
def trimmed_mean(
    values: object,
    *,
    trim: Number = 0.1,
    epsilon: Number,
    bounds: tuple[Number, Number] | None = None,
    delta_f: Number | None = None,
    budget: object = None,
    neighbors: Neighbors | None = None,
    n: int | str | None = None,
    empty: Number | None = None,
    compare: bool = False,
    mechanism: str = "auto",
    level: Number = 0.95,
) -> Release:
    """Release the mean of what lies between the quantiles `trim` and 1 - trim.

    Where trim · n is not whole, the values at the two ends count in part.

    >>> 40 < trimmed_mean([42.0] * 1000, epsilon=10, bounds=(0, 100)).value < 44
    True
    """
    if n == PRIVATE:
        return with_private_n(
            trimmed_mean, values, values_of, epsilon=epsilon, budget=budget, neighbors=neighbors, level=level,
            bounds=bounds, delta_f=delta_f, trim=trim, empty=empty, compare=compare, mechanism=mechanism,
        )  # fmt: skip
    share = written(trim, "trim")
    if not 0 <= share < _HALF or share.denominator > _FINEST_SHARE:
        raise UsageError("USE-001", "trim must be at least 0 and less than 0.5, of up to 9 digits")
    terms = terms_of(
        values, epsilon=epsilon, budget=budget, neighbors=neighbors, n=n, compare=compare,
        mechanism=mechanism, level=level,
    )  # fmt: skip
    if delta_f is not None and bounds is None:
        return release_unbounded(
            values, "trimmed_mean", terms, delta_f=delta_f, empty=empty, trim=trim
        )
    terms, delta = preprocessed(terms, delta_f)
    scale = scale_of(bounds)
    statistic = mean_statistic("trimmed mean", scale, terms, share, empty_index(empty, scale))
    ways = by_size_ways(statistic, terms, ordered.mean_statistic(share, "trimmed mean"), delta)
    return release(values, scale, statistic, ways, terms)


@public_api
def variance(
    values: object,
    *,
    epsilon: Number,
    bounds: tuple[Number, Number] | None = None,
    delta_f: Number | None = None,
    budget: object = None,
    neighbors: Neighbors | None = None,
    n: int | str | None = None,
    compare: bool = False,
    mechanism: str = "auto",
    level: Number = 0.95,
) -> Release:
    """Release the population variance; that of no values is 0.

    >>> variance([42.0] * 1000, epsilon=10, bounds=(0, 100)).value < 100
    True
    """
    if n == PRIVATE:
        return with_private_n(
            variance, values, values_of, epsilon=epsilon, budget=budget, neighbors=neighbors, level=level,
            bounds=bounds, delta_f=delta_f, compare=compare, mechanism=mechanism,
        )  # fmt: skip
    terms = terms_of(
        values, epsilon=epsilon, budget=budget, neighbors=neighbors, n=n, compare=compare,
        mechanism=mechanism, level=level,
    )  # fmt: skip
    if delta_f is not None and bounds is None:
        return release_unbounded(values, "variance", terms, delta_f=delta_f, empty=None)
    terms, delta = preprocessed(terms, delta_f)
    scale = scale_of(bounds)
    statistic = variance_statistic(scale, terms)
    ways = by_size_ways(statistic, terms, "variance", delta)
    return release(values, scale, statistic, ways, terms)


@public_api
def median(
    values: object,
    *,
    epsilon: Number,
    bounds: tuple[Number, Number] | None = None,
    delta_f: Number | None = None,
    budget: object = None,
    neighbors: Neighbors | None = None,
    n: int | str | None = None,
    step: Number | None = None,
    empty: Number | None = None,
    compare: bool = False,
    mechanism: str = "auto",
    level: Number = 0.95,
) -> Release:
    """Release the median: a value with about as many rows below as above.

    Args:
        values: A list, a numpy array, a pandas or Polars series, or an Arrow array.
        epsilon: The price.
        bounds: The public range; values outside count as its ends. Not needed with `delta_f`.
        delta_f: How far one value may move the answer: it is preprocessed to keep to that.
        budget: `db.protection(NAME)`, which pays; without it the release is charged to nobody.
        neighbors: `add-remove` or `replace`; by default the budget's, else add-remove.
        n: The number of values, if it is public. It helps to choose; privacy never rests on it. `"private"`
            spends a tenth of epsilon on estimating it, so that an error can be stated.
        step: The public distance of possible answers; by default a 2^30th of the range.
        empty: The median of no values; by default the middle of the range.
        compare: Print what every mechanism would err on made-up data.
        mechanism: `auto`, `exponential`, `permute-and-flip`, `smooth`, `laplace`, `preprocessing`.
        level: The probability that the error bar holds with.

    >>> median([42.0] * 1000, epsilon=1, bounds=(0, 100), step=1).value
    42.0
    """
    return quantile(
        values, _HALF, epsilon=epsilon, bounds=bounds, delta_f=delta_f, budget=budget, neighbors=neighbors, n=n,
        step=step, empty=empty, compare=compare, mechanism=mechanism, level=level,
    )  # fmt: skip


@public_api
def minimum(
    values: object,
    *,
    epsilon: Number,
    bounds: tuple[Number, Number] | None = None,
    delta_f: Number | None = None,
    budget: object = None,
    neighbors: Neighbors | None = None,
    n: int | str | None = None,
    step: Number | None = None,
    empty: Number | None = None,
    compare: bool = False,
    mechanism: str = "auto",
    level: Number = 0.95,
) -> Release:
    """Release the minimum: few rows lie below the released value. Arguments as for `median`.

    >>> minimum([42.0] * 1000, epsilon=1, bounds=(0, 100), step=1).value <= 42
    True
    """
    return quantile(
        values, 0, epsilon=epsilon, bounds=bounds, delta_f=delta_f, budget=budget, neighbors=neighbors, n=n,
        step=step, empty=empty, compare=compare, mechanism=mechanism, level=level,
    )  # fmt: skip


@public_api
def maximum(
    values: object,
    *,
    epsilon: Number,
    bounds: tuple[Number, Number] | None = None,
    delta_f: Number | None = None,
    budget: object = None,
    neighbors: Neighbors | None = None,
    n: int | str | None = None,
    step: Number | None = None,
    empty: Number | None = None,
    compare: bool = False,
    mechanism: str = "auto",
    level: Number = 0.95,
) -> Release:
    """Release the maximum: few rows lie above the released value. Arguments as for `median`.

    >>> maximum([42.0] * 1000, epsilon=1, bounds=(0, 100), step=1).value >= 42
    True
    """
    return quantile(
        values, 1, epsilon=epsilon, bounds=bounds, delta_f=delta_f, budget=budget, neighbors=neighbors, n=n,
        step=step, empty=empty, compare=compare, mechanism=mechanism, level=level,
    )  # fmt: skip


@public_api
def quantile(
    values: object,
    q: Number,
    *,
    epsilon: Number,
    bounds: tuple[Number, Number] | None = None,
    delta_f: Number | None = None,
    budget: object = None,
    neighbors: Neighbors | None = None,
    n: int | str | None = None,
    step: Number | None = None,
    empty: Number | None = None,
    compare: bool = False,
    mechanism: str = "auto",
    level: Number = 0.95,
) -> Release:
    """Release the q-quantile, 0 ≤ q ≤ 1; 0 is the minimum and 1 the maximum. Else as `median`.

    >>> quantile(range(1001), 0.9, epsilon=100, bounds=(0, 1000), step=1).value
    900.0
    """
    if n == PRIVATE:
        return with_private_n(
            quantile, values, values_of, q=q, epsilon=epsilon, budget=budget, neighbors=neighbors, level=level,
            bounds=bounds, delta_f=delta_f, step=step, empty=empty, compare=compare,
            mechanism=mechanism,
        )  # fmt: skip
    share = written(q, "q")
    if not 0 <= share <= 1 or share.denominator > _FINEST_SHARE:
        raise UsageError("USE-001", "q must lie between 0 and 1, with up to 9 digits")
    terms = terms_of(
        values, epsilon=epsilon, budget=budget, neighbors=neighbors, n=n, compare=compare,
        mechanism=mechanism, level=level,
    )  # fmt: skip
    if delta_f is not None and bounds is None:
        if step is not None:
            raise UsageError("USE-001", "a step goes with bounds")
        name = {Fraction(0): "minimum", _HALF: "median", Fraction(1): "maximum"}.get(share)
        rank = None if name else share
        return release_unbounded(
            values, name or "quantile", terms, delta_f=delta_f, empty=empty, q=rank
        )
    terms, delta = preprocessed(terms, delta_f)
    scale = scale_of(bounds, step)
    statistic = rank_statistic(share, scale, terms.neighbors, empty_index(empty, scale))
    return release(values, scale, statistic, rank_ways(statistic, terms, delta), terms)


def preprocessed(terms: Terms, delta_f: Number | None) -> tuple[Terms, Fraction | None]:
    """Give the terms with what delta_f asks for, and the Δ itself."""
    if delta_f is None:
        return terms, None
    if terms.mechanism not in ("auto", FAMILY):
        raise UsageError("USE-001", "delta_f is for the mechanism 'preprocessing'")
    return replace(terms, mechanism=FAMILY), delta_of_call(delta_f)


def empty_index(empty: Number | None, scale: Scale) -> int:
    """Give the place of what stands for the statistic of no values; by default the middle."""
    if empty is None:
        return scale.top // 2
    return scale.index(public_number(empty, "empty"))
