"""Soft filters as plan expressions, with smooth bounds of their size and slope.

In: a plan expression x of type DOUBLE (what is compared, minus what it is compared with), how steep
the filter is, and the smoothness alpha per unit of x. Out: the filter's value as a plan
expression, and `Smooth` bounds of its size and its slope on the whole line, each the smallest one that
is alpha-smooth unless its docstring says otherwise. Never here: which filter to take and how steep.
The sigmoid softens x > 0, the tauoid x = 0. A steepness is rounded down to a float once and for all: value and
bounds speak of the same filter.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from secant.numeric.ball import Ball, ball
from secant.numeric.parameters import positive
from secant.numeric.quick import quick
from secant.plan import nodes as n
from secant.sensitivity.derivative.shapes import (
    End,
    Knee,
    Smooth,
    above,
    below,
    call,
    exponential,
    falling,
    float_below,
    knee,
    number,
    over,
    plus,
    rising,
    shifted,
    times,
)

_STEEPEST = 1024
"""Beyond this multiple of a filter's own steepness a smaller bound would drown in rounding."""


# ── sigmoid (derivative.sigmoid) ──────────────────────────────────────────────────────────────────────────


def sigmoid(x: n.Scalar, a: Fraction) -> n.Scalar:
    """Write e^(ax)/(e^(ax) + 1)."""
    return _sigmoid(x, _steepness(a), None)


def sigmoid_size(x: n.Scalar, a: Fraction, alpha: Fraction) -> Smooth:
    """Bound the sigmoid."""
    a, alpha = _steepness(a), positive(alpha, "alpha")
    if alpha >= a:
        return Smooth(_sigmoid(x, a, None), a)
    start = _certain(
        above(lambda: (ball(a / alpha) - 1).log() / ball(a)),
        lambda p: 1 / (1 + (-ball(a) * p).exp()),
        lambda p: ball(a) / (1 + (ball(a) * p).exp()),
        alpha,
    )
    return Smooth(rising(x, start, _sigmoid(x, a, quick(start.at)), None, None), alpha)


def sigmoid_slope(x: n.Scalar, a: Fraction, alpha: Fraction) -> Smooth:
    """Bound the derivative of the sigmoid."""
    a, alpha = _steepness(a), positive(alpha, "alpha")
    if alpha >= a:
        return Smooth(_sigmoid_derivative(x, a, None), a)
    start = _certain(
        below(lambda: 2 * ball(alpha / a).atanh() / ball(a)),
        lambda p: ball(a) / (2 + 2 * (ball(a) * p).cosh()),
        lambda p: ball(a) * (ball(a) * p / 2).tanh(),
        alpha,
    )
    shape = _sigmoid_derivative(x, a, quick(start.at))
    return Smooth(falling(call("abs", x), start, shape), alpha)


def _sigmoid(x: n.Scalar, a: Fraction, low: End) -> n.Scalar:
    return over(number(1), shifted(exponential(-float(a), x, low), 1))


def _sigmoid_derivative(x: n.Scalar, a: Fraction, end: End) -> n.Scalar:
    return over(number(float(a)), shifted(_grow_and_shrink(float(a), x, end), 2))


# ── tauoid (derivative.tauoid) ────────────────────────────────────────────────────────────────────────────


def tauoid(x: n.Scalar, a: Fraction) -> n.Scalar:
    """Write 2/(e^(ax) + e^(−ax))."""
    return _tauoid(x, _steepness(a), None)


def tauoid_size(x: n.Scalar, a: Fraction, alpha: Fraction) -> Smooth:
    """Bound the tauoid."""
    a, alpha = _steepness(a), positive(alpha, "alpha")
    if alpha >= a:
        return Smooth(_tauoid(x, a, None), a)
    start = _certain(
        below(lambda: ball(alpha / a).atanh() / ball(a)),
        lambda p: (ball(a) * p).sech(),
        lambda p: ball(a) * (ball(a) * p).tanh(),
        alpha,
    )
    shape = _tauoid(x, a, quick(start.at))
    return Smooth(falling(call("abs", x), start, shape), alpha)


def tauoid_slope(x: n.Scalar, a: Fraction, alpha: Fraction) -> Smooth:
    """Bound the derivative of the tauoid; the smallest bound up to alpha = 1024a, and that one beyond."""
    a = _steepness(a)
    alpha = min(positive(alpha, "alpha"), _STEEPEST * a)
    size, ratio = call("abs", x), alpha / a

    def crossing(sign: int) -> Ball:
        """Where the logarithm of the slope rises (1) or falls (-1) at the rate alpha: 2t² + sign·ratio·t = 1."""
        root = ((ball(ratio) ** 2 + 8).sqrt() - sign * ball(ratio)) / 4
        return root.atanh() / ball(a)

    def slope(p: Ball) -> Ball:
        return ball(a) * (ball(a) * p).tanh() * (ball(a) * p).sech()

    def growth(p: Ball) -> Ball:
        t = (ball(a) * p).tanh()
        return ball(a) * (1 / t - 2 * t)

    if ratio < 1:
        far = _certain(below(lambda: crossing(-1)), slope, lambda p: -growth(p), alpha)
        shape = falling(size, far, _tauoid_derivative(size, a, quick(far.at)))
    else:
        shape = _tauoid_derivative(size, a, None)
    near = _certain(above(lambda: crossing(1)), slope, growth, alpha)
    return Smooth(rising(size, near, shape, quick(0), None), alpha)


def _tauoid(x: n.Scalar, a: Fraction, end: End) -> n.Scalar:
    return over(number(2), _grow_and_shrink(float(a), x, end))


def _tauoid_derivative(size: n.Scalar, a: Fraction, end: End) -> n.Scalar:
    """Write a·sech·tanh of a·size, for size > 0."""
    growth = exponential(2 * float(a), size, quick(0), end)
    tangent = n.Arithmetic("-", number(1), over(number(2), shifted(growth, 1)))
    return times(float(a), n.Arithmetic("*", _tauoid(size, a, end), tangent))


# ── what they share ──────────────────────────────────────────────────────────────────────────────


def _steepness(a: Fraction) -> Fraction:
    return quick(float_below(positive(a, "a steepness")))


def _certain(
    at: float, value: Callable[[Ball], Ball], log_slope: Callable[[Ball], Ball], alpha: Fraction
) -> Knee:
    """Give the knee of a filter, whose bounds cannot overflow: parameters are at most 2^512."""
    point = knee(at, value, log_slope, alpha)
    assert point is not None
    return point


def _grow_and_shrink(rate: float, x: n.Scalar, end: End) -> n.Scalar:
    """Write e^(rate·x) + e^(−rate·x) for |x| up to `end`."""
    low = None if end is None else -end
    return plus(exponential(rate, x, low, end), exponential(-rate, x, low, end))
