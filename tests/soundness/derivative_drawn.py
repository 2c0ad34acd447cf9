"""Draws queries and policies for the derivative analysis: expressions, filters, joins, norms, settings.

In: a `random.Random`. Out: the text of a query over the schema of `derivative_worlds`, and a world to ask it in.
Divisors, logarithms and roots are mostly given arguments that keep away from 0, so that enough is answered.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from derivative_check import World
from derivative_worlds import small_world

NUMBERS = ("0", "1", "2", "3", "0.5", "1.5", "4")
PUBLIC = {"a": "a.g = 1", "o": "o.k = 1", "b": "b.k = 1", "u": "u.h = 1", "lone": "1 = 1"}
SOURCES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("a", ("a",)), ("a", ("a",)), ("a", ("a",)), ("b", ("b",)),
    ("a JOIN u ON a.k = u.k", ("a", "u")), ("a, u", ("a", "u")),
    ("a JOIN b ON a.k = b.k", ("a", "b")), ("a JOIN b ON a.k = b.id", ("a", "b")),
    ("b JOIN a ON a.id = b.k AND a.g = 1", ("a", "b")), ("a, b", ("a", "b")),
    ("a JOIN a AS o ON a.k = o.id", ("a", "o")), ("a, a AS o", ("a", "o")),
    ("a JOIN a AS o ON a.id = o.id", ("a", "o")), ("a, lone", ("a", "lone")),
    ("a JOIN b ON a.k = b.id JOIN u ON b.k = u.k", ("a", "b", "u")), ("lone, u", ("lone", "u")),
)  # fmt: skip
FREE = {
    "a": ("x", "y", "v", "m", "c", "p"), "o": ("x", "y", "v", "m", "p"), "b": ("z", "w", "m"),
    "u": ("q",), "lone": ("s",),
}  # fmt: skip
ABOVE = {"a": ("y", "v"), "o": ("y", "v"), "b": ("w",), "u": (), "lone": ()}
KEYS = {"a": ("g", "k", "g+k"), "o": ("g",), "b": ("k",), "u": ("h", "k"), "lone": ()}
AGGREGATES = ("sum", "sum", "sum", "sum", "count", "count", "min", "max", "avg", "variance")


@dataclass(frozen=True)
class Grammar:
    """Draws the parts of a query over some tables."""

    draw: random.Random
    tables: tuple[str, ...]

    def column(self) -> str:
        table = self.draw.choice(self.tables)
        return f"{table}.{self.draw.choice(FREE[table])}"

    def above(self, depth: int) -> str:
        """Draw a value that keeps away from 0."""
        draw = self.draw
        names = [f"{t}.{c}" for t in self.tables for c in ABOVE[t]]
        kind = draw.randrange(8) if depth > 0 else draw.randrange(2)
        if kind < 3 and names:
            return draw.choice(names)
        if kind < 4:
            return f"(abs({self.column()}) + 0.5)"
        if kind == 4:
            return f"exp({self.value(depth - 1)} * 0.1)"
        if kind == 5:
            return f"({self.above(depth - 1)} + {self.above(depth - 1)})"
        if kind == 6:
            return f"({self.above(depth - 1)} * {self.above(depth - 1)})"
        return f"{draw.choice(('least', 'greatest'))}({self.above(depth - 1)}, {self.above(0)})"

    def value(self, depth: int) -> str:
        """Draw a value."""
        draw = self.draw
        if depth <= 0:
            return self.column() if draw.random() < 0.8 else draw.choice(NUMBERS)
        one, two = (lambda: self.value(depth - 1)), (lambda: self.value(depth - 2))
        kind = draw.randrange(20)
        if kind < 9:
            return f"({one()} {'+-*'[kind % 3]} {two()})"
        if kind < 11:
            return f"({one()} / {self.above(depth - 1)})"
        if kind == 11:
            return f"exp({two()} * 0.2)"
        if kind == 12:
            return f"{draw.choice(('ln', 'sqrt'))}({self.above(depth - 1)})"
        if kind == 13:
            return f"abs({one()})"
        if kind < 16:
            return f"{draw.choice(('least', 'greatest'))}({one()}, {two()})"
        if kind == 16:
            return f"coalesce({one()}, {two()})"
        if kind == 17:
            asked = PUBLIC[self.tables[0]] if draw.random() < 0.5 else self.condition(depth - 1)
            return f"CASE WHEN {asked} THEN {one()} * {draw.choice(('100', '1'))} ELSE {two()} END"
        if kind == 18:
            x, y = self.column(), self.column()
            return f"sqrt({x}*{x} + {y}*{y} + {draw.choice(('0', '1'))})"
        return f"power({self.above(0)}, {draw.choice(('2', '0.5', '-1', '1.5', '3'))})"

    def condition(self, depth: int) -> str:
        """Draw a condition."""
        draw = self.draw
        kind = draw.randrange(14)
        if depth > 0 and kind < 4:
            word = draw.choice(("AND", "AND", "OR"))
            return f"({self.condition(depth - 1)} {word} {self.condition(depth - 1)})"
        if depth > 0 and kind == 4:
            return f"NOT ({self.condition(depth - 1)})"
        if depth > 0 and kind == 5:
            word = draw.choice(("<>", "="))
            return f"(({self.condition(0)}) {word} ({self.condition(0)}))"
        if kind == 6:
            return (
                f"{self.column()} BETWEEN {draw.choice(('0', '1'))} AND {draw.choice(('2', '3'))}"
            )
        if kind == 7:
            items = draw.sample(NUMBERS, draw.randint(1, 3))
            return f"{self.column()} {draw.choice(('', 'NOT '))}IN ({', '.join(items)})"
        if kind == 8:
            return PUBLIC[draw.choice(self.tables)]
        if kind == 9:
            return f"{self.column()} IS {draw.choice(('', 'NOT '))}NULL"
        op = draw.choice(("<", "<=", ">", ">=", "=", "<>", ">", "<"))
        left = self.value(min(depth, 1))
        right = draw.choice(NUMBERS) if draw.random() < 0.7 else self.column()
        return f"{left} {op} {right}"


def drawn_query(draw: random.Random) -> str:
    """Draw the text of a query."""
    source, tables = draw.choice(SOURCES)
    grammar = Grammar(draw, tables)
    function = draw.choice(AGGREGATES)
    depth = draw.choice((0, 1, 1, 2, 2, 3))
    shown = "count(*)" if function == "count" else f"{function}({grammar.value(depth)})"
    if draw.random() < 0.2:
        shown += f", {draw.choice(('sum', 'max'))}({grammar.value(1)})"
    where = "" if draw.random() < 0.4 else f" WHERE {grammar.condition(draw.choice((0, 1, 2)))}"
    keys = [f"{t}.{k}" if "+" not in k else f"{t}.g + {t}.k" for t in tables for k in KEYS[t]]
    if keys and draw.random() < 0.2:
        key = draw.choice(keys)
        return f"SELECT {key}, {shown} FROM {source}{where} GROUP BY {key}"
    return f"SELECT {shown} FROM {source}{where}"


# ── worlds ───────────────────────────────────────────────────────────────────────────────────────

POWERS = ("l1", "l1", "l1", "l2", "linf", "l1.5", "l3")
FACTORS = ("", "", "0.5*", "2*", "10*", "0.1*")


def _norm(draw: random.Random, parts: list[str]) -> str:
    if len(parts) == 1:
        return draw.choice(FACTORS) + parts[0]
    if len(parts) > 2 and draw.random() < 0.5:
        cut = draw.randint(1, len(parts) - 1)
        parts = [_norm(draw, parts[:cut]), *parts[cut:]]
        draw.shuffle(parts)
    written = ", ".join(draw.choice(FACTORS) + p for p in parts)
    return f"{draw.choice(FACTORS)}{draw.choice(POWERS)}({written})".replace("*0.1*", "*").replace(
        "**", "*"
    )


def _measured(draw: random.Random, table: str, column: str) -> str:
    """Measure some columns in ln or sqrt, where their ranges allow it."""
    kind = draw.random()
    if column in "vw" and kind < 0.25:
        return f"ln({column})"
    rooted = column in "yvwcs" or (table, column) == ("b", "m")
    return f"sqrt({column})" if rooted and kind > 0.75 else column


def drawn_world(draw: random.Random) -> tuple[World, bool]:
    """Draw a world, and say whether rows of `a` with g = 1 are marked public."""
    norms = {}
    for table, columns in (("a", "xyvmc"), ("b", "zwm"), ("lone", "s")):
        if table != "a" and draw.random() < 0.25:
            continue
        named = [c for c in columns if draw.random() < 0.75] or [columns[0]]
        draw.shuffle(named)
        parts = [_measured(draw, table, c) for c in named]
        norms[table] = _norm(draw, parts)
    soft = draw.choice(
        (
            "",
            "",
            "",
            'kind = "exact"',
            'kind = "ramp", width = 0.7',
            'kind = "sigmoid", slope = 1.5',
        )
    )
    settings = f"softening = {{ {soft} }}" if soft else ""
    open_rows = draw.random() < 0.15
    if open_rows:
        settings += '\npublic_rows = { a = "g = 1" }'
    rows = {t: draw.choice(POWERS) for t in norms} if draw.random() < 0.4 else None
    keys = tuple(k for k in ("a", "b", "u") if draw.random() < 0.75)
    over = draw.choice(POWERS) if draw.random() < 0.4 else "l1"
    return small_world(norms, rows=rows, tables=over, settings=settings, keys=keys), open_rows
