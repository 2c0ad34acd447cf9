"""What an analyst gets: rows, the guarantee, the error, the price. Public values only."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any

from secant.errors import UsageError
from secant.release.cautions import Caution


@dataclass(frozen=True, slots=True)
class Answer:
    """A released answer.

    >>> answer = Answer(["n"], [(41,)], [], {"level": 0.95, "values": [[3.0]]}, [], {}, "r1")
    >>> answer.rows
    [(41,)]
    """

    columns: list[str]
    rows: list[tuple[Any, ...]]
    guarantee: list[dict[str, Any]]
    """One entry for each protection that the answer satisfies and was charged to."""
    error: dict[str, Any]
    """Beside each number the ends between which the true one lies, at `level`; None where a value is exact.

    `low` and `high` have the shape of the rows; an end that nothing bounds is None. `values` are half widths, `noise`
    is how far noise alone moves a number, `ranks` by how many rows an order statistic is off (of the rows that count:
    not NULL, within limits), `noisy` which columns noise has moved (None means there that nothing is known), and
    `leaves_out` says what limits may have cut off.
    """
    mechanisms: list[dict[str, Any]]
    """Names and public parameters of the noise."""
    budget: Mapping[str, Any]
    release_id: str | None
    warnings: tuple[Caution, ...] = ()
    """What was known before anything was spent, and should be read beside the answer."""
    raw: list[tuple[Any, ...]] = field(default_factory=list)
    """The rows as noise made them: shown counts are not below zero, shown averages inside their range."""

    def to_dict(self) -> dict[str, Any]:
        """Give the object that `secant query --json` prints."""
        guarantee = self.guarantee[0] if len(self.guarantee) == 1 else self.guarantee
        budget = dict(self.budget)
        shown = next(iter(budget.values())) if len(budget) == 1 else budget
        return {
            "columns": self.columns,
            "rows": [[plain(v) for v in row] for row in self.rows],
            "raw": [[plain(v) for v in row] for row in self.raw],
            "guarantee": guarantee,
            "error": self.error,
            "mechanisms": self.mechanisms,
            "budget": shown,
            "release_id": self.release_id,
            "warnings": [w.to_dict() for w in self.warnings],
        }

    def to_pandas(self) -> Any:
        """Give the rows as a pandas DataFrame (extra `frames`)."""
        return _import("pandas").DataFrame(self.rows, columns=self.columns)

    def to_polars(self) -> Any:
        """Give the rows as a Polars DataFrame (extra `frames`)."""
        return _import("polars").DataFrame(self.rows, schema=self.columns, orient="row")

    def to_arrow(self) -> Any:
        """Give the rows as an Arrow table (extra `frames`)."""
        arrow = _import("pyarrow")
        columns = list(zip(*self.rows, strict=True)) or [() for _ in self.columns]
        return arrow.table({c: list(v) for c, v in zip(self.columns, columns, strict=True)})


def plain(value: Any) -> Any:
    """Give a value as JSON can write it."""
    if isinstance(value, Decimal):
        return (
            int(value)
            if value == value.to_integral_value() and abs(value) < 2**53
            else float(value)
        )
    if isinstance(value, Fraction):
        return float(value)
    if isinstance(value, (datetime.date, datetime.datetime)):
        return value.isoformat()
    return value


def _import(name: str) -> Any:
    import importlib

    try:
        return importlib.import_module(name)
    except ImportError:
        raise UsageError(
            "USE-006", f"{name} is not installed", hint="install secant[frames]"
        ) from None
