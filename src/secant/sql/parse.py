"""Text in, one sqlglot query out. Nothing is run, nothing is looked up.

Sizes are bounded first: a parser that recurses must not meet text that was made to break it.
"""

from __future__ import annotations

import logging
import re

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ParseError, TokenError

from secant.errors import Span, SqlError, UsageError, meant
from secant.sql.limits import MAX_CHARACTERS, too_deep
from secant.sql.parameters import Parameters, filled
from secant.sql.shape import check_shape

# sqlglot logs what it falls back on, quoting the query; the query is the analyst's, but logs are public here.
logging.getLogger("sqlglot").setLevel(logging.CRITICAL)

_BEGINNINGS = ("SELECT", "WITH")
_KEYWORDS = (
    "SELECT", "FROM", "WHERE", "HAVING", "LIMIT", "JOIN", "UNION", "BETWEEN", "DISTINCT", "GROUP BY", "ORDER BY",
)  # fmt: skip
_FIRST_WORD = re.compile(r"[\s(]*([A-Za-z_]\w*)")
_WORD = re.compile(r"[A-Za-z_]\w*")
# What the parser says of a mistake, in words of ours: its own hold names of Python's classes.
_SAYINGS = (
    (re.compile(r"Invalid expression"), "{here} is not expected here"),
    (re.compile(r"Required keyword"), "something is missing here"),
    (re.compile(r"Expected table name"), "the name of a table is missing here"),
    (re.compile(r"Expect(?:ing|ed) (\W{1,2})$"), "a {0} is missing"),
    (re.compile(r"Expect(?:ing|ed) ([A-Z][A-Z ]*)(?: after ([A-Z][A-Z ]*))?$"), "{0} is missing"),
)
_NAME = re.compile(r"([A-Za-z_]\w*)\s*\(")
_CALLED = re.compile(r"([A-Za-z_]\w*)\s*\(\s*(?:distinct\s+)?$", re.IGNORECASE)


def parse(text: str, dialect: str = "duckdb", parameters: Parameters | None = None) -> exp.Query:
    """Give the syntax tree of the one SELECT in `text`, with values for its placeholders."""
    if not isinstance(text, str):
        raise UsageError("USE-001", "the query is not text", hint="pass the query as a string")
    if len(text) > MAX_CHARACTERS:
        raise SqlError(
            "SQL-007",
            f"the query has {len(text)} characters; at most {MAX_CHARACTERS} are read",
            hint="split the query, or put long lists into a table",
        )
    try:
        text.encode()
    except UnicodeEncodeError:
        raise SqlError(
            "SQL-001", "the text is not valid Unicode", hint="look for broken characters"
        ) from None
    try:
        tokens = filled(text, parameters, dialect)
        check_shape(tokens)
        read = Dialect.get_or_raise(dialect).parser().parse(tokens, text)
        statements = [s for s in read if s is not None]
    except ParseError as error:
        raise _syntax_error(text, error) from None
    except TokenError:
        raise SqlError(
            "SQL-001", "the text cannot be split into words", hint="look for an unclosed quote"
        ) from None
    except RecursionError:
        raise too_deep() from None
    except (SqlError, UsageError):
        raise
    except (ValueError, AttributeError, TypeError, IndexError, KeyError):
        # The parser itself stumbled; its own message may quote anything, so it is not passed on.
        raise SqlError("SQL-001", "the text cannot be parsed", hint="check the syntax") from None
    if not statements:
        raise SqlError("SQL-001", "there is no statement", hint="write one SELECT")
    if len(statements) > 1:
        raise SqlError(
            "SQL-005", f"there are {len(statements)} statements", hint="send one SELECT at a time"
        )
    statement = statements[0]
    if not isinstance(statement, exp.Query) or isinstance(statement, exp.Table):
        raise _no_select(text)
    return statement


def _no_select(text: str) -> SqlError:
    """Say what stands in the place of a SELECT, by the word that the writer wrote."""
    first = _FIRST_WORD.match(text)
    word = "" if first is None else first[1]
    near = _begun(word)
    span = None if first is None or not near else Span(first.start(1), first.end(1))
    name = word[:40].upper() or "the text"
    hint = near or "Secant only reads: write a SELECT"
    return SqlError("SQL-005", f"{name} is not a SELECT", text=text, span=span, hint=hint)


