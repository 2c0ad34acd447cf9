"""The law p* of least noise for smooth bounds, in floats: tail, density, quantile and mean (noise.optimal).

In: k = epsilon / beta, at least 1. Out: estimates for choices by public facts, for stated errors and for pictures. No
draw rests on a float: `secant.noise.mechanisms.laws` encloses the same law and draws from it exactly.
"""

from __future__ import annotations

import math
from functools import lru_cache


@lru_cache(maxsize=256)
def _constants(k: float) -> tuple[float, float, float]:
    """Give a, the whole T = 1 + 2a/k, and the weight C = a (1 + 1/k)^(k+1) of the tail."""
    a = math.exp((k - 1) * math.log1p(-1 / k)) if k > 1 else 1.0
    return a, 1 + 2 * a / k, a * math.exp((k + 1) * math.log1p(1 / k))


def tail(k: float, v: float) -> float:
    """Give P(|V| > v), v >= 0.

    >>> tail(5.0, 0.0)
    1.0
    """
    a, whole, outer = _constants(k)
    if v < 1:
        return (math.exp(k * math.log1p(-v / k)) + 2 * a / k) / whole
    return outer * math.exp(-k * math.log1p(v / k)) / whole


def density(k: float, v: float) -> float:
    """Give the density at v >= 0 or at -v.

    >>> round(2 * density(5.0, 0.0) * (1 + 2 * 0.8**4 / 5), 12)
    1.0
    """
    _, whole, outer = _constants(k)
    if v < 1:
        return math.exp((k - 1) * math.log1p(-v / k)) / (2 * whole)
    return outer * math.exp(-(k + 1) * math.log1p(v / k)) / (2 * whole)


def quantile(k: float, u: float) -> float:
    """Give where the tail is u, by the inverse in closed form.

    >>> round(quantile(5.0, tail(5.0, 3.0)), 9)
    3.0
    """
    a, whole, outer = _constants(k)
    if u > a * (1 + 1 / k) / whole:
        return k * -math.expm1(math.log(max(u * whole - 2 * a / k, 1e-300)) / k)
    return k * math.expm1(min(math.log(outer / (u * whole)) / k, 690.0))


def mean(k: float) -> float:
    """Give the mean size, for k > 1; Laplace noise has 1.

    >>> round(mean(20), 2)
    1.06
    """
    _, whole, outer = _constants(k)
    w = 1 + 1 / k
    inner = -((1 - 1 / k) ** k) + k / (k + 1) * (1 - (1 - 1 / k) ** (k + 1))
    return float((inner + outer * k * k * (w ** (1 - k) / (k - 1) - w**-k / k)) / whole)
