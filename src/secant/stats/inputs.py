"""The one reader of data for the statistics.

In: a numpy array, a pandas or Polars series, an Arrow array, a list or another sequence of numbers.
Out: a new float64 array of one dimension, all finite. A value never enters a message, and neither
does its position: both belong to the data. Nothing is imported that the caller has not imported.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from secant.errors import UsageError
from secant.ledger.amounts import as_written
from secant.numeric.parameters import Number

Values = npt.NDArray[np.float64]

FAR = 1e150
"""Values farther from 0 are moved to here, so that their squares and sums are finite."""
_NUMERIC = "iuf"


def values_of(values: object, *, what: str = "values", columns: int | None = None) -> Values:
    """Give the numbers in `values` as float64: one column, or a table of `columns` columns.

    >>> values_of([1, 2.5, 4])
    array([1. , 2.5, 4. ])
    """
    array = _numbers(values, what)
    if columns is not None and array.size == 0:
        array = array.reshape(0, columns)
    shape = (array.shape[1:] == (columns,)) if columns is not None else array.ndim == 1
    if not shape:
        wanted = "one column of numbers" if columns is None else f"rows of {columns} numbers"
        raise UsageError("USE-001", f"{what} must be {wanted}")
    if not np.isfinite(array).all():
        raise UsageError(
            "USE-001",
            f"{what} hold something that is not a finite number",
            hint="Drop or replace missing and infinite values by a rule that is public.",
        )
    return array


def bounds_of(bounds: object) -> tuple[Fraction, Fraction] | None:
    """Give a public range as two exact numbers in order, or None."""
    if bounds is None:
        return None
    if not isinstance(bounds, (tuple, list)) or len(bounds) != 2:
        raise UsageError("USE-001", "bounds are a pair: the lowest and the highest value")
    low, high = (public_number(bound, "a bound") for bound in bounds)
    if low > high:
        raise UsageError("USE-001", "bounds are reversed: the lowest comes first")
    return low, high


def clamped(values: Values, bounds: tuple[Fraction, Fraction] | None) -> Values:
    """Move what lies outside the public range to its edge (I2: enforced, not believed)."""
    if bounds is None:
        return np.clip(values, -FAR, FAR)
    return np.clip(values, float(bounds[0]), float(bounds[1]))


def written(value: Number, name: str) -> Fraction:
    """Give the decimal number that a person wrote."""
    return as_written(value, what=name)


def public_number(value: Number, name: str) -> Fraction:
    """Give a public parameter that floats can hold, as an exact rational."""
    number = written(value, name)
    if abs(number) > FAR:
        raise UsageError("USE-001", f"{name} is out of range")
    return number


def _numbers(values: object, what: str) -> Values:
    try:
        raw = _raw(values)
        if isinstance(raw, np.ma.MaskedArray):
            raw = raw.filled(np.nan) if raw.dtype.kind == "f" or not raw.mask.any() else None
        array = np.asarray(raw)
        if array.dtype.kind == "O":
            array = _objects(array)
        if array.size == 0 and array.dtype.kind in "OfUS":
            array = array.astype(np.float64)
        if array.dtype.kind not in _NUMERIC:
            raise TypeError("not numbers")
        # a copy: what the caller does to the data afterwards must not change a bound in progress
        return np.array(array, dtype=np.float64)
    except (TypeError, ValueError, OverflowError, AttributeError):
        pass  # the error's own text can quote a value
    raise UsageError(
        "USE-001",
        f"{what} cannot be read as numbers",
        hint="Pass a list, a numpy array, a pandas or Polars series, or an Arrow array of numbers.",
    )


def _raw(values: object) -> Any:
    """Give what numpy can take, by what the object can do rather than by its class."""
    if isinstance(values, (str, bytes, dict, set, frozenset)):
        raise TypeError("not a sequence of numbers")
    if hasattr(values, "to_numpy"):
        if hasattr(values, "combine_chunks"):  # an Arrow column in pieces
            return values.to_numpy()
        try:
            return values.to_numpy(zero_copy_only=False)  # an Arrow array
        except TypeError:
            return values.to_numpy()  # pandas and Polars
    if isinstance(values, np.ndarray) or hasattr(values, "__array__"):
        return values
    if isinstance(values, Iterable):
        return list(values)
    raise TypeError("not a sequence of numbers")


def _objects(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Read whole numbers of any size, decimals and fractions; a missing value becomes NaN."""
    numbers = (int, float, Decimal, Fraction, np.number)
    if any(
        isinstance(item, (bool, np.bool_)) or not (item is None or isinstance(item, numbers))
        for item in array.flat
    ):
        raise TypeError("not numbers")
    flat = [np.nan if item is None else float(item) for item in array.flat]
    return np.array(flat, dtype=np.float64).reshape(array.shape)
