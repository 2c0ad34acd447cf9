"""Ask every question as an analyst would, a few times over, and say what came back: a useful number, or what is wrong.

In: a data set and a way of asking. Out: one record per question, as `secant bench useful --json` writes it. The truth
is what the user's own text gives. Every pass over the questions is a fresh connection, in which facts that one question
found serve the later ones, as they would serve anybody.
"""

from __future__ import annotations

import datetime
import math
import re
import statistics
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import duckdb

from bench.suites.useful.sets import DataSet, opened
from secant.engine import Connection
from secant.errors import SecantError
from secant.release.answer import Answer

ONE = Fraction(1)
NARROW = 0.1
"""A useful number's half width is at most so much of the truth."""
DROWNED = 1.0
MISSED, SEVERAL = 5, 3
"""One cell in five may miss the truth by chance, and one of three or four; with more, the answer is wrong."""
FORETELLING = ("WRN-002", "WRN-005", "WRN-008")
"""Warnings, given before anything is spent, that groups may be hidden or numbers drowned."""
BAD = ("wrong", "refused", "empty", "hidden", "open", "drowned", "wide")
MEANINGS = {
    "useful": f"half width at most {NARROW:.0%} of the truth, and it holds",
    "wide": f"half width from {NARROW:.0%} to {DROWNED:.0%} of the truth",
    "drowned": "half width larger than the truth",
    "open": "an end is missing: nothing is said of how far off the number may be",
    "hidden": "fewer than half of the groups are shown",
    "empty": "nothing is shown at all",
    "refused": "no answer",
    "wrong": f"the ends miss the truth: a single number, or more than one cell in {MISSED}",
}
Key = tuple[object, ...]
Row = dict[str, Any]
_TOP = re.compile(r"\s+LIMIT\s+(\d+)\s*$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Cell:
    """One shown number with its ends, and what is true."""

    truth: float
    shown: float
    low: float
    high: float

    @property
    def half(self) -> float:
        """Give the half width in shares of the truth."""
        return self._share((self.high - self.low) / 2)

    @property
    def error(self) -> float:
        """Give the error in shares of the truth."""
        return self._share(abs(self.shown - self.truth))

    @property
    def holds(self) -> bool:
        """Say whether the truth lies between the ends, but for rounding."""
        slack = 1e-9 * abs(self.truth)
        return self.low - slack <= self.truth <= self.high + slack

    def _share(self, size: float) -> float:
        return size / abs(self.truth) if self.truth else (math.inf if size else 0.0)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one release came to."""

    status: str
    half: float = math.inf
    error: float = math.inf
    held: int = 0
    cells: int = 0
    warned: bool = False
    words: str = ""
    seconds: float = 0.0


def measure(
    made: DataSet, ways: Sequence[str], repeat: int, epsilon: Fraction = ONE
) -> Iterator[Row]:
    """Give a record for each way and question, when all passes of a way are done."""
    with duckdb.connect(str(made.database), read_only=True) as plain:
        truths = {
            name: plain.execute(_TOP.sub("", text)).fetchall()
            for name, text in made.questions.items()
        }
    for way in ways:
        found: dict[str, list[Outcome]] = {name: [] for name in made.questions}
        for _ in range(repeat):
            with opened(made, way) as db:
                for name, text in made.questions.items():
                    found[name].append(ask(db, text, truths[name], epsilon))
        for name, outcomes in found.items():
            head = {"data": made.name, "tuning": made.tuning, "way": way, "query": name}
            yield {**head, **_record(outcomes)}


def ask(
    db: Connection, text: str, truth: Sequence[Sequence[object]], epsilon: Fraction = ONE
) -> Outcome:
    """Ask once, with the delta that a question has by default."""
    started, told = time.perf_counter(), list[str]()
    try:
        answer = db.sql(text, epsilon=epsilon, warn=lambda caution: told.append(caution.code))
    except SecantError as refused:
        return Outcome("refused", words=f"{refused.code} {refused.message}")
    cells, expected = cells_of(text, answer, truth)
    seconds, warned = time.perf_counter() - started, any(code in FORETELLING for code in told)
    # What is not shown is infinitely far off, and infinitely wide.
    missing = [math.inf] * max(0, expected - len(cells))
    half = statistics.median([*(c.half for c in cells), *missing]) if expected else 0.0
    error = statistics.median([*(c.error for c in cells), *missing]) if expected else 0.0
    held = sum(c.holds for c in cells)
    status = _status(len(cells), expected, held, half)
    return Outcome(status, half, error, held, len(cells), warned, "", seconds)


def _status(shown: int, expected: int, held: int, half: float) -> str:
    if expected and not shown:
        return "empty"
    if shown - held > max(shown // MISSED, int(shown >= SEVERAL)):
        return "wrong"
    if 2 * shown < expected:
        return "hidden"
    if math.isinf(half):
        return "open"
    return "useful" if half <= NARROW else "wide" if half <= DROWNED else "drowned"


def cells_of(
    text: str, answer: Answer, truth: Sequence[Sequence[object]]
) -> tuple[list[Cell], int]:
    """Give the shown numbers that have a truth, and how many there should be."""
    noisy = [bool(x) for x in answer.error["noisy"]]
    true = _by_key(truth, noisy)
    cells = []
    for row, low, high in zip(answer.rows, answer.low, answer.high, strict=True):
        key = _key(row, noisy)
        for column, is_noisy in enumerate(noisy):
            value = true.get((*key, column)) if is_noisy else None
            if value is None or row[column] is None:
                continue
            ends = (
                _number(end, else_=side)
                for end, side in ((low[column], -math.inf), (high[column], math.inf))
            )
            cells.append(Cell(value, _number(row[column]), *ends))
    top = _TOP.search(text)
    most = int(top.group(1)) * sum(noisy) if top else len(true)
    return cells, min(most, len(true))


def _by_key(rows: Sequence[Sequence[object]], noisy: Sequence[bool]) -> Mapping[Key, float]:
    return {
        (*_key(row, noisy), column): _number(row[column])
        for row in rows
        for column, is_noisy in enumerate(noisy)
        if is_noisy and row[column] is not None
    }


def _key(row: Sequence[object], noisy: Sequence[bool]) -> Key:
    """Give the exact values of a row; engines give whole numbers as floats, and dates as moments."""
    return tuple(_comparable(x) for x, is_noisy in zip(row, noisy, strict=True) if not is_noisy)


def _comparable(value: object) -> object:
    if isinstance(value, datetime.datetime):
        return value.isoformat()
    if isinstance(value, datetime.date):
        return datetime.datetime(value.year, value.month, value.day).isoformat()  # noqa: DTZ001
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return value


def _number(value: object, else_: float = math.nan) -> float:
    return else_ if value is None else float(value)  # type: ignore[arg-type]


def _record(outcomes: Sequence[Outcome]) -> Row:
    """Sum up: useful if most releases are, else what most of the others are, the worse one of two."""
    statuses = Counter(one.status for one in outcomes)
    useful = statuses.pop("useful", 0)
    most = (
        "useful"
        if 2 * useful > len(outcomes)
        else min(statuses, key=lambda s: (-statuses[s], BAD.index(s)))
    )
    wrong = [one for one in outcomes if one.status == "wrong"]
    return {
        "status": most,
        "releases": len(outcomes),
        "useful": useful,
        "wrong": len(wrong),
        "confidently_wrong": sum(one.half <= NARROW for one in wrong),
        "empty_unwarned": sum(one.status == "empty" and not one.warned for one in outcomes),
        "half": _finite(statistics.median(one.half for one in outcomes)),
        "error": _finite(statistics.median(one.error for one in outcomes)),
        "held": sum(one.held for one in outcomes),
        "cells": sum(one.cells for one in outcomes),
        "words": next((one.words for one in outcomes if one.words), ""),
        "seconds": max(one.seconds for one in outcomes),
    }


def _finite(value: float) -> float | None:
    """JSON has no infinity."""
    return value if math.isfinite(value) else None


def summary(rows: Sequence[Mapping[str, Any]]) -> Iterator[Row]:
    """Count for each set and way what its questions came to."""
    for data, way in dict.fromkeys((row["data"], row["way"]) for row in rows):
        here = [row for row in rows if (row["data"], row["way"]) == (data, way)]
        cells = sum(row["cells"] for row in here)
        yield {
            "data": data,
            "tuning": here[0]["tuning"],
            "way": way,
            "questions": len(here),
            **{status: sum(row["status"] == status for row in here) for status in MEANINGS},
            "near": sum(row["error"] is not None and row["error"] <= NARROW for row in here),
            "wrong releases": sum(row["wrong"] for row in here),
            "confidently wrong": sum(row["confidently_wrong"] for row in here),
            "empty, not foretold": sum(row["empty_unwarned"] for row in here),
            "held": sum(row["held"] for row in here) / cells if cells else None,
        }
