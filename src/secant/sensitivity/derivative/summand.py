"""What a summand is made of: its rounding to the grid, its filter, its margins.

In: the expressions that a release sums. Out: their parts, and public facts about them. Nothing is bounded here.
"""

from __future__ import annotations

from secant.numeric.quick import quick
from secant.plan import nodes as n
from secant.plan.facts.ranges import Ranges, as_number
from secant.sensitivity.derivative import shapes
from secant.sensitivity.derivative.smooth_terms import Term

FARTHEST = 10**12
"""Where a protected column has no declared range, values beyond this are moved here."""


def factors(value: n.Scalar) -> list[n.Scalar]:
    """Split a product."""
    while isinstance(value, n.Cast) and value.type.kind == "DOUBLE":
        value = value.operand
    if isinstance(value, n.Arithmetic) and value.op == "*":
        sides = factors(value.left), factors(value.right)
        # Only a filter is split off: a value that is a product moves as one.
        if any(is_ramp(p) for p in sides[0]) and len(sides[0]) == 1:
            return [sides[0][0], value.right]
    return [value]


def is_ramp(scalar: n.Scalar) -> bool:
    """Whether an expression is a softened filter."""
    return isinstance(scalar, n.Call) and scalar.function == "ramp"


def floor_of(term: Term) -> float | None:
    """Give the value of a fading bound for far rows, exactly as it is written."""
    if term.fade is None or term.cap is None:
        return None
    return shapes.float_above(term.fade.floor * term.cap)


def is_steep(value: n.Scalar) -> bool:
    """Whether a value may change steeply by itself, not only through its columns."""
    return any(
        (isinstance(x, n.Call) and x.function in ("exp", "ln", "power", "sqrt"))
        or (isinstance(x, n.Arithmetic) and x.op == "/")
        for x in n.walk(value)
    )


def share_above(margin: n.Scalar, edge: float, plain: Ranges) -> float:
    """Give the share of a margin's range above an edge: what passes, if values are spread evenly. Public."""
    interval = plain.of(margin)
    if not interval.bounded or interval.low == interval.high:
        return 1.0
    # In exact numbers: floats of two ends may be one.
    low, high = interval.ends()
    return float(min(quick(1), max(quick(0), (high - quick(edge)) / (high - low))))


def all_of(margin: n.Scalar) -> list[n.Scalar]:
    """Split a least margin into the margins that must all be large."""
    if isinstance(margin, n.Call) and margin.function == "lowest":
        return [p for a in margin.arguments for p in all_of(a)]
    return [margin]


def limits_declared(value: n.Scalar) -> bool:
    """Whether every limit in a value was declared, and none is the one that stands for a missing range."""
    ends = [
        as_number(end.value)
        for x in n.walk(value)
        if isinstance(x, n.Clamp)
        for end in (x.low, x.high)
        if isinstance(end, n.Literal)
    ]
    return all(end is None or abs(end) < FARTHEST for end in ends)
