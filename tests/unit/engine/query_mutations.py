"""Random damage to valid queries: words deleted, doubled, swapped, replaced, spliced; strange characters put in."""

from __future__ import annotations

import random
import re

WORD = re.compile(
    r"\s+|[A-Za-z_][A-Za-z_0-9]*|\d+(?:\.\d+)?|'(?:[^']|'')*'|\"[^\"]*\"|.", re.DOTALL
)

KEYWORDS = (
    "SELECT", "FROM", "WHERE", "GROUP", "BY", "HAVING", "ORDER", "LIMIT", "OFFSET", "DISTINCT",
    "ALL", "UNION", "INTERSECT", "EXCEPT", "JOIN", "LEFT", "RIGHT", "FULL", "CROSS", "ON",
    "USING", "AS", "WITH", "RECURSIVE", "CASE", "WHEN", "THEN", "ELSE", "END", "AND", "OR",
    "NOT", "NULL", "IS", "IN", "EXISTS", "BETWEEN", "LIKE", "ILIKE", "ANY", "INTERVAL", "DATE",
    "CAST", "EXTRACT", "OVER", "PARTITION", "FILTER", "VALUES", "LATERAL", "PIVOT", "UNNEST",
    "QUALIFY", "WINDOW", "TRUE", "FALSE", "ASC", "DESC", "NULLS", "FIRST", "LAST", "ROLLUP",
    "CUBE", "GROUPING", "SETS", "SAMPLE", "INTO", "FOR", "UPDATE", "ASOF", "POSITIONAL", "SEMI",
    "ANTI", "NATURAL", "EXCLUDE",
)  # fmt: skip

CALLS = (
    "count(*)", "sum(1)", "avg(2.5)", "min(", "max(", "count(DISTINCT", "abs(", "ln(", "exp(",
    "sqrt(", "power(2,", "coalesce(", "nullif(", "least(", "greatest(", "substring(",
    "extract(year", "FROM", "date_trunc('month',", "round(", "floor(", "sign(", "lower(",
    "length(", "random()", "now()", "list(", "struct_pack(", "stddev(", "var_pop(", "CAST(",
    "TRY_CAST(", "if(", "left(", "replace(", "trim(", "starts_with(", "date_diff('day',",
    "row_number()", "OVER", "(",
)  # fmt: skip

PIECES = (
    "(", ")", ",", ";", "*", "+", "-", "/", "//", "%", "^", "||", "=", "<>", "<", "<=", ">",
    ">=", "!=", "::", ".", "..", "[", "]", "{", "}", ":", "?", "$1", "@", "#", "!", "~", "&",
    "|", "\\", "'", "''", "\"", "`", "--", "/*", "*/", "0", "-1", "1e999", "1e-999", "NaN",
    "99999999999999999999", "0.000000000000000000000000000000000000001", "2147483648",
    "9223372036854775807", "1.5.2", "'%'", "''", "'NaN'", "'9999-12-31'", "'\\'", "x'00'",
    "U&'x'", "$$a$$", ":name",
)  # fmt: skip

STRANGE = (
    "\u0000", "\ufeff", "\u200b", "é", "ß", "İ", "漢", "😀", "\u202e", "\ud800", "\u001b", "\r",
    "\t", "\u00a0", "﷽", "ǅ",
)  # fmt: skip

NUMBERS = (
    "0", "1", "-1", "0.5", "1e308", "1e-320", "9223372036854775807", "1e999",
    "0.00000000000000000000000000000000000001", "99999999999999999999999999999999999999",
    "170141183460469231731687303715884105727", "2147483648", "NULL", "'x'",
)  # fmt: skip

OPERATORS = (
    "=", "<>", "<", ">=", "+", "-", "*", "/", "//", "%", "||", "AND", "OR", "LIKE", "IN",
    "IS DISTINCT FROM", "^",
)  # fmt: skip