def _syntax_error(text: str, error: ParseError) -> SqlError:
    first = error.errors[0] if error.errors else {}
    start = first.get("start")
    end = first.get("end")
    span = Span(int(start), int(end) + 1) if start is not None and end is not None else None
    if span is None and first.get("line") and first.get("col"):
        lines = text.split("\n")
        offset = sum(len(line) + 1 for line in lines[: int(first["line"]) - 1])
        marked = str(first.get("highlight") or "")
        end = offset + int(first["col"])
        # The parser counts to the end of the word that it stumbled over.
        wide = len(marked) if marked and text[:end].endswith(marked) else 1
        span = Span(max(0, end - wide), end)
    near = _misspelled(text, span)
    return SqlError(
        "SQL-001",
        f"the text cannot be parsed: {_saying(str(first.get('description')), text, span)}",
        text=text,
        span=span,
        hint=near or ("check the syntax at the mark" if span else "check the syntax"),
    )


def _saying(description: str, text: str, span: Span | None) -> str:
    marked = "" if span is None else text[span.start : span.end].strip()
    here = marked if 0 < len(marked) <= 40 and marked.isprintable() else "what stands"
    for pattern, template in _SAYINGS:
        if match := pattern.match(description.rstrip(".")):
            return template.format(*match.groups(), here=here)
    return "the syntax is wrong"


def _begun(word: str) -> str:
    """Ask whether the first word was meant to begin a query; DELETE is near SELECT, and is meant."""
    return "" if word.upper() in (*_BEGINNINGS, "DELETE") else meant(word, _BEGINNINGS)


def _misspelled(text: str, span: Span | None) -> str:
    """Ask whether a keyword was meant: by the first word, else by the words about the place of the mistake."""
    first = _FIRST_WORD.match(text)
    if first is not None and (near := _begun(first[1])):
        return near
    end = len(text) if span is None else span.end
    for word in reversed([w[0] for w in _WORD.finditer(text, 0, end)][-2:]):
        near = meant(word, _KEYWORDS)
        if near and word.upper() not in _KEYWORDS:
            return near
    return ""


_SIGNS = {
    "bitwiseand": "&", "bitwiseor": "|", "bitwisexor": "^", "bitwisenot": "~", "bitwiseleftshift": "<<",
    "bitwiserightshift": ">>", "nullsafeeq": "<=>", "glob": "GLOB", "kwarg": "=>", "propertyeq": ":=",
    "regexplike": "~", "arraycontainsall": "@>", "arraycontainedby": "<@", "arrayoverlaps": "&&",
    "jsonbcontains": "?", "placeholder": "a placeholder",
}  # fmt: skip


def form_of(node: exp.Expression) -> str:
    """Name what is neither a function nor a name: by its sign, not by what the parser calls it."""
    return _SIGNS.get(node.key, node.key.upper())


def span_of(node: exp.Expression) -> Span | None:
    """Give the place of a syntax node: that of the first identifiers below it that know theirs."""
    starts: list[int] = []
    ends: list[int] = []
    below: list[exp.Expr] = [node]
    for index, item in enumerate(below):  # breadth first; what is found is looked through in turn
        meta = item._meta  # most have none
        if (
            meta
            and (start := meta.get("start")) is not None
            and (end := meta.get("end")) is not None
        ):
            starts.append(int(start))
            ends.append(int(end))
        if index > 200:
            break  # a place, not a proof: a huge subtree is marked by its beginning
        for part in item.args.values():  # as `iter_expressions` does, which is slower
            if part is None or part is True or part is False or part.__class__ is str:
                continue
            if part.__class__ is list:
                below += [x for x in part if isinstance(x, exp.Expr)]
            elif isinstance(part, exp.Expr):
                below.append(part)
    return Span(min(starts), max(ends) + 1) if starts else None


def function_name(node: exp.Expression, text: str) -> str:
    """Name a function as its writer did, where the text tells; the parser's own name for it may be another."""
    if isinstance(node, exp.Dot):  # a function of a schema
        return f"{node.this.name}.{node.expression.name}"[:60]
    if isinstance(node, exp.Anonymous | exp.AnonymousAggFunc):
        return node.name[:60]
    span = span_of(node)
    if span is not None:
        itself = _NAME.match(text, span.start)
        before = _CALLED.search(text[: span.start])
        nested = isinstance(node.this, exp.Expression) and node.this.find(exp.Func) is not None
        if itself and not nested:
            return str(itself[1])[:60]
        if before and bool(itself) is nested:
            return str(before[1])[:60]
    return node.key
