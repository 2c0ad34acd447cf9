"""One connection to the shadow: what is sent there, and what it says.

In: messages. Out: messages, or the rows of a statement of ours. A shadow that ends is `Gone`; so is one whose session
was set to something under which our text would be read otherwise.
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
    TooLong,
    message,
    read_message,
    startup_message,
    zero,
)

# Setting that the shadow reports -> values under which our text, and our lexer, read what it reads (I8).
_READABLE = {
    # Quotes and backslashes are what they are in ASCII.
    b"client_encoding": (b"UTF8", b"SQL_ASCII"),
    # Else a string ends elsewhere than our lexer believes, and what follows is a statement that nobody looked at.
    b"standard_conforming_strings": (b"on",),
}


class Gone(Exception):  # noqa: N818 - what it is, not that it is
    """The shadow has ended the connection."""


class OtherReading(Gone):
    """A client has chosen a setting under which text would be read as something else; the connection ends."""

    def __init__(self, setting: str) -> None:
        super().__init__(setting)
        self.setting = setting


class TooMuch(Gone):
    """The shadow has a row that is longer than any that is handed on."""


class ShadowSays(Exception):  # noqa: N818 - an answer
    """The shadow has refused a statement of ours; `body` are the fields that it gave."""

    def __init__(self, body: bytes) -> None:
        super().__init__("the shadow refused a statement")
        self.body = body

    @property
    def state(self) -> str:
        """Give the SQLSTATE."""
        states = (part[1:] for part in self.body.split(b"\0") if part.startswith(b"C"))
        return next(states, b"").decode("ascii", "replace")


class Link:
    """A connection to the shadow."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, path: Path
    ) -> None:
        self._reader, self._writer, self.place = reader, writer, path
        self.greeting: list[bytes] = []
        """What the shadow reports of its settings."""
        self._key = b""
        self.busy = False
        """Whether something was sent after which the shadow has not said that it is ready."""

    @property
    def process(self) -> int:
        """Give the number of the process that serves this connection."""
        return int.from_bytes(self._key[:4], "big")

    @property
    def ended(self) -> bool:
        """Whether the shadow has closed the connection, though nobody may have read so far."""
        # `at_eof` waits until somebody has read the last words.
        return self._reader._eof or self._reader.exception() is not None  # type: ignore[attr-defined]

    @classmethod
    async def open(cls, path: Path, pairs: dict[str, str]) -> Link:
        """Connect under a role; `ShadowSays` if the shadow does not accept what the client wants to set."""
        try:
            reader, writer = await asyncio.open_unix_connection(str(path), limit=1 << 18)
        except OSError:
            raise Gone from None
        link = cls(reader, writer, path)
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
        self.busy = True
        self._writer.write(data)

    async def read(self) -> tuple[bytes, bytes]:
        """Read the next message."""
        try:
            kind, body = await read_message(self._reader, LONGEST_REPLY)
        except TooLong:
            raise TooMuch from None
        except (EOFError, Malformed, OSError):
            raise Gone from None
        if kind == b"S":
            name, value = body.split(b"\0")[:2]
            if value not in _READABLE.get(name, (value,)):
                raise OtherReading(name.decode())
        self.busy = self.busy and kind != b"Z"
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
            _, writer = await asyncio.open_unix_connection(str(self.place))
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
    values: list[str | None] = []
    for _ in range(reader.whole(2)):
        size = reader.whole(4)
        values.append(None if size < 0 else reader.take(size).decode())
    return values
