"""Expressions for PostgreSQL: each has the value that the plan means, which is DuckDB's, and none raises on a row.

In: nodes of a plan. Out: SQL text. Floating-point arithmetic is guarded by what is known of its operands; exact
arithmetic may raise, unless an Attempt stands around it, which asks first. What PostgreSQL computes differently and
cannot be told to is refused (BAK-003).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

from secant.engines.dialect import INTERVAL_SHOWN, Dialect, Pass, Windows, constant
from secant.engines.dialect import text as quoted
from secant.engines.optimize.filter_by_column import decided_by_columns
from secant.engines.optimize.order_predicates import cheap_first
from secant.engines.optimize.push_down_projections import computed_early
from secant.engines.postgres import casts, times
from secant.engines.postgres.failures import (
    failures,
    inline_only,
    null_if_too_large,
    rounded_whole,
    whole_64_bits,
)
from secant.engines.print import doubles
from secant.engines.print.blocks import Env, Writer
from secant.engines.print.case_folding import letters
from secant.engines.print.doubles import Operand
from secant.engines.print.print_sql import write
from secant.errors import BackendError
from secant.plan import nodes as n
from secant.plan.functions.scalar import AGGREGATES, FUNCTIONS
from secant.plan.rule_table import RuleTable
from secant.plan.typing import type_of
from secant.schema import types as t
from secant.schema.parts import ARRAYS
from secant.schema.types import Type

RULES: RuleTable[Callable[..., str]] = RuleTable("write for PostgreSQL")
rule = RULES.rule


def _nothing(w: Writer, kind: Type) -> str:
    return constant(w.dialect, None, kind)


def _unknown(w: Writer, *parts: n.Scalar) -> bool:
    return any(type_of(part).kind == "NULL" for part in parts)


def _operand(w: Writer, scalar: n.Scalar, env: Env) -> Operand:
    """Write an expression as a double, with what is known of its size."""
    if isinstance(scalar, n.Literal) and isinstance(scalar.value, (int, float, Decimal)):
        text = doubles.number(float(scalar.value))
    else:
        text = _as_double(w, scalar, env)
    interval = w.reach.of(scalar)
    low, high = (_float(end) for end in (interval.low, interval.high))
    most, step = w.reach.magnitude(scalar), w.reach.step(scalar)
    return Operand(text, most, step, low, high)


def _as_double(w: Writer, scalar: n.Scalar, env: Env) -> str:
    """Write a number as a double; a decimal that is moved into its range is one before it is moved.

    The nearest double never falls where a decimal rises, so that of the moved decimal is the moved double, with ends
    that are the nearest doubles of its ends; and the engine compares doubles in a tenth of the time.
    """
    if isinstance(scalar, n.Clamp) and type_of(scalar.operand).kind == "DECIMAL":
        low, high = (
            x.value if isinstance(x, n.Literal) else None for x in (scalar.low, scalar.high)
        )
        if isinstance(low, (int, Decimal)) and isinstance(high, (int, Decimal)):
            # A decimal zero has no sign, also where it was written with one.
            ends = tuple(doubles.number(float(end) + 0.0) for end in (low, high))
            return _clamped_template(w, scalar.operand, env, "CAST({0} AS double precision)", *ends)
    text = write(w, scalar, env)
    return text if type_of(scalar).kind == "DOUBLE" else f"CAST({text} AS double precision)"


def _float(end: Fraction | None) -> float | None:
    return None if end is None or abs(end) > 10**300 else float(end)


# ── arithmetic ───────────────────────────────────────────────────────────────────────────────────


@rule(n.Arithmetic)
def _arithmetic(w: Writer, node: n.Arithmetic, env: Env) -> str:
    result = type_of(node)
    if _unknown(w, node.left, node.right):
        return _nothing(w, result)
    if result.kind == "DOUBLE":
        a, b = _operand(w, node.left, env), _operand(w, node.right, env)
        if node.op == "*":
            return doubles.times(a, b, w.alias)
        if node.op == "/":
            return doubles.divide(a, b, w.alias)
        if node.op == "%":
            raise BackendError(
                "BAK-003",
                "PostgreSQL has no remainder of floating-point numbers",
                hint="use whole numbers or decimals",
            )
        return doubles.plus(a, b, node.op, w.alias)
    if result.kind == "INTEGER" and type_of(node.left).kind == "INTEGER":
        left, right = _whole(w, node.left, env), _whole(w, node.right, env)
    else:
        left, right = write(w, node.left, env), write(w, node.right, env)
    if node.op in ("//", "%"):
        return f"({left} {'/' if node.op == '//' else '%'} NULLIF({right}, 0))"
    if w.inline and node.op in ("+", "-", "*") and result.kind in ("INTEGER", "DECIMAL"):
        return _time(w, node, left, right) or null_if_too_large(w, node, left, right)
    return _time(w, node, left, right) or f"({left} {node.op} {right})"


def _whole(w: Writer, scalar: n.Scalar, env: Env) -> str:
    text = write(w, scalar, env)
    has_type = isinstance(scalar, (n.Arithmetic, n.Literal))
    return text if has_type else f"CAST({text} AS bigint)"


def _time(w: Writer, node: n.Arithmetic, left: str, right: str) -> str | None:
    match type_of(node.left).kind, type_of(node.right).kind:
        case "DATE", "DATE":
            days = f"{_day_number(left)} - {_day_number(right)}"
            return (
                f"CASE WHEN isfinite({left}) AND isfinite({right}) "
                f"THEN CAST({left} - {right} AS bigint) ELSE {days} END"
            )
        case "DATE", "INTEGER":
            return f"({left} {node.op} CAST({right} AS integer))"
        case "INTEGER", "DATE":
            return f"(CAST({left} AS integer) {node.op} {right})"
        case "INTERVAL", "INTEGER":
            return f"({left} * CAST({right} AS double precision))"
        case "INTEGER", "INTERVAL":
            return f"(CAST({left} AS double precision) * {right})"
    return None


def _day_number(date: str) -> str:
    """Write the days since 1970; infinite dates are the ends of 32 bits."""
    return (
        f"CASE WHEN isfinite({date}) THEN CAST({date} - DATE '1970-01-01' AS bigint) "
        f"WHEN {date} > DATE '1970-01-01' THEN {2**31 - 1} WHEN {date} < DATE '1970-01-01' THEN {1 - 2**31} END"
    )


@rule(n.Negate)
def _negate(w: Writer, node: n.Negate, env: Env) -> str:
    return f"(- {_widened(w, node.operand, env)})"


def _widened(w: Writer, scalar: n.Scalar, env: Env) -> str:
    """Write a number; a whole one with 64 bits, if it does not have more."""
    text = write(w, scalar, env)
    short = type_of(scalar).kind == "INTEGER" and whole_64_bits(w, scalar)
    return f"CAST({text} AS bigint)" if short else text


@rule(n.Compare)
def _compare(w: Writer, node: n.Compare, env: Env) -> str:
    if _unknown(w, node.left, node.right):
        return _nothing(w, t.BOOLEAN)
    return f"({write(w, node.left, env)} {node.op} {write(w, node.right, env)})"


@rule(n.Like)
def _like(w: Writer, node: n.Like, env: Env) -> str:
    if _unknown(w, node.operand, node.pattern):
        return _nothing(w, t.BOOLEAN)
    # Without the clause a backslash would have a meaning here.
    escape = quoted(node.escape)
    return f"({write(w, node.operand, env)} LIKE {write(w, node.pattern, env)} ESCAPE {escape})"


@rule(n.Cast)
def _cast(w: Writer, node: n.Cast, env: Env) -> str:
    if isinstance(node.operand, n.Clamp) and node.type.kind == "DOUBLE":
        return _as_double(w, node.operand, env)
    text = write(w, node.operand, env)
    return casts.converted(text, type_of(node.operand), node.type, w.alias, w.dialect.version)


@rule(n.Attempt)
def _attempt(w: Writer, node: n.Attempt, env: Env) -> str:
    if not w.inline and inline_only(w, node.operand, env):
        w.inline = True
        try:
            return write(w, node.operand, env)
        finally:
            w.inline = False
    text = write(w, node.operand, env)
    conditions = failures(w, node.operand, env)
    if not conditions:
        return text
    branches = " ".join(f"WHEN {c} THEN NULL" for c in conditions)
    return f"CASE {branches} ELSE {text} END"


@rule(n.Clamp)
def _clamp(w: Writer, node: n.Clamp, env: Env) -> str:
    low, high = (write(w, part, env) for part in (node.low, node.high))
    return _clamped_template(w, node.operand, env, "{0}", low, high)


def _clamped_template(
    w: Writer, operand: n.Scalar, env: Env, template: str, low: str, high: str
) -> str:
    """Write what a template makes of an expression, moved into a range; NULL stays NULL."""
    # least and greatest skip NULL; NaN is above everything for them too.
    x = write(w, operand, env)
    missing = _makes_null(w, operand, env) or [x]
    there = " AND ".join(f"{part} IS NOT NULL" for part in missing)
    stored = _STORED_DECIMAL.fullmatch(x)
    if stored:  # what is neither NULL nor NaN is what the column holds
        x = stored[1]
        there = f"{x} <> 'NaN'"
    return f"CASE WHEN {there} THEN least(greatest({template.format(x)}, {low}), {high}) END"


_STORED_DECIMAL = re.compile(r"NULLIF\(([^()]*), 'NaN'\)")
"""A stored decimal as a column of the plan: see `stored` of the dialect."""


def _makes_null(w: Writer, scalar: n.Scalar, env: Env) -> list[str]:
    """Give the columns of which one must be NULL for the expression to be; none if that is not all."""
    columns = {}
    for node in n.walk(scalar):
        if isinstance(node, (n.Column, n.Outer)):
            columns[node.name] = write(w, node, env)
        elif isinstance(node, n.Arithmetic):
            if node.op not in ("+", "-", "*", "/") or _unknown(w, node.left, node.right):
                return []
        elif isinstance(node, n.Literal):
            if node.value is None:
                return []
        elif isinstance(node, n.Cast):
            if node.type.kind != "DOUBLE" or not type_of(node.operand).numeric:
                return []
        elif isinstance(node, n.Call):
            if not FUNCTIONS[node.function].never_null:
                return []
        elif not isinstance(node, (n.Negate, n.Clamp)):
            return []
    return list(columns.values())


# ── functions ────────────────────────────────────────────────────────────────────────────────────


@rule(n.Call)
def _call(w: Writer, node: n.Call, env: Env) -> str:
    if not FUNCTIONS[node.function].null_safe and _unknown(w, *node.arguments):
        return _nothing(w, type_of(node))
    special = _CALLS.get(node.function)
    if special is not None:
        return special(w, node, env)
    arguments = [write(w, a, env) for a in node.arguments]
    if node.function not in w.dialect.functions:
        raise BackendError(
            "BAK-003",
            f"PostgreSQL has no {node.function} that means the same",
            hint="compute it in another way, or ask DuckDB",
        )
    return w.dialect.functions[node.function].format(*arguments, all=", ".join(arguments))


def _chosen(w: Writer, node: n.Call, env: Env) -> str:
    texts = [write(w, a, env) for a in node.arguments if not _unknown(w, a)]
    return f"{node.function}({', '.join(texts)})"


def _null_if(w: Writer, node: n.Call, env: Env) -> str:
    value, other = node.arguments
    if _unknown(w, value, other):
        return write(w, value, env)
    return f"NULLIF({write(w, value, env)}, {write(w, other, env)})"


def _exp(w: Writer, node: n.Call, env: Env) -> str:
    return doubles.exponential(_operand(w, node.arguments[0], env), w.alias)


def _logarithm(w: Writer, node: n.Call, env: Env) -> str:
    name = {"ln": "ln", "log10": "log"}[node.function]
    return doubles.logarithm(name, _operand(w, node.arguments[0], env), w.alias)


def _sqrt(w: Writer, node: n.Call, env: Env) -> str:
    return doubles.root(_operand(w, node.arguments[0], env), w.alias)


def _power(w: Writer, node: n.Call, env: Env) -> str:
    x, y = (_operand(w, a, env) for a in node.arguments)
    argument = node.arguments[1]
    number = argument.value if isinstance(argument, n.Literal) else None
    exponent = float(number) if isinstance(number, (int, float, Decimal)) else None
    return doubles.power(x, y, exponent, w.alias)


def _extreme(w: Writer, node: n.Call, env: Env) -> str:
    """Of numbers that are all there: NULL if one is missing."""
    name = {"lowest": "least", "highest": "greatest"}[node.function]
    texts = [_operand(w, a, env).text for a in node.arguments]
    missing = [
        part
        for a, text in zip(node.arguments, texts, strict=True)
        for part in _makes_null(w, a, env) or ([] if isinstance(a, n.Literal) else [text])
    ]
    there = " AND ".join(f"{part} IS NOT NULL" for part in dict.fromkeys(missing)) or "TRUE"
    return f"CASE WHEN {there} THEN {name}({', '.join(texts)}) END"


def _ramp(w: Writer, node: n.Call, env: Env) -> str:
    return doubles.ramp(_operand(w, node.arguments[0], env), w.alias)


def _soft(w: Writer, node: n.Call, env: Env) -> str:
    write_step = {"sigmoid": doubles.sigmoid, "tauoid": doubles.tauoid}[node.function]
    value, slope = (_operand(w, a, env) for a in node.arguments)
    return write_step(value, slope, w.alias)


def _abs(w: Writer, node: n.Call, env: Env) -> str:
    return f"abs({_widened(w, node.arguments[0], env)})"


def _sign(w: Writer, node: n.Call, env: Env) -> str:
    def body(x: str) -> str:
        # NaN is above everything, and has no sign.
        nan = (
            f"WHEN {x} = float8 'NaN' THEN 0 "
            if type_of(node.arguments[0]).kind == "DOUBLE"
            else ""
        )
        return f"CAST(CASE {nan}WHEN {x} > 0 THEN 1 WHEN {x} < 0 THEN -1 WHEN {x} = 0 THEN 0 END AS bigint)"

    return doubles.bound([write(w, node.arguments[0], env)], w.alias, body)


def _floor(w: Writer, node: n.Call, env: Env) -> str:
    name = {"floor": "floor", "ceil": "ceil"}[node.function]
    if type_of(node).kind == "DOUBLE":
        return f"{name}({_operand(w, node.arguments[0], env).text})"
    return f"{name}({write(w, node.arguments[0], env)})"


def _round(w: Writer, node: n.Call, env: Env) -> str:
    value, digits = node.arguments[0], node.arguments[1] if len(node.arguments) == 2 else None
    kind, text = type_of(value).kind, write(w, value, env)
    if kind == "INTEGER":
        if digits is None:
            return text
        return f"CAST({rounded_whole(text, write(w, digits, env))} AS bigint)"
    places = 0 if digits is None else digits.value if isinstance(digits, n.Literal) else None
    if not isinstance(places, int):
        raise BackendError(
            "BAK-003",
            "PostgreSQL rounds floating-point numbers to a written number of digits only",
            hint="write the number of digits as a constant",
        )
    if kind == "DECIMAL":
        scale = type_of(value).scale
        return text if places >= scale > 0 else f"round({text}, {max(places, -100)})"
    return doubles.rounded(_operand(w, value, env), places, w.alias)


def _substring(w: Writer, node: n.Call, env: Env) -> str:
    texts = [write(w, a, env) for a in node.arguments]
    places = [a.value if isinstance(a, n.Literal) else None for a in node.arguments[1:]]
    usual = [
        isinstance(p, int) and low <= p < 2**31 for p, low in zip(places, (1, 0), strict=False)
    ]
    if all(usual):
        return f"substring({', '.join([texts[0], *map(str, places)])})"

    def body(text: str, start: str, count: str = "") -> str:
        size = f"length({text})"
        begin = f"CASE WHEN {start} >= 0 THEN {start} - 1 ELSE {size} + {start} END"
        end = f"({begin}) + {count}" if count else size
        first, last = f"least({begin}, {end})", f"greatest({begin}, {end})"
        low, high = (f"least(greatest({position}, 0), {size})" for position in (first, last))
        shown = f"substring({text}, CAST({low} + 1 AS integer), CAST({high} - {low} AS integer))"
        missing = " OR ".join(f"{x} IS NULL" for x in (start, count) if x)
        return f"CASE WHEN {missing} THEN NULL ELSE {shown} END"

    return doubles.bound(texts, w.alias, body)


def _side(w: Writer, node: n.Call, env: Env) -> str:
    text, count = (write(w, a, env) for a in node.arguments)
    clamped = f"CAST(least(greatest({count}, {1 - 2**31}), {2**31 - 1}) AS integer)"
    return f"CASE WHEN {count} IS NOT NULL THEN {node.function}({text}, {clamped}) END"


def _cased(w: Writer, node: n.Call, env: Env) -> str:
    text = write(w, node.arguments[0], env)
    if w.dialect.version < LETTERS:
        return f"translate({text}, {letters(node.function)})"
    changed = f'{node.function}({text} COLLATE "pg_c_utf8")'
    if node.function == "upper":
        changed = f"replace({changed}, 'ß', 'ẞ')"
    return f'({changed} COLLATE "C")'


LETTERS = 170_000
"""Before this version the server cannot change the case of letters one by one, as the plan does: they are listed."""


_CALLS: dict[str, Callable[[Writer, n.Call, Env], str]] = {
    "exp": _exp, "ln": _logarithm, "log10": _logarithm, "sqrt": _sqrt, "power": _power, "abs": _abs,
    "sign": _sign, "floor": _floor, "ceil": _floor, "round": _round, "least": _chosen,
    "greatest": _chosen, "coalesce": _chosen, "nullif": _null_if, "lower": _cased, "upper": _cased,
    "substring": _substring, "left": _side, "right": _side, "date_trunc": times.date_trunc,
    "date_diff": times.date_diff, "strftime": times.strftime,
    "ramp": _ramp, "lowest": _extreme, "highest": _extreme, "sigmoid": _soft, "tauoid": _soft,
}  # fmt: skip


@rule(n.Extract)
def _extract(w: Writer, node: n.Extract, env: Env) -> str:
    if _unknown(w, node.operand):
        return _nothing(w, type_of(node))
    moment = write(w, node.operand, env)
    on_date = type_of(node.operand).kind == "DATE"
    if on_date and node.part in ("hour", "minute", "second"):
        return f"CASE WHEN isfinite({moment}) THEN CAST(0 AS bigint) END"
    value = f"extract({node.part} FROM {moment})"
    if node.part == "epoch":
        return f"CASE WHEN isfinite({moment}) THEN CAST({value} AS double precision) END"
    if node.part == "second":
        value = f"floor({value})"
    if node.part == "year":
        value += f" + {times.no_year_zero(moment)}"
    return f"CASE WHEN isfinite({moment}) THEN CAST({value} AS bigint) END"


# ── aggregates ───────────────────────────────────────────────────────────────────────────────────


@rule(n.Aggregation)
def _aggregation(w: Writer, node: n.Aggregation, env: Env) -> str:
    assert node.argument is not None
    argument, kind = node.argument, type_of(node.argument).kind
    distinct = "DISTINCT " if node.distinct else ""
    if kind == "NULL" and node.function != "count":
        result = AGGREGATES[node.function].result(t.NULL)
        return f"max({_nothing(w, t.TEXT if result in (None, t.NULL) else result)})"
    if node.function in ("sum", "avg") and kind == "DOUBLE":
        return _double_sum(w, node, env)
    if node.function in ("sum", "avg"):
        value = f"{node.function}({distinct}{_widened(w, argument, env)})"
        return value if node.function == "sum" else f"CAST({value} AS double precision)"
    if node.function in ("min", "max") and kind == "BOOLEAN":
        return f"{'bool_and' if node.function == 'min' else 'bool_or'}({write(w, argument, env)})"
    if node.function == "median":
        return _median(w, node, env)
    if node.function == "mode":
        return f"(mode() WITHIN GROUP (ORDER BY {write(w, argument, env)}))"
    if node.second is not None:
        sides = ", ".join(
            f"CAST({write(w, x, env)} AS double precision)" for x in (argument, node.second)
        )
        return f"{node.function}({sides})"
    if node.function == "product":
        raise BackendError(
            "BAK-003", "PostgreSQL has no product", hint="use exp(sum(ln(x))) for positive values"
        )
    if node.fraction is not None:
        return _quantile(w, node, env)
    if node.function in ("count", "min", "max"):
        return f"{node.function}({distinct}{write(w, argument, env)})"
    return f"{node.function}({distinct}{_operand(w, argument, env).text})"


def _double_sum(w: Writer, node: n.Aggregation, env: Env) -> str:
    assert node.argument is not None
    x = _operand(w, node.argument, env)
    distinct = "DISTINCT " if node.distinct else ""
    summed = doubles.total(x, distinct)
    if node.function == "sum":
        return summed
    return doubles.mean(summed, f"CAST(count({distinct}{x.text}) AS double precision)")


def _median(w: Writer, node: n.Aggregation, env: Env) -> str:
    assert node.argument is not None
    if node.distinct:
        raise BackendError(
            "BAK-003", "PostgreSQL has no median of distinct values", hint="leave out DISTINCT"
        )
    kind = type_of(node.argument)
    x = write(w, node.argument, env)
    low, high = (
        f"(percentile_disc(0.5) WITHIN GROUP (ORDER BY {x} {way}))" for way in ("ASC", "DESC")
    )
    if kind.kind == "DECIMAL":
        return f"trunc(({low} + {high}) / 2, {kind.scale})"
    if kind.kind == "INTEGER":
        return f"CAST((CAST({low} AS numeric) + {high}) / 2 AS double precision)"
    return doubles.middle(low, high)


def _quantile(w: Writer, node: n.Aggregation, env: Env) -> str:
    assert node.argument is not None
    assert node.fraction is not None
    kind = type_of(node.argument).kind
    between = node.function == "quantile_cont"
    if node.distinct or (between and kind == "DECIMAL"):
        raise BackendError(
            "BAK-003",
            "PostgreSQL has no such quantile",
            hint="leave out DISTINCT, cast to DOUBLE, or use quantile_disc",
        )
    x = write(w, node.argument, env)
    if between:
        x = f"CAST({x} AS double precision)"
    word = "percentile_cont" if between else "percentile_disc"
    return f"({word}({float(node.fraction)!r}) WITHIN GROUP (ORDER BY {x}))"


_JSON = {
    "jsonb": '(({0} #>> {1}) COLLATE "C")',
    # Escapes that stand for no character are kept in a json, and raise as soon as anything is read of it.
    "json": (
        "(CASE WHEN CAST({0} AS text) !~* '\\\\u(0000|d[89a-f])' THEN {0} #>> {1} END COLLATE \"C\")"
    ),
}
_FIELD = "the field"


def _parts(version: int) -> dict[tuple[str, str], str]:
    """Write the templates of parts of columns; a field that is no number is NULL as a number."""
    templates = {(what, "field"): template for what, template in _JSON.items()}
    for way, kind in (("number", t.DOUBLE), ("whole", t.INTEGER)):
        conditions = casts.fails(_FIELD, t.TEXT, kind, str, version)
        value = casts.converted(_FIELD, t.TEXT, kind, str, version)
        cases = " ".join(f"WHEN {condition} THEN NULL" for condition in conditions)
        plain = f"(CASE {cases} ELSE {value} END)".replace("{", "{{").replace("}", "}}")
        for what, template in _JSON.items():
            templates[what, way] = plain.replace(_FIELD, template)
    return templates | {
        ("interval", "seconds"): "CAST(extract(epoch FROM {0}) AS double precision)",
        **{(array, "count"): "CAST(cardinality({0}) AS bigint)" for array in ARRAYS},
        ("array of TEXT", "has"): "({1} = ANY (CAST({0} AS text[])))",
        ("array of INTEGER", "has"): "({1} = ANY (CAST({0} AS bigint[])))",
    }


OPTIMIZE: tuple[Pass, ...] = (
    decided_by_columns,  # stored columns tell which rows lie near an edge: the rest need no margin
    computed_early,  # what one table of a join decides is computed for its rows, not for each joined one
    cheap_first,  # conditions are asked in the order of the text where they seem to cost alike
)
"""What PostgreSQL is faster with."""

POSTGRES = Dialect(
    name="postgres",
    types={
        "BOOLEAN": "boolean", "INTEGER": "bigint", "DOUBLE": "double precision", "TEXT": "text",
        "DATE": "date", "TIMESTAMP": "timestamp", "INTERVAL": "interval",
    },
    functions={f.name: f.postgres for f in FUNCTIONS.values() if f.postgres},
    attempt=None,
    rules=RULES,
    stored={
        # Text is compared by its bytes; a number that is none would be no number anywhere else.
        "TEXT": casts.C_TEXT, "DOUBLE": "CAST({0} AS double precision)", "DECIMAL": "NULLIF({0}, 'NaN')",
        "INTEGER": "CAST({0} AS bigint)",  # whole numbers have 64 bits in a plan, also those of narrow columns
    },
    grouped=frozenset({"INTEGER"}),
    shown={
        "DECIMAL": "CAST({0} AS numeric(100, {scale}))", "INTERVAL": INTERVAL_SHOWN,
    },
    whole="CAST({0} AS bigint)",
    windows=Windows(counter="integer", whole="numeric", decimals="numeric"),
    fence="WITH {0} AS (SELECT 1) ",  # which nobody reads; OFFSET 0 would keep other processes out
    word='({0}::text COLLATE "C")',
    version=LETTERS,
    parts=_parts(LETTERS),
    element={"TEXT": casts.C_TEXT, "INTEGER": "CAST({0} AS bigint)"},
    path=lambda path: f"ARRAY[{', '.join(quoted(str(step)) for step in path)}]::text[]",
    split=(
        "LEFT JOIN (SELECT {owner}, TRUE AS past FROM {over}) AS o USING ({owner}) WHERE o.past IS NULL",
        "JOIN {over} USING ({owner})",
    ),
    optimize=OPTIMIZE,
)  # fmt: skip


def postgres_of(version: int) -> Dialect:
    """Give the dialect of a server of a version."""
    return replace(POSTGRES, version=min(version, LETTERS), parts=_parts(version))
