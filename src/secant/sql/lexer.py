"""Text to tokens: words, names, strings, numbers, placeholders and signs, with their places. Nothing is parsed.

In: SQL text of anybody. Out: tokens in order; white space and comments are left out. Never here: what a statement
means. The parser's own tokenizer swallows whole statements (EXPLAIN, DECLARE) and takes `$1, $2` for a quoted text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from secant.records import frozen

# Order matters: the first alternative that fits wins.
_TOKEN = re.compile(
    r"""
      (?P<space>\s+|--[^\n]*)
    | (?P<comment>/\*)
    | (?P<escaped>[eE]'(?:[^'\\]|\\.|'')*')
    | (?P<string>(?:[bBxXnN]|[uU]&)?'(?:[^']|'')*')
    | (?P<name>(?:[uU]&)?"(?:[^"]|"")*")
    | (?P<number>(?:\d[\d_]*(?:\.(?!\.)[\d_]*)?|\.\d[\d_]*)(?:[eE][+-]?\d+)?)
    | (?P<placeholder>\?|\$\d+|\$[^\W\d]\w*|(?<!:):[^\W\d]\w*)
    | (?P<word>[^\W\d][\w$]*)
    | (?P<sign>::|<=|>=|<>|!=|\|\||.)
    """,
    re.VERBOSE | re.DOTALL,
)
_DOLLAR = re.compile(r"\$(?P<tag>[^\W\d]\w*)?\$")
_COMMENT_PART = re.compile(r"/\*|\*/")


@frozen
class Token:
    """A piece of SQL text: `kind` is word, name, string, number, placeholder, sign, or broken (no closing quote)."""

    kind: str
    text: str
    start: int

    @property
    def end(self) -> int:
        """Give the place behind it."""
        return self.start + len(self.text)

    @property
    def name(self) -> str:
        """Give the identifier that a word or a quoted name stands for; unquoted ones do not mind case."""
        if self.kind == "name":
            return self.text[self.text.index('"') + 1 : -1].replace('""', '"')
        return self.text.lower() if self.kind == "word" else ""

    def is_word(self, *words: str) -> bool:
        """Whether it is one of these keywords, unquoted."""
        return self.kind == "word" and self.text.upper() in words


def tokens(text: str) -> Iterator[Token]:
    """Give the tokens of a text; one that lacks its closing quote is `broken` and reaches to the end."""
    position = 0
    while position < len(text):
        opened = _DOLLAR.match(text, position)
        if opened:
            closing = text.find(opened[0], opened.end())
            end = len(text) if closing < 0 else closing + len(opened[0])
            yield Token("broken" if closing < 0 else "string", text[position:end], position)
            position = end
            continue
        match = _TOKEN.match(text, position)
        assert match is not None, "the last alternative fits every character"
        kind = match.lastgroup or "sign"
        end = match.end()
        if kind == "comment":
            end = _after_comment(text, position)
            if end < 0:
                yield Token("broken", text[position:], position)
                return
        elif kind == "sign" and match[0] in "'\"":
            yield Token("broken", text[position:], position)
            return
        elif kind != "space":
            yield Token("string" if kind == "escaped" else kind, match[0], position)
        position = end


def _after_comment(text: str, position: int) -> int:
    """Give the place behind a comment, which may hold others; -1 where it does not end."""
    depth = 0
    for part in _COMMENT_PART.finditer(text, position):
        depth += 1 if part[0] == "/*" else -1
        if depth == 0:
            return part.end()
    return -1


def statements(text: str) -> list[tuple[Token, ...]]:
    """Split a text at its semicolons; empty statements are left out."""
    parts: list[list[Token]] = [[]]
    for token in tokens(text):
        if token.kind == "sign" and token.text == ";":
            parts.append([])
        else:
            parts[-1].append(token)
    return [tuple(part) for part in parts if part]
