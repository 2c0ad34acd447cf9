"""One connection to the shadow: what is sent there, and what it says.

In: messages. Out: messages, or the rows of a statement of ours. A shadow that ends, or sends more than can be meant,
is `Gone`.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path

from secant.service.postgres.messages import (
    LONGEST_REPLY,
    TERMINATE,
    Malformed,
    Reader,
    message,
    read_message,
    startup_message,
    zero,
)

_ENCODINGS = (b"UTF8\0", b"SQL_ASCII\0")
"""In which quotes and backslashes are what they are in ASCII, and ours is read as it is written."""


class Gone(Exception):  # noqa: N818 - what it is, not that it is
    """The shadow has ended the connection."""


class OtherEncoding(Gone):
    """A client has chosen an encoding in which our text would be read as something else; the connection ends."""


class ShadowSays(Exception):  # noqa: N818 - an answer
    """The shadow has refused a statement of ours; `body` are the fields that it gave."""

    def __init__(self, body: bytes) -> None:
        super().__init__("the shadow refused a statement")
        self.body = body


class Link:
    """A connection to the shadow."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, place: Path
    ) -> None:
        self._reader, self._writer, self._place = reader, writer, place
        self.greeting: list[bytes] = []
        """What the shadow reports of its settings."""
        self._key = b""

    @classmethod
    async def open(cls, place: Path, pairs: dict[str, str]) -> Link:
        """Connect under a role; `ShadowSays` if the shadow does not accept what the client wants to set."""
        try:
            reader, writer = await asyncio.open_unix_connection(str(place), limit=1 << 18)
        except OSError:
            raise Gone from None
        link = cls(reader, writer, place)
        try:
            link.send(startup_message(pairs))
            while True:
                kind, body = await link.read()
                if kind == b"S":
                    link.greeting.append(message(kind, body))
                elif kind == b"K":
                    link._key = body
                elif kind == b"E":
                    raise ShadowSays(body)
                elif kind == b"Z":
                    return link
        except BaseException:
            writer.close()
            raise

    def send(self, data: bytes) -> None:
        """Send messages; the shadow reads quickly, and what is sent is bounded by what clients may send."""
        self._writer.write(data)

    async def read(self) -> tuple[bytes, bytes]:
        """Read the next message."""
        try:
            kind, body = await read_message(self._reader, LONGEST_REPLY)
        except (EOFError, Malformed, OSError):
            raise Gone from None
        if kind == b"S" and body.startswith(b"client_encoding\0") and body[16:] not in _ENCODINGS:
            raise OtherEncoding
        return kind, body

    async def run(self, text: str) -> list[list[str | None]]:
        """Run statements of ours; give the rows of the last one."""
        self.send(message(b"Q", zero(text)))
        rows: list[list[str | None]] = []
        refused: ShadowSays | None = None
        while True:
            kind, body = await self.read()
            if kind == b"D":
                rows.append(cells(body))
            elif kind == b"E":
                refused = ShadowSays(body)
            elif kind == b"Z":
                if refused is not None:
                    raise refused
                return rows

    async def cancel(self) -> None:
        """Let the shadow end the statement that runs on this connection."""
        with suppress(OSError):
            _, writer = await asyncio.open_unix_connection(str(self._place))
            writer.write(
                (8 + len(self._key)).to_bytes(4, "big") + (80877102).to_bytes(4, "big") + self._key
            )
            with suppress(OSError):
                await writer.drain()
            writer.close()

    def close(self) -> None:
        """End the connection; its temporary tables end with it."""
        with suppress(OSError, RuntimeError):
            self._writer.write(TERMINATE)
            self._writer.close()


def cells(body: bytes) -> list[str | None]:
    """Read a row in text format."""
    reader = Reader(body)
    found: list[str | None] = []
    for _ in range(reader.whole(2)):
        size = reader.whole(4)
        found.append(None if size < 0 else reader.take(size).decode())
    return found
