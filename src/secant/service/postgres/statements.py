"""What a statement wants: Secant's answer, the shadow's, or nothing that is done here.

In: the tokens of one statement, the names of the data tables. Out: a `Framed`. Nothing private hangs on this: the
shadow holds no row and lets nobody read the tables, so that a question that is sent there by mistake is refused.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from secant.records import frozen
from secant.service.asking import Question
from secant.service.postgres.own_views import names_view
from secant.service.postgres.values import Columns
from secant.sql.lexer import Token, statements

# What the shadow may run (I8); all else is refused by name.
SHADOWED = frozenset({
    "SELECT", "VALUES", "TABLE", "WITH", "SHOW", "SET", "RESET", "BEGIN", "START", "COMMIT", "END",
    "ROLLBACK", "ABORT", "SAVEPOINT", "RELEASE", "DECLARE", "FETCH", "MOVE", "CLOSE", "DISCARD",
    "DEALLOCATE", "PREPARE", "EXECUTE", "UNLISTEN", "EXPLAIN",
})  # fmt: skip
_QUERY = ("SELECT", "WITH", "VALUES", "TABLE")
# Where a clause begins, and whether names in it are tables.
_CLAUSES = {
    "FROM": True, "JOIN": True, "USING": False, "ON": False, "WHERE": False, "SELECT": False,
    "GROUP": False, "ORDER": False, "HAVING": False, "LIMIT": False, "OFFSET": False,
    "UNION": False, "INTERSECT": False, "EXCEPT": False, "WINDOW": False, "SET": False,
    "VALUES": False, "RETURNING": False, "FETCH": False, "TABLE": True, "INTO": True,
    "UPDATE": True, "COPY": True, "LOCK": True, "TRUNCATE": True, "ANALYZE": True,
}  # fmt: skip
_SCHEMAS = ("public", "main")


@frozen
class Framed:
    """A statement: `kind` says who answers, `question` is the part of it that is a SELECT."""

    kind: str
    """`shadow`, `refused`, or, of data tables: `rows`, `explain`, `cursor`, `copy`, `table`."""
    text: str
    question: tuple[int, int] = (0, 0)
    """Where in the text the SELECT stands that Secant answers."""
    why: str = ""
    hint: str = ""
    placeholders: int = 0
    """The highest number of a placeholder in the question."""
    shows_nothing: bool = False
    """Whether the question asks for columns only."""
    reads_views: bool = False
    """Whether the shadow's answer rests on the views of `own_views`."""
    drops: str | None = None
    """The prepared statement that it lets go of."""
    drops_all: bool = False

    @property
    def asked(self) -> str:
        """Give the SELECT that Secant answers."""
        return self.text[slice(*self.question)]

    @property
    def tag(self) -> bytes:
        """Give what the client is told was done, where that is not what was sent."""
        return b"EXPLAIN" if self.kind == "explain" else b""

    def around(self, rows: str) -> str:
        """Give the statement with released rows where the question stood."""
        start, end = self.question
        return self.text[:start] + rows + self.text[end:]


def read_statements(text: str, tables: Collection[str]) -> list[Framed]:
    """Say what each statement of a text wants. Takes seconds where a text has a million characters."""
    return [framed(tokens, text, tables) for tokens in statements(text)]


def framed(tokens: Sequence[Token], text: str, tables: Collection[str]) -> Framed:
    """Say what one statement wants. `tokens` are its tokens; `text` is the whole text that they are of."""
    begin, end = tokens[0].start, tokens[-1].end
    own = text[begin:end]
    first = tokens[0]
    head = next((word for word in tokens if word.text != "("), first)
    if any(word.kind == "broken" for word in tokens):
        return _of_shadow(head, tokens, own)  # it tells what is not closed, with the place
    if not names_data(tokens, tables):
        return _of_shadow(head, tokens, own)
    reading = _reading(head, tokens)
    if isinstance(reading, str):
        return Framed("refused", own, why=reading, hint="Secant only reads: write a SELECT")
    kind, start, stop = reading
    if kind == "table" and (name := _created(tokens)) is not None and name in tables:
        return Framed(
            "refused", own, why=f"{name} is a table of the data", hint="choose another name"
        )
    question_tokens = tokens[start:stop]
    return Framed(
        kind,
        own,
        (question_tokens[0].start - begin, question_tokens[-1].end - begin),
        placeholders=max(
            (_number(word) for word in question_tokens if word.kind == "placeholder"), default=0
        ),
        shows_nothing=shows_nothing(question_tokens),
    )


