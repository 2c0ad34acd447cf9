"""Ratios of ordinary questions as a table: a line per question, a column per set, and what they come to.

In: records of `measure`. Out: lines on the screen.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from bench.suites.everyday.measure import overall
from secant.cli import show

Row = dict[str, Any]


def lines(rows: Sequence[Row]) -> Iterator[str]:
    """Give the table of each epsilon, then the means of sets for tuning and of the others."""
    names, questions = (list(dict.fromkeys(row[k] for row in rows)) for k in ("data", "query"))
    for epsilon in dict.fromkeys(row["epsilon"] for row in rows):
        here = [row for row in rows if row["epsilon"] == epsilon]
        ratios = {(row["query"], row["data"]): row for row in here}
        yield f"epsilon {epsilon}: error over that of an oracle"
        yield f"{'':<17}" + "".join(f"{name:>13}" for name in names)
        for question in questions:
            cells = (ratios.get((question, name)) for name in names)
            yield f"{question:<17}" + "".join(f"{_cell(row):>13}" for row in cells)
        for words, tuning in (("sets for tuning", True), ("other sets", False)):
            found = overall([row for row in here if row["tuning"] is tuning])
            if found is not None:
                mean, worst, count = found
                yield f"{words}: geometric mean {mean:.2f}, worst {worst:.3g}, of {count}"


def _cell(row: Row | None) -> str:
    if row is None:
        return ""
    return f"{row['ratio']:.3g}" if row["status"] == "answered" else "refused"


def print_table(rows: Sequence[Row]) -> None:
    """Write the table."""
    for line in lines(rows):
        show.say(line)
