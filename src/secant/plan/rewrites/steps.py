"""Whole numbers of public steps: how they are computed.

In: Quantize nodes. Out: the arithmetic that engines and `evaluate` do for them, which is also what papers hold.
"""

from __future__ import annotations

from secant.plan import nodes as n
from secant.schema import types as t


def as_product(node: n.Quantize) -> n.Scalar:
    """Write a number of steps as a product, rounded, and clamped where ends are given."""
    factor = n.Literal(float(1 / node.step), t.DOUBLE)
    whole = n.Cast(n.Arithmetic("*", node.operand, factor), t.INTEGER)
    if node.low is None or node.high is None:
        return whole
    return n.Clamp(whole, n.Literal(node.low, t.INTEGER), n.Literal(node.high, t.INTEGER))
