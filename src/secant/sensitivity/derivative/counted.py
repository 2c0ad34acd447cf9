"""Count the joined rows of a protected row where all of them add the same, and look at each value once.

In: sums over the joined rows of each row of a scan, and what is taken of them. Out: a plan that yields the same, in
which rows are counted by the scan's key and by the columns that the sums read, and everything else is computed once
for each of the few values of these columns and each count (derivative.gather (4)). None where joined rows differ in
more than that, or where values may be many: chosen by keys, types, declared ranges and the text. Never here: data.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace

from secant.plan import nodes as n
from secant.plan.facts.domain_size import values_within
from secant.plan.facts.regions import joined
from secant.plan.rewrites.hoist import hoisted
from secant.plan.rewrites.rewrite import columns_of, substitute
from secant.plan.rewrites.simplify import never_empty, shorter
from secant.plan.typing import type_of
from secant.records import frozen
from secant.schema.types import DOUBLE, INTEGER, Type

MOST_VALUES = 1 << 10
"""Values, at most, of all columns that are read together: gathering by more costs as much as what it spares."""
_STEPS = Type("DECIMAL", 19, 0)
"""Holds every whole number of 64 bits."""
_ROWS = Type("DECIMAL", 18, 0)
"""Holds any number of joined rows, of which there are fewer than 2^59; steps times rows have at most 37 digits."""


@frozen
class Sums:
    """Aggregates over the joined rows of each row of a scan, what is made of them, and aggregates over that."""

    role: str
    keys: tuple[n.Column, ...]
    """Columns of the scan that tell its rows apart, if none of them is empty."""
    core: n.Relation
    items: tuple[n.Named, ...]
    """What inner calls read, over the core."""
    inner: tuple[n.Aggregation, ...]
    between: tuple[n.Named, ...]
    outer: tuple[n.Aggregation, ...]


def counted(sums: Sums, name: str) -> n.Aggregate | None:
    """Write the outer aggregates over counted rows; None if something else than the scan's row decides a summand."""
    rows = joined(sums.core)
    scan = next((x for x in rows.leaves if isinstance(x, n.Scan) and x.alias == sums.role), None)
    present = never_empty(sums.core)
    if scan is None or not {k.name for k in sums.keys} <= present:
        return None
    definitions = {item.name: item.expression for item in sums.items}
    summands: dict[str, n.Scalar] = {}
    for call in sums.inner:
        if call.argument is not None:
            summand = n.Named(call.name, substitute(call.argument, definitions))
            summands[call.name] = shorter(summand, {}, present).expression
    read = [f for f in scan.columns if any(f.name in columns_of(x) for x in summands.values())]
    if not _few(summands.values(), read):
        return None
    times = n.Column(f"{name}.times", INTEGER)
    joined_rows = n.Aggregation(f"{name}.joined", "sum", times)
    values = tuple(n.Column(f.name, f.type) for f in read)
    by_row = n.Aggregate(
        sums.core,
        tuple(n.Named(c.name, c) for c in dict.fromkeys((*sums.keys, *values))),
        (n.Aggregation(times.name, "count", None),),
    )
    by_value = n.Aggregate(
        by_row, tuple(n.Named(c.name, c) for c in (*values, times)), (joined_rows,)
    )
    work = _Work(
        {c.name: c for c in sums.inner}, summands, times, n.Column(joined_rows.name, INTEGER)
    )
    parts = {item.name: item.expression for item in sums.between}
    items, outer = [], []
    for call in sums.outer:
        argument = None if call.argument is None else substitute(call.argument, parts)
        argument_column = (
            None if argument is None or call.distinct else work.over_values(call, argument)
        )
        if argument_column is None:
            return None
        items.append(n.Named(f"{call.name}.value", argument_column))
        outer.append(replace(call, argument=n.Column(items[-1].name, type_of(argument_column))))
    relation, projected = hoisted(by_value, tuple(items), f"{name}.once")
    return n.Aggregate(n.Project(relation, projected), (), tuple(outer))


def _few(scalars: Iterable[n.Scalar], read: list[n.Field]) -> bool:
    """Whether expressions read these columns alone, each moved into a range of few whole steps."""
    clamps: list[n.Clamp] = []
    for scalar in scalars:
        if n.has_subquery(scalar) or not columns_of(scalar) <= {f.name for f in read}:
            return False
        clamped = [x for x in n.walk(scalar) if isinstance(x, n.Clamp)]
        inside = {id(x.operand) for x in clamped}
        if any(isinstance(x, n.Column) and id(x) not in inside for x in n.walk(scalar)):
            return False
        clamps += clamped
    most = {f.name: 1 for f in read}
    for clamp in clamps:
        if isinstance(clamp.operand, n.Column):
            steps = values_within(clamp)
            if steps is None:
                return False
            most[clamp.operand.name] = max(most[clamp.operand.name], steps)
    return bool(read) and math.prod(most.values()) <= MOST_VALUES


@frozen
class _Work:
    """How inner calls are written where each joined row of a row adds the same."""

    inner: dict[str, n.Aggregation]
    taken: dict[str, n.Scalar]
    times: n.Column
    """In how many joined rows a row stands."""
    rows: n.Column
    """All joined rows of the rows that have these values and stand in as many."""

    def over_values(self, call: n.Aggregation, argument: n.Scalar) -> n.Scalar | None:
        """Write what an outer call takes of all rows of one value and count; None if it hangs on how many they are."""
        if call.function in ("min", "max"):
            parts = dict(self._parts(columns_of(argument)))
            return substitute(argument, parts) if columns_of(argument) <= parts.keys() else None
        own = self.inner.get(argument.name) if isinstance(argument, n.Column) else None
        if call.function != "sum" or own is None:
            return None
        if own.function == "count" and own.argument is None:
            return self.rows
        if own.function != "sum" or own.distinct or type_of(self.taken[own.name]) != INTEGER:
            return None
        steps = n.Cast(self.taken[own.name], _STEPS)
        return n.Arithmetic("*", steps, n.Cast(self.rows, _ROWS))

    def _parts(self, names: Iterable[str]) -> Iterator[tuple[str, n.Scalar]]:
        """Give what inner calls come to for one row."""
        for name in names:
            own = self.inner.get(name)
            if own is None or own.distinct:
                continue
            if own.argument is None:
                yield name, self.times
            elif own.function in ("min", "max"):
                yield name, self.taken[name]
            elif own.function == "sum" and type_of(own) == DOUBLE:
                yield name, n.Arithmetic("*", self.taken[name], n.Cast(self.times, DOUBLE))
