"""The views of the schema `secant`, for people who only have SQL: `secant.budget` and `secant.history`.

In: the service, a user. Out: SQL that makes the views in the shadow, and the rows that a session's views show. The port
puts those rows into a setting of the session before a statement that names a view is run; views read that setting, so
that PostgreSQL filters, sorts and encodes them. A user who writes the setting deceives only that session.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from typing import Any

from secant.service.asking import Service
from secant.service.users import User
from secant.service.views import budget_view, history_view
from secant.sql.lexer import Token

SCHEMA = "secant"
LATEST = 200
"""Questions that `secant.history` shows."""
LONGEST = 2000
"""Characters that it shows of each text."""

# View -> its columns with their types.
_VIEWS: dict[str, tuple[tuple[str, str], ...]] = {
    "budget": (
        ("protection", "text"), ("analyst", "text"), ("epsilon", "float8"), ("delta", "float8"),
        ("spent_epsilon", "float8"), ("spent_delta", "float8"),
        ("remaining_epsilon", "float8"), ("remaining_delta", "float8"),
    ),
    "history": (
        ("id", "text"), ("asked_at", "timestamptz"), ("username", "text"), ("outcome", "text"),
        ("query", "text"), ("protection", "text"), ("epsilon", "float8"), ("delta", "float8"),
    ),
}  # fmt: skip
SETTINGS = tuple(f"secant_own.{view}" for view in _VIEWS)
"""One for each view, in order."""


def views_text(schemas: Collection[str]) -> list[str]:
    """Write the statements that make the views; none where the source itself has a schema of that name."""
    if SCHEMA in schemas:
        return []
    parts = [
        f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE",
        f"CREATE SCHEMA {SCHEMA}",
        f"GRANT USAGE ON SCHEMA {SCHEMA} TO PUBLIC",
    ]
    for (view, columns), setting in zip(_VIEWS.items(), SETTINGS, strict=True):
        typed = ", ".join(f"{name} {kind}" for name, kind in columns)
        # A setting that was never written is an error, not a view without rows.
        rows = f"json_to_recordset(current_setting('{setting}')::json) AS r({typed})"
        parts.append(f"CREATE VIEW {SCHEMA}.{view} AS SELECT * FROM {rows}")
        parts.append(f"GRANT SELECT ON {SCHEMA}.{view} TO PUBLIC")
    return parts


def names_view(tokens: Sequence[Token]) -> bool:
    """Say whether a statement may read one of the views."""
    return any(
        one.name.lower() == SCHEMA and dot.text == "." and two.name.lower() in _VIEWS
        for one, dot, two in zip(tokens, tokens[1:], tokens[2:], strict=False)
    )


def rows_of(service: Service, user: User) -> tuple[str, ...]:
    """Give what each view shows to a user, as JSON, in the order of `SETTINGS`."""
    questions, _ = history_view(service, user, limit=LATEST)
    shown = budget_rows(budget_view(service, user)), history_rows(questions)
    return tuple(json.dumps(rows) for rows in shown)


def budget_rows(entries: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Give a row for each protection, and one for each analyst's share that the user may see."""
    rows = []
    for entry in entries:
        shares = {"your share": entry["share"]} if entry["share"] else {}
        for analyst, account in {None: entry, **shares, **(entry["shares"] or {})}.items():
            row = {"protection": entry["protection"], "analyst": analyst}
            for prefix, part in (("", "budget"), ("spent_", "spent"), ("remaining_", "remaining")):
                row |= {f"{prefix}{kind}": account[part][kind] for kind in ("epsilon", "delta")}
            rows.append(row)
    return rows


def history_rows(questions: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Give a row for each question and protection that it was charged to, newest first."""
    rows = []
    for question in questions:
        head = {
            "id": question["id"],
            "asked_at": question["time"],
            "username": question["user"],
            "outcome": question["outcome"],
            "query": str(question.get("text") or "")[:LONGEST].replace("\0", ""),
        }
        charged = question.get("charged") or [{}]
        keys = ("protection", "epsilon", "delta")
        rows += [{**head, **{key: entry.get(key) for key in keys}} for entry in charged]
    return rows
