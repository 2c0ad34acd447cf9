"""Audits of released statistics on neighboring columns; sharper scores and halved noise are caught."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from auditing import Case, check_audit

from secant.noise.mechanisms.smooth import SmoothNoise
from secant.stats.mechanisms import SmoothMechanism, Statistic, smooth_mechanism
from secant.stats.preprocessing.smooth_median import smooth_median
from secant.stats.preprocessing.units import Units
from secant.stats.quantiles import RankChoice, rank_choice
from secant.stats.results import ADD_REMOVE, REPLACE
from secant.stats.scale import scale_of
from secant.stats.smooth_sensitivity import (
    quantile_at,
    smooth_mean,
    smooth_quantile,
    trimmed_mean_of,
)

TOP = 1 << 30


def column(*values: float) -> np.ndarray:
    return (np.array(values, dtype=float) * TOP).astype(np.int64)


def by_rank(
    name: str, q: Fraction, relation: str, kind: str, one: np.ndarray, two: np.ndarray
) -> Case:
    ranks = rank_choice(q, top=TOP, epsilon=Fraction(1), neighbors=relation, kind=kind)
    fault = replace(ranks, choice=replace(ranks.choice, sharpness=6 * ranks.choice.sharpness))

    def draw(how: RankChoice, values: np.ndarray):
        return lambda: float(how.draw(values))

    return Case(
        name, 1.0, 0.0, draw(ranks, one), draw(ranks, two), draw(fault, one), draw(fault, two), 3000
    )  # fmt: skip


def by_smooth(name: str, statistic: Statistic, one: np.ndarray, two: np.ndarray) -> Case:
    way = smooth_mechanism(statistic, Fraction(2), Fraction(10))
    fault = replace(way, noise=replace(way.noise, rate=3 * way.noise.rate))

    def draw(how: SmoothMechanism, values: np.ndarray):
        return lambda: float(how.draw(values))

    return Case(
        name, 2.0, 0.0, draw(way, one), draw(way, two), draw(fault, one), draw(fault, two), 3000
    )  # fmt: skip


SCALE = scale_of((0, 1))
MEAN = Statistic(
    "mean",
    SCALE,
    Fraction(1),
    lambda x: trimmed_mean_of(x, Fraction(0), 0),
    lambda x, beta: smooth_mean(x, TOP, beta=beta),
    Fraction(TOP),
)
HALF = Fraction(1, 2)
MEDIAN = Statistic(
    "median",
    SCALE,
    Fraction(1),
    lambda x: Fraction(quantile_at(x, HALF, 0)),
    lambda x, beta: smooth_quantile(x, HALF, TOP, beta=beta, neighbors=ADD_REMOVE),
    Fraction(TOP),
)
CASES = [
    by_rank("median, a row more", HALF, ADD_REMOVE, "exponential", column(0.4, 0.6), column(0.2, 0.4, 0.6)),
    by_rank("median, replaced", HALF, REPLACE, "exponential", column(0.45, 0.45), column(0.45, 0.55)),
    by_rank("median, permuted", HALF, REPLACE, "permute-and-flip", column(0.45, 0.45), column(0.45, 0.55)),
    by_rank("minimum", Fraction(0), ADD_REMOVE, "exponential", column(), column(0.4)),
    by_rank("maximum", Fraction(1), REPLACE, "exponential", column(0.4), column(0.0)),
    by_smooth("mean", MEAN, column(), column(1.0)),
    by_smooth("smooth median", MEDIAN, column(0.0, 1.0), column(0.0, 1.0, 1.0)),
]  # fmt: skip


def by_smooth_median(relation: str, one: list[float], two: list[float]) -> Case:
    made = smooth_median(
        Units(Fraction(0), Fraction(1)), Fraction(2), Fraction(5), relation, Fraction(1, 1 << 20)
    )
    fault = replace(made.noise, rate=4 * made.noise.rate)

    def draw(noise: SmoothNoise, values: list[float]):
        ordered = np.array(values)
        return lambda: float(noise.draw(made.answer(ordered), made.bound(ordered)))

    name = f"smooth median after preprocessing, {relation}"
    return Case(
        name, 2.0, 0.0, draw(made.noise, one), draw(made.noise, two), draw(fault, one), draw(fault, two), 3000
    )  # fmt: skip


CASES += [
    by_smooth_median(ADD_REMOVE, [0.0, 1e9], [0.0, 1e9, 1e9]),
    by_smooth_median(REPLACE, [-1e9], [1e9]),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_no_ratio_above_the_guarantee_and_faults_are_caught(case: Case) -> None:
    check_audit(case)
