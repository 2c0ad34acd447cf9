"""The one door through which every front asks on behalf of a user who has logged in.

In: a user, a question. Out: a ticket, and in time an answer: a stored one, which costs nothing, or a new one, which is
charged to the user's share. Questions wait in a fair queue, and may be canceled. Never here: who somebody is (that is
`logins`), how a front speaks, and anything that an engine said.
"""

from __future__ import annotations

import hashlib
import json
import logging
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, TypeVar

import secant
from secant.engine import Connection
from secant.errors import (
    InternalError,
    PolicyError,
    SecantError,
    ServiceError,
    UsageError,
    debugging,
)
from secant.ledger.opening import ledger_place
from secant.plan.from_sql import from_sql
from secant.plan.one_question import one_question
from secant.plan.rewrite import normalize
from secant.plan.show import canonical
from secant.questions import Number
from secant.records import frozen
from secant.release.report import Explanation
from secant.release.watch import Interrupt, interruptible
from secant.service.anchored import Anchored
from secant.service.logins import Logins
from secant.service.metrics import Metrics
from secant.service.opened import Opened, Openings, version_of
from secant.service.queue import FairQueue
from secant.service.remembered import Remembered, Told, other_request
from secant.service.roles import allow, may
from secant.service.settings import Settings
from secant.service.store import check_printable, open_store
from secant.service.users import User, Users
from secant.shown.progress import silent
from secant.streams.series import Series
from secant.terms.policy import Policy
from secant.terms.policy_file import load_policy
from secant.work import limited_work

T = TypeVar("T")
LONGEST_TEXT = 1_000_000
"""Characters of a question."""
_MOST_PLANS = 2000
"""Digests of plans that are kept in memory."""

_log = logging.getLogger("secant.service")


@frozen
class Question:
    """What somebody asks: the arguments of `Connection.sql` that a user may choose."""

    text: str
    parameters: tuple[object, ...] = ()
    epsilon: Number | None = None
    error: Number | None = None
    max_error: Number | None = None
    attacker: str | None = None
    delta: Number | None = None
    level: Number = "0.95"
    protection: str | None = None

    def arguments(self) -> dict[str, Any]:
        """Give what `Connection.sql` takes beside the text."""
        chosen = {name: getattr(self, name) for name in _CHOICES}
        return {**chosen, "parameters": self.parameters} if self.parameters else chosen


_CHOICES = ("epsilon", "error", "max_error", "attacker", "delta", "level", "protection")
Heard = Callable[[str, dict[str, Any]], object]
"""Called with what happens to a question: `waiting`, `running`, `warning`."""


@dataclass(slots=True, eq=False)
class Ticket:
    """A question on its way."""

    user: User
    question: Question | None
    """None for what spends nothing."""
    interrupt: Interrupt
    key: str = ""
    """The client's idempotency key, if it gave one."""
    ticket_id: str = field(default_factory=lambda: secrets.token_hex(8))
    begun: float = field(default_factory=time.time)
    future: Future[Any] = field(default_factory=Future)

    def result(self, seconds: float | None = None) -> Any:
        """Wait for the answer; raise the error if there is none."""
        return self.future.result(seconds)


