"""The PostgreSQL port as a front of the service: a thread with a loop of its own.

In: the service with its settings. Out: something that listens, and stops. Beyond loopback it speaks TLS only.
"""

from __future__ import annotations

import asyncio
import hashlib
import ipaddress
import socket
import threading
from contextlib import suppress
from pathlib import Path

from secant.errors import UsageError
from secant.service.asking import Service
from secant.service.postgres.port import Channel, PostgresPort
from secant.service.serving import folder_of, listen
from secant.service.tls import server_context, tls_files


class PostgresFront:
    """The port, listening."""

    def __init__(self, service: Service) -> None:
        settings = service.settings
        files = tls_files(settings, folder_of(settings))
        outside = not _is_loopback(settings.postgres.host)
        if outside and files is None:
            raise UsageError(
                "USE-001",
                "the PostgreSQL port listens beyond loopback with TLS only",
                hint="name certificate and key under [tls]",
            )
        channel = None if files is None else Channel(server_context(files), end_point(files[0]))
        listening = listen(settings.postgres)
        name, number = listening.getsockname()[:2]
        self.address = f"postgresql://{f'[{name}]' if ':' in name else name}:{number}"
        self.port = PostgresPort(service, channel, require_tls=outside)
        self._begun = threading.Event()
        self._failure: BaseException | None = None
        self._loop = asyncio.new_event_loop()
        self._stopping = asyncio.Event()
        self._thread = threading.Thread(
            target=self._run, args=(listening,), name="secant postgresql", daemon=True
        )
        self._thread.start()
        self._begun.wait()
        if self._failure is not None:
            raise self._failure

    def healthy(self) -> bool:
        """Say whether a client could connect now."""
        return self._thread.is_alive() and self.port.healthy()

    def stop(self) -> None:
        """Take nothing more, end the connections and the shadow."""
        with suppress(RuntimeError):  # the loop has ended already
            self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join()

    def reload(self) -> None:
        """Read certificate and key again, for connections that come."""
        files = tls_files(self.port.service.settings, folder_of(self.port.service.settings))
        if files is not None and self.port.channel is not None:
            self.port.channel = Channel(server_context(files), end_point(files[0]))

    def _run(self, listening: socket.socket) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            try:
                runner.run(self._serve(listening))
            except BaseException as error:  # noqa: BLE001 - raised where the front is begun
                self._failure = error
                listening.close()
            finally:
                self._begun.set()

    async def _serve(self, listening: socket.socket) -> None:
        await self.port.start(listening)
        self._begun.set()
        await self._stopping.wait()
        await self.port.stop()


def end_point(certificate: Path) -> bytes | None:
    """Give the hash of a certificate to which a login is bound (RFC 5929); None where that is not defined."""
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import Encoding

    read = x509.load_pem_x509_certificate(certificate.read_bytes())
    algorithm = read.signature_hash_algorithm
    if algorithm is None:
        return None
    name = "sha256" if algorithm.name in ("md5", "sha1") else algorithm.name
    return hashlib.new(name, read.public_bytes(Encoding.DER)).digest()


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
