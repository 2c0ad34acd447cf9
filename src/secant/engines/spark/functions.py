"""Functions for Spark: each gives what DuckDB gives, and none raises on a row.

In: a call of a plan. Out: SQL text. A function that is neither in the templates nor has a rule here is refused.
"""

from __future__ import annotations

from collections.abc import Callable

from secant.engines.dialect import text as quoted
from secant.engines.postgres.failures import SUBSTRING_LIMIT
from secant.engines.print.blocks import Env, Writer, first_extreme
from secant.engines.print.case_folding import letters
from secant.engines.print.print_sql import write
from secant.engines.spark import casts, times
from secant.engines.spark.casts import number, refused
from secant.engines.spark.operands import (
    alike,
    as_type,
    double,
    met,
    nothing,
    opposite,
    unknown,
    whole,
)
from secant.plan import nodes as n
from secant.plan.functions.scalar import FUNCTIONS
from secant.plan.rewrites.null_on_error import WHOLE
from secant.plan.typing import type_of

_REALS = {
    "exp", "ln", "log10", "log2", "sqrt", "power", "sin", "cos", "tan", "asin", "acos", "atan", "atan2", "ramp",
    "sigmoid", "tauoid", "width_bucket",
}  # fmt: skip
_LOGARITHM = (
    "CASE WHEN {{0}} > 0D THEN {0}({{0}}) WHEN {{0}} = 0D THEN CAST('-inf' AS DOUBLE) "
    "WHEN {{0}} < 0D THEN CAST('NaN' AS DOUBLE) END"
)
TEMPLATES = {
    "exp": "exp({0})", "ln": _LOGARITHM.format("ln"), "log10": _LOGARITHM.format("log10"),
    "log2": _LOGARITHM.format("log2"), "sqrt": "sqrt({0})",
    "power": (
        "CASE WHEN ({0} = 1D AND {1} IS NOT NULL) OR (abs({0}) = 1D AND abs({1}) = CAST('inf' AS DOUBLE)) THEN 1D "
        "ELSE power({0}, {1}) END"
    ),
    **{name: f"{name}({{0}})" for name in ("sin", "cos", "tan", "asin", "acos", "atan")},
    "atan2": "atan2({0}, {1})",
    "width_bucket": (
        "CASE WHEN {0} < {1} THEN 0 WHEN {0} >= {2} THEN CAST({3} AS BIGINT) + 1 WHEN {0} IS NOT NULL THEN "
        "CAST(floor(({0} - {1}) * {3} / ({2} - {1})) AS BIGINT) + 1 END"
    ),
    "length": "CAST(length({0}) AS BIGINT)", "strlen": "CAST(octet_length({0}) AS BIGINT)",
    "concat_op": "({0} || {1})", "starts_with": "startswith({0}, {1})", "ends_with": "endswith({0}, {1})",
    "contains": "contains({0}, {1})", "replace": "replace({0}, {1}, {2})",
    "strpos": "CAST(instr({0}, {1}) AS BIGINT)", "split_part": "split_part({0}, {1}, CAST({2} AS INT))",
    "concat_ws": "concat_ws({all})", "translate": "translate({0}, {1}, {2})",
    "lpad": "lpad({0}, CAST({1} AS INT), {2})", "rpad": "rpad({0}, CAST({1} AS INT), {2})",
    "md5": "md5({0})", "sha256": "sha2({0}, 256)", "reverse": "reverse({0})", "repeat": "repeat({0}, CAST({1} AS INT))",
    "bitwise_and": "({0} & {1})", "bitwise_or": "({0} | {1})", "xor": "({0} ^ {1})",
    "make_date": (
        "CASE WHEN {0} BETWEEN 1 AND 9999 AND {1} BETWEEN 1 AND 12 AND {2} BETWEEN 1 AND 31 "
        "THEN make_date(CAST({0} AS INT), CAST({1} AS INT), CAST({2} AS INT)) END"
    ),
    "ramp": "CASE WHEN {0} <= -0.5D THEN 0D WHEN {0} >= 0.5D THEN 1D ELSE {0} + 0.5D END",
    "sigmoid": "(1D / (1D + exp(- {1} * {0})))",
    "tauoid": "(2D / (exp({1} * {0}) + exp(- {1} * {0})))",
}  # fmt: skip


