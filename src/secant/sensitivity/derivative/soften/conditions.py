"""Filters on protected values become continuous: one margin for a whole condition, or sigmoids.

In: a condition and how soft it is to be. Out: an expression between 0 and 1 that is the condition's
truth except near its thresholds. With ramps the condition is a signed distance u to its border, AND
a minimum, OR a maximum, NOT a change of sign, and the filter is ramp(u): as many conditions as one
likes move it no further than the steepest of them (derivative.margin). With sigmoids AND is a product (the
calculus paper, docs/explanation/papers.md). Columns that move in steps get exact steps where that
is asked for (derivative.step). Never here: data.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import lcm

from secant.numeric.quick import quick, ratio
from secant.plan import nodes as n
from secant.plan.facts.ranges import as_number
from secant.plan.rewrites.null_on_error import total
from secant.plan.rewrites.rewrite import columns_of
from secant.plan.show import same
from secant.plan.typing import type_of
from secant.records import frozen
from secant.schema import types as t
from secant.sensitivity.certificate import CannotBound
from secant.sensitivity.derivative import shapes
from secant.sensitivity.derivative.soften.emptiness import moves

SURE = 1e6
"""The margin of a condition on public columns: far beyond every ramp."""
MOST_COMPARED = 6
_NEGATED = {"=": "<>", "<>": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}


@frozen
class Lattice:
    """The values that an expression can take: offset + step · whole numbers."""

    step: Fraction
    offset: Fraction


@frozen
class Leaf:
    """One comparison: a gap between its sides as a number, compared with 0."""

    op: str
    gap: n.Scalar
    lattice: Lattice | None


@frozen
class Softness:
    """How conditions are softened: sigmoids of a slope, or ramps whose width each leaf is told."""

    protected: frozenset[str]
    leaf: Callable[[n.Scalar, n.Scalar], tuple[n.Scalar, Lattice | None]]
    """Give `left - right` as a number, and the steps it moves in."""
    width: Callable[[n.Scalar, Lattice | None], Fraction]
    """Give the width of the ramp around a gap's threshold."""
    slope: Fraction | None = None
    """Slope of sigmoids; None for ramps."""
    filled: frozenset[str] = frozenset()
    """Columns that are not empty in any row."""


def softened(condition: n.Scalar, softness: Softness) -> n.Scalar:
    """Give the soft truth of a condition, between 0 and 1."""
    if softness.slope is not None:
        return _sigmoids(condition, softness, positive=True)
    return shapes.call("ramp", margin(condition, softness))


def comparisons(condition: n.Scalar, softness: Softness) -> list[Leaf]:
    """Give the comparisons with protected values inside a condition."""
    if isinstance(condition, (n.And, n.Or)):
        return [leaf for o in condition.operands for leaf in comparisons(o, softness)]
    if isinstance(condition, n.Not):
        return comparisons(condition.operand, softness)
    if not moves(condition, softness.protected):
        return []
    if isinstance(condition, n.Compare) and _exclusive_or(condition):
        return comparisons(condition.left, softness) + comparisons(condition.right, softness)
    if isinstance(condition, n.Compare):
        return [_leaf(condition.op, condition, softness)]
    if isinstance(condition, n.InList):
        return [Leaf("=", *softness.leaf(condition.operand, item)) for item in condition.items]
    return []


# ── margins (derivative.margin) ───────────────────────────────────────────────────────────────────────────


def margin(condition: n.Scalar, softness: Softness, *, positive: bool = True) -> n.Scalar:
    """Give the signed distance of a condition from its border, in widths of its ramps."""
    if isinstance(condition, n.Not):
        return margin(condition.operand, softness, positive=not positive)
    if not moves(condition, softness.protected):
        return _public(condition, positive, SURE, -SURE)
    if isinstance(condition, (n.And, n.Or)):
        together = isinstance(condition, n.And) == positive
        parts = [
            part
            for o in condition.operands
            for part in _flat(margin(o, softness, positive=positive), together)
        ]
        if together:
            parts = _windows(parts)
        return _extreme("lowest" if together else "highest", parts)
    if isinstance(condition, n.Compare) and _exclusive_or(condition):
        return _either(condition, lambda c, p: margin(c, softness, positive=p), positive)
    if isinstance(condition, n.Compare):
        op = condition.op if positive else _NEGATED[condition.op]
        return _null_fails(_compared(_leaf(op, condition, softness), softness), condition, softness)
    if isinstance(condition, n.InList):
        return _null_fails(_listed(condition, softness, positive), condition, softness)
    raise _no_soft_form(condition)


