"""Conversions on PostgreSQL: text in, text out, values as the plan means them.

In: an expression as text, its type and the type it becomes. Out: the conversion, and the condition under which it
fails (the conversion itself may raise there: whoever prints it asks the condition first). Text that is no number
or date is told by its shape, because this engine would raise.
"""

from __future__ import annotations

from collections.abc import Callable

from secant.engines.print.doubles import Alias, bound, number
from secant.errors import BackendError
from secant.plan.rewrites.null_on_error import WHOLE
from secant.schema.types import Type

C_TEXT = '(CAST({0} AS text) COLLATE "C")'
WIDE = "numeric(100, {0})"
"""Wide enough for every exact number of a plan, so that giving a scale cannot fail."""
_NUMBER = r"^\s*[+-]?([0-9]+(_[0-9]+)*\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,4})?\s*$"
_ANY_EXPONENT = r"^\s*[+-]?([0-9]+(_[0-9]+)*\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,9})?\s*$"
_WORD = r"^\s*([+-]?inf(inity)?|nan)\s*$"
_MOMENT = (
    r"^\s*[0-9]{4}(-[0-9]{1,2}-[0-9]{1,2}|/[0-9]{1,2}/[0-9]{1,2})"
    r"([ T][0-9]{1,2}:[0-9]{1,2}(:[0-9]{1,2}(\.[0-9]{1,9})?)?)?\s*$"
)
_MONTH_DAY = "|".join(
    (
        "(0?[13578]|1[02])S(0?[1-9]|[12][0-9]|3[01])",
        "(0?[469]|11)S(0?[1-9]|[12][0-9]|30)",
        "0?2S(0?[1-9]|1[0-9]|2[0-8])",
    )
)
_LEAP = "([0-9]{2}(0[48]|[2468][048]|[13579][26])|(0[48]|[2468][048]|[13579][26])00)"
_DAYS = [
    rf"((?!0000)[0-9]{{4}}{s}({_MONTH_DAY})|{_LEAP}{s}0?2{s}29)".replace("S", s) for s in ("-", "/")
]
_VALID_MOMENT = (
    rf"^\s*({_DAYS[0]}|{_DAYS[1]})"
    r"([ T]([01]?[0-9]|2[0-3]):[0-5]?[0-9](:[0-5]?[0-9](\.[0-9]{1,9})?)?)?\s*$"
)
"""The shape of a moment that is one, for servers that cannot be asked."""
ASKING = 160_000
"""From this version on a server says whether a text is a value, instead of raising."""
LONGEST = 5000
"""Digits beyond which a text is no number: a numeric has no place for many more, and would raise."""
_LARGEST = "1.797693134862315807e308"
_ENDLESS = r"^\s*-?inf(inity)?\s*$"
_TRUE, _FALSE = "('true', 't', 'yes', 'y', '1')", "('false', 'f', 'no', 'n', '0')"


def power_of_ten(exponent: int) -> str:
    """Write 10^exponent exactly."""
    return f"numeric '1e{exponent}'"


def beyond_64_bits(x: str) -> str:
    """Write the condition that a whole number does not fit."""
    return f"({x} NOT BETWEEN {-WHOLE - 1} AND {WHOLE})"


def too_wide(x: str, kind: Type) -> str:
    """Write the condition that a number, once rounded, does not fit a DECIMAL."""
    return f"(abs(round({x}, {kind.scale})) >= {power_of_ten(kind.precision - kind.scale)})"


def late(date: str) -> str:
    """Write the condition that a date lies after the last day that DuckDB has a timestamp of."""
    return f"(isfinite({date}) AND {date} > DATE '294247-01-10')"


def converted(x: str, source: Type, target: Type, alias: Alias, version: int = ASKING) -> str:
    """Write a conversion."""
    if source.kind == "NULL" or (source == target and target.kind != "DECIMAL"):
        return f"CAST({x} AS {_name(target)})" if source.kind == "NULL" else x
    if source.kind == "TEXT":
        return _from_text(x, target, version)
    return _CASTS[target.kind](x, source, target, alias)