def call(w: Writer, node: n.Call, env: Env) -> str:
    """Write a call."""
    if not FUNCTIONS[node.function].null_safe and unknown(w, *node.arguments):
        return nothing(w, type_of(node))
    special = _CALLS.get(node.function)
    if special is not None:
        return special(w, node, env)
    if node.function in ("lowest", "highest"):
        numbers = [double(w, a, env) for a in node.arguments]
        return first_extreme(numbers, "<=" if node.function == "lowest" else ">=")
    template = w.dialect.functions.get(node.function)
    if template is None:
        raise refused(node.function)
    how = double if node.function in _REALS else write
    arguments = [how(w, a, env) for a in node.arguments]
    return template.format(*arguments, all=", ".join(arguments))


def _chosen(w: Writer, node: n.Call, env: Env) -> str:
    arguments = tuple(a for a in node.arguments if not unknown(w, a))
    kind = type_of(node)
    texts = [as_type(w, a, kind, env) for a in arguments]
    return f"{node.function}({', '.join(texts)})" if len(texts) > 1 else texts[0]


def _null_if(w: Writer, node: n.Call, env: Env) -> str:
    value, other = node.arguments
    text = write(w, value, env)
    if unknown(w, value, other):
        return text
    kind = met(w, (value, other))
    same = f"{alike(w, value, kind, env)} = {alike(w, other, kind, env)}"
    return f"CASE WHEN {same} THEN NULL ELSE {text} END"


def _abs(w: Writer, node: n.Call, env: Env) -> str:
    (value,) = node.arguments
    kind = type_of(value).kind
    text = whole(w, value, env) if kind == "INTEGER" else write(w, value, env)
    if kind == "DECIMAL":
        return f"CASE WHEN {text} < 0 THEN {opposite(w, value, text)} ELSE {text} END"
    if kind == "DOUBLE":
        return f"abs({text})"
    if w.reach.within(value, -WHOLE, WHOLE):
        return f"abs({text})"
    return f"abs(nullif({text}, {-WHOLE - 1}))"


def _sign(w: Writer, node: n.Call, env: Env) -> str:
    (value,) = node.arguments
    x = write(w, value, env)
    nan = f"WHEN isnan({x}) THEN 0 " if type_of(value).kind == "DOUBLE" else ""
    return f"CAST(CASE {nan}WHEN {x} > 0 THEN 1 WHEN {x} < 0 THEN -1 WHEN {x} = 0 THEN 0 END AS BIGINT)"


def _floor(w: Writer, node: n.Call, env: Env) -> str:
    (value,) = node.arguments
    if type_of(node).kind != "DOUBLE":
        x, kind = write(w, value, env), casts.name(type_of(node))
        toward = {"floor": f"floor({x})", "ceil": f"ceil({x})"}
        zero = f"CASE WHEN {x} >= 0 THEN floor({x}) ELSE ceil({x}) END"
        return f"CAST({toward.get(node.function, zero)} AS {kind})"
    x = double(w, value, env)
    down = f"(rint({x}) - CASE WHEN rint({x}) > {x} THEN 1D ELSE 0D END)"
    up = f"(- (rint(- {x}) - CASE WHEN rint(- {x}) > - {x} THEN 1D ELSE 0D END))"
    if node.function == "trunc":
        return f"CASE WHEN {x} >= 0D THEN {down} ELSE {up} END"
    return down if node.function == "floor" else up


def _round(w: Writer, node: n.Call, env: Env) -> str:
    value, digits = node.arguments[0], node.arguments[1] if len(node.arguments) == 2 else None
    kind, text = type_of(value), write(w, value, env)
    places = 0 if digits is None else digits.value if isinstance(digits, n.Literal) else None
    if not isinstance(places, int):
        raise refused("rounding to a number of digits that is computed")
    if kind.kind == "INTEGER":
        if places >= 0:
            return text
        wide = f"round(CAST({text} AS DECIMAL(38, 0)), {max(places, -37)})"
        return f"try_cast({wide} AS BIGINT)"
    if kind.kind == "DECIMAL":
        result = type_of(node)
        return f"try_cast(round({text}, {max(places, -38)}) AS {casts.name(result)})"
    return _rounded(text, places)


