"""Order statistics and MODE as counts of rows in public cells (rewrite.rank).

In: one such aggregate and what declared ranges say of its argument. Out: a public grid of points, and an
aggregate that counts the rows nearest to each point, group by group. Never here: a choice of a point, which
is the mechanism's.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction

from secant.plan import nodes as n
from secant.plan.evaluate.values import EPOCH, day_of
from secant.plan.facts.ranges import Ranges, as_number
from secant.plan.rewrites.measures import (
    WHOLE,
    Problem,
    Stopped,
    argument_text,
    literal,
    refuse_odd_sizes,
    undeclared,
)
from secant.plan.typing import type_of
from secant.records import frozen
from secant.schema import types as t

MOST_POINTS = 2**16
FRACTIONS = {"median": Fraction(1, 2), "min": Fraction(0), "max": Fraction(1)}
FUNCTIONS = (*FRACTIONS, "quantile_cont", "quantile_disc", "mode")
MOST_CANDIDATES = 1024
KINDS = ("INTEGER", "DECIMAL", "DOUBLE", "DATE")


@frozen
class Grid:
    """Evenly spaced public points: low, low + step, ..., as numbers (dates count as days)."""

    low: Fraction
    step: Fraction
    count: int
    exact: bool = False
    """Whether every value within the range is a point."""

    def number(self, index: int) -> Fraction:
        """Give a point as a number."""
        return self.low + index * self.step

    def value(self, index: int, kind: t.Type) -> object:
        """Give a point as a value of a type, rounded to what the type can say."""
        number = self.number(index)
        if kind.kind == "DATE":
            return EPOCH + datetime.timedelta(days=round(number))
        if kind.kind == "INTEGER":
            return round(number)
        if kind.kind == "DECIMAL":
            return Decimal(round(number * 10**kind.scale)).scaleb(-kind.scale)
        return float(number)

    def around(self, low: int, high: int) -> tuple[float, float]:
        """Give two numbers between which all values lie that are nearest to points from one to another."""
        half = Fraction(0) if self.exact else self.step / 2
        ends = self.number(low) - half, self.number(high) + half
        return _below(ends[0]), -_below(-ends[1])


def _below(number: Fraction) -> float:
    """Give a float that is not above a number."""
    near = float(number)
    return near if near <= number else math.nextafter(near, -math.inf)


@frozen
class Candidates:
    """Values that are listed beforehand, of which one is the most frequent."""

    values: tuple[object, ...]
    step: Fraction = Fraction(1)

    @property
    def count(self) -> int:
        """Give how many there are."""
        return len(self.values)

    def value(self, index: int, _: t.Type) -> object:
        """Give a candidate."""
        return self.values[index]


Points = Grid | Candidates


@frozen
class Ranked:
    """One order statistic of a release: which quantile, of which points, counted by which aggregate."""

    column: str
    fraction: Fraction | None
    """None for the mode: the point that most rows are nearest to."""
    type: t.Type
    """Type of the released value."""
    grid: Points
    cells: n.Aggregate
    """Keys of the release, then the index of a point: the number of rows nearest to it."""
    weight: float
    """How much the user's outputs lean on it; decides its share of epsilon. Public."""
    words: str
    of_units: bool = False
    """Whether units are counted, each at its own extreme, and not rows (rewrite.extreme)."""

    @property
    def counted(self) -> n.Aggregation:
        """Give what counts the rows of a cell."""
        (count,) = self.cells.aggregations
        return count

    @property
    def extreme(self) -> bool:
        """Whether this is the minimum or the maximum."""
        return self.fraction in (0, 1)

    @property
    def span(self) -> Fraction:
        """How far apart one row more can move the distances of two points, in rows (stability.rank, stability.mode)."""
        if self.fraction is None or self.extreme:
            return Fraction(1)
        return 2 * max(self.fraction, 1 - self.fraction)


@frozen
class _RankedCall:
    column: str
    fraction: Fraction | None
    type: t.Type
    argument: n.Column
    grid: Points
    words: str


Lists = Callable[[n.Scalar], "tuple[object, ...] | None"]
"""Gives the values that an expression may take, where they are listed beforehand."""


