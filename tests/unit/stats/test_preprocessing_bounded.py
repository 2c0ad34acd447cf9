"""`bounded` and `bounded_pair`: what they accept, what they refuse, what they promise and print."""

from __future__ import annotations

import doctest
import importlib
from fractions import Fraction

import numpy as np
import pytest

from secant.errors import UsageError
from secant.stats.bounded import NAMES, bounded, bounded_pair
from secant.stats.preprocessing.registered import LARGEST_CALLED, register_ordered
from secant.stats.preprocessing.subsets import LARGEST_GENERAL
from secant.stats.preprocessing.units import LARGEST_SHORT
from secant.stats.promises import OPTIMALITY

pandas = pytest.importorskip("pandas")
polars = pytest.importorskip("polars")
pyarrow = pytest.importorskip("pyarrow")

EXTRA = {"quantile": {"q": 0.25}}
SECRET = 987654321.5


def call(name, values, **rest):
    return bounded(name, values, **{"delta_f": 1, **EXTRA.get(name, {}), **rest})


@pytest.mark.parametrize("name", NAMES)
def test_a_large_limit_gives_the_statistic_itself(name):
    values = [5.0, 1.0, 2.0, 9.0, 4.0]
    expected = {
        "mean": 4.2,
        "trimmed_mean": 4.2,
        "median": 4.0,
        "quantile": 2.0,
        "minimum": 1.0,
        "maximum": 9.0,
        "variance": float(np.var(values)),
    }
    found = call(name, values, delta_f=100)
    assert found.value == pytest.approx(expected[name], abs=1e-8)
    assert found.exact
    assert found.error_bound < 1e-6
    assert found.promise.sensitivity == 100


@pytest.mark.parametrize("name", NAMES)
def test_a_limit_of_almost_nothing_gives_almost_the_center(name):
    center = 0 if name == "variance" else 3
    found = call(name, [100.0, 200.0, 300.0], delta_f="1e-9", empty=center)
    assert abs(found.exact_value - center) <= Fraction(3, 10**9)
    assert not found.exact
    assert found.error_bound >= 80


@pytest.mark.parametrize("name", NAMES)
def test_no_value_one_value_and_equal_values(name):
    center = 0 if name == "variance" else 2
    nothing = call(name, [], empty=center)
    assert nothing.value == center
    assert nothing.exact
    one = call(name, [2.5], empty=center)
    assert one.value == (0 if name == "variance" else 2.5)
    same = call(name, [7.0] * 50, empty=center)
    assert same.value == pytest.approx(0 if name == "variance" else 7.0)
    assert same.exact


@pytest.mark.parametrize("name", NAMES)
def test_the_order_and_the_container_do_not_matter(name):
    values = [3.0, -1.0, 8.0, 8.0, 0.5]
    results = {
        call(name, given, delta_f="0.7").exact_value
        for given in (
            values,
            sorted(values),
            tuple(values[::-1]),
            np.array(values),
            pandas.Series(values),
            polars.Series(values),
            pyarrow.array(values),
        )
    }
    assert len(results) == 1


def test_the_promise_under_replacement_is_kept_by_half_the_limit():
    values = [0.0, 0.0, 100.0, 100.0, 100.0]
    added = bounded("mean", values, delta_f=1)
    replaced = bounded("mean", values, delta_f=2, neighbors="replace")
    assert added.exact_value == replaced.exact_value
    assert replaced.promise.sensitivity == 2
    assert str(replaced.promise) == "moves by at most 2 for one value replaced by another"


def test_bounds_are_enforced_and_give_the_center():
    inside = bounded("mean", [0.0, 10.0, 10.0], delta_f=5, bounds=(0, 10))
    outside = bounded("mean", [-1e9, 10.0, 1e300], delta_f=5, bounds=(0, 10))
    assert inside.exact_value == outside.exact_value
    assert bounded("median", [], delta_f=1, bounds=(2, 10)).value == 6
    assert bounded("median", [], delta_f=1, bounds=(2, 10), empty=3).value == 3


