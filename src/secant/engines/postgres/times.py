"""Functions of dates and moments for PostgreSQL: borders between moments, moments as text.

In: a call of a plan. Out: an expression that gives what DuckDB gives, and NULL for what never ends.
"""

from __future__ import annotations

from secant.engines.print.blocks import Env, Writer
from secant.engines.print.print_sql import write
from secant.plan import nodes as n
from secant.plan.functions.text_values import FORMAT, POSTGRES_PARTS
from secant.plan.typing import type_of


def date_trunc(w: Writer, node: n.Call, env: Env) -> str:
    """Give the start of a part of a date."""
    part, moment = (write(w, a, env) for a in node.arguments)
    return f"date_trunc({part}, CAST({moment} AS timestamp))"


def date_diff(w: Writer, node: n.Call, env: Env) -> str:
    """Count the borders between two moments."""
    part = node.arguments[0]
    assert isinstance(part, n.Literal)
    start, end = (write(w, a, env) for a in node.arguments[1:])
    endless = [
        f"isfinite({text})"
        for text, a in ((start, node.arguments[1]), (end, node.arguments[2]))
        if not w.reach.of(a).bounded
    ]
    finite = " AND ".join(endless)
    if part.value in _SECONDS:
        borders = [
            f"floor(extract(epoch FROM {x}) / {_SECONDS[str(part.value)]})" for x in (end, start)
        ]
        value = f"CAST({borders[0]} - {borders[1]} AS bigint)"
        return f"CASE WHEN {finite} THEN {value} END" if endless else value
    if part.value in ("day", "week"):
        days = (
            text if type_of(a).kind == "DATE" else f"CAST({text} AS date)"
            for text, a in ((end, node.arguments[2]), (start, node.arguments[1]))
        )
        value = f"CAST({' - '.join(days)} AS bigint)"
        if part.value == "week":
            value = f"({value} / 7)"
        return f"CASE WHEN {finite} THEN {value} END" if endless else value
    finite = finite or "TRUE"
    borders = [_borders(str(part.value), moment) for moment in (end, start)]
    return f"CASE WHEN {finite} THEN CAST({borders[0]} - {borders[1]} AS bigint) END"


_SECONDS = {"hour": 3600, "minute": 60, "second": 1}


def strftime(w: Writer, node: n.Call, env: Env) -> str:
    """Give a moment as text."""
    moment, pattern = node.arguments
    assert isinstance(pattern, n.Literal)
    parts = [POSTGRES_PARTS.get(p, f'"{p}"') for p in FORMAT.findall(str(pattern.value))]
    shape = "".join(parts).replace("'", "''")
    text = write(w, moment, env)
    shown = f"to_char(CAST({text} AS timestamp), '{shape}') COLLATE \"C\""
    return f"CASE WHEN isfinite({text}) THEN {shown} END"


def _borders(part: str, moment: str) -> str:
    """Count the years, quarters or months before a moment."""
    year = f"(extract(year FROM {moment}) + {no_year_zero(moment)})"
    if part == "year":
        return year
    months = f"({year} * 12 + extract(month FROM {moment}) - 1)"
    return months if part == "month" else f"floor({months} / 3)"


def no_year_zero(moment: str) -> str:
    """The year before 1 is -1 here and 0 in the plan."""
    return f"CASE WHEN {moment} < DATE '0001-01-01' THEN 1 ELSE 0 END"
