"""Statistics that are made of other aggregates: of pairs (corr, regr_slope, …) and of conditions (bool_and, count_if).

In: arguments that are bound, and a function that registers an aggregate. Out: an expression over registered ones. What
does not exist because a side does not vary is NULL, as in SQL's standard; DuckDB gives NaN for some of these.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from secant.plan import nodes as n
from secant.schema import types as t

Made = Callable[..., n.Scalar]
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


def _pairs(y: n.Scalar, made: Made) -> n.Scalar:
    return n.Cast(made("count", y), t.DOUBLE)


def _covariance(y: n.Scalar, x: n.Scalar, made: Made) -> n.Scalar:
    return made("covar_pop", y, x)


def _of_sample(y: n.Scalar, x: n.Scalar, made: Made) -> n.Scalar:
    count = _pairs(y, made)
    less = n.Arithmetic("-", count, _number(1.0))
    return _over(_times(_covariance(y, x, made), count), less)


def _correlation(y: n.Scalar, x: n.Scalar, made: Made) -> n.Scalar:
    spreads = n.Call("sqrt", (_times(made("var_pop", y), made("var_pop", x)),))
    found = _over(_covariance(y, x, made), spreads)
    # Among rows that are no numbers nothing is correlated; clamping would say 1, the greatest.
    known = n.Call("nullif", (found, _number(math.nan)))
    return n.Clamp(known, _number(-1.0), _number(1.0))


def _slope(y: n.Scalar, x: n.Scalar, made: Made) -> n.Scalar:
    return _over(_covariance(y, x, made), made("var_pop", x))


def _intercept(y: n.Scalar, x: n.Scalar, made: Made) -> n.Scalar:
    return n.Arithmetic("-", made("avg", y), _times(_slope(y, x, made), made("avg", x)))


def _explained(y: n.Scalar, x: n.Scalar, made: Made) -> n.Scalar:
    """The share of y that x explains; all of it where y is one number."""
    flat = n.Compare("=", made("var_pop", y), _number(0.0))
    varies = n.Compare(">", made("var_pop", x), _number(0.0))
    found = _correlation(y, x, made)
    all_of_it = n.Branch(n.And((flat, varies)), _number(1.0))
    return n.Case((all_of_it,), _times(found, found))


def _squares(y: n.Scalar, x: n.Scalar, made: Made) -> n.Scalar:
    return _times(_pairs(x, made), made("var_pop", x))


PAIRS: dict[str, Callable[[n.Scalar, n.Scalar, Made], n.Scalar]] = {
    "covar_pop": _covariance,
    "covar_samp": _of_sample,
    "corr": _correlation,
    "regr_slope": _slope,
    "regr_intercept": _intercept,
    "regr_r2": _explained,
    "regr_count": lambda y, _, made: made("count", y),
    "regr_avgx": lambda _, x, made: made("avg", x),
    "regr_avgy": lambda y, _, made: made("avg", y),
    "regr_sxx": _squares,
    "regr_syy": lambda y, x, made: _squares(x, y, made),
    "regr_sxy": lambda y, x, made: _times(_pairs(y, made), _covariance(y, x, made)),
}
"""Statistics of (y, x): x is what y depends on."""