@pytest.mark.parametrize(
    "wrong",
    [
        {"delta_f": 0},
        {"delta_f": -1},
        {"delta_f": float("nan")},
        {"delta_f": float("inf")},
        {"delta_f": None},
        {"delta_f": "much"},
        {"delta_f": True},
        {"delta_f": [1, -1]},
        {"delta_f": [1, 1, 1], "classes": [1]},
        {"delta_f": [1, 1]},
        {"delta_f": [1, 1], "classes": []},
        {"delta_f": [1, 2], "classes": [2]},
        {"delta_f": [1, 1], "classes": [1, -1]},
        {"classes": [1]},
        {"bounds": (2, 1)},
        {"bounds": (0, float("inf"))},
        {"bounds": 3},
        {"empty": float("nan")},
        {"empty": "x"},
        {"empty": 10**200},
        {"neighbors": "both"},
        {"neighbors": 1},
        {"q": 0.5},
        {"trim": 0.1},
    ],
    ids=str,
)
def test_what_cannot_be_meant_is_refused_before_the_data_are_read(wrong):
    class Touched:
        def __iter__(self):
            raise AssertionError("the data were read")

    # how many limits are needed is known only from the data
    values = [SECRET, 1.0] if wrong == {"delta_f": [1, 1, 1], "classes": [1]} else Touched()
    with pytest.raises(UsageError) as caught:
        bounded("mean", values, **{"delta_f": 1, **wrong})
    assert caught.value.code == "USE-001"
    assert str(SECRET) not in caught.value.render()


@pytest.mark.parametrize(
    ("name", "rest"),
    [
        ("mode", {}),
        (None, {}),
        (7, {}),
        ("quantile", {}),
        ("quantile", {"q": 1.5}),
        ("quantile", {"q": -0.1}),
        ("quantile", {"q": float("nan")}),
        ("trimmed_mean", {"trim": 0.5}),
        ("trimmed_mean", {"trim": -0.1}),
        ("variance", {"empty": 1}),
        ("mean", {"construction": "layers"}),
        ("mean", {"construction": "quick", "delta_f": [1, 1], "classes": [1]}),
        (sum, {"construction": "layers", "delta_f": [1, 1], "classes": [1]}),
    ],
)
def test_statistics_and_their_parameters_are_checked(name, rest):
    with pytest.raises(UsageError):
        bounded(name, [1.0, 2.0], **{"delta_f": 1, **rest})


@pytest.mark.parametrize(
    "bad", [np.array(["987654321.5"]), np.array([[SECRET]]), str(SECRET), None]
)
def test_bad_data_are_refused_without_being_quoted(bad):
    with pytest.raises(UsageError) as caught:
        bounded("mean", bad, delta_f=1)
    assert str(SECRET) not in caught.value.render()


def test_parameters_may_be_numpy_numbers():
    plain = bounded("quantile", [1.0, 5.0, 9.0], delta_f=0.1, q=0.3, empty=2, bounds=(0, 10))
    theirs = bounded(
        "quantile",
        [1.0, 5.0, 9.0],
        delta_f=np.float64(0.1),
        q=np.float64(0.3),
        empty=np.int64(2),
        bounds=(np.float64(0), np.int32(10)),
    )
    assert plain.exact_value == theirs.exact_value
    assert theirs.promise.sensitivity == Fraction(1, 10)


def test_large_data_are_bounded_in_range_and_out_of_it():
    count = LARGEST_SHORT + 1
    values = np.linspace(0, 1, count)
    found = bounded("mean", values, delta_f=2 / count, bounds=(0, 1))
    assert found.exact
    assert found.value == pytest.approx(0.5)
    assert found.proof == "preprocess.range"
    assert bounded("variance", values, delta_f=0.1).exact
    assert bounded("variance", values, delta_f=1e-9).value < (count - 1) * 1e-9
    for name, rest in (("mean", {}), ("trimmed_mean", {}), ("quantile", {"q": 0.25})):
        assert bounded(name, values, delta_f=1e-9, **rest).value == pytest.approx(
            (count - 1) * 1e-9
        )
    assert bounded("median", values, delta_f=1 / count, empty=0.5).exact


