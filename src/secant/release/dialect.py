"""How an engine writes what the plan says: names, constants, types, functions. Text only.

Every function comes from this whitelist; a name that an engine does not list cannot be printed (I3).
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal

from secant.errors import BackendError
from secant.plan.functions import FUNCTIONS
from secant.plan.rules import RuleTable
from secant.terms.types import Type


@dataclass(frozen=True, slots=True)
class Dialect:
    """One engine's way of writing."""

    name: str
    types: Mapping[str, str]
    functions: Mapping[str, str]
    """Function name in the plan -> template with {0}, {1}, ... or {all}."""
    attempt: str | None
    """Template that gives NULL where its operand fails; None if the engine has none."""
    rules: RuleTable[Callable[..., str]] | None = None
    """Nodes that this engine writes in its own way; all others are written in the common way."""
    stored: Mapping[str, str] = field(default_factory=dict)
    """Kind -> template that turns a stored column into a value as the plan means it."""
    shown: Mapping[str, str] = field(default_factory=dict)
    """Kind -> template with {0} and {scale} for a column of the answer."""
    whole: str = "{0}"
    """Template of a whole constant that has 64 bits."""
    word: str = "{0}"
    """Template of a text constant."""
    fence: str = ""
    """What keeps the planner from merging a derived table with what reads it."""
    split: tuple[str, str] = (
        "ANTI JOIN {over} USING ({owner})",
        "SEMI JOIN {over} USING ({owner})",
    )
    """Templates that keep the rows whose owner is not, and is, among `over`; one that is NULL never is."""


INTERVAL_SHOWN = (
    "CASE WHEN {0} BETWEEN INTERVAL '-900000000 days' AND INTERVAL '900000000 days' THEN {0} END"
)
"""Drivers fail on longer ones: Python has none."""

DAY = 86_400_000_000

DUCKDB = Dialect(
    name="duckdb",
    types={
        "BOOLEAN": "BOOLEAN", "INTEGER": "BIGINT", "DOUBLE": "DOUBLE", "TEXT": "VARCHAR", "DATE": "DATE",
        "TIMESTAMP": "TIMESTAMP", "INTERVAL": "INTERVAL",
    },
    functions={f.name: f.duckdb or f"{f.name}({{all}})" for f in FUNCTIONS.values()},
    attempt="TRY({0})",
    shown={"INTERVAL": INTERVAL_SHOWN},
    # A FLOAT is the plan's DOUBLE from the start: its own products overflow and round elsewhere. Timestamps of all
    # steps become microseconds: engines bring two of them to the finer one, which may not hold the coarser.
    stored={"DOUBLE": "CAST({0} AS DOUBLE)", "TIMESTAMP": "TRY_CAST({0} AS TIMESTAMP)"},
)  # fmt: skip


def quote(name: str) -> str:
    """Write an identifier."""
    return '"' + name.replace('"', '""') + '"'


def text(value: str) -> str:
    """Write a text constant. A NUL would end it early in some engines."""
    if "\x00" in value:
        raise BackendError("BAK-003", "a text constant holds a NUL character", hint="remove it")
    return "'" + value.replace("'", "''") + "'"


def type_name(dialect: Dialect, kind: Type) -> str:
    """Write a type."""
    if kind.kind == "DECIMAL":
        return f"DECIMAL({kind.precision}, {kind.scale})"
    return dialect.types[kind.kind]


def constant(dialect: Dialect, value: object, kind: Type) -> str:
    """Write a constant so that the engine reads exactly this value with exactly this type."""
    if value is None:
        return "NULL" if kind.kind == "NULL" else f"CAST(NULL AS {type_name(dialect, kind)})"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, datetime.datetime):
        return f"TIMESTAMP '{value.isoformat(sep=' ')}'"
    if isinstance(value, datetime.date):
        return f"DATE '{value.isoformat()}'"
    if isinstance(value, str):
        return dialect.word.format(text(value))
    if isinstance(value, datetime.timedelta):  # a key, as drivers give it
        micros = value // datetime.timedelta(microseconds=1)
        return f"INTERVAL '{micros // DAY} days {micros % DAY} microseconds'"
    if isinstance(value, tuple):
        months, days, micros = value
        return f"INTERVAL '{months} months {days} days {micros} microseconds'"
    if kind.kind == "DOUBLE":
        if not math.isfinite(float(value)):  # type: ignore[arg-type]
            return f"CAST('{float(value)}' AS {dialect.types['DOUBLE']})"  # type: ignore[arg-type]
        return f"CAST({float(value)!r} AS {dialect.types['DOUBLE']})"  # type: ignore[arg-type]
    if isinstance(value, Decimal) or kind.kind == "DECIMAL":
        return f"CAST({Decimal(value):f} AS {type_name(dialect, kind)})"  # type: ignore[arg-type]
    if isinstance(value, int):
        written = str(value) if value >= 0 else f"({value})"
        return dialect.whole.format(written) if -(2**63) <= value < 2**63 else written
    raise AssertionError(f"no way to write a {type(value).__name__}")
