"""Dates and moments for Spark: sums with intervals, parts, borders, moments as text. NULL where there is none.

In: nodes of a plan. Out: an expression that gives what DuckDB gives. Spark raises where a moment leaves 64 bits,
whatever its mode is: every sum asks first whether it stays well inside.
"""

from __future__ import annotations

from secant.engines.print.blocks import Env, Writer
from secant.engines.print.print_sql import write
from secant.engines.spark import casts
from secant.engines.spark.casts import FAR, refused
from secant.plan import nodes as n
from secant.plan.functions.text_values import FORMAT
from secant.plan.typing import type_of
from secant.schema.types import Type

_LAST_DAY = 2**31 - 2
_DAY = 86_400_000_000
_PARTS = {
    "year": "year({0})", "quarter": "quarter({0})", "month": "month({0})", "day": "day({0})", "doy": "dayofyear({0})",
    "dow": "(dayofweek({0}) - 1)", "isodow": "(weekday({0}) + 1)", "week": "weekofyear({0})",
    "isoyear": "extract(YEAROFWEEK FROM {0})", "decade": "floor(year({0}) / 10)",
    "century": "(floor((year({0}) - 1) / 100) + 1)", "hour": "hour({0})", "minute": "minute({0})",
    "second": "second({0})",
}  # fmt: skip
_SHOWN = {
    "%Y": "yyyy", "%m": "MM", "%d": "dd", "%H": "HH", "%M": "mm", "%S": "ss", "%y": "yy", "%j": "DDD", "%%": "%",
}  # fmt: skip
_SECONDS = {"hour": 3600, "minute": 60, "second": 1}


def _moment(w: Writer, scalar: n.Scalar, env: Env) -> str:
    text = write(w, scalar, env)
    return casts.moment(text) if type_of(scalar).kind == "DATE" else text


def seconds(moment: str) -> str:
    """Write the whole seconds since 1970 of a moment."""
    return f"unix_seconds(CAST({moment} AS TIMESTAMP_LTZ))"


def shifted(w: Writer, node: n.Arithmetic, env: Env) -> str:
    """Write sums and differences of dates, days, moments and written intervals."""
    sides = type_of(node.left).kind, type_of(node.right).kind
    left, right = node.left, node.right
    if sides == ("DATE", "DATE") and node.op == "-":
        return f"CAST(datediff({write(w, left, env)}, {write(w, right, env)}) AS BIGINT)"
    if sides == ("INTEGER", "DATE") and node.op == "+":
        sides, left, right = ("DATE", "INTEGER"), right, left
    if sides == ("DATE", "INTEGER"):
        date, days = write(w, left, env), write(w, right, env)
        there = f"CAST(unix_date({date}) AS BIGINT) {node.op} {days}"
        small = f"{days} BETWEEN {-(2**31)} AND {2**31 - 1}"
        inside = f"CASE WHEN {small} THEN {there} BETWEEN -{_LAST_DAY} AND {_LAST_DAY} END"
        word = "date_add" if node.op == "+" else "date_sub"
        return f"CASE WHEN {inside} THEN {word}({date}, CAST({days} AS INT)) END"
    if sides[0] == "INTERVAL" and node.op == "+":
        left, right = right, left
    if isinstance(right, n.Literal) and isinstance(right.value, tuple):
        return _shifted(w, left, node.op, right.value, env)
    raise refused("interval that is computed")


def _shifted(w: Writer, start: n.Scalar, op: str, interval: tuple[int, int, int], env: Env) -> str:
    months, days, micros = interval if op == "+" else tuple(-x for x in interval)
    days_moved = abs(months) * 31 + abs(days) + abs(micros) // _DAY + 1
    if days_moved > FAR // 10 or abs(micros) > 2**62:
        raise refused("interval of thousands of years")
    moment = _moment(w, start, env)
    parts = [(months, "MONTH"), (days, "DAY")]
    whole, remainder = divmod(abs(micros), 1_000_000)
    value = moment
    for amount, unit in parts:
        if amount:
            value = f"({value} {'+' if amount > 0 else '-'} INTERVAL '{abs(amount)}' {unit})"
    if micros:
        value = f"({value} {'+' if micros > 0 else '-'} INTERVAL '{whole}.{remainder:06}' SECOND)"
    day = f"unix_date(CAST({moment} AS DATE))"
    return f"CASE WHEN {day} BETWEEN -{FAR - days_moved} AND {FAR - days_moved} THEN {value} END"


