"""Smooth bounds of drawn shapes, and what they are held against.

In: a source of randomness. Out: setups (a bound with the shape it bounds), points of their ranges, and three
judgments: where a bound is wrong, by how much it exceeds the smallest one, how a plan expression evaluates.
"""

import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest

from secant.plan import nodes as n
from secant.plan.evaluate.scalars import Frame, RowLayout, code
from secant.schema.types import DOUBLE
from secant.sensitivity.derivative import shapes
from secant.sensitivity.derivative.soften import filter_shapes as filters

X = n.Column("x", DOUBLE)
FRAME = Frame({}, {}, {})
SLACK = 2.0**-40
"""What evaluation in floats may cost, as PROOFS.md states it."""
INSIDE = (-690.0, 690.0)
"""Logarithms of bounds that are not held back by the reach of exp."""


@dataclass(frozen=True)
class Setup:
    """A bound, what it bounds, where, and how smooth the smallest bound may be."""

    bound: shapes.Smooth
    shape: Callable[[np.ndarray], np.ndarray]
    alpha: Fraction
    low: Fraction | None
    high: Fraction | None
    marks: tuple[float, ...]
    """Points of interest, on the shape's own scale."""
    says: str


def compiled(expression: n.Scalar) -> Callable[[float], float]:
    run = code(expression, RowLayout({"x": 0}, lambda *_: pytest.fail("no subquery here")))
    return lambda x: run((x,), FRAME)


# ── drawing ──────────────────────────────────────────────────────────────────────────────────────


def between(rng: random.Random, smallest: float, largest: float) -> Fraction:
    """Draw a number evenly on the scale of its logarithm."""
    return Fraction(math.exp(rng.uniform(math.log(smallest), math.log(largest))))


def drawn_alpha(rng: random.Random) -> Fraction:
    if rng.random() < 0.2:
        return Fraction(rng.randrange(1, 100), 10)  # not a float
    return between(rng, 1e-3, 10)


def drawn_length(rng: random.Random, alpha: Fraction) -> Fraction:
    """Draw a length, narrow or wide beside 1/alpha, or around 1."""
    if rng.random() < 0.5:
        return between(rng, 1e-2, 1e3) / alpha
    return between(rng, 1e-2, 1e2)


def drawn_range(rng: random.Random, alpha: Fraction) -> tuple[Fraction | None, Fraction | None]:
    """Draw a range of any sign, with or without ends."""
    start = drawn_length(rng, alpha) * rng.choice([-1, 0, 1])
    low = None if rng.random() < 0.2 else start
    high = None if rng.random() < 0.2 else start + drawn_length(rng, alpha)
    return (None, None) if rng.random() < 0.1 else (low, high)


def positive_range(
    rng: random.Random, alpha: Fraction, zero: bool = False
) -> tuple[Fraction, Fraction | None]:
    low = Fraction(0) if zero and rng.random() < 0.4 else drawn_length(rng, alpha)
    if rng.random() < 0.3:
        low = min(low, between(rng, 1e-4, 2))
    return low, (None if rng.random() < 0.3 else low + drawn_length(rng, alpha))


def knees_of(expression: n.Scalar) -> list[float]:
    """Give the constants that x or |x| is compared with, and their opposites."""
    found = [c.right.value for c in n.walk(expression) if isinstance(c, n.Compare)]
    return [sign * knee for knee in found for sign in (-1, 1)]