def _number(word: Token) -> int:
    digits = word.text[1:]
    return int(digits[:9]) if digits.isdecimal() else 0


def names_data(tokens: Sequence[Token], tables: Collection[str]) -> bool:
    """Say whether a table of the data stands where a table can stand."""
    listing: list[bool | None] = [False]
    """For each open parenthesis, whether tables are listed; None in calls whose FROM is no clause."""
    for index, word in enumerate(tokens):
        before = tokens[index - 1] if index else None
        if word.kind == "sign" and word.text == "(":
            expected = before is not None and (listing[-1] and before.text in ("(", ","))
            opens = before is not None and before.is_word("FROM", "JOIN", "ONLY", "TABLE")
            called = before is not None and before.is_word(
                "EXTRACT", "SUBSTRING", "TRIM", "OVERLAY"
            )
            listing.append(None if called else expected or opens)
            continue
        if word.kind == "sign" and word.text == ")":
            listing = listing[:-1] or [False]
            continue
        if word.kind == "word" and word.text.upper() in _CLAUSES:
            if listing[-1] is None and word.is_word("FROM"):
                continue
            listing[-1] = _CLAUSES[word.text.upper()]
            continue
        if word.kind not in ("word", "name") or word.name.lower() not in tables or not listing[-1]:
            continue
        if before is None or before.text in (",", "(") or _opens(before):
            return True
        if before.text == "." and index >= 2 and tokens[index - 2].name.lower() in _SCHEMAS:
            return True
    return False


def _opens(word: Token) -> bool:
    return word.kind == "word" and (
        word.text.upper() == "ONLY" or _CLAUSES.get(word.text.upper(), False)
    )


def _of_shadow(head: Token, tokens: Sequence[Token], own: str) -> Framed:
    word = head.text.upper() if head.kind == "word" else ""
    if word == "DEALLOCATE" and not tokens[-1].is_word("ALL"):
        return Framed("shadow", own, drops=tokens[-1].name)
    if word in ("DEALLOCATE", "DISCARD") and tokens[-1].is_word("ALL"):
        return Framed("shadow", own, drops_all=True)
    if word in SHADOWED:
        return Framed("shadow", own, reads_views=names_view(tokens))
    if word == "CREATE" and _creates_table(tokens):
        return Framed("shadow", own, reads_views=names_view(tokens))
    if word == "DROP" and len(tokens) > 1 and tokens[1].is_word("TABLE"):
        return Framed("shadow", own)
    if word == "COPY" and any(w.is_word("STDOUT") for w in tokens) and _copies_out(tokens):
        return Framed("shadow", own, reads_views=names_view(tokens))
    named = f"{word} is not accepted" if word else "this is no statement"
    return Framed("refused", own, why=named, hint="Secant only reads: write a SELECT")


def _creates_table(tokens: Sequence[Token]) -> bool:
    """Say whether a statement makes a temporary table: all else that CREATE makes, others can read or call.

    The text of a view is in the catalogs for everybody, with the rows that were released to its owner.
    """
    behind = [w for w in tokens[1:4] if not w.is_word("LOCAL", "GLOBAL")]
    return len(behind) > 1 and behind[0].is_word("TEMP", "TEMPORARY") and behind[1].is_word("TABLE")


def _copies_out(tokens: Sequence[Token]) -> bool:
    depth = 0
    for word in tokens:
        depth += {"(": 1, ")": -1}.get(word.text, 0)
        if depth == 0 and word.is_word("FROM", "TO"):
            return word.is_word("TO")
    return False


def _reading(head: Token, tokens: Sequence[Token]) -> tuple[str, int, int] | str:
    """Give the kind of a statement over data, and from which token to which its question goes; or why it is refused."""
    word, count = head.text.upper(), len(tokens)
    if word in _QUERY:
        return "rows", 0, count
    if word == "EXPLAIN":
        return _explained(tokens)
    if word == "DECLARE":
        start = next((i for i, w in enumerate(tokens) if w.is_word("FOR")), None)
        return "a cursor is declared FOR a query" if start is None else ("cursor", start + 1, count)
    if word == "COPY":
        if tokens[1].text != "(" or not _copies_out(tokens):
            return "COPY reads from a query only: COPY (SELECT ...) TO STDOUT"
        if not any(w.is_word("STDOUT") for w in tokens):
            return "COPY writes to STDOUT only"
        return "copy", 2, _closing(tokens, 1)
    if word == "CREATE" and _creates_table(tokens):
        start = next((i for i, w in enumerate(tokens) if w.is_word("AS")), None)
        if start is None:
            return "a table is made by CREATE TEMP TABLE name AS SELECT ..."
        ends = [w.text.upper() for w in tokens[-3:]]
        stop = count - (
            3 if ends == ["WITH", "NO", "DATA"] else 2 if ends[1:] == ["WITH", "DATA"] else 0
        )
        return "table", start + 1, stop
    if word == "PREPARE":
        return "PREPARE is not accepted: let the driver prepare the statement"
    return f"{word or 'this'} is not accepted"


