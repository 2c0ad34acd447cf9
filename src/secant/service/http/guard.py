"""What holds for every request and every response, before and after anything else looks at it.

In: a request. Out: refusals of wrong hosts, large bodies and secrets in addresses; on every response headers that keep
browsers from running, framing, sniffing or keeping it. An address is never written to a log: it may hold a secret.
"""

from __future__ import annotations

import ipaddress
import logging
import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from starlette.requests import ClientDisconnect

from secant.errors import ServiceError, UsageError
from secant.service.http.access import REQUEST_ID
from secant.service.http.bodies import too_large, unreadable
from secant.service.http.told import error_response
from secant.service.settings import Settings
from secant.service.tokens import TOKEN_MARK

_log = logging.getLogger("secant.service")

Scope = MutableMapping[str, Any]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
HEADERS: tuple[tuple[bytes, bytes], ...] = (
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
)
_TLS_ONLY = ((b"strict-transport-security", b"max-age=31536000"),)
_SECRETS = frozenset(
    {"token", "access_token", "api_key", "apikey", "password", "authorization", "auth"}
)
_LONGEST_ADDRESS = 4096
LARGEST_HEAD = 16_384
"""Bytes before the body. h11 counts what is incomplete only, so a head that comes in one piece is counted here."""


class Guard:
    """The outermost layer of the application."""

    def __init__(self, app: App, settings: Settings) -> None:
        self._app = app
        self._largest = settings.http.largest_request
        self._hosts = hosts_of(settings)
        self._headers = HEADERS + (_TLS_ONLY if settings.secure else ())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        scope[REQUEST_ID] = request_id = secrets.token_hex(8)

        async def sent(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                named = {name for name, _ in message.get("headers", [])}
                more = [pair for pair in self._headers if pair[0] not in named]
                more.append((b"x-request-id", request_id.encode()))
                if b"cache-control" not in named:
                    more.append((b"cache-control", b"no-store"))
                message["headers"] = [*message.get("headers", []), *more]
            await send(message)

        try:
            self._check(scope)
        except ServiceError as error:
            await error_response(error)(scope, receive, sent)
            return
        try:
            await self._app(scope, receive, sent)
        except ClientDisconnect:  # that people leave is no fault of ours
            _log.info("a client left before its response request=%s", request_id)

    def _check(self, scope: Scope) -> None:
        if sum(len(name) + len(value) for name, value in scope["headers"]) > LARGEST_HEAD:
            raise too_large(LARGEST_HEAD)
        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        if host_name(headers.get(b"host", "")) not in self._hosts:
            # Otherwise a page of another site, whose name is made to lead here, could speak with us (DNS rebinding).
            raise unreadable("the service does not go by this name")
        length = headers.get(b"content-length", "0")
        if not length.isdigit() or int(length[:18]) > self._largest:
            raise too_large(self._largest)
        query = scope["query_string"].decode("latin-1")
        if len(query) + len(scope["path"]) > _LONGEST_ADDRESS:
            raise unreadable("the address of the request is too long")
        pairs = parse_qsl(query, keep_blank_values=True)
        if TOKEN_MARK in scope["path"] or any(
            name.lower() in _SECRETS or TOKEN_MARK in value for name, value in pairs
        ):
            raise ServiceError(
                "SRV-004",
                "a secret stands in the address of the request, where logs and histories keep it",
                hint="send tokens in the header `Authorization: Bearer …`; revoke this one",
            )


def host_name(header: str) -> str:
    """Give the name in a Host header, without its port."""
    try:
        return (urlsplit(f"//{header}").hostname or "").lower()
    except ValueError:
        return ""


def hosts_of(settings: Settings) -> frozenset[str]:
    """Give the names by which the service may be called."""
    hosts = {"localhost", "127.0.0.1", "::1", settings.http.host.lower()}
    if settings.http.origin:
        hosts.add(urlsplit(settings.http.origin).hostname or "")
    return frozenset(hosts - {"", "0.0.0.0", "::"})  # noqa: S104 - named to be left out


def check_exposure(settings: Settings) -> None:
    """Refuse to listen beyond this machine without TLS, or without a name to be called by."""
    http = settings.http
    try:
        local = ipaddress.ip_address(http.host).is_loopback
    except ValueError:
        local = http.host == "localhost"
    if local:
        return
    if not settings.speaks_tls and not http.behind_proxy:
        raise UsageError(
            "USE-001",
            f"the service would listen on {http.host} without TLS",
            hint="name [tls] certificate and key, or say behind_proxy = true under [http] if a proxy ends TLS",
        )
    if not http.origin:
        raise UsageError(
            "USE-001",
            f"the service would listen on {http.host} without a name",
            hint='say how browsers and programs call it, origin = "https://secant.example", under [http]',
        )