class Desk:
    """The service without its fronts. Close it."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        place = ledger_place(load_policy(settings.policy))
        self.users = Users(open_store(place))
        self.logins = Logins(self.users)
        self.metrics = Metrics()
        self.remembered = Remembered(self.users.store, settings.reuse)
        self._anchored = Anchored(settings.anchor)
        self._openings = Openings(settings)
        q = settings.questions
        self._queue = FairQueue(
            workers=q.workers,
            each_user=q.each_user,
            waiting=q.waiting,
            waiting_of_user=q.waiting_of_user,
        )
        self._lock = threading.Lock()
        self._tickets: dict[str, Ticket] = {}
        self._asked_now: dict[str, threading.Event] = {}
        """Key of an answer that is being made -> set when it is there, or will not come."""

    # ── questions ────────────────────────────────────────────────────────────────────────────────

    def ask(
        self,
        user: User,
        question: Question,
        *,
        key: str = "",
        reuse: bool = True,
        heard: Heard = lambda kind, fields: None,
    ) -> Ticket:
        """Ask; the ticket's result is a `Told`. `key` makes sure that the same request is charged once at most."""
        allow(user, "ask")
        _check_text(question)
        check_printable("an idempotency key", key, 200)
        ticket = Ticket(user, question, Interrupt(), key)
        if key:
            with self._lock:
                same = next((t for t in self._tickets.values() if _is_same(t, ticket)), None)
                if same is None:
                    self._tickets[ticket.ticket_id] = (
                        ticket  # from now on others with the key wait for it
                    )
            if same is not None:
                if _request(same) != _request(ticket):
                    raise other_request()
                return same
        try:
            told = self._at_once(ticket, reuse)
        except BaseException:
            self._forget(ticket, unsent=False)  # the key is not ours to give back
            raise
        if told is not None:
            self._forget(ticket, unsent=False)
            ticket.future.set_result(told)
            return ticket
        return self._queued(ticket, lambda: self._asked(ticket, reuse, heard), heard)

    def explain(self, user: User, question: Question, *, ranges: bool = False) -> Ticket:
        """Explain; the ticket's result is an `Explanation`. Spends nothing."""
        allow(user, "explain")
        _check_text(question)
        chosen = question.arguments()
        chosen.pop("max_error")

        def explained(opened: Opened) -> Explanation:
            return opened.connection.explain(question.text, ranges=ranges, **chosen)

        return self.do(user, explained)

    def release_stream(self, user: User, name: str, *, until: object = None) -> Ticket:
        """Release the steps of a stream that are complete; the ticket's result is a `Series`.

        Only the owner knows up to where all rows are there, so only the owner may say so with `until`.
        """
        allow(user, "ask" if until is None else "say what is complete")

        def released(opened: Opened) -> Series:
            analyst = share_name(opened.connection.policy, user)
            series = opened.connection.stream(name, until=until, analyst=analyst)
            self._anchored.move(opened.connection.ledger)
            return series

        return self.do(user, released)

    def do(self, user: User, work: Callable[[Opened], Any]) -> Ticket:
        """Let something that asks nothing by itself wait for its turn, like a question."""
        ticket = Ticket(user, None, Interrupt())

        def done() -> Any:
            with self._limited(ticket), self._openings.taken() as opened:
                self._anchored.check(opened.connection.ledger)
                return work(opened)

        return self._queued(ticket, lambda: self._guarded(ticket, done), lambda kind, fields: None)

    def running(self, user: User) -> list[Ticket]:
        """Give the questions that wait or run: the user's own, or all for who may see all."""
        with self._lock:
            tickets = list(self._tickets.values())
        return [t for t in tickets if t.user == user or may(user, "see all")]

    def cancel(self, user: User, ticket_id: str) -> None:
        """End a question; if a statement was sent, its charge stays."""
        with self._lock:
            ticket = self._tickets.get(ticket_id)
        if ticket is None or not (ticket.user == user or may(user, "cancel all")):
            raise UsageError("USE-001", "there is no such question, or it has ended")
        ticket.interrupt.stop()
        ticket.future.cancel()  # one that waits ends here

    @contextmanager
    def opened(self, user: User) -> Iterator[Connection]:
        """Give the connection for what only looks at public facts or at the books."""
        try:
            with self._openings.taken() as opened:
                yield opened.connection
        except SecantError as error:
            raise _told(error, user) from None

    def ready(self) -> bool:
        """Say whether questions can be answered now: policy, data, ledger and anchor are as they should be."""
        try:
            with self._openings.taken() as opened:
                self._anchored.check(opened.connection.ledger)
        except SecantError as error:
            _log.warning("not ready: %s %s", error.code, error.message)
            return False
        return True

    def loads(self) -> dict[str, float]:
        """Give how many questions wait and run."""
        waiting, running = self._queue.sizes()
        return {"secant_questions_waiting": waiting, "secant_questions_running": running}

    def stop_taking(self) -> None:
        """Refuse what waits and what comes; what runs goes on."""
        self._queue.close()

    def close(self) -> None:
        """Refuse what waits, let what runs end or stop it, settle or keep every charge, and let go of everything."""
        self.stop_taking()
        if not self._queue.join(self.settings.drain_seconds):
            with self._lock:
                tickets = list(self._tickets.values())
            for ticket in tickets:
                ticket.interrupt.stop()
            self._queue.join(None)
        self._openings.close()
        self.users.store.close()

    # ── the way of a question ────────────────────────────────────────────────────────────────────

    def _queued(self, ticket: Ticket, work: Callable[[], Any], heard: Heard) -> Ticket:
        heard("waiting", {"id": ticket.ticket_id})
        with self._lock:
            self._tickets[ticket.ticket_id] = ticket
        try:
            self._queue.put(ticket.user.name, work, ticket.future)
        except BaseException:
            self._forget(ticket, unsent=True)
            raise
        ticket.future.add_done_callback(lambda future: self._over(ticket, future))
        return ticket

    def _over(self, ticket: Ticket, future: Future[Any]) -> None:
        """Let go of a ticket; one that never ran gives back its key."""
        never = future.cancelled() or isinstance(future.exception(), ServiceError)
        with suppress(SecantError):
            self._forget(ticket, unsent=never)

    def _forget(self, ticket: Ticket, *, unsent: bool) -> None:
        with self._lock:
            self._tickets.pop(ticket.ticket_id, None)
        if unsent and ticket.key:
            self.remembered.drop(ticket.user.name, ticket.key)

    def _asked(self, ticket: Ticket, reuse: bool, heard: Heard) -> Told:
        assert ticket.question is not None
        question, user = ticket.question, ticket.user

        def answered() -> Told:
            heard("running", {"id": ticket.ticket_id})
            with self._limited(ticket), self._openings.taken() as opened:
                ledger = opened.connection.ledger
                self._anchored.check(ledger)
                version = version_of(opened, self.settings.reuse.version)
                key = self._key(opened, user, question, version) if reuse else None
                told = self._reused(opened, ticket, key)
                if told is not None:
                    self._settle(ticket, told, "reused")
                    return told
                try:
                    answer = opened.connection.sql(
                        question.text,
                        analyst=share_name(opened.connection.policy, user),
                        warn=lambda caution: heard("warning", caution.to_dict()),
                        data_version=version,
                        **question.arguments(),
                    )
                    # Before anybody sees the answer: a copy of the ledger from before it is noticed from now on.
                    self._anchored.move(ledger)
                    told = Told(answer, reused=False, released_at=_now())
                    self._settle(ticket, told, "answered", stored_as=key)
                    return told
                finally:
                    self._let_others_look(key)

        return self._guarded(ticket, answered)

    def _guarded(self, ticket: Ticket, work: Callable[[], T]) -> T:
        """Run some work; note a refusal, count it, and let nothing leave that nobody expected."""
        try:
            return work()
        except SecantError as error:
            leaving = _told(error, ticket.user)
        except Exception as error:  # the last door: an unexpected text may quote data
            if debugging():
                raise
            _log.error("an unexpected %s stopped a question", type(error).__name__)
            leaving = InternalError(
                "BUG-001", f"an invariant of Secant broke ({type(error).__name__})",
                hint="report the query, without data",
            )  # fmt: skip
        self._refused(ticket, leaving)
        raise leaving

    @contextmanager
    def _limited(self, ticket: Ticket) -> Iterator[None]:
        ticket.interrupt.begin(self.settings.questions.seconds)
        with silent(), interruptible(ticket.interrupt):  # who runs the service is not who asks
            yield

    # ── answers that are there already ───────────────────────────────────────────────────────────

    def _at_once(self, ticket: Ticket, reuse: bool) -> Told | None:
        """Give without waiting what a request with its key got before, or a stored answer of the very text."""
        if ticket.key:
            told = self.remembered.begin(ticket.user.name, ticket.key, _request(ticket))
            if told is not None:
                return told
        assert ticket.question is not None
        told = self.stored(ticket.user, ticket.question) if reuse else None
        if told is not None:
            self._settle(ticket, told, "reused")
        return told

    def stored(self, user: User, question: Question) -> Told | None:
        """Give a stored answer, where the very text was planned before."""
        if self.settings.reuse.version.startswith("column"):
            return None  # somebody must look at the column first
        try:
            with self._openings.taken() as opened:
                if _known_as(question) not in opened.plans:
                    return None
                version = version_of(opened, self.settings.reuse.version)
                key = self._key(opened, user, question, version)
                told = None if key is None else self.remembered.answer(key)
                return None if told is None else self._with_budget(opened, told)
        except SecantError:
            return None  # what is wrong is said where the question runs

    def _reused(self, opened: Opened, ticket: Ticket, key: str | None) -> Told | None:
        """Give a stored answer; wait for one that somebody else is making right now."""
        while key is not None:
            told = self.remembered.answer(key)
            if told is not None:
                return self._with_budget(opened, told)
            with self._lock:
                made = self._asked_now.get(key)
                if made is None:
                    self._asked_now[key] = threading.Event()
                    return None
            ticket.interrupt.wait(made, None)
            ticket.interrupt.check()
        return None

    def _let_others_look(self, key: str | None) -> None:
        if key is not None:
            with self._lock:
                event = self._asked_now.pop(key, None)
            if event is not None:
                event.set()

    def _with_budget(self, opened: Opened, told: Told) -> Told:
        """Show what is left now beside an answer of before."""
        left = opened.connection.budget.of(told.answer.budget)
        return replace(told, answer=replace(told.answer, budget=left), reused=True)

    def _key(
        self, opened: Opened, user: User, question: Question, version: str | None
    ) -> str | None:
        """Name a question by all that its answer depends on; None where nothing tells the version of the data."""
        if version is None:
            return None
        whose = user.name if self.settings.reuse.among == "user" else "*"
        plan = _planned(opened, question)
        software = str(secant.__version__)
        return _digest([software, plan, opened.policy_digest, version, whose, *_options(question)])

    # ── what is noted ────────────────────────────────────────────────────────────────────────────

    def _settle(
        self, ticket: Ticket, told: Told, outcome: str, *, stored_as: str | None = None
    ) -> None:
        """Make durable what was answered: for history, for reuse, and for a request that comes again."""
        assert ticket.question is not None
        self.metrics.count("secant_questions_total", "outcome", outcome)
        self.metrics.took(time.time() - ticket.begun)
        try:
            self.remembered.keep(
                ticket.user.name, _noted(ticket.question, told), told,
                outcome=outcome, ticket_id=ticket.ticket_id, key=ticket.key, stored_as=stored_as,
            )  # fmt: skip
        except (
            SecantError
        ) as error:  # the answer is paid for: it leaves also if the store cannot be written
            _log.error("an answer could not be stored: %s %s", error.code, error.message)

    def _refused(self, ticket: Ticket, error: SecantError) -> None:
        outcome = {"REF": "refused", "BUD": "refused", "AUT": "refused"}.get(error.family, "failed")
        outcome = "canceled" if error.code == "BAK-006" else outcome
        self.metrics.count("secant_questions_total", "outcome", outcome)
        self.metrics.count("secant_refusals_total", "code", error.code)
        with suppress(SecantError):
            if ticket.question is not None:
                self.remembered.fail(
                    ticket.user.name, _noted(ticket.question, None), error,
                    outcome=outcome, ticket_id=ticket.ticket_id, key=ticket.key,
                )  # fmt: skip
            self.users.note("question " + outcome, ticket.user.name, error.code)


