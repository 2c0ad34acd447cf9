"""Smooth bounds as records, and how they add up, multiply and fade.

In: positive expressions with the rates of their logarithms and public caps. Out: the same for sums,
products, maxima, and products with a fading factor (derivative.rates, derivative.floor). Nothing here knows a node's
rule.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from secant.numeric import interval as iv
from secant.numeric.quick import quick
from secant.plan import nodes as n
from secant.records import frozen
from secant.sensitivity.derivative import shapes
from secant.sensitivity.derivative.space import Key

Rates = Mapping[Key, Fraction]
NO_RATES: Rates = {}


@frozen
class Fade:
    """A factor e^(-alpha·distance) from distance 0 on, and the distance where the floor takes over."""

    distance: n.Scalar
    alpha: float
    far: float
    floor: Fraction


@frozen
class Term:
    """A positive expression, the rates of its logarithm, and a public number that it never exceeds."""

    expression: n.Scalar
    rates: Rates
    cap: Fraction | None
    fade: Fade | None = None
    """A fading factor of the expression, which a product keeps outermost: far rows then cost nothing.

    Rests on derivative.floor.
    """
    core: n.Scalar | None = None
    """The expression without its fading factor."""


def higher(a: Rates, b: Rates) -> Rates:
    """Give rates that cover both: those of a sum or a maximum."""
    return {k: max(a.get(k, quick(0)), b.get(k, quick(0))) for k in {**a, **b}}


def together(a: Rates, b: Rates) -> Rates:
    """Give the rates of a product."""
    return {k: a.get(k, quick(0)) + b.get(k, quick(0)) for k in {**a, **b}}


def constant_term(value: Fraction) -> Term:
    """Give a bound that does not vary."""
    return Term(shapes.number(shapes.float_above(value)), NO_RATES, value)


ONE, ZERO = constant_term(quick(1)), constant_term(quick(0))


def product(a: Term, b: Term) -> Term:
    """Multiply two bounds."""
    if a is ONE or b is ONE:
        return b if a is ONE else a
    cap = None if a.cap is None or b.cap is None else a.cap * b.cap
    rates = together(a.rates, b.rates)
    if b.fade is not None and a.fade is None:
        a, b = b, a
    if a.fade is not None and cap is not None:
        core = b.expression if a.core is None else n.Arithmetic("*", a.core, b.expression)
        return faded(a.fade, core, rates, cap)
    return Term(n.Arithmetic("*", a.expression, b.expression), rates, cap)


def faded(fade: Fade, core: n.Scalar | None, rates: Rates, cap: Fraction) -> Term:
    """Write core·e^(-alpha·distance), never below the floor of its cap, with constants for far rows.

    Rests on derivative.floor.
    """
    floor = shapes.number(shapes.float_above(fade.floor * cap))
    falling: n.Scalar = n.Case(
        (n.Branch(n.Compare("<=", fade.distance, shapes.number(0.0)), shapes.number(1.0)),),
        shapes.call("exp", shapes.times(-fade.alpha, fade.distance)),
    )
    # The core stands inside the branch, once: engines compute it for near rows only.
    near = falling if core is None else n.Arithmetic("*", core, falling)
    is_near = n.Compare("<", fade.distance, shapes.number(fade.far))
    expression = n.Case((n.Branch(is_near, shapes.call("greatest", near, floor)),), floor)
    return Term(expression, rates, cap, fade, core)


@frozen
class Faded:
    """What `faded` wrote, read back."""

    distance: n.Scalar
    core: n.Scalar | None
    is_near: n.Scalar
    near: n.Scalar
    """The bound where a row is near, but for its floor."""
    floor: n.Scalar


def read_faded(scalar: n.Scalar) -> Faded | None:
    """Read a fading bound; None if the expression is anything else."""
    if not isinstance(scalar, n.Case) or len(scalar.branches) != 1:
        return None
    (branch,), floor = scalar.branches, scalar.default
    is_near, value = branch.condition, branch.value
    if not (isinstance(is_near, n.Compare) and is_near.op == "<"):
        return None
    if not (
        isinstance(value, n.Call) and value.function == "greatest" and len(value.arguments) == 2
    ):
        return None
    near, distance = value.arguments[0], is_near.left
    core, falling = None, near
    if isinstance(near, n.Arithmetic) and near.op == "*":
        core, falling = near.left, near.right
    same = value.arguments[1] is floor and isinstance(is_near.right, n.Literal)
    if not (same and isinstance(floor, n.Literal) and _falls(falling, distance)):
        return None
    return Faded(distance, core, is_near, near, floor)


def _falls(scalar: n.Scalar, distance: n.Scalar) -> bool:
    """Whether an expression is 1 up to distance 0 and e^(-alpha·distance) beyond."""
    if not isinstance(scalar, n.Case) or len(scalar.branches) != 1:
        return False
    (branch,), fallback = scalar.branches, scalar.default
    at, power = branch.condition, fallback.arguments[0] if isinstance(fallback, n.Call) else None
    return (
        isinstance(at, n.Compare)
        and (at.op, at.left) == ("<=", distance)
        and _value(at.right) == 0.0
        and _value(branch.value) == 1.0
        and isinstance(fallback, n.Call)
        and fallback.function == "exp"
        and isinstance(power, n.Arithmetic)
        and (power.op, power.right) == ("*", distance)
        and isinstance(rate := _value(power.left), float)
        and rate <= 0
    )


def _value(scalar: n.Scalar) -> object:
    return scalar.value if isinstance(scalar, n.Literal) else None


def fading(distance: n.Scalar, alpha: Fraction, floor: Fraction) -> Fade:
    """Give a fading factor: its rate rounded down, its far end where it surely has reached the floor."""
    rate = shapes.float_below(alpha)
    high = iv.logarithm(iv.point(1 / floor)).high
    assert high is not None
    far = shapes.float_above(high / quick(rate)) if rate > 0 else 0.0
    return Fade(distance, rate, far, floor)


def added(a: Term | None, b: Term | None) -> Term:
    """Add two bounds; None is nothing."""
    if a is None or b is None:
        return b or a or ZERO
    cap = None if a.cap is None or b.cap is None else a.cap + b.cap
    return Term(shapes.plus(a.expression, b.expression), higher(a.rates, b.rates), cap)


def largest(terms: list[Term]) -> Term:
    """Give the maximum of bounds."""
    if len(terms) == 1:
        return terms[0]
    rates: Rates = NO_RATES
    for term in terms:
        rates = higher(rates, term.rates)
    caps = [term.cap for term in terms]
    cap = None if None in caps else max(c for c in caps if c is not None)
    return Term(shapes.call("greatest", *(x.expression for x in terms)), rates, cap)


def least(term: Term, limit: Fraction) -> Term:
    """Keep a bound below a constant that also bounds it (derivative.least)."""
    if term.cap is not None and term.cap <= limit:
        return term
    top = shapes.number(shapes.float_above(limit))
    return Term(shapes.call("least", term.expression, top), term.rates, limit)
