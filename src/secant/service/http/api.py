"""The API: one small function for each address.

In: a request. Out: a response. What takes long waits in the service's queue, and never holds a thread here.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any
from urllib.parse import quote

from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect
from starlette.responses import Response, StreamingResponse

from secant.engines.watch import canceled
from secant.errors import AccessError, SecantError, UsageError
from secant.proofs import rule
from secant.service import views
from secant.service.asking import Question, Service, Ticket
from secant.service.http.access import Caller, caller_of, mark_of, origin_of
from secant.service.http.bodies import (
    EVENTS,
    LARGEST_LOGIN,
    Asked,
    Explain,
    Login,
    NewPassword,
    NewToken,
    NewUser,
    Query,
    Steps,
    read_model,
    unreadable,
)
from secant.service.http.told import answer_response, error_response, event, json_response
from secant.service.origin import Origin
from secant.service.roles import allow, may
from secant.service.tokens import SESSION_SECONDS
from secant.service.users import LOGOUT, User
from secant.service.verifiers import generated_password

KEEP_ALIVE = 15.0
"""Seconds after which a stream of events says that it is still there: proxies close what is silent."""
Endpoint = Callable[[Any], Awaitable[Any]]


def question_of(question: Asked) -> Question:
    """Give a request's question as the service takes it."""
    if question.level is None:
        raise UsageError("USE-004", "a level must lie strictly between 0 and 1")
    return Question(
        question.sql,
        parameters=tuple(question.parameters),
        epsilon=question.epsilon,
        error=question.error,
        max_error=question.max_error,
        attacker=question.attacker,
        delta=question.delta,
        level=question.level,
        protection=question.protection,
        certain=question.certain,
    )


