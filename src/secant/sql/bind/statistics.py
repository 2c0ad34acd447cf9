"""Statistics that are made of other aggregates: of pairs (corr, regr_slope, …) and of conditions (bool_and, count_if).

In: arguments that are bound, and a function that registers an aggregate. Out: an expression over registered ones. What
does not exist because a side does not vary is NULL, as in SQL's standard; DuckDB gives NaN for some of these.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from secant.plan import nodes as n
from secant.schema import types as t

Statistic = Callable[..., n.Scalar]
"""Takes the name and the arguments of an aggregate, gives its column."""
ONE = n.Literal(1, t.INTEGER)
TRUTHS = {"bool_and": "min", "bool_or": "max", "count_if": "count"}
"""Of truth values, the least says whether all are true."""


def _number(value: float) -> n.Literal:
    return n.Literal(value, t.DOUBLE)


def _over(above: n.Scalar, below: n.Scalar) -> n.Scalar:
    """Divide; NULL where nothing is below."""
    return n.Arithmetic("/", above, n.Call("nullif", (below, _number(0.0))))


def _times(a: n.Scalar, b: n.Scalar) -> n.Scalar:
    return n.Arithmetic("*", a, b)


def _pairs(y: n.Scalar, call: Statistic) -> n.Scalar:
    return n.Cast(call("count", y), t.DOUBLE)


def _covariance(y: n.Scalar, x: n.Scalar, call: Statistic) -> n.Scalar:
    return call("covar_pop", y, x)


def _of_sample(y: n.Scalar, x: n.Scalar, call: Statistic) -> n.Scalar:
    count = _pairs(y, call)
    less = n.Arithmetic("-", count, _number(1.0))
    return _over(_times(_covariance(y, x, call), count), less)


def _correlation(y: n.Scalar, x: n.Scalar, call: Statistic) -> n.Scalar:
    spreads = n.Call("sqrt", (_times(call("var_pop", y), call("var_pop", x)),))
    quotient = _over(_covariance(y, x, call), spreads)
    # Among rows that are no numbers nothing is correlated; clamping would say 1, the greatest.
    not_nan = n.Call("nullif", (quotient, _number(math.nan)))
    return n.Clamp(not_nan, _number(-1.0), _number(1.0))


def _slope(y: n.Scalar, x: n.Scalar, call: Statistic) -> n.Scalar:
    return _over(_covariance(y, x, call), call("var_pop", x))


def _intercept(y: n.Scalar, x: n.Scalar, call: Statistic) -> n.Scalar:
    return n.Arithmetic("-", call("avg", y), _times(_slope(y, x, call), call("avg", x)))


def _explained(y: n.Scalar, x: n.Scalar, call: Statistic) -> n.Scalar:
    """The share of y that x explains; all of it where y is one number."""
    flat = n.Compare("=", call("var_pop", y), _number(0.0))
    varies = n.Compare(">", call("var_pop", x), _number(0.0))
    correlation = _correlation(y, x, call)
    all_of_it = n.Branch(n.And((flat, varies)), _number(1.0))
    return n.Case((all_of_it,), _times(correlation, correlation))


def _squares(y: n.Scalar, x: n.Scalar, call: Statistic) -> n.Scalar:
    return _times(_pairs(x, call), call("var_pop", x))


PAIRS: dict[str, Callable[[n.Scalar, n.Scalar, Statistic], n.Scalar]] = {
    "covar_pop": _covariance,
    "covar_samp": _of_sample,
    "corr": _correlation,
    "regr_slope": _slope,
    "regr_intercept": _intercept,
    "regr_r2": _explained,
    "regr_count": lambda y, _, call: call("count", y),
    "regr_avgx": lambda _, x, call: call("avg", x),
    "regr_avgy": lambda y, _, call: call("avg", y),
    "regr_sxx": _squares,
    "regr_syy": lambda y, x, call: _squares(x, y, call),
    "regr_sxy": lambda y, x, call: _times(_pairs(y, call), _covariance(y, x, call)),
}
"""Statistics of (y, x): x is what y depends on."""
