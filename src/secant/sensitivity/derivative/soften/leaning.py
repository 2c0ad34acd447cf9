"""Soft steps that pull one value in opposite directions: their slopes cancel, and a bound may know it.

In: products and sums of sigmoids and tauoids over straight lines in protected columns. Out: for each
column the slope of the logarithm, with its sign, and how fast that slope turns; and from these a smooth
bound of the product's own slope (derivative.leaning). Everything that is not of this form is left to derivative.product
and derivative.sum. Never here: a shape whose bound is not its own, data, norms beyond what the space tells.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from secant.numeric.powers import float_above
from secant.numeric.quick import quick
from secant.plan import nodes as n
from secant.plan.facts.ranges import as_number, as_text
from secant.plan.show import same
from secant.records import frozen
from secant.sensitivity.derivative import shapes
from secant.sensitivity.derivative.smooth_terms import Rates, Term, least, product
from secant.sensitivity.derivative.soften import filter_shapes as filters_shapes
from secant.sensitivity.derivative.space import Key, Variable

if TYPE_CHECKING:
    from secant.sensitivity.derivative.calculus import Bound, Calculus

FINEST = 1024
"""A rounded corner is at least this part of the largest slope: the slopes that cancel are floats."""
ZERO = quick(0)


@frozen
class Lean:
    """The slope of the logarithm of an expression along one clamped column, with its sign."""

    slope: n.Scalar
    low: Fraction
    high: Fraction
    turns: Rates
    """By column: how fast the slope changes, at most."""


@frozen
class Leaning:
    """An expression f with df = f·Σ slope·dK over clamped columns K."""

    leans: Mapping[Variable, Lean]
    leaves: Mapping[Variable, n.Scalar]
    """The clamped column that each variable stands for: another clamp of it would move otherwise."""
    positive: bool


Line = dict[Variable, tuple[n.Scalar, Fraction]]


def tightened(calculus: Calculus, node: n.Arithmetic, plain: Bound) -> Mapping[Key, Term]:
    """Give slopes of a product, or of a sum of positive parts, that know of opposite signs (derivative.leaning)."""
    parts = flat(node, node.op)
    if sum(calculus.moves(p) for p in parts) < 2:
        return plain.slopes
    leaning = leaning_of(calculus, node)
    if leaning is None:
        return plain.slopes
    slopes = dict(plain.slopes)
    for variable, lean in leaning.leans.items():
        before = slopes.get(variable)
        term = _rounded(calculus, lean)
        if before is not None and term is not None and before.cap is not None:
            slopes[variable] = least(product(plain.size, term), before.cap)
    return slopes


def _rounded(calculus: Calculus, lean: Lean) -> Term | None:
    """Bound |slope| by √(slope² + corner²); None where it does not change its sign, or the corner would be coarse."""
    most = max(lean.high, -lean.low)
    turn = calculus.space.smoothness(lean.turns)
    corner = max(turn / (2 * calculus.rate), most / FINEST)
    if lean.low >= 0 or lean.high <= 0 or 4 * corner > most:
        return None
    wide = quick(float_above(corner))
    rates: Rates = {k: v / (2 * wide) for k, v in lean.turns.items()}
    square = n.Arithmetic("*", lean.slope, lean.slope)
    floor = shapes.number(float_above(wide * wide))
    return Term(shapes.call("sqrt", shapes.plus(square, floor)), rates, most + 2 * wide)


def flat(node: n.Scalar, op: str) -> list[n.Scalar]:
    """Open sums of sums, or products of products."""
    if isinstance(node, n.Arithmetic) and node.op == op:
        return [*flat(node.left, op), *flat(node.right, op)]
    return [node]


def leaning_of(calculus: Calculus, node: n.Scalar) -> Leaning | None:
    """Read how an expression leans; None if it is made of anything but soft steps over straight lines."""
    if not calculus.moves(node):
        literal = as_number(node.value) if isinstance(node, n.Literal) else None
        return Leaning({}, {}, positive=literal is not None and literal > 0)
    if isinstance(node, n.Call) and node.function in ("sigmoid", "tauoid"):
        return _step(calculus, node)
    if isinstance(node, n.Call) and node.function == "coalesce":
        return _filled(calculus, node)
    if isinstance(node, n.Arithmetic) and node.op in ("*", "+"):
        parts = flat(node, node.op)
        leanings = [leaning_of(calculus, p) for p in parts]
        usable = [f for f in leanings if f is not None]
        if len(usable) < len(leanings):
            return None
        leaves = _together([f.leaves for f in usable])
        if leaves is None:
            return None
        return _multiplied(usable, leaves) if node.op == "*" else _added(parts, usable, leaves)
    return None


def _step(calculus: Calculus, node: n.Call) -> Leaning | None:
    line, parameter = _line(calculus, node.arguments[0]), node.arguments[1]
    steepness = as_number(parameter.value) if isinstance(parameter, n.Literal) else None
    if line is None or steepness is None or steepness <= 0:
        return None
    a, y = quick(shapes.float_below(steepness)), node.arguments[0]
    if (
        node.function == "sigmoid"
    ):  # (ln σ)' = a·σ(−y), which lies between 0 and a and turns by a²/4
        slope, low, turn = filters_shapes.sigmoid(shapes.times(-1.0, y), a), ZERO, a * a / 4
    else:  # (ln τ)' = −a·tanh(ay) = a·(2σ(−2ay) − 1), between −a and a, which turns by a²
        twice = filters_shapes.sigmoid(shapes.times(-1.0, y), 2 * a)
        slope, low, turn = shapes.minus(shapes.times(2.0, twice), 1.0), -a, a * a
    leans = {}
    for variable, (_, factor) in line.items():
        ends = sorted((factor * low, factor * a))
        turns: Rates = {v: abs(factor * f) * turn for v, (_, f) in line.items()}
        leans[variable] = Lean(shapes.times(float(factor * a), slope), ends[0], ends[1], turns)
    return Leaning(leans, {v: leaf for v, (leaf, _) in line.items()}, positive=True)


def _filled(calculus: Calculus, node: n.Call) -> Leaning | None:
    """coalesce(f, 0): where f is empty the whole is 0 and does not move, whatever is written there."""
    first, *others = node.arguments
    if len(others) != 1 or not isinstance(others[0], n.Literal) or as_number(others[0].value) != 0:
        return None
    leaning = leaning_of(calculus, first)
    if leaning is None:
        return None
    zero = shapes.number(0.0)
    leans = {
        v: Lean(
            shapes.call("coalesce", x.slope, zero), min(x.low, ZERO), max(x.high, ZERO), x.turns
        )
        for v, x in leaning.leans.items()
    }
    return Leaning(leans, leaning.leaves, positive=False)


def _together(leaves: Sequence[Mapping[Variable, n.Scalar]]) -> dict[Variable, n.Scalar] | None:
    shared: dict[Variable, n.Scalar] = {}
    for some in leaves:
        for variable, leaf in some.items():
            if not same(shared.setdefault(variable, leaf), leaf):
                return None
    return shared


def _multiplied(parts: list[Leaning], leaves: Mapping[Variable, n.Scalar]) -> Leaning:
    """Logarithms of factors add up."""
    leans = {}
    for variable in leaves:
        mine = [p.leans[variable] for p in parts if variable in p.leans]
        slope = mine[0].slope
        for other in mine[1:]:
            slope = shapes.plus(slope, other.slope)
        low, high = sum((x.low for x in mine), ZERO), sum((x.high for x in mine), ZERO)
        leans[variable] = Lean(slope, low, high, _turns(mine, sum))
    return Leaning(leans, leaves, positive=all(p.positive for p in parts))


def _turns(
    leans: list[Lean], join: Callable[[list[Fraction]], Fraction | int]
) -> dict[Key, Fraction]:
    return {
        v: quick(join([x.turns.get(v, ZERO) for x in leans]))
        for v in dict.fromkeys(v for x in leans for v in x.turns)
    }


def _added(
    parts: list[n.Scalar], leanings: list[Leaning], leaves: Mapping[Variable, n.Scalar]
) -> Leaning | None:
    """The slope of a positive sum's logarithm is the mean of its parts' slopes, weighed by the parts."""
    if not all(k.positive for k in leanings):
        return None
    whole = _sum(parts)
    all_ends = {v: _ends([k.leans[v] for k in leanings if v in k.leans]) for v in leaves}
    leans = {}
    for variable in leaves:
        weighed = [
            n.Arithmetic("*", p, k.leans[variable].slope)
            for p, k in zip(parts, leanings, strict=True)
            if variable in k.leans
        ]
        low, high = all_ends[variable]
        turns = _turns([k.leans[variable] for k in leanings if variable in k.leans], max)
        for other, (least_, most) in all_ends.items():
            spread = (high - low) * (most - least_) / 4
            turns[other] = turns.get(other, ZERO) + spread
        leans[variable] = Lean(shapes.over(_sum(weighed), whole), low, high, turns)
    return Leaning(leans, leaves, positive=True)


def _ends(leans: Sequence[Lean]) -> tuple[Fraction, Fraction]:
    """Give an interval that holds these slopes, and 0 for the parts that do not move with the column."""
    return min([ZERO, *(x.low for x in leans)]), max([ZERO, *(x.high for x in leans)])


def _sum(parts: Sequence[n.Scalar]) -> n.Scalar:
    total = parts[0]
    for part in parts[1:]:
        total = shapes.plus(total, part)
    return total


def _line(calculus: Calculus, node: n.Scalar) -> Line | None:
    """Read an expression as a straight line in clamped columns, with public parts; None if it is not one."""
    if not calculus.moves(node):
        return {}
    if isinstance(node, n.Cast) and node.type.kind == "DOUBLE":
        return _line(calculus, node.operand)
    if isinstance(node, n.Call) and node.function == "date_diff":
        part, start, end = node.arguments
        return (
            _line(calculus, end) if as_text(part) == "day" and not calculus.moves(start) else None
        )
    inner = node.operand if isinstance(node, n.Clamp) else node
    if isinstance(inner, n.Column):
        variable = calculus.space.variables[inner.name]
        return {variable: (node, quick(1))} if variable.measure == "x" else None
    if not isinstance(node, n.Arithmetic):
        return None
    left, right = _line(calculus, node.left), _line(calculus, node.right)
    if left is None or right is None:
        return None
    if node.op == "*":
        factor = as_number(node.left.value) if isinstance(node.left, n.Literal) else None
        return None if factor is None else {v: (x, f * factor) for v, (x, f) in right.items()}
    if node.op not in ("+", "-"):
        return None
    sign = 1 if node.op == "+" else -1
    for variable, (leaf, factor) in right.items():
        earlier, before = left.get(variable, (leaf, ZERO))
        if not same(earlier, leaf):
            return None
        left[variable] = leaf, before + sign * factor
    return left
