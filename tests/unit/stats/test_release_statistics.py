"""The released statistics: values near the truth, odd input, bad input, what a result says."""

from __future__ import annotations

import json
import os
import sys
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from secant import stats
from secant.errors import InternalError, UsageError
from secant.stats.calls import quiet
from secant.stats.scale import scale_of
from secant.stats.smooth_sensitivity import quantile_at, trimmed_mean_of, variance_of
from secant.stats.triangles import count_triangles, edge_codes

BOUNDED = (
    stats.mean,
    stats.trimmed_mean,
    stats.variance,
    stats.median,
    stats.minimum,
    stats.maximum,
)
RELATIONS = ("add-remove", "replace")
EVEN = np.linspace(0, 100, 2001)
TRUTH = {
    stats.mean: 50.0,
    stats.trimmed_mean: 50.0,
    stats.variance: EVEN.var(),
    stats.median: 50.0,
    stats.minimum: 0.0,
    stats.maximum: 100.0,
}


@pytest.mark.parametrize("neighbors", RELATIONS)
@pytest.mark.parametrize("statistic", BOUNDED, ids=lambda f: f.__name__)
def test_with_a_large_epsilon_the_truth_is_met(statistic, neighbors):
    # one row weighs 100/2001; noise of 60 times its share of 1/100 has probability e^-60
    found = statistic(EVEN, epsilon=100, bounds=(0, 100), neighbors=neighbors)
    width = 100**2 if statistic is stats.variance else 100
    assert abs(found.value - TRUTH[statistic]) <= width / 2001 * 3
    assert found.guarantee.neighbors == neighbors
    assert found.cost.charged_to is None
    assert "nobody" in str(found)


@pytest.mark.parametrize("mechanism", ["exponential", "smooth", "laplace", "preprocessing"])
@pytest.mark.parametrize("statistic", BOUNDED[3:], ids=lambda f: f.__name__)
def test_each_mechanism_can_be_asked_for(statistic, mechanism):
    found = statistic(EVEN, epsilon=1000, bounds=(0, 100), n=2001, mechanism=mechanism)
    assert abs(found.value - TRUTH[statistic]) < 8
    assert mechanism in found.mechanism
    assert found.why == "as asked"


def test_quantiles_meet_their_rank():
    for q in (0.1, 0.25, "0.9", Fraction(1, 3)):
        found = stats.quantile(range(1001), q, epsilon=200, bounds=(0, 1000), step=1)
        assert abs(found.value - float(Fraction(q)) * 1000) <= 1
    assert stats.quantile([5], 0, epsilon=1, bounds=(0, 9)).statistic == "minimum"


@pytest.mark.parametrize("statistic", BOUNDED, ids=lambda f: f.__name__)
@pytest.mark.parametrize("values", [[], [3.0], [7.0] * 50, [-1e9, 1e9]], ids=str)
def test_odd_columns_have_an_answer_inside_the_range(statistic, values):
    found = statistic(values, epsilon=1, bounds=(0, 10))
    assert 0 <= found.value <= (25.0000001 if statistic is stats.variance else 10)


def test_no_values_have_the_public_answer():
    found = stats.mean([], epsilon=1000, bounds=(0, 10), empty=2)
    assert abs(found.value - 2) < 1
    assert quantile_at(np.array([], dtype=np.int64), Fraction(1, 2), 7) == 7


@pytest.mark.parametrize(
    "values",
    [
        [1, 2, 3],
        (1.0, 2.0, 3.0),
        np.array([1, 2, 3], dtype=np.int8),
        pd.Series([1, 2, 3]),
        pl.Series([1.0, 2.0, 3.0]),
        pa.array([1, 2, 3]),
        pa.chunked_array([[1], [2, 3]]),
    ],
    ids=lambda v: type(v).__module__ + "." + type(v).__name__,
)
def test_every_kind_of_column_is_read(values):
    assert stats.median(values, epsilon=200, bounds=(0, 4), step=1).value == 2


@pytest.mark.parametrize("statistic", BOUNDED, ids=lambda f: f.__name__)
@pytest.mark.parametrize("values", [np.array([[1.0], [2.0]]), np.array(["x"]), "12", {1: 2}, 5])
def test_what_is_no_column_is_refused_without_a_value(statistic, values):
    with pytest.raises(UsageError) as caught:
        statistic(values, epsilon=1, bounds=(0, 10))
    assert caught.value.code == "USE-001"
    assert "x" not in caught.value.render().split()


