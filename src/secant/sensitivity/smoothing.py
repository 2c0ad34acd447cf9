"""From what could differ after k changes to a smooth bound: the largest discounted value, rounded up.

In: a function of the number of changes, beta, and how fast the function can grow. Out: the supremum over all
k >= 0 of exp(-beta k) times it, never rounded down (residual.sup). Never here: data, and a range of k that depends on
it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from heapq import heappop, heappush
from itertools import product

from secant.errors import UsageError
from secant.numeric.ball import ball, upper, working_precision

BITS = 128
"""The result exceeds the supremum by less than one part in 2^100."""
Split = tuple[int, ...]
"""How many of the changes fall on each table."""
Polynomial = Mapping[tuple[int, ...], int]
"""Powers -> coefficient, none of them negative."""
_FAR = 1e-9
"""Logarithms this far apart are told apart by doubles: their own errors are below 1e-11."""
_STEEPEST = 600.0
"""Rises of logarithms whose exponentials are doubles."""


def largest_discounted(
    at: Callable[[int], Fraction | int], beta: Fraction, degree: int, *, convex: bool = True
) -> Fraction:
    """Give the supremum over integers k >= 0 of exp(-beta k) · at(k), rounded up (residual.sup).

    `at` is a polynomial in k with nonnegative coefficients and at most this degree, or the largest of such; where the
    smallest of such stands in it, it is not convex.
    """
    return largest_until(at, beta, last_useful(beta, degree), degree=degree, convex=convex)


def last_useful(beta: Fraction, degree: int) -> int:
    """Give a k from which on a polynomial of this degree grows by less than exp(beta) a step (residual.sup)."""
    if beta <= 0:
        raise UsageError("USE-001", "beta must be positive")
    return math.ceil(degree / beta)


def largest_until(
    at: Callable[[int], Fraction | int],
    beta: Fraction,
    last: int,
    *,
    degree: float = math.inf,
    convex: bool = False,
) -> Fraction:
    """Give the largest exp(-beta k) · at(k) with 0 <= k <= last, rounded up; `at` never falls (residual.sup).

    With a degree, c k gives at most c^degree times what k gives; `convex` says that no chord lies below the values.
    Either lets whole stretches of k be left out that lie near the largest value: this is done for each group.
    """
    rate = float(beta)
    logs: dict[int, float] = {}

    def log_at(k: int) -> float:
        if k not in logs:
            logs[k] = logarithm(at(k))
        return logs[k]

    def most_in(low: int, high: int) -> float:
        left, right = log_at(low), log_at(high)
        if low == high:
            return left - rate * low
        # No value between two ends is above the right end's, discounted as the left end is.
        largest = right - rate * low
        if low and degree < math.inf:
            far = min(max(degree / rate, low), high)
            largest = min(largest, left + degree * math.log(far / low) - rate * far)
        if convex and left > -math.inf and right - left < _STEEPEST:
            largest = min(largest, left - rate * low + _chord(right - left, high - low, rate))
        return largest

    best = max(log_at(0), log_at(last) - rate * last)
    waiting = [(-most_in(0, last), 0, last)]
    near: list[int] = []
    while waiting:
        bound, low, high = heappop(waiting)
        if -bound < best - _FAR or bound == math.inf:
            break
        if low == high:
            near.append(low)
            continue
        middle = (low + high) // 2
        best = max(best, log_at(middle) - rate * middle)
        heappush(waiting, (-most_in(low, middle), low, middle))
        heappush(waiting, (-most_in(middle + 1, high), middle + 1, high))
    return max((discounted(at(k), beta, k) for k in near), default=Fraction(0))


def _chord(rise: float, width: int, rate: float) -> float:
    """Give the largest log(1 + g t) - rate t with 0 <= t <= width, where 1 + g width is exp(rise)."""
    grown = math.expm1(rise)
    if grown <= rate * width:  # the chord rises by less than is discounted from its beginning on
        return 0.0
    at = min(1 / rate - width / grown, width)
    return math.log1p(grown * at / width) - rate * at


def largest_split(polynomial: Polynomial, beta: Fraction, last: Split) -> Fraction:
    """Give the largest exp(-beta (s1 + ... + sm)) · polynomial(s) with 0 <= s <= last, rounded up (residual.sup).

    Coefficients are not negative, so the logarithm of the polynomial is convex in the logarithms of s. Boxes are
    halved, the most promising first, until none but points may hold the largest value.
    """
    terms = {powers: c for powers, c in polynomial.items() if c}
    if not terms:
        return Fraction(0)
    boxes = _Boxes(terms, float(beta))
    nowhere = (0,) * len(last)
    best = -math.inf
    waiting = [(-boxes.most_in(nowhere, last), nowhere, last)]
    near: list[Split] = []
    while waiting:
        bound, low, high = heappop(waiting)
        if -bound < best - _FAR or bound == math.inf:
            break
        widths = [far - at for at, far in zip(low, high, strict=True)]
        # Zeros go first, for they have no logarithm; then what is widest in comparison with where it lies.
        side = max(range(len(last)), key=lambda j: widths[j] / low[j] if low[j] else widths[j] * 2)
        if not widths[side]:
            near.append(low)
            continue
        middle = (low[side] + high[side]) // 2 if low[side] else 0
        below = (*high[:side], middle, *high[side + 1 :])
        above = (*low[:side], middle + 1, *low[side + 1 :])
        inside = tuple((at + far) // 2 for at, far in zip(low, high, strict=True))
        best = max(best, boxes.at(inside))
        heappush(waiting, (-boxes.most_in(low, below), low, below))
        heappush(waiting, (-boxes.most_in(above, high), above, high))
    return max(
        (discounted(value_at(terms, point), beta, sum(point)) for point in near),
        default=Fraction(0),
    )


class _Boxes:
    """What a polynomial comes to, discounted, in boxes of changes: logarithms, as doubles."""

    def __init__(self, terms: Polynomial, rate: float) -> None:
        most = max(terms.values())
        self.parts = [(float(Fraction(c, most)), powers) for powers, c in terms.items()]
        self.rate = rate

    def _log(self, point: Sequence[float]) -> float:
        value = sum(part * math.prod(map(pow, point, powers)) for part, powers in self.parts)
        return math.log(value) if value else -math.inf

    def at(self, point: Split) -> float:
        """Give the value at a point."""
        return self._log(point) - self.rate * sum(point)

    def most_in(self, low: Split, high: Split) -> float:
        """Give a number that no value in a box is above."""
        rate, sides = self.rate, [j for j, at in enumerate(low) if high[j] > at]
        crude = self._log(high) - rate * sum(low)
        if not sides or crude == -math.inf or any(low[j] == 0 for j in sides):
            return crude
        # Over the logarithms a plane that is nowhere below the corners is nowhere below the values between them.
        center = [math.sqrt(at * far) for at, far in zip(low, high, strict=True)]
        slopes = self._slopes(center, sides)
        corners = product(
            *((low[j], high[j]) if j in slopes else (low[j],) for j in range(len(low)))
        )
        height = max(
            self._log(corner) - sum(slope * math.log(corner[j]) for j, slope in slopes.items())
            for corner in corners
        )
        plane = height - rate * sum(at for j, at in enumerate(low) if j not in slopes)
        for j, slope in slopes.items():
            s = min(max(slope / rate, low[j]), high[j])
            plane += slope * math.log(s) - rate * s
        return min(crude, plane)

    def _slopes(self, point: Sequence[float], sides: Sequence[int]) -> dict[int, float]:
        """Give how fast the logarithm of the polynomial rises with the logarithm of each side."""
        sizes = [part * math.prod(map(pow, point, powers)) for part, powers in self.parts]
        whole = sum(sizes)
        return {
            j: sum(size * powers[j] for size, (_, powers) in zip(sizes, self.parts, strict=True))
            / whole
            for j in sides
        }


def value_at(polynomial: Polynomial, point: Split) -> int:
    """Give the exact value of a polynomial."""
    return sum(
        coefficient * math.prod(s**p for s, p in zip(point, powers, strict=True) if p)
        for powers, coefficient in polynomial.items()
    )


def discounted(value: Fraction | int, beta: Fraction, k: int) -> Fraction:
    """Give exp(-beta k) · value, rounded up."""
    if k == 0:
        return Fraction(value)
    with working_precision(BITS):
        return upper((-ball(beta * k)).exp() * ball(value))


def logarithm(value: Fraction | int) -> float:
    """Give the natural logarithm as a double; minus infinity for 0."""
    if value == 0:
        return -math.inf
    if isinstance(value, int):
        return math.log(value)
    exact = Fraction(value)
    return math.log(exact.numerator) - math.log(exact.denominator)
