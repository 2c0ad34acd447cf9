"""Conversions on Spark: text in, text out, NULL where a value has no counterpart, and never an error.

In: an expression as text, its type and the type it becomes. Out: the conversion. Text that is no number or date is
told by its shape first, because Spark reads more than DuckDB does ('1d', '2020'). Spark has no dates that never end.
"""

from __future__ import annotations

from collections.abc import Callable

from secant.engines.dialect import text
from secant.errors import BackendError
from secant.schema.types import Type

_NUMBER = r"^\s*[+-]?([0-9]+(_[0-9]+)*\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,4})?\s*$"
_WORD = r"^\s*([+-]?[iI][nN][fF]([iI][nN][iI][tT][yY])?|[nN][aA][nN])\s*$"
_MOMENT = (
    r"^\s*(?!0000)[0-9]{4}(-[0-9]{1,2}-[0-9]{1,2}|/[0-9]{1,2}/[0-9]{1,2})"
    r"([ T][0-9]{1,2}:[0-9]{1,2}(:[0-9]{1,2}(\.[0-9]{1,9})?)?)?\s*$"
)
_TRUE, _FALSE = "('true', 't', 'yes', 'y', '1')", "('false', 'f', 'no', 'n', '0')"
FAR = 106_000_000
"""Days from 1970 to near the first and the last moment that 64 bits hold: beyond them Spark raises."""


def number(value: float) -> str:
    """Write a constant double exactly."""
    if value != value or value in (float("inf"), float("-inf")):
        return f"CAST('{value}' AS DOUBLE)"
    return f"{value!r}D" if str(value)[0] != "-" else f"({value!r}D)"


def moment(date: str) -> str:
    """Write the moment at which a day begins; NULL where there is none."""
    near = f"unix_date({date}) BETWEEN -{FAR} AND {FAR}"
    return f"CASE WHEN {near} THEN CAST({date} AS TIMESTAMP_NTZ) END"


def converted(x: str, source: Type, target: Type) -> str:
    """Write a conversion."""
    if source.kind == "NULL":
        return f"CAST(NULL AS {name(target)})"
    if source == target and target.kind not in ("DECIMAL", "INTEGER"):
        return x
    if source.kind == "TEXT":
        return _from_text(x, target)
    rule = _CASTS.get(target.kind)
    if rule is None or "INTERVAL" in (source.kind, target.kind):
        raise refused("this conversion")
    return rule(x, source, target)


def refused(what: str) -> BackendError:
    """Say that Spark computes something else."""
    return BackendError(
        "BAK-003",
        f"Spark has no {what} that means the same as here",
        hint="write the expression in another way, or keep the data in DuckDB or PostgreSQL",
    )


def name(kind: Type) -> str:
    """Write a type."""
    names = {"INTEGER": "BIGINT", "TEXT": "STRING", "TIMESTAMP": "TIMESTAMP_NTZ"}
    if kind.kind == "DECIMAL":
        return f"DECIMAL({kind.precision}, {kind.scale})"
    return names.get(kind.kind, kind.kind)


def _to_boolean(x: str, source: Type, target: Type) -> str:
    return f"({x} <> 0)"


def _to_integer(x: str, source: Type, target: Type) -> str:
    if source.kind == "DOUBLE":  # to the even neighbor
        ends = f"{x} >= {number(-(2.0**63))} AND {x} < {number(2.0**63)}"
        return f"CASE WHEN {ends} THEN CAST(rint({x}) AS BIGINT) END"
    rounded = f"round({x})" if source.kind == "DECIMAL" else x  # halves go away from zero
    return f"try_cast({rounded} AS BIGINT)"


def _to_double(x: str, source: Type, target: Type) -> str:
    return f"CAST({x} AS DOUBLE)"


def _to_decimal(x: str, source: Type, target: Type) -> str:
    if source.kind == "DOUBLE":
        return _double_to_decimal(x, target)
    inner = f"CAST({x} AS INT)" if source.kind == "BOOLEAN" else x
    return f"try_cast({inner} AS {name(target)})"