class Api:
    """The functions behind the addresses."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._largest = service.settings.http.largest_request

    async def _caller(self, request: Any) -> Caller:
        caller: Caller = await run_in_threadpool(caller_of, self._service, request)
        return caller

    async def _seen(self, request: Any, view: Callable[..., Any], **more: Any) -> Any:
        """Give what a view shows to the caller."""
        caller = await self._caller(request)
        return json_response(await run_in_threadpool(view, self._service, caller.user, **more))

    # ── questions ────────────────────────────────────────────────────────────────────────────────

    async def query(self, request: Any) -> Any:
        """Answer a question."""
        caller = await self._caller(request)
        body = await read_model(request, Query, self._largest)
        accept = request.headers.get("accept", "")
        key = request.headers.get("idempotency-key", "")
        ask = self._service.ask
        if EVENTS in accept:
            return StreamingResponse(
                self._events(caller, body, key),
                media_type=EVENTS,
                headers={"X-Accel-Buffering": "no"},
            )
        ticket = await run_in_threadpool(
            ask, caller.user, question_of(body), key=key, reuse=body.reuse, by=caller.origin
        )
        result = await self._result(request, ticket)
        return await run_in_threadpool(answer_response, result, accept)

    async def _events(self, caller: Caller, body: Query, key: str) -> AsyncIterator[str]:
        """Tell what happens to a question, and at last its answer."""
        loop = asyncio.get_running_loop()
        ticket: Ticket | None = None
        heard: asyncio.Queue[tuple[str, dict[str, Any]]] = asyncio.Queue()

        def hear(kind: str, fields: dict[str, Any]) -> None:
            with suppress(RuntimeError):  # the loop has ended before the question
                loop.call_soon_threadsafe(heard.put_nowait, (kind, fields))

        def ask() -> Ticket:
            nonlocal ticket  # known also if the client leaves meanwhile
            ticket = self._service.ask(
                caller.user,
                question_of(body),
                key=key,
                reuse=body.reuse,
                heard=hear,
                by=caller.origin,
            )
            return ticket

        try:
            ticket = await run_in_threadpool(ask)
            ticket.future.add_done_callback(lambda _: hear("", {}))
            while True:
                try:
                    kind, fields = await asyncio.wait_for(heard.get(), KEEP_ALIVE)
                except TimeoutError:
                    yield ": still there\n\n"
                    continue
                if not kind:
                    break
                yield event(kind, fields)
            yield event("answer", views.answer_view(_ended(ticket)))
        except SecantError as error:
            yield event("error", {"error": error.to_dict()})
        finally:
            if ticket is not None and not ticket.future.done():  # the client has left
                loop.run_in_executor(None, self._service.leave, ticket)

    async def explain(self, request: Any) -> Any:
        """Explain a question."""
        caller = await self._caller(request)
        body = await read_model(request, Explain, self._largest)
        explanation = await self._result(
            request,
            await run_in_threadpool(
                self._service.explain,
                caller.user,
                question_of(body),
                ranges=body.ranges,
                by=caller.origin,
            ),
        )
        warnings = [caution.to_dict() for caution in explanation.warnings]
        return json_response(
            {**explanation.to_dict(), "text": explanation.text, "warnings": warnings}
        )

    async def running(self, request: Any) -> Any:
        """List questions that wait or run."""
        caller = await self._caller(request)
        longest = self._service.settings.history.longest_text
        return json_response(views.running_view(self._service.running(caller.user), longest))

    async def cancel(self, request: Any) -> Any:
        """Cancel a question."""
        caller = await self._caller(request)
        await run_in_threadpool(
            self._service.cancel, caller.user, request.path_params["id"], by=caller.origin
        )
        return Response(status_code=204)

    async def _result(self, request: Any, ticket: Ticket) -> Any:
        """Wait for a question, or until its client leaves: then nobody needs to go on for it."""
        loop, ended = asyncio.get_running_loop(), asyncio.Event()

        def end(future: object) -> None:
            with suppress(RuntimeError):  # the loop has ended before the question
                loop.call_soon_threadsafe(ended.set)

        ticket.future.add_done_callback(end)
        ways = [asyncio.create_task(ended.wait()), asyncio.create_task(_left(request))]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
        if not ticket.future.done():
            await run_in_threadpool(self._service.leave, ticket)
            raise ClientDisconnect
        return _ended(ticket)

    # ── what can be seen ─────────────────────────────────────────────────────────────────────────

    async def budget(self, request: Any) -> Any:
        """Show budgets."""
        return await self._seen(request, views.budget_view)

    async def tables(self, request: Any) -> Any:
        """Show tables."""
        return await self._seen(request, views.tables_view)

    async def functions(self, request: Any) -> Any:
        """Name the functions that questions may call."""
        await self._caller(request)
        return json_response(views.function_names())

    async def rule(self, request: Any) -> Any:
        """Show a rule of a derivation."""
        await self._caller(request)
        return json_response(rule(request.path_params["id"]).to_dict())

    async def streams(self, request: Any) -> Any:
        """Show streams."""
        return await self._seen(request, views.streams_view)

    async def history(self, request: Any) -> Any:
        """Show questions of before."""
        limit = request.query_params.get("limit", "100")
        if not limit.isascii() or not limit.isdigit() or len(limit) > 6:
            raise unreadable("limit is a whole number")
        before = request.query_params.get("before")
        caller = await self._caller(request)
        entries, more = await run_in_threadpool(
            views.history_view, self._service, caller.user, limit=int(limit), before=before
        )
        after = quote(entries[-1]["time"]) if entries else ""
        link = f'</v1/history?limit={int(limit)}&before={after}>; rel="next"'
        return json_response(entries, headers={"Link": link} if more else None)

    async def audit(self, request: Any) -> Any:
        """Show the audit log."""
        caller = await self._caller(request)
        allow(caller.user, "see all")
        return json_response(views.audit_view(await run_in_threadpool(self._service.users.log)))

    async def stream(self, request: Any) -> Any:
        """Say what a stream costs; with POST, release its complete steps."""
        caller = await self._caller(request)
        name, service = request.path_params["name"], self._service
        if request.method == "POST":
            body = await read_model(request, Steps, self._largest)
            series = await self._result(
                request,
                await run_in_threadpool(
                    service.release_stream, caller.user, name, until=body.until, by=caller.origin
                ),
            )
            return json_response(series.to_dict())
        allow(caller.user, "explain")
        explanation = await self._result(
            request,
            await run_in_threadpool(
                service.do, caller.user, lambda o: o.connection.explain_stream(name), caller.origin
            ),
        )
        return json_response({**explanation.to_dict(), "text": explanation.text})

    # ── users ────────────────────────────────────────────────────────────────────────────────────

    async def login(self, request: Any) -> Any:
        """Give a token for a name and a password."""
        body = await read_model(request, Login, LARGEST_LOGIN)
        came = origin_of(self._service, request)
        user, token, session = await log_in(self._service, body.user, body.password, came)
        return json_response(
            {"token": token, "expires": session.expires.isoformat(), **_user(user)}
        )

    async def logout(self, request: Any) -> Any:
        """End the token that the request came with."""
        caller = await self._caller(request)
        await run_in_threadpool(log_out, self._service, caller)
        return Response(status_code=204)

    async def me(self, request: Any) -> Any:
        """Say who the caller is, and what they may do."""
        caller = await self._caller(request)
        mark = mark_of(self._service, caller.token) if caller.by_cookie else None
        return json_response({**_user(caller.user), "csrf": mark})

    async def users(self, request: Any) -> Any:
        """List users; with POST, add one."""
        caller = await self._caller(request)
        if request.method == "GET":
            allow(caller.user, "see all")
            users = await run_in_threadpool(self._service.users.all)
            return json_response([_user(user) for user in users])
        allow(caller.user, "change users")
        body = await read_model(request, NewUser, self._largest)
        await self._proved(caller, body.current)
        password = body.password or generated_password()
        added = await run_in_threadpool(
            partial(self._service.users.add, by=caller.origin), body.user, body.role, password
        )
        shown = None if body.password else password
        return json_response({**_user(added), "password": shown}, 201)

    async def user(self, request: Any) -> Any:
        """Remove a user."""
        caller = await self._caller(request)
        allow(caller.user, "change users")
        name = request.path_params["name"]
        if name.casefold() == caller.user.name.casefold():
            raise UsageError(
                "USE-001", "an owner does not remove themselves", hint="let another do it"
            )
        await run_in_threadpool(self._service.remove_user, name, caller.origin)
        return Response(status_code=204)

    async def password(self, request: Any) -> Any:
        """Change a password: one's own, or for owners anybody's. Either needs the caller's own present one."""
        caller = await self._caller(request)
        name = request.path_params["name"]
        if name.casefold() != caller.user.name.casefold():
            allow(caller.user, "change users")
        body = await read_model(request, NewPassword, self._largest)
        await self._proved(caller, body.current)
        password = body.password or generated_password()
        await run_in_threadpool(
            partial(self._service.users.set_password, by=caller.origin), name, password
        )
        return json_response({"password": None if body.password else password})

    async def revoke_all(self, request: Any) -> Any:
        """End all sessions, tokens and questions of a user: one's own, or for owners anybody's."""
        caller = await self._caller(request)
        name = request.path_params["name"]
        if name.casefold() != caller.user.name.casefold():
            allow(caller.user, "change users")
        ended = await run_in_threadpool(self._service.revoke_all, name, caller.origin)
        return json_response({"user": name, "ended": ended})

    async def _proved(self, caller: Caller, password: str | None) -> None:
        """Make sure that the caller has a password, too: a stolen token must not make what outlives it."""
        if password is None:
            raise AccessError(
                "AUT-001",
                "this needs your own present password, not only a token",
                hint="send it as `current`",
            )
        by = caller.origin
        await asyncio.wrap_future(
            self._service.logins.attempt(
                caller.user.name,
                password,
                way=by.way,
                address=by.address,
                by=by,
                kind="password check",
            )
        )

    async def tokens(self, request: Any) -> Any:
        """List tokens; with POST, make one."""
        caller = await self._caller(request)
        users = self._service.users
        if request.method == "GET":
            whose = None if may(caller.user, "change users") else caller.user.name
            return json_response(
                [views.token_view(token) for token in await run_in_threadpool(users.tokens, whose)]
            )
        body = await read_model(request, NewToken, self._largest)
        holder = caller.user
        if body.user is not None and body.user.casefold() != holder.name.casefold():
            allow(caller.user, "change users")
            entry = await run_in_threadpool(users.found, body.user)
            if entry is None:
                raise UsageError("USE-001", "there is no such user")
            holder = entry[0]
        if body.current is not None:
            await self._proved(caller, body.current)
        token, record = await run_in_threadpool(
            partial(
                users.make_token,
                holder,
                seconds=body.days * 86_400,
                note=body.note,
                parent=caller.origin.token_id if body.current is None else "",
                by=caller.origin,
            )
        )
        return json_response({**views.token_view(record), "token": token}, 201)

    async def token(self, request: Any) -> Any:
        """Revoke a token."""
        caller = await self._caller(request)
        token_id, users = request.path_params["id"], self._service.users
        whose = None if may(caller.user, "change users") else caller.user.name
        if token_id not in [t.token_id for t in await run_in_threadpool(users.tokens, whose)]:
            raise UsageError("USE-001", "there is no token of this id")
        await run_in_threadpool(partial(users.revoke, by=caller.origin), token_id)
        return Response(status_code=204)

    # ── operation ────────────────────────────────────────────────────────────────────────────────

    async def metrics(self, request: Any) -> Any:
        """Give counts for Prometheus."""
        caller = await self._caller(request)
        allow(caller.user, "see metrics")
        text = await run_in_threadpool(_metrics, self._service, caller.user)
        return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")

    async def health(self, request: Any) -> Any:
        """Say that the process lives."""
        return json_response({"status": "alive"})

    async def ready(self, request: Any) -> Any:
        """Say whether questions can be answered."""
        # Everybody may ask: whoever waits holds no thread, and one look serves all.
        findings = await asyncio.wrap_future(self._service.readiness.looking())
        status = "ready" if findings.ready else "not ready"
        body = {"status": status, "checks": findings.checks}
        return json_response(body, 200 if findings.ready else 503)


