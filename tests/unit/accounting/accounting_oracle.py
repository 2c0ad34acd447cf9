"""Independent computations that the accounting is held against: brute force, exact or in mpmath.

Nothing here is imported from secant.ledger; formulas are written from the definitions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache, lru_cache

import mpmath
import numpy as np

mpmath.mp.dps = 60


def mp(value: object) -> mpmath.mpf:
    if isinstance(value, Fraction):
        return mpmath.mpf(value.numerator) / value.denominator
    return mpmath.mpf(value)


def brute_curve(releases: Sequence[tuple[object, object]]) -> Callable[[object], mpmath.mpf]:
    """δ(ε) of worst-case (ε_i, δ_i) releases, by enumerating every outcome {reveal, +, -}^k."""
    atoms = []
    for e, d in releases:
        e, d = mp(e), mp(d)
        plus, minus = (1 - d) / (1 + mpmath.exp(-e)), (1 - d) / (1 + mpmath.exp(e))
        # The masses under either database; a reveal under D cannot happen under D'.
        row = [(plus, minus), (minus, plus)]
        atoms.append([(d, mpmath.mpf(0)), *row] if d else row)
    masses = [(mpmath.mpf(1), mpmath.mpf(1))]
    for row in atoms:
        masses = [(p * first, q * second) for p, q in masses for first, second in row]

    def delta_of(epsilon: object) -> mpmath.mpf:
        threshold = mpmath.exp(mp(epsilon))
        return mpmath.fsum(p - threshold * q for p, q in masses if p > threshold * q)

    return delta_of


def brute_delta(releases: Sequence[tuple[object, object]], epsilon: object) -> mpmath.mpf:
    """One point of `brute_curve`."""
    return brute_curve(releases)(epsilon)


def binomial_delta(epsilon: object, count: int, whole: object) -> mpmath.mpf:
    """δ at `whole` of k-fold randomized response, summed over the number of minus signs."""
    e, g = mp(epsilon), mp(whole)
    total = mpmath.mpf(0)
    scale = (1 + mpmath.exp(e)) ** count
    for minus in range(count + 1):
        first = mpmath.exp((count - minus) * e)
        second = mpmath.exp(minus * e + g)
        if first > second:
            total += mpmath.binomial(count, minus) * (first - second)
    return total / scale


def printed_delta(epsilon: object, count: int, i: int) -> mpmath.mpf:
    """δ_i of the DPSQL notes, advanced composition 2, as it is printed there."""
    e = mp(epsilon)
    total = mpmath.mpf(0)
    for j in range(i):
        term = mpmath.exp((count - j) * e) - mpmath.exp((count - 2 * i + j) * e)
        total += mpmath.binomial(count, j) * term
    return total / (1 + mpmath.exp(e)) ** count


def invert(
    delta_of: Callable[[mpmath.mpf], mpmath.mpf], delta: object, top: object, steps: int = 70
) -> mpmath.mpf:
    """The least ε with δ(ε) ≤ δ, by halving."""
    low, high, target = mpmath.mpf(0), mp(top), mp(delta)
    if delta_of(low) <= target:
        return low
    for _ in range(steps):
        middle = (low + high) / 2
        if delta_of(middle) <= target:
            high = middle
        else:
            low = middle
    return high


def lattice_optimum(numerators: Sequence[int], denominator: int, delta: float) -> float:
    """The optimal ε of unequal pure releases ε_i = n_i/denominator, on the exact lattice of losses.

    All losses are whole multiples of 1/denominator, so nothing is rounded to a grid; the masses are
    extended floats. Beyond 40 deviations, less than 1e-300 is lost.
    """
    reach = min(sum(numerators), 40 * math.isqrt(sum(n * n for n in numerators)) + 1)
    masses = np.zeros(2 * reach + 1, dtype=np.longdouble)
    masses[reach] = 1
    for n in numerators:
        plus = np.longdouble(1) / (1 + np.exp(-np.longdouble(n) / denominator))
        moved = np.zeros_like(masses)
        moved[n:] += plus * masses[:-n]
        moved[:-n] += (1 - plus) * masses[n:]
        masses = moved
    losses = np.arange(-reach, reach + 1, dtype=np.longdouble) / denominator

    def delta_of(epsilon: float) -> float:
        above = losses > epsilon
        return float((masses[above] * -np.expm1(epsilon - losses[above])).sum())

    low, high = 0.0, sum(numerators) / denominator
    for _ in range(60):
        middle = (low + high) / 2
        if delta_of(middle) <= delta:
            high = middle
        else:
            low = middle
    return high


def gaussian_delta(shift: object, epsilon: object) -> mpmath.mpf:
    """δ(ε) between N(0,1) and N(shift,1)."""
    m, e = mp(shift), mp(epsilon)
    return mpmath.ncdf(m / 2 - e / m) - mpmath.exp(e) * mpmath.ncdf(-m / 2 - e / m)


def laplace_delta(size: object, epsilon: object) -> mpmath.mpf:
    """δ(ε), ε of any sign, of one Laplace release, from its two exponential tails."""
    s, e = mp(size), mp(epsilon)
    if e >= s:
        return mpmath.mpf(0)
    if e <= -s:
        return 1 - mpmath.exp(e)
    return 1 - mpmath.exp((e - s) / 2)


def two_laplaces_delta(first: object, second: object, epsilon: object) -> mpmath.mpf:
    """δ(ε) of two Laplace releases, integrating the second's curve over the first's noise."""
    s, e = mp(first), mp(epsilon)

    def inner(y: mpmath.mpf) -> mpmath.mpf:
        loss = s - 2 * y  # noise y between the two centers 0 and s
        return mpmath.exp(-y) / 2 * laplace_delta(second, e - loss)

    kinks = sorted({mpmath.mpf(0), s, *(k for k in _kinks(s, mp(second), e) if 0 < k < s)})
    middle = mpmath.quad(inner, kinks)
    return (
        laplace_delta(second, e - s) / 2
        + middle
        + mpmath.exp(-s) / 2 * laplace_delta(second, e + s)
    )


def _kinks(s: mpmath.mpf, other: mpmath.mpf, e: mpmath.mpf) -> tuple[mpmath.mpf, ...]:
    return ((s - e + other) / 2, (s - e - other) / 2)


def worst_adaptive(
    allowed: Callable[[tuple[int, ...]], bool], menu: Sequence[float], budget: float
) -> float:
    """δ at `budget` of the worst analyst who picks the next ε from `menu` in view of all answers.

    Exact dynamic programming over (how often each was used, the loss so far); a release runs only
    if `allowed` says so of the counts that it would lead to.
    """

    @cache
    def value(counts: tuple[int, ...], signs: tuple[int, ...]) -> float:
        loss = math.fsum(e * s for e, s in zip(menu, signs, strict=True))
        best = max(0.0, -math.expm1(budget - loss))
        for index, epsilon in enumerate(menu):
            following = _bump(counts, index, 1)
            if not may(following):
                continue
            plus = 1 / (1 + math.exp(-epsilon))
            worth = plus * value(following, _bump(signs, index, 1))
            worth += (1 - plus) * value(following, _bump(signs, index, -1))
            best = max(best, worth)
        return best

    may = lru_cache(maxsize=None)(allowed)
    zero = (0,) * len(menu)
    return value(zero, zero)


def _bump(row: tuple[int, ...], index: int, by: int) -> tuple[int, ...]:
    return (*row[:index], row[index] + by, *row[index + 1 :])
