"""Functions whose writing is not simply a name and arguments: other names, other forms, patterns, parts of dates.

In: syntax. Out: scalar nodes, made of functions and operators that the plan has. Registered where `expressions` looks.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from sqlglot import exp

from secant.plan import nodes as n
from secant.plan.functions.patterns import groups, matches, portable
from secant.plan.typing import type_of
from secant.schema import types as t
from secant.sql.bind.expressions import PARTS, Collect, ScalarBinder, aggregate_named, called, rule
from secant.sql.bind.scope import Scope
from secant.sql.parse import span_of

DAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
PART_NAMES = {
    "dayofweek": "dow", "weekday": "dow", "dayofyear": "doy", "weekofyear": "week", "years": "year", "months": "month",
    "days": "day", "hours": "hour", "minutes": "minute", "seconds": "second", "yr": "year", "mon": "month",
}  # fmt: skip
"""Other names of parts of a date."""
PART_CALLS: dict[type[exp.Expression], str] = {
    exp.Hour: "hour", exp.Minute: "minute", exp.Second: "second", exp.DayOfWeek: "dow", exp.DayOfYear: "doy",
    exp.Week: "week", exp.WeekOfYear: "week", exp.DayOfWeekIso: "isodow", exp.TimeToUnix: "epoch",
    exp.DayOfMonth: "day",
}  # fmt: skip
Named = Callable[[ScalarBinder, Any, list[n.Scalar]], n.Scalar]


def text_literal(value: str) -> n.Literal:
    """Write a text."""
    return n.Literal(value, t.TEXT)


def part_of(b: ScalarBinder, tree: exp.Expression, part: str, moment: n.Scalar) -> n.Scalar:
    """Give a part of a date by any of its names."""
    name = PART_NAMES.get(part.lower(), part.lower())
    if name not in PARTS:
        raise b.refuse(
            tree,
            f"there is no part {part[:20]} of a date here",
            "parts are " + ", ".join(sorted(PARTS)),
        )
    return n.Extract(name, moment)


@rule(*PART_CALLS)
def _part_call(b: ScalarBinder, tree: Any, scope: Scope, collect: Collect) -> n.Scalar:
    return n.Extract(PART_CALLS[type(tree)], b.bind(tree.this, scope, collect))


@rule(exp.Extract)
def _extract(b: ScalarBinder, tree: Any, scope: Scope, collect: Collect) -> n.Scalar:
    years = _age(b, tree, tree.name, tree.expression, scope, collect)
    return years or part_of(b, tree, tree.name, b.bind(tree.expression, scope, collect))


def _age(
    b: ScalarBinder, tree: Any, part: str, moment: Any, scope: Scope, collect: Collect
) -> n.Scalar | None:
    """Read the years of AGE(end, start): a difference in birthdays. AGE itself has no fixed length."""
    if not isinstance(moment, exp.Anonymous) or moment.name.lower() != "age":
        return None
    if PART_NAMES.get(part.lower(), part.lower()) != "year":
        raise b.refuse(
            tree, "of an age only the years are read", "use date_diff('month', start, end)"
        )
    if len(moment.expressions) != 2:
        raise b.refuse(tree, "age(x) follows the clock", "write the day: age(DATE '2025-01-01', x)")
    end, start = (b.bind(x, scope, collect) for x in moment.expressions)
    return called(b, tree, "full_years", (start, end))


@rule(exp.Anonymous)
def _named(b: ScalarBinder, tree: Any, scope: Scope, collect: Collect) -> n.Scalar:
    if aggregate_named(tree):
        return collect(tree, scope)
    name = tree.name.lower()
    if name in ("date_part", "datepart") and len(tree.expressions) == 2:
        part, moment = tree.expressions
        if not isinstance(part, exp.Literal) or not part.is_string:
            raise b.refuse(tree, "the part of a date is written as a text", "date_part('month', d)")
        years = _age(b, tree, part.name, moment, scope, collect)
        return years or part_of(b, tree, part.name, b.bind(moment, scope, collect))
    entry = NAMED.get(name)
    if entry is None:
        raise b.unknown(tree)
    count, make = entry
    if len(tree.expressions) != count:
        raise b.refuse(tree, f"{name} takes {count} arguments")
    return make(b, tree, [b.bind(x, scope, collect) for x in tree.expressions])


def _plain(function: str) -> Named:
    return lambda b, tree, arguments: called(b, tree, function, tuple(arguments))


def _iff(b: ScalarBinder, tree: Any, arguments: list[n.Scalar]) -> n.Scalar:
    condition, value, default = arguments
    if type_of(condition).kind not in ("BOOLEAN", "NULL"):
        raise b.refuse(tree, "iff takes a condition first")
    return n.Case((n.Branch(condition, value),), default)


def _shifted_back(b: ScalarBinder, tree: Any, arguments: list[n.Scalar]) -> n.Scalar:
    if type_of(arguments[1]).kind != "INTERVAL":
        raise b.refuse(
            tree, "date_sub takes a date and an INTERVAL", "date_diff counts borders between dates"
        )
    return n.Arithmetic("-", *arguments)


NAMED: dict[str, tuple[int, Named]] = {
    "strlen": (1, _plain("strlen")),
    "octet_length": (1, _plain("strlen")),
    "suffix": (2, _plain("ends_with")),
    "prefix": (2, _plain("starts_with")),
    "btrim": (1, _plain("trim")),
    "iff": (3, _iff),
    "date_sub": (2, _shifted_back),
    "weekday": (1, lambda b, tree, x: n.Extract("dow", x[0])),
    "century": (1, lambda b, tree, x: n.Extract("century", x[0])),
    "decade": (1, lambda b, tree, x: n.Extract("decade", x[0])),
    "square": (1, lambda b, tree, x: n.Arithmetic("*", x[0], x[0])),
}
"""Names that sqlglot has no syntax for: number of arguments, and what they make."""


@rule(exp.Date)
def _date(b: ScalarBinder, tree: Any, scope: Scope, collect: Collect) -> n.Scalar:
    return n.Cast(b.bind(tree.this, scope, collect), t.DATE)


@rule(exp.LastDay)
def _last_day(b: ScalarBinder, tree: Any, scope: Scope, collect: Collect) -> n.Scalar:
    month = called(
        b, tree, "date_trunc", (text_literal("month"), b.bind(tree.this, scope, collect))
    )
    later = n.Arithmetic("+", month, n.Literal((1, 0, 0), t.INTERVAL))
    return n.Cast(n.Arithmetic("-", later, n.Literal((0, 1, 0), t.INTERVAL)), t.DATE)


@rule(exp.Dayname, exp.Monthname)
def _name(b: ScalarBinder, tree: Any, scope: Scope, collect: Collect) -> n.Scalar:
    part, names = ("dow", DAYS) if isinstance(tree, exp.Dayname) else ("month", MONTHS)
    number = n.Extract(part, b.bind(tree.this, scope, collect))
    first = 0 if part == "dow" else 1
    branches = (
        n.Branch(n.Compare("=", number, n.Literal(i, t.INTEGER)), text_literal(name))
        for i, name in enumerate(names, first)
    )
    return n.Case(tuple(branches), n.Literal(None, t.NULL))


@rule(exp.TimeToStr)
def _strftime(b: ScalarBinder, tree: Any, scope: Scope, collect: Collect) -> n.Scalar:
    shape = b.bind(tree.args["format"], scope, collect)
    return called(b, tree, "strftime", (b.bind(tree.this, scope, collect), shape))


_TO_CHAR = {
    "YYYY": "%Y",
    "MM": "%m",
    "DD": "%d",
    "HH24": "%H",
    "MI": "%M",
    "SS": "%S",
    "YY": "%y",
    "DDD": "%j",
}


@rule(exp.ToChar)
def _to_char(b: ScalarBinder, tree: Any, scope: Scope, collect: Collect) -> n.Scalar:
    """PostgreSQL's format of dates, part by part."""
    format_text = tree.args.get("format")
    shape = (
        format_text.name if isinstance(format_text, exp.Literal) and format_text.is_string else ""
    )
    parts = re.findall(r"YYYY|DDD|HH24|MM|DD|MI|SS|YY|[^A-Za-z\"%]", shape)
    if not shape or "".join(parts) != shape:
        raise b.refuse(tree, "to_char takes a format of " + ", ".join(_TO_CHAR))
    shape = "".join(_TO_CHAR.get(p, p) for p in parts)
    return called(b, tree, "strftime", (b.bind(tree.this, scope, collect), text_literal(shape)))