def _explained(tokens: Sequence[Token]) -> tuple[str, int, int] | str:
    index = 1
    options: Sequence[Token] = ()
    if tokens[index].text == "(" and not any(
        w.is_word(*_QUERY) for w in tokens[index + 1 : index + 2]
    ):
        close = _closing(tokens, index)
        options, index = tokens[index:close], close + 1
    while index < len(tokens) and tokens[index].is_word("ANALYZE", "ANALYSE", "VERBOSE"):
        options, index = (*options, tokens[index]), index + 1
    for number, word in enumerate(options):
        off = number + 1 < len(options) and options[number + 1].text.upper() in (
            "OFF",
            "FALSE",
            "0",
        )
        if word.is_word("ANALYZE", "ANALYSE") and not off:
            return "EXPLAIN ANALYZE would ask the question: write EXPLAIN, which spends nothing"
    if index >= len(tokens):
        return "EXPLAIN explains a query"
    return "explain", index, len(tokens)


def _closing(tokens: Sequence[Token], opened: int) -> int:
    depth = 0
    for index in range(opened, len(tokens)):
        depth += {"(": 1, ")": -1}.get(tokens[index].text, 0)
        if depth == 0:
            return index
    return len(tokens)


def _created(tokens: Sequence[Token]) -> str | None:
    """Give the name of the table that CREATE TEMP TABLE makes."""
    for index, word in enumerate(tokens[:-1]):
        if word.is_word("TABLE"):
            behind = tokens[index + 1 :]
            if len(behind) > 3 and behind[0].is_word("IF"):
                behind = behind[3:]
            if len(behind) > 2 and behind[1].text == ".":
                behind = behind[2:]
            return behind[0].name.lower()
    return None


def shows_nothing(tokens: Sequence[Token]) -> bool:
    """Say whether a question asks for columns only, as tools do: it ends with LIMIT 0."""
    end = [w for w in tokens if w.text != ")"][-2:]
    return len(end) == 2 and end[0].is_word("LIMIT") and end[1].text == "0"


# ── what a client chooses by `SET secant.…`, and the question that it then asks ────────────────────


_OF_QUESTION = ("epsilon", "error", "max_error", "delta", "level", "protection")
SETTINGS = (*_OF_QUESTION, "notice", "ends")
ASK_SETTINGS = "SELECT " + ", ".join(f"current_setting('secant.{name}', true)" for name in SETTINGS)


def question_of(text: str, values: tuple[object, ...], chosen: dict[str, str | None]) -> Question:
    """Give the question of a text, with what was chosen for it."""
    own = {n: v for n in _OF_QUESTION if (v := chosen.get(n)) is not None}
    choices: dict[str, Any] = own
    return Question(text, parameters=values, **choices)


# ── what a session keeps of questions that are prepared or bound, and how much of it ───────────────


MOST = 1000
MOST_BYTES = 16_000_000


@frozen
class Prepared:
    """A statement of a client over tables of the data."""

    frame: Framed
    types: tuple[int, ...]

    @property
    def size(self) -> int:
        """Give about how many bytes are kept for it."""
        return len(self.frame.text)


@dataclass(slots=True)
class Portal:
    """A statement with its values; asked when it is first executed."""

    prepared: Prepared
    values: tuple[object, ...]
    results: tuple[int, ...]
    size: int
    """About how many bytes are kept for it."""
    columns: Columns | None = None
    """As they were described to the client, if they were."""
    asked: bool = False


def has_room(open_items: Collection[Prepared | Portal], one: Prepared | Portal) -> bool:
    """Say whether one more may be kept."""
    return len(open_items) < MOST and sum(each.size for each in (*open_items, one)) <= MOST_BYTES
