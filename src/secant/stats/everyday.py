"""Sums, standard deviations and shares.

In: values or masks, public bounds, ε, and who pays. Out: a `Release`. Everything rests on what is proved for counts,
means and variances: a root is post-processing, a share is the mean of zeros and ones (statistic.sum).
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

from secant.errors import public_api
from secant.noise.mechanisms.laplace import LaplaceNoise
from secant.numeric.parameters import Number
from secant.sensitivity.bounds import GlobalBound
from secant.stats.calls import kept_values, release, terms_of
from secant.stats.definitions import by_size_ways, mean_statistic
from secant.stats.inputs import check_values, mask_of
from secant.stats.plain import Sentences, plain_release
from secant.stats.private_size import PRIVATE, with_private_n
from secant.stats.release import variance
from secant.stats.results import ADD_REMOVE, ErrorBar, Neighbors, Release
from secant.stats.scale import Steps, scale_of

_FINE = 1 << 16  # grid steps in what one value can add


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
    terms = terms_of(
        values, epsilon=epsilon, budget=budget, neighbors=neighbors, n=None, compare=False,
        mechanism="auto", level=level,
    )  # fmt: skip
    scale = scale_of(bounds)
    check_values(values)
    low, high = scale.low, scale.low + scale.top * scale.step
    moves = max(abs(low), abs(high)) if terms.neighbors == ADD_REMOVE else high - low
    noise = LaplaceNoise().calibrate(GlobalBound(moves), epsilon=terms.epsilon, grid=moves / _FINE)

    def answer() -> Fraction:
        steps = scale.snap(kept_values(values, scale, terms))
        return low * len(steps) + scale.step * int(steps.sum())

    words = Sentences(noise.name, f"one value moves a sum by {float(moves):g} at most")
    return plain_release(terms, "sum", noise, answer, words, facts={"low": low, "high": high})


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
    found = variance(
        values, epsilon=epsilon, bounds=bounds, delta_f=delta_f, budget=budget,
        neighbors=neighbors, n=n, compare=compare, mechanism=mechanism, level=level,
    )  # fmt: skip
    root = math.sqrt(max(found.value, 0.0))
    bar = replace(found.error, words=f"of its square: {found.error.words}")
    if found.error.amount is not None:
        low = math.sqrt(max(found.value - found.error.amount, 0.0))
        high = math.sqrt(max(found.value + found.error.amount, 0.0))
        amount = max(root - low, high - root)
        words = f"between {low:.4g} and {high:.4g} with probability {found.error.level:g}"
        bar = ErrorBar(found.error.level, amount, "value", words)
    return replace(found, statistic="std", value=root, error=bar)


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
    if n == PRIVATE:
        return with_private_n(
            proportion, mask, mask_of, epsilon=epsilon, budget=budget, neighbors=neighbors, level=level,
            compare=compare, mechanism=mechanism,
        )  # fmt: skip
    terms = terms_of(
        mask, epsilon=epsilon, budget=budget, neighbors=neighbors, n=n, compare=compare,
        mechanism=mechanism, level=level,
    )  # fmt: skip
    scale = scale_of((0, 1))
    statistic = mean_statistic("proportion", scale, terms, Fraction(0), scale.top // 2)

    check_values(mask, mask=True)

    def read(given: object) -> Steps:
        return scale.snap(kept_values(mask_of(given), scale, terms))

    return release(mask, scale, statistic, by_size_ways(statistic, terms), terms, read=read)
