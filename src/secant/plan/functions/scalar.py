"""The functions a plan may call: one record for each, with all that the readings of a plan ask about it.

In: argument types, values, ranges. Out: result types, values as in DuckDB, ranges, spellings.
Never here: plan nodes, rows, names that are not on the list. Where the engine raises, `apply`
raises `Failure`; where it gives NaN or infinity, so does `apply`. A NULL argument gives NULL, and
`apply` is not called, unless the function is `null_safe`. What is left empty in a record is refused, or
known to be anything, wherever it is asked for.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from decimal import ROUND_CEILING, ROUND_DOWN, ROUND_FLOOR, Decimal
from fractions import Fraction
from functools import reduce
from types import MappingProxyType

from secant.numeric import affine
from secant.numeric import interval as iv
from secant.numeric.affine import Affine
from secant.numeric.powers import power_range
from secant.plan.evaluate.values import Failure, Value
from secant.plan.functions import patterns, values
from secant.plan.functions import text_values as texts
from secant.plan.functions.aggregates import AGGREGATES, Aggregator
from secant.records import frozen
from secant.schema.types import (
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    NULL,
    TEXT,
    TIMESTAMP,
    Type,
    decimal,
    unify,
)

__all__ = [
    "AGGREGATES",
    "FUNCTIONS",
    "MOST_EXPONENT",
    "Aggregator",
    "Failure",
    "Function",
]

Types = tuple[Type, ...]
Ranges = Sequence[iv.Interval]
Constants = Sequence[object]
"""Of each argument what is written for it in the query; None for what is not a constant."""
UNLIMITED = 1_000
"""Most arguments of a function that takes any number."""


@frozen
class Function:
    """One scalar function: arity, result type (None: not for these types) and meaning."""

    name: str
    least: int
    most: int
    result: Callable[[Types], Type | None]
    apply: Callable[..., Value]
    partial: bool = False
    """Whether it can fail on some input."""
    null_safe: bool = False
    """Whether it is called with NULL arguments too."""
    written: bool = True
    """Whether a query may name it; the others are made by rewrites."""
    never_null: bool = False
    """Whether it is NULL only if an argument is."""
    syntax: tuple[str, ...] = ()
    """The parser's class for it and the slots of its arguments; empty if a rule of the parser binds it."""
    parts: tuple[str, ...] = ()
    """What the first argument, a written name, may be."""
    range: Callable[[Ranges, Constants], iv.Interval] | None = None
    """Where its values lie, given where the arguments lie."""
    form: Callable[[Affine], Affine | None] | None = None
    """Its affine form, given that of its one argument."""
    continuous: bool = False
    """Whether it may be asked of values that are protected as such: it does not jump."""
    stepwise: bool = False
    """Whether its values can be listed by trying those of its arguments, or the ends of stretches."""
    duckdb: str = ""
    """How DuckDB spells it: a template with {0}, {1}, ... or {all}; empty: name and arguments."""
    postgres: str = ""
    """How PostgreSQL spells it; empty if it needs a rule of its own there, or is refused."""
    constants: tuple[int, ...] = ()
    """Which arguments, counted from 0, must be written as constants."""
    check: Callable[[Constants], str] | None = None
    """What is wrong with the constants, in words; empty if nothing is."""


# ── result types ─────────────────────────────────────────────────────────────────────────────────


def _to_double(types: Types) -> Type | None:
    return DOUBLE if all(t.numeric for t in types) else None


def _same_number(types: Types) -> Type | None:
    return types[0] if types[0].numeric else None


def _sign(types: Types) -> Type | None:
    return INTEGER if types[0].numeric else None


def _whole(types: Types) -> Type | None:
    if types[0].kind == "DECIMAL":
        return decimal(types[0].precision, 0)
    return _to_double(types)


def _round(types: Types) -> Type | None:
    """With digits, a decimal's scale depends on their value: `typing` narrows what stands here."""
    if len(types) == 2 and types[1].kind not in ("INTEGER", "NULL"):
        return None
    if len(types) == 1 and types[0].kind == "DECIMAL":
        return decimal(types[0].precision, 0)
    return _same_number(types)


def _unified(types: Types) -> Type | None:
    result: Type | None = NULL
    for t in types:
        result = None if result is None else unify(result, t)
    return result


def _nullif(types: Types) -> Type | None:
    return types[0] if _unified(types) is not None else None


