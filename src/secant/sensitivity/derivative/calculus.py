"""How large is an expression, and how fast does it move? Smooth answers, node by node.

In: a scalar over protected columns and public ones, the space it moves in, and a rate s. Out: a
`Bound`: its range, a smooth bound of its size, smooth bounds of its derivatives by variable (and by
block, where only a dual norm is known), each with the rates of its logarithm and with a public cap.
One rule, one function; what has no rule is refused (I3). Never here: filters, sums over rows, epsilon.

The rate s says how fast a single factor may change along a unit of distance; products add rates up,
and the analysis scales s until the whole is as smooth as the noise needs (derivative.rates).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import reduce

from secant.numeric import interval as iv
from secant.numeric.powers import power_range
from secant.numeric.quick import quick, ratio
from secant.plan import nodes as n
from secant.plan.evaluate.values import EPOCH
from secant.plan.facts.ranges import NOTHING_DECLARED, Ranges, as_number
from secant.plan.rewrites.rewrite import columns_of
from secant.plan.rule_table import RuleTable
from secant.plan.show import same
from secant.plan.typing import type_of
from secant.records import frozen
from secant.schema import types as t
from secant.sensitivity.certificate import CannotBound
from secant.sensitivity.derivative import shapes
from secant.sensitivity.derivative.smooth_terms import (
    NO_RATES,
    ONE,
    Rates,
    Term,
    added,
    constant_term,
    least,
    product,
)
from secant.sensitivity.derivative.soften.emptiness import moves_below
from secant.sensitivity.derivative.soften.leaning import flat, tightened
from secant.sensitivity.derivative.space import Block, Key, Space, Variable
from secant.sensitivity.later import Later

LOWEST_FLOOR, HIGHEST_FLOOR = ratio(1, 1024), ratio(1, 16)
"""A fading bound stops at a part of its peak between these: far rows need no exponential then (derivative.floor)."""
HIGHEST_POWERED = quick(2**1000)
"""A power that may exceed this has no bound: exp is held back not far above it."""


@frozen
class Bound:
    """What is known of one expression."""

    range: iv.Interval
    sized: Term | Later[Term]
    slopes: Mapping[Key, Term] = field(default_factory=dict)
    reach: Mapping[str, Fraction | None] = field(default_factory=dict)
    """Role -> the most that the expression moves a unit of distance in that role's row; None: no limit."""

    @property
    def size(self) -> Term:
        """Give a smooth bound of the expression's size."""
        return self.sized.value() if isinstance(self.sized, Later) else self.sized


