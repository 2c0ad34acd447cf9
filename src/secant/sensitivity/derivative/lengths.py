"""Lengths of vectors whose coordinates are shifted and scaled columns: distances to any point (derivative.length).

In: a root over a sum of powers, in any spelling. Out: what stands under it, coordinate by coordinate, and how far the
length moves in each row. What moves is read off as sizes of coefficients, which add up whatever their signs; what is
public moves nothing. Never here: a bound of what is no length.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction

from secant.numeric import interval as iv
from secant.numeric.powers import power_range
from secant.numeric.quick import quick, ratio
from secant.plan import nodes as n
from secant.plan.facts.ranges import as_number
from secant.plan.show import same
from secant.plan.typing import type_of
from secant.policy import norm_order
from secant.policy.norms import ColumnNorm, CombinedNorm, Leaf, LogNorm, Norm, RootNorm, ScaledNorm
from secant.records import frozen
from secant.sensitivity.certificate import CannotBound
from secant.sensitivity.derivative import shapes
from secant.sensitivity.derivative.calculus import (
    Bound,
    Calculus,
    composed,
    limited,
    most_of,
    plain_variable,
)
from secant.sensitivity.derivative.smooth_terms import ONE, constant_term
from secant.sensitivity.derivative.space import Block, Variable

Sizes = dict[Variable, Fraction]
"""How far an expression moves at most for each unit that a variable does."""


@frozen
class Length:
    """(|y₁|^p + … + |y_m|^p + e₁ + …)^(1/p): what is summed up under a root."""

    power: Fraction
    coordinates: tuple[n.Scalar, ...]
    steady: tuple[n.Scalar, ...]
    """Public parts that are nowhere negative."""


def read_length(
    node: n.Call, moves: Callable[[n.Scalar], bool], range_of: Callable[[n.Scalar], iv.Interval]
) -> Length | None:
    """Read a root as a length; None where something under it is no power of a coordinate."""
    power = _power_of_root(node)
    if power is None:
        return None
    coordinates, steady = [], []
    for part in _summands(node.arguments[0]):
        side = _powered(part, power)
        if side is not None:
            coordinates.append(side)
            continue
        low = None if moves(part) else range_of(part).low
        if low is None or low < 0:
            return None
        steady.append(part)
    if not any(map(moves, coordinates)):
        return None
    return Length(power, tuple(coordinates), tuple(steady))


def length_bound(calculus: Calculus, node: n.Call) -> Bound | None:
    """Bound a length; None where it is none, or where the norm does not measure what moves it."""
    length = read_length(node, calculus.moves, lambda x: calculus.of(x).range)
    if length is None:
        return None
    sizes = [_sizes(calculus, y) for y in length.coordinates]
    known = [s for s in sizes if s is not None]
    if len(known) < len(sizes):
        return None
    factors = _factors(calculus, length.power, known)
    if factors is None:
        return None
    range_ = _range(calculus, length)
    plain = Bound(
        range_,
        ONE,
        {block: constant_term(quick(factor)) for block, factor in factors.items()},
        {block.role: quick(factor) for block, factor in factors.items()},
    )
    size = composed(
        calculus,
        plain,
        lambda a: shapes.identity_size(node, a, range_.low, range_.high),
        most_of(range_),
    )
    if size is None:
        raise CannotBound(
            "derivative.length",
            node,
            "no smooth bound follows from what is declared",
            "declare ranges of its columns",
        )
    calculus.rules[node] = "derivative.length"
    return Bound(range_, limited(size, range_), plain.slopes, plain.reach)


def _factors(
    calculus: Calculus, power: Fraction, coordinates: list[Sizes]
) -> Mapping[Block, Fraction] | None:
    """Give for each row that moves how far the length does at most, for each unit of that row's norm."""
    factors = {}
    for role in dict.fromkeys(v.role for sizes in coordinates for v in sizes):
        moving = [{v: a for v, a in sizes.items() if v.role == role} for sizes in coordinates]
        moved: list[Norm] = [
            _joined(quick(1), [ScaledNorm(a, _leaf(v)) for v, a in sizes.items()])
            for sizes in moving
            if sizes
        ]
        factor = norm_order.ratio(_joined(power, moved), calculus.space.roles[role].norm)
        if factor is None:
            return None
        columns = frozenset(v.column for sizes in moving for v in sizes)
        factors[Block(role, columns)] = factor
    return factors


def _joined(power: Fraction, parts: list[Norm]) -> Norm:
    return parts[0] if len(parts) == 1 else CombinedNorm(power, tuple(parts))


def _leaf(variable: Variable) -> Leaf:
    leaves: dict[str, type[Leaf]] = {"x": ColumnNorm, "ln": LogNorm, "sqrt": RootNorm}
    return leaves[variable.measure](variable.column)


