"""How far can floats lead a computed value from the real one? A bound that follows the expression.

In: an expression as the engine computes it, and the ranges of its parts. Out: the largest error of its
value, from declared ranges only; None where nothing limits it. Engines add, multiply and divide with a
relative error of 2^-53, and their elementary functions with at most 2^-50 (derivative.floats). An error has the
size of the largest number on the way, not of the result: that is what this is for.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from secant.numeric import interval as iv
from secant.numeric.quick import quick, ratio
from secant.plan import nodes as n
from secant.plan.facts.ranges import Ranges, as_number
from secant.plan.rule_table import RuleTable
from secant.plan.typing import type_of
from secant.sensitivity.derivative.lengths import read_length
from secant.sensitivity.derivative.soften.emptiness import moves_below

ROUND = ratio(1, 2**52)
FUNCTION = ratio(1, 2**49)
Error = Fraction | None
ERRORS: RuleTable[Callable[..., Error]] = RuleTable("float errors")


class FloatErrors:
    """Errors of the parts of one expression, each found once."""

    def __init__(
        self, protected: frozenset[str], moving: dict[n.Node, bool], ranges: Ranges
    ) -> None:
        """Take which parts move, and their ranges where nothing is declared, from who has looked at them before."""
        self.protected, self.moving, self.ranges = protected, moving, ranges
        self.known: dict[n.Node, Error] = {}

    def of(self, scalar: n.Scalar) -> Error:
        """Give the error of an expression; None if nothing limits it."""
        if scalar not in self.known:
            rule = ERRORS.find(scalar)
            if not moves_below(scalar, self.protected, self.moving):
                self.known[scalar] = quick(0)  # what the engine computes there is the public value
            else:
                self.known[scalar] = None if rule is None else rule(self, scalar)
        return self.known[scalar]

    def relative(self, scalar: n.Scalar) -> Error:
        """Give the relative error of products and of sums of one sign, which cancel nothing; None otherwise."""
        if isinstance(scalar, n.Literal) or not moves_below(scalar, self.protected, self.moving):
            return quick(0)
        if isinstance(scalar, (n.Column, n.Clamp)):
            return ROUND
        if isinstance(scalar, (n.Cast, n.Attempt)):
            return self.relative(scalar.operand)
        if isinstance(scalar, n.Call) and scalar.function == "abs":
            return self.relative(scalar.arguments[0])
        if isinstance(scalar, n.Call) and scalar.function == "power":
            exponent = _whole_exponent(scalar)
            inner = None if exponent is None else self.relative(scalar.arguments[0])
            # (1 + r)^n - 1 is at most 2nr for nr up to 1.
            if exponent is None or inner is None or exponent * inner > 1:
                return None
            return 2 * exponent * inner + FUNCTION
        if isinstance(scalar, n.Arithmetic) and scalar.op in ("+", "*"):
            a, b = self.relative(scalar.left), self.relative(scalar.right)
            if a is None or b is None:
                return None
            if scalar.op == "*":
                return a + b + a * b + 2 * ROUND
            lows = [self.span(s).low for s in (scalar.left, scalar.right)]
            positive = all(low is not None and low >= 0 for low in lows)
            return max(a, b) + 2 * ROUND if positive else None
        return None

    def most(self, scalar: n.Scalar) -> Error:
        """Give the largest size of an expression."""
        interval = self.span(scalar)
        return max(abs(e) for e in interval.ends()) if interval.bounded else None

    def span(self, scalar: n.Scalar) -> iv.Interval:
        """Give the range of an expression."""
        return self.ranges.of(scalar)


@ERRORS.rule(n.Literal)
def _literal(errors: FloatErrors, node: n.Literal) -> Error:
    value = as_number(node.value)
    if value is None:
        return quick(0)
    return quick(0) if type_of(node).kind == "DOUBLE" else abs(value) * ROUND


@ERRORS.rule(n.Column)
def _column(errors: FloatErrors, node: n.Column) -> Error:
    if node.type.kind in ("DOUBLE", "DATE", "BOOLEAN", "TEXT"):
        return quick(0)
    if node.type.kind == "INTEGER":
        return quick(2) ** 64 * ROUND
    return quick(10) ** (node.type.precision - node.type.scale) * ROUND


@ERRORS.rule(n.Extract)
def _extract(errors: FloatErrors, node: n.Extract) -> Error:
    """Microseconds are whole numbers; as seconds they are rounded once, or twice where the engine has decimals."""
    most = errors.most(node)
    return None if most is None or node.part != "epoch" else 2 * most * ROUND


@ERRORS.rule(n.Clamp)
def _clamp(errors: FloatErrors, node: n.Clamp) -> Error:
    kind = type_of(node)
    most = errors.most(node)
    if kind.kind in ("INTEGER", "DECIMAL") and most is not None:
        return most * ROUND
    return errors.of(node.operand)


@ERRORS.rule(n.Cast, n.Negate, n.Attempt)
def _passed(errors: FloatErrors, node: n.Cast | n.Negate | n.Attempt) -> Error:
    return errors.of(node.operand)


@ERRORS.rule(n.Arithmetic)
def _arithmetic(errors: FloatErrors, node: n.Arithmetic) -> Error:
    a, b = errors.of(node.left), errors.of(node.right)
    x, y = errors.most(node.left), errors.most(node.right)
    if a is None or b is None or x is None or y is None:
        return None
    if node.op in ("+", "-"):
        return a + b + (x + y + a + b) * ROUND
    if node.op == "*":
        return x * b + y * a + a * b + (x + a) * (y + b) * ROUND
    if node.op == "/":
        span = errors.span(node.right)
        low, high = span.ends()
        if low <= 0 <= high:
            return None
        least = min(abs(low), abs(high)) - b
        if least <= 0:
            return None
        return (a + x / least * b) / least + (x + a) / least * ROUND
    return None


@ERRORS.rule(n.Case)
def _case(errors: FloatErrors, node: n.Case) -> Error:
    return _largest([errors.of(v) for v in [*(b.value for b in node.branches), node.default]])


def _largest(errors: list[Error]) -> Error:
    return None if None in errors else max((e for e in errors if e is not None), default=quick(0))


@ERRORS.rule(n.Call)
def _call(errors: FloatErrors, node: n.Call) -> Error:
    if node.function in ("least", "greatest", "lowest", "highest", "coalesce"):
        return _largest([errors.of(a) for a in node.arguments])
    inner = errors.of(node.arguments[-1 if node.function == "date_diff" else 0])
    if node.function in ("abs", "date_diff", "nullif"):
        return inner
    if inner is None:
        return None
    if node.function == "ramp":
        return inner + ROUND
    if node.function in ("sigmoid", "tauoid"):
        slope = node.arguments[1]
        steepness = as_number(slope.value) if isinstance(slope, n.Literal) else None
        return None if steepness is None else abs(steepness) * inner + FUNCTION
    return _smooth(errors, node, inner)


def _smooth(errors: FloatErrors, node: n.Call, inner: Fraction) -> Error:
    """An elementary function: its steepest slope times the argument's error, and its own."""
    most = errors.most(node)
    span = errors.span(node.arguments[0])
    if most is None or not span.bounded:
        return None
    low, high = span.ends()
    if node.function == "exp":
        # e^error - 1 is at most twice the error for errors up to 1.
        return most * 2 * inner + most * 2 * FUNCTION if inner <= 1 else None
    if node.function == "ln" and low > 0:
        relative = errors.relative(node.arguments[0])
        # |ln(1 ± u)| is at most 2u for u up to 1/2.
        ways = [2 * relative] if relative is not None and 2 * relative <= 1 else []
        ways += [inner / (low - inner)] if low > inner else []
        return min(ways) + (most + 1) * FUNCTION if ways else None
    length = read_length(
        node, lambda x: moves_below(x, errors.protected, errors.moving), errors.span
    )
    if length is not None:
        # A length moves no further than its coordinates do; summing up and the root round relatively.
        parts = [errors.of(y) for y in length.coordinates]
        known = [e for e in parts if e is not None]
        terms = len(parts) + len(length.steady)
        if len(known) == len(parts):
            along = sum(known, (terms + 8) * most * FUNCTION)
            relative = errors.relative(node.arguments[0])
            return along if relative is None else min(along, most * (relative + FUNCTION))
    if node.function == "sqrt":
        relative = errors.relative(node.arguments[0])
        if relative is not None:
            return most * (relative + FUNCTION)
        if low - inner > 0:
            root = iv.square_root(iv.point(low - inner)).low
            return None if not root else inner / root + most * FUNCTION
        slope = iv.square_root(iv.point(inner)).high
        return None if slope is None else 2 * slope + most * FUNCTION
    if node.function == "power":
        return _power(errors, node, inner, most, low, high)
    return None


