"""Sums, shares, counts, histograms, groups, covariances and regressions: near the truth, paid once, bad input."""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from secant import stats
from secant.errors import BudgetError, UsageError
from secant.ledger.amounts import Budget
from secant.ledger.store import Ledger
from secant.policy.policy import Protection
from secant.stats.budget import Allowance
from secant.stats.moments import deviation_of, noise_for

SOURCE = np.random.default_rng(11)
VALUES = SOURCE.normal(40, 10, 2000)
FRAME = pd.DataFrame({"city": ["a", "b", "b", "c"] * 500, "age": VALUES})
TABLE = np.column_stack([VALUES, 2 * VALUES + SOURCE.normal(0, 5, 2000)])
SURE = 1000  # noise of 50 times 1/1000 of what one row moves has probability e^-50


@pytest.fixture
def allowance(tmp_path):
    people = Protection("people", "rows", Fraction(1), Fraction(1, 10**6), replace=False)
    with Ledger.open(tmp_path / "ledger", {"people": Budget.of(1, delta="0.000001")}) as ledger:
        yield Allowance(people, lambda: ledger)


def spent(allowance):
    return allowance.ledger().balances()["people"].spent


@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
def test_sums_and_deviations(neighbors):
    clipped = np.clip(VALUES, 30, 50)
    found = stats.sum(VALUES, epsilon=SURE, bounds=(30, 50), neighbors=neighbors)
    assert abs(found.value - clipped.sum()) < 5
    assert found.error.amount < 1
    spread = stats.std(VALUES, epsilon=SURE, bounds=(30, 50), neighbors=neighbors, n=2000)
    assert abs(spread.value - clipped.std()) < 0.2
    assert spread.error.amount is not None
    assert stats.sum([], epsilon=SURE, bounds=(-3, 3), neighbors="add-remove").value < 1


def test_shares_of_every_kind_of_mask():
    mask = VALUES > 40
    kinds = (
        mask,
        mask.tolist(),
        pd.Series(mask),
        pl.Series(mask),
        pa.array(mask),
        mask.astype(int),
    )
    for given in kinds:
        if isinstance(given, pa.Array):
            given = given.to_numpy(zero_copy_only=False)
        assert abs(stats.proportion(given, epsilon=SURE).value - mask.mean()) < 0.01
    public = stats.proportion(mask, epsilon=SURE, neighbors="replace")
    assert abs(public.value - mask.mean()) < 0.001
    for bad in (np.array(["yes"]), np.array([[True]]), "yes", 3):
        with pytest.raises(UsageError):
            stats.proportion(bad, epsilon=1)


def test_what_is_neither_true_nor_false_is_left_out_of_shares_and_not_counted():
    mask = [True, False, None, 0.5, "yes", float("nan"), 1, 0] * 500
    assert abs(stats.proportion(mask, epsilon=SURE).value - 0.5) < 0.01
    assert stats.count(mask, where=mask, epsilon=SURE).value == 1000
    mask = [True, None]  # left out, or counted as one half where the number of rows is public
    assert abs(stats.proportion(mask * 500, epsilon=SURE).value - 1) < 0.01
    assert abs(stats.proportion(mask * 500, epsilon=SURE, neighbors="replace").value - 0.75) < 0.01


def test_anything_is_counted():
    for given in (["x", None, 3], {"a", "b", "c"}, np.zeros((3, 7)), iter("abc"), FRAME[:3]):
        assert stats.count(given, epsilon=SURE).value == 3
    assert stats.count(pa.table({"x": [1, None, 3]}), epsilon=SURE).value == 3
    kept = stats.count(VALUES, where=VALUES > 40, epsilon=SURE, neighbors="replace")
    assert kept.value == (VALUES > 40).sum()
    for bad in ("word", 3, None):
        with pytest.raises(UsageError):
            stats.count(bad, epsilon=1)
    with pytest.raises(UsageError, match="one entry for each"):
        stats.count([1, 2], where=[True], epsilon=1)


def test_histograms():
    found = stats.histogram([0, 1, 2, 2, 4, 9, -1], edges=[0, 2, 4], epsilon=SURE)
    assert found.counts == (2, 3)
    assert found.outside == 2
    assert found.labels == ((0.0, 2.0), (2.0, 4.0))
    assert json.loads(json.dumps(found.to_dict()))["counts"] == [2, 3]
    assert "outside" in str(found)
    named = stats.histogram(
        ["a", ["odd"], None, "a"], categories=["a", "b", None], epsilon=SURE, neighbors="replace"
    )
    assert named.counts == (2, 0, 1)
    assert named.outside == 1
    assert named.error_of_all.amount >= named.error.amount
    noisy = stats.histogram([], categories=range(50), epsilon="0.1")
    assert len(set(noisy.counts)) > 5


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"edges": [1]},
        {"edges": [1, 1]},
        {"edges": [2, 1]},
        {"edges": [0, 1], "categories": ["a"]},
        {"categories": []},
        {"categories": "ab"},
        {"categories": ["a", "a"]},
        {"categories": [["a"]]},
        {"edges": [0, 1], "epsilon": 0},
    ],
    ids=str,
)
def test_bad_bins_cost_nothing(wrong, allowance):
    with pytest.raises(UsageError):
        stats.histogram([1], **{"epsilon": 1, "budget": allowance, **wrong})
    assert spent(allowance).epsilon == 0


