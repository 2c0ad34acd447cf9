"""statistic.parts: histograms, and any statistic for each group of rows, at the price of one.

In: a column of values and one of labels, or a frame and names; public bins, categories or groups. Out: a record with a
noisy answer for every public bin or group, those without rows too. A group that is not on the list is not shown.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np

from secant.errors import UsageError, public_api
from secant.noise.mechanisms.laplace import DiscreteLaplaceNoise
from secant.noise.secrecy import Private
from secant.numeric.parameters import Number
from secant.records import frozen
from secant.sensitivity.bounds import GlobalBound
from secant.stats.budget import Done, paid
from secant.stats.calls import guarantee_of, quiet, terms_of
from secant.stats.counting import count
from secant.stats.inputs import check_lengths, check_values, mask_of, numbers_of, public_number
from secant.stats.release import maximum as largest
from secant.stats.release import (
    mean,
    median,
    proportion,
    quantile,
    std,
    total,
    trimmed_mean,
    variance,
)
from secant.stats.release import minimum as smallest
from secant.stats.results import (
    ADD_REMOVE,
    Cost,
    ErrorBar,
    Guarantee,
    Neighbors,
    Release,
    closing_lines,
    closing_values,
)

STATISTICS: dict[str, Callable[..., Release]] = {
    "count": count,
    "sum": total,
    "mean": mean,
    "trimmed_mean": trimmed_mean,
    "variance": variance,
    "std": std,
    "median": median,
    "quantile": quantile,
    "minimum": smallest,
    "maximum": largest,
    "proportion": proportion,
}
MOST_GROUPS = 1_000_000


@frozen
class Histogram:
    """Noisy counts of public bins; noise may make one negative."""

    labels: tuple[Any, ...]
    """A pair of ends, or a category, for each bin."""
    counts: tuple[int, ...]
    outside: int
    """What lies in no bin."""
    error: ErrorBar
    """Of each count by itself."""
    error_of_all: ErrorBar
    """Of all counts at once."""
    guarantee: Guarantee
    cost: Cost
    mechanism: str

    def __str__(self) -> str:
        rows = [
            f"  {label!s:<24} {number}"
            for label, number in zip(self.labels, self.counts, strict=True)
        ]
        return "\n".join(
            [
                f"histogram of {len(self.counts)} bins",
                *rows,
                f"  {'outside':<24} {self.outside}",
                f"  error      each {self.error.words}; all {self.error_of_all.words}",
                *closing_lines(self.guarantee, self.cost, self.mechanism, "a row is in one bin"),
            ]
        )

    def to_dict(self) -> dict[str, Any]:
        """Give the result as plain values, for JSON."""
        return {
            "statistic": "histogram",
            "labels": [list(label) if isinstance(label, tuple) else label for label in self.labels],
            "counts": list(self.counts),
            "outside": self.outside,
            "error": {"level": self.error.level, "amount": self.error.amount},
            "error_of_all": {"level": self.error_of_all.level, "amount": self.error_of_all.amount},
            **closing_values(self.guarantee, self.cost),
        }


@public_api
def histogram(
    values: object,
    *,
    epsilon: Number,
    edges: Sequence[Number] | None = None,
    categories: Sequence[Hashable] | None = None,
    budget: object = None,
    neighbors: Neighbors | None = None,
    level: Number = 0.95,
) -> Histogram:
    """Release how many values lie in each public bin: between `edges`, or equal to one of `categories`.

    A value on an edge counts above it, on the last one below. What lies in no bin is counted as `outside`, and so is
    what is missing or no number.

    >>> found = histogram([1, 1, 2, 7], edges=[0, 2, 4], epsilon=100)
    >>> found.counts, found.outside
    ((2, 1), 1)
    >>> histogram(["a", "b", "a"], categories=["a", "b", "c"], epsilon=100).counts
    (2, 1, 0)
    """
    terms = terms_of(values, epsilon=epsilon, budget=budget, neighbors=neighbors, level=level)
    if (edges is None) == (categories is None):
        raise UsageError("USE-001", "a histogram has either edges or categories, both public")
    cuts = _edges(edges) if edges is not None else []
    keys = _public_list(categories, "categories") if categories is not None else []
    bins = len(keys) or len(cuts) - 1
    moves = 1 if terms.neighbors == ADD_REMOVE else 2  # a replaced value leaves one bin for another
    noise = DiscreteLaplaceNoise().calibrate(
        GlobalBound(Fraction(moves)), epsilon=terms.epsilon, grid=1
    )
    if keys:
        check_labels(values)
    else:
        check_values(values)
    cost: Cost
    with paid(terms.budget, terms.epsilon, Done("histogram", noise)) as cost, quiet():
        if keys:
            places = _indices(labels_of(values), keys)
        else:
            numbers = numbers_of(values).tolist()
            places = np.array([_bin(cuts, value) for value in numbers], dtype=np.int64)
        exact = np.bincount(places, minlength=bins + 1).tolist()
        drawn = [int(n) for n in noise.draw_many([Private(Fraction(n)) for n in exact])]
    amounts = [
        float(noise.error(chance)) for chance in (terms.level, 1 - (1 - terms.level) / (bins + 1))
    ]
    bars = [
        ErrorBar(
            float(terms.level),
            amount,
            "value",
            f"within {amount:.4g} with probability {float(terms.level):g}",
        )
        for amount in amounts
    ]
    ends = [float(cut) for cut in cuts]
    return Histogram(
        tuple(keys) or tuple(pairwise(ends)),
        tuple(drawn[:-1]),
        drawn[-1],
        bars[0],
        bars[1],
        guarantee_of(terms),
        cost,
        noise.name,
    )


@frozen
class GroupReleases(Mapping[Any, Release]):
    """A release for each public group, paid for once."""

    releases: dict[Any, Release]
    guarantee: Guarantee
    cost: Cost

    def __getitem__(self, group: Any) -> Release:
        return self.releases[group]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.releases)

    def __len__(self) -> int:
        return len(self.releases)

    def __str__(self) -> str:
        rows = [
            f"  {group!s:<24} {release.value:.10g}  {release.error.words}"
            for group, release in self.releases.items()
        ]
        first = next(iter(self.releases.values()))
        paid = self.guarantee, self.cost, first.mechanism
        closing = closing_lines(*paid, "a row is in one group", ", for all groups together")
        return "\n".join([f"{first.statistic} of {len(self)} groups", *rows, *closing])

    def to_dict(self) -> dict[str, Any]:
        """Give the result as plain values, for JSON."""
        return {
            "groups": [
                {"group": group, **release.to_dict()} for group, release in self.releases.items()
            ],
            **closing_values(self.guarantee, self.cost),
        }


@public_api
def group_by(
    data: Any,
    by: Any,
    statistic: str,
    *,
    groups: Sequence[Hashable],
    epsilon: Number,
    column: str | None = None,
    budget: object = None,
    neighbors: Neighbors | None = None,
    level: Number = 0.95,
    **options: Any,
) -> GroupReleases:
    """Release a statistic for each group, at the price of one: a row is in one group.

    Args:
        data: A frame (pandas, Polars, Arrow, or a dict of columns), or the values themselves.
        by: The name of the frame's column of labels, or the labels themselves.
        statistic: `count`, `sum`, `mean`, `trimmed_mean`, `variance`, `std`, `median`, `quantile`, `minimum`,
            `maximum` or `proportion`.
        groups: The public list of groups; each has an answer, and rows of others are left out.
        epsilon: The price of all groups together.
        column: The name of the frame's column of values; a count needs none.
        budget: As for `median`.
        neighbors: As for `median`; where a row is replaced it may change groups, and each group has half of ε.
        level: As for `median`, of each group.
        options: What the statistic takes besides, such as `bounds`.

    >>> found = group_by([1, 2, 9], ["a", "a", "b"], "count", groups=["a", "b", "c"], epsilon=100)
    >>> [found[g].value for g in "abc"]
    [2.0, 1.0, 0.0]
    """
    if statistic not in STATISTICS:
        raise UsageError("USE-001", f"a statistic of groups is one of: {', '.join(STATISTICS)}")
    if {"n", "compare", "where"} & set(options) and options.get("n") != "private":
        raise UsageError("USE-001", "n, compare and where are not for groups")
    function = STATISTICS[statistic]
    numbers = mask_of if statistic == "proportion" else numbers_of
    keys = _public_list(groups, "groups")
    if isinstance(by, str) and column is None and statistic != "count":
        raise UsageError("USE-001", "which column? pass column=NAME")
    one_row = range(1)  # how many rows there are is not asked here
    terms = terms_of(one_row, epsilon=epsilon, budget=budget, neighbors=neighbors, level=level)
    # a replaced row leaves one group and joins another, and both tell
    share = terms.epsilon if terms.neighbors == ADD_REMOVE else terms.epsilon / 2
    arguments = {**options, "epsilon": share, "neighbors": ADD_REMOVE, "level": level}
    _tried(function, arguments)
    labels, values = _columns(data, by, column)
    check_labels(labels)
    if statistic != "count":
        check_values(values, mask=statistic == "proportion")
        check_lengths(labels, values)
    cost: Cost
    with (
        paid(terms.budget, terms.epsilon, Done(f"{statistic} by group")) as cost,
        quiet(),
    ):
        places = _indices(labels_of(labels), keys)
        read = np.zeros(len(places)) if statistic == "count" else numbers(values)
        if len(read) != len(places):
            raise UsageError("USE-001", "each value needs one label")
        releases = {
            key: function(read[places == index], **arguments) for index, key in enumerate(keys)
        }
    promise = guarantee_of(terms)
    return GroupReleases(
        {key: replace(one, guarantee=promise, cost=cost) for key, one in releases.items()},
        promise,
        cost,
    )


def _tried(function: Callable[..., Release], arguments: dict[str, Any]) -> None:
    """Find mistakes in public terms before anything is charged: on no values."""
    try:
        function([], **arguments)
    except TypeError:
        raise UsageError(
            "USE-001", "the statistic does not take these options, or misses one that it needs"
        ) from None


def check_labels(labels: Any) -> None:
    """Refuse what is no column, before anything is charged."""
    if isinstance(labels, (str, bytes)) or not hasattr(labels, "__iter__"):
        raise UsageError("USE-001", "labels must be a column")


def labels_of(labels: Any) -> list[Any]:
    """Give a column of labels as a list of Python's own values."""
    for name in ("to_pylist", "to_list", "tolist"):
        if hasattr(labels, name):
            as_list = getattr(labels, name)()
            return list(as_list)
    return list(labels)


