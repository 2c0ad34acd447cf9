"""How an engine writes what the plan says: names, constants, types, functions. Text only.

Every function comes from this whitelist; a name that an engine does not list cannot be printed (I3).
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import field
from decimal import Decimal
from typing import Any

from secant.engines.optimize.drop_implied import without_proved
from secant.engines.optimize.filter_by_column import decided_by_columns
from secant.engines.optimize.integer_margins import in_whole_numbers
from secant.engines.optimize.preaggregate import gathered_by_margin
from secant.engines.optimize.push_down_projections import computed_early
from secant.errors import BackendError
from secant.plan.functions.scalar import FUNCTIONS
from secant.plan.nodes import Relation
from secant.plan.rule_table import RuleTable
from secant.records import frozen
from secant.schema.catalog import Table
from secant.schema.parts import ARRAYS, FIELDS, Part, Path, elements_named, json_path, part_named
from secant.schema.types import INTEGER, TEXT, Type

Pass = Callable[[Relation], Relation]
"""From a plan to one with the same rows and columns."""


@frozen
class Windows:
    """How an engine's window calls come to the plan's types, where they do not have them by themselves."""

    counter: str
    """The type in which rows are counted: of `ntile`, `lag`, `lead` and `nth_value`."""
    whole: str
    """The type in which whole numbers are summed without loss."""
    decimals: str = ""
    """The same for decimals; empty where they are summed as they are."""
    averages: bool = True
    """Whether its average of decimals keeps all digits; else it is written as a quotient."""
    groups: bool = True
    """Whether it has frames of GROUPS."""


@frozen
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
    grouped: frozenset[str] = frozenset()
    """Kinds of stored columns by which rows are grouped as they are stored, where the template above is theirs: it
    tells apart what the engine does."""
    shown: Mapping[str, str] = field(default_factory=dict)
    """Kind -> template with {0} and {scale} for a column of the answer."""
    whole: str = "{0}"
    """Template of a whole constant that has 64 bits."""
    word: str = "{0}"
    """Template of a text constant."""
    exponents: bool = False
    """Whether a number that is written with an exponent is a DOUBLE, the nearest one: no cast has to be read then."""
    digits: bool = False
    """Whether a number that is written with a point is a DECIMAL of as many digits, and of as many after the point."""
    fence: str = ""
    """What before a SELECT keeps the planner from merging it with what reads it; {0} is a fresh name."""
    kept: str = "MATERIALIZED "
    """What makes an engine compute a WITH table once; empty where nothing does."""
    rereads: bool = False
    """Whether an engine reads rows of stored tables again about as fast as it would keep them."""
    split: tuple[str, str] = (
        "ANTI JOIN {over} USING ({owner})",
        "SEMI JOIN {over} USING ({owner})",
    )
    """Templates that keep the rows whose owner is not, and is, among `over`; one that is NULL never is."""
    places: Mapping[str, str] = field(default_factory=dict)
    """Table -> where the source has it, if its name alone does not say."""
    columns: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """Table and column -> template that turns a stored column into its value, where the kind does not say how."""
    parted: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """Table and column -> what a column is of which only parts can be read."""
    parts: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """What a column is and the way of a part -> template with {0}, the column, and {1}, where or what."""
    element: Mapping[str, str] = field(default_factory=dict)
    """Kind -> template that turns an element of an array into a value."""
    path: Callable[[Path], str] = str
    """How the way to a field is written."""
    optimize: tuple[Pass, ...] = ()
    """What a plan becomes before it is written, in order: what the engine takes, or is faster with."""
    lists: frozenset[str] = frozenset()
    """Kinds of which one text can hold many values, as a list: an engine reads that faster than many constants."""
    windows: Windows | None = None
    """What differs in window calls; None where they are written as in the plan."""
    version: int = 0
    """Of the server, where what can be written hangs on it."""


INTERVAL_SHOWN = (
    "CASE WHEN {0} BETWEEN INTERVAL '-900000000 days' AND INTERVAL '900000000 days' THEN {0} END"
)
"""Drivers fail on longer ones: Python has none."""

DAY = 86_400_000_000

OPTIMIZE: tuple[Pass, ...] = (
    decided_by_columns,  # stored columns tell which rows lie near an edge: the rest need no margin
    gathered_by_margin,  # of rows with one margin the largest counts: its exponential is computed once
    computed_early,  # what one table of a join decides is computed for its rows, not for each joined one
    in_whole_numbers,  # margins of whole days are added and compared as whole numbers, faster than as floats
    without_proved,  # ends that no row is beyond, and cells that are never empty, are not asked for
)
"""What DuckDB is faster with."""

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
    parts={
        ("json", "field"): "TRY(json_extract_string({0}, {1}))",
        ("json", "number"): "TRY_CAST(TRY(json_extract_string({0}, {1})) AS DOUBLE)",
        ("json", "whole"): "TRY_CAST(TRY(json_extract_string({0}, {1})) AS BIGINT)",
        ("interval", "seconds"): "TRY(CAST(epoch({0}) AS DOUBLE))",
        **{(array, "count"): "len({0})" for array in ARRAYS},
        **{(array, "has"): "list_contains({0}, {1})" for array in ARRAYS[1:]},
    },
    element={"INTEGER": "CAST({0} AS BIGINT)"},
    path=lambda path: text(json_path(path)),
    lists=frozenset({"INTEGER", "DOUBLE", "DECIMAL"}),
    rereads=True,
    exponents=True,
    digits=True,
    optimize=OPTIMIZE,
)  # fmt: skip


def quote(name: str) -> str:
    """Write an identifier."""
    return '"' + name.replace('"', '""') + '"'


def table_text(dialect: Dialect, table: str) -> str:
    """Write a table of the source, or the elements of an array of one, each with the row that holds it."""
    spread = elements_named(table)
    if spread is None or (spread.table, spread.column) not in dialect.parted:
        return dialect.places.get(table) or quote(table)
    own = f"unnest(held.{quote(spread.column)}) AS {quote(spread.element)}"
    return f"(SELECT held.*, {own} FROM {table_text(dialect, spread.table)} AS held)"


def read_column(dialect: Dialect, table: str, column: str, kind: Type, alias: str) -> str:
    """Write a stored column of a table under an alias as the value that the plan means."""
    spread = elements_named(table)
    if spread is not None and (spread.table, spread.column) in dialect.parted:
        if column == spread.element:
            return dialect.element.get(kind.kind, "{0}").format(f"{alias}.{quote(column)}")
        table = spread.table
    part = part_named(column)
    if part is not None and (table, part.column) in dialect.parted:
        what = dialect.parted[table, part.column]
        sought = dialect.path(part.path) if part.way in FIELDS else _element(dialect, part)
        return dialect.parts[what, part.way].format(f"{alias}.{quote(part.column)}", sought)
    template = dialect.columns.get((table, column)) or dialect.stored.get(kind.kind, "{0}")
    return template.format(f"{alias}.{quote(column)}")


def _element(dialect: Dialect, part: Part) -> str:
    """Write what is looked for in an array as a constant of its elements' type."""
    if not part.path:
        return ""
    value = part.path[0]
    return constant(dialect, value, INTEGER if isinstance(value, int) else TEXT)


