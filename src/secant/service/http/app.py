"""The application: which address leads to which function, and what holds for all of them.

In: the service. Out: an ASGI application. The console's pages are put beside the API here.
"""

from __future__ import annotations

import logging
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.routing import Route

from secant.errors import InternalError, ServiceError, debugging
from secant.service.asking import Service
from secant.service.console import pages
from secant.service.http.api import Api, json_errors
from secant.service.http.guard import Guard
from secant.service.http.openapi import OPERATIONS, document
from secant.service.http.told import error_response, json_response

_log = logging.getLogger("secant.service")


def build(service: Service) -> Any:
    """Put the application together."""
    api = Api(service)
    described = document()
    methods: dict[tuple[str, str], list[str]] = {}
    for address, method, name, *_ in OPERATIONS:
        methods.setdefault((address, name), []).append(method)
    routes: dict[str, Any] = {}
    for (address, name), allowed in methods.items():
        routes[f"{address} {name}"] = Route(
            address, json_errors(getattr(api, name)), methods=allowed
        )

    async def openapi(request: Any) -> Any:
        return json_response(described)

    return Starlette(
        routes=[
            *routes.values(),
            Route("/openapi.json", openapi, methods=["GET"]),
            *pages.routes(service),
        ],
        middleware=[Middleware(Guard, settings=service.settings)],
        exception_handlers={HTTPException: _refused, Exception: _unexpected},
    )


async def _refused(request: Any, error: Any) -> Any:
    """Tell what the router refuses: no such address, no such method."""
    refused = ServiceError(
        "SRV-004", "there is no such address or method", hint="see /openapi.json"
    )
    response = error_response(refused)
    response.status_code = error.status_code
    for name, value in (error.headers or {}).items():
        response.headers[name] = value
    return response


async def _unexpected(request: Any, error: Exception) -> Any:
    """Tell that something broke, and nothing of what: its text may quote data."""
    if debugging():
        raise error
    _log.error("an unexpected %s stopped a request", type(error).__name__)
    return error_response(
        InternalError("BUG-001", "an invariant of Secant broke", hint="report it, without data")
    )
