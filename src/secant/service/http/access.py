"""Who sends a request: the holder of a token in a header, or of a session in a cookie.

In: headers. Out: a user. A cookie comes along with what other sites make a browser send, so a request that changes
something must also carry the mark of its session, which no other site can read.
"""

from __future__ import annotations

import hmac
import ipaddress
from contextlib import suppress
from dataclasses import replace
from typing import Any

from secant.errors import AccessError
from secant.records import frozen
from secant.service.asking import Service
from secant.service.origin import Origin
from secant.service.tokens import SESSION_SECONDS
from secant.service.users import User

MARK = "x-csrf-token"
REQUEST_ID = "secant.request"
"""Where the guard puts the id of a request, in its scope."""
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_LONGEST = 200


@frozen
class Caller:
    """Who sends a request, and by which token."""

    user: User
    token: str
    by_cookie: bool
    origin: Origin
    """Who it is, from where, by which token: for the log."""


def caller_of(service: Service, request: Any) -> Caller:
    """Give who sends a request; AUT-001 if nobody can be told, or a browser may have been tricked into it."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and token:
        return _holder(service, request, token.strip(), by_cookie=False)
    session = request.cookies.get(cookie_name(service))
    if session is None:
        raise AccessError(
            "AUT-001",
            "nobody is logged in",
            hint="log in at /v1/login, or send `Authorization: Bearer TOKEN`",
        )
    caller = _holder(service, request, session, by_cookie=True)
    if request.method not in _SAFE:
        check_origin(request)
        if not hmac.compare_digest(
            request.headers.get(MARK, "").encode(), mark_of(service, session).encode()
        ):
            raise AccessError(
                "AUT-001",
                "the request does not carry the mark of its session",
                hint="reload the page",
            )
    return caller


def _holder(service: Service, request: Any, token: str, *, by_cookie: bool) -> Caller:
    came = origin_of(service, request, way="console" if by_cookie else "HTTP")
    user, token_id = service.users.holder_of(token[:_LONGEST], by=came)
    return Caller(user, token, by_cookie, replace(came, actor=user.name, token_id=token_id))


def origin_of(service: Service, request: Any, *, way: str = "HTTP") -> Origin:
    """Give where a request comes from, before anybody knows who sends it."""
    return Origin(
        address=address_of(service, request), request_id=request.scope.get(REQUEST_ID, ""), way=way
    )


def address_of(service: Service, request: Any) -> str:
    """Give the client's address: the other end's, or what the proxy that is believed has added last."""
    client = request.client
    host = "" if client is None else str(client.host)
    http = service.settings.http
    if http.behind_proxy and http.forwarded_for:
        # Only the last one is the proxy's own word; those before it are what the client sent.
        forwarded = request.headers.getlist("x-forwarded-for")
        last = forwarded[-1].rpartition(",")[2].strip() if forwarded else ""
        with suppress(ValueError):
            return str(ipaddress.ip_address(last))
    return host


def check_origin(request: Any) -> None:
    """Refuse what a browser says another site has made it send."""
    site = request.headers.get("sec-fetch-site", "same-origin")
    origin = request.headers.get("origin")
    host = request.headers.get("host", "")
    foreign = origin is not None and origin.partition("://")[2] != host
    if site not in ("same-origin", "none") or foreign:
        raise AccessError(
            "AUT-001", "the request comes from another site", hint="open the console itself"
        )


def mark_of(service: Service, session: str) -> str:
    """Give the mark that requests of a session carry to change something."""
    return service.users.hidden("mark of", session).hex()


def cookie_name(service: Service) -> str:
    """Give the name of the session's cookie; the prefix lets browsers take it from this very host by TLS only."""
    return "__Host-secant" if service.settings.secure else "secant"


def set_session(service: Service, response: Any, session: str) -> None:
    """Give a browser its session."""
    response.set_cookie(
        cookie_name(service),
        session,
        max_age=int(SESSION_SECONDS),
        path="/",
        secure=service.settings.secure,
        httponly=True,
        samesite="strict",
    )
