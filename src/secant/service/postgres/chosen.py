"""What a client chooses by `SET secant.…`, and the question that it then asks.

In: settings as the shadow has them. Out: a `Question`. The shadow keeps them, with transactions and RESET as PostgreSQL
has them; whether they can be meant is for the desk to say.
"""

from __future__ import annotations

from secant.service.asking import Question

SETTINGS = ("epsilon", "error", "max_error", "delta", "level", "protection", "notice")
ASK_SETTINGS = "SELECT " + ", ".join(f"current_setting('secant.{name}', true)" for name in SETTINGS)


def question_of(text: str, values: tuple[object, ...], chosen: dict[str, str | None]) -> Question:
    """Give the question of a text, with what was chosen for it."""
    own = {n: v for n, v in chosen.items() if v is not None and n != "notice"}
    return Question(text, parameters=values, **own)