@dataclass
class Calculus:
    """One walk over expressions, in one space, at one rate."""

    space: Space
    rate: Fraction
    floor: Fraction = LOWEST_FLOOR
    other: Calculus | None = None
    """One in the same space, at another rate: what no rate changes is found once for both."""
    known: dict[n.Node, Bound] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.protected = frozenset(self.space.variables)
        before = self.other
        self.moving: dict[n.Node, bool] = {} if before is None else before.moving
        self.public: dict[n.Node, Bound] = {} if before is None else before.public
        plain = Ranges(NOTHING_DECLARED, remembered={}) if before is None else before.ranges
        self.ranges: Ranges = plain
        self.weights: dict[Variable, tuple[Fraction, Fraction]] = {}
        self.coordinates: list[tuple[n.Scalar, Fraction]] = []  # what shapes take instead of x
        self.rules: dict[n.Node, str] = {}  # which rule bounded each expression that moves

    def of(self, scalar: n.Scalar) -> Bound:
        """Give the bound of an expression, or raise CannotBound."""
        if scalar not in self.known:
            self.known[scalar] = self._find(scalar)
        return self.known[scalar]

    def _find(self, scalar: n.Scalar) -> Bound:
        if not self.moves(scalar):
            if scalar not in self.public:
                self.public[scalar] = _public(scalar, self.ranges)
            return self.public[scalar]
        rule = CALCULUS.find(scalar)
        if rule is None:
            raise CannotBound(
                "derivative.unknown",
                scalar,
                f"{type(scalar).__name__.lower()} over protected columns has no derivative here",
                "use sums, products, powers, exp, ln, abs, least, greatest of protected columns",
            )
        self.rules[scalar] = CALCULUS.ids[type(scalar)]  # a rule that has several parts says which
        bound: Bound = rule(self, scalar)
        if isinstance(scalar, n.Arithmetic):
            return self._narrowed(bound, scalar)
        return bound

    def _narrowed(self, bound: Bound, scalar: n.Arithmetic) -> Bound:
        """Use what is known of the range where a column stands on both sides (range.affine)."""
        if not columns_of(scalar.left) & columns_of(scalar.right):
            return bound
        both = iv.meet(bound.range, self.ranges.of(scalar))
        if both is None or both == bound.range:
            return bound
        return replace(bound, range=both, sized=Later(lambda: limited(bound.size, both)))

    def alpha(self, bound: Bound) -> Fraction | None:
        """Give the rate a unit of an expression's own value may have: s over what it moves (derivative.compose)."""
        if any(value is None for value in bound.reach.values()):
            return None
        whole = self.space.reach({k: v for k, v in bound.reach.items() if v is not None})
        return self.rate / whole if whole else None

    def along(self, bound: Bound, alpha: Fraction) -> Rates:
        """Give the rates of a shape that is alpha-smooth in the value of an expression."""
        rates: dict[Key, Fraction] = {}
        for role, value in bound.reach.items():
            assert value is not None
            rates[gradient_key(bound.slopes, role)] = self._own(bound, role, value) * alpha
        return rates

    @staticmethod
    def _own(bound: Bound, role: str, magnitude: Fraction) -> Fraction:
        """Give the motion at a role's place, in the place's own unit: by a variable, or as a dual norm."""
        key = gradient_key(bound.slopes, role)
        if isinstance(key, Variable):
            cap = bound.slopes[key].cap
            assert cap is not None, "the reach is known"
            return cap
        return magnitude

    def weight(self, variable: Variable) -> tuple[Fraction, Fraction]:
        """Give what one unit of a variable moves, and the rate that one unit may have."""
        if variable not in self.weights:
            dual = self.space.dual(variable.role, {variable: quick(1)})
            self.weights[variable] = dual, self.rate / self.space.reach({variable.role: dual})
        return self.weights[variable]

    def moves(self, scalar: n.Scalar) -> bool:
        """Whether an expression sees a protected column."""
        return moves_below(scalar, self.protected, self.moving)


CALCULUS: RuleTable[Callable[..., Bound]] = RuleTable("derivative")


# ── pieces ───────────────────────────────────────────────────────────────────────────────────────


def gradient_key(keys: Iterable[Key], role: str) -> Key:
    """Name the place of a gradient in one role: a variable if there is only one, else a block."""
    mine = list(dict.fromkeys(k for k in keys if k.role == role))
    if len(mine) == 1:
        return mine[0]
    columns = frozenset().union(
        *(frozenset({k.column}) if isinstance(k, Variable) else k.columns for k in mine)
    )
    return Block(role, columns)


def limited(size: Term, range_: iv.Interval) -> Term:
    """Use what the range says of the size; a constant where that is almost as good."""
    if not range_.bounded:
        return size
    low, high = range_.ends()
    most = max(abs(low), abs(high))
    nearest = quick(0) if low <= 0 <= high else min(abs(low), abs(high))
    if 2 * nearest >= most:
        return constant_term(most)
    return least(size, most)


def _keys(*bounds: Bound) -> list[Key]:
    return list(dict.fromkeys(k for b in bounds for k in b.slopes))


def _roles(*bounds: Bound) -> list[str]:
    return list(dict.fromkeys(r for b in bounds for r in b.reach))


def magnitudes_of_caps(
    calculus: Calculus, slopes: Mapping[Key, Term]
) -> dict[str, Fraction | None]:
    """Give the reach that follows from the caps of the slopes."""
    magnitudes: dict[str, Fraction | None] = {}
    for role in dict.fromkeys(k.role for k in slopes):
        caps = {k: x.cap for k, x in slopes.items() if k.role == role}
        finite = {k: c for k, c in caps.items() if c is not None}
        magnitudes[role] = calculus.space.dual(role, finite) if len(finite) == len(caps) else None
    return magnitudes


def _less(a: Fraction | None, b: Fraction | None) -> Fraction | None:
    return min((x for x in (a, b) if x is not None), default=None)


