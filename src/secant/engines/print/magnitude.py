"""How far can a number in a statement reach? Decides which guards an engine that raises on overflow needs.

In: a plan. Out: for an expression, an interval that holds it whenever it is a finite number, and the smallest
magnitude other than zero. Only what the engine itself enforces is believed: column types, constants and clamps.
Never here: declared ranges, filters, data.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction

from secant.numeric import interval as iv
from secant.plan import nodes as n
from secant.plan.facts.ranges import NOTHING_DECLARED, Ranges
from secant.plan.rewrites.null_on_error import ROW_DIGITS, WHOLE
from secant.plan.typing import type_of
from secant.schema.types import Type

SLACK = 2.0**-53
"""A rounded result is a multiple of this part of its own size."""


@dataclass
class Magnitudes(Ranges):
    """Intervals that need no policy, each expression looked at once."""

    seen: dict[n.Scalar, iv.Interval] = field(default_factory=dict)
    steps: dict[n.Scalar, float | None] = field(default_factory=dict)
    sure: dict[n.Scalar, bool] = field(default_factory=dict)

    def of(self, scalar: n.Scalar) -> iv.Interval:
        """Give an interval that holds the expression where it is a finite number."""
        if scalar not in self.seen:
            interval = super().of(scalar)
            if isinstance(scalar, n.Clamp) and not self.finite(scalar.operand):
                # NaN, which no interval holds, becomes an ordinary number here: the upper end.
                interval = iv.hull(self.of(scalar.low), self.of(scalar.high))
            self.seen[scalar] = interval
        return self.seen[scalar]

    def magnitude(self, scalar: n.Scalar) -> float | None:
        """Give a bound of the magnitude of every finite value, or None."""
        interval = self.of(scalar)
        if not interval.bounded:
            return None
        largest = max(abs(end) for end in interval.ends())
        return float(largest) * (1 + SLACK) if largest < Fraction(10) ** 308 else None

    def within(self, scalar: n.Scalar, low: Fraction | int, high: Fraction | int) -> bool:
        """Whether every finite value lies between two numbers."""
        interval = self.of(scalar)
        return interval.bounded and low <= interval.ends()[0] and interval.ends()[1] <= high

    def finite(self, scalar: n.Scalar) -> bool:
        """Whether a value is never NaN or infinite, if it is there."""
        if scalar not in self.sure:
            self.sure[scalar] = _finite(self, scalar)
        return self.sure[scalar]

    def step(self, scalar: n.Scalar) -> float | None:
        """Give a magnitude of which every finite value, as a double, is a multiple; None if there is none."""
        if scalar not in self.steps:
            self.steps[scalar] = _step(self, scalar)
        return self.steps[scalar]


def magnitudes_of(plan: n.Relation | None) -> Magnitudes:
    """Collect where the columns of a plan come from."""
    magnitudes = Magnitudes(NOTHING_DECLARED, lambda group: 10**ROW_DIGITS)
    if plan is not None:
        magnitudes.follow(plan)
        scans = (node for node in n.walk(plan) if isinstance(node, n.Scan))
        magnitudes.filtered |= {f.name: _type_range(f.type) for scan in scans for f in scan.columns}
    return magnitudes


def _type_range(kind: Type) -> iv.Interval:
    """Give what a stored column of a type can hold."""
    if kind.kind == "INTEGER":
        return iv.interval(-WHOLE - 1, WHOLE)
    if kind.kind == "DECIMAL":
        return iv.interval(
            -(10 ** (kind.precision - kind.scale)), 10 ** (kind.precision - kind.scale)
        )
    return iv.EVERYTHING


def _finite(r: Magnitudes, scalar: n.Scalar) -> bool:
    if isinstance(scalar, n.Literal):
        return isinstance(scalar.value, (int, float, Decimal)) and math.isfinite(scalar.value)
    if type_of(scalar).kind in ("INTEGER", "DECIMAL"):
        return True
    if isinstance(scalar, n.Column):
        inner = r.definitions.get(scalar.name)
        return inner is not None and r.finite(inner)
    if isinstance(scalar, n.Clamp):  # NaN goes to its upper end
        return r.finite(scalar.low) and r.finite(scalar.high)
    if isinstance(scalar, (n.Cast, n.Attempt, n.Negate)):
        return r.finite(scalar.operand)
    if isinstance(scalar, n.Arithmetic):
        parts = r.finite(scalar.left) and r.finite(scalar.right)
        return parts and scalar.op in ("+", "-", "*") and r.magnitude(scalar) is not None
    if isinstance(scalar, n.Case):
        return all(map(r.finite, (*(b.value for b in scalar.branches), scalar.default)))
    if isinstance(scalar, n.Call):
        if scalar.function == "ramp":
            return True
        same = ("sigmoid", "tauoid", "abs", "least", "greatest", "lowest", "highest", "coalesce")
        return scalar.function in same and all(map(r.finite, scalar.arguments))
    return False


def _step(r: Magnitudes, scalar: n.Scalar) -> float | None:
    if isinstance(scalar, n.Literal):
        value = scalar.value
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            return _exact_step(scalar.type)
        return abs(float(value)) * SLACK if value else 1.0
    if isinstance(scalar, n.Column) and scalar.type.kind == "DOUBLE":
        inner = r.definitions.get(scalar.name)
        if scalar.name in r.aggregations:
            call = r.aggregations[scalar.name][0]
            inner = call.argument if call.function in ("sum", "min", "max") else None
        return None if inner is None else r.step(inner)
    exact = _exact_step(type_of(scalar))
    if exact is not None:
        return exact
    if isinstance(scalar, (n.Cast, n.Attempt, n.Negate)):
        return r.step(scalar.operand)
    if isinstance(scalar, n.Clamp):
        return _smallest(r, (scalar.operand, scalar.low, scalar.high))
    if isinstance(scalar, n.Case):
        values = (*(b.value for b in scalar.branches), scalar.default)
        return _smallest(r, tuple(v for v in values if type_of(v).kind != "NULL"))
    if isinstance(scalar, n.Arithmetic):
        return _arithmetic_step(r, scalar)
    if isinstance(scalar, n.Call):
        return _call_step(r, scalar)
    return None


def _exact_step(kind: Type) -> float | None:
    if kind.kind == "INTEGER":
        return 1.0
    return 10.0**-kind.scale * SLACK if kind.kind == "DECIMAL" else None


def _smallest(r: Magnitudes, parts: tuple[n.Scalar, ...]) -> float | None:
    steps = [r.step(p) for p in parts]
    finite = [s for s in steps if s is not None]
    return min(finite) if finite and len(finite) == len(steps) else None


def _arithmetic_step(r: Magnitudes, node: n.Arithmetic) -> float | None:
    a, b = r.step(node.left), r.step(node.right)
    if a is None or b is None:
        return None
    if node.op in ("+", "-"):
        return min(a, b)
    if node.op == "*":
        return a * b or None
    most = r.magnitude(node.right)
    return (a / most * SLACK or None) if node.op == "/" and most else None


def _call_step(r: Magnitudes, node: n.Call) -> float | None:
    if node.function in ("least", "greatest", "lowest", "highest", "coalesce"):
        return _smallest(r, tuple(a for a in node.arguments if type_of(a).kind != "NULL"))
    if node.function == "exp":
        low = r.of(node.arguments[0]).low
        return math.exp(min(float(low), 0.0)) * SLACK if low is not None and low > -600 else None
    if node.function in ("floor", "ceil"):
        return 1.0
    if node.function in ("sigmoid", "tauoid"):
        sizes = [s for a in node.arguments if (s := r.magnitude(a)) is not None]
        small = len(sizes) == 2 and math.prod(sizes) < 600
        return math.exp(-math.prod(sizes)) / 2 * SLACK if small else None
    if node.function in ("ln", "log10"):
        return (
            SLACK * SLACK / 4
        )  # beside 1 the logarithm of a double is as small as its distance from 1
    inner = r.step(node.arguments[0])
    if inner is None:
        return None
    if node.function == "sqrt":
        return math.sqrt(inner) * SLACK
    if node.function == "power" and isinstance(node.arguments[1], n.Literal):
        exponent = node.arguments[1].value
        if isinstance(exponent, int) and 1 <= exponent <= 64:
            return inner**exponent * SLACK or None
    if node.function == "ramp":
        return min(inner, SLACK)
    return inner if node.function in ("abs", "nullif") else None
