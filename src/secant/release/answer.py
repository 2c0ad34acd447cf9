"""What an analyst gets: rows, the guarantee, the error, the price. Public values only."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

from secant.accuracy.warnings import Caution
from secant.display.drawing import Picture
from secant.errors import UsageError
from secant.records import frozen


@frozen
class Certain:
    """Ends that hold for every database."""

    low: list[tuple[float | None, ...]]
    high: list[tuple[float | None, ...]]


@frozen
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

    `low` and `high` have the shape of the rows; an end that nothing bounds is None. Where `kind` is "usual", what is
    cut by limits is estimated, `certain` has ends that hold for every database, and `not_seen` says whom the
    estimate cannot see. `values` are half widths, `noise`
    is how far noise alone moves a number, `ranks` by how many rows an order statistic is off (of the rows that count:
    not NULL, within limits), or a truth value of `bool_and` or `bool_or`, `noisy` which columns noise has moved (None
    means there that nothing is known), `running` the rows of running totals one after another, and `leaves_out` says
    what limits may have cut off. `undefined`, where
    it is there, names columns that are NULL because a divisor came out as 0.
    """
    mechanisms: list[dict[str, Any]]
    """Names and public parameters of the noise."""
    budget: Mapping[str, Any]
    release_id: str | None
    warnings: tuple[Caution, ...] = ()
    """What was known before anything was spent, and should be read beside the answer."""
    raw: list[tuple[Any, ...]] = field(default_factory=list)
    """The rows as noise made them: shown counts are not below zero, shown averages inside their range."""

    def __str__(self) -> str:
        """Give the answer as `secant query` prints it."""
        from secant.display.parts import answer_parts, as_text

        return as_text(answer_parts(self))

    def _repr_html_(self) -> str:
        """Give the answer as a notebook shows it."""
        from secant.display.page import answer_page

        return answer_page(self)

    @property
    def low(self) -> list[tuple[float | None, ...]]:
        """Lower ends in the shape of `rows`; None beside exact values, and where nothing bounds the true number."""
        return self._ends("low")

    @property
    def high(self) -> list[tuple[float | None, ...]]:
        """Upper ends in the shape of `rows`; None beside exact values, and where nothing bounds the true number."""
        return self._ends("high")

    @property
    def certain(self) -> Certain:
        """Ends that hold for every database, in the shape of `rows`; None where nothing bounds the true number."""
        return Certain(*(self._ends(side, self.error.get("certain")) for side in ("low", "high")))

    def _ends(
        self, side: str, of: Mapping[str, Any] | None = None
    ) -> list[tuple[float | None, ...]]:
        ends = (of or self.error).get(side)
        return [tuple(row) for row in ends] if ends else [(None,) * len(r) for r in self.rows]

    def afterwards(self, *, isotonic: bool = False) -> Answer:
        """Make better estimates of the same released numbers, for nothing.

        `isotonic` gives for running totals of what is never below zero, such as `sum(count(*)) OVER (ORDER BY day)`,
        the nearest column that never falls (continual.isotonic). `raw` keeps what was released, and ends stay.
        """
        if not isotonic:
            return self
        order = self.error.get("running") or {}
        if not order:
            raise UsageError(
                "USE-010",
                "only running totals of what is never below zero cannot fall",
                hint="ask for sum(count(*)) OVER (ORDER BY ...), or for sums whose range begins at 0",
            )
        from secant.accuracy.isotonic import never_falling

        rows, error = never_falling(self.columns, self.rows, self.error, order)
        return replace(self, rows=rows, error=error)

    def plot(self, column: str | None = None) -> Picture:
        """Draw a noisy column with error bars; shows in a notebook, and `.save("answer.svg")` writes a file."""
        from secant.display.chart import chart

        return Picture(chart(self, column))

    def to_dict(self) -> dict[str, Any]:
        """Give the object that `secant query --json` prints; `guarantee` and `budget` list all protections."""
        return {
            "columns": self.columns,
            "rows": [[plain(v) for v in row] for row in self.rows],
            "raw": [[plain(v) for v in row] for row in self.raw],
            "guarantee": self.guarantee,
            "error": self.error,
            "mechanisms": self.mechanisms,
            "budget": [
                {"protection": n, **account.to_dict()} for n, account in self.budget.items()
            ],
            "release_id": self.release_id,
            "warnings": [w.to_dict() for w in self.warnings],
        }

    def to_pandas(self, *, errors: bool = False) -> Any:
        """Give the rows as a pandas DataFrame (extra `frames`); with `errors`, both ends beside noisy columns."""
        names, columns = self._columns(errors)
        return _import("pandas").DataFrame(list(zip(*columns, strict=True)), columns=names)

    def to_polars(self, *, errors: bool = False) -> Any:
        """Give the rows as a Polars DataFrame (extra `frames`); with `errors`, both ends beside noisy columns."""
        names, columns = self._columns(errors)
        rows = list(zip(*columns, strict=True))
        return _import("polars").DataFrame(
            rows, schema=names, orient="row", infer_schema_length=None
        )

    def to_arrow(self, *, errors: bool = False) -> Any:
        """Give the rows as an Arrow table (extra `frames`); with `errors`, both ends beside noisy columns."""
        names, columns = self._columns(errors)
        arrow = _import("pyarrow")
        return arrow.table([arrow.array(c) for c in columns], names=names)

    def _columns(self, errors: bool) -> tuple[list[str], list[list[Any]]]:
        """Give names and values column by column; ends stand behind each noisy column, under names that are free."""
        from secant.display.parts import noisy_columns

        noisy = noisy_columns(self.error) if errors else frozenset()
        low, high = (self.low, self.high) if errors else ([], [])
        names: list[str] = []
        columns: list[list[Any]] = []
        for index, name in enumerate(self.columns):
            names.append(name)
            columns.append([row[index] for row in self.rows])
            if index in noisy:
                names += names_of_ends(name, (*self.columns, *names))
                columns += [[row[index] for row in ends] for ends in (low, high)]
        return names, columns


def names_of_ends(name: str, taken: Sequence[str]) -> tuple[str, str]:
    """Name the two ends of a column so that no other column is called so; each takes the first name that is free."""
    low, high = f"{name}_low", f"{name}_high"
    while low in taken:
        low += "_"
    while high in taken:
        high += "_"
    return low, high


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
