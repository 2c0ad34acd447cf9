"""Values for the placeholders of a query: each is put in as the literal that it could have been written as.

In: text with `?`, `$1`, `:name` or `$name`, and values. Out: the parser's tokens with literals where placeholders
stood, so that a question with parameters has the plan of the same question with literals. A parameter is public, as
the text is. Never here: text put into text; a value cannot change how the rest is read.
"""

from __future__ import annotations

import datetime
import math
import numbers
import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

from sqlglot.dialects.dialect import Dialect
from sqlglot.tokenizer_core import Token, TokenType

from secant.errors import Span, UsageError
from secant.sql.lexer import Token as Piece
from secant.sql.lexer import tokens as pieces

Parameters = Sequence[object] | Mapping[str, object]

MOST = 10_000
"""How many values a question may have."""


_BEGINNING = re.compile(r"[?:$]")
"""What every placeholder begins with; most texts have none, and need not be split into words for them."""


def placeholders(text: str) -> list[Piece]:
    """Give the placeholders of a text, in order."""
    return [piece for piece in pieces(text) if piece.kind == "placeholder"]


def named_values(text: str, assignments: Sequence[str]) -> Parameters | None:
    """Read values as words of a command line: in order, or as NAME=VALUE where the text names its placeholders."""
    if not assignments:
        return None
    if not any(p.text.startswith(":") or p.text[1:].isidentifier() for p in placeholders(text)):
        return list(assignments)
    pairs = [word.partition("=") for word in assignments]
    if bad := next((word for word, equals, _ in pairs if not equals), None):
        raise _unfit(text, None, f"the parameter {bad[:60]} has no name", "write NAME=VALUE")
    return {name.strip().lstrip(":$"): value for name, _, value in pairs}


def filled(text: str, parameters: Parameters | None, dialect: str) -> list[Token]:
    """Give the parser's tokens of a text, with literals for its placeholders."""
    reader = Dialect.get_or_raise(dialect)
    marks = placeholders(text) if parameters or _BEGINNING.search(text) else []
    if not marks and not parameters:
        return list(reader.tokenize(text))
    values = _values(text, marks, parameters)
    # A question mark is read alike wherever it stands; spaces keep the places of what comes after.
    plain = list(text)
    for piece in marks:
        plain[piece.start : piece.end] = "?".ljust(len(piece.text))
    return list(_with_literals(text, reader.tokenize("".join(plain)), values))


def _how_to_give(piece: Piece) -> str:
    name = piece.text[1:]
    if not name or name.isdecimal():
        return "give it: parameters=[value] in Python, --parameter VALUE in a shell"
    return f'give it: parameters={{"{name}": value}} in Python, --parameter {name}=VALUE in a shell'


def _values(
    text: str, marks: list[Piece], parameters: Parameters | None
) -> dict[int, tuple[str, object]]:
    """Give for the place of each placeholder what it is called and its value; every value must be used."""
    if parameters is None:
        raise _unfit(
            text, marks[0], f"there is no value for {marks[0].text}", _how_to_give(marks[0])
        )
    if isinstance(parameters, (str, bytes)) or not isinstance(parameters, (Sequence, Mapping)):
        raise _unfit(text, None, "parameters are neither a list nor a mapping", "give [value, …]")
    if len(parameters) > MOST:
        raise _unfit(text, None, f"there are more than {MOST} parameters", "put them into a table")
    named = isinstance(parameters, Mapping)
    keys: list[Any] = []
    for number, piece in enumerate(marks):
        name = piece.text[1:]
        keys.append(number if piece.text == "?" else int(name) - 1 if name.isdecimal() else name)
        if isinstance(keys[-1], str) is not named:
            expected = "a list" if named else "a mapping from names to values"
            raise _unfit(text, piece, f"{piece.text} needs {expected} of parameters", "")
    if not named and len({piece.text == "?" for piece in marks}) > 1:
        raise _unfit(text, marks[0], "? and $1 cannot stand in one query", "number all of them")
    by_name = {str(k): v for k, v in parameters.items()} if isinstance(parameters, Mapping) else {}
    values: dict[Any, object] = by_name if named else dict(enumerate(parameters))
    for key, piece in zip(keys, marks, strict=True):
        if key not in values:
            raise _unfit(text, piece, f"there is no value for {piece.text}", _how_to_give(piece))
    if unused := [key for key in values if key not in set(keys)]:
        called = unused[0] if named else f"number {unused[0] + 1}"
        raise _unfit(text, None, f"no placeholder takes the parameter {called}", "leave it out")
    return {p.start: (p.text, values[key]) for p, key in zip(marks, keys, strict=True)}


