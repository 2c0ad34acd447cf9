"""Smooth bounds of scalar shapes: powers, exponentials, logarithms, and what all shapes are built of.

In: a plan expression x of type DOUBLE, the smoothness alpha per unit of x, and the declared range of
x (None: no end there), into which x has been clamped. Out: `Smooth`, a plan expression that is at
least the size |f(x)| or the slope |f'(x)|, with the rate at which its logarithm can move at most; None
where there is no bound. Every bound here is the smallest one that is alpha-smooth on the range
(derivative.envelope), unless its docstring says otherwise. Never here: data, aggregates, norms, the owner's budget.
Expressions are total: for a number x in the range they give a positive number, or 0 for a shape that
is 0 everywhere.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from fractions import Fraction

from secant.errors import UsageError
from secant.numeric.ball import Ball, ball, lower, upper, working_precision
from secant.numeric.parameters import exact, positive
from secant.numeric.powers import float_above as float_above
from secant.numeric.quick import quick, ratio
from secant.plan import nodes as n
from secant.records import frozen
from secant.schema.types import DOUBLE

LARGEST_EXPONENT = 700
"""Arguments of exp are kept within this distance of 0, where no engine overflows."""
_BITS = 192
_LARGEST = 2.0**1000
"""A bound beyond this is none: it would overflow in the next product."""
_LOG_LARGEST = 690
_HIGHEST_POWER = 1 << 20
_LEAST_RATE = ratio(1, 2**500)
_FLAT = ratio(3, 20)
"""A size whose bound would vary by less than this takes its largest value, which costs no smoothness."""
_JUST_BELOW_E = ratio(2_718_281_828_459, 10**12)
_JUST_ABOVE_E = ratio(2_718_281_828_460, 10**12)

End = Fraction | None


@frozen
class Smooth:
    """A bound that is computed from x, and its smoothness: `rate` is at most the alpha asked for."""

    expression: n.Scalar
    rate: Fraction


@frozen
class Knee:
    """The point beyond which a shape is too steep, a bound of it there, and the rate of decay from there on."""

    at: float
    value: float
    rate: float


# ── expressions ──────────────────────────────────────────────────────────────────────────────────


def number(value: float) -> n.Literal:
    """Write a constant."""
    return n.Literal(float(value), DOUBLE)


def plus(left: n.Scalar, right: n.Scalar) -> n.Scalar:
    """Write a sum."""
    return n.Arithmetic("+", left, right)


def shifted(left: n.Scalar, right: float) -> n.Scalar:
    """Write a sum with a constant."""
    return left if right == 0 else plus(left, number(right))


def minus(left: n.Scalar, right: float) -> n.Scalar:
    """Write a difference to a constant."""
    return left if right == 0 else n.Arithmetic("-", left, number(right))


def times(factor: float, right: n.Scalar) -> n.Scalar:
    """Write a multiple."""
    return right if factor == 1 else n.Arithmetic("*", number(factor), right)


def over(left: n.Scalar, right: n.Scalar) -> n.Scalar:
    """Write a quotient."""
    return n.Arithmetic("/", left, right)


def call(function: str, *arguments: n.Scalar) -> n.Scalar:
    """Write a call."""
    return n.Call(function, arguments)


def choice(left: n.Scalar, op: str, right: float, then: n.Scalar, default: n.Scalar) -> n.Scalar:
    """Write a choice that rests on a comparison with a constant."""
    return n.Case((n.Branch(n.Compare(op, left, number(right)), then),), default)


def mirror(x: n.Scalar) -> n.Scalar:
    """Write the opposite of x."""
    return times(-1.0, x)


def exponential(
    rate: float,
    x: n.Scalar,
    low: End = None,
    high: End = None,
    weight: float = 0.0,
    least: float = -LARGEST_EXPONENT,
) -> n.Scalar:
    """Write e^(rate·x + weight) for x between two ends, with x held back where exp could leave its reach.

    It is x that is held back, not the product: that could overflow, and engines differ in what they do then.
    """
    arguments = ((quick(end) - quick(weight)) / quick(rate) for end in (least, LARGEST_EXPONENT))
    first, last = sorted(arguments)
    if (low is None or low < first) and first > -sys.float_info.max:
        x = call("greatest", x, number(float(first)))
    if (high is None or high > last) and last < sys.float_info.max:
        x = call("least", x, number(float(last)))
    return call("exp", shifted(times(rate, x), weight))


# ── numbers ──────────────────────────────────────────────────────────────────────────────────────


def float_below(value: Fraction) -> float:
    """Give the largest float that is at most `value`."""
    return -float_above(-value)


def above(value: Callable[[], Ball]) -> float:
    """Give a float that is certainly at least a real number."""
    with working_precision(_BITS):
        return float_above(upper(value()))


def below(value: Callable[[], Ball]) -> float:
    """Give a float that is certainly at most a real number."""
    with working_precision(_BITS):
        return float_below(lower(value()))


def constant(value: Fraction) -> Smooth:
    """Give the bound of a shape that is the same everywhere."""
    return Smooth(number(float_above(value)), quick(0))


def checked(alpha: Fraction, low: End, high: End) -> Fraction:
    """Give alpha, once it and the range are what they can be."""
    alpha = positive(alpha, "alpha")
    ends = [exact(end, "an end of a range") for end in (low, high) if end is not None]
    if len(ends) == 2 and ends[0] > ends[1]:
        raise UsageError("USE-001", "a range must not end below its start")
    return alpha


# ── wings (derivative.envelope) ───────────────────────────────────────────────────────────────────────────


def knee(
    at: float,
    value: Callable[[Ball], Ball],
    log_slope: Callable[[Ball], Ball],
    alpha: Fraction,
) -> Knee | None:
    """Give the knee of a log-concave wing at a float on its smooth side; None if the bound there overflows.

    The tangent of the logarithm at the knee lies above the wing, so a decay that is no steeper than
    the tangent, and no steeper than alpha, bounds the wing and is smooth enough.
    """
    with working_precision(_BITS):
        point = ball(quick(at))
        bound = float_above(upper(value(point)))
        steepness = min(alpha, max(quick(0), lower(log_slope(point))))
    return None if bound > _LARGEST else Knee(at, bound, float_below(steepness))


def decay(start: Knee, distance: n.Scalar, farthest: End = None) -> n.Scalar:
    """Write the decay of a bound with the distance from its knee, which is at most `farthest`.

    It ends where the bound, not the exponential alone, leaves the reach: a subnormal float is inexact.
    """
    least = -LARGEST_EXPONENT - min(0.0, math.log(start.value))
    if start.rate == 0 or least >= 0:
        return number(start.value)
    fall = exponential(-start.rate, distance, quick(0), farthest, least=least)
    return times(start.value, fall)


def rising(x: n.Scalar, start: Knee, shape: n.Scalar, low: End, high: End) -> n.Scalar:
    """Write the bound of a shape that grows with x and is smooth enough right of the knee."""
    if low is not None and low >= quick(start.at):
        return shape
    farthest = None if low is None else quick(start.at) - low
    tail = decay(start, n.Arithmetic("-", number(start.at), x), farthest)
    if high is not None and high <= quick(start.at):
        return tail
    return choice(x, ">=", start.at, shape, tail)


def falling(x: n.Scalar, start: Knee, shape: n.Scalar, high: End = None) -> n.Scalar:
    """Write the bound of a shape that shrinks as x grows and is smooth enough left of the knee."""
    if high is not None and high <= quick(start.at):
        return shape
    farthest = None if high is None else high - quick(start.at)
    return choice(x, "<=", start.at, shape, decay(start, minus(x, start.at), farthest))


# ── powers (derivative.power) ─────────────────────────────────────────────────────────────────────────────


def identity_size(x: n.Scalar, alpha: Fraction, low: End, high: End) -> Smooth | None:
    """Bound |x|. The slope is 1."""
    return power_size(x, quick(1), alpha, low, high)


def has_size(alpha: Fraction) -> bool:
    """Whether |x| has a bound at this rate whatever the range is: none overflows at a knee of at most 2^500."""
    return _LEAST_RATE <= alpha <= 1 / _LEAST_RATE


def column_size(x: n.Scalar, alpha: Fraction, low: End, high: End) -> Smooth | None:
    """Bound |x|: by a straight line where that is almost the smallest, which spares an exponential a row."""
    most = None if low is None or high is None else max(abs(low), abs(high))
    if most is not None and alpha * most <= _FLAT:
        return constant(most)
    if most is None or alpha * most > 1:
        return _monomial(x, quick(1), quick(1), checked(alpha, None, None), low, high)
    # most·(1 + alpha·|x|)/(1 + alpha·most) is at least |x| up to `most`, and its logarithm rises by alpha at most.
    start = float_above(most / (1 + alpha * most))
    steepness = float_below(quick(start) * alpha)
    grown = float_above(max(quick(0), most - quick(steepness) * most))
    size = x if low is not None and low >= 0 else call("abs", x)
    line = plus(times(steepness, size), number(max(start, grown)))
    return Smooth(line, alpha)


def power_size(
    x: n.Scalar, exponent: Fraction, alpha: Fraction, low: End, high: End
) -> Smooth | None:
    """Bound |x^exponent|.

    None where the power is not defined on the whole range (a broken exponent and negative x) or
    unbounded on it (a negative exponent and x near 0).
    """
    alpha, exponent = checked(alpha, low, high), exact(exponent, "an exponent")
    if not _defined(exponent, low):
        return None
    return _monomial(x, quick(1), exponent, alpha, low, high)


def power_slope(
    x: n.Scalar, exponent: Fraction, alpha: Fraction, low: End, high: End
) -> Smooth | None:
    """Bound |exponent·x^(exponent − 1)|; None as for the size, or where the slope is unbounded."""
    alpha, exponent = checked(alpha, low, high), exact(exponent, "an exponent")
    if not _defined(exponent, low):
        return None
    return _monomial(x, abs(exponent), exponent - 1, alpha, low, high)


def reciprocal_size(x: n.Scalar, alpha: Fraction, low: End, high: End) -> Smooth | None:
    """Bound |1/x|; None unless the range keeps away from 0."""
    return power_size(x, quick(-1), alpha, low, high)


def reciprocal_slope(x: n.Scalar, alpha: Fraction, low: End, high: End) -> Smooth | None:
    """Bound 1/x²; None unless the range keeps away from 0."""
    return power_slope(x, quick(-1), alpha, low, high)


def _defined(exponent: Fraction, low: End) -> bool:
    if abs(exponent) > _HIGHEST_POWER:
        return False  # floats do not tell such a power from 0 or infinity
    return exponent.denominator == 1 or (low is not None and low >= 0)


def _monomial(
    x: n.Scalar, factor: Fraction, exponent: Fraction, alpha: Fraction, low: End, high: End
) -> Smooth | None:
    """Bound factor·|x|^exponent."""
    if factor == 0 or exponent == 0:
        return constant(factor)
    if _reaches_further_left(low, high):
        x, low, high = mirror(x), _opposite(high), _opposite(low)
    if low is None or low < 0:
        return _even_power(x, factor, exponent, alpha, low, high) if exponent > 0 else None
    if exponent < 0:
        return _shrinking_power(x, factor, exponent, alpha, low, high)
    if high == 0:
        return constant(quick(0))
    start = _power_knee(factor, exponent, alpha, high)
    if start is None:
        return None
    shape = _raised(x, factor, exponent, high)
    rate = min(alpha, exponent / low) if low > 0 else alpha
    return Smooth(rising(x, start, shape, low, high), rate)


def _reaches_further_left(low: End, high: End) -> bool:
    if low is None or high is None:
        return low is None and high is not None
    return -low > high


def _opposite(end: End) -> End:
    return None if end is None else -end


def _power_knee(factor: Fraction, exponent: Fraction, alpha: Fraction, far: End) -> Knee | None:
    """Give the knee of a growing power: its logarithm has slope exponent/x."""
    point = exponent / alpha if far is None else min(exponent / alpha, far)
    if factor == exponent == 1:  # all of it is rational, and rounds to the same floats as balls do
        at = float_above(point)
        return None if at > _LARGEST else Knee(at, at, float_below(min(alpha, 1 / quick(at))))
    return knee(
        float_above(point),
        lambda p: ball(factor) * p ** ball(exponent),
        lambda p: ball(exponent) / p,
        alpha,
    )


def _even_power(
    x: n.Scalar, factor: Fraction, exponent: Fraction, alpha: Fraction, low: End, high: End
) -> Smooth | None:
    """Bound a growing power of |x| on a range around 0 that reaches at least as far right as left."""
    right = _power_knee(factor, exponent, alpha, high)
    left = _power_knee(factor, exponent, alpha, _opposite(low))
    if right is None or left is None:
        return None
    if left == right:
        size = call("abs", x)
        shape = _raised(size, factor, exponent, high)
        return Smooth(rising(size, right, shape, quick(0), high), alpha)
    assert low is not None  # with no end on the left both knees are the same
    span = None if high is None else high - low
    nearer = decay(left, shifted(x, left.at), span)
    further = rising(x, right, _raised(x, factor, exponent, high), low, high)
    return Smooth(call("greatest", further, nearer), alpha)


def _shrinking_power(
    x: n.Scalar, factor: Fraction, exponent: Fraction, alpha: Fraction, low: Fraction, high: End
) -> Smooth | None:
    """Bound a negative power of x > 0: its logarithm is convex, so the peak at the low end is all that counts."""
    at = float_below(low)
    if at <= 0:
        return None
    start = knee(
        at,
        lambda p: ball(factor) * p ** ball(exponent),
        lambda p: -ball(exponent) / p,
        alpha,
    )
    if start is None:
        return None
    shape = _raised(x, factor, exponent, high)
    steepest = -exponent / quick(at)
    if steepest <= alpha:
        return Smooth(shape, steepest)
    tail = decay(start, minus(x, at), None if high is None else high - quick(at))
    if high is not None and _decay_covers(start, factor, exponent, high):
        return Smooth(tail, alpha)
    return Smooth(call("greatest", shape, tail), alpha)


def _decay_covers(start: Knee, factor: Fraction, exponent: Fraction, high: Fraction) -> bool:
    """Whether the decay from the low end is at least the power at the high end, and so everywhere between."""
    with working_precision(_BITS):
        there = ball(factor) * ball(high) ** ball(exponent)
        run = ball(quick(start.rate)) * (ball(high) - ball(quick(start.at)))
        return bool(there <= ball(quick(start.value)) * (-run).exp())


def _raised(x: n.Scalar, factor: Fraction, exponent: Fraction, far: End) -> n.Scalar:
    """Write factor·x^exponent for x > 0, with x held back where the power would overflow or vanish."""
    if 1023 * abs(exponent) > 1000:
        limit = 2.0 ** float(1000 / abs(exponent))
        if far is None or far > quick(limit):
            x = call("least", x, number(limit))
    if exponent == -1:
        return over(number(float_above(factor)), x)
    raised = x if exponent == 1 else call("power", x, number(float(exponent)))
    return times(float_above(factor), raised)


# ── exponentials (derivative.exp) ─────────────────────────────────────────────────────────────────────────


def exponent_size(
    x: n.Scalar, rate: Fraction, alpha: Fraction, low: End, high: End
) -> Smooth | None:
    """Bound e^(rate·x); None if it is too steep and its range has no end on the side where it grows."""
    alpha, rate = checked(alpha, low, high), exact(rate, "a rate")
    return _exponential(x, quick(1), rate, alpha, low, high)


def exponent_slope(
    x: n.Scalar, rate: Fraction, alpha: Fraction, low: End, high: End
) -> Smooth | None:
    """Bound |rate|·e^(rate·x); None as for the size."""
    alpha, rate = checked(alpha, low, high), exact(rate, "a rate")
    return _exponential(x, abs(rate), rate, alpha, low, high)


def _exponential(
    x: n.Scalar, factor: Fraction, rate: Fraction, alpha: Fraction, low: End, high: End
) -> Smooth | None:
    """Bound factor·e^(rate·x). The factor goes into the exponent, where it cannot overflow."""
    if rate == 0:
        return constant(factor)
    weight = 0.0 if factor == 1 else above(lambda: ball(factor).log())
    if abs(rate) <= alpha:
        slower = math.copysign(float_below(abs(rate)), rate)
        return Smooth(exponential(slower, x, low, high, weight), abs(rate))
    if rate < 0:
        return _exponential(mirror(x), factor, -rate, alpha, _opposite(high), _opposite(low))
    if high is None:
        return None
    at, slower = float_above(high), float_below(alpha)
    top = rate * quick(at) + quick(weight)
    span = None if low is None else quick(at) - low
    if abs(top) < _LOG_LARGEST:
        start = Knee(at, above(lambda: ball(top).exp()), slower)
        return Smooth(decay(start, n.Arithmetic("-", number(at), x), span), alpha)
    # The value at the end overflows or vanishes; its logarithm does not.
    fall = exponential(slower, minus(x, at), _opposite(span), quick(0), float_above(top))
    return Smooth(fall, alpha)


# ── logarithms (derivative.ln) ────────────────────────────────────────────────────────────────────────────


def logarithm_slope(x: n.Scalar, alpha: Fraction, low: End, high: End) -> Smooth | None:
    """Bound 1/x for x > 0; None unless the range keeps away from 0 on the positive side."""
    if low is None or low <= 0:
        checked(alpha, low, high)
        return None
    return reciprocal_size(x, alpha, low, high)


def logarithm_size(x: n.Scalar, alpha: Fraction, low: End, high: End) -> Smooth | None:
    """Bound |ln x| for x > 0; None unless the range keeps away from 0 on the positive side."""
    alpha = checked(alpha, low, high)
    if low is None or low <= 0 or float_below(low) <= 0:
        return None
    low = quick(float_below(low))
    parts: list[Smooth] = []
    if low < 1:
        parts.append(_logarithm_below_one(x, alpha, low, high))
    if high is None or high > 1:
        parts.append(_logarithm_above_one(x, alpha, low, high))
    if not parts:
        return constant(quick(0))
    if len(parts) == 1:
        return parts[0]
    return Smooth(call("greatest", *(part.expression for part in parts)), alpha)


def _logarithm_knee(at: float, alpha: Fraction) -> Knee:
    """Give the knee of |ln x|: its logarithm has slope 1/(x·ln x)."""
    point = knee(at, lambda p: abs(p.log()), lambda p: 1 / abs(p * p.log()), alpha)
    assert point is not None  # no float has a logarithm that overflows
    return point


def _logarithm_above_one(x: n.Scalar, alpha: Fraction, low: Fraction, high: End) -> Smooth:
    """Bound by what |ln x| is right of 1, where its logarithm is concave."""
    at = above(lambda: ball(1 / alpha).lambertw().exp())
    if high is not None:
        at = min(at, float_above(high))
    start = _logarithm_knee(at, alpha)
    rate = alpha
    if low >= quick(at):
        rate = min(alpha, quick(above(lambda: 1 / (ball(low) * ball(low).log()))))
    return Smooth(rising(x, start, call("ln", x), low, high), rate)


def _logarithm_below_one(x: n.Scalar, alpha: Fraction, low: Fraction, high: End) -> Smooth:
    """Bound by what |ln x| is left of 1: steep at the low end, steep at 1, flattest (slope e) at 1/e."""
    span = None if high is None else high - low
    alone = alpha <= _JUST_ABOVE_E
    if alone:  # it is too steep everywhere
        alpha = min(alpha, _JUST_BELOW_E)
    else:
        outer = above(lambda: ball(-1 / alpha).lambertw(-1).exp())
        inner = below(lambda: ball(-1 / alpha).lambertw().exp())
        alone = low >= quick(inner)
    end = decay(_logarithm_knee(float(low), alpha), minus(x, float(low)), span)
    if alone:
        return Smooth(end, alpha)
    middle = falling(x, _logarithm_knee(inner, alpha), call("abs", call("ln", x)), high)
    if low >= quick(outer):
        return Smooth(middle, alpha)
    return Smooth(call("greatest", middle, end), alpha)