@pytest.mark.parametrize(
    "frame",
    [
        FRAME,
        pl.DataFrame(FRAME.to_dict("list")),
        pa.table(FRAME.to_dict("list")),
        FRAME.to_dict("list"),
    ],
    ids=lambda frame: type(frame).__module__.split(".")[0],
)
def test_groups_of_any_frame(frame):
    found = stats.group_by(
        frame, "city", "mean", column="age", groups=["a", "b", "z"], epsilon=SURE, bounds=(0, 100)
    )
    for city in "ab":
        assert abs(found[city].value - FRAME.age[FRAME.city == city].mean()) < 1
    assert set(found) == {"a", "b", "z"}
    assert "for all groups together" in str(found)
    assert json.loads(json.dumps(found.to_dict()))["groups"][0]["group"] == "a"


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("count", {}), ("sum", {"bounds": (0, 100)}), ("variance", {"bounds": (0, 100)}),
        ("std", {"bounds": (0, 100)}), ("trimmed_mean", {"delta_f": 1}), ("median", {"delta_f": 1}),
        ("quantile", {"q": 0.9, "bounds": (0, 100)}), ("minimum", {"bounds": (0, 100)}),
        ("maximum", {"bounds": (0, 100)}), ("mean", {"bounds": (0, 100), "n": "private"}),
    ],
)  # fmt: skip
def test_every_statistic_of_groups(name, options, allowance):
    found = stats.group_by(
        VALUES, FRAME.city, name, groups=["a", "b"], epsilon="0.25", budget=allowance, **options
    )
    assert len(found) == 2
    assert spent(allowance).epsilon == 250_000_000  # once for all groups
    assert found["a"].cost.charged_to == "people"


def test_shares_of_groups():
    found = stats.group_by(VALUES > 40, FRAME.city, "proportion", groups=["a"], epsilon=SURE)
    assert abs(found["a"].value - (VALUES > 40)[FRAME.city == "a"].mean()) < 0.02


def test_a_replaced_row_may_change_groups():
    alone = stats.group_by([1], ["a"], "count", groups=["a"], epsilon=1)
    moved = stats.group_by([1], ["a"], "count", groups=["a"], epsilon=1, neighbors="replace")
    assert moved["a"].error.amount >= 2 * alone["a"].error.amount - 1
    assert moved.guarantee.neighbors == "replace"
    assert moved["a"].guarantee.epsilon == 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"statistic": "mode"},
        {"groups": []},
        {"groups": "ab"},
        {"groups": ["a", "a"]},
        {"bounds": None},
        {"bounds": (1, 0)},
        {"color": "red"},
        {"n": 7},
        {"compare": True},
        {"by": "city"},
        {"epsilon": -1},
    ],
    ids=str,
)
def test_bad_groups_cost_nothing(wrong, allowance):
    given = {
        "data": VALUES, "by": FRAME.city, "statistic": "mean", "groups": ["a"], "epsilon": 1,
        "bounds": (0, 1), "budget": allowance, **wrong,
    }  # fmt: skip
    with pytest.raises(UsageError):
        stats.group_by(**given)
    assert spent(allowance).epsilon == 0


@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
def test_covariance_and_regression(neighbors):
    bounds = [(0, 80), (0, 160)]
    found = stats.covariance(TABLE, epsilon=SURE, bounds=bounds, neighbors=neighbors)
    assert np.allclose(found.matrix, np.cov(TABLE.T, bias=True), rtol=0.02)
    assert np.allclose(found.means, TABLE.mean(axis=0), rtol=0.01)
    assert abs(found.correlation[0, 1] - np.corrcoef(TABLE.T)[0, 1]) < 0.01
    assert json.loads(json.dumps(found.to_dict()))["rows"] == pytest.approx(2000, abs=2)
    line = stats.regression(
        TABLE[:, :1], TABLE[:, 1], epsilon=SURE, bounds=bounds[:1], explained_bounds=bounds[1],
        neighbors=neighbors,
    )  # fmt: skip
    slope, start = np.polyfit(TABLE[:, 0], TABLE[:, 1], 1)
    assert abs(line.coefficients[0] - slope) < 0.05
    assert abs(line.intercept - start) < 2
    assert abs(line.predict([[10.0]])[0] - (slope * 10 + start)) < 2
    assert "intercept" in str(line)


