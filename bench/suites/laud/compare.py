"""Hold what was measured against the paper and against the authors' tool.

In: records of `measure`. Out: parity with the printed tables, accuracy and speed as ratios. Judging
only: nothing is measured here. Softened answers and sensitivities are printed for three scales, errors for 0.1.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from bench.suites.laud.forms import data_file

PRINTED_SCALE = "0.1"
SCALES = (PRINTED_SCALE, "0.5", "1")
"""Of the data in Tables 4 and 6."""
UNITS = {"K": Decimal(10) ** 3, "M": Decimal(10) ** 6, "G": Decimal(10) ** 9}
SMALLEST_RATIO = 0.05
"""A ratio below this counts as this: one query cannot carry the mean."""
PRINTED = ("paper", "paper-l1")
"""The settings of Tables 4 and 6."""
UNEXPLAINED = {
    (
        "b19",
        "paper-l1",
    ): "no reading of the query gives Table 6's answer; a norm changes no softened answer, "
    "and Table 4 has ours"
}
Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Parity:
    """One query beside its print."""

    query: str
    ok: bool
    softened: float
    printed_softened: str
    sensitivity: float
    printed_sensitivity: str


@dataclass(frozen=True, slots=True)
class Accuracy:
    """Our error at 95 % over the authors' at 78 %, both relative to the exact answer."""

    ratios: Mapping[str, float]
    mean: float
    """Geometric, each ratio counted as at least 0.05."""
    worse: tuple[str, ...]
    """Queries whose error is not below the authors'."""


@dataclass(frozen=True, slots=True)
class Speed:
    """Time of a release over the time of the plain query."""

    ratios: Mapping[str, float]
    mean: float
    worst: float
    slowest_compile: float


def expected() -> dict[str, dict[str, Any]]:
    """Give the printed numbers of each query."""
    return tomllib.loads(data_file("expected.toml").read_text(encoding="utf-8"))


def printed(text: str) -> tuple[Decimal, Decimal]:
    """Give the number that was printed, and half a unit of its last digit.

    >>> [str(part) for part in printed("192.5K")]
    ['192500.0', '5.00']
    """
    unit = UNITS.get(text[-1], Decimal(1))
    shown = Decimal(text.rstrip("KMG"))
    exponent = shown.as_tuple().exponent
    # At least two digits were printed, and zeros at the end left out.
    digits = max(2, -exponent if isinstance(exponent, int) else 0)
    return shown * unit, unit * Decimal(10) ** -digits / 2


def printed_at(query: Mapping[str, Any], profile: str, scale: str) -> tuple[str, str]:
    """Give the softened answer and the sensitivity that are printed for a query."""
    softened, sensitivity = query[profile if scale == PRINTED_SCALE else f"{profile}-{scale}"]
    return softened, sensitivity


def parity(rows: Sequence[Row], profile: str, scale: str = PRINTED_SCALE) -> list[Parity]:
    """Hold softened answers and sensitivities against Table 4, or 6 for `paper-l1`.

    A softened answer must round to what is printed; a sensitivity must not exceed the printed one
    by more than rounding.
    """
    table = expected()
    found = []
    for row in answered(rows):
        softened, sensitivity = printed_at(table[row["query"]], profile, scale)
        ok = _rounds_to(row["softened"], softened) and _at_most(row["sensitivity"], sensitivity)
        found.append(
            Parity(row["query"], ok, row["softened"], softened, row["sensitivity"], sensitivity)
        )
    return found


def _rounds_to(value: float | None, text: str) -> bool:
    aim, half = printed(text)
    return value is not None and abs(value - float(aim)) <= float(half)


def _at_most(value: float | None, text: str) -> bool:
    most, half = printed(text)
    return value is not None and value <= float(most + half)


def missed(rows: Sequence[Row], profile: str, scale: str = PRINTED_SCALE) -> list[str]:
    """Name the queries that do not agree with the print, refused ones included."""
    agreeing = {p.query for p in parity(rows, profile, scale) if p.ok}
    return [r["query"] for r in rows if r["query"] not in agreeing]


def accuracy(rows: Sequence[Row]) -> Accuracy | None:
    """Compare errors with the authors' tool; None if nothing was answered."""
    table = expected()
    ratios = {}
    for row in answered(rows):
        error = row["relative_error95"]
        authors = table[row["query"]]["error"] / 100
        ratios[row["query"]] = math.inf if error is None else error / authors
    if not ratios:
        return None
    worse = tuple(query for query, ratio in ratios.items() if not ratio < 1)
    return Accuracy(ratios, _mean([max(SMALLEST_RATIO, r) for r in ratios.values()]), worse)


def speed(rows: Sequence[Row]) -> Speed | None:
    """Compare the time of a release with that of the plain query; None if nothing was answered."""
    times = {r["query"]: r["seconds"] for r in answered(rows)}
    if not times:
        return None
    ratios = {query: t["release"] / t["plain"] for query, t in times.items()}
    slowest = max(t["compile"] for t in times.values())
    return Speed(ratios, _mean(list(ratios.values())), max(ratios.values()), slowest)


def answered(rows: Sequence[Row]) -> list[Row]:
    """Leave out the queries that were refused."""
    return [row for row in rows if "refused" not in row]


def _mean(values: Sequence[float]) -> float:
    return math.exp(math.fsum(math.log(v) for v in values) / len(values))
