"""`stats.mean([1, nan, 2])` was charged and then failed because of one value: whoever saw that learned of the value.

Every function of `secant.stats` gives an answer whatever its values are. What is refused is refused for its container,
its declared type or its shape, and costs nothing.
"""

import datetime
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from secant import stats
from secant.errors import UsageError
from secant.ledger.amounts import Budget
from secant.ledger.store import Ledger
from secant.policy.policy import Protection
from secant.stats.budget import Allowance

NAN, INF = float("nan"), float("inf")
HOSTILE = (
    None, NAN, INF, -INF, 5e-324, -0.0, 1e308, -1e308, 10**400, -(10**400), Decimal("sNaN"), Decimal("1e999"),
    Fraction(1, 10**400), "7", "", b"x", True, np.bool_(False), 3j, object(), [1.0], (), {}, ([],), np.array(3.0),
    np.array([1.0, 2.0]), np.float16("nan"), np.datetime64("NaT"), datetime.date(2020, 1, 1), float, 2**63,
)  # fmt: skip
RANGE = {"bounds": (0, 10)}
GOOD = [1.0, 2.0, 7.5, 3.0]


def _pairs(values):
    return [[value, 1.0] for value in values]


def _mean_of_rows(values, **terms):
    rows = np.empty((len(values), 2), dtype=object)
    rows[:, 0], rows[:, 1] = 1.0, [None if isinstance(v, np.ndarray) else v for v in values]
    return stats.aggregate(lambda block: block.mean(), rows, bounds=(0, 10), blocks=3, **terms)


COLUMNS = {
    **{f.__name__: f for f in (stats.mean, stats.trimmed_mean, stats.variance, stats.std, stats.median, stats.minimum,
                               stats.maximum)},
    "quantile": lambda x, **t: stats.quantile(x, 0.9, **t),
    "sum": stats.sum,
}  # fmt: skip
CALLS = {
    **{name: (lambda x, call=call, **t: call(x, **RANGE, **t)) for name, call in COLUMNS.items()},
    **{
        f"{name} without bounds": (lambda x, call=call, **t: call(x, delta_f=1, **t))
        for name, call in COLUMNS.items()
        if name != "sum"
    },
    "proportion": stats.proportion,
    "count where": lambda x, **t: stats.count(x, where=x, **t),
    "histogram": lambda x, **t: stats.histogram(x, edges=[0, 2, 10], **t),
    "categories": lambda x, **t: stats.histogram(x, categories=[1.0, "7"], **t),
    "group_by": lambda x, **t: stats.group_by(
        x, list("abab") + list("a") * (len(x) - 4), "mean", groups=["a", "b"], **RANGE, **t
    ),
    "shares of groups": lambda x, **t: stats.group_by(x, x, "proportion", groups=[1.0, "7"], **t),
    "labels": lambda x, **t: stats.group_by(np.ones(len(x)), x, "sum", groups=[1.0, "7"], **RANGE, **t),
    "covariance": lambda x, **t: stats.covariance(_pairs(x), bounds=[(0, 10), (0, 2)], **t),
    "regression": lambda x, **t: stats.regression(
        _pairs(x), x, bounds=[(0, 10), (0, 2)], explained_bounds=(0, 10), **t
    ),
    "aggregate": lambda x, **t: stats.aggregate(np.mean, x, bounds=(0, 10), blocks=3, **t),
    "aggregate of rows": _mean_of_rows,
}  # fmt: skip
ONLY_ADDED = {
    "mean, n private": lambda x, **t: stats.mean(x, n="private", **RANGE, **t),
    "proportion, n private": lambda x, **t: stats.proportion(x, n="private", **t),
    "count": stats.count,
    "triangles": lambda x, **t: stats.triangles(_pairs(x), vertices=4, **t),
    "odd triangles": lambda x, **t: stats.triangles(x, vertices=4, **t),
}


@pytest.fixture(scope="module")
def budget(tmp_path_factory):
    path = tmp_path_factory.mktemp("ledger") / "ledger"
    with Ledger.open(path, {"rows": Budget.of(10**6)}) as ledger:
        rows = Protection("rows", "rows", Fraction(10**6), replace=False)
        yield Allowance(rows, lambda: ledger)


def spent(budget: Allowance) -> int:
    return budget.ledger().balances()["rows"].spent.epsilon


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of numpy's own mean, in blocks
@pytest.mark.parametrize("name", [*CALLS, *ONLY_ADDED])
def test_whatever_the_values_are_there_is_an_answer_at_its_price(name, budget):
    call = {**CALLS, **ONLY_ADDED}[name]
    before = spent(budget)
    call([*GOOD, *HOSTILE], epsilon=1, budget=budget)
    assert spent(budget) == before + 10**9


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", CALLS)
def test_where_values_are_replaced_too(name):
    found = CALLS[name]([*GOOD, *HOSTILE], epsilon=1, neighbors="replace")
    assert found.guarantee.neighbors == "replace"


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(
    "name", ["mean", "median", "mean without bounds", "proportion", "categories"]
)
@pytest.mark.parametrize("value", HOSTILE, ids=lambda v: repr(v)[:20])
def test_one_value_by_itself_is_answered(name, value):
    assert CALLS[name]([value, *GOOD], epsilon=1).cost.epsilon == 1
    assert CALLS[name]([value], epsilon=1, neighbors="replace").cost.epsilon == 1


