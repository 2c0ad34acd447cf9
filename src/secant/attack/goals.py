"""What an attacker is after, as a person writes it: values, how near, joined by `and` and `or`, and what is allowed.

In: `people.age within 2 and people.ward is 'north' prior uniform member 10% at most 30%`. Out: a tree of attributes and
what stands beside it. Only the words are judged here; columns, ranges and priors are looked up where they are known.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator
from fractions import Fraction

from secant.errors import UsageError
from secant.numeric.parameters import exact
from secant.records import frozen

EXAMPLE = "write it like: people.age within 2 prior normal(40, 12)"
PRIORS = ("uniform", "normal", "values", "histogram", "any")
LONGEST = 10_000
DEEPEST = 20
MOST_ATTRIBUTES = 50
MOST_ROWS = 1_000
_TOKEN = re.compile(
    r"\s*(?:(?P<text>'(?:[^']|'')*')"
    r"|(?P<number>[-+]?(?:\d{4}-\d{2}-\d{2}|(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d{1,4})?)(?![\w.]))"
    r"|(?P<name>[^\W\d]\w*|\"[^\"]+\")"
    r"|(?P<mark>[][().,:%]))"
)

Value = Fraction | str
"""A value: a number (days of the calendar for dates), or a text."""


@frozen
class Attribute:
    """One value of one row that is guessed, how near a guess must be, and what is believed before."""

    table: str
    column: str
    radius: Fraction
    """0 where the value itself must be hit."""
    center: Value | None = None
    """The middle of the one target that counts; None for the target that is most at risk."""
    kind: str = ""
    """The kind of prior; empty for what the policy's facts suggest."""
    numbers: tuple[tuple[Value, Fraction | None], ...] = ()
    """What stands in the parentheses of the prior: values, each with its share if one is given."""
    row: int = 1
    """Which row of the table: attributes with the same number are of the same row."""

    @property
    def name(self) -> str:
        """The attribute as it is written."""
        return f"{self.table}{'' if self.row == 1 else f'[{self.row}]'}.{self.column}"


@frozen
class Formula:
    """Several goals: all of them (`and`), or one of them (`or`)."""

    joined_by: str
    parts: tuple[Goal, ...]
    ball: bool = False
    """Whether it stands for columns that lie in one ball: the box around it is judged."""


Goal = Attribute | Formula


@frozen
class Allowed:
    """The most that an owner wants to be guessed."""

    share: Fraction
    advantage: bool = False
    """Whether `share` bounds what answers add, and not the chance itself."""
    on_average: bool = False
    """Whether it is about the average over answers; single ones may do better."""

    def __str__(self) -> str:
        text = f"{'advantage ' if self.advantage else ''}at most {float(100 * self.share):g} %"
        return text + " on average" * self.on_average


@frozen
class Attacker:
    """What is guessed, and what is believed of it."""

    goal: Goal | None
    """None where only membership is asked about."""
    member: Fraction | None = None
    """The prior chance that somebody is in the data; None where that is not asked about."""
    table: str = ""
    """Whose rows membership is about."""
    dependent: bool = False
    """Whether the attributes may depend on each other in any way."""
    allowed: Allowed | None = None

    def attributes(self) -> tuple[Attribute, ...]:
        """Give the attributes of the goal, in order."""
        return () if self.goal is None else tuple(leaves(self.goal))


def leaves(goal: Goal) -> Iterator[Attribute]:
    """Give the attributes of a goal, in order, as often as they occur."""
    if isinstance(goal, Attribute):
        yield goal
    else:
        for part in goal.parts:
            yield from leaves(part)


def goal_text(goal: Goal) -> str:
    """Write a goal."""
    if isinstance(goal, Attribute):
        return f"{goal.name} {_near(goal)}"
    if goal.ball:
        first = next(leaves(goal))
        names = ", ".join(leaf.column for leaf in leaves(goal))
        return f"{first.name.rpartition('.')[0]}.({names}) within {float(first.radius):g}"
    parts = [goal_text(p) if isinstance(p, Attribute) else f"({goal_text(p)})" for p in goal.parts]
    return f" {goal.joined_by} ".join(parts)


def _near(goal: Attribute) -> str:
    if isinstance(goal.center, str):
        return f"is '{goal.center}'"
    return f"within {float(goal.radius):g}" if goal.radius else "exactly"


