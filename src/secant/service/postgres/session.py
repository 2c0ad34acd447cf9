"""One client: its messages in turn, each answered by the shadow or by Secant.

In: messages of a user who has logged in. Out: messages. A question is asked when its portal is executed, not before:
a client that dies earlier has paid nothing. Errors of ours make the shadow's transaction fail as well, so that clients
see what PostgreSQL would show. Never here: who somebody is, and the data.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

from secant.errors import SecantError, UsageError
from secant.schema import types as t
from secant.service.asking import LONGEST_TEXT, Question, Ticket
from secant.service.origin import Origin
from secant.service.postgres import messages as m
from secant.service.postgres.link import Link, cells
from secant.service.postgres.own_views import SETTINGS as VIEW_SETTINGS
from secant.service.postgres.statements import (
    ASK_SETTINGS,
    SETTINGS,
    Framed,
    Portal,
    Prepared,
    has_room,
    question_of,
    read_statements,
)
from secant.service.postgres.telling import (
    error_message,
    plain_error,
    price_message,
    warning_message,
)
from secant.service.postgres.values import (
    Columns,
    columns_with_ends,
    literal,
    read_values,
    reading_of,
    row_description,
    rows_text,
    rows_with_ends,
    shape_of,
    stand_ins,
)
from secant.service.remembered import Reply
from secant.service.users import User

Chosen = dict[str, str | None]
"""What the client has set, by name."""
_OURS = "secant_settings"
SLOW = 120.0
"""Seconds that a client has to read what was sent to it."""
_SHORT = 10_000
"""Characters of a text that is read at once: some 30 ms at most."""
_TEXT_TYPE, _UNKNOWN = 25, 705


class Refusal(Exception):  # noqa: N818 - it is sent, not raised to anybody
    """An error that is told to the client as it is."""

    def __init__(self, body: bytes) -> None:
        super().__init__("refused")
        self.body = body


class Asks(Protocol):
    """What a session needs of the service; `Service` has it."""

    def ask(self, user: User, question: Question, *, by: Origin | None = None) -> Ticket:
        """Ask."""
        ...

    def leave(self, ticket: Ticket) -> None:
        """Say that the client no longer waits for a question."""
        ...

    def explain(self, user: User, question: Question) -> Ticket:
        """Explain."""
        ...

    def cancel(self, user: User, ticket_id: str) -> None:
        """End a question."""
        ...


@dataclass(slots=True, eq=False)
class Session:
    """A connection of a client after its login."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    link: Link
    user: User
    service: Asks
    describe: Callable[[str, Sequence[object]], Ticket]
    """Asks for the columns of a question."""
    tables: Callable[[], frozenset[str]]
    types_of: Callable[[str, tuple[int, ...]], Any]
    turns: asyncio.Semaphore
    """How many sessions of this user the shadow works for at the same time."""
    readers: Executor
    """Threads that read long texts."""
    views: Callable[[], Sequence[str]]
    """What the views of `own_views` show to the user, one text for each of its settings."""
    status: bytes = b"I"
    skipping: bool = False
    """Whether everything is ignored until the client's next Sync, after an error."""
    prepared: dict[str, Prepared] = field(default_factory=dict)
    portals: dict[str, Portal] = field(default_factory=dict)
    ticket: Ticket | None = None
    canceled: bool = False
    address: str = ""
    """Of the client."""
    task: asyncio.Task[None] | None = None
    """Which runs this session."""
    began: float | None = None
    """Since when the shadow works on a message, by the loop's clock; None while it does not."""
    heard: float | None = None
    """Since when nothing is to be done for the client; None while a message is worked on."""
    last_words: bytes = b""
    """What is told to the client when the session is ended from outside."""
    _unsynced: bool = False
    """Whether the client has to sync: the shadow reports what was set only then."""
    _simple: bool = False
    """Whether a simple query is being done: then the shadow needs a Sync after messages of ours."""
    _count: int = 0
    _opened: list[str] = field(default_factory=list)
    _settings_prepared: bool = False
    _viewing: set[str] = field(default_factory=set)
    """Statements of the client, prepared in the shadow, that read its views."""

    async def run(self) -> None:
        """Answer messages until the client leaves."""
        while True:
            await self._flush()
            self.heard = asyncio.get_running_loop().time()
            kind, body = await m.read_message(self.reader, m.LONGEST)
            self.heard = None
            if kind == b"X":
                return
            if self.skipping and kind != b"S":
                continue
            act = _ACTS.get(kind)
            if act is None:
                raise m.Malformed
            if kind == b"Q" and self._unsynced:
                raise m.Malformed  # settings would hold of which we have not heard
            self._unsynced = kind not in b"QS"
            self.canceled = False
            try:
                await self._take_turn()
                await act(self, body)
            except Refusal as refusal:
                await self._fail(refusal.body)
            except _AlreadyReported:
                continue
            finally:
                self._give_turn()

    async def _take_turn(self) -> None:
        """Wait until the shadow may work for this session."""
        await self.turns.acquire()
        self.began = asyncio.get_running_loop().time()

    def _give_turn(self) -> None:
        if self.began is not None:
            self.began = None
            self.turns.release()

    @property
    def left(self) -> bool:
        """Whether the client has closed the connection, though not all that it sent may have been read."""
        return bool(self.reader._eof)  # type: ignore[attr-defined]

    def end(self, message: bytes) -> None:
        """End the session from outside, with some last words; what runs for it ends, too."""
        if not self.last_words and self.task is not None:
            self.last_words = message
            self.task.cancel()

    async def cancel(self) -> None:
        """End what runs for this client."""
        self.canceled = True
        ticket = self.ticket
        if ticket is None:
            await self.link.cancel()
            return
        try:
            self.service.cancel(self.user, ticket.ticket_id)
        except SecantError:
            return  # it has just ended

    # ── simple queries ───────────────────────────────────────────────────────────────────────────

    async def _query(self, body: bytes) -> None:
        self._simple = True
        try:
            parts = await self._read(m.read_query(body))
            if all(part.kind == "shadow" for part in parts):
                for part in parts:
                    self._forget(part)
                if any(part.reads_views for part in parts):
                    await self._fill_views()
                self.link.send(m.message(b"Q", body))
                await self._until_ready()
            else:
                for part in parts:
                    await self._one(part)
        except Refusal as refusal:
            self._say(refusal.body)
            if self.status == b"T":
                self.link.send(m.message(b"Q", m.zero(_FAILING)))
                await self._until_ready(tell=False)
        except _AlreadyReported:
            pass
        finally:
            self._simple = False
        self._say(m.message(b"Z", self.status))

    async def _read(self, text: str) -> list[Framed]:
        """Say what the statements of a text want; a long one is read apart, so that nobody else waits for it."""
        if len(text) > LONGEST_TEXT:
            raise Refusal(plain_error("54000", f"a statement has up to {LONGEST_TEXT} characters"))
        if len(text) <= _SHORT:
            return read_statements(text, self.tables())
        return await asyncio.get_running_loop().run_in_executor(
            self.readers, read_statements, text, self.tables()
        )

    async def _one(self, frame: Framed) -> None:
        """Do one statement of a simple query, all but the message that ends it."""
        sent = frame.text
        tag = b""
        if frame.kind == "refused":
            raise Refusal(plain_error("0A000", frame.why, frame.hint))
        if frame.kind != "shadow":
            sent, tag = await self._released(frame, (), None), frame.tag
        else:
            self._forget(frame)
            if frame.reads_views:
                await self._fill_views()
        self.link.send(m.message(b"Q", m.zero(sent)))
        if await self._until_ready(tag=tag):
            raise _AlreadyReported

    async def _until_ready(self, *, tell: bool = True, tag: bytes = b"") -> bool:
        """Hand on what the shadow says until it is ready; give whether it said an error."""
        failed = False
        while True:
            kind, body = await self.link.read()
            failed = failed or kind == b"E"
            if kind == b"Z":
                self.status = body
                return failed
            if kind == b"G":  # nobody copies into the shadow
                self.link.send(m.message(b"f", m.zero("COPY FROM is not accepted")))
            elif tell or kind == b"S":
                self._say(m.message(kind, tag + b"\0" if tag and kind == b"C" else body))
                await self._flush()

    # ── extended queries ─────────────────────────────────────────────────────────────────────────

    async def _parse(self, body: bytes) -> None:
        message = m.read_parse(body)
        parts = await self._read(message.text)
        if len(parts) > 1:
            raise Refusal(
                plain_error("42601", "cannot insert multiple commands into a prepared statement")
            )
        frame = parts[0] if parts else Framed("shadow", "")
        if frame.kind == "refused":
            raise Refusal(plain_error("0A000", frame.why, frame.hint))
        if message.name and message.name in self.prepared:
            raise Refusal(
                plain_error("42P05", f'prepared statement "{message.name[:60]}" already exists')
            )
        if frame.kind == "shadow":
            self._forget(frame)
            self.prepared.pop(message.name, None)
            self._viewing.discard(message.name)
            await self._pass(b"P", body, b"1")
            if frame.reads_views:
                self._viewing.add(message.name)
            return
        prepared = Prepared(frame, await self._types(frame, message.types))
        self._keep(prepared)
        self.prepared[message.name] = prepared
        self._say(m.message(b"1"))

    def _keep(self, one: Prepared | Portal) -> None:
        if not has_room((*self.prepared.values(), *self.portals.values()), one):
            raise Refusal(
                plain_error("53000", "too much is prepared, or bound to values", "close some")
            )

    async def _types(self, frame: Framed, types: tuple[int, ...]) -> tuple[int, ...]:
        """Give the types of a question's parameters: as the client says, or as the shadow infers them."""
        count = max(len(types), frame.placeholders)
        if count > 1000:
            raise Refusal(plain_error("54000", "there are too many parameters"))
        if not count:
            return ()
        given_types = (*types, *(0 for _ in range(count - len(types))))
        inferred = await self.types_of(frame.asked, given_types) if 0 in given_types else None
        if inferred is None or len(inferred) != count:
            inferred = given_types
        return tuple(_TEXT_TYPE if oid in (0, _UNKNOWN) else oid for oid in inferred)

    async def _bind(self, body: bytes) -> None:
        message = m.read_bind(body)
        prepared = self.prepared.get(message.statement)
        if prepared is None:
            self.portals.pop(message.portal, None)
            if message.statement in self._viewing:
                await self._fill_views()
            await self._pass(b"B", body, b"2")
            return
        values = await self._values(prepared.types, message)
        portal = Portal(prepared, values, message.results, len(body))
        self._keep(portal)
        self.portals[message.portal] = portal
        self._say(m.message(b"2"))

    async def _values(self, types: tuple[int, ...], bound: m.Bind) -> tuple[object, ...]:
        """Let the shadow read the values that a client binds, with whatever it has set, and fail as PostgreSQL does."""
        if len(bound.values) != len(types):
            raise Refusal(plain_error(
                "08P01", f"{len(bound.values)} parameters are bound, the statement has {len(types)}"
            ))  # fmt: skip
        if sum(len(value) for value in bound.values if value is not None) > LONGEST_TEXT:
            raise Refusal(plain_error("54000", f"values have up to {LONGEST_TEXT} bytes"))
        if not types:
            return ()
        said = await self._aside(reading_of(types), types, bound.formats, bound.values)
        try:
            return read_values(types, bound.values, said)
        except UsageError as error:
            raise Refusal(error_message(error)) from None

    async def _aside(
        self,
        text: str,
        types: Sequence[int],
        formats: Sequence[int],
        values: Sequence[bytes | None],
    ) -> list[str | None]:
        """Let the shadow run a query of ours that gives one row, between two messages of the client."""
        self._count += 1
        ours = f"secant_aside_{self._count}"
        self.link.send(
            m.parse_message(ours, text, types)
            + m.bind_message(ours, ours, (), formats, values)
            + m.execute_message(ours) + m.target_message(b"C", "S", ours) + m.FLUSH
        )  # fmt: skip
        self._opened.append(ours)  # closed once more at the Sync that follows an error
        row = cells(await self._expect(b"D", tell=False))
        await self._expect(b"3", tell=False)
        self._opened.remove(ours)
        return row

    async def _fill_views(self) -> None:
        """Write what the views show into the session."""
        texts = await self._of_secant(self.views)
        if self._simple:
            pairs = zip(VIEW_SETTINGS, texts, strict=True)
            written = ", ".join(f"set_config('{n}', {literal(text)}, false)" for n, text in pairs)
            self.link.send(m.message(b"Q", m.zero(f"SELECT {written}")))
            await self._until_ready(tell=False)  # where it fails, what follows fails alike
            return
        written = ", ".join(
            f"set_config('{name}', ${i}, false)" for i, name in enumerate(VIEW_SETTINGS, 1)
        )
        types = [_TEXT_TYPE] * len(VIEW_SETTINGS)
        await self._aside(f"SELECT {written}", types, (), [text.encode() for text in texts])

    async def _describe(self, body: bytes) -> None:
        kind, name = m.read_target(body)
        if kind == "S" and name in self.prepared:
            prepared = self.prepared[name]
            columns = await self._guessed_columns(prepared)
            self._say(m.message(b"t", m.counted(prepared.types, "I")))
            self._say_columns(columns, ())
        elif kind == "P" and (portal := self.portals.get(name)) and not portal.asked:
            columns = await self._columns(portal.prepared.frame, portal.values)
            portal.columns = columns
            self._say_columns(columns, portal.results)
        else:
            await self._pass(b"D", body, b"Tn")

    async def _guessed_columns(self, prepared: Prepared) -> Columns | None:
        """Give the columns of a statement whose values are not known yet; some functions mind which text they get."""
        refused: Refusal | None = None
        for text in ("1", "day", "2000-01-01"):
            try:
                return await self._columns(prepared.frame, stand_ins(prepared.types, text))
            except Refusal as refusal:
                refused = refused or refusal
                if not prepared.types:
                    break
        assert refused is not None
        raise refused

    def _say_columns(self, columns: Columns | None, formats: Sequence[int]) -> None:
        self._say(m.message(b"n") if columns is None else row_description(columns, formats))

    async def _columns(self, frame: Framed, values: Sequence[object]) -> Columns | None:
        """Give the columns of a statement; None for one that gives no rows."""
        if frame.kind == "explain":
            return _PLAN_COLUMNS
        chosen = await self._settings()
        try:
            columns, _ = await self._shown(frame, values, chosen)
        except SecantError as error:
            raise Refusal(error_message(error, before=frame.question[0])) from None
        return columns if frame.kind == "rows" else None

    async def _shown(
        self, frame: Framed, values: Sequence[object], chosen: Chosen
    ) -> tuple[Columns, tuple[str, ...]]:
        """Give the columns that the client gets, and beside which of them ends stand."""
        columns: Columns = await self._done(
            await self._of_secant(self.describe, frame.asked, values)
        )
        if (chosen["ends"] or "off").lower() not in ("on", "true", "yes", "1"):
            return columns, ()
        explained = await self._explained(frame.asked, tuple(values), chosen)
        return columns_with_ends(columns, explained.noisy), explained.noisy

    async def _explained(self, text: str, values: tuple[object, ...], chosen: Chosen) -> Any:
        question = question_of(text, values, chosen)
        return await self._done(await self._of_secant(self.service.explain, self.user, question))

    async def _execute(self, body: bytes) -> None:
        name, _ = m.read_execute(body)
        portal = self.portals.get(name)
        tag = b""
        if portal is not None and not portal.asked:
            tag = portal.prepared.frame.tag
            text = await self._released(portal.prepared.frame, portal.values, portal.columns)
            self._count += 1
            ours = f"secant_rows_{self._count}"
            formats = portal.results if portal.prepared.frame.kind in ("rows", "explain") else ()
            self.link.send(
                m.parse_message(ours, text) + m.bind_message(name, ours, formats) + m.FLUSH
            )
            self._opened.append(ours)
            await self._expect(b"1", tell=False)
            await self._expect(b"2", tell=False)
            portal.asked = True
        self.link.send(m.message(b"E", body) + m.FLUSH)
        await self._expect(b"CsI", tag=tag)

    async def _close(self, body: bytes) -> None:
        kind, name = m.read_target(body)
        if kind == "S" and self.prepared.pop(name, None) is not None:
            self._say(m.message(b"3"))
            return
        portal = self.portals.pop(name, None) if kind == "P" else None
        if portal is not None and not portal.asked:
            self._say(m.message(b"3"))
            return
        await self._pass(b"C", body, b"3")

    async def _flushed(self, body: bytes) -> None:
        await self._flush()

    async def _sync(self, body: bytes) -> None:
        self.skipping = False
        for name in self._opened:
            self.link.send(m.target_message(b"C", "S", name))
        closing, self._opened = len(self._opened), []
        self.link.send(m.SYNC)
        while True:
            kind, content = await self.link.read()
            if kind == b"Z":
                break
            if kind == b"3" and closing:
                closing -= 1
            else:
                self._say(m.message(kind, content))
        self.status = content
        if self.status == b"I":
            self.portals.clear()
        self._say(m.message(b"Z", self.status))

    async def _copy(self, body: bytes) -> None:
        """Ignore rows that a client still sends after its COPY was refused."""

    async def _pass(self, kind: bytes, body: bytes, ends: bytes) -> None:
        """Hand a message to the shadow, and what it says to the client."""
        self.link.send(m.message(kind, body) + m.FLUSH)
        await self._expect(ends)

    async def _expect(self, ends: bytes, *, tell: bool = True, tag: bytes = b"") -> bytes:
        """Hand on what the shadow says up to one of some messages, and give it; after an error clients must sync."""
        while True:
            kind, body = await self.link.read()
            if kind == b"G":
                self.link.send(m.message(b"f", m.zero("COPY FROM is not accepted")) + m.FLUSH)
                continue
            if tell or kind in b"ESN":
                self._say(m.message(kind, tag + b"\0" if tag and kind == b"C" else body))
                await self._flush()
            if kind == b"E":
                self.skipping = True
                raise _AlreadyReported
            if kind in ends:
                return body

    async def _fail(self, body: bytes) -> None:
        """Tell an error of ours, and let the shadow fail as well: its transaction must not go on."""
        self._say(body)
        self.skipping = True
        self.link.send(m.parse_message("", _FAILING) + m.FLUSH)
        while True:
            kind, _ = await self.link.read()
            if kind == b"E":
                return

    # ── asking ───────────────────────────────────────────────────────────────────────────────────

    async def _released(
        self, frame: Framed, values: tuple[object, ...], described: Columns | None
    ) -> str:
        """Ask a question; give the statement with which the shadow shows its answer."""
        if self.status == b"E":
            raise Refusal(plain_error(
                "25P02", "current transaction is aborted, commands ignored until end of transaction block"
            ))  # fmt: skip
        chosen = await self._settings()
        before = frame.question[0]
        try:
            if frame.kind == "explain":
                explained = await self._explained(frame.asked, values, chosen)
                return rows_text(_PLAN_COLUMNS, [(line,) for line in str(explained).splitlines()])
            columns, noisy = await self._shown(frame, values, chosen)
            if described is not None and shape_of(columns) != shape_of(described):
                raise Refusal(plain_error(
                    "0A000", "the columns of the statement have changed since it was described",
                    "prepare it again",
                ))  # fmt: skip
            if frame.shows_nothing:
                return frame.around(rows_text(columns, ()))
            result: Reply = await self._done(await self._ask(frame.asked, values, chosen))
        except SecantError as error:
            raise Refusal(error_message(error, before=before)) from None
        if chosen["notice"] != "off":
            for caution in result.answer.warnings:
                self._say(warning_message(caution))
            self._say(price_message(result))
        return frame.around(rows_text(columns, rows_with_ends(result.answer, noisy)))

    async def _ask(self, text: str, values: tuple[object, ...], chosen: Chosen) -> Ticket:
        question = question_of(text, values, chosen)
        if question.epsilon is None and question.error is None:
            # What is public costs nothing and needs no epsilon; for the rest the user says how much to spend.
            explained = await self._explained(text, values, chosen)
            if any(entry["epsilon"] for entry in explained.record["guarantee"]):
                raise UsageError(
                    "USE-002",
                    "the question needs an epsilon or a wanted error",
                    hint="SET secant.epsilon = 0.1, or SET secant.error = 20; EXPLAIN shows what to expect",
                )
            question = question_of(text, values, {**chosen, "epsilon": "1"})
        by = Origin(actor=self.user.name, address=self.address, way="postgres")
        ticket: Ticket = await self._of_secant(
            partial(self.service.ask, by=by), self.user, question
        )
        return ticket

    async def _of_secant(self, function: Callable[..., Any], *arguments: object) -> Any:
        """Let Secant do something in a thread: the shadow's time does not run meanwhile."""
        self._give_turn()
        try:
            return await asyncio.to_thread(function, *arguments)
        finally:
            await self._take_turn()

    async def _done(self, ticket: Ticket) -> Any:
        """Wait for a question; it can be canceled meanwhile."""
        self._give_turn()
        self.ticket = ticket
        try:
            if self.canceled:
                await self.cancel()
            return await asyncio.wrap_future(ticket.future)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if ticket.future.cancelled() and not (task and task.cancelling()):
                raise Refusal(
                    plain_error("57014", "canceling statement due to user request")
                ) from None
            self.service.leave(ticket)
            raise
        finally:
            self.ticket = None
            await self._take_turn()

    async def _settings(self) -> Chosen:
        """Ask the shadow what the client has set, within whatever transaction there is."""
        if not self._settings_prepared:
            self.link.send(m.parse_message(_OURS, ASK_SETTINGS))
        self.link.send(m.bind_message(_OURS, _OURS, ()) + m.execute_message(_OURS))
        self.link.send(m.target_message(b"C", "P", _OURS) + (m.SYNC if self._simple else m.FLUSH))
        values: list[str | None] | None = None
        while True:
            kind, body = await self.link.read()
            if kind == b"D":
                values = cells(body)
            elif kind == b"E":
                self._settings_prepared = False
                self._say(m.message(kind, body))
                if not self._simple:
                    self.skipping = True
                    raise _AlreadyReported
            elif kind == (b"Z" if self._simple else b"3"):
                if kind == b"Z":
                    self.status = body
                if values is None:
                    raise _AlreadyReported
                self._settings_prepared = True
                return {n: v or None for n, v in zip(SETTINGS, values, strict=True)}

    # ── small parts ──────────────────────────────────────────────────────────────────────────────

    def _forget(self, frame: Framed) -> None:
        """Let go of prepared statements where the client drops them by a statement."""
        if frame.drops_all:
            self.prepared.clear()
            self._viewing.clear()
            self._settings_prepared = False
        elif frame.drops is not None:
            self.prepared.pop(frame.drops, None)
            self._viewing.discard(frame.drops)

    def _say(self, data: bytes) -> None:
        self.writer.write(data)

    async def _flush(self) -> None:
        try:
            await asyncio.wait_for(self.writer.drain(), SLOW)
        except TimeoutError:
            raise SlowReader from None


class SlowReader(Exception):  # noqa: N818 - what it is
    """The client does not read what was sent to it; the connection ends."""


class _AlreadyReported(Exception):  # noqa: N818 - the client knows
    """The shadow's error was handed on; nothing is left to say."""


_FAILING = "SECANT REFUSED"
"""No statement at all: the shadow's transaction fails with it."""
_PLAN_COLUMNS: Columns = (("QUERY PLAN", t.TEXT),)
_ACTS: dict[bytes, Callable[[Session, bytes], Any]] = {
    b"Q": Session._query,
    b"P": Session._parse,
    b"B": Session._bind,
    b"D": Session._describe,
    b"E": Session._execute,
    b"C": Session._close,
    b"H": Session._flushed,
    b"S": Session._sync,
    b"d": Session._copy,
    b"c": Session._copy,
    b"f": Session._copy,
}
