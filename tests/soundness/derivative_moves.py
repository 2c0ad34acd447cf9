"""Databases that move: small ones, and others at any distance from them, drawn or climbed to.

In: a world, a source of randomness, the constants of a query. Out: databases whose protected cells differ and
nothing else: tiny, medium and large moves of one cell, a row, or all rows; onto thresholds, onto and beyond ends of
ranges. `climb` changes a pair step by step as long as it comes nearer to a violation.
"""

from __future__ import annotations

import datetime
import math
import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from derivative_check import CLOSE, Question, World, Worst, told
from derivative_distance import Database, Row, as_float, protected_columns

from secant.schema import types as t

SIZES = (1e-6, 1e-4, 1e-2, 0.1, 0.5, 2.0)
_DATE = re.compile(r"DATE\s+'(\d+)-(\d+)-(\d+)'", re.IGNORECASE)
_NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?![\w.])")


@dataclass(frozen=True)
class Cell:
    """One protected column: what it can hold and how it moves."""

    table: str
    column: str
    type: t.Type
    low: float
    high: float
    measure: str
    """What its moves are measured in: x, ln or sqrt."""

    def value(self, x: float) -> Any:
        """Give the value of the column's type nearest to a number."""
        if self.measure != "x":
            x = max(x, self.low / 4)
        if self.type.kind == "INTEGER":
            return round(x)
        if self.type.kind == "DATE":
            return datetime.date.fromordinal(min(max(round(x), 1), 3_600_000))
        if self.type.kind == "DECIMAL":
            return Decimal(round(x * 10**self.type.scale)).scaleb(-self.type.scale)
        return float(x)

    @property
    def step(self) -> float:
        if self.type.kind in ("INTEGER", "DATE"):
            return 1.0
        return 10.0**-self.type.scale if self.type.kind == "DECIMAL" else 0.0


def cells_of(world: World) -> list[Cell]:
    """Give all protected columns of a world."""
    found = []
    for table, columns in protected_columns(world.protection).items():
        known = world.catalog.table(table)
        assert known is not None
        kinds = {name.lower(): kind for name, kind in known.columns}
        for column, measure in columns.items():
            declared = world.policy.column(table, column).range
            low, high = (as_float(e) for e in declared) if declared else (-50.0, 50.0)
            found.append(Cell(table, column, kinds[column], low, high, measure))
    return found


def thresholds_of(text: str) -> tuple[float, ...]:
    """Give the constants of a query, as places on the line."""
    dates = [float(datetime.date(*map(int, d)).toordinal()) for d in _DATE.findall(text)]
    numbers = [float(x) for x in _NUMBER.findall(_DATE.sub("", text))]
    return tuple(dict.fromkeys(dates + numbers + [-x for x in numbers]))


@dataclass(frozen=True)
class Mover:
    """Draws databases at a distance from another one."""

    cells: Mapping[str, tuple[Cell, ...]]
    thresholds: tuple[float, ...]
    still: Callable[[str, Row], bool]
    """Rows that the owner has marked public: they do not move."""

    def place(self, draw: random.Random, cell: Cell) -> Any:
        """Draw a value of a cell: anywhere, near a threshold, at an end, or beyond."""
        span = cell.high - cell.low
        kind = draw.random()
        if kind < 0.35:
            x = draw.uniform(cell.low, cell.high)
        elif kind < 0.75:
            near = [c for c in self.thresholds if cell.low - span <= c <= cell.high + span]
            x = draw.choice(near) if near else draw.uniform(cell.low, cell.high)
            x += draw.choice((0.0, 1.0, -1.0)) * span * draw.choice(SIZES) * draw.random()
        elif kind < 0.9:
            x = draw.choice((cell.low, cell.high, 0.0, (cell.low + cell.high) / 2))
        else:
            x = draw.uniform(cell.low - span, cell.high + span)
        return cell.value(x)

    def moved(
        self, draw: random.Random, cell: Cell, value: Any, size: float, part: float | None
    ) -> Any:
        """Move a value by about a part of its range, or to a place; by exactly `part`, if that is given."""
        if part is None:
            if draw.random() < 0.25:
                return self.place(draw, cell)
            part = draw.uniform(-1.0, 1.0)
        x, span = as_float(value), cell.high - cell.low
        if cell.measure == "ln":
            wide = math.log(cell.high / cell.low)
            return cell.value(x * math.exp(part * size * wide))
        if cell.measure == "sqrt" and cell.step == 0:
            wide = math.sqrt(cell.high) - math.sqrt(cell.low)
            return cell.value(max(0.0, math.sqrt(x) + part * size * wide) ** 2)
        run = max(size * span * abs(part), cell.step)
        return cell.value(x + math.copysign(run, part))

    def change(self, draw: random.Random, database: Database) -> Database:
        """Give another database at some distance."""
        tables = [
            t
            for t in self.cells
            if any(not self.still(t, r) for r in database.get(t, ())) and self.cells[t]
        ]
        if not tables:
            return database
        size = draw.choice(SIZES)
        part = draw.uniform(-1.0, 1.0) if draw.random() < 0.4 else None
        whole = draw.random()
        chosen = tables if whole < 0.15 else [draw.choice(tables)]
        changed = dict(database)
        for table in chosen:
            rows = [dict(r) for r in database[table]]
            free = [i for i, r in enumerate(rows) if not self.still(table, r)]
            if not free:
                continue
            index = (
                free
                if draw.random() < 0.3
                else draw.sample(free, min(len(free), draw.choice((1, 1, 2))))
            )
            cells = list(self.cells[table])
            if draw.random() < 0.5:
                cells = draw.sample(cells, draw.randint(1, len(cells)))
            for i in index:
                for cell in cells:
                    if rows[i][cell.column] is None:
                        continue
                    rows[i][cell.column] = self.moved(draw, cell, rows[i][cell.column], size, part)
            changed[table] = rows
        return changed

    def between(self, before: Database, after: Database, part: float) -> Database:
        """Go only a part of the way from one database to another, or beyond it."""
        found = dict(after)
        for table, cells in self.cells.items():
            rows = []
            for a, b in zip(before.get(table, ()), after.get(table, ()), strict=True):
                row = dict(b)
                for cell in cells:
                    if row[cell.column] is not None and a[cell.column] != b[cell.column]:
                        x, y = as_float(a[cell.column]), as_float(b[cell.column])
                        row[cell.column] = cell.value(x + part * (y - x))
                rows.append(row)
            found[table] = rows
        return found

    def fill(self, draw: random.Random, database: Database) -> Database:
        """Put drawn values into all protected cells that are not empty."""
        filled = dict(database)
        for table, cells in self.cells.items():
            rows = []
            for row in database.get(table, ()):
                new = dict(row)
                for cell in cells:
                    if new[cell.column] is not None:
                        new[cell.column] = self.place(draw, cell)
                rows.append(new)
            filled[table] = rows
        return filled