def parse_attacker(text: str) -> Attacker:
    """Read an attacker.

    >>> parse_attacker("people.age within 2 of 40 at most 30%").allowed.share
    Fraction(3, 10)
    """
    if len(text) > LONGEST:
        raise UsageError("USE-001", "the attacker is too long")
    return _Reader(text).attacker()


def number_of_text(text: object) -> Fraction:
    """Read a number or a date; days count from the first day of the calendar."""
    if isinstance(text, str) and re.fullmatch(r"\s*'?\d{4}-\d{2}-\d{2}'?\s*", text):
        try:
            text = datetime.date.fromisoformat(text.strip().strip("'"))
        except ValueError:
            raise UsageError("USE-001", "a date of the attacker does not exist") from None
    if isinstance(text, datetime.datetime):
        raise UsageError("USE-001", "a timestamp cannot be guessed at; only numbers and dates can")
    if isinstance(text, datetime.date):
        return Fraction(text.toordinal())
    return exact(text.strip() if isinstance(text, str) else text, "a number of the attacker")


class _Reader:
    """The words of an attacker, one after the other."""

    def __init__(self, text: str) -> None:
        self.words: list[tuple[str, str]] = []
        self.at = 0
        position = 0
        while text[position:].strip():
            match = _TOKEN.match(text, position)
            if match is None:
                raise UsageError("USE-001", "the attacker cannot be read", hint=EXAMPLE)
            self.words.append((str(match.lastgroup), match[0].strip()))
            position = match.end()

    # ── words ────────────────────────────────────────────────────────────────────────────────────

    def kind(self) -> str:
        return self.words[self.at][0] if self.at < len(self.words) else ""

    def word(self) -> str:
        return self.words[self.at][1] if self.at < len(self.words) else ""

    def is_next(self, *expected: str) -> bool:
        """Whether the next words are these."""
        coming = [word.lower() for _, word in self.words[self.at : self.at + len(expected)]]
        return coming == list(expected)

    def skip(self, *expected: str) -> bool:
        """Go past these words, if they are the next ones."""
        if self.is_next(*expected):
            self.at += len(expected)
            return True
        return False

    def must(self, *expected: str) -> None:
        if not self.skip(*expected):
            next_word = self.word() or "the end"
            message = f"the attacker cannot be read: {' '.join(expected)!r} is missing before {next_word!r}"
            raise UsageError("USE-001", message, hint=EXAMPLE)

    def take(self) -> str:
        word = self.word()
        self.at += 1
        return word

    def name(self) -> str:
        if self.kind() != "name":
            message = f"the attacker cannot be read: a name is missing before {self.word() or 'the end'!r}"
            raise UsageError("USE-001", message, hint=EXAMPLE)
        return self.take().strip('"').lower()

    # ── numbers ──────────────────────────────────────────────────────────────────────────────────

    def number(self, what: str) -> Fraction:
        if self.kind() not in ("number", "name"):
            raise UsageError("USE-001", f"{what} is missing", hint=EXAMPLE)
        return exact(self.take(), what)

    def chance(self, what: str) -> Fraction:
        """Read a chance, as a share of 1 or in percent."""
        number = self.number(what)
        number = number / 100 if self.skip("%") else number
        if not 0 < number < 1:
            raise UsageError("USE-001", f"{what} must lie between 0 and 1, or 0 % and 100 %")
        return number

    def value(self) -> Value:
        if self.kind() == "text":
            text = self.take()[1:-1].replace("''", "'")
            return number_of_text(text) if re.fullmatch(r"\d{4}-\d{2}-\d{2}", text) else text
        if self.kind() not in ("number", "name"):
            raise UsageError("USE-001", "a value of the attacker is missing", hint=EXAMPLE)
        return number_of_text(self.take())

    # ── the sentence ─────────────────────────────────────────────────────────────────────────────

    def attacker(self) -> Attacker:
        goal, table = None, ""
        # A table alone is asked about membership: `people member 10%`.
        if [kind for kind, _ in self.words[:2]] == ["name", "name"] and self.words[1][
            1
        ] == "member":
            table = self.name()
        else:
            goal = self.either(0)
            table = next(leaves(goal)).table
        dependent = self.skip("dependent")
        member = None
        if self.skip("member"):
            member = self.chance("the prior chance of membership")
        allowed = self.allowed()
        if self.at < len(self.words):
            message = f"the attacker cannot be read from {self.word()!r} on"
            raise UsageError("USE-001", message, hint=EXAMPLE)
        parsed = Attacker(goal, member, table, dependent, allowed)
        if len(parsed.attributes()) > MOST_ATTRIBUTES:
            raise UsageError("USE-001", f"an attacker has at most {MOST_ATTRIBUTES} attributes")
        return parsed

    def allowed(self) -> Allowed | None:
        advantage = self.skip("advantage")
        if not advantage and not self.is_next("at"):
            return None
        self.must("at", "most")
        share = self.chance("the chance that is allowed")
        return Allowed(share, advantage, self.skip("on", "average"))

    def either(self, depth: int) -> Goal:
        return self.joined("or", lambda: self.joined("and", lambda: self.term(depth)))

    def joined(self, word: str, part: object) -> Goal:
        assert callable(part)
        parts = [part()]
        while self.skip(word):
            parts.append(part())
        return parts[0] if len(parts) == 1 else Formula(word, tuple(parts))

    def term(self, depth: int) -> Goal:
        if depth > DEEPEST:
            raise UsageError("USE-001", "the attacker is nested too deeply")
        if self.skip("("):
            goal = self.either(depth + 1)
            self.must(")")
            return goal
        table, row = self.name(), 1
        if self.skip("["):
            row = self.whole("the number of the row")
            self.must("]")
        self.must(".")
        if self.skip("("):
            return self.ball(table, row)
        column = self.name()
        radius, center = self.near()
        kind, numbers = self.prior()
        return Attribute(table, column, radius, center, kind, numbers, row)

    def whole(self, what: str) -> int:
        number = self.number(what)
        if number.denominator != 1 or not 1 <= number <= MOST_ROWS:
            raise UsageError("USE-001", f"{what} must be a whole number from 1 to {MOST_ROWS}")
        return int(number)

    def near(self) -> tuple[Fraction, Value | None]:
        if self.skip("exactly"):
            return Fraction(0), None
        if self.skip("is"):
            return Fraction(0), self.value()
        self.must("within")
        radius = self.radius()
        return radius, self.value() if self.skip("of") else None

    def radius(self) -> Fraction:
        radius = self.number("the radius")
        if radius < 0:
            raise UsageError("USE-001", "the radius must not be negative")
        return radius

    def ball(self, table: str, row: int) -> Formula:
        columns = [self.name()]
        while self.skip(","):
            columns.append(self.name())
        self.must(")")
        if len(set(columns)) < len(columns):
            raise UsageError("USE-001", "a column of the attacker is named twice")
        self.must("within")
        radius = self.radius()
        centers: list[Value | None] = [None] * len(columns)
        if self.skip("of"):
            centers = self.corners(len(columns))
        parts = [
            Attribute(table, column, radius, center, row=row)
            for column, center in zip(columns, centers, strict=True)
        ]
        return Formula("and", tuple(parts), ball=True)

    def corners(self, count: int) -> list[Value | None]:
        self.must("(")
        corners: list[Value | None] = [self.value()]
        while self.skip(","):
            corners.append(self.value())
        self.must(")")
        if len(corners) != count:
            raise UsageError("USE-001", "the middle of the target has a number for each column")
        return corners

    def prior(self) -> tuple[str, tuple[tuple[Value, Fraction | None], ...]]:
        if not self.skip("prior"):
            return "", ()
        kind = self.name()
        if kind not in PRIORS:
            raise UsageError(
                "USE-001", f"there is no prior {kind}", hint=f"use {', '.join(PRIORS)}"
            )
        pairs: list[tuple[Value, Fraction | None]] = []
        if self.skip("(") and not self.skip(")"):
            pairs.append(self.pair())
            while self.skip(","):
                pairs.append(self.pair())
            self.must(")")
        return kind, tuple(pairs)

    def pair(self) -> tuple[Value, Fraction | None]:
        value = self.value()
        if not self.skip(":"):
            return value, None
        share = self.number("a share of the prior")
        return value, share / 100 if self.skip("%") else share
