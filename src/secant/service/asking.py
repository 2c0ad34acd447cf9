"""The one door through which every front asks on behalf of a user who has logged in.

In: a user, a question. Out: a ticket, and in time an answer: a stored one, which costs nothing, or a new one, which is
charged to the user's share. Questions wait in a fair queue, and may be canceled. Never here: who somebody is (that is
`logins`), how a front speaks, and anything that an engine said.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, TypeVar

import secant
from secant.display.progress import silent
from secant.engine import Connection
from secant.engines.watch import Interrupt, interruptible
from secant.errors import (
    InternalError,
    PolicyError,
    SecantError,
    ServiceError,
    UsageError,
    debugging,
)
from secant.ledger.opening import ledger_place
from secant.policy.file import load_policy
from secant.policy.policy import Policy
from secant.release.report import Explanation
from secant.service.anchored import Anchored
from secant.service.logins import Logins
from secant.service.metrics import Metrics
from secant.service.opened import Opened, Openings, version_of
from secant.service.origin import Origin
from secant.service.queue import FairQueue
from secant.service.readiness import Check, Readiness
from secant.service.remembered import Remembered, Reply, other_request
from secant.service.roles import allow, may
from secant.service.settings import Settings
from secant.service.store import check_printable, check_writable, open_store
from secant.service.tickets import (
    LONGEST_TEXT,
    Heard,
    Question,
    Ticket,
    check_text,
    digest_of,
    is_same,
    noted,
    options_of,
    plan_key,
    planned,
    request_of,
)
from secant.service.users import User, Users
from secant.streams.series import Series

__all__ = ["LONGEST_TEXT", "Question", "Service", "Ticket", "share_name"]

T = TypeVar("T")
CHECK_SECONDS = 10.0
"""In which the engine must answer to be called ready."""

_log = logging.getLogger("secant.service")


class Service:
    """The service without its fronts. Close it."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        location = ledger_place(load_policy(settings.policy))
        self.users = Users(open_store(location))
        self.logins = Logins(self.users, settings.logins)
        self.metrics = Metrics()
        self.remembered = Remembered(self.users.store, settings.reuse, settings.history)
        self._anchored = Anchored(settings.anchor)
        self._openings = Openings(settings)
        self.readiness = Readiness(
            Check("source", self._check_source),
            Check("ledger", self._check_ledger),
            Check("store", lambda: check_writable(self.users.store)),
        )
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
        by: Origin | None = None,
    ) -> Ticket:
        """Ask; the ticket's result is a `Reply`. `key` makes sure that the same request is charged once at most."""
        self._allow(user, "ask")
        check_text(question)
        check_printable("an idempotency key", key, 200)
        ticket = Ticket(user, question, Interrupt(), key, by or Origin(actor=user.name))
        if key:
            with self._lock:
                same = next((t for t in self._tickets.values() if is_same(t, ticket)), None)
                if same is not None:
                    same.waiting += 1
                else:
                    self._tickets[ticket.ticket_id] = (
                        ticket  # from now on others with the key wait for it
                    )
            if same is not None:
                if request_of(same) != request_of(ticket):
                    raise other_request()
                return same
        try:
            result = self._at_once(ticket, reuse)
        except BaseException:
            self._forget(ticket, unsent=False)  # the key is not ours to give back
            raise
        if result is not None:
            self._forget(ticket, unsent=False)
            ticket.future.set_result(result)
            return ticket
        return self._queued(ticket, lambda: self._asked(ticket, reuse, heard), heard)

    def explain(
        self, user: User, question: Question, *, ranges: bool = False, by: Origin | None = None
    ) -> Ticket:
        """Explain; the ticket's result is an `Explanation`. Spends nothing."""
        self._allow(user, "explain")
        check_text(question)
        chosen = question.arguments()
        chosen.pop("max_error")

        def explained(opened: Opened) -> Explanation:
            return opened.connection.explain(question.text, ranges=ranges, **chosen)

        return self.do(user, explained, by)

    def release_stream(
        self, user: User, name: str, *, until: object = None, by: Origin | None = None
    ) -> Ticket:
        """Release the steps of a stream that are complete; the ticket's result is a `Series`.

        Only the owner knows up to where all rows are there, so only the owner may say so with `until`.
        """
        self._allow(user, "ask" if until is None else "say what is complete")

        def released(opened: Opened) -> Series:
            analyst = share_name(opened.connection.policy, user)
            series = opened.connection.stream(name, until=until, analyst=analyst)
            self._anchored.move(opened.connection.ledger)
            return series

        return self.do(user, released, by)

    def do(self, user: User, work: Callable[[Opened], Any], by: Origin | None = None) -> Ticket:
        """Let something that asks nothing by itself wait for its turn, like a question."""
        ticket = Ticket(user, None, Interrupt(), origin=by or Origin(actor=user.name))

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

    def _allow(self, user: User, what: str) -> None:
        """Raise unless a user may do something, and is still who they were when they logged in."""
        allow(user, what)
        self.users.check_still(user)

    def revoke_all(self, name: str, by: Origin) -> int:
        """End every session, token and question of a user; give how many tokens ended. What was sent stays charged."""
        ended = self.users.revoke_all(name, by=by)
        self._end_questions(name)
        return ended

    def remove_user(self, name: str, by: Origin) -> None:
        """Remove a user, and end what they are asking."""
        self.users.remove(name, by=by)
        self._end_questions(name)

    def _end_questions(self, name: str) -> None:
        with self._lock:
            tickets = list(self._tickets.values())
        for ticket in tickets:
            if ticket.user.name.casefold() == name.casefold():
                ticket.interrupt.stop()
                ticket.future.cancel()

    def cancel(self, user: User, ticket_id: str, *, by: Origin | None = None) -> None:
        """End a question; if a statement was sent, its charge stays."""
        with self._lock:
            ticket = self._tickets.get(ticket_id)
        if ticket is None or not (ticket.user == user or may(user, "cancel all")):
            raise UsageError("USE-001", "there is no such question, or it has ended")
        if ticket.user != user:
            origin = by or Origin(actor=user.name)
            self.users.audit.note("question canceled", ticket.user.name, ticket_id, origin)
        ticket.interrupt.stop()
        ticket.future.cancel()  # one that waits ends here

    def leave(self, ticket: Ticket) -> None:
        """Say that one client no longer waits for a question.

        When nobody does, it ends, and costs nothing, unless it has come to its charge. Then it goes on if its answer
        will be there for who asks again: it is paid for. An answer that nobody could get is not worth a worker.
        """
        with self._lock:
            ticket.waiting -= 1
            if ticket.waiting > 0:
                return
        if ticket.interrupt.abandon():
            ticket.future.cancel()  # one that waits for its turn ends here
        elif not ticket.kept:
            ticket.interrupt.stop()

    def reload(self) -> None:
        """Open policy and data again for the questions that come; those that run end as they began."""
        self._openings.close()

    @contextmanager
    def opened(self, user: User) -> Iterator[Connection]:
        """Give the connection for what only looks at public facts or at the books."""
        try:
            with self._openings.taken() as opened:
                yield opened.connection
        except SecantError as error:
            raise _for_user(error, user) from None

    def ready(self) -> bool:
        """Say whether questions can be answered now."""
        return self.readiness.looking().result().ready

    def _check_source(self) -> None:
        """Raise unless policy and data can be opened, and the engine answers in time."""
        interrupt = Interrupt()
        interrupt.begin(CHECK_SECONDS)
        with interruptible(interrupt), self._openings.taken() as opened:
            opened.connection.check_source()

    def _check_ledger(self) -> None:
        """Raise unless a charge could be written now, and the anchor that is kept elsewhere moved."""
        with self._openings.taken() as opened:
            ledger = opened.connection.ledger
            self._anchored.check(ledger)
            ledger.check_writable()
            self._anchored.check_writable()

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
        self.logins.close()
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

    def _asked(self, ticket: Ticket, reuse: bool, heard: Heard) -> Reply:
        assert ticket.question is not None
        question, user = ticket.question, ticket.user

        def answered() -> Reply:
            heard("running", {"id": ticket.ticket_id})
            with self._limited(ticket), self._openings.taken() as opened:
                ledger = opened.connection.ledger
                self._anchored.check(ledger)
                version = version_of(opened, self.settings.reuse.version)
                key = self._key(opened, user, question, version) if reuse else None
                ticket.kept = key is not None or bool(ticket.key)
                result = self._reused(opened, ticket, key)
                if result is not None:
                    self._settle(ticket, result, "reused")
                    return result
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
                    result = Reply(answer, reused=False, released_at=_now())
                    self._settle(ticket, result, "answered", stored_as=key)
                    return result
                finally:
                    self._let_others_look(key)

        return self._guarded(ticket, answered)

    def _guarded(self, ticket: Ticket, work: Callable[[], T]) -> T:
        """Run some work; note a refusal, count it, and let nothing leave that nobody expected."""
        try:
            return work()
        except SecantError as error:
            leaving = _for_user(error, ticket.user)
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

    def _at_once(self, ticket: Ticket, reuse: bool) -> Reply | None:
        """Give without waiting what a request with its key got before, or a stored answer of the very text."""
        if ticket.key:
            result = self.remembered.begin(ticket.user.name, ticket.key, request_of(ticket))
            if result is not None:
                return result
        assert ticket.question is not None
        result = self.stored(ticket.user, ticket.question) if reuse else None
        if result is not None:
            self._settle(ticket, result, "reused")
        return result

    def stored(self, user: User, question: Question) -> Reply | None:
        """Give a stored answer, where the very text was planned before."""
        if self.settings.reuse.version.startswith("column"):
            return None  # somebody must look at the column first
        try:
            with self._openings.taken() as opened:
                if plan_key(question) not in opened.plans:
                    return None
                version = version_of(opened, self.settings.reuse.version)
                key = self._key(opened, user, question, version)
                result = None if key is None else self.remembered.answer(key)
                return None if result is None else self._with_budget(opened, result)
        except SecantError:
            return None  # what is wrong is said where the question runs

    def _reused(self, opened: Opened, ticket: Ticket, key: str | None) -> Reply | None:
        """Give a stored answer; wait for one that somebody else is making right now."""
        while key is not None:
            result = self.remembered.answer(key)
            if result is not None:
                return self._with_budget(opened, result)
            with self._lock:
                running = self._asked_now.get(key)
                if running is None:
                    self._asked_now[key] = threading.Event()
                    return None
            ticket.interrupt.wait(running, None)
            ticket.interrupt.check()
        return None

    def _let_others_look(self, key: str | None) -> None:
        if key is not None:
            with self._lock:
                event = self._asked_now.pop(key, None)
            if event is not None:
                event.set()

    def _with_budget(self, opened: Opened, told: Reply) -> Reply:
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
        plan = planned(opened, question)
        software = str(secant.__version__)
        return digest_of(
            [software, plan, opened.policy_digest, version, whose, *options_of(question)]
        )

    # ── what is noted ────────────────────────────────────────────────────────────────────────────

    def _settle(
        self, ticket: Ticket, told: Reply, outcome: str, *, stored_as: str | None = None
    ) -> None:
        """Make durable what was answered: for history, for reuse, and for a request that comes again."""
        assert ticket.question is not None
        self.metrics.count("secant_questions_total", "outcome", outcome)
        self.metrics.took(time.time() - ticket.begun)
        try:
            self.remembered.keep(
                ticket.user.name, noted(ticket.question, told), told,
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
                    ticket.user.name, noted(ticket.question, None), error,
                    outcome=outcome, ticket_id=ticket.ticket_id, key=ticket.key,
                    charged=ticket.interrupt.charged,
                )  # fmt: skip
            name = ticket.user.name
            self.users.audit.note_limited(
                f"question {outcome}", name, error.code, ticket.origin, of=name
            )


def share_name(policy: Policy, user: User) -> str:
    """Give the name under which the policy limits a user: in another case of letters it is the same person."""
    named = {name for p in policy.protections for name in p.analysts}
    names = sorted(name for name in named if name.casefold() == user.name.casefold())
    if len(names) > 1:
        raise PolicyError(
            "POL-002",
            "the policy spells the analyst of a share in two ways",
            details=tuple(names),
            hint="spell the name alike in all protections",
        )
    return names[0] if names else user.name


def _for_user(error: SecantError, user: User) -> SecantError:
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
