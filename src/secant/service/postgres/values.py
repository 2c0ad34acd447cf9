"""Values between PostgreSQL's wire and Secant: bound parameters in, released rows out.

In: types of parameters, and what the shadow read; rows of an answer with types of the plan. Out: SQL texts with which
the shadow reads the ones and gives the others; Python values. Never here: bytes of the wire.
"""

from __future__ import annotations

import datetime
import json
import math
import struct
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

from secant.errors import UsageError
from secant.release.answer import Answer, names_of_ends
from secant.schema.types import DOUBLE, Type
from secant.service.postgres.messages import message, zero

Columns = Sequence[tuple[str, Type]]

# Kind of the plan -> name, object id and size of PostgreSQL's type.
TYPES: dict[str, tuple[str, int, int]] = {
    "BOOLEAN": ("bool", 16, 1), "INTEGER": ("int8", 20, 8), "DECIMAL": ("numeric", 1700, -1),
    "DOUBLE": ("float8", 701, 8), "TEXT": ("text", 25, -1), "DATE": ("date", 1082, 4),
    "TIMESTAMP": ("timestamp", 1114, 8), "INTERVAL": ("interval", 1186, 16), "NULL": ("text", 25, -1),
}  # fmt: skip
_LONGEST_NAME = 63


def shape_of(columns: Columns) -> list[tuple[str, str]]:
    """Give names and kinds of columns: what a description promised, the answer must keep."""
    return [(name, kind.kind) for name, kind in columns]


def columns_with_ends(columns: Columns, noisy: Sequence[str]) -> Columns:
    """Put two columns behind each one that noise moves: the ends between which the true value lies."""
    wider: list[tuple[str, Type]] = []
    for name, kind in columns:
        wider.append((name, kind))
        if name in noisy:
            taken = [other for other, _ in (*columns, *wider)]
            ends = DOUBLE if kind.numeric else kind
            wider += [(end, ends) for end in names_of_ends(name, taken)]
    return wider


def rows_with_ends(answer: Answer, noisy: Sequence[str]) -> list[tuple[Any, ...]]:
    """Give rows of those columns; an end that nothing bounds is NULL."""
    return [
        tuple(
            cell
            for name, *cells in zip(answer.columns, row, low, high, strict=True)
            for cell in (cells if name in noisy else cells[:1])
        )
        for row, low, high in zip(answer.rows, answer.low, answer.high, strict=True)
    ]


def row_description(columns: Columns, formats: Sequence[int]) -> bytes:
    """Write names, types and formats of the columns of rows."""
    parts = [struct.pack("!h", len(columns))]
    for number, (name, kind) in enumerate(columns):
        _, oid, size = TYPES[kind.kind]
        form = _format(formats, number)
        parts += [zero(shortened(name)), struct.pack("!ihIhih", 0, 0, oid, size, -1, form)]
    return message(b"T", *parts)


def _format(formats: Sequence[int], number: int) -> int:
    if len(formats) == 1:
        return formats[0]
    return formats[number] if number < len(formats) else 0


def shortened(name: str) -> str:
    """Cut a name to as many bytes as PostgreSQL keeps."""
    return name.encode()[:_LONGEST_NAME].decode("utf-8", "ignore")


def quoted(name: str) -> str:
    """Write a name of a column, a table or a role."""
    return '"' + name.replace("\0", "").replace('"', '""') + '"'


def literal(text: str) -> str:
    """Write a text so that it is read alike under every setting of a session."""
    escaped = text.replace("\0", "").replace("\\", "\\\\").replace("'", "''")
    return f"E'{escaped}'"


def rows_text(columns: Columns, rows: Sequence[Sequence[Any]]) -> str:
    """Write a query that gives released rows."""
    names = [quoted(shortened(name)) for name, _ in columns]
    types = [TYPES[kind.kind][0] for _, kind in columns]
    if not rows:
        empty = ", ".join(f"NULL::{t} AS {n}" for n, t in zip(names, types, strict=True))
        return f"SELECT {empty} WHERE false"
    lines = []
    for number, row in enumerate(rows):
        cells = [_cell_text(value) for value in row]
        if number == 0:
            cells = [f"{cell}::{t}" for cell, t in zip(cells, types, strict=True)]
        lines.append("(" + ", ".join(cells) + ")")
    return f"SELECT * FROM (VALUES {', '.join(lines)}) AS released({', '.join(names)})"