def share_name(policy: Policy, user: User) -> str:
    """Give the name under which the policy limits a user: in another case of letters it is the same person."""
    named = {name for p in policy.protections for name in p.analysts}
    spelled = sorted(name for name in named if name.casefold() == user.name.casefold())
    if len(spelled) > 1:
        raise PolicyError(
            "POL-002",
            "the policy spells the analyst of a share in two ways",
            details=tuple(spelled),
            hint="spell the name alike in all protections",
        )
    return spelled[0] if spelled else user.name


def _check_text(question: Question) -> None:
    if not isinstance(question.text, str) or len(question.text) > LONGEST_TEXT:
        raise ServiceError("SRV-004", f"a question has up to {LONGEST_TEXT} characters")
    if "\0" in question.text:
        raise ServiceError("SRV-004", "a question holds no zero bytes")


def _planned(opened: Opened, question: Question) -> str:
    """Give the digest of the normalized plan, so that spaces and comments make no other question."""
    asked = _known_as(question)
    known = opened.plans.get(asked)
    if known is None:
        given, catalog = question.parameters or None, opened.connection.catalog
        with one_question(question.text), limited_work():
            text = canonical(normalize(from_sql(question.text, catalog, parameters=given)))
        known = _digest([text])
        if len(opened.plans) >= _MOST_PLANS:
            opened.plans.clear()
        opened.plans[asked] = known
    return known