def _columns(data: Any, by: Any, column: str | None) -> tuple[Any, Any]:
    """Give the columns of labels and of values that a call names; none of their entries is looked at."""
    values = data
    if isinstance(by, str):
        try:
            labels = data[by]
            values = labels if column is None else data[column]
        except (KeyError, IndexError, TypeError, ValueError):
            labels = None
        if labels is None:
            raise UsageError("USE-001", "the frame has no such column")
        by = labels
    return by, values


def _public_list(listed: Any, what: str) -> list[Any]:
    if isinstance(listed, (str, bytes)) or not isinstance(listed, Sequence):
        raise UsageError("USE-001", f"{what} are a public list")
    keys = list(listed)
    if not 0 < len(keys) <= MOST_GROUPS:
        raise UsageError("USE-001", f"{what} must be between 1 and {MOST_GROUPS}")
    try:
        distinct = len(set(keys))
    except TypeError:
        distinct = -1
    if distinct != len(keys):
        raise UsageError("USE-001", f"{what} must be hashable, and each listed once")
    return keys


def _indices(labels: list[Any], keys: list[Any]) -> Any:
    """Give the place of each label on the public list; of others, one beyond it."""
    index_of = {key: index for index, key in enumerate(keys)}

    def place(label: Any) -> int:
        try:
            index: int = index_of.get(label, len(keys))
        except Exception:  # noqa: BLE001 - it has no hash, or no equality: whatever it is, it is not listed
            return len(keys)
        return index

    return np.array([place(label) for label in labels], dtype=np.int64)


def _edges(edges: Sequence[Number]) -> list[Fraction]:
    if isinstance(edges, (str, bytes)) or len(edges) < 2:
        raise UsageError("USE-001", "edges are two or more numbers, from left to right")
    numbers = [public_number(edge, "an edge") for edge in edges]
    if any(right <= left for left, right in pairwise(numbers)):
        raise UsageError("USE-001", "edges must grow from left to right")
    return numbers


def _bin(cuts: list[Fraction], value: float) -> int:
    if math.isnan(value):
        return len(cuts) - 1
    if value == cuts[-1]:
        return len(cuts) - 2
    index = bisect_right(cuts, value) - 1
    return index if 0 <= index < len(cuts) - 1 else len(cuts) - 1
