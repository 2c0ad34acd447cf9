"""The one reader of data for the statistics.

In: a numpy array, a pandas or Polars series, an Arrow array, a list or another sequence of numbers.
Out: a new float64 array of one dimension, all finite. What is refused is refused for its container, its declared type
or its shape, which are public, and before anything is charged. No value makes a difference to that: each is read by a
rule of its own, and one that is missing or no number is left out, or counts as a public number. A value never enters
a message, and neither does its position: both belong to the data. Nothing is imported that the caller has not imported.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence, Sized
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
_NUMBERS = (int, float, Decimal, Fraction, np.integer, np.floating, np.bool_)
_PLAIN = (int, float, np.float64, np.float32, np.int64, np.int32)
_OTHER_TYPES = (
    "str", "utf8", "date", "time", "duration", "interval", "period", "binary", "list", "struct", "categor", "enum",
    "dictionary", "complex", "bool",
)  # fmt: skip
"""In names of types of columns that hold something else than numbers."""


def values_of(
    values: object,
    *,
    what: str = "values",
    columns: int | None = None,
    missing: float | Sequence[float] | None = None,
) -> Values:
    """Give the numbers in `values` as float64: one column, or a table of `columns` columns.

    What is missing or no number counts as `missing`, in a table one for each column; without it, the value or its whole
    row is left out. An infinite value is a very large one.

    >>> values_of([1, None, 2.5, 4])
    array([1. , 2.5, 4. ])
    >>> values_of([1, float("nan")], missing=7.0)
    array([1., 7.])
    """
    array = numbers_of(values, what=what, columns=columns)
    gaps = np.isnan(array)
    if missing is not None:
        array = np.where(gaps, np.asarray(missing, dtype=np.float64), array)
    elif gaps.any():
        array = array[~gaps] if columns is None else array[~gaps.any(axis=1)]
    return np.clip(array, -FAR, FAR)


def numbers_of(values: object, *, what: str = "values", columns: int | None = None) -> Values:
    """Give one number for every entry, in order: NaN for what is missing or no number, infinite ones as they are."""
    check_values(values, what=what, columns=columns)
    raw = _raw(values)
    if isinstance(raw, np.ma.MaskedArray):
        whole = np.ma.getdata(raw)
        filled = _items(whole, columns) if whole.dtype.kind == "O" else np.array(whole, np.float64)
        return np.where(np.ma.getmaskarray(raw), np.nan, filled)
    array = raw if isinstance(raw, np.ndarray) or not _plain(raw, columns) else np.asarray(raw)
    if isinstance(array, np.ndarray) and array.dtype.kind in _NUMERIC and _shaped(array, columns):
        # a copy: what the caller does to the data afterwards must not change a bound in progress
        return np.array(array, dtype=np.float64)
    return _items(raw, columns)


def mask_of(mask: object) -> Values:
    """Give 1 where a mask of booleans, or of zeros and ones, is true, 0 where it is false, NaN where it is neither."""
    check_values(mask, what="a mask", mask=True)
    raw = _raw(mask)
    whole = isinstance(raw, np.ndarray) and raw.dtype.kind == "b"
    numbers = numbers_of(raw.astype(np.float64) if whole else raw)
    return np.where((numbers == 0) | (numbers == 1), numbers, np.nan)


def check_values(
    values: object, *, what: str = "values", columns: int | None = None, mask: bool = False
) -> None:
    """Refuse what cannot be numbers by its container, its declared type or its shape; no value is looked at.

    Booleans are numbers of a `mask` only.
    """
    shape = "one column of numbers" if columns is None else f"rows of {columns} numbers"
    if isinstance(values, (str, bytes, dict, set, frozenset)) or not _holds_entries(values):
        raise _unreadable(what)
    if isinstance(values, np.ndarray):
        if values.dtype.kind not in _NUMERIC + "O" + "b" * mask:
            raise _unreadable(what)
        if not _shaped(values, columns) and not (values.ndim == 1 and values.dtype.kind == "O"):
            raise UsageError("USE-001", f"{what} must be {shape}")
        return
    declared = getattr(values, "dtype", None) or getattr(values, "type", None)
    name = "" if declared is None else str(declared).lower()
    if any(word in name for word in _OTHER_TYPES if not (mask and word == "bool")):
        raise _unreadable(what)
    extent = getattr(values, "shape", None)
    if isinstance(extent, tuple) and (
        not extent or extent[1:] != (() if columns is None else (columns,))
    ):
        raise UsageError("USE-001", f"{what} must be {shape}")


def check_lengths(*columns: object) -> None:
    """Refuse columns that do not go together, where they say how long they are; rows are added to all of them."""
    sizes = {len(column) for column in columns if isinstance(column, Sized)}
    if len(sizes) > 1:
        raise UsageError("USE-001", "the columns must have one entry for each row")


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


def decimal_of(value: Number, name: str) -> Fraction:
    """Give the decimal number that a person wrote."""
    return as_written(value, what=name)


def public_number(value: Number, name: str) -> Fraction:
    """Give a public parameter that floats can hold, as an exact rational."""
    number = decimal_of(value, name)
    if abs(number) > FAR:
        raise UsageError("USE-001", f"{name} is out of range")
    return number


def _unreadable(what: str) -> UsageError:
    return UsageError(
        "USE-001",
        f"{what} cannot be read as numbers",
        hint="Pass a list, a numpy array, a pandas or Polars series, or an Arrow array of numbers.",
    )


def _holds_entries(values: object) -> bool:
    return (
        isinstance(values, Iterable) or hasattr(values, "__array__") or hasattr(values, "to_numpy")
    )


def _raw(values: Any) -> Any:
    """Give what numpy can take, by what the object can do rather than by its class."""
    if hasattr(values, "to_numpy"):
        if hasattr(values, "combine_chunks"):  # an Arrow column in pieces
            return values.to_numpy()
        try:
            return values.to_numpy(zero_copy_only=False)  # an Arrow array
        except TypeError:
            return values.to_numpy()  # pandas and Polars
    if isinstance(values, np.ndarray):
        return values
    if hasattr(values, "__array__"):
        return np.asarray(values)
    return list(values)


def _plain(raw: Any, columns: int | None) -> bool:
    """Whether numpy may read a list at once: entry by entry comes to the same for these types, and takes longer."""
    if columns is None:
        entries = raw
    elif all(type(row) in (list, tuple) and len(row) == columns for row in raw):
        entries = [entry for row in raw for entry in row]
    else:
        return False
    return all(kind in _PLAIN for kind in set(map(type, entries)))


def _shaped(array: npt.NDArray[Any], columns: int | None) -> bool:
    return array.ndim == 1 if columns is None else array.ndim == 2 and array.shape[1] == columns


def _items(raw: Any, columns: int | None) -> Values:
    """Read entry by entry; a row that is no row of so many entries has no number in it."""
    if columns is None:
        return np.array([number_of(item) for item in raw], dtype=np.float64).reshape(len(raw))
    rows = [_row(item, columns) for item in raw]
    return np.array(rows, dtype=np.float64).reshape(len(rows), columns)


def _row(item: Any, columns: int) -> list[float]:
    several = isinstance(item, (list, tuple)) or (isinstance(item, np.ndarray) and item.ndim)
    if several and len(item) == columns:
        return [number_of(one) for one in item]
    return [math.nan] * columns


def number_of(item: object) -> float:
    """Give the float of one entry, NaN where it is no number; one that is too large is infinite."""
    if not isinstance(item, _NUMBERS):
        return math.nan
    try:
        return float(item)
    except OverflowError:
        return math.inf if item > 0 else -math.inf
    except (TypeError, ValueError, ArithmeticError):  # a signaling NaN
        return math.nan
