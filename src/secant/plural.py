"""Numbers with what they count, for people: 1 row, 2 rows."""

from __future__ import annotations


def several(number: int, noun: str) -> str:
    """Give a number with its noun.

    >>> several(1, "row"), several(1200, "row"), several(0, "unit")
    ('1 row', '1,200 rows', '0 units')
    """
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def first(number: int, noun: str) -> str:
    """Say that only the first ones are meant.

    >>> first(1, "row"), first(20, "row")
    ('first row', 'first 20 rows')
    """
    return f"first {noun}" if number == 1 else f"first {several(number, noun)}"
