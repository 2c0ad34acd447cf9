"""Where each key of a TOML text stands: the standard parser gives values without positions.

In: text that `tomllib` has already accepted. Out: a map from the path of a key to its line, counted
from 1. Nothing is judged here and no value is interpreted, only stepped over.
"""

from __future__ import annotations

import tomllib
from bisect import bisect_left

Path = tuple[str | int, ...]

_BLANK = " \t\r\n"
_VALUE_ENDS = ",]}#\r\n"
_KEY_ENDS = ".=] \t"


def line_numbers(text: str) -> dict[Path, int]:
    """Give the line on which every key, table header and array element first appears."""
    return _Scan(text).document()


def line_of(lines: dict[Path, int], path: Path) -> int | None:
    """Give the line of a path, or of its nearest parent that is written down."""
    for length in range(len(path), 0, -1):
        if path[:length] in lines:
            return lines[path[:length]]
    return None


class _Scan:
    """One walk over one text. The position lives as long as the walk."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0
        self.lines: dict[Path, int] = {}
        self.breaks = [position for position, letter in enumerate(text) if letter == "\n"]
        self.implied: set[Path] = set()
        self.elements: dict[Path, int] = {}  # arrays of tables: how many elements so far

    def document(self) -> dict[Path, int]:
        table: Path = ()
        while self.blank() < len(self.text):
            if self.text[self.position] == "[":
                table = self.header()
            else:
                self.pair(table)
        return self.lines

    def header(self) -> Path:
        start = self.position
        repeated = self.text.startswith("[[", start)
        self.position += 2 if repeated else 1
        path = self.inside_arrays(self.key())
        if repeated:
            self.elements[path] = self.elements.get(path, -1) + 1
            self.note(path, start)
            path = (*path, self.elements[path])
        self.position = self.text.index("]", self.position) + (2 if repeated else 1)
        self.note(path, start)
        return path

    def inside_arrays(self, key: tuple[str, ...]) -> Path:
        """Follow the last element of every array of tables on the way, as TOML does."""
        path: Path = ()
        for part in key[:-1]:
            path = (*path, part)
            if path in self.elements:
                path = (*path, self.elements[path])
        return (*path, key[-1])

    def pair(self, table: Path) -> None:
        start = self.position
        path = (*table, *self.key())
        self.note(path, start)
        self.position = self.text.index("=", self.position) + 1
        self.value(path)

    def key(self) -> tuple[str, ...]:
        parts: list[str] = []
        while True:
            self.spaces()
            start = self.position
            if self.text[start] in "\"'":
                self.string()
                parts.append(tomllib.loads(f"k={self.text[start : self.position]}")["k"])
            else:
                while self.text[self.position] not in _KEY_ENDS:
                    self.position += 1
                parts.append(self.text[start : self.position])
            self.spaces()
            if self.text[self.position] != ".":
                return tuple(parts)
            self.position += 1

    def value(self, path: Path) -> None:
        self.spaces()
        first = self.text[self.position]
        if first in "\"'":
            self.string()
        elif first == "[":
            self.array(path)
        elif first == "{":
            self.inline_table(path)
        else:
            while self.position < len(self.text) and self.text[self.position] not in _VALUE_ENDS:
                self.position += 1

    def array(self, path: Path) -> None:
        self.position += 1
        index = 0
        while self.text[self.blank()] != "]":
            self.note((*path, index), self.position)
            self.value((*path, index))
            index += 1
            if self.text[self.blank()] == ",":
                self.position += 1
        self.position += 1

    def inline_table(self, path: Path) -> None:
        self.position += 1
        while self.text[self.blank()] != "}":
            self.pair(path)
            if self.text[self.blank()] == ",":
                self.position += 1
        self.position += 1

    def string(self) -> None:
        """Step over a string of any of the four kinds."""
        quote = self.text[self.position]
        long = self.text.startswith(quote * 3, self.position)
        closing = quote * 3 if long else quote
        self.position += len(closing)
        while not self.text.startswith(closing, self.position):
            # Only double-quoted strings know escapes.
            self.position += 2 if quote == '"' and self.text[self.position] == "\\" else 1
        self.position += len(closing)
        # A long string may end in up to two quotes of its own before the closing three.
        while long and self.position < len(self.text) and self.text[self.position] == quote:
            self.position += 1

    def spaces(self) -> None:
        while self.position < len(self.text) and self.text[self.position] in " \t":
            self.position += 1

    def blank(self) -> int:
        """Step over spaces, line ends and comments; give the new position."""
        while self.position < len(self.text):
            if self.text[self.position] == "#":
                end = self.text.find("\n", self.position)
                self.position = len(self.text) if end < 0 else end
            elif self.text[self.position] in _BLANK:
                self.position += 1
            else:
                break
        return self.position

    def note(self, path: Path, position: int) -> None:
        """Remember the line of a path, and of parents until they are written down themselves."""
        line = bisect_left(self.breaks, position) + 1
        if path not in self.lines or path in self.implied:
            self.lines[path] = line
            self.implied.discard(path)
        for length in range(len(path) - 1, 0, -1):
            if path[:length] in self.lines:
                break
            self.lines[path[:length]] = line
            self.implied.add(path[:length])