AROUND = (
    "abs(%)", "-%", "NOT %", "CAST(% AS INTEGER)", "CAST(% AS DATE)",
    "CAST(% AS DECIMAL(5, 1))", "CAST(% AS BOOLEAN)", "CAST(% AS VARCHAR)", "CAST(% AS DOUBLE)",
    "sum(%)", "count(DISTINCT %)", "avg(%)", "max(%)", "exp(%)", "ln(%)", "sqrt(%)",
    "power(%, 2)", "round(%, 1)", "floor(%)", "extract(year FROM %)", "date_trunc('month', %)",
    "lower(%)", "length(%)", "coalesce(%, 0)", "nullif(%, 1)", "greatest(%, %)",
    "least(%, NULL)", "CASE WHEN % THEN 1 END", "(%)", "% IS NULL", "% IN (1, NULL)",
    "% BETWEEN 0 AND 1", "% + INTERVAL 1 MONTH", "(SELECT %)", "(SELECT max(%) FROM region)",
    "substring(%, 2, 3)", "% % 3", "% || 'x'", "variance(%)", "stddev_pop(%)", "left(%, 2)",
    "trim(%)", "date_diff('day', %, %)", "EXISTS (SELECT % FROM nation)",
    "% IN (SELECT n_nationkey FROM nation)", "sign(%)", "if(%, 1, 2)",
)  # fmt: skip
NAME = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")


def words(text: str) -> list[str]:
    """Split a query into words, keeping what stands between them."""
    return WORD.findall(text)


def mutate(queries: list[str], source: random.Random) -> str:
    """Give one damaged query."""
    parts = words(source.choice(queries))
    for _ in range(source.choice((1, 1, 1, 2, 3, 6))):
        parts = _damage(parts, queries, source)
    return "".join(parts)


def _damage(parts: list[str], queries: list[str], source: random.Random) -> list[str]:
    if not parts:
        return words(source.choice(queries))
    if source.random() < 0.6:
        return _gentle(parts, queries, source)
    kind = source.randrange(10)
    at = source.randrange(len(parts))
    if kind == 0:
        return parts[:at] + parts[at + 1 :]
    if kind == 1:
        upto = min(len(parts), at + source.randrange(1, 12))
        return parts[:upto] + parts[at:upto] + parts[upto:]
    if kind == 2:
        other = source.randrange(len(parts))
        swapped = list(parts)
        swapped[at], swapped[other] = swapped[other], swapped[at]
        return swapped
    if kind == 3:
        other = words(source.choice(queries))
        return [*parts[:at], source.choice(other), *parts[at + 1 :]]
    if kind == 4:
        other = words(source.choice(queries))
        return parts[:at] + other[source.randrange(len(other)) :]
    if kind == 5:
        upto = min(len(parts), at + source.randrange(1, 20))
        return parts[:at] + parts[upto:]
    if kind == 6:
        return [*parts[:at], " ", source.choice(KEYWORDS), " ", *parts[at:]]
    if kind == 7:
        return [*parts[:at], source.choice((*PIECES, *CALLS)), *parts[at:]]
    if kind == 8:
        return [*parts[:at], source.choice(STRANGE), *parts[at:]]
    inner = words(source.choice(queries))
    return [*parts[:at], " (", *inner, ") ", *parts[at + source.randrange(2) :]]


def _gentle(parts: list[str], queries: list[str], source: random.Random) -> list[str]:
    """Replace a word by one of its own kind, so that many results still parse."""
    places = [i for i, word in enumerate(parts) if not word.isspace()]
    at = source.choice(places or [0])
    word = parts[at]
    if NAME.fullmatch(word) and word.upper() not in KEYWORDS:
        if source.random() < 0.5:
            return [*parts[:at], source.choice(AROUND).replace("%", word), *parts[at + 1 :]]
        names = [
            w
            for w in words(source.choice(queries))
            if NAME.fullmatch(w) and w.upper() not in KEYWORDS
        ]
        return [*parts[:at], source.choice(names), *parts[at + 1 :]]
    if word[:1].isdigit() or word[:1] == "'":
        new = (
            source.choice(NUMBERS)
            if source.random() < 0.5
            else source.choice(AROUND).replace("%", word)
        )
        return [*parts[:at], new, *parts[at + 1 :]]
    if word.upper() in OPERATORS:
        return [*parts[:at], f" {source.choice(OPERATORS)} ", *parts[at + 1 :]]
    return [
        *parts[:at],
        source.choice(KEYWORDS) if NAME.fullmatch(word) else word,
        *parts[at + 1 :],
    ]