async def log_in(service: Service, name: str, password: str, came: Origin) -> tuple[User, str, Any]:
    """Check a password and begin a session. No thread of those that serve others waits meanwhile."""
    try:
        user = await asyncio.wrap_future(
            service.logins.attempt(name, password, way=came.way, address=came.address, by=came)
        )
    except SecantError:
        service.metrics.count("secant_logins_total", "outcome", "refused")
        raise
    service.metrics.count("secant_logins_total", "outcome", "admitted")
    begun = partial(service.users.make_token, seconds=SESSION_SECONDS, kind="session")
    token, session = await run_in_threadpool(begun, user, by=replace(came, actor=user.name))
    return user, token, session


def log_out(service: Service, caller: Caller) -> None:
    """End the token that a request came with, and whatever it made."""
    service.users.revoke(caller.origin.token_id, what=LOGOUT, by=caller.origin)


def _ended(ticket: Ticket) -> Any:
    """Give what came of a question that has ended."""
    if ticket.future.cancelled():
        raise canceled()
    return ticket.future.result()


async def _left(request: Any) -> None:
    """Wait until the client has gone; its request was read before."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _user(user: User) -> dict[str, str]:
    return {"user": user.name, "role": user.role}


def _metrics(service: Service, user: User) -> str:
    spent: dict[str, float] = {}
    with service.opened(user) as connection:
        spent = {name: float(account.spent_epsilon) for name, account in connection.budget.items()}
    return service.metrics.text(service.loads(), spent)


def json_errors(endpoint: Endpoint) -> Endpoint:
    """Let every error of an endpoint leave as its JSON, and nothing else leave."""

    async def guarded(request: Any) -> Any:
        try:
            return await endpoint(request)
        except SecantError as error:
            return error_response(error)

    return guarded
