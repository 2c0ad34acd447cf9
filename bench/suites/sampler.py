"""`secant bench sampler`: the figures of the sampling paper, the paper's order statistic beside ours.

In: numbers of figures, a folder. Out: one record for each number that both give, with how long it took; pictures go
into the folder. Samples are of public distributions; nothing of an owner's is read.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bench.sampler import FIGURE_OF
from bench.suites.laud.table import print_lines
from secant.errors import UsageError

Row = Mapping[str, Any]
SEED = 2017
KINDS = ("paper", "ours", "global", "exact", "value")


def chosen_figures(text: str) -> list[str]:
    """Give the figures that are meant by `1,8`; all of them by an empty text."""
    wanted = [part.strip() for part in text.split(",") if part.strip()]
    known = {name.split("_")[1]: name for name in FIGURE_OF}
    wrong = [part for part in wanted if part not in known]
    if wrong:
        hint = f"there are: {', '.join(known)}"
        raise UsageError("USE-001", f"there is no figure {wrong[0]}", hint=hint)
    return [known[part] for part in wanted] or list(known.values())


def measure(names: Sequence[str], folder: Path) -> Iterator[list[Row]]:
    """Draw figures and give their numbers, one list for each."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        started = time.perf_counter()
        found = FIGURE_OF[name](np.random.default_rng(SEED), folder)
        yield rows_of(name, found, time.perf_counter() - started)


def rows_of(name: str, found: Mapping[str, Any], seconds: float) -> list[Row]:
    """Put the paper's numbers and ours side by side; what only one has stands alone."""
    rows: dict[tuple[str, ...], dict[str, Any]] = {}
    for path, value in _leaves(found, ()):
        at, kind = next(
            ((i, word) for i in reversed(range(len(path))) if (word := _kind(path[i]))),
            (-1, "value"),
        )
        rest = [
            part.replace(kind, "").strip("_, ") if i == at else part for i, part in enumerate(path)
        ]
        rows.setdefault(tuple(part for part in rest if part), {})[kind] = value
    return [
        {"query": name, "what": " ".join(place), "seconds": seconds, **told}
        for place, told in rows.items()
    ]


def _kind(part: str) -> str:
    """Say whose number a key names: `paper`, `paper_m_100`, `ours, γ = 0.3`, `sensitivity_global`."""
    for kind in KINDS[:-1]:
        if part == kind or part.startswith((f"{kind}_", f"{kind},", f"{kind} ")):
            return kind
        if part.endswith(f"_{kind}") and "_over_" not in part:
            return kind
    return ""


def _leaves(
    found: Mapping[Any, Any], path: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], Any]]:
    for key, value in found.items():
        here = (*path, str(key))
        if isinstance(value, Mapping):
            yield from _leaves(value, here)
        else:
            yield here, value


def print_table(rows: Sequence[Row]) -> None:
    """Print one line for each number."""
    lines = [
        (
            row["query"],
            row["what"],
            *(_number(row.get(kind)) for kind in KINDS),
            f"{row['seconds']:.1f}",
        )
        for row in rows
    ]
    print_lines(("figure", "what", *KINDS, "s"), lines)


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"
