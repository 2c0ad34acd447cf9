"""The reader of data: everything that holds numbers, nothing else, and no value in a message."""

import array
from datetime import date
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from secant.errors import UsageError
from secant.stats.inputs import FAR, bounds_of, clamped, numbers_of, public_number, values_of

pandas = pytest.importorskip("pandas")
polars = pytest.importorskip("polars")
pyarrow = pytest.importorskip("pyarrow")

GOOD = {
    "list": [1, 2.5, 4],
    "tuple": (1, 2.5, 4),
    "generator": (v for v in (1, 2.5, 4)),
    "decimals": [Decimal(1), Fraction(5, 2), 4],
    "numpy": np.array([1, 2.5, 4]),
    "float32": np.array([1, 2.5, 4], dtype=np.float32),
    "array": array.array("d", [1, 2.5, 4]),
    "pandas": pandas.Series([1, 2.5, 4]),
    "pandas nullable": pandas.Series([1, 2.5, 4], dtype="Float64"),
    "polars": polars.Series([1.0, 2.5, 4.0]),
    "polars decimals": polars.Series([Decimal("1.0"), Decimal("2.5"), Decimal("4.0")]),
    "arrow": pyarrow.array([1, 2.5, 4]),
    "arrow chunks": pyarrow.chunked_array([[1, 2.5], [4.0]]),
    "unmasked": np.ma.array([1, 2.5, 4]),
}
BAD = {
    "text": "123456789",
    "numpy texts": np.array(["123456789"]),
    "nothing": None,
    "a number": 123456789,
    "numpy table": np.array([[123456789, 1], [2, 3]]),
    "numpy booleans": np.array([True]),
    "complex": np.array([123456789 + 1j]),
    "dates": np.array(["2020-01-01"], dtype="datetime64[D]"),
    "mapping": {123456789: 1},
    "polars texts": polars.Series(["123456789"]),
    "pandas texts": pandas.Series(["123456789"], dtype="string"),
    "pandas categories": pandas.Series(["123456789"], dtype="category"),
    "pandas frame": pandas.DataFrame({"a": [123456789], "b": [1]}),
    "arrow texts": pyarrow.array(["123456789"]),
    "arrow lists": pyarrow.array([[123456789]]),
    "polars lists": polars.Series([[123456789]]),
    "polars days": polars.Series([date(2020, 1, 1)]),
}
GAPS = {
    "nan": [7, float("nan")],
    "none": [7, None],
    "text": [7, "8"],
    "row": [7, [8]],
    "object": [7, object()],
    "complex": [7, 8j],
    "signaling": [7, Decimal("sNaN")],
    "masked": np.ma.array([7, 2], mask=[False, True]),
    "masked floats": np.ma.array([7, 2.0], mask=[False, True]),
    "masked objects": np.ma.array([7, "x"], mask=[False, True], dtype=object),
    "pandas": pandas.Series([7, None]),
    "pandas nullable": pandas.Series([7, None], dtype="Float64"),
    "pandas objects": pandas.Series([7, "x"], dtype=object),
    "polars": polars.Series([7, None]),
    "arrow": pyarrow.array([7, None]),
    "days": [7, np.datetime64("2020-01-01")],
}


@pytest.mark.parametrize("given", GOOD.values(), ids=GOOD)
def test_everything_that_holds_numbers_is_read(given):
    read = values_of(given)
    assert read.dtype == np.float64
    assert read.tolist() == [1.0, 2.5, 4.0]


@pytest.mark.parametrize("given", BAD.values(), ids=BAD)
def test_what_is_not_numbers_is_refused_without_a_value_in_the_message(given):
    with pytest.raises(UsageError) as caught:
        values_of(given)
    assert caught.value.code == "USE-001"
    assert "123456789" not in caught.value.render()
    assert caught.value.__context__ is None  # the inner error can quote a value


@pytest.mark.parametrize("given", GAPS.values(), ids=GAPS)
def test_what_is_missing_or_no_number_is_left_out_or_counts_as_a_public_number(given):
    assert values_of(given).tolist() == [7]
    assert values_of(given, missing=3.0).tolist() == [7, 3]
    assert np.isnan(numbers_of(given)).tolist() == [False, True]


def test_rows_with_a_gap_are_left_out_whole():
    rows = [[1, 2], [3, None], [4], 5, "67", [6, 7], (8, float("inf")), np.array([9.0, np.nan])]
    assert values_of(rows, columns=2).tolist() == [[1, 2], [6, 7], [8, FAR]]
    assert values_of(rows, columns=2, missing=[-1, -2]).tolist()[1:5] == [
        [3, -2], [-1, -2], [-1, -2], [-1, -2],
    ]  # fmt: skip


def test_values_that_are_too_large_are_far_away():
    huge = [10**400, -(10**400), float("inf"), Decimal("-1e999"), Fraction(10**400), 1e308]
    assert values_of(huge).tolist() == [FAR, -FAR, FAR, -FAR, FAR, FAR]


@pytest.mark.parametrize(
    "more", [None, "x", [1], 10**400, object(), np.array(3.0)], ids=lambda x: type(x).__name__
)
def test_no_value_changes_how_another_is_read(more):
    others = [True, 2**60 + 1, np.float32(0.1), Decimal("0.1"), 5e-324, np.array(5.0), "12", 7]
    alone, beside = numbers_of(others), numbers_of([*others, more])
    assert alone.tobytes() == beside[:-1].tobytes()
    one_by_one = np.concatenate([numbers_of([one]) for one in others])
    assert alone.tobytes() == one_by_one.tobytes()


@pytest.mark.parametrize(
    "given", [[], (), np.array([]), np.array([], dtype=int), pandas.Series([], dtype=float)]
)
def test_no_values_are_a_database_too(given):
    assert values_of(given).shape == (0,)


def test_the_data_are_copied():
    data = np.array([1.0, 2.0])
    read = values_of(data)
    data[0] = 7
    assert read[0] == 1


def test_pairs_are_read_and_other_shapes_refused():
    assert values_of([[1, 2], [3, 4], [5, 6]], columns=2).shape == (3, 2)
    assert values_of([], columns=2).shape == (0, 2)
    assert values_of(pandas.DataFrame({"a": [1], "b": [2]}), columns=2).tolist() == [[1, 2]]
    for wrong in (np.array([1, 2]), np.array([[1, 2, 3]]), np.array([[[1, 2]]])):
        with pytest.raises(UsageError):
            values_of(wrong, columns=2)


def test_bounds():
    assert bounds_of(None) is None
    assert bounds_of((0, "0.5")) == (0, Fraction(1, 2))
    for wrong in ((2, 1), (1,), 5, "01", (0, float("nan")), (0, float("inf")), (0, None)):
        with pytest.raises(UsageError):
            bounds_of(wrong)
    assert clamped(np.array([-1.0, 0.25, 9.0]), bounds_of((0, "0.5"))).tolist() == [0, 0.25, 0.5]


def test_public_numbers_fit_floats():
    assert public_number(2, "empty") == 2
    for wrong in (10**301, float("nan"), "x", True):
        with pytest.raises(UsageError):
            public_number(wrong, "empty")
