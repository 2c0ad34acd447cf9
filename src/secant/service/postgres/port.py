"""The listener: connections in, sessions out. TLS, login, limits, cancel requests, and a stop that leaves nothing.

In: an address, the service, a certificate. Out: a port that PostgreSQL's clients can use. A connection that has not
logged in gets little time, small messages and no word about who exists.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import socket
import ssl
import struct
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from secant.errors import AccessError, SecantError, ServiceError, debugging
from secant.records import frozen
from secant.service.asking import Desk
from secant.service.postgres import messages as m
from secant.service.postgres import scram
from secant.service.postgres.link import Gone, Link, OtherEncoding, ShadowSays
from secant.service.postgres.session import Session
from secant.service.postgres.shadow import Shadow
from secant.service.postgres.telling import error_message, plain_error
from secant.service.postgres.values import Columns
from secant.service.roles import allow
from secant.service.users import User
from secant.terms.catalog import Catalog
from secant.terms.policy import Policy

MOST_CONNECTIONS = 100
"""Connections at the same time, those that have not logged in included; more are refused at once."""
LOGIN_SECONDS = 20.0
_ENCODINGS = ("utf8", "utf-8", "unicode", "sql_ascii", "auto", "")
_KEPT_BACK = ("user", "database", "replication", "client_encoding")

_log = logging.getLogger("secant.service")


@frozen
class Channel:
    """How the port is encrypted: a TLS context, and the hash of its certificate for channel binding."""

    context: ssl.SSLContext
    end_point: bytes | None = None


class _Over(Exception):  # noqa: N818 - the last words
    """A connection that ends with a message."""

    def __init__(self, body: bytes) -> None:
        super().__init__("over")
        self.body = body


@dataclass(slots=True, eq=False)
class PostgresPort:
    """A running port. `start` it in a thread that lives as long as it does; `stop` it."""

    desk: Desk
    channel: Channel | None = None
    require_tls: bool = False
    most: int = MOST_CONNECTIONS
    _shadow: Shadow | None = None
    _server: asyncio.Server | None = None
    _sessions: dict[tuple[int, int], Session] = field(default_factory=dict)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)
    _tables: frozenset[str] = frozenset()

    async def start(self, listening: socket.socket) -> None:
        """Start the shadow, and take connections."""
        self._shadow = Shadow(self.most)
        try:
            catalog, policy = await asyncio.to_thread(self._facts)
            await self._fit(catalog, policy)
            self._server = await asyncio.start_server(self._accept, sock=listening, limit=1 << 16)
        except BaseException:
            self._shadow.close()
            raise

    async def stop(self) -> None:
        """Take no more connections, end those that there are, and the shadow with them."""
        if self._server is not None:
            self._server.close()
        for task in list(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(list(self._tasks), timeout=10)
        if self._shadow is not None:
            self._shadow.close()

    @property
    def shadow_folder(self) -> Path:
        """Give where the files of the shadow are, for whoever wants to look into them."""
        assert self._shadow is not None
        return self._shadow.folder

    # ── public facts ─────────────────────────────────────────────────────────────────────────────

    def _facts(self) -> tuple[Catalog, Policy]:
        with self.desk.opened(_NOBODY) as connection:
            return connection.catalog, connection.policy

    async def _fit(self, catalog: Catalog, policy: Policy) -> None:
        assert self._shadow is not None
        await self._shadow.fit(catalog, policy)
        self._tables = frozenset(catalog.tables)

    def _described(self, user: User, text: str, values: Sequence[object]) -> Columns:
        allow(user, "explain")
        with self.desk.opened(user) as connection:
            return connection.describe(text, parameters=tuple(values) if values else None)

    # ── connections ──────────────────────────────────────────────────────────────────────────────

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        if len(self._tasks) >= self.most:
            writer.write(plain_error("53300", "there are too many connections", severity="FATAL"))
            writer.close()
            return
        self._tasks.add(task)
        try:
            await self._served(reader, writer)
        except _Over as over:
            writer.write(over.body)
        except m.Malformed:
            writer.write(plain_error("08P01", "the message cannot be read", severity="FATAL"))
        except OtherEncoding:
            writer.write(plain_error("22023", "client_encoding must be UTF8", severity="FATAL"))
        except (EOFError, OSError, Gone, TimeoutError):
            pass
        except asyncio.CancelledError:
            writer.write(plain_error("57P01", "the service stops", severity="FATAL"))
        except Exception as error:
            if debugging():
                raise
            _log.error(
                "an unexpected %s ended a connection of the PostgreSQL port", type(error).__name__
            )
            writer.write(plain_error("XX000", "an invariant of Secant broke", severity="FATAL"))
        finally:
            self._tasks.discard(task)
            with suppress(OSError, RuntimeError):
                writer.close()

    async def _served(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with asyncio.timeout(LOGIN_SECONDS):
            pairs = await self._begun(reader, writer)
            if pairs is None:
                return
            user = await self._login(reader, writer, pairs)
            catalog, policy = await self._checked(user)
            await self._fit(catalog, policy)
            link = await self._linked(user, pairs)
        key = secrets.randbelow(1 << 31), secrets.randbits(32)
        assert self._shadow is not None
        session = Session(
            reader,
            writer,
            link,
            user,
            self.desk,
            lambda text, values: self._described(user, text, values),
            lambda: self._tables,
            self._shadow.types_of,
        )
        self._sessions[key] = session
        try:
            writer.write(m.message(b"R", struct.pack("!i", 0)) + b"".join(link.greeting))
            writer.write(m.message(b"K", struct.pack("!iI", *key)) + m.message(b"Z", b"I"))
            await session.run()
        finally:
            del self._sessions[key]
            link.close()
            if session.ticket is not None:
                await session.cancel()

    async def _checked(self, user: User) -> tuple[Catalog, Policy]:
        try:
            allow(user, "explain")
            return await asyncio.to_thread(self._facts)
        except SecantError as error:
            raise _Over(error_message(error, severity="FATAL")) from None

    async def _linked(self, user: User, pairs: dict[str, str]) -> Link:
        assert self._shadow is not None
        own = {n: v for n, v in pairs.items() if n not in _KEPT_BACK and not n.startswith("_pq_.")}
        try:
            return await self._shadow.connect(user.name, {**own, "client_encoding": "UTF8"})
        except ShadowSays as said:
            raise _Over(m.message(b"E", said.body)) from None

    async def _begun(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> dict[str, str] | None:
        """Read up to the startup message; None where the connection wanted something else."""
        encrypted = False
        for _ in range(3):
            code, body = await m.read_first(reader)
            if code == m.CANCEL_REQUEST:
                await self._cancel(body)
                return None
            if code == m.GSS_REQUEST and not encrypted:
                writer.write(b"N")
            elif code == m.SSL_REQUEST and not encrypted:
                if self.channel is None:
                    writer.write(b"N")
                    continue
                if reader._buffer:  # type: ignore[attr-defined]  # what was sent in the clear must not be taken for encrypted
                    raise m.Malformed
                writer.write(b"S")
                await writer.drain()
                await writer.start_tls(self.channel.context)
                encrypted = True
            elif code >> 16 == 3:
                pairs = m.read_startup(body)
                self._check(pairs, encrypted)
                if code & 0xFFFF or any(name.startswith("_pq_.") for name in pairs):
                    options = [name for name in pairs if name.startswith("_pq_.")]
                    named = b"".join(m.zero(name) for name in options)
                    writer.write(
                        m.message(b"v", struct.pack("!ii", m.PROTOCOL, len(options)), named)
                    )
                return {**pairs, "_pq_.encrypted": "y"} if encrypted else pairs
            else:
                raise m.Malformed
        raise m.Malformed

    def _check(self, pairs: dict[str, str], encrypted: bool) -> None:
        if self.require_tls and not encrypted:
            raise _Over(
                plain_error(
                    "28000",
                    "this server speaks with TLS only",
                    "add sslmode=verify-full",
                    severity="FATAL",
                )
            )
        if pairs.get("replication", "false").lower() not in ("false", "off", "no", "0"):
            raise _Over(plain_error("0A000", "replication is not offered", severity="FATAL"))
        if pairs.get("client_encoding", "").strip("'\"").lower() not in _ENCODINGS:
            raise _Over(plain_error("22023", "client_encoding must be UTF8", severity="FATAL"))
        if not pairs.get("user"):
            raise _Over(plain_error("28000", "no user name is given", severity="FATAL"))

    async def _login(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, pairs: dict[str, str]
    ) -> User:
        end_point = self.channel.end_point if self.channel and "_pq_.encrypted" in pairs else None
        offered = b"".join(m.zero(name) for name in scram.mechanisms(end_point))
        writer.write(m.message(b"R", struct.pack("!i", 10), offered, b"\0"))
        first = m.Reader(await self._said(reader))
        mechanism = first.text()
        if first.whole(4) < 0:
            raise m.Malformed
        logins = self.desk.logins
        try:
            begun, told = await asyncio.to_thread(
                scram.begin, logins, pairs["user"], mechanism, first.rest(), end_point
            )
            writer.write(m.message(b"R", struct.pack("!i", 11), told))
            last = await self._said(reader)
            user, told = await asyncio.to_thread(scram.finish, logins, begun, last, end_point)
        except AccessError as error:
            raise _Over(error_message(error, severity="FATAL")) from None
        except ServiceError as error:
            raise _Over(error_message(error, severity="FATAL")) from None
        writer.write(m.message(b"R", struct.pack("!i", 12), told))
        return user

    async def _said(self, reader: asyncio.StreamReader) -> bytes:
        kind, body = await m.read_message(reader, m.LONGEST_LOGIN)
        if kind != b"p":
            raise m.Malformed
        return body

    async def _cancel(self, body: bytes) -> None:
        if len(body) != 8:
            raise m.Malformed
        number, secret = struct.unpack("!iI", body)
        session = self._sessions.get((number, secret))
        if session is not None:
            await session.cancel()


_NOBODY = User("", "analyst")
"""For looking at public facts before anybody has logged in: errors are told as to an analyst."""