def _signature(result: Type, *kinds: str) -> Callable[[Types], Type | None]:
    """Give the rule of a function with a fixed result type and fixed argument kinds."""

    def rule(types: Types) -> Type | None:
        fits = (t.kind in (kind, "NULL") for t, kind in zip(types, kinds, strict=False))
        return result if all(fits) else None

    return rule


def _temporal(result: Type) -> Callable[[Types], Type | None]:
    """Give the rule of a function of a part's name and moments."""

    def rule(types: Types) -> Type | None:
        moments = all(t.temporal or t.kind == "NULL" for t in types[1:])
        return result if types[0] == TEXT and moments else None

    return rule


# ── where values lie ─────────────────────────────────────────────────────────────────────────────


def _of_one(
    rule: Callable[[iv.Interval], iv.Interval],
) -> Callable[[Ranges, Constants], iv.Interval]:
    return lambda ranges, _: rule(ranges[0])


def _between(low: int, high: int) -> Callable[[Ranges, Constants], iv.Interval]:
    return lambda _ranges, _constants: iv.interval(low, high)


def _less_than_one_away(a: iv.Interval) -> iv.Interval:
    return iv.add(a, iv.interval(-1, 1))


def _all_together(
    join: Callable[[iv.Interval, iv.Interval], iv.Interval],
) -> Callable[[Ranges, Constants], iv.Interval]:
    return lambda ranges, _: reduce(join, ranges)


def _those_present(
    join: Callable[[iv.Interval, iv.Interval], iv.Interval],
) -> Callable[[Ranges, Constants], iv.Interval]:
    """NULL arguments are skipped, so any argument alone may decide."""

    def skipping(a: iv.Interval, b: iv.Interval) -> iv.Interval:
        return iv.hull(iv.hull(join(a, b), a), b)

    return _all_together(skipping)


MOST_EXPONENT = 64


def _power_within(ranges: Ranges, constants: Constants) -> iv.Interval:
    exponent = constants[1]
    if isinstance(exponent, (int, float, Decimal)) and -MOST_EXPONENT <= exponent <= MOST_EXPONENT:
        return power_range(ranges[0], Fraction(exponent))
    return iv.EVERYTHING


_SHORTEST: dict[str, int | Fraction] = {
    "year": 365, "quarter": 90, "month": 28, "week": 7, "day": 1, "hour": Fraction(1, 24),
    "minute": Fraction(1, 1440), "second": Fraction(1, 86_400),
}  # fmt: skip
"""Days between two borders, at least."""


def _borders_within(ranges: Ranges, constants: Constants) -> iv.Interval:
    """Between n borders of a kind lie at least n - 1 of its shortest stretches; days are counted exactly."""
    days = iv.add(ranges[2], iv.negate(ranges[1]))
    shortest = _SHORTEST.get(str(constants[0]))
    if shortest is None or not days.bounded:
        return iv.EVERYTHING
    if shortest == 1:
        return days
    low, high = (end / Fraction(shortest) for end in days.ends())
    return iv.Interval(Fraction(math.floor(low) - 1), Fraction(math.ceil(high) + 1))


def _years_within(ranges: Ranges, _: Constants) -> iv.Interval:
    return _borders_within((iv.EVERYTHING, *ranges), ("year",))


def _buckets(_: Ranges, constants: Constants) -> iv.Interval:
    return iv.interval(0, constants[3] + 1) if isinstance(constants[3], int) else iv.EVERYTHING


def _bucketed(types: Types) -> Type | None:
    return INTEGER if types[3] == INTEGER and all(t.numeric for t in types[:3]) else None


def _at_least_none(_ranges: Ranges, _constants: Constants) -> iv.Interval:
    return iv.Interval(Fraction(0), None)


# ── the list ─────────────────────────────────────────────────────────────────────────────────────