def _rounded(x: str, places: int) -> str:
    """Halves go away from zero, as one multiplies, rounds and divides: Spark's own goes by digits."""
    if places > 308:
        return x
    step = number(10.0 ** min(abs(places), 308))
    scaled = f"abs({x}) {'*' if places >= 0 else '/'} {step}"
    down = f"(rint({scaled}) - CASE WHEN rint({scaled}) > {scaled} THEN 1D ELSE 0D END)"
    away = f"({down} + CASE WHEN {scaled} - {down} >= 0.5D THEN 1D ELSE 0D END)"
    back = f"{away} {'/' if places >= 0 else '*'} {step}"
    usual = number(2.0**53 / 10.0**places) if places >= 0 else number(1e307)
    return f"CASE WHEN abs({x}) <= {usual} THEN signum({x}) * ({back}) ELSE {x} END"


def _substring(w: Writer, node: n.Call, env: Env) -> str:
    text, start, *count = (write(w, a, env) for a in node.arguments)
    places = [a.value if isinstance(a, n.Literal) else None for a in node.arguments[1:]]
    if all(isinstance(p, int) and 1 - i <= p < 2**31 for i, p in enumerate(places)):
        return f"substring({', '.join([text, *map(str, places)])})"
    size = f"CAST(length({text}) AS BIGINT)"
    begin = f"(CASE WHEN {start} >= 0 THEN {start} - 1 ELSE {size} + {start} END)"
    end = f"({begin} + {count[0]})" if count else size
    conditions = [
        f"{x} BETWEEN {-SUBSTRING_LIMIT} AND {SUBSTRING_LIMIT - 1}" for x in (start, *count)
    ]
    low, high = (
        f"least(greatest({way}({begin}, {end}), 0), {size})" for way in ("least", "greatest")
    )
    shown = f"substring({text}, CAST({low} + 1 AS INT), CAST({high} - {low} AS INT))"
    return f"CASE WHEN {' AND '.join(conditions)} THEN {shown} END"


def _side(w: Writer, node: n.Call, env: Env) -> str:
    text, count = (write(w, a, env) for a in node.arguments)
    size = f"length({text})"
    clamped = f"CAST(least(greatest({count}, -{2**31 - 1}), {2**31 - 1}) AS INT)"
    length = f"CASE WHEN {clamped} >= 0 THEN least({clamped}, {size}) ELSE greatest({size} + {clamped}, 0) END"
    there = f"{count} IS NOT NULL"
    if node.function == "left":
        there = f"{count} < {SUBSTRING_LIMIT}"
        return f"CASE WHEN {there} THEN substring({text}, 1, {length}) END"
    return f"CASE WHEN {there} THEN substring({text}, {size} - ({length}) + 1, {size}) END"


def _cased(w: Writer, node: n.Call, env: Env) -> str:
    return f"translate({write(w, node.arguments[0], env)}, {letters(node.function)})"


def _trimmed(w: Writer, node: n.Call, env: Env) -> str:
    side = {"trim": "BOTH", "ltrim": "LEADING", "rtrim": "TRAILING"}[node.function]
    text, *what = (write(w, a, env) for a in node.arguments)
    return f"trim({side} {what[0] if what else quoted(' ')} FROM {text})"


def _matches(w: Writer, node: n.Call, env: Env) -> str:
    pattern = node.arguments[1]
    assert isinstance(pattern, n.Literal)
    return f"({write(w, node.arguments[0], env)} RLIKE {quoted(java_pattern(str(pattern.value)))})"


def java_pattern(portable: str) -> str:
    r"""Write a pattern for Java, whose `$` also matches before a last line's end, and whose `&&` intersects.

    >>> java_pattern("^[a$]+$")
    '^[a$]+\\z'
    """
    pieces, inside, at = [], False, 0
    while at < len(portable):
        character = portable[at]
        if character == "\\":
            pieces.append(portable[at : at + 2])
            at += 2
            continue
        if character in "[]":
            inside = character == "["
        piece = "\\z" if character == "$" and not inside else character
        pieces.append("\\&" if character == "&" and inside else piece)
        at += 1
    return "".join(pieces)


_CALLS: dict[str, Callable[[Writer, n.Call, Env], str]] = {
    "abs": _abs, "sign": _sign, "floor": _floor, "ceil": _floor, "trunc": _floor, "round": _round,
    "least": _chosen, "greatest": _chosen, "coalesce": _chosen, "nullif": _null_if, "lower": _cased,
    "upper": _cased, "substring": _substring, "left": _side, "right": _side, "trim": _trimmed,
    "ltrim": _trimmed, "rtrim": _trimmed, "regexp_matches": _matches, "date_trunc": times.date_trunc,
    "date_diff": times.date_diff, "strftime": times.strftime, "full_years": times.full_years,
}  # fmt: skip