@rule(exp.Log)
def _log(b: ScalarBinder, tree: Any, scope: Scope, collect: Collect) -> n.Scalar:
    base = tree.this.name if isinstance(tree.this, exp.Literal) else ""
    if tree.expression is None or base not in ("2", "10"):
        # log(x) has base 10 here and base e elsewhere: only the unambiguous names are taken.
        raise b.refuse(
            tree,
            "log(x) means different bases on different engines",
            "write ln(x), log10(x) or log2(x)",
        )
    return called(b, tree, f"log{base}", (b.bind(tree.expression, scope, collect),))


@rule(exp.Pi)
def _pi(b: ScalarBinder, tree: Any, scope: Scope, collect: Collect) -> n.Scalar:
    return n.Literal(math.pi, t.DOUBLE)


@rule(exp.Radians, exp.Degrees)
def _turned(b: ScalarBinder, tree: Any, scope: Scope, collect: Collect) -> n.Scalar:
    factor = math.pi / 180 if isinstance(tree, exp.Radians) else 180 / math.pi
    number = n.Cast(b.bind(tree.this, scope, collect), t.DOUBLE)
    return n.Arithmetic("*", number, n.Literal(factor, t.DOUBLE))


@rule(exp.Trunc)
def _trunc(b: ScalarBinder, tree: Any, scope: Scope, collect: Collect) -> n.Scalar:
    number = b.bind(tree.this, scope, collect)
    return number if type_of(number).kind == "INTEGER" else called(b, tree, "trunc", (number,))