@pytest.mark.parametrize("statistic", BOUNDED, ids=lambda f: f.__name__)
@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"epsilon": 0}, "USE-002"),
        ({"epsilon": -1}, "USE-002"),
        ({"epsilon": float("nan")}, "USE-002"),
        ({"epsilon": float("inf")}, "USE-002"),
        ({"epsilon": None}, "USE-002"),
        ({"bounds": (10, 0)}, "USE-001"),
        ({"bounds": (0, float("inf"))}, "USE-001"),
        ({"bounds": (3, 3)}, "USE-001"),
        ({"bounds": None}, "USE-001"),
        ({"bounds": (0, 1e200)}, "USE-001"),
        ({"bounds": (1e9, 1e9 + 1e-6)}, "USE-001"),
        ({"level": 1}, "USE-004"),
        ({"level": 0}, "USE-004"),
        ({"neighbors": "near"}, "USE-001"),
        ({"mechanism": "magic"}, "USE-001"),
        ({"mechanism": None}, "USE-001"),
        ({"n": -1}, "USE-001"),
        ({"n": 1.5}, "USE-001"),
        ({"n": 4, "neighbors": "replace"}, "USE-001"),
        ({"budget": "customers"}, "USE-001"),
    ],
    ids=str,
)
def test_bad_terms_are_refused_before_the_data_are_read(statistic, change, code):
    class Untouchable:
        def __len__(self):
            return 3

        def __array__(self, *_, **__):
            raise AssertionError("read")

    with pytest.raises(UsageError) as caught:
        statistic(Untouchable(), **{"epsilon": 1, "bounds": (0, 10), **change})
    assert caught.value.code == code


@pytest.mark.parametrize("q", [-0.1, 1.1, float("nan"), "x", None, Fraction(1, 10**12)])
def test_a_share_lies_between_0_and_1(q):
    with pytest.raises(UsageError):
        stats.quantile([1], q, epsilon=1, bounds=(0, 1))


@pytest.mark.parametrize("trim", [-0.1, 0.5, 1])
def test_less_than_half_is_trimmed_from_each_end(trim):
    with pytest.raises(UsageError):
        stats.trimmed_mean([1], trim=trim, epsilon=1, bounds=(0, 1))


def test_where_values_are_replaced_their_number_is_public():
    with pytest.raises(UsageError, match="public"):
        stats.count([1, 2], epsilon=1, neighbors="replace")
    with pytest.raises(UsageError, match="empty"):
        stats.median([], epsilon=1, bounds=(0, 1), neighbors="replace")
    with pytest.raises(UsageError, match="length"):
        stats.median(iter([1]), epsilon=1, bounds=(0, 1), neighbors="replace")


def test_numbers_of_numpy_are_numbers():
    found = stats.quantile(
        [1.0] * 9, np.float64(0.5), epsilon=np.float32(0.5), bounds=(np.int64(0), np.float64(2)),
        n=np.int64(9), step=np.float64(0.5), empty=np.float64(1), level=np.float64(0.9),
    )  # fmt: skip
    assert found.guarantee.epsilon == 0.5
    assert found.statistic == "median"


def test_a_step_must_fit():
    for step in (20, 1e-12, 0, -1):
        with pytest.raises(UsageError):
            stats.median([1], epsilon=1, bounds=(0, 10), step=step)


def test_counting():
    found = stats.count(range(500), epsilon=100)
    assert found.value == 500
    assert found.error.amount == 0
    assert stats.count([], epsilon=1).value >= 0


