"""The population variance, bounded: the best window of sorted values and a Δ for each value outside.

Rests on preprocess.variance.

In: sorted values and a public Δ. Out: g exactly, as a rational. Floats only choose which windows are
evaluated; what they choose is a superset of the best ones by a proved margin (preprocess.windows), and the windows are
evaluated in whole numbers.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import accumulate

import numpy as np

from secant.records import frozen
from secant.stats.inputs import Values
from secant.stats.preprocessing.best_window import promising_windows
from secant.stats.preprocessing.units import Whole

_GRID_BITS = 40
_CAP = 2.0**120
_PIECE = 256  # sums of so many products of two 26-bit numbers fit 64 bits
_HALF = 26


@frozen
class WholeValues:
    """Sorted values as whole multiples of a public step."""

    numbers: Values
    """Whole numbers, held in floats."""
    step: Fraction

    def scale(self, delta: Fraction) -> Fraction:
        """Give the square of a step in units of Δ."""
        return self.step * self.step / delta


def on_public_grid(values: Values, delta: Fraction) -> WholeValues:
    """Round values to a power of two near √Δ/2⁴⁰; the step depends on Δ alone, the order is kept."""
    root = (delta.numerator.bit_length() - delta.denominator.bit_length()) // 2
    power = root - _GRID_BITS
    with np.errstate(over="ignore"):
        numbers = np.rint(np.clip(np.ldexp(values, -power), -_CAP, _CAP))
    return WholeValues(numbers, Fraction(2) ** power)


def exact_variance(whole: WholeValues) -> Fraction:
    """Give the population variance of all values, unrounded; 0 for no values."""
    numbers = whole.numbers
    count = int(numbers.size)
    if not count:
        return Fraction(0)
    centered = numbers - numbers[count // 2]
    if np.abs(centered).max() < 2.0**52 and np.abs(numbers).max() < 2.0**52:
        total, squares = _sums_in_pieces(centered.astype(np.int64))
    else:  # floats this large are whole, but their differences need not be exact
        integers = [int(number) for number in numbers]
        total, squares = sum(integers), sum(number * number for number in integers)
    return _variance(count, total, squares) * whole.step**2


def bounded_variance(whole: WholeValues, delta: Fraction) -> Fraction:
    """Give g of the variance with Δ: Algorithm 3, through its closed form (preprocess.variance)."""
    count = int(whole.numbers.size)
    if count < 2:
        return Fraction(0)
    integers = [int(number) for number in whole.numbers]
    totals = list(accumulate(integers, initial=0))
    squares = list(accumulate((number * number for number in integers), initial=0))
    scale = whole.scale(delta)
    best = Fraction(count - 1)  # one value has no spread: all others are given up
    seen: set[tuple[int, int]] = set()
    for start, size in promising_windows(whole.numbers, float(scale)):
        total = totals[start + size] - totals[start]
        square = squares[start + size] - squares[start]
        if (size, size * square - total * total) not in seen:
            seen.add((size, size * square - total * total))
            best = min(best, _variance(size, total, square) * scale + (count - size))
    return best * delta


def was_clamped(whole: WholeValues) -> bool:
    """Say whether a value was so far out that it was moved."""
    return bool(np.abs(whole.numbers).max(initial=0.0) >= _CAP)


def variance_error_bound(values: Values, delta: float) -> float:
    """Give the bound of Theorem 1.8 on how far g lies below the variance; 0 where g = f is certain."""
    count = values.size
    if not count:
        return 0.0
    centered = (
        values - values[count // 2]
    )  # distances are right to the last digits, however far from 0
    centered -= centered.mean()
    squares = float((centered * centered).sum())
    spread = squares / count
    # Σ_j (x_i - x_j)² = n·x_i² + Σ x_j² for centered values
    shares = 4.0 * (count * centered * centered + squares) / count**2 - delta
    return max(spread - delta * count / 2, 0.0) + float(np.maximum(shares, 0.0).sum())


def _sums_in_pieces(numbers: Whole) -> tuple[int, int]:
    """Give the exact sum of whole numbers below 2⁵² and of their squares."""
    pad = -numbers.size % _PIECE
    table = np.concatenate((numbers, np.zeros(pad, dtype=np.int64))).reshape(-1, _PIECE)
    high, low = table >> _HALF, table & ((1 << _HALF) - 1)

    def total(product: Whole) -> int:
        return sum(int(piece) for piece in product.sum(axis=1))

    squares = (total(high * high) << 2 * _HALF) + (total(high * low) << (_HALF + 1))
    return total(table), squares + total(low * low)


def _variance(count: int, total: int, squares: int) -> Fraction:
    return Fraction(count * squares - total * total, count * count)
