"""What is believed of a column's values before any answer, as an owner writes it: shares, bells, pieces.

In: what the TOML parser gave for `distribution`, `mean`, `deviation`, `tail` and `prior`. Out: a `Belief`, and the
range that a bell suggests. A belief is never a bound: the range is clamped to like every other one (I2), and priors
are read where guesses are judged. Never here: data.
"""

from __future__ import annotations

import datetime
import itertools
import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from fractions import Fraction
from statistics import NormalDist
from typing import Any

from secant.policy.values import moment_of, same_kind, scalar_of
from secant.records import frozen

DISTRIBUTIONS = ("uniform", "normal")
THREE_ROOT_TWO = Fraction(4_242_640_687_119_286, 10**15)
"""At least 3√2: so many deviations hold erf(3), all but 2.3 in 100 000 values, of a bell."""
SMALLEST_TAIL = Fraction(1, 10**100)
_SLACK = 1 + 1e-9  # far above the error of the library's quantile
_DIGITS = 3  # an end is rounded outward to a thousandth of the deviation's leading digit


@frozen
class Belief:
    """How likely the values of a column are: uniform, normal, by listed value, or by piece of the range."""

    kind: str
    """`uniform`, `normal`, `weights` (a share for each of `values`) or `histogram` (for each piece)."""
    mean: object | None = None
    """For `normal`: a number or a date."""
    deviation: Fraction | None = None
    """For `normal`: in the column's unit, days for dates."""
    tail: Fraction | None = None
    """For `normal`: the share of values that the range may leave out; None means 3√2 deviations."""
    edges: tuple[object, ...] = ()
    """For `histogram`: where the pieces begin and end."""
    shares: tuple[Fraction, ...] = ()
    """For `weights` and `histogram`; they add up to 1."""


def reach_of(belief: Belief) -> Fraction:
    """Give how far from the mean a bell is taken to reach, rounded up.

    >>> float(reach_of(Belief("normal", 0, Fraction(1))))
    4.242640687119286
    """
    assert belief.deviation is not None
    if belief.tail is None:
        return THREE_ROOT_TWO * belief.deviation
    deviations = -NormalDist().inv_cdf(float(belief.tail) / 2) * _SLACK
    return Fraction(max(deviations, 0.0)) * belief.deviation


def suggested_range(belief: Belief) -> tuple[object, object]:
    """Give the range from mean − R to mean + R, rounded outward to a readable number (range.belief).

    >>> suggested_range(Belief("normal", 40, Fraction(12)))
    (Decimal('-10.92'), Decimal('90.92'))
    """
    magnitude = reach_of(belief)
    if isinstance(belief.mean, datetime.date):
        days = datetime.timedelta(math.ceil(magnitude)) if magnitude < 10**7 else None
        try:
            if days is not None:
                return belief.mean - days, belief.mean + days
        except OverflowError:
            pass
        raise ValueError("the range that it suggests leaves the calendar")
    assert isinstance(belief.mean, (int, Decimal))
    assert belief.deviation is not None
    leading = math.floor(math.log10(belief.deviation))
    unit = Fraction(10) ** (leading - _DIGITS)
    middle = Fraction(belief.mean)
    low, high = (middle - magnitude) // unit, -((-middle - magnitude) // unit)
    ends = tuple(_decimal(count, leading - _DIGITS) for count in (low, high))
    return scalar_of(ends[0]), scalar_of(ends[1])


def _decimal(count: int, exponent: int) -> int | Decimal:
    return count * 10**exponent if exponent >= 0 else Decimal(count).scaleb(exponent)


def whole_range(limits: tuple[object, object]) -> tuple[object, object]:
    """Give a suggested range of numbers with whole ends, rounded outward."""
    low, high = (Decimal(end) if isinstance(end, (int, Decimal)) else None for end in limits)
    if low is None or high is None:
        return limits
    return (
        int(low.to_integral_value(ROUND_FLOOR)),
        int(high.to_integral_value(ROUND_CEILING)),
    )


def shares_of(value: object, count: int, what: str) -> tuple[Fraction, ...]:
    """Read shares, one for each of `what`; they need not add up to 1, only their proportion counts."""
    if not isinstance(value, list) or any(
        isinstance(part, bool) or not isinstance(part, (int, Decimal)) for part in value
    ):
        raise ValueError("must be a list of shares")
    if len(value) != count:
        raise ValueError(f"needs one share for each {what}: {count}, not {len(value)}")
    parts = [scalar_of(part) for part in value]
    numbers = [Fraction(part) for part in parts if isinstance(part, (int, Decimal))]
    if any(part < 0 for part in numbers) or not sum(numbers):
        raise ValueError("shares must be at least 0, and not all 0")
    return tuple(part / sum(numbers) for part in numbers)


def pieces_of(value: object, limits: tuple[Any, Any] | None) -> Belief:
    """Read `{ edges = [...], shares = [...] }`: pieces of a range, each with its share."""
    if not isinstance(value, dict) or set(value) != {"edges", "shares"}:
        raise ValueError(
            "must be a list of shares beside values, or { edges = [...], shares = [...] }"
        )
    texts = value["edges"]
    if not isinstance(texts, list) or len(texts) < 2:
        raise ValueError("needs at least two edges")
    edges: list[Any] = [
        moment_of(edge) if isinstance(edge, str) else scalar_of(edge) for edge in texts
    ]
    if any(isinstance(edge, bool) or not same_kind(edge, edges[0]) for edge in edges):
        raise ValueError("edges must be numbers or dates, all of one kind")
    if any(not a < b for a, b in itertools.pairwise(edges)):
        raise ValueError("edges must ascend")
    if limits is not None and (
        not same_kind(limits[0], edges[0]) or edges[0] < limits[0] or edges[-1] > limits[1]
    ):
        raise ValueError("the edges leave the declared range")
    shares = shares_of(value["shares"], len(edges) - 1, "piece")
    return Belief("histogram", edges=tuple(edges), shares=shares)