def _cell_text(value: Any) -> str:
    match value:
        case None:
            return "NULL"
        case bool():
            return "'t'" if value else "'f'"
        case float() if not math.isfinite(value):
            return literal(str(value).replace("inf", "Infinity"))
        case float():
            return literal(repr(float(value)))
        case datetime.datetime():
            return literal(value.isoformat(sep=" "))
        case datetime.date():
            return literal(value.isoformat())
        case _:
            return literal(str(value))


# ── parameters ───────────────────────────────────────────────────────────────────────────────────
# The shadow reads them, as PostgreSQL does: dates by DateStyle, moments by TimeZone, in whatever format. It gives each
# back as JSON, which is the same under every setting; doubles as their bytes, which JSON would round.


def _date(said: str) -> datetime.date:
    return datetime.date.fromisoformat(said)


def _moment(said: str) -> datetime.datetime:
    return datetime.datetime.fromisoformat(said)


def _double(said: str) -> float:
    return float(struct.unpack("!d", bytes.fromhex(said))[0])


def _span(said: str) -> datetime.timedelta:
    return datetime.timedelta(microseconds=int(Decimal(said).scaleb(6)))


# Months have no length: what has any is no number, and is refused.
_SECONDS = (
    "CASE WHEN extract(year FROM {0}) = 0 AND extract(month FROM {0}) = 0"
    " THEN extract(epoch FROM {0})::varchar ELSE 'months' END"
)
_BYTES = "encode(float8send({}::double precision), 'hex')"
_OWN: dict[int, tuple[str, Callable[[str], object], object]] = {
    16: ("{}", bool, True), 20: ("{}", int, 1), 21: ("{}", int, 1), 23: ("{}", int, 1),
    26: ("{}::bigint", int, 1), 700: (_BYTES, _double, 0.5), 701: (_BYTES, _double, 0.5),
    1700: ("{}", Decimal, Decimal("0.5")), 1082: ("{}", _date, _date("2000-01-01")),
    1114: ("{}", _moment, _moment("2000-01-01")), 1184: ("{}::timestamp", _moment, _moment("2000-01-01")),
    1186: (_SECONDS, _span, datetime.timedelta(1)),
}  # fmt: skip
"""Object id of a type -> what the shadow makes of a value, how that is read, and a value that stands for others while
only the type is known. Values of all other types are texts."""
_ARRAYS: dict[int, int] = {
    1000: 16, 1005: 21, 1007: 23, 1016: 20, 1021: 700, 1022: 701, 1231: 1700, 1182: 1082, 1115: 1114, 1185: 1184,
    1009: 25, 1015: 25, 1014: 25, 1002: 25, 1003: 25, 1028: 25, 2951: 25, 1183: 25, 1270: 25, 1187: 25, 199: 25,
    3807: 25,
}  # fmt: skip
"""Object id of an array -> that of the type under which its items are read."""


def reading_of(types: Sequence[int]) -> str:
    """Write a query whose parameters are of some types, and which gives them as JSON."""
    return "SELECT " + ", ".join(
        f"to_json(ARRAY(SELECT {_made(_ARRAYS[oid], 'x')} FROM unnest(${number}) AS u(x)))"
        if oid in _ARRAYS
        else f"to_json({_made(oid, f'${number}')})"
        for number, oid in enumerate(types, 1)
    )


def _made(oid: int, value: str) -> str:
    return (_OWN[oid][0] if oid in _OWN else "{}::varchar").format(value)


def read_values(
    types: Sequence[int], bound: Sequence[bytes | None], said: Sequence[str | None]
) -> tuple[object, ...]:
    """Take values from what the shadow gave; USE-011 for one that only PostgreSQL has, such as an infinite date."""
    values = []
    for number, (oid, raw, text) in enumerate(zip(types, bound, said, strict=True)):
        try:
            values.append(None if raw is None or text is None else _value(oid, text))
        except (ValueError, ArithmeticError):
            raise UsageError(
                "USE-011", f"the value for ${number + 1} is none that a question can have",
                hint="dates go from the year 1 to 9999, intervals have no months; write others into the text",
            ) from None  # fmt: skip
    return tuple(values)


def _value(oid: int, said: str) -> object:
    value = json.loads(said, parse_int=str, parse_float=str)
    item = _ARRAYS.get(oid, oid)
    read = _OWN[item][1] if item in _OWN else str
    if isinstance(value, list):
        return [None if one is None else read(one) for one in value]
    return read(value)


def stand_ins(types: Sequence[int], text: str = "1") -> list[object]:
    """Give a value of each type, and a text where any other type is meant."""
    values: list[object] = []
    for oid in types:
        item = _ARRAYS.get(oid, oid)
        value = _OWN[item][2] if item in _OWN else text
        values.append([value] if oid in _ARRAYS else value)
    return values
