"""What `secant bench laud` prints: one line a query beside the published numbers, then the verdicts.

In: records of `measure`. Out: text on standard output. Nothing is measured or judged here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from bench.suites.laud.compare import (
    PRINTED_SCALE,
    SCALES,
    UNEXPLAINED,
    accuracy,
    expected,
    missed,
    parity,
    printed_at,
    speed,
)
from secant.cli import show

Row = Mapping[str, Any]


def print_lines(titles: Sequence[str], lines: Iterable[Sequence[str]]) -> None:
    """Print lines of text under titles; numbers of others are dim."""
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    first, *others = titles
    table.add_column(first)
    for title in others:
        style = "dim" if title in ("print", "authors") else ""
        table.add_column(title, justify="right", style=style, no_wrap=True)
    for line in lines:
        table.add_row(*(Text(cell) for cell in line))
    show.show(table)


def print_table(rows: Sequence[Row], profile: str, scale: str) -> None:
    """Print what was measured beside the print."""
    known = expected()
    printed = scale if scale in SCALES else PRINTED_SCALE
    print_lines(
        ("query", *_TITLES["native" if profile == "native" else "paper"]),
        [(row["query"], *_cells(row, known[row["query"]], profile, printed)) for row in rows],
    )
    for row in rows:
        if "refused" in row:
            show.say(f"{row['query']}: {row['refused']['code']} {row['refused']['message']}")


_TIMES = ("compile\nms", "plain\nms", "release\nms", "ratio")
_TITLES = {
    "native": ("exact", "softened", "sens.", "error95", "authors", *_TIMES),
    "paper": ("exact", "softened", "print", "sens.", "print", "error95", *_TIMES),
}


def _cells(row: Row, known: Mapping[str, Any], profile: str, scale: str) -> tuple[str, ...]:
    if "refused" in row:
        return ("refused",)
    seconds = row["seconds"]
    times = (
        *(f"{1000 * seconds[name]:.1f}" for name in ("compile", "plain", "release")),
        f"{seconds['release'] / seconds['plain']:.2f}",
    )
    exact, softened, sensitivity = (
        _short(row[name]) for name in ("exact", "softened", "sensitivity")
    )
    error = share(row["relative_error95"])
    if profile == "native":
        return (exact, softened, sensitivity, error, share(known["error"] / 100), *times)
    printed_softened, printed_sensitivity = printed_at(known, profile, scale)
    return (exact, softened, printed_softened, sensitivity, printed_sensitivity, error, *times)


def _short(value: float | None) -> str:
    """Print a number as the paper does: 3.55M, 0.0006."""
    if value is None:
        return "?"
    for unit, letter in ((1e9, "G"), (1e6, "M"), (1e3, "K")):
        if abs(value) >= unit:
            return f"{value / unit:.2f}{letter}"
    return f"{value:.2f}" if abs(value) >= 1 else f"{value:.2g}"


def share(value: float | None) -> str:
    """Print a part of the whole in percent; what is not known is a question mark."""
    return "?" if value is None else f"{100 * value:.3g}%"


def print_verdicts(rows: Sequence[Row], profile: str, scale: str) -> None:
    """Print how accuracy and speed compare with the authors'."""
    show.say()
    pace = speed(rows)
    if pace is not None:
        show.say(
            f"release / plain: geometric mean {pace.mean:.2f}, worst {pace.worst:.2f}; "
            f"slowest to compile: {1000 * pace.slowest_compile:.1f} ms"
        )
    if scale not in SCALES or (profile == "native" and scale != PRINTED_SCALE):
        show.say(f"The numbers beside ours are of scale {PRINTED_SCALE}, not of {scale}.")
        return
    if profile == "native":
        found = accuracy(rows)
        if found is not None:
            show.say(f"error at 95 % / authors' at 78 %: geometric mean {found.mean:.3f}")
            show.say(f"not below the authors': {', '.join(found.worse) or 'none'}")
        return
    others = missed(rows, profile, scale)
    show.say(f"not as printed: {', '.join(others) or 'none'}")
    for one in parity(rows, profile, scale):
        if not one.ok:
            ours = f"softened {_short(one.softened)}, sensitivity {_short(one.sensitivity)}"
            theirs = f"{one.printed_softened} and {one.printed_sensitivity}"
            why = UNEXPLAINED.get((one.query, profile))
            show.say(f"  {one.query}: {ours}; printed {theirs}" + (f" ({why})" if why else ""))
