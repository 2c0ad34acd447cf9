"""What a release moves between machines: records and bytes of each exchange, from sizes alone. Nothing is run here.

In: how many rows and people there are, how unevenly rows belong to people, into how many tasks a table is read. Out:
the stages of the statements that Secant sends for a kind of release, with the key by which each is shuffled.

Rows lie in tasks at random (the worst case: a table that is kept by person needs no exchange by person at all). The
rows of person i are then a Poisson number with mean `rows * share(i) / tasks` in each task, and what a task can do
before anything is sent (add up, or keep the first K rows of a person) follows from that.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

HEADER = 4 + 8
"""Bytes of a shuffled record besides its fields: how long it is, and which fields are NULL (up to 64)."""
FIELD = 8
_STEPS = 400
"""Classes of people by rank; ranks of one class have ends that differ by a constant factor."""


@dataclass(frozen=True, slots=True)
class People:
    """How the rows of a table belong to people."""

    count: float
    skew: float = 0.0
    """Zipf's exponent: person i has a share in proportion to i ** -skew; 0 is all alike."""


@dataclass(frozen=True, slots=True)
class Stage:
    """One exchange, or one reading of a table."""

    what: str
    by: str
    """The key of the exchange; "" for a table that is read where it lies."""
    records: float
    fields: int = 0
    texts: int = 0
    """Bytes of texts and wide decimals in a record, beside the 8 of each field."""
    heaviest: float = 0.0
    """Records that one key brings to one task."""

    @property
    def bytes(self) -> float:
        """Give the bytes that are sent, before they are compressed."""
        return self.records * (HEADER + FIELD * self.fields + self.texts) if self.by else 0.0


@cache
def classes(people: People) -> tuple[tuple[float, float], ...]:
    """Give classes of people: how many, and the share of all rows that each of them has."""
    if not people.skew:
        return ((people.count, 1 / people.count),)
    found = []
    for low, high in _ranks(people.count):
        mean = _power_sum(low, high, people.skew) / (high - low)
        found.append((high - low, mean))
    total = sum(count * weight for count, weight in found)
    return tuple((count, weight / total) for count, weight in found)


def _ranks(count: float) -> Iterator[tuple[float, float]]:
    """Divide ranks 0 to count: the first hundred each alone, then by a constant factor."""
    alone = min(100, int(count))
    yield from ((float(i), float(i + 1)) for i in range(alone))
    step = (count / alone) ** (1 / _STEPS)
    low = float(alone)
    while low < count * (1 - 1e-12):
        high = min(count, low * step)
        yield low, high
        low = high


def _power_sum(low: float, high: float, skew: float) -> float:
    """Give the sum of rank ** -skew over ranks above `low` up to `high`, by the integral between half ranks."""
    if high - low == 1:
        return float(high**-skew)
    a, b = low + 0.5, high + 0.5
    return math.log(b / a) if skew == 1 else (b ** (1 - skew) - a ** (1 - skew)) / (1 - skew)


def pairs(rows: float, people: People, tasks: float) -> float:
    """Give in how many (task, person) pairs there is a row: what is left when each task adds up by person.

    >>> round(pairs(1000, People(10), 1))
    10
    >>> round(pairs(1000, People(1e9), 100))
    1000
    """
    return tasks * sum(
        count * -math.expm1(-rows * share / tasks) for count, share in classes(people)
    )


def kept(rows: float, people: People, tasks: float, limit: int) -> float:
    """Give how many rows are left when each task keeps the first `limit` rows of each person.

    >>> round(kept(1000, People(10), 1, 5))
    50
    """
    return tasks * sum(
        count * _mean_up_to(rows * share / tasks, limit) for count, share in classes(people)
    )


def _mean_up_to(mean: float, limit: int) -> float:
    """Give the expectation of min(X, limit) for a Poisson number X."""
    if mean > limit + 40 * math.sqrt(limit) + 40:
        return float(limit)
    term, below, found = math.exp(-mean), 0.0, 0.0
    for k in range(limit):
        found += k * term
        below += term
        term *= mean / (k + 1)
    return found + limit * max(0.0, 1 - below)


def heaviest(rows: float, people: People) -> float:
    """Give how many rows the person with the most has."""
    return rows * max(share for _, share in classes(people))


def over(rows: float, people: People, limit: int) -> tuple[float, float]:
    """Give how many people have more rows than the limit, and how many rows they have together."""
    many = [(c, c * s * rows) for c, s in classes(people) if s * rows > limit]
    return sum(c for c, _ in many), sum(r for _, r in many)
