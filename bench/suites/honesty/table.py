"""What `secant bench honesty` prints: one line per question, then which ends do not hold.

In: records of `measure`. Out: text on standard output. Nothing is measured or judged here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bench.suites.honesty.measure import mean_error, summary
from bench.suites.laud.table import print_lines, share
from secant.cli import show

_TITLES = (
    "data", "query", "ends", "usual\nends", "held", "worst\ncell", "one-\nsided", "half\nwidth", "error", "error95",
    "cells", "certain\nheld", "worst\ncell", "one-\nsided", "half\nwidth",
)  # fmt: skip
_SHARES = ("held", "worst_cell", "one_sided")


def print_table(rows: Sequence[Mapping[str, Any]]) -> None:
    """Print what became of every question."""
    print_lines(_TITLES, [_cells(row) for row in rows])
    show.say()
    for name in dict.fromkeys(row["data"] for row in rows):
        mean = mean_error([row for row in rows if row["data"] == name])
        show.say(f"{name}: geometric mean of error95 {share(mean)}")
    show.say(summary(rows))


def _cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    head = (row["data"], row["query"], row["status"])
    if row["status"] in ("refused", "exact"):
        return head
    numbers = ("half_width", "error", "error95")
    certain = row["certain"]
    return (
        *head,
        f"{row['usual']:.0%}",
        *_percent(row),
        *(share(row[k]) for k in numbers),
        str(row["cells"]),
        *_percent(certain),
        share(certain["half_width"]),
    )


def _percent(row: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple("" if row[k] is None else f"{row[k]:.1%}" for k in _SHARES)