def points(setup: Setup, rng: random.Random, count: int) -> np.ndarray:
    """Draw points of the range: everywhere, beside the marks, at the ends."""
    unit = float(1 / setup.alpha)
    low = -math.inf if setup.low is None else float(setup.low)
    high = math.inf if setup.high is None else float(setup.high)
    knees = knees_of(setup.bound.expression)
    anchors = [m for m in (*setup.marks, *knees, 0.0, low, high, unit, -unit) if math.isfinite(m)]
    drawn = [*anchors, *(math.nextafter(a, s * math.inf) for a in anchors for s in (-1, 1))]
    if math.isfinite(low) and math.isfinite(high):
        drawn += [rng.uniform(low, high) for _ in range(count // 3)]
    while len(drawn) < 3 * count:
        spread = rng.choice([unit, 1.0, *(abs(a) for a in anchors)]) * 10 ** rng.uniform(-3, 2)
        drawn.append(rng.choice(anchors) + spread * rng.choice([-1, 1]))
    kept = [min(max(x, low), high) for x in drawn if math.isfinite(x)]
    inside = [x for x in kept if low < x < high]
    ends = [x for x in (low, high) if math.isfinite(x)]
    fill = inside or ends
    return np.array([*ends, *(fill[i % len(fill)] for i in range(count - len(ends)))])


# ── the checks ───────────────────────────────────────────────────────────────────────────────────


def faults(setup: Setup, xs: np.ndarray) -> list[str]:
    """Say where the bound is not a number, too small, or steeper than its rate."""
    run = compiled(setup.bound.expression)
    values = np.array([run(float(x)) for x in xs])
    found = []
    if not np.all(np.isfinite(values)) or np.any(values < 0):
        return [f"not a number of at least 0: {setup.says}"]
    if setup.bound.rate > setup.alpha:
        found.append(f"a rate above alpha: {setup.says}")
    with np.errstate(over="ignore", under="ignore"):
        true = setup.shape(xs)
    short = (values < true * (1 - SLACK)) & (true < 1e300)
    found += [f"below the shape at {x!r}: {setup.says}" for x in xs[short][:1]]
    if np.any(values == 0):
        return found if np.all(values == 0) else [*found, f"vanishes somewhere: {setup.says}"]
    logs = np.log(values)
    rise = np.abs(logs[:, None] - logs[None, :])
    allowed = float(setup.bound.rate) * np.abs(xs[:, None] - xs[None, :])
    steep = np.argwhere(rise > allowed * (1 + 1e-14) + SLACK)
    found += [f"too steep from {xs[i]!r} to {xs[j]!r}: {setup.says}" for i, j in steep[:1]]
    return found


def looseness(setup: Setup, x: float) -> float:
    """Give by how much the logarithm of the bound exceeds that of the smallest smooth bound."""
    value = compiled(setup.bound.expression)(x)
    if value == 0:
        return 0.0
    excess = math.log(value) - log_envelope(setup, x)
    return excess if INSIDE[0] < math.log(value) < INSIDE[1] else 0.0


def log_envelope(setup: Setup, x: float) -> float:
    """Find the supremum of ln g(x') − alpha·|x − x'| over the range, by ever finer grids."""
    alpha, unit = float(setup.alpha), float(1 / setup.alpha)
    low = -math.inf if setup.low is None else float(setup.low)
    high = math.inf if setup.high is None else float(setup.high)

    def objective(places: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            return np.log(setup.shape(places)) - alpha * np.abs(x - places)

    steps = np.geomspace(1e-7, 1e3, 150)
    anchors = {a for a in (x, 0.0, 1.0, low, high, *setup.marks) if math.isfinite(a)}
    sizes = {unit, 1.0, *(abs(m) for m in (*setup.marks, x) if m)}
    reach = np.concatenate([sign * size * steps for size in sizes for sign in (-1, 1)])
    places = [np.array(sorted(anchors)), *(a + reach for a in anchors)]
    if math.isfinite(low) and math.isfinite(high):
        places.append(np.linspace(low, high, 2000))
    grid = np.unique(np.clip(np.concatenate(places), low, high))
    heights = np.nan_to_num(objective(grid), nan=-math.inf)
    padded = np.concatenate([[-math.inf], heights, [-math.inf]])
    hills = np.flatnonzero((heights >= padded[:-2]) & (heights >= padded[2:]))
    best = float(heights.max())
    for top in hills[np.argsort(heights[hills])[-8:]]:  # of hills of like height each is climbed
        left, right = grid[max(top - 4, 0)], grid[min(top + 4, len(grid) - 1)]
        for _ in range(4):
            fine = np.linspace(left, right, 100)
            climbed = np.nan_to_num(objective(fine), nan=-math.inf)
            peak = int(np.argmax(climbed))
            best = max(best, float(climbed[peak]))
            left, right = fine[max(peak - 1, 0)], fine[min(peak + 1, 99)]
    return best


# ── the shapes ───────────────────────────────────────────────────────────────────────────────────


def named_setup(name, bound, shape, alpha, low=None, high=None, marks=(), parameter=None) -> Setup:
    says = f"{name} alpha={float(alpha)!r} parameter={parameter} range=({low}, {high})"
    return Setup(bound, shape, alpha, low, high, tuple(map(float, marks)), says)


def identity(rng):
    alpha = drawn_alpha(rng)
    low, high = drawn_range(rng, alpha)
    bound = shapes.identity_size(X, alpha, low, high)
    return named_setup("identity", bound, np.abs, alpha, low, high)


def _power(rng, build, derivative):
    alpha = drawn_alpha(rng)
    kind = rng.choice(["whole", "broken", "root", "negative", "negative whole"])
    if kind == "whole":
        r = Fraction(rng.randrange(1, 7))
        low, high = drawn_range(rng, alpha)
    elif kind == "broken":
        r = Fraction(rng.randrange(11, 60), 10)
        low, high = positive_range(rng, alpha, zero=True)
    elif kind == "root":
        r = Fraction(rng.randrange(1, 10), 10)
        low, high = positive_range(rng, alpha)
    else:
        r = -Fraction(rng.randrange(1, 40), 10)
        r = Fraction(-rng.randrange(1, 4)) if kind == "negative whole" else r
        low, high = positive_range(rng, alpha)
        if kind == "negative whole" and high is not None and rng.random() < 0.5:
            low, high = -high, -low
    factor, exponent = (abs(r), r - 1) if derivative else (Fraction(1), r)

    def shape(xs):
        with np.errstate(all="ignore"):
            return float(factor) * np.abs(xs) ** float(exponent)

    return named_setup("power", build(X, r, alpha, low, high), shape, alpha, low, high,
                  (abs(exponent) / alpha, -abs(exponent) / alpha), r)  # fmt: skip


def power_size(rng):
    return _power(rng, shapes.power_size, False)


def power_slope(rng):
    return _power(rng, shapes.power_slope, True)


def reciprocal_size(rng):
    alpha = drawn_alpha(rng)
    low, high = positive_range(rng, alpha)
    return named_setup("1/x", shapes.reciprocal_size(X, alpha, low, high), lambda xs: 1 / xs, alpha, low,
                  high, (1 / alpha, low))  # fmt: skip


def reciprocal_slope(rng):
    alpha = drawn_alpha(rng)
    low, high = positive_range(rng, alpha)
    return named_setup("1/x slope", shapes.reciprocal_slope(X, alpha, low, high), lambda xs: xs**-2.0,
                  alpha, low, high, (2 / alpha, low))  # fmt: skip


def _exponent(rng, build, derivative):
    alpha = drawn_alpha(rng)
    if rng.random() < 0.5:  # flat enough: any range
        rate = alpha * Fraction(rng.randrange(1, 101), 100) * rng.choice([-1, 1])
        low, high = drawn_range(rng, alpha)
    else:
        rate = alpha * between(rng, 1.001, 20) * rng.choice([-1, 1])
        start = Fraction(rng.uniform(-50, 50)) / abs(rate)
        low, high = start, start + between(rng, 1e-2, 200) / abs(rate)
    factor = float(abs(rate)) if derivative else 1.0

    def shape(xs):
        with np.errstate(over="ignore"):
            return factor * np.exp(float(rate) * xs)

    ends = [float(x) for x in (low, high) if x is not None]
    return named_setup("exp", build(X, rate, alpha, low, high), shape, alpha, low, high,
                  (1 / rate, *ends), rate)  # fmt: skip


def exponent_size(rng):
    return _exponent(rng, shapes.exponent_size, False)


def exponent_slope(rng):
    return _exponent(rng, shapes.exponent_slope, True)


def _logarithm_range(rng, alpha):
    low, high = positive_range(rng, alpha)
    if rng.random() < 0.3:
        low = between(rng, 1e-6, 1)
        high = rng.choice([None, Fraction(1), low + between(rng, 1e-3, 1), low + 5])
    return low, high


def logarithm_size(rng):
    alpha = rng.choice([drawn_alpha(rng), between(rng, 2.7, 40)])
    low, high = _logarithm_range(rng, alpha)
    return named_setup("ln", shapes.logarithm_size(X, alpha, low, high),
                  lambda xs: np.abs(np.log(xs)), alpha, low, high, (1, math.exp(-1), low))  # fmt: skip


def logarithm_slope(rng):
    alpha = drawn_alpha(rng)
    low, high = _logarithm_range(rng, alpha)
    return named_setup("ln slope", shapes.logarithm_slope(X, alpha, low, high), lambda xs: 1 / xs, alpha,
                  low, high, (1 / alpha, low))  # fmt: skip


def _filter(rng, build, shape, wide=False, capped=False):
    """Draw a filter as steep as alpha, flatter or steeper."""
    alpha = drawn_alpha(rng)
    ratio = rng.choice([Fraction(1), between(rng, 1e-4, 1), between(rng, 1, 1e4)])
    steepness = Fraction(float(alpha * ratio))
    parameter = Fraction(float(1 / steepness)) if wide else steepness
    scale = float(1 / steepness)
    marks = tuple(m * scale for m in (-1, -0.5, 0.5, 1)) + tuple(
        m * math.log(max(2.0, float(ratio))) * scale for m in (-1, -0.5, 0.5, 1)
    )
    bound = build(X, parameter, alpha)
    if capped:
        alpha = min(alpha, 1024 / parameter if wide else 1024 * parameter)
    if wide:
        marks += tuple(
            s * (float(parameter) * f - 1 / float(alpha)) for s in (-1, 1) for f in (0.5, 1)
        )
    return named_setup(build.__name__, bound, lambda xs: shape(xs, float(parameter)), alpha, None, None,
                  marks, parameter)  # fmt: skip


def sigmoid_of(xs, a):
    return np.where(xs < 0, np.exp(np.minimum(0, a * xs)), 1.0) / (1 + np.exp(-np.abs(a * xs)))


def sigmoid_derivative_of(xs, a):
    shrinking = np.exp(-np.abs(a * xs))
    return a * shrinking / (1 + shrinking) ** 2


def tauoid_of(xs, a):
    shrinking = np.exp(-np.abs(a * xs))
    return 2 * shrinking / (1 + shrinking**2)


def tauoid_derivative_of(xs, a):
    return a * tauoid_of(xs, a) * np.tanh(np.abs(a * xs))


def sigmoid_size(rng):
    return _filter(rng, filters.sigmoid_size, sigmoid_of)


def sigmoid_slope(rng):
    return _filter(rng, filters.sigmoid_slope, sigmoid_derivative_of)


def tauoid_size(rng):
    return _filter(rng, filters.tauoid_size, tauoid_of)


def tauoid_slope(rng):
    return _filter(rng, filters.tauoid_slope, tauoid_derivative_of, capped=True)


SHAPES = (
    identity, power_size, power_slope, reciprocal_size, reciprocal_slope, exponent_size, exponent_slope,
    logarithm_size, logarithm_slope, sigmoid_size, sigmoid_slope, tauoid_size, tauoid_slope,
)  # fmt: skip
