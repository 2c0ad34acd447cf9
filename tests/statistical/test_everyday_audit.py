"""Audits of whole releases on neighbors: without bounds, sums, shares, histograms, groups, moments, estimated n.

The planted fault is the same release with a small part of the noise. What has a choice is asked for Laplace noise;
smooth noise is audited in test_statistics_audit.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from auditing import Case, check_audit

from secant import stats

NEAR = [0.0] * 3
FAR = [*NEAR, 1e9]
Ask = Callable[[Any, float], float]


def case(name: str, ask: Ask, one: Any, two: Any, epsilon: float = 1.0, delta: float = 0.0) -> Case:
    def at(data: Any, price: float) -> Callable[[], float]:
        return lambda: ask(data, price)

    return Case(
        name, epsilon, delta, at(one, epsilon), at(two, epsilon), at(one, 60 * epsilon),
        at(two, 60 * epsilon), 300,
    )  # fmt: skip


def unbounded(function: Callable[..., Any], **rest: Any) -> Ask:
    return lambda data, price: function(data, epsilon=price, delta_f=1, **rest).value


CASES = [
    case(
        "somebody careful",
        lambda d, e: (
            stats.personal("median", d, epsilons=[e] * len(d), offers=[e, 1], scale=1).value
        ),
        [],
        [1e9],
        epsilon=0.25,
    ),
    case("mean without bounds", unbounded(stats.mean), [], [1e9]),
    case("trimmed mean without bounds", unbounded(stats.trimmed_mean), [], [1e9]),
    case("median without bounds", unbounded(stats.median), [], [-1e9]),
    case(
        "quantile without bounds",
        lambda d, e: stats.quantile(d, 0.9, epsilon=e, delta_f=1).value,
        [],
        [5.0],
    ),
    case("minimum without bounds", unbounded(stats.minimum), [], [-7.0]),
    case("maximum without bounds", unbounded(stats.maximum), NEAR, FAR),
    case(
        "variance without bounds", unbounded(stats.variance), [0.0, 9.0, 0.0, 9.0], [0.0, 9.0, 0.0]
    ),
    case("mean, replaced", unbounded(stats.mean, neighbors="replace"), [-9.0], [9.0]),
    case("sum", lambda d, e: stats.sum(d, epsilon=e, bounds=(-2, 1)).value, [], [-2.0]),
    case(
        "share",
        lambda d, e: stats.proportion(d, epsilon=e, mechanism="laplace").value,
        [True],
        [True, False],
    ),
    case(
        "deviation",
        lambda d, e: stats.std(d, epsilon=e, bounds=(0, 1), mechanism="laplace").value,
        [0.0],
        [0.0, 1.0],
    ),
    case("bin", lambda d, e: stats.histogram(d, edges=[0, 1, 2], epsilon=e).counts[1], [], [1.5]),
    case(
        "group",
        lambda d, e: stats.group_by(d, ["a"] * len(d), "count", groups=["a"], epsilon=e)["a"].value,
        [1],
        [1, 1],
    ),
    case(
        "private n",
        lambda d, e: (
            stats.mean(d, epsilon=e, bounds=(0, 1), n="private", mechanism="laplace").value
        ),
        [0.0],
        [0.0, 1.0],
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_no_ratio_above_the_guarantee_and_little_noise_is_caught(case: Case) -> None:
    check_audit(case)


@pytest.mark.parametrize("delta", [0, "0.000001"])
def test_all_moments_together_keep_their_epsilon(delta: Any) -> None:
    """A row of ones moves every moment up; their sum is the statistic that tells it best."""
    columns = 2 if delta == 0 else 7

    def ask(rows: Any, price: float) -> float:
        found = stats.covariance(rows, epsilon=price, delta=delta, bounds=[(-1, 1)] * columns)
        return float(found.rows + found.means.sum() * found.rows)

    nothing = np.zeros((20, columns))
    more = np.vstack([nothing, np.ones((1, columns))])
    check_audit(case("moments", ask, nothing, more, delta=float(delta)))