@rule(exp.Escape)
def _escaped(b: ScalarBinder, tree: Any, scope: Scope, collect: Collect) -> n.Scalar:
    """LIKE with a character that makes the next one an ordinary one; the pattern must be written, and whole."""
    like, escape = tree.this, tree.expression
    pattern = like.expression if isinstance(like, exp.Like) else like
    literal = all(isinstance(x, exp.Literal) and x.is_string for x in (pattern, escape))
    if not literal or len(escape.name) != 1 or not _is_whole(pattern.name, escape.name):
        raise b.refuse(
            tree,
            "ESCAPE takes one character and a LIKE whose pattern is written, in which it stands before %, _ or itself",
            "x LIKE '10!%%' ESCAPE '!'",
        )
    bound_like = b.bind(like, scope, collect)
    inner = bound_like.operand if isinstance(bound_like, n.Not) else bound_like
    assert isinstance(inner, n.Like)
    escaped = replace(inner, escape=escape.name)
    return n.Not(escaped) if isinstance(bound_like, n.Not) else escaped


def _is_whole(pattern: str, escape: str) -> bool:
    """Whether every character that escapes stands before one that it may."""
    sign = re.escape(escape)
    return re.fullmatch(f"(?:[^{sign}]|{sign}[%_{sign}])*", pattern, re.DOTALL) is not None


@rule(exp.BitwiseNot)
def _bitwise_not(b: ScalarBinder, tree: Any, scope: Scope, collect: Collect) -> n.Scalar:
    """All bits turned: one less than the negative, which no number is too large for."""
    operand = b.bind(tree.this, scope, collect)
    if type_of(operand).kind not in ("INTEGER", "NULL"):
        raise b.refuse(tree, "~ takes a whole number")
    return n.Arithmetic("-", n.Literal(-1, t.INTEGER), operand)


