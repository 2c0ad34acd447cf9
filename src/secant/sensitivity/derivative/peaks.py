"""The largest of a bound over many rows, with what can be done after the rows taken out of them.

In: the bound of one row, as an expression. Out: aggregates over rows, and the largest bound as an expression over their
columns. A bound that only falls with a distance is largest at the least one: no row needs an exponential
(derivative.floor).
"""

from __future__ import annotations

from fractions import Fraction

from secant.plan import nodes as n
from secant.plan.rewrites.rewrite import replaced
from secant.plan.typing import type_of
from secant.records import frozen
from secant.sensitivity.derivative import shapes
from secant.sensitivity.derivative.smooth_terms import Faded, read_faded


@frozen
class Peak:
    """The largest value of an expression over rows."""

    leaves: tuple[tuple[str, n.Scalar], ...]
    """Aggregates that it is made of: the function, and what is taken of each row. `leaf_name` names them."""
    whole: n.Scalar
    """The expression over their columns."""


def leaf_name(name: str, number: int) -> str:
    """Name one aggregate of a peak."""
    return f"{name}{number}"


def peak(row: n.Scalar, name: str) -> Peak:
    """Say which aggregates give the largest value of an expression."""
    leaves: list[tuple[str, n.Scalar]] = []

    def leaf(function: str, scalar: n.Scalar) -> n.Column:
        leaves.append((function, scalar))
        return n.Column(leaf_name(name, len(leaves) - 1), type_of(scalar))

    def largest(scalar: n.Scalar) -> n.Scalar:
        if isinstance(scalar, n.Call) and scalar.function in ("highest", "greatest"):
            parts = scalar.arguments
            if scalar.function == "highest":  # where none is empty
                parts = tuple(
                    a for a in parts if not any(_covers(b, a) for b in parts if b is not a)
                )
            peaks = tuple(largest(a) for a in parts)
            return peaks[0] if len(peaks) == 1 else n.Call("greatest", peaks)
        if isinstance(scalar, n.Arithmetic) and scalar.op == "*" and _positive(scalar.left):
            return n.Arithmetic("*", scalar.left, largest(scalar.right))
        faded = read_faded(scalar)
        if faded is None:
            return leaf("max", scalar)
        if faded.core is None or _positive(faded.core):
            least: n.Scalar = leaf("min", faded.distance)
            return replaced(scalar, faded.distance, least)
        return shapes.call("greatest", leaf("max", _near(faded)), faded.floor)

    whole = largest(row)
    return Peak(tuple(leaves), whole)


def _covers(larger: n.Scalar, smaller: n.Scalar) -> bool:
    """Whether a bound is another one and something more: f·(a·smaller + …) with f·a at least 1."""
    factor = Fraction(1)
    if isinstance(larger, n.Arithmetic) and larger.op == "*" and _positive(larger.left):
        factor, larger = _number(larger.left), larger.right
    while isinstance(larger, n.Arithmetic) and larger.op == "+":
        if _part_of(larger.right, smaller, factor):
            return True
        larger = larger.left
    return _part_of(larger, smaller, factor)


def _part_of(scalar: n.Scalar, smaller: n.Scalar, factor: Fraction) -> bool:
    if isinstance(scalar, n.Arithmetic) and scalar.op == "*" and _positive(scalar.left):
        factor, scalar = factor * _number(scalar.left), scalar.right
    return scalar is smaller and factor >= 1


def _number(scalar: n.Scalar) -> Fraction:
    assert isinstance(scalar, n.Literal)
    assert isinstance(scalar.value, float)
    return Fraction(scalar.value)


def _positive(scalar: n.Scalar) -> bool:
    return (
        isinstance(scalar, n.Literal)
        and isinstance(scalar.value, float)
        and 0 < scalar.value < 1e300
    )


def _near(faded: Faded) -> n.Scalar:
    """Write a fading bound without its floor: whatever lies below is not the largest, once the floor is put under."""
    return n.Case((n.Branch(faded.is_near, faded.near),), shapes.number(0.0))
