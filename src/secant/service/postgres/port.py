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
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from secant.errors import AccessError, SecantError, ServiceError, debugging
from secant.policy.policy import Policy
from secant.records import frozen
from secant.schema.catalog import Catalog
from secant.service.asking import Service, Ticket
from secant.service.origin import network_of
from secant.service.postgres import messages as m
from secant.service.postgres import scram
from secant.service.postgres.link import Gone, Link, OtherReading, ShadowSays, TooMuch
from secant.service.postgres.own_views import rows_of
from secant.service.postgres.session import Session, SlowReader
from secant.service.postgres.shadow import Shadow
from secant.service.postgres.telling import error_message, other_name_message, plain_error
from secant.service.postgres.watching import LOST, Watch, fatal
from secant.service.roles import allow
from secant.service.settings import Postgres
from secant.service.users import User

LOGIN_SECONDS = 20.0
_ENCODINGS = ("utf8", "utf-8", "unicode", "sql_ascii", "auto", "")
_KEPT_BACK = ("user", "database", "replication", "client_encoding")
_LAST_WORDS = 5.0
"""Seconds that a client has to read what is told to it at the end."""

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

    service: Service
    channel: Channel | None = None
    require_tls: bool = False
    most: int = 0
    """Sessions at the same time, and as many connections that have not logged in; 0: as the settings say."""
    _shadow: Shadow | None = None
    _watch: Watch | None = None
    _watching: list[asyncio.Task[None]] = field(default_factory=list)
    _server: asyncio.Server | None = None
    _sessions: dict[tuple[int, int], Session] = field(default_factory=dict)
    _tasks: dict[asyncio.Task[None], str] = field(default_factory=dict)
    """Every connection, with the network that it comes from."""
    _turns: dict[str, asyncio.Semaphore] = field(default_factory=dict)
    """By user."""
    _readers: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(2, "secant texts")
    )
    """Threads for long texts: nobody who logs in waits for them."""
    _tables: frozenset[str] = frozenset()

    async def start(self, listening: socket.socket) -> None:
        """Start the shadow, and take connections."""
        limits = self.service.settings.postgres
        self.most = self.most or limits.connections
        catalog, policy = await asyncio.to_thread(self._facts)
        self._shadow = Shadow(limits, self.service.settings.source or policy.source)
        try:
            try:
                await self._fit(catalog, policy)
            except (Gone, ShadowSays):
                raise ServiceError(
                    "SRV-001",
                    "the PostgreSQL server of the port does not take its tables",
                    hint=_LOG,
                ) from None
            self._watch = Watch(
                self._shadow, lambda: list(self._sessions.values()), self.service.users.check_still
            )
            self._watching = [
                asyncio.create_task(self._watch.hold_limits()),
                asyncio.create_task(self._watch.keep_healthy()),
                asyncio.create_task(self._watch.end_logins()),
            ]
            self._server = await asyncio.start_server(self._accept, sock=listening, limit=1 << 16)
        except BaseException:
            self._shadow.close()
            raise

    async def stop(self) -> None:
        """Take no more connections, end those that there are, and the shadow with them."""
        if self._server is not None:
            self._server.close()
        for task in (*self._watching, *self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(list(self._tasks), timeout=10)
        self._readers.shutdown(wait=False, cancel_futures=True)
        if self._shadow is not None:
            self._shadow.close()

    def healthy(self) -> bool:
        """Say whether a client could connect now: the shadow runs, has its tables, and answers. From any thread."""
        shadow, watch = self._shadow, self._watch
        return shadow is not None and watch is not None and watch.answers and shadow.healthy()

    @property
    def shadow_folder(self) -> Path:
        """Give where the files of the shadow are, for whoever wants to look into them."""
        assert self._shadow is not None
        return self._shadow.folder

    @property
    def shadow_socket(self) -> Path:
        """Give the socket of the shadow, for its owner."""
        assert self._shadow is not None
        server = self._shadow.server
        if server is None:
            raise Gone
        return server.socket

    # ── public facts ─────────────────────────────────────────────────────────────────────────────

    def _facts(self) -> tuple[Catalog, Policy]:
        with self.service.opened(_NOBODY) as connection:
            return connection.catalog, connection.policy

    async def _fit(self, catalog: Catalog, policy: Policy) -> None:
        assert self._shadow is not None
        await self._shadow.fit(catalog, policy)
        self._tables = frozenset(catalog.tables)

    def _described(self, user: User, text: str, values: Sequence[object]) -> Ticket:
        """Ask for the columns of a question. It waits for its turn as questions do: planning takes time, too."""
        allow(user, "explain")
        parameters = tuple(values) if values else None
        return self.service.do(
            user, lambda opened: opened.connection.describe(text, parameters=parameters)
        )

    # ── connections ──────────────────────────────────────────────────────────────────────────────

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        address = address_of(writer)
        network = network_of(address)
        if full := self._full(network):
            writer.write(fatal("53300", full))
            writer.close()
            return
        self._tasks[task] = network
        try:
            await self._served(reader, writer, address)
        except _Over as over:
            writer.write(over.body)
        except m.Malformed:
            writer.write(fatal("08P01", "the message cannot be read"))
        except OtherReading as other:
            writer.write(fatal("22023", _MUST_STAY[other.setting]))
        except TooMuch:
            writer.write(fatal("54000", "a row is longer than what is handed on", _SHORTER))
        except Gone:
            writer.write(LOST)
        except (EOFError, OSError, SlowReader, TimeoutError):
            pass
        except asyncio.CancelledError:
            writer.write(fatal("57P01", "the service stops"))
        except Exception as error:
            if debugging():
                raise
            _log.error(
                "an unexpected %s ended a connection of the PostgreSQL port", type(error).__name__
            )
            writer.write(fatal("XX000", "an invariant of Secant broke"))
        finally:
            del self._tasks[task]
            with suppress(OSError, RuntimeError):
                writer.close()
                # Who reads nothing must not keep what was written for them.
                asyncio.get_running_loop().call_later(_LAST_WORDS, writer.transport.abort)

    def _full(self, network: str) -> str:
        """Say why one more connection from a network is too much, if it is."""
        if list(self._tasks.values()).count(network) >= self._limits.connections_of_address:
            return "there are too many connections from this address"
        waiting = len(self._tasks) - len(self._sessions)
        return "there are too many connections" if waiting >= self.most else ""

    def _full_for(self, user: User) -> str:
        """Say why one more session of a user is too much, if it is."""
        names = [session.user.name for session in self._sessions.values()]
        if names.count(user.name) >= self._limits.connections_of_user:
            return "there are too many connections of this user"
        return "there are too many connections" if len(names) >= self.most else ""

    @property
    def _limits(self) -> Postgres:
        assert self._shadow is not None
        return self._shadow.limits

    async def _served(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, address: str
    ) -> None:
        async with asyncio.timeout(LOGIN_SECONDS):
            pairs = await self._begun(reader, writer)
            if pairs is None:
                return
            user = await self._login(reader, writer, pairs, address)
            catalog, policy = await self._checked(user)
            if full := self._full_for(user):
                raise _Over(fatal("53300", full, "close some, or wait until idle ones end"))
            link = await self._linked(user, pairs, catalog, policy)
        if full := self._full_for(user):  # others came while this one was let in
            link.close()
            raise _Over(fatal("53300", full, "close some, or wait until idle ones end"))
        key = secrets.randbelow(1 << 31), secrets.randbits(32)
        assert self._shadow is not None
        session = Session(
            reader,
            writer,
            link,
            user,
            self.service,
            lambda text, values: self._described(user, text, values),
            lambda: self._tables,
            self._shadow.types_of,
            self._turns.setdefault(user.name, asyncio.Semaphore(self._limits.statements_of_user)),
            self._readers,
            partial(rows_of, self.service, user),
        )
        session.address, session.task = address, asyncio.current_task()
        self._sessions[key] = session
        try:
            writer.write(m.message(b"R", struct.pack("!i", 0)) + b"".join(link.greeting))
            if (called := pairs.get("database") or user.name) not in (
                self._shadow.database,
                user.name,
            ):
                writer.write(other_name_message(called, self._shadow.database))
            writer.write(m.message(b"K", struct.pack("!iI", *key)) + m.message(b"Z", b"I"))
            await session.run()
        except asyncio.CancelledError:
            if not session.last_words:
                raise
            raise _Over(session.last_words) from None
        finally:
            del self._sessions[key]
            await self._shadow.end(link)

    async def _checked(self, user: User) -> tuple[Catalog, Policy]:
        try:
            allow(user, "explain")
            return await asyncio.to_thread(self._facts)
        except SecantError as error:
            raise _Over(error_message(error, severity="FATAL")) from None

    async def _linked(
        self, user: User, pairs: dict[str, str], catalog: Catalog, policy: Policy
    ) -> Link:
        assert self._shadow is not None
        own = {n: v for n, v in pairs.items() if n not in _KEPT_BACK and not n.startswith("_pq_.")}
        try:
            await self._fit(catalog, policy)
        except ShadowSays:
            raise _Over(
                fatal("58000", "the tables of the policy cannot be shown", _OWNER)
            ) from None
        except Gone:
            raise _Over(fatal("57P03", "the port is being started again", "try again")) from None
        try:
            return await self._shadow.connect(user.name, {**own, "client_encoding": "UTF8"})
        except ShadowSays as error:
            raise _Over(m.message(b"E", error.body)) from None
        except OtherReading:
            raise
        except Gone:
            raise _Over(fatal("57P03", "the port is being started again", "try again")) from None

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
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        pairs: dict[str, str],
        address: str,
    ) -> User:
        end_point = self.channel.end_point if self.channel and "_pq_.encrypted" in pairs else None
        offered = b"".join(m.zero(name) for name in scram.mechanisms(end_point))
        writer.write(m.message(b"R", struct.pack("!i", 10), offered, b"\0"))
        first = m.Reader(await self._shadow_error(reader))
        mechanism = first.text()
        if first.whole(4) < 0:
            raise m.Malformed
        logins = self.service.logins
        try:
            begun, reply = await asyncio.to_thread(
                scram.begin, logins, pairs["user"], mechanism, first.rest(), end_point
            )
            writer.write(m.message(b"R", struct.pack("!i", 11), reply))
            last = await self._shadow_error(reader)
            user, reply = await asyncio.to_thread(
                scram.finish, logins, begun, last, end_point, address
            )
        except AccessError as error:
            raise _Over(error_message(error, severity="FATAL")) from None
        except ServiceError as error:
            raise _Over(error_message(error, severity="FATAL")) from None
        writer.write(m.message(b"R", struct.pack("!i", 12), reply))
        return user

    async def _shadow_error(self, reader: asyncio.StreamReader) -> bytes:
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


def address_of(writer: asyncio.StreamWriter) -> str:
    """Give the address of a client, without its port."""
    peer = writer.get_extra_info("peername")
    return str(peer[0]) if peer else ""


_MUST_STAY = {
    "client_encoding": "client_encoding must be UTF8",
    "standard_conforming_strings": "standard_conforming_strings must be on",
}
_LOG = "look into the log of the service"
_OWNER = f"ask the owner to {_LOG}"
_SHORTER = "let the columns be shorter, or take parts of them"
_NOBODY = User("", "analyst")
"""For looking at public facts before anybody has logged in: errors are told as to an analyst."""
