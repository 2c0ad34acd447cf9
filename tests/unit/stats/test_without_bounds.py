"""Releases without bounds: near the truth, charged first, refused only by what is public."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from secant import stats
from secant.errors import UsageError
from secant.ledger.amounts import Budget
from secant.ledger.store import Ledger
from secant.policy.policy import Protection
from secant.stats.budget import Allowance
from secant.stats.preprocessing import ordered, unbounded
from secant.stats.preprocessing.staircase import bounded_between

VALUES = np.random.default_rng(3).normal(40, 10, 1001)
TRUTH = {
    stats.mean: VALUES.mean(),
    stats.trimmed_mean: np.sort(VALUES)[100:-100].mean(),
    stats.median: np.median(VALUES),
    stats.variance: VALUES.var(),
    stats.std: VALUES.std(),
}


@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
@pytest.mark.parametrize("statistic", TRUTH, ids=lambda f: f.__name__)
def test_the_truth_is_met_where_the_limit_allows_it(statistic, neighbors):
    # the scale is 2/1000; 50 times that has probability e^-50
    found = statistic(VALUES, epsilon=1000, delta_f=2, neighbors=neighbors)
    assert abs(found.value - TRUTH[statistic]) < 0.1
    assert found.error.amount is None
    assert "preprocess" in found.error.words
    assert found.guarantee.neighbors == neighbors
    assert "<svg" in found.plot().svg


@pytest.mark.parametrize("q", [0, 0.25, 0.5, 0.9, 1])
def test_quantiles_meet_theirs(q):
    found = stats.quantile(VALUES, q, epsilon=1000, delta_f=5, empty=40)
    near = 25 if q in (0, 1) else 0.3  # outliers move extremes by five at most
    assert abs(found.value - np.quantile(VALUES, q)) < near
    assert found.statistic == {0: "minimum", 0.5: "median", 1: "maximum"}.get(q, f"quantile {q:g}")


def test_far_values_move_it_by_no_more_than_asked():
    calm = stats.mean(VALUES, epsilon=1000, delta_f="0.5", empty=40).value
    wild = stats.mean([*VALUES, 1e200], epsilon=1000, delta_f="0.5", empty=40).value
    assert abs(wild - calm) < 0.5 + 0.1


def test_no_values_give_the_center():
    assert abs(stats.mean([], epsilon=1000, delta_f=1, empty=7).value - 7) < 0.1
    assert stats.variance([], epsilon=1000, delta_f=1).value >= 0


def test_with_bounds_a_limit_asks_for_preprocessing():
    for statistic in (stats.mean, stats.trimmed_mean, stats.variance, stats.median):
        found = statistic(VALUES, epsilon=1000, bounds=(0, 100), delta_f=2)
        assert abs(found.value - TRUTH[statistic]) < 0.5
        assert found.mechanism.startswith("preprocessing, ")
        known = statistic(VALUES, epsilon=1000, bounds=(0, 100), n=1001, mechanism="preprocessing")
        assert abs(known.value - TRUTH[statistic]) < 8


@pytest.mark.parametrize("bounds", [None, (0, 100)])
def test_whether_noise_is_smooth_follows_from_public_facts(bounds):
    def mechanism(values, epsilon):
        found = stats.median(
            values, epsilon=epsilon, delta_f=1, empty=40, n=1000, bounds=bounds, compare=False
        )
        return found.mechanism

    columns = ([], VALUES, [41.0] * 1000, [-1e30, 1e30] * 500)
    found = {epsilon: {mechanism(c, epsilon) for c in columns} for epsilon in ("0.01", "10")}
    assert found["10"] == {"preprocessing, smooth sensitivity, optimal noise"}
    assert len(found["0.01"]) == 1
    assert bounds or found["0.01"] == {"preprocessing, laplace"}


@pytest.mark.parametrize(
    "wrong",
    [
        {"delta_f": 0},
        {"delta_f": -1},
        {"delta_f": float("nan")},
        {"delta_f": "10" + "0" * 200},
        {"delta_f": 1, "mechanism": "smooth"},
        {"delta_f": 1, "bounds": (0, 1), "mechanism": "laplace"},
        {"delta_f": 1, "step": 1},
        {"delta_f": 1, "empty": "x"},
        {"mechanism": "preprocessing"},
        {"mechanism": "preprocessing", "bounds": (0, 1), "q": 0.3},
        {},
    ],
    ids=str,
)
def test_bad_terms_are_refused_before_anything_is_read(wrong):
    class Untouchable:
        def __array__(self, *_, **__):
            raise AssertionError("read")

    q = wrong.pop("q", 0.5)
    with pytest.raises(UsageError):
        stats.quantile(Untouchable(), q, epsilon=1, **wrong)


def test_it_is_charged(tmp_path):
    people = Protection("people", "rows", Fraction(1), replace=False)
    with Ledger.open(tmp_path / "ledger", {"people": Budget.of(1)}) as ledger:
        found = stats.median(
            VALUES, epsilon="0.25", delta_f=1, budget=Allowance(people, lambda: ledger)
        )
        assert found.cost.charged_to == "people"
        assert ledger.balances()["people"].spent.epsilon == 250_000_000


def test_a_comparison_is_printed_without_looking(capsys):
    stats.mean(VALUES, epsilon=1, delta_f=1, compare=True)
    assert "your data were not looked at" in capsys.readouterr().out


def closed(windows):
    lower, upper = ordered.sandwich(windows)
    return bounded_between(windows.reader(), windows.count, lower, upper)


@pytest.mark.parametrize("trim", [Fraction(0), Fraction(1, 10)])
def test_longer_floats_give_the_same_steps(trim, monkeypatch):
    """Beyond 131,072 values sums are held in longer floats; here from 40 on."""
    source = np.random.default_rng(5)
    for count in (41, 90, 141):
        far = source.standard_cauchy(count) * 10.0 ** source.integers(0, 6)
        scaled = np.rint(np.clip(np.sort(far), -(2.0**35), 2.0**35) * 2.0**38) / 2.0**38
        short = ordered.means(scaled, trim)
        expected = closed(short), ordered.sandwich(short)
        with monkeypatch.context() as patch:
            patch.setattr(ordered, "LARGEST_SHORT", 40)
            long = ordered.means(scaled, trim)
            assert long.coarse.dtype == np.longdouble
            assert (closed(long), ordered.sandwich(long)) == expected


def test_machines_with_short_floats_refuse_at_once(monkeypatch):
    monkeypatch.setattr(unbounded, "EXTENDED", False)
    with pytest.raises(UsageError, match="too short"):
        stats.mean([], epsilon=1, delta_f=1)
    assert stats.median([], epsilon=1000, delta_f=1).value < 1