def extract(part: str, moment: str, kind: Type) -> str:
    """Write a part of a date or a moment."""
    if part == "epoch":
        exact = casts.moment(moment) if kind.kind == "DATE" else moment
        micros = f"unix_micros(CAST({exact} AS TIMESTAMP_LTZ))"
        return f"(CAST({micros} AS DOUBLE) / 1000000D)"
    if kind.kind == "DATE" and part in _SECONDS:
        return f"CASE WHEN {moment} IS NOT NULL THEN CAST(0 AS BIGINT) END"
    return f"CAST({_PARTS[part].format(moment)} AS BIGINT)"


def date_trunc(w: Writer, node: n.Call, env: Env) -> str:
    """Give the start of a part of a date. Spark computes it on moments with a zone, which is UTC."""
    part = node.arguments[0]
    assert isinstance(part, n.Literal)
    moment = _moment(w, node.arguments[1], env)
    day = f"unix_date(CAST({moment} AS DATE))"
    start = f"CAST(date_trunc('{part.value}', CAST({moment} AS TIMESTAMP_LTZ)) AS TIMESTAMP_NTZ)"
    return f"CASE WHEN {day} BETWEEN -{FAR - 400} AND {FAR} THEN {start} END"


def date_diff(w: Writer, node: n.Call, env: Env) -> str:
    """Count the borders between two moments."""
    part = node.arguments[0]
    assert isinstance(part, n.Literal)
    start, end = (write(w, a, env) for a in node.arguments[1:])
    if part.value in _SECONDS:
        length = _SECONDS[str(part.value)]
        clocks = [seconds(_moment(w, a, env)) for a in node.arguments[1:]]
        first, last = (f"(({x} - pmod({x}, {length})) div {length})" for x in clocks)
        return f"({last} - {first})"
    if part.value in ("day", "week"):
        days = f"CAST(datediff({end}, {start}) AS BIGINT)"
        return days if part.value == "day" else f"({days} div 7)"
    first, last = (_borders(str(part.value), moment) for moment in (start, end))
    return f"CAST({last} - {first} AS BIGINT)"


def _borders(part: str, moment: str) -> str:
    """Count the years, quarters or months before a moment."""
    if part == "year":
        return f"year({moment})"
    count, name = (4, "quarter") if part == "quarter" else (12, "month")
    return f"(year({moment}) * {count} + {name}({moment}))"


def full_years(w: Writer, node: n.Call, env: Env) -> str:
    """Count the birthdays between two moments; backwards they count negative."""
    start, end = (_moment(w, a, env) for a in node.arguments)

    def passed(first: str, last: str) -> str:
        # The same day of the year is compared as text: months, days and the time of day have fixed widths.
        clock = "date_format({0}, 'MM-dd HH:mm:ss.SSSSSS')"
        early = f"CASE WHEN {clock.format(last)} < {clock.format(first)} THEN 1 ELSE 0 END"
        return f"(year({last}) - year({first}) - {early})"

    forth, back = passed(start, end), passed(end, start)
    return f"CAST(CASE WHEN {end} >= {start} THEN {forth} WHEN {end} < {start} THEN -{back} END AS BIGINT)"


def strftime(w: Writer, node: n.Call, env: Env) -> str:
    """Give a moment as text."""
    moment, pattern = node.arguments
    assert isinstance(pattern, n.Literal)
    pieces = []
    for part in FORMAT.findall(str(pattern.value)):
        shown = _SHOWN.get(part)
        pieces.append(shown if shown and part != "%%" else f"''{'%' if part == '%%' else part}''")
        if part == "'":
            pieces[-1] = "''''"
    shape = "".join(pieces)
    text = _moment(w, moment, env)
    inside = f"year({text}) BETWEEN 1 AND 9999"
    return f"CASE WHEN {inside} THEN date_format({text}, '{shape}') END"
