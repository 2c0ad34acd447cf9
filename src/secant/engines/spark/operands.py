"""Operands as Spark takes them: doubles, whole numbers of 64 bits, days beside moments, decimals with another sign.

In: an expression of a plan. Out: SQL text of the type that is asked for; what does not fit it is NULL.
"""

from __future__ import annotations

from decimal import Decimal

from secant.engines.dialect import constant
from secant.engines.postgres.failures import whole_64_bits
from secant.engines.print.blocks import Env, Writer
from secant.engines.print.print_sql import write
from secant.engines.spark import casts
from secant.engines.spark.casts import number
from secant.plan import nodes as n
from secant.plan.typing import type_of
from secant.schema import types as t
from secant.schema.types import Type


def nothing(w: Writer, kind: Type) -> str:
    """Write NULL of a type."""
    return constant(w.dialect, None, kind)


def unknown(w: Writer, *parts: n.Scalar) -> bool:
    """Whether one of several expressions is nothing but NULL."""
    return any(type_of(part).kind == "NULL" for part in parts)


def double(w: Writer, scalar: n.Scalar, env: Env) -> str:
    """Write an expression as a double."""
    if isinstance(scalar, n.Literal) and isinstance(scalar.value, (int, float, Decimal)):
        return number(float(scalar.value))
    text = write(w, scalar, env)
    return text if type_of(scalar).kind == "DOUBLE" else f"CAST({text} AS DOUBLE)"


def whole(w: Writer, scalar: n.Scalar, env: Env) -> str:
    """Write a whole number with 64 bits; sums have more, and what does not fit is NULL."""
    text = write(w, scalar, env)
    if isinstance(scalar, (n.Arithmetic, n.Negate, n.Literal)):
        return text
    sure = whole_64_bits(w, scalar)
    return f"{'CAST' if sure else 'try_cast'}({text} AS BIGINT)"


def alike(w: Writer, scalar: n.Scalar, met: Type | None, env: Env) -> str:
    """Write a value that meets others: a day beside moments begins at midnight, if it has one."""
    text = write(w, scalar, env)
    kind = type_of(scalar)
    if met is not None and met.kind == "TIMESTAMP" and kind.kind == "DATE":
        return casts.moment(text)
    return text


def met(w: Writer, parts: tuple[n.Scalar, ...]) -> Type | None:
    """Give the type that values take on where they meet; None if there is none."""
    common: Type | None = t.NULL
    for part in parts:
        common = None if common is None else t.unify(common, type_of(part))
    return common


def as_type(w: Writer, scalar: n.Scalar, kind: Type, env: Env) -> str:
    """Write a value in the type of the whole, where Spark might find another."""
    text, own = write(w, scalar, env), type_of(scalar)
    if own.kind in ("NULL", kind.kind) and own.kind != "DECIMAL":
        return text
    return casts.converted(text, own, kind)


def opposite(w: Writer, scalar: n.Scalar, value: str) -> str:
    """Write a decimal with the other sign. Spark's own negation rounds to 34 digits, raises, and quotes the value."""
    return f"CAST((CAST(0 AS DECIMAL(1, 0)) - {value}) AS {casts.name(type_of(scalar))})"
