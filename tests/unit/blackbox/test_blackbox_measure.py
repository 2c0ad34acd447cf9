"""Results, norms, records and distributions."""

import math
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from secant.blackbox import Distribution, exponential, normal, resample, uniform
from secant.blackbox.distributions import distribution_of
from secant.blackbox.measure import Misbehaved, converted, rounded_up, ruler_of
from secant.blackbox.records import neighbors, size_of
from secant.errors import UsageError


@pytest.mark.parametrize(("norm", "expected"), [("l1", 7.0), ("l2", 5.0), ("linf", 4.0)])
def test_the_named_norms(norm, expected):
    ruler = ruler_of(norm)
    one, two = ruler.read([1, 2, 3]), ruler.read([4, 2, 7])
    assert ruler.apart(one, two) == expected
    assert ruler.apart(one.reshape(1, 3), two.reshape(1, 3)) == expected
    assert ruler.apart(one, one) == 0


def test_the_euclidean_norm_neither_vanishes_nor_overflows():
    ruler = ruler_of("l2")
    small, large = ruler.read([3e-300, 4e-300]), ruler.read([3e300, 4e300])
    zero = ruler.read([0.0, 0.0])
    assert ruler.apart(small, zero) == pytest.approx(5e-300, rel=1e-15)
    assert ruler.apart(large, zero) == pytest.approx(5e300, rel=1e-15)


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
def test_a_rounded_up_distance_covers_the_real_one(norm):
    generator, ruler = np.random.default_rng(3), ruler_of(norm)
    for size in (1, 2, 7, 300):
        one, two = (ruler.read(generator.normal(size=size) * 10.0**scale) for scale in (0, -8))
        gaps = [
            abs(Fraction(a) - Fraction(b)) for a, b in zip(one.tolist(), two.tolist(), strict=True)
        ]
        bound = rounded_up(ruler.apart(one, two), size)
        if norm == "l2":
            assert bound**2 >= sum(gap**2 for gap in gaps)
        else:
            assert bound >= (sum(gaps) if norm == "l1" else max(gaps))
        assert bound <= Fraction(ruler.apart(one, two)) * (1 + Fraction(1, 10**6))


def test_rounding_up_at_the_ends_of_floats():
    assert rounded_up(0.0, 5) == 0
    assert rounded_up(5e-324, 5) >= Fraction(1, 1 << 900)


def test_norms_bound_each_other():
    generator = np.random.default_rng(5)
    norms = {"l1": 1, "l2": 2, "linf": math.inf}
    for _ in range(300):
        size = int(generator.integers(1, 9))
        vector = generator.normal(size=size) * (generator.random(size) < 0.7)
        for measured, p in norms.items():
            for needed, q in norms.items():
                value = Fraction(float(np.linalg.norm(vector, p)))
                bound = converted(value, measured, needed, size)
                assert bound >= Fraction(float(np.linalg.norm(vector, q))) * (
                    1 - Fraction(1, 10**12)
                )
    assert converted(Fraction(1), "linf", "l1", 9) == 9
    assert converted(Fraction(1), "linf", "l2", 9) >= 3
    assert converted(Fraction(1), "l1", "linf", 9) == 1


@pytest.mark.parametrize(
    ("result", "reason"),
    [
        ("text", "other than numbers"),
        ("3.5", "other than numbers"),
        (None, "other than numbers"),
        ([1, [2, 3]], "other than numbers"),
        ([], "no numbers"),
        (math.nan, "NaN"),
        ([1, math.inf], "NaN"),
        (1 + 2j, "other than numbers"),
    ],
)
def test_results_that_cannot_be_used(result, reason):
    with pytest.raises(Misbehaved, match=reason):
        ruler_of("l1").read(result)


def test_functions_are_compared_at_points():
    ruler = ruler_of("linf", points=[0, 0.5, 1])
    one, two = ruler.read(lambda p: p[0]), ruler.read(lambda p: p[0] ** 2)
    assert ruler.apart(one, two) == 0.25
    with pytest.raises(Misbehaved, match="not a function"):
        ruler.read(3.0)
    with pytest.raises(UsageError, match="one public point"):
        ruler_of("l1", points=[])
    for points in (["x"], [[math.nan]], [[[1.0]]]):
        with pytest.raises(UsageError, match="point"):
            ruler_of("l1", points=points)


