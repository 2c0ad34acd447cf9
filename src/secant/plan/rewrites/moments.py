"""AVG, VARIANCE, STDDEV and COVAR_POP as formulas over sums about a center: the one place that knows them.

In: means of x - c and of its squares, the number of values, the range of x. Out: an expression, moved to where the true
value can lie. Never here: how the sums are taken; noisy whole numbers and softened values are summed in their own ways.
"""

from __future__ import annotations

from fractions import Fraction

from secant.plan import nodes as n
from secant.schema import types as t


def average(mean: n.Scalar, center: Fraction, low: Fraction, high: Fraction) -> n.Scalar:
    """Give center + S/N, moved into the range."""
    return n.Clamp(n.Arithmetic("+", mean, _number(center)), _number(low), _number(high))


def covariance(product: n.Scalar, means: tuple[n.Scalar, n.Scalar], width: Fraction) -> n.Scalar:
    """Give P/N - (S/N)(T/N); it keeps to a quarter of both widths, of which `width` is the product."""
    return _spread(product, means, -width / 4, width / 4)


def variance(
    function: str, square: n.Scalar, mean: n.Scalar, number: n.Scalar, width: Fraction
) -> n.Scalar:
    """Give Q/N - (S/N)^2, moved into [0, (width/2)^2], that of a sample by N/(N-1); STDDEV is its root."""
    expression = _spread(square, (mean, mean), Fraction(0), width**2 / 4)
    if function.endswith("_samp"):
        two = n.Call("greatest", (number, _number(Fraction(2))))
        less = n.Arithmetic("-", two, _number(Fraction(1)))
        expression = n.Arithmetic("*", expression, n.Arithmetic("/", two, less))
    return n.Call("sqrt", (expression,)) if function.startswith("stddev") else expression


def _spread(
    product: n.Scalar, means: tuple[n.Scalar, n.Scalar], least: Fraction, most: Fraction
) -> n.Scalar:
    value = n.Arithmetic("-", product, n.Arithmetic("*", *means))
    return n.Clamp(value, _number(least), _number(most))


def _number(value: Fraction) -> n.Literal:
    return n.Literal(float(value), t.DOUBLE)
