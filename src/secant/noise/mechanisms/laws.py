"""The laws of real-valued noise: the probability to exceed v, enclosed, and a first guess at it.

In: public shape parameters. Out: `Law` records for `grid.draw_cell`. Nothing here knows about data,
ε or sensitivity, and no draw is decided by a float.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist
from typing import ClassVar

from flint import arb

from secant.noise.mechanisms.grid import Law
from secant.numeric import optimal_law
from secant.numeric.ball import Ball, ball, decide
from secant.records import frozen

_STANDARD_NORMAL = NormalDist()


@frozen
class LaplaceLaw:
    """P(|V| > v) = exp(-v)."""

    sharp: ClassVar[bool] = True

    def survival(self, v: Ball, precision: int) -> Ball:
        """Enclose the tail."""
        return (-v).exp()

    def quantile(self, u: float) -> float:
        """Guess where the tail is u."""
        return -math.log(u)


@frozen
class GaussianLaw:
    """The standard normal law."""

    sharp: ClassVar[bool] = False

    def survival(self, v: Ball, precision: int) -> Ball:
        """Enclose the tail."""
        return (v / arb(2).sqrt()).erfc()

    def quantile(self, u: float) -> float:
        """Guess where the tail is u."""
        return abs(_STANDARD_NORMAL.inv_cdf(u / 2))


@lru_cache(maxsize=512)
def _optimal_constants(k: Fraction, precision: int) -> tuple[Ball, Ball, Ball, Ball]:
    """Give k, 2a/k, T and C of the optimal law at the working precision."""
    order = ball(k)
    peak = ball(1 - 1 / k).log() * (order - 1) if k > 1 else arb(0)
    a = peak.exp()
    body = 1 + 2 * a / order
    return order, 2 * a / order, body, a * (ball(1 + 1 / k).log() * (order + 1)).exp()


@frozen
class OptimalLaw:
    """The law p* of least noise for smooth bounds: (1 - v/k)^(k-1) up to 1, then C(1 + v/k)^-(k+1).

    `k` = ε/β is at least 1; a larger k comes closer to Laplace.
    """

    k: Fraction

    sharp: ClassVar[bool] = True

    def survival(self, v: Ball, precision: int) -> Ball:
        """Enclose the tail: one formula on each side of v = 1, both where the ball holds 1."""
        order, step, body, tail = _optimal_constants(self.k, precision)
        if v >= 1:
            return tail * self._power(1 + v / order, -order) / body
        inner = (self._power(1 - v / order, order) + step) / body
        if v < 1:
            return inner
        return inner.union(tail * self._power(1 + v / order, -order) / body)

    def _power(self, root: Ball, exponent: Ball) -> Ball:
        return (root.log() * exponent).exp()

    def quantile(self, u: float) -> float:
        """Guess where the tail is u."""
        return optimal_law.quantile(float(self.k), u)


@frozen
class CauchyLaw:
    """The generalized Cauchy law, density proportional to 1 / (1 + |v|^gamma), gamma > 1."""

    gamma: Fraction

    sharp: ClassVar[bool] = False

    def survival(self, v: Ball, precision: int) -> Ball:
        """Enclose the tail, a regularized incomplete beta function; for gamma = 2 an arctangent."""
        if self.gamma == 2:
            return 2 * (1 / v).atan() / arb.pi()
        power = (v.log() * ball(self.gamma)).exp()
        share = ball(1 / self.gamma)
        return (1 / (1 + power)).beta_lower(1 - share, share, True)

    def quantile(self, u: float) -> float:
        """Guess where the tail is u."""
        if self.gamma == 2:
            return 1 / math.tan(max(u * math.pi / 2, 1e-300))
        share = float(1 / self.gamma)
        return math.exp(min(-beta_odds(1 - share, share, u) * share, 690.0))


_FARTHEST = 1e6  # of logarithms of odds: beyond it every guess is as good as another
_NEAR_ENOUGH = 1e-13


def beta_odds(a: float, b: float, u: float) -> float:
    """Give about the t at which the regularized incomplete beta function of x = 1 / (1 + exp(-t)) is u.

    Newton's steps on its logarithm, which is nearly a line in t for small x; halving where a step leaves the bracket.
    """
    low, high = -_FARTHEST, _FARTHEST
    target = math.log(max(u, 1e-300))
    scale = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    t = 0.0
    for _ in range(200):
        # logarithms of x and of 1 - x, also where x itself is no longer a double
        less, more = -_softplus(-t), -_softplus(t)
        slope = scale + a * less + b * more  # of the derivative in t
        value = _log_beta(a, b, less, more, slope)
        if value < target:
            low = t
        else:
            high = t
        step = (target - value) * math.exp(min(value - slope, 700.0))
        following = t + step
        if not low < following < high:
            following = (low + high) / 2
        if abs(following - t) <= _NEAR_ENOUGH * (1 + abs(t)):
            return following
        t = following
    return t


def _softplus(t: float) -> float:
    return max(t, 0.0) + math.log1p(math.exp(-abs(t)))


def _log_beta(a: float, b: float, less: float, more: float, front: float) -> float:
    """Give log I_x(a, b) from log x, log(1 - x) and log(x^a (1 - x)^b / B(a, b)), by its continued fraction."""
    if math.exp(less) > (a + 1) / (a + b + 2):
        other = math.exp(min(_log_beta(b, a, more, less, front), 0.0))
        return math.log1p(-min(other, 1 - 2.0**-53))
    x = math.exp(less)
    fraction, c, d = 1.0, 1.0, 0.0
    for step in range(1, 400):
        m = step // 2
        if step % 2:
            weight = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        else:
            weight = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        d = 1 / (1 + weight * d or 1e-300)
        c = 1 + weight / c or 1e-300
        fraction *= c * d
        if abs(c * d - 1) < _NEAR_ENOUGH:
            break
    return front - math.log(a) - math.log(fraction)


def reach(law: Law, level: Fraction) -> Fraction:
    """Give a v with P(|V| ≤ v) ≥ level, at most one part in 2^30 above the smallest."""
    miss = 1 - level
    near = Fraction(max(min(law.quantile(float(miss)), 1e300), 1e-300))
    low, high = Fraction(0), near

    def enough(v: Fraction) -> bool:
        def attempt(precision: int) -> bool | None:
            gap = law.survival(ball(v), precision) - ball(miss)
            if gap <= 0:
                return True
            # a tail that cannot be told from the target counts as too large: rounded up
            return False if gap > 0 or precision > 256 else None

        return bool(decide(attempt, 96))

    slack = Fraction(1, 1 << 40)
    while not enough(high):
        low, high = high, high * (1 + slack)
        slack *= 16
    if low == 0:
        low = high * (1 - Fraction(1, 1 << 40))
        while enough(low):
            low, high = low * (1 - slack), low
            slack *= 16
    while high - low > high / (1 << 30):
        middle = (low + high) / 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