def _extreme(function: str, parts: list[n.Scalar]) -> n.Scalar:
    """Write the extreme of many parts, a few at a time: engines compare every two of them."""
    while len(parts) > 1:
        groups = [parts[i : i + MOST_COMPARED] for i in range(0, len(parts), MOST_COMPARED)]
        parts = [g[0] if len(g) == 1 else shapes.call(function, *g) for g in groups]
    return parts[0]


def _flat(part: n.Scalar, together: bool) -> tuple[n.Scalar, ...]:
    """Open a minimum inside a minimum."""
    if isinstance(part, n.Call) and part.function == ("lowest" if together else "highest"):
        return part.arguments
    return (part,)


def _windows(parts: list[n.Scalar]) -> list[n.Scalar]:
    """Write two margins that rise and fall alike as one: min(sx + a, b - sx) = (a + b)/2 - |sx + (a - b)/2|."""
    windows: list[n.Scalar] = []
    lines = [_slanted(p) for p in parts]
    used: set[int] = set()
    for i, one in enumerate(lines):
        if i in used:
            continue
        for j in range(i + 1, len(parts)):
            other = lines[j]
            if one is None or other is None or j in used:
                continue
            if one[1] == -other[1] and same(one[0], other[0]):
                middle = shapes.shifted(shapes.times(one[1], one[0]), (one[2] - other[2]) / 2)
                distance = shapes.times(-1.0, shapes.call("abs", middle))
                windows.append(shapes.plus(distance, shapes.number((one[2] + other[2]) / 2)))
                used |= {i, j}
                break
        if i not in used:
            windows.append(parts[i])
    return windows


def _slanted(part: n.Scalar) -> tuple[n.Scalar, float, float] | None:
    """Read scale·x + shift."""
    if not (
        isinstance(part, n.Arithmetic) and part.op == "+" and isinstance(part.right, n.Literal)
    ):
        return None
    inner, shift = part.left, part.right.value
    if not isinstance(shift, float):
        return None
    if isinstance(inner, n.Arithmetic) and inner.op == "*" and isinstance(inner.left, n.Literal):
        scale = inner.left.value
        return (inner.right, scale, shift) if isinstance(scale, float) else None
    return inner, 1.0, shift


def _public(condition: n.Scalar, positive: bool, yes: float, no: float) -> n.Scalar:
    """A condition on public columns, which is true, false or unknown; unknown does not pass."""
    null_safe = total(condition if positive else n.Not(condition))  # no row may make it fail
    return n.Case((n.Branch(null_safe, shapes.number(yes)),), shapes.number(no))


def _null_fails(u: n.Scalar, condition: n.Scalar, softness: Softness) -> n.Scalar:
    """An empty cell makes a comparison unknown, which does not pass (derivative.null)."""
    if columns_of(condition) <= softness.filled:
        return u
    return shapes.call("coalesce", u, shapes.number(-SURE))


def _either(
    condition: n.Compare, part: Callable[[n.Scalar, bool], n.Scalar], positive: bool
) -> n.Scalar:
    """XOR (`<>` between truth values) and its opposite."""
    differ = (condition.op == "<>") == positive
    one = shapes.call("lowest", part(condition.left, True), part(condition.right, not differ))
    other = shapes.call("lowest", part(condition.left, False), part(condition.right, differ))
    return shapes.call("highest", one, other)


def _exclusive_or(condition: n.Compare) -> bool:
    return condition.op in ("=", "<>") and type_of(condition.left).kind == "BOOLEAN"


def _leaf(op: str, condition: n.Compare, softness: Softness) -> Leaf:
    gap, lattice = softness.leaf(condition.left, condition.right)
    return Leaf(op, gap, lattice)