@dataclass
class RankedCalls:
    """The order statistics of one release while they are collected; equal ones are computed and paid once."""

    name: str
    wanted: list[_RankedCall] = field(default_factory=list)

    def output(
        self,
        call: n.Aggregation,
        ranges: Ranges,
        argument: Callable[[n.Scalar], n.Column],
        lists: Lists,
    ) -> n.Named:
        """Give the column that will hold the released statistic. `argument` brings its argument along."""
        if call.distinct:
            raise Stopped(
                Problem(
                    "rewrite.rank",
                    call,
                    f"{call.function} of different values cannot be read off numbers of rows",
                    "leave out DISTINCT",
                )
            )
        assert call.argument is not None
        grid: Points
        if call.function == "mode":
            grid = _candidates(call, call.argument, ranges, lists)
        else:
            grid = grid_of(call, call.argument, ranges)
        column = argument(call.argument)
        fraction = call.fraction if call.fraction is not None else FRACTIONS.get(call.function)
        kind = type_of(call)
        for earlier in self.wanted:
            if (earlier.argument.name, earlier.fraction, earlier.type) == (
                column.name,
                fraction,
                kind,
            ):
                return n.Named(call.name, n.Column(earlier.column, kind))
        word = _NAMES.get(call.function, "median")
        if call.fraction is not None:
            word = f"quantile {float(call.fraction):g}"
        description = f"{word} of {argument_text(call.argument)}"
        released = f"{self.name}.r{len(self.wanted)}"
        self.wanted.append(_RankedCall(released, fraction, kind, column, grid, description))
        return n.Named(call.name, n.Column(released, kind))

    def extremes_of(self, argument: str) -> tuple[str, ...]:
        """Give which extremes of an argument are asked for."""
        asked = {w.fraction for w in self.wanted if w.argument.name == argument}
        return tuple(name for name in ("min", "max") if FRACTIONS[name] in asked)

    def over(
        self,
        rows: Mapping[str, n.Relation],
        keys: tuple[n.Named, ...],
        extremes: Mapping[tuple[str, str], n.Relation],
    ) -> tuple[Ranked, ...]:
        """Count the cells over the enforced rows of each argument, whose statistics share one count.

        An extreme counts units, each at its own extreme, where there are such rows (rewrite.extreme).
        """
        counts: dict[tuple[str, str, Points], n.Aggregate] = {}
        ranked = []
        for w in self.wanted:
            side = side_of(w.fraction)
            alone = extremes.get((w.argument.name, side))
            key = w.argument.name, "" if alone is None else side, w.grid
            if key not in counts:
                number = len(counts)
                counted, value = rows[w.argument.name], w.argument
                if alone is not None:
                    counted, value = alone, n.Column(extreme_of(value.name), value.type)
                present = n.Filter(counted, _counted(value, w.grid))
                cell = n.Named(f"{self.name}.cell{number}", _index(value, w.grid))
                count = n.Aggregation(f"{self.name}.rows{number}", "count", None)
                counts[key] = n.Aggregate(present, (*keys, cell), (count,))
            cells = counts[key]
            ranked.append(
                Ranked(w.column, w.fraction, w.type, w.grid, cells, 1.0, w.words, alone is not None)
            )
        return tuple(ranked)


def extreme_of(argument: str) -> str:
    """Name the column of a unit's own extreme: a name of its own, as that of its values is another's."""
    return f"{argument}.extreme"


def side_of(fraction: Fraction | None) -> str:
    """Name the aggregate that gives an extreme; nothing for other quantiles."""
    return (
        {Fraction(0): "min", Fraction(1): "max"}.get(fraction, "") if fraction is not None else ""
    )


_NAMES = {"min": "minimum", "max": "maximum", "mode": "most frequent"}


def _candidates(call: n.Aggregation, argument: n.Scalar, ranges: Ranges, lists: Lists) -> Points:
    """Give the values among which the most frequent is chosen: each possible one, or those that are listed."""
    listed = (False, True) if type_of(argument).kind == "BOOLEAN" else lists(argument)
    if listed is not None and len(listed) <= MOST_CANDIDATES:
        return Candidates(listed)
    if type_of(argument).kind in KINDS and ranges.of(argument).bounded:
        grid = grid_of(call, argument, ranges)
        if grid.step == _own_step(argument, type_of(argument), ranges):
            return grid
    raise Stopped(
        Problem(
            "rewrite.range",
            call,
            "the most frequent value is chosen among values that are known beforehand, and these are not",
            "declare the column's values, or a range of whole numbers, decimals or dates",
        )
    )