def _public(scalar: n.Scalar, plain: Ranges) -> Bound:
    """An expression of public columns and constants does not move (derivative.public)."""
    interval = plain.of(scalar)  # only what the plan itself clamps counts
    cap = max(abs(e) for e in interval.ends()) if interval.bounded else None
    if isinstance(scalar, n.Literal) and cap is not None:
        return Bound(interval, constant_term(cap))
    return Bound(interval, Later(lambda: Term(shapes.call("abs", double(scalar)), NO_RATES, cap)))


def double(scalar: n.Scalar) -> n.Scalar:
    """Write an expression as a float: dates and moments as days."""
    kind = type_of(scalar)
    if kind.kind == "TIMESTAMP":
        return shapes.over(n.Extract("epoch", scalar), shapes.number(86_400.0))
    if kind.kind == "DATE":
        day, epoch = n.Literal("day", t.TEXT), n.Literal(EPOCH, t.DATE)
        # A difference of dates can fail in an engine; this function cannot.
        return n.Cast(n.Call("date_diff", (day, epoch, scalar)), t.DOUBLE)
    return scalar if kind.kind == "DOUBLE" else n.Cast(scalar, t.DOUBLE)


# ── variables ────────────────────────────────────────────────────────────────────────────────────


@CALCULUS.rule(n.Column, id="derivative.identity")
def _column(calculus: Calculus, node: n.Column) -> Bound:
    return _variable(calculus, node, calculus.space.variables[node.name], _of_type(node.type))


def _of_type(kind: t.Type) -> iv.Interval:
    """Give what a type can hold; a float can hold anything."""
    if kind.kind == "INTEGER":
        return iv.interval(-(2**64), 2**64)  # engines have unsigned numbers too
    if kind.kind == "DECIMAL":
        most = 10 ** (kind.precision - kind.scale)
        return iv.interval(-most, most)
    return iv.EVERYTHING


def _variable(calculus: Calculus, node: n.Scalar, variable: Variable, range_: iv.Interval) -> Bound:
    """A value that moves by itself: x, or a function of what the owner measures in (derivative.identity)."""
    if variable.measure != "x":
        return power_of_measured(calculus, node, variable, range_, quick(1))
    weight, alpha = calculus.weight(variable)

    def size() -> Term:
        expression = shapes.column_size(double(node), alpha, range_.low, range_.high)
        term = _shaped(expression, {variable: quick(1)}, most_of(range_))
        if term is None:
            raise _no_range(node)
        return term

    sized = Later(size) if shapes.has_size(alpha) else size()
    return Bound(range_, sized, {variable: ONE}, {variable.role: weight})


def plain_variable(calculus: Calculus, scalar: n.Scalar) -> Variable | None:
    """Give the column whose value an expression is, clamped or not; None if it is anything else.

    A cast to another type of number, and the 0.0 that makes both zeros of a divisor one, leave the value as it is.
    """
    while True:
        if isinstance(scalar, (n.Cast, n.Clamp, n.Attempt)):
            scalar = scalar.operand
        elif isinstance(scalar, n.Arithmetic) and scalar.op == "+" and _is_zero(scalar.right):
            scalar = scalar.left
        else:
            break
    return calculus.space.variables.get(scalar.name) if isinstance(scalar, n.Column) else None


def _is_zero(scalar: n.Scalar) -> bool:
    return isinstance(scalar, n.Literal) and as_number(scalar.value) == 0


def coordinate(
    calculus: Calculus, node: n.Scalar, variable: Variable, range_: iv.Interval, *, positive: bool
) -> tuple[n.Scalar, Bound]:
    """Write w = ln x or √x, in which a column x moves, and give its bound; refuse where x may have none."""
    low, w_range = range_.low, iv.EVERYTHING
    if low is not None and (low > 0 or (low == 0 and not positive)) and range_.bounded:
        w_range = (iv.logarithm if variable.measure == "ln" else iv.square_root)(range_)
    if not w_range.bounded:
        needed = "positive lower end" if positive else "lower end of at least 0"
        where = f"{variable.column} moves in {variable.measure}({variable.column})"
        hint = f"declare a range with a {needed}"
        raise CannotBound(
            "derivative.identity", node, f"{where}, and its range does not allow that", hint
        )
    w = shapes.call(variable.measure, double(node))
    weight, alpha = calculus.weight(variable)
    calculus.coordinates.append((w, alpha))
    return w, Bound(w_range, ONE, {variable: ONE}, {variable.role: weight})


