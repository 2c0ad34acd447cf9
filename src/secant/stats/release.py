"""Released statistics of one column: mean, trimmed mean, median, quantile, extremes, variance, sum, deviation, share.

In: values or masks, bounds, ε, and who pays. Out: a `Release` with its error, guarantee and cost. What each is stands
in `table.py`; a sum has one way only (statistic.sum), a root is post-processing, a share is the mean of zeros and ones.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

from secant.errors import public_api
from secant.noise.mechanisms.laplace import LaplaceNoise
from secant.numeric.parameters import Number
from secant.sensitivity.bounds import GlobalBound
from secant.stats.calls import clean_values, terms_of
from secant.stats.inputs import check_values
from secant.stats.plain import Sentences, plain_release
from secant.stats.results import ADD_REMOVE, ErrorBar, Neighbors, Release
from secant.stats.scale import scale_of
from secant.stats.table import HALF, MEAN, PROPORTION, VARIANCE, Call, rank_of, released, trimmed

_FINE = 1 << 16  # grid steps in what one value can add


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
    call = Call(
        epsilon=epsilon, budget=budget, neighbors=neighbors, n=n, compare=compare, mechanism=mechanism, level=level,
        bounds=bounds, delta_f=delta_f, empty=empty,
    )  # fmt: skip
    return released(MEAN, values, call)


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
    call = Call(
        epsilon=epsilon, budget=budget, neighbors=neighbors, n=n, compare=compare, mechanism=mechanism, level=level,
        bounds=bounds, delta_f=delta_f, empty=empty,
    )  # fmt: skip
    return released(trimmed(trim), values, call)


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
    call = Call(
        epsilon=epsilon, budget=budget, neighbors=neighbors, n=n, compare=compare, mechanism=mechanism, level=level,
        bounds=bounds, delta_f=delta_f,
    )  # fmt: skip
    return released(VARIANCE, values, call)


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
    call = Call(
        epsilon=epsilon, budget=budget, neighbors=neighbors, n=n, compare=compare, mechanism=mechanism, level=level,
        bounds=bounds, delta_f=delta_f, empty=empty, step=step,
    )  # fmt: skip
    return released(rank_of(HALF), values, call)


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
    call = Call(
        epsilon=epsilon, budget=budget, neighbors=neighbors, n=n, compare=compare, mechanism=mechanism, level=level,
        bounds=bounds, delta_f=delta_f, empty=empty, step=step,
    )  # fmt: skip
    return released(rank_of(0), values, call)


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
    call = Call(
        epsilon=epsilon, budget=budget, neighbors=neighbors, n=n, compare=compare, mechanism=mechanism, level=level,
        bounds=bounds, delta_f=delta_f, empty=empty, step=step,
    )  # fmt: skip
    return released(rank_of(1), values, call)


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
    call = Call(
        epsilon=epsilon, budget=budget, neighbors=neighbors, n=n, compare=compare, mechanism=mechanism, level=level,
        bounds=bounds, delta_f=delta_f, empty=empty, step=step,
    )  # fmt: skip
    return released(rank_of(q), values, call)


@public_api
def total(
    values: object,
    *,
    epsilon: Number,
    bounds: tuple[Number, Number],
    budget: object = None,
    neighbors: Neighbors | None = None,
    level: Number = 0.95,
) -> Release:
    """Release the sum; values outside the bounds count as the bounds. It is `secant.stats.sum`.

    >>> 41_000 < total([42.0] * 1000, epsilon=10, bounds=(0, 100)).value < 43_000
    True
    """
    terms = terms_of(values, epsilon=epsilon, budget=budget, neighbors=neighbors, level=level)
    scale = scale_of(bounds)
    check_values(values)
    low, high = scale.low, scale.low + scale.top * scale.step
    moves = max(abs(low), abs(high)) if terms.neighbors == ADD_REMOVE else high - low
    noise = LaplaceNoise().calibrate(GlobalBound(moves), epsilon=terms.epsilon, grid=moves / _FINE)

    def answer() -> Fraction:
        steps = scale.snap(clean_values(values, scale, terms))
        return low * len(steps) + scale.step * int(steps.sum())

    sentences = Sentences(noise.name, f"one value moves a sum by {float(moves):g} at most")
    return plain_release(terms, "sum", noise, answer, sentences, facts={"low": low, "high": high})


@public_api
def std(
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
    """Release the standard deviation: the root of a released population variance. Arguments as for `variance`.

    `delta_f`, the error in `compare=True` and the picture are those of the variance.

    >>> std([10.0, 20.0] * 2000, epsilon=10, bounds=(0, 100)).value < 10
    True
    """
    call = Call(
        epsilon=epsilon, budget=budget, neighbors=neighbors, n=n, compare=compare, mechanism=mechanism, level=level,
        bounds=bounds, delta_f=delta_f,
    )  # fmt: skip
    estimate = released(VARIANCE, values, call)
    root = math.sqrt(max(estimate.value, 0.0))
    bar = replace(estimate.error, words=f"of its square: {estimate.error.words}")
    if estimate.error.amount is not None:
        low = math.sqrt(max(estimate.value - estimate.error.amount, 0.0))
        high = math.sqrt(max(estimate.value + estimate.error.amount, 0.0))
        amount = max(root - low, high - root)
        description = f"between {low:.4g} and {high:.4g} with probability {estimate.error.level:g}"
        bar = ErrorBar(estimate.error.level, amount, "value", description)
    return replace(estimate, statistic="std", value=root, error=bar)


@public_api
def proportion(
    mask: object,
    *,
    epsilon: Number,
    budget: object = None,
    neighbors: Neighbors | None = None,
    n: int | str | None = None,
    compare: bool = False,
    mechanism: str = "auto",
    level: Number = 0.95,
) -> Release:
    """Release the share of what is true in a column of booleans, or of zeros and ones.

    What is neither is left out, as missing values of a mean are.

    >>> 0.2 < proportion([True, False, False, False] * 500, epsilon=10).value < 0.3
    True
    """
    call = Call(
        epsilon=epsilon, budget=budget, neighbors=neighbors, n=n, compare=compare, mechanism=mechanism, level=level,
        bounds=(0, 1),
    )  # fmt: skip
    return released(PROPORTION, mask, call)
