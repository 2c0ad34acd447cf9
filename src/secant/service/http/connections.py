"""How many connections there may be at once, and how long one may say nothing.

In: connections as they come. Out: those that find analysis are served; others get a 503 at once, and nobody who is
there is put out for them. One that does not send the head of a request in time is ended, so that silence takes up no
room; nor does one that never finishes its TLS: the server would not even count it, so TLS is begun here.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from typing import Any, ClassVar

from uvicorn.protocols.http.h11_impl import H11Protocol

TIMEOUT = 10.0
"""Seconds for the head of a request."""
LINGER = 1.0
"""Seconds in which one that is refused may read why: closed at once, the words could be lost."""
_FULL = (
    b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nConnection: close\r\nRetry-After: 10\r\n"
    b"Cache-Control: no-store\r\nContent-Length: 86\r\n\r\n"
    b'{"error": {"code": "SRV-001", "message": "too many connections", "hint": "try later"}}'
)


class LimitedProtocol(H11Protocol):  # type: ignore[misc]  # the library is not typed for us
    """One connection. A front makes a class of its own, with its own numbers."""

    most: ClassVar[int] = 500
    timeout: ClassVar[float] = TIMEOUT
    lingering: ClassVar[int] = 0
    """How many were refused and may still read."""
    _waiting: asyncio.TimerHandle | None = None
    _refused: bool = False

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Serve it, or refuse it."""
        if len(self.connections) < self.most:
            super().connection_made(transport)
            self._wait()
            return
        self._refused = True
        kind = type(self)
        if kind.lingering >= 2 * self.most:
            transport.abort()
            return
        kind.lingering += 1
        transport.write(_FULL)
        self.loop.call_later(LINGER, self._let_go, transport)

    def data_received(self, data: bytes) -> None:
        """Read on; while no request is on its way, the next head has its time."""
        if self._refused:
            return
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop_waiting()
        elif self._waiting is None:
            self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget it."""
        self._stop_waiting()
        if not self._refused:
            super().connection_lost(exc)

    def _wait(self) -> None:
        self._waiting = self.loop.call_later(self.timeout, self._give_up)

    def _stop_waiting(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _give_up(self) -> None:
        self._waiting = None
        self.transport.close()

    def _let_go(self, transport: asyncio.Transport) -> None:
        type(self).lingering -= 1
        transport.close()


class Handshake(asyncio.Protocol):
    """A connection until it is encrypted; what comes with the last word of the handshake is handed on."""

    begun: ClassVar[dict[asyncio.Task[None], asyncio.Transport]] = {}
    """Those on their way, oldest first. A front makes a class of its own."""

    def __init__(self, served: LimitedProtocol, context: ssl.SSLContext) -> None:
        self._served, self._context = served, context
        self._early: list[bytes] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin; where too many have begun, the oldest ends: who means it is done in an instant."""
        assert isinstance(transport, asyncio.Transport)
        if len(self.begun) >= self._served.most:
            oldest = next(iter(self.begun))
            self.begun.pop(oldest).abort()  # it may not have run at all yet
            oldest.cancel()
        task = asyncio.get_running_loop().create_task(self._encrypted(transport))
        self.begun[task] = transport
        task.add_done_callback(lambda done: self.begun.pop(done, None))

    def data_received(self, data: bytes) -> None:
        """Keep what comes before anybody can read it."""
        self._early.append(data)

    async def _encrypted(self, transport: asyncio.Transport) -> None:
        loop, timeout = asyncio.get_running_loop(), self._served.timeout
        try:
            encrypted = await loop.start_tls(
                transport, self, self._context, server_side=True,
                ssl_handshake_timeout=timeout, ssl_shutdown_timeout=timeout,
            )  # fmt: skip
        except (OSError, EOFError, asyncio.CancelledError):  # one of TLS, or it took too long
            transport.abort()
            return
        if encrypted is None or encrypted.is_closing():
            return
        encrypted.set_protocol(self._served)
        self._served.connection_made(encrypted)
        for data in self._early:
            self._served.data_received(data)


def limited(most: int, context: ssl.SSLContext | None = None) -> Callable[..., asyncio.Protocol]:
    """Give what makes the protocols of a front that has room for so many connections, encrypted by a context."""
    own = {"most": most, "timeout": TIMEOUT, "lingering": 0}
    served = type("Limited", (LimitedProtocol,), own)
    if context is None:
        return served
    handshake = type("Encrypting", (Handshake,), {"begun": {}})

    def made(**arguments: Any) -> asyncio.Protocol:
        protocol: asyncio.Protocol = handshake(served(**arguments), context)
        return protocol

    return made