def stored_rows(dialect: Dialect, table: Table, only: Collection[str] | None = None) -> str:
    """Write a table of the source with its columns, or only some, under their own names, as the plan means them."""
    read = [
        f"{read_column(dialect, table.name, column, kind, 'stored')} AS {quote(column)}"
        for column, kind in table.columns
        if only is None or column in only
    ]
    return f"(SELECT {', '.join(read) or '1'} FROM {table_text(dialect, table.name)} AS stored)"


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
        literal = repr(float(value))  # type: ignore[arg-type]
        if dialect.exponents:
            signed = literal if "e" in literal else f"{literal}e0"
            return f"({signed})" if signed.startswith("-") else signed
        return f"CAST({literal} AS {dialect.types['DOUBLE']})"
    if isinstance(value, Decimal) or kind.kind == "DECIMAL":
        return _decimal(dialect, Decimal(value), kind)  # type: ignore[arg-type]
    if isinstance(value, int):
        whole = str(value) if value >= 0 else f"({value})"
        return dialect.whole.format(whole) if _fits(value) else whole
    raise AssertionError(f"no way to write a {type(value).__name__}")


def _decimal(dialect: Dialect, value: Decimal, kind: Type) -> str:
    """Write a decimal by its digits alone where they say its type: each cast that an engine binds takes its time."""
    whole, _, after = f"{value.copy_abs():f}".partition(".")
    digits = f"{whole.lstrip('0')}.{after.ljust(kind.scale, '0')}"
    if not dialect.digits or len(digits) != kind.precision + 1 or len(after) > kind.scale:
        return f"CAST({value:f} AS {type_name(dialect, kind)})"
    return f"(-{digits})" if value < 0 else digits


def _fits(value: Any) -> bool:
    """Whether a whole number has 64 bits."""
    return bool(-(2**63) <= value < 2**63)


MANY = 64
"""From so many rows on, lists are worth it: DuckDB takes 790 ms for 10,000 rows of constants, 12 ms for lists."""


def constant_rows(
    dialect: Dialect, kinds: Sequence[Type], rows: Sequence[tuple[object, ...]]
) -> str:
    """Write a table of constants: a SELECT or VALUES that stands in parentheses."""
    if not rows:
        return f"SELECT {', '.join(constant(dialect, None, k) for k in kinds)} WHERE FALSE"
    if len(rows) >= MANY and dialect.lists:
        columns = zip(kinds, zip(*rows, strict=True), strict=True)
        return f"SELECT {', '.join(_unnested(dialect, k, values) for k, values in columns)}"
    texts = (
        ", ".join(constant(dialect, v, k) for v, k in zip(row, kinds, strict=True)) for row in rows
    )
    return f"VALUES {', '.join(f'({row})' for row in texts)}"


def _unnested(dialect: Dialect, kind: Type, values: Sequence[object]) -> str:
    """Write a column as the elements of a list, which keep their order and stand beside those of other lists."""
    # Noise may lead a whole number out of 64 bits, which a constant takes and a list of them does not.
    wide = kind.kind == "INTEGER" and any(v is not None and not _fits(v) for v in values)
    if kind.kind in dialect.lists and not wide:
        plain = ", ".join("NULL" if v is None else _NUMBERS[kind.kind](v) for v in values)
        return f"unnest(CAST('[{plain}]' AS {type_name(dialect, kind)}[]))"
    return f"unnest([{', '.join(constant(dialect, v, kind) for v in values)}])"


_NUMBERS: Mapping[str, Callable[[Any], str]] = {
    "INTEGER": str,
    "DOUBLE": lambda value: repr(float(value)),
    "DECIMAL": lambda value: f"{Decimal(value):f}",
}
"""How a number is written in a text that an engine reads."""


def bucket_text(operand: str, limits: tuple[object, ...]) -> str:
    """Write how many limits lie below a number, the largest first; digits alone are exact in every engine."""
    texts = [f"{x:f}" if isinstance(x, Decimal) else str(x) for x in limits]
    tests = (f" WHEN {operand} > {texts[i]} THEN {i + 1}" for i in reversed(range(len(limits))))
    return f"CASE{''.join(tests)} ELSE 0 END"