def fails(x: str, source: Type, target: Type, alias: Alias, version: int = ASKING) -> list[str]:
    """Write the conditions under which a conversion fails, in the order in which they must be asked."""
    if source.kind == "NULL" or source == target or target.kind == "TEXT":
        return []
    if source.kind == "TEXT":
        return _text_fails(x, target, version)
    if source.kind == "DATE" and target.kind == "TIMESTAMP":
        return [late(x)]
    if source.kind == "DOUBLE" and target.kind == "INTEGER":
        return [f"(NOT ({x} >= {number(-(2.0**63))} AND {x} < {number(2.0**63)}))"]
    if source.kind == "DOUBLE" and target.kind == "DECIMAL":
        whole = _whole_steps(x, target, alias)
        return [f"(NOT (abs({x}) < {number(1e38)}))", f"(abs({whole}) >= 1e{target.precision})"]
    if target.kind == "INTEGER" and source.kind == "DECIMAL":
        return [beyond_64_bits(f"round({x})")]
    if target.kind == "DECIMAL":
        return [too_wide(_exact(x, source), target)]
    return []


def _name(kind: Type) -> str:
    names = {"INTEGER": "bigint", "DOUBLE": "double precision", "TEXT": "text", "NULL": "text"}
    if kind.kind == "DECIMAL":
        return f"numeric({kind.precision}, {kind.scale})"
    return names.get(kind.kind, kind.kind.lower())


def _exact(x: str, source: Type) -> str:
    """Write an exact number as one of unlimited width."""
    inner = f"CAST({x} AS integer)" if source.kind == "BOOLEAN" else x
    return f"CAST({inner} AS numeric)"


def _to_boolean(x: str, source: Type, target: Type, alias: Alias) -> str:
    return f"({x} <> 0)"


def _to_integer(x: str, source: Type, target: Type, alias: Alias) -> str:
    if source.kind == "BOOLEAN":
        return f"CAST(CAST({x} AS integer) AS bigint)"
    return f"CAST({x} AS bigint)"  # doubles go to the even neighbor, decimals away from zero


def _to_double(x: str, source: Type, target: Type, alias: Alias) -> str:
    inner = f"CAST({x} AS integer)" if source.kind == "BOOLEAN" else x
    return f"CAST({inner} AS double precision)"


def _to_decimal(x: str, source: Type, target: Type, alias: Alias) -> str:
    if source.kind == "DOUBLE":
        steps = _whole_steps(x, target, alias)
        return f"CAST({steps} * {power_of_ten(-target.scale)} AS {_name(target)})"
    return f"CAST({_exact(x, source)} AS {_name(target)})"


def _whole_steps(x: str, target: Type, alias: Alias) -> str:
    """Write the multiple of the last digit that is nearest to a double, halves away from zero, exactly.

    The engine's own conversion keeps 15 digits only. A double splits without loss into parts of 32 bits.
    """

    def body(v: str) -> str:
        y = f"(abs({v}) * {number(10.0**target.scale)})"
        w = f"(floor{y} + CASE WHEN {y} - floor{y} >= {number(0.5)} THEN 1 ELSE 0 END)"
        small = f"CAST(CAST(sign({v}) * {w} AS bigint) AS numeric)"
        high = f"floor({w} * {number(2.0**-64)})"
        remainder = f"({w} - {high} * {number(2.0**64)})"
        middle = f"floor({remainder} * {number(2.0**-32)})"
        low = f"({remainder} - {middle} * {number(2.0**32)})"
        parts = [
            f"CAST(CAST({part} AS bigint) AS numeric) * {scale}"
            for part, scale in ((high, 2**64), (middle, 2**32), (low, 1))
        ]
        large = f"CAST(CAST(sign({v}) AS integer) AS numeric) * ({' + '.join(parts)})"
        usual = f"CASE WHEN {w} < {number(9e18)} THEN {small} WHEN {w} < {number(2.0**126)} THEN {large} END"
        return f"CASE WHEN abs({v}) < {number(1e38)} THEN {usual} END"

    return bound([x], alias, body)


def _to_text(x: str, source: Type, target: Type, alias: Alias) -> str:
    if source.kind == "DECIMAL":
        return C_TEXT.format(f"CAST({x} AS {WIDE.format(source.scale)})")
    if source.kind == "DOUBLE":
        return _double_text(x, alias)
    if source.kind in ("DATE", "TIMESTAMP"):
        return f"(replace(CAST({x} AS text), ' BC', ' (BC)') COLLATE \"C\")"
    return C_TEXT.format(x)