def test_a_norm_of_ones_own():
    def words(one, two):
        return len(set(one) ^ set(two))

    ruler = ruler_of(words)
    assert ruler.name == "words"
    assert ruler.apart(ruler.read("abc"), ruler.read("abd")) == 2
    for wrong in (lambda a, b: -1, lambda a, b: math.nan, lambda a, b: "far"):
        with pytest.raises(Misbehaved, match="norm"):
            ruler_of(wrong).apart(1, 2)
    with pytest.raises(Misbehaved, match="farther"):
        ruler_of(lambda a, b: math.inf).apart(1, 2)


@pytest.mark.parametrize("norm", ["l3", 2, None, "L1"])
def test_norms_that_do_not_exist(norm):
    with pytest.raises(UsageError, match="norm"):
        ruler_of(norm)


def test_overflowing_distances_are_found():
    ruler = ruler_of("l1")
    with pytest.raises(Misbehaved, match="farther"):
        ruler.apart(ruler.read([1.7e308]), ruler.read([-1.7e308]))


@pytest.mark.parametrize(
    "records",
    [
        np.arange(5),
        np.arange(10).reshape(5, 2),
        list(range(5)),
        tuple(range(5)),
        pd.DataFrame({"a": range(5)}),
        pd.Series(range(5)),
        pl.DataFrame({"a": range(5)}),
        pl.Series(range(5)),
        pa.table({"a": list(range(5))}),
    ],
    ids=lambda records: f"{type(records).__module__.split('.')[0]}.{type(records).__name__}",
)
def test_neighbors_differ_in_the_last_record_only(records):
    one, two = neighbors(records, 4)
    assert type(one) is type(two) is type(records)
    assert len(one) == len(two) == 4
    first, second = (_rows(side) for side in (one, two))
    assert first[:3] == second[:3] == _rows(records)[:3]
    assert first[3] == _rows(records)[3]
    assert second[3] == _rows(records)[4]


def _rows(records):
    if hasattr(records, "to_pylist"):
        return records.to_pylist()
    if hasattr(records, "rows"):
        return records.rows()
    return np.asarray(records).tolist()


def test_labels_do_not_tell_neighbors_apart():
    one, two = neighbors(pd.DataFrame({"a": range(5)}, index=list("vwxyz")), 4)
    assert list(one.index) == list(two.index) == list("vwxy")


def test_neighbors_are_copies():
    records = np.arange(5.0)
    one, two = neighbors(records, 4)
    one[:] = -1
    assert two.tolist() == [0, 1, 2, 4]
    assert records.tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("records", [7, "text", {"a": 1}, None])
def test_what_has_no_records(records):
    with pytest.raises(UsageError, match="rows"):
        size_of(records)


def test_distributions_draw_what_they_say():
    generator = np.random.default_rng(1)
    assert uniform(2, 3).draw(1000, generator).min() >= 2
    assert uniform(0, 1, dimension=3).draw(7, generator).shape == (7, 3)
    assert normal(5, 0.001).draw(9, generator) == pytest.approx(5, abs=0.1)
    assert exponential(4.0).draw(20_000, generator).mean() == pytest.approx(0.25, rel=0.1)
    assert exponential(4.0).name == "exponential with rate 4"
    drawn = resample(pd.DataFrame({"a": [1, 2]}), name="survey 2019").draw(50, generator)
    assert set(drawn["a"]) == {1, 2}
    assert list(drawn.index) == list(range(50))
    assert len(resample([("a", 1)], name="one").draw(3, generator)) == 3


def test_a_sampler_needs_a_name():
    def incomes(count, generator):
        return generator.lognormal(size=count)

    assert distribution_of(incomes).name == "incomes"
    with pytest.raises(UsageError, match="no name"):
        distribution_of(lambda count, generator: [0] * count)
    for wrong in (3, "uniform", None):
        with pytest.raises(UsageError, match="sampler"):
            distribution_of(wrong)
    with pytest.raises(UsageError, match="name"):
        Distribution(" ", incomes)
    with pytest.raises(UsageError, match="draws by a function"):
        Distribution("incomes", 3)


@pytest.mark.parametrize(
    "make",
    [
        lambda: uniform(1, 0),
        lambda: uniform(0, math.nan),
        lambda: uniform(dimension=0),
        lambda: uniform(dimension=1.5),
        lambda: normal(0, 0),
        lambda: normal(math.inf, 1),
        lambda: exponential(-1),
        lambda: resample([], name="nothing"),
    ],
)
def test_distributions_that_cannot_be_meant(make):
    with pytest.raises(UsageError):
        make()
