"""The service for one agent, over the Model Context Protocol: tables, price, ask, budget, streams.

In: the service, the name whose share is spent, a cap for the conversation. Out: a server of tools. An agent reads a
refusal like a person does: the code, what is wrong, what to change. Never here: true answers, and anything beyond what
an analyst may see.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from secant.errors import BudgetError, SecantError, UsageError
from secant.noise.events import exact_epsilon
from secant.numeric.parameters import Number
from secant.service import views
from secant.service.asking import Question, Service
from secant.service.users import User

INSTRUCTIONS = """\
Answers about private data, with noise. Every answer spends epsilon from a budget that does not come back: look at
`tables`, ask for the `price` of a question (free), then `ask`. Write one SELECT with aggregates (count, sum, avg,
median, ...), grouped if needed; single rows are refused. Between `low` and `high` lies the true value, at the level
that `error` names: say so when you report a number. The same question again costs nothing. A refusal says what to
change."""


class Conversation:
    """What one agent may do, and what it has spent."""

    def __init__(self, service: Service, name: str, cap: Number) -> None:
        self._service = service
        self._user = User(name, "analyst")
        self._cap = exact_epsilon(cap, what="the cap of a conversation")
        self._spent: dict[str, Fraction] = {}
        self._lock = threading.Lock()

    def tables(self) -> list[dict[str, Any]]:
        """Give the tables that questions may name, with columns, types and declared facts."""
        return views.tables_view(self._service, self._user)

    def price(self, sql: str, epsilon: float | None, error: str | None) -> dict[str, Any]:
        """Say what a question would cost and how exact it would be."""
        explained = self._service.explain(self._user, _question(sql, epsilon, error)).result()
        record = explained.to_dict()
        return {
            "guarantee": record["guarantee"],
            "noise": [line for release in record["releases"] for line in release["noise"]],
            "warnings": [caution.to_dict() for caution in explained.warnings],
            "left_in_this_conversation": self._left(),
        }

    def ask(self, sql: str, epsilon: float | None, error: str | None) -> dict[str, Any]:
        """Answer a question, unless it would go beyond the cap. One at a time, so that none slips past it."""
        question = _question(sql, epsilon, error)
        with self._lock:
            stored_answer = self._service.stored(self._user, question)
            if stored_answer is None:
                for part in self.price(sql, epsilon, error)["guarantee"]:
                    self._check(part["protection"], part["epsilon"])
                stored_answer = self._service.ask(self._user, question).result()
                for part in [] if stored_answer.reused else stored_answer.answer.guarantee:
                    name = part["protection"]
                    self._spent[name] = self._spent.get(name, Fraction(0)) + _exact(part["epsilon"])
        return {**views.answer_view(stored_answer), "left_in_this_conversation": self._left()}

    def _check(self, protection: str, epsilon: float) -> None:
        """Refuse what would go beyond the cap."""
        if self._spent.get(protection, Fraction(0)) + _exact(epsilon) > self._cap:
            raise BudgetError(
                "BUD-001",
                f"the question costs epsilon {epsilon:g} of {protection}, and this conversation may spend "
                f"{float(self._cap):g}",
                hint="ask for less, or more coarsely; whoever started the conversation can raise the cap",
            )

    def budget(self) -> dict[str, Any]:
        """Say what is left: of each protection, of the share, and of this conversation."""
        return {
            "protections": views.budget_view(self._service, self._user),
            "left_in_this_conversation": self._left(),
        }

    def streams(self) -> list[dict[str, Any]]:
        """Give the declared streams, and how far each has come."""
        return views.streams_view(self._service, self._user)

    def stream(self, name: str) -> dict[str, Any]:
        """Give the series of a stream that is paid for; to begin one is for a person to decide."""
        paid = {one["stream"]: one["paid"] for one in self.streams()}
        if not paid.get(name, True):
            raise BudgetError(
                "BUD-001",
                "nobody has begun this stream, and an agent does not",
                hint=f"a person begins and pays it: secant stream {name}",
            )
        series: dict[str, Any] = self._service.release_stream(self._user, name).result().to_dict()
        return series

    def _left(self) -> float:
        return float(self._cap - max(self._spent.values(), default=Fraction(0)))


def _question(sql: str, epsilon: float | None, error: str | None) -> Question:
    return Question(sql, epsilon=epsilon, error=error)


def _exact(epsilon: float) -> Fraction:
    """Give a price as it is written: prices are rounded up to decimals before they are shown."""
    return Fraction(repr(epsilon))


def build(service: Service, name: str, cap: Number) -> Any:
    """Give the server of one conversation."""
    try:
        from mcp.server import MCPServer
        from mcp.server.mcpserver.exceptions import ToolError
    except ImportError:
        raise UsageError(
            "USE-006", "secant mcp needs the package mcp", hint="install secant[agents]"
        ) from None

    talk = Conversation(service, name, cap)
    server = MCPServer("secant", instructions=INSTRUCTIONS, log_level="CRITICAL")

    def told(work: Callable[[], Any]) -> Any:
        """Let a refusal leave as its whole text, and nothing else leave."""
        try:
            return work()
        except SecantError as error:
            raise ToolError(str(error)) from None

    def tables() -> list[dict[str, Any]]:
        """List tables and columns, their types, declared ranges and values, and which are public. Free."""
        view: list[dict[str, Any]] = told(talk.tables)
        return view

    def price(sql: str, epsilon: float | None = None, error: str | None = None) -> dict[str, Any]:
        """Say what a question costs and how exact its answer will be. Free.

        Give `epsilon` (0.1 is little, 1 is much), or `error`, such as "50" or "5%", to find the least epsilon for it.
        """
        view: dict[str, Any] = told(lambda: talk.price(sql, epsilon, error))
        return view

    def ask(sql: str, epsilon: float | None = None, error: str | None = None) -> dict[str, Any]:
        """Answer a question and spend its price; the same question again is free."""
        answer: dict[str, Any] = told(lambda: talk.ask(sql, epsilon, error))
        return answer

    def budget() -> dict[str, Any]:
        """Say what is left to spend. Free."""
        view: dict[str, Any] = told(talk.budget)
        return view

    def streams() -> list[dict[str, Any]]:
        """List declared streams. Free."""
        view: list[dict[str, Any]] = told(talk.streams)
        return view

    def stream(name: str) -> dict[str, Any]:
        """Give the series of a stream that has begun, with its ends. Free."""
        view: dict[str, Any] = told(lambda: talk.stream(name))
        return view

    for tool in (tables, price, ask, budget, streams, stream):
        server.tool()(tool)
    return server
