"""`secant.protect`: three lines from a frame to a private answer.

In: a frame and whom it is about. Out: a connection. What is not said is found privately: limits of what one person
adds, ranges of columns, which groups are shown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from typing import Any

from secant.engine import Connection, connect
from secant.errors import UsageError, public_api
from secant.policy.file import policy_of
from secant.stages.ask import Number

DELTA = "1e-6"
"""All that may be spent of δ: groups that are not declared are shown only with a positive one."""


@public_api
def protect(
    data: object,
    *,
    epsilon: Number,
    unit: str | None = None,
    delta: Number = DELTA,
    table: str = "data",
    ranges: Mapping[str, Sequence[object]] | None = None,
    values: Mapping[str, Sequence[object]] | None = None,
    rows: int | None = None,
    ledger: str | Path | None = None,
) -> Connection:
    """Open one frame for private questions; `epsilon` is all that may ever be spent on it.

    Args:
        data: A pandas, Polars or Arrow frame, a DuckDB relation, or the path of a CSV or Parquet file.
        epsilon: The whole budget.
        unit: The column that says whom a row is about: everything of one of them is hidden. Without it, each row
            stands for itself.
        delta: The whole budget of δ.
        table: What the frame is called in questions.
        ranges: By column its smallest and largest value, as far as everybody may know them; others are found privately.
        values: By column all values that it may have; groups of others are shown where enough people are in them.
        rows: How many rows of one unit count at most; by default that is found privately.
        ledger: A file that keeps the budget; by default it is counted for this process only.

    >>> import secant
    >>> db = secant.protect({"ward": ["Eye", "Ear"]}, epsilon=3)
    Traceback (most recent call last):
    secant.errors.UsageError: USE-001  the table data is a dict, which cannot be scanned
      Now: pass a pandas, Polars or Arrow frame, a DuckDB relation, or the path of a .csv or .parquet file
    """
    if isinstance(unit, str) and not unit.strip():
        raise UsageError("USE-001", "the unit is empty", hint='name a column: unit="patient_id"')
    columns: dict[str, dict[str, Any]] = {}
    for column, ends in (ranges or {}).items():
        columns.setdefault(column, {})["range"] = ends
    for column, listed in (values or {}).items():
        columns.setdefault(column, {})["values"] = listed
    protection: dict[str, Any] = {
        "kind": "rows",
        "epsilon": _exact(epsilon),
        "delta": _exact(delta),
    }
    if unit is not None:
        protection |= {"kind": "unit", "unit": f"{table}.{unit}"}
        if rows is not None:
            protection["limits"] = {table: rows}
    elif rows is not None:
        raise UsageError(
            "USE-001", "rows limits what one unit adds", hint='name its column: unit="patient_id"'
        )
    name = _name(unit or "rows")
    policy = policy_of(
        tables={table: {"columns": columns}} if columns else {},
        protections={name: protection},
    )
    return connect({table: data}, policy=policy, ledger=ledger)


def _exact(number: object) -> object:
    """Give a number that is written as text; what is none is told as the policy tells it."""
    with suppress(ArithmeticError):
        return Decimal(number) if isinstance(number, str) else number
    return number


def _name(text: str) -> str:
    """Name a protection after its column; a policy allows letters, digits, - and _."""
    name = "".join(c if c.isascii() and (c.isalnum() or c in "-_") else "_" for c in text)
    return name if name[:1].isalpha() or name[:1] == "_" else f"_{name}"