def _compared(leaf: Leaf, softness: Softness) -> n.Scalar:
    if leaf.op in ("=", "<>"):
        return _equality([(leaf.gap, leaf.lattice)], softness, leaf.op == "=")
    upward = leaf.op in (">", ">=")
    middle = threshold(leaf)
    width = softness.width(leaf.gap, leaf.lattice)
    scale = float(1 / width) if upward else -float(1 / width)
    moving, constant = _apart(leaf.gap)
    # (gap - middle)/width, or its opposite; written so that a row costs one product and one sum.
    shift = -quick(scale) * (middle + constant)
    return shapes.plus(shapes.times(scale, moving), shapes.number(float(shift)))


def _apart(gap: n.Scalar) -> tuple[n.Scalar, Fraction]:
    """Split `x - constant`."""
    if isinstance(gap, n.Arithmetic) and isinstance(gap.right, n.Literal):
        constant = as_number(gap.right.value)
        if gap.op == "-" and constant is not None:
            return gap.left, constant
    return gap, quick(0)


def threshold(leaf: Leaf) -> Fraction:
    """Give the middle between the last value that fails and the first that passes (derivative.step)."""
    if leaf.lattice is None:
        return quick(0)
    step, offset = leaf.lattice.step, leaf.lattice.offset
    below = offset + step * ((-offset) / step).__floor__()  # the largest value that is at most 0
    if leaf.op in ("<=", ">"):
        return below + step / 2
    return (below if below < 0 else -step) + step / 2


def _listed(condition: n.InList, softness: Softness, positive: bool) -> n.Scalar:
    gaps = [softness.leaf(condition.operand, item) for item in condition.items]
    return _equality(gaps, softness, positive)


def _equality(
    gaps: list[tuple[n.Scalar, Lattice | None]], softness: Softness, positive: bool
) -> n.Scalar:
    """A tent around each value: exact to the step for what moves in steps."""
    parts = []
    for gap, lattice in gaps:
        half = softness.width(gap, lattice)
        if lattice is not None and lattice.offset % lattice.step != 0:
            continue  # the value is never taken
        parts.append(shapes.times(float(1 / half), shapes.call("abs", gap)))
    if not parts:
        return shapes.number(-SURE if positive else SURE)
    nearest = parts[0] if len(parts) == 1 else shapes.call("least", *parts)
    sign = -1.0 if positive else 1.0
    return shapes.plus(shapes.times(sign, nearest), shapes.number(-sign * 0.5))


def _no_soft_form(condition: n.Scalar) -> CannotBound:
    return CannotBound(
        "derivative.condition",
        condition,
        f"{type(condition).__name__.lower()} on a protected value has no soft form",
        "compare the value with numbers: < <= > >= = <> BETWEEN IN",
    )


# ── sigmoids (the calculus paper) ──────────────────────────────────────────────────────────────────────────


def _sigmoids(condition: n.Scalar, softness: Softness, *, positive: bool) -> n.Scalar:
    if isinstance(condition, n.Not):
        return _sigmoids(condition.operand, softness, positive=not positive)
    if not moves(condition, softness.protected):
        return _public(condition, positive, 1.0, 0.0)
    if isinstance(condition, (n.And, n.Or)):
        parts = [_sigmoids(o, softness, positive=positive) for o in condition.operands]
        return _product(parts) if isinstance(condition, n.And) == positive else _any(parts)
    if isinstance(condition, n.Compare) and _exclusive_or(condition):
        differ = (condition.op == "<>") == positive
        left, right = (
            (_sigmoids(s, softness, positive=True), _sigmoids(s, softness, positive=False))
            for s in (condition.left, condition.right)
        )
        pairs = ((left[0], right[1]), (left[1], right[0]))
        pairs = pairs if differ else ((left[0], right[0]), (left[1], right[1]))
        return shapes.plus(_product(list(pairs[0])), _product(list(pairs[1])))
    if isinstance(condition, n.Compare):
        return _unknown_fails(_sigmoid(condition, softness, positive), condition, softness)
    if isinstance(condition, n.InList):
        # Different values exclude each other: their tauoids add up.
        slope = shapes.number(shapes.float_below(softness.slope or quick(1)))
        gaps = [softness.leaf(condition.operand, item)[0] for item in condition.items]
        total = _added([shapes.call("tauoid", gap, slope) for gap in gaps])
        truth = total if positive else _complement(total)
        return _unknown_fails(truth, condition, softness)
    raise _no_soft_form(condition)


