"""The console as it reaches a browser: one page, its scripts, and a session that scripts cannot read.

In: requests of browsers. Out: files of `static`, the same for everybody: what a user may see comes from the API alone.
To add a page: a module under `static`, and its line in `console.js`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.responses import FileResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from secant.service.asking import Service
from secant.service.http.access import caller_of, check_origin, cookie_name, origin_of, set_session
from secant.service.http.api import json_errors, log_in, log_out
from secant.service.http.bodies import LARGEST_LOGIN, Login, read_model

_STATIC = Path(__file__).parent / "static"


def routes(service: Service) -> list[Any]:
    """Give the routes of the console."""

    async def page(request: Any) -> Any:
        return FileResponse(_STATIC / "index.html")

    async def login(request: Any) -> Any:
        check_origin(request)
        body = await read_model(request, Login, LARGEST_LOGIN)
        came = origin_of(service, request, way="console")
        _, token, _ = await log_in(service, body.user, body.password, came)
        response = Response(status_code=204)
        set_session(service, response, token)
        return response

    async def logout(request: Any) -> Any:
        caller = await run_in_threadpool(caller_of, service, request)
        await run_in_threadpool(log_out, service, caller)
        response = Response(status_code=204)
        response.delete_cookie(cookie_name(service), path="/", secure=service.settings.secure)
        return response

    return [
        Route("/", page, methods=["GET"]),
        Route("/console/login", json_errors(login), methods=["POST"]),
        Route("/console/logout", json_errors(logout), methods=["POST"]),
        Mount("/static", StaticFiles(directory=_STATIC)),
    ]