def _is_same(one: Ticket, other: Ticket) -> bool:
    return (one.user.name, one.key) == (other.user.name, other.key)


def _request(ticket: Ticket) -> str:
    """Name what a request asks for, to tell it from another under the same key."""
    assert ticket.question is not None
    return _digest([ticket.question.text, _values(ticket.question), *_options(ticket.question)])


def _known_as(question: Question) -> str:
    return _digest([question.text, _values(question)])


def _values(question: Question) -> str:
    return repr([(type(value).__name__, value) for value in question.parameters])


def _options(question: Question) -> list[str | None]:
    values = (getattr(question, name) for name in _CHOICES)
    return [None if value is None else str(value) for value in values]


def _digest(parts: list[str | None]) -> str:
    return hashlib.sha256(json.dumps(parts).encode("utf-8", "surrogatepass")).hexdigest()


def _noted(question: Question, told: Told | None) -> dict[str, Any]:
    """Give what history keeps of a question: its text and its price, never its answer."""
    chosen = dict(zip(_CHOICES, _options(question), strict=True))
    asked = {name: value for name, value in chosen.items() if value is not None}
    paid = [] if told is None or told.reused else told.answer.guarantee
    return {
        "text": question.text,
        "asked": asked,
        "charged": [
            {name: p.get(name) for name in ("protection", "epsilon", "delta")} for p in paid
        ],
        "release_id": None if told is None else told.answer.release_id,
    }


def _told(error: SecantError, user: User) -> SecantError:
    """Give an error as the user may see it: where files are is for the owner."""
    if error.code in ("POL-001", "POL-002", "POL-005", "BAK-001") and not may(user, "change users"):
        _log.error("questions cannot be answered: %s %s", error.code, error.message)
        return ServiceError(
            "SRV-001",
            "the data or their policy cannot be opened now",
            hint=f"tell the owner: {error.code} in the log of the service; nothing was charged",
        )
    return error


def _now() -> datetime:
    return datetime.now(UTC)
