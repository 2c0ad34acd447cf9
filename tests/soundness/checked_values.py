"""What the checkers of this folder share: a measure in whole steps, a database on one line, a violation made small."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from typing import Any, TypeVar

from secant.release import measured

Found = TypeVar("Found")
Part = TypeVar("Part")


def in_steps(value: Any, measure: Any) -> Fraction:
    """Read a measure in steps; a real one is summed in steps already."""
    if value is None:
        return Fraction(0)
    if measure.preprocessed is not None:
        return Fraction(measured.in_steps(value, measure))
    return Fraction(value) if measure.type.kind == "DOUBLE" else Fraction(value) / measure.step


def shown(database: Mapping[str, Iterable[Any]]) -> str:
    """Write a database on one line, rows as tuples."""
    tables = {
        name: [tuple(row.values()) if isinstance(row, Mapping) else row for row in rows]
        for name, rows in database.items()
    }
    return "; ".join(f"{name}: {rows}" for name, rows in tables.items() if rows) or "nothing"


def made_small(
    found: Found,
    parts: Callable[[Found], Iterable[Part]],
    without: Callable[[Found, Part], Found | None],
) -> Found:
    """Take parts away from what refutes a claim, one after the other, as long as the rest refutes one."""
    while True:
        smaller = (without(found, part) for part in list(parts(found)))
        rest = next((each for each in smaller if each is not None), None)
        if rest is None:
            return found
        found = rest