def power_of_measured(
    calculus: Calculus, node: n.Scalar, variable: Variable, range_: iv.Interval, exponent: Fraction
) -> Bound:
    """x^exponent for a variable that moves in w: e^(exponent·w) for w = ln x, w^(2·exponent) for w = √x."""
    logarithm = variable.measure == "ln"
    # w^(2r) has the slope 2r·w^(2r−1), which is bounded near 0 from r = 1/2 on.
    positive = logarithm or exponent < ratio(1, 2)
    w, inner = coordinate(calculus, node, variable, range_, positive=positive)
    powered = power_range(range_, exponent)
    most = most_of(powered)
    rate = exponent if logarithm else 2 * exponent
    steepest = most if logarithm else most_of(power_range(inner.range, rate - 1))
    caps = [HIGHEST_POWERED + 1 if m is None else m for m in (most, steepest)]
    if max(caps) > HIGHEST_POWERED or abs(rate) * caps[1] > HIGHEST_POWERED:
        raise CannotBound(
            "derivative.exp" if logarithm else "derivative.power",
            node,
            "the power may overflow",
            "declare a range on which it stays small",
        )
    size_of = shapes.exponent_size if logarithm else shapes.power_size
    slope_of = shapes.exponent_slope if logarithm else shapes.power_slope
    ends = inner.range.low, inner.range.high
    size = composed(calculus, inner, lambda a: size_of(w, rate, a, *ends), most)
    steep = composed(calculus, inner, lambda a: slope_of(w, rate, a, *ends), abs(rate) * caps[1])
    if size is None or steep is None:
        raise _no_range(node)
    slopes: dict[Key, Term] = {variable: steep}
    return Bound(powered, size, slopes, magnitudes_of_caps(calculus, slopes))


def _shaped(shape: shapes.Smooth | None, along: Rates, cap: Fraction | None) -> Term | None:
    """Turn a shape's bound into a term: its rate spread as the rates of its argument say."""
    if shape is None:
        return None
    if shape.rate == 0:
        return Term(shape.expression, NO_RATES, cap)
    return Term(shape.expression, {k: shape.rate * v for k, v in along.items()}, cap)


def most_of(range_: iv.Interval) -> Fraction | None:
    """Give the largest size on a bounded range."""
    return max(abs(e) for e in range_.ends()) if range_.bounded else None


def _no_range(node: n.Node) -> CannotBound:
    return CannotBound(
        "derivative.range",
        node,
        "the size of a protected column is not known",
        "declare its range in the policy",
    )


@CALCULUS.rule(n.Clamp, id="derivative.clamp")
def _clamp(calculus: Calculus, node: n.Clamp) -> Bound:
    ends = [as_number(e.value) if isinstance(e, n.Literal) else None for e in (node.low, node.high)]
    if ends[0] is None or ends[1] is None:
        raise CannotBound("derivative.clamp", node, "the limits are not constants", "use constants")
    limits = iv.Interval(ends[0], ends[1])
    inner = node.operand
    while isinstance(inner, n.Cast) and inner.type.kind == "DOUBLE":
        inner = inner.operand
    if isinstance(inner, n.Column) and inner.name in calculus.space.variables:
        return _variable(calculus, node, calculus.space.variables[inner.name], limits)
    operand = calculus.of(node.operand)
    # Moving a value into an interval moves no value further than before.
    clamped = iv.smaller(iv.larger(operand.range, iv.point(ends[0])), iv.point(ends[1]))
    around = ends[0] <= 0 <= ends[1]

    def size() -> Term:
        return limited(
            operand.size if around else constant_term(max(abs(e) for e in clamped.ends())), clamped
        )

    return replace(operand, range=clamped, sized=Later(size))


@CALCULUS.rule(n.Cast, id="derivative.cast")
def _cast(calculus: Calculus, node: n.Cast) -> Bound:
    kinds = type_of(node.operand), node.type
    same_values = kinds[1].kind == "DOUBLE" or (
        kinds[1].kind == "DECIMAL"
        and kinds[0].kind in ("INTEGER", "DECIMAL")
        and kinds[1].scale >= kinds[0].scale
    )
    if not same_values:
        raise CannotBound(
            "derivative.cast",
            node,
            "a cast that rounds a protected value jumps",
            "cast to DOUBLE instead",
        )
    return calculus.of(node.operand)


