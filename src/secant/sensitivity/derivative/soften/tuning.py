"""How wide a ramp, how smooth a bound? From public facts alone: declared ranges, steps, a row count, epsilon.

In: what a value and its filters can do at most. Out: the width of ramps in units of distance, and
k = epsilon/beta. Both only decide how useful an answer is, never how private: any choice is sound, and
none of them looks at a protected value.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction

from secant.numeric import interval as iv
from secant.numeric import optimal_law
from secant.numeric.quick import quick
from secant.plan.evaluate.values import EPOCH, midnight
from secant.records import frozen
from secant.schema.types import Type

QUANTILE = 3.2
"""About the 95 % error of the noise in units of sensitivity/epsilon."""
SURE = 1.96
TYPICAL_ROWS = 1_000
"""Rows that pass the public conditions, where nothing is known of them."""
WIDTHS = (1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0, 32.0, 48.0, 64.0, 96.0, 128.0)
PLAIN, OPEN = quick(20), quick(5)
POINTS = 12


@frozen
class Edge:
    """One comparison: what its gap moves a unit of distance, its step, and how far the gap can reach."""

    reach: Fraction
    step: Fraction | None
    span: float | None
    equality: bool


@frozen
class Summand:
    """What is summed: its largest size (None: not known) and what it moves a unit of distance by itself."""

    size: float | None
    reach: float | None


def ramp_width(
    edges: Sequence[Edge], summand: Summand, rows: int | None, epsilon: float
) -> Fraction:
    """Give the width of ramps, in units of distance, with the least expected noise and bias (derivative.width).

    0 stands for exact steps where columns move in steps.
    """
    free = [e for e in edges if not e.equality]
    if not free:
        return quick(0)
    size = summand.size if summand.size is not None else 10 * (summand.reach or 1.0)
    count = rows if rows is not None else TYPICAL_ROWS
    best, least = quick(0), math.inf
    for width in _candidates(free):
        noise = QUANTILE / epsilon * max(summand.reach or 0.0, size * _steepest(free, width))
        bias = SURE * size / math.sqrt(3) * math.sqrt(sum(_spread(e, width, count) for e in free))
        if noise + bias < least * (1 - 1e-9):
            best, least = quick(width), noise + bias
    return best


def _candidates(edges: Sequence[Edge]) -> list[float]:
    """Multiples of the smallest step in units of distance, or parts of a span where nothing has steps."""
    moving = [e for e in edges if e.reach > 0]
    steps = [float(e.step / e.reach) for e in moving if e.step]
    spans = [e.span / float(e.reach) for e in moving if e.span]
    if steps:
        unit, start = min(steps), [0.0]
    else:
        unit, start = (min(spans) / 4096 if spans else 1.0), []
    most = min(spans, default=math.inf) / 8
    grown = [unit * w for w in WIDTHS] + (
        [unit * 2.0**i for i in range(7, 12)] if not steps else []
    )
    return start + [w for w in grown if w <= most] or [min(grown)]


def joint_width(edges: Sequence[Edge], width: Fraction) -> Fraction:
    """Give the one width, in units of distance, that all ramps of a condition get (derivative.width).

    A column that moves in steps needs one step at least, and equality exactly one. The narrowest of
    these decides how fast the condition moves, so the others may be as narrow at no cost.
    """
    least = []
    for edge in edges:
        if edge.reach > 0:
            step = (edge.step or quick(0)) / edge.reach
            least.append(step if edge.equality and step else max(width, step))
    return min(least, default=width)


def width_of(edge: Edge, width: float) -> float:
    """Give a ramp's width in the gap's own unit: at least one step."""
    return max(width * float(edge.reach), float(edge.step or 0))


def _steepest(edges: Sequence[Edge], width: float) -> float:
    return max(
        (e.reach / width_of(e, width) for e in edges if width_of(e, width) > 0), default=math.inf
    )


def _spread(edge: Edge, width: float, rows: int) -> float:
    """Give the variance that one softened edge adds, in squared summands, for rows spread evenly."""
    wide, step = width_of(edge, width), float(edge.step or 0)
    if edge.span is None or edge.span <= 0 or wide <= step:
        return 0.0
    return rows * min(1.0, wide / edge.span) / 12 * (1 - (step / wide) ** 2)


ERROR_BY_RATIO = {2: 7.49, 3: 5.36, 5: 4.19, 10: 3.53, 20: 3.25}
"""95 % error of the optimal noise in units of bound/epsilon, by k."""


def smoothness(
    epsilon: Fraction, *, capped: bool, typical: Callable[[Fraction], float | None]
) -> Fraction:
    """Give k = epsilon/beta (derivative.smoothness).

    A bound that nothing caps grows by leaps of 1/beta and wants a rough one; otherwise a smooth one has
    lighter noise, and a bound that fades too slowly sees rows that are far away. A value that changes
    steeply by itself is looked at where values lie evenly in their declared ranges, which is public.
    """
    errors = {}
    for ratio, error in ERROR_BY_RATIO.items():
        size = typical(epsilon / ratio)
        if size is None:
            return PLAIN if capped else OPEN
        errors[ratio] = error * size
    return quick(min(errors, key=lambda ratio: errors[ratio]))


RATIOS = tuple(
    quick(Fraction(x)) for x in ("2", "2.3", "2.6", "3", "3.5", "4", "5", "7", "10", "20")
)
"""Where rows come and go: below 2 the noise has no mean worth the name."""
COARSE = tuple(quick(x) for x in (2, 5, 20))
"""Those at which a bound is looked at, beside the best at the floor: each is a walk over the expression."""


def floored_smoothness(
    epsilon: Fraction,
    least: Callable[[Fraction], Fraction],
    cap: Fraction | None,
    usual: Callable[[Fraction], float | None],
) -> Fraction | None:
    """Give k = epsilon/beta where a bound has a floor; None where the cap with Laplace noise is best (combined.cap).

    What is compared is the mean noise at the floor, or what one row does where values lie evenly if that is more, with
    that at the cap. `usual` is in whole steps.
    """
    by_ratio = {
        ratio: optimal_law.mean(float(ratio)) * float(least(epsilon / ratio)) for ratio in RATIOS
    }
    best = min(by_ratio, key=lambda ratio: by_ratio[ratio])
    if cap is None:
        return best
    if by_ratio[best] >= float(cap):
        return None
    some = {best, *COARSE}
    sizes = {
        k: max(by_ratio[k], optimal_law.mean(float(k)) * (usual(epsilon / k) or 0.0))
        for k in sorted(some)
    }
    best = min(sizes, key=lambda ratio: sizes[ratio])
    return None if sizes[best] >= float(cap) else best


TYPICAL_PARTNERS = 10
"""Joined rows that one row stands in, where nothing is known of them."""


def fanned_smoothness(
    epsilon: Fraction, each: Callable[[Fraction], Fraction], nearest: Fraction
) -> Fraction:
    """Give k = epsilon/beta where a row that comes stands in several joined rows (combined.fans).

    What is compared is the mean noise if a row has a few partners, and one more for each row that has come.
    """

    def noise(ratio: Fraction) -> float:
        rate = float(epsilon * nearest / ratio)
        more = max(0.0, 1 / rate - TYPICAL_PARTNERS)
        partners = math.exp(-rate * more) * (TYPICAL_PARTNERS + more)
        return optimal_law.mean(float(ratio)) * float(each(epsilon / ratio)) * partners

    return min(RATIOS, key=noise)


def spread_points(
    ranges: Sequence[iv.Interval], kinds: Sequence[Type]
) -> tuple[tuple[object, ...], ...] | None:
    """Give public points that fill the ranges evenly; None where a range has no ends."""
    rows = []
    for i in range(POINTS):
        row = []
        for j, (range_, kind) in enumerate(zip(ranges, kinds, strict=True)):
            if not range_.bounded:
                return None
            low, high = range_.ends()
            # Fractional parts of multiples of different irrationals spread evenly, in all dimensions together.
            share = quick(((i + 0.5) * math.pi ** (j + 1)) % 1)
            row.append(of_kind(low + share * (high - low), kind))
        rows.append(tuple(row))
    return tuple(rows)


def of_kind(value: Fraction, kind: Type) -> object:
    """Give a number as a value of a type, a date for a number of days."""
    if kind.kind == "DATE":
        return EPOCH + datetime.timedelta(days=int(value))
    if kind.kind == "TIMESTAMP":
        return midnight(EPOCH) + datetime.timedelta(microseconds=int(value * 86_400 * 10**6))
    if kind.kind == "INTEGER":
        return int(value)
    if kind.kind == "DECIMAL":
        return Decimal(int(value * 10**kind.scale)).scaleb(-kind.scale)
    return float(value)
