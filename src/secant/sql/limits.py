"""How large a query may be, and the words in which a larger one is refused.

In: nothing. Out: numbers and errors. Never here: the counting.
"""

from __future__ import annotations

from secant.errors import SqlError

MAX_CHARACTERS = 200_000
MAX_NODES = 20_000
MAX_JOINS = 100
MAX_DEPTH = 150


def too_deep() -> SqlError:
    """Give the error for a query that no stage can walk through."""
    return SqlError(
        "SQL-007",
        "the query is nested too deeply",
        hint="flatten its parentheses or subqueries",
    )


def too_large() -> SqlError:
    """Give the error for a query with more in it than is read."""
    return SqlError(
        "SQL-007",
        f"the query is too large: at most {MAX_JOINS} joins, {MAX_NODES} words, {MAX_DEPTH} levels",
        hint="split the query into smaller ones",
    )
