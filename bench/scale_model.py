"""What a release moves between machines: records and bytes of each exchange, from sizes alone. Nothing is run here.

In: how many rows and people there are, how unevenly rows belong to people, into how many tasks a table is read. Out:
the stages of the statements that Secant sends for a kind of release, with the key by which each is shuffled.

Rows lie in tasks at random (the worst case: a table that is kept by person needs no exchange by person at all). The
rows of person i are then a Poisson number with mean `rows * share(i) / tasks` in each task, and what a task can do
before anything is sent (add up, or keep the first K rows of a person) follows from that.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

HEADER = 4 + 8
"""Bytes of a shuffled record besides its fields: how long it is, and which fields are NULL (up to 64)."""
FIELD = 8
_FAR = 500.0
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


def pairs(rows: float, people: People, tasks: float, parts: Sequence[float] = ()) -> float:
    """Give in how many (task, person) pairs there is a row: what is left when each task adds up by person.

    Each of the tasks has as many rows as the others, unless `parts` says which part of the rows each has.

    >>> round(pairs(1000, People(10), 1))
    10
    >>> round(pairs(1000, People(1e9), 100))
    1000
    >>> round(pairs(1000, People(10), 2, (1.0, 0.0)))
    10
    """
    alike = [(1.0, part) for part in parts] or [(tasks, 1 / tasks)]
    return sum(
        number * count * -math.expm1(-rows * share * part)
        for number, part in alike
        for count, share in classes(people)
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
    if mean > _FAR:  # it hardly strays
        return min(mean, float(limit))
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


# ── kinds of releases ────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Sizes:
    """How large the data are: rows of items, each of an order, and orders, each of a person."""

    items: float
    orders: float
    people: float
    """Those who have rows."""
    skew: float
    item_tasks: float
    order_tasks: float
    partitions: float
    """Tasks behind an exchange."""
    buckets: float
    """Parts of a table that is kept by person."""
    limit: int
    """Rows of a person that count."""
    sent_to_all: bool = True
    """Whether the orders of those who keep all their rows are few enough to be sent to every machine."""
    order_parts: tuple[float, ...] = ()
    """Which part of the orders each task has, where files are divided unevenly."""
    over_limit: tuple[float, float] | None = None
    """People with more orders than count, and their orders, where the owner knows; else foreseen from the skew."""

    def owners(self) -> People:
        """Give the people."""
        return People(self.people, self.skew)


@dataclass(frozen=True, slots=True)
class Case:
    """One kind of release: the question, how it is protected, and the stages of its statements."""

    name: str
    policy: str
    question: str
    stages: Callable[[Sizes], list[Stage]]


def _rows(s: Sizes) -> list[Stage]:
    return [
        Stage("read items", "", s.items),
        Stage("sums of groups", "group", 4 * s.item_tasks, 4, 32),
    ]


def _sum(s: Sizes) -> list[Stage]:
    each = pairs(s.orders, s.owners(), s.order_tasks, s.order_parts)
    heavy = min(s.order_tasks, heaviest(s.orders, s.owners()))
    return [
        Stage("read orders", "", s.orders),
        Stage("what each person adds", "person", each, 3, 16, heavy),
        Stage("the total", "nothing", 1, 2, 16),
    ]


def _sum_by_person(s: Sizes) -> list[Stage]:
    return [Stage("read orders", "", s.orders), Stage("the total", "nothing", s.buckets, 2, 16)]


def _counts(s: Sizes) -> list[Stage]:
    people = s.owners()
    each = pairs(s.orders, people, s.order_tasks, s.order_parts)
    heavy = min(s.order_tasks, heaviest(s.orders, people))
    many, theirs = s.over_limit or over(s.orders, people, s.limit)
    found = [
        Stage("read orders", "", 2 * s.orders),
        Stage("rows of each person, counted", "person", each, 2, 0, heavy),
        Stage("counts of groups", "group", 5 * s.order_tasks, 2, 16),
    ]
    if many:
        cut = kept(theirs, People(many, s.skew), s.order_tasks, s.limit)
        most = min(s.order_tasks * s.limit, heaviest(s.orders, people))
        found[0] = Stage("read orders", "", 3 * s.orders)
        found.append(Stage("rows of people over the limit", "person", cut, 3, 16, most))
    return found


def _joined(s: Sizes) -> list[Stage]:
    people = s.owners()
    found = [
        Stage("read items", "", 3 * s.items),
        Stage("read orders", "", 2 * s.orders),
        Stage("orders, for counting", "order", s.orders, 2),
        Stage("keys of items, for counting", "order", s.items, 1),
        Stage("rows of each person, counted", "person", pairs(s.items, people, s.partitions), 2),
        Stage("items, for ranking", "order", s.items, 4, 8),
        Stage("rows, for ranking", "person", s.items, 5, 8, heaviest(s.items, people)),
        Stage(
            "orders of those below the limit", "person", s.orders, 2, 0, heaviest(s.orders, people)
        ),
        Stage("sums of groups", "group", 3 * s.item_tasks, 3, 16),
    ]
    if not s.sent_to_all:
        found.append(Stage("orders below the limit", "order", s.orders, 1))
        found.append(Stage("items, of those below the limit", "order", s.items, 3, 8))
    return found


def ranked_at_once(s: Sizes) -> list[Stage]:
    """Give what the joined case would shuffle if all rows were ranked: one join, then every row to its person."""
    people = s.owners()
    rows = kept(s.items, people, s.partitions, s.limit)
    most = min(s.partitions * s.limit, heaviest(s.items, people))
    return [
        Stage("read items", "", s.items),
        Stage("read orders", "", s.orders),
        Stage("orders", "order", s.orders, 2),
        Stage("items", "order", s.items, 4, 8),
        Stage("first rows of each person", "person", rows, 5, 8, most),
        Stage("sums of groups", "group", 3 * s.partitions, 3, 16),
    ]


_ITEMS = "SELECT l_returnflag, {} sum(l_quantity) AS q FROM lineitem GROUP BY {}"
_TOTAL = "SELECT sum(o_totalprice) AS total FROM {}"
CASES = (
    Case("rows, sums of groups", "rows", _ITEMS.format("l_linestatus,", "1, 2"), _rows),
    Case("person, a sum", "unit", _TOTAL.format("orders"), _sum),
    Case(
        "person, a sum, kept by person",
        "by person",
        _TOTAL.format("orders_by_person"),
        _sum_by_person,
    ),
    Case(
        "person, counts of groups",
        "unit",
        "SELECT o_orderpriority, count(*) AS n FROM orders GROUP BY 1",
        _counts,
    ),
    Case("person, sums over a join", "unit", _ITEMS.format("", "1"), _joined),
)


# ── internet scale ───────────────────────────────────────────────────────────────────────────────

ROWS, PEOPLE = 1e12, 1e9
TASK_BYTES = 2**27
ROW_BYTES = 38.6
"""Of a line item in a Parquet file of TPC-H."""
SKEWS = (0.0, 1.0, 1.2)
PARTITIONS = 20_000.0
MOST = 2000
"""Rows of a person that count; there are a thousand a person."""


def internet_sizes(skew: float) -> Sizes:
    """Give sizes of 1e12 rows of 1e9 people; of a join, a quarter as many orders."""
    tasks = ROWS * ROW_BYTES / TASK_BYTES
    parts = PARTITIONS, PARTITIONS, MOST
    return Sizes(ROWS, ROWS / 4, PEOPLE, skew, tasks, tasks / 4, *parts, sent_to_all=False)


def internet() -> list[dict[str, Any]]:
    """Give the stages of every case at 1e12 rows, for each skew; tables of one kind of row have all 1e12."""
    found = []
    for skew in SKEWS:
        s = internet_sizes(skew)
        alone = replace(s, orders=ROWS, order_tasks=s.item_tasks)
        shown = [(c.name, c.stages(s if c.stages is _joined else alone)) for c in CASES]
        for name, stages in [*shown, ("person, sums over a join, all ranked", ranked_at_once(s))]:
            found.append({"case": name, "skew": skew, "stages": [_told(x) for x in stages]})
    return found


def _told(stage: Stage) -> dict[str, Any]:
    return {
        "what": stage.what,
        "by": stage.by,
        "records": stage.records,
        "bytes": stage.bytes,
        "heaviest": stage.heaviest,
    }
