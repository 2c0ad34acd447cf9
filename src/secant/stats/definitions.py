"""Statistics on a scale, each with what is proved of it and the ways to release it.

In: a scale, the terms of a call. Out: `Statistic` records and calibrated ways, the preferred first. Nothing
here sees a value.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Literal

import numpy as np

from secant.errors import UsageError
from secant.noise.mechanisms.laplace import LaplaceNoise
from secant.sensitivity.bounds import GlobalBound
from secant.stats.bounded import uniform_finding
from secant.stats.calls import Terms
from secant.stats.mechanisms import (
    LaplaceMechanism,
    Mechanism,
    RankMechanism,
    SmoothMechanism,
    Statistic,
    laplace_mechanism,
    smooth_mechanism,
)
from secant.stats.preprocessing.ordered_statistics import Statistic as Ordered
from secant.stats.preprocessing.ordered_statistics import quantile_statistic
from secant.stats.preprocessing.smooth_median import ORDERS_BY_RANK, smooth_median
from secant.stats.preprocessing.unbounded import FAMILY
from secant.stats.preprocessing.units import Units
from secant.stats.quantiles import rank_choice
from secant.stats.results import ADD_REMOVE, REPLACE, Neighbors
from secant.stats.scale import STEPS, Scale, Steps
from secant.stats.smooth_sensitivity import (
    quantile_at,
    smooth_mean,
    smooth_quantile,
    smooth_trimmed_mean,
    smooth_variance,
    trimmed_mean_of,
    variance_of,
)

_COARSE = (
    4096  # steps: up to here permute-and-flip is quick, and better than the exponential choice
)
_HALF = Fraction(1, 2)
_BY_SIZE = (Fraction(40), Fraction(20), Fraction(10), Fraction(5), Fraction(2))
_CLOSED = (Fraction(0), _HALF, Fraction(1))  # bounded in no time, so always compared


def rank_statistic(q: Fraction, scale: Scale, relation: Neighbors, empty: int) -> Statistic:
    """Give the q-quantile on a scale, with what is proved of it."""
    names = {Fraction(0): "minimum", _HALF: "median", Fraction(1): "maximum"}
    return Statistic(
        names.get(q, f"quantile {float(q):g}"),
        scale,
        Fraction(1),
        lambda ordered: Fraction(quantile_at(ordered, q, empty)),
        lambda ordered, beta: smooth_quantile(ordered, q, scale.top, beta=beta, neighbors=relation),
        Fraction(scale.top),
        q,
        ORDERS_BY_RANK,
    )


def rank_mechanisms(
    statistic: Statistic, terms: Terms, delta: Fraction | None = None
) -> list[list[Mechanism]]:
    """Give the ways for what a rank defines, the preferred first."""
    q, top = statistic.q, statistic.scale.top
    assert q is not None
    kinds: list[Literal["exponential", "permute-and-flip"]] = ["exponential"]
    if top <= _COARSE:
        kinds.insert(0, "permute-and-flip")
    ways: list[list[Mechanism]] = [
        [
            RankMechanism(
                statistic,
                rank_choice(
                    q, top=top, epsilon=terms.epsilon, neighbors=terms.neighbors, kind=kind
                ),
            )
        ]
        for kind in kinds
    ]
    ways.append([smooth_mechanism(statistic, terms.epsilon, order) for order in statistic.orders])
    ways.append([laplace_mechanism(statistic, terms.epsilon, Fraction(top))])
    if terms.mechanism == FAMILY or (q in _CLOSED and terms.size and delta is None):
        spec, moves = quantile_statistic(q, statistic.name), _moves(statistic, terms, delta)
        prepared: list[Mechanism] = [prepared_mechanism(statistic, spec, terms, moves)]
        if q == _HALF:
            prepared += [prepared_smooth(statistic, terms, moves, o) for o in statistic.orders]
        ways.append(prepared)
    return ways


def prepared_mechanism(
    statistic: Statistic, spec: Ordered | str, terms: Terms, moves: Fraction
) -> LaplaceMechanism:
    """Bound the statistic at `moves` steps a row, then add Laplace noise (preprocess.release)."""
    # it sets out from what the caller says that no values give
    start = statistic.exact(np.array([], dtype=np.int64))
    # replacing a row is removing one and adding one
    halved = 1 if terms.neighbors == ADD_REMOVE else 2
    noise = LaplaceNoise().calibrate(
        GlobalBound(moves * halved), epsilon=terms.epsilon, grid=statistic.grid
    )

    def answer(ordered: Steps) -> Fraction:
        finding = uniform_finding(spec, ordered.astype(np.float64), moves, start)
        return finding.exact_value

    return LaplaceMechanism(statistic, noise, answer, FAMILY, off=True)


def prepared_smooth(
    statistic: Statistic, terms: Terms, moves: Fraction, order: Fraction
) -> SmoothMechanism:
    """Bound the median at `moves` steps a row, then add optimal noise to its smooth bound.

    Rests on preprocess.smooth_median.
    """
    start = statistic.exact(np.array([], dtype=np.int64))
    median = smooth_median(
        Units(start, moves), terms.epsilon, order, terms.neighbors, statistic.grid
    )

    def answer(ordered: Steps) -> Fraction:
        return median.answer(ordered.astype(np.float64))

    def bound(ordered: Steps, _: Fraction) -> float:
        return median.bound(ordered.astype(np.float64))

    return SmoothMechanism(statistic, median.noise, median.beta, answer, bound, FAMILY, off=True)


def _moves(statistic: Statistic, terms: Terms, delta: Fraction | None) -> Fraction:
    """Give how far one row added or removed may move the answer, in its steps: as asked, or its range over n."""
    if delta is not None:
        return delta / statistic.scale.step / (1 if terms.neighbors == ADD_REMOVE else 2)
    if not terms.size:
        raise UsageError(
            "USE-001",
            "preprocessing needs delta_f, or a public n",
            hint="Pass delta_f: how far one value may move the answer.",
        )
    return Fraction(statistic.scale.top, terms.size)


def variance_statistic(scale: Scale, terms: Terms) -> Statistic:
    """Give the population variance on a scale, with what is proved of it."""
    square = Fraction(scale.top) ** 2
    relation, top = terms.neighbors, scale.top
    return Statistic(
        "variance",
        Scale(Fraction(0), scale.step**2, -(-(scale.top**2) // 4)),
        square / (4 * STEPS),
        variance_of,
        lambda ordered, beta: smooth_variance(ordered, top, beta=beta, neighbors=relation),
        square / 4 if terms.neighbors == ADD_REMOVE else _over(square, terms),
        orders=_BY_SIZE,
        size_bound=lambda size, beta: _shrinking(float(square), size, beta, relation),
    )


def mean_statistic(name: str, scale: Scale, terms: Terms, trim: Fraction, empty: int) -> Statistic:
    """Give the mean without a share `trim` at each end, with what is proved of it."""
    relation, top = terms.neighbors, scale.top
    remaining = 1 - 2 * trim

    def smooth(ordered: Steps, beta: Fraction) -> float:
        if trim:
            return smooth_trimmed_mean(ordered, trim, top, beta=beta, neighbors=relation)
        return smooth_mean(ordered, top, beta=beta)

    global_only = relation == REPLACE and not trim
    return Statistic(
        name,
        scale,
        Fraction(scale.top, STEPS),
        lambda ordered: trimmed_mean_of(ordered, trim, empty),
        None if global_only else smooth,
        Fraction(top) if relation == ADD_REMOVE else _over(top / remaining, terms),
        orders=_BY_SIZE,
        size_bound=lambda size, beta: _shrinking(float(top / remaining), size, beta, relation),
    )


def by_size_mechanisms(
    statistic: Statistic,
    terms: Terms,
    spec: Ordered | str | None = None,
    delta: Fraction | None = None,
) -> list[list[Mechanism]]:
    """Give the ways for what is divided by the number of rows; `spec` is what preprocessing bounds, if asked for."""
    ways: list[list[Mechanism]] = []
    if statistic.smooth is not None:
        ways.append(
            [smooth_mechanism(statistic, terms.epsilon, order) for order in statistic.orders]
        )
    assert statistic.largest is not None
    ways.append([laplace_mechanism(statistic, terms.epsilon, statistic.largest)])
    if spec is not None and terms.mechanism == FAMILY:
        ways.append([prepared_mechanism(statistic, spec, terms, _moves(statistic, terms, delta))])
    return ways


def _over(amount: Fraction, terms: Terms) -> Fraction:
    assert terms.size is not None
    return amount / terms.size


def _shrinking(amount: float, size: int, beta: float, relation: Neighbors) -> float:
    """Bound what one of `size` rows does, at every distance: amount / size, or by running out of rows."""
    if relation == REPLACE:
        return amount / max(size, 1)
    return amount * max(1 / max(size, 1), math.exp(-beta * max(size - 1, 0))) * (1 + 2.0**-20)
