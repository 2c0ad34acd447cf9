"""What `secant bench tpch` prints: one line a query, then why others are refused, then the sum.

In: records of `measure`. Out: text on standard output. Nothing is measured or judged here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bench.suites.laud.table import print_lines, share
from bench.suites.tpch.measure import summary
from secant.cli import show

_TIMES = ("compile", "plain", "release")
_TITLES = (
    "query", "status", "error95", "best\ncell", "rows", "analysis", *(f"{t}\nms" for t in _TIMES),
)  # fmt: skip


def print_table(rows: Sequence[Mapping[str, Any]]) -> None:
    """Print what became of every query."""
    print_lines(_TITLES, [_cells(row) for row in rows])
    for row in rows:
        if "refused" in row:
            refused = row["refused"]
            show.say(f"{row['query']}: {refused['code']} {refused['message']}")
            for line in (*refused["details"], refused["hint"]):
                show.say(f"    {line}")
    show.say()
    show.say(summary(rows))


def _cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    times = [f"{1000 * s:.1f}" if (s := row["seconds"].get(t)) is not None else "" for t in _TIMES]
    if row["status"] == "refused":
        return (row["query"], row["status"], "", "", "", "", *times)
    best = share(row["best_cell"]) if "best_cell" in row else ""
    error = share(row["relative_error95"])
    return (
        row["query"], row["status"], error, best, str(row["rows"]), row["analysis"] or "", *times,
    )  # fmt: skip