_EVERY = ("-1.7976931348623157e308", "1.7976931348623157e308")
_ALL = ("'-Infinity'", "'NaN'")
_FINITE = (
    "CASE WHEN CAST({{0}} AS double precision) BETWEEN {1} AND {2} THEN {0}(CAST({{0}} AS double precision)) "
    "WHEN {{0}} IS NOT NULL THEN float8 'NaN' END"
)
"""PostgreSQL raises where there is no such number."""
_BUCKET = (
    "CASE WHEN {{0}} < {{1}} THEN 0 WHEN {{0}} >= {{2}} THEN {{3}} + 1 WHEN {{0}} IS NOT NULL THEN CAST(floor("
    "(CAST({{0}} AS {real}) - CAST({{1}} AS {real})) * {{3}} / (CAST({{2}} AS {real}) - CAST({{1}} AS {real}))) "
    "AS {whole}) + 1 END"
)
_MONTH = "make_date(CAST({0} AS integer), CAST({1} AS integer), 1)"
_DATE_OF_PARTS = (
    "CASE WHEN {0} BETWEEN 1 AND 9999 AND {1} BETWEEN 1 AND 12 AND {2} BETWEEN 1 AND 31 THEN CASE WHEN {2} <= "
    f"extract(day FROM {_MONTH} + INTERVAL '1 month' - INTERVAL '1 day') "
    "THEN make_date(CAST({0} AS integer), CAST({1} AS integer), CAST({2} AS integer)) END END"
)
_YEARS = (
    "CASE WHEN isfinite({{0}}) AND isfinite({{1}}) THEN "
    "CAST(extract(year FROM age(CAST({{1}} AS {timestamp}), CAST({{0}} AS {timestamp}))) AS {whole}) END"
)
_BITS = ("CAST({0} AS BIGINT)", "CAST({1} AS BIGINT)")
"""DuckDB's sums are wider than what it takes for bits, or for a part of a date."""
_STEP = "CASE WHEN {0} <= -0.5 THEN 0.0 WHEN {0} >= 0.5 THEN 1.0 ELSE {0} + 0.5 END"