def test_exact_forms_agree_with_numpy():
    generator = np.random.default_rng(3)
    for _ in range(200):
        values = np.sort(generator.integers(0, 2**30, int(generator.integers(1, 40))))
        assert float(variance_of(values)) == pytest.approx(values.var(), rel=1e-9, abs=1e-3)
        assert float(trimmed_mean_of(values, Fraction(0), 0)) == pytest.approx(values.mean())
        assert trimmed_mean_of(values, Fraction(49999, 100000), 0) in (
            Fraction(int(values[(len(values) - 1) // 2]) + int(values[len(values) // 2]), 2),
        )
    ten = np.arange(10)
    # one and a half values go at each end: 1.5·(1/2) … as weights 0, 0.5, 1, …, 1, 0.5, 0
    assert trimmed_mean_of(ten, Fraction(15, 100), 0) == Fraction(9, 2)
    assert trimmed_mean_of(np.array([0, 0, 0, 9]), Fraction(1, 8), 0) == Fraction(9, 2) / 3


def test_a_scale_keeps_its_points():
    scale = scale_of((0, 100), 1)
    assert scale.snap(np.array([-5.0, 0.4, 99.6, 1e9])).tolist() == [0, 0, 100, 100]
    assert [scale.value(i) for i in (0, 50, 100)] == [0.0, 50.0, 100.0]
    assert scale_of(("-0.5", "0.5")).value(1 << 29) == 0.0


def test_sample_and_aggregate():
    generator = np.random.default_rng(5)
    rows = generator.normal(10, 2, 20_000)
    found = stats.aggregate(lambda x: x.std(), rows, epsilon=1, bounds=(0, 10), blocks=200)
    assert abs(found.value - 2) < 0.5
    assert "block results" in found.error.words
    table = np.column_stack([rows, 3 * rows])
    slope = stats.aggregate(
        lambda x: np.polyfit(x[:, 0], x[:, 1], 1)[0], table, epsilon=10, bounds=(0, 10), blocks=50
    )
    assert abs(slope.value - 3) < 0.5


@pytest.mark.parametrize(
    "function",
    [
        lambda x: 1 / 0,
        lambda x: float("nan"),
        lambda x: x,
        lambda x: None,
        lambda x: "many",
        lambda x: 1j,
        lambda x: sys.exit(3),
    ],
)
def test_a_function_that_fails_counts_as_the_public_value(function):
    found = stats.aggregate(function, range(500), epsilon=50, bounds=(0, 8), step=1, empty=6)
    assert found.value == 6


def _stuck(rows):
    while rows[0] >= 0:
        pass
    return 3.0


def _leaves(rows):
    os._exit(1)


@pytest.mark.parametrize("function", [_stuck, _leaves])
def test_a_function_that_never_ends_or_leaves_counts_as_the_public_value(function):
    found = stats.aggregate(
        function, range(500), epsilon=50, bounds=(0, 8), step=1, empty=6, blocks=3, seconds=0.2
    )
    assert found.value == 6


def test_a_function_with_a_limit_is_answered_like_one_without():
    found = stats.aggregate(
        len, range(5000), epsilon=50, bounds=(0, 1000), step=1, blocks=50, seconds=20
    )
    assert 50 < found.value < 150
    for seconds in (0, -1, float("nan"), 1e9):
        with pytest.raises(UsageError):
            stats.aggregate(len, [1], epsilon=1, bounds=(0, 1), seconds=seconds)


def test_aggregate_refuses_bad_terms():
    with pytest.raises(UsageError):
        stats.aggregate("mean", [1], epsilon=1, bounds=(0, 1))
    for blocks in (0, -1, 1.5, 10**9):
        with pytest.raises(UsageError):
            stats.aggregate(np.mean, [1], epsilon=1, bounds=(0, 1), blocks=blocks)


def test_triangles_of_small_graphs():
    full = [(a, b) for a in range(6) for b in range(a)]
    assert count_triangles(edge_codes(full, 6), 6) == 20
    messy = [*full, (0, 0), (1, 0), (0, 1), (7, 1), (-1, 2), (0.5, 1)]
    assert edge_codes(messy, 6).tolist() == edge_codes(full, 6).tolist()
    matrix = np.ones((6, 6)) - np.eye(6)
    assert edge_codes(matrix, 6).tolist() == edge_codes(full, 6).tolist()
    found = stats.triangles(full, vertices=6, epsilon=500)
    assert found.value == 20
    assert "edge" in found.guarantee.protects
    assert stats.triangles([], vertices=1, epsilon=100).value == 0
    for change in ({"vertices": 0}, {"vertices": 10**6}, {"neighbors": "replace"}):
        with pytest.raises(UsageError):
            stats.triangles(full, **{"vertices": 6, "epsilon": 1, **change})


def test_a_result_says_everything_and_can_be_written_down():
    found = stats.median(EVEN, epsilon=0.5, bounds=(0, 100))
    for word in ("median", "error", "guarantee", "cost", "mechanism", "0.5-differential privacy"):
        assert word in found.words
    record = json.loads(json.dumps(found.to_dict()))
    assert record["guarantee"]["epsilon"] == 0.5
    assert record["error"]["unit"] == "rows"
    assert record["cost"]["charged_to"] is None


def test_the_size_of_smooth_noise_is_said_only_where_it_is_public():
    hidden = stats.mean(EVEN, epsilon=1, bounds=(0, 100))
    assert hidden.error.amount is None
    assert "owner" in hidden.error.words
    known = stats.mean(EVEN, epsilon=1, bounds=(0, 100), n=2001)
    assert 0 < known.error.amount < 1


def test_an_error_inside_says_nothing_of_its_words():
    with pytest.raises(InternalError) as caught, quiet():
        raise ValueError("row 17 holds 987654321")
    assert "987654321" not in caught.value.render()
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__