def _with_literals(
    text: str, read: Sequence[Token], values: dict[int, tuple[str, object]]
) -> Iterator[Token]:
    listed = [False]
    """For each open parenthesis, whether a list of keys is being read: a number there would be a position."""
    position, seen = 0, set()
    while position < len(read):
        token = read[position]
        kind = token.token_type
        match kind:
            case TokenType.L_PAREN:
                listed.append(False)
            case TokenType.R_PAREN:
                listed = listed[:-1] or [False]
            case TokenType.ORDER_BY | TokenType.GROUP_BY:
                listed[-1] = True
            case TokenType.LIMIT | TokenType.OFFSET | TokenType.HAVING | TokenType.UNION:
                listed[-1] = False
        chosen = _list_after(read, position, values)
        if chosen is not None:
            seen.add(chosen)
            yield from _one_of(text, token, *values[chosen])
            position += 5
            continue
        if kind == TokenType.PLACEHOLDER and token.start in values:
            seen.add(token.start)
            called, value = values[token.start]
            literal = list(_literal(text, token, called, value))
            if listed[-1] or len(literal) == 2:  # a sign must not meet what stands around it
                around = (TokenType.L_PAREN, "("), (TokenType.R_PAREN, ")")
                literal = [_like(token, *around[0]), *literal, _like(token, *around[1])]
            yield from literal
        else:
            yield token
        position += 1
    if seen != set(values):
        raise _unfit(text, None, "a placeholder stands where none can be", "look at the quotes")


_ANY = (TokenType.EQ, TokenType.ANY, TokenType.L_PAREN, TokenType.PLACEHOLDER, TokenType.R_PAREN)


def _list_after(
    read: Sequence[Token], position: int, values: dict[int, tuple[str, object]]
) -> int | None:
    """Give the place of the list in `= ANY(?)`, which drivers send for a list of values."""
    tokens_after = read[position : position + len(_ANY)]
    if (
        tuple(token.token_type for token in tokens_after) != _ANY
        or tokens_after[3].start not in values
    ):
        return None
    return (
        tokens_after[3].start
        if isinstance(values[tokens_after[3].start][1], (list, tuple))
        else None
    )


def _one_of(text: str, token: Token, called: str, value: Any) -> Iterator[Token]:
    if not value:
        raise _unfit(text, None, f"{called} is a list of no values", "leave the condition out")
    yield _like(token, TokenType.IN, "IN")
    yield _like(token, TokenType.L_PAREN, "(")
    for number, item in enumerate(value):
        if number:
            yield _like(token, TokenType.COMMA, ",")
        yield from _literal(text, token, called, item)
    yield _like(token, TokenType.R_PAREN, ")")


def _literal(text: str, token: Token, called: str, value: object) -> Iterator[Token]:
    """Give the tokens of a value as it would be written."""
    match value:
        case None:
            yield _like(token, TokenType.NULL, "NULL")
        case bool():
            yield _like(token, TokenType.TRUE if value else TokenType.FALSE, str(value).upper())
        case numbers.Integral():
            yield from _number(token, str(abs(int(value))), negative=int(value) < 0)
        case Decimal() if value.is_finite() and abs(value.adjusted()) < 400:
            yield from _number(token, format(abs(value), "f"), negative=value < 0)
        case float() if math.isfinite(value):
            shown = repr(abs(float(value)))
            shown = shown if "e" in shown else shown + "e0"  # a double, as it was given
            yield from _number(token, shown, negative=value < 0)
        case datetime.datetime():
            yield from _moment(token, value.isoformat(sep=" "), TokenType.TIMESTAMP)
        case datetime.date():
            yield from _moment(token, value.isoformat(), TokenType.DATE)
        case datetime.timedelta() if not value.microseconds:
            yield _like(token, TokenType.INTERVAL, "INTERVAL")
            yield _like(token, TokenType.STRING, str(86_400 * value.days + value.seconds))
            yield _like(token, TokenType.VAR, "SECOND")
        case str() | uuid.UUID():
            yield _like(token, TokenType.STRING, str(value))
        case _:
            raise _unfit(
                text,
                Piece("placeholder", called, token.start),
                f"the value for {called} is of a type that no literal has ({type(value).__name__})",
                "give a number, a text, a date, a truth value or None",
            )


def _number(token: Token, text: str, *, negative: bool) -> Iterator[Token]:
    if negative:
        yield _like(token, TokenType.DASH, "-")
    yield _like(token, TokenType.NUMBER, text)


def _moment(token: Token, text: str, kind: TokenType) -> Iterator[Token]:
    for part, shown in (
        (TokenType.VAR, "CAST"),
        (TokenType.L_PAREN, "("),
        (TokenType.STRING, text),
        (TokenType.ALIAS, "AS"),
        (kind, kind.name),
        (TokenType.R_PAREN, ")"),
    ):
        yield _like(token, part, shown)


def _like(token: Token, kind: TokenType, text: str) -> Token:
    """Give a token that stands where another stood."""
    return Token(kind, text, token.line, token.col, token.start, token.end)


def _unfit(text: str, piece: Piece | None, message: str, hint: str) -> UsageError:
    span = None if piece is None else Span(piece.start, piece.end)
    return UsageError("USE-011", message, text=text, span=span, hint=hint)
