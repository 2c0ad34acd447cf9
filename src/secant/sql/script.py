"""A script of several statements: views, released tables, questions. Nothing is parsed beyond their heads.

In: SQL text. Out: statements in order, each with its query. The text of a query stands where it stands in the script,
with spaces before it, so that an error points into the script. Never here: what a query means.
"""

from __future__ import annotations

from collections.abc import Sequence

from secant.errors import Span, SqlError
from secant.records import frozen
from secant.sql.lexer import Token, tokens

MAX_STATEMENTS = 200
_FORMS = "CREATE VIEW v AS, CREATE TABLE t AS, RELEASE t AS, or a SELECT"


@frozen
class Statement:
    """One statement: a `view`, a table to `release`, or a `question`."""

    kind: str
    name: str
    """Lower-cased; of a question: `answer1`, `answer2`, …"""
    columns: tuple[str, ...]
    text: str
    """The query, with spaces for what stands before it in the script."""
    spelled: str
    """The query alone."""


def read_script(text: str) -> tuple[Statement, ...]:
    """Give the statements of a script, or say which one is none."""
    pieces: list[list[Token]] = [[]]
    for token in tokens(text):
        if token.kind == "broken":
            raise _wrong(text, token, "a quote or a comment is not closed", "close it")
        if token.kind == "sign" and token.text == ";":
            pieces.append([])
        else:
            pieces[-1].append(token)
    nonempty = [piece for piece in pieces if piece]
    if len(nonempty) > MAX_STATEMENTS:
        message = f"the script has {len(nonempty)} statements; at most {MAX_STATEMENTS} are read"
        raise SqlError("SQL-007", message, hint="split the script")
    statements: list[Statement] = []
    for piece in nonempty:
        statement = _statement(text, piece, len([s for s in statements if s.kind == "question"]))
        if any(s.name == statement.name for s in statements):
            raise _wrong(text, piece[0], f"{statement.name} is defined twice", "use another name")
        statements.append(statement)
    if all(s.kind == "view" for s in statements):
        hint = "add a SELECT, or RELEASE t AS SELECT ..."
        raise SqlError("SQL-005", "the script releases nothing", hint=hint)
    return tuple(statements)


def _statement(text: str, piece: Sequence[Token], questions: int) -> Statement:
    head = piece[0]
    if head.is_word("CREATE"):
        at = 1
        for optional in (("OR", "REPLACE"), ("TEMP",), ("TEMPORARY",)):
            if all(t.is_word(w) for t, w in zip(piece[at:], optional, strict=False)):
                at += len(optional)
        if at >= len(piece) or not piece[at].is_word("VIEW", "TABLE"):
            raise _wrong(text, head, "only views and tables are created", f"write {_FORMS}")
        return _named(text, piece, at + 1, "view")
    if head.is_word("RELEASE"):
        return _named(text, piece, 1, "release")
    if head.is_word("SELECT", "WITH", "FROM", "VALUES") or head.text == "(":
        return _whole(text, piece, 0, "question", f"answer{questions + 1}", ())
    raise _wrong(text, head, f"{head.text[:40]} is not accepted in a script", f"write {_FORMS}")


def _named(text: str, piece: Sequence[Token], at: int, kind: str) -> Statement:
    """Read `name [(columns)] AS query`."""
    if at >= len(piece) or piece[at].kind not in ("word", "name"):
        raise _wrong(text, piece[min(at, len(piece) - 1)], "a name is missing", f"write {_FORMS}")
    name, columns = piece[at].name, []
    at += 1
    if at < len(piece) and piece[at].text == "(":
        at += 1
        while at < len(piece) and piece[at].kind in ("word", "name"):
            columns.append(piece[at].name)
            at += 1
            if at < len(piece) and piece[at].text == ",":
                at += 1
        if at >= len(piece) or piece[at].text != ")":
            where = piece[min(at, len(piece) - 1)]
            raise _wrong(text, where, "names of columns are expected", "write (a, b) AS SELECT ...")
        at += 1
    if at + 1 >= len(piece) or not piece[at].is_word("AS"):
        where = piece[min(at, len(piece) - 1)]
        raise _wrong(text, where, "AS and a query are expected", f"write {_FORMS}")
    return _whole(text, piece, at + 1, kind, name.lower(), tuple(columns))


def _whole(
    text: str, piece: Sequence[Token], at: int, kind: str, name: str, columns: tuple[str, ...]
) -> Statement:
    start, end = piece[at].start, piece[-1].end
    before = "".join(c if c == "\n" else " " for c in text[:start])
    return Statement(kind, name, columns, before + text[start:end], text[start:end])


def _wrong(text: str, token: Token, message: str, hint: str) -> SqlError:
    span = Span(token.start, min(token.end, token.start + 60))
    return SqlError("SQL-005", message, text=text, span=span, hint=hint)
