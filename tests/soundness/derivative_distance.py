"""How far apart are two databases under an owner's norm? A second reading of the policy, for tests only.

In: the text of norms, as the policy writes them, and two databases with the same public columns. Out: their
distance as a float. Nothing of `secant.policy.norms` is used: the parser and the lengths are written anew.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from secant.policy.policy import Protection

Row = Mapping[str, Any]
Database = Mapping[str, Sequence[Row]]
Length = Callable[[Row, Row], float]
_TOKEN = re.compile(
    r"\s*([A-Za-z_][A-Za-z_0-9]*(?:\.\d+)?(?=\s*\()|[A-Za-z_]\w*|\d[\d.eE+-]*|[(),*])"
)


def as_float(value: Any) -> float:
    """Give the place of a value on the line; a date is its day, a moment its day and the part of it that has gone."""
    if isinstance(value, datetime.datetime):
        return value.toordinal() + (
            value - datetime.datetime.combine(value, datetime.time())
        ) / datetime.timedelta(1)
    return float(value.toordinal()) if isinstance(value, datetime.date) else float(value)


def lp(power: float, parts: Sequence[float]) -> float:
    """Give the length of a vector of lengths."""
    if not parts:
        return 0.0
    top = max(parts)
    if math.isinf(power) or top == 0:
        return top
    return top * math.fsum((p / top) ** power for p in parts) ** (1 / power)


def power_of(word: str) -> float:
    """Read l1, l1.5, linf."""
    return float(word[1:].lower().replace("inf", "Infinity"))


def row_length(text: str) -> tuple[Length, dict[str, str]]:
    """Give how far one row moves, and the columns it names, with what their moves are measured in: x, ln or sqrt."""
    tokens = _TOKEN.findall(text)
    assert "".join(tokens) == re.sub(r"\s", "", text), text
    named: dict[str, str] = {}
    place = 0

    def take() -> str:
        nonlocal place
        place += 1
        return tokens[place - 1]

    def one() -> Length:
        word = take()
        if word[0].isdigit():
            assert take() == "*"
            factor, inner = float(word), one()
            return lambda a, b: factor * inner(a, b)
        if place < len(tokens) and tokens[place] == "(":
            take()
            if word.lower() in ("ln", "sqrt"):
                column, measure = take().lower(), word.lower()
                named[column] = measure
                assert take() == ")"
                return lambda a, b: _moved(a[column], b[column], measure)
            parts = [one()]
            while take() == ",":
                parts.append(one())
            power = power_of(word)
            return lambda a, b: lp(power, [part(a, b) for part in parts])
        column = word.lower()
        named[column] = "x"
        return lambda a, b: _moved(a[column], b[column], "x")

    found = one()
    assert place == len(tokens), text
    return found, named


def _moved(a: Any, b: Any, measure: str) -> float:
    if a is b or a == b:
        return 0.0
    assert a is not None, "which cells are empty is public"
    assert b is not None, "which cells are empty is public"
    x, y = as_float(a), as_float(b)
    if measure == "sqrt":  # as a quotient, which near values do not cancel
        return abs(x - y) / (math.sqrt(x) + math.sqrt(y))
    return abs(math.log(x / y)) if measure == "ln" else abs(x - y)


def protected_columns(protection: Protection) -> dict[str, dict[str, str]]:
    """Give for each protected table its protected columns, with what their moves are measured in."""
    return {table: row_length(text)[1] for table, text in protection.distance.items()}


def distance_of(protection: Protection) -> Callable[[Database, Database], float]:
    """Give the distance between databases under a protection of kind `cells`."""
    lengths = {table: row_length(text)[0] for table, text in protection.distance.items()}
    rows = {t: power_of(protection.row_norms.get(t, "l1")) for t in lengths}
    over_tables = power_of(protection.table_norm)

    def distance(before: Database, after: Database) -> float:
        parts = []
        for table, length in lengths.items():
            if table not in before:
                continue
            a, b = before[table], after[table]
            assert len(a) == len(b), "rows stay"
            if a is b:
                continue
            moved = [length(x, y) for x, y in zip(a, b, strict=True) if x is not y]
            parts.append(lp(rows[table], moved))
        return lp(over_tables, parts)

    return distance


# ── duals ────────────────────────────────────────────────────────────────────────────────────────


def _other(power: float) -> float:
    """Give q with 1/p + 1/q = 1."""
    if math.isinf(power):
        return 1.0
    return math.inf if power == 1 else power / (power - 1)


def row_dual(text: str) -> Callable[[Mapping[str, float]], float]:
    """Give the dual norm of a gradient of one row; in ln and sqrt columns it is a gradient by those."""
    tokens = _TOKEN.findall(text)
    place = 0

    def take() -> str:
        nonlocal place
        place += 1
        return tokens[place - 1]

    def one() -> Callable[[Mapping[str, float]], float]:
        word = take()
        if word[0].isdigit():
            take()
            factor, inner = float(word), one()
            return lambda g: inner(g) / factor
        if place < len(tokens) and tokens[place] == "(":
            take()
            if word.lower() in ("ln", "sqrt"):
                column = take().lower()
                take()
                return lambda g: abs(g.get(column, 0.0))
            parts = [one()]
            while take() == ",":
                parts.append(one())
            power = _other(power_of(word))
            return lambda g: lp(power, [part(g) for part in parts])
        column = word.lower()
        return lambda g: abs(g.get(column, 0.0))

    return one()


def dual_of(
    protection: Protection,
) -> Callable[[Mapping[str, Sequence[Mapping[str, float]]]], float]:
    """Give the dual norm of a gradient: table -> for each row, column -> derivative."""
    duals = {table: row_dual(text) for table, text in protection.distance.items()}
    rows = {t: _other(power_of(protection.row_norms.get(t, "l1"))) for t in duals}
    over_tables = _other(power_of(protection.table_norm))

    def dual(gradient: Mapping[str, Sequence[Mapping[str, float]]]) -> float:
        return lp(
            over_tables,
            [lp(rows[t], [duals[t](row) for row in found]) for t, found in gradient.items()],
        )

    return dual