@CALCULUS.rule(n.Attempt, id="derivative.attempt")
def _attempt(calculus: Calculus, node: n.Attempt) -> Bound:
    return calculus.of(node.operand)


# ── arithmetic ───────────────────────────────────────────────────────────────────────────────────


@CALCULUS.rule(n.Negate, id="derivative.negate")
def _negate(calculus: Calculus, node: n.Negate) -> Bound:
    inner = calculus.of(node.operand)
    return replace(inner, range=iv.negate(inner.range))


@CALCULUS.rule(n.Arithmetic, id="derivative.arithmetic")
def _arithmetic(calculus: Calculus, node: n.Arithmetic) -> Bound:
    if node.op in ("+", "-"):
        return _sum(calculus, node)
    if node.op == "*":
        calculus.rules[node] = "derivative.product"
        a, b = calculus.of(node.left), calculus.of(node.right)
        range_ = (
            iv.whole_power(a.range, 2)
            if same(node.left, node.right)
            else iv.multiply(a.range, b.range)
        )
        return _leaning(calculus, node, multiplied(calculus, a, b, range_))
    if node.op == "/":
        return _quotient(calculus, node)
    raise CannotBound("derivative.arithmetic", node, f"{node.op} jumps", "use + - * /")


def _leaning(calculus: Calculus, node: n.Arithmetic, plain: Bound) -> Bound:
    """derivative.leaning: soft steps of one column that pull in opposite directions."""
    slopes = tightened(calculus, node, plain)
    if slopes is plain.slopes:
        return plain
    calculus.rules[node] = "derivative.leaning"
    return replace(plain, slopes=slopes)


def _either(calculus: Calculus, node: n.Arithmetic) -> Bound | None:
    """derivative.or: 1 − Π(1 − p) is at most Σ p and moves no further; None for any other difference."""
    if node.op != "-" or not _is_one(node.left):
        return None
    left_out = flat(node.right, "*")
    parts = [
        calculus.of(x.right)
        for x in left_out
        if isinstance(x, n.Arithmetic) and x.op == "-" and _is_one(x.left)
    ]
    unit = iv.interval(0, 1)
    if len(left_out) < 2 or len(parts) < len(left_out):
        return None
    if any(iv.meet(p.range, unit) != p.range for p in parts):
        return None
    calculus.rules[node] = "derivative.or"
    slopes = parts[0].slopes
    for part in parts[1:]:
        slopes = {
            k: added(slopes.get(k), part.slopes.get(k))
            for k in dict.fromkeys([*slopes, *part.slopes])
        }
    size = Later(lambda: limited(reduce(added, [p.size for p in parts]), unit))
    return Bound(unit, size, slopes, magnitudes_of_caps(calculus, slopes))


def _is_one(scalar: n.Scalar) -> bool:
    return isinstance(scalar, n.Literal) and as_number(scalar.value) == 1


def _sum(calculus: Calculus, node: n.Arithmetic) -> Bound:
    """derivative.sum: sizes and slopes add up, whatever the signs."""
    either = _either(calculus, node)
    if either is not None:
        return either
    kinds = {type_of(node.left).kind, type_of(node.right).kind}
    if kinds & {"INTERVAL", "TIMESTAMP"}:
        raise CannotBound(
            "derivative.sum", node, "a moment in time has no distance here", "use dates"
        )
    calculus.rules[node] = "derivative.sum"
    a, b = calculus.of(node.left), calculus.of(node.right)
    other = b.range if node.op == "+" else iv.negate(b.range)
    range_ = iv.add(a.range, other)
    slopes = {k: added(a.slopes.get(k), b.slopes.get(k)) for k in _keys(a, b)}
    magnitudes = {
        r: _plus(a.reach.get(r, quick(0)), b.reach.get(r, quick(0))) for r in _roles(a, b)
    }
    follows = magnitudes_of_caps(calculus, slopes)
    size = Later(lambda: _size_of_sum(a.size, b.size, range_))
    bound = Bound(range_, size, slopes, {r: _less(magnitudes[r], follows[r]) for r in magnitudes})
    return _leaning(calculus, node, bound) if node.op == "+" else bound


