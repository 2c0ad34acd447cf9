"""Errors, warnings and prices as PostgreSQL's clients read them: SQLSTATE, message, detail, hint, place.

In: our errors and answers. Out: messages of the protocol. Only what our own errors say leaves here.
"""

from __future__ import annotations

from typing import Any

from secant.accuracy.warnings import Caution
from secant.display.numbers import error_text, remaining_text, spent_text
from secant.display.parts import declared_cuts, noisy_columns, percent
from secant.errors import SecantError
from secant.service.postgres.messages import fields
from secant.service.remembered import Reply

# Our code, or its family -> SQLSTATE. The first that fits counts (I8).
STATES: tuple[tuple[str, str], ...] = (
    ("SQL-001", "42601"), ("SQL-002", "42P01"), ("SQL-003", "42702"), ("SQL-004", "42804"),
    ("SQL-005", "42601"), ("SQL-006", "0A000"), ("SQL-007", "54001"), ("SQL-008", "42803"),
    ("SQL-009", "54001"),
    ("USE-006", "58000"), ("USE-011", "42P02"), ("USE", "22023"), ("REF", "42501"),
    ("BUD-001", "53400"), ("BUD", "58000"), ("POL", "F0000"), ("BAK-001", "08001"),
    ("BAK-003", "0A000"), ("BAK-005", "54000"), ("BAK-006", "57014"), ("BAK", "58000"),
    ("AUT-002", "42501"), ("AUT", "28P01"), ("SRV-001", "53300"), ("SRV", "58000"), ("BUG", "XX000"),
)  # fmt: skip


def state_of(error: SecantError) -> str:
    """Give the SQLSTATE of an error."""
    if error.code == "SQL-002" and "column" in error.message:
        return "42703"
    return next((state for code, state in STATES if error.code.startswith(code)), "XX000")


def error_message(error: SecantError, *, before: int = 0, severity: str = "ERROR") -> bytes:
    """Write an error; `before` is how many characters of the statement stand before the question."""
    position = "" if error.span is None else str(before + error.span.start + 1)
    return fields(
        b"E",
        (
            ("S", severity), ("V", severity), ("C", state_of(error)),
            ("M", f"{error.message} ({error.code})"), ("D", "\n".join(error.details)),
            ("H", error.hint), ("P", position),
        ),
    )  # fmt: skip


def plain_error(state: str, text: str, hint: str = "", *, severity: str = "ERROR") -> bytes:
    """Write an error of the port itself."""
    pairs = (("S", severity), ("V", severity), ("C", state), ("M", text), ("H", hint))
    return fields(b"E", pairs)


def warning_message(caution: Caution) -> bytes:
    """Write a warning."""
    parts = (("M", f"{caution.message} ({caution.code})"), ("H", caution.hint))
    return fields(b"N", (("S", "WARNING"), ("V", "WARNING"), ("C", "01000"), *parts))


def other_name_message(called: str, name: str) -> bytes:
    """Write that the database has another name than a client calls it."""
    text = f'"{called[:63]}" is the database "{name}" here'
    hint = f'connect to "{name}": tools that list databases find no other'
    pairs = (("S", "NOTICE"), ("V", "NOTICE"), ("C", "00000"), ("M", text), ("H", hint))
    return fields(b"N", pairs)


def price_message(result: Reply) -> bytes:
    """Write what an answer cost, how far off it is, and what is left."""
    lines = [_price(entry, result) for entry in result.answer.guarantee]
    if result.reused:
        lines = [
            f"this answer was released at {result.released_at:%Y-%m-%d %H:%M} UTC: it costs nothing now"
        ]
    elif result.answer.release_id is None:
        lines = ["public data: the answer is exact and costs nothing"]
    lines += [] if not result.reused else [f"{n}: {_left(n, result)}" for n in result.answer.budget]
    parts = (("M", "; ".join(line for line in lines if line)), ("D", _errors(result)))
    return fields(b"N", (("S", "NOTICE"), ("V", "NOTICE"), ("C", "00000"), *parts))


def _price(entry: dict[str, Any], result: Reply) -> str:
    paid = f"epsilon {spent_text(entry['epsilon'])}"
    if entry["delta"]:
        paid += f", delta {spent_text(entry['delta'])}"
    left = _left(entry["protection"], result)
    return f"{entry['protection']}: {paid} spent" + (f", {left}" if left else "")


def _left(name: str, result: Reply) -> str:
    account = result.answer.budget.get(name)
    if account is None:
        return ""
    return f"epsilon {remaining_text(account.remaining_epsilon)} is left"


def _errors(result: Reply) -> str:
    """Say for each noisy column how far off its numbers are at most."""
    error = result.answer.error
    noisy = noisy_columns(error)
    errors = []
    for number, name in enumerate(result.answer.columns):
        column = [row[number] for row in error.get("values") or () if number < len(row)]
        widths = [width for width in column if width is not None]
        if number in noisy and widths:
            errors.append(f"{name} {error_text(max(widths)) if max(widths) else '±0'}")
    if not errors:
        return ""
    usual = "usually off by" if error.get("kind") == "usual" else "off by at most"
    told = f"{usual}, at {percent(error.get('level'))}: {', '.join(errors)}"
    return "; ".join(x for x in (told, declared_cuts(error)) if x)