def _counted(column: n.Column, grid: Points) -> n.Scalar:
    """Say which rows count: those that have a value, and one that can be chosen."""
    if isinstance(grid, Grid):
        return n.Not(n.IsNull(column))
    kind = type_of(column)
    return n.InList(column, tuple(n.Literal(value, kind) for value in grid.values))


def grid_of(call: n.Aggregation, argument: n.Scalar, ranges: Ranges) -> Grid:
    """Lay points over the declared range: each possible value if there are few, evenly spaced ones otherwise."""
    kind = type_of(argument)
    if kind.kind not in KINDS:
        raise Stopped(
            Problem(
                "rewrite.range",
                call,
                f"{call.function} is answered for numbers and dates only",
                "rank a number or a date",
            )
        )
    interval = ranges.of(argument)
    if not interval.bounded:
        columns = ", ".join(
            f"tables.{a}.columns.{b}.range" for a, b in undeclared(argument, ranges)
        )
        raise Stopped(
            Problem(
                "rewrite.range",
                call,
                "the ranked value has no bound that follows from declared ranges",
                f"declare {columns}"
                if columns
                else "rank columns with declared ranges, or what rows of single units sum up to",
            )
        )
    low, high = _within(kind, *interval.ends())
    refuse_odd_sizes(call, low, high, what="ranked", verb="rank")
    step = _own_step(argument, kind, ranges)
    if step is not None:
        if kind.kind != "DOUBLE":  # steps of doubles are counted from the end of the range
            low, high = low // step * step, -(-high // step) * step
        points = -((low - high) // step) + 1
        if points <= MOST_POINTS:
            return Grid(low, step, int(points), kind.kind != "DOUBLE")
    width = high - low
    return Grid(low, width / (MOST_POINTS - 1), MOST_POINTS) if width else Grid(low, Fraction(1), 1)


def _within(kind: t.Type, low: Fraction, high: Fraction) -> tuple[Fraction, Fraction]:
    """Keep to what the type can hold: a declared range may be wider, no value can."""
    if kind.kind == "DOUBLE":
        return low, high
    least, most = -Fraction(2**63), Fraction(2**63 - 1)
    if kind.kind == "DECIMAL":
        most = Fraction(10**kind.precision - 1, 10**kind.scale)
        least = -most
    elif kind.kind == "DATE":
        least = Fraction(day_of(datetime.date.min))
        most = Fraction(day_of(datetime.date.max))
    return min(max(low, least), most), max(min(high, most), least)


def _own_step(argument: n.Scalar, kind: t.Type, ranges: Ranges) -> Fraction | None:
    """Give the distance between neighboring values, where the type or the policy tells it."""
    if kind.kind != "DOUBLE":
        return Fraction(1, 10**kind.scale) if kind.kind == "DECIMAL" else Fraction(1)
    if isinstance(argument, n.Column) and argument.name in ranges.origins:
        declared = ranges.policy.column(*ranges.origins[argument.name])
        step = as_number(declared.step)
        return step if step is not None and step > 0 else None
    return None


def _index(column: n.Column, grid: Points) -> n.Scalar:
    """Give the number of the point nearest to a value moved into the range; cannot fail on any row."""
    kind = type_of(column)
    if isinstance(grid, Candidates):
        branches = (
            n.Branch(n.Compare("=", column, n.Literal(value, kind)), n.Literal(i, t.INTEGER))
            for i, value in enumerate(grid.values)
        )
        return n.Case(tuple(branches), n.Literal(None, t.NULL))
    low, high = grid.low, grid.number(grid.count - 1)
    magnitude = max(abs(low), abs(high))
    shifted: n.Scalar
    if kind.kind == "DATE":
        ends = [n.Literal(grid.value(i, kind), t.DATE) for i in (0, grid.count - 1)]
        shifted = n.Arithmetic("-", n.Clamp(column, *ends), ends[0])
    elif kind.kind != "DOUBLE" and magnitude * 10**kind.scale < WHOLE:
        clamped = n.Clamp(column, literal(low, kind), literal(high, kind))
        shifted = n.Arithmetic("-", clamped, literal(low, kind)) if low else clamped
    else:
        ends = [literal(low, t.DOUBLE, -1), literal(high, t.DOUBLE, +1)]
        clamped = n.Clamp(n.Cast(column, t.DOUBLE), *ends)
        shifted = n.Arithmetic("-", clamped, ends[0]) if low else clamped
    if grid.step == 1 and type_of(shifted).kind == "INTEGER":
        return shifted
    return n.Quantize(n.Cast(shifted, t.DOUBLE), grid.step)