def _size_of_sum(a: Term, b: Term, range_: iv.Interval) -> Term:
    most = most_of(range_)
    if most is not None and any(
        x.rates == {}
        and x.cap is not None
        and x.cap >= most
        and isinstance(x.expression, n.Literal)
        for x in (a, b)
    ):
        return constant_term(most)  # a constant part alone reaches what the whole can be
    return limited(added(a, b), range_)


def _plus(a: Fraction | None, b: Fraction | None) -> Fraction | None:
    return None if a is None or b is None else a + b


def multiplied(calculus: Calculus, a: Bound, b: Bound, range_: iv.Interval) -> Bound:
    """derivative.product: (fg)' = f'g + fg', also where both move with the same variables."""
    slopes: dict[Key, Term] = {}
    for key in _keys(a, b):
        left, right = a.slopes.get(key), b.slopes.get(key)
        slopes[key] = added(
            None if left is None else product(left, b.size),
            None if right is None else product(a.size, right),
        )
    size = Later(lambda: limited(product(a.size, b.size), range_))
    return Bound(range_, size, slopes, magnitudes_of_caps(calculus, slopes))


def _quotient(calculus: Calculus, node: n.Arithmetic) -> Bound:
    """derivative.quotient: by a public number, or by a protected one that keeps away from 0."""
    calculus.rules[node] = "derivative.quotient"
    a, b = calculus.of(node.left), calculus.of(node.right)
    if not b.slopes:
        divisor = shapes.call("nullif", double(node.right), shapes.number(0.0))
        inverse = Term(shapes.call("abs", shapes.over(shapes.number(1.0), divisor)), NO_RATES, None)
        range_ = iv.divide(a.range, b.range)
        if b.range.bounded and not _holds_zero(b.range):
            low = min(abs(e) for e in b.range.ends())
            inverse = replace(inverse, cap=1 / low)
        return multiplied(calculus, a, Bound(iv.EVERYTHING, inverse), range_)
    range_ = iv.divide(a.range, b.range)
    return multiplied(calculus, a, _inverse(calculus, node.right, b), range_)


def _holds_zero(range_: iv.Interval) -> bool:
    low, high = range_.low, range_.high
    return (low is None or low <= 0) and (high is None or high >= 0)


def _inverse(calculus: Calculus, node: n.Scalar, b: Bound) -> Bound:
    if _holds_zero(b.range):
        raise CannotBound(
            "derivative.quotient",
            node,
            "the divisor may be 0",
            "declare ranges that keep the divisor away from 0",
        )
    variable = plain_variable(calculus, node)
    if variable is not None and variable.measure != "x":
        return power_of_measured(calculus, node, variable, b.range, quick(-1))
    x, range_ = double(node), b.range
    inverse = iv.divide(iv.point(1), range_)
    most = most_of(inverse)
    size = composed(
        calculus, b, lambda a: shapes.reciprocal_size(x, a, range_.low, range_.high), most
    )
    slope = composed(
        calculus,
        b,
        lambda a: shapes.reciprocal_slope(x, a, range_.low, range_.high),
        None if most is None else most**2,
    )
    if size is None or slope is None:
        raise _no_range(node)
    return chain(calculus, b, inverse, size, slope)


def chain(calculus: Calculus, inner: Bound, range_: iv.Interval, size: Term, slope: Term) -> Bound:
    """derivative.compose: (h∘g)' = h'(g)·g'."""
    slopes = {k: product(slope, x) for k, x in inner.slopes.items()}
    by_cap: dict[str, Fraction | None] = {
        r: None if v is None or slope.cap is None else slope.cap * v for r, v in inner.reach.items()
    }
    follows = magnitudes_of_caps(calculus, slopes)
    magnitudes = {r: _less(by_cap[r], follows.get(r)) for r in by_cap}
    return Bound(range_, limited(size, range_), slopes, magnitudes)


def composed(
    calculus: Calculus,
    inner: Bound,
    shape: Callable[[Fraction], shapes.Smooth | None],
    cap: Fraction | None,
) -> Term | None:
    """Put an expression into a shape, at the rate that its own motion allows; None if nothing bounds it."""
    alpha = calculus.alpha(inner)
    if alpha is None:  # how far the argument moves is not known: only a constant is smooth then
        return None if cap is None else constant_term(cap)
    term = shape(alpha)
    return _shaped(term, calculus.along(inner, quick(1)), cap)
