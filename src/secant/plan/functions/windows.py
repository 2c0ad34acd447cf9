"""Window functions of a plan: result types, and what they compute from the rows of a partition in order.

In: for each row of a partition, in order, the values of a call's arguments, and which rows its frame holds. Out: one
value for each row. Never here: how rows are ordered and cut into partitions, which the caller does; aggregates over
frames are those of `plan.aggregates`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from types import MappingProxyType
from typing import Any

from secant.plan import nodes as n
from secant.plan.evaluate.values import Value
from secant.plan.functions.aggregates import AGGREGATES, SPREAD
from secant.records import frozen
from secant.schema import types as t
from secant.schema.types import Type


@frozen
class Partition:
    """The rows of one partition as a window function sees them: what each brings, and which are alike in order."""

    arguments: Sequence[Sequence[Any]]
    peers: Sequence[int]
    """For each row, how many runs of equal order keys lie before its own."""


@frozen
class WindowFunction:
    """One window function that is no aggregate."""

    name: str
    least: int
    most: int
    result: Callable[[Sequence[Type]], Type | None]
    apply: Callable[[Partition, int, Sequence[int]], Value]
    """Takes the partition, the place of a row in it, and the places that its frame holds."""
    framed: bool = False
    """Whether a frame decides what it sees."""
    ordered: bool = True
    """Whether rows of equal order keys may get different values: then something must decide among them."""


def _whole(_: Sequence[Type]) -> Type:
    return t.INTEGER


def _share(_: Sequence[Type]) -> Type:
    return t.DOUBLE


def _first_type(arguments: Sequence[Type]) -> Type | None:
    if len(arguments) > 1 and arguments[1].kind not in ("INTEGER", "NULL"):
        return None
    common: Type | None = arguments[0]
    for other in arguments[2:]:
        common = t.unify(common, other) if common is not None else None
    return common


def _buckets(arguments: Sequence[Type]) -> Type | None:
    return t.INTEGER if arguments[0].kind == "INTEGER" else None


def _rank(p: Partition, index: int, _: Sequence[int]) -> Value:
    return 1 + sum(x < p.peers[index] for x in p.peers)


def _percent_rank(p: Partition, index: int, _: Sequence[int]) -> Value:
    if len(p.peers) == 1:
        return 0.0
    before = sum(x < p.peers[index] for x in p.peers)
    return float(Fraction(before, len(p.peers) - 1))


def _cume_dist(p: Partition, index: int, _: Sequence[int]) -> Value:
    return float(Fraction(sum(x <= p.peers[index] for x in p.peers), len(p.peers)))


def _ntile(p: Partition, index: int, _: Sequence[int]) -> Value:
    buckets = p.arguments[index][0]
    if buckets is None or buckets < 1:
        return None
    size, larger = divmod(len(p.peers), buckets)
    if size == 0:
        return index + 1
    edge = larger * (size + 1)
    return 1 + (index // (size + 1) if index < edge else larger + (index - edge) // size)


def _shifted(sign: int) -> Callable[[Partition, int, Sequence[int]], Value]:
    def apply(p: Partition, index: int, _: Sequence[int]) -> Value:
        own = p.arguments[index]
        by = own[1] if len(own) > 1 else 1
        if by is None:
            return None
        there = index + sign * by
        if 0 <= there < len(p.arguments):
            value: Value = p.arguments[there][0]
            return value
        default: Value = own[2] if len(own) > 2 else None
        return default

    return apply


def _first(p: Partition, _: int, frame: Sequence[int]) -> Value:
    value: Value = p.arguments[frame[0]][0] if frame else None
    return value


def _last(p: Partition, _: int, frame: Sequence[int]) -> Value:
    value: Value = p.arguments[frame[-1]][0] if frame else None
    return value


def _nth(p: Partition, index: int, frame: Sequence[int]) -> Value:
    which = p.arguments[index][1]
    value: Value = None
    if which is not None and 1 <= which <= len(frame):
        value = p.arguments[frame[which - 1]][0]
    return value


_LIST = (
    WindowFunction("row_number", 0, 0, _whole, lambda p, index, _: index + 1),
    WindowFunction("rank", 0, 0, _whole, _rank, ordered=False),
    WindowFunction("dense_rank", 0, 0, _whole, lambda p, i, _: p.peers[i] + 1, ordered=False),
    WindowFunction("percent_rank", 0, 0, _share, _percent_rank, ordered=False),
    WindowFunction("cume_dist", 0, 0, _share, _cume_dist, ordered=False),
    WindowFunction("ntile", 1, 1, _buckets, _ntile),
    WindowFunction("lag", 1, 3, _first_type, _shifted(-1)),
    WindowFunction("lead", 1, 3, _first_type, _shifted(+1)),
    WindowFunction("first_value", 1, 1, _first_type, _first, framed=True),
    WindowFunction("last_value", 1, 1, _first_type, _last, framed=True),
    WindowFunction("nth_value", 2, 2, _first_type, _nth, framed=True),
)
WINDOW_FUNCTIONS: Mapping[str, WindowFunction] = MappingProxyType({f.name: f for f in _LIST})
WINDOW_AGGREGATES = ("count", "sum", "avg", "min", "max", *SPREAD)
"""Aggregates that every engine computes over frames."""


def window_type(function: str, arguments: Sequence[Type]) -> Type | None:
    """Give the type of a window call; None for an unknown function, and where arguments do not fit."""
    if function in WINDOW_AGGREGATES:
        if not arguments:
            return t.INTEGER if function == "count" else None
        return AGGREGATES[function].result(arguments[0]) if len(arguments) == 1 else None
    window = WINDOW_FUNCTIONS.get(function)
    if window is None or not window.least <= len(arguments) <= window.most:
        return None
    return window.result(arguments)


def breaks_ties(call: n.WindowCall) -> bool:
    """Whether the row's other values decide among rows of equal order keys, because the call tells them apart."""
    function = WINDOW_FUNCTIONS.get(call.function)
    frame = call.frame
    if function is None:  # an aggregate of rows that are counted one by one
        return (
            frame is not None and frame.unit == "rows" and (frame.start, frame.end) != (None, None)
        )
    if not function.framed:
        return function.ordered
    return not undecided(call)


def undecided(call: n.WindowCall) -> bool:
    """Whether the engine may choose among rows of equal order keys: a frame ends at all of them, and one is taken."""
    function, frame = WINDOW_FUNCTIONS.get(call.function), call.frame
    if function is None or not function.framed or frame is None or frame.unit == "rows":
        return False
    whole = (frame.start, frame.end) == (None, None)
    return not whole and not (call.function == "first_value" and frame.start is None)


def first_rows(numbered: frozenset[str], part: n.Scalar) -> int | None:
    """Give how many rows of each unit pass a condition on their number, at most; None for any other condition."""
    if not (
        isinstance(part, n.Compare)
        and isinstance(part.left, n.Column)
        and part.left.name in numbered
        and isinstance(part.right, n.Literal)
        and type(part.right.value) is int
    ):
        return None
    limit = part.right.value
    limits = {"=": min(1, max(limit, 0)), "<=": max(limit, 0), "<": max(limit - 1, 0)}
    return limits.get(part.op)