def _sigmoid(condition: n.Compare, softness: Softness, positive: bool) -> n.Scalar:
    op = condition.op if positive else _NEGATED[condition.op]
    gap, _ = softness.leaf(condition.left, condition.right)
    slope = shapes.number(shapes.float_below(softness.slope or quick(1)))
    if op in ("=", "<>"):
        near = shapes.call("tauoid", gap, slope)
        return near if op == "=" else _complement(near)
    return shapes.call("sigmoid", gap if op in (">", ">=") else shapes.times(-1.0, gap), slope)


def _unknown_fails(truth: n.Scalar, condition: n.Scalar, softness: Softness) -> n.Scalar:
    if columns_of(condition) <= softness.filled:
        return truth
    return shapes.call("coalesce", truth, shapes.number(0.0))


def _complement(truth: n.Scalar) -> n.Scalar:
    return n.Arithmetic("-", shapes.number(1.0), truth)


def _product(parts: list[n.Scalar]) -> n.Scalar:
    return _paired("*", parts)


def _added(parts: list[n.Scalar]) -> n.Scalar:
    return _paired("+", parts)


def _paired(op: str, parts: list[n.Scalar]) -> n.Scalar:
    """Join many parts two by two: a long chain would be as deep as it is long."""
    if len(parts) == 1:
        return parts[0]
    middle = len(parts) // 2
    return n.Arithmetic(op, _paired(op, parts[:middle]), _paired(op, parts[middle:]))


def _any(parts: list[n.Scalar]) -> n.Scalar:
    return _complement(_product([_complement(p) for p in parts]))


# ── steps ────────────────────────────────────────────────────────────────────────────────────────


def lattice_of(scalar: n.Scalar, declared: Callable[[n.Column], Fraction | None]) -> Lattice | None:
    """Give the steps that an expression moves in, from types and declared steps; None if it moves freely.

    It decides how well a filter fits, not how private it is: the soft filter is what is released.
    """
    if isinstance(scalar, n.Literal):
        value = as_number(scalar.value)
        return None if value is None else Lattice(quick(0), value)
    if isinstance(scalar, n.Column):
        step = declared(scalar) or _step_of(scalar.type)
        return None if step is None else Lattice(step, quick(0))
    if isinstance(scalar, n.Clamp):
        return lattice_of(scalar.operand, declared)
    if isinstance(scalar, n.Cast) and scalar.type.kind in ("DOUBLE", "TIMESTAMP", "DATE"):
        return lattice_of(scalar.operand, declared)
    if isinstance(scalar, n.Negate):
        inner = lattice_of(scalar.operand, declared)
        return None if inner is None else Lattice(inner.step, -inner.offset)
    if isinstance(scalar, n.Arithmetic) and scalar.op in ("+", "-", "*"):
        left, right = lattice_of(scalar.left, declared), lattice_of(scalar.right, declared)
        if left is None or right is None:
            return None
        return _scaled(left, right) if scalar.op == "*" else gap_lattice(left, right, scalar.op)
    return None


def gap_lattice(left: Lattice, right: Lattice, op: str) -> Lattice:
    """Give the steps of a sum or a difference."""
    sign = 1 if op == "+" else -1
    return Lattice(_greatest_step(left.step, right.step), left.offset + sign * right.offset)


def _scaled(left: Lattice, right: Lattice) -> Lattice | None:
    for constant, other in ((left, right), (right, left)):
        if constant.step == 0:
            factor = constant.offset
            return Lattice(abs(factor) * other.step, factor * other.offset)
    return None


def _greatest_step(a: Fraction, b: Fraction) -> Fraction:
    if 0 in (a, b):
        return a + b
    scale = lcm(a.denominator, b.denominator)
    x, y = int(a * scale), int(b * scale)
    while y:
        x, y = y, x % y
    return ratio(x, scale)


def _step_of(kind: t.Type) -> Fraction | None:
    if kind.kind in ("DATE", "INTEGER"):
        return quick(1)
    return ratio(1, 10**kind.scale) if kind.kind == "DECIMAL" else None