def _double_text(x: str, alias: Alias) -> str:
    """Write a double as the shortest digits that give it back, always with a point or an exponent."""

    def body(v: str) -> str:
        digits = f"CAST({v} AS text)"
        # Here this engine already writes an exponent, which the plan's texts have one digit later.
        long = f"CAST(CAST({digits} AS numeric) AS text)"
        pointed = "CASE WHEN {0} ~ '[.e]' THEN {0} ELSE {0} || '.0' END"
        return (
            f"CASE WHEN {v} = float8 'NaN' THEN 'nan' WHEN {v} = float8 'Infinity' THEN 'inf' "
            f"WHEN {v} = float8 '-Infinity' THEN '-inf' "
            f"WHEN abs({v}) >= {number(1e15)} AND abs({v}) < {number(1e16)} THEN {pointed.format(long)} "
            f"ELSE {pointed.format(digits)} END"
        )

    return f'({bound([x], alias, body)} COLLATE "C")'


def _to_date(x: str, source: Type, target: Type, alias: Alias) -> str:
    return f"CAST({x} AS date)"


def _to_timestamp(x: str, source: Type, target: Type, alias: Alias) -> str:
    return f"CAST({x} AS timestamp)"


_CASTS: dict[str, Callable[[str, Type, Type, Alias], str]] = {
    "BOOLEAN": _to_boolean,
    "INTEGER": _to_integer,
    "DOUBLE": _to_double,
    "DECIMAL": _to_decimal,
    "TEXT": _to_text,
    "DATE": _to_date,
    "TIMESTAMP": _to_timestamp,
}


def _from_text(x: str, target: Type, version: int) -> str:
    plain = f"replace({x}, '_', '')"
    if target.kind == "BOOLEAN":
        return (
            f"CASE WHEN lower({x}) IN {_TRUE} THEN TRUE WHEN lower({x}) IN {_FALSE} THEN FALSE END"
        )
    if target.kind == "INTEGER":
        return f"CAST(round(CAST({plain} AS numeric)) AS bigint)"
    if target.kind == "DECIMAL":
        return f"CAST(CAST({plain} AS numeric) AS {_name(target)})"
    if target.kind == "DOUBLE":
        sign = f"CASE WHEN {x} ~ '^\\s*-' THEN -1 ELSE 1 END"
        return (
            f"CASE WHEN {_fits_double(x, plain, version)} THEN CAST({plain} AS double precision) "
            f"WHEN {x} ~ '[eE]-' THEN {number(0.0)} WHEN {x} IS NOT NULL THEN ({sign}) * float8 'Infinity' END"
        )
    if target.kind in ("DATE", "TIMESTAMP"):
        endless = f"CASE WHEN {x} ~ '-' THEN '-infinity' ELSE 'infinity' END"
        moment = f"CAST(CASE WHEN {x} ~* '{_ENDLESS}' THEN {endless} ELSE {x} END AS timestamp)"
        return f"CAST({moment} AS date)" if target.kind == "DATE" else moment
    raise BackendError(
        "BAK-003", "PostgreSQL cannot make this conversion safely", hint="cast to another type"
    )


def _fits_double(x: str, plain: str, version: int) -> str:
    """Write the condition that a text in the shape of a number is a double."""
    if version >= ASKING:
        return f"pg_input_is_valid({plain}, 'float8')"
    value = f"abs(CAST({plain} AS numeric))"
    near = f"{value} < {_LARGEST} AND ({value} >= 2.5e-324 OR {value} = 0)"
    return (
        f"CASE WHEN {x} ~* '{_WORD}' THEN TRUE "
        f"WHEN {x} ~ '{_NUMBER}' AND length({x}) < {LONGEST} THEN {near} ELSE FALSE END"
    )


def _text_fails(x: str, target: Type, version: int) -> list[str]:
    plain = f"replace({x}, '_', '')"
    if target.kind == "BOOLEAN":
        return [f"(lower({x}) NOT IN {_TRUE} AND lower({x}) NOT IN {_FALSE})"]
    if target.kind == "DOUBLE":
        return [f"({x} !~ '{_ANY_EXPONENT}' AND {x} !~* '{_WORD}')"]
    if target.kind in ("DATE", "TIMESTAMP"):
        usual = f"({x} ~ '{_MOMENT}' AND pg_input_is_valid({x}, 'timestamp'))"
        if version < ASKING:
            usual = f"({x} ~ '{_VALID_MOMENT}')"
        return [f"(NOT {usual} AND {x} !~* '{_ENDLESS}' AND {x} !~* '^\\s*epoch\\s*$')"]
    shape = f"(length({x}) >= {LONGEST} OR {x} !~ '{_NUMBER}')"
    value = f"CAST({plain} AS numeric)"
    if target.kind == "INTEGER":
        return [shape, beyond_64_bits(f"round({value})")]
    return [shape, too_wide(value, target)]
