"""What tells two occurrences of rows of one relation apart.

In: the marks that rules put on occurrences. Out: formulas. Never here: what rows hold, and which of them differ.
"""

from __future__ import annotations

from collections.abc import Sequence

from secant.records import frozen
from secant.sensitivity.smt.language import Expression, Language, Value


@frozen
class Rows:
    """They are different rows of a table."""

    row: Expression


@frozen
class Outputs:
    """They hold different values."""

    values: tuple[Value, ...]


@frozen
class Each:
    """They differ in every part."""

    parts: tuple[Mark, ...]


@frozen
class Some:
    """They differ in at least one part."""

    parts: tuple[Mark, ...]


@frozen
class Branch:
    """They come from different sides, or differ on their common one."""

    second: Expression
    marks: tuple[Mark, Mark]


@frozen
class Padding:
    """They come from a left join: a row that always has a partner is never padded."""

    padded: Expression
    left: Mark
    right: Mark
    right_differs: Expression


Mark = Rows | Outputs | Each | Some | Branch | Padding


def apart(language: Language, a: Mark, b: Mark) -> Expression:
    """Give what must hold for two occurrences of rows of one relation to be different ones."""
    if isinstance(a, Rows) and isinstance(b, Rows):
        return a.row != b.row
    if isinstance(a, Outputs) and isinstance(b, Outputs):
        pairs = zip(a.values, b.values, strict=True)
        return language.any_of([language.no(language.same(x, y)) for x, y in pairs])
    if isinstance(a, (Each, Some)) and isinstance(b, (Each, Some)):
        parts = [apart(language, x, y) for x, y in zip(a.parts, b.parts, strict=True)]
        return language.all_of(parts) if isinstance(a, Each) else language.any_of(parts)
    if isinstance(a, Branch) and isinstance(b, Branch):
        first, second = (apart(language, x, y) for x, y in zip(a.marks, b.marks, strict=True))
        inside = language.choose(a.second, second, first)
        return language.any_of([a.second != b.second, inside])
    assert isinstance(a, Padding), "every mark has a case"
    assert isinstance(b, Padding), "marks of one relation are alike"
    left, right = apart(language, a.left, b.left), apart(language, a.right, b.right)
    choose = language.choose
    matched = language.any_of([left, right])
    mixed = language.any_of([left, choose(a.padded, b.right_differs, a.right_differs)])
    return choose(a.padded == b.padded, choose(a.padded, left, matched), mixed)


def no_later(language: Language, a: Sequence[Expression], b: Sequence[Expression]) -> Expression:
    """Say that one occurrence is not after another one: the order in which they are found is ours (smt.rows)."""
    later = language.truth(True)
    for x, y in zip(reversed(a), reversed(b), strict=True):
        later = language.any_of([x < y, language.all_of([x == y, later])])
    return later