def test_values_out_of_reach_are_capped_and_the_error_says_so():
    found = bounded("mean", [-1e20, 1e20, 3.0], delta_f=1)
    assert abs(found.value) <= 3
    assert abs(found.value - 1.0) <= found.error_bound
    huge = bounded("variance", [1e300, -1e300], delta_f=1)
    assert huge.value == pytest.approx(1.0)
    assert not huge.exact
    both = bounded("variance", [1e40, 2e40], delta_f=1)
    assert not both.exact
    assert both.error_bound >= 0.25e80
    assert bounded_pair("mean", [[1e308, 1e308]] * 3, delta_f=1).value == pytest.approx((1.5, 1.5))


def test_the_variance_of_values_far_from_zero():
    near = [1e15, 1e15 + 1, 1e15 + 5] * 4
    found = bounded("variance", near, delta_f=2)
    shifted = bounded("variance", [value - 1e15 for value in near], delta_f=2)
    assert found.value == pytest.approx(shifted.value, rel=1e-9)
    assert found.exact == shifted.exact


def test_a_result_explains_itself():
    text = str(bounded("mean", [0.0, 1.0, 50.0], delta_f=1, empty=0))
    assert "not a release" in text
    assert "moves by at most 1 for one value added or removed" in text
    assert "Theorem 1.7" in text
    assert OPTIMALITY in text
    assert "Lemma 4.5" in text
    assert "Corollary 4.4" in text
    assert "g = f here" in str(bounded("median", [1.0], delta_f=5))
    assert "Theorem 1.6" in str(bounded("median", [1.0], delta_f=5))
    assert "Theorem 1.8" in str(bounded("variance", [1.0, 9.0], delta_f=0.5))
    assert "quantile 0.9" in str(bounded("quantile", [1.0], delta_f=1, q=0.9))


def test_individual_limits_are_promised_one_by_one():
    found = bounded(
        "mean", [0.0, 10.0, 20.0], delta_f=[1, 1, "0.5"], classes=["0.5", 1, 2], empty=0
    )
    assert found.promise.individual == (Fraction(1, 2), 1, 2)
    assert found.promise.sensitivity == 2
    assert "individual i" in str(found.promise)
    assert found.proof == "preprocess.classes"
    assert bounded("mean", [5.0], delta_f=[0], classes=[0], empty=1).value == 1
    same = bounded("mean", [0.0, 10.0, 20.0], delta_f=[1, 1, 1], classes=[1], empty=0)
    assert same.value == pytest.approx(bounded("mean", [0, 10, 20], delta_f=1).value, abs=1e-9)


def test_too_many_different_limits_are_refused():
    limits = [Fraction(1, 1 + i % 7) for i in range(100)]
    with pytest.raises(UsageError, match="different limits"):
        bounded("mean", list(range(100)), delta_f=limits, classes=limits)


def test_any_function_of_a_few_entries():
    found = bounded(lambda names: len({n[0] for n in names}), ["ann", "al", "bob"], delta_f=1)
    assert found.value == 2
    assert found.exact
    assert found.proof == "preprocess.subsets"
    assert bounded(lambda part: 9.0, [], delta_f=1, empty=4).value == 4
    with pytest.raises(UsageError, match="at most"):
        bounded(len, range(LARGEST_GENERAL + 1), delta_f=1)
    with pytest.raises(UsageError, match="bounds"):
        bounded(len, [1, 2], delta_f=1, bounds=(0, 1))


@pytest.mark.parametrize(
    "broken",
    [
        lambda part: 1 / 0,
        lambda part: float("nan"),
        lambda part: part[7],
        lambda part: str(SECRET) + "x",
        lambda part: None,
    ],
)
def test_a_function_that_fails_is_refused_without_its_words(broken):
    for call_it in (bounded, bounded_pair):
        with pytest.raises(UsageError) as caught:
            call_it(broken, [SECRET, 1.0], delta_f=1)
        assert str(SECRET) not in caught.value.render()
        assert caught.value.__cause__ is None
        assert caught.value.__context__ is None


