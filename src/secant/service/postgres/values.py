"""Values between PostgreSQL's wire and Secant: bound parameters in, released rows out.

In: bytes with a type and a format; rows of an answer with types of the plan. Out: Python values; SQL text with which
the shadow gives the same rows. A value that cannot be read is an error of the client's, told by its number.
"""

from __future__ import annotations

import datetime
import math
import struct
import uuid
from collections.abc import Callable, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

from secant.errors import UsageError
from secant.schema.types import Type
from secant.service.postgres.messages import message, zero

Columns = Sequence[tuple[str, Type]]

# Kind of the plan -> name, object id and size of PostgreSQL's type.
TYPES: dict[str, tuple[str, int, int]] = {
    "BOOLEAN": ("bool", 16, 1), "INTEGER": ("int8", 20, 8), "DECIMAL": ("numeric", 1700, -1),
    "DOUBLE": ("float8", 701, 8), "TEXT": ("text", 25, -1), "DATE": ("date", 1082, 4),
    "TIMESTAMP": ("timestamp", 1114, 8), "INTERVAL": ("interval", 1186, 16), "NULL": ("text", 25, -1),
}  # fmt: skip
_LONGEST_NAME = 63
_EPOCH = datetime.datetime(2000, 1, 1)  # noqa: DTZ001 - the protocol's own, without a zone


def shape_of(columns: Columns) -> list[tuple[str, str]]:
    """Give names and kinds of columns: what a description promised, the answer must keep."""
    return [(name, kind.kind) for name, kind in columns]


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


def _number(raw: bytes) -> Decimal:
    """Read a NUMERIC of the binary format: groups of four digits."""
    count, weight, sign, scale = struct.unpack_from("!hhHH", raw)
    digits = struct.unpack_from(f"!{count}h", raw, 8)
    if sign not in (0, 0x4000) or count < 0 or abs(weight) > 100 or scale > 400:
        raise ValueError
    value = sum((Decimal(d).scaleb(4 * (weight - i)) for i, d in enumerate(digits)), Decimal(0))
    exact = round(value, scale) if digits else Decimal(0).scaleb(-scale)
    return -exact if sign else exact


def _day(raw: bytes) -> datetime.date:
    return _EPOCH.date() + datetime.timedelta(days=struct.unpack("!i", raw)[0])


def _moment(raw: bytes) -> datetime.datetime:
    return _EPOCH + datetime.timedelta(microseconds=struct.unpack("!q", raw)[0])


def _whole(raw: bytes) -> int:
    return int.from_bytes(raw, "big", signed=True)


def _truth(raw: bytes) -> bool:
    if raw not in (b"\0", b"\1"):
        raise ValueError
    return raw == b"\1"


def _text(raw: bytes) -> str:
    return raw.decode("utf-8")


_BINARY: dict[int, Callable[[bytes], object]] = {
    16: _truth, 20: _whole, 21: _whole, 23: _whole, 26: _whole, 25: _text, 1043: _text, 1042: _text,
    19: _text, 705: _text, 0: _text, 700: lambda raw: struct.unpack("!f", raw)[0],
    701: lambda raw: struct.unpack("!d", raw)[0], 1700: _number, 1082: _day, 1114: _moment,
    1184: _moment, 2950: lambda raw: str(uuid.UUID(bytes=raw)),
}  # fmt: skip
_ARRAYS = {
    1005: 21,
    1007: 23,
    1016: 20,
    1009: 25,
    1015: 1043,
    1021: 700,
    1022: 701,
    1231: 1700,
    1182: 1082,
}
_TRUTHS = {
    "t": True,
    "true": True,
    "on": True,
    "1": True,
    "f": False,
    "false": False,
    "off": False,
    "0": False,
}


def _truth_text(text: str) -> bool:
    return _TRUTHS[text.strip().lower()]


_TEXT: dict[int, Callable[[str], object]] = {
    16: _truth_text, 20: int, 21: int, 23: int, 700: float, 701: float, 1700: Decimal,
    1082: datetime.date.fromisoformat, 1114: datetime.datetime.fromisoformat,
}  # fmt: skip
# What stands for a value while only its type is known, so that columns can be described.
STAND_INS: dict[int, object] = {
    16: True, 20: 1, 21: 1, 23: 1, 26: 1, 700: 0.5, 701: 0.5, 1700: Decimal("0.5"),
    1082: datetime.date(2000, 1, 1), 1114: _EPOCH, 1184: _EPOCH,
}  # fmt: skip


def stand_ins(types: Sequence[int], text: str = "1") -> list[object]:
    """Give a value of each type, and a text where any other type is meant."""
    values: list[object] = []
    for oid in types:
        item = _ARRAYS.get(oid)
        values.append([STAND_INS.get(item, text)] if item is not None else STAND_INS.get(oid, text))
    return values


def parameters(
    types: Sequence[int], formats: Sequence[int], values: Sequence[bytes | None]
) -> tuple[object, ...]:
    """Read bound values; USE-011 for one that cannot be read as its type."""
    if len(values) != len(types):
        raise UsageError(
            "USE-011", f"{len(values)} parameters are bound, the statement has {len(types)}"
        )
    decoded: list[object] = []
    for number, (oid, raw) in enumerate(zip(types, values, strict=True)):
        try:
            decoded.append(None if raw is None else _read(oid, _format(formats, number), raw))
        except (ValueError, KeyError, struct.error, OverflowError, InvalidOperation):
            raise UsageError(
                "USE-011", f"the value for ${number + 1} cannot be read as its type",
                hint="cast it in the text, such as $1::text",
            ) from None  # fmt: skip
    return tuple(decoded)


def _read(oid: int, form: int, raw: bytes) -> object:
    if oid in _ARRAYS:
        return _array(_ARRAYS[oid], raw) if form else _listed(_ARRAYS[oid], _text(raw))
    if form:
        return _BINARY[oid](raw)
    text = _text(raw)
    return _TEXT[oid](text) if oid in _TEXT else text


def _array(item: int, raw: bytes) -> list[object]:
    dimensions, _, kind = struct.unpack_from("!iiI", raw)
    if dimensions == 0:
        return []
    count = struct.unpack_from("!i", raw, 12)[0]
    if dimensions != 1 or count > len(raw):
        raise ValueError
    position, values = 20, []
    for _ in range(count):
        size = struct.unpack_from("!i", raw, position)[0]
        position += 4
        values.append(None if size < 0 else _BINARY[kind or item](raw[position : position + size]))
        position += max(size, 0)
    return values


def _listed(item: int, text: str) -> list[object]:
    """Read `{a,"b,c",NULL}`."""
    if not (text.startswith("{") and text.endswith("}")):
        raise ValueError
    values: list[object] = []
    position, end = 1, len(text) - 1
    while position < end:
        cell, was_quoted = "", text[position] == '"'
        position += was_quoted
        while position < end and text[position] != ('"' if was_quoted else ","):
            position += text[position] == "\\"
            cell += text[position]
            position += 1
        position += 1 + was_quoted
        read = _TEXT.get(item, str)
        values.append(None if not was_quoted and cell.upper() == "NULL" else read(cell))
    return values
