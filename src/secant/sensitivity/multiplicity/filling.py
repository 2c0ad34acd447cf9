"""From counts to a smooth bound: how many combinations there could be after k changes, discounted by exp(-beta k).

In: for many patterns at once, the rows of each other copy that fit (`counts`), the combinations that there are now
(`joined`), and which copies grow together. Out: sup over whole k of exp(-beta k) A(k), as doubles whose error
`margin` bounds (multiplicity.fill). Never here: where the counts come from, and a range of k that depends on them.
"""

from __future__ import annotations

import math
from fractions import Fraction

from secant.errors import UsageError
from secant.numeric.arrays import Floats, Wholes, np
from secant.records import frozen

_RELATIVE = 2.0**-38
"""More than the relative error of one discounted value: some hundred roundings of 2^-53 each."""
_SEARCH = 2.0**-78
"""More than four squared errors of a ratio of neighboring values, see multiplicity.fill."""
_FEW = 1 << 10
_CHUNK = 1 << 15
"""Patterns in one go: what is computed of them stays in the cache."""


@frozen
class Growth:
    """How copies grow: which share a table, and which hold the changed row itself already."""

    tables: tuple[int, ...]
    """For each column of `counts` the number of its table; one change adds a row to all copies of one table."""
    extra: tuple[int, ...]
    """1 where the copy may hold the changed row besides the rows that are counted, else 0."""

    @property
    def degree(self) -> int:
        """How many factors grow."""
        return len(self.tables)


def margin(beta: Fraction, degree: int) -> float:
    """Bound the relative error of a computed bound (multiplicity.fill); what is shown is raised by twice that."""
    rate = float(beta)
    if not (math.isfinite(rate) and rate > 0):
        raise UsageError("USE-001", "beta must be positive")
    bound = _RELATIVE + degree * _SEARCH / (rate * rate)
    if bound > rate / 16:
        raise UsageError("USE-001", "beta is too small for a smooth bound of row multiplicities")
    return bound


def discount(beta: Fraction, degree: int) -> float:
    """Give the rate to compute with: below beta by so much that rounding up leaves the bound beta-smooth."""
    lowered = beta - 5 * Fraction(margin(beta, degree))
    return math.nextafter(float(lowered), 0.0)


def raised(value: float, beta: Fraction, degree: int) -> Fraction:
    """Give a computed bound so that it is certainly not below the exact one."""
    return Fraction(value) * (1 + 2 * Fraction(margin(beta, degree)))


def smooth(counts: Floats, joined: Floats, fixed: Floats, growth: Growth, rate: float) -> Floats:
    """Give sup over whole k >= 0 of exp(-rate k) A(k) for each pattern (multiplicity.fill).

    counts: a row a pattern, a column a copy that grows; fixed: the product of what does not grow.
    """
    if growth.degree == 0:
        return joined.copy()
    first, back = _different(np.column_stack((joined, fixed, counts)))
    counts, joined, fixed = counts[first], joined[first], fixed[first]
    values = np.empty(len(joined))
    for start in range(0, len(joined), _CHUNK):
        part = slice(start, start + _CHUNK)
        values[part] = _smooth(counts[part], joined[part], fixed[part], growth, rate)
    return values[back]


def _different(figures: Floats) -> tuple[Wholes, Wholes]:
    """Give one place for each different row, and for each row which of them it is: many patterns are alike."""
    key = np.zeros(len(figures), dtype=np.int64)
    sizes = figures.max(axis=0, initial=0.0) + 1
    if len(figures) < _FEW or float(np.prod(sizes)) >= 2.0**62:
        every = np.arange(len(figures))
        return every, every
    for column, size in zip(figures.T, sizes, strict=True):
        key = key * int(size) + column.astype(np.int64)
    _, first, back = np.unique(key, return_index=True, return_inverse=True)
    return first, back


def _smooth(counts: Floats, joined: Floats, fixed: Floats, growth: Growth, rate: float) -> Floats:
    """Search the first k from which on A grows by less than exp(rate) a step: ratios only fall (multiplicity.fill)."""
    at = _Filled(counts, joined, fixed, growth)
    low = np.zeros(len(joined))
    high = np.full(len(joined), float(math.ceil(growth.degree / rate) + 1))
    step = math.exp(-rate)
    while np.any(low < high):
        middle = np.floor((low + high) / 2)
        rising = at(middle + 1) * step > at(middle)
        low = np.where(rising, middle + 1, low)
        high = np.where(rising, high, middle)
    largest: Floats = np.exp(-rate * low) * at(low)
    return largest


class _Filled:
    """A(k) = joined + fixed * (product of (counts + extra + shares of k) - product of counts), largest over shares."""

    def __init__(self, counts: Floats, joined: Floats, fixed: Floats, growth: Growth) -> None:
        self.joined, self.fixed, self.degree = joined, fixed, growth.degree
        self.single = len(set(growth.tables)) == 1
        self.counts = counts.T
        self.extra = np.broadcast_to(np.array(growth.extra, dtype=np.float64), counts.shape).T
        if not self.single:
            self._sort(growth)

    def _sort(self, growth: Growth) -> None:
        """Order the copies of each pattern by their height: rows in units of what one change adds to all of them."""
        copies = [growth.tables.count(t) for t in growth.tables]
        scale = math.lcm(*copies)
        self.scale = float(scale)
        weights = np.array([[scale // c] for c in copies], dtype=np.float64)
        started = (self.counts + self.extra) * weights
        order = np.argsort(started, axis=0, kind="stable")
        columns = np.arange(started.shape[1])
        # Heights above the lowest one: whole numbers, so their differences are exact.
        heights = started[order, columns]
        self.heights = heights - heights[:1]
        self.sums = np.cumsum(self.heights, axis=0)
        self.counts = self.counts[order, columns]
        self.extra = self.extra[order, columns]
        self.factor = (np.array(copies) / scale)[order]

    def __call__(self, k: Floats) -> Floats:
        """Give A(k). Terms are only added and multiplied: nothing cancels."""
        gained = np.zeros(len(k))
        product = self.fixed
        shares = None if self.single else self._shares(k)
        for index in range(self.degree):
            added = self.extra[index] + (k if shares is None else shares[index])
            gained = gained * (self.counts[index] + added) + product * added
            product = product * self.counts[index]
        return self.joined + gained

    def _shares(self, k: Floats) -> list[Floats]:
        """Fill the lowest first, as water does: each copy up to one level, by its own weight."""
        water = k * self.scale
        filled = np.ones(len(k))
        total = np.zeros(len(k))
        for index in range(1, self.degree):
            reached = (index * self.heights[index] - self.sums[index - 1]) < water
            filled = np.where(reached, index + 1.0, filled)
            total = np.where(reached, self.sums[index], total)
        return [
            np.maximum(water + total - filled * self.heights[position], 0.0)
            / filled
            * self.factor[position]
            for position in range(self.degree)
        ]
