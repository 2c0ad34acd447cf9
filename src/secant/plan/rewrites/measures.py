"""What is really measured: whole-number sums, and formulas that turn noisy ones into what the user asked for.

COUNT and SUM are their own measures. AVG is a sum about the middle of the range and a count; VARIANCE takes a sum of
squares besides. Every measure is a whole multiple of a public step, so that its noise can be exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction

from secant.numeric.arrays import required
from secant.plan import nodes as n
from secant.plan.facts.ranges import Ranges
from secant.plan.functions.aggregates import SPREAD
from secant.plan.rewrites.moments import average, covariance, variance
from secant.plan.rewrites.null_on_error import total
from secant.plan.rewrites.present import is_truth, paired, presence, valued
from secant.plan.rewrites.rewrite import columns_of
from secant.plan.rewrites.wide import REAL_BITS, wide_range
from secant.plan.show import same, same_call, show_scalar
from secant.plan.typing import type_of
from secant.records import frozen, replace
from secant.schema import types as t

GRID_BITS = 40  # a real summand is rounded to 2^-40 of its bound: far below any noise
FINE_BITS = 48  # where bounds may be far below the summand's own, and every row is rounded
LEAST_EXPONENT = -900  # one over a finer step would leave the doubles; a coarser one is as sound
WHOLE = 2**62
STEPS_OF_A_MOVE = 2**34
"""Whole steps in what one row may move a preprocessed statistic: the grid of preprocess.grid."""
WIDEST = Fraction(10) ** 100  # squares of larger numbers leave the doubles


@frozen
class Problem:
    """Why an aggregate cannot be enforced: rule, place, reason, and what to do."""

    rule: str
    node: n.Node
    reason: str
    hint: str


class Stopped(Exception):  # noqa: N818 - control flow between `measures` and `enforce` only
    """Carries a problem out of the middle of the work."""

    def __init__(self, problem: Problem) -> None:
        super().__init__()
        self.problem = problem


@frozen
class Preprocessed:
    """A statistic that is made to move by no more than a declared amount for one row (stability.moves)."""

    name: str
    """`mean`, `quantile` or `variance`."""
    share: Fraction | None
    """Which quantile."""
    moves: Fraction
    center: Fraction


@frozen
class Measure:
    """A whole-number sum over the enforced rows, or a statistic of theirs in whole steps."""

    column: str
    step: Fraction
    """What one whole unit is worth."""
    type: t.Type
    """Type of the released number."""
    weight: float
    """How much the user's outputs lean on it; decides its share of epsilon. Public."""
    words: str
    """What it is, for explain."""
    preprocessed: Preprocessed | None = None
    """Where the engine gives the values of a group, and what is computed from them."""
    divides: float = 0.0
    """What of the weight is of outputs that only divide by it."""
    wide: bool = False
    """Whether it adds up values of which nobody declared a range, in a public one that is very wide (rewrite.wide)."""


