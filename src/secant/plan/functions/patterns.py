r"""Regular expressions that every engine reads alike: checked, and written out in what all of them share.

In: a pattern as the user wrote it. Out: the same pattern without abbreviations (`.`, `\d`, `\w`, `\s`), which engines
read differently, or ValueError with what is not accepted. Whether a text matches is the same everywhere then; which
part of it matches is so for engines that try alternatives in order, as DuckDB and Python do.
"""

from __future__ import annotations

import re
from functools import lru_cache

_CLASSES = {"d": "0-9", "w": "0-9A-Za-z_", "s": "\\t\\n\\f\\r "}
_CONTROL = "tnfr"
_REPEATED = re.compile(r"\{(\d{1,3})(?:(,)(\d{0,3}))?\}")
MOST_REPEATED = 255
LONGEST = 1_000


def portable(pattern: str) -> str:
    r"""Give a pattern as all engines read it.

    >>> portable("^[a-c]+.$")
    '^[a-c]+[^\\n]$'
    """
    if len(pattern) > LONGEST:
        raise ValueError("the pattern is too long")
    pieces: list[str] = []
    at, depth, repeatable = 0, 0, False
    while at < len(pattern):
        character = pattern[at]
        remainder = pattern[at:]
        at += 1
        if character == "\\":
            pieces.append(_escaped(pattern[at : at + 1]))
            at, repeatable = at + 1, True
        elif character == ".":
            pieces.append("[^\\n]")
            repeatable = True
        elif character == "[":
            piece, at = _bracket(pattern, at)
            pieces.append(piece)
            repeatable = True
        elif character == "(":
            if remainder.startswith("(?") and not remainder.startswith("(?:"):
                raise ValueError("(? is not accepted but for (?:")
            pieces.append("(?:" if remainder.startswith("(?:") else "(")
            at += 2 if remainder.startswith("(?:") else 0
            depth, repeatable = depth + 1, False
        elif character == ")":
            depth, repeatable = depth - 1, True
            if depth < 0:
                raise ValueError("a parenthesis is closed that was not opened")
            pieces.append(")")
        elif character in "*+?{":
            repetition = _REPEATED.match(remainder) if character == "{" else None
            counts = [int(c) for c in (repetition[1], repetition[3]) if c] if repetition else [0]
            if (
                not repeatable
                or (character == "{" and repetition is None)
                or max(counts) > MOST_REPEATED
            ):
                raise ValueError(f"{character} repeats nothing, or too much")
            pieces.append(repetition[0] if repetition else character)
            at += len(repetition[0]) - 1 if repetition else 0
            repeatable = False
        elif character in "]}":
            raise ValueError(f"{character} is written \\{character}")
        else:
            pieces.append(character)
            repeatable = character not in "|^$"
    if depth:
        raise ValueError("a parenthesis is not closed")
    piece = "".join(pieces)
    _compiled(piece)
    return piece


def _escaped(character: str) -> str:
    if character.lower() in _CLASSES:
        return f"[{'^' if character.isupper() else ''}{_CLASSES[character.lower()]}]"
    if character in _CONTROL or (character and not character.isalnum() and character.isascii()):
        return f"\\{character}"
    raise ValueError(f"\\{character} is not accepted")


def _bracket(pattern: str, at: int) -> tuple[str, int]:
    """Read what stands after an opening bracket, and give the place behind the closing one."""
    pieces = ["["]
    if pattern[at : at + 1] == "^":
        pieces.append("^")
        at += 1
    start = at
    while at < len(pattern) and (pattern[at] != "]" or at == start):
        character = pattern[at]
        if character == "[" or (character == "]" and at == start):
            raise ValueError(f"{character} inside brackets is written \\{character}")
        if character == "\\":
            inner = pattern[at + 1 : at + 2]
            if inner in _CLASSES:
                pieces.append(_CLASSES[inner])
            elif inner in _CONTROL or (inner and not inner.isalnum() and inner.isascii()):
                pieces.append(f"\\{inner}")
            else:
                raise ValueError(f"\\{inner} inside brackets is not accepted")
            at += 1
        else:
            pieces.append(character)
        at += 1
    if at >= len(pattern):
        raise ValueError("a bracket is not closed")
    return "".join([*pieces, "]"]), at + 1


@lru_cache(maxsize=512)
def _compiled(pattern: str) -> re.Pattern[str]:
    """Read a portable pattern; `$` is the end of the text, also before a line break."""
    ends = re.sub(r"(\\.|\[(?:\\.|[^\]])*\])|\$", lambda m: m[1] or r"\Z", pattern, flags=re.DOTALL)
    try:
        return re.compile(ends)
    except re.error:
        raise ValueError("the pattern cannot be read") from None


def matches(text: str, pattern: str) -> bool:
    """Say whether a part of a text fits a portable pattern."""
    return _compiled(pattern).search(text) is not None


def groups(pattern: str) -> int:
    """Count the groups of a portable pattern."""
    return _compiled(pattern).groups


def extracted(text: str, pattern: str, group: int = 0) -> str:
    """Give the first part of a text that fits, or a group of it; empty where nothing does."""
    match = _compiled(pattern).search(text)
    return "" if match is None else match[group] or ""


def exchanged(text: str, pattern: str, new: str, how: str = "") -> str:
    """Put another text in the place of the first part that fits, or of all with `g`."""
    return _compiled(pattern).sub(lambda _: new, text, count=0 if how == "g" else 1)