def test_little_data_give_a_matrix_all_the_same():
    for rows in ([], [[1.0, 2.0]], [[5.0, 5.0]] * 10):
        found = stats.covariance(rows, epsilon=1, bounds=[(0, 9), (0, 9)])
        assert np.linalg.eigvalsh(found.matrix).min() >= -1e-9
        line = stats.regression(
            [row[:1] for row in rows], [row[1] for row in rows], epsilon=1, bounds=[(0, 9)],
            explained_bounds=(0, 9),
        )  # fmt: skip
        assert np.isfinite(line.intercept)


def test_normal_noise_is_taken_and_charged_where_it_is_smaller(allowance):
    wide = [(0, 1)] * 12
    rows = np.full((50, 12), 0.5)
    found = stats.covariance(rows, epsilon="0.25", delta="0.0000005", bounds=wide, budget=allowance)
    assert found.mechanism == "gaussian"
    assert found.guarantee.delta == 5e-7
    assert spent(allowance).delta > 0
    narrow = stats.covariance(rows[:, :1], epsilon="0.25", delta="1e-9", bounds=wide[:1])
    assert narrow.mechanism == "laplace"
    assert narrow.guarantee.delta == 0  # what is not used is not charged


def test_noise_is_the_smaller_of_two():
    from secant.stats.calls import terms_of

    terms = terms_of(
        (), epsilon=1, budget=None, neighbors=None, n=None, compare=False, mechanism="auto",
        level=0.95,
    )  # fmt: skip
    for columns in (1, 3, 10):
        pure, either = (noise_for(columns, terms, Fraction(d)) for d in ("0", "1e-6"))
        assert deviation_of(either) <= deviation_of(pure)


@pytest.mark.parametrize(
    "wrong",
    [
        {"bounds": []},
        {"bounds": (0, 1)},
        {"bounds": [(1, 1), (0, 1)]},
        {"bounds": [(1, 0), (0, 1)]},
        {"bounds": [(0, 1)] * 101},
        {"delta": 2},
        {"epsilon": 0},
    ],
    ids=lambda wrong: str(wrong)[:40],
)
def test_bad_moments_cost_nothing(wrong, allowance):
    given = {"epsilon": 1, "bounds": [(0, 1), (0, 1)], "budget": allowance, **wrong}
    with pytest.raises(UsageError):
        stats.covariance([[0, 1]], **given)
    assert spent(allowance).epsilon == 0


def test_a_table_of_another_shape_costs_nothing_and_is_not_quoted(allowance):
    table = np.array([[98765.0]])
    with pytest.raises(UsageError) as caught:
        stats.covariance(table, epsilon="0.5", bounds=[(0, 1), (0, 1)], budget=allowance)
    assert "98765" not in caught.value.render()
    assert spent(allowance).epsilon == 0
    with pytest.raises(UsageError, match="one entry for each row"):
        stats.regression([[1.0]], [1.0, 2.0], epsilon=1, bounds=[(0, 1)], explained_bounds=(0, 1))


@pytest.mark.parametrize(
    "statistic", [stats.mean, stats.trimmed_mean, stats.variance], ids=lambda f: f.__name__
)
def test_a_private_number_of_rows_lets_an_error_be_stated(statistic, allowance):
    silent = statistic(VALUES, epsilon=1, bounds=(0, 100))
    found = statistic(VALUES, epsilon=1, bounds=(0, 100), n="private", budget=allowance)
    assert silent.error.amount is None
    assert found.error.amount is not None
    assert found.guarantee.epsilon == 1
    assert spent(allowance).epsilon == 10**9  # one charge, of all
    assert "estimated the number of rows" in found.why
    with pytest.raises(BudgetError):
        statistic(VALUES, epsilon=1, bounds=(0, 100), n="private", budget=allowance)


def test_a_private_number_of_few_rows():
    assert stats.mean([], epsilon="0.1", bounds=(0, 1), n="private").error.amount <= 1
    ranked = stats.median(VALUES, epsilon=1, bounds=(0, 100), n="private")
    assert "rows lie" in ranked.error.words
    for bad in (
        {"neighbors": "replace", "n": "private"},
        {"n": "public"},
        {"n": "private", "bounds": (1, 0)},
    ):
        with pytest.raises(UsageError):
            stats.mean(VALUES, **{"epsilon": 1, "bounds": (0, 1), **bad})
