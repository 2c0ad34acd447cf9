"""What a user may see, as plain values: budgets, history, tables, streams. For every front alike.

In: the service, a user. Out: what JSON can write. Public facts and the ledger only; an analyst sees the common budget
and what is their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

from secant.errors import UsageError
from secant.plan.functions.scalar import AGGREGATES, FUNCTIONS
from secant.policy.coverage import tables_of
from secant.policy.policy import ColumnFacts
from secant.release.answer import plain
from secant.service.asking import Service, Ticket, share_name
from secant.service.audit_log import Entry
from secant.service.remembered import PastQuestion, Reply
from secant.service.roles import allow, may
from secant.service.tokens import Token
from secant.service.users import User

MOST_HISTORY = 1000


def answer_view(result: Reply) -> dict[str, Any]:
    """Give an answer as `secant query --json` prints it, with where it comes from."""
    return {
        **result.answer.to_dict(),
        "reused": result.reused,
        "released_at": result.released_at.isoformat(),
    }


def budget_view(service: Service, user: User) -> list[dict[str, Any]]:
    """Give the budget of each protection, the user's share of it, and for who may see them all shares."""
    allow(user, "see own")
    with service.opened(user) as connection:
        ledger = connection.ledger
        analyst = share_name(connection.policy, user)
        common, own = ledger.balances(), ledger.balances(analyst=analyst)
        named: dict[str, dict[str, Any]] = {name: {} for name in common}
        if may(user, "see all"):
            for protection in connection.policy.protections:
                for name in protection.analysts:
                    share = ledger.balances(analyst=name).get(protection.name)
                    if share is not None:
                        named[protection.name][name] = share.to_dict()
    return [
        {
            "protection": name,
            **account.to_dict(),
            "statement": account.statement(),
            "share": own[name].to_dict() if name in own else None,
            "shares": named[name] if may(user, "see all") else None,
        }
        for name, account in common.items()
    ]


def history_view(
    service: Service, user: User, *, limit: int = 100, before: str | None = None
) -> tuple[list[dict[str, Any]], bool]:
    """Give a page of questions, newest first, the user's own, or all for who may see them; and whether more follow."""
    allow(user, "see own")
    if not 1 <= limit <= MOST_HISTORY:
        raise UsageError("USE-001", f"limit is between 1 and {MOST_HISTORY}")
    until = None if before is None else _time(before)
    who = None if may(user, "see all") else user.name
    page, more = service.remembered.page(who, most=limit, before=until)
    return [_question_view(question) for question in page], more


def tables_view(service: Service, user: User) -> list[dict[str, Any]]:
    """Give the tables that questions may name, with what the owner has declared of them."""
    allow(user, "see tables")
    with service.opened(user) as connection:
        policy, tables = connection.policy, connection.catalog.tables
    views = []
    for name, table in sorted(tables.items()):
        covering = [p.name for p in policy.protections if name in tables_of(policy, p)]
        public = name in policy.public and not covering
        if not covering and not public:
            continue  # nobody may read it, so nobody is told of it
        facts = policy.facts(name)
        views.append(
            {
                "table": table.name,
                "public": public,
                "protections": covering,
                "key": list(facts.key),
                "references": {c: ".".join(target) for c, target in facts.references.items()},
                "columns": [
                    {"column": column, "type": str(kind), **_facts(policy.column(name, column))}
                    for column, kind in table.columns
                ],
            }
        )
    return views


def function_names() -> list[str]:
    """Give the names of the aggregates and functions that a text may call."""
    return sorted({*AGGREGATES, *(f.name for f in FUNCTIONS.values() if f.written)})


def streams_view(service: Service, user: User) -> list[dict[str, Any]]:
    """Give the declared streams, and how far each has come."""
    allow(user, "see tables")
    with service.opened(user) as connection:
        streams = connection.policy.streams
        accounts = {s.name: connection.ledger.stream(s.name) for s in streams}
    entries = []
    for s in streams:
        account = accounts[s.name]
        entries.append(
            {
                "stream": s.name,
                "query": s.query,
                "step": str(s.step),
                "start": plain(s.start),
                "steps": s.steps,
                "shows": s.shows,
                "protection": s.protection,
                "epsilon": float(s.epsilon),
                "delta": float(s.delta),
                "paid": account is not None,
                "through": None if account is None else account.through,
            }
        )
    return entries


def running_view(tickets: list[Ticket], longest: int) -> list[dict[str, Any]]:
    """Give questions that wait or run, each with so many characters of its text."""
    return [
        {
            "id": ticket.ticket_id,
            "user": ticket.user.name,
            "since": datetime.fromtimestamp(ticket.begun, UTC).isoformat(),
            "state": "running" if ticket.future.running() else "waiting",
            "text": None if ticket.question is None else ticket.question.text[:longest],
        }
        for ticket in tickets
    ]


def audit_view(entries: list[Entry]) -> list[dict[str, Any]]:
    """Give lines of the audit log."""
    return [
        {
            "time": e.time.isoformat(),
            "kind": e.kind,
            "user": e.who,
            "about": e.about,
            "actor": e.origin.actor,
            "address": e.origin.address,
            "way": e.origin.way,
            "token": e.origin.token_id,
            "request": e.origin.request_id,
        }
        for e in entries
    ]


def token_view(token: Token) -> dict[str, Any]:
    """Give what is known of a token."""
    return {
        "id": token.token_id,
        "user": token.holder,
        "kind": token.kind,
        "note": token.note,
        "expires": token.expires.isoformat(),
        "parent": token.parent or None,
    }


def _question_view(question: PastQuestion) -> dict[str, Any]:
    return {
        "id": question.ticket_id,
        "time": question.time.isoformat(),
        "user": question.who,
        "outcome": question.outcome,
        **question.note,
    }


def _facts(facts: ColumnFacts) -> dict[str, Any]:
    """Give what the owner has said of a column; nothing of what was not said."""
    facts_shown: Mapping[str, Any] = {
        "range": None if facts.range is None else [_plain(v) for v in facts.range],
        "values": None if facts.values is None else [_plain(v) for v in facts.values],
        "step": None if facts.step is None else _plain(facts.step),
    }
    return {name: value for name, value in facts_shown.items() if value is not None}


def _plain(value: object) -> Any:
    if isinstance(value, (bool, int, float, str, Decimal, Fraction, date)) or value is None:
        return plain(value)
    return str(value)


def _time(text: str) -> float:
    try:
        moment = datetime.fromisoformat(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        raise UsageError("USE-001", "`before` is a time such as 2026-11-17T12:00:00Z") from None