def test_a_registered_function_names_its_assumption():
    function = register_ordered("top_two", lambda x: float(x[-2:].sum()), trials=50)
    found = bounded(function, [1.0, 2.0, 3.0], delta_f=10)
    assert found.value == pytest.approx(5.0)
    assert found.promise.assumptions == (
        "top_two is ordered (claimed; 50 random tries did not refute it)",
    )
    assert "assuming that top_two is ordered" in str(found)
    assert bounded(function, [], delta_f=1, empty=7).value == 7
    with pytest.raises(UsageError, match="would not end"):
        bounded(function, np.zeros(LARGEST_CALLED + 1), delta_f=1)
    own = bounded(function, [1.0, 2.0, 3.0], delta_f=[10, 10, 1], classes=[10, 1])
    assert own.promise.assumptions


@pytest.mark.parametrize(
    "wrong",
    [
        lambda x: float(x[-1] - x[0]),
        lambda x: -float(x[0]),
        np.var,
        lambda x: float("nan"),
        lambda x: 1 / 0,
        lambda x: float(np.random.default_rng().random()),
    ],
)
def test_what_a_try_refutes_is_not_registered(wrong):
    with pytest.raises(UsageError):
        register_ordered("wrong", wrong)


@pytest.mark.parametrize(
    ("name", "function", "trials"),
    [("two words", min, 10), ("", min, 10), (3, min, 10), ("x", 3, 10), ("x", min, 0)],
)
def test_registering_checks_its_arguments(name, function, trials):
    with pytest.raises(UsageError):
        register_ordered(name, function, trials=trials)


def test_a_function_that_changes_its_input_does_no_harm():
    def rude(values):
        result = float(values[0])
        values[:] = 0
        return result

    found = bounded(register_ordered("rude", rude), [4.0, 5.0, 6.0], delta_f=10)
    assert found.value == pytest.approx(4.0)


def test_pairs():
    pairs = [[1.0, 2.0], [3.0, 5.0]]
    found = bounded_pair("mean", pairs, delta_f=100)
    assert found.value == pytest.approx((2.0, 3.5))
    assert found.exact
    assert found.promise.norm == "l1"
    assert "in the l1 norm" in str(found)
    assert bounded_pair("mean", [], delta_f=1, empty=(3, 4)).value == (3, 4)
    function = bounded_pair(
        lambda part: (len(part), -len(part)),
        ["a", "b"],
        delta_f=[2, 4],
        classes=[4, 2],
        neighbors="replace",
    )
    assert function.value == (1.5, -1.5)
    assert function.promise.individual == (2, 4)


@pytest.mark.parametrize(
    ("statistic", "values", "rest"),
    [
        ("median", [[1, 2]], {}),
        ("mean", np.array([1, 2]), {}),
        ("mean", np.array([[1, 2, 3]]), {}),
        ("mean", [[1, 2]], {"delta_f": [1], "classes": [1]}),
        ("mean", [[1, 2]], {"empty": 3}),
        ("mean", [[1, 2]], {"empty": (1, float("nan"))}),
        ("mean", [[1, 2]], {"delta_f": 0}),
        ("mean", [[1, 2]], {"neighbors": "none"}),
        (lambda part: (1,), [1], {}),
        (lambda part: 1.0, [1], {}),
        (lambda part: (1.0, float("nan")), [1], {}),
        (lambda part: (1.0, 2.0), 5, {}),
    ],
)
def test_pairs_are_checked(statistic, values, rest):
    with pytest.raises(UsageError):
        bounded_pair(statistic, values, **{"delta_f": 1, **rest})


@pytest.mark.parametrize("module", ["bounded", "preprocessing.registered", "inputs"])
def test_the_examples_in_the_docstrings_hold(module):
    results = doctest.testmod(importlib.import_module(f"secant.stats.{module}"))
    assert results.attempted
    assert not results.failed