def mover(world: World, text: str, still: Callable[[str, Row], bool] | None = None) -> Mover:
    """Give the mover of a world for one query: it moves the columns that the query names."""
    cells: dict[str, list[Cell]] = {}
    words = set(re.findall(r"\w+", text.lower()))
    for cell in cells_of(world):
        if cell.column in words and cell.table in words:
            cells.setdefault(cell.table, []).append(cell)
    return Mover(
        {t: tuple(c) for t, c in cells.items()}, thresholds_of(text), still or (lambda t, r: False)
    )


def climb(draw: random.Random, question: Question, moves: Mover, start: Worst, steps: int) -> Worst:
    """Change a pair as long as it comes nearer to a violation."""
    best = start
    for _ in range(steps):
        before, after = best.before, best.after
        kind = draw.random()
        if kind < 0.25:
            after = moves.change(draw, after)
        elif kind < 0.5:
            before = moves.change(draw, before)
        elif kind < 0.65:
            after = moves.between(before, after, draw.choice((0.1, 0.5, 0.9, 1.1, 2.0)))
        elif kind < 0.8:
            before = moves.between(after, before, draw.choice((0.1, 0.5, 0.9, 1.1, 2.0)))
        else:
            after = moves.change(draw, before)
        found = question.pair(before, after)
        if found is not None and found.distance > 1e-9 and best.ratio < found.ratio:
            best = found
    return best


@dataclass
class Tally:
    """What a search has seen."""

    pairs: int = 0
    nearest: float = 0.0
    moving: int = 0
    """Pairs in which some promise needed a part of the distance."""
    violations: list[str] = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        self.violations = []

    def note(self, worst: Worst, question: Question) -> None:
        self.pairs += 1
        self.moving += worst.ratio > 1e-9
        self.nearest = max(self.nearest, worst.ratio)
        if worst.ratio > 1 + CLOSE:
            self.violations.append(told(worst, question))


def attack(
    draw: random.Random,
    questions: Sequence[Question],
    moves: Mover,
    databases: Callable[[random.Random], Database],
    pairs: int,
    tally: Tally,
    *,
    first: bool = False,
) -> None:
    """Try pairs of drawn databases; the last third is spent on climbing from the worst of them.

    With `first`, until something is refuted.
    """
    for question in questions:
        worst: Worst | None = None
        wanted = max(1, pairs * 2 // 3)
        for _ in range(2 * wanted):
            if not wanted:
                break
            before = moves.fill(draw, databases(draw))
            after = moves.change(draw, before)
            found = question.pair(before, after)
            if found is None or found.distance <= 1e-9:
                continue
            wanted -= 1
            tally.note(found, question)
            if first and tally.violations:
                return
            if worst is None or found.ratio > worst.ratio:
                worst = found
        if worst is None:
            continue
        last = climb(draw, question, moves, worst, pairs // 3)
        tally.pairs += pairs // 3 - 1
        tally.note(last, question)


def attack_known(
    draw: random.Random,
    asked: Callable[[Database], Sequence[Question] | str],
    moves: Mover,
    databases: Callable[[random.Random], Database],
    tries: int,
    pairs: int,
    tally: Tally,
) -> int:
    """Attack questions that rest on what public columns hold: each is asked anew for each of some databases."""
    answered = 0
    for _ in range(tries):
        database = databases(draw)
        questions = asked(database)
        if isinstance(questions, str):
            continue
        answered += 1
        attack(draw, questions, moves, lambda _, d=database: d, pairs, tally)  # type: ignore[misc]
    return answered
