"""Composite norms as an owner writes them: `l1(quantity, 0.01*price, linf(shipped, received))`.

In: text. Out: a tree of columns, positive factors and ℓp combinations; or a ValueError whose
sentence the policy reader puts behind the line. Also the two numbers that a norm gives: the length
of a move and the dual norm of a gradient, both rounded up. What a norm means for a bound is not
decided here, and no data is read.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Literal

from secant.errors import UsageError
from secant.numeric.interval import Interval
from secant.numeric.powers import float_above, power
from secant.numeric.quick import quick
from secant.records import frozen

_WORD = re.compile(
    r"\s*(?:(?P<number>\d+(?:\.\d*)?(?:[eE][+-]?\d{1,2})?|\.\d+(?:[eE][+-]?\d{1,2})?)"
    r"|(?P<name>[lL][0-9]+\.[0-9]+(?=\s*\()|[A-Za-z_][A-Za-z0-9_]*)|(?P<mark>[(),*]))"
)
_COMBINATION = re.compile(r"l(inf|[1-9][0-9]{0,3}(?:\.[0-9]{1,6})?)\Z", re.IGNORECASE)
Measure = Literal["x", "ln", "sqrt"]
"""The coordinate in which a column moves: its value, the logarithm, the square root."""
DEEPEST = 20
LONGEST = 10_000


@frozen
class ColumnNorm:
    """How far one column moves: the absolute difference of its values."""

    column: str


@frozen
class LogNorm:
    """How far one positive column moves: the absolute difference of the logarithms."""

    column: str


@frozen
class RootNorm:
    """How far one column that is nowhere negative moves: the absolute difference of the square roots."""

    column: str


@frozen
class ScaledNorm:
    """A norm times a positive factor."""

    factor: Fraction
    inner: Norm


@frozen
class CombinedNorm:
    """The ℓp norm of other norms, p ≥ 1; `power` None stands for p = ∞, the largest of them."""

    power: Fraction | None
    parts: tuple[Norm, ...]


Leaf = ColumnNorm | LogNorm | RootNorm
Norm = Leaf | ScaledNorm | CombinedNorm
Moves = Mapping[str, Fraction | float]


@lru_cache(maxsize=1024)
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
    measures: dict[str, Measure] = {}
    for leaf, _ in _weighed(norm, quick(1)):
        if measures.setdefault(leaf.column, _measure(leaf)) != _measure(leaf):
            two = f"{_norm_text(leaf.column, measures[leaf.column])} and as {_norm_text(leaf.column, _measure(leaf))}"
            raise ValueError(f"the norm measures {leaf.column} both as {two}")
    return norm


def _measure(leaf: Leaf) -> Measure:
    if isinstance(leaf, LogNorm):
        return "ln"
    return "sqrt" if isinstance(leaf, RootNorm) else "x"


def _norm_text(column: str, measure: Measure) -> str:
    return column if measure == "x" else f"{measure}({column})"


def measures_of(norm: Norm) -> dict[str, Measure]:
    """Give the columns that a norm names, each with the coordinate in which it moves.

    >>> measures_of(parse_norm("l1(a, 2*sqrt(b))"))
    {'a': 'x', 'b': 'sqrt'}
    """
    return {leaf.column: _measure(leaf) for leaf in _leaves(norm)}


def columns_of(norm: Norm) -> Iterator[str]:
    """Give the columns that a norm names, as often as it names them."""
    return (leaf.column for leaf in _leaves(norm))


def _leaves(norm: Norm) -> Iterator[Leaf]:
    """Give each place where a column stands, from left to right."""
    pending = [norm]
    while pending:
        part = pending.pop()
        if isinstance(part, ScaledNorm):
            pending.append(part.inner)
        elif isinstance(part, CombinedNorm):
            pending.extend(reversed(part.parts))
        else:
            yield part


@lru_cache(maxsize=1024)
def each_once(norm: Norm) -> Norm:
    """Give a norm that is at most this one and names each column once: where it counts most (norm.once).

    >>> each_once(parse_norm("l1(l2(x, y), 3*x)")) == parse_norm("l1(l2(y), 3*x)")
    True
    """
    leaves = list(_weighed(norm, quick(1)))
    if len({leaf.column for leaf, _ in leaves}) == len(leaves):
        return norm
    chosen: dict[str, int] = {}
    for index, (leaf, weight) in enumerate(leaves):
        if leaf.column not in chosen or weight > leaves[chosen[leaf.column]][1]:
            chosen[leaf.column] = index
    reduced = _only(norm, iter(range(len(leaves))), set(chosen.values()))
    assert reduced is not None, "every column is kept somewhere"
    return reduced


def _weighed(norm: Norm, weight: Fraction) -> Iterator[tuple[Leaf, Fraction]]:
    """Give each place where a column stands, from left to right, with what a move of it alone counts there."""
    if isinstance(norm, ScaledNorm):
        yield from _weighed(norm.inner, weight * norm.factor)
    elif isinstance(norm, CombinedNorm):
        for part in norm.parts:
            yield from _weighed(part, weight)
    else:
        yield norm, weight


def _only(norm: Norm, places: Iterator[int], chosen: set[int]) -> Norm | None:
    if isinstance(norm, ScaledNorm):
        inner = _only(norm.inner, places, chosen)
        return None if inner is None else ScaledNorm(norm.factor, inner)
    if isinstance(norm, CombinedNorm):
        parts = [_only(part, places, chosen) for part in norm.parts]
        left = tuple(part for part in parts if part is not None)
        return CombinedNorm(norm.power, left) if left else None
    return norm if next(places) in chosen else None


def weight_in(norm: Norm, column: str) -> tuple[Fraction, Measure] | None:
    """Give how long a move of one column by 1 is where all others rest, and in which coordinate; None if unnamed.

    >>> weight_in(parse_norm("l1(2*a, linf(a, b))"), "a")
    (Fraction(3, 1), 'x')
    """
    if isinstance(norm, Leaf):
        return (quick(1), _measure(norm)) if norm.column == column else None
    if isinstance(norm, ScaledNorm):
        inner = weight_in(norm.inner, column)
        return None if inner is None else (norm.factor * inner[0], inner[1])
    weights = [x for part in norm.parts if (x := weight_in(part, column)) is not None]
    return (combined(norm.power, [w for w, _ in weights]), weights[0][1]) if weights else None


def norm_of(norm: Norm, column: str) -> str:
    """Write what a norm says of one of its columns where all others rest.

    >>> norm_of(parse_norm("l1(l2(0.02*x, y), 10*ln(speed))"), "speed")
    '10*ln(speed)'
    """
    if isinstance(norm, Leaf):
        return _norm_text(norm.column, _measure(norm))
    if isinstance(norm, ScaledNorm):
        factor = Decimal(norm.factor.numerator) / Decimal(norm.factor.denominator)
        return f"{factor:f}*{norm_of(norm.inner, column)}"
    parts = [norm_of(part, column) for part in norm.parts if column in columns_of(part)]
    power = (
        "inf"
        if norm.power is None
        else f"{Decimal(norm.power.numerator) / norm.power.denominator:f}"
    )
    return parts[0] if len(parts) == 1 else f"l{power}({', '.join(parts)})"


def read_power(name: str) -> Fraction | None:
    """Read the p of a combination from its name: `l1`, `l1.5`, `l2`; None for `linf`.

    >>> read_power("l1.5")
    Fraction(3, 2)
    """
    match = _COMBINATION.match(name)
    if match is None:
        raise ValueError(f"there is no norm {name}; use l1, l1.5, l2, ... or linf")
    return None if match[1].lower() == "inf" else quick(Decimal(match[1]))


def dual_power(power: Fraction | None) -> Fraction | None:
    """Give the p' with 1/p + 1/p' = 1, where None stands for infinity.

    >>> dual_power(Fraction(3, 2))
    Fraction(3, 1)
    """
    if power is None:
        return quick(1)
    return None if power == 1 else power / (power - 1)


def combined(exponent: Fraction | None, sizes: Iterable[Fraction], *, up: bool = True) -> Fraction:
    """Give the ℓp combination of sizes: exact for p = 1 and ∞, else rounded (norm.length)."""
    present = [size for size in sizes if size > 0]
    largest = max(present, default=quick(0))
    if exponent is None or len(present) <= 1:
        return largest
    if exponent == 1:
        return sum(present, quick(0))
    # Divided by the largest, so that the total lies between 1 and the number of parts.
    total = sum((_end(power(size / largest, exponent), up) for size in present), quick(0))
    return largest * _end(power(total, 1 / exponent), up)


def length(norm: Norm, moves: Moves) -> float:
    """Give the length of a move, column by column, rounded up (norm.length).

    For a `LogNorm` the entry is the move of ln x, for a `RootNorm` of √x. A column that the norm does not
    name is public and does not move: a move of it has infinite length.

    >>> length(parse_norm("l1(a, 2*linf(b, c))"), {"a": 1, "b": -3, "c": 2})
    7.0
    """
    return _reading(norm, moves, dual=False)


def dual_of(norm: Norm, gradient: Moves) -> float:
    """Give the dual norm of a vector of partial derivatives, rounded up (norm.dual).

    For a `LogNorm` the entry is the derivative by ln x, that is x·∂f/∂x, for a `RootNorm` the one by √x,
    that is 2·√x·∂f/∂x. A derivative by a column that the norm does not name has no bound here: leave out
    the columns that are public.

    >>> dual_of(parse_norm("l1(a, 2*linf(b, c))"), {"a": 1, "b": -3, "c": 2})
    2.5
    """
    return _reading(norm, gradient, dual=True)


def _reading(norm: Norm, entries: Moves, *, dual: bool) -> float:
    sizes: dict[str, Fraction] = {}
    named = set(columns_of(norm))
    unbounded = False
    for column, entry in entries.items():
        if isinstance(entry, float) and math.isnan(entry):
            raise UsageError("USE-001", f"the entry for {column} must be a number")
        if isinstance(entry, float) and math.isinf(entry):
            unbounded = True
        elif column in named:
            sizes[column] = abs(quick(entry))
        elif entry:
            unbounded = True
    return math.inf if unbounded else float_above(_size(norm, sizes, dual=dual))


def _size(norm: Norm, sizes: Mapping[str, Fraction], *, dual: bool) -> Fraction:
    if isinstance(norm, Leaf):
        return sizes.get(norm.column, quick(0))
    if isinstance(norm, ScaledNorm):
        inner = _size(norm.inner, sizes, dual=dual)
        return inner / norm.factor if dual else inner * norm.factor
    exponent = dual_power(norm.power) if dual else norm.power
    return combined(exponent, [_size(part, sizes, dual=dual) for part in norm.parts])


def _end(enclosure: Interval, up: bool) -> Fraction:
    low, high = enclosure.ends()
    return high if up else low


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
            factor = quick(Decimal(self.step()))
            if factor == 0:
                raise ValueError("a factor of a norm must be positive")
            self.expect("*")
            return ScaledNorm(factor, self.term(depth + 1))
        if self.kind == "name":
            name = self.step()
            return self.combination(name, depth) if self.word == "(" else ColumnNorm(name.lower())
        raise ValueError(f"the norm needs a column or a combination at {self.word or 'its end'!r}")

    def combination(self, name: str, depth: int) -> Norm:
        if name.lower() == "ln":
            return LogNorm(self.argument("ln"))
        if name.lower() == "sqrt":
            return RootNorm(self.argument("sqrt"))
        exponent = read_power(name)
        self.expect("(")
        parts = [self.term(depth + 1)]
        while self.word == ",":
            self.step()
            parts.append(self.term(depth + 1))
        self.expect(")")
        return CombinedNorm(exponent, tuple(parts))

    def argument(self, function: str) -> str:
        self.expect("(")
        if self.kind != "name":
            raise ValueError(f"{function} takes one column, not {self.word or 'its end'!r}")
        column = self.step().lower()
        self.expect(")")
        return column
