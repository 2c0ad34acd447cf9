"""From what could differ after k changes to a smooth bound: the largest discounted value, rounded up.

In: a function of the number of changes, beta, and how fast the function can grow. Out: the supremum over all
k >= 0 of exp(-beta k) times it, never rounded down (residual.sup). Never here: data, and a range of k that depends on
it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import cache
from heapq import heappop, heappush

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


def largest_discounted(
    at: Callable[[int], Fraction | int], beta: Fraction, degree: int
) -> Fraction:
    """Give the supremum over integers k >= 0 of exp(-beta k) · at(k), rounded up (residual.sup).

    `at` is a polynomial in k with nonnegative coefficients and at most this degree, or the largest of such.
    """
    return largest_until(at, beta, last_useful(beta, degree))


def last_useful(beta: Fraction, degree: int) -> int:
    """Give a k from which on a polynomial of this degree grows by less than exp(beta) a step (residual.sup)."""
    if beta <= 0:
        raise UsageError("USE-001", "beta must be positive")
    return math.ceil(degree / beta)


def largest_until(at: Callable[[int], Fraction | int], beta: Fraction, last: int) -> Fraction:
    """Give the largest exp(-beta k) · at(k) with 0 <= k <= last, rounded up; `at` never falls (residual.sup)."""
    rate = float(beta)
    logs: dict[int, float] = {}

    def log_at(k: int) -> float:
        if k not in logs:
            logs[k] = logarithm(at(k))
        return logs[k]

    best = max(log_at(0), log_at(last) - rate * last)
    # No value between two ends is above the right end's, discounted as the left end is.
    waiting = [(-log_at(last), 0, last)]
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
        heappush(waiting, (rate * low - log_at(middle), low, middle))
        heappush(waiting, (rate * (middle + 1) - log_at(high), middle + 1, high))
    return max((discounted(at(k), beta, k) for k in near), default=Fraction(0))


def largest_split(polynomial: Polynomial, beta: Fraction, last: Split) -> Fraction:
    """Give the largest exp(-beta (s1 + ... + sm)) · polynomial(s) with 0 <= s <= last, rounded up (residual.sup).

    Coefficients are not negative, so no value in a box is above the sum of what each term can reach in it. Boxes are
    halved, the most promising first, until none but points may hold the largest value.
    """
    terms = {powers: c for powers, c in polynomial.items() if c}
    if not terms:
        return Fraction(0)
    most = max(terms.values())
    parts = [(float(Fraction(c, most)), powers) for powers, c in terms.items()]
    rate = float(beta)

    @cache
    def peak(power: int, low: int, high: int) -> float:
        # exp(-rate s) s^power rises until power / rate, and falls after it; 0 to the power 0 is 1
        s = min(max(power / rate, low), high)
        return math.exp(-rate * s) * s**power

    def most_in(low: Split, high: Split) -> float:
        return sum(part * math.prod(map(peak, powers, low, high)) for part, powers in parts)

    nowhere = (0,) * len(last)
    best = 0.0
    waiting = [(-most_in(nowhere, last), nowhere, last)]
    near: list[Split] = []
    while waiting:
        bound, low, high = heappop(waiting)
        if -bound < best * (1 - _FAR) or bound == 0:
            break
        widths = [far - at for at, far in zip(low, high, strict=True)]
        side = widths.index(max(widths))
        if not widths[side]:
            near.append(low)
            continue
        middle = (low[side] + high[side]) // 2
        below = (*high[:side], middle, *high[side + 1 :])
        above = (*low[:side], middle + 1, *low[side + 1 :])
        inside = tuple((at + far) // 2 for at, far in zip(low, high, strict=True))
        best = max(best, most_in(inside, inside))
        heappush(waiting, (-most_in(low, below), low, below))
        heappush(waiting, (-most_in(above, high), above, high))
    return max(
        (discounted(value_at(terms, point), beta, sum(point)) for point in near),
        default=Fraction(0),
    )


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
    exact = Fraction(value)
    return math.log(exact.numerator) - math.log(exact.denominator)