_NUMBERS = (
    Function(
        "exp", 1, 1, _to_double, values.exponential, never_null=True, syntax=("Exp", "this"),
        range=_of_one(iv.exponential), form=affine.exponential, continuous=True,
    ),
    Function(
        "ln", 1, 1, _to_double, values.logarithm(math.log), never_null=True, syntax=("Ln", "this"),
        range=_of_one(iv.logarithm), form=affine.logarithm, continuous=True,
    ),
    Function("log10", 1, 1, _to_double, values.logarithm(math.log10), never_null=True),
    Function(
        "sqrt", 1, 1, _to_double, values.square_root, never_null=True, syntax=("Sqrt", "this"),
        range=_of_one(iv.square_root), form=affine.square_root, continuous=True,
    ),
    Function(
        "power", 2, 2, _to_double, values.power, never_null=True, syntax=("Pow", "this", "expression"),
        range=_power_within, continuous=True,
    ),
    Function(
        "abs", 1, 1, _same_number, values.absolute, partial=True, never_null=True, syntax=("Abs", "this"),
        range=_of_one(iv.absolute), form=affine.absolute, continuous=True, stepwise=True,
    ),
    Function(
        "sign", 1, 1, _sign, values.signum, never_null=True, syntax=("Sign", "this"), range=_between(-1, 1),
        stepwise=True,
    ),
    Function(
        "floor", 1, 1, _whole, values.toward(ROUND_FLOOR, math.floor), never_null=True, syntax=("Floor", "this"),
        range=_of_one(_less_than_one_away), stepwise=True,
    ),
    Function(
        "ceil", 1, 1, _whole, values.toward(ROUND_CEILING, math.ceil), never_null=True, syntax=("Ceil", "this"),
        range=_of_one(_less_than_one_away), stepwise=True,
    ),
    Function(
        "round", 1, 2, _round, values.rounded, partial=True, syntax=("Round", "this", "decimals"), stepwise=True,
    ),
)  # fmt: skip
_ANGLES = (
    *(
        Function(
            name, 1, 1, _to_double, texts.angle(function), never_null=True, syntax=(name.title(), "this"),
            range=within, postgres=_FINITE.format(name, *ends),
        )
        for name, function, within, ends in (
            ("sin", math.sin, _between(-1, 1), _EVERY), ("cos", math.cos, _between(-1, 1), _EVERY),
            ("tan", math.tan, None, _EVERY), ("asin", math.asin, _between(-2, 2), (-1, 1)),
            ("acos", math.acos, _between(0, 4), (-1, 1)), ("atan", math.atan, _between(-2, 2), _ALL),
        )
    ),
    Function(
        "atan2", 2, 2, _to_double, lambda y, x: math.atan2(float(y), float(x)), never_null=True,
        syntax=("Atan2", "this", "expression"), range=_between(-4, 4),
        postgres="atan2(CAST({0} AS double precision), CAST({1} AS double precision))",
    ),
    Function("log2", 1, 1, _to_double, values.logarithm(math.log2), never_null=True),
    *(
        Function(
            name, 2, 2, _signature(INTEGER, "INTEGER", "INTEGER"), meaning, never_null=True, stepwise=True,
            syntax=(syntax, "this", "expression"), duckdb=f"({_BITS[0]} {sign} {_BITS[1]})" if sign else xor,
            postgres=f"({{0}} {sign or '#'} {{1}})",
        )
        for name, syntax, meaning, sign, xor in (
            ("bitwise_and", "BitwiseAnd", operator.and_, "&", ""), ("bitwise_or", "BitwiseOr", operator.or_, "|", ""),
            ("xor", "BitwiseXor", operator.xor, "", f"xor({_BITS[0]}, {_BITS[1]})"),
        )
    ),
    Function(
        "trunc", 1, 1, _whole, values.toward(ROUND_DOWN, math.trunc), never_null=True, syntax=("Trunc", "this"),
        range=_of_one(_less_than_one_away), stepwise=True, postgres="trunc({0})",
    ),
    Function(
        "width_bucket", 4, 4, _bucketed, texts.bucket, never_null=True, range=_buckets, stepwise=True,
        constants=(1, 2, 3), check=texts.check_buckets,
        syntax=("WidthBucket", "this", "min_value", "max_value", "num_buckets"),
        duckdb=_BUCKET.format(real="DOUBLE", whole="BIGINT"),
        postgres=_BUCKET.format(real="double precision", whole="bigint"),
    ),
)  # fmt: skip
_CHOICES = (
    Function(
        "least", 1, UNLIMITED, _unified, values.extreme(operator.lt), null_safe=True,
        syntax=("Least", "this", "expressions"), range=_those_present(iv.smaller), continuous=True, stepwise=True,
    ),
    Function(
        "greatest", 1, UNLIMITED, _unified, values.extreme(operator.gt), null_safe=True,
        syntax=("Greatest", "this", "expressions"), range=_those_present(iv.larger), continuous=True, stepwise=True,
    ),
    Function(
        "coalesce", 1, UNLIMITED, _unified, values.coalesce, null_safe=True,
        syntax=("Coalesce", "this", "expressions"), range=_those_present(iv.hull), continuous=True, stepwise=True,
    ),
    Function(
        "nullif", 2, 2, _nullif, values.null_if, null_safe=True, syntax=("Nullif", "this", "expression"),
        range=lambda ranges, _: ranges[0], stepwise=True,
    ),
)  # fmt: skip
_TEXTS = (
    Function(
        "lower", 1, 1, _signature(TEXT, "TEXT"), values.recased(str.lower, {"İ": "i"}), never_null=True,
        syntax=("Lower", "this"),  # letters change case as an engine's tables say: not listed
    ),
    Function(
        "upper", 1, 1, _signature(TEXT, "TEXT"), values.recased(str.upper, {"ß": "ẞ"}), never_null=True,
        syntax=("Upper", "this"),  # letters change case as an engine's tables say: not listed
    ),
    Function(
        "length", 1, 1, _signature(INTEGER, "TEXT"), len, never_null=True, syntax=("Length", "this"),
        range=_at_least_none, postgres="CAST(length({0}) AS bigint)",
        stepwise=True,
    ),
    Function(
        "substring", 2, 3, _signature(TEXT, "TEXT", "INTEGER", "INTEGER"), values.substring, partial=True,
        syntax=("Substring", "this", "start", "length"),
        stepwise=True,
    ),
    Function(
        "concat_op", 2, 2, _signature(TEXT, "TEXT", "TEXT"), operator.add, never_null=True,
        syntax=("DPipe", "this", "expression"), duckdb="({0} || {1})", postgres="({0} || {1})",
        stepwise=True,
    ),
    Function(
        "trim", 1, 2, _signature(TEXT, "TEXT", "TEXT"), lambda text, what=" ": text.strip(what) if what else text,
        never_null=True, postgres="btrim({all})",
        stepwise=True,
    ),
    Function(
        "ltrim", 1, 2, _signature(TEXT, "TEXT", "TEXT"), lambda text, what=" ": text.lstrip(what) if what else text,
        never_null=True, postgres="ltrim({all})",
        stepwise=True,
    ),
    Function(
        "rtrim", 1, 2, _signature(TEXT, "TEXT", "TEXT"), lambda text, what=" ": text.rstrip(what) if what else text,
        never_null=True, postgres="rtrim({all})",
        stepwise=True,
    ),
    Function(
        "starts_with", 2, 2, _signature(BOOLEAN, "TEXT", "TEXT"), str.startswith, never_null=True,
        syntax=("StartsWith", "this", "expression"), postgres="starts_with({0}, {1})",
        stepwise=True,
    ),
    Function(
        "contains", 2, 2, _signature(BOOLEAN, "TEXT", "TEXT"), operator.contains, never_null=True,
        syntax=("Contains", "this", "expression"), postgres="(strpos({0}, {1}) > 0)",
        stepwise=True,
    ),
    Function(
        "replace", 3, 3, _signature(TEXT, "TEXT", "TEXT", "TEXT"), values.replaced, never_null=True,
        syntax=("Replace", "this", "expression", "replacement"), postgres="replace({0}, {1}, {2})",
        stepwise=True,
    ),
    Function(
        "left", 2, 2, _signature(TEXT, "TEXT", "INTEGER"), values.left, partial=True,
        syntax=("Left", "this", "expression"),
        stepwise=True,
    ),
    Function(
        "right", 2, 2, _signature(TEXT, "TEXT", "INTEGER"), values.right, syntax=("Right", "this", "expression"),
        stepwise=True,
    ),
    Function(
        "ends_with", 2, 2, _signature(BOOLEAN, "TEXT", "TEXT"), str.endswith, never_null=True,
        syntax=("EndsWith", "this", "expression"), postgres="(right({0}, length({1})) = {1})",
        stepwise=True,
    ),
    Function(
        "strpos", 2, 2, _signature(INTEGER, "TEXT", "TEXT"), texts.position_of, never_null=True,
        syntax=("StrPosition", "this", "substr"), range=_at_least_none, postgres="CAST(strpos({0}, {1}) AS bigint)",
        stepwise=True,
    ),
    Function(
        "strlen", 1, 1, _signature(INTEGER, "TEXT"), texts.bytes_of, never_null=True, range=_at_least_none,
        postgres="CAST(octet_length({0}) AS bigint)",
    ),
    Function(
        "split_part", 3, 3, _signature(TEXT, "TEXT", "TEXT", "INTEGER"), texts.piece, never_null=True,
        syntax=("SplitPart", "this", "delimiter", "part_index"), postgres="split_part({0}, {1}, CAST({2} AS integer))",
        constants=(1, 2), check=texts.check_piece,
        stepwise=True,
    ),
    Function(
        "concat_ws", 2, UNLIMITED, _signature(TEXT, *["TEXT"] * UNLIMITED), texts.joined, null_safe=True,
        postgres="concat_ws({all})",
    ),
    Function(
        "translate", 3, 3, _signature(TEXT, "TEXT", "TEXT", "TEXT"), texts.translated, never_null=True,
        syntax=("Translate", "this", "from_", "to"), postgres="translate({0}, {1}, {2})",
        stepwise=True,
    ),
    Function(
        "lpad", 3, 3, _signature(TEXT, "TEXT", "INTEGER", "TEXT"), texts.padded(left=True), never_null=True,
        postgres="lpad({0}, CAST({1} AS integer), {2})", constants=(1, 2), check=texts.check_padding,
        stepwise=True,
    ),
    Function(
        "rpad", 3, 3, _signature(TEXT, "TEXT", "INTEGER", "TEXT"), texts.padded(left=False), never_null=True,
        postgres="rpad({0}, CAST({1} AS integer), {2})", constants=(1, 2), check=texts.check_padding,
        stepwise=True,
    ),
    Function(
        "reverse", 1, 1, _signature(TEXT, "TEXT"), texts.turned, never_null=True, syntax=("Reverse", "this"),
        duckdb="array_to_string(list_reverse(regexp_extract_all({0}, '(?s).')), '')", postgres="reverse({0})",
        stepwise=True,
    ),
    Function(
        "repeat", 2, 2, _signature(TEXT, "TEXT", "INTEGER"), operator.mul, never_null=True,
        syntax=("Repeat", "this", "times"), postgres="repeat({0}, CAST({1} AS integer))",
        constants=(1,), check=texts.check_times, stepwise=True,
    ),
    Function(
        "md5", 1, 1, _signature(TEXT, "TEXT"), texts.digest("md5"), never_null=True, syntax=("MD5", "this"),
        postgres='(md5({0}) COLLATE "C")',
    ),
    Function(
        "sha256", 1, 1, _signature(TEXT, "TEXT"), texts.digest("sha256"), never_null=True,
        postgres="""(encode(sha256(convert_to({0}, 'UTF8')), 'hex') COLLATE "C")""",
    ),
    Function(
        "regexp_matches", 2, 2, _signature(BOOLEAN, "TEXT", "TEXT"), patterns.matches, never_null=True,
        syntax=("RegexpLike", "this", "expression"), postgres="({0} ~ {1})", constants=(1,),
        stepwise=True,
    ),
    Function(
        "regexp_extract", 2, 3, _signature(TEXT, "TEXT", "TEXT", "INTEGER"), patterns.extracted, never_null=True,
        constants=(1, 2),
    ),
    Function(
        "regexp_replace", 3, 4, _signature(TEXT, "TEXT", "TEXT", "TEXT", "TEXT"), patterns.exchanged, never_null=True,
        constants=(1, 2, 3),
    ),
)  # fmt: skip
_TIMES = (
    Function(
        "date_trunc",
        2,
        2,
        _temporal(TIMESTAMP),
        values.truncated,
        parts=values.TRUNCATION_PARTS,
        stepwise=True,
    ),
    Function(
        "date_diff",
        3,
        3,
        _temporal(INTEGER),
        values.difference,
        parts=values.DIFFERENCE_PARTS,
        range=_borders_within,
    ),
    Function(
        "full_years",
        2,
        2,
        lambda types: INTEGER if all(t.temporal or t.kind == "NULL" for t in types) else None,
        texts.full_years,
        written=False,
        range=_years_within,
        duckdb=_YEARS.format(timestamp="TIMESTAMP", whole="BIGINT"),
        postgres=_YEARS.format(timestamp="timestamp", whole="bigint"),
    ),
    Function(
        "make_date",
        3,
        3,
        _signature(DATE, "INTEGER", "INTEGER", "INTEGER"),
        texts.checked_date,
        partial=True,
        syntax=("DateFromParts", "year", "month", "day"),
        duckdb="CASE WHEN {0} BETWEEN 1 AND 9999 THEN make_date(CAST({0} AS BIGINT), CAST({1} AS BIGINT), "
        "CAST({2} AS BIGINT)) END",
        postgres=_DATE_OF_PARTS,
    ),
    Function(
        "strftime",
        2,
        2,
        lambda types: TEXT if types[0].temporal and types[1] == TEXT else None,
        texts.formatted,
        stepwise=True,
        duckdb="CASE WHEN isfinite({0}) THEN strftime({0}, {1}) END",
        constants=(1,),
        check=texts.check_format,
    ),
)
_INTERNAL = (
    Function(
        "lowest", 1, 64, _to_double, values.lowest, written=False, never_null=True, range=_all_together(iv.smaller),
    ),
    Function(
        "highest", 1, 64, _to_double, values.highest, written=False, never_null=True, range=_all_together(iv.larger),
    ),
    Function("ramp", 1, 1, _to_double, values.ramp, written=False, never_null=True, range=_between(0, 1), duckdb=_STEP),
    Function(
        "sigmoid", 2, 2, _to_double, values.sigmoid, written=False, never_null=True, range=_between(0, 1),
        duckdb="(1.0 / (1.0 + exp(- {1} * {0})))",
    ),
    Function(
        "tauoid", 2, 2, _to_double, values.tauoid, written=False, never_null=True, range=_between(0, 1),
        duckdb="(2.0 / (exp({1} * {0}) + exp(- {1} * {0})))",
    ),
)  # fmt: skip
"""Soft filters are floats throughout: engines read the constants beside a DOUBLE as such."""

_LIST = (*_NUMBERS, *_ANGLES, *_CHOICES, *_TEXTS, *_TIMES, *_INTERNAL)
FUNCTIONS: Mapping[str, Function] = MappingProxyType({f.name: f for f in _LIST})
