"""What `secant bench useful` prints: a line per question that is not useful, then what each set came to.

In: records of `measure`. Out: lines on the screen. Nothing is measured or judged here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bench.suites.useful.measure import MEANINGS, summary
from secant.cli import show


def lines(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Give what went wrong, question by question and grouped by cause, then the counts."""
    for status, meaning in MEANINGS.items():
        here = [row for row in rows if row["status"] == status]
        if status == "useful" or not here:
            continue
        yield f"{status}: {meaning}"
        for row in here:
            width, error = (_share(row[k]) for k in ("half", "error"))
            yield (
                f"  {row['data']:<9}{row['way']:<9} {row['query']:<28} ±{width:>7}, off by {error:>7}, "
                f"useful {row['useful']} of {row['releases']}  {row['words']}".rstrip()
            )
        yield ""
    for row in summary(rows):
        found = ", ".join(f"{row[status]} {status}" for status in MEANINGS if row[status])
        held = "" if row["held"] is None else f"; ends hold in {row['held']:.0%} of cells"
        yield f"{row['data']}, {row['way']}: {found} of {row['questions']}; {row['near']} near{held}"
    for words in ("confidently wrong", "empty, not foretold"):
        yield f"{words}: {sum(row[words] for row in summary(rows))} releases"


def _share(value: float | None) -> str:
    """Give a share of the truth in few characters."""
    if value is None:
        return "?"
    return f"{value:.1%}" if value < 10 else f"{value:,.0f} x"


def print_table(rows: Sequence[Mapping[str, Any]]) -> None:
    """Write the table."""
    for line in lines(rows):
        show.say(line)
