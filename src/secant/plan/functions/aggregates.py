"""The aggregate functions of a plan: result types, and what they compute from a group's values.

In: the values of a group that are not NULL. Out: one value, also for an empty group. Never here:
DISTINCT and NULLs, which the caller removes. Whole numbers and decimals are summed exactly; floats
are summed exactly and rounded once, so the answer does not depend on the order of rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import reduce
from types import MappingProxyType
from typing import Any

from secant.plan.evaluate.values import EXACT, INT128, Value, order_key, same_key, whole
from secant.records import frozen
from secant.schema.types import DOUBLE, INTEGER, MAX_PRECISION, Type, decimal


@frozen
class Aggregator:
    """One aggregate function: its result type (None: not for this type) and its meaning."""

    name: str
    result: Callable[[Type], Type | None]
    apply: Callable[..., Value]
    """Takes the values, or pairs of them; a quantile takes its fraction besides."""
    pairs: bool = False
    """Whether it takes two arguments."""
    written: bool = True
    """Whether a query may name it; the others are made by rewrites."""


def _sum_type(argument: Type) -> Type | None:
    if argument.kind == "DECIMAL":
        return decimal(MAX_PRECISION, argument.scale)
    return argument if argument.numeric else None


def _double(argument: Type) -> Type | None:
    return DOUBLE if argument.numeric else None


def _ordered(argument: Type) -> Type | None:
    return argument if argument.kind != "INTERVAL" else None


def _median_type(argument: Type) -> Type | None:
    return argument if argument.kind in ("DECIMAL", "NULL") else _double(argument)


def _sum(values: Sequence[Any]) -> Value:
    if not values:
        return None
    if isinstance(values[0], float):
        return _float_sum(values)
    if isinstance(values[0], int):
        return whole(sum(values), INT128)
    return reduce(EXACT.add, values)


def _float_sum(values: Sequence[float]) -> float:
    if any(math.isnan(value) for value in values):
        return math.nan
    infinities = {value for value in values if math.isinf(value)}
    if infinities:
        return infinities.pop() if len(infinities) == 1 else math.nan
    try:
        return math.fsum(values)
    except OverflowError:  # a partial sum left the range; the whole sum need not
        return _to_float(sum(map(Fraction, values), Fraction(0)))


def _to_float(value: Fraction) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _average(values: Sequence[Any]) -> Value:
    if not values:
        return None
    if isinstance(values[0], float):
        return _float_sum(values) / len(values)
    total = _sum(values)
    assert isinstance(total, int | Decimal)
    return _to_float(Fraction(total) / len(values))


def _variance(sample: bool, root: bool) -> Callable[[Sequence[Any]], Value]:
    def apply(values: Sequence[Any]) -> Value:
        degrees = len(values) - (1 if sample else 0)
        if degrees < 1:
            return None
        if len(values) == 1:
            return 0.0
        # The engine computes variances in floating point, so that is what it reads.
        numbers = [float(value) for value in values]
        if not all(map(math.isfinite, numbers)):
            return math.nan
        exact = [Fraction(number) for number in numbers]
        mean = sum(exact, Fraction(0)) / len(exact)
        spread = _to_float(sum(((x - mean) ** 2 for x in exact), Fraction(0)) / degrees)
        return math.sqrt(spread) if root else spread

    return apply


def _product(values: Sequence[Any]) -> Value:
    if not values:
        return None
    return math.prod(float(value) for value in values)


def _median(values: Sequence[Any]) -> Value:
    """The middle value, or the middle of the two; a decimal keeps its scale by dropping digits."""
    if not values:
        return None
    ranked = sorted(values, key=order_key)
    low, high = ranked[(len(ranked) - 1) // 2], ranked[len(ranked) // 2]
    if isinstance(low, Decimal):
        scale = max(-int(value.as_tuple().exponent) for value in ranked)
        middle = (Fraction(low) + Fraction(high)) / 2
        return Decimal(math.trunc(middle * 10**scale)).scaleb(-scale)
    if isinstance(low, float):
        return low if low == high else low + (high - low) * 0.5
    return float(Fraction(low + high, 2))


def _ranked(values: Sequence[Any], fraction: Fraction) -> Value:
    """The least value with at least that share of the values at or below it."""
    ranked = sorted(values, key=order_key)
    value: Value = ranked[max(1, math.ceil(fraction * len(ranked))) - 1] if ranked else None
    return value


def _between(values: Sequence[Any], fraction: Fraction) -> Value:
    """The value at that share of the way through the ranks, between its two neighbors in proportion."""
    if not values:
        return None
    ranked = sorted(values, key=order_key)
    position = fraction * (len(ranked) - 1)
    low, high, part = ranked[math.floor(position)], ranked[math.ceil(position)], position % 1
    if isinstance(low, Decimal):
        scale = max(-int(value.as_tuple().exponent) for value in ranked)
        exact = Fraction(low) + part * (Fraction(high) - Fraction(low))
        return Decimal(math.trunc(exact * 10**scale)).scaleb(-scale)
    low, high = float(low), float(high)
    return low if low == high else low + (high - low) * float(part)


def _mode(values: Sequence[Any]) -> Value:
    """The value that most rows hold; the least of several."""
    groups: dict[Any, list[Any]] = {}
    for value in values:
        groups.setdefault(same_key(value), []).append(value)
    most = max(map(len, groups.values()), default=0)
    return min((v[0] for v in groups.values() if len(v) == most), key=order_key, default=None)


def _covariance(pairs: Sequence[tuple[Any, Any]]) -> Value:
    if not pairs:
        return None
    numbers = [(float(y), float(x)) for y, x in pairs]
    if not all(math.isfinite(z) for pair in numbers for z in pair):
        return math.nan
    exact = [(Fraction(y), Fraction(x)) for y, x in numbers]
    mean = sum((x for _, x in exact), Fraction(0)) / len(exact)
    return _to_float(sum((y * (x - mean) for y, x in exact), Fraction(0)) / len(exact))


_LIST = (
    Aggregator("count", lambda _: INTEGER, len),
    Aggregator("sum", _sum_type, _sum),
    Aggregator("avg", _double, _average),
    Aggregator("min", _ordered, lambda values: min(values, key=order_key, default=None)),
    Aggregator("max", _ordered, lambda values: max(values, key=order_key, default=None)),
    Aggregator("var_samp", _double, _variance(sample=True, root=False)),
    Aggregator("var_pop", _double, _variance(sample=False, root=False)),
    Aggregator("stddev_samp", _double, _variance(sample=True, root=True)),
    Aggregator("stddev_pop", _double, _variance(sample=False, root=True)),
    Aggregator("product", _double, _product),
    Aggregator("median", _median_type, _median),
    Aggregator("quantile_cont", _median_type, _between),
    Aggregator("quantile_disc", _ordered, _ranked),
    Aggregator("mode", _ordered, _mode),
    Aggregator("covar_pop", _double, _covariance, pairs=True),
    # All values of a group, for a statistic that is computed outside of the engine.
    Aggregator("array_agg", _double, lambda values: tuple(values) or None, written=False),
)
QUANTILES = ("quantile_cont", "quantile_disc")
SPREAD = ("var_samp", "var_pop", "stddev_samp", "stddev_pop")
AGGREGATES: Mapping[str, Aggregator] = MappingProxyType({a.name: a for a in _LIST})