BUCKETS = {
    (0, 1, 0): "day", (0, 7, 0): "week", (1, 0, 0): "month", (3, 0, 0): "quarter", (12, 0, 0): "year",
    (0, 0, 3_600_000_000): "hour", (0, 0, 60_000_000): "minute", (0, 0, 1_000_000): "second",
}  # fmt: skip
"""Months, days and microseconds of a stretch that a calendar has a name for."""


@rule(exp.DateBin)
def _time_bucket(b: ScalarBinder, tree: Any, scope: Scope, collect: Collect) -> n.Scalar:
    """Stretches that begin where those of the calendar do; others begin at a day that engines choose differently."""
    width = b.bind(tree.this, scope, collect)
    part = BUCKETS.get(width.value) if isinstance(width, n.Literal) else None  # type: ignore[call-overload]
    if part is None or tree.args.get("zone") or tree.args.get("origin"):
        raise b.refuse(
            tree,
            "time_bucket takes a second, a minute, an hour, a day, a week, a month, a quarter or a year",
            "date_trunc('day', t), or extract(hour FROM t) // 6 for parts of a day",
        )
    moment = b.bind(tree.expression, scope, collect)
    truncated = called(b, tree, "date_trunc", (text_literal(part), moment))
    return n.Cast(truncated, t.DATE) if type_of(moment).kind == "DATE" else truncated


@rule(exp.Pad)
def _pad(b: ScalarBinder, tree: Any, scope: Scope, collect: Collect) -> n.Scalar:
    fill = tree.args.get("fill_pattern")
    trees = (tree.this, tree.expression, *(() if fill is None else (fill,)))
    arguments = tuple(b.bind(x, scope, collect) for x in trees)
    name = "lpad" if tree.args.get("is_left") else "rpad"
    return called(b, tree, name, arguments if fill is not None else (*arguments, text_literal(" ")))


@rule(exp.SHA2)
def _sha(b: ScalarBinder, tree: Any, scope: Scope, collect: Collect) -> n.Scalar:
    if tree.args.get("length") is None or tree.args["length"].name != "256":
        raise b.refuse(tree, "of these digests sha256 is accepted")
    return called(b, tree, "sha256", (b.bind(tree.this, scope, collect),))


@rule(exp.ConcatWs)
def _concat_ws(b: ScalarBinder, tree: Any, scope: Scope, collect: Collect) -> n.Scalar:
    parts = [b.bind(x, scope, collect) for x in tree.expressions]
    texts = [p if type_of(p).kind == "TEXT" else n.Cast(p, t.TEXT) for p in parts]
    return called(b, tree, "concat_ws", tuple(texts))


@rule(exp.ArraySize, exp.Length)
def _length(b: ScalarBinder, tree: Any, scope: Scope, collect: Collect) -> n.Scalar:
    """The length of a text, or of the list that a delimiter makes of one."""
    inner = tree.this
    if not isinstance(inner, exp.Split):
        if isinstance(tree, exp.ArraySize):
            raise b.refuse(tree, "lists are accepted as len(string_split(text, ',')) only")
        return called(b, tree, "length", (b.bind(inner, scope, collect),))
    delimiter = inner.expression
    if not isinstance(delimiter, exp.Literal) or not delimiter.is_string or not delimiter.name:
        raise b.refuse(tree, "a list is made by a delimiter that is written")
    text = b.bind(inner.this, scope, collect)
    without = called(b, tree, "replace", (text, text_literal(delimiter.name), text_literal("")))
    sizes = (called(b, tree, "length", (x,)) for x in (text, without))
    cuts = n.Arithmetic("//", n.Arithmetic("-", *sizes), n.Literal(len(delimiter.name), t.INTEGER))
    return n.Arithmetic("+", cuts, n.Literal(1, t.INTEGER))


