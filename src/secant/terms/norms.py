"""Composite norms as an owner writes them: `l1(quantity, 0.01*price, linf(shipped, received))`.

In: text. Out: a tree of columns, positive factors and ℓp combinations; or a ValueError whose
sentence the policy reader puts behind the line. What a norm means for a bound is not decided here.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

_WORD = re.compile(
    r"\s*(?:(?P<number>\d+(?:\.\d*)?(?:[eE][+-]?\d{1,2})?|\.\d+(?:[eE][+-]?\d{1,2})?)"
    r"|(?P<name>[A-Za-z_][A-Za-z0-9_]*)|(?P<mark>[(),*]))"
)
_COMBINATION = re.compile(r"l(inf|[1-9][0-9]{0,3})\Z", re.IGNORECASE)
DEEPEST = 20
LONGEST = 10_000


@dataclass(frozen=True, slots=True)
class ColumnNorm:
    """How far one column moves: the absolute difference of its values."""

    column: str


@dataclass(frozen=True, slots=True)
class ScaledNorm:
    """A norm times a positive factor."""

    factor: Fraction
    inner: Norm


@dataclass(frozen=True, slots=True)
class CombinedNorm:
    """The ℓp norm of other norms; `power` None stands for the largest of them."""

    power: int | None
    parts: tuple[Norm, ...]


Norm = ColumnNorm | ScaledNorm | CombinedNorm


def parse_norm(text: str) -> Norm:
    """Read a norm.

    >>> parse_norm("l1(a, 0.5*b)").parts[1].factor
    Fraction(1, 2)
    """
    if len(text) > LONGEST:
        raise ValueError("the norm is too long")
    reader = _Reader(text)
    norm = reader.term(0)
    if reader.kind:
        raise ValueError(f"the norm goes on after its end, at {reader.word!r}")
    named = Counter(columns_of(norm))
    twice = next((name for name, times in named.items() if times > 1), None)
    if twice is not None:
        raise ValueError(f"the norm names {twice} twice")
    return norm


def columns_of(norm: Norm) -> Iterator[str]:
    """Give the columns that a norm names, as often as it names them."""
    if isinstance(norm, ColumnNorm):
        yield norm.column
    elif isinstance(norm, ScaledNorm):
        yield from columns_of(norm.inner)
    else:
        for part in norm.parts:
            yield from columns_of(part)


class _Reader:
    """One walk over one text: `kind` and `word` are the next word, "" at the end."""

    def __init__(self, text: str) -> None:
        self.text = text.rstrip()
        self.position = 0
        self.kind = self.word = ""
        self.step()

    def step(self) -> str:
        """Move on; give the word that was passed."""
        passed, self.kind, self.word = self.word, "", ""
        if self.position < len(self.text):
            match = _WORD.match(self.text, self.position)
            if match is None:
                raise ValueError(f"the norm cannot be read at character {self.position + 1}")
            self.kind, self.word = match.lastgroup or "", match[match.lastgroup or 0]
            self.position = match.end()
        return passed

    def expect(self, mark: str) -> None:
        if self.word != mark:
            raise ValueError(f"the norm needs {mark!r} before {self.word or 'its end'!r}")
        self.step()

    def term(self, depth: int) -> Norm:
        if depth > DEEPEST:
            raise ValueError("the norm is nested too deeply")
        if self.kind == "number":
            factor = Fraction(Decimal(self.step()))
            if factor == 0:
                raise ValueError("a factor of a norm must be positive")
            self.expect("*")
            return ScaledNorm(factor, self.term(depth + 1))
        if self.kind == "name":
            name = self.step()
            return self.combination(name, depth) if self.word == "(" else ColumnNorm(name.lower())
        raise ValueError(f"the norm needs a column or a combination at {self.word or 'its end'!r}")

    def combination(self, name: str, depth: int) -> Norm:
        known = _COMBINATION.match(name)
        if known is None:
            raise ValueError(f"there is no norm {name}; use l1, l2, ... or linf")
        self.expect("(")
        parts = [self.term(depth + 1)]
        while self.word == ",":
            self.step()
            parts.append(self.term(depth + 1))
        self.expect(")")
        power = None if known[1].lower() == "inf" else int(known[1])
        return CombinedNorm(power, tuple(parts))