def test_what_a_gap_counts_as():
    data, sure = [2.0, None, NAN, "x"] * 500, 10**5
    assert abs(stats.mean(data, epsilon=sure, **RANGE).value - 2) < 0.01
    assert abs(stats.mean(data, epsilon=sure, neighbors="replace", **RANGE).value - 4.25) < 0.01
    assert abs(stats.sum(data, epsilon=sure, **RANGE).value - 1000) < 1
    found = stats.median(data, epsilon=sure, delta_f=1, empty=9, neighbors="replace")
    assert abs(found.value - 9) < 0.01
    assert stats.histogram(data, edges=[0, 5], epsilon=sure).outside == 1500
    assert abs(stats.maximum([1.0, INF] * 500, epsilon=sure, **RANGE).value - 10) < 0.01
    rows = [[1.0, 2.0], [3.0, None], [5.0, 6.0]] * 300
    line = stats.covariance(rows, epsilon=sure, bounds=[(0, 10), (0, 10)])
    assert abs(line.rows - 600) < 1
    assert np.allclose(line.means, [3, 4], atol=0.1)
    held = stats.covariance(rows, epsilon=sure, bounds=[(0, 10), (0, 10)], neighbors="replace")
    assert np.allclose(held.means, [3, 13 / 3], atol=0.1)


def test_a_private_number_of_rows_is_that_of_the_values_that_count():
    found = stats.mean([2.0, None] * 500, epsilon=10**5, n="private", **RANGE)
    assert "of rows: 500," in found.why


def test_people_without_a_value_or_an_offer_are_left_out(budget):
    values = [4.0] * 400 + [10**6, None, "x", NAN] * 10
    own = [1] * 400 + [0.1, 1, 1, "many"] * 10
    terms = {"offers": ["0.25", 1], "scale": "0.001", "empty": 4}
    found = stats.personal("mean", values, epsilons=own, budget=budget, **terms)
    assert abs(found.value - 4) < 0.1
    between = stats.personal("median", [5.0] * 9, epsilons=[0.5, 7, INF] * 3, **terms)
    assert 3.9 < between.value < 5.1


def test_a_matrix_of_edges_has_no_edge_where_it_has_no_number():
    matrix = np.array([[0, 1, NAN], [0, 0, INF], [1, 0, 0]])
    assert stats.triangles(matrix, vertices=3, epsilon=200).value == 1
    matrix[0, 1] = NAN
    assert stats.triangles(matrix, vertices=3, epsilon=200).value == 0


@pytest.mark.parametrize(
    "statistic", ["mean", "median", "quantile", "variance", "minimum", "trimmed_mean"]
)
@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
def test_preprocessed_statistics_have_a_value_too(statistic, neighbors):
    q = {"q": 0.5} if statistic == "quantile" else {}
    found = stats.bounded(statistic, [*GOOD, *HOSTILE], delta_f=1, neighbors=neighbors, **q)
    assert np.isfinite(found.value)
    stats.bounded_pair("mean", _pairs([*GOOD, *HOSTILE]), delta_f=1, neighbors=neighbors)
    few = [3.0, None, NAN]
    stats.bounded(statistic, few, delta_f=[1, 2, 2], classes=[1, 2], neighbors=neighbors, **q)


REFUSED = {
    "text": "12",
    "a number": 5,
    "nothing": None,
    "mapping": {1: 2},
    "texts": np.array(["1"]),
    "days": np.array(["2020-01-01"], dtype="datetime64[D]"),
    "table": np.ones((2, 2)),
}


OF_ONE_COLUMN = [*COLUMNS, "proportion", "count where", "histogram", "mean without bounds"]


@pytest.mark.parametrize("values", REFUSED.values(), ids=REFUSED)
@pytest.mark.parametrize("name", OF_ONE_COLUMN)
def test_what_is_no_column_of_numbers_costs_nothing(name, values, budget):
    before = spent(budget)
    with pytest.raises(UsageError):
        CALLS[name](values, epsilon=1, budget=budget)
    assert spent(budget) == before


@pytest.mark.parametrize(
    "call",
    [
        lambda **t: stats.covariance(np.ones((3, 1)), bounds=[(0, 1), (0, 1)], **t),
        lambda **t: stats.regression(
            np.ones((3, 1)), np.array(["a"] * 3), bounds=[(0, 1)], explained_bounds=(0, 1), **t
        ),
        lambda **t: stats.regression([[1]], [1, 2], bounds=[(0, 1)], explained_bounds=(0, 1), **t),
        lambda **t: stats.group_by([1, 2], ["a"], "mean", groups=["a"], **RANGE, **t),
        lambda **t: stats.group_by(5, ["a"], "mean", groups=["a"], **RANGE, **t),
        lambda **t: stats.count([1, 2], where=[True], **t),
        lambda **t: stats.count(5, **t),
        lambda **t: stats.aggregate(np.mean, 5, bounds=(0, 1), **t),
        lambda **t: stats.triangles(np.ones((3, 4)), vertices=3, **t),
        lambda **t: stats.histogram(5, categories=["a"], **t),
    ],
)
def test_columns_that_do_not_go_together_cost_nothing(call, budget):
    before = spent(budget)
    with pytest.raises(UsageError):
        call(epsilon=1, budget=budget)
    assert spent(budget) == before