def _range(calculus: Calculus, length: Length) -> iv.Interval:
    powers = [
        power_range(iv.absolute(calculus.of(y).range), length.power) for y in length.coordinates
    ]
    total = iv.point(0)
    for part in (*powers, *(calculus.of(e).range for e in length.steady)):
        total = iv.add(total, part)
    above = iv.meet(total, iv.Interval(quick(0), None)) or iv.Interval(quick(0), None)
    if above.high is None:
        return iv.Interval(quick(0), None)
    return iv.square_root(above) if length.power == 2 else power_range(above, 1 / length.power)


# ── spellings ────────────────────────────────────────────────────────────────────────────────────


def _power_of_root(node: n.Call) -> Fraction | None:
    """Give p where a call is a p-th root."""
    if node.function == "sqrt":
        return quick(2)
    exponent = _constant(node.arguments[1]) if node.function == "power" else None
    return 1 / exponent if exponent is not None and ratio(1, 64) <= exponent < 1 else None


def _summands(scalar: n.Scalar) -> list[n.Scalar]:
    while isinstance(scalar, n.Attempt) or _widens(scalar):
        scalar = scalar.operand  # type: ignore[attr-defined]
    if isinstance(scalar, n.Arithmetic) and scalar.op == "+":
        return _summands(scalar.left) + _summands(scalar.right)
    return [scalar]


def _powered(scalar: n.Scalar, power: Fraction) -> n.Scalar | None:
    """Give y where an expression is |y|^power."""
    if power == 2 and isinstance(scalar, n.Arithmetic) and scalar.op == "*":
        return scalar.left if same(scalar.left, scalar.right) else None
    if not isinstance(scalar, n.Call) or scalar.function != "power":
        return None
    inner, exponent = scalar.arguments[0], _constant(scalar.arguments[1])
    even = power.denominator == 1 and int(power) % 2 == 0
    sized = isinstance(inner, n.Call) and inner.function == "abs"
    return inner if exponent == power and (even or sized) else None


def _sizes(calculus: Calculus, scalar: n.Scalar) -> Sizes | None:
    """Read how far an affine expression moves with each variable; None where it is not affine.

    |y - y'| is what is bounded: sizes of one variable add up whatever the signs, and neither |·| nor a clamp moves
    anything further.
    """
    if not calculus.moves(scalar):
        return {}
    variable = plain_variable(calculus, scalar)
    if variable is not None:
        size = _size_of_unit(calculus, scalar, variable)
        return None if size is None else {variable: size}
    if isinstance(scalar, (n.Attempt, n.Negate, n.Clamp)) or _widens(scalar):
        return _sizes(calculus, scalar.operand)  # type: ignore[attr-defined]
    if isinstance(scalar, n.Call) and scalar.function == "abs":
        return _sizes(calculus, scalar.arguments[0])
    if not isinstance(scalar, n.Arithmetic):
        return None
    if scalar.op in ("+", "-"):
        left, right = _sizes(calculus, scalar.left), _sizes(calculus, scalar.right)
        if left is None or right is None:
            return None
        return {v: left.get(v, quick(0)) + right.get(v, quick(0)) for v in {**left, **right}}
    if scalar.op in ("*", "/"):
        return _scaled(calculus, scalar)
    return None


def _scaled(calculus: Calculus, node: n.Arithmetic) -> Sizes | None:
    """Read a product with a public factor, or a quotient by one: it counts with its largest size."""
    moving, factor = node.left, node.right
    if node.op == "*" and not calculus.moves(moving):
        moving, factor = factor, moving
    if calculus.moves(factor):
        return None
    if node.op == "/" and isinstance(factor, n.Call) and factor.function == "nullif":
        factor = factor.arguments[0]
    most = most_of(calculus.of(factor).range)
    if node.op == "/":
        most = most_of(iv.divide(iv.point(1), calculus.of(factor).range))
    sizes = _sizes(calculus, moving)
    return None if most is None or sizes is None else {v: most * a for v, a in sizes.items()}


def _size_of_unit(calculus: Calculus, scalar: n.Scalar, variable: Variable) -> Fraction | None:
    """Give how far a column moves for each unit of the coordinate that the owner measures it in."""
    if variable.measure == "x":
        return quick(1)
    # |x - x'| is at most the larger one times |ln x - ln x'|, and at most (√x + √x')·|√x - √x'|.
    range_ = calculus.of(scalar).range
    most = range_.high
    if most is None or range_.low is None or range_.low < 0:
        return None
    if variable.measure == "ln":
        return most if range_.low > 0 else None
    root = iv.square_root(iv.point(most)).high
    return None if root is None else 2 * root


def _widens(scalar: n.Scalar) -> bool:
    """Whether a cast leaves numbers as they are."""
    if not isinstance(scalar, n.Cast) or scalar.type.kind != "DOUBLE":
        return False
    return type_of(scalar.operand).kind in ("INTEGER", "DECIMAL", "DOUBLE")


def _constant(scalar: n.Scalar) -> Fraction | None:
    return as_number(scalar.value) if isinstance(scalar, n.Literal) else None