@dataclass
class Measures:
    """The measures of one release while they are collected; equal ones are computed and paid once."""

    name: str
    moving: bool = False
    """Whether only values move: sums need a finer grid then."""
    metric: bool = False
    """Whether databases are compared by how far values move, also where rows come and go: MIN and MAX are measures."""
    items: list[n.Named] = field(default_factory=list)
    """Arguments, computed for each row."""
    calls: list[n.Aggregation] = field(default_factory=list)
    measures: list[Measure] = field(default_factory=list)
    stated: Ranges | None = None
    """What is declared, without what was found privately, where sums need no more than that (rewrite.wide)."""
    resting: set[str] = field(default_factory=set)
    """The measures that rest on nothing that was found."""

    @property
    def bits(self) -> int:
        """How fine reals are summed: bounds may be far below the summand's own where values move."""
        return FINE_BITS if self.metric else GRID_BITS

    def output(self, call: n.Aggregation, ranges: Ranges) -> n.Named:
        """Give the formula that makes the user's aggregate from measures."""
        if call.function == "count":
            return n.Named(call.name, self._not_negative(self._count(call, weight=1.0)))
        if is_truth(call):
            return n.Named(call.name, self._truth(call))
        if call.second is not None:
            return n.Named(call.name, self._covariance(call, ranges))
        rule = _FORMULAS.get(call.function)
        if self.metric and call.function in ("min", "max"):
            rule = Measures.extreme_formula if self.moving else Measures.shifted_extreme_formula
        if rule is None:
            raise Stopped(
                Problem(
                    "rewrite.aggregate",
                    call,
                    f"{call.function} over protected rows has no measures yet",
                    "use count, sum, avg, variance, stddev, covar_pop, corr, median, quantile_cont, mode, min or max",
                )
            )
        assert call.argument is not None
        if self.stated is not None and call.function in ("sum", "avg") and not call.distinct:
            return n.Named(call.name, self._stated(call, self.stated, ranges))
        low, high = summed_range(call, ranges)
        return n.Named(call.name, rule(self, call, low, high))

    def _stated(self, call: n.Aggregation, stated: Ranges, ranges: Ranges) -> n.Scalar:
        """SUM and AVG by what is declared, in a wide range where that bounds nothing (rewrite.wide)."""
        assert call.argument is not None
        formula = self.sum_formula if call.function == "sum" else self.average_formula
        known = stated.of(call.argument)
        wide = None if known.bounded else wide_range(type_of(call.argument), known)
        if wide is None and not known.bounded:
            return formula(call, *summed_range(call, ranges))
        ends = summed_range(call, stated) if wide is None else wide.ends()
        value = formula(call, *ends, wide is not None)
        self.resting |= columns_of(value) & {m.column for m in self.measures}
        return value

    def _truth(self, call: n.Aggregation) -> n.Scalar:
        """BOOL_AND and BOOL_OR, MIN and MAX of truth values, say whether any row is against, or for it."""
        assert call.argument is not None
        looked_for = n.Not(call.argument) if call.function == "min" else call.argument
        marked = n.Case((n.Branch(looked_for, n.Literal(1, t.INTEGER)),), n.Literal(None, t.NULL))
        rows = n.Aggregation("", "count", marked, False, call.span)
        number = self._not_negative(self._count(rows, weight=1.0))
        return n.Compare("=" if call.function == "min" else ">", number, n.Literal(0, t.INTEGER))

    def _count(self, call: n.Aggregation, weight: float) -> n.Column:
        if call.argument is None:
            return self.count_rows(weight)
        argument = self.argument(call.argument if call.distinct else presence(call.argument))
        description = "number of different" if call.distinct else "number of"
        description = f"{description} {argument_text(call.argument)}"
        return self.measure(
            n.Aggregation("", "count", argument, call.distinct, call.span),
            Fraction(1),
            t.INTEGER,
            weight,
            description,
        )

    def count_rows(self, weight: float) -> n.Column:
        """Count rows."""
        return self.measure(
            n.Aggregation("", "count", None), Fraction(1), t.INTEGER, weight, "number of rows"
        )

    def argument(self, scalar: n.Scalar) -> n.Column:
        """Compute an argument once, below the truncation, and give its column."""
        scalar = total(scalar)
        for item in self.items:
            if same(item.expression, scalar):
                return n.Column(item.name, type_of(scalar))
        item = n.Named(f"{self.name}.value{len(self.items)}", scalar)
        self.items.append(item)
        return n.Column(item.name, type_of(scalar))

    def _sum(
        self,
        call: n.Aggregation,
        low: Fraction,
        high: Fraction,
        center: Fraction,
        power: int,
        weight: float,
        wide: bool = False,
    ) -> n.Column:
        """Sum (x - center)^power over clamped x, as whole multiples of a public step (rewrite.measure)."""
        assert call.argument is not None
        column = self.argument(call.argument)
        kind = type_of(column)
        # Counted in whole steps, so that no engine's sum of 2^60 rows can overflow.
        magnitude = max(abs(low), abs(high))
        exact = kind.kind in ("INTEGER", "DECIMAL") and power == 1
        exact = exact and magnitude * 10**kind.scale < WHOLE
        description = ("sum of " if power == 1 else "sum of squares of ") + argument_text(
            call.argument
        )
        if exact:
            step = Fraction(1, 10**kind.scale)
            lows, highs = low // step * step, -(-high // step) * step
            shift = center // step * step
            summand: n.Scalar = n.Clamp(column, literal(lows, kind), literal(highs, kind))
            if shift:
                summand = n.Arithmetic("-", summand, literal(shift, kind))
            released = t.INTEGER if kind.kind == "INTEGER" else t.decimal(38, kind.scale)
            call = n.Aggregation("", "sum", summand, call.distinct, call.span)
            return self.measure(call, step, released, weight, description, wide=wide)
        if self.moving and power == 1 and not center:
            return self._moving_sum(call, column, magnitude, weight, description)
        clamped = _clamped(column, low, high)
        summand = clamped
        if center:
            summand = n.Arithmetic("-", clamped, literal(center, t.DOUBLE))
        if power == 2:
            half = (high - low) ** 2 / 8
            summand = n.Arithmetic(
                "-", n.Arithmetic("*", summand, summand), literal(half, t.DOUBLE)
            )
        magnitude = max(abs(low - center), abs(high - center)) ** power
        step = _grid(magnitude, REAL_BITS if wide else self.bits)
        bound = _whole_bound(low, high, center, power, step)
        least = 0 if power == 1 and low >= center else -bound
        whole = n.Quantize(summand, step, least, bound)
        aggregation = n.Aggregation("", "sum", whole, call.distinct, call.span)
        return self.measure(aggregation, step, t.DOUBLE, weight, description, wide=wide)

    def _moving_sum(
        self,
        call: n.Aggregation,
        column: n.Column,
        magnitude: Fraction,
        weight: float,
        description: str,
    ) -> n.Column:
        """Sum floats whose columns are clamped already: what bounds them is how they move, not their size."""
        step = _grid(magnitude, FINE_BITS)
        whole = n.Quantize(n.Cast(column, t.DOUBLE), step)
        aggregation = n.Aggregation("", "sum", whole, call.distinct, call.span)
        return self.measure(aggregation, step, t.DOUBLE, weight, description)

    def extreme_formula(self, call: n.Aggregation, low: Fraction, high: Fraction) -> n.Scalar:
        """MIN and MAX of values that move: a whole multiple of a public step, like a sum."""
        assert call.argument is not None
        column = self.argument(call.argument)
        ends = literal(low, t.DOUBLE, -1), literal(high, t.DOUBLE, +1)
        step = _grid(max(abs(low), abs(high)), FINE_BITS)
        whole = n.Quantize(n.Cast(column, t.DOUBLE), step)
        description = f"{call.function} of {argument_text(call.argument)}"
        aggregation = n.Aggregation("", call.function, whole, False, call.span)
        return n.Clamp(self.measure(aggregation, step, t.DOUBLE, 1.0, description), *ends)

    def shifted_extreme_formula(
        self, call: n.Aggregation, low: Fraction, high: Fraction
    ) -> n.Scalar:
        """MIN and MAX where rows come and go, from the end that no rows count as: then those are 0.

        Rests on combined.min_max.
        """
        assert call.argument is not None
        end = high if call.function == "min" else low
        shifted = n.Arithmetic(
            "-", _clamped(self.argument(call.argument), low, high), literal(end, t.DOUBLE)
        )
        step = _grid(max(abs(low), abs(high)), self.bits)
        most = -((low - high) // step) + 1  # constants are rounded to floats
        whole = n.Quantize(shifted, step, *((-most, 0) if call.function == "min" else (0, most)))
        description = f"{call.function} of {argument_text(call.argument)}"
        aggregation = n.Aggregation("", call.function, whole, False, call.span)
        value = n.Arithmetic(
            "+", self.measure(aggregation, step, t.DOUBLE, 1.0, description), literal(end, t.DOUBLE)
        )
        return n.Clamp(value, literal(low, t.DOUBLE, -1), literal(high, t.DOUBLE, +1))

    def statistic(self, call: n.Aggregation, preprocessed: Preprocessed) -> n.Named:
        """Give the formula of a statistic that keeps to a declared sensitivity (stability.moves)."""
        assert call.argument is not None
        column, kind = self.argument(call.argument), type_of(call)
        values = n.Aggregation("", "array_agg", n.Cast(column, t.DOUBLE), False, call.span)
        description = f"{_statistic_name(call)} of {argument_text(call.argument)}"
        steps = self.measure(
            values, preprocessed.moves / STEPS_OF_A_MOVE, t.DOUBLE, 1.0, description, preprocessed
        )
        zero = literal(Fraction(0), t.DOUBLE)
        value: n.Scalar = n.Call("greatest", (steps, zero))
        if preprocessed.name != "variance":
            value = n.Arithmetic("+", steps, literal(preprocessed.center, t.DOUBLE))
        if call.function.startswith("stddev"):
            value = n.Call("sqrt", (value,))
        if kind.kind != "DOUBLE":  # what the type can hold: a number must not be what fails
            most = Fraction(10 ** min(15, kind.precision - kind.scale or 15) - 1)
            ends = literal(-most, t.DOUBLE), literal(most, t.DOUBLE)
            value = n.Cast(n.Clamp(value, *ends), kind)
        return n.Named(call.name, value)

    def measure(
        self,
        call: n.Aggregation,
        step: Fraction,
        kind: t.Type,
        weight: float,
        description: str,
        preprocessed: Preprocessed | None = None,
        wide: bool = False,
    ) -> n.Column:
        """Register a measure; equal ones are computed and paid once."""
        for index, earlier in enumerate(self.calls):
            other = self.measures[index].preprocessed
            if other == preprocessed and same_call(call, earlier):
                measure = self.measures[index]
                self.measures[index] = replace(measure, weight=measure.weight + weight)
                return n.Column(measure.column, measure.type)
        column = f"{self.name}.m{len(self.measures)}"
        self.measures.append(
            Measure(column, step, kind, weight, description, preprocessed, wide=wide)
        )
        self.calls.append(replace(call, name=column))
        return n.Column(column, kind)

    @staticmethod
    def _not_negative(column: n.Column) -> n.Scalar:
        return n.Call("greatest", (column, n.Literal(0, t.INTEGER)))

    def _number_of_values(self, call: n.Aggregation, weight: float) -> n.Scalar:
        count = self._count(replace(call, function="count"), weight)
        self._note_divisor(count.name, weight)
        return n.Cast(n.Call("greatest", (count, n.Literal(1, t.INTEGER))), t.DOUBLE)

    def _note_divisor(self, column: str, weight: float) -> None:
        """Remember how much of a measure's weight is of outputs that divide by it."""
        for index, measure in enumerate(self.measures):
            if measure.column == column:
                self.measures[index] = replace(measure, divides=measure.divides + weight)

    def sum_formula(
        self, call: n.Aggregation, low: Fraction, high: Fraction, wide: bool = False
    ) -> n.Scalar:
        """SUM is its own measure; a sum of values of one sign keeps that sign."""
        total_column = self._sum(call, low, high, Fraction(0), 1, 1.0, wide)
        if (
            total_column.type.kind == "DOUBLE"
            and type_of(call.argument or total_column).kind != "DOUBLE"
        ):
            raise Stopped(
                Problem(
                    "rewrite.range",
                    call,
                    "the summed value may be too large to be summed exactly",
                    "cast it to DOUBLE, or declare narrower ranges",
                )
            )
        zero = (
            n.Literal(0, t.INTEGER)
            if total_column.type.kind != "DOUBLE"
            else literal(Fraction(0), t.DOUBLE)
        )
        if low >= 0:
            return n.Call("greatest", (total_column, zero))
        return n.Call("least", (total_column, zero)) if high <= 0 else total_column

    def _mean(
        self, call: n.Aggregation, low: Fraction, high: Fraction, weight: float, wide: bool = False
    ) -> tuple[n.Scalar, Fraction]:
        """The mean of x - center, and the center: halving the range halves the noise."""
        assert call.argument is not None
        kind = type_of(call.argument)
        step = (
            Fraction(1, 10**kind.scale)
            if kind.kind in ("INTEGER", "DECIMAL")
            else _grid(high - low or Fraction(1))
        )
        # In a very wide range much would cost digits, and a center is chosen later; nothing would make it a plain sum.
        center = step if wide else (low + high) / 2 // step * step
        # Shares: the error of S/N is (dS, (mean - center) dN)/N; under a flat prior E(mean - center)^2 is a third.
        summed = self._sum(call, low, high, center, 1, weight, wide)
        count = self._number_of_values(call, weight / 3)
        return n.Arithmetic("/", n.Cast(summed, t.DOUBLE), count), center

    def average_formula(
        self, call: n.Aggregation, low: Fraction, high: Fraction, wide: bool = False
    ) -> n.Scalar:
        """AVG from a sum about the middle of the range, and a count."""
        return average(*self._mean(call, low, high, 1.0, wide), low, high)

    def _covariance(self, call: n.Aggregation, ranges: Ranges) -> n.Scalar:
        """COVAR_POP from a sum of products about both centers, two sums and a count."""
        assert call.argument is not None
        assert call.second is not None
        means, factors = [], []
        magnitude, width = Fraction(1), Fraction(1)
        for side in paired(call.argument, call.second):
            one = replace(call, function="avg", argument=side, second=None)
            low, high = summed_range(one, ranges)
            mean, center = self._mean(one, low, high, 1 / 3)
            shifted = _clamped(self.argument(side), low, high)
            factors.append(n.Arithmetic("-", shifted, literal(center, t.DOUBLE)))
            means.append(mean)
            magnitude *= max(abs(low - center), abs(high - center))
            width *= high - low
        step = _grid(magnitude)
        bound = -(-magnitude // step)
        whole = n.Quantize(n.Arithmetic("*", *factors), step, -bound, bound)
        description = (
            f"sum of products of {argument_text(call.argument)} and {argument_text(call.second)}"
        )
        summed = self.measure(
            n.Aggregation("", "sum", whole, False, call.span), step, t.DOUBLE, 1.0, description
        )
        count = self._number_of_values(one, 1 / 12)
        product = n.Arithmetic("/", n.Cast(summed, t.DOUBLE), count)
        return covariance(product, (means[0], means[1]), width)

    def variance_formula(self, call: n.Aggregation, low: Fraction, high: Fraction) -> n.Scalar:
        """VARIANCE from sums of x - center and of its squares less half of their range, and a count."""
        mean, center = self._mean(call, low, high, 1.0)
        squares = self._sum(call, low, high, center, 2, 1.0)
        count = self._number_of_values(call, 1 / 12)
        half = (high - low) ** 2 / 8
        second = n.Arithmetic(
            "+", n.Arithmetic("/", n.Cast(squares, t.DOUBLE), count), literal(half, t.DOUBLE)
        )
        return variance(call.function, second, mean, count, high - low)


_FORMULAS: dict[str, Callable[[Measures, n.Aggregation, Fraction, Fraction], n.Scalar]] = {
    "sum": Measures.sum_formula,
    "avg": Measures.average_formula,
    **dict.fromkeys(SPREAD, Measures.variance_formula),
}


_STATISTICS = {
    "avg": ("avg", "mean", None),
    "median": ("median", "quantile", Fraction(1, 2)),
    "min": ("min", "quantile", Fraction(0)),
    "max": ("max", "quantile", Fraction(1)),
    "quantile_cont": ("quantile", "quantile", None),
    "var_pop": ("variance", "variance", None),
    "stddev_pop": ("variance", "variance", None),
}
"""Aggregate -> (key of `moves`, statistic, which quantile)."""


def preprocessed_of(call: n.Aggregation, ranges: Ranges) -> Preprocessed | None:
    """Give the statistic of a column for which the policy says how far one row moves it; None for others."""
    if call.function not in _STATISTICS or call.distinct:
        return None
    origin = ranges.origin(call.argument)
    if origin is None or call.argument is None or not type_of(call.argument).numeric:
        return None
    facts = ranges.policy.column(*origin)
    key, name, share = _STATISTICS[call.function]
    if key not in facts.moves:
        return None
    share = call.fraction if call.function == "quantile_cont" else share
    center = Fraction(0) if name == "variance" else facts.center
    required("scipy")  # whoever cannot compute it is told before anything is spent
    return Preprocessed(name, share, facts.moves[key], center)


def _statistic_name(call: n.Aggregation) -> str:
    if call.fraction is not None:
        return f"quantile {float(call.fraction):g}"
    names = {"avg": "average", "min": "minimum", "max": "maximum", "median": "median"}
    return names.get(call.function, "variance")


def summed_range(call: n.Aggregation, ranges: Ranges) -> tuple[Fraction, Fraction]:
    """Give the bounds of what an aggregate sums; stop where it has none."""
    assert call.argument is not None
    if not type_of(call.argument).numeric:
        raise Stopped(Problem("rewrite.range", call, "only numbers can be summed", "sum a number"))
    interval = ranges.of(call.argument)
    if not interval.bounded:
        missing = undeclared(call.argument, ranges)
        columns = ", ".join(f"tables.{a}.columns.{b}.range" for a, b in missing)
        raise Stopped(
            Problem(
                "rewrite.range",
                call,
                "the summed value has no bound that follows from declared ranges",
                f"declare {columns}"
                if columns
                else "sum the rows themselves, not sums of inner groups",
            )
        )
    low, high = interval.ends()
    refuse_odd_sizes(call, low, high, what="summed", verb="sum")
    return low, high


def refuse_odd_sizes(
    call: n.Aggregation, low: Fraction, high: Fraction, *, what: str, verb: str
) -> None:
    """Stop where values of a range, or its width, may leave the engine's numbers."""
    magnitude, width = max(abs(low), abs(high)), high - low
    if magnitude > WIDEST or 0 < magnitude < 1 / WIDEST or 0 < width < 1 / WIDEST:
        raise Stopped(
            Problem(
                "rewrite.range",
                call,
                f"the {what} value may be too large or too small for the engine's numbers",
                f"{verb} values of a usual size, or declare other ranges",
            )
        )


QUOTIENTS = ("avg", "covar_pop", *SPREAD)
"""Aggregates that divide one measure by another."""


def undeclared(scalar: n.Scalar, ranges: Ranges) -> list[tuple[str, str]]:
    """Give the base columns that an expression rests on and that have no declared bounds."""
    columns: list[tuple[str, str]] = []
    stack: list[n.Node] = [scalar]
    names: set[str] = set()
    seen: set[n.Node] = set()
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        if isinstance(node, n.Column) and node.name not in names:
            names.add(node.name)
            if node.name in ranges.origins and not ranges.of(node).bounded:
                columns.append(ranges.origins[node.name])
            elif node.name in ranges.merged:
                stack += ranges.merged[node.name]
            elif node.name in ranges.definitions:
                stack.append(ranges.definitions[node.name])
            elif node.name in ranges.aggregations:
                argument = ranges.aggregations[node.name][0].argument
                stack += [argument] if argument is not None else []
        elif not isinstance(node, n.Relation):
            stack.extend(n.children(node))
    return sorted(set(columns))


def literal(value: Fraction, kind: t.Type, direction: int = 0) -> n.Literal:
    """Write a rational as a constant of a type, rounded up, down or, without direction, as the type does it."""
    if kind.kind not in ("INTEGER", "DECIMAL"):
        number = float(value)
        if direction and Fraction(number) * direction < value * direction:
            number = math.nextafter(number, math.inf * direction)
        return n.Literal(number, t.DOUBLE)
    scaled = value * 10**kind.scale if kind.scale else value
    whole = int(scaled) if not direction else int(-(-scaled // 1) if direction > 0 else scaled // 1)
    if kind.kind == "INTEGER":
        return n.Literal(whole, kind)
    # As narrow as it can be: a wide constant would drag every row into 128-bit arithmetic.
    digits = max(len(str(abs(whole))), kind.scale)
    return n.Literal(Decimal(whole).scaleb(-kind.scale), t.decimal(digits, kind.scale))


def _grid(magnitude: Fraction, bits: int = GRID_BITS) -> Fraction:
    """Give the power of two that is 2^-bits of the bound, so that scaling a double by it is exact."""
    if magnitude <= 0:
        return Fraction(1)
    exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    return Fraction(2) ** (max(exponent, LEAST_EXPONENT) - bits)


def _clamped(value: n.Scalar, low: Fraction, high: Fraction) -> n.Clamp:
    """Move a number into its range, as a double."""
    return n.Clamp(n.Cast(value, t.DOUBLE), literal(low, t.DOUBLE, -1), literal(high, t.DOUBLE, +1))


def whole_steps(value: n.Scalar, low: Fraction, high: Fraction) -> n.Quantize:
    """Give a real, moved into its range, as a whole number of public steps (rewrite.measure)."""
    step = _grid(max(abs(low), abs(high)))
    bound = _whole_bound(low, high, Fraction(0), 1, step)
    return n.Quantize(_clamped(value, low, high), step, -bound, bound)


def _whole_bound(
    low: Fraction, high: Fraction, center: Fraction, power: int, step: Fraction
) -> int:
    magnitude = max(abs(low - center), abs(high - center))
    if power == 2:
        half = (high - low) ** 2 / 8
        magnitude = max(abs(magnitude**2 - half), half)
    return -((-magnitude) // step)


def argument_text(argument: n.Scalar | None) -> str:
    """Give an argument as its writer would know it."""
    text = show_scalar(valued(argument)) if argument is not None else "rows"
    return text if len(text) <= 60 else text[:57] + "..."
