"""Between which values can an aggregate lie, if not every row surely counts?

In: kinds of rows, each with the range of its value, how many surely count and how many may. Out: an interval, or None
where there is no value at all. Rows that a filter perhaps drops are possible; rows that it surely keeps are sure.
Never here: data.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from secant.numeric import interval as iv
from secant.records import frozen

_INSIDE = ("avg", "median", "mode", "quantile_cont", "quantile_disc")
_SPREADS = {"var_pop": 4, "stddev_pop": 4, "var_samp": 2, "stddev_samp": 2}
"""The square of the width over this bounds the variance; of a sample, two rows are the worst case."""


@frozen
class Stratum:
    """Rows whose value lies in one range: at least `sure` of them count, at most `possible`."""

    value: iv.Interval
    sure: int
    possible: int | None
    """None where no number is known."""


def aggregate_range(
    function: str, strata: Sequence[Stratum], *, distinct: bool = False
) -> iv.Interval | None:
    """Give an interval for an aggregate whenever it is not NULL; None if it always is (range.group).

    >>> rows = [Stratum(iv.interval(2, 3), 1, 1), Stratum(iv.interval(-5, 9), 0, 1)]
    >>> [float(end) for end in aggregate_range("sum", rows).ends()]
    [-3.0, 12.0]
    """
    possible = [s for s in strata if s.possible is None or s.possible > 0]
    if function == "count":
        sure = sum(s.sure for s in possible)
        return iv.Interval(Fraction(min(sure, 1) if distinct else sure), _most(possible))
    if not possible:
        return None
    if distinct:
        # Rows with equal values count once, so no more than one row is sure; and there is one.
        possible = [Stratum(s.value, 0, s.possible) for s in possible]
    if function == "sum":
        low = _least_sum(possible)
        mirrored = [Stratum(iv.negate(s.value), s.sure, s.possible) for s in possible]
        high = _least_sum(mirrored)
        return iv.Interval(low, None if high is None else -high)
    if function == "min":
        return _least(possible)
    if function == "max":
        mirrored = [Stratum(iv.negate(s.value), s.sure, s.possible) for s in possible]
        return iv.negate(_least(mirrored))
    inside = possible[0].value
    for stratum in possible[1:]:
        inside = iv.hull(inside, stratum.value)
    if function in _INSIDE:
        return inside
    return _spread(function, inside)


def _most(strata: Sequence[Stratum]) -> Fraction | None:
    total = 0
    for stratum in strata:
        if stratum.possible is None:
            return None
        total += stratum.possible
    return Fraction(total)


def _least_sum(strata: Sequence[Stratum]) -> Fraction | None:
    """Add every sure row's lower end, and of the others those that make the sum smaller."""
    total = Fraction(0)
    for stratum in strata:
        low = stratum.value.low
        if low is None:
            return None
        if stratum.possible is None and low < 0:
            return None
        total += stratum.sure * low
        if low < 0:
            assert stratum.possible is not None
            total += (stratum.possible - stratum.sure) * low
    if any(s.sure for s in strata) or any(
        s.value.low is not None and s.value.low < 0 for s in strata
    ):
        return total
    # No row is sure, but without any the sum is NULL: the smallest is that of one row.
    return min(s.value.low for s in strata if s.value.low is not None)


def _least(strata: Sequence[Stratum]) -> iv.Interval:
    """MIN: any possible row may be the least; a sure row's upper end is a limit, since it does count."""
    lows = [s.value.low for s in strata]
    low = None if None in lows else min(x for x in lows if x is not None)
    tops = [s.value.high for s in strata if s.sure]
    finite = [x for x in tops if x is not None]
    if finite:
        return iv.Interval(low, min(finite))
    highs = [s.value.high for s in strata]
    if None in highs:
        return iv.Interval(low, None)
    return iv.Interval(low, max(x for x in highs if x is not None))


def _spread(function: str, inside: iv.Interval) -> iv.Interval:
    share = _SPREADS.get(function)
    if share is None or not inside.bounded:
        return iv.Interval(Fraction(0), None)
    low, high = inside.ends()
    square = iv.Interval(Fraction(0), (high - low) ** 2 / share)
    return iv.square_root(square) if function.startswith("stddev") else square
