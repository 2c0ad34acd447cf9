"""The service as it runs: its questions, its fronts, and how they begin and end.

In: settings. Out: fronts that listen. A stop refuses what waits, lets what runs end, then interrupts it; whatever was
sent stays charged and is settled. Each front runs in threads of its own.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Protocol

from secant.errors import SecantError, UsageError
from secant.service.asking import Service
from secant.service.readiness import Check
from secant.service.settings import Port, Settings
from secant.service.tls import server_context, tls_files

_HANG_UP: signal.Signals | None = getattr(signal, "SIGHUP", None)
"""Not on every system."""

_log = logging.getLogger("secant.service")


class Front(Protocol):
    """Something that listens for the service."""

    address: str
    """Where it listens, as a person would write it."""

    def stop(self) -> None:
        """Take nothing more, let what is there end, and return when nothing is left."""

    def reload(self) -> None:
        """Read certificate and key again, for those who connect; bad ones raise, and those of before stay."""


class HttpFront:
    """The HTTP API and the console."""

    def __init__(self, service: Service) -> None:
        try:
            import uvicorn

            from secant.service.http.app import build
            from secant.service.http.connections import limited
        except ImportError:
            raise UsageError(
                "USE-006",
                "the HTTP front needs starlette and uvicorn",
                hint="install secant[serve]",
            ) from None
        from secant.service.http.guard import LARGEST_HEAD, check_exposure

        settings = service.settings
        check_exposure(settings)
        files = tls_files(settings, folder_of(settings))
        listening = listen(settings.http)
        name, port = listening.getsockname()[:2]
        shown = f"[{name}]" if ":" in name else name
        self.address = f"{'https' if files else 'http'}://{shown}:{port}"
        self._settings = settings
        self._context = context = None if files is None else server_context(files)
        analysis_for_connections(settings.http.connections)
        config = uvicorn.Config(
            build(service),
            access_log=False,  # addresses may hold secrets that somebody put there by mistake
            log_config=None,
            server_header=False,
            proxy_headers=False,
            lifespan="off",
            http=limited(settings.http.connections, context),
            timeout_keep_alive=10,
            timeout_graceful_shutdown=max(1, int(settings.drain_seconds)),
            h11_max_incomplete_event_size=LARGEST_HEAD,
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._server.serve(sockets=[listening])),
            name="secant http",
            daemon=True,
        )
        self._thread.start()

    def stop(self) -> None:
        """Take nothing more, and wait for responses that are on their way."""
        self._server.should_exit = True
        self._thread.join()

    def reload(self) -> None:
        """Read certificate and key again; what is connected stays as it is."""
        files = tls_files(self._settings, folder_of(self._settings))
        if self._context is not None and files is not None:
            server_context(files)  # raises before anything has changed
            self._context.load_cert_chain(*files)


def analysis_for_connections(most: int) -> None:
    """Let the process open as many files as there may be connections: served, refused, and about to be encrypted."""
    try:
        import resource
    except ImportError:  # not on this system
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    files_needed = 4 * most + 512
    if soft != resource.RLIM_INFINITY and soft < files_needed:
        most_allowed = files_needed if hard == resource.RLIM_INFINITY else min(files_needed, hard)
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, most_allowed), hard))


def listen(port: Port) -> socket.socket:
    """Listen at an address, before anything else is begun: what is taken or forbidden is said at once."""
    try:
        addresses = socket.getaddrinfo(port.host, port.port, type=socket.SOCK_STREAM)
        family, kind, protocol, _, address = addresses[0]
        listening = socket.socket(family, kind, protocol)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(512)
    except OSError as error:
        raise UsageError(
            "USE-001",
            f"the service cannot listen on {port.host}, port {port.port}: {error.strerror}",
            hint="choose another port, or stop what uses it",
        ) from None
    return listening


class Server:
    """The service with its fronts. Close it, or use it as a context manager."""

    def __init__(self, settings: Settings) -> None:
        self.service = Service(settings)
        self.fronts: list[Front] = []
        try:
            for start in _fronts(settings):
                front = start(self.service)
                self.fronts.append(front)
                healthy = getattr(
                    front, "healthy", None
                )  # of a front that needs more than the service
                if healthy is not None:
                    self.service.readiness.add(Check("shadow", healthy))
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Stop: nothing new, what runs ends or is interrupted, every charge is settled or kept."""
        self.service.stop_taking()
        stopping = [threading.Thread(target=front.stop) for front in self.fronts]
        for thread in stopping:
            thread.start()
        self.service.close()
        for thread in stopping:
            thread.join()
        _log.info("stopped")

    def reload(self) -> None:
        """Read certificate and key again, and open policy and data again; connections and questions go on."""
        for front in self.fronts:
            try:
                front.reload()
            except SecantError as error:
                _log.error(
                    "certificate and key stay as they were: %s %s", error.code, error.message
                )
        self.service.reload()
        _log.info("reloaded: certificate and key, policy, data")

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _fronts(settings: Settings) -> list[Callable[[Service], Front]]:
    fronts: list[Callable[[Service], Front]] = []
    if settings.http.port is not None:
        fronts.append(HttpFront)
    if settings.postgres.port is not None:
        from secant.service.postgres.front import PostgresFront

        fronts.append(PostgresFront)
    if not fronts:
        raise UsageError(
            "USE-001", "no front is switched on", hint="name a port under [http] or [postgres]"
        )
    return fronts


@contextmanager
def ended_by_signal(*, reloads: bool = False) -> Iterator[Callable[..., None]]:
    """Give a function that waits until somebody asks the process to end, by Ctrl-C, SIGTERM or SIGHUP.

    Whoever asks while the service still starts is heard, too: nothing ends in the middle. Where it `reloads`, SIGHUP
    ends nothing, and calls what the function is given; where it was ignored before, as by `nohup`, it stays ignored.
    """
    stopping, again = threading.Event(), threading.Event()

    def end(number: int, frame: FrameType | None) -> None:
        (again if reloads and number == _HANG_UP else stopping).set()

    def wait(reload: Callable[[], None] = lambda: None) -> None:
        while not stopping.wait(0.5):
            if again.is_set():
                again.clear()
                reload()

    numbers = [signal.SIGINT, signal.SIGTERM]
    if _HANG_UP is not None and signal.getsignal(_HANG_UP) is not signal.SIG_IGN:
        numbers.append(_HANG_UP)
    before = {number: signal.signal(number, end) for number in numbers}
    try:
        yield wait
    finally:
        for number, handler in before.items():
            with suppress(ValueError, TypeError):
                signal.signal(number, handler)


def folder_of(settings: Settings) -> Path:
    """Give the folder of the policy, where a self-made certificate is kept."""
    return settings.policy.absolute().parent
