"""What `secant bench joins` prints: every analysis's bound beside the exact sensitivities.

In: records of `measure`. Out: text on standard output. Nothing is measured or judged here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bench.suites.laud.table import print_lines, share
from secant.cli import show

Row = Mapping[str, Any]


def print_table(rows: Sequence[Row]) -> None:
    """Print bounds in rows of the join, how far the choice is from the best possible, and times."""
    names = list(
        dict.fromkeys(analysis["analysis"] for row in rows for analysis in row["analyses"])
    )
    titles = (
        "query", "local", "exact\nsmooth", *names, "choice", "ratio", "error95", "plain\nms",
        "bound\nms", "bound /\nplain",
    )  # fmt: skip
    print_lines(titles, [_cells(row, names) for row in rows])
    for row in rows:
        for analysis in row["analyses"]:
            if "refused" in analysis:
                show.say(f"{row['query']}: {analysis['analysis']}: {analysis['refused']}")
        if "refused" in row:
            show.say(f"{row['query']}: {row['refused']['code']} {row['refused']['message']}")


def _cells(row: Row, names: Sequence[str]) -> tuple[str, ...]:
    bounds = {analysis["analysis"]: analysis for analysis in row["analyses"]}
    return (
        row["query"],
        number(row["local_sensitivity"]),
        number(row["smooth_sensitivity"]),
        *(number(bounds[name].get("rows")) if name in bounds else "" for name in names),
        row["analysis"] or "refused",
        f"{row['ratio']:.2f}" if "ratio" in row else "",
        share(row["relative_error95"]),
        *_times(row["seconds"]),
    )


def number(value: float | None) -> str:
    """Print a number of rows; an analysis that refused has none."""
    return "–" if value is None else f"{value:.4g}" if value < 1e4 else f"{value:.3g}"


def _times(seconds: Mapping[str, float]) -> tuple[str, ...]:
    plain, bound = seconds.get("plain"), seconds.get("bound")
    if plain is None or bound is None:
        return "", "", ""
    return f"{1000 * plain:.1f}", f"{1000 * bound:.1f}", f"{bound / plain:.2f}"