def _whole_exponent(node: n.Call) -> Fraction | None:
    """Give the exponent of a power if it is a whole number from 1 on."""
    argument = node.arguments[1]
    exponent = as_number(argument.value) if isinstance(argument, n.Literal) else None
    return exponent if exponent and exponent >= 1 and exponent.denominator == 1 else None


def _power(
    errors: FloatErrors,
    node: n.Call,
    inner: Fraction,
    most: Fraction,
    low: Fraction,
    high: Fraction,
) -> Error:
    argument = node.arguments[1]
    exponent = as_number(argument.value) if isinstance(argument, n.Literal) else None
    if exponent is None:
        return None
    magnitude = max(abs(low), abs(high)) + inner
    if _whole_exponent(node) is not None:
        return exponent * magnitude ** (int(exponent) - 1) * inner + most * FUNCTION
    if low - inner <= 0:
        # 1 - (1 - u)^r and (1 + u)^r - 1 are at most 2ru for r of at least 1/2 and ru up to 1, also next to x = 0.
        near = errors.relative(node.arguments[0])
        if near is None or low < 0 or exponent < ratio(1, 2) or exponent * near > 1:
            return None
        return most * (2 * exponent * near + FUNCTION)
    # x^r moves relatively r times as much as x.
    relative = abs(exponent) * inner / (low - inner)
    return most * 2 * relative + most * FUNCTION if relative <= ratio(1, 4) else None
