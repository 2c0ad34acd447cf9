"""A query over values that may move becomes one that moves no faster than it must.

In: an aggregate, the policy, the protections of kind `cells` in force, epsilon. Out: an aggregate over
rows that public columns decide, whose arguments are continuous in the protected values, and how the
user's outputs are made of it. Declared ranges are enforced by clamping every column at its use (I2).
What comes out is what is bounded and what runs (I1); the user's own conditions are not used again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction

from secant.numeric import interval as iv
from secant.numeric.quick import quick, ratio
from secant.plan import nodes as n
from secant.plan.evaluate.values import EPOCH
from secant.plan.facts.lineage import origins_of
from secant.plan.facts.ranges import as_number, declared
from secant.plan.facts.reads import scans
from secant.plan.functions.aggregates import SPREAD
from secant.plan.functions.scalar import FUNCTIONS
from secant.plan.rewrites.measures import literal
from secant.plan.rewrites.moments import average, variance
from secant.plan.rewrites.null_on_error import total
from secant.plan.rewrites.rewrite import substitute
from secant.plan.typing import type_of
from secant.policy.policy import ColumnFacts, Policy, Protection, Softening
from secant.schema import types as t
from secant.sensitivity.certificate import CannotBound
from secant.sensitivity.derivative import shapes
from secant.sensitivity.derivative.calculus import Calculus, double
from secant.sensitivity.derivative.soften.conditions import (
    Lattice,
    Leaf,
    Softness,
    comparisons,
    gap_lattice,
    lattice_of,
    softened,
)
from secant.sensitivity.derivative.soften.emptiness import moves, present
from secant.sensitivity.derivative.soften.listed import with_lists
from secant.sensitivity.derivative.soften.pieces import (
    clamped_date,
    clamped_moment,
    farthest,
    is_null,
    is_strict,
    times_truth,
    widens,
    word_for,
)
from secant.sensitivity.derivative.soften.softened import Agreed, Softened
from secant.sensitivity.derivative.soften.stripped import (
    Stripped,
    refuse_repeating,
    strip,
    unshared,
)
from secant.sensitivity.derivative.soften.tuning import Edge, Summand, joint_width, ramp_width
from secant.sensitivity.derivative.space import space_of
from secant.sensitivity.derivative.summand import FARTHEST


@dataclass
class Softener:
    """One aggregate while it is softened."""

    aggregate: n.Aggregate
    policy: Policy
    protections: tuple[Protection, ...]
    epsilon: Fraction
    rows: Callable[[n.Relation], int | None]
    """A public estimate of the number of rows of a relation over public columns."""
    ends: Callable[[str, str], tuple[Fraction, Fraction] | None]
    """Smallest and largest value of a public column."""
    agreed: Agreed | None = None
    """For a branch of a union: what holds for all branches."""
    inner: dict[str, n.Scalar] = field(default_factory=dict)
    """Columns of inner groups that move, and what a row of a group gives them (derivative.nested)."""
    weight: n.Scalar | None = None
    """How far each row is there at all, where rows are members of a set (derivative.sets)."""
    notes: list[str] = field(default_factory=list)
    calls: list[n.Aggregation] = field(default_factory=list)
    exact: bool = True
    gaps: dict[tuple[n.Scalar, n.Scalar], tuple[n.Scalar, Lattice | None]] = field(
        default_factory=dict
    )
    reaches: dict[n.Scalar, Fraction | None] = field(default_factory=dict)
    floats: dict[str, n.Scalar] = field(default_factory=dict)
    """Column -> its clamped value as a float: one node for all its uses."""

    def __post_init__(self) -> None:
        """Take the protected conditions off the rows, or raise CannotBound."""
        source = unshared(self.aggregate.input)
        used = scans(replace(self.aggregate, input=source))
        self.spaces = tuple(space_of(p, used) for p in self.protections)
        # Only what moves how far is asked here, which no rate changes; at a tiny one sizes are constants.
        self.calculi = tuple(Calculus(space, ratio(1, 10**30)) for space in self.spaces)
        self.plain = self.calculi[0].ranges  # what the plan itself says, without the policy
        self.protected = frozenset(self.inner).union(*(s.variables for s in self.spaces))
        self.origins = origins_of(*used)
        stripped = strip(source, self.protected)
        keys = self.aggregate.keys
        stripped, self.listed = with_lists(stripped, keys, self.protected, self._values)
        self.stripped = self._not_empty(stripped)
        self.count: int | None = None
        self.counted = False

    def soften(self) -> Softened:
        """Give the softened aggregate, or raise CannotBound."""
        keys = tuple(self._key(k) for k in self.aggregate.keys)
        outputs = [n.Named(k.name, n.Column(k.name, type_of(k.expression))) for k in keys]
        for call in self.aggregate.aggregations:
            outputs.append(n.Named(call.name, self._output(call)))
        for expression in (*keys, *self.calls):  # a softened CASE names each of its branches twice
            refuse_repeating(expression, self.aggregate)
        aggregate = n.Aggregate(
            self.stripped.relation, keys, tuple(self.calls), self.aggregate.span
        )
        notes = tuple(dict.fromkeys(self.notes))
        return Softened(aggregate, tuple(outputs), notes, self.exact, bool(self.listed))

    # ── rows and keys ────────────────────────────────────────────────────────────────────────────

    def _not_empty(self, stripped: Stripped) -> Stripped:
        """A comparison with an empty cell fails: such rows go before anything is computed (derivative.null)."""
        empty: dict[str, n.Scalar] = {}
        for condition in stripped.conditions:
            if isinstance(condition, (n.Compare, n.InList)) and is_strict(condition):
                for x in n.walk(condition):
                    if isinstance(x, n.Column):
                        empty[x.name] = n.Not(n.IsNull(n.Column(x.name, x.type)))
        self.filled = frozenset(empty)
        predicate = n.conjunction(tuple(empty.values()))
        if predicate is None:
            return stripped
        return Stripped(
            n.Filter(stripped.relation, predicate), stripped.definitions, stripped.conditions
        )

    def _key(self, key: n.Named) -> n.Named:
        listed = self.listed.get(key.name)
        if listed is None:
            return n.Named(key.name, substitute(key.expression, self.stripped.definitions))
        self.notes.append(f"groups by {key.name}: a soft filter for each declared value")
        return n.Named(key.name, listed)

    # ── aggregates ───────────────────────────────────────────────────────────────────────────────

    def _output(self, call: n.Aggregation) -> n.Scalar:
        if self.is_kept(call) and (self.agreed is None or call.name in self.agreed.kept):
            return self._exact_count(call, self._argument(call))
        argument = self.argument(call)
        if call.distinct:
            raise CannotBound(
                "derivative.distinct",
                call,
                "the number of different values jumps when a protected value moves",
                "count rows instead",
            )
        rule = _OUTPUTS.get(call.function)
        if rule is None:
            raise CannotBound(
                "derivative.aggregate",
                call,
                f"{call.function} over protected values has no derivative here",
                "use count, sum, avg, min, max, variance or stddev",
            )
        return rule(self, call, argument)

    def _argument(self, call: n.Aggregation) -> n.Scalar | None:
        if call.argument is None:
            return None
        return substitute(call.argument, self.stripped.definitions)

    def is_kept(self, call: n.Aggregation) -> bool:
        """Whether public columns alone decide what is counted."""
        argument = self._argument(call)
        moving = argument is not None and moves(argument, self.protected)
        whole = not self.stripped.conditions and self.weight is None
        return not moving and whole and call.function == "count"

    def argument(self, call: n.Aggregation) -> n.Scalar | None:
        """Give what is aggregated: of CASE WHEN c THEN x END it is x, over the rows that meet c."""
        argument = self._argument(call)
        self.extra: tuple[n.Scalar, ...] = ()
        while (
            isinstance(argument, n.Case)
            and len(argument.branches) == 1
            and is_null(argument.default)
        ):
            self.extra += (argument.branches[0].condition,)
            argument = argument.branches[0].value
        return argument

    def is_exact(self, call: n.Aggregation) -> bool:
        """Whether a plain column is summed, over rows that nothing protected decides."""
        argument = self.argument(call)
        every = not self.stripped.conditions + self.extra and self.weight is None
        return every and isinstance(argument, n.Column)

    def _exact_count(self, call: n.Aggregation, argument: n.Scalar | None) -> n.Scalar:
        """The number of rows, or of public values, that public columns decide: as it is, without noise."""
        name = f"{call.name}.soft{len(self.calls)}"
        self.calls.append(n.Aggregation(name, call.function, argument, call.distinct, call.span))
        self.notes.append(f"{call.function} reads public columns only: exact")
        return n.Column(name, type_of(self.calls[-1]))

    def _add(self, function: str, argument: n.Scalar, call: n.Aggregation) -> n.Column:
        name = f"{call.name}.soft{len(self.calls)}"
        self.calls.append(n.Aggregation(name, function, argument, False, call.span))
        return n.Column(name, type_of(self.calls[-1]))

    def _count(self, call: n.Aggregation, argument: n.Scalar | None) -> n.Scalar:
        present = None if argument is None else self._presence(argument)
        truth = self._truth(Summand(1.0, 0.0))
        return self._add("sum", times_truth(truth, present), call)

    def _sum(self, call: n.Aggregation, argument: n.Scalar | None) -> n.Scalar:
        assert argument is not None
        plain = self.agreed is None or call.name in self.agreed.exact
        if plain and self.is_exact(call) and isinstance(argument, n.Column):
            return self._add("sum", self.held(argument), call)  # exact numbers stay exact
        value = self.numeric(argument)
        return self._add("sum", times_truth(self._truth(self._summand(value)), value), call)

    def _moment(self, call: n.Aggregation, argument: n.Scalar | None) -> n.Scalar:
        """AVG, VARIANCE and STDDEV from softened sums about the middle of the range."""
        assert argument is not None
        value = self.numeric(argument)
        low, high = self._range(value, call)
        middle = (low + high) / 2
        centered = n.Arithmetic("-", value, shapes.number(float(middle)))
        truth = self._truth(self._summand(centered))
        powers = [centered, n.Arithmetic("*", centered, centered)]
        summed = [
            self._add("sum", times_truth(truth, x), call)
            for x in powers[: 1 if call.function == "avg" else 2]
        ]
        number = self._present(call, argument, truth)
        mean, *square = (n.Arithmetic("/", x, number) for x in summed)
        if not square:
            return average(mean, middle, low, high)
        return variance(call.function, square[0], mean, number, high - low)

    def _present(self, call: n.Aggregation, argument: n.Scalar, truth: n.Scalar | None) -> n.Scalar:
        """Give the number of values that count, at least 1."""
        present = self._presence(argument)
        if truth is None and present is None and self.agreed is None:
            self.calls.append(
                n.Aggregation(f"{call.name}.soft{len(self.calls)}", "count", None, False, call.span)
            )
            number: n.Scalar = n.Cast(
                n.Column(self.calls[-1].name, type_of(self.calls[-1])), t.DOUBLE
            )
        else:
            number = self._add("sum", times_truth(truth, present), call)
        return shapes.call("greatest", number, shapes.number(1.0))

    def _product(self, call: n.Aggregation, argument: n.Scalar | None) -> n.Scalar:
        """PRODUCT is e to the sum of logarithms: a row that does not pass counts as 1 (derivative.products)."""
        assert argument is not None
        value = self.numeric(argument)
        low, _ = self._range(value, call)
        if low <= 0:
            raise CannotBound(
                "derivative.products",
                call,
                "a product of values that may be 0 or negative moves without limit",
                "declare a range with a positive lower end",
            )
        excess = n.Arithmetic("-", value, shapes.number(1.0))
        truth = self._truth(self._summand(shapes.call("ln", value)))
        factor = n.Arithmetic("+", shapes.number(1.0), times_truth(truth, excess))
        summed = self._add("sum", shapes.call("ln", factor), call)
        most = shapes.number(float(shapes.LARGEST_EXPONENT))
        limited = shapes.call(
            "least", shapes.call("greatest", summed, shapes.times(-1.0, most)), most
        )
        return shapes.call("exp", limited)

    def _extreme(self, call: n.Aggregation, argument: n.Scalar | None) -> n.Scalar:
        """MIN and MAX: a row that does not pass counts as the far end of the declared range (derivative.min_max)."""
        assert argument is not None
        value = self.numeric(argument)
        low, high = self._range(value, call)
        truth = self._truth(self._summand(value))
        if truth is not None:
            end = shapes.number(float(high if call.function == "min" else low))
            value = n.Arithmetic("+", end, n.Arithmetic("*", truth, n.Arithmetic("-", value, end)))
        ends = (shapes.number(float(low)), shapes.number(float(high)))
        clamped = n.Clamp(self._add(call.function, value, call), *ends)
        kind = type_of(argument).kind
        if kind == "TIMESTAMP":
            raise CannotBound(
                "derivative.value", call, "the first of moments is no number", "use a DATE column"
            )
        if kind != "DATE":
            return clamped
        return n.Arithmetic("+", n.Literal(EPOCH, t.DATE), n.Cast(clamped, t.INTEGER))

    # ── values ───────────────────────────────────────────────────────────────────────────────────

    def numeric(self, scalar: n.Scalar) -> n.Scalar:
        """Write a value in floats over clamped columns; conditions inside become soft."""
        if isinstance(scalar, n.Literal) and (value := as_number(scalar.value)) is not None:
            return shapes.number(float(value))
        if not moves(scalar, self.protected):
            kind = type_of(scalar)
            if not (kind.numeric or kind.kind in ("DATE", "BOOLEAN", "NULL")):
                raise CannotBound(
                    "derivative.value",
                    scalar,
                    f"{kind} beside protected values is no number",
                    "use numbers and dates",
                )
            return total(double(self._clamped_columns(scalar)))
        if isinstance(scalar, n.Column):
            if scalar.name not in self.floats:
                self.floats[scalar.name] = double(self.held(scalar))
            return self.floats[scalar.name]
        if isinstance(scalar, n.Arithmetic) and scalar.op in ("+", "-", "*", "/"):
            return self._arithmetic(scalar)
        if isinstance(scalar, n.Negate):
            return shapes.times(-1.0, self.numeric(scalar.operand))
        if isinstance(scalar, n.Attempt):
            return self.numeric(scalar.operand)
        if isinstance(scalar, n.Clamp):  # of softened inner groups: its ends are written
            return n.Clamp(self.numeric(scalar.operand), scalar.low, scalar.high)
        if isinstance(scalar, n.Cast) and widens(scalar):
            return self.numeric(scalar.operand)
        if isinstance(scalar, n.Call) and FUNCTIONS[scalar.function].continuous:
            return n.Call(
                scalar.function, tuple(self.numeric(a) for a in scalar.arguments), scalar.span
            )
        if isinstance(scalar, n.Case):
            return self._case(scalar)
        raise CannotBound(
            "derivative.value",
            scalar,
            f"{word_for(scalar)} of a protected value jumps or has no derivative here",
            "use + - * / abs exp ln sqrt power least greatest and CASE",
        )

    def _arithmetic(self, scalar: n.Arithmetic) -> n.Scalar:
        sides = [self._side(s) for s in (scalar.left, scalar.right)]
        if scalar.op == "/" and not moves(scalar.right, self.protected):
            sides[1] = shapes.call("nullif", sides[1], shapes.number(0.0))
        if isinstance(sides[0], n.Literal) and scalar.op == "*":
            sides.reverse()
        return n.Arithmetic(scalar.op, sides[0], sides[1])

    def _side(self, scalar: n.Scalar) -> n.Scalar:
        if type_of(scalar).kind != "INTERVAL":
            return self.numeric(scalar)
        value = scalar.value if isinstance(scalar, n.Literal) else None
        if not isinstance(value, tuple) or value[0] != 0:
            raise CannotBound(
                "derivative.value",
                scalar,
                "months are not equally long",
                "add a number of days instead",
            )
        return shapes.number(float(value[1] + ratio(value[2], 86_400_000_000)))

    def _case(self, scalar: n.Case) -> n.Scalar:
        """CASE: public conditions choose, protected ones mix the branches (derivative.case)."""
        result = self._branch(scalar.default)
        for branch in reversed(scalar.branches):
            value = self._branch(branch.value)
            if not moves(branch.condition, self.protected):
                result = n.Case((n.Branch(total(branch.condition), value),), result)
                continue
            if is_null(value) or is_null(result):
                raise CannotBound(
                    "derivative.case",
                    branch.condition,
                    "whether a value is there would depend on a protected one",
                    "give CASE a value for ELSE",
                )
            truth = softened(branch.condition, self._softness(self._width_for(branch.condition)))
            other = n.Arithmetic("-", value, result)
            result = n.Arithmetic("+", result, n.Arithmetic("*", truth, other))
        return result

    def _branch(self, scalar: n.Scalar) -> n.Scalar:
        return n.Literal(None, t.DOUBLE) if is_null(scalar) else self.numeric(scalar)

    def _presence(self, argument: n.Scalar) -> n.Scalar | None:
        """Give 1 where a value is there and 0 where it is not; None if it always is (derivative.null)."""
        share = present(argument)
        if share is None:
            raise CannotBound(
                "derivative.null",
                argument,
                "whether the value is there may depend on protected values",
                "count or average a plain expression of columns",
            )
        return None if isinstance(share, n.Literal) and share.value == 1.0 else share

    def _clamped_columns(self, scalar: n.Scalar) -> n.Scalar:
        columns = {
            x.name: self.held(x)
            for x in n.walk(scalar)
            if isinstance(x, n.Column) and x.type.numeric and not n.has_subquery(scalar)
        }
        return substitute(scalar, columns)

    def held(self, column: n.Column) -> n.Scalar:
        """Clamp a column to its declared range: facts are enforced, not believed (I2)."""
        if column.name in self.inner:
            return column  # made of clamped columns
        table, name = self.origins.get(column.name, ("", ""))
        interval = declared(self.policy, table, name)
        kind = column.type
        if kind.kind in ("DATE", "TIMESTAMP"):
            return (
                clamped_date(column, interval)
                if kind.kind == "DATE"
                else clamped_moment(column, interval)
            )
        if not interval.bounded and column.name not in self.protected:
            looked_up = self.ends(table, name) if table else None
            if looked_up is None:
                return column
            self.notes.append(f"the range of the public column {table}.{name} was looked up")
            interval = iv.Interval(*looked_up)
        if not interval.bounded:
            if not kind.numeric:
                return column
            limit = farthest(kind)
            interval = iv.interval(-limit, limit)
            self.notes.append(f"{table}.{name} has no declared range: moved into ±{limit:.6g}")
        low, high = interval.ends()
        return n.Clamp(column, literal(low, kind, -1), literal(high, kind, 1))

    def _range(self, value: n.Scalar, call: n.Aggregation) -> tuple[Fraction, Fraction]:
        if self.agreed is not None:
            return self.agreed.ends[call.name]
        return self.ends_of(value, call)

    def ends_of(self, value: n.Scalar, call: n.Aggregation) -> tuple[Fraction, Fraction]:
        """Give the least and greatest that a value can be by declared ranges, or raise CannotBound."""
        interval = self.plain.of(value)
        if not interval.bounded:
            raise CannotBound(
                "derivative.range",
                call,
                "the value has no bound that follows from declared ranges",
                "declare the ranges of its columns",
            )
        return interval.ends()

    # ── conditions ───────────────────────────────────────────────────────────────────────────────

    def _truth(self, summand: Summand) -> n.Scalar | None:
        """Give the soft truth of all conditions together; None if there is none."""
        condition = n.conjunction(self.stripped.conditions + self.extra)
        if condition is None:
            return self.weight
        truth = softened(condition, self._softness(self._width_for(condition, summand)))
        return times_truth(self.weight, truth)

    def _softness(self, width: Fraction) -> Softness:
        chosen = self._chosen()
        slope = chosen.slope if chosen is not None and chosen.kind == "sigmoid" else None
        if slope is not None:
            self.exact = False
            self.notes.append(f"filters softened by sigmoids of slope {float(slope):g}")
        return Softness(
            self.protected,
            self._gap,
            lambda gap, lattice: self._width(gap, lattice, width),
            slope,
            self.filled,
        )

    def _chosen(self) -> Softening | None:
        return next((p.softening for p in self.protections if p.softening is not None), None)

    def _gap(self, left: n.Scalar, right: n.Scalar) -> tuple[n.Scalar, Lattice | None]:
        """Give left - right in floats, and the steps it moves in; the same node for the same sides."""
        if (left, right) not in self.gaps:
            self.gaps[left, right] = self._new_gap(left, right)
        return self.gaps[left, right]

    def _new_gap(self, left: n.Scalar, right: n.Scalar) -> tuple[n.Scalar, Lattice | None]:
        steps = [lattice_of(side, self._step) for side in (left, right)]
        lattice = None
        if steps[0] is not None and steps[1] is not None:
            lattice = gap_lattice(steps[0], steps[1], "-")
            lattice = lattice if lattice.step else None  # a constant has no steps
        sides = [self.numeric(side) for side in (left, right)]
        if isinstance(sides[1], n.Literal) and sides[1].value == 0.0:
            return sides[0], lattice
        return n.Arithmetic("-", sides[0], sides[1]), lattice

    def _step(self, column: n.Column) -> Fraction | None:
        step = self._facts(column).step
        return None if step is None else as_number(step)

    def _values(self, column: n.Column) -> tuple[object, ...] | None:
        return self._facts(column).values

    def _facts(self, column: n.Column) -> ColumnFacts:
        return self.policy.column(*self.origins.get(column.name, ("", "")))

    def _edge(self, gap: n.Scalar, lattice: Lattice | None, *, equality: bool = False) -> Edge:
        if gap not in self.reaches:
            self.reaches[gap] = self._magnitude(gap)
        magnitude = self.reaches[gap]
        if magnitude is None:
            raise CannotBound(
                "derivative.width",
                gap,
                "how fast the compared value moves is not known",
                "declare the ranges of its columns",
            )
        interval = self.plain.of(gap)
        span = float(interval.ends()[1] - interval.ends()[0]) if interval.bounded else None
        return Edge(magnitude, None if lattice is None else lattice.step, span, equality)

    def _magnitude(self, scalar: n.Scalar) -> Fraction | None:
        """Give the most that a value moves a unit of distance, under any of the protections."""
        scalar = substitute(scalar, self.inner) if self.inner else scalar
        magnitude = quick(0)
        for space, calculus in zip(self.spaces, self.calculi, strict=True):
            magnitudes = calculus.of(scalar).reach
            if any(v is None for v in magnitudes.values()):
                return None
            magnitude = max(
                magnitude, space.reach({k: v for k, v in magnitudes.items() if v is not None})
            )
        return magnitude

    def _summand(self, value: n.Scalar) -> Summand:
        interval = self.plain.of(value)
        size = float(max(abs(e) for e in interval.ends())) if interval.bounded else None
        if size is not None and size >= FARTHEST:
            size = None  # nobody has declared that
        magnitude = self._magnitude(value)
        return Summand(size, None if magnitude is None else float(magnitude))

    def _width_for(self, condition: n.Scalar, summand: Summand | None = None) -> Fraction:
        """Choose the width of ramps, in units of distance (derivative.width)."""
        chosen = self._chosen()
        if chosen is not None and chosen.kind == "exact":
            return joint_width(self._edges(condition), quick(0))
        if chosen is not None and chosen.width is not None:
            return joint_width(self._edges(condition), quick(chosen.width))
        if chosen is not None and chosen.kind == "sigmoid":
            return quick(1)
        edges = self._edges(condition)
        worth = summand or Summand(None, None)
        return joint_width(edges, ramp_width(edges, worth, self._rows(), float(self.epsilon)))

    def _edges(self, condition: n.Scalar) -> list[Edge]:
        probe = Softness(self.protected, self._gap, lambda gap, lattice: quick(1))
        return [self._edge_of(leaf) for leaf in comparisons(condition, probe)]

    def _edge_of(self, leaf: Leaf) -> Edge:
        return self._edge(leaf.gap, leaf.lattice, equality=leaf.op in ("=", "<>"))

    def _rows(self) -> int | None:
        if not self.counted:
            self.count, self.counted = self.rows(self.stripped.relation), True
        return self.count

    def _width(self, gap: n.Scalar, lattice: Lattice | None, width: Fraction) -> Fraction:
        """Give the ramp's width in the gap's own unit, and note what that does."""
        edge = self._edge(gap, lattice)
        wide = width * edge.reach
        if wide <= 0:  # free to move and no width: a thousandth of what it can span
            wide = quick(edge.span / 1000 if edge.span else 1)
        if lattice is None or wide > lattice.step:
            self.exact = False
            self.notes.append(
                f"a filter softened: rows within {float(wide) / 2:.4g} of its threshold count in part,"
                " all others as they are"
            )
        else:
            self.notes.append(
                f"a filter kept exact: values move in steps of {float(lattice.step):.4g}"
            )
        return wide


Output = Callable[[Softener, n.Aggregation, n.Scalar | None], n.Scalar]
_OUTPUTS: dict[str, Output] = {
    "count": Softener._count,
    "sum": Softener._sum,
    "avg": Softener._moment,
    "product": Softener._product,
    "min": Softener._extreme,
    "max": Softener._extreme,
    **dict.fromkeys(SPREAD, Softener._moment),
}
