"""A question on its way: what somebody asks, the ticket that it gets, and the names by which it is told from others.

In: the arguments of a question. Out: records and digests. The same digest means the same question, and only then may
an answer be given again.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from secant.engines.watch import Interrupt
from secant.errors import ServiceError
from secant.plan.show import canonical
from secant.records import frozen
from secant.runtime.work import limited_work
from secant.service.opened import Opened
from secant.service.origin import UNKNOWN, Origin
from secant.service.remembered import Reply
from secant.service.users import User
from secant.sql.bind import bind
from secant.sql.query_context import query_context
from secant.stages.ask import Number

LONGEST_TEXT = 1_000_000
"""Characters of a question."""
_MOST_PLANS = 2000
"""Digests of plans that are kept in memory."""


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
    certain: bool = False

    def arguments(self) -> dict[str, Any]:
        """Give what `Connection.sql` takes beside the text."""
        chosen = {name: getattr(self, name) for name in _CHOICES}
        return {**chosen, "parameters": self.parameters} if self.parameters else chosen


_CHOICES = ("epsilon", "error", "max_error", "attacker", "delta", "level", "protection", "certain")
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
    origin: Origin = UNKNOWN
    ticket_id: str = field(default_factory=lambda: secrets.token_hex(8))
    begun: float = field(default_factory=time.time)
    future: Future[Any] = field(default_factory=Future)
    waiting: int = 1
    """How many clients wait for it; those that send the same key wait for the same."""
    kept: bool = False
    """Whether its answer will be there for who asks again: under its key, or for reuse."""

    def result(self, seconds: float | None = None) -> Any:
        """Wait for the answer; raise the error if there is none."""
        return self.future.result(seconds)


def check_text(question: Question) -> None:
    """Refuse a text that is too long, or that no engine could be sent."""
    if not isinstance(question.text, str) or len(question.text) > LONGEST_TEXT:
        raise ServiceError("SRV-004", f"a question has up to {LONGEST_TEXT} characters")
    if "\0" in question.text:
        raise ServiceError("SRV-004", "a question holds no zero bytes")


def planned(opened: Opened, question: Question) -> str:
    """Give the digest of the normalized plan, so that spaces and comments make no other question."""
    key = plan_key(question)
    plan = opened.plans.get(key)
    if plan is None:
        parameters, catalog = question.parameters or None, opened.connection.catalog
        with query_context(question.text), limited_work():
            text = canonical(bind(question.text, catalog, parameters))
        plan = digest_of([text])
        if len(opened.plans) >= _MOST_PLANS:
            opened.plans.clear()
        opened.plans[key] = plan
    return plan


def is_same(one: Ticket, other: Ticket) -> bool:
    """Say whether two requests carry the same key of the same user."""
    return (one.user.name, one.key) == (other.user.name, other.key)


def request_of(ticket: Ticket) -> str:
    """Name what a request asks for, to tell it from another under the same key."""
    assert ticket.question is not None
    return digest_of([ticket.question.text, _values(ticket.question), *options_of(ticket.question)])


def plan_key(question: Question) -> str:
    """Name a question by its text and parameters alone, as plans are."""
    return digest_of([question.text, _values(question)])


def _values(question: Question) -> str:
    return repr([(type(value).__name__, value) for value in question.parameters])


def options_of(question: Question) -> list[str | None]:
    """Give what was chosen beside the text, as it was written."""
    values = (getattr(question, name) for name in _CHOICES)
    return [None if value is None or value is False else str(value) for value in values]


def digest_of(parts: list[str | None]) -> str:
    """Name a list of texts."""
    return hashlib.sha256(json.dumps(parts).encode("utf-8", "surrogatepass")).hexdigest()


def noted(question: Question, result: Reply | None) -> dict[str, Any]:
    """Give what history keeps of a question: its text and its price, never its answer."""
    chosen = dict(zip(_CHOICES, options_of(question), strict=True))
    options = {name: value for name, value in chosen.items() if value is not None}
    paid = [] if result is None or result.reused else result.answer.guarantee
    return {
        "text": question.text,
        "asked": options,
        "charged": [
            {name: p.get(name) for name in ("protection", "epsilon", "delta")} for p in paid
        ],
        "release_id": None if result is None else result.answer.release_id,
    }
