"""The wire format of PostgreSQL's protocol 3.0: bytes to records and back. Nothing is decided here.

In: bytes of anybody. Out: records, or `Malformed`. A length is held against a bound before anything is read, so that a
client that claims a gigabyte gets nothing allocated.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Iterable, Sequence

from secant.records import frozen

PROTOCOL = 196608
"""3.0, which every client speaks."""
SSL_REQUEST, GSS_REQUEST, CANCEL_REQUEST = 80877103, 80877104, 80877102
LONGEST_STARTUP = 10_000
LONGEST_LOGIN = 4_000
LONGEST = 4_000_000
"""Bytes of a message of a client that has logged in."""
LONGEST_REPLY = 8_000_000
"""Bytes of a message of the shadow: a row that somebody computes there, and that is held here for a moment."""


class Malformed(Exception):  # noqa: N818 - what it is, not that it is
    """The bytes are no message of the protocol; the connection ends."""


class TooLong(Malformed):
    """A message is longer than it may be."""


class Reader:
    """Reads the parts of one message, and no further."""

    def __init__(self, body: bytes) -> None:
        self._body, self._at = body, 0

    def take(self, count: int) -> bytes:
        """Give so many bytes."""
        if count < 0 or self._at + count > len(self._body):
            raise Malformed
        self._at += count
        return self._body[self._at - count : self._at]

    def whole(self, size: int, *, signed: bool = True) -> int:
        """Give a whole number of so many bytes."""
        return int.from_bytes(self.take(size), "big", signed=signed)

    def text(self) -> str:
        """Give a text that ends with a zero byte."""
        end = self._body.find(b"\0", self._at)
        if end < 0:
            raise Malformed
        raw = self.take(end - self._at)
        self._at += 1
        return decoded(raw)

    def rest(self) -> bytes:
        """Give all that is left."""
        return self.take(len(self._body) - self._at)

    def end(self) -> None:
        """Refuse bytes that nothing reads."""
        if self._at != len(self._body):
            raise Malformed


def decoded(raw: bytes) -> str:
    """Read UTF-8, the only encoding that is spoken here."""
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        raise Malformed from None


@frozen
class Parse:
    """A statement to be prepared; `types` are object ids, 0 where the client leaves one open."""

    name: str
    text: str
    types: tuple[int, ...]


@frozen
class Bind:
    """Values for a prepared statement; formats are 0 for text and 1 for binary."""

    portal: str
    statement: str
    formats: tuple[int, ...]
    values: tuple[bytes | None, ...]
    results: tuple[int, ...]


def read_parse(body: bytes) -> Parse:
    """Read a Parse message."""
    reader = Reader(body)
    name, text = reader.text(), reader.text()
    count = reader.whole(2, signed=False)
    types = tuple(reader.whole(4, signed=False) for _ in range(count))
    reader.end()
    return Parse(name, text, types)


def read_bind(body: bytes) -> Bind:
    """Read a Bind message."""
    reader = Reader(body)
    portal, statement = reader.text(), reader.text()
    formats = tuple(reader.whole(2) for _ in range(reader.whole(2, signed=False)))
    values: list[bytes | None] = []
    for _ in range(reader.whole(2, signed=False)):
        size = reader.whole(4)
        values.append(None if size == -1 else reader.take(size))
    results = tuple(reader.whole(2) for _ in range(reader.whole(2, signed=False)))
    reader.end()
    if {*formats, *results} - {0, 1} or len(formats) not in (0, 1, len(values)):
        raise Malformed
    return Bind(portal, statement, formats, tuple(values), results)


def read_target(body: bytes) -> tuple[str, str]:
    """Read Describe or Close: `S` for a statement or `P` for a portal, and its name."""
    reader = Reader(body)
    kind, name = reader.take(1), reader.text()
    reader.end()
    if kind not in (b"S", b"P"):
        raise Malformed
    return kind.decode(), name


def read_execute(body: bytes) -> tuple[str, int]:
    """Read Execute: a portal, and how many rows at most; 0 means all."""
    reader = Reader(body)
    portal, most = reader.text(), reader.whole(4)
    reader.end()
    return portal, most


def read_query(body: bytes) -> str:
    """Read a simple Query."""
    reader = Reader(body)
    text = reader.text()
    reader.end()
    return text


def read_startup(body: bytes) -> dict[str, str]:
    """Read what a client says of itself when it connects: pairs of names and values."""
    reader = Reader(body)
    parameters: dict[str, str] = {}
    while name := reader.text():
        parameters[name] = reader.text()
    reader.end()
    return parameters


def message(kind: bytes, *parts: bytes) -> bytes:
    """Write a message."""
    body = b"".join(parts)
    return kind + struct.pack("!i", len(body) + 4) + body


def zero(text: str) -> bytes:
    """Write a text with the zero byte that ends it."""
    return text.replace("\0", "").encode("utf-8", "replace") + b"\0"


def counted(values: Iterable[int], form: str = "h") -> bytes:
    """Write a list of numbers behind its length."""
    listed = list(values)
    return struct.pack(f"!H{len(listed)}{form}", len(listed), *listed)


def fields(kind: bytes, pairs: Iterable[tuple[str, str]]) -> bytes:
    """Write an error or a notice: a letter and a text for each field that says something."""
    encoded = (letter.encode() + zero(text) for letter, text in pairs if text)
    return message(kind, *encoded, b"\0")


def parse_message(name: str, text: str, types: Sequence[int] = ()) -> bytes:
    """Write a Parse message."""
    return message(b"P", zero(name), zero(text), counted(types, "I"))


def bind_message(
    portal: str,
    statement: str,
    results: Sequence[int],
    formats: Sequence[int] = (),
    values: Sequence[bytes | None] = (),
) -> bytes:
    """Write a Bind message."""
    sized = (b"\xff" * 4 if v is None else struct.pack("!i", len(v)) + v for v in values)
    given = struct.pack("!H", len(values)) + b"".join(sized)
    return message(b"B", zero(portal), zero(statement), counted(formats), given, counted(results))


def target_message(kind: bytes, target: str, name: str) -> bytes:
    """Write Describe (`D`) or Close (`C`)."""
    return message(kind, target.encode(), zero(name))


def execute_message(portal: str, most: int = 0) -> bytes:
    """Write an Execute message."""
    return message(b"E", zero(portal), struct.pack("!i", most))


def startup_message(pairs: dict[str, str]) -> bytes:
    """Write the message that begins a session."""
    body = struct.pack("!i", PROTOCOL)
    body += b"".join(zero(name) + zero(value) for name, value in pairs.items()) + b"\0"
    return struct.pack("!i", len(body) + 4) + body


FLUSH, SYNC, TERMINATE = message(b"H"), message(b"S"), message(b"X")


async def read_message(stream: asyncio.StreamReader, longest: int) -> tuple[bytes, bytes]:
    """Read the next message: its kind and its body. An end of the stream between messages is EOFError."""
    try:
        head = await stream.readexactly(5)
        size = int.from_bytes(head[1:], "big", signed=True)
        if size < 4:
            raise Malformed
        if size > longest:
            raise TooLong
        return head[:1], await stream.readexactly(size - 4)
    except asyncio.IncompleteReadError as error:
        raise (Malformed if error.partial else EOFError) from None


async def read_first(stream: asyncio.StreamReader) -> tuple[int, bytes]:
    """Read the first message of a client, which has no kind: a code and a body."""
    try:
        head = await stream.readexactly(8)
        size, code = struct.unpack("!ii", head)
        if not 8 <= size <= LONGEST_STARTUP:
            raise Malformed
        return code, await stream.readexactly(size - 8)
    except asyncio.IncompleteReadError as error:
        raise (Malformed if error.partial else EOFError) from None