def _double_to_decimal(x: str, target: Type) -> str:
    """Write the multiple of the last digit that is nearest to a double, halves away from zero, exactly.

    Spark's own conversion goes by the digits that it would show. A double splits without loss into parts of 32 bits.
    """
    y = f"(abs({x}) * {number(10.0**target.scale)})"
    floor = f"(rint{y} - CASE WHEN rint{y} > {y} THEN 1D ELSE 0D END)"
    w = f"({floor} + CASE WHEN {y} - {floor} >= 0.5D THEN 1D ELSE 0D END)"
    wide = "CAST(CAST({0} AS BIGINT) AS DECIMAL(38, 0))"
    upper = f"CAST(floor({w} * {number(2.0**-62)}) AS DOUBLE)"
    lower = f"({w} - {upper} * {number(2.0**62)})"
    large = f"{wide.format(upper)} * CAST({2**62} AS DECIMAL(19, 0)) + {wide.format(lower)}"
    whole = (
        f"CASE WHEN {w} < {number(9e18)} THEN {wide.format(w)} WHEN {w} < 1e38D THEN {large} END"
    )
    signed = f"(CASE WHEN {x} < 0 THEN CAST(-1 AS DECIMAL(1, 0)) ELSE CAST(1 AS DECIMAL(1, 0)) END * ({whole}))"
    unit = f"CAST(1e-{target.scale}BD AS DECIMAL({max(target.scale, 1)}, {target.scale}))"
    value = f"try_cast({signed} AS DECIMAL(38, 0))"
    if target.scale:
        value = (
            f"try_multiply(try_cast({value} AS DECIMAL({min(38, target.precision)}, 0)), {unit})"
        )
    return f"CASE WHEN abs({x}) < 1e38D THEN try_cast({value} AS {name(target)}) END"


def _to_text(x: str, source: Type, target: Type) -> str:
    if source.kind == "DOUBLE":
        raise refused("text of floating-point numbers")
    return f"try_cast({x} AS STRING)"  # tried: a cast alone would write decimals with exponents


def _to_date(x: str, source: Type, target: Type) -> str:
    return f"CAST({x} AS DATE)"


def _to_timestamp(x: str, source: Type, target: Type) -> str:
    return moment(x) if source.kind == "DATE" else f"CAST({x} AS TIMESTAMP_NTZ)"


_CASTS: dict[str, Callable[[str, Type, Type], str]] = {
    "BOOLEAN": _to_boolean,
    "INTEGER": _to_integer,
    "DOUBLE": _to_double,
    "DECIMAL": _to_decimal,
    "TEXT": _to_text,
    "DATE": _to_date,
    "TIMESTAMP": _to_timestamp,
}


def _from_text(x: str, target: Type) -> str:
    plain = f"replace({x}, '_', '')"
    if target.kind == "BOOLEAN":
        return (
            f"CASE WHEN lower({x}) IN {_TRUE} THEN TRUE WHEN lower({x}) IN {_FALSE} THEN FALSE END"
        )
    numeral = f"({x} RLIKE {text(_NUMBER)})"
    if target.kind == "INTEGER":
        whole = f"try_cast(try_cast({plain} AS DECIMAL(38, 0)) AS BIGINT)"
        return f"CASE WHEN {numeral} THEN {whole} END"
    if target.kind == "DECIMAL":
        return f"CASE WHEN {numeral} THEN try_cast({plain} AS {name(target)}) END"
    if target.kind == "DOUBLE":
        word = f"({x} RLIKE {text(_WORD)})"
        return f"CASE WHEN {numeral} OR {word} THEN try_cast({plain} AS DOUBLE) END"
    if target.kind in ("DATE", "TIMESTAMP"):
        read = f"try_cast(replace(trim({x}), '/', '-') AS TIMESTAMP_NTZ)"
        checked = f"CASE WHEN {x} RLIKE {text(_MOMENT)} THEN {read} END"
        return f"CAST({checked} AS DATE)" if target.kind == "DATE" else checked
    raise refused("this conversion")
