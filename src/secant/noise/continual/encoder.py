"""The whole square-root encoder: every step releases a weighted sum of all steps so far (continual.encoder).

In: a number of steps, and what was released. Out: whole coefficients, how far they carry a move, and the decoded steps.
The coefficients are 1024 times the power series of 1/sqrt(1 - x), rounded; decoding is in floats, after the release.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from secant.errors import UsageError
from secant.noise.continual.levels import number
from secant.noise.continual.records import Change, Output
from secant.numeric.arrays import Floats, np
from secant.records import frozen

FINENESS = 1024
"""The first coefficient: so fine, rounding the others costs less than 1 % of error up to LONGEST steps."""
FINEST = 1 << 14
"""Inner products of so fine coefficients fit into 64 bits."""
LONGEST = 1 << 15
"""More steps than this take a tree: each output would be a sum of as many numbers."""


@frozen
class Encoder:
    """A lower triangular matrix with equal diagonals, of whole numbers."""

    length: int
    fineness: int = FINENESS
    """The first coefficient. It is kept with the stream: coefficients never change on the way."""

    def __post_init__(self) -> None:
        if not 1 <= self.length <= LONGEST or not 1 <= self.fineness <= FINEST:
            raise UsageError("USE-001", f"an encoder takes 1 to {LONGEST} steps")

    def due(self, step: int, start: int) -> Iterator[Output]:
        """Give the one output of a step."""
        yield Output(
            f"e:{start + step}", start + 1, start + step, coefficients(self.length, self.fineness)
        )

    def squared(self, change: Change) -> int:
        """Bound the squared length of what is moved, in proportion to the sum of sizes (continual.encoder)."""
        steps = min(self.length, -(-change.size // change.each))
        one, row = lags(self, 1)[0], _row(self._lags(steps), steps)
        return change.size * min(change.size * one, change.each * row)

    def least_squared(self, change: Change) -> int:
        """The same for one encoder that sees all of the move: it may be smaller."""
        most = change.within(self.length) or self.length
        return min(self.squared(change), change.squared * _row(self._lags(most), most))

    def _lags(self, steps: int) -> tuple[int, ...]:
        return lags(self, steps // 2 + 1)

    def lagged(self, width: int | None) -> Floats:
        """Give the weights of noises, from the last step back, in a running total or in a sum of `width` last steps."""
        running = np.cumsum(decoding(self))
        if width is not None and width < self.length:
            running[width:] -= running[: self.length - width].copy()
        return running

    def read(self, released: Mapping[str, int], start: int, steps: int) -> Floats:
        """Give the released numbers of the first `steps` steps after `start`."""
        names = (f"e:{start + step}" for step in range(1, steps + 1))
        return np.array([number(released, name) for name in names], np.float64)

    def decoded(self, numbers: Floats) -> Floats:
        """Give the steps that would have led to the numbers without noise."""
        size = len(numbers)
        if size == 0:
            return numbers
        analysis = 1 << (2 * size - 1).bit_length()
        inverse = decoding(self)[:size]
        both = np.fft.rfft(inverse, analysis) * np.fft.rfft(numbers, analysis)
        return np.asarray(np.fft.irfft(both, analysis)[:size], np.float64)

    def to_dict(self) -> dict[str, Any]:
        """Give it as plain data."""
        return {"length": self.length, "fineness": self.fineness}


@lru_cache(maxsize=16)
def coefficients(length: int, fineness: int) -> tuple[int, ...]:
    """Give round(fineness·c_j), c_0 = 1, c_j = c_(j-1)·(2j-1)/(2j); they never rise."""
    rounded, c = [], 1.0
    for j in range(length):
        if j:
            c *= (2 * j - 1) / (2 * j)
        rounded.append(round(fineness * c))
    return tuple(rounded)


@lru_cache(maxsize=16)
def decoding(encoder: Encoder) -> Floats:
    """Give the first column of the inverse matrix."""
    length = encoder.length
    c = np.array(coefficients(length, encoder.fineness), np.float64)
    back = np.zeros(length)  # from the end on, so that products run through memory in order
    back[-1] = 1 / c[0]
    for j in range(1, length):
        back[length - 1 - j] = -np.dot(c[1 : j + 1], back[length - j :]) / c[0]
    inverse = back[::-1].copy()
    inverse.flags.writeable = False
    return inverse


@lru_cache(maxsize=64)
def lags(encoder: Encoder, count: int) -> tuple[int, ...]:
    """Give the inner products of columns that are 0, 1, 2, … steps apart, of which the first starts at once."""
    length = encoder.length
    c = np.array(coefficients(length, encoder.fineness), np.int64)
    return tuple(int(np.dot(c[k:], c[: length - k])) for k in range(min(count, length)))


def _row(products: tuple[int, ...], steps: int) -> int:
    """Give the most that inner products of one column with itself and others add up to, `steps` in all."""
    around = products[: (steps - 1) // 2 + 1]
    total = around[0] + 2 * sum(around[1:])
    return total + (products[steps // 2] if steps % 2 == 0 else 0)