@rule(exp.Concat)
def _concat(b: ScalarBinder, tree: Any, scope: Scope, collect: Collect) -> n.Scalar:
    """Put texts together; NULL counts as an empty one."""
    empty = n.Literal("", t.TEXT)
    joined: n.Scalar = empty
    for item in tree.expressions:
        part = b.bind(item, scope, collect)
        if type_of(part).kind == "NULL":
            continue
        if type_of(part).kind != "TEXT":
            part = n.Cast(part, t.TEXT)
        part = n.Call("coalesce", (part, empty), span_of(item))
        joined = part if joined is empty else n.Call("concat_op", (joined, part), span_of(tree))
    return joined


@rule(exp.Trim)
def _trim(b: ScalarBinder, tree: Any, scope: Scope, collect: Collect) -> n.Scalar:
    what = tree.args.get("expression")
    side = str(tree.args.get("position") or "").upper()
    name = {"": "trim", "BOTH": "trim", "LEADING": "ltrim", "TRAILING": "rtrim"}[side]
    trees = (tree.this,) if what is None else (tree.this, what)
    return called(b, tree, name, tuple(b.bind(x, scope, collect) for x in trees))


# ── regular expressions ──────────────────────────────────────────────────────────────────────────


def _pattern(b: ScalarBinder, tree: Any, node: Any) -> str:
    if not isinstance(node, exp.Literal) or not node.is_string:
        raise b.refuse(tree, "a regular expression is written as a text")
    try:
        return portable(node.name)
    except ValueError as error:
        raise b.refuse(
            tree,
            f"engines read this regular expression differently: {error}",
            "docs/reference/sql-accepted.md lists what is read alike",
        ) from None


@rule(exp.RegexpLike, exp.RegexpFullMatch, exp.RegexpILike)
def _matches(b: ScalarBinder, tree: Any, scope: Scope, collect: Collect) -> n.Scalar:
    pattern = _pattern(b, tree, tree.expression)
    text = b.bind(tree.this, scope, collect)
    if isinstance(tree, exp.RegexpFullMatch):
        pattern = f"^(?:{pattern})$"
    if isinstance(tree, exp.RegexpILike):
        text, pattern = called(b, tree, "lower", (text,)), pattern.lower()
    return called(b, tree, "regexp_matches", (text, text_literal(pattern)))


@rule(exp.SimilarTo)
def _similar(b: ScalarBinder, tree: Any, scope: Scope, collect: Collect) -> n.Scalar:
    raise b.refuse(
        tree,
        "SIMILAR TO means different patterns on different engines",
        "write regexp_full_match(text, 'pattern'), or LIKE",
    )


@rule(exp.RegexpExtract)
def _extracted(b: ScalarBinder, tree: Any, scope: Scope, collect: Collect) -> n.Scalar:
    pattern = _pattern(b, tree, tree.expression)
    group = tree.args.get("group")
    number = int(group.name) if isinstance(group, exp.Literal) and group.name.isdecimal() else -1
    if not 0 <= number <= groups(pattern):
        raise b.refuse(tree, f"the pattern has {groups(pattern)} groups")
    text = b.bind(tree.this, scope, collect)
    arguments = (text, text_literal(pattern), n.Literal(number, t.INTEGER))
    return called(b, tree, "regexp_extract", arguments)


@rule(exp.RegexpReplace)
def _exchanged(b: ScalarBinder, tree: Any, scope: Scope, collect: Collect) -> n.Scalar:
    pattern, new = _pattern(b, tree, tree.expression), tree.args.get("replacement")
    how = tree.args.get("modifiers")
    flags = how.name if isinstance(how, exp.Literal) else "" if how is None else "?"
    if (
        not isinstance(new, exp.Literal)
        or not new.is_string
        or "\\" in new.name
        or flags not in ("", "g")
    ):
        raise b.refuse(tree, "regexp_replace takes a text without \\1, and 'g' or nothing")
    if matches("", pattern):
        raise b.refuse(
            tree, "the pattern fits an empty text, and engines differ in how often it does"
        )
    arguments = (b.bind(tree.this, scope, collect), text_literal(pattern), text_literal(new.name))
    return called(b, tree, "regexp_replace", (*arguments, *((text_literal("g"),) if flags else ())))
